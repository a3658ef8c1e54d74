"""Harness quality: by hand, by definition, against scipy and scikit-learn, and on the chapter's tensor."""

import csv
import gzip
import io
import math
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from analytics import flat_file
from analytics import harness as h
from analytics.errors import CoreError
from analytics.harness import ScoreTensor
from analytics.harness.gstudy import TERMS, components_of_counts, reliability_bootstrap, reliability_interval
from analytics.harness.quality import discriminability_draws
from analytics.resampling import generator, resampled_counts
from tests.refusals import refused

REPEATABLE = settings(derandomize=True, deadline=None, max_examples=30)
SIZES = st.tuples(st.integers(0, 10_000), st.integers(2, 5), st.integers(2, 6), st.integers(2, 5))

# Shrout & Fleiss, Psychological Bulletin 86 (1979), Table 2: six targets rated by four judges.
SHROUT_FLEISS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]


def names(prefix, n):
    return tuple(f"{prefix}{i:03}" for i in range(n))


def tensor(scores, valid=None):
    scores = np.asarray(scores, dtype=float)
    k, n, n_runs = scores.shape
    valid = ~np.isnan(scores) if valid is None else valid
    return ScoreTensor(names("m", k), names("t", n), names("r", n_runs), scores, valid)


def drawn(seed, k, n, n_runs):
    """Scores with all effects of Eq. 28.3."""
    rng = np.random.default_rng(seed)
    shapes = [(k, 1, 1), (1, n, 1), (1, 1, n_runs), (k, n, 1), (k, 1, n_runs), (1, n, n_runs), (k, n, n_runs)]
    return tensor(
        sum(rng.normal(0, sd, shape) for sd, shape in zip(rng.uniform(0.1, 1, 7), shapes, strict=True))
    )


def slow_components(x):
    """The seven components from effects computed cell by cell (inclusion-exclusion), untruncated."""
    k, n, n_runs = x.shape
    levels = np.array(x.shape)
    mean_squares = {}
    for axes in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)):
        effect = np.zeros_like(x)
        for bits in range(2 ** len(axes)):
            kept = [axis for i, axis in enumerate(axes) if bits >> i & 1]
            gone = tuple(axis for axis in range(3) if axis not in kept)
            effect += (-1) ** (len(axes) - len(kept)) * x.mean(axis=gone, keepdims=True)
        mean_squares[axes] = np.sum(effect**2) / np.prod(levels[list(axes)] - 1)
    e = mean_squares[0, 1, 2]
    mt, mr, tr = (mean_squares[pair] for pair in ((0, 1), (0, 2), (1, 2)))
    m, t, r = (mean_squares[(axis,)] for axis in range(3))
    return [
        (m - mt - mr + e) / (n * n_runs),
        (t - mt - tr + e) / (k * n_runs),
        (r - mr - tr + e) / (k * n),
        (mt - e) / n_runs,
        (mr - e) / n,
        (tr - e) / k,
        e,
    ]


@pytest.fixture(scope="module")
def chapter(real_data):
    """The chapter's tensor; its separate validity mask is for coverage only."""
    with gzip.open(real_data / "reference" / "harness28.csv.gz", "rt", newline="") as lines:
        rows = list(csv.DictReader(lines))
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    model, task, run, score = (columns[name] for name in ("model", "task", "run", "score"))
    valid = np.array(columns["valid_mask"]) == "1"
    every = h.tensor_of_columns(model, task, run, np.array(score, dtype=float))
    return every, h.tensor_of_columns(model, task, run, np.array(score, dtype=float), valid)


# --------------------------------------------------------------------------------------- the chapter's tensor


def test_components_of_the_chapter(chapter):
    result = h.variance_components(chapter[0])
    expected = [0.034711, 0.030599, 0.000153, 0.020883, 0.001274, 0.004352, 0.008278]
    assert list(result.variances) == list(TERMS)
    assert list(result.variances.values()) == pytest.approx(expected, abs=1e-6)
    assert (result.method, result.boundary) == ("anova", ())


def test_quality_of_the_chapter(chapter):
    every, marked = chapter
    components = h.variance_components(every)
    assert h.reliability(components, 50) == pytest.approx(0.954377, abs=1e-6)
    assert h.reliability(components, 50, 5) == pytest.approx(0.991, abs=5e-4)
    assert h.discriminability(every) == pytest.approx(0.938831, abs=1e-6)
    assert h.coverage(marked) == pytest.approx(0.9832, abs=1e-12)
    assert h.coverage(every) == 1.0


def test_smallest_detectable_differences_of_the_chapter(chapter):
    result = h.mdes(h.variance_components(chapter[0]), 5, 50, 5)
    assert result.published == pytest.approx(0.046710, abs=1e-6)
    assert result.domain == pytest.approx(0.1052, abs=5e-5)
    assert 2.80 * result.se_finite == pytest.approx(0.0672, abs=5e-5)
    assert result.df == 16
    factor = stats.t.ppf(0.975, 16) + stats.t.ppf(0.8, 16)
    assert result.finite == pytest.approx(factor * result.se_finite, abs=1e-12)


def test_bootstrap_and_stability_of_the_chapter(chapter):
    # Monte Carlo error: of a mean, 4 standard errors over the draws; of a percentile, .004 at 2,000 draws.
    result = reliability_bootstrap(chapter[0], seed=1)
    assert (result.lower, result.upper) == pytest.approx((0.929, 0.962), abs=0.004)
    stability = h.rank_stability(chapter[0], seed=1)
    assert stability.tau == pytest.approx(0.9944, abs=4 * math.sqrt(0.0056 * 0.2 / 1000))
    assert stability.top_3_change == 0.0
    halves = h.split_half(chapter[0], seed=1)
    assert halves.tau == pytest.approx(0.962, abs=4 * halves.sd / 10)
    assert halves.runs == (2, 3)


def test_repeating_runs_does_not_shrink_what_differs_between_tasks(chapter):
    components = h.variance_components(chapter[0])
    once, often = (h.mdes(components, 5, 50, n_runs) for n_runs in (5, 5000))
    floor = 2.80 * math.sqrt(2 * components.variances["model:task"] / 50)
    assert often.domain == pytest.approx(floor, rel=1e-3)
    assert often.finite < 0.05 * once.finite
    assert often.published < 0.05 * once.published


# ------------------------------------------------------------------------------------------------ the G-study


def test_a_two_by_two_by_two_tensor_by_hand():
    # Effects ±1 of model (m), ±½ of model:task: MS_m = 8, MS_mt = 2, all others 0.
    m, t = np.array([1.0, -1.0])[:, None, None], np.array([1.0, -1.0])[None, :, None]
    result = h.variance_components(tensor(m + 0.5 * m * t + np.zeros((2, 2, 2))))
    assert result.variances["model"] == pytest.approx((8 - 2) / 4)
    assert result.variances["model:task"] == pytest.approx(1.0)
    assert result.boundary == ("task",)
    assert sum(result.variances.values()) == pytest.approx(2.5)


def test_what_does_not_vary_has_no_component_and_is_not_named_as_truncated():
    """Scores that are the sum of a model's and a task's part: what rounding leaves of the rest is 0."""
    rng = np.random.default_rng(3)
    scores = np.add.outer(rng.random(5), rng.random(45))[:, :, None] * np.ones(3)
    result = h.variance_components(tensor(scores))
    assert result.boundary == ()
    assert [result.variances[term] for term in TERMS[2:]] == [0.0] * 5


@REPEATABLE
@given(SIZES)
def test_components_equal_to_effects_cell_by_cell(sizes):
    x = drawn(*sizes)
    result = components_of_counts(x, np.ones((1, sizes[2])))[0]
    assert result == pytest.approx(slow_components(x.scores), abs=1e-11)
    kept = h.variance_components(x)
    assert list(kept.variances.values()) == pytest.approx(np.maximum(result, 0), abs=1e-15)
    assert kept.boundary == tuple(term for term, value in zip(TERMS, result, strict=True) if value < 0)


@REPEATABLE
@given(SIZES)
def test_resampled_tasks_are_tasks_met_again(sizes):
    x = drawn(*sizes)
    n = sizes[2]
    counts = resampled_counts(sizes[0], "any", n, 4)
    result = components_of_counts(x, counts)
    d = h.quality.discriminability_draws(x, counts)
    for row, components, one_d in zip(counts, result, d, strict=True):
        again = x.scores[:, np.repeat(np.arange(n), row), :]
        assert components == pytest.approx(slow_components(again), abs=1e-10)
        assert one_d == pytest.approx(h.discriminability(tensor(again)), abs=1e-10)


@REPEATABLE
@given(SIZES)
def test_reliability_is_agreement_of_run_means_where_nothing_is_truncated(sizes):
    x = drawn(*sizes)
    components = h.variance_components(x)
    if not components.boundary:
        expected, _ = h.agreement(x.scores.mean(axis=1))
        assert h.reliability(components, sizes[2]) == pytest.approx(expected, abs=1e-10)


def test_more_runs_by_the_spearman_brown_formula(chapter):
    components = h.variance_components(chapter[0])
    r = h.reliability(components, 50)
    for n_runs in (2, 5, 20):
        assert h.reliability(components, 50, n_runs) == pytest.approx(n_runs * r / (1 + (n_runs - 1) * r))


def test_anova_equals_reml_where_both_apply(chapter):
    from analytics import reml

    x = chapter[0].scores
    places = np.nonzero(np.ones(x.shape))
    columns = dict(zip(("model", "task", "run"), (place.tolist() for place in places), strict=True))
    fitted = reml.fit(columns, x[places], random=" + ".join(TERMS[:-1]))
    result = h.variance_components(chapter[0]).variances
    for term in TERMS[:-1]:
        assert fitted.components[term] == pytest.approx(result[term], rel=1e-5)
    assert fitted.residual == pytest.approx(result["residual"], rel=1e-5)


def test_an_incomplete_tensor_goes_to_reml(chapter):
    result = h.variance_components(chapter[1])
    assert result.method == "reml"
    complete = h.variance_components(chapter[0]).variances
    # 1.7% of the cells are gone: the large components hardly move.
    for term in ("model", "task", "model:task", "residual"):
        assert result.variances[term] == pytest.approx(complete[term], rel=0.15)
    with pytest.raises(CoreError, match="21 of 1250 cells have no score"):
        reliability_interval(chapter[1])
    with pytest.raises(CoreError, match="no bootstrap of R"):
        reliability_bootstrap(chapter[1], seed=0)


def test_the_bootstrap_over_tasks_says_that_it_is_too_low():
    """R of these models over tasks: (s²_m + σ_mt²/N)/(s²_m + σ_mt²/N + σ_e²/N). Most intervals lie below."""
    rng, n_below = np.random.default_rng(8), 0
    models = rng.normal(0, 0.1, (10, 1, 1))
    signal = models.var(ddof=1) + 0.02 / 100
    for seed in range(60):
        scores = models + rng.normal(0, 0.02**0.5, (10, 100, 1)) + rng.normal(0, 0.15**0.5, (10, 100, 5))
        interval = reliability_bootstrap(tensor(scores), seed, 200)
        n_below += interval.upper < signal / (signal + 0.15 / 100)
    assert n_below > 30
    assert "too low where noise is large" in interval.method


# --------------------------------------------------------------------------------------------------- ICC(A,1)


def mcgraw_wong(x):
    """ICC(A,1) and limits, written from McGraw & Wong 1996 Table 7 with their n rows and k columns."""
    n, k = x.shape
    grand = x.mean()
    msr = k * sum((row.mean() - grand) ** 2 for row in x) / (n - 1)
    msc = n * sum((column.mean() - grand) ** 2 for column in x.T) / (k - 1)
    total = ((x - grand) ** 2).sum()
    mse = (total - msr * (n - 1) - msc * (k - 1)) / ((n - 1) * (k - 1))
    rho = (msr - mse) / (msr + (k - 1) * mse + k / n * (msc - mse))
    a = k * rho / (n * (1 - rho))
    b = 1 + k * rho * (n - 1) / (n * (1 - rho))
    v = (a * msc + b * mse) ** 2 / ((a * msc) ** 2 / (k - 1) + (b * mse) ** 2 / ((n - 1) * (k - 1)))
    f_low, f_high = stats.f.ppf(0.975, n - 1, v), stats.f.ppf(0.975, v, n - 1)
    lower = n * (msr - f_low * mse) / (f_low * (k * msc + (k * n - k - n) * mse) + n * msr)
    upper = n * (f_high * msr - mse) / (k * msc + (k * n - k - n) * mse + n * f_high * msr)
    return rho, lower, upper


def test_agreement_published_by_shrout_and_fleiss():
    icc, result = h.agreement(SHROUT_FLEISS)
    assert icc == pytest.approx(0.290, abs=5e-4)
    assert (result.lower, result.upper) == pytest.approx((0.019, 0.761), abs=5e-4)


@REPEATABLE
@given(st.integers(0, 10_000), st.integers(2, 9), st.integers(2, 7))
def test_agreement_equal_to_mcgraw_and_wong(seed, n, k):
    rng = np.random.default_rng(seed)
    x = 2 * rng.normal(size=(n, 1)) + rng.normal(size=(1, k)) + rng.normal(size=(n, k))
    expected = mcgraw_wong(x)
    icc, result = h.agreement(x)
    assert icc == pytest.approx(expected[0], abs=1e-10)
    if icc > 0:
        assert (result.lower, result.upper) == pytest.approx(expected[1:], abs=1e-8)
        assert result.lower <= icc <= result.upper


def test_agreement_tends_to_the_one_way_interval_where_runs_do_not_differ():
    # With MSC = MSE, ICC(A,1) is the one-way ICC and v tends to its K(L − 1) degrees of freedom.
    rng = np.random.default_rng(3)
    k, n_runs = 200, 8
    x = rng.normal(size=(k, 1)) + rng.normal(size=(k, n_runs))
    f = stats.f_oneway(*x).statistic
    limits = f / stats.f.ppf(0.975, k - 1, k * (n_runs - 1)), f * stats.f.ppf(0.975, k * (n_runs - 1), k - 1)
    one_way = [(edge - 1) / (edge + n_runs - 1) for edge in limits]
    _, result = h.agreement(x)
    assert (result.lower, result.upper) == pytest.approx(one_way, abs=0.005)


def test_the_interval_of_r_holds_r(chapter):
    result = reliability_interval(chapter[0])
    expected = mcgraw_wong(chapter[0].scores.mean(axis=1))
    assert (result.lower, result.upper) == pytest.approx(expected[1:], abs=1e-10)
    assert result.lower < 0.954377 < result.upper


# ---------------------------------------------------------------------------------------------------- quality


def test_the_numerical_example_of_discriminability():
    # §28.5.3: means .42, .58, .71 and SDs .18, .20, .16 give d = .84, 1.70, .72 and D = 1.09.
    z = np.array([-1.0, 1.0]) / math.sqrt(2)
    scores = [
        [[mean + sd * z[0]], [mean + sd * z[1]]] for mean, sd in ((0.42, 0.18), (0.58, 0.20), (0.71, 0.16))
    ]
    d = h.pairwise_d(tensor(scores))
    assert (d[0, 1], d[0, 2], d[1, 2]) == pytest.approx((0.84, 1.70, 0.72), abs=0.005)
    assert h.discriminability(tensor(scores)) == pytest.approx(1.09, abs=0.005)


@REPEATABLE
@given(SIZES)
def test_d_by_its_definition(sizes):
    x = drawn(*sizes)
    flat = x.scores.reshape(sizes[1], -1)
    d = h.pairwise_d(x)
    for a in range(sizes[1]):
        for b in range(a):
            pooled = math.sqrt((flat[a].var(ddof=1) + flat[b].var(ddof=1)) / 2)
            assert (
                d[a, b] == d[b, a] == pytest.approx(abs(flat[a].mean() - flat[b].mean()) / pooled, abs=1e-10)
            )
    assert h.discriminability(x) == pytest.approx(d[np.triu_indices(sizes[1], 1)].mean(), abs=1e-12)


def test_without_spread_there_is_no_d_in_any_draw():
    """Two models whose scores never differ: what rounding leaves of their variance is none."""
    scores = np.stack([np.full((45, 1), value) for value in (0.1, 0.7, 0.35)])
    scores[2] += np.linspace(0, 0.3, 45)[:, None]
    counts = resampled_counts(1, "task bootstrap", 45, 200)
    assert np.isnan(discriminability_draws(tensor(scores), counts)).all()
    scores[0] += 1e-4 * (np.arange(45)[:, None] % 2)
    assert np.isfinite(discriminability_draws(tensor(scores), counts)).all()


def test_missing_scores_are_left_out_of_d_and_of_coverage():
    scores = drawn(1, 3, 4, 3).scores.copy()
    scores[0, 0, 0] = scores[2, 1, 2] = np.nan
    x = tensor(scores)
    assert h.coverage(x) == pytest.approx(34 / 36)
    a, b = (scores[i][~np.isnan(scores[i])] for i in (0, 2))
    pooled = math.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2)
    assert h.pairwise_d(x)[0, 2] == pytest.approx(abs(a.mean() - b.mean()) / pooled, abs=1e-12)


def test_fitness_by_hand_and_its_ceiling():
    assert h.fitness(0.85, 1.12, 0.98) == pytest.approx(0.40 * 0.85 + 0.35 * 1.12 / 3 + 0.25 * 0.98)
    assert h.fitness(1.0, 7.0, 1.0) == pytest.approx(1.0)
    with refused(CoreError, "harness"):
        h.fitness(1.1, 1.0, 1.0)


def test_cost_by_hand():
    seconds = {"environment": [10, 20, math.nan], "execution": [60, 60, 90], "scoring": [15, 15, 15]}
    result = h.cost(seconds, n_evaluations=1000, usd_per_hour=3.6)
    assert result.mean_seconds == {"environment": 15, "execution": 70, "scoring": 15}
    assert result.usd == pytest.approx({"environment": 15.0, "execution": 70.0, "scoring": 15.0})
    assert result.total_usd == pytest.approx(100.0)
    assert result.shares == pytest.approx({"environment": 0.15, "execution": 0.70, "scoring": 0.15})
    assert result.n_measured["environment"] == 2


def test_scorer_auc_equal_to_scikit_learn():
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(2)
    task = np.repeat(["a", "b", "c"], 20)
    score = np.round(rng.uniform(size=60), 1)
    right = rng.uniform(size=60) < score
    right[40:] = True
    result = h.scorer_auc(task.tolist(), score, right)
    expected = [roc_auc_score(right[at], score[at]) for at in (slice(0, 20), slice(20, 40))]
    assert list(result.by_task.values()) == pytest.approx(expected, abs=1e-12)
    assert result.auc == pytest.approx(np.mean(expected), abs=1e-12)
    assert result.left_out == ("c",)
    assert h.scorer_auc(["a"] * 3, [0.5, 0.5, 0.1], [1, 0, 0]).auc == pytest.approx(0.75)


# -------------------------------------------------------------------------------------------------- stability


def test_tau_of_resampled_tasks_equal_to_scipy():
    x = drawn(5, 5, 6, 2)
    counts = resampled_counts(9, "task bootstrap", 6, 50)
    full = x.scores.mean(axis=(1, 2))
    taus, changes = [], []
    for row in counts:
        again = x.scores[:, np.repeat(np.arange(6), row)].mean(axis=(1, 2))
        taus.append(stats.kendalltau(full, again).statistic)
        changes.append(set(np.argsort(-full)[:3]) != set(np.argsort(-again)[:3]))
    result = h.rank_stability(x, seed=9, n_draws=50)
    assert result.tau == pytest.approx(np.mean(taus), abs=1e-12)
    assert (result.interval.lower, result.interval.upper) == pytest.approx(np.percentile(taus, [2.5, 97.5]))
    assert result.top_3_change == pytest.approx(np.mean(changes))


def test_split_half_tends_to_the_mean_over_all_splits():
    from itertools import combinations

    x = drawn(8, 6, 5, 4)
    means = x.scores.mean(axis=1)
    taus = [
        stats.kendalltau(
            means[:, list(half)].mean(axis=1), np.delete(means, half, axis=1).mean(axis=1)
        ).statistic
        for half in combinations(range(4), 2)
    ]
    result = h.split_half(x, seed=2, n_splits=2000)
    assert result.tau == pytest.approx(np.mean(taus), abs=4 * result.sd / math.sqrt(2000))


def test_three_models_cannot_change_their_best_three():
    assert h.rank_stability(drawn(5, 3, 9, 2), seed=0, n_draws=20).top_3_change is None


def test_page_by_hand_and_equal_to_scipy():
    # Two tasks, three models in the order predicted on both: L = 2·(1 + 4 + 9) = 28.
    x = tensor([[[0.1], [0.2]], [[0.5], [0.3]], [[0.9], [0.4]]])
    result = h.page_test(x, ["m000", "m001", "m002"])
    assert (result.statistic, result.n_tasks, result.n_models) == (28.0, 2, 3)
    assert result.p_value == pytest.approx(1 / 36)
    big = drawn(4, 4, 6, 3)
    order = ["m002", "m000", "m003", "m001"]
    expected = stats.page_trend_test(big.scores.mean(axis=2)[[2, 0, 3, 1]].T)
    assert h.page_test(big, order).p_value == pytest.approx(expected.pvalue)


# ------------------------------------------------------------------------------------------------- comparison


def test_a_configuration_against_itself_does_not_differ():
    x = drawn(1, 4, 12, 3)
    for change in h.compare(x, x, seed=0, n_draws=100):
        assert (change.difference, change.interval[:2], change.p_value) == (0.0, (0.0, 0.0), 1.0)


def test_the_paired_bootstrap_by_its_definition():
    first, second = drawn(1, 4, 10, 3), drawn(2, 4, 10, 3)
    counts = resampled_counts(7, "paired bootstrap", 10, 60)

    def r_of(x, row):
        c = np.maximum(slow_components(x.scores[:, np.repeat(np.arange(10), row)]), 0)
        signal = c[0] + c[3] / 10
        return signal / (signal + c[2] + c[4] + (c[5] + c[6]) / 10)

    draws = np.array([r_of(second, row) - r_of(first, row) for row in counts])
    change = h.compare(first, second, seed=7, n_draws=60)[0]
    assert change.figure == "R"
    assert change.difference == pytest.approx(r_of(second, [1] * 10) - r_of(first, [1] * 10), abs=1e-12)
    assert change.interval[:2] == pytest.approx(np.percentile(draws, [2.5, 97.5]), abs=1e-12)
    assert change.p_value == pytest.approx(
        min(1, 2 * min(1 + (draws <= 0).sum(), 1 + (draws >= 0).sum()) / 61)
    )
    assert "runs and models not resampled" in change.interval.method


def test_several_configurations_are_adjusted_together():
    base = drawn(1, 4, 15, 3)
    others = {"zeta": drawn(2, 4, 15, 3), "alpha": drawn(3, 4, 15, 3)}
    result = h.compare_several(base, others, seed=0, n_draws=200)
    assert [change.configuration for change in result] == ["alpha"] * 3 + ["zeta"] * 3
    expected = stats.false_discovery_control([change.p_value for change in result])
    assert [change.p_adjusted for change in result] == pytest.approx(expected)


def test_less_noise_between_runs_is_found():
    rng = np.random.default_rng(0)
    truth = rng.normal(0, 0.1, (5, 1, 1)) + rng.normal(0, 0.2, (1, 40, 1)) + np.zeros((5, 40, 5))
    noisy, calm = (
        tensor(truth + rng.normal(0, sd, (5, 1, 5)) + rng.normal(0, 0.05, (5, 40, 5))) for sd in (0.1, 0.01)
    )
    r, _, c = h.compare(noisy, calm, seed=1, n_draws=400)
    assert r.interval.lower > 0
    assert r.p_value < 0.01
    assert (c.difference, c.p_value) == (0.0, 1.0)


def test_configurations_with_other_tasks_or_missing_cells():
    x = drawn(1, 3, 5, 2)
    with pytest.raises(CoreError, match="the same tasks in both; 't005' is only in one"):
        h.compare(x, drawn(1, 3, 6, 2), seed=0)
    scores = drawn(2, 3, 5, 2).scores.copy()
    scores[0, 0, 0] = np.nan
    r, d, c = h.compare(x, tensor(scores), seed=0, n_draws=50)
    assert r.difference is None
    assert "1 of 30 cells have no score" in r.note
    assert d.difference is not None
    assert c.difference == pytest.approx(-1 / 30)


# ----------------------------------------------------------------------------------------------------- report


def test_the_report_has_every_figure_and_the_mandatory_metadata(chapter):
    result = h.report(chapter[0], seed=0, n_draws=200, metadata={"commit hash": "0f1e", "operator": "me"})
    assert result["metadata"]["task count"] == "50"
    assert result["metadata"]["container runtime"] == "not stated"
    assert set(h.MANDATORY_METADATA) < set(result["metadata"])
    assert set(result["notes"]) == {"cost", "scorer", "page"}
    assert result["fitness"] == pytest.approx(
        h.fitness(result["reliability"], result["discriminability"], 1.0)
    )
    text = h.report_text(result)
    for line in ("0.9544", "commit hash: 0f1e", "API settings: not stated", "5 models x 50 tasks x 5 runs"):
        assert line in text
    assert "0.0467" not in text


def test_the_report_shows_what_it_is_given():
    x = drawn(1, 4, 6, 3)
    seconds = {"environment": [10], "execution": [80], "scoring": [10]}
    found = h.report(
        x,
        seed=0,
        n_draws=20,
        cost=h.cost(seconds, n_evaluations=72, usd_per_hour=5.0),
        scorer=h.scorer_auc(["a", "a"], [0.2, 0.9], [False, True]),
        page=h.page_test(x, x.models),
    )
    assert found["notes"] == {}
    text = h.report_text(found)
    assert "10.00 USD (environment 10.0%, execution 80.0%, scoring 10.0%)" in text
    assert "1.0000 over 1 tasks" in text
    assert f"L = {found['page'].statistic:g}" in text


@pytest.mark.parametrize(
    ("shape", "measured", "message"),
    [
        ((1, 4, 3), set(), "the G-study is not measured: one model (at least 2 are needed)"),
        ((3, 1, 3), {"discriminability", "split_half"}, "the G-study is not measured: one task"),
        ((3, 4, 1), {"discriminability", "stability"}, "the G-study is not measured: one run"),
    ],
)
def test_one_of_anything_is_refused_by_name(shape, measured, message):
    result = h.report(tensor(np.random.default_rng(1).uniform(size=shape)), seed=0, n_draws=20)
    assert result["notes"]["components"].startswith(message)
    assert result["notes"]["fitness"].startswith("not measured: it follows from ")
    for figure in ("discriminability", "stability", "split_half"):
        assert (result[figure] is not None) == (figure in measured)
    assert "nan" not in h.report_text(result).lower()


def test_equal_scores_everywhere_are_refused_by_name():
    result = h.report(tensor(np.full((3, 4, 2), 0.5)), seed=0, n_draws=20)
    assert "all components are 0" in result["notes"]["reliability"]
    assert "has any spread" in result["notes"]["discriminability"]
    assert "it cannot be said in 20 of 20 draws" in result["notes"]["stability"]
    assert (
        result["reliability"]
        is result["discriminability"]
        is result["stability"]
        is result["split_half"]
        is None
    )


def test_a_report_on_a_real_board_with_missing_trials(real_data):
    with (real_data / "terminal_bench_core_011.csv.gz").open("rb") as stream:
        x = h.tensor_of_file(flat_file.read(stream, as_of=datetime(2026, 1, 1, tzinfo=UTC)))
    assert x.scores.shape == (13, 80, 5)
    result = h.report(x, seed=0, n_draws=50)
    assert result["components"].method == "reml"
    assert 0.9 < result["reliability"] <= 1.0
    assert result["coverage"] < 1.0
    assert "cells have no score" in result["notes"]["reliability_interval"]


# ------------------------------------------------------------------------------------------------- the tensor


def test_rows_become_a_tensor_in_name_order():
    x = h.tensor_of_columns(
        ["b", "a", "a", "b"], ["t"] * 4, ["2", "1", "2", "1"], [4.0, 1.0, math.nan, 3.0], [1, 1, 0, 1]
    )
    assert (x.models, x.tasks, x.runs) == (("a", "b"), ("t",), ("1", "2"))
    assert x.scores[:, 0] == pytest.approx(np.array([[1, math.nan], [3, 4]]), nan_ok=True)
    assert x.valid[:, 0].tolist() == [[True, False], [True, True]]
    assert not x.complete


def test_runs_of_a_flat_file_are_settings_and_trials():
    head = "benchmark,agent,scaffold,model,submitted_at,task,trial,outcome,run"
    lines = [
        f"b,{a},s,m,2025-01-01,{t},{trial},1,{run}"
        for a in "xy"
        for t in "pq"
        for run in "uv"
        for trial in (1, 2)
    ]
    content = io.BytesIO("\n".join([head, *lines]).encode())
    x = h.tensor_of_file(flat_file.read(content, as_of=datetime(2026, 1, 1, tzinfo=UTC)))
    assert (x.models, x.tasks) == (("x", "y"), ("p", "q"))
    assert len(x.runs) == 4
    assert x.complete


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: h.tensor_of_columns(["a"] * 2, ["t"] * 2, ["r"] * 2, [1, 2]), "row 1: .* occur twice"),
        (lambda: h.tensor_of_columns(["a"], ["t"], ["r"], [1, 2]), "differ in length"),
        (lambda: h.tensor_of_columns([], [], [], []), "without models"),
        (lambda: h.tensor_of_columns(["a"], ["t"], ["r"], [math.inf]), "a valid score is a finite number"),
        (
            lambda: ScoreTensor(("b", "a"), ("t",), ("r",), np.ones((2, 1, 1)), np.ones((2, 1, 1), bool)),
            "ascending",
        ),
        (lambda: tensor(np.ones((2, 2, 2)), np.ones((2, 2, 1), bool)), "are not"),
        (lambda: h.agreement([[1.0, 2.0]]), "at least 2 × 2"),
        (lambda: h.agreement([[1.0, 2.0], [2.0, 3.0]]), "without residual"),
        (lambda: h.scorer_auc(["a"], [1.0], [True]), "none of 1 tasks"),
        (lambda: h.cost({"execution": [1]}, 1, 1.0), "seconds of environment, execution, scoring"),
        (lambda: h.page_test(drawn(0, 3, 4, 2), ["m000"]), "not each of"),
        (lambda: h.page_test(drawn(0, 2, 4, 2), ["m000", "m001"]), "2 models"),
        (lambda: h.split_half(drawn(0, 2, 4, 2), seed=0, n_splits=0), "0 splits"),
    ],
)
def test_what_cannot_be_said_is_refused(call, message):
    with pytest.raises(CoreError, match=message):
        call()


@pytest.mark.parametrize("first", [0, 7, 2**32 - 3])
@pytest.mark.parametrize("seed", [0, 1, 2**32, 2**70 + 5])
def test_each_draw_is_that_of_its_own_generator(seed, first):
    for what in ("a", "task bootstrap"):
        rows = [generator(seed, what, first + b).integers(9, size=9) for b in range(6)]
        counts = [np.bincount(row, minlength=9) for row in rows]
        np.testing.assert_array_equal(resampled_counts(seed, what, 9, 6, first=first), counts)


def test_draws_depend_on_the_seed_alone():
    first = resampled_counts(3, "task bootstrap", 20, 5)
    assert (resampled_counts(3, "task bootstrap", 20, 9)[:5] == first).all()
    assert (resampled_counts(3, "task bootstrap", 20, 2, first=3) == first[3:]).all()
    assert (resampled_counts(4, "task bootstrap", 20, 5) != first).any()
    assert (resampled_counts(3, "paired bootstrap", 20, 5) != first).any()
    assert (first.sum(axis=1) == 20).all()
    for seed, n_draws in ((-1, 5), (0, 0)):
        with refused(CoreError, "seed"):
            resampled_counts(seed, "any", 20, n_draws)
