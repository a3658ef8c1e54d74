"""Deliveries that store nothing, faulty ones and dry runs: so many a minute for each token.

They are counted in the database, so that all processes count together, and outside of the delivery's own
transaction, which is rolled back.
"""

from datetime import datetime, timedelta
from math import ceil

from django.db import connection

from leaderboard.accounts.models import ApiToken
from leaderboard.errors import Exhausted
from leaderboard.operations.models import FailedAttempts

MAX_ATTEMPTS = 60
MINUTE = timedelta(minutes=1)
COUNT = """
    INSERT INTO operations_failedattempts AS t (token_id, since, n) VALUES (%(token)s, %(now)s, 1)
    ON CONFLICT (token_id) DO UPDATE SET
        n = CASE WHEN t.since <= %(before)s THEN 1 ELSE t.n + 1 END,
        since = CASE WHEN t.since <= %(before)s THEN excluded.since ELSE t.since END
"""


def check(*, token: ApiToken, as_of: datetime) -> None:
    """Refuse whatever comes from a token that has spent its tries, until the minute is over."""
    spent = FailedAttempts.objects.filter(token=token, n__gte=MAX_ATTEMPTS, since__gt=as_of - MINUTE).first()
    if spent is not None:
        raise Exhausted(
            f"This token sent {MAX_ATTEMPTS} deliveries within a minute that were faulty or dry runs; wait "
            "for the next one.",
            code="too_many_tries",
            retry_after=max(1, ceil((spent.since + MINUTE - as_of).total_seconds())),
        )


def count(*, token: ApiToken, as_of: datetime) -> None:
    """Count one more."""
    with connection.cursor() as cursor:
        cursor.execute(COUNT, {"token": token.pk, "now": as_of, "before": as_of - MINUTE})
