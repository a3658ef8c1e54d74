"""What a second run of an agent is expected to score: its score, regressed towards the others'.

Source: Efron & Morris, *JASA* 70 (1975) 311-319. Paule & Mandel, *Journal of Research of the NBS* 87 (1982)
377-385, by the iteration of DerSimonian & Kacker, *Contemporary Clinical Trials* 28 (2007) 105-114. Bühlmann,
*ASTIN Bulletin* 4 (1967) 199-207. Morris, *JASA* 78 (1983) 47-55, has n − 3 for n − 2: the least squared
error over all agents.
"""

from dataclasses import dataclass

import numpy as np

from analytics.arrays import FloatArray, read_only
from analytics.errors import CoreError

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
    between = _between(scores, v)
    mean = _mean(scores, v, between)
    share = (n - 2) / (n - 1) * v / (v + between)
    return Regression(mean, between, read_only(scores - share * (scores - mean)))


def _between(x: FloatArray, v: FloatArray) -> float:
    """τ̂², from below: the equation's left side is convex and falls, so Newton's steps never overshoot."""
    between = 0.0
    while True:
        squares = (x - _mean(x, v, between)) ** 2 / (v + between)
        step = (squares.sum() - (x.size - 1)) / (squares / (v + between)).sum() if squares.any() else 0.0
        if step <= PRECISION * (between + v.min()):
            return between
        between += float(step)


def _mean(x: FloatArray, v: FloatArray, between: float) -> float:
    weights = 1 / (v + between)
    return float((weights * x).sum() / weights.sum())
