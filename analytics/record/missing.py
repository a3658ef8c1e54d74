"""What missing outcomes count as, and which tasks are active, where the policy leaves it to the data (auto).

An operator's outcomes decide alone, those of at least five agents. Where half of the agents can be ranked,
nothing changes. Where rows are absent, the tasks that nearly all agents have become the active ones; where
runs are void, missing outcomes of what an operator loaded count as failures. Of all tasks, one on
which all runs are void is left out. What submitters deliver has no say, and never counts as a failure by
this rule.

Source: The rule is this project's own (docs/decisions/who-is-ranked.md).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from analytics.arrays import Mask
from analytics.record.rows import MIN_TASKS, Counting, is_common
from analytics.record.stacked import Record

MIN_AGENTS = 5
MIN_COMPLETE = 10  # complete agents, from which the gaps of others are completed


@dataclass(frozen=True, eq=False)
class Resolution:
    """What was decided: `counting`, the record that it gives, and how many agents can be ranked so.

    reason: in words, which a policy row keeps; empty where nothing was decided, under five loaded agents.
    """

    counting: Counting
    record: Record
    reason: str = ""


def resolve(counting: Counting, read: Callable[[Counting], Record]) -> Resolution:
    """Decide on the record that `read` makes under any counting."""
    counting = replace(counting, missing="gap")
    before = read(counting)
    n = np.count_nonzero(_loaded(before))
    found = (_changed if n >= MIN_AGENTS else _with_void)(counting, before, read)
    if found and n < MIN_AGENTS:
        n = np.count_nonzero(_loaded(found[0]))
    if n < MIN_AGENTS:
        return Resolution(counting, before)
    n_tasks = before.n_tasks if found else int(_with_outcome(before).sum()) or before.n_tasks
    reason = ranked_text(_n_ranked(before), int(n), n_tasks)
    if found is None:
        return Resolution(counting, before, reason)
    after, counting = found
    reason += f", {_n_ranked(after):,} of {n:,}"
    if after.n_tasks < before.n_tasks:
        reason += f" on {after.n_tasks:,} of them"
    if counting.missing == "zero_loaded":
        reason += " if missing results count as failures"
    return Resolution(counting, after, reason)


def ranked_text(n_ranked: int, n_agents: int, n_tasks: int) -> str:
    """Say how many of the agents that decide can be ranked."""
    return f"{n_ranked:,} of {n_agents:,} agents can be ranked on all {n_tasks:,} tasks"


def _with_void(
    counting: Counting, before: Record, read: Callable[[Counting], Record]
) -> tuple[Record, Counting] | None:
    """Let void outcomes count where conditions that a submitter brought leave out agents that have some."""
    counting = replace(counting, missing="zero_loaded")
    record = read(counting)
    is_allowed = np.count_nonzero(_loaded(record)) >= MIN_AGENTS and not _is_enough(record, _n_ranked(before))
    is_better = bool(record.n_invalid.any()) and _is_enough(record, _n_ranked(record))
    return (record, counting) if is_allowed and is_better else None


def _changed(
    counting: Counting, before: Record, read: Callable[[Counting], Record]
) -> tuple[Record, Counting] | None:
    """Return the record on which at least half of the agents can be ranked; None: as it is, or on none."""
    record = before
    if _is_enough(before, _n_ranked(before)):
        return None
    active = _with_outcome(before)
    if not _is_enough(before, _n_ranked(before, with_void=True)):
        ran = (before.n_places > 0)[_loaded(before)]
        common = is_common(np.asarray(ran.sum(axis=0), dtype=np.int64), len(ran))
        if counting.universe != "all" or not MIN_TASKS <= np.count_nonzero(common) < len(common):
            return None
        active &= common
    if counting.universe == "all" and active.any() and not active.all():
        tasks = tuple(before.table.tasks[j] for j in np.flatnonzero(active))
        counting = replace(counting, universe=tasks)
        record = read(counting)
        if _is_enough(record, _n_ranked(record)):
            return record, counting
        if not _is_enough(record, _n_ranked(record, with_void=True)):
            return None
    counting = replace(counting, missing="zero_loaded")
    return read(counting), counting


def _loaded(record: Record) -> Mask:
    """Agents that decide, (n_agents,): loaded by an operator, under the compared conditions, not withheld."""
    barred = [bool(one.withheld) for one in record.about]
    elsewhere = [bool(one) for one in record.condition] or [False] * record.n_agents
    return record.operator & ~np.array(barred, dtype=np.bool_) & ~np.array(elsewhere, dtype=np.bool_)


def _with_outcome(record: Record) -> Mask:
    """Tasks on which an agent that decides has a valid outcome, (n_tasks,)."""
    return np.asarray(record.table.valid()[_loaded(record)].any(axis=0), dtype=np.bool_)


def _is_enough(record: Record, n_ranked: int) -> bool:
    return bool(2 * n_ranked >= np.count_nonzero(_loaded(record)))


def _n_ranked(record: Record, *, with_void: bool = False) -> int:
    """Count the agents that decide and can be ranked on all active tasks, gaps completed where they can be.

    Nobody needs an outcome on a task on which none of them has one.

    with_void: if every void outcome counted.
    """
    n_places, n_gaps, valid = record.n_places, record.n_gaps, record.table.valid()
    if with_void:
        n_void = record.n_invalid
        n_gaps = np.where(valid | (n_void == 0), np.maximum(n_gaps - n_void, 0), 0)
        valid = n_places > 0
    direct = replace(record, n_gaps=n_gaps).is_direct(np.arange(record.n_tasks)) & _loaded(record)
    whole = direct & valid[:, valid[_loaded(record)].any(axis=0)].all(axis=1)
    return int(np.count_nonzero(direct if direct.sum() >= MIN_COMPLETE else whole))
