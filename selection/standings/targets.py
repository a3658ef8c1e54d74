"""The answer for one target: each agent's score with its error, its rank and its 95% rank range.

The theory is in ``selection/README.md``, “Where every agent stands”.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from analytics.arrays import DECIMALS, FloatArray, IndexArray, Mask, columns
from analytics.differences.estimates import Target, score
from analytics.differences.finite_errors import Calibrated, Measured, TrialNoise, error_of, trial_noise
from analytics.differences.groups import Groups
from analytics.differences.kept_draws import KeptDraws
from analytics.differences.ranks import NOTES, RankIntervals, RankSets, rank_intervals, rank_sets, resample
from analytics.differences.rows import Facet, Row, agent_variance
from analytics.differences.trial_variances import n_repeat_often
from analytics.errors import CoreError
from analytics.outcome_table import naive_standard_error
from analytics.record import Record
from analytics.rerun import MIN_AGENTS, regressed
from analytics.trials.flags import unclaimed_orders
from selection.rules import Rules, borrowed_omega
from selection.schema.board import AtTarget, SecondRun, TargetLine
from selection.standings import terms
from selection.standings.full_scores import FullScoreEstimate, within
from selection.standings.placing import AgentOnTasks, place_on_all, rated_tasks

ALONE = "tasks are taken as independent"
SEVERAL = {"group": "groups", "category": "categories"}


@dataclass(frozen=True, eq=False)
class Grouping:
    """Groups of all active tasks, and a sentence about them.

    groups: None where tasks are independent.
    """

    groups: Groups | None
    text: str

    def on(self, tasks: IndexArray) -> Groups | None:
        """Return the groups of some of the tasks, by position."""
        return None if self.groups is None else self.groups.on(tasks)


INDEPENDENT = Grouping(None, ALONE)


def grouping(record: Record, rules: Rules) -> Grouping:
    """Return what the rules take groups or categories of a record's tasks for."""
    if rules.groups == "none":
        return INDEPENDENT
    if rules.groups == "auto":
        groups = Groups.clusters(record.groups)
        return _grouping(groups, "group") if groups.is_enough else INDEPENDENT
    column, role = rules.groups.split(":")
    names = record.groups if column == "group" else record.categories
    if not any(names):
        return Grouping(None, f"no task has a {column}: {ALONE}")
    # Tasks without a name are clusters of one task, or one stratum.
    return _grouping(Groups.clusters(names) if role == "cluster" else Groups.of(names, "stratum"), column)


def _grouping(groups: Groups, column: str) -> Grouping:
    n = groups.sizes.size
    count = f"{n:,} {column if n == 1 else SEVERAL[column]}"
    if groups.role == "cluster":
        return Grouping(groups, f"tasks of one {column} are taken as drawn together ({count})")
    return Grouping(groups, f"tasks are taken as drawn within each {column} ({count})")


RESAMPLED, BY_ERRORS, BY_BOTH = "resampled tasks", "errors of scores", "errors of scores and resampled tasks"


@dataclass(frozen=True, eq=False)
class ErrorModel:
    """What every target reads: the record, how its trials vary, and the resamples made so far.

    in_headlines: (n_agents,); agents that headlines are made from, among which the best is looked for; None:
        all.
    borrowed: "0.118 from Terminal-Bench": the noise of trials where the record has none.
    """

    record: Record
    facets: tuple[Facet, ...]
    seed: int
    draws: KeptDraws = field(default_factory=KeptDraws)
    grouping: Grouping = INDEPENDENT
    noises: dict[bytes, TrialNoise] = field(default_factory=dict)
    in_headlines: Mask | None = None
    borrowed: str = ""

    def noise(self, tasks: IndexArray) -> TrialNoise:
        """Return the noise of trials on these tasks by `Record.telling_noise`, or what is borrowed."""
        if self.borrowed:
            return TrialNoise(borrowed_omega(self.borrowed))
        key = tasks.tobytes()
        if key not in self.noises:
            self.noises[key] = noise_of(self.record, tasks) if has_repeats(self.record) else TrialNoise()
        return self.noises[key]

    def rows(self, agents: Sequence[int], tasks: IndexArray, on_tasks: Sequence[AgentOnTasks]) -> list[Row]:
        """Return the cells of agents, ascending, on these tasks; those that were completed stay missing."""
        table, some = self.record.table, _rows(agents, self.record.n_agents)
        means, variances, n_trials = table.means, table.trial_variances, table.n_trials
        means = columns(means[some], tasks)
        variances = None if variances is None else columns(variances[some], tasks)
        n_trials = None if n_trials is None else columns(n_trials[some], tasks)
        return [
            Row(
                means=means[at],
                trial_variances=None if variances is None else variances[at],
                n_trials=None if n_trials is None else n_trials[at],
                one_trial=bool(self.record.repeats[i].copies),
                levels=self.record.repeats[i].levels,
                v_link=one.v_link,
                df_link=one.df_link,
            )
            for at, (i, one) in enumerate(zip(agents, on_tasks, strict=True))
        ]

    def agent(
        self, i: int, row: Row, on_tasks: AgentOnTasks, estimated: FullScoreEstimate | None
    ) -> Measured | Calibrated | None:
        """Return agent i as it enters ranks and pairs on given tasks; None without a score or its error."""
        name = self.record.table.agents[i]
        if on_tasks.outcomes is not None:
            return Measured(name, on_tasks.outcomes, row)
        if estimated is None or estimated.score is None or estimated.se2 is None:
            return None
        df = 1.0 if estimated.df is None else estimated.df
        return Calibrated(name, estimated.score, estimated.se2, df, estimated.calibration, row=row)


@dataclass(frozen=True, eq=False)
class TargetResult:
    """What one target says.

    at: length n_agents; in the order of the record; `tied_with` is left empty.
    tied: (n_agents, n_agents); who is tied with whom, in the order of the record.
    """

    line: TargetLine
    at: tuple[AtTarget, ...]
    tied: Mask


def telling_cells(
    record: Record, tasks: IndexArray
) -> tuple[FloatArray, FloatArray | None, FloatArray | None]:
    """Means, s² and R of the agents that the noise of trials on these tasks comes from, (n_telling, k)."""
    table, some = record.table, _rows(np.flatnonzero(record.telling_noise), record.n_agents)
    cells = (table.means, table.trial_variances, table.n_trials)
    means, variances, n_trials = (None if one is None else columns(one[some], tasks) for one in cells)
    assert means is not None
    return means, variances, n_trials


def noise_of(record: Record, tasks: IndexArray) -> TrialNoise:
    """Return ω̂ and q̄ of those agents on these tasks."""
    telling = record.telling_noise
    once, vouched = one_trial(record)[telling], record.vouched[telling]
    return trial_noise(*telling_cells(record, tasks), one_trial=once, vouched=vouched)


def n_vouched_repeat(record: Record, tasks: IndexArray) -> int:
    """Count the agents that are vouched for and repeat these tasks often enough for ω̂."""
    telling = record.telling_noise
    once = (one_trial(record) | ~record.vouched)[telling]
    return n_repeat_often(*telling_cells(record, tasks), one_trial=once)


def _rows(agents: Sequence[int] | IndexArray, n_agents: int) -> slice | IndexArray:
    """Index rows of a matrix; all of them, in their order, without a copy."""
    rows = np.array(agents, dtype=np.intp)
    return slice(None) if np.array_equal(rows, np.arange(n_agents)) else rows


def one_trial(record: Record) -> Mask:
    """Agents whose trials are copies of one another, so that they count as one, shape (n_agents,)."""
    return np.array([bool(repeats.copies) for repeats in record.repeats], dtype=np.bool_)


def has_repeats(record: Record) -> bool:
    """Whether some agent has two independent trials of a task in one setting."""
    return _repeat(record, np.ones(record.n_agents, dtype=np.bool_))


def borrowed_by(record: Record, rules: Rules) -> str:
    """Return the trial noise of the rules where no complete agent that is vouched for repeats; else empty."""
    return "" if _repeat(record, record.complete & record.vouched) else rules.trial_noise


def _repeat(record: Record, agents: Mask) -> bool:
    variances = record.table.trial_variances
    return variances is not None and bool((~np.isnan(variances))[agents & ~one_trial(record)].any())


def empty_target_result(error_model: ErrorModel, target: Target, n_tasks: int, reason: str) -> TargetResult:
    """Return a target that says nothing, and why."""
    n = error_model.record.n_agents
    line = TargetLine(covers=terms.COVERS[target], n_tasks=n_tasks, n_ranked=0, reason=reason)
    return TargetResult(line, (AtTarget(reason=reason),) * n, _nobody(n))


def unranked(result: TargetResult, reason: str, on_tasks: Sequence[AgentOnTasks]) -> TargetResult:
    """Take every rank out of what a target says; bounds and counts stay."""
    at = tuple(
        one
        if one.rank is None and not one.folded_under
        else AtTarget(n_valid=one.n_valid, n_missing=one.n_missing, bounds=on.bounds, reason=reason)
        for one, on in zip(result.at, on_tasks, strict=True)
    )
    line = TargetLine(covers=result.line.covers, n_tasks=result.line.n_tasks, n_ranked=0, reason=reason)
    return TargetResult(line, at, _nobody(len(at)))


def target_result(
    error_model: ErrorModel,
    target: Target,
    tasks: IndexArray,
    on_tasks: Sequence[AgentOnTasks],
    *,
    shift: tuple[Mask, float] | None = None,
    estimated: Mapping[int, FullScoreEstimate] = MappingProxyType({}),
) -> TargetResult:
    """Say what a target says.

    shift: the incumbents, (n_agents,), and the variance of a pair of one of them with another agent, score².
    estimated: by position, for agents that are not placed on these tasks; target full alone.
    """
    cells = error_model.rows(range(len(on_tasks)), tasks, on_tasks)
    both = list(zip(cells, on_tasks, strict=True))
    at = [
        at_target(error_model, target, tasks, row, one, estimated.get(i)) for i, (row, one) in enumerate(both)
    ]
    agents = {i: error_model.agent(i, row, one, estimated.get(i)) for i, (row, one) in enumerate(both)}
    known = {i: agent for i, agent in agents.items() if agent is not None}
    rows = list(known)
    in_headlines = {
        i: one for i, one in known.items() if error_model.in_headlines is None or error_model.in_headlines[i]
    }
    is_mixed = 0 < len(in_headlines) < len(known)
    line = TargetLine(covers=terms.COVERS[target], n_tasks=tasks.size, n_ranked=len(rows))
    if not rows:
        return _concluded(replace(line, reason=terms.NOBODY_RANKED), at, rows, None)
    try:
        some = (
            _compared(error_model, target, tasks, on_tasks, in_headlines, cells, shift) if is_mixed else None
        )
        intervals = _compared(error_model, target, tasks, on_tasks, known, cells, shift)
    except CoreError as refusal:
        return _concluded(replace(line, reason=f"no rank ranges: {refusal}"), at, rows, None)
    if target != "domain":
        line = replace(line, second_run=_second_run(error_model, tasks, in_headlines, at))
    may, names = (some or intervals).may_be_first, error_model.record.table.agents
    first = (
        tuple(names[i] for i, may_be in zip(in_headlines, may, strict=True) if may_be) if in_headlines else ()
    )
    line = _judged(error_model, line, intervals)
    return _concluded(replace(line, may_be_first=first), at, rows, intervals)


def _second_run(
    error_model: ErrorModel,
    tasks: IndexArray,
    in_headlines: Mapping[int, Measured | Calibrated],
    at: Sequence[AtTarget],
) -> SecondRun | None:
    """Regress the leader's score towards those of the other measured agents that headlines are made from.

    Nothing for an estimated leader, nor by estimated scores: an estimate is regressed already. Nothing for
    the domain: all agents share the error of its tasks, and a second run does not draw it anew.
    """
    measured = {i: one for i, one in in_headlines.items() if isinstance(one, Measured)}
    scores = {i: at[i].score or 0.0 for i in in_headlines}
    leader = max(in_headlines, key=lambda i: round(scores[i], DECIMALS), default=-1)
    if leader not in measured or len(measured) < MIN_AGENTS:
        return None
    runs = [
        facet for facet in error_model.facets if facet.name == "run"
    ]  # prompts and judges stay as they are
    errors = [error_of(one, error_model.noise(tasks), runs) for one in measured.values()]
    regression = regressed(
        np.array([scores[i] for i in measured]), np.array([one.variance for one in errors]), tasks.size
    )
    return SecondRun(
        agent=error_model.record.table.agents[leader],
        score=scores[leader],
        expected=float(regression.expected[list(measured).index(leader)]),
        n_agents=len(measured),
    )


def on_all_tasks(record: Record, facets: Sequence[Facet]) -> dict[str, AtTarget]:
    """Return what the target `full` says of the agents that are measured on all tasks, ranks aside.

    facets: those never measured are left out.
    """
    error_model, tasks = ErrorModel(record, tuple(facets), seed=0), rated_tasks(record)
    on_tasks = place_on_all(record)
    rows = error_model.rows(range(len(on_tasks)), tasks, on_tasks)
    return {
        name: at_target(error_model, "full", tasks, row, one, None)
        for name, row, one in zip(record.table.agents, rows, on_tasks, strict=True)
        if one.score is not None
    }


def at_target(
    error_model: ErrorModel,
    target: Target,
    tasks: IndexArray,
    row: Row,
    on_tasks: AgentOnTasks,
    estimated: FullScoreEstimate | None,
) -> AtTarget:
    """Return one agent at one target, without rank and ties."""
    if estimated is not None:
        return AtTarget(
            score=estimated.score,
            lower=estimated.lower,
            upper=estimated.upper,
            se=None if estimated.se2 is None else estimated.se2**0.5,
            method="calibration",
            source=estimated.source,
            estimated=estimated.score is not None,
            n_valid=on_tasks.n_valid,
            n_missing=on_tasks.n_missing,
            bounds=on_tasks.bounds if estimated.se2 is None else None,
            reason=estimated.reason,
        )
    at = AtTarget(n_valid=on_tasks.n_valid, n_missing=on_tasks.n_missing)
    if on_tasks.score is None:
        return replace(at, bounds=on_tasks.bounds, reason=on_tasks.reason)
    selected, omega = target == "subset", error_model.noise(tasks).omega
    groups = error_model.grouping.on(tasks) if target == "domain" else None
    estimate = score(row, target, selected=selected, omega=omega, facets=error_model.facets, groups=groups)
    interval, moved = estimate.interval, on_tasks.score - estimate.value
    is_borrowed = bool(error_model.borrowed) and estimate.method == "variance function"
    return replace(
        at,
        score=on_tasks.score,
        lower=within(interval.lower + moved, (0.0, 1.0)) if interval else None,
        upper=within(interval.upper + moved, (0.0, 1.0)) if interval else None,
        se=interval.se if interval else None,
        naive_se=naive_standard_error(on_tasks.score, tasks.size),
        upper_bound=estimate.method == "upper bound" and interval is not None,
        method=terms.BORROWED if is_borrowed else estimate.method,
        source=error_model.borrowed if is_borrowed else "",
        reason=estimate.reason,
    )


def _compared(
    error_model: ErrorModel,
    target: Target,
    tasks: IndexArray,
    on_tasks: Sequence[AgentOnTasks],
    agents: Mapping[int, Measured | Calibrated],
    cells: Sequence[Row],
    shift: tuple[Mask, float] | None,
) -> RankIntervals:
    if target == "domain":
        rows = list(agents)
        outcomes = np.array([on_tasks[i].outcomes for i in rows])
        beyond = [agent_variance(cells[i], error_model.facets) for i in rows]
        v = np.array([sum(term.variance for term in terms) for terms in beyond], dtype=np.float64)
        names = [error_model.record.table.agents[i] for i in rows]
        groups = error_model.grouping.on(tasks)
        drawn = resample(
            outcomes, names, seed=error_model.seed, v=v, groups=groups, ahead=error_model.draws.ahead
        )
        tied = unclaimed(error_model, tasks, rows, [True] * len(rows))
        return rank_intervals(drawn, tied, pair_variances=error_model.draws.pair_variances)
    rows, added = list(agents), None
    if shift is not None:
        incumbent = shift[0][rows]
        added = np.asarray(shift[1] * (incumbent[:, None] != incumbent), dtype=np.float64)
    return rank_sets(
        list(agents.values()),
        error_model.noise(tasks),
        seed=error_model.seed,
        facets=error_model.facets,
        added=added,
        unclaimed=unclaimed(error_model, tasks, rows, [isinstance(one, Measured) for one in agents.values()]),
        ahead=error_model.draws.ahead,
        pair_variances=error_model.draws.pair_variances,
        own=error_model.draws.own,
    )


def unclaimed(
    error_model: ErrorModel, tasks: IndexArray, rows: Sequence[int], measured: Sequence[bool]
) -> Mask:
    """Pairs whose order missing outcomes could turn, of some agents; never one with an estimated agent."""
    undecided = np.zeros((len(rows), len(rows)), dtype=np.bool_)
    among = np.flatnonzero(measured)
    some = _rows(np.array(rows, dtype=np.intp)[among], error_model.record.n_agents)
    means = columns(error_model.record.table.means[some], tasks)
    undecided[np.ix_(among, among)] = unclaimed_orders(means)
    return undecided


def _judged(error_model: ErrorModel, line: TargetLine, intervals: RankIntervals) -> TargetLine:
    if not isinstance(intervals, RankSets):
        return replace(line, method=RESAMPLED, note=error_model.grouping.text)
    untold = [method == "neyman" for method in intervals.methods]
    method = RESAMPLED if all(untold) else BY_BOTH if any(untold) else BY_ERRORS
    borrowed = error_model.borrowed
    notes = [
        terms.BORROWED_NOTE.format(borrowed) if borrowed and note == NOTES["variance function"] else note
        for note in intervals.notes
    ]
    return replace(line, method=method, note=" ".join(map(terms.sentence, notes)))


def _concluded(
    line: TargetLine, at: list[AtTarget], rows: Sequence[int], intervals: RankIntervals | None
) -> TargetResult:
    tied = _nobody(len(at))
    known = np.round(np.array([at[i].score for i in rows], dtype=np.float64), DECIMALS)
    n_not_better = np.searchsorted(np.sort(known), known, side="right")
    ranks = [1 + known.size - int(n) for n in n_not_better]
    for position, (i, rank) in enumerate(zip(rows, ranks, strict=True)):
        if intervals is None:
            at[i] = replace(at[i], rank=rank)
        else:
            lower, upper = int(intervals.lower[position]), int(intervals.upper[position])
            at[i] = replace(at[i], rank=rank, rank_lower=lower, rank_upper=upper)
    if intervals is not None:
        tied[np.ix_(rows, rows)] = intervals.tied
        line = replace(line, critical=intervals.critical, n_draws=intervals.n_draws)
    return TargetResult(line, tuple(at), tied)


def _nobody(n: int) -> Mask:
    return np.zeros((n, n), dtype=np.bool_)
