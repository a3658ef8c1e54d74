"""Rows that are means of runs are read as the runs they stand for, and human labels as numbers."""

import io
from collections import Counter
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.flat_file import DELIVERED, FILE, FlatFile, FlatFileError, from_records, read
from tests.tables import outcome_table

AS_OF = datetime(2026, 1, 1, tzinfo=UTC)
HEADER = "benchmark,agent,scaffold,model,submitted_at,task,trial,outcome,n_averaged"


def parse(rows: list[str], header: str = HEADER, limits=FILE) -> FlatFile:
    return read(io.BytesIO("\n".join([header, *rows]).encode()), as_of=AS_OF, limits=limits)


def faults_of(rows: list[str]) -> list[str]:
    with pytest.raises(FlatFileError) as caught:
        parse(rows)
    return [str(fault) for fault in caught.value.faults]


def row(task="t", trial="1", outcome="1", n="", agent="a"):
    return f"b,{agent},s,m,2025-03-04,{task},{trial},{outcome},{n}"


def test_a_mean_of_five_runs_is_five_trials():
    file = parse([row("t1", "1", "0.4", "5"), row("t2", "7", "0.25"), row("t3", "0", "1", "1")])
    assert file.trial.tolist() == [1, 2, 3, 4, 5, 7, 0]
    assert file.outcome.tolist() == [1, 1, 0, 0, 0, 0.25, 1]
    assert [file.tasks[i] for i in file.task] == ["t1"] * 5 + ["t2", "t3"]
    assert file.valid.all()


def test_what_stands_beside_is_repeated():
    header = f"{HEADER},cost_usd,note,human,human_probability,judge"
    rows = [row(outcome="0.5", n="2") + ",1.5,hello,1,0.75,j", row("u") + ",,,,,"]
    file = parse(rows, header)
    np.testing.assert_array_equal(file.measured["cost_usd"], [1.5, 1.5, np.nan])
    np.testing.assert_array_equal(file.labels["human"], [1, 1, np.nan])
    np.testing.assert_array_equal(file.labels["human_probability"], [0.75, 0.75, np.nan])
    assert file.metadata["note"].to_pylist() == ["hello", "hello", None]
    assert file.metadata["human_probability"].to_pylist() == ["0.75", "0.75", None]
    assert [file.settings[i].judge for i in file.setting] == ["j", "j", None]
    assert file.submitted_at.astype(str).tolist() == ["2025-03-04T00:00:00"] * 3


def test_invalid_runs_without_an_outcome_are_as_many_invalid_trials():
    file = parse([row(outcome="", n="3") + ",0"], f"{HEADER},valid")
    assert file.trial.tolist() == [1, 2, 3]
    assert np.isnan(file.outcome).all()
    assert not file.valid.any()


@given(st.integers(1, 200), st.data())
@settings(max_examples=50, deadline=None)
def test_the_mean_and_the_number_of_runs_are_kept(n, data):
    passed = data.draw(st.integers(0, n))
    file = parse([row(outcome=f"{passed / n:.9f}", n=str(n))])
    assert (file.n_rows, file.outcome.sum()) == (n, passed)
    assert file.trial.tolist() == (list(range(1, n + 1)) if n > 1 else [1])


@pytest.mark.parametrize(("outcome", "n"), [("0.333333", "3"), ("0.3333337", "3"), ("0.0000001", "5")])
def test_a_mean_rounded_to_six_places_over_n_is_whole(outcome, n):
    """|n·x − whole| ≤ 1e-6: 3 × 0.333333 = 0.999999 is off by 1e-6, 3 × 0.3333337 by 1.1e-6."""
    off = abs(int(n) * float(outcome) - round(int(n) * float(outcome)))
    if off <= 1e-6:
        assert parse([row(outcome=outcome, n=n)]).n_rows == int(n)
    else:
        assert "the mean of 3 runs" in faults_of([row(outcome=outcome, n=n)])[0]


def test_a_mean_that_is_none_is_told_with_its_numbers():
    assert faults_of([row("u"), row(outcome="0.5", n="3"), row("v", outcome="0.3", n="2")]) == [
        'row 2, n_averaged "3": the mean of 3 runs that pass or fail is a whole number over'
        " 3, and 3 × 0.5 = 1.5",
        'row 3, n_averaged "2": the mean of 2 runs that pass or fail is a whole number over'
        " 2, and 2 × 0.3 = 0.6",
    ]


def test_no_other_row_may_hold_a_trial_of_the_mean():
    repeat = 'repeats row 1: agent "a", task "t", trial 2, one setting; give it another trial or run'
    assert faults_of([row(trial="0", outcome="0.5", n="4"), row(trial="2")]) == [f"row 2: the row {repeat}"]
    assert parse([row(trial="0", outcome="0.5", n="4"), row(trial="5"), row(trial="0")]).n_rows == 6
    assert len(faults_of([row(outcome="0.5", n="4"), row(trial="9", outcome="0.5", n="2")])) == 2


@pytest.mark.parametrize("n", ["0", "-1", "1.5", "many", "32768", "1e400"])
def test_a_number_of_runs_is_whole_and_positive(n):
    (fault,) = faults_of([row(n=n)])
    assert fault.startswith(f'row 1, n_averaged "{n}": a number of runs is a whole number from 1')


def test_the_trials_of_all_means_together_are_limited():
    rows = [row(f"t{i}", outcome="1", n="32767") for i in range(400)]
    assert faults_of(rows) == ["the file has more than 10,000,000 rows; split it"]


def test_repeats_count():
    """Two agents of the same means: with runs stated the table knows five trials of each task."""
    rows = [row(f"t{j}", "1", str(j / 5), "5", agent=name) for name in "xy" for j in range(6)]
    file = parse(rows)
    assert Counter(file.task.tolist()) == dict.fromkeys(range(6), 10)
    table = outcome_table(
        agents=file.agents,
        tasks=file.tasks,
        agent=file.agent,
        task=file.task,
        outcome=file.outcome,
        valid=file.valid,
        dates=[None, None],
        scaffolds=file.scaffolds,
        models=file.models,
    )
    np.testing.assert_allclose(table.means, [[0, 0.2, 0.4, 0.6, 0.8, 1]] * 2)


@pytest.mark.parametrize("column", ["human", "human_probability"])
def test_a_label_is_a_number_from_0_to_1(column):
    base = {"benchmark": "b", "agent": "a", "scaffold": "s", "model": "m", "submitted_at": "", "task": "t"}
    record = base | {"trial": 1, "outcome": 1}
    assert from_records([record | {column: 0.25}], constants={}, as_of=AS_OF).labels[column].tolist() == [
        0.25
    ]
    for odd in (-0.1, 1.1, "yes", float("nan"), True):
        with pytest.raises(FlatFileError, match=f"{column} is a number from 0 to 1, or empty"):
            from_records([record | {column: odd}], constants={}, as_of=AS_OF)


def test_a_few_means_of_a_stranger_stand_for_so_many_trials():
    rows = [row(f"t{i}", outcome="1", n="32767") for i in range(2)]
    assert parse(rows[:1]).n_rows == 32_767
    with pytest.raises(FlatFileError, match="adds up to 65,534 trials; at most 20,000 are allowed"):
        parse(rows, limits=DELIVERED)
    many = [row(f"t{i}", outcome="1", n="20") for i in range(1_500)]
    assert parse(many, limits=DELIVERED).n_rows == 30_000
