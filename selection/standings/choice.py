"""Which tasks new agents run first: a version that was fixed, or what the rules choose from a record.

A version of S that was fixed stands, less the tasks retired since. Without one the rules choose: the band of
pass rates over the teaching agents (the latest `history_window` of them), and as many tasks by the strategy.
Teaching agents are the complete ones, and those that staged assignment stopped, completed by its model.
It is the choice that every fold of nested validation makes, on all agents at once.

Incumbent shift. Agents that S was chosen from meet tasks chosen with their own outcomes in view. With S₋ᵢ
chosen by the same rule without i, d_i = r_i on S − r_i on S₋ᵢ; a newcomer against an incumbent counts the
variance of d.

Source: Ndzomga, *Efficient Benchmarking of AI Agents*, §3.3, §5.1.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from analytics.arrays import FloatArray, IndexArray, Mask, read_only
from analytics.record import Record
from selection import bands
from selection.bands import Band
from selection.folds import CompleteAgents, Fold, Plan, Rule, fold_bands, nested_plan
from selection.full_scores import FitCache
from selection.held_out import choose, row_means
from selection.prior import PriorDecisions, SubsetVersion
from selection.rules import Rules
from selection.schema.board import SubsetLine
from selection.staged.model import completed, fit, in_order


@dataclass(frozen=True, eq=False)
class Choice:
    """The subset in use, or why there is none.

    tasks: (k,); positions of its active tasks, ascending; empty without one.
    incumbents: (n_agents,); agents of the record that S was chosen from.
    earlier: active tasks of the versions before the one in use.
    stage: under 5 teaching agents, under `Rules.subset_from`, at least that many.
    is_suited: whether the band holds enough tasks.
    """

    tasks: IndexArray
    line: SubsetLine | None
    incumbents: Mask
    earlier: tuple[IndexArray, ...]
    stage: str
    is_suited: bool
    reason: str


def rule_of(rules: Rules) -> Rule:
    """Return what a fold of nested validation needs to know of the rules."""
    return Rule(rules.lo, rules.hi, rules.history_window, rules.hysteresis, rules.widening)


def training(record: Record, scores: FloatArray | None = None) -> CompleteAgents:
    """Return the complete agents of a record, as nested validation takes them.

    scores: (n_agents,); full scores of all agents; the mean over the valid tasks where NaN or not given.
    """
    rows = np.flatnonzero(record.complete)
    outcomes = record.table.means[rows]
    known = np.full(rows.size, np.nan) if scores is None else scores[rows]
    absent = np.isnan(known)
    known[absent] = row_means(outcomes[absent])
    return CompleteAgents.of(record.table, rows, outcomes, known, record.vouched[rows])


def teaching(record: Record) -> Mask:
    """Agents that pass rates rest on: the complete ones, and those that staged assignment stopped.

    Of the latter those with a voice that nothing keeps from a rank, shape (n_agents,).
    """
    stopped = [one.stopped and not one.withheld for one in record.about]
    if not any(stopped):
        return record.complete
    here = np.array(stopped) & record.voice
    if record.condition:
        here &= np.array([not one for one in record.condition])
    return np.asarray(record.complete | here, dtype=np.bool_)


def teachers(record: Record) -> CompleteAgents:
    """Return these agents with what they did not run completed by `selection.staged.model`."""
    rows = np.flatnonzero(teaching(record))
    if rows.size == n_complete(record):
        return training(record)
    table = record.table
    order, first = in_order([table.dates[i] for i in rows], [table.agents[i] for i in rows])
    outcomes = table.means[rows]
    outcomes[order] = completed(fit(outcomes[order], first), outcomes[order])
    return CompleteAgents.of(table, rows, outcomes, outcomes.mean(axis=1))


def band_of(record: Record, rules: Rules) -> Band:
    """Return the band of the teaching agents, the latest `history_window` of them."""
    agents = teachers(record)
    latest = bands.latest_agents(agents.dates, rules.history_window)
    rows = np.flatnonzero(teaching(record))[latest]
    return bands.mid_range(
        agents.outcomes[latest],
        lo=rules.lo,
        hi=rules.hi,
        widening=rules.widening,
        n_estimated=int(np.count_nonzero(~record.complete[rows])),
    )


def counted_agents(record: Record, rules: Rules) -> IndexArray:
    """Return the positions of the agents that pass rates rest on: those that teach, or the latest of them."""
    rows = np.flatnonzero(teaching(record))
    latest = bands.latest_agents([record.table.dates[i] for i in rows], rules.history_window)
    return np.asarray(rows[latest], dtype=np.intp)


def how_chosen(band: Band, rules: Rules) -> str:
    """Say how the tasks of a band, or as many by another strategy, came about."""
    if rules.strategy == "mid_range":
        return band.reason
    chosen = f"{band.size} of {band.n_tasks} tasks by the strategy {rules.strategy}"
    return f"{chosen}, as many as the band holds: {band.reason}"


def choice(record: Record, rules: Rules, prior: PriorDecisions) -> Choice:
    """Return the subset in use, or why there is none."""
    versions = [
        (version, np.flatnonzero(np.isin(record.table.tasks, version.tasks))) for version in prior.subsets
    ]
    if prior.full_runs_only:
        return _none(record, rules, band_of(record, rules), prior.full_runs_only)
    if versions and versions[-1][1].size:
        return _version(record, versions[-1][0], [tasks for _, tasks in versions])
    return _chosen(record, rules, tuple(tasks for _, tasks in versions if tasks.size))


def chosen_tasks(agents: CompleteAgents, rules: Rules) -> tuple[IndexArray, str]:
    """Let the strategy of the rules choose S from these agents: its tasks, ascending, and what it said.

    Empty where there is no band or the strategy refuses.
    """
    everyone = Fold("subset", np.empty(0, dtype=np.intp), np.arange(agents.n))
    rule = rule_of(rules)
    of_folds = fold_bands(agents, Plan("subset", (everyone,), ""), rule)
    subsets = choose(agents, of_folds, rules.strategy, rule, rules.seed)
    return (subsets.tasks[0] if subsets.tasks else np.empty(0, dtype=np.intp)), subsets.refusal


def shift_variance(record: Record, chosen: Choice, rules: Rules, fits: FitCache | None = None) -> float:
    """Squared sd of the incumbent shift on S, score²; 0 where S cannot be chosen without an agent."""
    table, rows = record.table, np.flatnonzero(record.complete & chosen.incumbents)
    who = [(table.agents[i], table.dates[i], table.scaffolds[i], table.models[i]) for i in rows]
    rule = rule_of(rules)
    description = ("incumbent shift", rule, rules.strategy, rules.seed, table.n_tasks, who)

    def variance() -> float:
        agents = training(record).take(np.flatnonzero(chosen.incumbents[record.complete]))
        of_folds = fold_bands(agents, nested_plan(agents, "agent"), rule)
        subsets = choose(agents, of_folds, rules.strategy, rule, rules.seed, "nested", "agent")
        without = np.full(agents.n, np.nan)
        for fold, tasks in zip(subsets.folds, subsets.tasks, strict=True):
            without[fold.held_out] = row_means(agents.outcomes[fold.held_out][:, tasks])
        shifts = row_means(agents.outcomes[:, chosen.tasks]) - without
        known = shifts[~np.isnan(shifts)]
        return float(np.var(known, ddof=1)) if known.size > 1 else 0.0

    cells = (table.means[i] for i in rows)
    return (fits or FitCache()).made(description, chosen.tasks, *cells, make=variance)


def n_complete(record: Record) -> int:
    """Return the number of complete agents."""
    return int(np.count_nonzero(record.complete))


def n_teaching(record: Record) -> int:
    """Return the number of agents that pass rates rest on."""
    return int(np.count_nonzero(teaching(record)))


def _version(record: Record, version: SubsetVersion, tasks: list[IndexArray]) -> Choice:
    retired = len(version.tasks) - tasks[-1].size
    line = _line(
        record,
        tasks[-1],
        version,
        number=version.number,
        provisional=version.provisional,
        strategy=version.strategy,
        reason=version.reason + (f"; {retired} of its tasks were retired since" if retired else ""),
    )
    return Choice(
        tasks=read_only(tasks[-1]),
        line=line,
        incumbents=np.isin(record.table.agents, version.chosen_from),
        earlier=tuple(tasks[:-1]),
        stage="provisional" if version.provisional else "stable",
        is_suited=True,
        reason=line.reason,
    )


def _chosen(record: Record, rules: Rules, earlier: tuple[IndexArray, ...]) -> Choice:
    band = band_of(record, rules)
    if not band.suited:
        return _none(record, rules, band, band.reason)
    tasks, refusal = chosen_tasks(teachers(record), rules)
    if not tasks.size:
        return _none(record, rules, band, f"the strategy {rules.strategy} chooses no tasks: {refusal}")
    incumbents = np.zeros(record.n_agents, dtype=np.bool_)
    incumbents[counted_agents(record, rules)] = True
    stage = _stage(record, rules)
    how: dict[str, Any] = {"provisional": stage == "provisional", "strategy": rules.strategy}
    line = _line(record, tasks, band, number=None, reason=how_chosen(band, rules), **how)
    return Choice(read_only(tasks), line, incumbents, earlier, stage, True, line.reason)


def _line(record: Record, tasks: IndexArray, of: SubsetVersion | Band, **known: Any) -> SubsetLine:
    edges: dict[str, Any] = {"lo": of.lo, "hi": of.hi, "widened": of.widened, "n_complete": of.n_complete}
    names = tuple(record.table.tasks[j] for j in tasks)
    return SubsetLine(tasks=names, size=tasks.size, **edges, **known)


def _none(record: Record, rules: Rules, band: Band, reason: str) -> Choice:
    return Choice(
        tasks=np.empty(0, dtype=np.intp),
        line=None,
        incumbents=np.zeros(record.n_agents, dtype=np.bool_),
        earlier=(),
        stage=_stage(record, rules),
        is_suited=band.suited,
        reason=reason,
    )


def _stage(record: Record, rules: Rules) -> str:
    n = n_teaching(record)
    if n < bands.N_AGENTS_PROVISIONAL:
        return "none"
    return "provisional" if n < rules.subset_from else "stable"
