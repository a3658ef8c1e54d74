import itertools
import math

import numpy as np
import pytest
from scipy.stats import f as f_distribution
from scipy.stats import norm

from analytics.reml import fit
from analytics.tee import Declaration, by_stratum
from perf.studies.mean_squares import RESIDUAL, Specification, SpecificationRefused, sums_of_squares
from perf.studies.misspecification import (
    CELL,
    DEPARTURES,
    GAMMAS,
    ITEM_JUDGE,
    ITEM_PROMPT,
    ITEM_PROMPT_JUDGE,
    ONE_JUDGE,
    PROMPT,
    PROMPTS,
    RESIDUALS,
    SAMPLED,
    SIZES_5,
    TABLE_8,
    THREE_WAY,
    TWO_WAY,
    Setting,
    agreement,
    ambiguity_biases,
    ambiguous,
    coverage,
    few_prompts,
    noise_of_mean,
    prompts_bias,
    residual_bias,
    three_way,
    variance_biases,
)
from perf.studies.outcomes import CATEGORY, Drawn, draw_outcomes, drawn, drawn_as_squares, terms

SMALL = {"N": 6, "C": 3, "V": 3, "M": 2, "H": 2, "R": 2}
GAMMA = pytest.mark.parametrize("gamma", GAMMAS)


def columns(levels):
    """Labels of every outcome, in the order of its array."""
    names = {"N": "item", "V": "prompt", "M": "judge", "H": "temperature", "R": "replicate"}
    grid = np.meshgrid(*(np.arange(levels[letter]) for letter in names), indexing="ij")
    found = {name: axis.ravel() for name, axis in zip(names.values(), grid, strict=True)}
    return found | {"category": found["item"] // (levels["N"] // levels["C"])}


def outcomes_of(setting, n_draws=1, seed=3):
    return draw_outcomes(np.random.default_rng(seed), setting, n_draws)


# --------------------------------------------------------------------------------- sums of squares and fits


def test_sums_of_squares_are_those_of_projections():
    """Each by its definition, the squared alternating sum of marginal means; together, all there is."""
    setting = Setting("small", SMALL)
    y = outcomes_of(setting, 2)
    found = dict(zip(setting.layout.strata, sums_of_squares(setting.layout, y).T, strict=True))
    axes = dict(zip("NVMHR", range(1, 6), strict=True))
    for stratum in setting.layout.strata:
        if stratum <= set("NVMH") and stratum != {"N"}:
            effect = sum(
                (-1) ** (len(stratum) - k)
                * y.mean(axis=tuple(axes[f] for f in axes if f not in kept), keepdims=True)
                for k in range(len(stratum) + 1)
                for kept in itertools.combinations(sorted(stratum), k)
            )
            squares = (np.broadcast_to(effect, y.shape) ** 2).sum(axis=(1, 2, 3, 4, 5))
            assert found[stratum] == pytest.approx(squares)
    items = y.mean(axis=(2, 3, 4, 5)).reshape(2, 3, 2)
    per_item = 3 * 2 * 2 * 2
    assert found[frozenset("N")] == pytest.approx(per_item * 2 * items.var(axis=2).sum(axis=1))
    assert found[CATEGORY] == pytest.approx(per_item * 6 * items.mean(axis=2).var(axis=1))
    assert sum(found.values()) == pytest.approx(y[0].size * y.var(axis=(1, 2, 3, 4, 5)))
    assert setting.layout.df.sum() == y[0].size - 1


@pytest.mark.parametrize("fitted", [TWO_WAY, (CATEGORY, *TWO_WAY), (*TWO_WAY[:-1], CELL, RESIDUAL)])
def test_bounded_components_are_those_of_a_fit(fitted):
    """The product's REML of the rows themselves, components at 0 among them."""
    words = {"N": "item", "C": "category", "V": "prompt", "M": "judge", "H": "temperature"}
    formula = " + ".join(":".join(words[f] for f in "CNVMH" if f in term) for term in fitted[:-1])
    variances = {**TABLE_8, frozenset("VH"): 0.0, frozenset("VM"): 0.0}
    setting = Setting("small", {**SMALL, "N": 12, "V": 4, "M": 3}, variances)
    specification = Specification(setting.layout, fitted)
    y = outcomes_of(setting, 3)
    found = specification.bounded(sums_of_squares(setting.layout, y))
    assert (found == 0).any()
    for components, outcome in zip(found, y, strict=True):
        of_rows = fit(columns(setting.levels), outcome.ravel(), random=formula, fixed="judge*temperature")
        assert of_rows.parameters == pytest.approx(components, abs=2e-7)


def test_each_component_enters_as_the_d_study_says():
    layout = Setting("small", SMALL).layout
    nested = Specification(layout, (CATEGORY, *TWO_WAY))
    divisors = dict(zip(nested.terms, 1 / nested.divided(SAMPLED), strict=True))
    assert divisors == pytest.approx({term: layout.divisor(term) for term in nested.terms})
    assert nested.divided(SAMPLED, {**SMALL, "V": 5})[2] == pytest.approx(1 / 5)


def test_a_specification_without_a_solution_is_refused():
    with pytest.raises(SpecificationRefused, match="different strata"):
        Specification(Setting("small", SMALL).layout, terms("NV NM R")).unbounded(np.ones((1, 17)))


@pytest.mark.parametrize(
    "setting", [each.setting for each in DEPARTURES] + [ambiguous(2.0)], ids=lambda s: s.name
)
def test_multipliers_have_the_means_that_are_counted_with(setting):
    rng = np.random.default_rng(5)
    effects = {
        term: math.sqrt(variance)
        * rng.standard_normal((4_000, *(setting.levels[f] if f in term else 1 for f in "NVMH")))
        for term, variance in setting.variances.items()
        if term not in (CATEGORY, RESIDUAL)
    }
    by_category = math.sqrt(TABLE_8[CATEGORY]) * rng.standard_normal((4_000, setting.levels["C"]))
    n_each = setting.levels["N"] // setting.levels["C"]
    effects[CATEGORY] = np.repeat(by_category, n_each, axis=1)[:, :, None, None, None]
    for term, multiplier in setting.multipliers(rng, effects).items():
        assert multiplier.mean() == pytest.approx(setting.means.get(term, 1.0), rel=0.03)


# ------------------------------------------------------------------------------------------------------- E.1


def test_published_bias_at_few_prompts_is_the_noise_of_a_thousand_draws():
    """σ̂_φ² has variance 2σ⁴/(V − 1): at V = 2 ± 4.5% where +4 to +5 is printed as bias, then 3.2 to 1.5."""
    rounded = [round(100 * noise_of_mean(n_prompts), 1) for n_prompts in PROMPTS]
    assert rounded == [4.5, 3.2, 2.6, 2.2, 1.8, 1.5]
    rng = np.random.default_rng(2)
    means = (rng.chisquare(1, (4_000, 1_000))).mean(axis=1)
    assert means.std() == pytest.approx(noise_of_mean(2), rel=0.05)


@pytest.mark.parametrize("n_prompts", PROMPTS)
@pytest.mark.parametrize("n_temperatures", [1, 3])
def test_without_bounds_few_prompts_do_no_harm(n_prompts, n_temperatures):
    fitted = ONE_JUDGE if n_temperatures > 1 else terms("C N V NV R")
    setting = few_prompts(n_prompts, 0.04, n_temperatures)
    assert Specification(setting.layout, fitted).expected == pytest.approx(
        {term: setting.truth[term] for term in fitted}
    )


@pytest.mark.parametrize("n_prompts", [2, 3, 10])
def test_what_bounds_add_at_one_temperature_is_known(n_prompts):
    """E max(0, A − B)/(NR) of two mean squares A, B, by tails of F, where only prompts are ever cut off."""
    variance, a, b = 0.04, n_prompts - 1, 49 * (n_prompts - 1)
    noise = 0.03 + 5 * TABLE_8[ITEM_PROMPT]
    prompts = noise + 250 * variance
    ratio = noise / prompts
    cut = prompts * f_distribution.sf(ratio * a / (a + 2), a + 2, b) - noise * f_distribution.sf(
        ratio * (b + 2) / b, a, b + 2
    )
    exact = cut / 250 / variance - 1
    assert 0 <= exact < 0.002
    found = prompts_bias(few_prompts(n_prompts, variance, 1), 20_000, 1)
    assert abs(found.quiet - exact) <= 3 * found.quiet_se + 1e-9


@pytest.mark.parametrize("variance", [0.04, 0.10])
@pytest.mark.parametrize("n_prompts", PROMPTS)
def test_few_prompts_are_estimated_without_bias(n_prompts, variance):
    """Under .2%; with three temperatures .4% at V = 2 and σ_φ² = .04, which is cut off at 0 more often."""
    found = prompts_bias(few_prompts(n_prompts, variance), 20_000, 11)
    assert abs(found.bias - found.quiet) <= 3 * found.mc_se
    assert -1e-12 <= found.quiet <= (0.005 if n_prompts == 2 else 0.002)


def test_residuals_are_recovered_by_temperature():
    """Within 3 × .16%, the SE of a mean of 1,000 on 800 degrees of freedom."""
    assert math.sqrt(2 / 800 / 1_000) == pytest.approx(0.0016, abs=5e-5)
    for residual in RESIDUALS:
        found = residual_bias(residual, 1_000, 42)
        assert abs(found.bias) <= 3 * 0.0016
        assert found.mc_se == pytest.approx(0.0016, rel=0.1)


def test_strata_of_real_rows_are_those_of_the_study():
    """`analytics variance --by temperature` of rows drawn with three residuals."""
    levels = {"N": 10, "C": 2, "V": 4, "M": 1, "H": 3, "R": 5}
    rows = columns(levels)
    y = outcomes_of(Setting("small", levels), 1)[0]
    y += np.random.default_rng(1).standard_normal(y.shape) * np.sqrt(RESIDUALS)[:, None]
    declaration = Declaration(
        outcome="y", item="item", prompt="prompt", temperature="temperature", replicate="replicate"
    )
    found, _ = by_stratum(rows | {"y": y.ravel()}, declaration)
    for place, level in enumerate("012"):
        part = y[:, :, :, place : place + 1]
        layout = Setting("one", {**levels, "H": 1}).layout
        fitted = Specification(layout, terms("N V NV R"))
        assert found[level].residual == pytest.approx(
            fitted.bounded(sums_of_squares(layout, part[None]))[0, -1]
        )


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_a_three_way_term_moves_two_way_components(share):
    """By ωσ₃²/H and ωσ₃²/V, which at 100% is 30% of item:prompt or more; "under 5%" needs the cell."""
    layout = three_way(share).layout
    added = share * TABLE_8[ITEM_PROMPT]
    df_term, df_pooled = 49 * 3 * 2, 49 * 3 * 2 + 50 * 4 * 3 * 4
    omega = 1 - df_term / df_pooled
    without = Specification(layout, ONE_JUDGE).expected
    assert without[ITEM_PROMPT] == pytest.approx(TABLE_8[ITEM_PROMPT] + omega * added / 3)
    assert without[frozenset("NH")] == pytest.approx(TABLE_8[frozenset("NH")] + omega * added / 4)
    fitted = Specification(layout, (*ONE_JUDGE[:-1], THREE_WAY, RESIDUAL)).expected
    assert fitted[ITEM_PROMPT] == pytest.approx(TABLE_8[ITEM_PROMPT])
    assert omega / 3 == pytest.approx(0.297, abs=5e-4)


# ------------------------------------------------------------------------------------------------------- E.2


@pytest.mark.parametrize("departure", DEPARTURES, ids=lambda each: each.setting.name)
def test_no_departure_biases_components(departure):
    """The same −.99% for all: five categories, drawn anew, whose variance is counted to 50 items."""
    setting = departure.setting
    nested = Specification(setting.layout, (CATEGORY, *TWO_WAY))
    assert nested.expected == pytest.approx({term: setting.truth[term] for term in nested.terms})
    squares = drawn(setting, 20, 1).squares
    plain, sampled = variance_biases(setting, squares)
    assert plain.exact == pytest.approx(-0.0099, abs=1e-4)
    assert sampled.exact == pytest.approx(0.0, abs=1e-12)


def test_the_baseline_is_what_categories_do():
    """−(σ_κ² − E s²_κ)/N over Var(θ̂): what Table 7 prints as −.9 of a correct specification."""
    lost = 0.015 * (1 - (50 / 49) * (4 / 5)) / 50
    variance = 0.055 / 50 + 0.015 / 4 + 0.008 / 200 + 0.008 / 150 + 0.02 / 150 + 2 * 0.003 / 12 + 0.03 / 9_000
    assert -lost / variance == pytest.approx(-0.0099, abs=1e-4)


def test_four_departures_are_printed_where_the_text_has_five():
    """Table 7 has a baseline and four departures, of 8% at most; the main text five within 9%."""
    printed = [each.published for each in DEPARTURES]
    assert (len(printed) - 1, max(map(abs, printed))) == (4, 7.2)


def test_heavy_tails_of_the_residual_cannot_do_what_is_printed():
    """It has .06% of Var(θ̂): were it left out altogether, Var(θ̂) would not fall by 7.2%."""
    setting = DEPARTURES[3].setting
    plain = Specification(setting.layout, TWO_WAY)
    shares = np.array([setting.truth[term] for term in TWO_WAY]) * plain.divided(SAMPLED)
    assert shares[-1] / shares.sum() < 0.001


@pytest.mark.slow
@pytest.mark.parametrize("departure", DEPARTURES, ids=lambda each: each.setting.name)
def test_departures_leave_the_d_study_alone(departure):
    found, _ = variance_biases(departure.setting, drawn(departure.setting, 1_000, 42).squares)
    expected, error = (figure / 100 for figure in departure.to_expect)
    print(f"\n{departure.setting.name}: {found}")
    assert abs(found.bias - expected) <= 3 * math.hypot(found.mc_se, error)
    assert abs(found.bias - found.quiet) <= 3 * found.mc_se
    assert abs(found.quiet - found.exact) < 0.01


# ------------------------------------------------------------------------------------------------------- E.5


@GAMMA
def test_the_three_way_term_does_not_stay_in_the_residual(gamma):
    """E σ̂²_αφ = (1 + γ)σ²_αφ + ωσ₃²/M, E σ̂²_αλ = (1 + γ)σ²_αλ + ωσ₃²/V: 6.1, 4.0, 3.0, 2.0% of the first."""
    third = 0.01 * norm.sf(1)
    pooled = 1_620 - 1 - sum((29, 2, 2, 1, 2, 58, 29, 58, 2, 4))
    omega = 1 - 29 * 2 * 2 / pooled
    assert pooled == 1_432
    found = Specification(ambiguous(gamma).layout, TWO_WAY).expected
    assert found[ITEM_PROMPT] == pytest.approx((1 + gamma) * 0.008 + omega * third / 3)
    assert found[ITEM_JUDGE] == pytest.approx((1 + gamma) * 0.02 + omega * third / 3)
    bias = 100 * (found[ITEM_PROMPT] / ((1 + gamma) * 0.008) - 1)
    assert round(bias, 1) == {0.0: 6.1, 0.5: 4.1, 1.0: 3.0, 2.0: 2.0}[gamma]


@GAMMA
def test_the_cell_takes_a_third_of_that(gamma):
    """With C.6's cell the term is pooled with the strata of three and four facets: ω = 1 − 116/352."""
    cell = 29 * 2 * 1 + 29 * 2 * 2 + 29 * 1 * 2 + 2 * 1 * 2 + 29 * 2 * 1 * 2
    assert cell == 352
    found = Specification(ambiguous(gamma).layout, (*TWO_WAY[:-1], CELL, RESIDUAL)).expected
    added = (1 - 116 / cell) * 0.01 * norm.sf(1) / 3
    assert found[ITEM_PROMPT] == pytest.approx((1 + gamma) * 0.008 + added)


def test_the_published_baseline_is_misspecified_too():
    """γ = 0 is called correct; its items beyond z = 1 have the three-way term all the same."""
    assert ambiguous(0.0).truth[ITEM_PROMPT_JUDGE] == pytest.approx(0.01 * norm.sf(1))
    assert GAMMAS[0.0].largest > GAMMAS[1.0].largest


@pytest.fixture(scope="module")
def studied():
    """All γ, 4,000 draws each."""
    return {gamma: drawn(ambiguous(gamma), 4_000, 7) for gamma in GAMMAS}


@pytest.mark.slow
def test_ambiguity_biases_as_expected(studied):
    for gamma, found in studied.items():
        bias = ambiguity_biases(ambiguous(gamma), found.squares)[ITEM_PROMPT]
        expected = GAMMAS[gamma].to_expect / 100
        print(f"\n{gamma}: {bias}")
        assert abs(bias.bias - expected) <= 3 * math.hypot(bias.mc_se, 0.01)
        assert abs(bias.bias - bias.exact) <= 3 * bias.mc_se


def normal_coverage(gamma, n_draws=16_000):
    """Of normal effects with the same mean variances: nothing depends on an item's ambiguity."""
    setting = ambiguous(gamma)
    variance = math.fsum(one / setting.layout.divisor(term) for term, one in setting.truth.items())
    deviation = math.sqrt(variance) * np.random.default_rng(8).standard_normal(n_draws)
    return coverage(setting, Drawn(drawn_as_squares(setting, n_draws, 8), deviation)).z


@pytest.mark.slow
def test_ambiguity_leaves_coverage_flat(studied):
    rates = {gamma: coverage(ambiguous(gamma), found) for gamma, found in studied.items()}
    se = math.sqrt(0.85 * 0.15 / 4_000)
    for one, other in itertools.combinations(rates.values(), 2):
        assert abs(one.z - other.z) <= 3 * math.sqrt(2) * se
    for gamma, rate in rates.items():
        assert abs(rate.z - normal_coverage(gamma)) <= 3 * math.sqrt(1.25) * se
        print(f"\n{gamma}: {rate}")
        assert 0.83 - 3 * se <= rate.z <= 0.86 + 3 * se
        assert abs(rate.t - 0.99) <= 3 * math.sqrt(0.99 * 0.01 * (1 / 4_000 + 1 / 1_000))
        published = GAMMAS[gamma].coverage / 100
        error = math.sqrt(published * (1 - published) * (1 / 4_000 + 1 / 1_000))
        assert abs(rate.z_sampled - published) <= 3 * error


@pytest.mark.slow
def test_the_order_of_changes_is_that_of_mean_components(studied):
    """1.00 is printed; single draws have it at .95 on average."""
    for gamma, found in studied.items():
        each, mean = agreement(ambiguous(gamma), found.squares)
        assert mean == pytest.approx(1.0)
        assert 0.9 < each < 0.99


def test_sizes_are_those_of_the_paper():
    assert math.prod(SIZES_5[letter] for letter in "NVMHR") == 1_620
    assert TABLE_8[PROMPT] == 0.015
