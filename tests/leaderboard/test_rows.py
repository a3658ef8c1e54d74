"""Rows on their way from a file to the database."""

import json
from collections import Counter

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from leaderboard.submissions import rows

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


@given(st.lists(st.tuples(*[TEXT | st.none()] * 3), min_size=1, max_size=9), TEXT)
def test_texts_of_a_row_become_one_object(texts, name):
    names = [f"a{name}", f"b{name}", f"c{name}"]
    table = pa.table(
        {n: pa.array(column, pa.string()) for n, column in zip(names, zip(*texts, strict=True), strict=True)}
    )
    there = [{n: one for n, one in zip(names, row, strict=True) if one is not None} for row in texts]
    for n_at_once in (2, 50_000):
        written = rows.as_json(table, n_at_once).to_pylist()
        assert [one and json.loads(one) for one in written] == [one or None for one in there]


def numbered(part, *, of_each):
    """Rows (submission, task, outcome), equal outcomes of a task, or `of_each` submission, being numbered."""
    seen, found = Counter(), []
    for submission, task, *outcome in sorted(part, key=lambda row: row[0]):
        same = (submission if of_each else 0, task, *outcome)
        found.append((submission, task, (*outcome, seen[same])))
        seen[same] += 1
    return found


def plainly(gone, standing, own):
    """The same as `rows.ran_again`, by loops over rows (submission, task, valid, value)."""
    gone, standing = numbered(gone, of_each=True), numbered(standing, of_each=False)
    for one, task in {row[:2] for row in gone}:
        taken = [row[1:] for row in gone if row[:2] == (one, task)]
        since = [min((row[0] for row in standing if row[1:] == of), default=None) for of in taken]
        for row in standing:
            is_later = row[1] == task and row[0] > one and row[0] in own
            if is_later and (None in since or (row[1:] not in taken and row[0] < max(since))):
                return True
    return False


VALUE = st.sampled_from([None, 0.0, 0.1, 1.0])
ROW = st.tuples(st.integers(1, 5), st.integers(0, 2), st.booleans(), VALUE)


@settings(max_examples=300)
@given(st.lists(ROW, min_size=1, max_size=5), st.lists(ROW, max_size=6), st.sets(st.integers(1, 5)))
def test_whether_tasks_were_run_again_is_what_plain_loops_say(gone, standing, own):
    names = ["submission", "task", "valid", "value"]
    schema = pa.schema(list(zip(names, [pa.int32(), pa.int32(), pa.bool_(), pa.float64()], strict=True)))
    tables = [
        pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in part], schema)
        for part in (gone, standing)
    ]
    assert rows.ran_again(*tables, own) == plainly(gone, standing, own)
