"""Refusals that reach a person: a kind, a message and a code that clients may rely on.

What a refusal means over HTTP stands in `api.errors`, and for a command by its exit code; nothing here
knows of either.
"""

import re
from typing import Any, ClassVar

from django.db import DatabaseError, OperationalError
from psycopg.errors import DiskFull, UndefinedTable

from leaderboard.called import PROGRAM

NO_RESOURCES = "53"  # class of SQLSTATE: memory, connections, a configured limit


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


def lacks_resources(error: DatabaseError) -> bool:
    return (getattr(error.__cause__, "sqlstate", None) or "").startswith(NO_RESOURCES)


def of_database(error: DatabaseError) -> str:
    """Say in a line that tables, the server, or what the server needs is missing; else empty."""
    cause, line = error.__cause__, str(error).strip().partition("\n")[0]
    if isinstance(cause, UndefinedTable):
        return f"The database has no tables yet. Create them: {PROGRAM} migrate"
    if isinstance(cause, DiskFull):
        return "The disk of the database is full. Nothing of this step was stored. Free space and try again."
    if lacks_resources(error):
        return f"The database lacks resources: {line}. Nothing of this step was stored. Try again later."
    if isinstance(error, OperationalError) and not getattr(cause, "sqlstate", None):
        return f"Cannot reach the database: {line}"
    return ""
