"""How an agent did beyond its first batch, against what that says of it."""

import numpy as np

from analytics.arrays import FloatArray, Mask
from selection.staged.model import estimates
from selection.staged.walks import Fit


def beyond_first_batch(fit: Fit, outcomes: FloatArray, asked: Mask) -> float | None:
    """Return (mean outcome − its expectation)/(c·se) over the tasks asked for later; None where none has one.

    The expectation is that of the model given the outcomes of the first batch without its audit tasks, so
    that whether an agent went on does not bias it.

    Parameters
    ----------
    fit : Fit
    outcomes : float array, shape (m,)
        0 to 1; NaN where there is none.
    asked : bool array, shape (m,)
        Tasks that it was asked for.
    """
    is_first = np.isin(np.arange(fit.n_tasks), fit.first_batch)
    later = asked & ~is_first & ~np.isnan(outcomes)
    if not later.any():
        return None
    seen, means = np.where(is_first, outcomes, np.nan), np.array([fit.model.next_mean])
    found = estimates(fit.model, seen[None, :], means, later)
    return float((outcomes[later].mean() - found.scores[0]) / (fit.scale.c * found.se[0]))
