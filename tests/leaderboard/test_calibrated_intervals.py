"""Intervals of calibrated scores: their source by the number of agents, and the core's own numbers (§3)."""

import json

import numpy as np
import pytest
from django.db import IntegrityError
from leaderboard.studies.tables import snapshot

from leaderboard.boards.models import Board
from leaderboard.catalog.models import Benchmark, Policy
from leaderboard.studies.calibrations import columns_of
from leaderboard.studies.models import Calibration, TaskSubset
from selection.folds import Rule, complete_agents
from selection.held_out import nested_residuals
from selection.intervals import Interval, calibrate, intervals
from selection.strategies import STRATEGIES
from tests.toys import AS_OF, csv_text, graded, in_subset, lines_of, load_text, only, recomputed, rows_text

SCAFFOLDS = ("Loop", "Tree", "Relay", "Sketch", "Plan", "Pair")


def with_newcomer(n_agents, *, scaffold="Loop", n_scaffolds=1, n_tasks=60):
    """A board of complete agents, their scaffolds in turn, and a newcomer on the subset alone."""
    rows = [
        {"agent": name, "scaffold": SCAFFOLDS[i % n_scaffolds], "task": f"t{j:02d}", "outcome": mark}
        for i, (name, marks) in enumerate(graded(n_agents, n_tasks).items())
        for j, mark in enumerate(marks)
    ]
    load_text(rows_text(rows))
    subset = in_subset(recomputed())
    new = [
        {"agent": "new", "scaffold": scaffold, "task": task, "outcome": int(i % 2 == 0)}
        for i, task in enumerate(subset)
    ]
    load_text(rows_text(new))
    return recomputed()


def directly(strategy="mid_range"):
    """The newcomer's interval from `selection.intervals`, the residuals made anew from the table."""
    current = snapshot(Benchmark.objects.get())
    agents = complete_agents(current.table)
    columns = columns_of(current, current.benchmark.subsets.order_by("-number").first())
    by_agent, by_scaffold = (
        nested_residuals(agents, by, strategy=strategy, rule=Rule()) for by in ("agent", "scaffold")
    )
    calibrator = calibrate(
        agents.outcomes[:, columns],
        agents.scores,
        by_agent.scores - by_agent.predictions,
        scaffolds=agents.scaffolds,
        scaffold_residuals=by_scaffold.scores - by_scaffold.predictions,
    )
    i = current.table.agents.index("new")
    return intervals(calibrator, current.table.means[i : i + 1, columns], [current.table.scaffolds[i]])[0]


@pytest.mark.parametrize(
    ("n_agents", "source"), [(8, None), (9, None), (10, "normal"), (18, "normal"), (19, "jackknife+")]
)
def test_the_source_follows_from_the_number_of_agents(db, n_agents, source):
    entry = lines_of(with_newcomer(n_agents))["new"]
    answer = directly()
    assert entry.full_score == pytest.approx(answer.point, abs=1e-12)
    assert entry.full_score_source == "calibrated"
    if source is None:
        assert entry.full_interval == {"reason": answer.reason}
        assert f"residuals of {n_agents} agents" in answer.reason
        assert entry.targets["full"]["se"] is None
        assert entry.targets["full"]["reason"] == answer.reason
    else:
        assert isinstance(answer, Interval)
        assert entry.full_interval["source"] == answer.source == source
        assert (entry.full_interval["lower"], entry.full_interval["upper"]) == pytest.approx(
            answer.shown, abs=1e-12
        )


def test_a_new_scaffold_has_the_interval_of_scaffolds_held_out(db):
    entry = lines_of(with_newcomer(20, scaffold="Unseen", n_scaffolds=5))["new"]
    answer = directly()
    assert entry.full_interval["source"] == answer.source == "new scaffold"
    assert entry.full_interval["lower"] == pytest.approx(answer.shown[0], abs=1e-12)


def test_a_new_scaffold_among_four_is_not_calibrated_with_an_interval(db):
    entry = lines_of(with_newcomer(20, scaffold="Unseen", n_scaffolds=4))["new"]
    assert entry.full_interval["reason"].startswith("new scaffold, cannot be calibrated")


def test_over_a_tenth_of_the_subset_missing_gives_no_full_score(db):
    load_text(csv_text(graded(20, 60)))
    subset = in_subset(recomputed())
    load_text(csv_text({"new": only("10" * 30, subset[: len(subset) * 2 // 3])}))
    entry = lines_of(recomputed())["new"]
    assert (entry.full_score, entry.full_interval, entry.full_score_source) == (None, None, "")
    assert entry.targets["full"]["reason"].endswith("of 60 tasks have a valid outcome; 57 (95%) are needed")
    load_text(csv_text({"newer": only("10" * 30, subset)}))
    entry = lines_of(recomputed())["new"]
    assert "tasks of the subset are missing; at most" in entry.targets["full"]["reason"]


@pytest.mark.parametrize("refit_every", [5, 10])
def test_the_interval_stays_that_of_the_fit_until_it_is_refitted(db, refit_every):
    """One complete agent fewer than `refit_every` changes neither fit nor interval; one more does."""
    first = with_newcomer(20)
    Policy.objects.create(benchmark=first.benchmark, number=2, refit_every=refit_every)
    told = lines_of(first)["new"].full_interval
    load_text(csv_text(graded(refit_every - 1, 60, seed=20, prefix="b")))
    before = recomputed()
    assert before.calibration == first.calibration
    assert lines_of(before)["new"].full_interval == told
    load_text(csv_text(graded(1, 60, seed=21, prefix="c")))
    after = recomputed()
    assert after.calibration.n_agents == 20 + refit_every
    assert lines_of(after)["new"].full_interval != told
    assert Calibration.objects.count() == 2


def test_a_correction_of_the_agents_behind_a_fit_makes_another(db):
    board = with_newcomer(16)
    again = csv_text({"a08": "1" * 60}).replace(",1,1,1\n", ",2,1,1\n")
    load_text(again)
    newer = recomputed()
    assert newer.calibration.n_agents == board.calibration.n_agents == 16
    assert newer.calibration != board.calibration


def test_a_policy_on_duplicates_makes_another_fit_of_the_same_data(db):
    with_newcomer(16)
    load_text(csv_text({"a08": "1" * 60}).replace(",1,1,1\n", ",2,1,1\n"))
    mean = recomputed()
    Policy.objects.create(benchmark=Benchmark.objects.get(), number=2, duplicates="first")
    first = recomputed()
    assert first.data_version == mean.data_version
    assert first.calibration.intercept != mean.calibration.intercept


@pytest.mark.parametrize(
    "strategy", ["greedy", "random", "easiest", "hardest", "stratified", "information", "spread", "forecast"]
)
def test_every_strategy_of_a_policy_chooses_as_many_tasks_as_the_band(db, strategy):
    load_text(csv_text(graded(16, 40)))
    k = len(in_subset(recomputed()))
    load_text(csv_text(graded(16, 40)), slug="other")
    Policy.objects.create(
        benchmark=Benchmark.objects.get(slug="other"), number=2, strategy=strategy, base_seed=7
    )
    board = recomputed("other")
    assert strategy in STRATEGIES
    assert board.phase == "ongoing"
    assert len(in_subset(board)) == k
    residuals = nested_residuals(
        complete_agents(snapshot(board.benchmark).table), strategy=strategy, rule=Rule(), base_seed=7
    )
    expected = residuals.scores - residuals.predictions
    np.testing.assert_allclose(np.array(board.calibration.residuals, float), expected, atol=1e-12)
    assert recomputed("other") == board


def test_hardest_is_the_tasks_with_the_lowest_pass_rates(db):
    outcomes = graded(16, 40)
    load_text(csv_text(outcomes))
    Policy.objects.create(benchmark=Benchmark.objects.get(), number=2, strategy="hardest")
    board = recomputed()
    rates = np.array([[int(mark) for mark in marks] for marks in outcomes.values()]).mean(axis=0)
    k = len(in_subset(board))
    assert in_subset(board) == sorted(f"t{j:02d}" for j in np.argsort(rates, kind="stable")[:k])


def test_a_strategy_without_what_it_needs_means_full_runs_with_the_reason(db):
    """A missing date makes `forecast` unavailable, never an error (§10)."""
    text = csv_text(graded(16, 40)).replace(",2026-01-05,", ",,")
    load_text(text)
    Policy.objects.create(benchmark=Benchmark.objects.get(), number=2, strategy="forecast")
    board = recomputed()
    assert (board.subset, board.phase) == (None, "ongoing")
    assert board.why == (
        "The strategy forecast chooses no subset: forecast: 16 of 16 training agents have no date."
    )
    assert all(entry.rank for entry in board.entries.all())
    assert not TaskSubset.objects.exists()


def test_a_base_seed_is_not_negative(toy):
    with pytest.raises(IntegrityError, match="policy_base_seed_not_negative"):
        Policy.objects.create(benchmark=toy, number=2, base_seed=-1)


def test_nothing_that_was_published_holds_nan(db):
    with_newcomer(20, scaffold="Unseen", n_scaffolds=5)
    for board in Board.objects.all():
        for entry in board.entries.all():
            json.dumps([entry.full_interval, entry.icc, entry.targets], allow_nan=False)
    assert board.published_at == AS_OF
