"""Refusals that reach a person: a kind, a message and a code that clients may rely on.

What a refusal means over HTTP stands in `api.errors`, and for a command by its exit code; nothing here
knows of either.
"""

from typing import Any

from django.db import DatabaseError, OperationalError
from psycopg.errors import UndefinedTable

from leaderboard.called import PROGRAM


class Refusal(Exception):
    """The request was refused."""

    # Without a message the docstring of the class is the message, and without a code the name of the class
    # in snake case is the code: `NoBoardYet` is `no_board_yet`. Details become members of the API's problem.

    def __init__(self, message: str = "", *, code: str = "", **details: Any) -> None:
        super().__init__(message or " ".join((self.__doc__ or "").split()))
        self.code = code or _in_snake_case(type(self).__name__)
        self.details = details


class Missing(Refusal):
    """There is no such thing here."""


class Forbidden(Refusal):
    """Your role does not allow this."""


class Conflict(Refusal):
    """This contradicts what is stored."""


class Faulty(Refusal):
    """The delivery has faults; nothing was stored."""

    def __init__(
        self, message: str = "", *, code: str = "", faults: tuple[Any, ...], n_faults: int | None = None
    ) -> None:
        self.faults = faults
        self.n_faults = len(faults) if n_faults is None else n_faults
        super().__init__(message, code=code)


class Frozen(Refusal):
    """Intake of this benchmark is frozen."""


class Exhausted(Refusal):
    """No more of this for now. `retry_after`: seconds until there is again."""

    def __init__(self, message: str = "", *, code: str = "", retry_after: int, **details: Any) -> None:
        self.retry_after = retry_after
        super().__init__(message, code=code, **details)


class Busy(Exhausted):
    """Too much of this is being done at this moment."""


def _in_snake_case(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


def of_database(error: DatabaseError) -> str:
    """Say in a line that there are no tables, or that the server is away; empty where it is neither."""
    if isinstance(error.__cause__, UndefinedTable):
        return f"The tables are not there yet; make them with `{PROGRAM} migrate`."
    if isinstance(error, OperationalError) and not getattr(error.__cause__, "sqlstate", None):
        return f"The database does not answer: {str(error).strip().partition(chr(10))[0]}"
    return ""
