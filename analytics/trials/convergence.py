"""How many trials an intraclass correlation needs: estimates from random subsets of the trials.

Source: *Intraclass correlation for agentic evaluation*, on convergence; the complement in place of all trials
is this project's own.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analytics.arrays import CodeArray, FloatArray
from analytics.errors import CoreError
from analytics.resampling import generator
from analytics.trials.icc import (
    EQUAL,
    IccRefused,
    TaskTrials,
    check_trials,
    checked_rows,
    counted,
    task_trials,
)

N_SUBSETS = 200
TOLERANCE = 0.05
SHARE_WITHIN = 0.95
CELLS_AT_ONCE = 2**17


@dataclass(frozen=True)
class ConvergenceStep:
    """ICC estimates from random subsets of n trials of each task.

    n_trials: n.
    mean, sd: over the subsets that have an estimate; None where fewer than two have.
    share_within: share of all subsets whose estimate lies within ±.05 of the one from the complementary
        trials; None for n above R/2.
    n_undefined: subsets in which all outcomes are equal, so that there is no estimate; they count as not
        within.
    """

    n_trials: int
    mean: float | None
    sd: float | None
    share_within: float | None
    n_undefined: int


@dataclass(frozen=True)
class Convergence:
    """How many trials the ICC needs.

    steps: n = 2, 4, 8, … up to R.
    n_available: R, the fewest valid trials of any task.
    trials_needed: smallest n ≤ R/2 of the steps with at least 95% of the subsets within; None: not reached.
    """

    steps: tuple[ConvergenceStep, ...]
    n_available: int
    trials_needed: int | None
    n_subsets: int

    @property
    def verdict(self) -> str:
        """`trials_needed` in words."""
        if self.trials_needed is None:
            return f"not reached with {self.n_available} trials per task"
        return f"{self.trials_needed} trials per task"


def convergence(
    task: npt.ArrayLike, outcome: npt.ArrayLike, seed: int, n_subsets: int = N_SUBSETS
) -> Convergence:
    """How the ICC settles with the number of trials, and how many are needed.

    task, outcome: as in `task_trials`.
    seed: base seed; subset d is drawn by the generator of (seed, "icc convergence", d) alone.
    n_subsets: random subsets, 200.
    Raises IccRefused: as in `intraclass_correlation`; or when a task has fewer than four valid trials, so
        that no two have a complement of two.

    Notes
    -----
    A subset takes n trials of every task at random, its complement the other n_i − n; subsets of one draw are
    nested. Compared with the estimate from *all* trials, a subset would confirm itself.
    """
    codes, outcomes = checked_rows(task, outcome)
    trials = task_trials(codes, outcomes)
    check_trials(trials)
    n_available = int(trials.n_trials.min())
    if n_available < 4:
        raise IccRefused(
            f"a task has {counted(n_available, 'valid trial')}; convergence needs 4 on every task",
            code="too_few_trials",
        )
    if n_subsets < 1:
        raise CoreError(f"{n_subsets} subsets; at least 1 is needed", code="seed")
    sizes = [2**k for k in range(1, n_available.bit_length())]
    own, other = _subset_estimates(codes, outcomes, trials, sizes, seed, n_subsets)
    steps = tuple(_step(n, own[:, k], other[:, k], n_available) for k, n in enumerate(sizes))
    reached = [step.n_trials for step in steps if (step.share_within or 0.0) >= SHARE_WITHIN]
    return Convergence(steps, n_available, reached[0] if reached else None, n_subsets)


def _subset_estimates(
    codes: CodeArray, outcomes: FloatArray, trials: TaskTrials, sizes: list[int], seed: int, n_subsets: int
) -> tuple[FloatArray, FloatArray]:
    """ICC of every subset and of its complement, shape (n_subsets, n_sizes); NaN where undefined."""
    grid = _by_task(codes, outcomes, trials.n_trials)
    own = np.full((n_subsets, len(sizes)), np.nan)
    other = own.copy()
    at_once = max(CELLS_AT_ONCE // grid.size, 1)
    for first in range(0, n_subsets, at_once):
        draws = range(first, min(first + at_once, n_subsets))
        keys = np.array([generator(seed, "icc convergence", d).random(grid.shape) for d in draws])
        keys[:, np.isnan(grid)] = 2.0
        shuffled = np.take_along_axis(grid[None], np.argsort(keys, axis=2), axis=2)
        for k, n in enumerate(sizes):
            own[draws, k] = _icc_of_grids(shuffled[:, :, :n])
            if 2 * n <= trials.n_trials.min():
                other[draws, k] = _icc_of_grids(shuffled[:, :, n:])
    return own, other


def _by_task(codes: CodeArray, outcomes: FloatArray, n_trials: CodeArray) -> FloatArray:
    grid = np.full((n_trials.size, int(n_trials.max())), np.nan)
    grid[np.arange(grid.shape[1]) < n_trials[:, None]] = outcomes[np.lexsort((outcomes, codes))]
    return grid


def _icc_of_grids(grids: FloatArray) -> FloatArray:
    """Return the truncated ICC of each grid; NaN where all outcomes are equal.

    A grid has rows of trials by task, NaN-padded. All are draws from one: a task has as many trials in each.
    """
    seen = ~np.isnan(grids[0])
    n = np.count_nonzero(seen, axis=1)
    means = np.where(seen, grids, 0.0).sum(axis=2) / n
    squares = (np.where(seen, grids - means[:, :, None], 0.0) ** 2).sum(axis=2)
    n_all, a = n.sum(), n.size
    between = (means - (means @ n / n_all)[:, None]) ** 2 @ n
    msb, msw, n_0 = between / (a - 1), squares.sum(axis=1) / (n_all - a), (n_all - n @ n / n_all) / (a - 1)
    defined = msb + msw > EQUAL**2
    icc = np.full(len(grids), np.nan)
    np.divide(msb - msw, msb + (n_0 - 1.0) * msw, out=icc, where=defined)
    return np.where(defined, np.maximum(icc, 0.0), np.nan)


def _step(n: int, own: FloatArray, other: FloatArray, n_available: int) -> ConvergenceStep:
    defined = own[~np.isnan(own)]
    enough = defined.size > 1
    within = np.count_nonzero(np.abs(own - other) <= TOLERANCE + EQUAL) / own.size
    return ConvergenceStep(
        n_trials=n,
        mean=float(defined.mean()) if enough else None,
        sd=float(defined.std(ddof=1)) if enough else None,
        share_within=float(within) if 2 * n <= n_available else None,
        n_undefined=own.size - defined.size,
    )
