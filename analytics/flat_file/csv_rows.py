"""CSV, read by pyarrow block by block, every field as text."""

import csv
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from analytics.flat_file import even, streams
from analytics.flat_file.columns import aliases_in
from analytics.flat_file.faults import FlatFileError, refuse
from analytics.flat_file.guards import may_be_guarded, unguarded
from analytics.flat_file.header import header_faults
from analytics.flat_file.table import Batch, Table


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
    uneven = even.Uneven(len(columns))
    for block, rows in even.blocks(text, uneven, table.limits):
        yield Batch(rows, _columns(block, columns))
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
        if not first.strip(b"\r\n"):
            raise refuse(f"the file begins with {len(first):,} bytes of blank lines")
        raise refuse(
            f"the header is longer than {streams.MAX_RECORD_BYTES:,} bytes, or a quote is not closed"
        )
    line = text.read(n_bytes + 1) or b""
    text.verify()
    fields = _fields(line.decode().strip("\r\n"))
    names: list[str] = unguarded(pa.array(fields, pa.string())).to_pylist()
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


def _columns(block: bytes | memoryview, names: list[str]) -> dict[str, Any]:
    """Let pyarrow cut whole, even rows into fields.

    Raises
    ------
    FlatFileError
        If the rows are no CSV.
    """
    from pyarrow import csv as arrow_csv

    if bytes(block[: len(BOM_UTF8)]) == BOM_UTF8:
        block = b"\n" + block  # a mark is one at the beginning of a file alone; pyarrow would skip it
    try:
        found = arrow_csv.read_csv(
            pa.BufferReader(pa.py_buffer(block)),
            read_options=arrow_csv.ReadOptions(
                column_names=names, block_size=len(block) + 1, use_threads=False
            ),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=[""]
            ),
        )
    except pa.ArrowInvalid as error:
        raise refuse(f"the file is no CSV ({error})") from None
    columns = {name: found[name].combine_chunks() for name in names}
    if may_be_guarded(block):
        return {name: unguarded(texts) for name, texts in columns.items()}
    return columns
