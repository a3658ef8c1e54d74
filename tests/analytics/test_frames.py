"""Data frames in and out: checked by the rules of the flat file, read back to the last bit."""

import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from analytics.command_line import flat_file
from analytics.flat_file import FlatFileError
from analytics.frames import FrameRefused, flat_of
from analytics.outcome_table import OutcomeTable
from analytics.record import Record

ROOT = Path(__file__).resolve().parent.parent.parent
AS_OF = datetime(2026, 6, 1, tzinfo=UTC)


def small(**columns):
    """Two agents on two tasks, a row each, with columns put in or replaced."""
    rows = {"agent": ["b", "b", "a", "a"], "task": ["x", "y", "x", "y"], "outcome": [1, 0, 0.5, 1]}
    return pd.DataFrame(rows | columns)


def faults_of(frame):
    with pytest.raises(FlatFileError) as refused:
        OutcomeTable.from_frame(frame, as_of=AS_OF)
    return [(fault.row, fault.field, fault.rule) for fault in refused.value.faults]


def same(one, other):
    assert (one.agents, one.tasks, one.dates) == (other.agents, other.tasks, other.dates)
    assert (one.scaffolds, one.models) == (other.scaffolds, other.models)
    np.testing.assert_array_equal(one.means, other.means)
    np.testing.assert_array_equal(one.valid(), other.valid())


def test_three_columns_are_enough():
    table = OutcomeTable.from_frame(small())
    assert (table.agents, table.tasks) == (("a", "b"), ("x", "y"))
    np.testing.assert_array_equal(table.means, [[0.5, 1.0], [1.0, 0.0]])
    assert (table.dates, table.scaffolds, table.models) == ((None, None), ("", ""), ("", ""))


def test_trials_settings_and_what_describes_an_agent_by_hand():
    frame = pd.DataFrame(
        {
            "agent": "a",
            "task": ["x"] * 4 + ["y"],
            "trial": [1, 2, 1, 1, 1],
            "outcome": [1, 0, 1, np.nan, 0.25],
            "valid": [True, True, True, False, True],
            "prompt_variant": ["p", "p", "q", "r", "p"],
            "scaffold": "S",
            "model": "M",
            "submitted_at": pd.to_datetime(["2026-01-05"] * 4 + ["2026-01-02"]),
        }
    )
    table = OutcomeTable.from_frame(frame, as_of=AS_OF)
    # Compared is p, under which alone the agent has both tasks: x is the mean of its two trials.
    np.testing.assert_array_equal(table.means, [[0.5, 0.25]])
    np.testing.assert_array_equal(table.n_valid, [[2, 1]])
    assert (table.dates, table.scaffolds, table.models) == ((date(2026, 1, 2),), ("S",), ("M",))


@pytest.mark.parametrize("name", ["hal_gaia", "hal_taubench_airline"])
def test_a_frame_of_a_real_file_is_the_file(real_data, name):
    path = real_data / f"{name}.csv.gz"
    # As text: a number's spelling is then the file's.
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    known = [c for c in frame.columns if c in {*flat_columns(), "valid"}]
    by_frame, by_file = (
        OutcomeTable.from_frame(frame[known]),
        Record.from_flat(flat_file(path)).compared_table(),
    )
    same(by_frame, by_file)
    np.testing.assert_array_equal(by_frame.n_valid, by_file.n_valid)
    np.testing.assert_array_equal(by_frame.trial_variances, by_file.trial_variances)


def flat_columns():
    return {"benchmark", "agent", "scaffold", "model", "submitted_at", "task", "trial", "outcome"}


@settings(derandomize=True, deadline=None)
@given(
    st.lists(st.lists(st.none() | st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=5),
    st.booleans(),
)
def test_out_and_in_again_is_the_same_to_the_last_bit(rows, described):
    means = np.array([[np.nan if cell is None else cell for cell in row] for row in rows])
    n = len(rows)
    table = OutcomeTable(
        agents=tuple(f"a{i}" for i in range(n)),
        tasks=("x", "y", "z"),
        means=means + 0.0,  # no −0
        n_valid=(~np.isnan(means)).astype(np.int32),
        dates=tuple(date(2026, 1, 1 + i) if described and i else None for i in range(n)),
        scaffolds=("S" if described else "",) * n,
        models=("M" if described else "",) * n,
    )
    known = table.n_valid_tasks() > 0
    assume(known.any())
    same(OutcomeTable.from_frame(table.to_frame(), as_of=AS_OF), table.restrict(agents=known))


def test_the_frame_of_a_table_has_a_row_for_each_cell():
    frame = OutcomeTable.from_frame(small(outcome=[1, np.nan, 0.5, 1], valid=[1, 0, 1, 1])).to_frame()
    assert list(frame.columns) == ["agent", "task", "outcome", "valid"]
    assert frame["agent"].tolist() == ["a", "a", "b", "b"]
    assert frame["valid"].tolist() == [True, True, True, False]
    assert frame["outcome"].isna().tolist() == [False, False, False, True]


@pytest.mark.parametrize(
    "outcome",
    [
        pd.array([1, 0, 1, 1], dtype="Int64"),
        pd.array(["1", "0", "1", "1"], dtype="string"),
        pd.Categorical([1, 0, 1, 1]),
        np.array([1, 0, 1, 1], dtype=np.float32),
        [1, "0", 1.0, np.int64(1)],
    ],
    ids=["Int64", "string", "categorical", "float32", "mixed"],
)
def test_the_type_of_a_column_does_not_matter(outcome):
    np.testing.assert_array_equal(OutcomeTable.from_frame(small(outcome=outcome)).means, [[1, 1], [1, 0]])


@pytest.mark.parametrize("missing", [np.nan, None, pd.NA, pd.NaT])
def test_an_outcome_that_is_missing_is_told_with_its_row(missing):
    [(row, field, rule)] = faults_of(small(outcome=[1, 0, missing, 1]))
    assert (row, field) == (3, "outcome")
    assert "may be empty only where valid is false" in rule


@pytest.mark.parametrize(
    ("columns", "row", "field", "rule"),
    [
        ({"outcome": [1, "maybe", 0, 1]}, 2, "outcome", "a number from 0 to 1"),
        ({"outcome": [1, 0, 1.5, 1]}, 3, "outcome", "a number from 0 to 1"),
        ({"outcome": [1, 0, -np.inf, 1]}, 3, "outcome", "a number from 0 to 1"),
        ({"outcome": [1, {}, 1, 1]}, 2, "outcome", "not an object"),
        ({"outcome": pd.to_timedelta([1, 2, 3, 4], "s")}, None, "outcome", "the column's type is duration"),
        ({"trial": [1, 1, 1.5, 1]}, 3, "trial", "a whole number"),
        ({"agent": ["b", None, "a", "a"]}, 2, "agent", "every row states its agent"),
        ({"valid": [1, 1, 1, "perhaps"]}, 4, "valid", "true or false"),
        ({"scaffold": ["S", "T", "S", "S"]}, 2, "scaffold", "only one scaffold is allowed"),
        ({"submitted_at": pd.Timestamp("2026-06-02")}, 1, "submitted_at", "lies in the future"),
        ({"task": ["x", "x", "x", "y"], "trial": 1}, 2, None, "repeats row 1"),
        ({"outcom": 1}, None, "outcom", 'Did you mean "outcome"?'),
        ({"colour": "red"}, None, "colour", "Known columns: benchmark, agent"),
        ({7: 1}, None, "7", "a column's name is text"),
    ],
)
def test_every_fault_names_its_row_and_its_rule(columns, row, field, rule):
    frame = small()
    for name, values in columns.items():
        frame[name] = values
    result = faults_of(frame)
    assert result[0][:2] == (row, field)
    assert rule in result[0][2]


def test_all_faults_are_told_at_once():
    result = faults_of(small(outcome=[2, 0, None, 1], temperature=["hot", 0, 0, 0]))
    assert [(row, field) for row, field, _ in result] == [(1, "outcome"), (1, "temperature"), (3, "outcome")]


def test_rows_count_from_one_whatever_the_index():
    frame = small(outcome=[1, 0, 9, 1])
    frame.index = [40, 30, 20, 10]
    assert faults_of(frame)[0][0] == 3


def test_a_frame_without_the_columns_or_the_rows():
    assert faults_of(small().drop(columns="task"))[0][1] == "task"
    assert faults_of(small().set_index("agent"))[0][1] == "agent"
    assert faults_of(small().iloc[:0])[0][2] == "the file has no rows"
    assert "2 columns have this name" in faults_of(pd.concat([small(), small()], axis=1))[0][2]


WORDS = ["pass", "FAIL", "true", "✗", "75%", "0,5", "resolved", "no", True, False, 1, 0.25]
READ = [1, 0, 1, 0, 0.75, 0.5, 1, 0, 1, 0, 1, 0.25]


def test_words_and_percentages_are_read_as_in_a_table():
    frame = pd.DataFrame({"agent": "a", "task": [f"t{i:02d}" for i in range(12)], "outcome": WORDS})
    np.testing.assert_array_equal(OutcomeTable.from_frame(frame).means, [READ])
    costs = flat_of(small(cost_usd=["0,5", "1,250", 2, None])).measured["cost_usd"]
    np.testing.assert_array_equal(costs, [0.5, 1.25, 2, np.nan])
    assert OutcomeTable.from_frame(small(outcome=[True, False, True, True])).means.tolist() == [
        [1, 1],
        [1, 0],
    ]


def test_percentages_without_a_sign_are_stated():
    table = OutcomeTable.from_frame(small(outcome=[100, 0, 57.3, 25]), percent=True)
    np.testing.assert_array_equal(table.means, [[0.573, 0.25], [1, 0]])
    with pytest.raises(FlatFileError, match="leave percent=True out"):
        OutcomeTable.from_frame(small(), percent=True)


def test_columns_have_the_names_that_are_stated():
    frame = small().rename(columns={"agent": "who", "outcome": "resolved"})
    table = OutcomeTable.from_frame(frame, columns={"agent": "who", "outcome": "resolved"})
    np.testing.assert_array_equal(table.means, [[0.5, 1], [1, 0]])
    for columns, told in (({"outcome": "won"}, "won: no column"), ({"result": "who"}, "result: no column")):
        with pytest.raises(FlatFileError, match=told):
            OutcomeTable.from_frame(frame, columns=columns)


@pytest.mark.parametrize("index", ["agent", "task"])
def test_a_wide_frame_has_a_row_for_each(index):
    other = {"agent": "task", "task": "agent"}[index]
    pivot = small().pivot(index=index, columns=other, values="outcome")
    for frame in (pivot, pivot.reset_index()):
        table = OutcomeTable.from_frame(frame)
        assert (table.agents, table.tasks) == (("a", "b"), ("x", "y"))
        np.testing.assert_array_equal(table.means, [[0.5, 1], [1, 0]])


def test_a_wide_frame_has_words_gaps_and_what_describes_its_agents():
    frame = pd.DataFrame(
        {"agent": ["a", "b"], "model": ["M", "N"], 1: ["pass", None], 2: ["fail", "50%"]}, index=[7, 7]
    )
    table = OutcomeTable.from_frame(frame)
    np.testing.assert_array_equal(table.means, [[1, 0], [np.nan, 0.5]])
    assert (table.models, table.scaffolds) == (("M", "N"), ("", ""))
    zero = OutcomeTable.from_frame(frame, blank="fail")
    np.testing.assert_array_equal(zero.means, [[1, 0], [0, 0.5]])
    frame[1] = ["pass", "soon"]
    assert faults_of(frame)[0][:2] == (2, "1")
    frame["Total"] = 1
    told = faults_of(frame)[0][2]
    assert 'column "Total" is neither a task nor an agent; delete it. If each row is one result, say' in told
    assert 'columns={"task": "HEAD"}' in told


@pytest.mark.parametrize(("blank", "mean"), [("fail", 0.0), ("missing", np.nan)])
def test_what_an_empty_outcome_is(blank, mean):
    table = OutcomeTable.from_frame(small(outcome=[1, 0, None, 1]), blank=blank)
    np.testing.assert_array_equal(table.means, [[mean, 1], [1, 0]])
    with pytest.raises(FlatFileError) as refused:
        OutcomeTable.from_frame(small(outcome=[1, 0, None, "soon"]), blank=blank)
    assert refused.value.faults[0].row == 4
    assert 'say blank="missing"' in faults_of(small(outcome=[1, 0, None, 1]))[0][2]


def test_one_benchmark_of_several_is_stated():
    frame = pd.concat([small(benchmark="p"), small(benchmark="q", outcome=[0, 0, 0, 1])])
    assert 'choose one, for example benchmark="p"' in faults_of(frame)[0][2]
    np.testing.assert_array_equal(OutcomeTable.from_frame(frame, benchmark="q").means, [[0, 1], [0, 0]])


def test_rows_of_one_agent_and_task_are_its_trials():
    frame = pd.concat([small(), small(outcome=[0, 0, 0.5, 1])])
    table = OutcomeTable.from_frame(frame)
    np.testing.assert_array_equal(table.means, [[0.5, 1], [0.5, 0]])
    np.testing.assert_array_equal(table.n_valid, [[2, 2], [2, 2]])
    assert "are copies of an earlier row: row " in faults_of(pd.concat([small(), small()]))[0][2]


def test_an_alias_stands_for_its_column():
    table = OutcomeTable.from_frame(small().rename(columns={"outcome": "score", "task": "task_id"}))
    np.testing.assert_array_equal(table.means, [[0.5, 1.0], [1.0, 0.0]])


def test_what_was_measured_comes_along():
    flat = flat_of(small(cost_usd=[1.5, 0, None, 2]), as_of=AS_OF)
    np.testing.assert_array_equal(flat.measured["cost_usd"], [1.5, 0.0, np.nan, 2.0])


def test_what_is_no_frame_of_one_benchmark():
    with pytest.raises(FrameRefused, match="not dict") as refused:
        OutcomeTable.from_frame({"agent": ["a"]})
    assert refused.value.code == "no_frame"
    with pytest.raises(FlatFileError, match="benchmark"):
        OutcomeTable.from_frame(small(benchmark=["p", "p", "q", "q"]))


def test_pandas_is_not_imported_and_where_it_is_not_there_the_extra_is_named():
    code = (
        "import sys, numpy as np; sys.modules['pandas'] = None\n"
        "from analytics.outcome_table import OutcomeTable\n"
        "one = np.ones((1, 1))\n"
        "table = OutcomeTable(('a',), ('x',), one, one.astype('i4'), (None,), ('',), ('',))\n"
        "for call in (table.to_frame, lambda: OutcomeTable.from_frame([])):\n"
        "    try: call()\n"
        "    except ValueError as refusal: print(refusal.code, refusal)\n"
    )
    command = [sys.executable, "-c", code]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert printed.count("pandas_missing") == 2
    assert "pip install 'bandstand[frames]'" in printed
