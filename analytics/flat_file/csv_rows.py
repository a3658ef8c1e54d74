"""CSV, read by pyarrow block by block, every field as text."""

import csv
import re
from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from analytics.flat_file import streams
from analytics.flat_file.columns import aliases_in
from analytics.flat_file.faults import Fault, FlatFileError, refuse
from analytics.flat_file.header import header_faults
from analytics.flat_file.table import Batch, RowNumbers, Table


def batches(text: streams.Text, table: Table) -> Iterator[Batch]:
    """Read the header, then the rows; rows with a wrong number of fields are told at the end.

    Raises
    ------
    FlatFileError
        If the header cannot be used, or the text is no CSV.
    """
    text.quotes = streams.Quotes()
    names = header(text)
    table.aliases |= aliases_in(names)
    columns = [table.aliases.get(name, name) for name in names]
    table.state_header(columns)
    uneven = Uneven(len(columns))
    n_even = 0
    for block in _blocks(text, columns, uneven):
        table_columns = dict(zip(columns, block.columns, strict=True))
        yield Batch(uneven.numbers(n_even, block.num_rows), table_columns)
        n_even += block.num_rows
    uneven.tell(table)


def header(text: streams.Text) -> list[str]:
    """Read the header line, which may hold line ends inside quotes.

    Raises
    ------
    FlatFileError
        With all that is wrong with the column names, or because there is no header.
    """
    first = text.head()
    n_bytes = _record_end(first)
    if n_bytes is None:
        raise refuse(
            f"the header is longer than {streams.MAX_RECORD_BYTES:,} bytes, or a quote is not closed"
        )
    line = text.read(n_bytes + 1) or b""
    text.verify()
    names = _fields(line.decode().strip("\r\n"))
    if faults := header_faults(names):
        raise FlatFileError(faults)
    return names


def _record_end(first: bytes) -> int | None:
    """Find where the first record that is not blank ends: at a line's end outside quotes."""
    start = last = len(first) - len(first.lstrip(b"\r\n"))
    n_quotes = 0
    for end in re.finditer(rb"[\r\n]", first[start:]):
        n_quotes += first.count(b'"', last, start + end.start())
        last = start + end.start()
        if n_quotes % 2 == 0:
            return last
    return len(first) if len(first) < streams.MAX_RECORD_BYTES else None


def _fields(line: str) -> list[str]:
    try:
        return next(csv.reader([line], strict=True), [])
    except csv.Error as error:
        raise refuse(f"the header is no line of CSV ({error})") from None


def _blocks(text: streams.Text, columns: list[str], uneven: "Uneven") -> Iterator[Any]:
    """Let pyarrow cut the text into blocks of whole rows."""
    n_rows = 0
    try:
        for block in _reader(text, columns, uneven):
            yield block
            n_rows += block.num_rows
    except pa.ArrowInvalid as error:
        _exhaust(text)
        if "Empty CSV" not in str(error):
            raise refuse(_unparsed_rule(str(error), n_rows + 1)) from None
    text.verify()


def _exhaust(text: streams.Text) -> None:
    """Read on to the end, so that an error in the text is told rather than what it led to."""
    while text.read(streams.BLOCK_BYTES):
        pass
    text.verify()


def _reader(text: streams.Text, columns: list[str], uneven: "Uneven") -> Any:
    from pyarrow import csv as arrow_csv

    return arrow_csv.open_csv(
        pa.PythonFile(text, mode="r"),
        # One thread: only then pyarrow knows the numbers of uneven rows.
        read_options=arrow_csv.ReadOptions(
            column_names=columns, block_size=streams.BLOCK_BYTES, use_threads=False
        ),
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=uneven),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.string()), strings_can_be_null=True, null_values=[""]
        ),
    )


def _unparsed_rule(message: str, row: int) -> str:
    if "straddling" in message:
        return f"row {row} or one of the next is longer than {streams.BLOCK_BYTES:,} bytes"
    return f"the file is no CSV from row {row} or one of the next on ({message})"


class Uneven:
    """The rows that have more or fewer fields than the header; pyarrow leaves them out."""

    def __init__(self, n_columns: int) -> None:
        self.n_columns = n_columns
        self.rows = array("q")
        self.n_fields = array("q")

    def __call__(self, row: Any) -> str:
        """Take note of a row, on the thread that parses, which may be some blocks ahead."""
        self.n_fields.append(row.actual_columns)
        self.rows.append(row.number)
        return "skip"

    def numbers(self, n_before: int, n: int) -> RowNumbers:
        """Give the numbers, in the whole file, of the `n` even rows that follow `n_before` even ones."""
        even = np.arange(n_before, n_before + n, dtype=np.int64)
        if not self.rows:
            return even + 1
        uneven = np.array(self.rows[:], np.int64)
        n_even_before = uneven - 1 - np.arange(len(uneven))
        return even + 1 + np.searchsorted(n_even_before, even, side="right")

    def tell(self, table: Table) -> None:
        """Tell the rows as faults, and how many fields each has."""
        if self.rows:
            faults = (
                Fault(
                    row, None, None, f"the row has {n} field{'s'[: n != 1]}, the header has {self.n_columns}"
                )
                for row, n in zip(self.rows, self.n_fields, strict=True)
            )
            table.faults.extend(len(self.rows), self.rows[0], faults)
