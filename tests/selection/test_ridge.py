import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selection.errors import SelectionError
from selection.leave_out import alone as by_itself
from selection.leave_out import leave_out, shared_gram
from selection.ridge import fit, predict, predictable
from tests.refusals import refused
from tests.selection.records import in_fifths, matrix_of

REPEATABLE = settings(derandomize=True, deadline=None)
NAN = math.nan


# ------------------------------------------------------------------------------------------------ by hand


def test_one_task_two_agents():
    # C = (−½, ½): CᵀC = ½, Cᵀ(y − ȳ) = ½, β = ½/(½ + 1) = 1/3, b₀ = ½ − ½·1/3 = 1/3.
    calibration = fit(np.array([[0.0], [1.0]]), np.array([0.0, 1.0]))
    assert calibration.coefficients == pytest.approx([1 / 3], abs=1e-15)
    assert calibration.intercept == pytest.approx(1 / 3, abs=1e-15)
    assert (calibration.n, calibration.k, calibration.alpha) == (2, 1, 1.0)
    assert predict(calibration, np.array([[0.0], [0.5], [1.0]])) == pytest.approx([1 / 3, 1 / 2, 2 / 3])


def test_more_tasks_than_agents():
    # Three equal columns: (I + ½·11ᵀ)β = ½·1, β = ½/(1 + 3/2) = 1/5 each, b₀ = ½ − 3·½·1/5 = 1/5.
    calibration = fit(np.array([[0.0] * 3, [1.0] * 3]), np.array([0.0, 1.0]))
    assert calibration.coefficients == pytest.approx([1 / 5] * 3, abs=1e-15)
    assert calibration.intercept == pytest.approx(1 / 5, abs=1e-15)
    assert predict(calibration, np.ones((1, 3))) == pytest.approx([4 / 5], abs=1e-15)


def test_a_missing_training_cell_takes_the_mean_of_its_column():
    # Column 0 holds 0, 1 and a missing cell: x̄ = ½ and the third agent's centred cell is 0.
    # CᵀC = ½, y − ȳ = (−½, ½, 0): β = 1/3 as above, b₀ = ½ − 1/6.
    calibration = fit(np.array([[0.0], [1.0], [NAN]]), np.array([0.0, 1.0, 0.5]))
    assert calibration.column_means.tolist() == [0.5]
    assert calibration.coefficients == pytest.approx([1 / 3], abs=1e-15)
    assert calibration.intercept == pytest.approx(1 / 3, abs=1e-15)


def test_a_missing_held_out_cell_takes_the_training_mean():
    outcomes, scores = in_fifths(3, 8, 10)
    calibration = fit(outcomes, scores)
    row = np.full((1, 10), 0.4)
    completed = row.copy()
    completed[0, 7] = outcomes[:, 7].mean()
    row[0, 7] = NAN
    assert predict(calibration, row) == pytest.approx(predict(calibration, completed), abs=1e-15)


@pytest.mark.parametrize(("k", "n_missing"), [(10, 1), (20, 2), (29, 2), (9, 0), (165, 16)])
def test_a_tenth_may_be_missing_and_no_more(k, n_missing):
    rows = np.full((2, k), 0.5)
    rows[0, :n_missing] = NAN
    rows[1, : n_missing + 1] = NAN
    assert predictable(rows).tolist() == [True, False]
    calibration = fit(*in_fifths(5, 6, k))
    assert np.isfinite(predict(calibration, rows[:1])).all()
    with refused(SelectionError, "cells_missing", match=f"agent 1 lacks {n_missing + 1} of {k} tasks"):
        predict(calibration, rows)


def test_a_constant_score_needs_no_task():
    calibration = fit(in_fifths(6, 7, 4)[0], np.full(7, 0.25))
    assert calibration.coefficients.tolist() == [0.0] * 4
    assert calibration.intercept == 0.25


def leave_one_out(outcomes, scores, alpha=1.0):
    """Each agent, predicted from all others."""
    every = np.arange(outcomes.shape[1])
    prepared = leave_out(outcomes, scores, every, np.empty(0, dtype=int), alpha)
    return [prepared.predictions(np.array([i]), every)[0] for i in range(scores.size)]


def test_one_task_three_agents_left_out_in_turn():
    # Without the third, x = (0, 1) and y = (0, 1): β = b₀ = 1/3, ŷ(½) = ½. Without the first, x = (1, ½),
    # CᵀC = ⅛, β = ⅛/(9/8) = 1/9, ŷ(0) = ¾ − ¾·1/9 = 2/3. Without the second, ŷ(1) = ¼ + ¾·1/9 = 1/3.
    outcomes, scores = np.array([[0.0], [1.0], [0.5]]), np.array([0.0, 1.0, 0.5])
    assert leave_one_out(outcomes, scores) == pytest.approx([2 / 3, 1 / 3, 1 / 2], abs=1e-15)


def test_a_task_that_enters_and_a_task_that_leaves():
    # Base: task 0, the same for all. Task 1 enters, task 0 leaves: the three figures of the test above.
    outcomes, scores = np.array([[0.7, 0.0], [0.7, 1.0], [0.7, 0.5]]), np.array([0.0, 1.0, 0.5])
    prepared = leave_out(outcomes, scores, np.array([0]))
    both, alone = np.array([0, 1]), np.array([1])
    for i, expected in enumerate([2 / 3, 1 / 3, 1 / 2]):
        assert prepared.predictions(np.array([i]), both) == pytest.approx([expected], abs=1e-15)
        assert prepared.predictions(np.array([i]), alone) == pytest.approx([expected], abs=1e-15)
    # Nothing to learn from: the mean score of the others.
    assert prepared.predictions(np.array([1]), np.array([0])) == pytest.approx([0.25], abs=1e-15)


def test_no_agent_to_predict_is_no_prediction():
    assert predict(fit(*in_fifths(7, 5, 3)), np.empty((0, 3))).shape == (0,)


# --------------------------------------------------------------------------------------------- by definition


SIZES = st.tuples(st.integers(0, 2**32 - 1), st.integers(2, 14), st.integers(1, 20))


def objective(outcomes, scores, alpha, intercept, coefficients):
    residuals = scores - intercept - outcomes @ coefficients
    return residuals @ residuals + alpha * coefficients @ coefficients


@REPEATABLE
@given(SIZES, st.sampled_from([0.01, 1.0, 25.0]))
def test_the_normal_equations_hold(sizes, alpha):
    outcomes, scores = in_fifths(*sizes)
    calibration = fit(outcomes, scores, alpha)
    residuals = scores - predict(calibration, outcomes)
    centred = outcomes - outcomes.mean(axis=0)
    assert residuals.sum() == pytest.approx(0.0, abs=1e-11)
    assert centred.T @ residuals == pytest.approx(alpha * calibration.coefficients, abs=1e-11)


@REPEATABLE
@given(SIZES)
def test_no_neighbour_has_a_smaller_penalised_sum_of_squares(sizes):
    outcomes, scores = in_fifths(*sizes)
    calibration = fit(outcomes, scores)
    best = objective(outcomes, scores, 1.0, calibration.intercept, calibration.coefficients)
    rng = np.random.default_rng(sizes[0])
    for _ in range(5):
        step = 1e-3 * rng.standard_normal(1 + calibration.k)
        other = objective(
            outcomes, scores, 1.0, calibration.intercept + step[0], calibration.coefficients + step[1:]
        )
        assert best <= other


@REPEATABLE
@given(SIZES)
def test_both_forms_are_the_same_coefficients(sizes):
    outcomes, scores = in_fifths(*sizes)
    centred, y = outcomes - outcomes.mean(axis=0), scores - scores.mean()
    n, k = centred.shape
    primal = np.linalg.inv(centred.T @ centred + np.eye(k)) @ centred.T @ y
    dual = centred.T @ np.linalg.inv(centred @ centred.T + np.eye(n)) @ y
    coefficients = fit(outcomes, scores).coefficients
    assert coefficients == pytest.approx(primal, abs=1e-10)
    assert coefficients == pytest.approx(dual, abs=1e-10)


@pytest.mark.parametrize(("n", "k"), [(5, 3), (5, 5), (5, 6), (3, 400)])
def test_the_smaller_system_is_solved(n, k, monkeypatch):
    solved, solve = [], np.linalg.solve
    monkeypatch.setattr(np.linalg, "solve", lambda a, b: solved.append(a.shape) or solve(a, b))
    fit(*in_fifths(12, n, k))
    assert solved == [(min(n, k), min(n, k))]


@REPEATABLE
@given(SIZES, st.randoms(use_true_random=False))
def test_the_order_of_agents_and_tasks_does_not_matter(sizes, random):
    outcomes, scores = in_fifths(*sizes, share_missing=0.05)
    outcomes[0] = np.nan_to_num(outcomes[0])
    n, k = outcomes.shape
    rows, columns = random.sample(range(n), n), random.sample(range(k), k)
    calibration, turned = fit(outcomes, scores), fit(outcomes[np.ix_(rows, columns)], scores[rows])
    assert turned.intercept == pytest.approx(calibration.intercept, abs=1e-11)
    assert turned.coefficients == pytest.approx(calibration.coefficients[columns], abs=1e-11)


@REPEATABLE
@given(SIZES, st.floats(-2, 2))
def test_a_shift_of_the_scores_moves_the_intercept_alone(sizes, shift):
    outcomes, scores = in_fifths(*sizes)
    calibration, shifted = fit(outcomes, scores), fit(outcomes, scores + shift)
    assert shifted.intercept == pytest.approx(calibration.intercept + shift, abs=1e-11)
    assert shifted.coefficients == pytest.approx(calibration.coefficients, abs=1e-11)


def odd(seed, n, m):
    """A matrix with a constant task, twin tasks and twin agents, and scores that are not its means."""
    outcomes, scores = in_fifths(seed, n, m)
    outcomes[:, 0] = 0.4
    outcomes[:, m - 1] = outcomes[:, m // 2]
    outcomes[n - 1] = outcomes[0]
    return outcomes, scores


FOLDS = st.tuples(
    st.integers(0, 2**32 - 1),
    st.integers(4, 16),
    st.integers(2, 40),
    st.integers(0, 8),
    st.sampled_from([0.05, 1.0, 25.0]),
)


@REPEATABLE
@given(FOLDS)
def test_agents_left_out_are_predicted_as_by_a_refit(fold):
    seed, n, m, n_changed, alpha = fold
    outcomes, scores = odd(seed, n, m)
    rng = np.random.default_rng(seed)
    base = np.flatnonzero(rng.random(m) < 0.6)
    changed = rng.choice(m, min(n_changed, m - 1), replace=False)
    tasks = np.setxor1d(base, changed) if np.setxor1d(base, changed).size else np.arange(m)
    left_out = rng.permutation(n)[: rng.integers(1, n - 1)]
    others = np.setdiff1d(np.arange(n), left_out)
    refitted = fit(outcomes[np.ix_(others, tasks)], scores[others], alpha)
    expected = predict(refitted, outcomes[np.ix_(left_out, tasks)])
    prepared = leave_out(outcomes, scores, base, alpha=alpha)
    assert prepared.predictions(left_out, tasks) == pytest.approx(expected, abs=1e-10)


@REPEATABLE
@given(FOLDS)
def test_any_subset_by_a_shared_gram_matrix_and_alone_is_predicted_as_by_a_refit(fold):
    seed, n, m, _, _ = fold
    outcomes, scores = odd(seed, n, m)
    rng = np.random.default_rng(seed)
    tasks = np.sort(rng.choice(m, rng.integers(1, m + 1), replace=False))
    left_out = rng.permutation(n)[: rng.integers(1, n - 1)]
    others = np.setdiff1d(np.arange(n), left_out)
    expected = predict(
        fit(outcomes[np.ix_(others, tasks)], scores[others]), outcomes[np.ix_(left_out, tasks)]
    )
    assert shared_gram(outcomes, scores).predictions(left_out, tasks) == pytest.approx(expected, abs=1e-10)
    assert by_itself(outcomes.T[tasks], scores, left_out) == pytest.approx(expected, abs=1e-10)


@REPEATABLE
@given(st.integers(0, 2**32 - 1))
def test_folds_solved_together_are_solved_as_one_by_one(seed):
    rng = np.random.default_rng(seed)
    outcomes, scores = in_fifths(seed, 20, 30)
    prepared = leave_out(outcomes, scores, np.arange(15))
    members = np.zeros((12, 30), dtype=bool)
    members[:, :15] = True
    members ^= rng.random(members.shape) < 0.1
    left_out = [np.sort(rng.choice(20, size, replace=False)) for size in rng.integers(1, 4, 12)]
    together = prepared.predictions_each(left_out, members)
    for rows, row, found in zip(left_out, members, together, strict=True):
        assert found == pytest.approx(prepared.predictions(rows, np.flatnonzero(row)), abs=1e-13)


@pytest.mark.parametrize(("n", "m", "n_gaps"), [(40, 30, 0), (14, 200, 0), (14, 200, 40), (60, 60, 25)])
def test_every_way_of_predicting_folds_equals_refits(n, m, n_gaps):
    from selection.folds import CompleteAgents, plan
    from selection.full_scores import ridge_predictions as predictions

    outcomes, scores = in_fifths(n, n, m)
    rng = np.random.default_rng(n)
    outcomes[rng.integers(0, n, n_gaps), rng.integers(0, m, n_gaps)] = NAN
    names = tuple(f"a{i:02d}" for i in range(n))
    labels = tuple(f"s{i % 2}" for i in range(n))
    agents = CompleteAgents(names, outcomes, scores, (None,) * n, labels, labels)
    folds = [
        f
        for p in ("loao", "within_scaffold", "random_80_20", "loso")
        for f in plan(p, agents, n_seeds=4).folds
    ]
    members = np.zeros((len(folds), m), dtype=bool)
    members[:, : m // 2] = True
    members[::3] ^= rng.random(members[::3].shape) < 0.05
    members[::4] = rng.random(members[::4].shape) < 0.5
    told = predictions(agents, folds, [fold.held_out for fold in folds], members)
    for fold, row, found in zip(folds, members, told, strict=True):
        refitted = fit(outcomes[np.ix_(fold.training, row)], scores[fold.training])
        expected = predict(refitted, outcomes[np.ix_(fold.held_out, row)])
        assert found == pytest.approx(expected, abs=1e-10)


@REPEATABLE
@given(SIZES.filter(lambda sizes: sizes[1] > 2))
def test_the_matrix_of_the_leave_out_algebra_is_the_bordered_inverse(sizes):
    # [[XXᵀ + I, 1], [1ᵀ, 0]] applied to (By, b₀) is (y, 0): the optimality conditions, no column centred.
    outcomes, scores = in_fifths(*sizes)
    n = scores.size
    bordered = np.block([[outcomes @ outcomes.T + np.eye(n), np.ones((n, 1))], [np.ones((1, n)), 0.0]])
    prepared = leave_out(outcomes, scores, np.arange(outcomes.shape[1]))
    assert prepared.residual_maker == pytest.approx(np.linalg.inv(bordered)[:n, :n], abs=1e-10)
    assert prepared.residual_maker.sum(axis=1) == pytest.approx(np.zeros(n), abs=1e-12)
    calibration = fit(outcomes, scores)
    assert prepared.residuals == pytest.approx(scores - predict(calibration, outcomes), abs=1e-11)


def test_the_scores_of_agents_left_out_teach_nothing():
    outcomes, scores = in_fifths(31, 20, 30)
    left_out, tasks = np.array([4, 11, 2]), np.arange(5, 25)
    other_scores = scores.copy()
    other_scores[left_out] = [0.0, 1.0, 0.0]
    one = leave_out(outcomes, scores, np.arange(3, 24)).predictions(left_out, tasks)
    other = leave_out(outcomes, other_scores, np.arange(3, 24)).predictions(left_out, tasks)
    assert one == pytest.approx(other, abs=1e-12)


def test_a_fold_solves_systems_of_the_size_of_what_changed(monkeypatch):
    outcomes, scores = in_fifths(32, 60, 300)
    prepared = leave_out(outcomes, scores, np.arange(100), np.arange(90, 110))
    solved, solve = [], np.linalg.solve
    monkeypatch.setattr(np.linalg, "solve", lambda a, b: solved.append(a.shape) or solve(a, b))
    prepared.predictions(np.array([7, 8]), np.r_[0:97, 100:104])
    assert solved == [(1, 7, 7), (1, 2, 2)]  # one fold in the stack


def test_a_fold_with_a_missing_cell_or_a_task_that_is_no_candidate_is_not_covered():
    outcomes, scores = in_fifths(33, 12, 20)
    outcomes[3, 5] = outcomes[4, 15] = NAN
    prepared = leave_out(outcomes, scores, np.arange(10), np.array([4, 5, 9, 10, 15]))
    without = np.setdiff1d(np.arange(10), [5])
    assert prepared.predictions(np.array([0]), np.setdiff1d(np.append(without, 10), [4, 9])).shape == (1,)
    for tasks in (np.arange(10), np.append(without, 15), np.append(without, 11), without[1:]):
        with refused(SelectionError, "not_covered", match="a cell of the subset is missing"):
            prepared.predictions(np.array([0]), tasks)
    others = np.arange(1, 12)
    expected = predict(fit(outcomes[np.ix_(others, without)], scores[others]), outcomes[:1, without])
    assert prepared.predictions(np.array([0]), without) == pytest.approx(expected, abs=1e-12)


def test_a_huge_penalty_predicts_the_mean_score():
    outcomes, scores = in_fifths(8, 9, 5)
    calibration = fit(outcomes, scores, alpha=1e12)
    assert predict(calibration, outcomes) == pytest.approx(np.full(9, scores.mean()), abs=1e-9)


# ----------------------------------------------------------------------------------------- foreign program


@pytest.mark.parametrize(("n", "k"), [(2, 1), (2, 9), (12, 3), (12, 12), (12, 13), (40, 200), (200, 40)])
@pytest.mark.parametrize("alpha", [1.0, 0.3])
def test_equal_to_scikit_learn(n, k, alpha):
    from sklearn.linear_model import Ridge

    outcomes, scores = in_fifths(100 * n + k, n, k)
    new = in_fifths(1, 7, k)[0]
    theirs = Ridge(alpha=alpha).fit(outcomes, scores)
    ours = fit(outcomes, scores, alpha)
    assert ours.intercept == pytest.approx(theirs.intercept_, abs=1e-10)
    assert ours.coefficients == pytest.approx(theirs.coef_, abs=1e-10)
    assert predict(ours, new) == pytest.approx(theirs.predict(new), abs=1e-10)


def test_equal_to_scikit_learn_with_its_mean_imputer():
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    outcomes, scores = in_fifths(17, 30, 22, share_missing=0.08)
    new = in_fifths(18, 40, 22, share_missing=0.05)[0]
    new = new[10 * np.isnan(new).sum(axis=1) <= 22]
    assert np.isnan(outcomes).any()
    assert np.isnan(new).any()
    theirs = make_pipeline(SimpleImputer(), Ridge(alpha=1.0)).fit(outcomes, scores)
    ours = fit(outcomes, scores)
    assert ours.coefficients == pytest.approx(theirs["ridge"].coef_, abs=1e-10)
    assert predict(ours, new) == pytest.approx(theirs.predict(new), abs=1e-10)


@pytest.mark.parametrize("name", ["hal_gaia", "hal_corebench_hard", "hal_taubench_airline"])
def test_equal_to_scikit_learn_on_real_boards(real_rows, name):
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import Ridge

    outcomes = matrix_of(real_rows(name))
    scores, rates = np.nanmean(outcomes, axis=1), np.nanmean(outcomes, axis=0)
    subset = outcomes[:, (rates >= 0.3) & (rates <= 0.7)]
    completed = SimpleImputer().fit_transform(subset)
    theirs, ours = Ridge(alpha=1.0).fit(completed, scores), fit(subset, scores)
    assert ours.intercept == pytest.approx(theirs.intercept_, abs=1e-10)
    assert ours.coefficients == pytest.approx(theirs.coef_, abs=1e-10)
    assert predict(ours, subset) == pytest.approx(theirs.predict(completed), abs=1e-10)


@pytest.mark.parametrize(("n", "k"), [(3, 1), (4, 30), (12, 3), (12, 12), (40, 200), (200, 40)])
@pytest.mark.parametrize("alpha", [1.0, 0.3])
def test_leaving_one_out_equals_refits_of_scikit_learn(n, k, alpha):
    from sklearn.linear_model import Ridge

    outcomes, scores = in_fifths(200 * n + k, n, k)
    theirs = [
        Ridge(alpha=alpha).fit(np.delete(outcomes, i, 0), np.delete(scores, i)).predict(outcomes[[i]])[0]
        for i in range(n)
    ]
    assert leave_one_out(outcomes, scores, alpha) == pytest.approx(theirs, abs=1e-10)


def test_the_folds_of_a_real_board_equal_refits_of_scikit_learn(real_rows):
    from sklearn.linear_model import Ridge

    outcomes = matrix_of(real_rows("swebench_verified_2023_2025"))
    scores, rates = outcomes.mean(axis=1), outcomes.mean(axis=0)
    n = scores.size
    edges = np.flatnonzero(np.minimum(abs(rates - 0.3), abs(rates - 0.7)) < 0.1)
    prepared = leave_out(outcomes, scores, np.flatnonzero((rates >= 0.3) & (rates <= 0.7)), edges)
    for first in range(0, n, 5):
        left_out = np.arange(first, min(n, first + 1 + first % 11))
        others = np.setdiff1d(np.arange(n), left_out)
        fold_rates = outcomes[others].mean(axis=0)
        tasks = np.flatnonzero((fold_rates >= 0.3) & (fold_rates <= 0.7))
        theirs = Ridge(alpha=1.0).fit(outcomes[np.ix_(others, tasks)], scores[others])
        expected = theirs.predict(outcomes[np.ix_(left_out, tasks)])
        assert prepared.predictions(left_out, tasks) == pytest.approx(expected, abs=1e-10)


# ------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("outcomes", "scores", "alpha", "refusal", "message"),
    [
        ([[0.5]], [0.5], 1.0, "too_few_agents", "at least 2 agents; there are 1"),
        (np.empty((0, 1)), [], 1.0, "too_few_agents", "there are 0"),
        (np.empty((3, 0)), [0, 1, 0], 1.0, "no_tasks", "no task in the subset"),
        ([[0.0, NAN], [1.0, NAN]], [0, 1], 1.0, "task_unobserved", "task 1 of the subset"),
        ([[0.0], [1.0]], [0, NAN], 1.0, "score_missing", "agent 1 has no full score"),
        ([[0.0], [1.0]], [math.inf, 0], 1.0, "score_missing", "agent 0 has no full score"),
        ([[0.0], [1.0]], [0, 1, 1], 1.0, "shape", r"scores \(3,\) for 2 agents"),
        ([0.0, 1.0], [0, 1], 1.0, "shape", r"shape \(2,\)"),
        ([[0.0], [1.2]], [0, 1], 1.0, "outcome_range", "agent 1, task 0 of the subset: 1.2"),
        ([[0.0], [math.inf]], [0, 1], 1.0, "outcome_range", "inf is not from 0 to 1"),
        ([[0.0], [1.0]], [0, 1], 0.0, "penalty_range", "a penalty of 0.0"),
        ([[0.0], [1.0]], [0, 1], NAN, "penalty_range", "a penalty of nan"),
    ],
)
def test_what_cannot_be_fitted_is_refused_by_name(outcomes, scores, alpha, refusal, message):
    with refused(SelectionError, refusal, match=message):
        fit(np.array(outcomes), np.array(scores), alpha)


def test_rows_of_another_subset_are_refused():
    calibration = fit(*in_fifths(9, 5, 4))
    with refused(SelectionError, "shape", match="3 tasks for a calibration on 4"):
        predict(calibration, np.zeros((2, 3)))
    with refused(SelectionError, "outcome_range", match=r"-0\.5"):
        predict(calibration, np.full((1, 4), -0.5))


def test_what_cannot_be_left_out_is_refused_by_name():
    outcomes, scores = in_fifths(10, 5, 4)
    prepared = leave_out(outcomes, scores, np.array([0, 1]))
    with refused(SelectionError, "too_few_agents", match="at least 2 agents; there are 1"):
        prepared.predictions(np.arange(4), np.array([0]))
    with refused(SelectionError, "no_tasks", match="no task in the subset"):
        prepared.predictions(np.array([0]), np.empty(0, dtype=int))
    with refused(SelectionError, "shape", match="2 agents left out, of whom 1 differ"):
        prepared.predictions(np.array([3, 3]), np.array([0]))
    with refused(SelectionError, "shape", match="tasks 0 to 4 where there are 4"):
        leave_out(outcomes, scores, np.array([0, 4]))


def test_the_arrays_of_a_fit_refuse_to_be_written_to():
    calibration = fit(*in_fifths(9, 5, 4))
    assert not calibration.coefficients.flags.writeable
    assert not calibration.column_means.flags.writeable
