"""What a policy says of the choice of tasks and of a calibration, as it is stored (§2, §3)."""

from dataclasses import replace

import numpy as np
import pytest
from django.db import IntegrityError
from sklearn.linear_model import Ridge

from leaderboard.boards.queries import head_of, standings_of
from leaderboard.catalog.models import Benchmark, Policy
from leaderboard.studies.board_inputs import board_inputs
from leaderboard.studies.models import Calibration, TaskSubset
from leaderboard.studies.records import Reader
from selection.folds import Rule
from selection.held_out import nested_residuals
from selection.standings import answer
from selection.standings.choice import training
from selection.strategies import STRATEGIES
from tests.toys import AS_OF, board_of, csv_text, graded, in_subset, lines_of, load_text, only, recomputed

STRATEGY_NAMES = sorted(set(STRATEGIES) - {"mid_range"})


def with_policy(slug, text, **fields):
    """A benchmark under a policy of its own from before the first full run."""
    head, first, *rest = text.splitlines(keepends=True)
    load_text(head + first, slug=slug)
    benchmark = Benchmark.objects.get(slug=slug)
    Policy.objects.create(benchmark=benchmark, number=2, missing="gap", created_at=AS_OF, **fields)
    load_text(head + "".join(rest), slug=slug)
    return recomputed(slug)


@pytest.mark.parametrize("strategy", STRATEGY_NAMES)
def test_every_strategy_of_a_policy_chooses_as_many_tasks_as_the_band(db, strategy):
    k = len(in_subset(board_of(csv_text(graded(16, 40)))))
    board = with_policy("other", csv_text(graded(16, 40)), strategy=strategy, base_seed=7, estimator="ridge")
    assert (board.phase, board.subset.strategy) == ("ongoing", strategy)
    assert len(in_subset(board)) == k
    record = Reader(board.benchmark).now(board.subset).record
    found = nested_residuals(training(record), strategy=strategy, estimator="ridge", rule=Rule(), base_seed=7)
    assert board.calibration.estimator == "ridge"
    np.testing.assert_allclose(np.array(board.calibration.residuals, float), found, atol=1e-12)
    assert recomputed("other") == board


def test_hardest_is_the_tasks_with_the_lowest_pass_rates(db):
    outcomes = graded(16, 40)
    board = with_policy("toy", csv_text(outcomes), strategy="hardest")
    rates = np.array([[int(mark) for mark in marks] for marks in outcomes.values()]).mean(axis=0)
    k = len(in_subset(board))
    assert in_subset(board) == sorted(f"t{j:02d}" for j in np.argsort(rates, kind="stable")[:k])


def test_a_strategy_without_what_it_needs_means_full_runs_with_the_reason(db):
    """A missing date makes `forecast` unavailable, never an error (§10)."""
    board = with_policy("toy", csv_text(graded(16, 40)).replace(",2026-01-05,", ",,"), strategy="forecast")
    assert head_of(board).subset is None
    assert "16 of 16 training agents have no date" in head_of(board).why
    assert all(line.at["full"].rank for line in standings_of(board).agents)
    assert not TaskSubset.objects.exists()


def test_another_estimator_of_a_policy_counts_at_once_and_is_stored_with_the_next_full_run(db):
    subset = in_subset(with_policy("toy", csv_text(graded(20, 60))))
    load_text(csv_text({"new": only("10" * 30, subset)}))
    first = recomputed()
    fields = {"number": 3, "missing": "gap", "created_at": AS_OF, "estimator": "ridge"}
    Policy.objects.create(benchmark=first.benchmark, **fields)
    second = recomputed()
    outcomes = np.array([[float(mark) for mark in marks] for marks in graded(20, 60).values()])
    columns, new = [int(name[1:]) for name in subset], np.array([float(c) for c in "10" * 30])
    ridge = Ridge(alpha=1.0).fit(outcomes[:, columns], outcomes.mean(axis=1))
    told = lines_of(second)["new"].at["full"]
    assert told.score == pytest.approx(ridge.predict(new[None, columns])[0], abs=1e-10)
    assert (first.calibration, second.calibration) == (None, None)
    load_text(csv_text(graded(1, 60, seed=21, prefix="c")))
    assert (recomputed().calibration.estimator, recomputed().calibration.n_agents) == ("ridge", 21)


def test_the_stored_ridge_is_scikit_learns_and_decides_the_estimate(db):
    outcomes = graded(20, 60)
    board = with_policy("toy", csv_text(outcomes), estimator="ridge")
    x = np.array([[float(mark) for mark in marks] for marks in outcomes.values()])
    columns, stored = [int(name[1:]) for name in in_subset(board)], board.calibration.ridge
    theirs = Ridge(alpha=1.0).fit(x[:, columns], x.mean(axis=1))
    assert stored["coefficients"] == pytest.approx(theirs.coef_, abs=1e-13)
    assert stored["intercept"] == pytest.approx(theirs.intercept_, abs=1e-13)
    assert stored["column_means"] == pytest.approx(x[:, columns].mean(axis=0), abs=1e-15)
    assert (stored["n"], stored["alpha"]) == (20, 1.0)
    load_text(csv_text({"new": only("10" * 30, in_subset(board))}))
    known = Reader(board.benchmark).now(board.subset)
    decides = board_inputs(known, board.subset, board.calibration).prior_decisions()
    moved = replace(decides.fitted, ridge=replace(decides.fitted.ridge, intercept=theirs.intercept_ + 0.01))
    told, other = (
        {line.agent: line for line in answer(known.record, known.rules, given).agents}["new"].at["full"].score
        for given in (decides, replace(decides, fitted=moved))
    )
    assert other == pytest.approx(told + 0.01, abs=1e-9)


def test_residuals_in_time_are_stored_with_their_dates(db):
    """Twenty agents a day apart: the first ten are trained on alone."""
    lines = csv_text(graded(20, 60)).splitlines(keepends=True)
    days = {f"a{i:02d}": f"2026-01-{i + 1:02d}" for i in range(20)}
    dated = [line.replace("2026-01-05", days.get(line.split(",")[1], "2026-01-05")) for line in lines]
    stored = with_policy("toy", "".join(dated), estimator="ridge").calibration
    assert [day.isoformat() for day in stored.dates] == list(days.values())
    assert [e is None for e in stored.in_time] == [True] * 10 + [False] * 10


@pytest.mark.parametrize("refit_every", [5, 10])
def test_the_interval_stays_that_of_the_fit_until_it_is_refitted(db, refit_every):
    """One complete agent fewer than `refit_every` changes neither fit nor interval; one more does."""
    policy = {"refit_every": refit_every, "estimator": "ridge"}
    subset = in_subset(with_policy("toy", csv_text(graded(20, 60)), **policy))
    load_text(csv_text({"new": only("10" * 30, subset)}))
    first = recomputed()
    told = lines_of(first)["new"].at["full"]
    load_text(csv_text(graded(refit_every - 1, 60, seed=20, prefix="b")))
    before = recomputed()
    assert before.calibration == first.calibration
    full = lines_of(before)["new"].at["full"]
    assert (full.score, full.lower, full.upper) == (told.score, told.lower, told.upper)
    load_text(csv_text(graded(1, 60, seed=21, prefix="c")))
    after = recomputed()
    assert after.calibration.n_agents == 20 + refit_every
    assert lines_of(after)["new"].at["full"].score != told.score
    assert Calibration.objects.count() == 2


def test_no_incomplete_agent_feeds_the_subset(db):
    load_text(csv_text(graded(16, 60)))
    board = recomputed()
    load_text(csv_text({"new": only("1" * 60, in_subset(board)[::2])}))
    newer = recomputed()
    assert (newer.n_complete, newer.calibration) == (16, board.calibration)


def test_a_base_seed_is_not_negative(toy):
    with pytest.raises(IntegrityError, match="policy_base_seed_allowed"):
        Policy.objects.create(benchmark=toy, number=2, base_seed=-1)
