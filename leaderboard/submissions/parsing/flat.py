"""The flat file (CSV, NDJSON, Parquet), read and checked by `analytics.flat_file`."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from analytics.flat_file import MAX_FAULTS, Fault, FlatFile, FlatFileError, read
from leaderboard.errors import Faulty

__all__ = ["MAX_FAULTS", "Fault", "FlatFile", "read_file", "read_stream"]

Progress = Callable[[int, int | None], None]


def read_file(
    path: Path, *, as_of: datetime, progress: Progress | None = None, only: str | None = None
) -> FlatFile:
    return _read(path, name=path.name, as_of=as_of, progress=progress, only=only)


def read_stream(stream: BinaryIO, *, name: str, as_of: datetime) -> FlatFile:
    return _read(stream, name=name, as_of=as_of)


def _read(
    source: Path | BinaryIO,
    *,
    name: str,
    as_of: datetime,
    progress: Progress | None = None,
    only: str | None = None,
) -> FlatFile:
    try:
        return read(source, as_of=as_of, name=name, progress=progress, only=only)
    except FlatFileError as error:
        n_faults = "a fault" if error.n_faults == 1 else f"{error.n_faults:,} faults"
        message = f"{name} has {n_faults}; nothing was stored."
        raise Faulty(message, faults=error.faults, n_faults=error.n_faults) from error
