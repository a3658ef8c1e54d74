"""``line``: the least-squares line of the full score on the mean over the subset.

Model: ŷ = ȳ + c·(r − r̄), c = Σ(r − r̄)(y − ȳ)/Σ(r − r̄)², r the mean of a row over S, its missing cells taken
as the training means of their columns. Equal r in all training agents: c = 0.

Symbols: X ``outcomes`` (n, k), y ``scores`` (n,), r ``means`` (n,), c ``slope``, ȳ − c·r̄ ``intercept``.

Not done here: no weights; what is refused is what `selection.ridge.fit` refuses.

Source: Draper & Smith, *Applied Regression Analysis*, 3rd ed. 1998, §1.2.
"""

from dataclasses import dataclass

import numpy as np

from analytics.arrays import FloatArray, read_only
from selection import ridge


@dataclass(frozen=True, eq=False)
class LineFit:
    """A fitted line.

    intercept, slope: score; score per unit of r.
    column_means: (k,); what a missing cell is taken as.
    """

    intercept: float
    slope: float
    column_means: FloatArray


def fit(outcomes: FloatArray, scores: FloatArray) -> LineFit:
    """Fit ŷ = ȳ + c·(r − r̄) to training agents.

    outcomes: (n, k); on the subset; NaN where missing.
    scores: (n,).
    Raises As `selection.ridge.fit`..
    """
    outcomes, scores = ridge.checked_training(outcomes, scores, ridge.ALPHA)
    column_means = np.nanmean(outcomes, axis=0)
    means = _means(outcomes, column_means)
    slope = slope_of(means, scores)
    return LineFit(float(np.mean(scores) - slope * np.mean(means)), slope, read_only(column_means))


def predict(fitted: LineFit, outcomes: FloatArray) -> FloatArray:
    """ŷ of agents on the subset, shape (q,); at most a tenth of each row missing."""
    return np.asarray(fitted.intercept + fitted.slope * _means(outcomes, fitted.column_means))


def slope_of(means: FloatArray, scores: FloatArray) -> float:
    """c, 0 where all r are equal."""
    centred = means - np.mean(means)
    spread = float(centred @ centred)
    equal = bool(np.ptp(means) <= np.finfo(np.float64).eps * max(1.0, float(np.abs(means).max())))
    return 0.0 if equal else float(centred @ (scores - np.mean(scores))) / spread


def _means(outcomes: FloatArray, column_means: FloatArray) -> FloatArray:
    return np.asarray(np.where(np.isnan(outcomes), column_means, outcomes).mean(axis=1), dtype=np.float64)
