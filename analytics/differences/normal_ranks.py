"""Simultaneous rank intervals of agents whose scores are known with normal errors, measured or estimated.

Model
-----
n agents with scores y_a and variances u_a of their errors. A measured score has an SE² of its own. Estimated
ones rest on a calibration c, which gives their variance with ν_c degrees of freedom from its residuals; all
agents of one calibration share that estimate::

    T_ab = |e_a − e_b| / √(û_a + û_b),    e_a ~ N(0, u_a),    û_a = u_a, or u_a·χ²_ν/ν of its calibration

c is the ⌈.95(n_draws + 1)⌉-th smallest maximum of T_ab over all pairs; a beats b when y_a − y_b exceeds
c·√(u_a + u_b), and rank intervals follow as in `analytics.differences.domain_ranks`. With equal variances of
one calibration T is Tukey's studentised range over √2, and two agents get Student's t.

With z_a = e_a/√û_a, T²_ab ≤ z_a² + z_b² (Cauchy and Schwarz): the two largest z² bound a draw's maximum.
Pairs are gone through only for draws that may lie at the quantile or above; c is the same.

Symbols
-------
======  ============================  ======================  ==========
symbol  code                          shape                   unit
======  ============================  ======================  ==========
y       ``scores``                    (n_agents,)             score
u       ``se2``                       (n_agents,)             score²
c       ``calibration``, −1: none     (n_agents,)
ν       ``df``                        (n_calibrations,)
z²      ``squares``                   (n_draws, n_agents)     1
======  ============================  ======================  ==========

Not done here
-------------
Errors of two agents count as independent, though estimated scores share one calibration. No task is
resampled: agents measured on the same tasks are compared by `analytics.differences.domain_ranks`, which is
sharper.

Source
------
Hothorn, Bretz & Westfall, *Biometrical Journal* 50 (2008) 346-363 (maximum of t statistics). Mogstad, Romano,
Shaikh & Wilhelm, *Review of Economic Studies* 91 (2024) 476-518 (ranks from them).
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from analytics.arrays import FloatArray, IndexArray, read_only
from analytics.differences.domain_ranks import RankIntervals
from analytics.errors import CoreError

N_DRAWS = 10_000
N_BLOCK = 100
DECIMALS = 9
DRAW = int.from_bytes(b"normal_ranks", "big")


class ErrorsRefused(CoreError):
    """Ranks need a positive, finite variance for the error of each of two agents or more."""


def normal_rank_intervals(
    scores: FloatArray,
    se2: FloatArray,
    agents: Sequence[str],
    *,
    calibration: npt.ArrayLike,
    df: Sequence[float],
    seed: int,
    n_draws: int = N_DRAWS,
) -> RankIntervals:
    """Rank intervals that hold for all agents at once, nominal 95%.

    Parameters
    ----------
    scores, se2 : float arrays, shape (n_agents,)
        y_a, and SE² or the variance that the calibration gives.
    agents : sequence of str, length n_agents
    calibration : int array, shape (n_agents,)
        Position in `df` of the calibration that an estimated score rests on; −1 where measured.
    df : sequence of float
        Degrees of freedom of each calibration's variance.
    seed : int
    n_draws : int

    Raises
    ------
    ErrorsRefused
    """
    scores, se2 = np.asarray(scores, np.float64), np.asarray(se2, np.float64)
    which = np.asarray(calibration, np.intp)
    _check(scores, se2, agents, which, df)
    se = np.sqrt(se2[:, None] + se2)
    critical = _critical(se2, which, df, seed, n_draws)
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


# ---------------------------------------------------------------------------------------------- arithmetic


def _critical(se2: FloatArray, which: IndexArray, df: Sequence[float], seed: int, n_draws: int) -> float:
    """Return the ⌈.95(n_draws + 1)⌉-th smallest maximum of T over pairs."""
    errors, seen = _draws(se2, which, df, seed, n_draws)
    n_above = n_draws - -(-95 * (n_draws + 1) // 100) + 1
    squares = errors**2 / seen
    bounds = np.partition(squares, -2, axis=1)[:, -2:].sum(axis=1)
    order, largest = np.argsort(-bounds, kind="stable"), np.empty(0)
    for start in range(0, n_draws, N_BLOCK):
        rows = order[start : start + N_BLOCK]
        if largest.size >= n_above and bounds[rows[0]] <= largest[n_above - 1]:
            break
        found = np.array([_maximum(errors[row], seen[row]) for row in rows])
        largest = np.sort(np.concatenate([largest, found]))[::-1][:n_above]
    return float(np.sqrt(largest[n_above - 1]))


def _draws(
    se2: FloatArray, which: IndexArray, df: Sequence[float], seed: int, n_draws: int
) -> tuple[FloatArray, FloatArray]:
    """Errors e_a and the variances û_a that would be seen with them, (n_draws, n_agents) each."""
    rng = np.random.default_rng((seed, DRAW))
    errors = rng.standard_normal((n_draws, se2.size)) * np.sqrt(se2)
    scales = [rng.chisquare(one, n_draws) / one for one in df]
    known = np.ones(n_draws)
    seen = np.stack([known if c < 0 else scales[c] for c in which], axis=1) * se2
    return errors, seen


def _maximum(errors: FloatArray, seen: FloatArray) -> float:
    """T² of the pair with the largest, in one draw."""
    gaps = errors[:, None] - errors
    gaps *= gaps
    gaps /= seen[:, None] + seen
    return float(gaps.max())


# -------------------------------------------------------------------------------------------------- checks


def _check(
    scores: FloatArray, se2: FloatArray, agents: Sequence[str], which: IndexArray, df: Sequence[float]
) -> None:
    if not scores.shape == se2.shape == which.shape == (len(agents),) or len(agents) < 2:
        raise ErrorsRefused(f"{scores.shape} scores and {se2.shape} variances of {len(agents)} agents")
    if which.min() < -1 or which.max() >= len(df):
        raise ErrorsRefused(f"calibrations {which.min()} to {which.max()}; there are {len(df)}")
    usable = np.isfinite(scores).all() and np.isfinite(se2).all() and (se2 > 0).all()
    if not (usable and all(np.isfinite(one) and one >= 1 for one in df)):
        least = min(df, default=1)
        raise ErrorsRefused(
            f"variances are positive and finite, with at least 1 degree of freedom, not {least}"
        )
