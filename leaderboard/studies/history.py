"""The deliveries of a benchmark in order, and the rules in force at each: what S and refits follow from."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any

from django.db.models import QuerySet

from analytics.record import is_full_run
from analytics.record.conditions import MAX_VOICES
from leaderboard.catalog.models import Assigning, Benchmark, MissingPlaces, Policy
from leaderboard.submissions.models import AccountTrust, Status, StatusChange, Verification


@dataclass(frozen=True)
class Moment:
    """A delivery, an operator who vouches for one, or a policy row: then S may be fixed, or a fit made anew.

    `at` is when it was accepted or came into force; `n_candidates` counts the agents that had delivered as
    many rows as a full run has, of an account that nobody vouches for two: no more of them were complete.
    Where stopped agents count too, it is those that had delivered anything under staged assignment.
    """

    data_version: int
    at: datetime
    policy: Policy
    is_policy: bool
    n_candidates: int


def moments(
    benchmark: Benchmark, *, upto: int, after: int = 0, stopped_too: bool = False
) -> Iterator[Moment]:
    """Yield in order the moments at which there may be another complete agent, or another rule.

    `stopped_too`: or another agent that staged assignment stopped.
    """
    of_agents = {"submission__agent__benchmark": benchmark}
    submission = (
        *("submission_id", "submission__agent_id", "submission__n_outcomes"),
        *("submission__loaded", "submission__submitted_by_id"),
    )
    logs: tuple[tuple[QuerySet[Any], tuple[str, ...]], ...] = (
        (StatusChange.objects.filter(**of_agents), ("status", *submission)),
        (Verification.objects.filter(**of_agents), ("verified", "submission_id")),
        (AccountTrust.objects.filter(benchmark=benchmark), ("trusted", "account_id")),
    )
    rows = [
        log.filter(data_version__gt=0, data_version__lte=upto)
        .order_by("data_version", "id")
        .values_list("data_version", "at", *fields, named=True)
        for log, fields in logs
    ]
    past, version_of = _Past(benchmark, stopped_too), attrgetter("data_version")
    for version, events in groupby(heapq.merge(*rows, key=version_of), version_of):
        group = list(events)
        yield from past.policies_before(group[-1].at)
        grown = past.apply(version, group)
        if grown and version > after:
            yield past.moment(is_policy=False)
    yield from past.policies_before(None)


class _Past:
    """What had been accepted, moved on version by version."""

    def __init__(self, benchmark: Benchmark, stopped_too: bool) -> None:
        self.stopped_too = stopped_too
        self.policy, *self.later = benchmark.policies.order_by("number")
        self.tasks = list(benchmark.tasks.values_list("since", "retired_at"))
        merged = benchmark.agents.filter(merged_version__isnull=False).order_by("merged_version")
        self.to_merge: list[Any] = list(merged.values_list("merged_version", "id", "merged_into_id"))
        self.merged: dict[int, int] = {}
        self.version = 0
        self.at: datetime | None = None
        self.n_rows: defaultdict[int, dict[int, int]] = defaultdict(dict)  # by agent and submission
        self.owners = dict(benchmark.agents.values_list("id", "owner_id"))
        self.trusted: set[int] = set()  # accounts
        self.verified: set[int] = set()  # submissions, and those of no account

    def policies_before(self, at: datetime | None) -> Iterator[Moment]:
        """Bring into force the policy rows made before this; ahead of any delivery they settle nothing."""
        while self.later and (at is None or self.later[0].created_at <= at):
            self.policy = self.later.pop(0)
            if self.at is not None:
                self.at = max(self.at, self.policy.created_at)
                yield self.moment(is_policy=True)

    def apply(self, version: int, events: list[Any]) -> bool:
        """Return whether an agent may have become complete."""
        self.version, self.at = version, events[-1].at
        # Let the rows of agents that were merged up to this version be another's from here on
        while self.to_merge and self.to_merge[0][0] <= version:
            _, source, target = self.to_merge.pop(0)
            self.merged[source] = target
            self.n_rows[target] |= self.n_rows.pop(source, {})
        for event in events:
            if "trusted" in event._fields:
                (self.trusted.add if event.trusted else self.trusted.discard)(event.account_id)
            elif "verified" in event._fields:
                (self.verified.add if event.verified else self.verified.discard)(event.submission_id)
            elif event.status == Status.ACCEPTED:
                self.n_rows[self._agent(event)][event.submission_id] = event.submission__n_outcomes
                if event.submission__loaded or event.submission__submitted_by_id is None:
                    self.verified.add(event.submission_id)
            else:
                self.n_rows[self._agent(event)].pop(event.submission_id, None)
        needed = self._n_tasks()
        return any(
            "status" not in event._fields or self._may_be_complete(self._agent(event), needed)
            for event in events
        )

    def _agent(self, change: Any) -> int:
        pk: int = change.submission__agent_id
        return self.merged.get(pk, pk)

    def moment(self, *, is_policy: bool) -> Moment:
        assert self.at is not None
        needed = self._n_tasks()
        complete = [agent for agent in self.n_rows if self._may_be_complete(agent, needed)]
        owners = ((agent, self.owners.get(agent)) for agent in complete)
        of = Counter((by in self.trusted or self.n_rows[pk].keys() <= self.verified, by) for pk, by in owners)
        n = sum(n if is_vouched else min(n, MAX_VOICES) for (is_vouched, _), n in of.items())
        return Moment(self.version, self.at, self.policy, is_policy, n)

    def _may_be_complete(self, agent: int, needed: int) -> bool:
        n_rows = sum(self.n_rows[agent].values())
        is_staged = self.stopped_too and self.policy.assignment == Assigning.STAGED
        if self.policy.missing in (MissingPlaces.ZERO, MissingPlaces.ZERO_LOADED) or is_staged:
            return n_rows > 0
        return is_full_run(n_rows, needed)

    def _n_tasks(self) -> int:
        if self.policy.universe is not None:
            return len(self.policy.universe)
        return sum(is_active(since, retired, self.version, self.at) for since, retired in self.tasks)


def is_active(since: int | None, retired_at: datetime | None, version: int, at: datetime | None) -> bool:
    return (since or 0) <= version and (retired_at is None or at is None or retired_at > at)
