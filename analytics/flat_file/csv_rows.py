"""CSV, read by pyarrow block by block, every field as text, cut into whole rows before.

Blank rows and rows with a wrong number of fields are left out and counted. pyarrow does the same, but calls
back for each such row, and a file of nothing else took it minutes. A block where pyarrow finds another number
of rows than of lines is cut into rows here: in UTF-8 a byte of a comma, a quote or a line end is always that
character, and with n quotes before it a byte lies inside a field where n is odd (`streams.Quotes` has checked
that it is so).

A spreadsheet reads as a formula what begins with = + - or @, but not what an apostrophe stands before, which
it hides. So an apostrophe before such a text, in a CSV, is no part of the text; one that is, is doubled.
"""

import csv
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.flat_file import streams
from analytics.flat_file.columns import aliases_in
from analytics.flat_file.faults import MAX_FAULTS, Fault, FlatFileError, Limits, refuse
from analytics.flat_file.table import RowBatch, RowNumbers, Table
from analytics.flat_file.values import NUMBER, header_faults

MARK = "'"
FORMULA = "^'*[=+@-]"
GUARDED = "^'+[=+@-]"
SIGNS = re.compile(rb"'[=+@-]")


def guarded(texts: Any) -> Any:
    """Put an apostrophe before texts, (n,), that would be taken for a formula; numbers stay."""
    formula = pc.match_substring_regex(texts, FORMULA)
    if not pc.any(formula).as_py():
        return texts
    number = pc.match_substring_regex(texts, NUMBER)
    marked = pc.binary_join_element_wise(pa.scalar(MARK), texts, "")
    return pc.if_else(pc.and_not(formula, number), marked, texts)


def unguarded(texts: Any) -> Any:
    """Take off the apostrophe that stands before a formula, (n,)."""
    return pc.if_else(pc.match_substring_regex(texts, GUARDED), pc.utf8_slice_codeunits(texts, 1), texts)


N_BLOCKS = 4  # at a time: with rows of many long fields a block holds only a few
BLANK = re.compile(rb"\n[\r\n]+")
_QUOTE, _COMMA, _RETURN, _NEWLINE = b'",\r\n'


def batches(text: streams.Text, table: Table) -> Iterator[RowBatch]:
    """Read the header, then the rows; rows with a wrong number of fields are reported at the end."""
    quotes = text.quotes = streams.Quotes()
    names = header(text)
    table.aliases |= aliases_in(names)
    columns = [table.aliases.get(name, name) for name in names]
    table.state_header(columns)
    table.row_note = "Rows count without the header."
    uneven = Uneven(len(columns))
    yield from _row_batches(text, quotes, columns, uneven, table.limits)
    uneven.tell(table)


def header(text: streams.Text) -> list[str]:
    """Read the header line, which may hold line ends inside quotes, with all that is wrong with its names."""
    first = text.head()
    n_bytes = _record_end(first)
    if n_bytes is None:
        if not first.strip(b"\r\n"):
            raise refuse(f"the file starts with {len(first):,} bytes of blank lines; delete them")
        raise refuse(
            f"the header is longer than {streams.MAX_RECORD_BYTES:,} bytes, or a quote is not closed"
        )
    line = text.read(n_bytes + 1) or b""
    text.verify()
    try:
        fields = next(csv.reader([line.decode().strip("\r\n")], strict=True), [])
    except csv.Error as error:
        raise refuse(f"the header is not valid CSV ({error})") from None
    names: list[str] = unguarded(pa.array(fields, pa.string())).to_pylist()
    if faults := header_faults(names):
        raise FlatFileError(faults)
    return names


def _record_end(first: bytes) -> int | None:
    start = last = len(first) - len(first.lstrip(b"\r\n"))
    n_quotes = 0
    for end in re.finditer(rb"[\r\n]", first[start:]):
        n_quotes += first.count(b'"', last, start + end.start())
        last = start + end.start()
        if n_quotes % 2 == 0:
            return last
    return len(first) if len(first) < streams.MAX_RECORD_BYTES else None


def _row_batches(
    text: streams.Text, quotes: streams.Quotes, names: list[str], uneven: "Uneven", limits: Limits
) -> Iterator[RowBatch]:
    rest, n_rows = b"", 0
    for block in chain(text.blocks(N_BLOCKS), (b"\n",)):  # the last row may lack its end
        rest += block if b'"' in block or rest.count(b'"') % 2 else BLANK.sub(b"\n", block)
        end = rest.rfind(b"\n") + 1
        is_outside = (quotes.n - rest.count(b'"', end)) % 2 == 0
        columns = _plain_columns(rest, end, names) if is_outside else None
        if columns is None:
            n_rows, rest, (even, rows) = uneven.cut(rest, n_rows)
            columns = _columns(even, names) if len(rows) else {}
        else:
            rows = np.arange(n_rows + 1, n_rows + 1 + len(columns[names[0]]))
            n_rows, rest = n_rows + len(rows), rest[end:]
        limits.check_rows(n_rows)
        if len(rest) > streams.BLOCK_BYTES:
            text.exhaust()
            raise too_long(n_rows + 1)
        if len(rows):
            yield RowBatch(rows, columns)


def _plain_columns(data: bytes, end: int, names: list[str]) -> dict[str, Any] | None:
    """Read the lines up to `end`, each a row with all fields, as nearly always; None: one may not be."""
    step = streams.BLOCK_BYTES // 2  # a row that is too long has one without a line end
    if not all(data.find(b"\n", start, start + step) >= 0 for start in range(0, end, step)):
        return None
    if b"\r" in data and data.count(b"\r", 0, end) != data.count(b"\r\n", 0, end):
        return None
    try:
        columns = _read(memoryview(data)[:end], names)
    except pa.ArrowInvalid:
        return None
    n_lines = np.count_nonzero(np.frombuffer(data, np.uint8, end) == _NEWLINE)
    return columns if len(columns[names[0]]) == n_lines else None


def _columns(block: bytes | memoryview, names: list[str]) -> dict[str, Any]:
    try:
        return _read(block, names)
    except pa.ArrowInvalid as error:
        raise refuse(f"the file is not valid CSV ({error})") from None


def _read(block: bytes | memoryview, names: list[str]) -> dict[str, Any]:
    from pyarrow import csv as arrow_csv

    if bytes(block[: len(BOM_UTF8)]) == BOM_UTF8:
        block = b"\n" + block  # a mark is one at the beginning of a file alone; pyarrow would skip it
    table = arrow_csv.read_csv(
        pa.BufferReader(pa.py_buffer(block)),
        read_options=arrow_csv.ReadOptions(column_names=names, block_size=len(block) + 1, use_threads=False),
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=[""]
        ),
    )
    columns = {name: table[name].combine_chunks() for name in names}
    if MARK.encode() in bytes(block) and SIGNS.search(block):
        return {name: unguarded(texts) for name, texts in columns.items()}
    return columns


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
        """Cut `data` into the rows so far, the row that has not ended, and the even rows with numbers."""
        characters = np.frombuffer(data, np.uint8)
        ends, commas = characters == _NEWLINE, characters == _COMMA
        if b"\r" in data:
            ends |= characters == _RETURN
        if b'"' in data:
            outside = np.cumsum(characters == _QUOTE, dtype=np.uint8) % 2 == 0
            ends &= outside
            commas &= outside
        ends = np.flatnonzero(ends)
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
        uneven = ~blank & ~even
        places = np.flatnonzero(uneven)
        self.n += len(places)
        new = places[: MAX_FAULTS - len(self.first)]
        self.first += zip(number[new].tolist(), n_fields[new].tolist(), strict=True)
        whole_rows: bytes | memoryview = memoryview(data)[:whole]
        if not (even | blank).all() or blank.sum() > len(blank) // 2:
            whole_rows = np.frombuffer(data, np.uint8, whole)[np.repeat(even, ends + 1 - starts)].tobytes()
        return int(number[-1]), data[whole:], (whole_rows, number[even])

    def tell(self, table: Table) -> None:
        """Tell the rows as faults, and how many fields each has."""
        if self.n:
            rule = "the row has {} field{}, the header has {}"
            faults = (
                Fault(row, None, None, rule.format(n, "s"[: n != 1], self.n_columns)) for row, n in self.first
            )
            table.faults.extend(self.n, self.first[0][0], faults)
