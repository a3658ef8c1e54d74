"""The deliveries of a benchmark in order, and the rules in force at each: what S and refits follow from."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any

from analytics.record import is_full_run
from leaderboard.catalog.models import Benchmark, MissingPlaces, Policy
from leaderboard.submissions.models import Status, StatusChange


@dataclass(frozen=True)
class Moment:
    """A delivery, or a policy row after it: then S may be fixed, or the calibration fitted anew.

    `at` is when it was accepted or came into force; `n_candidates` counts the agents that had delivered as
    many rows as a full run has: no more of them were complete.
    """

    data_version: int
    at: datetime
    policy: Policy
    is_delivery: bool
    n_candidates: int


def moments(benchmark: Benchmark, *, upto: int, after: int = 0) -> Iterator[Moment]:
    """Yield in order the moments at which there may be another complete agent, or another rule."""
    past = _Past(benchmark)
    for version, changes in groupby(_changes(benchmark, upto), attrgetter("data_version")):
        group = list(changes)
        yield from past.policies_before(group[-1].at)
        grown = past.apply(version, group)
        if grown and version > after:
            yield past.moment(is_delivery=True)
    yield from past.policies_before(None)


def _changes(benchmark: Benchmark, upto: int) -> Iterable[Any]:
    logged = StatusChange.objects.filter(
        submission__agent__benchmark=benchmark, data_version__gt=0, data_version__lte=upto
    )
    return logged.order_by("data_version", "id").values_list(
        "data_version",
        "at",
        "status",
        "submission_id",
        "submission__agent_id",
        "submission__n_outcomes",
        named=True,
    )


class _Past:
    """What had been accepted, moved on version by version."""

    def __init__(self, benchmark: Benchmark) -> None:
        self.policy, *self.later = benchmark.policies.order_by("number")
        self.tasks = list(benchmark.tasks.values_list("since", "retired_at"))
        merged = benchmark.agents.filter(merged_version__isnull=False).order_by("merged_version")
        self.to_merge: list[Any] = list(merged.values_list("merged_version", "id", "merged_into_id"))
        self.merged: dict[int, int] = {}
        self.version = 0
        self.at: datetime | None = None
        self.n_rows: defaultdict[int, dict[int, int]] = defaultdict(dict)  # by agent and submission

    def policies_before(self, at: datetime | None) -> Iterator[Moment]:
        """Bring into force the policy rows made before this; ahead of any delivery they settle nothing."""
        while self.later and (at is None or self.later[0].created_at <= at):
            self.policy = self.later.pop(0)
            if self.at is not None:
                self.at = max(self.at, self.policy.created_at)
                yield self.moment(is_delivery=False)

    def apply(self, version: int, changes: list[Any]) -> bool:
        """Return whether one of the agents may have become complete."""
        self.version, self.at = version, changes[-1].at
        self._merge(version)
        for change in changes:
            mine = self.n_rows[self._agent(change)]
            if change.status == Status.ACCEPTED:
                mine[change.submission_id] = change.submission__n_outcomes
            else:
                mine.pop(change.submission_id, None)
        needed = self._n_tasks()
        return any(self._may_be_complete(self._agent(change), needed) for change in changes)

    def _merge(self, version: int) -> None:
        """Let the rows of agents that were merged up to this version be another's from here on."""
        while self.to_merge and self.to_merge[0][0] <= version:
            _, source, target = self.to_merge.pop(0)
            self.merged[source] = target
            self.n_rows[target] |= self.n_rows.pop(source, {})

    def _agent(self, change: Any) -> int:
        pk: int = change.submission__agent_id
        return self.merged.get(pk, pk)

    def moment(self, *, is_delivery: bool) -> Moment:
        assert self.at is not None
        needed = self._n_tasks()
        n_candidates = sum(self._may_be_complete(agent, needed) for agent in self.n_rows)
        return Moment(self.version, self.at, self.policy, is_delivery, n_candidates)

    def _may_be_complete(self, agent: int, needed: int) -> bool:
        n_rows = sum(self.n_rows[agent].values())
        if self.policy.missing == MissingPlaces.ZERO:
            return n_rows > 0
        return is_full_run(n_rows, needed)

    def _n_tasks(self) -> int:
        if self.policy.universe is not None:
            return len(self.policy.universe)
        return sum(is_active(since, retired, self.version, self.at) for since, retired in self.tasks)


def is_active(since: int | None, retired_at: datetime | None, version: int, at: datetime | None) -> bool:
    """Whether a task was active at a data version, reached at this time."""
    return (since or 0) <= version and (retired_at is None or at is None or retired_at > at)
