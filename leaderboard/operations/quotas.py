"""How many submissions an account makes, and an agent gets, in a UTC day. Those that are stored count.

All tokens of an account count together, for whoever has one makes more of them. They are counted in the
submission's own transaction, in which the account and the agent are locked: two deliveries of either wait for
each other. Operators and what they load are exempt.

Deliveries that store nothing, faulty ones and dry runs, are so many a minute for each token. They are counted
in the database, so that all processes count together, outside of the delivery's own transaction, which is
rolled back.
"""

from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Count, Q

from leaderboard.accounts.models import ApiToken, User
from leaderboard.catalog.models import Agent, Benchmark, Policy
from leaderboard.catalog.queries import operates, policy_in_force
from leaderboard.errors import Exhausted
from leaderboard.operations.models import FailedAttempts
from leaderboard.submissions.models import Submission

DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
MAX_ATTEMPTS = 60
COUNT = """
    INSERT INTO operations_failedattempts AS t (token_id, since, n) VALUES (%(token)s, %(now)s, 1)
    ON CONFLICT (token_id) DO UPDATE SET
        n = CASE WHEN t.since <= %(before)s THEN 1 ELSE t.n + 1 END,
        since = CASE WHEN t.since <= %(before)s THEN excluded.since ELSE t.since END
"""


class Quotas(NamedTuple):
    """Submissions of a UTC day: how many an `account` and, where it is known, an `agent` may make."""

    limits: dict[str, int]
    left: dict[str, int]
    resets_at: datetime

    def as_plain(self) -> dict[str, Any]:
        plain = {name: {"limit": self.limits[name], "left": n} for name, n in self.left.items()}
        return plain | {"resets_at": f"{self.resets_at:%Y-%m-%dT%H:%M:%SZ}"}


def remaining(
    *, benchmark: Benchmark, token: ApiToken, agent: Agent | None, as_of: datetime
) -> Quotas | None:
    """What a token's account and an agent have left on a benchmark; None for operators, who have no bound."""
    return None if operates(token, benchmark) else left_today(policy_in_force(benchmark), token, agent, as_of)


def left_today(policy: Policy, token: ApiToken, agent: Agent | None, as_of: datetime) -> Quotas:
    day, of_account, of_agent = _day(as_of), Q(token__user=token.user), Q(agent=agent)
    today = Submission.objects.filter(
        of_account | of_agent,
        agent__benchmark=policy.benchmark_id,
        loaded=False,
        received_at__gte=day,
        received_at__lt=day + DAY,
    )
    n = today.aggregate(account=Count("pk", filter=of_account), agent=Count("pk", filter=of_agent))
    limits = {"account": policy.quota_per_account} | ({"agent": policy.quota_per_agent} if agent else {})
    return Quotas(limits, {name: max(0, limit - n[name]) for name, limit in limits.items()}, day + DAY)


def count_one(*, policy: Policy, token: ApiToken, agent: Agent, as_of: datetime) -> Quotas:
    quotas = left_today(policy, token, agent, as_of)
    for name, left in quotas.left.items():
        if not left:
            whose, limit = "an account makes" if name == "account" else "an agent gets", quotas.limits[name]
            raise Exhausted(
                f"On this benchmark {whose} {limit:,} submissions in a UTC day; the next day begins at "
                f"{quotas.resets_at:%Y-%m-%dT%H:%MZ}.",
                code="quota_spent",
                retry_after=ceil((quotas.resets_at - as_of).total_seconds()),
                quota=name,
                limit=limit,
            )
    return quotas._replace(left={name: n - 1 for name, n in quotas.left.items()})


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


def _day(as_of: datetime) -> datetime:
    return as_of.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def check_attempts(*, token: ApiToken, as_of: datetime) -> None:
    spent = FailedAttempts.objects.filter(token=token, n__gte=MAX_ATTEMPTS, since__gt=as_of - MINUTE).first()
    if spent is not None:
        raise Exhausted(
            f"This token sent {MAX_ATTEMPTS} deliveries within a minute that were faulty or dry runs; wait "
            "for the next one.",
            code="too_many_tries",
            retry_after=max(1, ceil((spent.since + MINUTE - as_of).total_seconds())),
        )


def count_attempt(*, token: ApiToken, as_of: datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute(COUNT, {"token": token.pk, "now": as_of, "before": as_of - MINUTE})
