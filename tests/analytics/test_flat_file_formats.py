"""All formats of the flat file say the same, batch borders change nothing, and damaged bytes are refused."""

import csv
import gzip
import io
import json
import random
import re
import sys
from dataclasses import fields, replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from analytics.flat_file import (
    FILE,
    FlatFile,
    FlatFileError,
    csv_rows,
    from_records,
    json_rows,
    parquet_rows,
    read,
    streams,
)
from analytics.flat_file.values import numbers
from analytics.names import without_case

AS_OF = datetime(2026, 1, 1, tzinfo=UTC)


def rows_of(n: int) -> list[dict[str, str]]:
    """Rows with every kind of column, some fields empty, names with quotes and commas."""
    return [
        {
            "benchmark": "b",
            "agent": f'agent "{i % 7}", é',
            "scaffold": f"s{i % 7 % 3}",
            "model": f"m{i % 7 % 2}",
            "submitted_at": ("2025-03-04", "2024-04", "")[i % 7 % 3],
            "task": f"t{i % 11}",
            "trial": str(i // 77),
            "outcome": "" if i % 13 == 5 else str(i % 5 / 4),
            "valid": "false" if i % 13 == 5 else "",
            "category": "c" if i % 11 < 5 else "",
            "group": f"g{i % 11 % 4}" if i % 11 else "",
            "prompt_variant": "",
            "judge": "j" if i % 2 else "",
            "temperature": "0.70" if i % 3 else "0.7",
            "run": "",
            "cost_usd": str(i / 8),
            "n_input_tokens": str(i * 100) if i % 4 else "",
            "seconds_execution": "",
            "note": f"note {i}" if i % 2 else "",
        }
        for i in range(n)
    ]


def as_csv(rows: list[dict[str, str]], quoting: int = csv.QUOTE_MINIMAL) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(rows[0]), quoting=quoting)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def as_ndjson(rows: list[dict[str, str]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def as_parquet(columns: dict[str, object]) -> bytes:
    out = io.BytesIO()
    parquet.write_table(pa.table(columns), out)
    return out.getvalue()


def text_parquet(rows: list[dict[str, str]]) -> bytes:
    return as_parquet({name: [row[name] or None for row in rows] for name in rows[0]})


def parse(data: bytes, **options) -> FlatFile:
    return read(io.BytesIO(data), as_of=AS_OF, **options)


def assert_same(one: FlatFile, other: FlatFile) -> None:
    for field in fields(FlatFile):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
        elif field.name == "measured":
            assert sorted(a) == sorted(b)
            for name, values in a.items():
                np.testing.assert_array_equal(values, b[name])
        elif field.name == "metadata":
            assert {k: v.to_pylist() for k, v in a.items()} == {k: v.to_pylist() for k, v in b.items()}
        elif field.name != "row_note":  # CSV alone has a header that no row counts
            assert a == b


def outcome_of(data: bytes, **options) -> FlatFile | None:
    """What `read` makes of bytes that may be anything: a file, or a refusal and nothing else."""
    try:
        return parse(data, **options)
    except FlatFileError as error:
        refusal = error
    assert 1 <= len(refusal.faults) <= refusal.n_faults
    assert str(refusal)
    return None


# The same rows in every format


def test_every_format_gives_the_same_file():
    rows = rows_of(300)
    plain = parse(as_csv(rows))
    assert plain.n_rows == 300
    assert len(plain.settings) == 2
    for data in (
        as_csv(rows, csv.QUOTE_ALL),
        gzip.compress(as_csv(rows)),
        as_ndjson(rows),
        gzip.compress(as_ndjson(rows)),
        text_parquet(rows),
    ):
        assert_same(plain, parse(data))
    assert_same(plain, from_records(rows, constants={}, as_of=AS_OF))


def test_constants_are_the_same_as_a_column_of_equal_values():
    rows = [row for row in rows_of(300) if row["agent"].startswith('agent "3"')]
    constant = ("benchmark", "agent", "scaffold", "model", "submitted_at", "run")
    records = [{name: value for name, value in row.items() if name not in constant} for row in rows]
    assert_same(
        parse(as_csv(rows)),
        from_records(records, constants={name: rows[0][name] for name in constant}, as_of=AS_OF),
    )


def test_json_may_leave_out_what_is_empty_and_write_numbers():
    rows = rows_of(300)
    sparse = [{name: value for name, value in row.items() if value or name == "run"} for row in rows]
    for row in sparse:
        row["trial"] = int(row["trial"])
        row["cost_usd"] = float(row["cost_usd"])
        if "valid" in row:
            row["valid"] = False
    sparse[0] |= {"prompt_variant": None, "seconds_execution": None, "valid": None}
    assert_same(parse(as_csv(rows)), parse(as_ndjson(sparse)))
    assert_same(parse(as_csv(rows)), from_records(sparse, constants={}, as_of=AS_OF))


def test_parquet_columns_may_have_their_own_types():
    rows = rows_of(300)
    columns: dict[str, object] = {name: [row[name] or None for row in rows] for name in rows_of(1)[0]}
    dates = {"2025-03-04": date(2025, 3, 4), "2024-04": date(2024, 4, 1), "": None}
    columns |= {
        "trial": pa.array([int(row["trial"]) for row in rows], pa.int16()),
        "outcome": pa.array(
            [float(row["outcome"]) if row["outcome"] else None for row in rows], pa.float32()
        ),
        "valid": [None if row["valid"] == "" else False for row in rows],
        "submitted_at": [dates[row["submitted_at"]] for row in rows],
        "agent": pa.array([row["agent"] for row in rows]).dictionary_encode(),
        "task": pa.array([row["task"] for row in rows], pa.large_string()),
        "temperature": [Decimal(row["temperature"]) for row in rows],
        "cost_usd": [float(row["cost_usd"]) for row in rows],
        "prompt_variant": pa.nulls(len(rows)),
    }
    expected = parse(
        as_csv([row | {"submitted_at": row["submitted_at"].replace("04-04", "04")} for row in rows])
    )
    read_back = parse(as_parquet(columns))
    assert not read_back.imprecise[0]
    assert read_back.submitted_at.tolist() == expected.submitted_at.tolist()
    for name in ("agent", "task", "setting", "trial", "outcome", "valid"):
        np.testing.assert_array_equal(getattr(read_back, name), getattr(expected, name))


def test_parquet_times_with_a_zone_are_instants():
    row = {name: [value] for name, value in rows_of(1)[0].items() if value}
    at = datetime(2025, 3, 4, 12, 30, 15, 123456, tzinfo=timezone(timedelta(hours=2)))
    for kind in (
        pa.timestamp("us", "Europe/Berlin"),
        pa.timestamp("ns", "UTC"),
        pa.timestamp("ms", "+05:30"),
    ):
        scalar = pa.array([at.replace(microsecond=0)], kind)
        file = parse(as_parquet(row | {"submitted_at": scalar}))
        assert str(file.submitted_at[0]) == "2025-03-04T10:30:15"


def test_a_parquet_column_without_one_text_is_told():
    row: dict[str, object] = {name: [value] for name, value in rows_of(1)[0].items() if value}
    row |= {"task": [["a"]], "note": [b"x"], "outcome": [2.0]}
    with pytest.raises(FlatFileError) as caught:
        parse(as_parquet(row))
    rule = "text, numbers, true and false, dates and times are read; delete or convert it"
    assert [str(fault) for fault in caught.value.faults] == [
        f"task: the column's type is list<element: string>; {rule}",
        f"note: the column's type is binary; {rule}",
        'row 1, outcome "2": an outcome is a number from 0 to 1',
    ]


def test_parquet_headers_obey_the_same_rules():
    table = pa.table([pa.array(["x"])] * 3, names=["agent", "agent", ""])
    out = io.BytesIO()
    parquet.write_table(table, out)
    with pytest.raises(FlatFileError) as caught:
        parse(out.getvalue())
    assert [str(fault) for fault in caught.value.faults] == [
        "agent: 2 columns have this name",
        '"": a column\'s name is not empty (column 3)',
    ]
    with pytest.raises(FlatFileError, match="the file has no rows"):
        parse(as_parquet({name: pa.array([], pa.string()) for name in rows_of(1)[0]}))


def test_the_decompressed_size_of_parquet_can_be_limited():
    rows = [rows_of(1)[0] | {"trial": str(i), "note": "x" * 100} for i in range(2000)]
    data = text_parquet(rows)
    assert parse(data, limits=replace(FILE, n_bytes=10_000_000)).n_rows == 2000
    with pytest.raises(FlatFileError, match="has more than 100,000 bytes after decompression; split it"):
        parse(data, limits=replace(FILE, n_bytes=100_000))
    with pytest.raises(FlatFileError, match="the file has more than 1,999 rows"):
        parse(data, limits=replace(FILE, n_rows=1999))


@pytest.mark.parametrize("write", [as_csv, as_ndjson])
def test_gzip_may_have_members_but_not_too_many_for_its_bytes(write):
    data = write(rows_of(100))
    parts = b"".join(gzip.compress(data[i : i + 100]) for i in range(0, len(data), 100))
    assert parse(parts).n_rows == 100
    rule = r"the gzip data have [\d,]+ members in the first [\d,]+ bytes; compress the file as one"
    with pytest.raises(FlatFileError, match=rule):
        parse(parts + gzip.compress(b"") * 60_000)


def test_the_blocks_of_a_block_compressor_are_read(monkeypatch):
    """A member of bgzip holds 65,280 bytes; rows that are alike make it small."""
    monkeypatch.setattr(streams, "FREE_MEMBERS", 1)
    data = as_csv([rows_of(1)[0] | {"trial": str(i)} for i in range(20_000)])
    blocks = [gzip.compress(data[i : i + 65_280]) for i in range(0, len(data), 65_280)]
    assert (len(blocks), parse(b"".join(blocks)).n_rows) == (len(blocks), 20_000)
    assert len(blocks) > 10


@pytest.mark.parametrize("line", [b'{"a":1\n', b'{"a":}\n', b'{"agent":1}\n', b"{}\n\n"])
def test_no_line_is_parsed_where_there_are_too_many(monkeypatch, line):
    parsed = []
    monkeypatch.setattr(json_rows, "_parsed", parsed.append)
    monkeypatch.setattr(streams, "BLOCK_BYTES", 256)
    for data in (line * 1000, gzip.compress(line * 1000), b"\xef\xbb\xbf" + line * 1000):
        with pytest.raises(FlatFileError, match="the file has more than 900 rows"):
            parse(data, limits=replace(FILE, n_rows=900))
    assert not parsed


def test_lines_that_are_no_rows_are_not_among_too_many():
    rows, limits = as_ndjson(rows_of(200)), replace(FILE, n_rows=200)
    end = json.dumps({"end": True, "n": 200, "sha256": "0" * 64}).encode()
    for data in (rows + end, b"\xef\xbb\xbf\n" + rows.replace(b"\n", b"\n \r\n\t\n") + end + b"\n\n"):
        assert parse(data, limits=limits).n_rows == 200
        assert parse(gzip.compress(data), limits=limits).n_rows == 200
    with pytest.raises(FlatFileError, match="the file has more than 199 rows"):
        parse(rows + end, limits=replace(FILE, n_rows=199))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"a":1', "Expecting ',' delimiter, character 7"),
        ('{"a":}', "Expecting value, character 6"),
        # From Python 3.13 on in other words, at the comma.
        *(
            [('{"a":1,}', "Expecting property name enclosed in double quotes, character 8")]
            if sys.version_info < (3, 13)
            else []
        ),
        ('{"a":1} {}', "Extra data, character 9"),
        ('{"a":1}\x0c', "Extra data, character 8"),
        ('{"a":"\x01"}', "Invalid control character at, character 7"),
    ],
)
def test_a_line_that_is_no_json_is_told_with_its_place(line, told):
    row = as_ndjson(rows_of(1))
    with pytest.raises(FlatFileError) as caught:
        parse(row + line.encode() + b"\n" + row.replace(b"\n", b" \t\r\n"))
    assert [str(fault) for fault in caught.value.faults][:1] == [
        f"row 2: the line is no JSON object ({told})"
    ]


def test_a_number_of_many_digits_is_told_without_a_setting_of_python():
    with pytest.raises(FlatFileError, match=r"row 2: a number has too many digits: 5,000$"):
        parse(as_ndjson(rows_of(1)) + b"-" + b"9" * 5_000 + b"\n")


def test_a_file_name_helps_only_where_the_content_does_not_tell():
    row = as_ndjson(rows_of(1))
    assert parse(row, name="x.csv").n_rows == 1
    assert parse(gzip.compress(as_csv(rows_of(2))), name="x.parquet").n_rows == 2
    with pytest.raises(FlatFileError) as caught:
        parse(b"oops\n" + row, name="x.jsonl")
    assert str(caught.value) == (
        "x.jsonl is refused: row 1: the line is no JSON object (Expecting value, character 1)"
    )


def test_lines_of_json_that_are_no_records_are_told_with_the_others():
    good = json.loads(as_ndjson(rows_of(1)))
    lines = [
        json.dumps(good),
        "{",
        "",
        "[1]",
        '{"agent": "a", "agent": "b"}',
        '{"x": ' + "[" * 100_000 + "]" * 100_000 + "}",
        json.dumps(good | {"trial": "9", "outcome": float("nan")}),
        json.dumps(good | {"trial": "10", "outcome": 1e400}),
        json.dumps(good | {"trial": "11", "note": "\0"}),
    ]
    with pytest.raises(FlatFileError) as caught:
        parse("\n".join(lines).encode())
    assert [str(fault) for fault in caught.value.faults] == [
        "row 2: the line is no JSON object (Expecting property name enclosed in double quotes, character 2)",
        "row 3: a record is a JSON object, not a list",
        'row 4: the key "agent" appears twice in one object',
        "row 5: the record has more than 10,000 opening brackets",
        'row 6, outcome "NaN": an outcome is a number from 0 to 1; leave a missing value empty',
        'row 7, outcome "Infinity": an outcome is a number from 0 to 1',
        r'row 8, note "\x00": text has no control character U+0000',
    ]


def test_no_column_is_missed_where_no_record_can_be_read():
    with pytest.raises(FlatFileError) as caught:
        parse(b'{"benchmark": "b"\n{"agent": "a"\n')
    assert [(fault.row, fault.field) for fault in caught.value.faults] == [(1, None), (2, None)]
    with pytest.raises(FlatFileError) as caught:
        parse(b"{}")
    assert [fault.rule.split(" ")[-1] for fault in caught.value.faults] == ["missing"] * 8


def test_numbers_in_json_keep_their_text():
    row = json.dumps(json.loads(as_ndjson(rows_of(1))) | {"note": 0})
    file = parse(row.replace('"note": 0', '"note": 1.50000000000000000000001').encode())
    assert file.metadata["note"].to_pylist() == ["1.50000000000000000000001"]


def test_a_column_that_comes_late_or_goes_early_is_empty_elsewhere(monkeypatch):
    monkeypatch.setattr(json_rows, "N_RECORDS", 2)
    monkeypatch.setattr(streams, "BLOCK_BYTES", 64)
    rows: list[dict[str, object]] = [{**row, "trial": str(i)} for i, row in enumerate(rows_of(1) * 9)]
    rows[0]["early"] = "e"
    rows[7]["late"] = "l"
    file = parse(as_ndjson(rows))
    assert file.metadata["early"].to_pylist() == ["e", *[None] * 8]
    assert file.metadata["late"].to_pylist() == [*[None] * 7, "l", None]
    del rows[1]["agent"], rows[5]["agent"]
    with pytest.raises(FlatFileError) as caught:
        parse(as_ndjson(rows))
    assert [(fault.row, fault.field) for fault in caught.value.faults] == [(2, "agent"), (6, "agent")]


# Batch borders


@pytest.fixture(params=[64, 256, 1000])
def small_blocks(request, monkeypatch):
    """Every batch holds a handful of rows."""
    monkeypatch.setattr(streams, "BLOCK_BYTES", max(request.param, 256))
    monkeypatch.setattr(json_rows, "N_RECORDS", request.param // 64)
    monkeypatch.setattr(parquet_rows, "N_RECORDS", request.param // 64)


@pytest.mark.parametrize("write", [as_csv, as_ndjson, text_parquet, lambda rows: as_csv(rows, csv.QUOTE_ALL)])
def test_batch_borders_change_nothing(small_blocks, write):
    rows = rows_of(150)
    assert_same(from_records(rows, constants={}, as_of=AS_OF), parse(write(rows)))


@pytest.mark.parametrize("write", [as_csv, as_ndjson, text_parquet])
def test_batch_borders_change_no_fault(monkeypatch, write):
    rows = rows_of(150)
    for i, (name, value) in enumerate(
        [("outcome", "2"), ("task", ""), ("trial", "0"), ("model", "M1"), ("note", "\t")]
    ):
        for row in rows[i * 7 + 3 :: 37]:
            row[name] = value
    seen = []
    for size in (1, 5, 10_000):
        monkeypatch.setattr(streams, "BLOCK_BYTES", 256 * size)
        monkeypatch.setattr(json_rows, "N_RECORDS", size)
        monkeypatch.setattr(parquet_rows, "N_RECORDS", size)
        with pytest.raises(FlatFileError) as caught:
            parse(write(rows))
        seen.append((caught.value.faults, caught.value.n_faults))
    assert seen[0] == seen[1] == seen[2]
    assert len(seen[0][0]) > 15


def test_uneven_rows_keep_their_numbers_across_blocks(monkeypatch):
    monkeypatch.setattr(streams, "BLOCK_BYTES", 256)
    lines = as_csv(rows_of(100)).decode().splitlines()
    for row in (1, 17, 18, 60, 100):
        lines[row] += ",more"
    lines[59] = lines[59].replace("false", "").replace("2025", "1925").replace("2024", "1924")
    lines[62] = lines[62].replace(",b,", ",b,").replace("t", " t", 1)
    with pytest.raises(FlatFileError) as caught:
        parse("\n\n".join(lines).encode())
    result = [fault.row for fault in caught.value.faults]
    assert [row for row in result if row in (1, 17, 18, 60, 100)] == [1, 17, 18, 60, 100]
    assert set(result) <= {1, 17, 18, 59, 60, 62, 100}


@pytest.mark.parametrize("size", range(1, 40))
def test_a_quote_at_any_place_of_a_part_is_judged_alike(size):
    good, bad = b'a,"b ""c"" d",e\n"","",""""\n', b'a,"b",e\n"x"y,z\n'

    def check(data: bytes) -> None:
        quotes, n_lines = streams.Quotes(), 0
        for start in range(0, len(data), size):
            part = data[start : start + size]
            quotes.check(part, n_lines)
            n_lines += part.count(b"\n")
        quotes.close()

    check(good)
    with pytest.raises(FlatFileError, match="line 2: a quote stands inside a field"):
        check(bad)
    with pytest.raises(FlatFileError, match="line 3: a quote opens and does not close"):
        check(good + b'"x,y\n')


def test_utf8_is_judged_alike_wherever_a_part_ends(monkeypatch):
    monkeypatch.setattr(streams, "BLOCK_BYTES", 256)
    rows = [row | {"note": "😀é" * (i % 9)} for i, row in enumerate(rows_of(100))]
    assert parse(as_csv(rows)).n_rows == 100
    data = as_csv(rows)
    cut = data.rindex("😀".encode()) + 2
    line = data.count(b"\n", 0, cut) + 1
    with pytest.raises(FlatFileError, match=f"line {line}: the byte 0xf0 is not UTF-8"):
        parse(data[:cut])
    with pytest.raises(FlatFileError, match=f"line {line}: the byte 0xff is not UTF-8"):
        parse(data[: cut - 2] + b"\xff" + data[cut:])


@pytest.mark.parametrize("field", ["x" * 3000, "\n" * 3000])
def test_a_row_longer_than_a_block_is_refused(monkeypatch, field):
    monkeypatch.setattr(streams, "BLOCK_BYTES", 1000)
    rows = [row | {"note": field if i == 20 else ""} for i, row in enumerate(rows_of(40))]
    with pytest.raises(FlatFileError, match=r"row 21 is longer than 1,000 bytes"):
        parse(as_csv(rows))


def test_a_quote_left_open_over_many_blocks_is_told_with_its_line(monkeypatch):
    monkeypatch.setattr(streams, "BLOCK_BYTES", 256)
    rows = [
        {name: value.replace('"', "").replace(",", "") for name, value in row.items()} for row in rows_of(100)
    ]
    lines = as_csv(rows).decode().splitlines()
    lines[30] = '"' + lines[30]
    with pytest.raises(FlatFileError, match="line 31: a quote opens and does not close"):
        parse("\n".join(lines).encode())


def test_a_long_line_of_json_is_refused(monkeypatch):
    monkeypatch.setattr(streams, "MAX_RECORD_BYTES", 2000)
    with pytest.raises(FlatFileError, match="line 3 is longer than 2,000 bytes"):
        parse(as_ndjson([row | {"note": "x" * 1000 * i} for i, row in enumerate(rows_of(4))]))


def test_a_long_header_is_refused(monkeypatch):
    monkeypatch.setattr(streams, "MAX_RECORD_BYTES", 100)
    with pytest.raises(FlatFileError, match="the header is longer than 100 bytes"):
        parse(as_csv(rows_of(3)))


# Sources


class Unwindable(io.RawIOBase):
    """A source that only goes forward, in small steps."""

    def __init__(self, data: bytes) -> None:
        self.rest = data

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        part = self.rest[: min(len(buffer), 777)]
        self.rest = self.rest[len(part) :]
        buffer[: len(part)] = part
        return len(part)


@pytest.mark.parametrize("write", [as_csv, as_ndjson, text_parquet, lambda rows: gzip.compress(as_csv(rows))])
def test_a_source_may_be_a_path_or_go_only_forward(tmp_path, write):
    rows = rows_of(300)
    path = tmp_path / "rows"
    path.write_bytes(write(rows))
    assert_same(read(path, as_of=AS_OF), parse(write(rows)))
    assert_same(read(Unwindable(write(rows)), as_of=AS_OF), parse(write(rows)))  # type: ignore[arg-type]


def test_a_source_is_left_open_and_a_path_names_the_file(tmp_path):
    source = io.BytesIO(as_csv(rows_of(3)))
    read(source, as_of=AS_OF)
    assert not source.closed
    path = tmp_path / "bad.csv"
    path.write_bytes(b"x\n1\n")
    with pytest.raises(
        FlatFileError, match=r"^bad\.csv is refused for 8 faults: \(1\) benchmark: the column"
    ):
        read(path, as_of=AS_OF)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none.csv", as_of=AS_OF)


@pytest.mark.parametrize("wrap", [lambda data: data, gzip.compress])
def test_an_error_of_the_source_is_no_fault_of_the_file(wrap):
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            part = super().read(min(size or 0, 4096))
            if self.tell() > 8000:
                raise OSError("the disk is gone")
            return part

    note = random.Random(1)
    rows = [row | {"note": str(note.random())} for row in rows_of(1000)]
    with pytest.raises(OSError, match="the disk is gone"):
        read(Broken(wrap(as_csv(rows))), as_of=AS_OF)


@pytest.mark.parametrize("write", [as_csv, as_ndjson, text_parquet, lambda rows: gzip.compress(as_csv(rows))])
def test_progress_grows_to_the_size_of_the_file(monkeypatch, write):
    monkeypatch.setattr(streams, "BLOCK_BYTES", 4096)
    monkeypatch.setattr(json_rows, "N_RECORDS", 10)
    monkeypatch.setattr(parquet_rows, "N_RECORDS", 10)
    data, calls = write(rows_of(300)), []
    parse(data, progress=lambda done, total: calls.append((done, total)))
    done = [n for n, _ in calls]
    assert done == sorted(done)
    assert calls[-1] == (len(data), len(data))
    calls.clear()
    read(Unwindable(data), as_of=AS_OF, progress=lambda *call: calls.append(call))  # type: ignore[arg-type]
    assert calls[-1] == (len(data), None)


@pytest.mark.parametrize("write", [as_csv, as_ndjson, text_parquet])
def test_progress_may_end_the_reading(monkeypatch, write):
    monkeypatch.setattr(streams, "BLOCK_BYTES", 256)

    def stop(done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        parse(write(rows_of(1000)), progress=stop)


# Properties

BLANK = {0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x2800, 0x2D7F, 0x3164, 0xFFA0}
BLANK |= {*range(0xFE00, 0xFE10), 0x1107F, 0x16FE4, 0x1D159, *range(0xE0000, 0xE1000)}
letters = st.characters(exclude_categories=["C", "Z"]).filter(lambda c: ord(c) not in BLANK) | st.just(" ")
names = st.text(letters, min_size=1, max_size=20).map(lambda name: " ".join(name.split())).filter(bool)


def doubled(text):
    """What a hand writes into a CSV, where an apostrophe before a formula's sign is taken for a guard."""
    return f"'{text}" if re.match(r"'+[=+\-@]", text) else text


@given(
    st.lists(st.tuples(names, names, names), min_size=1, max_size=8, unique_by=lambda t: without_case(t[0])),
    st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_any_allowed_names_come_back_unchanged(triples, quote_all):
    scaffolds: dict[str, str] = {}
    rows = [
        {"benchmark": "b", "agent": agent, "model": "m",
         "scaffold": scaffolds.setdefault(without_case(scaffold), scaffold),
         "submitted_at": "", "task": task, "trial": "1", "outcome": "1", "run": task}
        for agent, scaffold, task in triples
    ]  # fmt: skip
    written = [{column: doubled(text) for column, text in row.items()} for row in rows]
    file = parse(as_csv(written, csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL))
    assert file.agents == tuple(sorted(row["agent"] for row in rows))
    assert file.tasks == tuple(sorted({row["task"] for row in rows}))
    for i, row in enumerate(rows):
        agent = file.agent[i]
        assert (file.agents[agent], file.scaffolds[agent]) == (row["agent"], row["scaffold"])
        assert file.tasks[file.task[i]] == file.settings[file.setting[i]].run == row["task"]
    assert_same(file, parse(as_ndjson(rows)))


def by_key(file: FlatFile) -> dict[tuple[object, ...], tuple[object, ...]]:
    return {
        (
            file.agents[file.agent[i]],
            file.tasks[file.task[i]],
            file.settings[file.setting[i]],
            int(file.trial[i]),
        ): (
            None if np.isnan(file.outcome[i]) else float(file.outcome[i]),
            bool(file.valid[i]),
            str(file.submitted_at[i]),
            bool(file.imprecise[i]),
            float(file.measured["cost_usd"][i]),
            file.metadata["note"][i].as_py(),
        )
        for i in range(file.n_rows)
    }


@given(st.randoms(use_true_random=False), st.integers(1, 200))
@settings(max_examples=30, deadline=None)
def test_the_order_of_rows_changes_nothing_in_what_they_say(rng, n):
    rows = rows_of(n)
    file = parse(as_csv(rows))
    rng.shuffle(rows)
    shuffled = parse(as_csv(rows))
    for name in ("benchmark", "agents", "scaffolds", "models", "tasks", "categories", "groups", "settings"):
        assert getattr(file, name) == getattr(shuffled, name)
    assert by_key(file) == by_key(shuffled)


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=300, deadline=None)
def test_numbers_are_read_to_the_last_bit(value):
    texts = [repr(value), f"{value:.17g}", f"{value:.25e}", f"{value:.3f}"]
    assert numbers(pa.array(texts)).tolist() == [float(text) for text in texts]


@given(st.text(st.sampled_from("0123456789.eE+-_ xinfa\n٣"), max_size=12))
@settings(max_examples=1000, deadline=None)
def test_texts_are_numbers_or_nan_and_never_an_error(text):
    (value,) = numbers(pa.array([text], pa.string()))
    if not np.isnan(value):
        assert value == float(text)


# Damage


def test_a_gzip_cut_off_anywhere_is_refused():
    data = gzip.compress(as_csv(rows_of(300)))
    for length in [*range(30), *range(30, len(data) - 20, 37), *range(len(data) - 20, len(data))]:
        with pytest.raises(FlatFileError):
            parse(data[:length])
    assert parse(data).n_rows == 300


def test_a_parquet_cut_off_anywhere_is_refused():
    data = text_parquet(rows_of(100))
    for length in [*range(0, len(data), 101), *range(len(data) - 30, len(data))]:
        with pytest.raises(FlatFileError):
            parse(data[:length])


def test_parquet_text_that_is_not_utf8_is_refused():
    good = text_parquet([row | {"note": "MARKER"} for row in rows_of(1)])
    assert parse(good).metadata["note"].to_pylist() == ["MARKER"]
    with pytest.raises(FlatFileError, match="damaged"):
        parse(good.replace(b"MARKER", b"MARK\xff\xfe"))


@given(
    st.binary(max_size=300),
    st.sampled_from([b"", b"PAR1", b"\x1f\x8b", b"{", b"benchmark,agent\n", b"\xef\xbb\xbf"]),
)
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_refused_and_nothing_else_happens(tail, head):
    assert outcome_of(head + tail) is None
    assert outcome_of(gzip.compress(head + tail)) is None
    assert outcome_of(head + tail, name="x.ndjson") is None


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Change, drop, double or insert some bytes."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(out))
        end = min(len(out), at + rng.randint(1, 9))
        new = bytes(rng.choice([rng.randrange(256), *b'",\n\r\0{}:\\']) for _ in range(rng.randint(0, 4)))
        out[at:end] = rng.choice([new, out[at:end] * 2, b""])
    return bytes(out)


@pytest.mark.slow(each=True)
@pytest.mark.parametrize(
    "write",
    [as_csv, as_ndjson, lambda rows: as_csv(rows, csv.QUOTE_ALL), lambda rows: gzip.compress(as_csv(rows))],
)
def test_files_with_changed_bytes_are_read_or_refused(monkeypatch, write):
    data, rng = write(rows_of(60)), random.Random(20260101)
    monkeypatch.setattr(streams, "BLOCK_BYTES", max(1024, len(data) // 4))
    for _ in range(300):
        outcome_of(mutated(data, rng))


def test_parquet_with_changed_bytes_is_read_or_refused():
    data, rng = text_parquet(rows_of(60)), random.Random(20260101)
    for _ in range(300):
        outcome_of(mutated(data, rng))


def test_the_header_may_hold_line_ends_only_to_be_refused():
    with pytest.raises(FlatFileError) as caught:
        parse(b'benchmark,"ag\nent",x\n1,2,3\n')
    assert r'"ag\nent": ' in str(caught.value)
    assert csv_rows._record_end(b'a,"\n",b\r\n1') == 7
