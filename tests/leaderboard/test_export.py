"""Outcomes as files: what they hold, and that they are read back as they were."""

import hashlib
import io
import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from analytics.flat_file import read
from leaderboard.catalog.models import Benchmark
from leaderboard.submissions.export import FORMATS, Outcomes, Snapshot
from tests.toys import AS_OF, csv_text, ladder, load_text, rows_text

pytestmark = pytest.mark.django_db(transaction=True)


def exported(name, slug="toy", **options):
    with Snapshot(Benchmark.objects.get(slug=slug)) as snapshot:
        return b"".join(FORMATS[name].written(Outcomes(snapshot, **options)))


def rows_of(flat):
    """Everything that a file says, as a set of tuples by name."""
    columns = {
        "agent": [flat.agents[i] for i in flat.agent],
        "scaffold": [flat.scaffolds[i] for i in flat.agent],
        "model": [flat.models[i] for i in flat.agent],
        "task": [flat.tasks[i] for i in flat.task],
        "category": [flat.categories[i] for i in flat.task],
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
    assert rows_of(read(io.BytesIO(data), as_of=AS_OF)) == rows_of(read(io.BytesIO(text.encode()), as_of=AS_OF))
    assert read(io.BytesIO(data), as_of=AS_OF).benchmark == "Toy"
    assert exported(name) == data


def test_a():
    load_text(csv_text(ladder(3, 4)))
    print(exported("csv").decode()[:400])
    print(exported("ndjson").decode()[-800:])
    print(pq.read_table(io.BytesIO(exported("parquet"))).schema)
