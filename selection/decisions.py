"""Which differences between the agents of a table are real: all pairs, and ranks, for a target that is named.

Model
-----
The target says what is told about, and so which tasks and which agents it can be told from:

==========  ============================  =====================================================
target      tasks                         agents
==========  ============================  =====================================================
``subset``  the k of S                    ranked directly, completed or linked (`selection.linking`)
``full``    all m                         complete ones, measured; the others by ŷ in `compare`
``domain``  all m, taken for a sample     complete ones
==========  ============================  =====================================================

A pair has δ̂, its standard error and interval by `analytics.differences.pairs`: of two agents on common tasks
by the rules given there; with a calibrated agent by the error of the calibration, s_loo² of the
leave-one-agent-out residuals, or for a scaffold that no complete agent has σ_s²(1 + 1/G) + σ_e². Ranks are
those of `analytics.differences.domain_ranks`. Completing an agent adds v_link to its variance; an agent that
did not help to choose S, held against one that did, adds the variance of the incumbent shift.

Symbols
-------
========  ==================  ==============================  ==========
symbol    code                shape                           unit
========  ==================  ==============================  ==========
S         ``band.tasks``      (k,) task indices               tasks
δ̂         ``Estimate.value``  scalar                          score
v         ``v``               (n_ranked,)                     score²
ω̂         ``omega``           scalar                          1
========  ==================  ==============================  ==========

Limits: S is the 30-70% band of all complete agents of the table. A task that none of them has run is none of
the m. How an agent varies from run to run, prompt to prompt and judge to judge is not estimated from a table;
it is listed as omitted.

Not done here
-------------
Benjamini-Hochberg p-values answer single questions: they decide no tie and no rank.

Source
------
As in `analytics.differences.pairs`, `analytics.differences.domain_ranks` and `selection.linking`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import combinations

import numpy as np
import numpy.typing as npt

from analytics.arrays import FloatArray, IndexArray, Mask
from analytics.differences import domain_ranks as ranks
from analytics.differences.pairs import (
    Estimate,
    FullScore,
    Row,
    Target,
    benjamini_hochberg,
    compare_full,
    score,
    trial_variance_ratio,
)
from analytics.differences.pairs import compare as compare_rows
from analytics.errors import CoreError
from analytics.outcome_table import OutcomeTable
from analytics.trials.flags import unclaimed_orders
from selection.bands import Band, table_band
from selection.errors import SelectionError
from selection.folds import CompleteAgents, complete_agents
from selection.held_out import nested_residuals
from selection.intervals import Calibrator, Interval, calibrate, intervals
from selection.linking import Ranked, ShiftUnknown, incumbent_shift, ranked, reference

TARGETS: tuple[Target, ...] = ("subset", "full", "domain")
MEASURED, CALIBRATED = "measured", "calibrated"
N_DECIMALS = 9


class NoSubset(SelectionError):
    """The target subset, or a calibrated score, needs a subset."""


class TargetUnknown(SelectionError):
    """A target is subset, full or domain."""


class AgentUnknown(SelectionError):
    """An agent was named that the table does not have."""


class TooFewRanked(SelectionError):
    """A difference needs two agents, a rank one."""


@dataclass(frozen=True, eq=False)
class Side:
    """One agent as it enters its pairs.

    Attributes
    ----------
    agent : str
    how : str
        "ranked directly", "completed", "linked"; "measured", "calibrated" for the target full.
    value : float
        Mean over the tasks of the target, or ŷ.
    row : Row or None
        Cells on the tasks; None for a calibrated agent.
    full : FullScore or None
        For pairs with a calibrated agent; None where the error of `value` is not known.
    estimate : Estimate or None
        The agent alone against a threshold; None for a calibrated agent.
    interval : (float, float) or None
        Of `value`, 95%.
    incumbent : bool
        Whether the agent helped to choose S.
    top_quartile_error : float or None
        Mean error of completing the best; None where nothing was completed.
    """

    agent: str
    how: str
    value: float
    row: Row | None
    full: FullScore | None
    estimate: Estimate | None
    interval: tuple[float, float] | None
    incumbent: bool
    top_quartile_error: float | None = None


@dataclass(frozen=True)
class Pair:
    """Two agents and how they differ.

    Attributes
    ----------
    a, b : str
        The one with the higher value first.
    estimate : Estimate or None
        Of a − b; None where `reason` says why.
    p_adjusted : float or None
        Benjamini-Hochberg over all pairs with a p-value.
    unclaimed : bool
        Outcomes are missing in a way that could turn the order: none is claimed.
    reason : str
    """

    a: str
    b: str
    estimate: Estimate | None
    p_adjusted: float | None
    unclaimed: bool
    reason: str


@dataclass(frozen=True, eq=False)
class Comparison:
    """All pairs of agents for one target.

    Attributes
    ----------
    target : {"subset", "full", "domain"}
    band : Band
    n_tasks : int
        Tasks of the target.
    omega : float or None
        ω̂ over all tasks; None where trials do not tell it.
    sides : tuple of Side
        By descending value.
    pairs : tuple of Pair
    left_out : mapping of str to str
        Agent → why it is not compared.
    """

    target: Target
    band: Band
    n_tasks: int
    omega: float | None
    sides: tuple[Side, ...]
    pairs: tuple[Pair, ...]
    left_out: Mapping[str, str]


@dataclass(frozen=True)
class Place:
    """An agent's rank and what may be said of it.

    Attributes
    ----------
    agent : str
    rank : int
        1 + the number of agents with a strictly higher mean, after rounding to 1e-9.
    mean : float
    lower, upper : int
        Best and worst rank, for all agents at once; nominal 95%.
    tied_with : tuple of str
    how : str
        "ranked directly", "completed" or "linked".
    v : float
        Variance beyond tasks and trials, score².
    top_quartile_error : float or None
    """

    agent: str
    rank: int
    mean: float
    lower: int
    upper: int
    tied_with: tuple[str, ...]
    how: str
    v: float
    top_quartile_error: float | None


@dataclass(frozen=True, eq=False)
class Ranking:
    """Ranks for one target.

    Attributes
    ----------
    target : {"subset", "full", "domain"}
    band : Band
    n_tasks : int
    critical : float or None
        c of `analytics.differences.domain_ranks`.
    n_draws : int
    note : str
    places : tuple of Place
        By rank, then name.
    unranked : mapping of str to str
        Agent → reason.
    """

    target: Target
    band: Band
    n_tasks: int
    critical: float | None
    n_draws: int
    note: str
    places: tuple[Place, ...]
    unranked: Mapping[str, str]


def compare(
    table: OutcomeTable,
    *,
    target: Target | None = None,
    agents: Collection[str] | None = None,
    copied: Collection[str] = (),
    failed: Mask | None = None,
    groups: npt.ArrayLike | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Compare all pairs of agents, or of some of them.

    Parameters
    ----------
    table : OutcomeTable
    target : {"subset", "full", "domain"}, optional
        By default the subset, or full where there is none.
    agents : collection of str, optional
        Two names at least; all agents when not given. The subset does not depend on them.
    copied : collection of str
        Agents whose trials are not independent: R counts as 1.
    failed : bool array, shape (n_agents, n_tasks), optional
        Missing cells whose every trial the harness failed.
    groups : int or str array, shape (n_tasks,), optional
        Task groups, for the target domain.
    progress : callable, optional
        Called with (pairs done, all pairs).

    Raises
    ------
    TargetUnknown, NoSubset, AgentUnknown, TooFewRanked
    """
    view = _view(table, target, copied, failed)
    wanted = _positions(table, agents)
    sides, left_out = _sides(view, wanted)
    if len(sides) < 2:
        raise TooFewRanked(f"{len(sides)} of {len(wanted)} agents can be compared; 2 are needed")
    sides = sorted(sides, key=lambda side: (-round(side.value, N_DECIMALS), side.agent))
    pairs = _pairs(view, sides, groups, progress)
    return Comparison(
        target=view.target,
        band=view.band,
        n_tasks=view.tasks.size,
        omega=view.omega,
        sides=tuple(sides),
        pairs=tuple(_adjusted(pairs)),
        left_out=left_out,
    )


def rank(
    table: OutcomeTable,
    *,
    target: Target | None = None,
    copied: Collection[str] = (),
    failed: Mask | None = None,
    seed: int = 0,
    n_draws: int = ranks.N_DRAWS,
) -> Ranking:
    """Rank the agents, with intervals that hold for all of them at once.

    Parameters
    ----------
    table, target, copied, failed
        As in `compare`.
    seed, n_draws : int
        Of the resampled tasks.

    Raises
    ------
    TargetUnknown, NoSubset, TooFewRanked
    analytics.differences.domain_ranks.RanksRefused
        With fewer than 5 tasks.
    """
    view = _view(table, target, copied, failed)
    found, unranked = _ranked_agents(view, range(table.n_agents))
    if not found:
        raise TooFewRanked(f"none of {table.n_agents} agents can be ranked on {view.tasks.size} tasks")
    rows, answers = list(found), list(found.values())
    v = [_variance(view, i, answer) for i, answer in found.items()]
    outcomes = np.array([answer.outcomes for answer in answers])
    names = [table.agents[i] for i in rows]
    resampled = ranks.resample(outcomes, names, seed=seed, v=v, n_draws=n_draws)
    unclaimed = unclaimed_orders(table.means[rows][:, view.tasks])
    intervals_ = ranks.but_for(ranks.rank_intervals(resampled), unclaimed)
    return Ranking(
        target=view.target,
        band=view.band,
        n_tasks=view.tasks.size,
        critical=intervals_.critical,
        n_draws=n_draws,
        note="" if view.target == "domain" else ranks.FINITE_NOTE,
        places=_places(intervals_, answers, v),
        unranked=unranked,
    )


def calibrator(agents: CompleteAgents, tasks: IndexArray) -> Calibrator:
    """Gather what intervals of calibrated scores are made from, on a subset that is in use.

    Parameters
    ----------
    agents : CompleteAgents
        Whom to calibrate on.
    tasks : int array, shape (k,)
        The subset in use; the residuals come from folds that choose their own.

    Raises
    ------
    As `selection.intervals.calibrate`.
    """
    by_agent, by_scaffold = (nested_residuals(agents, "agent"), nested_residuals(agents, "scaffold"))
    return calibrate(
        agents.outcomes[:, tasks],
        agents.scores,
        by_agent.scores - by_agent.predictions,
        scaffolds=agents.scaffolds,
        scaffold_residuals=by_scaffold.scores - by_scaffold.predictions,
    )


# ------------------------------------------------------------------------------------------------ the target


@dataclass(frozen=True, eq=False)
class _View:
    """A table as one target looks at it."""

    table: OutcomeTable
    target: Target
    band: Band
    tasks: IndexArray
    complete: Mask
    copied: frozenset[str]
    failed: Mask
    omega: float | None
    shift_variance: float
    n_incumbents: int

    def row(self, i: int) -> Row:
        """Cells of agent i on the tasks of the target."""
        table, spread, n_trials = self.table, self.table.trial_variances, self.table.n_trials
        return Row(
            means=table.means[i, self.tasks],
            trial_variances=None if spread is None else spread[i, self.tasks],
            n_trials=None if n_trials is None else n_trials[i, self.tasks],
            one_trial=table.agents[i] in self.copied,
        )


def _view(table: OutcomeTable, target: Target | None, copied: Collection[str], failed: Mask | None) -> _View:
    band = table_band(table)
    target = target or ("subset" if band.suited else "full")
    if target not in TARGETS:
        raise TargetUnknown(f"a target is {', '.join(TARGETS)}, not {target!r}")
    if target == "subset" and not band.suited:
        raise NoSubset(f"no subset: {band.reason}")
    complete = table.complete()
    copies = np.array([name in copied for name in table.agents], dtype=np.bool_)
    moments = (table.means, table.trial_variances, table.n_trials)
    return _View(
        table=table,
        target=target,
        band=band,
        tasks=band.tasks if target == "subset" else np.flatnonzero(table.n_valid[complete].any(axis=0)),
        complete=complete,
        copied=frozenset(copied),
        failed=np.zeros(table.means.shape, dtype=np.bool_) if failed is None else failed,
        omega=trial_variance_ratio(*moments, one_trial=copies),
        shift_variance=_shift_variance(table.means[complete]) if target == "subset" else 0.0,
        n_incumbents=int(np.count_nonzero(complete)),
    )


def _shift_variance(outcomes: FloatArray) -> float:
    """Squared sd of the incumbent shift; 0 where no subset can be chosen without an agent."""
    try:
        return incumbent_shift(outcomes).sd ** 2
    except ShiftUnknown:
        return 0.0


def _positions(table: OutcomeTable, agents: Collection[str] | None) -> list[int]:
    if agents is None:
        return list(range(table.n_agents))
    place = {name: i for i, name in enumerate(table.agents)}
    for name in agents:
        if name not in place:
            near = ", ".join(map(repr, _near(name, table.agents)))
            raise AgentUnknown(f"no agent {name!r} among {table.n_agents}{near and f'; near are {near}'}")
    return sorted({place[name] for name in agents})


def _near(name: str, agents: Sequence[str]) -> list[str]:
    """Find a few agents whose names hold the one typed, or are written much like it."""
    holding = [agent for agent in agents if name.lower() in agent.lower()]
    return holding[:3] or get_close_matches(name, agents)


def _ranked_agents(view: _View, rows: Sequence[int]) -> tuple[dict[int, Ranked], dict[str, str]]:
    """Agents with an outcome for every task of the target, as it is or completed; the others' reasons."""
    if not view.complete.any():
        raise TooFewRanked("no agent is complete")
    others = reference(view.table.means[view.complete], view.tasks)
    found, reasons = {}, {}
    for i in rows:
        name = view.table.agents[i]
        if view.target != "subset" and not view.complete[i]:
            reasons[name] = _incomplete(view, i)
            continue
        answer = ranked(others, view.table.means[i], view.failed[i])
        if isinstance(answer, Ranked):
            found[i] = answer
        else:
            reasons[name] = answer.reason
    return found, reasons


def _incomplete(view: _View, i: int) -> str:
    n_valid, m = int(np.count_nonzero(view.table.n_valid[i])), view.table.n_tasks
    return f"{n_valid} of {m} tasks have a valid outcome; {-(-19 * m // 20)} (95%) are needed"


def _variance(view: _View, i: int, answer: Ranked) -> float:
    """V_a: of completing, and of not having helped to choose S."""
    linked = answer.completion.v_link if answer.completion else 0.0
    return linked + (0.0 if view.complete[i] else view.shift_variance)


def _places(found: ranks.RankIntervals, answers: Sequence[Ranked], v: Sequence[float]) -> tuple[Place, ...]:
    better = np.count_nonzero(found.means[:, None] < found.means, axis=1)
    places = (
        Place(
            agent=name,
            rank=1 + int(better[i]),
            mean=float(found.means[i]),
            lower=int(found.lower[i]),
            upper=int(found.upper[i]),
            tied_with=tuple(found.agents[j] for j in found.tied_with(i)),
            how=answers[i].how,
            v=v[i],
            top_quartile_error=_top_error(answers[i]),
        )
        for i, name in enumerate(found.agents)
    )
    return tuple(sorted(places, key=lambda place: (place.rank, place.agent)))


def _top_error(answer: Ranked) -> float | None:
    return answer.completion.top_quartile_error if answer.completion else None


# ------------------------------------------------------------------------------------------------- the sides


def _sides(view: _View, wanted: Sequence[int]) -> tuple[list[Side], dict[str, str]]:
    if view.target == "subset":
        found, reasons = _ranked_agents(view, wanted)
        return [_placed_side(view, i, answer) for i, answer in found.items()], reasons
    sides = [_measured_side(view, i) for i in wanted if view.complete[i]]
    others = [i for i in wanted if not view.complete[i]]
    if view.target == "full" and others and view.band.suited:
        calibrated, reasons = _calibrated_sides(view, others)
        return [*sides, *calibrated], reasons
    return sides, {view.table.agents[i]: _incomplete(view, i) for i in others}


def _placed_side(view: _View, i: int, answer: Ranked) -> Side:
    """Return an agent on the subset, what it lacks completed."""
    row = replace(view.row(i), means=answer.outcomes)
    if answer.completion is not None:
        row = replace(row, v_link=answer.completion.v_link, df_link=float(answer.completion.degrees))
    return _side(view, i, row, answer.how, _top_error(answer))


def _measured_side(view: _View, i: int) -> Side:
    return _side(view, i, view.row(i), MEASURED, None)


def _side(view: _View, i: int, row: Row, how: str, top_error: float | None) -> Side:
    estimate = score(row, view.target, selected=view.target == "subset", omega=view.omega)
    found = estimate.interval
    return Side(
        agent=view.table.agents[i],
        how=how,
        value=estimate.value,
        row=row,
        full=FullScore(estimate.value, found.se**2, max(found.df, 1.0), measured=True) if found else None,
        estimate=estimate,
        interval=(found.lower, found.upper) if found else None,
        incumbent=bool(view.complete[i]),
        top_quartile_error=top_error,
    )


def _calibrated_sides(view: _View, others: Sequence[int]) -> tuple[list[Side], dict[str, str]]:
    """Agents without a full run by ŷ, those with an interval; the others' reasons."""
    table, tasks = view.table, view.band.tasks
    made = calibrator(complete_agents(table), tasks)
    answers = intervals(made, table.means[list(others)][:, tasks], [table.scaffolds[i] for i in others])
    sides, reasons = [], {}
    for i, answer in zip(others, answers, strict=True):
        if isinstance(answer, Interval):
            sides.append(_calibrated_side(view, i, made, answer))
        else:
            reasons[table.agents[i]] = answer.reason
    return sides, reasons


def _calibrated_side(view: _View, i: int, made: Calibrator, answer: Interval) -> Side:
    return Side(
        agent=view.table.agents[i],
        how=CALIBRATED,
        value=answer.point,
        row=None,
        full=_calibrated_score(made, answer),
        estimate=None,
        interval=answer.shown,
        incumbent=False,
    )


def _calibrated_score(made: Calibrator, answer: Interval) -> FullScore | None:
    """ŷ with s_loo², n − 1; for a new scaffold with σ_s²(1 + 1/G) + σ_e², G − 1."""
    parts = made.scaffold_components
    if answer.source == "new scaffold" and parts is not None:
        n = parts.n_scaffolds
        return FullScore(answer.point, parts.between * (1 + 1 / n) + parts.within, n - 1, measured=False)
    if made.s_loo is None or made.n < 2:
        return None
    return FullScore(answer.point, made.s_loo**2, made.n - 1, measured=False)


# ------------------------------------------------------------------------------------------------- the pairs


def _pairs(
    view: _View,
    sides: Sequence[Side],
    groups: npt.ArrayLike | None,
    progress: Callable[[int, int], None] | None,
) -> list[Pair]:
    unclaimed = _unclaimed(view, sides)
    n_pairs = len(sides) * (len(sides) - 1) // 2
    pairs = []
    for (i, a), (j, b) in combinations(enumerate(sides), 2):
        pairs.append(_pair(view, a, b, groups, unclaimed=bool(unclaimed[i, j])))
        if progress is not None and len(pairs) % 500 == 0:
            progress(len(pairs), n_pairs)
    return pairs


def _unclaimed(view: _View, sides: Sequence[Side]) -> Mask:
    """Pairs whose order missing outcomes could turn; never one with a calibrated agent."""
    place = {name: i for i, name in enumerate(view.table.agents)}
    rows = [place[side.agent] for side in sides]
    measured = np.array([side.row is not None for side in sides])
    marked = unclaimed_orders(view.table.means[rows][:, view.tasks])
    return np.asarray(marked & measured[:, None] & measured, dtype=np.bool_)


def _pair(view: _View, a: Side, b: Side, groups: npt.ArrayLike | None, *, unclaimed: bool) -> Pair:
    try:
        estimate = _estimate(view, a, b, groups)
    except CoreError as refusal:
        return Pair(a.agent, b.agent, None, None, unclaimed, str(refusal))
    return Pair(a.agent, b.agent, estimate, None, unclaimed, estimate.reason)


def _estimate(view: _View, a: Side, b: Side, groups: npt.ArrayLike | None) -> Estimate:
    if a.row is None or b.row is None:
        return compare_full(_known(a), _known(b), view.table.n_tasks)
    rows = _against(view, a, a.row, b), _against(view, b, b.row, a)
    selected = view.target == "subset"
    return compare_rows(*rows, view.target, selected=selected, omega=view.omega, groups=groups)


def _known(side: Side) -> FullScore:
    if side.full is None:
        raise TooFewRanked(f"the error of the full score of {side.agent!r} is not known")
    return side.full


def _against(view: _View, own: Side, row: Row, other: Side) -> Row:
    """Add the incumbent shift to an agent that did not help to choose S, against one that did."""
    if own.incumbent or not other.incumbent or not view.shift_variance:
        return row
    degrees = min(row.df_link, float(view.n_incumbents - 1))
    return replace(row, v_link=row.v_link + view.shift_variance, df_link=degrees)


def _adjusted(pairs: Sequence[Pair]) -> list[Pair]:
    """Add Benjamini-Hochberg p-values over the pairs that have one."""
    p_values = [pair.estimate.p_value if pair.estimate else None for pair in pairs]
    known = [p for p in p_values if p is not None]
    adjusted = iter(benjamini_hochberg(known).tolist()) if known else iter(())
    return [
        pair if p is None else replace(pair, p_adjusted=next(adjusted))
        for pair, p in zip(pairs, p_values, strict=True)
    ]
