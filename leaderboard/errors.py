"""Refusals that reach a person: a kind, a message and a code that clients may rely on.

What a refusal means over HTTP stands in `api.errors`, and for a command by its exit code; nothing here
knows of either.
"""

import re
from typing import Any, ClassVar

from django.db import DatabaseError, OperationalError
from psycopg.errors import UndefinedTable

from leaderboard.called import PROGRAM


class Refusal(Exception):
    message: ClassVar[str] = ""  # where none is given

    # Without a code the name of the class in snake case is the code: `NoBoardYet` is `no_board_yet`. Details
    # become members of the API's problem.

    def __init__(self, message: str = "", *, code: str = "", **details: Any) -> None:
        super().__init__(message or self.message)
        self.code = code or re.sub(r"(?<!^)(?=[A-Z])", "_", type(self).__name__).lower()
        self.details = details


class Missing(Refusal):
    message = "Not found. Check the name or number."


class Forbidden(Refusal):
    message = "Your role does not allow this."


class Conflict(Refusal):
    message = "This conflicts with stored data."


class Faulty(Refusal):
    message = "The submission has errors. Nothing was stored."

    def __init__(
        self, message: str = "", *, code: str = "", faults: tuple[Any, ...], n_faults: int | None = None
    ) -> None:
        self.faults = faults
        self.n_faults = len(faults) if n_faults is None else n_faults
        super().__init__(message, code=code)


class Frozen(Refusal):
    message = "This benchmark takes no results at present."


class Exhausted(Refusal):
    message = "Limit reached. Try again later."

    def __init__(self, message: str = "", *, code: str = "", retry_after: int, **details: Any) -> None:
        self.retry_after = retry_after
        super().__init__(message, code=code, **details)


class Busy(Exhausted):
    message = "The service is busy. Try again soon."


def of_database(error: DatabaseError) -> str:
    """Say in a line that there are no tables, or that the server is away; empty where it is neither."""
    if isinstance(error.__cause__, UndefinedTable):
        return f"The database has no tables yet. Create them: {PROGRAM} migrate"
    if isinstance(error, OperationalError) and not getattr(error.__cause__, "sqlstate", None):
        return f"Cannot reach the database: {str(error).strip().partition(chr(10))[0]}"
    return ""
