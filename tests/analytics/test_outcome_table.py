import math
import sqlite3
import statistics
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, date, datetime
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from analytics.errors import CoreError
from analytics.outcome_table import OutcomeTable, cell_moments, naive_standard_error
from tests.tables import outcome_table

REPEATABLE = settings(derandomize=True, deadline=None)


def real_table(rows):
    agents, tasks = list({row["agent"]: 0 for row in rows}), list({row["task"]: 0 for row in rows})
    return outcome_table(
        agents=agents,
        tasks=tasks,
        agent=[agents.index(row["agent"]) for row in rows],
        task=[tasks.index(row["task"]) for row in rows],
        outcome=[float(row["outcome"]) for row in rows],
        valid=[row.get("valid", "1") == "1" for row in rows],
    )


def table_of(means, **changes):
    """Build a table of agents a000, a001, … with one trial in every cell that is not NaN."""
    means = np.array(means, dtype=float)
    n_agents, n_tasks = means.shape
    fields = {
        "agents": tuple(f"a{i:03d}" for i in range(n_agents)),
        "tasks": tuple(f"t{j:03d}" for j in range(n_tasks)),
        "means": means,
        "n_valid": (~np.isnan(means)).astype(np.int32),
        "dates": (None,) * n_agents,
        "scaffolds": ("",) * n_agents,
        "models": ("",) * n_agents,
    }
    return OutcomeTable(**(fields | changes))


def test_a_cell_is_the_mean_over_conditions_of_the_mean_over_valid_trials():
    # task 0: condition 0 has 1, 0, 0 (mean 1/3), condition 1 has 1 (mean 1): (1/3 + 1)/2 = 2/3, not 2/4.
    # task 1: its only trial is invalid. task 2: no valid trial under one of the two. task 3: no row.
    rows = {
        "task": [0, 0, 0, 0, 1, 2, 2],
        "outcome": [1, 0, 0, 1, 1, 0.5, 1],
        "valid": [True, True, True, True, False, True, False],
        "n_tasks": 4,
    }
    means, n_valid, *_ = cell_moments(**rows, condition=[0, 0, 0, 1, 0, 0, 1], n_conditions=2)
    assert means[0] == pytest.approx(2 / 3, abs=1e-15)
    assert np.isnan(means[1:]).all()
    assert n_valid.tolist() == [4, 0, 0, 0]
    assert n_valid.dtype == np.int32
    means, n_valid, *_ = cell_moments(**rows)  # of one condition
    assert means[[0, 2]].tolist() == [0.5, 0.5]
    assert n_valid.tolist() == [4, 0, 1, 0]


def test_no_row_at_all_is_a_row_of_missing_cells():
    means, n_valid, *_ = cell_moments([], [], [], 3)
    assert np.isnan(means).all()
    assert n_valid.tolist() == [0, 0, 0]


def test_an_invalid_outcome_is_not_looked_at():
    means, n_valid, *_ = cell_moments([0, 0], [math.nan, 1.0], [False, True], 1)
    assert (means[0], n_valid[0]) == (1.0, 1)


def test_names_are_put_in_code_point_order_before_arithmetic():
    table = outcome_table(
        agents=["zeta", "Beta", "émile"],
        tasks=["b", "B", "a10", "a9"],
        agent=[0, 1, 2],
        task=[0, 1, 2],
        outcome=[0.25, 0.5, 0.75],
        valid=[True, True, True],
        dates=[date(2025, 3, 1), None, date(2024, 1, 1)],
        scaffolds=["s-zeta", "s-beta", "s-émile"],
        models=["m-zeta", "m-beta", "m-émile"],
    )
    assert table.agents == ("Beta", "zeta", "émile")  # B U+0042, z U+007A, é U+00E9
    assert table.tasks == ("B", "a10", "a9", "b")  # B, a, then 1 before 9
    assert table.dates == (None, date(2025, 3, 1), date(2024, 1, 1))
    assert table.scaffolds == ("s-beta", "s-zeta", "s-émile")
    assert table.models == ("m-beta", "m-zeta", "m-émile")
    assert [table.means[0, 0], table.means[1, 3], table.means[2, 1]] == [0.5, 0.25, 0.75]
    assert np.count_nonzero(table.n_valid) == 3


ROWS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.integers(0, 3),
        st.integers(1, 6),
        st.sampled_from([0.0, 0.1, 0.2, 0.3, 1 / 3, 0.7, 0.9, 1.0]),
        st.booleans(),
    ),
    unique_by=lambda row: row[:3],
    max_size=60,
)


def built(rows, agents=("x", "y", "z"), tasks=("p", "q", "r", "s")):
    agent, task, _, outcome, valid = (list(column) for column in zip(*rows, strict=True))
    return outcome_table(
        agents=agents,
        tasks=tasks,
        agent=agent,
        task=task,
        outcome=outcome,
        valid=valid,
    )


@pytest.mark.parametrize("by", ["trial", "condition", "judge"])
def test_the_order_of_the_addends_does_not_reach_the_last_bit(by):
    # Added as they come, .1 + .2 + .3 is 0.6000000000000001 and .3 + .2 + .1 is 0.6.
    assert (0.1 + 0.2) + 0.3 != (0.3 + 0.2) + 0.1
    means = set()
    for outcomes in permutations([0.1, 0.2, 0.3]):
        several = {"condition": [0, 1, 2], "n_conditions": 3} if by != "trial" else {}
        trial = [7, 7, 7] if by == "judge" else None
        means.add(cell_moments([0, 0, 0], outcomes, [True] * 3, 1, trial=trial, **several)[0][0])
    assert len(means) == 1


@REPEATABLE
@given(ROWS.filter(bool), st.randoms(use_true_random=False))
def test_equal_sets_of_rows_give_equal_bits(rows, random):
    shuffled = random.sample(rows, len(rows))
    first, second = built(rows), built(shuffled)
    assert first.means.tobytes() == second.means.tobytes()
    assert first.n_valid.tobytes() == second.n_valid.tobytes()


@REPEATABLE
@given(ROWS.filter(bool))
def test_the_order_in_which_names_are_given_does_not_matter(rows):
    turned = [(2 - a, 3 - t, *rest) for a, t, *rest in rows]
    first, second = built(rows), built(turned, agents=("z", "y", "x"), tasks=("s", "r", "q", "p"))
    assert (first.agents, first.tasks) == (second.agents, second.tasks)
    assert first.means.tobytes() == second.means.tobytes()


@REPEATABLE
@given(ROWS.filter(bool))
def test_cells_equal_their_definition_in_exact_fractions(rows):
    trials = defaultdict(list)
    for agent, task, _, outcome, valid in rows:
        if valid:
            trials[agent, task].append(Fraction(outcome))
    table = built(rows)
    for i in range(3):
        for j in range(4):
            of_cell = trials[i, j]
            assert table.n_valid[i, j] == len(of_cell)
            if of_cell:
                assert table.means[i, j] == pytest.approx(float(sum(of_cell) / len(of_cell)), abs=1e-15)
            else:
                assert np.isnan(table.means[i, j])


def test_cells_equal_those_of_sqlite():
    rng = np.random.default_rng(11)
    keys = [(a, t, r) for a in range(6) for t in range(9) for r in range(12)]
    rows = [(*key, float(rng.random()), bool(rng.random() < 0.6)) for key in keys]
    sqlite = sqlite3.connect(":memory:")
    sqlite.execute("CREATE TABLE row (agent, task, trial, outcome, valid)")
    sqlite.executemany("INSERT INTO row VALUES (?, ?, ?, ?, ?)", rows)
    by_sqlite = sqlite.execute(
        "SELECT agent, task, avg(outcome), count(*) FROM row WHERE valid GROUP BY agent, task"
    ).fetchall()
    sqlite.close()
    table = built(rows, agents=[f"a{i}" for i in range(6)], tasks=[f"t{j}" for j in range(9)])
    assert len(by_sqlite) == np.count_nonzero(table.n_valid)
    for agent, task, mean, n_valid in by_sqlite:
        assert table.means[agent, task] == pytest.approx(mean, abs=1e-14)
        assert table.n_valid[agent, task] == n_valid


@REPEATABLE
@given(ROWS.filter(bool))
def test_the_row_of_one_agent_is_the_row_of_the_table(rows):
    table = built(rows)
    for i in range(3):
        own = [row for row in rows if row[0] == i]
        columns = list(zip(*own, strict=True)) or [()] * 5
        means, n_valid, *_ = cell_moments(columns[1], columns[3], columns[4], 4)
        assert means.tobytes() == table.means[i].tobytes()
        assert n_valid.tobytes() == table.n_valid[i].tobytes()


def test_scores_by_hand():
    table = table_of([[1, 0, 0.5, 1], [1, math.nan, 0, math.nan], [math.nan, math.nan, math.nan, 0.25]])
    assert table.n_valid_tasks().tolist() == [4, 2, 1]
    assert table.scores().tolist() == [2.5 / 4, 1 / 2, 0.25]


def test_an_agent_without_a_valid_outcome_has_no_score():
    table = table_of([[1.0, 0.0], [math.nan, math.nan]])
    with pytest.raises(CoreError, match="no valid outcome for 'a001': no score"):
        table.scores()
    assert table.restrict(agents=table.n_valid_tasks() > 0).scores().tolist() == [0.5]


def test_a_refusal_names_three_agents_and_counts_the_rest():
    with pytest.raises(CoreError, match="'a000', 'a001', 'a002' and 2 more"):
        table_of(np.full((5, 2), math.nan)).scores()


# 95% of m by hand: 19 of 20; 43 of 45 (42.75); 157 of 165 (156.75); 475 of 500.
@pytest.mark.parametrize(("n_valid", "m"), [(19, 20), (43, 45), (157, 165), (475, 500), (1, 1)])
def test_complete_is_95_percent_in_whole_numbers(n_valid, m):
    means = np.full((2, m), math.nan)
    means[0, :n_valid] = 1.0
    means[1, : n_valid - 1] = 1.0
    assert table_of(means).complete().tolist() == [True, False]


@REPEATABLE
@given(st.integers(1, 400), st.data())
def test_complete_agrees_with_exact_fractions(m, data):
    n_valid = data.draw(st.integers(0, m))
    means = np.full((1, m), math.nan)
    means[0, :n_valid] = 0.0
    assert table_of(means).complete()[0] == (Fraction(n_valid, m) >= Fraction(95, 100))


def test_restrict_keeps_order_and_everything_that_belongs_to_an_agent():
    table = table_of(
        [[0.0, 0.25], [0.5, 0.75], [1.0, math.nan]],
        dates=(date(2025, 1, 1), None, date(2025, 1, 3)),
        scaffolds=("s0", "s1", "s2"),
        models=("m0", "m1", "m2"),
    )
    part = table.restrict(agents=np.array([True, False, True]), tasks=np.array([False, True]))
    assert (part.agents, part.tasks) == (("a000", "a002"), ("t001",))
    assert (part.dates, part.scaffolds) == ((date(2025, 1, 1), date(2025, 1, 3)), ("s0", "s2"))
    assert part.models == ("m0", "m2")
    assert part.means[0, 0] == 0.25
    assert np.isnan(part.means[1, 0])
    assert table.restrict().means.tobytes() == table.means.tobytes()
    assert table.restrict(agents=np.zeros(3, dtype=bool)).n_agents == 0


def test_a_restriction_to_nothing_or_by_a_wrong_mask_is_refused():
    table = table_of([[0.0, 1.0]])
    with pytest.raises(CoreError, match="at least one task"):
        table.restrict(tasks=np.array([False, False]))
    with pytest.raises(CoreError, match="agents: a mask of int64"):
        table.restrict(agents=np.array([0]))
    with pytest.raises(CoreError, match=r"tasks: a mask of bool \(3,\)"):
        table.restrict(tasks=np.array([True, True, True]))


def test_the_arrays_refuse_to_be_written_to():
    table = table_of([[0.0, 1.0]])
    for array in (table.means, table.n_valid):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"agents": ("b", "a")}, "agents: 'a' stands after 'b'"),
        ({"agents": ("a", "a")}, "none twice"),
        ({"tasks": ("t", "T")}, "tasks: 'T' stands after 't'"),
        ({"means": np.zeros((2, 3))}, r"means: float64 \(2, 3\), not float64 \(2, 2\)"),
        ({"means": np.zeros((2, 2), dtype=np.float32)}, "means: float32"),
        ({"n_valid": np.ones((2, 2), dtype=np.int64)}, "n_valid: int64"),
        ({"n_valid": np.array([[1, 1], [1, 0]], dtype=np.int32)}, "'t001': mean 0.0 from 0 valid trials"),
        ({"n_valid": np.array([[1, -1], [1, 1]], dtype=np.int32)}, "from -1 valid trials"),
        ({"means": np.array([[0, 0], [0, math.nan]])}, "mean nan from 1 valid trials"),
        ({"means": np.array([[0, 0], [0, 1.0000001]])}, "mean 1.0000001 from 1"),
        ({"dates": (None,)}, "dates: 1 values for 2 agents"),
        ({"models": ("", "", "")}, "models: 3 values for 2 agents"),
        ({"dates": (None, datetime(2025, 1, 1, tzinfo=UTC))}, "not a date without time of day"),
        ({"dates": (None, "2025-01-01")}, "'a001' has '2025-01-01'"),
    ],
)
def test_a_table_that_contradicts_itself_is_refused(changes, message):
    with pytest.raises(CoreError, match=message):
        replace(table_of([[0.0, 0.0], [0.0, 0.0]]), **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"outcome": [0.5, 1.5]}, "row 1, outcome: 1.5 is not from 0 to 1"),
        ({"outcome": [-0.1, 0]}, "row 0, outcome: -0.1"),
        ({"outcome": [0, math.nan]}, "row 1, outcome: nan"),
        ({"outcome": [math.inf, 0]}, "row 0, outcome: inf"),
        ({"task": [0, 2]}, "row 1, task: code 2 is not from 0 to 1"),
        ({"task": [-1, 0]}, "row 0, task: code -1"),
        ({"task": [1.0, 2.0]}, "task: a list of whole numbers"),
        ({"task": [0]}, "columns differ in length"),
        ({"valid": [True]}, "columns differ in length"),
        ({"valid": ["1", "0"]}, "valid: true and false, or 1 and 0, are needed, not <U1"),
        ({"valid": [1, 2]}, "valid: true and false, or 1 and 0"),
    ],
)
def test_a_row_that_does_not_fit_is_refused_with_its_place(changes, message):
    rows = {"task": [0, 1], "outcome": [0, 1], "valid": [True, True]}
    with pytest.raises(CoreError, match=message):
        cell_moments(n_tasks=2, **(rows | changes))


# --------------------------------------------------------------------------------------- variance of trials


def test_trial_variances_are_pooled_within_conditions():
    # task 0: condition 0 has 1, 0, 0 (squares 2/3, 2 degrees), condition 1 has 1 alone: s² = 1/3,
    # R = 2²/(1/3 + 1) = 3. task 1: no valid trial. task 2: one trial under each: R = 2.
    # task 3: 0.5, 1 and 0, 0, 1, 1 (squares 1/8 and 1, 1 + 3 degrees): s² = 9/32, R = 4/(1/2 + 1/4).
    cells = cell_moments(
        task=[0, 0, 0, 0, 1, 2, 2, 3, 3, 3, 3, 3, 3],
        outcome=[1, 0, 0, 1, 1, 0.5, 1, 0.5, 1, 0, 0, 1, 1],
        valid=[True] * 4 + [False] + [True] * 8,
        n_tasks=4,
        condition=[0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 1, 1, 1],
        n_conditions=2,
    )
    assert cells.trial_variances == pytest.approx([1 / 3, math.nan, math.nan, 9 / 32], nan_ok=True)
    assert cells.n_trials == pytest.approx([3, math.nan, 2, 16 / 3], nan_ok=True)


def test_verdicts_of_several_judges_on_one_trial_are_one_trial():
    # task 0: trials 1, 2, 3 scored by two judges, 1/1, 0/1, 0/0: means 1, 1/2, 0, s² = 1/4, R = 3.
    # task 1: two trials scored by judge 0 (1, 0), the second by judge 1 too (1). Shares of the cell: 1/4 and
    # 1/4 + 1/2: R = 1/(1/16 + 9/16) = 8/5; no two trials were scored by the same judges.
    # task 2: trials 1 and 2 scored by judge 0 (1, 0), 3 and 4 by judge 1 (1, 1): all apart.
    cells = cell_moments(
        task=[0] * 6 + [1] * 3 + [2] * 4,
        outcome=[1, 0, 0, 1, 1, 0, 1, 0, 1, 1, 0, 1, 1],
        valid=[True] * 13,
        n_tasks=3,
        condition=[0, 0, 0, 1, 1, 1, 0, 0, 1, 0, 0, 1, 1],
        n_conditions=2,
        trial=[1, 2, 3, 1, 2, 3, 1, 2, 2, 1, 2, 3, 4],
    )
    assert cells.means == pytest.approx([1 / 2, 3 / 4, 3 / 4])
    assert cells.trial_variances == pytest.approx([1 / 4, math.nan, 1 / 4], nan_ok=True)
    assert cells.n_trials == pytest.approx([3, 8 / 5, 4])


@REPEATABLE
@given(ROWS.filter(bool), st.integers(2, 4))
def test_another_judge_who_says_the_same_changes_nothing(rows, n_judges):
    alone = [cell_moments([t for _, t, *_ in rows], [o for *_, o, _ in rows], [v for *_, v in rows], 4)]
    task, trial, outcome, valid = zip(*((t, i, o, v) for i, (_, t, _, o, v) in enumerate(rows)), strict=True)
    several = cell_moments(
        task * n_judges,
        outcome * n_judges,
        valid * n_judges,
        4,
        condition=np.repeat(np.arange(n_judges), len(rows)),
        n_conditions=n_judges,
        trial=trial * n_judges,
    )
    for field in ("means", "trial_variances", "n_trials"):
        np.testing.assert_allclose(getattr(several, field), getattr(alone[0], field), rtol=1e-13, atol=1e-30)


def test_r_of_one_condition_is_the_number_of_trials_and_equal_trials_do_not_vary():
    for n in range(2, 60):
        cells = cell_moments([0] * n, [0.1] * n, [True] * n, 1)
        assert (cells.n_trials[0], cells.trial_variances[0]) == (n, 0.0)


@REPEATABLE
@given(ROWS, st.randoms(use_true_random=False))
def test_moments_equal_those_of_statistics_and_owe_nothing_to_order(rows, random):
    assume(rows)
    table = built(rows)
    cells = defaultdict(list)
    for agent, task, _, outcome, valid in rows:
        if valid:
            cells[agent, task].append(outcome)
    for (i, j), variance in np.ndenumerate(table.trial_variances):
        sample = cells[i, j]
        expected = statistics.variance(sample) if len(sample) > 1 else math.nan
        assert variance == pytest.approx(expected, abs=1e-14, nan_ok=True)
        if sample:
            assert table.n_trials[i, j] == len(sample)
    again = built(random.sample(rows, len(rows)))
    for field in ("means", "trial_variances", "n_trials"):
        assert getattr(again, field).tobytes() == getattr(table, field).tobytes()


@pytest.mark.parametrize("judged", [False, True])
def test_the_variance_of_a_cell_is_its_trial_variance_over_r(judged):
    """3 conditions of 1, 2 and 4 trials, apart or two judges of the same: against the simulated variance."""
    rng = np.random.default_rng(1)
    n_cells, condition = 20_000, np.array([0, 1, 1, 2, 2, 2, 2])
    drawn = rng.random((n_cells, 7))
    if judged:  # one trial each of conditions 0 and 1, and two of the others, rest on one draw
        drawn[:, 3:6] = drawn[:, :3]
    outcomes = (drawn < 0.5).astype(float)
    trial = [0, 1, 2, 0, 1, 2, 3] if judged else None
    cells = cell_moments(
        np.repeat(np.arange(n_cells), 7),
        outcomes.ravel(),
        np.ones(n_cells * 7, dtype=bool),
        n_cells,
        condition=np.tile(condition, n_cells),
        n_conditions=3,
        trial=None if trial is None else np.tile(trial, n_cells),
    )
    # Var = .25·Σ a²; apart, Σ a² = (1 + 1/2 + 1/4)/9; else of the shares 5/12, 1/4, 1/4, 1/12
    squares = (25 + 9 + 9 + 1) / 144 if judged else 7 / 36
    assert cells.n_trials == pytest.approx(1 / squares)
    assert cells.means.var() == pytest.approx(0.25 * squares, rel=0.05)
    assert np.nanmean(cells.trial_variances) == pytest.approx(0.25, rel=0.02)


def test_a_restriction_carries_the_variance_of_trials():
    table = built([(0, 0, 1, 0.0, True), (0, 0, 2, 1.0, True), (1, 1, 1, 1.0, True)])
    part = table.restrict(agents=np.array([True, False, False]))
    assert part.trial_variances[0, 0] == 0.5
    assert part.n_trials[0, 0] == 2.0
    assert table_of([[1.0]]).restrict().trial_variances is None
    with pytest.raises(ValueError, match="read-only"):
        part.n_trials[0, 0] = 1


@pytest.mark.parametrize(
    ("variances", "n_trials", "message"),
    [
        (np.full((1, 1), math.nan), None, "given together"),
        (np.full((1, 2), math.nan), np.ones((1, 1)), r"trial_variances: float64 \(1, 2\)"),
        (np.full((1, 1), math.nan), np.ones((1, 1), dtype=int), "n_trials: int64"),
        (np.zeros((1, 1)), np.ones((1, 1)), "variance 0.0 of 1.0 trials from 1 valid ones"),
        (np.full((1, 1), math.nan), np.full((1, 1), 2.0), "of 2.0 trials from 1"),
        (np.full((1, 1), math.nan), np.full((1, 1), math.nan), "of nan trials from 1"),
    ],
)
def test_trials_that_contradict_the_cells_are_refused(variances, n_trials, message):
    with pytest.raises(CoreError, match=message):
        table_of([[1.0]], trial_variances=variances, n_trials=n_trials)


# By hand: sqrt(.25/100) = .05; sqrt(.16/25) = .08; sqrt(.09/9) = .1; no spread at 0 and 1.
@pytest.mark.parametrize(
    ("score", "n", "error"), [(0.5, 100, 0.05), (0.2, 25, 0.08), (0.9, 9, 0.1), (0.0, 7, 0.0), (1.0, 7, 0.0)]
)
def test_naive_standard_error_by_hand(score, n, error):
    assert naive_standard_error(score, n) == pytest.approx(error, abs=1e-15)


@REPEATABLE
@given(st.integers(1, 300), st.data())
def test_naive_standard_error_is_that_of_a_share(n, data):
    n_passed = data.draw(st.integers(0, n))
    spread = statistics.pstdev([1] * n_passed + [0] * (n - n_passed))
    assert naive_standard_error(n_passed / n, n) == pytest.approx(spread / math.sqrt(n), abs=1e-12)


def test_naive_standard_error_refuses_no_tasks_and_no_score():
    with pytest.raises(CoreError, match="over 0 tasks"):
        naive_standard_error(0.5, 0)
    for score in (-0.1, 1.1, math.nan):
        with pytest.raises(CoreError, match="a score lies from 0 to 1"):
            naive_standard_error(score, 5)


# agents, tasks and trials as the source tells them; all agents of these boards are complete.
@pytest.mark.parametrize(
    ("name", "n_agents", "n_tasks"),
    [
        ("hal_gaia", 32, 165),
        ("hal_corebench_hard", 38, 45),
        ("hal_taubench_airline", 26, 50),
        ("hal_scicode", 24, 65),
        ("terminal_bench_core_011", 13, 80),
        ("swebench_verified_2023_2025", 57, 500),
    ],
)
def test_real_boards_have_their_published_shape_and_exact_cells(real_rows, name, n_agents, n_tasks):
    rows = real_rows(name)
    table = real_table(rows)
    assert (table.n_agents, table.n_tasks) == (n_agents, n_tasks)
    assert table.complete().all()
    trials = defaultdict(list)
    for row in rows:
        if row.get("valid", "1") == "1":
            trials[row["agent"], row["task"]].append(Fraction(row["outcome"]))
    assert table.n_valid.sum() == sum(map(len, trials.values()))
    for i, agent in enumerate(table.agents):
        cells = [trials[agent, task] for task in table.tasks]
        exact = [float(sum(cell) / len(cell)) if cell else math.nan for cell in cells]
        assert table.means[i] == pytest.approx(exact, abs=1e-15, nan_ok=True)
        valid = [sum(cell) / len(cell) for cell in cells if cell]
        assert table.scores()[i] == pytest.approx(float(sum(valid) / len(valid)), abs=1e-14)
