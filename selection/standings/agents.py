"""One line for each agent: who it is, how it comes to its score, what it ran and cost, and its marks."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from analytics.arrays import IndexArray, Mask
from analytics.record import Record
from analytics.trials.flags import identical_agents, parts
from selection.intervals.scaffolds import NOT_CALIBRATED
from selection.schema.board import AtTarget, How, Line, Range
from selection.standings.placing import AgentOnTasks, ran_all
from selection.standings.savings import run_costs
from selection.standings.targets import TargetResult


def lines(
    record: Record,
    on_all: Sequence[AgentOnTasks],
    on_subset: Sequence[AgentOnTasks],
    results: Mapping[str, TargetResult],
    target: str,
) -> tuple[Line, ...]:
    """Return the agents by rank for the target, names inside ties, unranked last by condition and name.

    on_all, on_subset: length n_agents; on all tasks; on the subset, or the same again where there is none.
    target: what the lines are ordered by.
    """
    ranks = [at.rank for at in results[target].at]
    order = sorted(
        range(record.n_agents),
        key=lambda i: (ranks[i] is None, ranks[i] or 0, _elsewhere(record, i)[0], i),
    )
    ties = {name: tied_ranges(one.tied, np.array(order, dtype=np.intp)) for name, one in results.items()}
    costs, flags, whole = run_costs(record), _flags(record), ran_all(record)
    return tuple(
        _line(
            record,
            i,
            on_all[i],
            on_subset[i],
            {name: replace(one.at[i], tied_with=ties[name][place]) for name, one in results.items()},
            costs[i],
            flags[i],
            target,
            whole=bool(whole[i]),
        )
        for place, i in enumerate(order)
    )


def how_of(on_all: AgentOnTasks, on_subset: AgentOnTasks, *, estimated: bool, whole: bool) -> How:
    """Return how an agent comes to its score on all tasks; `whole`: it was to be measured on all."""
    if on_all.outcomes is not None:
        return "measured" if on_all.how == "direct" else "completed"
    return "estimated" if estimated or (on_subset.outcomes is not None and not whole) else "incomplete"


def _line(
    record: Record,
    i: int,
    on_all: AgentOnTasks,
    on_subset: AgentOnTasks,
    at: dict[str, AtTarget],
    cost: tuple[float | None, str],
    flags: tuple[str, ...],
    target: str,
    *,
    whole: bool,
) -> Line:
    condition, n_elsewhere = _elsewhere(record, i)
    about = record.about[i]
    how = how_of(on_all, on_subset, estimated=at["full"].estimated, whole=whole)
    return Line(
        agent=about.name,
        scaffold=about.scaffold,
        model=about.model,
        version=about.version,
        organisation=about.organisation,
        links=dict(about.links),
        run_by=about.run_by,
        trust=about.trust,
        submitted_at=about.submitted_at,
        how=how,
        condition=condition,
        n_tasks=n_elsewhere or int(np.count_nonzero(record.table.n_valid[i])),
        n_trials=int(record.table.n_valid[i].sum()),
        n_invalid=int(record.n_invalid[i].sum()),
        n_submissions=int(record.n_deliveries[i]),
        cost_usd=cost[0],
        cost_basis=cost[1],
        n_tokens=record.n_tokens[i],
        seconds=record.seconds[i],
        icc=_icc(record, i),
        marks=_marks(record, i, how, on_subset, flags, at, target),
        flags=flags,
        at=at,
    )


def _icc(record: Record, i: int) -> dict[str, Any]:
    """Return what its repeated trials tell, where several conditions are compared with the words of each."""
    values = record.repeats[i].as_plain()
    parts = values["by_condition"]
    words = record.compared if parts else ()
    return values | {
        "by_condition": [{"condition": name, **one} for name, one in zip(words, parts, strict=True)]
    }


def _elsewhere(record: Record, i: int) -> tuple[str, int]:
    """Return what an agent ran under that is not compared, and how many tasks; empty and 0 for others."""
    condition = record.condition[i] if record.condition else ""
    return condition, record.n_elsewhere[i] if record.n_elsewhere else 0


def tied_ranges(tied: Mask, order: IndexArray) -> list[tuple[Range, ...]]:
    """Return by place on the board the places each is tied with, as ranges with both ends included.

    tied: (n_agents, n_agents).
    order: (n_agents,); the agents as they stand on the board.
    """
    row, column = np.nonzero(np.diff(tied[np.ix_(order, order)], axis=1, prepend=False, append=False))
    ranges = list(zip(column[::2].tolist(), (column[1::2] - 1).tolist(), strict=True))
    ends = np.searchsorted(row[::2], np.arange(order.size + 1)).tolist()
    return [tuple(ranges[first:last]) for first, last in pairwise(ends)]


def _marks(
    record: Record,
    i: int,
    how: How,
    on_subset: AgentOnTasks,
    flags: Sequence[str],
    at: Mapping[str, AtTarget],
    target: str,
) -> tuple[str, ...]:
    about = record.about[i]
    marks = {
        "estimated": how == "estimated" and not about.adaptive_reason,
        "chosen tasks": bool(about.adaptive_reason),
        "recalled": about.recalled,
        "completed": how == "completed" or on_subset.how == "completed",
        "new scaffold": at["full"].source.endswith(NOT_CALIBRATED),
        "incomplete": how == "incomplete" and not _elsewhere(record, i)[0],
        "elsewhere": bool(_elsewhere(record, i)[0]),
        "withheld": bool(about.withheld),
        "versions": at[target].correction > 0,
        "folded": bool(at[target].folded_under),
        "flagged": bool(flags),
        "backdated": about.backdated,
        "imprecise": about.imprecise,
    }
    return tuple(mark for mark, holds in marks.items() if holds)


def _flags(record: Record) -> list[tuple[str, ...]]:
    """Say what an operator should look at, for each agent."""
    flags = [[one for one in (repeats.copies, repeats.gains) if one] for repeats in record.repeats]
    for i, about in enumerate(record.about):
        if record.retried and record.retried[i]:
            flags[i].append(
                "retried: ran some tasks more often than others, then scored lower on them; the lower score "
                "counts"
            )
        if about.resubmitted:
            flags[i].append("ran its tasks again after a board had shown it")
        if about.same_owner_as_withheld:
            flags[i].append(
                "another agent of its account, of the same scaffold and model, took outcomes back after a "
                "board had shown it"
            )
    for i in _graded_alone(record):
        flags[i].append("outcomes between 0 and 1, where all agents that an operator loaded have 0 or 1")
    names = record.table.agents
    order = np.where(record.operator, -1, record.arrival)
    for group in identical_agents(record.table.means):
        for i in group:  # who came first is not to blame
            others = ", ".join(names[j] for j in group if j != i and order[j] <= order[i])
            if not others:
                continue
            left_out = "; pass rates and calibration leave it out until an operator approves it"
            copied = bool(record.copy_of and record.copy_of[i])
            flags[i].append(f"the same outcome as {others} on every task{left_out * copied}")
    for i, j, n_tasks in parts(record.table.means, order, np.flatnonzero(~record.operator)):
        flags[i].append(f"the same outcome as {names[j]} on all {n_tasks:,} tasks that both ran")
    return [tuple(one) for one in flags]


def _graded_alone(record: Record) -> list[int]:
    """Find submitted agents with fractions on a board whose loaded agents have none."""
    graded, loaded = np.array(record.n_graded or (0,) * record.n_agents) > 0, record.operator
    return np.flatnonzero(graded & ~loaded & loaded.any() & ~graded[loaded].any()).tolist()
