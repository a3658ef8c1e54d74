"""The active tasks: all, those that nearly all agents have run, or those named.

A task is *common* when at least 95% of the agents without an assignment have an outcome on it. A universe of
common tasks has at least 10; once chosen it is kept by name, so that agents that come later do not shrink it.

Source: The rule is this project's own.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from analytics.arrays import CodeArray, Mask
from analytics.errors import CoreError
from analytics.record.rows import Counting, Delivery, Rows, assigned, counts_as_outcome, not_withdrawn

MIN_TASKS = 10


class Universe(NamedTuple):
    """The active tasks.

    positions: (n_active,); of all tasks, ascending.
    sentence: which they are and what was left out; empty where all are active.
    """

    positions: CodeArray
    sentence: str


def holders(
    rows: Rows, *, n_agents: int, n_tasks: int, deliveries: Sequence[Delivery], counting: Counting
) -> tuple[CodeArray, int]:
    """Count the agents without an assignment that have an outcome on each task, (n_tasks,), and all such."""
    rows, free = not_withdrawn(rows, deliveries), ~assigned(deliveries, n_agents)
    cell = rows.agent * n_tasks + rows.task
    seen = np.bincount(cell, counts_as_outcome(rows, counting), n_agents * n_tasks).reshape(n_agents, -1) > 0
    present = np.bincount(rows.agent, minlength=n_agents) > 0
    return np.asarray(seen[free].sum(axis=0), dtype=np.int64), int((present & free).sum())


def universe(tasks: Sequence[str], n_holders: CodeArray, n_agents: int, counting: Counting) -> Universe:
    """Choose the active tasks.

    tasks: all tasks, ascending by code point.
    n_holders: (n_tasks,); agents without an assignment that have an outcome on the task.
    n_agents: agents without an assignment.
    Raises CoreError: for fewer than 10 common tasks; for a name that is no task.
    """
    if counting.universe == "all":
        return Universe(np.arange(len(tasks)), "")
    if counting.universe == "common":
        common = is_common(n_holders, n_agents)
        if np.count_nonzero(common) < MIN_TASKS:
            raise CoreError(
                f"{np.count_nonzero(common)} tasks have an outcome from at least 95% of {n_agents} agents; "
                f"{MIN_TASKS} are needed",
                code="record",
            )
        return _universe_of(common, tasks, f"those with an outcome from at least 95% of {n_agents} agents")
    unknown = sorted(set(counting.universe) - set(tasks))
    if unknown or not counting.universe:
        raise CoreError(
            f"universe: {', '.join(map(repr, unknown[:3])) or 'nothing'} is no task", code="record"
        )
    return _universe_of(np.isin(np.array(tasks, dtype=object), counting.universe), tasks, "those named")


def is_common(n_holders: CodeArray, n_agents: int) -> Mask:
    """Tasks with an outcome from at least 95% of the agents, 20·n ≥ 19·n_agents, and from one at least."""
    return np.asarray((20 * n_holders >= 19 * n_agents) & (n_holders > 0), dtype=np.bool_)


def _universe_of(active: Mask, tasks: Sequence[str], which: str) -> Universe:
    positions = np.flatnonzero(active)
    left_out = [tasks[j] for j in np.flatnonzero(~active).tolist()]
    if not left_out:
        return Universe(positions, "")
    names = ", ".join(left_out[:3]) + (f" and {len(left_out) - 3} more" if len(left_out) > 3 else "")
    return Universe(
        positions, f"{len(positions)} of {len(tasks)} tasks are active, {which}; left out: {names}"
    )
