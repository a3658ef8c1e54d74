"""The ways in: a file of any of the formats, and records or columns that are in memory."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from analytics.flat_file import csv_rows, json_rows, parquet_rows, streams
from analytics.flat_file.contents import FlatFile, contents
from analytics.flat_file.faults import FILE, SUBMISSION, Fault, FlatFileError, Limits, excerpt
from analytics.flat_file.json_rows import Records
from analytics.flat_file.table import RowBatch, RowNumbers, Table
from analytics.flat_file.values import column_as_text, empty_as_null, text_of

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
        note = table.row_note if any(fault.row for fault in error.faults) else ""
        raise FlatFileError(error.faults, error.n_faults, called, note) from None


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
    bad, n = list(parquet_rows.kind_faults(columns.schema)), 0
    parquet_rows.take_header(columns.schema.names, bad, table)
    chosen = columns.drop_columns([fault.field for fault in bad])
    for batch in chosen.to_batches(parquet_rows.N_RECORDS):
        n += len(batch)
        texts_of = {
            name: column_as_text(one) for name, one in parquet_rows.by_known_name(batch, table).items()
        }
        repeated = {name: pa.repeat(texts[0], len(batch)) for name, texts in fixed.items()}
        table.add(RowBatch(numbers[n - len(batch) : n], {**repeated, **texts_of}))
    return contents(table)


def _in_utc(as_of: datetime) -> datetime:
    if as_of.tzinfo is None:
        raise ValueError("as_of has no time zone")
    return as_of.astimezone(UTC)


def _batches(opened: streams.Opened, table: Table, name: str) -> Iterator[RowBatch]:
    if opened.stream.peek(4)[:4] == streams.PARQUET:
        return parquet_rows.batches(opened, table)
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
