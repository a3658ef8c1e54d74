"""Order statistics of residuals: half-widths of split conformal prediction, ends of jackknife+.

Model: of n residuals the ⌈.95(n + 1)⌉-th smallest, finite from n = 19 on; from below the ⌊.05(n + 1)⌋-th.

Symbols: R ``residuals`` (n,) score; μ₋ᵢ(x) ``predictions`` (q, n).

Not done here: nothing is clipped.

Source: as in `selection.intervals`.
"""

import numpy as np

from analytics.arrays import FloatArray
from selection.errors import SelectionError

ONE_IN = 20
MIN_FOR_QUANTILE = ONE_IN - 1


def split_conformal(residuals: FloatArray) -> float:
    """Half-width of split conformal prediction: the ⌈.95(n + 1)⌉-th smallest absolute residual.

    residuals: (n,); n ≥ 19; with n = 19 the answer is the largest.
    Raises SelectionError (too_few_residuals).
    """
    residuals = np.abs(np.asarray(residuals, dtype=np.float64))
    return float(np.sort(residuals)[_upper_rank(residuals.size) - 1])


def jackknife_plus(predictions: FloatArray, residuals: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Give the ends of the jackknife+ interval at nominal 95% (Barber et al. 2021, §1.2, α = .05).

    predictions: (q, n); μ₋ᵢ(x), n ≥ 19.
    residuals: (n,); R_i ≥ 0.
    Returns lower: (q,); ⌊.05(n + 1)⌋-th smallest of μ₋ᵢ(x) − R_i.
    Returns upper: (q,); ⌈.95(n + 1)⌉-th smallest of μ₋ᵢ(x) + R_i.
    Raises SelectionError (too_few_residuals).
    """
    rank = _upper_rank(residuals.size)
    lower = np.sort(predictions - residuals, axis=1)[:, residuals.size - rank]
    return lower, np.sort(predictions + residuals, axis=1)[:, rank - 1]


def _upper_rank(n: int) -> int:
    """⌈.95(n + 1)⌉ = n + 1 − ⌊(n + 1)/20⌋, in whole numbers."""
    if n < MIN_FOR_QUANTILE:
        raise SelectionError(
            f"{n} residuals; a 95% quantile of them is finite from {MIN_FOR_QUANTILE} on",
            code="too_few_residuals",
        )
    return n + 1 - (n + 1) // ONE_IN
