"""Simultaneous rank intervals: for every agent the places it may hold, all of them right at once.

Model
-----
n agents on the same k tasks, d_ab = mean of X[a, j] − X[b, j], d_j the k differences. Two half-weight
pseudo-tasks of +1 and −1 keep the standard error of a pair above 0::

    se²_ab = (Σd_j² + 1 − (Σd_j)²/(k + 2)) / (k + 2)² + v_a + v_b

Tasks are resampled with replacement, the weights w_j of a draw (whole numbers that sum to k) common to all
pairs; d* and se* are the same expressions in weighted sums, and g*_a ~ N(0, v_a)::

    T* = max over a, b of |d*_ab − d_ab + g*_a − g*_b| / se*_ab
    c  = the ⌈.95·(n_draws + 1)⌉-th smallest T*, the higher order statistic, but at least t_{k−1,.975}
    a beats b when d_ab > c·se_ab;  rank of a in [1 + #{b beats a}, n − #{a beats b}]

Agents a and b are tied where neither beats the other. This is not transitive: no groups of ranks are formed.

Symbols
-------
======  ================  ======================================  ===================
symbol  code              shape                                   unit
======  ================  ======================================  ===================
X       ``outcomes``      (n_agents, k), no cell missing          0 to 1
v       ``v``             (n_agents,)                             score²
w       ``weights``       (n_draws, k)                            tasks
Σw·X    ``sums``          (n_draws, n_agents)                     tasks
Σw·X²   ``squares``       (n_draws, n_agents)                     tasks
g*      ``noise``         (n_draws, n_agents)                     score
T*²     ``largest``       (n_draws,)                              1
c       ``critical``      scalar                                  1
======  ================  ======================================  ===================

Σw·d² = Σw·x_a² + Σw·x_b² − 2·Σw·x_a·x_b, so that a draw costs one product of n × k by k × n. Inside the
resampling outcomes are rounded to multiples of 2^−b, 2b + ⌈log₂ k⌉ ≤ 53 (2⁻²² at 500 tasks): all these sums
are then exact in double precision, whatever the order of addition, and T* is equal to the last bit however
many agents are computed at once and on whatever machine. 0 and 1 are not changed by it.

Weights depend on (seed, draw) and k alone, g*_a on (seed, name of a): an agent added later leaves the other
agents' pairs as they were, to the last bit.

The floor is what one pair alone would need, so that no maximum over pairs can need less; it is reached only
with two or three agents on few tasks, where resampling a handful of ties gives a c as small as 0.

Limits: all-equal outcomes, and identical agents, are tied. Under the finite target (the expected mean on
these k tasks) the intervals are conservative, as spread over tasks counts as error; `FINITE_NOTE` says so.

Not done here
-------------
Missing cells are refused: ranks are for agents on the same tasks. A row completed by linking comes in with
its v_link in v. No p-value decides a rank.

Source
------
Mogstad, Romano, Shaikh & Wilhelm, *Review of Economic Studies* 91 (2024) 476-518 (rank intervals from
simultaneous pair intervals). Agresti & Min, *Statistics in Medicine* 24 (2005) 729-740 (pseudo-observations).
Efron & Tibshirani, *An Introduction to the Bootstrap*, 1993, ch. 12 (bootstrap-t).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from analytics.arrays import CodeArray, FloatArray, Mask, read_only
from analytics.differences.task_draws import agent_noise, on_grid, pair_variances, row_sums, task_weights
from analytics.differences.task_draws import narrowed as _narrowed
from analytics.errors import CoreError

N_DRAWS = 2_000
N_TASKS_LEAST = 5
N_BLOCK = 128
DECIMALS = 9
FINITE_NOTE = "conservative: the spread over tasks counts as error, though the tasks are fixed"


class RanksRefused(CoreError):
    """Names, outcomes or variances from which no ranks can be told."""


@dataclass(frozen=True, eq=False)
class Resamples:
    """Resampled sums of agents on the same tasks, and the largest statistic of every draw.

    Attributes
    ----------
    agents : tuple of str, length n_agents
        Names, ascending.
    outcomes : float array, shape (n_agents, k)
    v : float array, shape (n_agents,)
        Variance beyond tasks and trials, score².
    seed : int
    weights : float array, shape (n_draws, k)
    sums, squares, noise : float array, shape (n_draws, n_agents)
    largest : float array, shape (n_draws,)
        T*² over all pairs; 0 without a pair.
    """

    agents: tuple[str, ...]
    outcomes: FloatArray
    v: FloatArray
    seed: int
    weights: FloatArray
    sums: FloatArray
    squares: FloatArray
    noise: FloatArray
    largest: FloatArray


@dataclass(frozen=True, eq=False)
class RankIntervals:
    """Rank intervals that hold for all agents at once, nominal 95%.

    Attributes
    ----------
    agents : tuple of str, length n_agents
    means : float array, shape (n_agents,)
        Mean over the k tasks, rounded to 1e-9.
    lower, upper : int array, shape (n_agents,)
        Best and worst rank, from 1.
    beats : bool array, shape (n_agents, n_agents)
        Whether the row's agent beats the column's.
    se : float array, shape (n_agents, n_agents)
        se_ab with pseudo-tasks, v and what is added in the decision.
    critical : float or None
        c, at least t_{k−1,.975}; None for a single agent.
    n_tasks, n_draws : int
    """

    agents: tuple[str, ...]
    means: FloatArray
    lower: CodeArray
    upper: CodeArray
    beats: Mask
    se: FloatArray
    critical: float | None
    n_tasks: int
    n_draws: int

    def tied_with(self, agent: int) -> tuple[int, ...]:
        """Positions of the other agents that agent neither beats nor is beaten by."""
        tied = ~(self.beats[agent] | self.beats[:, agent])
        tied[agent] = False
        return tuple(np.flatnonzero(tied).tolist())


def but_for(intervals: RankIntervals, unclaimed: Mask) -> RankIntervals:
    """Return the intervals without the orders that may not be claimed: those pairs become ties.

    Parameters
    ----------
    intervals : RankIntervals
    unclaimed : bool array, shape (n_agents, n_agents)
        Symmetric; see `analytics.trials.flags.unclaimed_orders`.
    """
    beats = intervals.beats & ~unclaimed
    return replace(
        intervals,
        beats=read_only(beats),
        lower=read_only(1 + np.count_nonzero(beats, axis=0)),
        upper=read_only(len(beats) - np.count_nonzero(beats, axis=1)),
    )


def resample(
    outcomes: FloatArray,
    agents: Sequence[str],
    *,
    seed: int,
    v: npt.ArrayLike | None = None,
    n_draws: int = N_DRAWS,
) -> Resamples:
    """Resample the tasks for all pairs of agents.

    Parameters
    ----------
    outcomes : float array, shape (n_agents, k)
        Mean outcomes on the same k >= 5 tasks, 0 to 1, none missing.
    agents : sequence of str, length n_agents
        Names, ascending by code point, none twice.
    seed : int
    v : float array, shape (n_agents,), optional
        v_a of `analytics.differences.pairs.agent_variance`, score²; 0 where not given.
    n_draws : int
        At least 2,000 for what is published; at least 19.

    Raises
    ------
    RanksRefused
        With the place at fault.
    """
    outcomes = np.asarray(outcomes, dtype=np.float64)
    variances = np.zeros(len(outcomes)) if v is None else np.asarray(v, dtype=np.float64)
    names = tuple(agents)
    _check(names, outcomes, variances, n_draws)
    x, weights = on_grid(outcomes), task_weights(outcomes.shape[1], seed, n_draws)
    sums, squares = row_sums(x, weights)
    noise = agent_noise(names, variances, seed, n_draws)
    return Resamples(
        agents=names,
        outcomes=read_only(outcomes),
        v=read_only(variances),
        seed=seed,
        weights=read_only(weights),
        sums=read_only(sums),
        squares=read_only(squares),
        noise=read_only(noise),
        largest=read_only(_largest(x, weights, sums, squares, noise, variances)),
    )


def rank_intervals(resamples: Resamples, added: FloatArray | None = None) -> RankIntervals:
    """Simultaneous rank intervals of resampled agents, nominal 95%.

    Parameters
    ----------
    resamples : Resamples
    added : float array, shape (n_agents, n_agents), optional
        Variance that counts in the decision on a pair and not in the draws, score²; symmetric.

    Notes
    -----
    Ranks rest on means rounded to 1e-9.
    """
    n_agents, n_tasks = resamples.outcomes.shape
    n_draws = len(resamples.largest)
    critical = _critical(resamples.largest, n_tasks)
    means = np.round(resamples.outcomes.mean(axis=1), DECIMALS)
    variances = pair_variances(resamples.outcomes, resamples.v)
    se = np.sqrt(variances if added is None else variances + added)
    beats = np.round(means[:, None] - means, DECIMALS) > critical * se
    return RankIntervals(
        agents=resamples.agents,
        means=read_only(means),
        lower=read_only(1 + np.count_nonzero(beats, axis=0)),
        upper=read_only(n_agents - np.count_nonzero(beats, axis=1)),
        beats=read_only(beats),
        se=read_only(se),
        critical=critical if n_agents > 1 else None,
        n_tasks=n_tasks,
        n_draws=n_draws,
    )


# ---------------------------------------------------------------------------------------------- arithmetic


def _critical(largest: FloatArray, n_tasks: int) -> float:
    """Upper 5% point of T*, its ⌈.95·(n_draws + 1)⌉-th smallest value, not below the t quantile of a pair."""
    place = -(-95 * (largest.size + 1) // 100)
    return max(float(np.sqrt(np.sort(largest)[place - 1])), float(stdtrit(n_tasks - 1, 0.975)))


def _largest(
    x: FloatArray,
    weights: FloatArray,
    sums: FloatArray,
    squares: FloatArray,
    noise: FloatArray,
    v: FloatArray,
) -> FloatArray:
    """T*² of every draw, each pair once: a block of agents with those from the block on.

    With T*² multiplied out by (k + 2)², the numerator is (u_a − u_b)², u = (Σw·x/k − x̄ + g*)·(k + 2), and the
    denominator q_a + q_b + t_a·t_b − 2Σw·x_a·x_b, q = Σw·x² + ½ + v·(k + 2)² − t²/2, t = Σw·x·√(2/(k + 2)).
    """
    n_agents, k = x.shape
    u = ((sums - x.sum(axis=1)) / k + noise) * (k + 2)
    t = sums * np.sqrt(2.0 / (k + 2))
    q = squares + 0.5 + v * (k + 2) ** 2 - t**2 / 2
    cells = np.ascontiguousarray(_narrowed(x).T)
    blocks = [(start, min(start + N_BLOCK, n_agents)) for start in range(0, n_agents, N_BLOCK)]
    largest = np.zeros(len(weights))
    for draw, w in enumerate(weights.astype(cells.dtype)):
        drawn = np.flatnonzero(w)
        seen = cells[drawn]
        weighted = (seen * (-2 * w[drawn, None])).T
        for a, b in blocks:
            ratios = _ratios(weighted[a:b] @ seen[:, a:], u[draw], t[draw], q[draw], a, b)
            largest[draw] = max(largest[draw], ratios.max())
    return largest


def _ratios(
    products: npt.NDArray[np.floating], u: FloatArray, t: FloatArray, q: FloatArray, a: int, b: int
) -> FloatArray:
    """T*² of the agents a to b with those from a on; `products` −2Σw·x_a·x_b."""
    variances = np.multiply.outer(t[a:b], t[a:])
    variances += products
    variances += q[a:b, None]
    variances += q[a:]
    ratios = np.subtract.outer(u[a:b], u[a:])
    ratios *= ratios
    ratios /= variances
    return ratios


# -------------------------------------------------------------------------------------------------- checks


def _check(agents: Sequence[str], outcomes: FloatArray, v: FloatArray, n_draws: int) -> None:
    if outcomes.ndim != 2 or len(outcomes) != len(agents) or not agents:
        raise RanksRefused(f"outcomes of shape {outcomes.shape} for {len(agents)} agents")
    if outcomes.shape[1] < N_TASKS_LEAST:
        raise RanksRefused(f"ranks need at least {N_TASKS_LEAST} tasks to resample, not {outcomes.shape[1]}")
    if n_draws < 19:
        raise RanksRefused(f"{n_draws} draws have no upper 5% point; at least 19 are needed")
    for earlier, later in pairwise(agents):
        if earlier >= later:
            raise RanksRefused(f"{later!r} stands after {earlier!r}; names ascend, none twice")
    _check_cells(agents, outcomes)
    if v.shape != (len(agents),) or not (np.isfinite(v) & (v >= 0)).all():
        raise RanksRefused(f"v: a finite variance of at least 0 for each of {len(agents)} agents is needed")


def _check_cells(agents: Sequence[str], outcomes: FloatArray) -> None:
    wrong = ~((outcomes >= 0.0) & (outcomes <= 1.0))
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise RanksRefused(
            f"agent {agents[i]!r}, task {j}: {outcomes[i, j]} is not from 0 to 1; ranks are for agents on "
            "the same tasks, so a missing cell is completed first or its task left out"
        )
