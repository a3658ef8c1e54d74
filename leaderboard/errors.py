"""Refusals that reach a person. The docstring of each is its message.

What a refusal means over HTTP is told in `api.errors`, and for a command by its exit code; nothing here
knows of either.
"""

from typing import Any

from django.db import DatabaseError, OperationalError
from psycopg.errors import UndefinedTable

from leaderboard.called import PROGRAM


class Refusal(Exception):
    """The request was refused."""

    def __init__(self, message: str = "", **details: Any) -> None:
        super().__init__(message or " ".join((self.__doc__ or "").split()))
        self.details = details

    @property
    def code(self) -> str:
        """The class's name in snake case: `AlreadyDelivered` is `already_delivered`."""
        return "".join(f"_{c.lower()}" if c.isupper() else c for c in type(self).__name__).lstrip("_")


class Missing(Refusal):
    """There is no such thing here."""


class Forbidden(Refusal):
    """Your role does not allow this."""


class Conflict(Refusal):
    """This contradicts what is stored."""


class Faulty(Refusal):
    """The delivery has faults; nothing was stored."""

    def __init__(self, message: str = "", *, faults: tuple[Any, ...], n_faults: int | None = None) -> None:
        self.faults = faults
        self.n_faults = len(faults) if n_faults is None else n_faults
        super().__init__(message)


class Frozen(Refusal):
    """Intake of this benchmark is frozen."""


class Exhausted(Refusal):
    """No more of this for now. `retry_after`: seconds until there is again."""

    def __init__(self, message: str = "", *, retry_after: int, **details: Any) -> None:
        self.retry_after = retry_after
        super().__init__(message, **details)


class Busy(Exhausted):
    """Too much of this is being done at this moment."""


def of_database(error: DatabaseError) -> str:
    """Say in a line that there are no tables, or that the server is away; empty where it is neither."""
    if isinstance(error.__cause__, UndefinedTable):
        return f"The tables are not there yet; make them with `{PROGRAM} migrate`."
    if isinstance(error, OperationalError) and not getattr(error.__cause__, "sqlstate", None):
        return f"The database does not answer: {str(error).strip().partition(chr(10))[0]}"
    return ""
