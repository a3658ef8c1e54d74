"""Simultaneous rank intervals of agents whose scores are known with normal errors, measured or predicted.

Model
-----
n agents with scores y_a and variances of their errors. A measured score has an SE² of its own; predicted ones
share one variance s², estimated with ν degrees of freedom from the residuals of a calibration::

    T_ab = |e_a − e_b| / √(û_a + û_b),    e_a ~ N(0, u_a),    û_a = u_a, or u_a·χ²_ν/ν where it is estimated

c is the ⌈.95(n_draws + 1)⌉-th smallest maximum of T_ab over all pairs; a beats b when y_a − y_b exceeds
c·√(u_a + u_b), and rank intervals follow as in `analytics.differences.domain_ranks`. With equal estimated
variances T is Tukey's studentised range over √2, and two agents get Student's t.

Symbols: y ``scores`` (n_agents,), u ``se2`` (n_agents,) score², ν ``df``.

Not done here
-------------
Errors of two agents count as independent, though predicted scores share one calibration. No task is
resampled: agents measured on the same tasks are compared by `analytics.differences.domain_ranks`, which is
sharper.

Source
------
Hothorn, Bretz & Westfall, *Biometrical Journal* 50 (2008) 346-363 (maximum of t statistics). Mogstad, Romano,
Shaikh & Wilhelm, *Review of Economic Studies* 91 (2024) 476-518 (ranks from them).
"""

import math
from collections.abc import Sequence

import numpy as np

from analytics.arrays import FloatArray, Mask, read_only
from analytics.differences.domain_ranks import RankIntervals
from analytics.errors import CoreError

N_DRAWS = 10_000
DECIMALS = 9
DRAW = int.from_bytes(b"normal_ranks", "big")


class ErrorsRefused(CoreError):
    """Ranks need a positive, finite variance for the error of each of two agents or more."""


def normal_rank_intervals(
    scores: FloatArray,
    se2: FloatArray,
    agents: Sequence[str],
    *,
    estimated: Mask,
    df: float,
    seed: int,
    n_draws: int = N_DRAWS,
) -> RankIntervals:
    """Rank intervals that hold for all agents at once, nominal 95%.

    Parameters
    ----------
    scores, se2 : float arrays, shape (n_agents,)
        y_a, and SE² or s².
    agents : sequence of str, length n_agents
    estimated : bool array, shape (n_agents,)
        Whose variance is the common estimate.
    df : float
        Its degrees of freedom; infinite where it is known.
    seed : int
    n_draws : int

    Raises
    ------
    ErrorsRefused
    """
    scores, se2 = np.asarray(scores, np.float64), np.asarray(se2, np.float64)
    _check(scores, se2, agents, df)
    se = np.sqrt(se2[:, None] + se2)
    largest = _largest(se2, np.asarray(estimated, np.bool_), df, seed, n_draws)
    critical = float(np.sort(largest)[-(-95 * (n_draws + 1) // 100) - 1])
    means = np.round(scores, DECIMALS)
    beats = np.round(means[:, None] - means, DECIMALS) > critical * se
    return RankIntervals(
        agents=tuple(agents),
        means=read_only(means),
        lower=read_only(1 + np.count_nonzero(beats, axis=0)),
        upper=read_only(len(agents) - np.count_nonzero(beats, axis=1)),
        beats=read_only(beats),
        se=read_only(se),
        critical=critical,
        n_tasks=0,
        n_draws=n_draws,
    )


def _largest(se2: FloatArray, estimated: Mask, df: float, seed: int, n_draws: int) -> FloatArray:
    """Return the maximum of T over pairs, (n_draws,)."""
    rng = np.random.default_rng((seed, DRAW))
    errors = rng.standard_normal((n_draws, se2.size)) * np.sqrt(se2)
    scale = np.ones(n_draws) if math.isinf(df) else rng.chisquare(df, n_draws) / df
    seen = np.where(estimated, se2 * scale[:, None], se2)
    largest = np.zeros(n_draws)
    for a in range(se2.size - 1):
        squares = (errors[:, [a]] - errors[:, a + 1 :]) ** 2 / (seen[:, [a]] + seen[:, a + 1 :])
        np.maximum(largest, squares.max(axis=1), out=largest)
    return np.sqrt(largest)


def _check(scores: FloatArray, se2: FloatArray, agents: Sequence[str], df: float) -> None:
    if not scores.shape == se2.shape == (len(agents),) or len(agents) < 2:
        raise ErrorsRefused(f"{scores.shape} scores and {se2.shape} variances of {len(agents)} agents")
    if not (np.isfinite(scores).all() and np.isfinite(se2).all() and (se2 > 0).all() and df >= 1):
        raise ErrorsRefused(f"variances are positive and finite, with at least 1 degree of freedom, not {df}")
