"""The flat file (CSV, NDJSON, Parquet), read and checked by `analytics.flat_file`."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from analytics.flat_file import (
    ALIASES,
    MAX_COLUMNS,
    MAX_FAULTS,
    Fault,
    FlatFile,
    FlatFileError,
    guarded,
    name_rule,
    read,
)
from leaderboard.errors import Faulty

__all__ = [
    "ALIASES",
    "MAX_COLUMNS",
    "MAX_FAULTS",
    "Fault",
    "FlatFile",
    "guarded",
    "is_name",
    "name_rule",
    "read_file",
]

Progress = Callable[[int, int | None], None]


def read_file(
    path: Path, *, as_of: datetime, progress: Progress | None = None, only: str | None = None
) -> FlatFile:
    try:
        return read(path, as_of=as_of, progress=progress, only=only)
    except FlatFileError as error:
        n_faults = "a fault" if error.n_faults == 1 else f"{error.n_faults:,} faults"
        message = f"{path.name} has {n_faults}; nothing was stored."
        raise Faulty(message, faults=error.faults, n_faults=error.n_faults) from error


def is_name(text: str) -> bool:
    """Whether a text keeps the rules of names."""
    return name_rule(text) is None
