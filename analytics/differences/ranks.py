"""Simultaneous 95% rank ranges of all agents, on a sample of tasks or on given ones.

Source: Mogstad, Romano, Shaikh & Wilhelm, *Review of Economic Studies* 91 (2024) 476-518 (rank intervals from
simultaneous pair intervals). Agresti & Min, *Statistics in Medicine* 24 (2005) 729-740 (pseudo-observations).
Efron & Tibshirani, *An Introduction to the Bootstrap*, 1993, ch. 12 (bootstrap-t). Hsu, *Annals of
Statistics* 9 (1981) 1026-1034.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from analytics.arrays import DECIMALS, CodeArray, FloatArray, Mask, read_only
from analytics.differences import groups as grouped
from analytics.differences.error_draws import (
    OwnDraws,
    draw_errors,
    least_by_tasks,
    may_be_first,
    may_be_first_by_tasks,
    own_draws,
    upper_point,
)
from analytics.differences.finite_errors import Calibrated, Measured, Method, TrialNoise, error_of
from analytics.differences.neyman_draws import (
    MIN_TASKS,
    N_DRAWS,
    Ahead,
    Maxima,
    PairVariances,
    ahead,
    draws_for,
    pair_variances,
    upper_place,
)
from analytics.differences.rows import NEVER_MEASURED, Facet
from analytics.errors import CoreError

refuse = partial(CoreError, code="rank_sets")
MIN_DRAWS = 19


@dataclass(frozen=True, eq=False)
class Resamples:
    """Agents on the same k tasks; v beyond these, score²; how far others are ahead in each draw."""

    agents: tuple[str, ...]
    outcomes: FloatArray
    v: FloatArray
    ahead: Maxima
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

    @classmethod
    def of(
        cls, agents: Sequence[str], means: FloatArray, beats: Mask, critical: float, **others: Any
    ) -> Self:
        """Tell the ranks from who beats whom."""
        others = {
            name: read_only(one) if isinstance(one, np.ndarray) else one for name, one in others.items()
        }
        return cls(
            agents=tuple(agents),
            means=read_only(means),
            lower=read_only(1 + np.count_nonzero(beats, axis=0)),
            upper=read_only(len(agents) - np.count_nonzero(beats, axis=1)),
            beats=read_only(beats),
            critical=critical if len(agents) > 1 else None,
            **others,
        )

    @cached_property
    def tied(self) -> Mask:
        """Pairs in which neither beats the other, (n_agents, n_agents); False on the diagonal."""
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
    v: (n_agents,); v_a of `analytics.differences.rows.agent_variance`, score²; 0 where not given.
    n_draws: at least 19; `draws_for` these agents, where not given.
    ahead: that of `analytics.differences.neyman_draws`, or one that remembers what it found.
    """
    outcomes = np.asarray(outcomes, dtype=np.float64)
    variances = np.zeros(len(outcomes)) if v is None else np.asarray(v, dtype=np.float64)
    names = tuple(agents)
    n_draws = draws_for(len(names)) if n_draws is None else n_draws
    _check(names, outcomes, variances, n_draws)
    if groups is None:
        every = np.ones(len(names), dtype=np.bool_)
        found = ahead(outcomes, names, variances, every, seed=seed, n_draws=n_draws)
    else:
        found = Maxima(grouped.ahead(outcomes, names, variances, groups, seed=seed, n_draws=n_draws), 0.0)
    found = Maxima(read_only(found.squares), found.floor)
    return Resamples(names, read_only(outcomes), read_only(variances), found, groups)


def rank_intervals(
    resamples: Resamples, unclaimed: Mask | None = None, *, pair_variances: PairVariances = pair_variances
) -> RankIntervals:
    """Simultaneous 95% rank ranges of resampled agents, and who could be the best.

    unclaimed: (n_agents, n_agents); pairs that are tied whatever their outcomes; symmetric.
    """
    n_agents, n_tasks = resamples.outcomes.shape
    squares = resamples.ahead.squares
    n_draws = len(squares)
    place = upper_place(n_draws)
    largest = np.sort(squares.max(axis=1))
    critical = max(math.sqrt(largest[place - 1]), float(stdtrit(resamples.df, 0.975)))
    means = np.round(resamples.outcomes.mean(axis=1), DECIMALS)
    outcomes, v, groups = resamples.outcomes, resamples.v, resamples.groups
    variances = grouped.pair_variances(outcomes, v, groups) if groups else pair_variances(outcomes, v)
    se, d = np.sqrt(variances), gaps(means, unclaimed)
    beats, lead = d > critical * se, (d / se).max(axis=0)
    least = np.full(n_agents, least_by_tasks(squares, resamples.df))
    first = may_be_first_by_tasks(squares, lead, place, least=least)
    others: dict[str, Any] = {"se": se, "n_tasks": n_tasks, "n_draws": n_draws, "may_be_first": first}
    return RankIntervals.of(resamples.agents, means, beats, critical, **others)


def _check(agents: Sequence[str], outcomes: FloatArray, v: FloatArray, n_draws: int) -> None:
    if outcomes.ndim != 2 or len(outcomes) != len(agents) or not agents:
        raise CoreError(f"outcomes of shape {outcomes.shape} for {len(agents)} agents", code="ranks")
    if outcomes.shape[1] < MIN_TASKS:
        raise CoreError(f"ranks need at least {MIN_TASKS} tasks, not {outcomes.shape[1]}", code="ranks")
    check_draws(agents, n_draws, "ranks")
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


def check_draws(agents: Sequence[str], n_draws: int, code: str) -> None:
    """Refuse draws too few for an upper 5% point, and names that do not ascend, under this code."""
    if n_draws < MIN_DRAWS:
        raise CoreError(f"{n_draws} draws have no upper 5% point; at least {MIN_DRAWS} are needed", code=code)
    for earlier, later in pairwise(agents):
        if earlier >= later:
            raise CoreError(f"{later!r} stands after {earlier!r}; names ascend, none twice", code=code)


NOTES: Mapping[Method, str] = {
    "variance function": "assumes that agents with one trial are as noisy as those with repeats; if their "
    "variance is 1.3 times as large, 9% of simulated boards claim a wrong order instead of 5%",
    "neyman": "agents without repeated trials are compared task by task; their differences between tasks "
    "count as error, so rank ranges are usually wider than with repeats",
    "calibration": "estimated scores use the error of their calibration",
}
FEW_TASKS = 10
FEW_TASKS_NOTE = (
    "with so few tasks, up to 7% of boards miss the best agent among those that could be the best"
)


@dataclass(frozen=True, eq=False)
class RankSets(RankIntervals):
    """Simultaneous 95% rank ranges of agents on given tasks, and who could be the best.

    variances, df: (n_agents,); V_a with s²_cal, score², and ν_a, that of s²_cal for a calibrated agent; for
        an agent judged by tasks the upper bound that counts against calibrated ones.
    """

    variances: FloatArray
    df: FloatArray
    methods: tuple[Method, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What the methods assume, each once."""
        notes = [note for method, note in NOTES.items() if method in self.methods]
        return (
            (*notes, FEW_TASKS_NOTE) if "neyman" in self.methods and self.n_tasks < FEW_TASKS else (*notes,)
        )


def rank_sets(
    agents: Sequence[Measured | Calibrated],
    noise: TrialNoise,
    *,
    seed: int,
    facets: Sequence[Facet] = NEVER_MEASURED,
    added: FloatArray | None = None,
    unclaimed: Mask | None = None,
    n_draws: int | None = None,
    ahead: Ahead = ahead,
    pair_variances: PairVariances = pair_variances,
    own: OwnDraws = own_draws,
) -> RankSets:
    """Rank sets of agents on given tasks.

    agents: names ascending by code point, none twice; all measured ones on the same k tasks.
    added: (n_agents, n_agents); variance in the decision on a pair, not in the draws, score²; symmetric.
    unclaimed: (n_agents, n_agents); pairs that are tied whatever their outcomes; symmetric.
    n_draws: at least 19; 10,000, or `draws_for` the measured agents where tasks are resampled.
    ahead, pair_variances, own: those of the draws' modules, or such as remember what they found.
    """
    _check_agents(agents, N_DRAWS if n_draws is None else n_draws, added, unclaimed)
    errors = [error_of(agent, noise, facets) for agent in agents]
    names = [agent.name for agent in agents]
    measured = np.array([isinstance(agent, Measured) for agent in agents], dtype=np.bool_)
    rows = np.flatnonzero(measured)
    outcomes = np.array([a.outcomes for a in agents if isinstance(a, Measured)])
    beyond, n_tasks = np.array([errors[i].beyond for i in rows]), outcomes.shape[1] if rows.size else 0
    unknown_noise = np.array([error.method == "neyman" for error in errors])
    by_tasks = _judged_by_tasks(unknown_noise, measured)
    n_draws = n_draws or (draws_for(rows.size) if by_tasks.any() else N_DRAWS)
    totals = np.array([error.total for error in errors])
    variances = np.add.outer(totals, totals)
    others = np.zeros((n_draws, len(agents)))
    if by_tasks.any():
        at = np.ix_(rows, rows)
        variances[at] = np.where(by_tasks[at], pair_variances(outcomes, beyond), variances[at])
        found = ahead(
            outcomes, [names[i] for i in rows], beyond, unknown_noise[rows], seed=seed, n_draws=n_draws
        )
        others[:, rows] = found.squares
    means = np.round([agent.score for agent in agents], DECIMALS)
    se = np.asarray(np.sqrt(variances if added is None else variances + added), dtype=np.float64)
    d = gaps(means, unclaimed)
    judged = ~(by_tasks | np.eye(len(d), dtype=np.bool_))
    draws = draw_errors(names, errors, judged, seed=seed, n_draws=n_draws, own=own)
    place, least = upper_place(n_draws), _least(others, by_tasks, unknown_noise, n_tasks - 1)
    floor = float(stdtrit(n_tasks - 1, 0.975)) if by_tasks.any() else 0.0
    critical = max(math.sqrt(upper_point(draws, others.max(axis=1), place)), floor)
    beats = d > critical * se
    lead = np.where(beats.any(axis=0), np.inf, (d / se).max(axis=0))
    return RankSets.of(
        names,
        means,
        beats,
        critical,
        se=se,
        n_tasks=n_tasks,
        n_draws=n_draws,
        may_be_first=may_be_first(draws, others, lead, place, least=least),
        variances=totals,
        df=np.array([error.calibration_df or error.df for error in errors]),
        methods=tuple(error.method for error in errors),
    )


def _judged_by_tasks(unknown_noise: Mask, measured: Mask) -> Mask:
    """Mark the pairs of measured agents where the trial variance of one is not known; symmetric."""
    judged = np.logical_or.outer(unknown_noise, unknown_noise) & np.logical_and.outer(measured, measured)
    np.fill_diagonal(judged, False)
    return judged


def _least(others: FloatArray, by_tasks: Mask, unknown_noise: Mask, df: int) -> FloatArray:
    """Return the least c_a of each agent, 0 where no pair of it is judged by tasks."""
    least = np.zeros(len(by_tasks))
    if by_tasks.any():
        least[by_tasks.any(axis=1)] = float(stdtrit(df, 0.95))
        least[unknown_noise] = least_by_tasks(others[:, unknown_noise], df)
    return least


def gaps(means: FloatArray, unclaimed: Mask | None = None) -> FloatArray:
    """Return each mean less each other, rounded, (n_agents, n_agents); 0 where no order is claimed."""
    d = np.round(means[:, None] - means, DECIMALS)
    return d if unclaimed is None else np.where(unclaimed, 0.0, d)


def _check_agents(
    agents: Sequence[Measured | Calibrated], n_draws: int, added: FloatArray | None, unclaimed: Mask | None
) -> None:
    if not agents:
        raise refuse("no agent to rank")
    check_draws([agent.name for agent in agents], n_draws, "rank_sets")
    _check_scores(agents)
    for pairs in (added, unclaimed):
        if pairs is not None and not (pairs.shape == (len(agents),) * 2 and (pairs == pairs.T).all()):
            raise refuse(f"pairs of shape {pairs.shape} for {len(agents)} agents, or not symmetric")
    if added is not None and not (np.isfinite(added) & (added >= 0)).all():
        raise refuse("a variance added in a decision is finite and at least 0")


def _check_scores(agents: Sequence[Measured | Calibrated]) -> None:
    n_tasks = {a.outcomes.size for a in agents if isinstance(a, Measured)}
    if len(n_tasks) > 1:
        raise refuse(f"agents on {min(n_tasks)} and on {max(n_tasks)} tasks; all have the same")
    for agent in agents:
        if not math.isfinite(agent.score):
            raise refuse(f"agent {agent.name!r}: a score of {agent.score}")
