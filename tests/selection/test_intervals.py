"""Intervals of a calibrated score: by hand, by definition, against scikit-learn and scipy, refusals."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selection import full_scores
from selection.errors import SelectionError
from selection.full_scores import predict_each, refits_without
from selection.intervals import (
    NoInterval,
    ScoreInterval,
    intervals,
    jackknife_plus,
    split_conformal,
)
from selection.intervals import calibrate as calibrate_fitted
from tests.refusals import refused
from tests.selection.records import in_fifths, interval, unnamed

REPEATABLE = settings(derandomize=True, deadline=None)
NAN = math.nan


def graded(n, k=12, seed=1):
    """Agents of spread ability whose scores their outcomes tell well, and residuals a tenth of the spread."""
    rng = np.random.default_rng(seed)
    scores = np.linspace(0.1, 0.9, n)
    outcomes = (rng.random((n, k)) < scores[:, None]).astype(float)
    return outcomes, scores, rng.normal(0.0, 0.02, n)


def calibrate(outcomes, scores, residuals, **more):
    """A Ridge on all tasks that there are."""
    agents = unnamed(outcomes, scores)
    return calibrate_fitted(full_scores.fit("ridge", agents, np.arange(len(outcomes[0]))), residuals, **more)


def point_of(outcomes, scores, row):
    from sklearn.linear_model import Ridge

    return Ridge(alpha=1.0).fit(outcomes, scores).predict(row[None, :])[0]


# ------------------------------------------------------------------------------------------------ by hand


@pytest.mark.parametrize(
    ("n", "rank"), [(19, 19), (20, 20), (38, 38), (39, 38), (40, 39), (59, 57), (99, 95)]
)
def test_ranks_of_the_order_statistics(n, rank):
    assert rank == math.ceil(Fraction(19, 20) * (n + 1))
    residuals = np.random.default_rng(n).permutation(np.arange(1.0, n + 1))
    assert split_conformal(-residuals) == rank
    # Predictions 0: the ends are order statistics of ∓R, lower the ⌊.05(n + 1)⌋-th smallest of −R.
    lower, upper = jackknife_plus(np.zeros((1, n)), residuals)
    assert upper.tolist() == [rank]
    assert lower.tolist() == [-(n + 1 - math.floor(Fraction(n + 1, 20)))]


def test_with_nineteen_the_smallest_and_the_largest_end():
    predictions = np.linspace(0.2, 0.56, 19)
    residuals = np.full(19, 0.1)
    lower, upper = jackknife_plus(predictions[None, :], residuals)
    assert (lower[0], upper[0]) == pytest.approx((0.1, 0.66))


@pytest.mark.parametrize("n", [0, 1, 18])
def test_no_order_statistic_under_nineteen(n):
    with refused(SelectionError, "too_few_residuals", match=f"{n} residuals"):
        split_conformal(np.ones(n))
    with refused(SelectionError, "too_few_residuals", match="from 19 on"):
        jackknife_plus(np.zeros((2, n)), np.ones(n))


def test_normal_by_hand():
    # n = 10, every |R| = 0.03: t_{9,.975} = 2.262157, √(1 + 1/10) = 1.048809; 0.0711764.
    outcomes, scores, _ = graded(10)
    answer = interval(calibrate(outcomes, scores, np.full(10, -0.03)), outcomes[4])
    point = point_of(outcomes, scores, outcomes[4])
    assert answer.source == "normal"
    assert answer.point == pytest.approx(point, abs=1e-10)
    assert answer.half_width == pytest.approx(2.262157 * 0.03 * 1.048809, abs=1e-7)
    assert (answer.lower + answer.upper) / 2 == pytest.approx(point, abs=1e-10)
    assert (answer.s_cal, answer.df) == (pytest.approx(0.03), 9)
    assert answer.note == "leave-one-agent-out residuals of 10 agents"


def test_new_scaffold_by_hand():
    # Five scaffolds of two: residuals ±a around means −2, −1, 0, 1, 2 (hundredths), a = 1.
    # MSB = 2·(4 + 1 + 0 + 1 + 4)/4 = 5, MSW = 10·1/5 = 2, n₀ = 2: σ_s² = 1.5, σ_e² = 2 (hundredths²).
    # t_{4,.975} = 2.776445; √(1.5·1.2 + 2) = √3.8.
    means = np.repeat([-0.02, -0.01, 0.0, 0.01, 0.02], 2)
    residuals = means + np.tile([-0.01, 0.01], 5)
    names = list("aabbccddee")
    outcomes, scores, loao = graded(10)
    calibrator = calibrate(outcomes, scores, loao / 9, scaffolds=names, scaffold_residuals=residuals)
    parts = calibrator.scaffold_components
    assert (parts.between, parts.within) == pytest.approx((1.5e-4, 2e-4))
    assert (parts.n_scaffolds, parts.separated) == (5, True)
    answer = interval(calibrator, outcomes[0], "f")
    assert answer.source == "new scaffold"
    assert answer.half_width == pytest.approx(2.776445 * math.sqrt(3.8e-4), rel=1e-6)
    assert (answer.s_cal, answer.df) == (pytest.approx(math.sqrt(3.8e-4)), 4)
    assert interval(calibrator, outcomes[0], "a").source == "normal"
    assert interval(calibrator, outcomes[0], None).source == "normal"


def test_components_of_unequal_groups_truncated_at_zero():
    # Groups of 1, 2, 2, 2, 3 with equal means: MSB = 0 < MSW, so σ_s² = 0.
    residuals = 0.01 * np.array([0.0, -1, 1, -2, 2, -1, 1, -1, 0, 1])
    outcomes, scores, loao = graded(10)
    names = list("abbccddeee")
    parts = calibrate(
        outcomes, scores, loao, scaffolds=names, scaffold_residuals=residuals
    ).scaffold_components
    assert parts.between == 0.0
    assert parts.within == pytest.approx(1e-4 * (2 + 8 + 2 + 2) / 5)


def test_one_agent_in_every_scaffold_is_said():
    outcomes, scores, loao = graded(10)
    residuals = np.linspace(-0.03, 0.03, 10)
    names = list("abcdefghij")
    calibrator = calibrate(outcomes, scores, loao / 9, scaffolds=names, scaffold_residuals=residuals)
    parts = calibrator.scaffold_components
    assert (parts.between, parts.within) == (pytest.approx(np.var(residuals, ddof=1)), 0.0)
    answer = interval(calibrator, outcomes[3], "z")
    # A new draw from the same distribution: t_{n−1}·s·√(1 + 1/n).
    assert answer.half_width == pytest.approx(2.262157 * np.std(residuals, ddof=1) * math.sqrt(1.1), rel=1e-6)
    assert answer.note.endswith("10 scaffolds held out, one agent in each")


def test_which_source():
    outcomes, scores, loao = graded(25)
    row, names = outcomes[7], ["a", "b", "c", "d", "e"] * 5
    post, later = np.linspace(-0.05, 0.05, 19), np.linspace(-0.06, 0.06, 19)
    wide = {"scaffolds": names, "scaffold_residuals": 5 * loao}
    assert interval(calibrate(outcomes, scores, loao), row, "new").source == "jackknife+"
    assert interval(calibrate(outcomes, scores, loao, **wide), row, "a").source == "jackknife+"
    assert interval(calibrate(outcomes, scores, loao, **wide), row, "new").source == "new scaffold"
    in_time = calibrate(outcomes, scores, loao, **wide, in_time=[*later, NAN])
    assert interval(in_time, row, "a").source == "in time"
    assert interval(in_time, row, "a").half_width == pytest.approx(0.06)
    assert interval(in_time, row, "a").note.startswith("residuals of 19 agents, each predicted from those")
    sampled = calibrate(outcomes, scores, loao, **wide, in_time=later, post_selection=post)
    assert interval(sampled, row, "a").source == "post-selection"
    assert interval(sampled, row, "a").half_width == pytest.approx(0.05)
    assert interval(sampled, row, "new").source == "new scaffold"
    fewer = calibrate(outcomes, scores, loao, in_time=later[:18], post_selection=post[:18])
    assert interval(fewer, row).source == "jackknife+"
    eighteen = np.where(np.arange(25) < 18, loao, NAN)
    assert interval(calibrate(outcomes, scores, eighteen), row).source == "normal"


def test_a_new_scaffold_counts_where_it_is_wider():
    """Residuals by scaffold a hundredth of the others: the interval is that of known scaffolds."""
    outcomes, scores, loao = graded(25)
    names = ["a", "b", "c", "d", "e"] * 5
    calibrator = calibrate(outcomes, scores, loao, scaffolds=names, scaffold_residuals=loao / 100)
    new, old = (interval(calibrator, outcomes[0], name) for name in ("new", "a"))
    assert new == old
    assert new.source == "jackknife+"


def test_the_error_for_comparisons_is_that_of_the_residuals_in_use():
    outcomes, scores, loao = graded(25)
    in_time, post = np.full(20, 0.04), np.append(np.zeros(16), np.full(4, 0.1))
    told = interval(calibrate(outcomes, scores, loao), outcomes[0])
    assert (told.s_cal, told.df) == (pytest.approx(math.sqrt(np.mean(loao**2))), 24)
    told = interval(calibrate(outcomes, scores, loao, in_time=in_time), outcomes[0])
    assert (told.s_cal, told.df) == (pytest.approx(0.04), 19)
    told = interval(calibrate(outcomes, scores, loao, in_time=in_time, post_selection=post), outcomes[0])
    assert (told.s_cal, told.df) == (pytest.approx(math.sqrt(0.04 / 20)), 19)


# --------------------------------------------------------------------------------------------- by definition


@REPEATABLE
@given(st.integers(0, 2**32 - 1), st.integers(3, 14), st.integers(1, 20), st.sampled_from([0.0, 0.04]))
def test_refits_equal_scikit_learn_refits(seed, n, k, share_missing):
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    outcomes, scores = in_fifths(seed, n, k, share_missing)
    outcomes[:2] = np.nan_to_num(outcomes[:2])
    new = in_fifths(seed + 1, 4, k, share_missing)[0]
    ours = predict_each(refits_without(outcomes, scores), new)
    for i in range(n):
        others = np.arange(n) != i
        model = make_pipeline(SimpleImputer(keep_empty_features=True), Ridge(alpha=1.0))
        theirs = model.fit(outcomes[others], scores[others]).predict(new)
        assert ours[:, i] == pytest.approx(theirs, abs=1e-10)


def slow_jackknife_plus(outcomes, scores, residuals, row):
    """Barber et al. 2021, §1.2, word by word, with scikit-learn."""
    n = scores.size
    low, high = [], []
    for i in range(n):
        prediction = point_of(np.delete(outcomes, i, 0), np.delete(scores, i), row)
        low.append(prediction - abs(residuals[i]))
        high.append(prediction + abs(residuals[i]))
    return sorted(low)[math.floor(0.05 * (n + 1) + 1e-9) - 1], sorted(high)[
        math.ceil(0.95 * (n + 1) - 1e-9) - 1
    ]


@pytest.mark.parametrize(("n", "k"), [(19, 12), (25, 40), (60, 8)])
def test_jackknife_plus_word_by_word(n, k):
    outcomes, scores, residuals = graded(n, k)
    calibrator = calibrate(outcomes, scores, residuals)
    for row in in_fifths(5, 3, k)[0]:
        answer = interval(calibrator, row)
        ends = slow_jackknife_plus(outcomes, scores, residuals, row)
        assert (answer.lower, answer.upper) == pytest.approx(np.clip(ends, 0, 1), abs=1e-10)
        assert answer.half_width == pytest.approx((ends[1] - ends[0]) / 2, abs=1e-10)


def test_agents_without_a_residual_are_left_out_of_the_order_statistics():
    outcomes, scores, residuals = graded(25)
    holes = np.where(np.isin(np.arange(25), [3, 11]), NAN, residuals)
    calibrator = calibrate(outcomes, scores, holes)
    assert calibrator.left_out.size == 23
    predictions = predict_each(refits_without(outcomes, scores), outcomes[:1])
    kept = np.delete(np.arange(25), [3, 11])
    lower, upper = jackknife_plus(predictions[:, kept], np.abs(residuals[kept]))
    answer = interval(calibrator, outcomes[0])
    assert (answer.lower, answer.upper) == pytest.approx(np.clip((lower[0], upper[0]), 0, 1))


@REPEATABLE
@given(st.integers(0, 2**32 - 1), st.integers(19, 40), st.randoms(use_true_random=False))
def test_the_order_of_agents_does_not_matter(seed, n, random):
    outcomes, scores, residuals = graded(n, seed=seed)
    rows = random.sample(range(n), n)
    mine, turned = (
        interval(calibrate(outcomes[order], scores[order], residuals[order]), outcomes[0])
        for order in (list(range(n)), rows)
    )
    assert (mine.lower, mine.upper) == pytest.approx((turned.lower, turned.upper), abs=1e-10)


def test_many_agents_at_once_are_each_agent_alone():
    outcomes, scores, residuals = graded(30)
    names = [f"s{i % 6}" for i in range(30)]
    calibrator = calibrate(outcomes, scores, residuals, scaffolds=names, scaffold_residuals=residuals)
    scaffolds = [names[i] if i % 3 else "unseen" for i in range(30)]
    rows = outcomes.copy()
    rows[4, :2] = NAN
    together = intervals(calibrator, rows, scaffolds)
    for row, scaffold, answer in zip(rows, scaffolds, together, strict=True):
        alone = interval(calibrator, row, scaffold)
        assert type(alone) is type(answer)
        if isinstance(answer, ScoreInterval):
            assert (alone.lower, alone.upper) == pytest.approx((answer.lower, answer.upper), abs=1e-12)
    assert isinstance(together[4], NoInterval)
    assert intervals(calibrator, np.empty((0, 12))) == ()


# ----------------------------------------------------------------------------------------- foreign program


@pytest.mark.parametrize("n", [10, 14, 18])
def test_normal_against_scipy(n):
    from scipy import stats

    outcomes, scores, residuals = graded(n)
    answer = interval(calibrate(outcomes, scores, residuals), outcomes[2])
    scale = math.sqrt(np.mean(residuals**2) * (1 + 1 / n))
    theirs = stats.t.interval(0.95, n - 1, loc=point_of(outcomes, scores, outcomes[2]), scale=scale)
    assert (answer.lower, answer.upper) == pytest.approx(np.clip(theirs, 0, 1), abs=1e-10)


def test_components_against_scipy_one_way():
    from scipy import stats

    rng = np.random.default_rng(8)
    outcomes, scores, loao = graded(30)
    names = [f"s{g}" for g in rng.integers(0, 7, 30)]
    effect = {name: rng.normal(0, 0.03) for name in set(names)}
    residuals = np.array([effect[name] + rng.normal(0, 0.01) for name in names])
    parts = calibrate(
        outcomes, scores, loao, scaffolds=names, scaffold_residuals=residuals
    ).scaffold_components
    groups = [residuals[[name == g for name in names]] for g in sorted(set(names))]
    # F = MSB/MSW, so MSB = F·MSW: the components follow from scipy's F alone.
    f = stats.f_oneway(*groups).statistic
    sizes = np.array([g.size for g in groups])
    n0 = (30 - np.sum(sizes**2) / 30) / (sizes.size - 1)
    assert parts.between == pytest.approx(parts.within * (f - 1) / n0)
    assert parts.within == pytest.approx(sum(np.sum((g - g.mean()) ** 2) for g in groups) / (30 - sizes.size))


# ------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize("n", [3, 8, 9])
def test_under_ten_agents_there_is_no_interval(n):
    outcomes, scores, residuals = graded(n)
    answer = interval(calibrate(outcomes, scores, residuals), outcomes[0])
    assert answer == NoInterval(f"residuals of {n} agents; an interval needs at least 10", answer.point)
    assert answer.point == pytest.approx(point_of(outcomes, scores, outcomes[0]))


def test_a_new_scaffold_beside_four_has_the_interval_of_the_others_and_that_is_said():
    outcomes, scores, residuals = graded(25)
    names = ["a", "b", "c", "d"] * 6 + ["e"]
    held_out = np.where(np.arange(25) < 24, residuals, NAN)
    calibrator = calibrate(outcomes, scores, residuals, scaffolds=names, scaffold_residuals=held_out)
    new, old = (interval(calibrator, outcomes[0], name) for name in ("new", "e"))
    assert (new.lower, new.upper, new.source, new.s_cal) == (old.lower, old.upper, "jackknife+", old.s_cal)
    assert new.note == (
        f"{old.note}; new scaffold: not calibrated for it (residuals from 4 scaffolds, at least 5 are needed)"
    )
    alone = calibrate(outcomes, scores, residuals, scaffolds=names)
    assert "from 0 scaffolds" in interval(alone, outcomes[0], "new").note


@pytest.mark.parametrize("n", [12, 25])
def test_wider_than_the_scores_shows_no_prediction(n):
    outcomes, scores, _ = graded(n)
    limit = 1.96 * np.std(scores, ddof=1)
    answer = interval(calibrate(outcomes, scores, np.full(n, 1.2 * limit)), outcomes[0])
    assert isinstance(answer, NoInterval)
    assert answer.point is None
    assert f"standard deviations of the training scores, {limit:.4f}" in answer.reason
    at_limit = np.full(19, limit * (1 - 1e-9))
    shown = interval(calibrate(outcomes, scores, np.zeros(n), post_selection=at_limit), outcomes[0])
    assert shown.half_width == pytest.approx(limit)


def test_equal_scores_have_an_interval_of_no_width():
    outcomes = in_fifths(3, 22, 5)[0]
    answer = interval(calibrate(outcomes, np.full(22, 0.5), np.zeros(22)), outcomes[0])
    assert (answer.lower, answer.upper) == pytest.approx((0.5, 0.5))


def test_too_many_missing_cells_show_no_prediction():
    outcomes, scores, residuals = graded(25)
    row = outcomes[0].copy()
    row[0] = NAN
    assert isinstance(interval(calibrate(outcomes, scores, residuals), row), ScoreInterval)
    row[1] = NAN
    answer = interval(calibrate(outcomes, scores, residuals), row)
    assert answer == NoInterval("2 of 12 tasks of the subset are missing; at most 1 may be", None)


def test_ends_are_clipped_and_the_half_width_is_not():
    outcomes, scores, _ = graded(25)
    answer = interval(calibrate(outcomes, scores, np.zeros(25), in_time=np.full(19, 0.3)), np.zeros(12))
    assert (answer.lower, answer.half_width) == (0.0, pytest.approx(0.3))
    assert answer.upper == pytest.approx(answer.point + 0.3)


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"residuals": np.zeros(9)}, "shape", r"residuals \(9,\) for 10 agents"),
        ({"residuals": np.full(10, math.inf)}, "infinite", "agent 0 has an infinite residual"),
        ({"scaffold_residuals": np.zeros(10)}, "no_scaffolds", "no scaffolds"),
        ({"scaffolds": ["a"]}, "shape", "1 scaffolds for 10 agents"),
        ({"post_selection": [math.inf]}, "infinite", "post_selection"),
        ({"in_time": np.zeros((2, 2))}, "shape", r"in_time \(2, 2\)"),
    ],
)
def test_what_cannot_be_calibrated_is_refused_by_name(change, code, message):
    outcomes, scores, residuals = graded(10)
    with refused(SelectionError, code, match=message):
        calibrate(outcomes, scores, **{"residuals": residuals} | change)


@pytest.mark.parametrize(
    ("outcomes", "scores", "refusal", "message"),
    [
        (np.zeros((10, 3)), np.full(10, NAN), "score_missing", "agent 0 has no full score"),
        (np.zeros((10, 3)), np.zeros(9), "shape", r"scores \(9,\)"),
        (np.zeros((1, 3)), [0.5], "too_few_agents", "there are 1"),
    ],
)
def test_whom_nothing_can_be_fitted_to_is_refused_by_name(outcomes, scores, refusal, message):
    with refused(SelectionError, refusal, match=message):
        unnamed(outcomes, scores)


def test_rows_and_scaffolds_of_one_length():
    outcomes, scores, residuals = graded(10)
    with refused(SelectionError, "shape", match="1 scaffolds for 10 agents"):
        intervals(calibrate(outcomes, scores, residuals), outcomes, ["a"])
    with refused(SelectionError, "shape", match="3 tasks for a calibration on 12"):
        interval(calibrate(outcomes, scores, residuals), np.zeros(3))
