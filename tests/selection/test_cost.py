"""What a subset saves: by hand, against the published table, and on boards whose costs are known."""

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selection.errors import SelectionError
from selection.standings.savings import Saving, saving
from tests.refusals import refused

NAN = math.nan
REPEATABLE = settings(derandomize=True, deadline=None)

# Ndzomga, Efficient Benchmarking of AI Agents, Table 5: N, k, median and range of the savings in dollars.
PUBLISHED = {
    "TerminalBench": (89, 39, None),
    "GAIA": (165, 82, (70.3, 40.1, 237.7)),
    "SWE-bench Mini": (50, 21, (94.5, 37.9, 234.0)),
    "USACO": (307, 93, (39.3, 19.6, 55.8)),
    "tau-bench Airline": (50, 28, (9.8, 5.2, 22.4)),
    "CoreBench Hard": (45, 15, (44.1, 16.8, 67.5)),
    "Online Mind2Web": (300, 95, (188.7, 149.2, 253.2)),
}
PUBLISHED_REDUCTIONS = [56, 50, 58, 70, 44, 67, 68]


def spread_of(median, lower, upper, smallest, largest):
    quartiles = {"median": median, "lower_quartile": lower, "upper_quartile": upper}
    return quartiles | {"smallest": smallest, "largest": largest}


def published_row(n_tasks, k, money):
    spread = money and spread_of(money[0], money[1], money[2], 0.0, 0.0)
    none = np.empty(0)
    return Saving(n_tasks, k, none, none, (), spread, spread)


def test_measured_linear_and_not_measured():
    costs = np.array(
        [
            [1.0, 2.0, 3.0, 4.0],  # measured: 10 in all, 3 on the subset
            [2.0, NAN, 4.0, NAN],  # linear: 3 a task, so 12 in all and 6 on two tasks
            [5.0, 5.0, 5.0, 5.0],  # a total divided by the tasks: linear as well
            [NAN, NAN, NAN, NAN],
        ]
    )
    result = saving(costs, np.array([0, 1]))
    assert result.basis == ("measured per task", "linear in tasks", "linear in tasks", "not measured")
    assert result.saved[:3].tolist() == [7.0, 6.0, 10.0]
    assert result.subset_costs[:3].tolist() == [3.0, 6.0, 10.0]
    assert math.isnan(result.saved[3])
    assert result.per_run == spread_of(7.0, 6.5, 8.5, 6.0, 10.0)
    assert result.subset_run == spread_of(6.0, 4.5, 8.0, 3.0, 10.0)
    assert (result.n_tasks, result.k, result.reduction) == (4, 2, 0.5)
    assert result.note() == (
        "cost: measured per task for 1 of 4 agents, linear in tasks for 2 of 4 agents, "
        "not measured for 1 of 4 agents"
    )


def test_the_mean_of_equal_costs_is_that_cost_however_it_was_added_up():
    """A run's cost divided by its tasks; of three trials the sum has one more rounding."""
    costs = np.array([[0.1, (0.1 + 0.1 + 0.1) / 3, 0.1]])
    assert costs[0, 1] != 0.1
    assert saving(costs, np.array([0])).basis == ("linear in tasks",)
    assert saving(costs + np.array([0.0, 1e-6, 0.0]), np.array([0])).basis == ("measured per task",)


def test_costs_that_are_not_believed_are_counted_and_left_out():
    costs = np.array([[1.0, 2.0], [0.0, 0.0], [NAN, NAN]])
    result = saving(costs, np.array([0]), np.array([True, False, False]))
    assert result.basis == ("measured per task", "implausible", "not measured")
    assert result.per_run == spread_of(2.0, 2.0, 2.0, 2.0, 2.0)
    assert result.note() == (
        "cost: measured per task for 1 of 3 agents, implausible for 1 of 3 agents, "
        "not measured for 1 of 3 agents"
    )


def test_without_costs_the_tasks_are_still_counted():
    result = saving(np.full((3, 10), NAN), np.arange(4))
    assert (result.per_run, result.subset_run) == (None, None)
    assert result.reduction == pytest.approx(0.6)
    assert result.note() == "cost: not measured"


def test_the_published_reductions():
    rows = [published_row(*row) for row in PUBLISHED.values()]
    assert [round(100 * row.reduction) for row in rows] == PUBLISHED_REDUCTIONS


def run_costs(rows):
    """Cost of each run, one of an agent's trials, and the mean cost of each cell."""
    runs, cells = defaultdict(float), defaultdict(list)
    for row in rows:
        runs[row["agent"], row["trial"]] += float(row["cost_usd"])
        cells[row["agent"], row["task"]].append(float(row["cost_usd"]))
    agents, tasks = sorted({a for a, _ in cells}), sorted({t for _, t in cells})
    costs = [[np.mean(cells[a, t]) if cells[a, t] else NAN for t in tasks] for a in agents]
    return np.array(costs), list(runs.values())


@pytest.mark.parametrize(
    ("name", "k", "published"),
    [
        ("hal_gaia", 82, "GAIA"),
        ("hal_taubench_airline", 28, "tau-bench Airline"),
        ("hal_corebench_hard", 15, "CoreBench Hard"),
    ],
)
def test_real_boards_beside_the_published_savings(real_rows, name, k, published):
    costs, runs = run_costs(real_rows(name))
    n_agents, n_tasks = costs.shape
    result = saving(costs, np.arange(k))
    # These files hold run cost / tasks in every cell: nothing was measured per task.
    assert set(result.basis) == {"linear in tasks"}
    by_agent = np.nanmean(costs, axis=1) * (n_tasks - k)
    assert result.saved == pytest.approx(by_agent, rel=1e-9)
    assert result.per_run["median"] == pytest.approx(np.median(by_agent), rel=1e-9)
    median, lowest, highest = PUBLISHED[published][2]
    # Leaderboard of another day: the medians agree to a fifth. The published range cannot be the extremes.
    assert result.per_run["median"] == pytest.approx(median, rel=0.2)
    assert result.per_run["smallest"] < lowest < median < highest < result.per_run["largest"]
    print(f"{name}: {n_agents} agents, {len(runs)} runs, {result.per_run} beside {PUBLISHED[published][2]}")


@REPEATABLE
@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(1, 12), st.floats(0.0, 0.5))
def test_saved_and_paid_make_the_full_run(seed, n_agents, n_tasks, share_missing):
    rng = np.random.default_rng(seed)
    costs = rng.exponential(1.0, (n_agents, n_tasks))
    costs[rng.random(costs.shape) < share_missing] = NAN
    tasks = rng.choice(n_tasks, rng.integers(1, n_tasks + 1), replace=False)
    result, rest = saving(costs, tasks), saving(costs, np.arange(n_tasks))
    assert np.allclose(result.saved + result.subset_costs, rest.subset_costs, equal_nan=True)
    assert np.allclose(rest.saved, np.where(np.isnan(rest.saved), NAN, 0.0), equal_nan=True, atol=1e-12)
    order = rng.permutation(n_agents)
    turned = saving(costs[order], tasks)
    assert np.array_equal(turned.saved, result.saved[order], equal_nan=True)


@REPEATABLE
@given(st.integers(0, 2**32 - 1), st.integers(1, 20), st.floats(0.01, 100))
def test_equal_costs_scale_with_the_task_count(seed, n_tasks, cost):
    k = 1 + seed % n_tasks
    result = saving(np.full((1, n_tasks), cost), np.arange(k))
    assert result.saved[0] == pytest.approx(cost * n_tasks * result.reduction, abs=1e-9)


@pytest.mark.parametrize(
    ("costs", "tasks", "refusal", "message"),
    [
        ([[1.0, -1.0]], [0], "cost_range", "agent 0, task 1: a cost of -1.0"),
        ([[1.0, math.inf]], [0], "cost_range", "a cost of inf"),
        ([[1.0, 1.0]], [], "no_tasks", "no task in the subset"),
        ([[1.0, 1.0]], [2], "shape", "not 2 tasks' positions"),
        ([[1.0, 1.0]], [0, 0], "shape", "a subset of 2 tasks"),
        ([1.0, 1.0], [0], "shape", r"shape \(2,\)"),
    ],
)
def test_what_is_no_cost_is_refused_by_name(costs, tasks, refusal, message):
    with refused(SelectionError, refusal, match=message):
        saving(np.array(costs), np.array(tasks))
