"""How many submissions an account makes, and an agent gets, in a UTC day. Those that are stored count.

All tokens of an account count together, for whoever has one makes more of them. They are counted in the
submission's own transaction, in which the account and the agent are locked: two deliveries of either wait for
each other. Operators and what they load are exempt.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

from django.db.models import Count, Q

from leaderboard.accounts.models import ApiToken, User
from leaderboard.catalog.models import Agent, Benchmark, Policy
from leaderboard.catalog.queries import operates, policy_in_force
from leaderboard.errors import Exhausted
from leaderboard.submissions.models import Submission

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Quota:
    """Submissions of a UTC day: how many there may be, and how many there are."""

    limit: int
    n: int

    @property
    def left(self) -> int:
        return max(0, self.limit - self.n)


@dataclass(frozen=True)
class Quotas:
    """Those of an account and, where it is known, of an agent; `resets_at` is the end of the day."""

    account: Quota
    agent: Quota | None
    resets_at: datetime

    def as_plain(self) -> dict[str, Any]:
        plain = {name: {"limit": one.limit, "left": one.left} for name, one in self.by_name().items()}
        return plain | {"resets_at": f"{self.resets_at:%Y-%m-%dT%H:%M:%SZ}"}

    def with_one_more(self) -> "Quotas":
        of_agent = self.agent and replace(self.agent, n=self.agent.n + 1)
        return replace(self, account=replace(self.account, n=self.account.n + 1), agent=of_agent)

    def by_name(self) -> Mapping[str, Quota]:
        return {"account": self.account} | ({"agent": self.agent} if self.agent else {})


def remaining(
    *, benchmark: Benchmark, token: ApiToken, agent: Agent | None, as_of: datetime
) -> Quotas | None:
    """What a token's account and an agent have left on a benchmark; None for operators, who have no bound."""
    return None if operates(token, benchmark) else _left(policy_in_force(benchmark), token, agent, as_of)


def _left(policy: Policy, token: ApiToken, agent: Agent | None, as_of: datetime) -> Quotas:
    day, of_account, of_agent = _day(as_of), Q(token__user=token.user), Q(agent=agent)
    today = Submission.objects.filter(
        of_account | of_agent,
        agent__benchmark=policy.benchmark_id,
        loaded=False,
        received_at__gte=day,
        received_at__lt=day + DAY,
    )
    n = today.aggregate(account=Count("pk", filter=of_account), agent=Count("pk", filter=of_agent))
    return Quotas(
        Quota(policy.quota_per_account, n["account"]),
        Quota(policy.quota_per_agent, n["agent"]) if agent else None,
        day + DAY,
    )


def count_one(*, policy: Policy, token: ApiToken, agent: Agent, as_of: datetime) -> Quotas | None:
    """Refuse a submission that would be one too many; return what is left once it is stored."""
    if operates(token, policy.benchmark):
        return None
    quotas = _left(policy, token, agent, as_of)
    for name, quota in quotas.by_name().items():
        if quota.n >= quota.limit:
            raise _spent(name, quota, quotas.resets_at, as_of)
    return quotas.with_one_more()


def check_assignments(*, policy: Policy, user: User, as_of: datetime) -> None:
    """Refuse an assignment that would be one too many: each may make an agent, and holds its name."""
    day = _day(as_of)
    today = user.assignments.filter(
        agent__benchmark=policy.benchmark, created_at__gte=day, created_at__lt=day + DAY
    )
    if today.count() >= policy.quota_per_account:
        raise Exhausted(
            f"On this benchmark an account asks for {policy.quota_per_account:,} assignments in a UTC day.",
            code="assignments_spent",
            retry_after=ceil((day + DAY - as_of).total_seconds()),
        )


def _spent(name: str, quota: Quota, resets_at: datetime, as_of: datetime) -> Exhausted:
    whose = "an account makes" if name == "account" else "an agent gets"
    return Exhausted(
        f"On this benchmark {whose} {quota.limit:,} submissions in a UTC day; the next day begins at "
        f"{resets_at:%Y-%m-%dT%H:%MZ}.",
        code="quota_spent",
        retry_after=ceil((resets_at - as_of).total_seconds()),
        quota=name,
        limit=quota.limit,
    )


def _day(as_of: datetime) -> datetime:
    return as_of.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
