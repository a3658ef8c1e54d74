"""Intervals of the grand mean and of fixed effects, and the parametric bootstrap."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from analytics.errors import CoreError
from analytics.reml import fit
from analytics.reml.variance_components import (
    component_intervals,
    refits,
    satterthwaite_df,
    t_quantiles,
    theta_interval,
)
from tests.refusals import refused


def two_way(seed, n_items, n_prompts, sd_prompt=1.0):
    """Item × prompt without replicates, and the three mean squares."""
    rng = np.random.default_rng(seed)
    table = (
        rng.standard_normal((n_items, 1))
        + sd_prompt * rng.standard_normal((1, n_prompts))
        + 0.5 * rng.standard_normal((n_items, n_prompts))
    )
    rows, columns, mean = table.mean(axis=1), table.mean(axis=0), table.mean()
    inside = table - rows[:, None] - columns + mean
    squares = (
        n_prompts * rows.var(ddof=1),
        n_items * columns.var(ddof=1),
        np.sum(inside**2) / ((n_items - 1) * (n_prompts - 1)),
    )
    return table, squares


def fit_two_way(table):
    item, prompt = np.indices(table.shape)
    return fit({"item": item.ravel(), "prompt": prompt.ravel()}, table.ravel(), random="item + prompt")


def three_way(seed, n_prompts=5, n_judges=3, random="item + prompt + item:judge + prompt:judge"):
    rng = np.random.default_rng(seed)
    shape = (8, n_prompts, n_judges, 2)
    item, prompt, judge, _ = (axis.ravel() for axis in np.indices(shape))
    y = (
        rng.standard_normal(8)[item]
        + rng.standard_normal(n_prompts)[prompt]
        + rng.standard_normal((8, n_judges))[item, judge]
        + rng.standard_normal((n_prompts, n_judges))[prompt, judge]
        + rng.standard_normal(item.size)
    )
    return fit({"item": item, "prompt": prompt, "judge": judge}, y, random=random, fixed="judge")


def effect(result, name):
    """Interval of a fixed effect: its contrast is a column of the identity."""
    contrast = np.eye(result.beta.size)[result.fixed_names.index(name)]
    return theta_interval(replace(result, contrast=contrast))


def theta_slopes(result):
    slopes = result.likelihood.covariance_slopes(result.parameters)
    return np.einsum("i,tij,j->t", result.contrast, slopes, result.contrast)


# ------------------------------------------------------------------------------------------------ by hand


def test_satterthwaite_by_the_strata():
    # Var θ̂ = (λ_item + λ_prompt − λ_e)/NV: a_s = 1, 1, −1 over NV.
    table, (item, prompt, inside) = two_way(1, 12, 6)
    interval = theta_interval(fit_two_way(table))
    variance = item + prompt - inside
    df = variance**2 / (item**2 / 11 + prompt**2 / 5 + inside**2 / 55)
    assert interval.method == "satterthwaite"
    assert interval.estimate == pytest.approx(table.mean(), abs=1e-14)
    assert interval.standard_error == pytest.approx(np.sqrt(variance / 72), rel=1e-10)
    assert interval.df == pytest.approx(df, rel=1e-8)
    half = stats.t.ppf(0.975, df) * interval.standard_error
    assert (interval.lower, interval.upper) == pytest.approx((table.mean() - half, table.mean() + half))


def test_a_boundary_component_is_pooled_into_its_stratum():
    # Prompt variance 0: λ_prompt = λ_e and Var θ̂ = λ_item/NV, whatever the pooled stratum: ν = N − 1.
    table, (item, prompt, inside) = two_way(4, 12, 6, sd_prompt=0.0)
    assert prompt < inside
    result = fit_two_way(table)
    assert result.boundary == ("prompt",)
    interval = theta_interval(result)
    assert interval.df == pytest.approx(11.0, rel=1e-9)
    assert interval.standard_error == pytest.approx(np.sqrt(item / 72), rel=1e-10)


def test_with_every_component_on_the_boundary_rows_are_a_plain_sample():
    y = [0.0, 2.0, 1.0, 3.0, 0.0, 2.0, 1.5, 2.5, 0.5, 1.5]
    interval = theta_interval(fit({"g": list("aabbccddee")}, y, random="g"))
    low, high = stats.ttest_1samp(y, 0.0).confidence_interval()
    assert interval.df == pytest.approx(9.0, rel=1e-9)
    assert (interval.lower, interval.upper) == pytest.approx((low, high), rel=1e-10)


# ---------------------------------------------------------------------------------------- foreign program


@pytest.mark.parametrize("level", [0.95, 0.8])
def test_one_way_is_the_t_interval_of_the_group_means(level):
    y = np.random.default_rng(3).standard_normal((7, 4)) + 2 * np.arange(7)[:, None]
    result = fit({"g": np.repeat(np.arange(7), 4)}, y.ravel(), random="g")
    interval = theta_interval(result, level)
    low, high = stats.ttest_1samp(y.mean(axis=1), 0.0).confidence_interval(level)
    assert (interval.lower, interval.upper) == pytest.approx((low, high), rel=1e-10)
    assert interval.df == pytest.approx(6.0, rel=1e-9)


def test_two_judges_on_the_same_items_are_a_paired_t_test():
    rng = np.random.default_rng(4)
    table = 3 * rng.standard_normal((9, 1)) + [0.0, 0.5] + rng.standard_normal((9, 2))
    item, judge = (axis.ravel() for axis in np.indices(table.shape))
    result = fit({"item": item, "judge": judge}, table.ravel(), random="item", fixed="judge")
    interval = effect(result, "judge[1]")
    paired = stats.ttest_rel(table[:, 1], table[:, 0])
    low, high = paired.confidence_interval()
    assert (interval.lower, interval.upper, interval.df) == pytest.approx((low, high, 8.0), rel=1e-9)
    assert interval.estimate / interval.standard_error == pytest.approx(paired.statistic, rel=1e-10)


# ------------------------------------------------------------------------------------ the rule of 4 levels


@pytest.mark.parametrize("n_prompts", [2, 3, 4])
def test_a_small_random_facet_makes_the_interval_conservative(n_prompts):
    result = fit_two_way(two_way(2, 20, n_prompts)[0])
    interval = theta_interval(result)
    assert (interval.method, interval.df) == ("conservative", n_prompts - 1)
    assert interval.small_facets == ("prompt",)
    half = stats.t.ppf(0.975, n_prompts - 1) * interval.standard_error
    assert interval.upper - interval.estimate == pytest.approx(half, rel=1e-12)
    assert theta_interval(result, method="satterthwaite").df > n_prompts - 1


def test_the_smallest_of_several_small_facets_counts():
    interval = theta_interval(fit_two_way(two_way(5, 3, 4)[0]))
    assert (interval.df, interval.small_facets) == (2.0, ("item", "prompt"))


def test_five_levels_are_not_small_and_fixed_factors_are_not_random():
    interval = theta_interval(three_way(1))
    assert (interval.method, interval.small_facets) == ("satterthwaite", ())


def test_levels_nested_in_a_large_facet_are_not_a_small_facet():
    result = three_way(1, n_prompts=2, random="item + item:prompt")
    assert result.facets == {frozenset({"item"}): 8}
    assert theta_interval(result).method == "satterthwaite"


def test_a_facet_met_only_with_a_fixed_factor_is_one_nevertheless():
    result = three_way(1, n_prompts=3, random="item + item:prompt + prompt:judge")
    assert list(result.facets.items()) == [(frozenset({"item"}), 8), (frozenset({"prompt"}), 3)]
    assert (theta_interval(result).method, theta_interval(result).df) == ("conservative", 2.0)


def test_a_fixed_effect_is_conservative_where_a_small_facet_adds_to_it():
    # judge[1]: item:judge and prompt:judge add, item and prompt cancel.
    crossed = effect(three_way(1, n_prompts=3), "judge[1]")
    assert (crossed.method, crossed.df) == ("conservative", 2.0)
    without = three_way(2, n_prompts=3, random="item + prompt + item:judge")
    assert without.boundary == ()
    shared = effect(without, "judge[1]")
    assert shared.method == "satterthwaite"
    assert shared.df == pytest.approx(7 * 2, rel=1e-9)
    assert effect(without, "(Intercept)").method == "conservative"


# ------------------------------------------------------------------------------------- unbalanced designs


def with_cells(result_of, seed):
    """The same rows by both methods: a column for the interaction makes the grid incomplete."""
    rng = np.random.default_rng(seed)
    item, prompt, _ = (axis.ravel() for axis in np.indices((10, 5, 3)))
    y = (
        rng.standard_normal(10)[item]
        + rng.standard_normal(5)[prompt]
        + rng.standard_normal((10, 5))[item, prompt]
        + rng.standard_normal(item.size)
    )
    columns = {"item": item, "prompt": prompt, "cell": 5 * item + prompt}
    return result_of(fit(columns, y, random="item + prompt + item:prompt")), result_of(
        fit(columns, y, random="item + prompt + cell")
    )


def test_unbalanced_satterthwaite_equals_that_of_the_strata():
    balanced, other = with_cells(theta_interval, 6)
    assert other.standard_error == pytest.approx(balanced.standard_error, rel=1e-5)
    assert other.df == pytest.approx(balanced.df, rel=1e-4)


def test_the_variance_is_its_slopes_times_the_components():
    # Cov(β̂) is homogeneous of degree 1 in φ: Var = g'φ, by Euler.
    rng = np.random.default_rng(8)
    item, prompt, judge, _ = (axis.ravel()[7:] for axis in np.indices((8, 5, 2, 2)))
    y = rng.standard_normal(8)[item] + rng.standard_normal(5)[prompt] + rng.standard_normal(item.size)
    result = fit(
        {"item": item, "prompt": prompt, "judge": judge},
        y,
        random="item + prompt + item:judge",
        fixed="judge",
    )
    variance = result.contrast @ result.beta_covariance @ result.contrast
    assert theta_slopes(result) @ result.parameters == pytest.approx(variance, rel=1e-6)
    assert result.contrast.tolist() == [1.0, 0.5]
    assert satterthwaite_df(result, theta_slopes(result)) > 2.0


def test_draws_row_by_row_have_the_distribution_of_drawn_mean_squares():
    balanced, other = with_cells(lambda result: refits(result, np.random.default_rng(1), 400), 6)
    for left, right in [
        *zip(balanced.parameters.T, other.parameters.T, strict=True),
        (balanced.theta, other.theta),
        (balanced.theta_variance, other.theta_variance),
    ]:
        assert stats.ks_2samp(left, right).pvalue > 0.001


# ---------------------------------------------------------------------------------------------- bootstrap


def one_way(n_groups=8):
    y = np.random.default_rng(3).standard_normal((n_groups, 4)) + 5 * np.arange(n_groups)[:, None]
    return fit({"g": np.repeat(np.arange(n_groups), 4)}, y.ravel(), random="g")


def test_bootstrap_t_of_a_one_way_layout_is_student_s_t():
    # Far from the boundary SE*² = MS*_between/n, so that t* is Student's with 7 degrees of freedom.
    result = one_way()
    draws = refits(result, np.random.default_rng(5), 40_000)
    low, high = t_quantiles(result, draws)
    # The standard error of a quantile is √(p(1−p)/B)/density: .02 here.
    assert high == pytest.approx(stats.t.ppf(0.975, 7), abs=0.06)
    assert low == pytest.approx(stats.t.ppf(0.025, 7), abs=0.06)
    interval = theta_interval(result, method="bootstrap-t", draws=draws)
    assert interval.lower == pytest.approx(interval.estimate - high * interval.standard_error)
    assert interval.upper == pytest.approx(interval.estimate - low * interval.standard_error)
    assert interval.df is None


def test_the_bootstrap_interval_of_a_residual_is_that_of_chi_square():
    result = one_way()
    draws = refits(result, np.random.default_rng(6), 40_000)
    interval = component_intervals(result, draws)[0]["Residual"]
    exact = result.residual * stats.chi2.ppf([0.025, 0.975], 24) / 24
    assert (interval.lower, interval.upper) == pytest.approx(tuple(exact), rel=0.02)
    assert interval.standard_error == pytest.approx(result.residual * np.sqrt(2 / 24), rel=0.02)


def test_draws_depend_on_the_generator_alone():
    result = one_way()
    one, same, other = (refits(result, np.random.default_rng(seed), 200) for seed in (1, 1, 2))
    assert (one.parameters == same.parameters).all()
    assert (one.theta == same.theta).all()
    assert (one.theta != other.theta).all()


def test_an_interval_on_the_boundary_says_that_it_is_too_short():
    result = fit({"g": list("aabbcc")}, [0, 2, 1, 3, 0, 2], random="g")
    intervals, notes = component_intervals(result, refits(result, np.random.default_rng(1), 500))
    assert intervals["g"].lower == 0.0
    assert "too short" in notes["g"]


# ------------------------------------------------------------------------------------------------ refusals


def test_a_percentile_interval_of_theta_is_refused():
    result = one_way()
    draws = refits(result, np.random.default_rng(1))
    with refused(CoreError, "percentile", match="Wald interval"):
        theta_interval(result, method="percentile", draws=draws)


def test_what_has_no_interval_is_refused_by_name():
    result = one_way()
    few = refits(result, np.random.default_rng(1), 1_999)
    with pytest.raises(CoreError, match="1999 draws; bootstrap-t needs at least 2000"):
        theta_interval(result, method="bootstrap-t", draws=few)
    with pytest.raises(CoreError, match="199 draws"):
        refits(result, np.random.default_rng(1), 199)
    with refused(CoreError, "draws_missing", match="needs draws"):
        theta_interval(result, method="bootstrap-t")
    with refused(CoreError, "method_unknown", match="'exact'"):
        theta_interval(result, method="exact")
    with refused(CoreError, "level", match="level of 95"):
        theta_interval(result, 95)
