"""Formulas in a CSV are guarded and come back; the mark of the end in NDJSON is taken off and believed."""

import csv
import io
import json
import re
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.flat_file import FlatFileError, guarded, read
from analytics.flat_file.csv_rows import unguarded

AS_OF = datetime(2026, 1, 1, tzinfo=UTC)
TEXTS = st.lists(st.text(st.sampled_from("'=+-@a1. "), max_size=6) | st.none(), max_size=20)


@settings(deadline=None)  # the first call loads Arrow's functions
@given(TEXTS)
def test_what_is_guarded_comes_back_and_runs_nowhere(texts):
    marked = guarded(pa.array(texts, pa.string()))
    assert unguarded(marked).to_pylist() == texts
    for text in filter(None, marked.to_pylist()):
        assert text[0] not in "=+-@" or re.fullmatch(r"-[\d.]+", text)


def test_by_hand():
    texts = ["=1", "'=1", "''=1", "-5", "-5e", "'-5", "+5", "@a", "a=1", "'a", "", None]
    marked = ["'=1", "''=1", "'''=1", "-5", "'-5e", "''-5", "'+5", "'@a", "a=1", "'a", "", None]
    assert guarded(pa.array(texts, pa.string())).to_pylist() == marked


HEAD = ["benchmark", "agent", "scaffold", "model", "submitted_at", "task", "trial", "outcome"]


def csv_of(agent, column):
    out = io.StringIO()
    csv.writer(out).writerows([[*HEAD, column], ["b", agent, "s", "m", "", "t", 1, 1, "x"]])
    return io.BytesIO(out.getvalue().encode())


@pytest.mark.parametrize(
    ("written", "name"), [("'=a", "=a"), ("''=a", "'=a"), ("=a", "=a"), ("it's", "it's"), ("'a", "'a")]
)
def test_a_csv_is_read_without_the_guard(written, name):
    file = read(csv_of(written, f"{written} column"), as_of=AS_OF)
    assert file.agents == (name,)
    assert list(file.metadata) == [f"{name} column"]


def ndjson(*records):
    return io.BytesIO("".join(json.dumps(record) + "\n" for record in records).encode())


ROW = dict(zip(HEAD, ["b", "'=a", "s", "m", None, "t", 1, 1], strict=True))
END = {"end": True, "n": 1, "sha256": "0" * 64}


def test_ndjson_is_not_guarded_and_may_end_with_a_mark():
    assert read(ndjson(ROW, END), as_of=AS_OF).agents == ("'=a",)


@pytest.mark.parametrize(
    ("records", "rule"),
    [
        ([ROW, END | {"n": 2}], "ends by saying that it has 2 rows, not 1"),
        ([END], "ends by saying that it has 1 rows, not 0"),
        ([ROW, END | {"end": False}], "faults"),
        ([ROW, END, ROW | {"trial": 2}], "faults"),
    ],
)
def test_a_mark_that_is_wrong_is_refused(records, rule):
    with pytest.raises(FlatFileError, match=rule):
        read(ndjson(*records), as_of=AS_OF)


def test_lines_behind_the_mark(monkeypatch):
    monkeypatch.setattr("analytics.flat_file.json_rows.N_RECORDS", 2)
    with pytest.raises(FlatFileError, match="lines follow the end mark of the file"):
        read(ndjson(ROW, END, ROW | {"trial": 2}), as_of=AS_OF)
