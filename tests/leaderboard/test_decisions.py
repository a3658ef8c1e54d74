"""Which differences a published board claims: standard errors, rank intervals and ties (§7.4)."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from leaderboard.boards.queries import as_dict, head_of, standings_of
from leaderboard.catalog.models import Benchmark
from tests.toys import (
    AS_OF,
    csv_text,
    graded,
    in_subset,
    ladder,
    lines_of,
    load_text,
    only,
    recomputed,
    rows_text,
)


def tied_with(board, target):
    """By name, the names of those tied with each agent."""
    lines = standings_of(board).agents
    return {
        line.agent: [
            one.agent for first, last in line.at[target].tied_with for one in lines[first : last + 1]
        ]
        for line in lines
    }


def test_a_clear_winner_beats_and_twins_are_tied(db):
    """By hand: nothing but 1 against nothing but 0 on 40 tasks, and two agents with the same outcomes."""
    load_text(csv_text({"best": "1" * 40, "one": "10" * 20, "two": "10" * 20, "worst": "0" * 40}))
    board = recomputed()
    lines = lines_of(board)
    ranks = {name: (e.at["full"].rank_lower, e.at["full"].rank_upper) for name, e in lines.items()}
    assert ranks == {"best": (1, 1), "one": (2, 3), "two": (2, 3), "worst": (4, 4)}
    assert tied_with(board, "full") == {"best": [], "one": ["two"], "two": ["one"], "worst": []}
    assert lines["one"].flags == ("the same outcome as two on every task",)


def test_rank_intervals_hold_the_rank_and_ties_are_mutual(db):
    load_text(csv_text(graded(16, 60)))
    board = recomputed()
    ties = tied_with(board, "subset")
    for name, line in lines_of(board).items():
        told = line.at["subset"]
        assert told.rank_lower <= told.rank <= told.rank_upper
        assert name not in ties[name]
        assert all(name in ties[other] for other in ties[name])


def test_one_trial_a_task_by_hand(db):
    """Finite: √(ȳ(1 − ȳ)/N), an upper bound; domain: s/√N, t with N − 1."""
    outcomes = ladder(4, 20)
    load_text(csv_text(outcomes))
    board = recomputed()
    line = lines_of(board)["a01"]
    x = np.array([int(mark) for mark in outcomes["a01"]])
    full, domain = line.at["full"], line.at["domain"]
    assert (full.method, full.upper_bound, domain.method) == ("upper bound", True, "domain")
    assert full.se == pytest.approx(math.sqrt(x.mean() * (1 - x.mean()) / 20))
    assert full.se == full.naive_se
    assert domain.se == pytest.approx(x.std(ddof=1) / math.sqrt(20))
    assert domain.upper - domain.score == pytest.approx(stats.t.ppf(0.975, 19) * domain.se)
    assert head_of(board).not_measured[0].startswith("how much the trials of one task vary")


def test_repeated_trials_by_hand(db):
    """SE² = N⁻²·Σ s²_j/R_j over the agent's tasks."""
    rng = np.random.default_rng(3)
    x = rng.integers(0, 2, (4, 12, 3))
    rows = [
        {"agent": f"a{i}", "task": f"t{j:02d}", "trial": r + 1, "outcome": x[i, j, r]}
        for i in range(4)
        for j in range(12)
        for r in range(3)
    ]
    load_text(rows_text(rows))
    board = recomputed()
    for i, line in enumerate(lines_of(board)[f"a{i}"] for i in range(4)):
        told = line.at["full"]
        assert told.method == "repeated trials"
        assert told.se == pytest.approx(math.sqrt(np.sum(x[i].var(axis=1, ddof=1) / 3)) / 12)
    assert not any("trials of one task" in words for words in head_of(board).not_measured)


def test_trials_that_repeat_each_other_count_as_one(db):
    """120 tasks, the second trial a copy of the first: no s²/R of 0, but the bound for one trial."""
    x = np.random.default_rng(1).integers(0, 2, (5, 120))
    rows = [
        {"agent": f"a{i}", "task": f"t{j:03d}", "trial": r, "outcome": x[i, j]}
        for i in range(5)
        for j in range(120)
        for r in (1, 2)
    ]
    load_text(rows_text(rows))
    line = lines_of(recomputed())["a2"]
    y = x[2].mean()
    assert "so its trials count as one" in line.flags[0]
    assert "flagged" in line.marks
    assert line.at["full"].se == pytest.approx(math.sqrt(y * (1 - y) / 120))
    assert line.icc["reason"].startswith("not measured: two trials agree on 120 of 120 tasks")


def test_estimated_scores_have_the_error_of_the_stored_calibration(db, by_ridge):
    """By hand: the root mean square of the residuals that were stored with it."""
    load_text(csv_text(graded(20, 60)))
    subset = in_subset(recomputed())
    load_text(csv_text({"top": only("1" * 60, subset), "zero": only("0" * 60, subset)}))
    board = recomputed()
    s_loo = math.sqrt(np.mean(np.square(board.calibration.residuals)))
    top, zero, measured = (lines_of(board)[name].at["full"] for name in ("top", "zero", "a10"))
    assert (top.estimated, measured.estimated) == (True, False)
    assert top.se == zero.se == pytest.approx(s_loo)
    assert lines_of(board)["top"].at["domain"].rank is None
    assert head_of(board).targets["domain"].n_ranked == 20


@pytest.mark.parametrize(
    "outcomes",
    [
        {"solo": "1011001110"},
        {f"a{i:02d}": "1" * 20 for i in range(16)},
        {f"a{i:02d}": "0" * 20 for i in range(6)},
        {f"a{i:02d}": "10" * 10 for i in range(16)},
        {"a": "x" * 10, "b": "x" * 10},
    ],
    ids=["one agent", "all pass", "all fail", "all alike", "all invalid"],
)
def test_degenerate_boards_have_reasons_and_no_nan(db, outcomes):
    load_text(csv_text(outcomes))
    board = recomputed()
    json.dumps(as_dict(board), allow_nan=False)
    for line in standings_of(board).agents:
        for told in line.at.values():
            assert told.se or told.reason
            assert told.se != 0


def test_the_same_rows_in_any_order_and_under_other_ids_give_the_same_board(db):
    """Order of rows, of files and of agents' ids leave no trace, trials, gaps and flags included."""
    rng = np.random.default_rng(5)
    rows = [
        {"agent": name, "task": f"t{j:02d}", "trial": r, "outcome": int(mark) if r == 1 else rng.integers(2)}
        for name, marks in graded(15, 40).items()
        for j, mark in enumerate(marks)
        for r in (1, 2)
        if (name, j) != ("a03", 7)
    ]
    load_text(rows_text(rows), slug="one")
    for i in rng.permutation(15):  # agents get their ids in another order
        mine = [row for row in rows if row["agent"] == f"a{i:02d}"]
        load_text(rows_text([mine[j] for j in rng.permutation(len(mine))]), slug="two")
    one, two = recomputed("one"), recomputed("two")
    assert one.digest == two.digest
    assert standings_of(one) == standings_of(two)
    assert Benchmark.objects.get(slug="two").data_version == 15
    assert one.published_at == AS_OF
