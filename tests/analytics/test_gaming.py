"""Best-of-K gain: order statistics by identity, by simulation and by scipy; divisors by hand."""

import csv
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from analytics.errors import CoreError
from analytics.research.gaming import deviation, gains, gains_by_design, selectable
from analytics.trials import expected_maximum

REPEATABLE = settings(derandomize=True, deadline=None, max_examples=40)
COMPONENTS = {"item": 0.04, "prompt": 0.002, "item:judge": 0.03, "judge (fixed)": 0.001, "residual": 0.6}
LEVELS = {"item": 100, "prompt": 2, "judge": 3, "replicate": 5}


# ---------------------------------------------------------------------------------------- E[max] of K normals


@pytest.mark.parametrize(
    ("k", "exact"),
    [
        (1, 0.0),
        (2, 1 / math.sqrt(math.pi)),
        (3, 3 / (2 * math.sqrt(math.pi))),
        (4, 6 / math.pi**1.5 * math.atan(math.sqrt(2))),
        (5, 5 / (4 * math.sqrt(math.pi)) + 15 / (2 * math.pi**1.5) * math.asin(1 / 3)),
    ],
)
def test_closed_forms(k, exact):
    # David & Nagaraja, Order Statistics, 2003, §4.2 (n = 2, 3) and Godwin 1949 (n = 4, 5).
    assert expected_maximum(k) == pytest.approx(exact, abs=1e-12)


def test_the_published_factors():
    assert expected_maximum(27) == pytest.approx(1.998, abs=5e-4)
    assert expected_maximum(10) == pytest.approx(1.539, abs=5e-4)


@pytest.mark.parametrize("k", [2, 7, 10, 27, 100, 1000])
def test_equal_to_the_integral_of_the_density_by_scipy(k):
    def integrand(x):
        return x * k * stats.norm.pdf(x) * stats.norm.cdf(x) ** (k - 1)

    expected = integrate.quad(integrand, -12, 12, epsabs=1e-13, epsrel=1e-13, limit=400, points=[0, 2, 3])[0]
    assert expected_maximum(k) == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("k", [10, 27])
def test_equal_to_simulation(k):
    best = np.random.default_rng(k).standard_normal((200_000, k)).max(axis=1)
    assert expected_maximum(k) == pytest.approx(best.mean(), abs=4 * best.std() / math.sqrt(best.size))


@REPEATABLE
@given(st.integers(2, 400))
def test_the_recurrence_of_order_statistics(n):
    # (n − r)·E[r:n] + r·E[r+1:n] = n·E[r:n−1] at r = n − 1 gives E[n−1:n] from two maxima.
    second = n * expected_maximum(n - 1) - (n - 1) * expected_maximum(n)

    def integrand(x):
        return x * n * (n - 1) * stats.norm.sf(x) * stats.norm.cdf(x) ** (n - 2) * stats.norm.pdf(x)

    expected = integrate.quad(integrand, -12, 12, epsabs=1e-12, limit=400, points=[0, 2, 3])[0]
    assert second == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("exponent", range(1, 16))
def test_large_k_equal_to_the_integral_over_quantiles(exponent):
    # The maximum of K uniforms is U^(1/K): E = ∫_0^∞ e^−t Φ⁻¹(e^(−t/K)) dt, with 1 − e^(−t/K) = −expm1(−t/K).
    k = 10**exponent

    def integrand(t):
        return math.exp(-t) * stats.norm.isf(-math.expm1(-t / k))

    parts = [integrate.quad(integrand, *ends, epsabs=1e-12, limit=400)[0] for ends in ((0, 1), (1, 60))]
    assert expected_maximum(k) == pytest.approx(sum(parts), abs=1e-8)
    assert expected_maximum(k // 10) < expected_maximum(k) < math.sqrt(2 * math.log(k))


@pytest.mark.parametrize("k", [0, -1, 2.0, True])
def test_a_number_of_submissions_is_a_whole_number(k):
    with pytest.raises(CoreError, match="a whole number from 1 on is needed"):
        expected_maximum(k)


# ------------------------------------------------------------------------------------------- selectable noise


def test_divisors_by_hand():
    noise = selectable(COMPONENTS, LEVELS, {"judge", "prompt"})
    assert noise == pytest.approx(
        {"prompt": 0.001, "item:judge": 1e-4, "judge (fixed)": 1e-3 / 3, "residual": 2e-4}
    )
    assert deviation(noise) == pytest.approx(math.sqrt(0.001 + 1e-4 + 1e-3 / 3 + 2e-4))


def test_what_the_board_fixes_is_shared():
    noise = selectable(COMPONENTS, LEVELS, ())
    assert noise == pytest.approx({"residual": 2e-4})


def test_published_components_with_everything_but_items_chosen(real_data):
    # σ² is Var(θ̂) of the D-study under `include` less the item terms: published tables of TEE's archive.
    with (real_data / "published" / "tee_safety_components.csv").open() as lines:
        components = {row["component"]: float(row["variance"]) for row in csv.DictReader(lines)}
    levels = {"item_id": 141, "variant_id": 5, "judge_model": 3, "temperature": 3, "replicate": 8}
    noise = selectable(components, levels, {"variant_id", "judge_model", "temperature"})
    items = (components["item_id"] + components["category"]) / 141
    assert deviation(noise) ** 2 + items == pytest.approx(3.54e-4, abs=5e-7)
    assert set(components) - set(noise) == {"item_id", "category"}


def test_the_gain_is_what_simulation_finds():
    rng = np.random.default_rng(4)
    n, k = 40_000, 9
    shared = rng.normal(0, 0.2, (n, 1))
    prompts = rng.normal(0, math.sqrt(0.002), (n, k, 2)).mean(axis=2)
    noise = rng.normal(0, math.sqrt(0.6 / 1000), (n, k))
    best = (shared + prompts + noise).max(axis=1) - shared[:, 0]
    components, levels = (
        {"item": 4.0, "prompt": 0.002, "residual": 0.6},
        {"item": 100, "prompt": 2, "trial": 5},
    )
    (result,) = gains(deviation(selectable(components, levels, {"prompt"})), {"a": k})
    assert result["gain"] == pytest.approx(best.mean(), abs=4 * best.std() / math.sqrt(n))


def test_each_team_has_its_own_number_of_submissions():
    sd = deviation(selectable(COMPONENTS, LEVELS, {"judge"}))
    result = gains(sd, {"zeta": 27, "alpha": 1, "meta": 2})
    assert [(gain["team"], gain["submissions"]) for gain in result] == [
        ("zeta", 27),
        ("meta", 2),
        ("alpha", 1),
    ]
    assert [gain["gain"] for gain in result] == pytest.approx([1.99827 * sd, sd / math.sqrt(math.pi), 0.0])
    assert result[0]["points"] == pytest.approx(100 * result[0]["gain"])


def test_how_the_gain_shrinks():
    doubled = {facet: 2 * n for facet, n in LEVELS.items()}
    designs = [LEVELS, *(LEVELS | {facet: n} for facet, n in doubled.items()), doubled]
    result = gains_by_design(COMPONENTS, designs, {"prompt", "judge"}, 27)
    variances = [0.001 + 1e-4 + 1e-3 / 3 + 2e-4]
    variances += [0.001 + 5e-5 + 1e-3 / 3 + 1e-4, 0.0005 + 1e-4 + 1e-3 / 3 + 1e-4]
    variances += [0.001 + 5e-5 + 1e-3 / 6 + 1e-4, 0.001 + 1e-4 + 1e-3 / 3 + 1e-4]
    assert [row["sd"] for row in result[:5]] == pytest.approx([math.sqrt(v) for v in variances])
    assert [row["relative"] for row in result] == pytest.approx(
        [row["gain"] / result[0]["gain"] for row in result]
    )
    assert min(result, key=lambda row: row["gain"]) is result[-1]


@REPEATABLE
@given(st.integers(1, 50), st.sampled_from(sorted(LEVELS)), st.integers(2, 6))
def test_more_levels_never_raise_the_gain(k, facet, factor):
    more = LEVELS | {facet: LEVELS[facet] * factor}
    (few,), (many,) = (
        gains(deviation(selectable(COMPONENTS, at, {"judge", "prompt"})), {"a": k}) for at in (LEVELS, more)
    )
    assert many["gain"] <= few["gain"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: selectable({"residual": -0.1}, LEVELS, ()), "component residual: a variance is at least 0"),
        (lambda: selectable({"residual": math.nan}, LEVELS, ()), "not nan"),
        (lambda: selectable({"run": 0.1}, {"item": 3}, {"run"}), "does not give the number of levels of run"),
        (lambda: selectable({"run": 0.1}, {"run": 0}, {"run"}), "0 levels of run"),
        (lambda: selectable({"run": 0.1}, {"run": 2}, {"juge"}), "'juge' varies between submissions"),
        (lambda: selectable({"item": 0.1}, {"item": 2}, ()), "no component holds a facet"),
        (lambda: gains_by_design(COMPONENTS, [LEVELS], {"judge"}, 1), "best of 1 gains 0"),
        (lambda: gains(1.0, {"a": 0}), "a: 0 submissions"),
    ],
)
def test_what_cannot_be_said_is_refused(call, message):
    with pytest.raises(CoreError, match=message):
        call()
