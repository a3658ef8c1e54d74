"""A second run of an agent: whether it agrees with the first within chance, and what it is expected to score.

Source: McNemar, Psychometrika 1947; Student, Biometrika 1908. Efron & Morris, *JASA* 70 (1975) 311-319. Paule
& Mandel, *Journal of Research of the NBS* 87 (1982) 377-385, by the iteration of DerSimonian & Kacker,
*Contemporary Clinical Trials* 28 (2007) 105-114. Bühlmann, *ASTIN Bulletin* 4 (1967) 199-207. Morris, *JASA*
78 (1983) 47-55, has n − 3 for n − 2: the least squared error over all agents.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, stdtr

from analytics.arrays import FloatArray, read_only
from analytics.errors import CoreError

LEVEL = 0.01


class RunAgreement(NamedTuple):
    """Two runs of the same tasks. `n_first`, `n_second`: tasks on which that run alone did better."""

    n_tasks: int
    first_mean: float
    second_mean: float
    n_first: int
    n_second: int
    test: str
    p: float

    @property
    def agrees(self) -> bool:
        """Whether the difference may be chance, at 1%."""
        return self.p >= LEVEL


def agreement(first: FloatArray, second: FloatArray) -> RunAgreement:
    """Test whether two runs, (n_tasks,), 0 to 1 in one order of tasks, differ by more than chance."""
    if first.shape != second.shape or first.ndim != 1 or len(first) < 2:
        raise CoreError("two runs are compared on the same tasks, at least two")
    both = np.concatenate([first, second])
    if not ((both >= 0) & (both <= 1)).all():
        raise CoreError("outcomes are from 0 to 1")
    n_first, n_second = int((first > second).sum()), int((second > first).sum())
    if np.isin(both, (0.0, 1.0)).all():
        test = "McNemar"
        p = min(1.0, 2 * float(bdtr(min(n_first, n_second), n_first + n_second, 0.5)))
    else:
        test, apart = "paired t", second - first
        n, mean = len(apart), float(apart.mean())
        if np.ptp(apart) < 1e-12:  # differences that are all alike leave no chance, unless they are 0
            p = 1.0 if abs(mean) < 1e-12 else 0.0
        else:
            t = mean / float(apart.std(ddof=1)) * np.sqrt(n)
            p = 2 * float(stdtr(n - 1, -abs(t)))
    return RunAgreement(len(first), float(first.mean()), float(second.mean()), n_first, n_second, test, p)


def task_means(tasks: npt.NDArray[np.str_], outcomes: FloatArray) -> dict[str, float]:
    """Return the mean outcome of each task, from one row for each trial."""
    names, at = np.unique(tasks, return_inverse=True)
    means = np.bincount(at, outcomes) / np.bincount(at)
    return dict(zip(names.tolist(), means.tolist(), strict=True))


MIN_AGENTS = 5
PRECISION = 1e-12


@dataclass(frozen=True, eq=False)
class Regression:
    """How agents differ: μ̂ and τ̂², score², and what a second run of each is expected to score, (n,)."""

    mean: float
    between: float
    expected: FloatArray


def regressed(scores: FloatArray, variances: FloatArray, n_tasks: int) -> Regression:
    """Return what a second run of each agent is expected to score, from x and V, (n,), those above 0."""
    if scores.ndim != 1 or scores.shape != variances.shape or n_tasks < 1:
        raise CoreError(
            f"scores {scores.shape}, variances {variances.shape}, {n_tasks} tasks", code="regression"
        )
    if scores.size < MIN_AGENTS:
        raise CoreError(f"{scores.size} agents; how much agents differ takes {MIN_AGENTS}", code="regression")
    if not (((scores >= 0) & (scores <= 1)).all() and ((variances > 0) & np.isfinite(variances)).all()):
        raise CoreError(
            "a score outside 0 to 1, or a variance that is not finite and above 0", code="regression"
        )
    rates, n = (n_tasks * scores + 2) / (n_tasks + 4), scores.size
    spread = rates * (1 - rates)
    v = variances / spread * spread.mean()
    # τ̂², from below: the equation's left side is convex and falls, so Newton's steps never overshoot
    between = 0.0
    while True:
        squares = (scores - _mean(scores, v, between)) ** 2 / (v + between)
        step = (squares.sum() - (n - 1)) / (squares / (v + between)).sum() if squares.any() else 0.0
        if step <= PRECISION * (between + v.min()):
            break
        between += float(step)
    mean = _mean(scores, v, between)
    share = (n - 2) / (n - 1) * v / (v + between)
    return Regression(mean, between, read_only(scores - share * (scores - mean)))


def _mean(x: FloatArray, v: FloatArray, between: float) -> float:
    weights = 1 / (v + between)
    return float((weights * x).sum() / weights.sum())
