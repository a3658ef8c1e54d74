"""Degrees of freedom of the grand mean and of fixed effects, and the parametric bootstrap."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from analytics.reml import degrees_of_freedom, fit, small_facets, theta_slopes
from analytics.reml.variance_components import satterthwaite_df
from analytics.tee import Declaration, total_error


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


def columns_of(table, *names):
    columns = dict(zip(names, (axis.ravel() for axis in np.indices(table.shape)), strict=True))
    return columns | {"score": table.ravel()}


def interval_of(table, *names, level=0.95):
    """Interval of a study with one outcome in each cell, or with the last axis as its replicates."""
    facets = [name for name in names if name in ("item", "prompt")]
    return total_error(columns_of(table, *names), Declaration("score", *facets)).interval(level)


def fit_two_way(table):
    columns = columns_of(table, "item", "prompt")
    return fit(columns, table.ravel(), random="item + prompt")


def rule_of(result):
    """Degrees of freedom, rule, and the facets that are small."""
    slopes = theta_slopes(result)
    small = [":".join(sorted(facet)) for facet in small_facets(result, slopes)]
    return *degrees_of_freedom(result, slopes), small


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
    """A fit whose contrast is a fixed effect: a column of the identity."""
    return replace(result, contrast=np.eye(result.beta.size)[result.fixed_names.index(name)])


# ------------------------------------------------------------------------------------------------ by hand


def test_satterthwaite_by_the_strata():
    # Var θ̂ = (λ_item + λ_prompt − λ_e)/NV: a_s = 1, 1, −1 over NV.
    table, (item, prompt, inside) = two_way(1, 12, 6)
    interval = interval_of(table, "item", "prompt")
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
    interval = interval_of(table, "item", "prompt")
    assert interval.df == pytest.approx(11.0, rel=1e-9)
    assert interval.standard_error == pytest.approx(np.sqrt(item / 72), rel=1e-10)


def test_with_every_component_on_the_boundary_rows_are_a_plain_sample():
    y = np.array([0.0, 2.0, 1.0, 3.0, 0.0, 2.0, 1.5, 2.5, 0.5, 1.5])
    interval = interval_of(y.reshape(5, 2), "item", "again")
    low, high = stats.ttest_1samp(y, 0.0).confidence_interval()
    assert interval.df == pytest.approx(9.0, rel=1e-9)
    assert (interval.lower, interval.upper) == pytest.approx((low, high), rel=1e-10)


# ---------------------------------------------------------------------------------------- foreign program


@pytest.mark.parametrize("level", [0.95, 0.8])
def test_one_way_is_the_t_interval_of_the_group_means(level):
    y = np.random.default_rng(3).standard_normal((7, 4)) + 2 * np.arange(7)[:, None]
    interval = interval_of(y, "item", "again", level=level)
    low, high = stats.ttest_1samp(y.mean(axis=1), 0.0).confidence_interval(level)
    assert (interval.lower, interval.upper) == pytest.approx((low, high), rel=1e-10)
    assert interval.df == pytest.approx(6.0, rel=1e-9)


def test_two_judges_on_the_same_items_are_a_paired_t_test():
    rng = np.random.default_rng(4)
    table = 3 * rng.standard_normal((9, 1)) + [0.0, 0.5] + rng.standard_normal((9, 2))
    item, judge = (axis.ravel() for axis in np.indices(table.shape))
    result = fit({"item": item, "judge": judge}, table.ravel(), random="item", fixed="judge")
    one = effect(result, "judge[1]")
    paired = stats.ttest_rel(table[:, 1], table[:, 0])
    assert rule_of(one) == (pytest.approx(8.0, rel=1e-9), "satterthwaite", [])
    error = np.sqrt(one.contrast @ one.beta_covariance @ one.contrast)
    assert one.contrast @ one.beta / error == pytest.approx(paired.statistic, rel=1e-10)


# ------------------------------------------------------------------------------------ the rule of 4 levels


@pytest.mark.parametrize("n_prompts", [2, 3, 4])
def test_a_small_random_facet_makes_the_interval_conservative(n_prompts):
    table, _ = two_way(2, 20, n_prompts)
    interval, result = interval_of(table, "item", "prompt"), fit_two_way(table)
    assert (interval.method, interval.df) == ("conservative", n_prompts - 1)
    assert rule_of(result)[2] == ["prompt"]
    half = stats.t.ppf(0.975, n_prompts - 1) * interval.standard_error
    assert interval.upper - interval.estimate == pytest.approx(half, rel=1e-12)
    assert satterthwaite_df(result, theta_slopes(result)) > n_prompts - 1


def test_the_smallest_of_several_small_facets_counts():
    assert rule_of(fit_two_way(two_way(5, 3, 4)[0])) == (2.0, "conservative", ["item", "prompt"])


def test_five_levels_are_not_small_and_fixed_factors_are_not_random():
    assert rule_of(three_way(1))[1:] == ("satterthwaite", [])


def test_judges_whose_variance_is_not_in_the_fit_are_a_small_facet():
    large, small = three_way(1), three_way(1, n_prompts=3)
    assert degrees_of_freedom(large, theta_slopes(large), 6) == (6.0, "conservative")
    assert degrees_of_freedom(small, theta_slopes(small), 6) == (2.0, "conservative")


def test_without_a_random_term_there_are_no_degrees_of_freedom():
    result = three_way(1)
    assert degrees_of_freedom(result, np.zeros(result.parameters.size)) == (None, "normal")


def test_levels_nested_in_a_large_facet_are_not_a_small_facet():
    result = three_way(1, n_prompts=2, random="item + item:prompt")
    assert result.facets == {frozenset({"item"}): 8}
    assert rule_of(result)[1] == "satterthwaite"


def test_a_facet_met_only_with_a_fixed_factor_is_one_nevertheless():
    result = three_way(1, n_prompts=3, random="item + item:prompt + prompt:judge")
    assert list(result.facets.items()) == [(frozenset({"item"}), 8), (frozenset({"prompt"}), 3)]
    assert rule_of(result) == (2.0, "conservative", ["prompt"])


def test_a_fixed_effect_is_conservative_where_a_small_facet_adds_to_it():
    # judge[1]: item:judge and prompt:judge add, item and prompt cancel.
    crossed = effect(three_way(1, n_prompts=3), "judge[1]")
    assert rule_of(crossed)[:2] == (2.0, "conservative")
    without = three_way(2, n_prompts=3, random="item + prompt + item:judge")
    assert without.boundary == ()
    assert rule_of(effect(without, "judge[1]"))[:2] == (pytest.approx(7 * 2, rel=1e-9), "satterthwaite")
    assert rule_of(effect(without, "(Intercept)"))[1] == "conservative"


# ------------------------------------------------------------------------------------- unbalanced designs


def with_cells(seed):
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
    interaction = ("item:prompt", "cell")
    return [fit(columns, y, random=f"item + prompt + {one}") for one in interaction]


def test_unbalanced_satterthwaite_equals_that_of_the_strata():
    balanced, other = with_cells(6)
    variances = [one.contrast @ one.beta_covariance @ one.contrast for one in (balanced, other)]
    assert np.sqrt(variances[1]) == pytest.approx(np.sqrt(variances[0]), rel=1e-5)
    assert rule_of(other)[0] == pytest.approx(rule_of(balanced)[0], rel=1e-4)


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
    balanced, other = (refits(one, 1, 400) for one in with_cells(6))
    for left, right in zip(balanced.T, other.T, strict=True):
        assert stats.ks_2samp(left, right).pvalue > 0.001


# ---------------------------------------------------------------------------------------------- bootstrap


def one_way(n_groups=8):
    y = np.random.default_rng(3).standard_normal((n_groups, 4)) + 5 * np.arange(n_groups)[:, None]
    return fit({"g": np.repeat(np.arange(n_groups), 4)}, y.ravel(), random="g")


def refits(result, seed, n_draws):
    return result.likelihood.refits(result.parameters, n_draws, np.random.default_rng(seed))


def test_drawn_residuals_are_chi_square():
    result = one_way()
    residual = refits(result, 6, 40_000)[:, -1]
    exact = result.residual * stats.chi2.ppf([0.025, 0.975], 24) / 24
    assert np.quantile(residual, [0.025, 0.975]) == pytest.approx(exact, rel=0.02)
    assert residual.std(ddof=1) == pytest.approx(result.residual * np.sqrt(2 / 24), rel=0.02)


def test_draws_depend_on_the_generator_alone():
    result = one_way()
    one, same, other = (refits(result, seed, 200) for seed in (1, 1, 2))
    assert (one == same).all()
    assert (one != other).any(axis=1).all()
