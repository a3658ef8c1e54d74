"""Which differences a board claims: standard errors, rank intervals and ties for each target (§7.4)."""

import json
import math

import numpy as np
import pytest
from scipy import stats

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


def test_a_clear_winner_beats_and_twins_are_tied(db):
    """By hand: nothing but 1 against nothing but 0 on 40 tasks, and two agents with the same outcomes."""
    load_text(csv_text({"best": "1" * 40, "one": "10" * 20, "two": "10" * 20, "worst": "0" * 40}))
    board = recomputed()
    lines = lines_of(board)
    ranks = {
        name: (e.targets["full"]["rank_lower"], e.targets["full"]["rank_upper"]) for name, e in lines.items()
    }
    assert ranks == {"best": (1, 1), "one": (2, 3), "two": (2, 3), "worst": (4, 4)}
    assert lines["one"].targets["full"]["tied_with"] == ["two"]
    assert lines["best"].targets["full"]["tied_with"] == []
    assert lines["one"].flags == ["the same outcome as two on every task"]


def test_rank_intervals_hold_the_rank_and_ties_are_mutual(db):
    load_text(csv_text(graded(16, 60)))
    lines = lines_of(recomputed())
    for name, entry in lines.items():
        told = entry.targets["subset"]
        assert told["rank_lower"] <= entry.rank <= told["rank_upper"]
        assert name not in told["tied_with"]
        assert all(name in lines[other].targets["subset"]["tied_with"] for other in told["tied_with"])


def test_one_trial_a_task_by_hand(db):
    """Finite: √(ȳ(1 − ȳ)/N), an upper bound, t with N − 1; domain: s/√N."""
    outcomes = ladder(4, 20)
    load_text(csv_text(outcomes))
    board = recomputed()
    entry = lines_of(board)["a01"]
    x = np.array([int(mark) for mark in outcomes["a01"]])
    full, domain = entry.targets["full"], entry.targets["domain"]
    assert (full["method"], domain["method"]) == ("upper bound", "domain")
    assert full["se"] == pytest.approx(math.sqrt(x.mean() * (1 - x.mean()) / 20))
    assert full["se"] == full["naive_se"]
    assert domain["se"] == pytest.approx(x.std(ddof=1) / math.sqrt(20))
    assert domain["upper"] - domain["score"] == pytest.approx(stats.t.ppf(0.975, 19) * domain["se"])
    assert board.not_measured[0].startswith("how much the trials of one task vary")


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
    for i, entry in enumerate(lines_of(board)[f"a{i}"] for i in range(4)):
        told = entry.targets["full"]
        assert told["method"] == "repeated trials"
        assert told["se"] == pytest.approx(math.sqrt(np.sum(x[i].var(axis=1, ddof=1) / 3)) / 12)
    assert not any("trials of one task" in words for words in board.not_measured)


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
    entry = lines_of(recomputed())["a2"]
    y = x[2].mean()
    assert "so its trials count as one" in entry.flags[0]
    assert "flagged" in entry.marks
    assert entry.targets["full"]["se"] == pytest.approx(math.sqrt(y * (1 - y) / 120))
    assert entry.icc["reason"].startswith("not measured: two trials agree on 120 of 120 tasks")


def test_targets_of_a_full_run_board(db):
    load_text(csv_text(ladder(4, 20)))
    board = recomputed()
    assert board.targets["subset"] == {
        "reason": "every agent runs all tasks, so there is no subset to speak of"
    }
    assert (board.targets["full"]["n_agents"], board.targets["domain"]["n_agents"]) == (4, 4)
    assert all("subset" not in entry.targets for entry in board.entries.all())


@pytest.fixture
def mixed(db):
    """20 complete agents, and two newcomers with the subset alone: one all passes, one all failures."""
    load_text(csv_text(graded(20, 60)))
    subset = in_subset(recomputed())
    load_text(csv_text({"top": only("1" * 60, subset), "zero": only("0" * 60, subset)}))
    return recomputed()


def test_a_mixed_board_compares_full_scores_by_the_errors_of_both(mixed):
    lines = lines_of(mixed)
    assert (mixed.targets["full"]["method"], mixed.targets["full"]["n_agents"]) == ("normal errors", 22)
    s_loo = math.sqrt(np.mean(np.square(mixed.calibration.residuals)))
    top, zero, measured = (lines[name].targets["full"] for name in ("top", "zero", "a10"))
    assert (top["method"], measured["method"]) == ("calibration", "upper bound")
    assert top["se"] == zero["se"] == pytest.approx(s_loo)
    assert top["score"] == lines["top"].full_score
    assert (top["lower"], top["upper"]) == (
        lines["top"].full_interval["lower"],
        lines["top"].full_interval["upper"],
    )
    beaten = (
        lines["top"].full_score - lines["zero"].full_score
        > mixed.targets["full"]["critical"] * math.sqrt(2) * s_loo
    )
    assert beaten == ("zero" not in top["tied_with"])


def test_the_domain_is_told_of_full_runs_alone(mixed):
    lines = lines_of(mixed)
    assert mixed.targets["domain"]["n_agents"] == 20
    assert lines["top"].targets["domain"] == {
        "reason": f"{len(in_subset(mixed))} of 60 tasks have a valid outcome; 57 (95%) are needed"
    }
    assert {"rank_lower", "se", "score"} <= set(lines["a10"].targets["domain"])
    assert lines["a10"].targets["domain"]["score"] == pytest.approx(lines["a10"].full_score, abs=1e-12)


def test_no_order_is_claimed_where_missing_outcomes_could_turn_it(db):
    """Harness failures on a tenth of the tasks of one agent, none of the other's."""
    outcomes = graded(16, 120)
    load_text(csv_text(outcomes))
    subset = in_subset(recomputed())
    lost = subset[: len(subset) // 3]
    marks = only("1" * 120, subset)
    marks = "".join("x" if f"t{j:02d}" in lost else mark for j, mark in enumerate(marks))
    load_text(csv_text({"lossy": marks}))
    lines = lines_of(recomputed())
    lossy = lines["lossy"].targets["subset"]
    share = 1 - len(lost) / len(subset)
    x = {
        name: np.mean([int(row[j]) for j in map(int, (t[1:] for t in subset))])
        for name, row in outcomes.items()
    }
    overlapping = {name for name, mean in x.items() if mean >= share}
    assert overlapping
    assert overlapping <= set(lossy["tied_with"])


def test_under_five_tasks_ranks_are_refused_with_the_number(db):
    load_text(csv_text({"a": "101", "b": "010"}))
    board = recomputed()
    assert "at least 5 tasks to resample, not 3" in board.targets["full"]["reason"]
    assert "note" not in board.targets["full"]
    assert lines_of(board)["a"].targets["full"]["se"] is not None


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
    for told in (board.targets, board.savings, *(e.targets for e in board.entries.all())):
        json.dumps(told, allow_nan=False)
    for entry in board.entries.all():
        for told in entry.targets.values():
            assert told.get("se") or told["reason"]
            assert told.get("se") != 0
        if entry.rank:
            assert entry.targets["domain"].get("tied_with", []) == sorted(set(outcomes) - {entry.name})


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
    assert (one.digest, one.targets, one.savings) == (two.digest, two.targets, two.savings)
    assert Benchmark.objects.get(slug="two").data_version == 15
    assert one.published_at == AS_OF
