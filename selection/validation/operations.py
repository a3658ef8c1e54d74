"""Floating-point operations that a strategy takes under the protocols, told from sizes alone.

The theory is in ``selection/README.md``, “Nested validation”.

Source: Golub & Van Loan, *Matrix Computations*, 4th ed. 2013, §1.1, §4.2 (products, Cholesky factors).
"""

from collections.abc import Iterable

import numpy as np

from analytics.arrays import FloatArray
from selection.folds import FoldBands
from selection.staged.teaching import N_FOLDS
from selection.strategies import FITTED

MAX_OPERATIONS = 2e13
ALONE = 10.0
N_NEWTON_STEPS = 5


def operations(strategy: str, bands: Iterable[FoldBands], n_draws: int = 1) -> float:
    """About how many operations a strategy takes in all folds that have a band.

    strategy: a key of `selection.strategies.STRATEGIES`.
    bands: one for each protocol.
    n_draws: of `random`, in each fold.
    """
    counts = list[float]()
    for of_protocol in bands:
        n, h, k = _sizes(of_protocol)
        ridge = np.minimum(n**2 * k + n**3 / 3 + n**2 * h, k**3 / 3 + k**2 * h)
        counts.append(float(np.sum(ridge + _choosing(strategy, n, k, float(of_protocol.rates.shape[1])))))
    return sum(counts) * n_draws if strategy == "random" else sum(counts)


def coverage_operations(strategy: str, bands: Iterable[FoldBands], estimator: str = "ridge") -> float:
    """About how many operations choosing and estimating again in the inner folds of all folds takes.

    estimator: one of `selection.full_scores.ESTIMATORS`.
    """
    counts = list[float]()
    for of_protocol in bands:
        (n, _, k), m = _sizes(of_protocol), float(of_protocol.rates.shape[1])
        if estimator == "completion":
            counts.append(float(np.sum(np.minimum(n, N_FOLDS) * _rasch(n, m))))
        else:
            counts.append(float(np.sum(n * _choosing(strategy, n, k, m))))
    return sum(counts)


def too_many(count: float) -> str:
    """Say that a count is more than `MAX_OPERATIONS`; "" where it is not."""
    if count <= MAX_OPERATIONS:
        return ""
    return f"about {count:.0e} floating-point operations, more than {MAX_OPERATIONS:.0e}"


def _sizes(bands: FoldBands) -> tuple[FloatArray, FloatArray, FloatArray]:
    """n, h and k of the folds that have a band."""
    used = [f for f, tasks in enumerate(bands.tasks) if tasks.size]
    sizes = [(bands.folds[f].training.size, bands.folds[f].held_out.size, bands.tasks[f].size) for f in used]
    n, h, k = np.array(sizes, dtype=np.float64).reshape(-1, 3).T
    return n, h, k


def _choosing(strategy: str, n: FloatArray, k: FloatArray, m: float) -> FloatArray:
    if strategy == "greedy":
        return 10 * ALONE * n * k * (m - k / 2)
    return _rasch(n, m) if strategy in FITTED else np.zeros_like(n)


def _rasch(n: FloatArray, m: float) -> FloatArray:
    small, large = np.minimum(n, m), np.maximum(n, m)
    return np.asarray(N_NEWTON_STEPS * (small**2 * large + small**3 / 3 + 10 * ALONE * n * m))
