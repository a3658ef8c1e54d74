"""Files made to exhaust the reader: each is read or refused in 2 GiB of address space and 30 s of one core.

pyarrow's own pool of memory reserves a gibibyte of addresses at its first use, so here it takes the system's.
"""

import base64
import gzip
import io
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import repeat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from analytics.flat_file import DELIVERED, FILE, FlatFileError, read
from analytics.tables import read_table

AS_OF = datetime(2026, 1, 1, tzinfo=UTC)
ROOT = Path(__file__).resolve().parents[2]
READER = """
import resource, sys
from datetime import UTC, datetime
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
from analytics.flat_file import FlatFileError, read
try:
    print(read(Path(sys.argv[1]), as_of=datetime(2026, 1, 1, tzinfo=UTC)).n_rows, "rows")
except FlatFileError as error:
    print(len(error.faults), "of", error.n_faults, "faults:", error)
"""
PATIENCE = 120
COLUMNS = ["benchmark", "agent", "scaffold", "model", "submitted_at", "task", "trial", "outcome"]
HEADER = (",".join(COLUMNS) + "\n").encode()
MB = 1_000_000


def written(path: Path, parts: Iterator[bytes], level: int | None = None) -> Path:
    with path.open("wb") if level is None else gzip.open(path, "wb", level) as file:
        for part in parts:
            file.write(part)
    return path


def said_of(path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", READER, str(path)],
        cwd=ROOT,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    path.unlink()
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout) < 2000
    return done.stdout


def numbered(pattern: str, n: int) -> Iterator[bytes]:
    """The pattern with 0 … n − 1 in it, a thousand at a time."""
    for start in range(0, n, 1000):
        yield "".join([pattern.format(i) for i in range(start, min(start + 1000, n))]).encode()


def each_another_fault(n: int) -> Iterator[bytes]:
    """Each row breaks a rule in another column by another value."""
    good = ["b", "a", "s", "m", "2025-03-04", "t", "1", "1"]
    for start in range(0, n, 1000):
        rows = []
        for i in range(start, start + 1000):
            row = [*good, str(i)]
            row[i % 8] = f" {i}"
            rows.append(",".join(row))
        yield ("\n".join(rows) + "\n").encode()


def wide(value: bytes, n: int) -> Iterator[bytes]:
    yield HEADER.strip() + b"".join(b",c%d" % i for i in range(56)) + b"\n"
    for i in range(n):
        yield b"b,a,s,m,,t,%d,1" % i + (b"," + value) * 56 + b"\n"


CASES = {
    "newlines in gzip": (
        lambda: repeat(b"\n" * MB, 500),
        6,
        "starts with 1,048,576 bytes of blank lines; delete them",
    ),
    "a header and newlines in gzip": (
        lambda: iter([HEADER, *repeat(b"\n" * MB, 500)]),
        6,
        "more than 250 times larger",
    ),
    "a header and newlines": (lambda: iter([HEADER, *repeat(b"\n" * MB, 500)]), None, "the file has no rows"),
    "line ends of another kind": (
        lambda: iter([HEADER, *repeat(b"\r" * MB, 100)]),
        None,
        "the file has no rows",
    ),
    "an object and newlines": (
        lambda: iter([b"{}\n", *repeat(b" \n" * MB, 250)]),
        None,
        "8 of 8 faults",
    ),
    "uneven rows": (
        lambda: iter([HEADER, *repeat(b"x\n" * 1000, 3000)]),
        None,
        "1000 of 3000000 faults",
    ),
    "uneven rows in quotes": (
        lambda: iter([HEADER, *repeat(b'"x,\n"\n' * 1000, 3000)]),
        None,
        "1000 of 3000000 faults",
    ),
    "faulty outcomes": (
        lambda: iter([HEADER, *numbered("b,a,s,m,,t,1,{0}.5\n", 3_000_000)]),
        None,
        "faults: ",
    ),
    "each another fault": (
        lambda: iter([HEADER.strip() + b",note\n", *each_another_fault(3_000_000)]),
        None,
        "1000 of ",
    ),
    "one key": (
        lambda: iter([HEADER, *repeat(b"b,a,s,m,,t,1,1\n" * 1000, 10_000)]),
        None,
        "1000 of 9999999 faults",
    ),
    "too many rows": (
        lambda: iter([HEADER, *repeat(b"b,a,s,m,,t,1,1\n" * 10_000, 3_000)]),
        None,
        "more than 10,000,000 rows",
    ),
    "a quote never closed": (
        lambda: iter([HEADER, b'b,a,s,m,,"', *repeat(b"x" * MB, 500)]),
        None,
        "line 2: a quote opens and does not close",
    ),
    "a field without end": (
        lambda: iter([HEADER, b"b,a,s,m,,", *repeat(b"x" * MB, 500)]),
        None,
        "row 1 is longer than 1,048,576 bytes",
    ),
    "more than is allowed": (
        lambda: iter([HEADER, *numbered("b,a,s,m,,t,{0:500},1\n", 1_100_000)]),
        None,
        "more than 536,870,912 bytes",
    ),
    "names without end": (
        lambda: iter([HEADER, *numbered("b,a{0},s,m,,t{0},1,1\n", 3_000_000)]),
        None,
        "more than 2,000,000 characters",
    ),
    "metadata in 56 columns": (lambda: wide(b"x" * 4096, 2200), None, "2200 rows"),
    "metadata too long in 56 columns": (lambda: wide(b"x" * 16_000, 550), None, "1000 of 30800 faults"),
    "lines that are no JSON": (
        lambda: iter([b"{}\n", *repeat(b"x\n" * 1000, 3000)]),
        None,
        "1000 of 3000008 faults",
    ),
    "objects that break off": (lambda: repeat(b'{"a\n' * 1000, 3000), None, "1000 of 3000000 faults"),
    "empty objects": (lambda: repeat(b"{}\n" * 1000, 3000), None, "8 of 8 faults"),
    "other fields in each record": (
        lambda: numbered('{{"k{0}": 1}}\n', 3_000_000),
        None,
        "more than 64 fields by name",
    ),
    "deep objects": (lambda: repeat(b'{"a": ' * 90_000 + b"\n", 500), None, "500 of 500 faults"),
    "many short lists": (
        lambda: repeat(b'{"a": [' + b"[]," * 9_000 + b"0]}\n", 2_000),
        None,
        "1000 of 2008 faults",
    ),
    "deep lists": (
        lambda: repeat(b'{"a": ' + b"[" * 1200 + b"]" * 1200 + b"}\n", 100_000),
        None,
        "1000 of 100000 faults",
    ),
    "lists of lists": (
        lambda: repeat(b'{"a": [' + b"[]," * 300_000 + b"0]}\n", 300),
        None,
        "300 of 300 faults",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_hostile_text_is_refused_in_bounds(tmp_path, case):
    parts, level, words = CASES[case]
    assert words in said_of(written(tmp_path / "file.csv", parts(), level))


@pytest.mark.parametrize("case", ["newlines in gzip", "uneven rows", "a quote never closed"])
def test_a_hostile_text_is_refused_at_once(tmp_path, case):
    parts, level, words = CASES[case]
    assert words in said_of(written(tmp_path / "file.csv", parts(), level))


def parquet_of(path: Path, n: int, note: pa.Array, **options) -> Path:
    """A file of n equal rows; `note` is their one value of metadata."""
    texts = dict(zip(COLUMNS[:6], ("b", "a", "s", "m", "2025-03-04", "t"), strict=True))
    with parquet.ParquetWriter(path, _table(texts, 1, note).schema, **options) as writer:
        for start in range(0, n, 50_000):
            writer.write_table(_table(texts, min(50_000, n - start), note))
    return path


def _table(texts: dict[str, str], n: int, note: pa.Array) -> pa.Table:
    def repeated(value: pa.Array) -> pa.DictionaryArray:
        return pa.DictionaryArray.from_arrays(np.zeros(n, np.int32), value)

    columns = {name: repeated(pa.array([text])) for name, text in texts.items()}
    numbers = {"trial": pa.array(np.zeros(n, np.int64)), "outcome": pa.array(np.ones(n))}
    return pa.table(columns | numbers | {"note": repeated(note)})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "size", "words"),
    [
        (10_000_000, 4000, "more than 536,870,912 bytes"),
        (100_000, 1_000_000, "more than 536,870,912 bytes"),
        (11_000_000, 1, "more than 10,000,000 rows"),
        (1, 600_000_000, "more than 536,870,912 bytes"),
    ],
)
def test_parquet_that_grows_is_refused_in_bounds(tmp_path, n, size, words):
    path = parquet_of(tmp_path / "file.parquet", n, pa.array(["x" * size]), compression="zstd")
    assert path.stat().st_size < 10 * MB
    assert words in said_of(path)


@pytest.mark.slow
def test_parquet_lists_that_grow_are_not_read(tmp_path):
    """A list is no value of a flat file; its texts are never decoded."""
    n = 100_000
    words = pa.DictionaryArray.from_arrays(np.zeros(n, np.int32), pa.array(["x" * MB]))
    note = pa.ListArray.from_arrays(np.arange(n + 1, dtype=np.int32), words)
    table = _table(dict.fromkeys(COLUMNS[:6], "x"), n, pa.array(["y"]))
    table = table.set_column(table.column_names.index("note"), "note", note)
    parquet.write_table(table, tmp_path / "file.parquet", compression="zstd")
    assert "the column's type is list" in said_of(tmp_path / "file.parquet")


def a_dictionary_that_is_called_a_view(path):
    """One text of 1 MB, 8,000 times, in a column that the schema says holds no dictionary."""
    n, text = 8_000, pa.array(["z" * 1_000_000])
    task = pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), text)
    table = pa.table({"agent": ["A"] * n, "task": task, "outcome": [1] * n})
    stated = pa.schema([("agent", pa.string()), ("task", pa.string_view()), ("outcome", pa.int64())])
    with parquet.ParquetWriter(path, table.schema, write_statistics=False, store_schema=False) as writer:
        schema = base64.b64encode(stated.serialize().to_pybytes()).decode()
        writer.add_key_value_metadata({"ARROW:schema": schema})
        writer.write_table(table)


def a_footer_that_lies(path):
    """A thousand texts of 1 MB that differ, said to be 8 bytes long."""
    table = pa.table({"agent": [f"{i:04}" + "a" * 999_000 for i in range(1_000)], "outcome": [1] * 1_000})
    how = {"compression": "zstd", "use_dictionary": False, "write_statistics": False, "store_schema": False}
    parquet.write_table(table, path, **how)
    group, data = parquet.read_metadata(path).row_group(0), path.read_bytes()
    sizes = {group.total_byte_size, *(group.column(i).total_uncompressed_size for i in range(2))}
    for number in (as_varint(size) for size in sizes):
        if len(number) > 3:
            data = data.replace(number, bytes([0x90] + [0x80] * (len(number) - 2) + [0]))
    path.write_bytes(data)
    assert parquet.read_metadata(path).row_group(0).total_byte_size < 100


def a_footer_of_many_pieces(path):
    """Three bytes for each, 900,000 of them, that take 500 times as much once they are read."""
    root, task = b"\x48\x06schema\x15\x02\x00", b"\x15\x0c\x25\x02\x18\x04task\x25\x00\x00"
    pieces = b"\x19\xfc\xa0\xf7\x36" + b"\x26\x00\x00" * 900_000 + b"\x16\x00\x16\x00\x00"
    footer = b"\x15\x02\x19\x2c" + root + task + b"\x16\x00\x19\x1c" + pieces + b"\x00"
    path.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def as_varint(n):
    n, parts = n << 1, []
    while n > 127:
        n, part = n >> 7, n & 127 | 128
        parts.append(part)
    return bytes([*parts, n])


@pytest.mark.parametrize(
    "make", [a_dictionary_that_is_called_a_view, a_footer_that_lies, a_footer_of_many_pieces]
)
def test_parquet_of_a_stranger_is_decoded_within_bounds(tmp_path, make):
    path = tmp_path / "a.parquet"
    make(path)
    assert path.stat().st_size < 3_000_000
    little = replace(DELIVERED, memory=1 << 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(FlatFileError, match=r"too much memory|more than 536,870,912 bytes|column is missing"):
        read(path, as_of=AS_OF, limits=little)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10  # KiB


def test_parquet_of_long_texts_is_decoded_in_pieces(tmp_path):
    path = parquet_of(tmp_path / "file.parquet", 9_000, pa.array(["x" * 59_000]), compression="zstd")
    assert path.stat().st_size < 4_000
    with pytest.raises(FlatFileError, match="the rows hold 531,036,000 bytes of metadata"):
        read(path, as_of=AS_OF, limits=replace(DELIVERED, memory=700 << 20))


def test_parquet_of_more_cells_than_its_bytes_can_hold_is_not_decoded(tmp_path):
    blank = pa.DictionaryArray.from_arrays(np.zeros(1_000_000, np.int32), pa.array([""]))
    parquet.write_table(pa.table({f"c{i}": blank for i in range(40)}), tmp_path / "file.parquet")
    with pytest.raises(FlatFileError, match="250 times larger; send it uncompressed, or as CSV"):
        read(tmp_path / "file.parquet", as_of=AS_OF, limits=FILE)


def constants(others: dict[str, str], n: int) -> pa.Table:
    texts = dict(zip(COLUMNS, ("b", "a", "s", "m", "", "t", "1", "1"), strict=True)) | others
    same = np.zeros(n, np.int32)
    return pa.table(
        {name: pa.DictionaryArray.from_arrays(same, pa.array([text])) for name, text in texts.items()}
    )


def test_a_stranger_sends_only_so_many_cells_whatever_stands_in_them(tmp_path):
    """Each column of a file takes memory for each row, and a constant one hardly any byte of Parquet."""
    parquet.write_table(constants({f"c{i}": "" for i in range(56)}, 400_000), tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").stat().st_size < 100_000
    with gzip.open(tmp_path / "a.csv.gz", "wb", 6) as file:
        file.writelines(wide(b"", 10))
        file.write((b"b,a,s,m,,t,1,1" + b"," * 56 + b"\n") * 320_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name in ("a.parquet", "a.csv.gz"):
        with pytest.raises(FlatFileError, match=r"more than 20,000,000 cells \(rows × columns\); leave out"):
            read(tmp_path / name, as_of=AS_OF, limits=DELIVERED)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 << 10  # KiB


def test_metadata_of_a_stranger_count_with_the_names_of_their_columns(tmp_path):
    """Each row is stored with them."""
    notes = {"n" * 254 + f"{i}": "x" for i in range(3)}
    parquet.write_table(constants(notes, 100_000), tmp_path / "a.parquet")
    with pytest.raises(FlatFileError, match="the rows hold 76,800,000 bytes of metadata, 25,600,000 of them"):
        read(tmp_path / "a.parquet", as_of=AS_OF, limits=DELIVERED)


def test_a_parquet_file_of_very_many_groups_of_rows_is_not_decoded(tmp_path):
    table = _table(dict.fromkeys(COLUMNS[:6], "x"), 3_000, pa.array(["y"]))
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=1)
    assert table.num_columns * 3_000 > 20_000
    rule = f"has 3,000 row groups; write it again with at most {20_000 // table.num_columns:,}"
    for limits in (DELIVERED, FILE):
        with pytest.raises(FlatFileError, match=rule):
            read(tmp_path / "a.parquet", as_of=AS_OF, limits=limits)


def rows_of_parquet(tmp_path, n):
    rows = [
        {"benchmark": "b", "agent": f"a{i % 3}", "scaffold": "s", "model": "m", "submitted_at": "2025-01-02"}
        | {"task": f"t{i}", "trial": i % 2 + 1, "outcome": i % 5 / 4}
        for i in range(n)
    ]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    return (tmp_path / "a.parquet").read_bytes()


@pytest.mark.parametrize("memory", [None, 2 << 30])
@pytest.mark.parametrize("n", [24_999, 25_001])
def test_a_file_has_as_many_rows_as_it_says(tmp_path, memory, n):
    data = rows_of_parquet(tmp_path, 25_000)
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    place = data.index(as_varint(25_000), footer)  # the number for the whole file comes first
    lying = data[:place] + as_varint(n) + data[place + 3 :]
    with pytest.raises(FlatFileError, match=f"says that it has {n:,} rows, and has 25,000; copy it again"):
        read(io.BytesIO(lying), as_of=AS_OF, limits=replace(FILE, memory=memory))
    (tmp_path / "a.parquet").write_bytes(lying)
    with pytest.raises(FlatFileError, match=f"says that it has {n:,} rows, and has 25,000; copy it again"):
        read_table(tmp_path / "a.parquet", as_of=AS_OF)
    with pytest.raises(FlatFileError, match="more than 24,999 rows"):
        read(io.BytesIO(lying), as_of=AS_OF, limits=replace(FILE, memory=memory, n_rows=24_999))


@pytest.mark.parametrize("memory", [None, 2 << 30])
def test_a_file_of_which_no_column_can_be_text(tmp_path, memory):
    parquet.write_table(pa.table({"task": [[1], [2]]}), tmp_path / "a.parquet")
    with pytest.raises(FlatFileError) as refused:
        read(tmp_path / "a.parquet", as_of=AS_OF, limits=replace(FILE, memory=memory))
    (fault,) = (fault for fault in refused.value.faults if fault.field == "task")
    assert fault.rule.startswith("the column's type is list<element: int64>; ")


def test_a_process_that_dies_while_it_writes(tmp_path, monkeypatch):
    """Killed in mid-batch, as by the system where memory is short."""
    data, open_stream = rows_of_parquet(tmp_path, 250_000), pa.ipc.open_stream

    def killed(source):
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        (child,) = (pk for pk in children if b"decode" in Path(f"/proc/{pk}/cmdline").read_bytes())
        os.kill(int(child), signal.SIGKILL)
        return open_stream(source)

    monkeypatch.setattr(pa.ipc, "open_stream", killed)
    with pytest.raises(FlatFileError, match="takes too much memory or time; save it as CSV"):
        read(io.BytesIO(data), as_of=AS_OF, limits=replace(FILE, memory=2 << 30))


def test_a_process_that_decodes_gives_what_this_one_does(tmp_path):
    data = rows_of_parquet(tmp_path, 25_000)
    here = read(io.BytesIO(data), as_of=AS_OF)
    for source in (tmp_path / "a.parquet", io.BytesIO(data)):
        apart = read(source, as_of=AS_OF, limits=replace(FILE, memory=2 << 30))
        assert (apart.agents, apart.tasks, apart.trial.tolist()) == (
            here.agents,
            here.tasks,
            here.trial.tolist(),
        )
        assert (apart.outcome == here.outcome).all()
    with pytest.raises(FlatFileError, match="damaged or incomplete"):
        read(io.BytesIO(data[:-9]), as_of=AS_OF, limits=replace(FILE, memory=2 << 30))
    broken = bytearray(data)
    broken[len(data) // 3] ^= 255
    with pytest.raises(FlatFileError, match="damaged or incomplete"):
        read(io.BytesIO(bytes(broken)), as_of=AS_OF, limits=replace(FILE, memory=2 << 30))
