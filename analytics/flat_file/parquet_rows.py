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
from analytics.flat_file.streams import Opened
from analytics.flat_file.table import Batch, Table
from analytics.flat_file.texts import column_as_text

N_RECORDS = 10_000  # in a batch
SPOOLED_BYTES = 16 << 20  # of a source that cannot be wound, before a temporary file takes over


def batches(source: Opened, table: Table, max_bytes: int | None = None) -> Iterator[Batch]:
    """Read a Parquet file.

    Raises
    ------
    FlatFileError
        If the file is damaged, or its columns cannot be used.
    """
    n = n_bytes = 0
    with _damage_told(), _windable(source) as file:
        parquet = _opened(file)
        _take_header(parquet.schema_arrow.names, table)
        for batch in parquet.iter_batches(N_RECORDS, use_threads=False):
            batch.validate(full=True)
            n_bytes += batch.nbytes
            if max_bytes is not None and n_bytes > max_bytes:
                raise refuse(f"the file holds more than {max_bytes:,} bytes once decompressed")
            n += len(batch)
            _note_progress(source, n, parquet.metadata.num_rows)
            yield Batch(np.arange(n + 1 - len(batch), n + 1), _columns(batch, table))


def arrow_batches(columns: pa.Table, table: Table) -> Iterator[Batch]:
    """Read a table that is in memory.

    Raises
    ------
    FlatFileError
        If its columns cannot be used.
    """
    _take_header(columns.schema.names, table)
    n = 0
    for batch in columns.to_batches(N_RECORDS):
        n += len(batch)
        yield Batch(np.arange(n + 1 - len(batch), n + 1), _columns(batch, table))


def _take_header(names: list[str], table: Table) -> None:
    if faults := header_faults(names):
        raise FlatFileError(faults)
    table.aliases |= aliases_in(names)
    table.state_header(table.aliases.get(name, name) for name in names)


def _note_progress(source: Opened, n: int, n_rows: int) -> None:
    """Count the rows as bytes: pyarrow reads parts of the file in an order of its own."""
    if source.n_bytes is not None:
        source.meter.n_read = source.n_bytes * min(n, n_rows) // max(n_rows, 1)


def _opened(file: Any) -> Any:
    from pyarrow import parquet

    return parquet.ParquetFile(file, page_checksum_verification=True)


@contextmanager
def _damage_told() -> Iterator[None]:
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


def _columns(batch: Any, table: Table) -> dict[str, Any]:
    columns = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        canonical = table.aliases.get(name, name)
        texts = column_as_text(column)
        if texts is not None:
            columns[canonical] = texts
        elif table.excuse(canonical):
            rule = (
                f"the column's type is {column.type}; text, numbers, true and false, dates and times are read"
            )
            table.faults.add(Fault(None, name, None, rule))
    return columns
