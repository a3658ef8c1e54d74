"""Outcomes as files: what they hold, and that they are read back as they were."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from analytics.flat_file import read
from leaderboard.catalog.models import Benchmark, Task
from leaderboard.submissions.export import outcomes as outcomes_of_export
from leaderboard.submissions.export.outcomes import ExportTransaction, OutcomeRows
from leaderboard.submissions.export.streams import FORMATS
from leaderboard.submissions.models import Status, Submission
from leaderboard.submissions.services import append_changes, change_status
from tests.toys import AS_OF, HEAD, csv_text, graded, ladder, load_text, rows_text

pytestmark = pytest.mark.django_db(transaction=True)


def exported(name, slug="toy", **options):
    with ExportTransaction(Benchmark.objects.get(slug=slug)) as snapshot:
        return b"".join(FORMATS[name](OutcomeRows(snapshot, **options)))


def rows_of(flat):
    """Everything that a file says, as a set of tuples by name."""
    columns = {
        "agent": [flat.agents[i] for i in flat.agent],
        "scaffold": [flat.scaffolds[i] for i in flat.agent],
        "model": [flat.models[i] for i in flat.agent],
        "task": [flat.tasks[i] for i in flat.task],
        "category": [flat.categories[i] for i in flat.task],
        "group": [flat.groups[i] for i in flat.task],
        "setting": [flat.settings[i] for i in flat.setting],
        "trial": flat.trial.tolist(),
        "outcome": [None if np.isnan(x) else round(x, 7) for x in flat.outcome],
        "valid": flat.valid.tolist(),
        "submitted_at": flat.submitted_at.tolist(),
        "imprecise": flat.imprecise.tolist(),
        **{name: [None if np.isnan(x) else x for x in values] for name, values in flat.measured.items()},
        **{name: values.to_pylist() for name, values in flat.metadata.items()},
    }
    return {tuple(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)}


RICH = [
    {
        "agent": agent,
        "scaffold": "=HYPERLINK()",
        "submitted_at": day,
        "task": task,
        "category": "@home" if task == "a/b" else "",
        "group": "" if task == "a/b" else "repo",
        "trial": trial,
        "outcome": value,
        "valid": valid,
        "judge": "j" if trial else "",
        "temperature": 0.7 if trial else "",
        "cost_usd": 0.25 if trial else "",
        "n_input_tokens": 12 if task == "a/b" else "",
        "note": note,
        "version": f"{trial}",
    }
    for agent, day in (("-x", "2025-04"), ("é 東", "2025-03-04T05:06:07Z"), ("'=q", ""))
    for task, note in (("a/b", "-5"), ("#1", "'-5"), ("+1", "+5"))
    for trial, value, valid in ((0, 0.1, 1), (1, "", 0), (2, 1, 1))
]


@pytest.mark.parametrize("name", FORMATS)
def test_what_was_loaded_is_read_back_from_the_export(name):
    text = rows_text(RICH).replace("'=q", "''=q").replace("'-5", "''-5")  # doubled, as a CSV has them
    load_text(text)
    data = exported(name)
    assert rows_of(read(io.BytesIO(data), as_of=AS_OF)) == rows_of(
        read(io.BytesIO(text.encode()), as_of=AS_OF)
    )
    assert read(io.BytesIO(data), as_of=AS_OF).benchmark == "Toy"
    assert exported(name) == data


@pytest.mark.parametrize("name", FORMATS)
def test_only_what_counts(name):
    """Not what was withdrawn, nor retired tasks; of a trial delivered again the last."""
    load_text(csv_text({"a": "1x0", "b": "011"}))
    load_text(csv_text({"a": ".1"}), as_of=AS_OF)
    load_text(csv_text({"c": "111"}), slug="other")
    load_text(rows_text([{"agent": "d", "task": "t00", "outcome": 1, "run": "r"}]))
    benchmark = Benchmark.objects.get(slug="toy")
    gone = Submission.objects.get(agent__name="d")
    append_changes(
        benchmark=benchmark,
        changes=change_status(
            submissions=[gone], status=Status.WITHDRAWN, at=AS_OF, by=None, reason="taken back"
        ),
    )
    Task.objects.filter(benchmark=benchmark, name="t02").update(retired_at=AS_OF, retired_reason="broken")
    flat = read(io.BytesIO(exported(name)), as_of=AS_OF)
    outcomes = sorted(
        (flat.agents[a], flat.tasks[t], float(x), bool(v))
        for a, t, x, v in zip(flat.agent, flat.task, flat.outcome, flat.valid, strict=True)
    )
    passed = [("a", "t00"), ("a", "t01"), ("b", "t01")]
    assert outcomes == sorted([*((*key, 1, True) for key in passed), ("b", "t00", 0, True)])
    with ExportTransaction(benchmark) as snapshot:
        assert OutcomeRows(snapshot).n_rows == 4


def test_a_snapshot_stays_as_it_was():
    load_text(csv_text({"a": "10"}))
    with ExportTransaction(Benchmark.objects.get(slug="toy")) as snapshot:
        outcomes = OutcomeRows(snapshot)
        load_text(csv_text({"b": "01"}))
        assert b"".join(FORMATS["csv"](outcomes)).count(b"\n") == 1 + outcomes.n_rows == 3


def test_costs_are_left_out():
    load_text(rows_text(RICH))
    assert "cost_usd" in exported("csv").decode().splitlines()[0]
    without = exported("csv", costs=False).decode().splitlines()[0]
    assert "cost_usd" not in without
    assert "n_input_tokens" in without


def test_more_metadata_than_columns_stands_in_one_column():
    names = [f"k{i}" for i in range(70)]
    rows = [{"agent": f"a{i}", "task": "t", "outcome": 1, f"k{i}": f"v{i}"} for i in range(70)]
    for start in (0, 35):
        load_text(rows_text(rows[start : start + 35]))
    (last, *_), head = csv.reader([exported("csv").decode().splitlines()[-1]]), exported("csv").decode()
    assert head.splitlines()[0].endswith(",valid,metadata")
    assert json.loads(last[-1]) == {names[-1]: "v69"}


def test_ndjson_is_rows_alone():
    """A last line of another kind was a row of nulls to pandas."""
    load_text(csv_text(ladder(3, 4)))
    frame = pd.read_json(io.BytesIO(exported("ndjson")), lines=True)
    assert len(frame) == 12
    assert "end" not in frame.columns
    assert frame["task"].notna().all()


def test_parquet_carries_what_is_said_of_the_data():
    load_text(csv_text(ladder(3, 4)))
    Benchmark.objects.update(licence="CC-BY-4.0", citation="Ada, 2026")
    schema = pq.read_schema(io.BytesIO(exported("parquet")))
    told = {key.decode(): value.decode() for key, value in schema.metadata.items()}
    assert (told["licence"], told["citation"], told["n"]) == ("CC-BY-4.0", "Ada, 2026", "12")
    assert schema.field("task").metadata[b"description"] == b"Name of the task."


def test_nothing_was_delivered_yet():
    Benchmark.objects.create(slug="new", title="New")
    assert exported("csv", "new").decode() == f"{HEAD},valid\n"
    assert exported("ndjson", "new") == b""
    assert pq.read_table(io.BytesIO(exported("parquet", "new"))).num_rows == 0


def test_many_batches_are_one_file(monkeypatch):
    load_text(csv_text(graded(12, 30)))
    whole = {name: exported(name) for name in ("csv", "ndjson")}
    monkeypatch.setattr(outcomes_of_export, "BATCH_ROWS", 7)
    assert {name: exported(name) for name in whole} == whole
    table = pq.read_table(io.BytesIO(exported("parquet")))
    assert (table.num_rows, pq.ParquetFile(io.BytesIO(exported("parquet"))).num_row_groups) == (360, 52)
