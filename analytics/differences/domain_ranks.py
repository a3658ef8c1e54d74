"""Simultaneous rank intervals where tasks are a sample: for every agent the places it may hold.

Source: Mogstad, Romano, Shaikh & Wilhelm, *Review of Economic Studies* 91 (2024) 476-518 (rank intervals from
simultaneous pair intervals). Agresti & Min, *Statistics in Medicine* 24 (2005) 729-740 (pseudo-observations).
Efron & Tibshirani, *An Introduction to the Bootstrap*, 1993, ch. 12 (bootstrap-t). Hsu, *Annals of
Statistics* 9 (1981) 1026-1034.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from analytics.arrays import DECIMALS, CodeArray, FloatArray, Mask, read_only
from analytics.differences import groups as grouped
from analytics.differences.error_draws import least_by_tasks, may_be_first_by_tasks
from analytics.differences.neyman_draws import (
    MIN_TASKS,
    Ahead,
    PairVariances,
    ahead,
    draws_for,
    pair_variances,
)
from analytics.errors import CoreError


@dataclass(frozen=True, eq=False)
class Resamples:
    """Agents on the same k tasks, and how far ahead of each the others are in every draw of the tasks.

    v: (n_agents,); variance beyond tasks and trials, score².
    ahead: (n_draws, n_agents); T*² of the agent that is furthest ahead; 0 without another.
    """

    agents: tuple[str, ...]
    outcomes: FloatArray
    v: FloatArray
    ahead: FloatArray
    groups: grouped.Groups | None = None

    @property
    def df(self) -> float:
        """Degrees of freedom of one difference: k − 1, or those of the groups."""
        return self.outcomes.shape[1] - 1 if self.groups is None else self.groups.df


@dataclass(frozen=True, eq=False)
class RankIntervals:
    """Rank intervals that hold for all agents at once, nominal 95%.

    means: (n_agents,); mean over the k tasks, rounded to 1e-9.
    lower, upper: (n_agents,); best and worst rank, from 1.
    beats: (n_agents, n_agents); whether the row's agent beats the column's.
    se: (n_agents, n_agents); √ of the variance of the difference in the decision.
    critical: c; None for a single agent.
    may_be_first: (n_agents,); holds the truly best agent with 95%.
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
    may_be_first: Mask

    def tied_with(self, agent: int) -> tuple[int, ...]:
        """Positions of the other agents that agent neither beats nor is beaten by."""
        return tuple(np.flatnonzero(self.tied[agent]).tolist())

    @cached_property
    def tied(self) -> Mask:
        """Pairs of which neither beats the other, (n_agents, n_agents); False on the diagonal."""
        tied = ~(self.beats | self.beats.T)
        np.fill_diagonal(tied, False)
        return read_only(tied)


def resample(
    outcomes: FloatArray,
    agents: Sequence[str],
    *,
    seed: int,
    v: npt.ArrayLike | None = None,
    n_draws: int | None = None,
    groups: grouped.Groups | None = None,
    ahead: Ahead = ahead,
) -> Resamples:
    """Resample the tasks for all pairs of agents.

    outcomes: (n_agents, k); mean outcomes on the same k >= 5 tasks, 0 to 1, none missing.
    agents: length n_agents; names, ascending by code point, none twice.
    v: (n_agents,); v_a of `analytics.differences.rows.agent_variance`, score²; 0 where not given.
    n_draws: at least 19; `analytics.differences.neyman_draws.draws_for` these agents, where not given.
    groups: of the tasks; by default they are independent.
    ahead: that of `analytics.differences.neyman_draws`, or one that remembers what it found; for independent
        tasks.
    """
    outcomes = np.asarray(outcomes, dtype=np.float64)
    variances = np.zeros(len(outcomes)) if v is None else np.asarray(v, dtype=np.float64)
    names = tuple(agents)
    n_draws = draws_for(len(names)) if n_draws is None else n_draws
    _check(names, outcomes, variances, n_draws)
    if groups is None:
        every = np.ones(len(names), dtype=np.bool_)
        statistics = ahead(outcomes, names, variances, every, seed=seed, n_draws=n_draws)
    else:
        statistics = grouped.ahead(outcomes, names, variances, groups, seed=seed, n_draws=n_draws)
    return Resamples(names, read_only(outcomes), read_only(variances), read_only(statistics), groups)


def rank_intervals(
    resamples: Resamples, unclaimed: Mask | None = None, *, pair_variances: PairVariances = pair_variances
) -> RankIntervals:
    """Simultaneous rank intervals of resampled agents, nominal 95%, and who may be first.

    unclaimed: (n_agents, n_agents); pairs that are tied whatever their outcomes; symmetric.
    pair_variances: that of `analytics.differences.neyman_draws`, or one that remembers what it found; for
        independent tasks.
    """
    n_agents, n_tasks = resamples.outcomes.shape
    n_draws = len(resamples.ahead)
    place = -(-95 * (n_draws + 1) // 100)
    largest = np.sort(resamples.ahead.max(axis=1))
    critical = max(math.sqrt(largest[place - 1]), float(stdtrit(resamples.df, 0.975)))
    means = np.round(resamples.outcomes.mean(axis=1), DECIMALS)
    outcomes, v, groups = resamples.outcomes, resamples.v, resamples.groups
    variances = grouped.pair_variances(outcomes, v, groups) if groups else pair_variances(outcomes, v)
    se = np.sqrt(variances)
    d = np.round(means[:, None] - means, DECIMALS)
    d = d if unclaimed is None else np.where(unclaimed, 0.0, d)
    beats, lead = d > critical * se, (d / se).max(axis=0)
    least = np.full(n_agents, least_by_tasks(resamples.ahead, resamples.df))
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
        may_be_first=read_only(may_be_first_by_tasks(resamples.ahead, lead, place, least=least)),
    )


def _check(agents: Sequence[str], outcomes: FloatArray, v: FloatArray, n_draws: int) -> None:
    if outcomes.ndim != 2 or len(outcomes) != len(agents) or not agents:
        raise CoreError(f"outcomes of shape {outcomes.shape} for {len(agents)} agents", code="ranks")
    if outcomes.shape[1] < MIN_TASKS:
        raise CoreError(
            f"ranks need at least {MIN_TASKS} tasks to resample, not {outcomes.shape[1]}", code="ranks"
        )
    if n_draws < 19:
        raise CoreError(f"{n_draws} draws have no upper 5% point; at least 19 are needed", code="ranks")
    for earlier, later in pairwise(agents):
        if earlier >= later:
            raise CoreError(f"{later!r} stands after {earlier!r}; names ascend, none twice", code="ranks")
    wrong = ~((outcomes >= 0.0) & (outcomes <= 1.0))
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise CoreError(
            f"agent {agents[i]!r}, task {j}: {outcomes[i, j]} is not from 0 to 1; ranks are for agents on "
            "the same tasks, so a missing cell is completed first or its task left out",
            code="ranks",
        )
    if v.shape != (len(agents),) or not (np.isfinite(v) & (v >= 0)).all():
        raise CoreError(
            f"v: a finite variance of at least 0 for each of {len(agents)} agents is needed", code="ranks"
        )
