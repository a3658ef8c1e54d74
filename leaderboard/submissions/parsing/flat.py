"""The flat file (CSV, NDJSON, Parquet), read and checked by `analytics.flat_file`."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from analytics.flat_file import (
    ALIASES,
    FILE,
    KNOWN,
    MAX_COLUMNS,
    MAX_FAULTS,
    SUBMISSION,
    Fault,
    FlatFile,
    FlatFileError,
    GzipMembers,
    Limits,
    excerpt,
    from_records,
    guarded,
    head,
    name_rule,
    read,
    unique,
    wide_encoding,
)
from analytics.tables import (
    AS_FOUND,
    FrameRefused,
    TableOptions,
    add_table_options,
    is_table,
    read_table,
    table_options,
)
from leaderboard.errors import Faulty, Refusal

__all__ = [
    "ALIASES",
    "AS_FOUND",
    "COLUMNS",
    "FILE",
    "MAX_COLUMNS",
    "MAX_FAULTS",
    "SUBMISSION",
    "Fault",
    "FlatFile",
    "FlatFileError",
    "GzipMembers",
    "Limits",
    "TableOptions",
    "add_table_options",
    "excerpt",
    "faults_of",
    "faulty_file",
    "guarded",
    "head",
    "is_name",
    "is_table",
    "name_rule",
    "printable",
    "read_file",
    "read_outcomes",
    "table_options",
    "unique",
    "wide_encoding",
]

Progress = Callable[[int, int | None], None]
COLUMNS = frozenset((*KNOWN, *ALIASES))


def read_outcomes(
    path: Path,
    *,
    as_of: datetime,
    progress: Progress | None = None,
    only: str | None = None,
    limits: Limits = FILE,
    called: str | None = None,
    table: TableOptions = AS_FOUND,
) -> tuple[FlatFile, str]:
    """A flat file, or a table of people, of which a sentence says how it was read."""
    try:
        if is_table(path, table):
            return read_table(path, table, as_of=as_of, only=only, limits=limits, called=called)
        return read(path, as_of=as_of, progress=progress, only=only, limits=limits, name=called), ""
    except FlatFileError as error:
        raise faulty_file(error.name or path.name, error.faults, error.n_faults) from error
    except FrameRefused as error:
        raise Refusal(str(error)) from error


def read_file(path: Path, *, as_of: datetime, progress: Progress | None = None) -> FlatFile:
    return read_outcomes(path, as_of=as_of, progress=progress)[0]


def faults_of(
    records: Sequence[Mapping[str, object]], *, benchmark: str, as_of: datetime, limits: Limits = FILE
) -> FlatFile | FlatFileError:
    """Check records that another format's reader made; what is wrong with them is given back."""
    try:
        return from_records(records, constants={"benchmark": benchmark}, as_of=as_of, limits=limits)
    except FlatFileError as error:
        return error


def faulty_file(called: str, faults: Sequence[Fault], n_faults: int | None = None) -> Faulty:
    """The refusal of a whole file, by the name that it is called."""
    n = len(faults) if n_faults is None else n_faults
    number = "a fault" if n == 1 else f"{n:,} faults"
    return Faulty(f"{called} has {number}; nothing was stored.", faults=tuple(faults), n_faults=n)


def printable(text: str) -> str:
    """A text with what cannot be seen spelled out, as in U+001B; line feeds stay."""
    return "".join(c if c.isprintable() or c == "\n" else f"U+{ord(c):04X}" for c in text)


def is_name(text: str) -> bool:
    """Whether a text keeps the rules of names."""
    return name_rule(text) is None
