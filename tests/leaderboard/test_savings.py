"""What a subset saves in tasks and money (`selection.cost`), from the costs that were delivered."""

import pytest

from tests.toys import csv_text, graded, in_subset, lines_of, load_text, recomputed, rows_text

N_TASKS = 40


def priced(price, *, n_agents=16):
    return rows_text(
        [
            {"agent": name, "task": f"t{j:02d}", "outcome": mark, "cost_usd": price(i, j)}
            for i, (name, marks) in enumerate(graded(n_agents, N_TASKS).items())
            for j, mark in enumerate(marks)
        ]
    )


def test_measured_per_task(db):
    """Agent i pays (i + 1)(j + 1) cents on task j."""
    load_text(priced(lambda i, j: (i + 1) * (j + 1) / 100))
    board = recomputed()
    outside = sum(j + 1 for j in range(N_TASKS) if f"t{j:02d}" not in in_subset(board)) / 100
    saved = [outside * (i + 1) for i in range(16)]
    assert (board.savings["n_tasks"], board.savings["k"]) == (N_TASKS, len(in_subset(board)))
    assert board.savings["reduction"] == pytest.approx(1 - len(in_subset(board)) / N_TASKS)
    assert board.savings["per_run"]["median"] == pytest.approx((saved[7] + saved[8]) / 2)
    assert board.savings["per_run"]["largest"] == pytest.approx(saved[15])
    assert board.savings["note"] == "cost: measured per task for 16 of 16 agents"


def test_linear_where_every_task_costs_the_same(db):
    load_text(priced(lambda i, j: 0.5))
    board = recomputed()
    spared = N_TASKS - len(in_subset(board))
    assert board.savings["per_run"]["median"] == pytest.approx(0.5 * spared)
    assert board.savings["note"] == "cost: linear in tasks for 16 of 16 agents"


def test_costs_of_trials_add_up_and_of_runs_are_averaged(db):
    rows = [
        {
            "agent": name,
            "task": f"t{j:02d}",
            "outcome": mark,
            "trial": r,
            "run": run,
            "cost_usd": (j + 1) * price,
        }
        for name, marks in graded(6, N_TASKS).items()
        for j, mark in enumerate(marks)
        for run, price in (("r1", 1), ("r2", 3))
        for r in (1, 2)
    ]
    load_text(rows_text(rows))
    board = recomputed()
    outside = sum(j + 1 for j in range(N_TASKS) if f"t{j:02d}" not in in_subset(board))
    assert board.savings["per_run"]["median"] == pytest.approx(2 * outside * (1 + 3) / 2)


def test_subset_runs_are_counted_with_what_they_were_spared(db):
    load_text(priced(lambda i, j: 0.5))
    subset = in_subset(recomputed())
    runs = [
        {"agent": name, "task": task, "outcome": 1, "cost_usd": 0.5}
        for name in ("n1", "n2")
        for task in subset
    ]
    load_text(rows_text([*runs, {"agent": "n3", "task": "t00", "outcome": 1, "cost_usd": 0.5}]))
    board = recomputed()
    spared = N_TASKS - len(subset)
    assert lines_of(board)["n3"].rank is None
    assert board.savings["so_far"] == {
        "n_runs": 2,
        "n_tasks_saved": 2 * spared,
        "saved": pytest.approx(spared),
        "n_not_measured": 0,
    }


def test_without_costs_tasks_alone_are_told(db):
    load_text(csv_text(graded(16, N_TASKS)))
    board = recomputed()
    assert (board.savings["per_run"], board.savings["subset_run"]) == (None, None)
    assert board.savings["note"] == "cost: not measured"
    assert board.savings["so_far"] == {"n_runs": 0, "n_tasks_saved": 0, "saved": None, "n_not_measured": 0}


def test_without_a_subset_nothing_is_saved(db):
    load_text(csv_text(graded(4, N_TASKS)))
    assert recomputed().savings == {}
