"""Each rule of the flat file by a literal tiny file, and what a file without fault gives."""

import gzip
import io
import json
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest

from analytics.errors import CoreError
from analytics.flat_file import (
    ALIASES,
    FILE,
    KNOWN,
    MAX_COLUMNS,
    MAX_FAULTS,
    Fault,
    FlatFile,
    FlatFileError,
    RunSetting,
    from_records,
    name_rule,
    read,
)
from analytics.flat_file.values import MAX_NAME_LENGTH

AS_OF = datetime(2026, 1, 1, tzinfo=UTC)
HEADER = "benchmark,agent,scaffold,model,submitted_at,task,trial,outcome"
ROW = {
    "benchmark": "b",
    "agent": "a",
    "scaffold": "s",
    "model": "m",
    "submitted_at": "2025-03-04",
    "task": "t",
    "trial": "1",
    "outcome": "1",
}


def parse(text: str | bytes, **options) -> FlatFile:
    data = text.encode() if isinstance(text, str) else text
    return read(io.BytesIO(data), as_of=AS_OF, **options)


def faults_of(text: str | bytes, **options) -> list[str]:
    with pytest.raises(FlatFileError) as caught:
        parse(text, **options)
    assert caught.value.n_faults == len(caught.value.faults)
    return [str(fault) for fault in caught.value.faults]


def csv_of(*rows: dict[str, str]) -> str:
    """Rows that differ from `ROW` in some fields; trials count up unless given."""
    full = [{**ROW, "trial": str(i), **row} for i, row in enumerate(rows, 1)]
    columns = dict.fromkeys(name for row in full for name in row)
    lines = [",".join(row.get(name, "") for name in columns) for row in full]
    return "\n".join([",".join(columns), *lines, ""])


def as_lines(records: Iterable[object]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def one(**fields: str) -> str:
    return csv_of(fields)


def faults_with(**fields: str) -> list[str]:
    return faults_of(one(**fields))


def record(**fields: object) -> dict[str, object]:
    return {**ROW, **fields}


def record_faults(*records: object, constants: dict[str, object] | None = None) -> list[str]:
    with pytest.raises(FlatFileError) as caught:
        from_records(records, constants=constants or {}, as_of=AS_OF)  # type: ignore[arg-type]
    return [str(fault) for fault in caught.value.faults]


# What a good file gives


def test_a_small_file_gives_names_in_order_and_codes_into_them():
    file = parse(
        f"{HEADER},category,judge,temperature,cost_usd,n_input_tokens,note\n"
        "b,zeta,s1,m1,2025-03-04,t2,1,0.25,,j,0.70,1.5,10.0,hello\n"
        "b,alpha,s2,m2,2025-03,t1,2.0,1,c,,,,,\n"
        "b,alpha,s2,m2,2025-03-04T05:06:07+02:00,t10,0,0,,j,0.7,0,,\n"
    )
    assert (file.n_rows, file.benchmark) == (3, "b")
    assert file.agents == ("alpha", "zeta")
    assert file.scaffolds == ("s2", "s1")
    assert file.models == ("m2", "m1")
    assert file.tasks == ("t1", "t10", "t2")
    assert file.categories == ("c", None, None)
    assert file.settings == (RunSetting(None, None, None, None), RunSetting(None, "j", 0.7, None))
    assert file.agent.tolist() == [1, 0, 0]
    assert file.task.tolist() == [2, 0, 1]
    assert file.setting.tolist() == [1, 0, 1]
    assert file.trial.tolist() == [1, 2, 0]
    assert file.outcome.tolist() == [0.25, 1.0, 0.0]
    assert file.valid.tolist() == [True] * 3
    assert file.submitted_at.astype(str).tolist() == [
        "2025-03-04T00:00:00",
        "2025-03-01T00:00:00",
        "2025-03-04T03:06:07",
    ]
    assert file.imprecise.tolist() == [False, True, False]
    assert sorted(file.measured) == ["cost_usd", "n_input_tokens"]
    np.testing.assert_array_equal(file.measured["cost_usd"], [1.5, np.nan, 0.0])
    np.testing.assert_array_equal(file.measured["n_input_tokens"], [10, np.nan, np.nan])
    assert file.metadata["note"].to_pylist() == ["hello", None, None]
    assert file.aliases == {}


def test_arrays_have_the_stated_types():
    file = parse(one(cost_usd="1", note="x"))
    types = {"agent": "i4", "task": "i4", "setting": "i4", "trial": "i2", "outcome": "f8", "valid": "?"}
    for name, dtype in types.items():
        assert getattr(file, name).dtype == np.dtype(dtype), name
    assert file.submitted_at.dtype == np.dtype("datetime64[s]")
    assert file.imprecise.dtype == np.dtype(bool)
    assert file.measured["cost_usd"].dtype == np.dtype("f8")
    assert isinstance(file.metadata["note"], pa.ChunkedArray)
    assert file.metadata["note"].type == pa.string()


def test_settings_are_sorted_with_none_first_whatever_the_row_order():
    rows = [{"run": "r2"}, {"run": "r1"}, {"judge": "j"}, {}, {"temperature": "1"}, {"prompt_variant": "p"}]
    settings = parse(csv_of(*rows)).settings
    assert settings == parse(csv_of(*reversed(rows))).settings
    assert settings == (
        RunSetting(None, None, None, None),
        RunSetting(None, None, None, "r1"),
        RunSetting(None, None, None, "r2"),
        RunSetting(None, None, 1.0, None),
        RunSetting(None, "j", None, None),
        RunSetting("p", None, None, None),
    )


@pytest.mark.parametrize(
    "name",
    [
        "NA",
        "null",
        "nan",
        "1",
        "a/b#c d?e=f",
        "x y",
        "😀👩🚀",
        "Ünï",
        "-",
        "=1+1",
        "é",
        "a'b",
        "{x}",
        "x" * 255,
    ],
)
def test_unusual_names_come_back_unchanged(name):
    file = parse(one(agent=name, task=name))
    assert file.agents == file.tasks == (name,)


def test_quotes_commas_and_doubled_quotes_are_read():
    file = parse(f'{HEADER}\n"b","say ""hi"", ok",s,m,,"""",1,1\nb,z,s,m,,t,1,1\n')
    assert file.agents == ('say "hi", ok', "z")
    assert file.tasks == ('"', "t")


def test_line_ends_blank_lines_and_a_byte_order_mark_are_accepted():
    plain = parse(csv_of({}, {}))
    for text in (
        "\ufeff" + csv_of({}, {}),
        csv_of({}, {}).replace("\n", "\r\n"),
        "\n\n" + csv_of({}, {}).replace("\n", "\n\n"),
        csv_of({}, {}).rstrip("\n"),
        "\ufeff" + csv_of({}, {}).replace("agent", '"agent"', 1),
    ):
        file = parse(text)
        assert (file.n_rows, file.trial.tolist()) == (2, plain.trial.tolist())


def test_a_date_may_be_missing_and_is_then_imprecise():
    file = parse(one(submitted_at=""))
    assert np.isnat(file.submitted_at[0])
    assert file.imprecise.tolist() == [True]


@pytest.mark.parametrize(
    ("text", "at", "imprecise"),
    [
        ("2024-04-30", "2024-04-30T00:00:00", False),
        ("2024-04", "2024-04-01T00:00:00", True),
        ("2024", "2024-01-01T00:00:00", True),
        ("2026", "2026-01-01T00:00:00", True),
        ("2024-04-30T12:30", "2024-04-30T12:30:00", False),
        ("2024-04-30 12:30:15.123456789", "2024-04-30T12:30:15", False),
        ("2024-04-30T12:30:15Z", "2024-04-30T12:30:15", False),
        ("2024-04-30T23:30:15-02:30", "2024-05-01T02:00:15", False),
        ("2024-04-30T12:30:15+0200", "2024-04-30T10:30:15", False),
        ("2024-04-30T12:30:15+02", "2024-04-30T10:30:15", False),
        ("1990-01-01", "1990-01-01T00:00:00", False),
        ("2024-02-29", "2024-02-29T00:00:00", False),
    ],
)
def test_dates_are_read(text, at, imprecise):
    file = parse(one(submitted_at=text))
    assert str(file.submitted_at[0]) == at
    assert file.imprecise.tolist() == [imprecise]


def test_as_of_in_another_zone_is_the_same_moment():
    text = one(submitted_at="2025-06-01T10:00:00Z")
    parse_at = datetime(2025, 6, 1, 12, 0, tzinfo=timezone(timedelta(hours=2)))
    assert read(io.BytesIO(text.encode()), as_of=parse_at).n_rows == 1
    with pytest.raises(FlatFileError, match="future"):
        read(io.BytesIO(text.encode()), as_of=parse_at - timedelta(seconds=1))


def test_as_of_needs_a_time_zone():
    with pytest.raises(ValueError, match="time zone"):
        read(io.BytesIO(one().encode()), as_of=datetime(2025, 1, 1))  # noqa: DTZ001


@pytest.mark.parametrize(
    "text", ["0", "0.0", "1", "1.0", "0.5", ".5", "1.", "5e-1", "5E-01", "-0.0", "0.333333333333"]
)
def test_outcomes_are_read(text):
    outcome = parse(one(outcome=text)).outcome[0]
    assert outcome == float(text)
    assert not np.signbit(outcome)


@pytest.mark.parametrize(
    ("text", "valid"), [("1", True), ("true", True), ("True", True), ("TRUE", True), ("", True)]
)
def test_valid_is_read(text, valid):
    assert parse(one(valid=text)).valid.tolist() == [valid]


@pytest.mark.parametrize("text", ["0", "false", "False", "FALSE"])
def test_only_an_invalid_row_may_lack_an_outcome(text):
    file = parse(one(valid=text, outcome=""))
    assert file.valid.tolist() == [False]
    assert np.isnan(file.outcome[0])
    assert parse(one(valid=text, outcome="0.5")).outcome.tolist() == [0.5]


@pytest.mark.parametrize("text", ["0", "1.0", "32767", "1e2"])
def test_trials_are_whole_numbers(text):
    assert parse(one(trial=text)).trial.tolist() == [float(text)]


def test_equal_temperatures_are_one_setting_however_written():
    file = parse(csv_of({"temperature": "0.70"}, {"temperature": "0.7"}, {"temperature": "7e-1"}))
    assert file.settings == (RunSetting(None, None, 0.7, None),)


def test_aliases_stand_for_absent_columns():
    text = one().replace("agent", "agent_id").replace("task", "task_id").replace("outcome", "score")
    file = parse(text)
    assert file.aliases == {"agent_id": "agent", "task_id": "task", "score": "outcome"}
    assert file.agents == ("a",)
    assert file.metadata == {}


def test_an_alias_beside_its_column_is_metadata():
    file = parse(one(score="x"))
    assert file.aliases == {}
    assert file.metadata["score"].to_pylist() == ["x"]
    assert file.outcome.tolist() == [1.0]


def test_no_two_aliases_stand_for_one_column():
    assert len(set(ALIASES.values())) == len(ALIASES)
    assert not set(ALIASES) & set(KNOWN)
    assert set(ALIASES.values()) <= set(KNOWN)


SEVERAL = 'benchmark: the file holds 3 benchmarks ("x", "y", "z"); choose one, for example --only "x"'


def test_several_benchmarks_are_told_alone_whatever_else_is_wrong():
    rows = csv_of({"benchmark": "y"}, {"benchmark": "x"}, {"benchmark": "z", "outcome": "7", "trial": ""})
    assert faults_of(rows) == [SEVERAL]
    assert faults_of(as_lines(record(benchmark=name, outcome="?") for name in "zyx")) == [SEVERAL]


def test_one_of_several_benchmarks_is_read_with_its_row_numbers():
    """The same agent and task under another benchmark are no repeat, and its faults are not told."""
    rows = [{"benchmark": b, "trial": "1"} for b in ("y", "x", "z")] + [{"benchmark": "x", "trial": "2"}]
    file = parse(csv_of(*rows), only="x")
    assert (file.benchmark, file.trial.tolist()) == ("x", [1, 2])
    rows[2]["outcome"] = "7"
    assert parse(csv_of(*rows), only="x").n_rows == 2
    with pytest.raises(FlatFileError, match=r"row 3, outcome"):
        parse(csv_of(*rows), only="z")
    with pytest.raises(FlatFileError, match='no row has the benchmark "w"; the file holds "x", "y", "z"'):
        parse(csv_of(*rows), only="w")


def test_an_empty_category_does_not_contradict_another():
    assert parse(csv_of({"category": ""}, {"category": "c"}, {"category": ""})).categories == ("c",)
    assert parse(csv_of({"group": ""}, {"group": "g"}, {"group": ""})).groups == ("g",)


def test_sixty_four_columns_are_allowed():
    extra = {f"x{i}": str(i) for i in range(MAX_COLUMNS - len(ROW))}
    assert len(parse(one(**extra)).metadata) == MAX_COLUMNS - len(ROW)


# Rules of single fields


OUTCOME = "an outcome is a number from 0 to 1"
DATE = "a date is 2024-04-30, 2024-04, 2024 or 2024-04-30T12:00:00Z"
NOT_A_FIELD = [
    ("outcome", OUTCOME,
     ["1.2", "-0.1", "inf", "-inf", "1_0", " 1", "1 ", "0x1", "+1", "٠", "1e999", "--1", "1e", "."]),
    ("outcome", f"{OUTCOME}; write 1 for a success, 0 for a failure", ["true", "FALSE"]),
    ("outcome", f"{OUTCOME}; leave a missing value empty", ["NaN", "NA"]),
    ("outcome", f"{OUTCOME}; write a point, not a comma", ["0,5"]),
    ("outcome", f"{OUTCOME}; this is too small for a number: write 0", ["1e-400", "-0.01e-400"]),
    ("cost_usd", "cost_usd is a number from 0 to 1e12, or empty; this is too small for a number: write 0",
     [".1E-400"]),
    ("trial", "a trial is a whole number from 0 to 32,767",
     ["1.5", "-1", "32768", "one", "1_0", "inf", "1e5"]),
    ("valid", "valid is 1, 0, true or false, or empty for true", ["yes", "2", "1.0", "tRUE", " 1"]),
    ("temperature", "a temperature is a number from 0 to 1e12, or empty", ["-0.1", "warm", "inf"]),
    *(
        (column, "a number of tokens is a whole number of at least 0, or empty",
         ["-1", "1.5", "inf", "9007199254740994"])
        for column in ("n_input_tokens", "n_output_tokens")
    ),
    ("submitted_at", f"{DATE}, or empty",
     ["04/30/2024", "2024-4-3", "2024-13", "2024-02-30", "20240430", "2024-04-30T25:00", "2024-04-30T12",
      "yesterday", "2024-04-30T12:00:00+24:00", "2024-04-30T12:00:00+01:60", "2024-W05", "0000", "٢٠٢٤",
      " 2024", "NaT", "1714435200", "2024-04-30T24:00", "2024-04-30T12:00:60"]),
    ("submitted_at", "it lies in the future (after 2026-01-01 00:00:00 UTC)",
     ["2026-01-02", "2027", "2026-01-01T00:00:01", "9999-12-31T23:59:59"]),
    ("submitted_at", "it lies before 1990-01-01", ["1989-12-31", "1970", "0001-01-01"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("column", "text", "rule"),
    [(column, text, rule) for column, rule, texts in NOT_A_FIELD for text in texts],
)
def test_what_a_field_may_not_hold(column, text, rule):
    assert faults_with(**{column: f'"{text}"'}) == [f'row 1, {column} "{text}": {rule}']


@pytest.mark.parametrize("valid", [{}, {"valid": ""}, {"valid": "1"}])
def test_a_valid_row_has_an_outcome(valid):
    assert faults_with(outcome="", **valid) == [
        "row 1, outcome: the field is empty; an outcome is a number from 0 to 1,"
        " and may be empty only where valid is false"
    ]


def test_a_number_where_an_outcome_is_out_of_bounds_is_refused_in_an_invalid_row_too():
    assert faults_with(outcome="2", valid="0") == ['row 1, outcome "2": an outcome is a number from 0 to 1']


@pytest.mark.parametrize(
    "column", ["cost_usd", "seconds_environment", "seconds_execution", "seconds_scoring"]
)
@pytest.mark.parametrize("text", ["-1", "inf", "1e999", "$5", "1,5"])
def test_costs_and_seconds_are_finite_and_not_negative(column, text):
    (fault,) = faults_of(csv_of({column: f'"{text}"'}))
    assert fault.startswith(f'row 1, {column} "{text}": {column} is a number from 0 to 1e12')


def test_dates_at_the_ends_of_the_calendar_are_no_error():
    (fault,) = faults_with(submitted_at="9999-12-31T23:59:59-01:00")
    assert "2024-04-30T12:00:00Z" in fault
    (fault,) = faults_with(submitted_at="0001-01-01T00:00:00+01:00")
    assert "2024-04-30T12:00:00Z" in fault


@pytest.mark.parametrize("column", ["benchmark", "agent", "scaffold", "model", "task", "trial"])
def test_some_columns_are_never_empty(column):
    assert faults_with(**{column: ""}) == [
        f"row 1, {column}: the field is empty; every row states its {column}"
    ]


NAMED = [
    *("benchmark", "agent", "scaffold", "model", "task", "category", "group"),
    *("prompt_variant", "judge", "run"),
]


@pytest.mark.parametrize("column", NAMED)
@pytest.mark.parametrize(
    ("name", "shown", "rule"),
    [
        (" x", " x", "neither begins nor ends with white space"),
        ("x ", "x ", "neither begins nor ends with white space"),
        ("x  y", "x  y", "has one space between words (character 3)"),
        ("x\u00a0", r"x\xa0", "has no special space U+00A0 (character 2)"),
        ("x\u3000y", r"x\u3000y", "has no special space U+3000 (character 2)"),
        ("x\u034fy", "x\u034fy", "has no invisible character U+034F (character 2)"),
        ("x\u2800", "x\u2800", "has no invisible character U+2800 (character 2)"),
        ("x\U0001d159", "x\U0001d159", "has no invisible character U+1D159 (character 2)"),
        ("x\ufe0fy\u200b", "x\ufe0fy\\u200b", "has no invisible character U+FE0F (character 2)"),
        ("x\U000e0101", "x\U000e0101", "has no invisible character U+E0101 (character 2)"),
        ("x\ue000", r"x\ue000", "has no private character U+E000 (character 2)"),
        ("x\u0378", r"x\u0378", "has no unassigned character U+0378 (character 2)"),
        ("x\ny", r"x\ny", "has no control character U+000A (character 2)"),
        ("x\ty", r"x\ty", "has no control character U+0009 (character 2)"),
        ("\0", r"\x00", "has no control character U+0000 (character 1)"),
        ("x\x85y", r"x\x85y", "has no control character U+0085 (character 2)"),
        ("x\u2028y", r"x\u2028y", "has no line separator U+2028 (character 2)"),
        ("x\u202ey", r"x\u202ey", "has no invisible character U+202E (character 2)"),
        ("x\u200by", r"x\u200by", "has no invisible character U+200B (character 2)"),
    ],
)
def test_names_have_rules(column, name, shown, rule):
    (fault,) = faults_of(one(**{column: f'"{name}"'}))
    assert fault.startswith(f'row 1, {column} "{shown}": ')
    assert fault.endswith(f"name {rule}") or fault.endswith(f"label {rule}")


def test_a_name_holds_what_can_be_seen():
    """By the definition: no category C or Z but single spaces, none of the blank or ignorable code points."""
    blank = [
        0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x2D7F, 0x3164, 0xFFA0, 0x1107F, 0x16FE4, 0x1D159,
        *range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0000, 0xE1000),
    ]  # fmt: skip
    for code in {*range(0x3400), *range(0xD7F0, 0x10000), *range(0xE0000, 0xE1010), *blank, 0x1F600}:
        seen = unicodedata.category(chr(code))[0] not in "CZ" and code not in blank
        assert (name_rule(f"x{chr(code)}y") is None) == (seen or code == 0x20), f"U+{code:04X}"


def test_names_have_at_most_255_characters():
    assert parse(one(agent="é" * MAX_NAME_LENGTH)).agents == ("é" * 255,)
    (fault,) = faults_with(agent="é" * 256)
    assert fault.endswith("an agent's name has at most 255 characters, not 256")
    assert "é" * 79 + "…" in fault
    assert len(fault) < 200


def test_metadata_hold_no_control_characters():
    assert faults_of(csv_of({"note": '"x\ty"'})) == [
        r'row 1, note "x\ty": text has no control character U+0009'
    ]
    assert parse(one(note=" 😀 \u200b ")).metadata["note"].to_pylist() == [" 😀 \u200b "]


# Rules of the file


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (b"", "the file is empty"),
        (gzip.compress(b"", mtime=0), "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (b"\n\n", "the file has no header"),
        (HEADER.encode(), "the file has no rows"),
        (HEADER.encode() + b"\n\n", "the file has no rows"),
        (one().encode("utf-16"), "the file is UTF-16 text; save it as UTF-8"),
        (one().encode("utf-16-le"), "the file is UTF-16 text; save it as UTF-8"),
        (one().encode("utf-16-be"), "the file is UTF-16 text; save it as UTF-8"),
        (one().encode("utf-32"), "the file is UTF-32 text; save it as UTF-8"),
        (one().encode("utf-32-le"), "the file is UTF-32 text; save it as UTF-8"),
        (one().encode("utf-32-be"), "the file is UTF-32 text; save it as UTF-8"),
        (
            gzip.compress(gzip.compress(one().encode(), mtime=0), mtime=0),
            "the file is compressed by gzip twice",
        ),
        (
            gzip.compress(b"PAR1....", mtime=0),
            "the file is Parquet inside gzip; deliver the Parquet file itself",
        ),
        (b"PK\x03\x04...", "the file is a ZIP archive or an Excel workbook; save the sheet as CSV"),
        (b'[{"agent": 1}]', "the file is a JSON array; write one object on each line (NDJSON)"),
        (one(agent="é").encode("latin-1"), "line 2: the byte 0xe9 is not UTF-8; save the file as UTF-8"),
        (one(agent="é").encode()[:-24], None),
        (b"PAR1", None),
        (b"PAR1 something else PAR1", None),
        (HEADER.encode() + b',"x\n', "line 1: a quote opens and does not close"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(data, rule):
    with pytest.raises(FlatFileError) as caught:
        parse(data)
    if rule is not None:
        assert caught.value.faults == (Fault(None, None, None, rule),)
        assert str(caught.value) == f"the flat file is refused: {rule}"


def test_a_missing_column_is_named_with_its_alias_and_near_names():
    text = "benchmark,Agent,scafold,model,submitted_at,taskid,trial,results\nb,a,s,m,,t,1,1\n"
    assert faults_of(text) == [
        'agent: the column (or its alias agent_id) is missing; if it is "Agent", rename that',
        'scaffold: the column is missing; if it is "scafold", rename that',
        'task: the column (or its alias task_id) is missing; if it is "taskid", rename that',
        "outcome: the column (or its alias score) is missing",
    ]


def test_a_missing_column_does_not_hide_faults_of_the_others():
    text = "benchmark,agent,scaffold,model,submitted_at,trial,outcome\nb,a,s,m,,1,2\n"
    assert faults_of(text) == [
        "task: the column (or its alias task_id) is missing",
        'row 1, outcome "2": an outcome is a number from 0 to 1',
    ]


def test_another_separator_is_told():
    assert all(
        fault.endswith("the header uses semicolons, use commas")
        for fault in faults_of(one().replace(",", ";"))
    )
    assert faults_of(one().replace(",", "\t")) == ["the header uses tabs, use commas"]


def test_all_that_is_wrong_with_a_header_is_told():
    assert faults_of(HEADER + ",x,,x, y,a\tb\n") == [
        "x: 2 columns have this name",
        '"": a column\'s name is not empty (column 10)',
        '" y": a column\'s name neither begins nor ends with white space (column 12)',
        r'"a\tb": a column' + "'s name has no control character U+0009 (character 2) (column 13)",
    ]


def test_there_are_at_most_64_columns():
    extra = {f"x{i}": "" for i in range(MAX_COLUMNS - len(ROW) + 1)}
    assert faults_with(**extra) == ["the file has 65 columns; use at most 64"]


def test_rows_with_too_few_or_too_many_fields_are_told_and_do_not_shift_others():
    text = csv_of({}, {}, {"outcome": "2"}, {}, {"outcome": "3"})
    lines = text.splitlines()
    lines[1] += ",extra"
    lines[4] = "b,a"
    assert faults_of("\n".join(lines)) == [
        "row 1: the row has 9 fields, the header has 8",
        'row 3, outcome "2": an outcome is a number from 0 to 1',
        "row 4: the row has 2 fields, the header has 8",
        'row 5, outcome "3": an outcome is a number from 0 to 1',
    ]


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ('b,"a,s,m,,t,1,1\n', "line 3: a quote opens and does not close"),
        ('b,a,s,m,,t,1,"1', "line 3: a quote opens and does not close"),
        ('b,a,s,m,,t,1,"1\n', "line 3: a quote opens and does not close"),
        ('b,a 7" b,s,m,,t,1,1\n', "line 3: a quote stands inside a field"),
        ('b,"a"x,s,m,,t,1,1\n', "line 3: a quote stands inside a field"),
        ('b,"a,s,m,,t,1,1\nb,"a,x",s,m,,t,2,1\n', "line 4: a quote stands inside a field"),
    ],
)
def test_a_quote_out_of_place_is_told_with_its_line(row, rule):
    (fault,) = faults_of(csv_of({"agent": '"a"'}) + row)
    assert fault.startswith(rule)


def test_gzip_cut_off_or_damaged_is_told():
    data = gzip.compress(csv_of(*[{"note": str(i) * 50} for i in range(200)]).encode())
    assert faults_of(data[:-9]) == ["the gzip data end too early; the file is incomplete, copy it again"]
    (fault,) = faults_of(data[:-6] + b"xxxxxx")
    assert fault.startswith("the gzip data are damaged (CRC check failed")
    (fault,) = faults_of(data + b"garbage")
    assert fault.startswith("the gzip data are damaged (Not a gzipped file")


def test_gzip_in_several_members_is_one_text():
    first, second = csv_of({}).encode(), csv_of({}, {}).encode().splitlines(keepends=True)[2]
    assert parse(gzip.compress(first) + gzip.compress(second)).n_rows == 2


def test_the_decompressed_length_can_be_limited():
    text = csv_of(*[{}] * 1000)
    assert parse(text, limits=replace(FILE, n_bytes=len(text))).n_rows == 1000
    assert faults_of(gzip.compress(text.encode()), limits=replace(FILE, n_bytes=len(text) - 1)) == [
        f"the file has more than {len(text) - 1:,} bytes after decompression; split it"
    ]


@pytest.mark.parametrize("bad", ["", "x", "{}"])
def test_the_number_of_rows_is_limited_those_at_fault_included(bad):
    limits = replace(FILE, n_rows=10)
    for text in (
        csv_of(*[{}] * 10) + f"{bad}\n",
        as_lines([record(trial=i) for i in range(10)]) + f"{bad}\n",
    ):
        if bad:
            assert faults_of(text, limits=limits) == ["the file has more than 10 rows; split it"]
        else:
            assert parse(text, limits=limits).n_rows == 10


def test_the_characters_of_distinct_names_are_limited():
    rows = [{"task": f"task-{i:05}"} for i in range(100)]
    n = 100 * 10 + len("basm")
    assert parse(csv_of(*rows, *rows[:50]), limits=replace(FILE, n_name_characters=n)).n_rows == 150
    assert faults_of(csv_of(*rows), limits=replace(FILE, n_name_characters=n - 1)) == [
        f"all names together have more than {n - 1:,} characters; shorten them"
    ]


def test_a_value_of_metadata_has_at_most_4_kib():
    assert parse(one(note="é" * 2048)).metadata["note"].to_pylist() == ["é" * 2048]
    assert faults_of(one(note="é" * 2049)) == [
        f'row 1, note "{"é" * 79}…": a value of metadata has at most 4,096 bytes, not 4,098'
    ]


def test_metadata_of_a_submission_are_limited_in_all_and_those_of_a_file_are_not():
    rows = [record(trial=i, note="x" * 1000, more="y" * 500) for i in range(50)]
    message = (
        "note: the rows hold 75,000 bytes of metadata, 50,000 of them in this column;"
        " at most 65,536 are allowed in all"
    )
    assert record_faults(*rows) == [message]
    assert from_records(rows[:43], constants={}, as_of=AS_OF).n_rows == 43
    assert parse(as_lines(rows)).n_rows == 50


# Rules across rows


def test_a_repeated_key_names_the_first_row():
    text = csv_of(
        {"trial": "1"}, {"trial": "2"}, {"trial": "1.0", "outcome": "0"}, {"trial": "1", "run": "r"}
    )
    assert faults_of(text) == [
        'row 3: the row repeats row 1: agent "a", task "t", trial 1, one setting;'
        " give it another trial or run"
    ]


def test_a_key_that_is_itself_at_fault_is_not_compared():
    text = csv_of(
        {"trial": "1"}, {"trial": "1", "judge": '" j"'}, {"trial": "1", "temperature": "-1"}, {"trial": "x"}
    )
    assert [re.split(': | "', fault)[0] for fault in faults_of(text)] == [
        "row 2, judge",
        "row 3, temperature",
        "row 4, trial",
    ]


def test_an_agent_has_one_scaffold_and_one_model():
    rows = [{}, {"scaffold": "s2"}, {"scaffold": "s2"}, {"scaffold": "s3", "model": "n"}, {}]
    assert faults_of(csv_of(*rows)) == [
        'row 2, scaffold "s2": agent "a" has scaffold "s" in row 1, and only one scaffold is allowed',
        'row 4, scaffold "s3": agent "a" has scaffold "s" in row 1, and only one scaffold is allowed',
        'row 4, model "n": agent "a" has model "m" in row 1, and only one model is allowed',
    ]


@pytest.mark.parametrize("column", ["category", "group"])
def test_a_task_has_one_category_and_one_group(column):
    rows = [{}, {column: "c"}, {column: "d"}, {"task": "u", column: "d"}]
    assert faults_of(csv_of(*rows)) == [
        f'row 3, {column} "d": task "t" has {column} "c" in row 2, and only one {column} is allowed'
    ]


@pytest.mark.parametrize("other", ["\uff27\uff30\uff34\uff0d\uff15", "gpt\uff0d5", "\u1d33PT-5"])
@pytest.mark.parametrize("column", ["agent", "scaffold", "model"])
def test_names_that_differ_only_in_forms_of_their_letters_are_refused(column, other):
    """Wide letters, a wide hyphen, a raised letter: each reads GPT-5."""
    (fault,) = faults_of(csv_of({"agent": "a", column: "GPT-5"}, {"agent": "b", column: other}))
    assert fault.startswith(f'row 2, {column} "{other}": "GPT-5" in row 1 differs from it only')
    assert fault.endswith(f"in forms of the same letters; spell each {column} one way")


@pytest.mark.parametrize("column", ["agent", "scaffold", "model"])
def test_names_that_differ_only_in_case_are_refused(column):
    rows = [
        {"agent": f"agent {i}", column: name} for i, name in enumerate(["Alpha", "beta", "ALPHA", "ALPHA"])
    ]
    assert faults_of(csv_of(*rows)) == [
        f'row 3, {column} "ALPHA": "Alpha" in row 1 differs from it only'
        f" in upper and lower case; spell each {column} one way"
    ]


def test_tasks_may_differ_only_in_case():
    assert parse(csv_of({"task": "T"}, {"task": "t"})).tasks == ("T", "t")


def test_faults_call_a_column_by_the_name_in_the_file():
    text = (
        csv_of({"outcome": "2"}, {"agent": ""}).replace("outcome", "score").replace(",agent,", ",agent_id,")
    )
    assert [re.split(': | "', fault)[0] for fault in faults_of(text)] == ["row 1, score", "row 2, agent_id"]


# All at once


def test_all_faults_of_a_file_are_told_at_once_in_row_order():
    rows = [
        {"task": "", "outcome": "2", "valid": "maybe"},
        {},
        {"submitted_at": "soon", "agent": '"x\ny"', "note": "\x01"},
        {"trial": "2"},
        {"scaffold": "S", "cost_usd": "-1"},
    ]
    told = [
        "row 1, task: the field is empty",
        'row 1, outcome "2": ',
        'row 1, valid "maybe": ',
        r'row 3, agent "x\ny": ',
        'row 3, submitted_at "soon": ',
        r'row 3, note "\x01": ',
        'row 4: the row repeats row 2: agent "a", task "t", trial 2, one setting',
        'row 5, scaffold "S": ',
        'row 5, scaffold "S": ',
        'row 5, cost_usd "-1": ',
    ]
    faults = faults_of(csv_of(*rows))
    assert len(faults) == len(told)
    assert all(fault.startswith(start) for fault, start in zip(faults, told, strict=True))


def test_a_thousand_faults_are_listed_and_all_are_counted():
    rows = [{"trial": str(i), "outcome": "2", "cost_usd": "-1"} for i in range(3000)]
    text = csv_of({"task": "u", "scaffold": "s"}, *rows, {"scaffold": "z"})
    with pytest.raises(FlatFileError) as caught:
        parse(text, name="big.csv")
    error = caught.value
    assert (len(error.faults), error.n_faults) == (MAX_FAULTS, 6001)
    assert [fault.row for fault in error.faults] == [row for row in range(2, 502) for _ in range(2)]
    assert str(error) == (
        'big.csv is refused for 6,001 faults: (1) row 2, outcome "2": an outcome is a number'
        ' from 0 to 1 (2) row 2, cost_usd "-1":'
        " cost_usd is a number from 0 to 1e12, or empty"
        ' (3) row 3, outcome "2": an outcome is a number from 0 to 1 and 5,998 more.'
        " Rows count without the header."
    )


def test_a_late_check_can_find_the_first_fault():
    rows = [{"trial": "7"}, {"trial": "7"}, *[{"trial": str(i), "outcome": "2"} for i in range(100, 6000)]]
    with pytest.raises(FlatFileError) as caught:
        parse(csv_of(*rows))
    assert caught.value.faults[0].row == 2
    assert caught.value.faults[-1].row == MAX_FAULTS + 1
    assert caught.value.n_faults == 5901


def test_the_error_is_a_core_error_and_survives_pickling():
    import pickle

    error = FlatFileError((Fault(1, "agent", "x", "rule"),), 5, "f.csv")
    assert isinstance(error, CoreError)
    again = pickle.loads(pickle.dumps(error))
    assert (again.faults, again.n_faults, str(again)) == (error.faults, 5, str(error))


# Records


def test_records_and_constants_make_a_flat_file():
    constants = {name: ROW[name] for name in ("benchmark", "agent", "scaffold", "model")}
    records = [
        {"task": "t", "trial": 1, "outcome": 0.5},
        {"task": "u", "trial": 2, "outcome": True and 1, "n": 3},
    ]
    file = from_records(records, constants={**constants, "submitted_at": None, "run": "r"}, as_of=AS_OF)
    assert file.agents == ("a",)
    assert file.tasks == ("t", "u")
    assert file.outcome.tolist() == [0.5, 1.0]
    assert file.settings == (RunSetting(None, None, None, "r"),)
    assert np.isnat(file.submitted_at).all()
    assert file.metadata["n"].to_pylist() == [None, "3"]


def test_faults_of_constants_have_no_row():
    constants = {"agent": " a", "scaffold": "", "model": ["m"], "submitted_at": "2030", "benchmark": "b"}
    records = [{"task": "t", "trial": 1, "outcome": 2}]
    assert record_faults(*records, constants=constants) == [
        'agent " a": an agent\'s name neither begins nor ends with white space',
        "scaffold: the field is empty; every row states its scaffold",
        "model: a field holds text, a number, true, false or null, not a list",
        'submitted_at "2030": it lies in the future (after 2026-01-01 00:00:00 UTC)',
        'row 1, outcome "2": an outcome is a number from 0 to 1',
    ]


def test_a_record_does_not_name_a_constant():
    rule = "the field is set for all records at once; a record may not name it"
    fields = {name: value for name, value in ROW.items() if name != "agent"}
    assert record_faults(record(), fields | {"trial": "2"}, record(trial="3"), constants={"agent": "a"}) == [
        f"row 1, agent: {rule}",
        f"row 3, agent: {rule}",
    ]


@pytest.mark.parametrize(
    ("value", "kind"),
    [(None, "null"), ([], "a list"), ("x", "a text"), (1, "a number"), (True, "true"), (1.5, "a number")],
)
def test_a_record_is_an_object(value, kind):
    assert record_faults(record(), value) == [f"row 2: a record is a JSON object, not {kind}"]


def test_no_records_are_no_file():
    assert record_faults(constants=ROW) == ["the file has no rows"]


def test_a_field_holds_one_plain_value():
    rule = "a field holds text, a number, true, false or null, not"
    assert record_faults(record(agent=["a"], note={"x": 1}), record(trial=2, outcome={"y": 1})) == [
        f"row 1, agent: {rule} a list",
        f"row 1, note: {rule} an object",
        f"row 2, outcome: {rule} an object",
    ]


def test_lone_surrogates_and_zeros_are_refused_in_values_and_names():
    assert record_faults(
        record(task="\ud800", note="x\udfffy", **{"\ud801": 1}), record(trial=2, note="\0")
    ) == [
        r'row 1, task "\ud800": text has no lone surrogate',
        r"row 1, \ud801: a field's name has no lone surrogate U+D801 (character 1)",
        r'row 1, note "x\udfffy": text has no lone surrogate',
        r'row 2, note "\x00": text has no control character U+0000',
    ]


def test_a_required_field_that_only_some_records_have_is_empty_in_the_others():
    without = {name: value for name, value in ROW.items() if name != "trial"}
    assert record_faults(without, record()) == [
        "row 1, trial: the field is empty; every row states its trial"
    ]
    assert record_faults(without, without) == ["trial: the column is missing"]


def test_records_agree_on_one_name_for_a_column():
    scored = {("score" if name == "outcome" else name): value for name, value in ROW.items()}
    file = from_records([scored, scored | {"trial": 2}], constants={}, as_of=AS_OF)
    assert file.aliases == {"score": "outcome"}
    rule = "some records call this column outcome, others score; use one name in all"
    assert record_faults(scored, record(trial=2), record(trial=3)) == [f"row 2, score: {rule}"]
    assert record_faults(record(), scored | {"trial": 2}) == [f"row 2, score: {rule}"]
    assert record_faults(record(score=5), scored | {"trial": 2}) == [f"row 2, score: {rule}"]
    assert from_records([record(score=5)], constants={}, as_of=AS_OF).metadata["score"].to_pylist() == ["5"]


def test_records_have_at_most_64_fields_by_name():
    many = [record(trial=i, **{f"x{i}": 1}) for i in range(MAX_COLUMNS - len(ROW) + 1)]
    assert record_faults(*many) == ["the records have more than 64 fields by name"]


# Real files


@pytest.mark.parametrize(
    ("name", "n_rows", "n_agents", "n_tasks"),
    [
        ("hal_gaia", 5609, 32, 165),
        ("hal_corebench_hard", 1755, 38, 45),
        ("hal_taubench_airline", 1300, 26, 50),
        ("hal_scicode", 1625, 24, 65),
        ("swebench_verified_2023_2025", 28500, 57, 500),
        ("terminal_bench_core_011", 5200, 13, 80),
        ("swebench_lite_repeats_acr", 3900, 4, 300),
    ],
)
def test_real_files_are_read(real_data, name, n_rows, n_agents, n_tasks):
    file = read(real_data / f"{name}.csv.gz", as_of=AS_OF)
    assert (file.n_rows, len(file.agents), len(file.tasks)) == (n_rows, n_agents, n_tasks)


def test_real_files_have_the_oddities_that_are_known(real_data):
    terminal = read(real_data / "terminal_bench_core_011.csv.gz", as_of=AS_OF)
    assert terminal.aliases == {"input_tokens": "n_input_tokens", "output_tokens": "n_output_tokens"}
    assert not terminal.valid.all()
    assert list(terminal.metadata) == ["failure_mode"]
    lite = read(real_data / "swebench_lite_repeats_acr.csv.gz", as_of=AS_OF)
    assert int(lite.imprecise.sum()) == 900
    assert [setting.judge for setting in lite.settings] == ["swe-bench-conda", "swe-bench-docker"]
