"""The estimators: scikit-learn's own checks, hand-sized cases, and the numbers of selection.validation."""

from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_validate
from sklearn.pipeline import Pipeline
from sklearn.utils.estimator_checks import check_estimator

from analytics.outcome_table import OutcomeTable
from selection.errors import SelectionError
from selection.estimators import (
    EstimatorRefused,
    FullScore,
    LeaveOneAgentOut,
    LeaveOneModelOut,
    LeaveOneScaffoldOut,
    MidRangeSelector,
    RandomSplits,
    TemporalSplit,
    WithinScaffold,
)
from selection.folds import Rule, complete_agents, fold_bands, plan
from selection.held_out import choose, hold_out
from selection.validation import validate
from tests.refusals import refused

NAN = np.nan
OUT_OF_RANGE = "the check draws numbers above 1, and an outcome above 1 is refused by name"
ANY_DATA = dict.fromkeys(
    (
        "check_dict_unchanged",
        "check_dont_overwrite_parameters",
        "check_estimators_dtypes",
        "check_estimators_fit_returns_self",
        "check_estimators_overwrite_params",
        "check_estimators_pickle",
        "check_f_contiguous_array_estimator",
        "check_fit2d_1feature",
        "check_fit2d_predict1d",
        "check_fit_check_is_fitted",
        "check_fit_idempotent",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_n_features_in",
        "check_n_features_in_after_fitting",
        "check_pipeline_consistency",
        "check_readonly_memmap_input",
    ),
    OUT_OF_RANGE,
)
OF_A_TRANSFORMER = dict.fromkeys(
    (
        "check_transformer_data_not_an_array",
        "check_transformer_general",
        "check_transformer_preserve_dtypes",
    ),
    OUT_OF_RANGE,
)
OF_A_REGRESSOR = dict.fromkeys(
    (
        "check_regressor_data_not_an_array",
        "check_regressors_int",
        "check_regressors_no_decision_function",
        "check_regressors_train",
    ),
    OUT_OF_RANGE,
)
SPARSE_ROWS = {
    "check_estimators_pickle": "a third of a row is missing; over a tenth no full score is predicted"
}


class IntoRange:
    """Takes what the checks draw, 0 or more, to outcomes below 1: all but the range is then checked."""

    def _outcomes(self, X, **asked):
        found = super()._outcomes(X, **asked)
        return found / (1.0 + found)


class SelectorInRange(IntoRange, MidRangeSelector):
    pass


class ScoreInRange(IntoRange, FullScore):
    pass


def failed(results):
    return {result["check_name"] for result in results if result["status"] not in ("passed", "skipped")}


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (SelectorInRange(), {}),
        (SelectorInRange(strategy="stratified", lo=0.05, hi=0.95), {}),
        (ScoreInRange(), SPARSE_ROWS),
    ],
    ids=["selector", "stratified", "full score"],
)
def test_scikit_learns_checks_pass(estimator, expected):
    results = check_estimator(estimator, expected_failed_checks=expected, on_skip=None)
    assert failed(results) == set(expected)
    assert len(results) > 40


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (MidRangeSelector(), ANY_DATA | OF_A_TRANSFORMER),
        (FullScore(), ANY_DATA | OF_A_REGRESSOR),
    ],
    ids=["selector", "full score"],
)
def test_a_check_that_draws_more_than_1_is_refused_for_that_and_all_others_pass(estimator, expected):
    results = check_estimator(estimator, expected_failed_checks=expected, on_skip=None)
    assert failed(results) == set(expected)
    for result in results:
        if result["status"] == "xfail":
            error = result["exception"]
            codes = {getattr(one, "code", "") for one in (error, error.__cause__)}
            assert "outcome_range" in codes


def hand():
    """Five agents on six tasks with pass rates 0, 0.2, 0.4, 0.6, 0.8, 1."""
    return np.array([[float(i < passes) for passes in range(6)] for i in range(5)])


def test_the_tasks_of_the_band_by_hand():
    selector = MidRangeSelector().fit(hand())
    np.testing.assert_allclose(selector.pass_rates_, [0, 0.2, 0.4, 0.6, 0.8, 1], rtol=0, atol=1e-15)
    assert selector.tasks_.tolist() == [2, 3]
    assert selector.get_support().tolist() == [False, False, True, True, False, False]
    assert selector.get_support(indices=True).tolist() == [2, 3]
    np.testing.assert_array_equal(selector.transform(hand()), hand()[:, 2:4])
    assert MidRangeSelector(lo=0.2, hi=0.8).fit(hand()).tasks_.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("strategy", "tasks"), [("easiest", [4, 5]), ("hardest", [0, 1]), ("spread", [1, 4])]
)
def test_another_strategy_chooses_as_many(strategy, tasks):
    assert MidRangeSelector(strategy=strategy).fit(hand()).tasks_.tolist() == tasks


def test_a_draw_depends_on_the_seed_alone():
    x = np.random.default_rng(0).random((20, 40))
    chosen = [MidRangeSelector(strategy="random", lo=0.49, seed=s).fit(x).tasks_.tolist() for s in (1, 1, 2)]
    assert chosen[0] == chosen[1] != chosen[2]


def test_names_of_tasks_come_along():
    frame = pd.DataFrame(hand(), columns=list("abcdef"))
    selector = MidRangeSelector().fit(frame)
    assert selector.get_feature_names_out().tolist() == ["c", "d"]
    assert list(selector.set_output(transform="pandas").transform(frame).columns) == ["c", "d"]


def test_full_scores_by_hand():
    # One task, agents at 0 and 1 with scores 0.2 and 0.6: β = (0.5·0.4)/(0.5 + 1), b₀ = 0.4 − 0.5·β.
    fitted = FullScore().fit([[0.0], [1.0]], [0.2, 0.6])
    np.testing.assert_allclose(fitted.coef_, [0.2 / 1.5], rtol=1e-14)
    np.testing.assert_allclose(fitted.predict([[0.5], [NAN]][:1]), [0.4], rtol=1e-14)


@pytest.mark.parametrize(("n", "k"), [(30, 8), (8, 30)])
def test_full_score_is_scikit_learns_ridge(n, k):
    rng = np.random.default_rng(n)
    x, y, new = rng.random((n, k)), rng.random(n), rng.random((7, k))
    ours, theirs = FullScore().fit(x, y), Ridge(alpha=1.0).fit(x, y)
    np.testing.assert_allclose(ours.predict(new), theirs.predict(new), rtol=0, atol=1e-10)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=1e-10)
    assert ours.score(new, y[:7]) == pytest.approx(theirs.score(new, y[:7]), abs=1e-10)


def toy():
    """24 complete agents on 40 tasks; one cell missing, three scaffolds, six models, 15 dates."""
    rng = np.random.default_rng(5)
    logits = rng.standard_normal((24, 1)) - rng.standard_normal((1, 40))
    means = rng.binomial(2, 1.0 / (1.0 + np.exp(-logits))) / 2
    means[3, 7] = NAN
    return OutcomeTable(
        agents=tuple(f"a{i:02d}" for i in range(24)),
        tasks=tuple(f"t{j:02d}" for j in range(40)),
        means=means,
        n_valid=2 * (~np.isnan(means)).astype(np.int32),
        dates=tuple(date(2026, 1, 1) + timedelta(days=max(0, i - 9)) for i in range(24)),
        scaffolds=tuple("AAB"[i % 3] for i in range(24)),
        models=tuple(f"m{i // 4}" for i in range(24)),
    )


PIPELINE = Pipeline([("subset", MidRangeSelector()), ("score", FullScore())])
PROTOCOLS = {
    "loao": (LeaveOneAgentOut(), None),
    "within_scaffold": (WithinScaffold(), "scaffolds"),
    "random_80_20": (RandomSplits(n_seeds=7, seed=3), None),
    "loso": (LeaveOneScaffoldOut(), "scaffolds"),
    "lomo": (LeaveOneModelOut(), "models"),
    "temporal": (TemporalSplit(), "dates"),
}


def predicted(table, protocol):
    """Held-out agents and their predictions by cross_validate, fold after fold."""
    splitter, by = PROTOCOLS[protocol]
    found = cross_validate(
        PIPELINE,
        table.means,
        table.scores(),
        groups=by and getattr(table, by),
        cv=splitter,
        scoring="neg_mean_absolute_error",
        return_estimator=True,
        return_indices=True,
        error_score="raise",
    )
    folds = list(zip(found["estimator"], found["indices"]["test"], strict=True))
    predictions = [fitted.predict(table.means[rows]) for fitted, rows in folds]
    return np.concatenate([rows for _, rows in folds]), np.concatenate(predictions)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_pipeline_predicts_what_validation_does(protocol):
    table = toy()
    agents = complete_agents(table)
    assert agents.n == 24
    folds = plan(protocol, agents, n_seeds=7, base_seed=3)
    bands = fold_bands(agents, folds, Rule())
    records = hold_out(agents, choose(agents, bands, "mid_range", Rule(), 3, protocol))
    rows, predictions = predicted(table, protocol)
    assert rows.tolist() == records.agents.tolist()
    np.testing.assert_allclose(predictions, records.predictions, rtol=0, atol=1e-10)


def test_rho_calibrated_of_leaving_one_agent_out_is_that_of_the_pipeline():
    table = toy()
    quick = {"coverage": False, "standard_errors": False, "n_null_draws": 0}
    found = validate(table, protocols=("loao",), strategies=("mid_range",), **quick)
    rows, predictions = predicted(table, "loao")
    rho = spearmanr(predictions, table.scores()[rows]).statistic
    assert found.protocols["loao"].strategies["mid_range"].rho_calibrated == pytest.approx(rho, abs=1e-12)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_splits_hold_no_row_twice_and_their_number_is_told(protocol):
    splitter, by = PROTOCOLS[protocol]
    table = toy()
    groups = by and getattr(table, by)
    splits = list(splitter.split(table.means, groups=groups))
    assert splitter.get_n_splits(table.means, groups=groups) == len(splits) > 1
    for training, held_out in splits:
        assert training.size
        assert held_out.size
        assert not np.intersect1d(training, held_out).size
        if by in ("scaffolds", "models") and protocol != "within_scaffold":
            assert not {groups[i] for i in training} & {groups[i] for i in held_out}
        if by == "dates":
            assert max(groups[i] for i in training) < min(groups[i] for i in held_out)


def test_dates_may_be_written_in_any_usual_way():
    days = toy().dates
    x = toy().means
    expected = [(a.tolist(), b.tolist()) for a, b in TemporalSplit().split(x, groups=days)]
    for groups in (
        [str(day) for day in days],
        [datetime(day.year, day.month, day.day, 23) for day in days],  # noqa: DTZ001
        np.array(days, dtype="datetime64[D]"),
        pd.Series(pd.to_datetime([str(day) for day in days])),
    ):
        assert [(a.tolist(), b.tolist()) for a, b in TemporalSplit().split(x, groups=groups)] == expected


def test_what_cannot_be_chosen_or_told_is_refused():
    with refused(EstimatorRefused, "name_unknown", match="no strategy 'best'"):
        MidRangeSelector(strategy="best").fit(hand())
    with refused(EstimatorRefused, "name_unknown", match="no estimator 'lasso'"):
        FullScore(estimator="lasso").fit(hand(), np.arange(5))
    with refused(EstimatorRefused, "no_subset", match="none of 6 tasks has a pass rate"):
        MidRangeSelector().fit(np.ones((5, 6)))
    with pytest.raises(ValueError, match=r"4 sample\(s\).*minimum of 5"):
        MidRangeSelector().fit(hand()[:4])
    with refused(SelectionError, "too_few_tasks", match="spread"):
        MidRangeSelector(strategy="spread", lo=0.0, hi=1.0).fit(hand())
    with refused(SelectionError, "outcome_range", match="agent 0, task 0"):
        MidRangeSelector().fit(2 * np.ones((5, 6)))
    with refused(SelectionError, "cells_missing", match="lacks 1 of 6"):
        FullScore().fit(hand(), np.arange(5)).predict([[NAN, 0, 0, 0, 0, 0]])


def test_a_splitter_says_why_there_are_no_folds():
    with refused(EstimatorRefused, "no_groups", match="needs groups, the scaffolds of the agents"):
        LeaveOneScaffoldOut().get_n_splits(toy().means)
    with refused(EstimatorRefused, "no_folds", match="5 complete agents; with one held out"):
        LeaveOneAgentOut().get_n_splits(hand())
    with refused(EstimatorRefused, "no_folds", match="no scaffold has 10 complete agents"):
        WithinScaffold().get_n_splits(toy().means, groups=list("ABC") * 8)
    with refused(EstimatorRefused, "no_folds", match="1 of 24 complete agents has no date"):
        TemporalSplit().get_n_splits(toy().means, groups=[None, *toy().dates[1:]])
    with refused(EstimatorRefused, "no_groups", match="groups are no dates"):
        TemporalSplit().get_n_splits(toy().means, groups=["spring"] * 24)
    with refused(EstimatorRefused, "no_folds", match="0 splits are asked for"):
        RandomSplits(n_seeds=0).get_n_splits(toy().means)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        LeaveOneModelOut().get_n_splits(toy().means, groups=["m"] * 3)
