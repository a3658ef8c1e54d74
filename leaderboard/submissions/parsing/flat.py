"""The flat file (CSV, NDJSON, Parquet), read and checked by `analytics.flat_file`."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from analytics.flat_file import ALIASES as ALIASES
from analytics.flat_file import FILE as FILE
from analytics.flat_file import KNOWN, from_records, read
from analytics.flat_file import MAX_COLUMNS as MAX_COLUMNS
from analytics.flat_file import MAX_FAULTS as MAX_FAULTS
from analytics.flat_file import SUBMISSION as SUBMISSION
from analytics.flat_file import WEIGHTS as WEIGHTS
from analytics.flat_file import Fault as Fault
from analytics.flat_file import FlatFile as FlatFile
from analytics.flat_file import FlatFileError as FlatFileError
from analytics.flat_file import GzipMembers as GzipMembers
from analytics.flat_file import Limits as Limits
from analytics.flat_file import excerpt as excerpt
from analytics.flat_file import guarded as guarded
from analytics.flat_file import head as head
from analytics.flat_file import is_too_small as is_too_small
from analytics.flat_file import name_rule as name_rule
from analytics.flat_file import unique as unique
from analytics.flat_file import weights_in as weights_in
from analytics.flat_file import whole_number as whole_number
from analytics.flat_file import wide_encoding as wide_encoding
from analytics.tables import AS_FOUND as AS_FOUND
from analytics.tables import FrameRefused, read_table
from analytics.tables import TableOptions as TableOptions
from analytics.tables import add_table_options as add_table_options
from analytics.tables import is_table as is_table
from analytics.tables import table_options as table_options
from leaderboard.errors import Faulty, Refusal

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
        raise faulty_file(error.name or path.name, error.faults, error.n_faults, error.note) from error
    except FrameRefused as error:
        raise Refusal(str(error)) from error


def read_file(path: Path, *, as_of: datetime) -> FlatFile:
    return read_outcomes(path, as_of=as_of)[0]


def check_records(
    records: Sequence[Mapping[str, object]], *, benchmark: str, as_of: datetime, limits: Limits = FILE
) -> FlatFile | FlatFileError:
    """Check records that another format's reader made; what is wrong with them is given back."""
    try:
        return from_records(records, constants={"benchmark": benchmark}, as_of=as_of, limits=limits)
    except FlatFileError as error:
        return error


def faulty_file(called: str, faults: Sequence[Fault], n_faults: int | None = None, note: str = "") -> Faulty:
    n = len(faults) if n_faults is None else n_faults
    number = "a fault" if n == 1 else f"{n:,} faults"
    message = f"{called} has {number}. Nothing was stored. {note}".rstrip()
    return Faulty(message, faults=tuple(faults), n_faults=n)


def printable(text: str) -> str:
    """A text with what cannot be seen spelled out, as in U+001B; line feeds stay."""
    return "".join(c if c.isprintable() or c == "\n" else f"U+{ord(c):04X}" for c in text)


def is_name(text: str) -> bool:
    return name_rule(text) is None
