"""The ways in: a file of any of the formats, and records or columns that are in memory."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from shutil import copyfileobj
from tempfile import SpooledTemporaryFile
from types import MappingProxyType
from typing import IO, Any, BinaryIO, cast

import numpy as np
import pyarrow as pa

from analytics.flat_file import csv_rows, json_rows, streams
from analytics.flat_file.columns import aliases_in
from analytics.flat_file.contents import FlatFile, contents
from analytics.flat_file.faults import FILE, SUBMISSION, Fault, FlatFileError, Limits, excerpt, refuse
from analytics.flat_file.json_rows import Records
from analytics.flat_file.streams import Opened
from analytics.flat_file.table import RowBatch, RowNumbers, Table
from analytics.flat_file.values import (
    can_be_text,
    column_as_text,
    empty_as_null,
    header_faults,
    is_text,
    n_bytes_as_text,
    text_of,
)

N_RECORDS = 10_000  # in a batch
SPOOLED_BYTES = 16 << 20  # of a source that cannot be wound, before a temporary file takes over


def batches(source: Opened, table: Table) -> Iterator[RowBatch]:
    """Read a Parquet file.

    A dictionary of a few texts can stand for any number of them. So texts stay in their dictionaries until
    their length is known, and it is that which is limited.
    """
    n = 0
    with _refusing_damage(), _windable(source) as file:
        parquet = _opened(file, table.limits)
        _take_header(parquet.schema_arrow.names, table)
        readable = _readable(parquet.schema_arrow, table)
        for batch in _checked(parquet, readable, table.limits):
            n += len(batch)
            if source.n_bytes is not None:
                n_all = parquet.metadata.num_rows
                source.meter.n_read = source.n_bytes * min(n, n_all) // max(n_all, 1)
            yield RowBatch(np.arange(n + 1 - len(batch), n + 1), _columns(batch, table))


def parquet_heads(path: Path) -> list[str]:
    """Read the names of a Parquet file's columns."""
    from pyarrow import parquet

    with _refusing_damage():
        return list(parquet.read_schema(path).names)


def parquet_texts(path: Path, limits: Limits) -> Iterator[list[Any]]:
    """Read a Parquet file with any columns: batches of Arrow columns of text, null where null or empty."""
    with _refusing_damage(), path.open("rb") as file:
        parquet = _opened(file, limits)
        if faults := list(_kind_faults(parquet.schema_arrow)):
            raise FlatFileError(faults)
        for batch in _checked(parquet, None, limits):
            yield [column_as_text(column) for column in batch.columns]


def _checked(parquet: Any, columns: list[str] | None, limits: Limits) -> Iterator[Any]:
    n_bytes = 0
    for batch in parquet.iter_batches(N_RECORDS, columns=columns, use_threads=False):
        batch.validate(full=True)
        n_bytes += sum(map(n_bytes_as_text, batch.columns))
        limits.check_bytes(n_bytes)
        yield batch


def _take_header(names: list[str], table: Table) -> None:
    if faults := header_faults(names):
        raise FlatFileError(faults)
    table.aliases |= aliases_in(names)
    table.state_header(table.aliases.get(name, name) for name in names)


def _opened(file: Any, limits: Limits) -> Any:
    from pyarrow import parquet

    footer = parquet.read_metadata(file)
    limits.check_rows(footer.num_rows)
    limits.check_bytes(sum(footer.row_group(i).total_byte_size for i in range(footer.num_row_groups)))
    schema = footer.schema.to_arrow_schema()
    texts = [name for name, kind in zip(schema.names, schema.types, strict=True) if is_text(kind)]
    file.seek(0)
    return parquet.ParquetFile(file, read_dictionary=texts, page_checksum_verification=True)


@contextmanager
def _refusing_damage() -> Iterator[None]:
    try:
        yield
    except FlatFileError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, MemoryError, OverflowError) as error:
        why = " ".join(str(error).split())[:200]
        raise refuse(f"the Parquet file is damaged or incomplete ({why}); copy it again") from None


@contextmanager
def _windable(source: Opened) -> Iterator[BinaryIO | IO[bytes]]:
    if source.n_bytes is not None:
        source.file.seek(source.start)
        yield source.file
        return
    with SpooledTemporaryFile(SPOOLED_BYTES) as copy:
        copyfileobj(source.stream, copy)
        copy.seek(0)
        yield cast(IO[bytes], copy)


def _readable(schema: Any, table: Table) -> list[str] | None:
    bad = list(_kind_faults(schema))
    for fault in bad:
        table.excuse(table.aliases.get(fault.field or "", fault.field or ""))
        table.faults.add(fault)
    names = {fault.field for fault in bad}
    return [name for name in schema.names if name not in names] if bad else None


def _kind_faults(schema: Any) -> Iterator[Fault]:
    for name, kind in zip(schema.names, schema.types, strict=True):
        if not can_be_text(kind):
            kinds = "text, numbers, true and false, dates and times are read"
            yield Fault(None, name, None, f"the column's type is {kind}; {kinds}")


def _columns(batch: Any, table: Table) -> dict[str, Any]:
    columns = zip(batch.schema.names, batch.columns, strict=True)
    return {table.aliases.get(name, name): column_as_text(column) for name, column in columns}


Progress = Callable[[int, int | None], None]
NDJSON_NAMES = (".ndjson", ".jsonl", ".ndjson.gz", ".jsonl.gz")


def read(
    source: Path | BinaryIO,
    *,
    as_of: datetime,
    name: str | None = None,
    progress: Progress | None = None,
    only: str | None = None,
    limits: Limits = FILE,
    constants: Mapping[str, object] = MappingProxyType({}),
    known_as: Mapping[str, Sequence[str]] = MappingProxyType({}),
    optional: Collection[str] = (),
    strange_task: Callable[[str], str | None] | None = None,
) -> FlatFile:
    """Read and check a flat file: CSV or NDJSON, plain or compressed by gzip, or Parquet.

    The format is recognised by the content; only text that begins neither like JSON nor like a header is
    taken for NDJSON because its name says so.

    source: a binary file is read from where it stands, and left open.
    as_of: with time zone; a later `submitted_at` lies in the future.
    name: what a refusal calls the file; the name of a path by default.
    progress: called after every batch, on this thread, with the bytes read and, if known, the bytes in all.
    only: the benchmark to read, of a file that may hold several; rows of others are left out. Without it a
        file of several is refused.
    constants: columns that are equal in all rows; their faults have no row. The file may lack them; where it
        has them it says the same.
    known_as: other texts that a file may have for a constant.
    optional: required columns that the file may lack all the same.
    strange_task: says why a task of a good name cannot stand in the file, or None: it can.
    Raises FlatFileError: with every fault of the file at once; alone, that it holds several benchmarks or too
        much of anything.
    """
    called = name or (source.name if isinstance(source, Path) else None)
    table = Table(_in_utc(as_of), limits, only, strange_task)
    table.fix(table.add_constants(_constant_texts(constants, table)), known_as)
    for column in optional:
        table.excuse(column)
    try:
        with streams.opened(source) as opened:
            for batch in _batches(opened, table, called or ""):
                table.add(batch)
                if progress is not None:
                    progress(opened.meter.n_read, opened.n_bytes)
        return contents(table)
    except FlatFileError as error:
        raise FlatFileError(error.faults, error.n_faults, called) from None


def from_records(
    records: Sequence[Mapping[str, object]],
    *,
    constants: Mapping[str, object],
    as_of: datetime,
    limits: Limits = SUBMISSION,
    strange_task: Callable[[str], str | None] | None = None,
) -> FlatFile:
    """Check records that are in memory, as from a JSON body, by the rules of the flat file; see `read`.

    records: one for each row; what is no mapping is a fault.
    constants: columns that are equal in all rows; their faults have no row, and no record may name them.
    """
    limits.check_rows(len(records))
    table = Table(_in_utc(as_of), limits, strange_task=strange_task)
    fixed = table.add_constants(_constant_texts(constants, table))
    batch = Records(table, tuple(constants)).batch(records, 0)
    repeated = {column: pa.repeat(texts[0], len(batch.rows)) for column, texts in fixed.items()}
    table.add(RowBatch(batch.rows, {**repeated, **batch.columns}, batch.refused))
    return contents(table)


def from_arrow(
    columns: pa.Table,
    *,
    constants: Mapping[str, object],
    as_of: datetime,
    rows: RowNumbers | None = None,
    only: str | None = None,
) -> FlatFile:
    """Check columns that are in memory, as of a data frame, by the rules of the flat file; see `read`.

    columns: text, numbers, true and false, dates and times; null where a value is missing.
    constants: columns that are equal in all rows and not among `columns`; their faults have no row.
    rows: (n_rows,); what faults call the rows, ascending; counted from 1 by default.
    """
    FILE.check_rows(columns.num_rows)
    table = Table(_in_utc(as_of), FILE, only)
    fixed = table.add_constants(_constant_texts(constants, table))
    table.state_header(fixed)
    numbers = np.arange(1, columns.num_rows + 1) if rows is None else rows
    _take_header(columns.schema.names, table)
    readable, n = _readable(columns.schema, table), 0
    for batch in (columns if readable is None else columns.select(readable)).to_batches(N_RECORDS):
        n += len(batch)
        repeated = {name: pa.repeat(texts[0], len(batch)) for name, texts in fixed.items()}
        table.add(RowBatch(numbers[n - len(batch) : n], {**repeated, **_columns(batch, table)}))
    return contents(table)


def _in_utc(as_of: datetime) -> datetime:
    if as_of.tzinfo is None:
        raise ValueError("as_of has no time zone")
    return as_of.astimezone(UTC)


def _batches(opened: streams.Opened, table: Table, name: str) -> Iterator[RowBatch]:
    if opened.stream.peek(4)[:4] == streams.PARQUET:
        return batches(opened, table)
    text = streams.Text(opened, table.limits)
    if text.head().lstrip()[:1] == b"{" or name.lower().endswith(NDJSON_NAMES):
        if opened.n_bytes is not None:
            json_rows.check_number(opened, table.limits)
        return json_rows.batches(text, table)
    return csv_rows.batches(text, table)


def _constant_texts(constants: Mapping[str, object], table: Table) -> dict[str, object]:
    columns = {}
    for name, value in constants.items():
        text = text_of(value)
        if isinstance(text, ValueError):
            table.excuse(name)
            shown = excerpt(value) if isinstance(value, str) else None
            table.faults.add(Fault(None, name, shown, str(text)))
        else:
            columns[name] = empty_as_null(pa.array([text], pa.string()))
    return columns
