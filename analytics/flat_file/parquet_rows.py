"""Parquet files, read batch by batch as text.

A few bytes of Parquet can stand for any number of them, and its footer may lie about their size. So a file
from a stranger is decoded by a process of its own, which may take only so much memory and time.
"""

import json
import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from shutil import copyfileobj
from tempfile import SpooledTemporaryFile, TemporaryFile
from typing import IO, Any, BinaryIO, cast

import numpy as np
import pyarrow as pa

from analytics.flat_file.columns import aliases_in
from analytics.flat_file.faults import Fault, FlatFileError, Limits, excerpt, printable, refuse
from analytics.flat_file.streams import Opened
from analytics.flat_file.table import RowBatch, Table
from analytics.flat_file.values import can_be_text, column_as_text, header_faults, is_text, n_bytes_as_text

N_RECORDS = 10_000  # in a batch
MAX_PIECES = 20_000  # columns of a group of rows: each takes time, however short
GROUP_ROWS = 1_000  # with which a group may be one of any number
BATCH_BYTES = 16 << 20  # of text in a batch, where its rows are of equal length
SPOOLED_BYTES = 16 << 20  # of a source that cannot be wound, before a temporary file takes over
MAX_SECONDS = 60  # of a processor, for a process that decodes
REFUSED = 3  # its exit code where it says why


@dataclass(frozen=True)
class Header:
    """What a file says of itself: its columns, those that cannot be text, and how many rows it has."""

    names: list[str]
    faults: list[Fault]
    n_rows: int


def batches(source: Opened, table: Table) -> Iterator[RowBatch]:
    """Read a Parquet file."""
    n = 0
    with _windable(source) as file:
        decoded = _decoded if table.limits.memory is None else _decoded_apart
        with closing(decoded(file, table.limits)) as parts:
            header = cast(Header, next(parts))
            take_header(header.names, header.faults, table)
            for batch in parts:
                n += len(batch)
                table.limits.check_rows(n)
                if source.n_bytes is not None:
                    source.meter.n_read = source.n_bytes * min(n, header.n_rows) // max(header.n_rows, 1)
                yield RowBatch(np.arange(n + 1 - len(batch), n + 1), by_known_name(batch, table))
    if len(header.faults) < len(header.names):
        _check_number(header.n_rows, n)


def heads(path: Path) -> list[str]:
    """Read the names of a Parquet file's columns."""
    from pyarrow import parquet

    with _refusing_damage():
        return list(parquet.read_schema(path).names)


def text_batches(path: Path, limits: Limits) -> Iterator[Any]:
    """Read a Parquet file with any columns: batches of columns of text, null where null or empty."""
    with path.open("rb") as file:
        with _refusing_damage():
            parquet = _opened(file, limits)
            footer, schema = parquet.metadata, parquet.schema_arrow
        if faults := list(kind_faults(schema)):
            raise FlatFileError(faults)
        n = 0
        for batch in _texts(parquet, schema.names, limits):
            n += len(batch)
            yield batch
        _check_number(footer.num_rows, n)


def _check_number(n_in_footer: int, n: int) -> None:
    if n != n_in_footer:
        raise refuse(f"the file says that it has {n_in_footer:,} rows, and has {n:,}; copy it again")


def take_header(names: list[str], faults: list[Fault], table: Table) -> None:
    """State the columns of a file, under the names by which they are known, and note those at fault."""
    if wrong := header_faults(names):
        raise FlatFileError(wrong)
    table.aliases |= aliases_in(names)
    table.state_header(table.aliases.get(name, name) for name in names)
    for fault in faults:
        table.excuse(table.aliases.get(fault.field or "", fault.field or ""))
        table.faults.add(fault)


def by_known_name(batch: Any, table: Table) -> dict[str, Any]:
    """Return the columns of a batch under the names by which they are known."""
    named = zip(batch.schema.names, batch.columns, strict=True)
    return {table.aliases.get(name, name): column for name, column in named}


def kind_faults(schema: Any) -> Iterator[Fault]:
    """Name columns that cannot be text."""
    for name, kind in zip(schema.names, schema.types, strict=True):
        if not can_be_text(kind):
            shown = printable(excerpt(str(kind)))
            kinds = "text, numbers, true and false, dates and times are read"
            yield Fault(None, name, None, f"the column's type is {shown}; {kinds}; delete or convert it")


def _opened(file: Any, limits: Limits) -> Any:
    from pyarrow import parquet

    footer = parquet.read_metadata(file)
    limits.check_rows(footer.num_rows)
    limits.check_cells(n_cells := footer.num_rows * footer.num_columns)
    limits.check_ratio(n_cells, file.seek(0, os.SEEK_END))  # a comma a cell
    most = max(MAX_PIECES // max(footer.num_columns, 1), footer.num_rows // GROUP_ROWS)
    if (n := footer.num_row_groups) > most:
        raise refuse(f"the file has {n:,} row groups; write it again with at most {most:,}")
    limits.check_bytes(sum(max(footer.row_group(i).total_byte_size, 0) for i in range(footer.num_row_groups)))
    schema = footer.schema.to_arrow_schema()
    named = [name for name, kind in zip(schema.names, schema.types, strict=True) if is_text(kind)]
    file.seek(0)
    return parquet.ParquetFile(file, metadata=footer, read_dictionary=named, page_checksum_verification=True)


def _decoded(file: Any, limits: Limits) -> Generator[Any]:
    """Yield the header, then batches of text of all columns that can be text."""
    with _refusing_damage():
        file.seek(0)
        parquet = _opened(file, limits)
        schema = parquet.schema_arrow
    if wrong := header_faults(schema.names):
        raise FlatFileError(wrong)
    bad = list(kind_faults(schema))
    yield Header(schema.names, bad, parquet.metadata.num_rows)
    at_fault = {fault.field for fault in bad}
    yield from _texts(parquet, [name for name in schema.names if name not in at_fault], limits)


def _texts(parquet: Any, names: list[str], limits: Limits) -> Iterator[Any]:
    """Decode batches of text.

    A dictionary of a few texts can stand for any number of them. So texts stay in their dictionaries until
    their length is known, and it is that which is limited.
    """
    n_bytes = 0
    with _refusing_damage():
        for batch in parquet.iter_batches(N_RECORDS, columns=names, use_threads=False):
            batch = batch.select(names)  # a name selects all that begin with it and a point, too
            batch.validate(full=True)
            size = sum(map(n_bytes_as_text, batch.columns))
            n_bytes += size
            limits.check_bytes(n_bytes)
            step = max(1, len(batch) * BATCH_BYTES // max(size, BATCH_BYTES))
            for start in range(0, len(batch), step):
                texts = list(map(column_as_text, batch.slice(start, step).columns))
                yield pa.RecordBatch.from_arrays(texts, batch.schema.names)


def _decoded_apart(file: Any, limits: Limits) -> Generator[Any]:
    """Let another process yield what `_decoded` does, which may take `limits.memory`."""
    code = f"from {__name__} import decode; decode()"
    path = os.pathsep.join(filter(None, sys.path))
    environment = os.environ | {"PYTHONPATH": path, "PYTHONSAFEPATH": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment["ARROW_DEFAULT_MEMORY_POOL"] = "system"  # its own reserves a gibibyte of addresses
    with _with_number(file) as source, TemporaryFile() as refusal:
        process = subprocess.Popen(
            [sys.executable, "-c", code, json.dumps(vars(limits))],
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=refusal,
            env=environment,
        )
        assert process.stdout
        has_ended = False
        try:
            if (line := process.stdout.readline()).endswith(b"\n"):
                names, faults, n_rows = json.loads(line)
                yield Header(names, [Fault(*one) for one in faults], n_rows)
                with pa.ipc.open_stream(process.stdout) as decoded:
                    yield from decoded
            has_ended = True
        except (pa.ArrowInvalid, OSError):  # cut off: the process has died
            has_ended = True
        finally:
            if not has_ended:
                process.kill()
            process.stdout.close()
            code_of_exit = process.wait()
        refusal.seek(0)
        if code_of_exit == REFUSED:
            last = refusal.read().splitlines()[-1]
            raise FlatFileError([Fault(*one) for one in json.loads(last)])
        if code_of_exit:
            raise refuse("reading the file takes too much memory or time; save it as CSV")


@contextmanager
def _with_number(file: Any) -> Iterator[Any]:
    """Hand on a file, or a copy where the system has no number for it."""
    try:
        file.fileno()
    except OSError:
        with TemporaryFile() as copy:
            file.seek(0)
            copyfileobj(file, copy)
            copy.flush()
            yield copy
    else:
        yield file


def decode() -> None:
    """Decode the standard input, and write to the standard output a line with the header, then batches."""
    import resource

    limits = Limits(**json.loads(sys.argv[1]))
    assert limits.memory
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory, limits.memory))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))
    pa.set_cpu_count(1)
    out: Any = None
    try:
        parts = _decoded(sys.stdin.buffer, limits)
        header = cast(Header, next(parts))
        sys.stdout.buffer.write(json.dumps(astuple(header)).encode() + b"\n")
        for batch in parts:
            out = out or pa.ipc.new_stream(sys.stdout.buffer, batch.schema)
            out.write_batch(batch)
    except FlatFileError as error:
        sys.stderr.write("\n" + json.dumps([astuple(one) for one in error.faults]))
        raise SystemExit(REFUSED) from None
    (out or pa.ipc.new_stream(sys.stdout.buffer, pa.schema([]))).close()


@contextmanager
def _refusing_damage() -> Iterator[None]:
    try:
        yield
    except FlatFileError:
        raise
    except MemoryError:
        raise refuse("reading the file takes too much memory; save it as CSV") from None
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError) as error:
        why = printable(" ".join(str(error).split())[:200])
        if "bad_alloc" in why:
            raise refuse("reading the file takes too much memory; save it as CSV") from None
        if why.startswith("Not yet implemented"):
            raise refuse("the Parquet file is encoded in a way that is not read; save it as CSV") from None
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
