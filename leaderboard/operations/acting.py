"""Who acts, and why: what the audit keeps beside every row that changes meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager

import pghistory

from leaderboard.accounts.models import User
from leaderboard.errors import Refusal

AT_COMMAND_LINE = "at the command line"


class ReasonMissing(Refusal):
    """Say why: what changes the state of a benchmark needs a reason."""


@contextmanager
def acting(*, by: User | None, reason: str) -> Iterator[None]:
    """Bind what changes inside to this person and reason; `by` is None at the command line."""
    if not reason.strip():
        raise ReasonMissing
    with pghistory.context(user=by.pk if by else None, reason=reason):
        yield
