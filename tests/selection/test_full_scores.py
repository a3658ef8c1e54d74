"""Estimated full scores: by hand, by property, against scikit-learn and scipy, and on real boards."""

import functools
import math
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit

from analytics.command_line import flat_file
from analytics.differences.estimates import wilson
from analytics.record import Record
from selection import full_scores
from selection.errors import SelectionError
from selection.folds import Fold
from selection.full_scores import predictions, rows_used
from selection.held_out import nested_residuals
from selection.intervals import prequential
from selection.rules import ESTIMATORS
from selection.standings.choice import training
from tests.refusals import refused
from tests.selection import reference
from tests.selection.records import unnamed

NAN = math.nan
ON_A_SUBSET = ("ridge", "line")
REPEATABLE = settings(derandomize=True, deadline=None, max_examples=20)
# Two tasks that two of three agents pass: equal difficulties, 0 each. S is the first.
THREE = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


def drawn(seed, n, m, share_missing=0.0):
    """Passes of a Rasch model, no cell missing in the first three rows."""
    rng = np.random.default_rng(seed)
    chance = expit(rng.normal(0, 1, (n, 1)) - rng.normal(0, 1.5, m))
    outcomes = (rng.random((n, m)) < chance).astype(float)
    outcomes[3:][rng.random((n - 3, m)) < share_missing] = NAN
    return outcomes


def one_by_one(n):
    return [Fold(str(i), np.array([i]), np.delete(np.arange(n), i)) for i in range(n)]


def test_three_agents_and_two_tasks_by_hand():
    """On S x = 1, 0, 1; y = ½, ½, 1. A new agent passes S.

    Σ(x − x̄)² = ⅔, x̄ = ȳ = ⅔. Ridge: ⅔ + ⅓·(1/6)/(⅔ + 1) = .7. Line: ⅔ + ⅓·(1/6)/⅔ = .75.
    """
    agents, tasks, new = unnamed(THREE, THREE.mean(axis=1)), np.array([0]), np.array([[1.0]])
    told = {name: full_scores.fit(name, agents, tasks).predict(new)[0] for name in ON_A_SUBSET}
    assert told["ridge"] == pytest.approx(0.7)
    assert told["line"] == pytest.approx(0.75)


@pytest.mark.parametrize("seed", range(40))
def test_a_line_through_equal_means_is_level_whatever_rounding_makes_of_them(seed):
    """Five agents have the same values in another order on each of three blocks of tasks."""
    rng = np.random.default_rng(seed)
    blocks = [rng.integers(0, 11, size) / 10 for size in rng.integers(5, 80, 3)]
    rows = [np.concatenate([rng.permutation(block) for block in blocks]) for _ in range(5)]
    first, second, third = (one.size for one in blocks)
    outcomes = np.vstack([*rows, rng.integers(0, 11, (2, first + second + third)) / 10])
    scores, training = rng.random(7), np.arange(5)
    folds = [Fold("x", np.array([5]), training), Fold("y", np.array([6]), training)]
    subsets = [np.arange(first + second), np.arange(first, first + second + third)]
    for predicted in predictions("line", unnamed(outcomes, scores), folds, subsets):
        assert predicted == pytest.approx([scores[:5].mean()], abs=1e-9)


def test_a_fold_of_three_by_hand():
    """The third held out, x = 1, 0 and y = ½, ½: neither Ridge nor the line has a slope to use.

    Completion: the two agents and the two tasks are mirror images, so that θ = μ = 0 and b = ±β of one pass
    and one failure each: σ(β) + σ(−β) = 1 whatever β, so that β = 0. All p = ½, each v = 1/(½ + 1/τ²), and
    τ² = (2v + 5)/7. The new agent has 1 − σ(θ) = θ/τ² from its pass, and σ(θ) of the other task.
    """
    folds = [Fold("c", np.array([2]), np.array([0, 1]))]
    scores, subsets = THREE.mean(axis=1), [np.array([0])]
    for name in ON_A_SUBSET:
        assert predictions(name, unnamed(THREE, scores), folds, subsets)[0] == pytest.approx([0.5])
    spread = brentq(lambda s: (2 / (0.5 + 1 / s) + 5) / 7 - s, 0.1, 9)
    theta = brentq(lambda t: 1 - expit(t) - t / spread, 0, 9)
    told = predictions("completion", unnamed(THREE, scores), folds, subsets)[0]
    assert told == pytest.approx([(1 + expit(theta)) / 2], abs=1e-9)


def test_prequential_coverage_by_hand():
    """Day 1 has 19 up to .19, the half-width of day 2; of the 22 before day 3 the largest is .50."""
    residuals = [*(np.arange(1, 20) / 100), 0.10, -0.19, 0.50, 0.30, -0.60, NAN]
    first = date(2026, 1, 1)
    days = [first] * 19 + [first + timedelta(1)] * 3 + [first + timedelta(2)] * 2 + [None]
    told = prequential(np.array(residuals), days)
    # Day 2: 2 of 3. Day 3: ⌈.95·23⌉ = 22nd of 22 is .50: .30 inside, .60 outside.
    assert (told.n, told.n_covered) == (5, 3)
    assert told.share == pytest.approx(0.6)
    assert told.falls_short
    nothing = prequential(np.array(residuals[:19]), days[:19])
    assert (nothing.n, nothing.share, nothing.upper, nothing.falls_short) == (0, None, None, False)


@REPEATABLE
@given(st.integers(0, 2**32 - 1), st.sampled_from(ESTIMATORS), st.sampled_from([0.0, 0.05]))
def test_what_an_agent_did_outside_the_subset_does_not_count(seed, name, share):
    outcomes = drawn(seed, 9, 20, share)
    scores, tasks = np.nanmean(outcomes, axis=1), np.arange(0, 20, 2)
    outcomes[0] = 1.0
    changed = outcomes.copy()
    changed[0, 1::2] = 0.0
    fold = [Fold("0", np.array([0]), np.arange(1, 9))]
    mine, theirs = (predictions(name, unnamed(x, scores), fold, [tasks])[0] for x in (outcomes, changed))
    # The fit of a fold begins at the fit to all agents, and ends where every start ends: to 1e-10 of a slope.
    assert mine == pytest.approx(theirs, abs=1e-9 if name == "completion" else 1e-12)


@REPEATABLE
@given(st.integers(0, 2**32 - 1), st.sampled_from(ESTIMATORS), st.randoms(use_true_random=False))
def test_the_order_of_agents_and_tasks_does_not_matter(seed, name, random):
    outcomes = drawn(seed, 10, 15)
    scores, tasks = outcomes.mean(axis=1), np.array([1, 4, 5, 9])
    mine = np.concatenate(predictions(name, unnamed(outcomes, scores), one_by_one(10), [tasks] * 10))
    rows, columns = np.array(random.sample(range(10), 10)), np.array(random.sample(range(15), 15))
    moved = [np.flatnonzero(np.isin(columns, tasks))] * 10
    turned = predictions(name, unnamed(outcomes[np.ix_(rows, columns)], scores[rows]), one_by_one(10), moved)
    assert np.concatenate(turned) == pytest.approx(mine[rows], abs=1e-8)


def test_all_tasks_leave_nothing_to_complete():
    outcomes = drawn(3, 8, 12)
    scores, everything = outcomes.mean(axis=1), np.arange(12)
    told = predictions("completion", unnamed(outcomes, scores), one_by_one(8), [everything] * 8)
    assert np.concatenate(told) == pytest.approx(scores)


@pytest.mark.parametrize("share", [0.0, 0.04])
@pytest.mark.parametrize("name", ON_A_SUBSET)
def test_without_each_agent_is_the_estimator_fitted_without_it(name, share):
    outcomes = drawn(11, 12, 30, share)
    scores, tasks = np.nanmean(outcomes, axis=1), np.arange(0, 30, 2)
    new = drawn(12, 5, 30)[:, tasks]
    new[0, 3] = NAN
    told = full_scores.fit(name, unnamed(outcomes, scores), tasks).predict_without(new)
    for i in range(12):
        others = np.arange(12) != i
        alone = full_scores.fit(name, unnamed(outcomes[others], scores[others]), tasks)
        assert told[:, i] == pytest.approx(alone.predict(new), abs=1e-9)


@pytest.mark.parametrize("name", ON_A_SUBSET)
def test_a_fold_predicts_what_the_fit_to_its_training_agents_predicts(name):
    outcomes = drawn(7, 14, 25, 0.03)
    scores, tasks = np.nanmean(outcomes, axis=1), np.arange(12)
    fold = Fold("late", np.array([0, 1, 2]), np.arange(5, 14))
    told = predictions(name, unnamed(outcomes, scores), [fold], [tasks])[0]
    agents = unnamed(outcomes[fold.training], scores[fold.training])
    expected = full_scores.fit(name, agents, tasks).predict(outcomes[np.ix_(fold.held_out, tasks)])
    assert told == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("share", [0.0, 0.02])
def test_folds_near_one_base_change_no_number(share):
    """Agents left out of bands that nearly agree are predicted together as each of them is alone."""
    outcomes = drawn(3, 60, 90, share)
    scores, each = (
        np.nanmean(outcomes, axis=1),
        [*one_by_one(60), Fold("some", np.arange(3), np.arange(5, 60))],
    )
    rates = [np.nanmean(outcomes[fold.training], axis=0) for fold in each]
    subsets = [np.flatnonzero((one >= 0.3) & (one <= 0.7)) for one in rates]
    subsets[4] = np.arange(90)
    assert len({subset.size for subset in subsets}) > 3
    for name in ESTIMATORS:
        agents = unnamed(outcomes, scores)
        together = predictions(name, agents, each, subsets)
        alone = [
            predictions(name, unnamed(outcomes, scores), [fold], [subset])[0]
            for fold, subset in zip(each, subsets, strict=True)
        ]
        assert np.concatenate(together) == pytest.approx(np.concatenate(alone), abs=1e-10)


def test_shared_fits_are_few_and_never_rest_on_an_agent_held_out(monkeypatch):
    monkeypatch.setattr(full_scores, "MAX_CELLS", 100)
    agents = unnamed(drawn(4, 40, 10), np.linspace(0, 1, 40))
    trained = [fold.training for fold in one_by_one(40)]
    predictions("completion", agents, one_by_one(40), [np.arange(5)] * 40)
    assert len(agents.completions) == 10
    for rows, used in zip(trained, rows_used(agents, trained), strict=True):
        assert set(used) <= set(rows)
        assert len(used) == 36
    later = [np.arange(n) for n in range(10, 40)]
    used = rows_used(agents, later)
    assert len({rows.size for rows in used}) <= 14
    for rows, fewer in zip(later, used, strict=True):
        assert set(fewer) <= set(rows)
        assert 10 * fewer.size >= 9 * rows.size


def dated(outcomes, days):
    """Complete agents in name order that came on these days of a month; None: not known."""
    agents = unnamed(outcomes, np.nanmean(outcomes, axis=1))
    names = tuple(f"a{i:02d}" for i in range(agents.n))
    return replace(agents, names=names, dates=tuple(day and date(2026, 1, day) for day in days))


@pytest.mark.parametrize("last", [4, None])
def test_folds_of_folds_have_the_fits_of_those_they_were_taken_from(last):
    """Dates go against the order of names; where one date is missing, no order is known to anybody."""
    outcomes = drawn(13, 14, 20)
    agents = dated(outcomes, [*range(28, 15, -1), last])
    inner = agents.take(np.arange(13), sharing=True)
    fold = [Fold("x", np.array([2, 5]), np.array([0, 1, 3, 4, 6, 7, 8, 9, 10, 11, 12]))]
    tasks = np.arange(8)
    told = predictions("completion", inner, fold, [tasks])[0]
    rows = fold[0].training[::-1] if last else fold[0].training
    for i, found in zip(fold[0].held_out, told, strict=True):
        n_before = int(np.sum(rows > i)) if last else None
        expected = reference.full_score(
            "completion", outcomes[rows], None, tasks, outcomes[i, tasks], n_before
        )
        assert found == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("share", [0.0, 0.04])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_folds_against_scikit_learn_and_scipy(name, share):
    outcomes = drawn(21, 12, 24, share)
    scores, rng = np.nanmean(outcomes, axis=1), np.random.default_rng(2)
    subsets = [np.sort(rng.choice(24, 10, replace=False)) for _ in range(12)]
    kept = [f for f in range(12) if np.count_nonzero(np.isnan(outcomes[f, subsets[f]])) <= 1]
    folds = [one_by_one(12)[f] for f in kept]
    told = predictions(name, unnamed(outcomes, scores), folds, [subsets[f] for f in kept])
    for f, value in zip(kept, told, strict=True):
        others = np.arange(12) != f
        row = outcomes[f, subsets[f]]
        expected = reference.full_score(name, outcomes[others], scores[others], subsets[f], row)
        assert value == pytest.approx([expected], abs=1e-8 if name == "completion" else 1e-10)


@pytest.mark.parametrize(("n_covered", "n"), [(0, 3), (7, 8), (44, 51), (27, 27)])
def test_wilson_against_scipy(n_covered, n):
    theirs = stats.binomtest(n_covered, n).proportion_ci(confidence_level=0.90, method="wilson")
    assert wilson(n_covered / n, n, 0.95) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_names_are_checked():
    outcomes = drawn(9, 8, 20)
    scores, tasks = outcomes.mean(axis=1), np.arange(10)
    with refused(SelectionError, "name_unknown", match="no estimator is called 'lasso'"):
        predictions("lasso", unnamed(outcomes, scores), one_by_one(8), [tasks] * 8)
    with refused(SelectionError, "no_fit", match="completion is fitted to all tasks"):
        full_scores.fit("completion", unnamed(outcomes, scores), tasks)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_more_than_a_tenth_missing_is_refused(name):
    outcomes = drawn(9, 8, 20)
    scores, tasks = outcomes.mean(axis=1), np.arange(10)
    outcomes[5, :2] = NAN
    with refused(SelectionError, "cells_missing", match="lacks 2 of 10 tasks of the subset; at most 1 may"):
        predictions(name, unnamed(outcomes, scores), one_by_one(8), [tasks] * 8)


@pytest.mark.parametrize("name", ON_A_SUBSET)
def test_a_fit_refuses_more_than_a_tenth_missing(name):
    outcomes = drawn(9, 8, 20)
    scores, tasks = outcomes.mean(axis=1), np.arange(10)
    outcomes[5, :2] = NAN
    fitted = full_scores.fit(name, unnamed(outcomes[:5], scores[:5]), tasks)
    with refused(SelectionError, "cells_missing", match="agent 0 lacks 2 of 10"):
        fitted.predict(outcomes[5:6, tasks])


@functools.cache
def real_agents(path):
    return training(Record.from_flat(flat_file(path, None)))


@pytest.mark.parametrize(
    ("name", "ridge", "completed"),
    [
        ("hal_gaia", 0.0323, 0.02454),
        ("hal_corebench_hard", 0.0501, 0.04573),
        ("hal_taubench_airline", 0.0370, 0.04016),
        ("swebench_verified_2023_2025", 0.0348, 0.02402),
    ],
)
def test_nested_errors_are_those_measured_independently(real_data, name, ridge, completed):
    """RMSE with each agent left out, `completion` by `tests.selection.reference` and numpy alone."""
    agents = real_agents(real_data / f"{name}.csv.gz")
    for estimator, expected in (("ridge", ridge), ("completion", completed)):
        error = math.sqrt(np.nanmean(nested_residuals(agents, estimator=estimator) ** 2))
        assert error == pytest.approx(expected, abs=5e-5)
