"""What is wrong with a flat file: every fault at once, in row order, with place, value and rule; and limits.

Beyond a limit reading ends at once, whatever else is wrong.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from analytics.errors import CoreError
from analytics.flat_file.columns import position

MAX_FAULTS = 1000
MAX_EXCERPT = 80
N_LISTED = 3


def excerpt(value: str) -> str:
    """Shorten `value` to what a fault carries: at most 80 characters, lone surrogates spelled out."""
    cut = value if len(value) <= MAX_EXCERPT else value[: MAX_EXCERPT - 1] + "…"
    return cut.encode("utf-8", "backslashreplace").decode()


def quoted(value: str) -> str:
    r"""Put `value` in quotes for a message; what cannot be printed is escaped as in ``\u202e``."""
    return f'"{printable(excerpt(value))}"'


def printable(text: str) -> str:
    r"""Escape what cannot be printed, as in ``\u202e``."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


@dataclass(frozen=True)
class Fault:
    """One place where a flat file breaks a rule.

    row: number of the record, counted from 1 after the header; None where the whole file is meant.
    field: column, by the name the file gives it; None where the whole record is meant.
    value: what stands there, at most 80 characters; None where nothing does or where it does not matter.
    rule: the rule it breaks.
    """

    row: int | None
    field: str | None
    value: str | None
    rule: str

    def __str__(self) -> str:
        places = ([] if self.row is None else [f"row {self.row}"]) + (
            [] if self.field is None else [excerpt(self.field)]
        )
        place = " ".join(filter(None, (", ".join(places), "" if self.value is None else quoted(self.value))))
        return f"{place}: {self.rule}" if place else self.rule


class FlatFileError(CoreError):
    """A flat file is refused as a whole; every fault is named at once.

    faults: the first 1,000 in row order; faults of the whole file stand first.
    n_faults: their number, those beyond the first 1,000 included.
    name: the file's name, where it is known.
    note: how the rows of the faults count, where an editor would count them otherwise.
    """

    def __init__(
        self, faults: Sequence[Fault], n_faults: int | None = None, name: str | None = None, note: str = ""
    ) -> None:
        self.faults, self.note = tuple(faults), note
        self.n_faults = len(self.faults) if n_faults is None else n_faults
        self.name = name
        super().__init__(self.faults, self.n_faults, name, note)

    def __str__(self) -> str:
        what, note = self.name or "the flat file", f". {self.note}" if self.note else ""
        if self.n_faults == 1:
            return f"{what} is refused: {self.faults[0]}{note}"
        listed = " ".join(f"({i}) {fault}" for i, fault in enumerate(self.faults[:N_LISTED], 1))
        more = f" and {self.n_faults - N_LISTED:,} more" if self.n_faults > N_LISTED else ""
        return f"{what} is refused for {self.n_faults:,} faults: {listed}{more}{note}"


def refuse(rule: str) -> FlatFileError:
    """Make the error for a fault that leaves nothing else to check."""
    return FlatFileError((Fault(None, None, None, rule),))


def _order(fault: Fault) -> tuple[int, int, str]:
    return (fault.row or 0, position(fault.field), fault.field or "")


class Faults:
    """The first faults in row order, and the number of all, collected in any order."""

    def __init__(self) -> None:
        self.n = 0
        self._faults: list[Fault] = []
        self._last: int | None = None  # the last row that still has a place; None: there is room

    def add(self, fault: Fault) -> None:
        """Take in one fault."""
        self.extend(1, fault.row or 0, (fault,))

    def extend(self, n: int, first_row: int, faults: Iterable[Fault]) -> None:
        """Take in `n` faults that come in row order from `first_row`; only what is kept is worded."""
        self.n += n
        if self._last is not None and first_row > self._last:
            return
        self._faults.extend(islice(faults, MAX_FAULTS))
        if len(self._faults) > 4 * MAX_FAULTS:
            self._faults = sorted(self._faults, key=_order)[:MAX_FAULTS]
            self._last = self._faults[-1].row or 0

    def raise_if_any(self) -> None:
        """Raise `FlatFileError` if a fault was taken in."""
        if self.n:
            raise FlatFileError(sorted(self._faults, key=_order)[:MAX_FAULTS], self.n)


MAX_VALUE_BYTES = 4096  # of one field of metadata
MAX_AVERAGED = 20  # trials of a row, where many rows are means
MAX_RATIO = 250  # of decompressed to compressed bytes
FREE_BYTES = 32 << 20  # decompressed, before the ratio is looked at


@dataclass(frozen=True)
class Limits:
    """What is refused for its size.

    n_bytes: of text once decompressed; of Parquet, of its values as text.
    n_rows: rows at fault included.
    n_name_characters: of the distinct names of all columns together.
    n_metadata_bytes: of all metadata together; None where only `n_bytes` bounds them.
    n_cells: rows times columns; where they are limited, metadata count with their column's name in each row.
    n_settings: of prompt variant, judge, temperature and run together; None: as many as there are rows.
    n_averaged: trials that means stand for, where these are more than 20 a row; None: as many as `n_rows`.
    memory: bytes that the process which decodes Parquet may take; None: this one decodes.
    """

    n_bytes: int
    n_rows: int
    n_name_characters: int
    n_metadata_bytes: int | None
    n_settings: int | None
    n_averaged: int | None = None
    n_cells: int | None = None
    memory: int | None = None

    def check_bytes(self, n: int) -> None:
        """Refuse `n` decompressed bytes if they are too many."""
        if n > self.n_bytes:
            raise refuse(f"the file has more than {self.n_bytes:,} bytes after decompression; split it")

    def check_ratio(self, n: int, n_compressed: int) -> None:
        """Refuse what grows on decompression as no file of outcomes does."""
        if n > max(FREE_BYTES, MAX_RATIO * n_compressed):
            raise refuse(
                f"decompression makes the file more than {MAX_RATIO} times larger; send it uncompressed, "
                "or as CSV"
            )

    def check_rows(self, n: int) -> None:
        """Refuse `n` rows if they are too many."""
        if n > self.n_rows:
            raise refuse(f"the file has more than {self.n_rows:,} rows; split it")

    def check_cells(self, n: int) -> None:
        """Refuse `n` cells if they are too many."""
        if self.n_cells is not None and n > self.n_cells:
            cells = f"{self.n_cells:,} cells (rows × columns)"
            raise refuse(f"the file has more than {cells}; leave out columns, or split it")

    def check_averaged(self, n: int, n_rows: int) -> None:
        """Refuse `n` trials of rows that are means if they are too many."""
        if self.n_averaged is not None and n > max(self.n_averaged, MAX_AVERAGED * n_rows):
            raise refuse(
                f"n_averaged adds up to {n:,} trials; at most {self.n_averaged:,} are allowed, or "
                f"{MAX_AVERAGED} for each row"
            )

    def check_names(self, n_characters: int) -> None:
        """Refuse distinct names of `n_characters` together if they are too long."""
        if n_characters > self.n_name_characters:
            raise refuse(
                f"all names together have more than {self.n_name_characters:,} characters; shorten them"
            )

    def check_settings(self, n: int) -> None:
        """Refuse `n` settings if they are too many."""
        if self.n_settings is not None and n > self.n_settings:
            what = "prompt_variant, judge, temperature and run"
            raise refuse(f"there are {n:,} settings ({what}); use at most {self.n_settings:,}")


FILE = Limits(512 << 20, 10_000_000, 2_000_000, None, None)
SUBMISSION = Limits(16 << 20, 20_000, 200_000, 64 << 10, 500, 20_000)
# a file of one agent, from a stranger
DELIVERED = Limits(512 << 20, 2_000_000, 200_000, 64 << 20, 500, 20_000, 20_000_000, memory=2 << 30)
