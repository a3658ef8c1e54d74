"""Who acts, and why: what the audit keeps beside every row that changes meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager

import pghistory

from leaderboard.accounts.models import User
from leaderboard.errors import Refusal

AT_COMMAND_LINE = "at the command line"
# From a recorded change to its benchmark; None: of no one benchmark, and for staff alone.
RECORDED: dict[str, str | None] = {
    "catalog.BenchmarkChange": "pgh_obj",
    "catalog.PolicyChange": "benchmark",
    "catalog.TaskChange": "benchmark",
    "catalog.AgentChange": "benchmark",
    "catalog.MembershipChange": "benchmark",
    "catalog.InvitationChange": "benchmark",
    "operations.ReselectionChange": "benchmark",
    "operations.WebhookChange": "benchmark",
    "operations.NotificationChange": "pgh_obj__event__benchmark",
    "submissions.SubmissionChange": "pgh_obj__agent__benchmark",
    "accounts.ApiTokenChange": None,
}


def reason_missing() -> Refusal:
    return Refusal("A reason is required. Say why.", code="reason_missing")


@contextmanager
def acting(*, by: User | None, reason: str) -> Iterator[None]:
    """Bind what changes inside to this person and reason; `by` is None at the command line."""
    if not reason.strip():
        raise reason_missing()
    require_seen(reason)
    with pghistory.context(user=by.pk if by else None, reason=reason):
        yield


def require_seen(text: str) -> None:
    """Refuse a text of several lines that holds what cannot be seen."""
    if not all(sign.isprintable() or sign in "\n\r\t" for sign in text):
        raise Refusal(
            "A reason has no signs that cannot be seen, such as control characters and marks of direction.",
            code="signs_unseen",
        )
