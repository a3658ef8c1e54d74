r"""CSV text cut into whole rows; blank rows and rows with a wrong number of fields are left out and counted.

pyarrow does the same, but calls back for each such row, and a file of nothing else took it minutes. Here
they are found a block at a time: in UTF-8 a byte of ``",\\r\\n`` is always that character, and with n quotes
before it a byte lies inside a field where n is odd (`streams.Quotes` has checked that it is so).
"""

import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from analytics.flat_file import streams
from analytics.flat_file.faults import MAX_FAULTS, Fault, FlatFileError, refuse
from analytics.flat_file.limits import Limits
from analytics.flat_file.table import RowNumbers, Table

N_BLOCKS = 4  # at a time: with rows of many long fields a block holds only a few
BLANK = re.compile(rb"\n[\r\n]+")
_QUOTE, _COMMA, _RETURN, _NEWLINE = b'",\r\n'


def blocks(
    text: streams.Text, uneven: "Uneven", limits: Limits
) -> Iterator[tuple[bytes | memoryview, RowNumbers]]:
    """Give blocks of even rows, each with the numbers of its rows, (n,).

    Raises
    ------
    FlatFileError
        If a row is too long, there are too many, or the text breaks off.
    """
    rest, n_rows = b"", 0
    for block in text.blocks(N_BLOCKS):
        rest += block if b'"' in block or rest.count(b'"') % 2 else BLANK.sub(b"\n", block)
        n_rows, rest, found = uneven.cut(rest, n_rows)
        limits.check_rows(n_rows)
        if len(rest) > streams.BLOCK_BYTES:
            text.exhaust()
            raise too_long(n_rows + 1)
        if len(found[1]):
            yield found
    if rest:
        n_rows, _, found = uneven.cut(rest + b"\n", n_rows)
        limits.check_rows(n_rows)
        if len(found[1]):
            yield found


def too_long(row: int) -> FlatFileError:
    """Make the error for a row that is longer than a block."""
    return refuse(f"row {row} is longer than {streams.BLOCK_BYTES:,} bytes")


class Uneven:
    """The rows that have more or fewer fields than the header: their number, and the first of them."""

    def __init__(self, n_columns: int) -> None:
        self.n_columns = n_columns
        self.n = 0
        self.first: list[tuple[int, int]] = []  # row, fields

    def cut(self, data: bytes, n_before: int) -> tuple[int, bytes, tuple[bytes | memoryview, RowNumbers]]:
        """Cut `data`, which begins with a row; `n_before` rows came before.

        Returns
        -------
        n_rows : int
            Rows so far.
        rest : bytes
            The row that has not ended.
        even : tuple of bytes and int64 array, (n_even,)
            The even rows that have ended, and their numbers.

        Raises
        ------
        FlatFileError
            If a row is too long.
        """
        ends, commas = _marks(data)
        if not len(ends):
            return n_before, data, (b"", np.zeros(0, np.int64))
        starts = np.concatenate([[0], ends[:-1] + 1])
        whole = int(ends[-1]) + 1
        n_fields = np.add.reduceat(commas[:whole], starts, dtype=np.int64) + 1
        blank = starts == ends
        number = n_before + np.cumsum(~blank)
        longest = int(np.argmax(ends - starts))
        if ends[longest] - starts[longest] > streams.BLOCK_BYTES:
            raise too_long(int(number[longest]))
        even = ~blank & (n_fields == self.n_columns)
        self._note(number, n_fields, ~blank & ~even)
        kept: bytes | memoryview = memoryview(data)[:whole]
        if not (even | blank).all() or blank.sum() > len(blank) // 2:
            kept = np.frombuffer(data, np.uint8, whole)[np.repeat(even, ends + 1 - starts)].tobytes()
        return int(number[-1]), data[whole:], (kept, number[even])

    def _note(
        self, number: RowNumbers, n_fields: npt.NDArray[np.int64], uneven: npt.NDArray[np.bool_]
    ) -> None:
        places = np.flatnonzero(uneven)
        self.n += len(places)
        new = places[: MAX_FAULTS - len(self.first)]
        self.first += zip(number[new].tolist(), n_fields[new].tolist(), strict=True)

    def tell(self, table: Table) -> None:
        """Tell the rows as faults, and how many fields each has."""
        if self.n:
            rule = "the row has {} field{}, the header has {}"
            faults = (
                Fault(row, None, None, rule.format(n, "s"[: n != 1], self.n_columns)) for row, n in self.first
            )
            table.faults.extend(self.n, self.first[0][0], faults)


def _marks(data: bytes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Find the places of line ends, and where commas are, outside quotes."""
    characters = np.frombuffer(data, np.uint8)
    ends, commas = characters == _NEWLINE, characters == _COMMA
    if b"\r" in data:
        ends |= characters == _RETURN
    if b'"' in data:
        outside = np.cumsum(characters == _QUOTE, dtype=np.uint8) % 2 == 0
        ends &= outside
        commas &= outside
    return np.flatnonzero(ends), commas
