"""What groups and categories of tasks are taken for, where tasks are a sample (target ``domain``).

A *cluster* could have been another one: a repository, a source document. A *stratum* is given, with the share
of tasks that it has: a level of difficulty, a part of the benchmark. Where nothing is ruled ("auto"), groups
are clusters if there are at least 10 and one of them has two tasks, and categories have no role.

A task that states no group is a cluster of its own; tasks without a stratum are one stratum together.
"""

from dataclasses import dataclass

from analytics.arrays import IndexArray
from analytics.differences.groups import MIN_CLUSTERS, Groups, Role
from analytics.record import Record
from selection.rules import Rules

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
        groups = _groups(record.groups, "cluster")
        n, n_tasks = groups.sizes.size, groups.code.size
        return _grouping(groups, "group") if MIN_CLUSTERS <= n < n_tasks else INDEPENDENT
    column, role = rules.groups.split(":")
    names = record.groups if column == "group" else record.categories
    if not any(names):
        return Grouping(None, f"no task has a {column}: {ALONE}")
    return _grouping(_groups(names, "cluster" if role == "cluster" else "stratum"), column)


def _groups(names: tuple[str, ...], role: Role) -> Groups:
    """Group tasks; those without a name are clusters of one task, or one stratum."""
    if role == "stratum":
        return Groups.of(names, role)
    return Groups.of([f"in {name}" if name else f"alone {j}" for j, name in enumerate(names)], role)


def _grouping(groups: Groups, column: str) -> Grouping:
    n = groups.sizes.size
    count = f"{n:,} {column if n == 1 else SEVERAL[column]}"
    if groups.role == "cluster":
        return Grouping(groups, f"tasks of one {column} are taken as drawn together ({count})")
    return Grouping(groups, f"tasks are taken as drawn within each {column} ({count})")
