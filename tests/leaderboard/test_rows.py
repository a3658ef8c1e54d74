"""Rows on their way from a file to the database."""

import json

import pyarrow as pa
from hypothesis import given
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
