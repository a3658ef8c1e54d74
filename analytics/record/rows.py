"""What was delivered: agents, deliveries, and a row for each trial; and which of it counts, as what.

A task is *common* when at least 95% of the agents without an assignment have an outcome on it. A universe of
common tasks has at least 10; once chosen it is kept by name, so that agents that come later do not shrink it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from analytics.arrays import CodeArray, FloatArray, Mask
from analytics.errors import CoreError
from analytics.names import first_names

Missing = Literal["auto", "gap", "zero", "zero_loaded"]
Trust = Literal["self_reported", "logs", "verified"]
NEVER = np.iinfo(np.int64).max
TRUST: tuple[Trust, ...] = ("self_reported", "logs", "verified")  # ascending
Setting = tuple[str | None, str | None, float | None, str | None]  # prompt_variant, judge, temperature, run
refuse = partial(CoreError, code="record")


class Condition(NamedTuple):
    """What outcomes are compared under; None where not stated, or of a temperature any."""

    prompt_variant: str | None
    judge: str | None
    temperature: float | None


@dataclass(frozen=True)
class Counting:
    """Which outcomes count, and as what. The record is reduced by it.

    duplicates: which of an agent's deliveries count: all of them, the latest, the first.
    settings: the conditions compared: by the rule of `analytics.record.conditions`, or these.
    missing: what a place counts as that was asked for and has no valid outcome: a gap; a failure (zero); a
        failure of agents that an operator loaded alone (zero_loaded); auto: `analytics.record.missing`
        decides for a file, and until then it is a gap.
    universe: the active tasks: all, those with a valid outcome from at least 95% of the agents without an
        assignment, or these.
    """

    duplicates: Literal["mean", "latest", "first"] = "mean"
    settings: Literal["comparable"] | tuple[Condition, ...] = "comparable"
    missing: Missing = "auto"
    universe: Literal["all", "common"] | tuple[str, ...] = "all"


@dataclass(frozen=True)
class About:
    """What is said of an agent, beside its outcomes.

    version, organisation, weights (open or closed): empty: not stated.
    run_by: {"self", "operator"}: who delivered.
    submitted_at: earliest date stated, ISO 8601.
    withheld: why it may not be ranked whatever it ran ("resubmitted: …"); else empty. Such an agent is not
        complete.
    adaptive_reason: why it is placed on no task set: its tasks were chosen for it, and it is not complete;
        else empty.
    stopped: it was asked batch by batch, and the rule would ask for no more; one that was drawn to run the
        rest counts so until it delivers some.
    recalled: it was stopped, came to stand on the podium, and was asked for the rest, which has not arrived.
    approved: an operator looked at what it delivered and lets it count.
    resubmitted: after a board had shown it, its owner submitted results of tasks that it had run, or that had
        counted as failures; all of them count.
    same_owner_as_withheld: its owner has another agent of this scaffold and model, which is withheld.
    n_taken_back: versions of it that its owner took back whole.
    took_back: its owner took some of it back after it had counted, and no operator has approved since.
    backdated, imprecise: dated long before its delivery; to the month or year alone.
    trust: how far its outcomes can be checked: only as its owner reports them, by logs that it links, or
        loaded or confirmed by an operator. Of several deliveries the lowest.
    account: who owns it, as an opaque identifier; empty for what an operator loaded.
    vouched: verified, or of an account that an operator trusts.
    """

    name: str
    scaffold: str
    model: str
    version: str = ""
    organisation: str = ""
    weights: str = ""
    links: Mapping[str, str] = field(default_factory=dict)
    run_by: str = "operator"
    submitted_at: str | None = None
    withheld: str = ""
    adaptive_reason: str = ""
    stopped: bool = False
    recalled: bool = False
    approved: bool = False
    resubmitted: bool = False
    same_owner_as_withheld: bool = False
    n_taken_back: int = 0
    took_back: bool = False
    backdated: bool = False
    imprecise: bool = False
    trust: Trust = "verified"
    account: str = ""
    vouched: bool = True


@dataclass(frozen=True)
class Delivery:
    """One delivery of an agent's outcomes: an accepted submission, or a run of a loaded file.

    agent: position among the agents.
    arrival: deliveries that count together (one transaction) share it; 0 or above, ascending in order of
        acceptance.
    operator: loaded by an operator: all its trials count, and its invalid rows are confirmed.
    asked: tasks that the agent was asked to run; None: all active ones, unless another delivery of the agent
        names some.
    n_trials: trials asked for; None: as many as were delivered. Of several the largest.
    fewest_trials: of each task; an agent that has fewer is not complete. Of several the largest.
    capped: tasks are asked for by few at a time, as outcomes come in: no delivery is a whole run.
    withdrawn: taken back or replaced since: its rows count nowhere, but they were delivered.
    """

    agent: int
    arrival: int = 0
    operator: bool = True
    asked: frozenset[str] | None = None
    n_trials: int | None = None
    capped: bool = False
    fewest_trials: int = 1
    withdrawn: bool = False


@dataclass(frozen=True, eq=False)
class Rows:
    """Delivered outcomes, a row for each trial, in any order, (n_rows,) each.

    agent, task, setting, delivery: positions.
    outcome: 0 to 1 where valid.
    confirmed: of an invalid row: whether it is known to be a failure of the harness.
    cost_usd, n_tokens, seconds: of the trial; NaN where not stated.
    human, human_probability: what people say that the outcome is, NaN where nobody was asked; with which
        probability they were.
    came_with: position of the delivery with which an outcome came that stands in the place of a failure of an
        earlier one, `delivery`; by default each came with that.
    """

    agent: CodeArray
    task: CodeArray
    setting: CodeArray
    delivery: CodeArray
    trial: CodeArray
    outcome: FloatArray
    valid: Mask
    confirmed: Mask
    cost_usd: FloatArray | None = None
    n_tokens: FloatArray | None = None
    seconds: FloatArray | None = None
    human: FloatArray | None = None
    human_probability: FloatArray | None = None
    came_with: CodeArray | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.agent)

    def where(self, chosen: npt.NDArray[Any] | slice) -> "Rows":
        """Return the rows of a mask, (n_rows,), of positions or of a slice, in their order."""
        if isinstance(chosen, np.ndarray) and chosen.dtype == np.bool_ and chosen.all():
            return self
        columns = {one.name: getattr(self, one.name) for one in fields(self)}
        return replace(self, **{name: one[chosen] for name, one in columns.items() if one is not None})

    def on(self, tasks: CodeArray, n_tasks: int) -> "Rows":
        """Return the rows on these of the tasks, which are numbered anew in the order given."""
        if len(tasks) == n_tasks:
            return self
        number = np.full(n_tasks, -1, dtype=np.int64)
        number[tasks] = np.arange(len(tasks))
        rows = self.where(number[self.task] >= 0)
        return replace(rows, task=number[rows.task])


def checked(
    rows: Rows,
    *,
    n_agents: int,
    tasks: Sequence[str],
    settings: Sequence[Setting],
    deliveries: Sequence[Delivery],
) -> Rows:
    """Return the rows in canonical order, with codes of 64 bits, none out of range.

    Invalid rows of what an operator loaded are confirmed.
    The order is by agent, task, setting (by its levels), delivery (by arrival) and trial: sums over it do not
    depend on the order in which rows came, or on how settings are numbered.
    """
    sizes = {"agent": n_agents, "task": len(tasks), "setting": len(settings), "delivery": len(deliveries)}
    for one in fields(rows):
        column = getattr(rows, one.name)
        if column is not None and column.shape != (rows.n_rows,):
            raise refuse(f"{one.name}: {column.shape}, not ({rows.n_rows},)")
        size = sizes.get(one.name)
        if size is not None and rows.n_rows and not (column.min() >= 0 and column.max() < size):
            raise refuse(f"{one.name}: {column.min()} to {column.max()}, not 0 to {size - 1}")
    if not tasks or list(tasks) != sorted(set(tasks)):
        raise refuse("tasks ascend by code point, none twice, and there is one at least")
    codes = {name: getattr(rows, name).astype(np.int64, copy=False) for name in (*sizes, "trial")}
    loaded = np.array([delivery.operator for delivery in deliveries], dtype=np.bool_)[codes["delivery"]]
    rows = replace(rows, **codes, confirmed=rows.confirmed | loaded)
    n_tasks = len(tasks)
    setting, delivery = places(by_levels(settings)), places(in_order(deliveries))
    cell = rows.agent * n_tasks + rows.task
    run = setting[rows.setting] * len(deliveries) + delivery[rows.delivery]
    span = int(rows.trial.max(initial=0)) + 1
    if (int(cell.max(initial=0)) + 1) * len(settings) * len(deliveries) * span >= 2**62:
        return rows.where(np.lexsort((rows.trial, run, cell)))
    key = (cell * (len(settings) * len(deliveries)) + run) * span + rows.trial
    if (key[1:] >= key[:-1]).all():
        return rows
    return rows.where(np.argsort(key, kind="stable"))


def by_levels(settings: Sequence[Setting]) -> list[int]:
    """Positions of the settings in ascending order of their levels, None before any value."""
    return sorted(range(len(settings)), key=lambda s: none_first(settings[s]))


def none_first(levels: Sequence[str | float | None]) -> tuple[tuple[bool, str | float], ...]:
    """Return a sort key: None before any value."""
    return tuple((level is not None, "" if level is None else level) for level in levels)


def places(order: Sequence[int]) -> CodeArray:
    """Return the place of each position in the order, (len(order),)."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place


def distinct(codes: CodeArray) -> CodeArray:
    """Return the codes that occur, ascending, (n_distinct,)."""
    ascending = np.sort(codes)
    new = np.ones(len(codes), dtype=np.bool_)
    new[1:] = ascending[1:] > ascending[:-1]
    return np.asarray(ascending[new], dtype=np.int64)


def asked_tasks(deliveries: Sequence[Delivery], *, n_agents: int, tasks: Sequence[str]) -> Mask:
    """Which tasks each agent was asked to run, (n_agents, n_tasks): those named, or all if none are."""
    return asked_blocks(deliveries, n_agents=n_agents, tasks=tasks) >= 0


def asked_blocks(deliveries: Sequence[Delivery], *, n_agents: int, tasks: Sequence[str]) -> CodeArray:
    """Return the block of tasks first asked for together, 0, 1, …; −1: not asked for; all 0 if unnamed."""
    number = {name: j for j, name in enumerate(tasks)}
    blocks = np.full((n_agents, len(tasks)), -1, dtype=np.int64)
    for delivery in (deliveries[d] for d in in_order(deliveries) if not deliveries[d].withdrawn):
        own = blocks[delivery.agent]
        named = np.array([number[name] for name in delivery.asked or () if name in number], dtype=np.intp)
        own[named[own[named] < 0]] = own.max() + 1
    blocks[~assigned(deliveries, n_agents)] = 0
    return blocks


def assigned(deliveries: Sequence[Delivery], n_agents: int) -> Mask:
    """Agents with an assignment: a delivery that names its tasks, (n_agents,)."""
    mask = np.zeros(n_agents, dtype=np.bool_)
    mask[[one.agent for one in deliveries if one.asked is not None and not one.withdrawn]] = True
    return mask


def operated(deliveries: Sequence[Delivery], n_agents: int) -> Mask:
    """Agents of which an operator loaded every delivery, (n_agents,)."""
    mask = np.ones(n_agents, dtype=np.bool_)
    mask[[one.agent for one in deliveries if not (one.operator or one.withdrawn)]] = False
    return mask


def finished_by(rows: Rows, deliveries: Sequence[Delivery], shape: tuple[int, int]) -> CodeArray:
    """Find the arrival with which every task was there, withdrawn or not, (n_agents,); −1: none yet."""
    arrivals = np.array([delivery.arrival for delivery in deliveries], dtype=np.int64)
    first = np.full(shape[0] * shape[1], NEVER, dtype=np.int64)
    np.minimum.at(first, rows.agent * shape[1] + rows.task, arrivals[rows.delivery])
    last = first.reshape(shape).max(axis=1)
    return np.where(last == NEVER, -1, last)


def withdrawn(deliveries: Sequence[Delivery]) -> Mask:
    """Deliveries that were taken back or replaced, (n_deliveries,)."""
    return np.array([delivery.withdrawn for delivery in deliveries], dtype=np.bool_)


def not_withdrawn(rows: Rows, deliveries: Sequence[Delivery]) -> Rows:
    """Return the rows of what was not taken back."""
    gone = withdrawn(deliveries)
    return rows.where(~gone[rows.delivery]) if gone.any() else rows


def is_full_run(n_rows: int, n_tasks: int) -> bool:
    """Whether so many rows could hold a run of all tasks: one for at least 95% of them, 20·n ≥ 19·m."""
    return n_rows > 0 and 20 * n_rows >= 19 * n_tasks


def in_order(deliveries: Sequence[Delivery]) -> list[int]:
    """Positions of the deliveries by arrival, then as given."""
    return sorted(range(len(deliveries)), key=lambda d: deliveries[d].arrival)


def counted_deliveries(deliveries: Sequence[Delivery], counting: Counting) -> Mask:
    """Deliveries that count by the policy on duplicates, (n_deliveries,)."""
    if counting.duplicates == "mean":
        return ~withdrawn(deliveries)
    order = [d for d in in_order(deliveries) if not deliveries[d].withdrawn]
    order = order if counting.duplicates == "latest" else order[::-1]
    last = {deliveries[d].agent: d for d in order}
    counted = np.zeros(len(deliveries), dtype=np.bool_)
    counted[list(last.values())] = True
    return counted


def missing_fails(counting: Counting, operator: Mask) -> Mask:
    """Agents whose missing outcomes count as failures, (n_agents,).

    operator: (n_agents,); agents of which an operator loaded every delivery.
    """
    if counting.missing == "zero_loaded":
        return operator
    return np.full(len(operator), counting.missing == "zero")


def counts_as_outcome(rows: Rows, fails: Mask) -> Mask:
    """Rows with an outcome, (n_rows,): valid ones, and those that count as a failure, 0.

    fails: (n_agents,); see `missing_fails`.
    """
    return np.asarray(rows.valid | ~rows.confirmed | fails[rows.agent], dtype=np.bool_)


MIN_TASKS = 10


def holders(
    rows: Rows, *, n_agents: int, n_tasks: int, deliveries: Sequence[Delivery], counting: Counting
) -> tuple[CodeArray, int]:
    """Count the agents without an assignment that have an outcome on each task, (n_tasks,), and all such."""
    rows, free = not_withdrawn(rows, deliveries), ~assigned(deliveries, n_agents)
    cell = rows.agent * n_tasks + rows.task
    fails = missing_fails(counting, operated(deliveries, n_agents))
    seen = np.bincount(cell, counts_as_outcome(rows, fails), n_agents * n_tasks).reshape(n_agents, -1) > 0
    present = np.bincount(rows.agent, minlength=n_agents) > 0
    return np.asarray(seen[free].sum(axis=0), dtype=np.int64), int((present & free).sum())


def universe(
    tasks: Sequence[str], n_holders: CodeArray, n_agents: int, counting: Counting
) -> tuple[CodeArray, str]:
    """Choose the active tasks, by position, ascending; and say what was left out, where anything was.

    n_holders, n_agents: agents without an assignment: with an outcome on the task, (n_tasks,); all.
    """
    if counting.universe == "all":
        return np.arange(len(tasks)), ""
    if counting.universe == "common":
        active = is_common(n_holders, n_agents)
        if np.count_nonzero(active) < MIN_TASKS:
            raise refuse(
                f"{np.count_nonzero(active)} tasks have an outcome from at least 95% of {n_agents} agents; "
                f"{MIN_TASKS} are needed"
            )
        which = f"those with an outcome from at least 95% of {n_agents} agents"
    else:
        unknown = sorted(set(counting.universe) - set(tasks))
        if unknown or not counting.universe:
            raise refuse(f"universe: {', '.join(map(repr, unknown[:3])) or 'nothing'} is no task")
        active, which = np.isin(np.array(tasks, dtype=object), counting.universe), "those named"
    positions = np.flatnonzero(active)
    left_out = [tasks[j] for j in np.flatnonzero(~active).tolist()]
    if not left_out:
        return positions, ""
    counts = f"{len(positions)} of {len(tasks)} tasks are active"
    return positions, f"{counts}, {which}; left out: {first_names(left_out)}"


def is_common(n_holders: CodeArray, n_agents: int) -> Mask:
    """Tasks with an outcome from at least 95% of the agents, 20·n ≥ 19·n_agents, and from one at least."""
    return np.asarray((20 * n_holders >= 19 * n_agents) & (n_holders > 0), dtype=np.bool_)
