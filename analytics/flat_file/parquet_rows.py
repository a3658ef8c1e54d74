"""Parquet, and tables in memory, batch by batch; every column becomes the text it would be in a CSV."""

from collections.abc import Iterator
from contextlib import contextmanager
from shutil import copyfileobj
from tempfile import SpooledTemporaryFile
from typing import IO, Any, BinaryIO, cast

import numpy as np
import pyarrow as pa

from analytics.flat_file.columns import aliases_in
from analytics.flat_file.faults import Fault, FlatFileError, refuse
from analytics.flat_file.header import header_faults
from analytics.flat_file.limits import Limits
from analytics.flat_file.streams import Opened
from analytics.flat_file.table import RowBatch, RowNumbers, Table
from analytics.flat_file.texts import can_be_text, column_as_text, is_text, n_bytes_as_text

N_RECORDS = 10_000  # in a batch
SPOOLED_BYTES = 16 << 20  # of a source that cannot be wound, before a temporary file takes over


def batches(source: Opened, table: Table) -> Iterator[RowBatch]:
    """Read a Parquet file.

    A dictionary of a few texts can stand for any number of them. So texts stay in their dictionaries until
    their length is known, and it is that which is limited.

    Raises FlatFileError: if the file is damaged or holds too much, or its columns cannot be used.
    """
    n = n_bytes = 0
    with _refusing_damage(), _windable(source) as file:
        parquet = _opened(file, table.limits)
        _take_header(parquet.schema_arrow.names, table)
        readable = _readable(parquet.schema_arrow, table)
        for batch in parquet.iter_batches(N_RECORDS, columns=readable, use_threads=False):
            batch.validate(full=True)
            n_bytes += sum(map(n_bytes_as_text, batch.columns))
            table.limits.check_bytes(n_bytes)
            n += len(batch)
            if source.n_bytes is not None:
                source.meter.n_read = (
                    source.n_bytes * min(n, parquet.metadata.num_rows) // max(parquet.metadata.num_rows, 1)
                )
            yield RowBatch(np.arange(n + 1 - len(batch), n + 1), _columns(batch, table))


def arrow_batches(columns: pa.Table, table: Table, rows: RowNumbers) -> Iterator[RowBatch]:
    """Read a table that is in memory, whose rows have numbers, (n_rows,).

    Raises FlatFileError: if its columns cannot be used.
    """
    _take_header(columns.schema.names, table)
    readable = _readable(columns.schema, table)
    n = 0
    for batch in (columns if readable is None else columns.select(readable)).to_batches(N_RECORDS):
        n += len(batch)
        yield RowBatch(rows[n - len(batch) : n], _columns(batch, table))


def _take_header(names: list[str], table: Table) -> None:
    if faults := header_faults(names):
        raise FlatFileError(faults)
    table.aliases |= aliases_in(names)
    table.state_header(table.aliases.get(name, name) for name in names)


def _opened(file: Any, limits: Limits) -> Any:
    """Open the file, after a look at what its footer says of its size."""
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
    """Turn whatever pyarrow makes of damaged bytes into a fault."""
    try:
        yield
    except FlatFileError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, MemoryError, OverflowError) as error:
        why = " ".join(str(error).split())[:200]
        raise refuse(f"the Parquet file is damaged or cut off ({why})") from None


@contextmanager
def _windable(source: Opened) -> Iterator[BinaryIO | IO[bytes]]:
    """Give a file that can be wound: the source, or a copy of it."""
    if source.n_bytes is not None:
        source.file.seek(source.start)
        yield source.file
        return
    with SpooledTemporaryFile(SPOOLED_BYTES) as copy:
        copyfileobj(source.stream, copy)
        copy.seek(0)
        yield cast(IO[bytes], copy)


def _readable(schema: Any, table: Table) -> list[str] | None:
    """Tell the columns that have no text, which are not read; None where all have one."""
    bad = [name for name, kind in zip(schema.names, schema.types, strict=True) if not can_be_text(kind)]
    for name in bad:
        rule = (
            f"the column's type is {schema.field(name).type}; text, numbers, true and false, dates and times"
            " are read"
        )
        table.excuse(table.aliases.get(name, name))
        table.faults.add(Fault(None, name, None, rule))
    return [name for name in schema.names if name not in bad] if bad else None


def _columns(batch: Any, table: Table) -> dict[str, Any]:
    columns = zip(batch.schema.names, batch.columns, strict=True)
    return {table.aliases.get(name, name): column_as_text(column) for name, column in columns}
