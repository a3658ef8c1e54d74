import itertools

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import chi2

from perf.studies.coverage import (
    N_ITEMS,
    PUBLISHED,
    SCENARIOS,
    CoverageRefused,
    Layout,
    coverage,
    coverage_table,
    estimated_variance,
)

A, B, C, D, E, E_STAR = SCENARIOS
SCENARIO_A = dict(zip(N_ITEMS, (0.458, 0.312, 0.226, 0.162, 0.104, 0.073, 0.052), strict=True))


def coverage_of_a(n_items):
    """Scenario A by quadrature over s: ȳ − μ is normal given the pipeline drawn, and independent of s."""
    inside, shared = 0.055 + 0.03 + 0.008 + 0.008 + 0.02, 0.015 + 0.003 + 0.003
    quantiles = (np.arange(2_000) + 0.5) / 2_000
    s = np.sqrt(inside * chi2.ppf(quantiles, n_items - 1) / (n_items - 1))
    half, spread = 1.959963984540054 * s / np.sqrt(n_items), np.sqrt(shared + inside / n_items)
    shifts = [a + b for a, b in itertools.product(PUBLISHED.panel, repeat=2)]
    return np.mean([ndtr((half - shift) / spread) - ndtr((-half - shift) / spread) for shift in shifts])


@pytest.mark.parametrize("n_items", N_ITEMS)
def test_scenario_a(n_items):
    """Its seven figures, by quadrature to their last digit and by simulation to three Monte Carlo SE."""
    assert coverage_of_a(n_items) == pytest.approx(SCENARIO_A[n_items], abs=0.001)
    cell = coverage(np.random.default_rng([7, n_items]), A, n_items, n_draws=20_000)
    assert abs(cell.coverage - SCENARIO_A[n_items]) <= 3 * cell.mc_se


@pytest.mark.parametrize(
    ("scenario", "n_items", "expected"),
    [(B, 20, 0.639), (B, 2_000, 0.502), (C, 20, 0.881), (C, 2_000, 0.857)],
)
def test_scenarios_b_and_c(scenario, n_items, expected):
    """Figures stated to a Monte Carlo error of their own, of 1,000 replicates."""
    cell = coverage(np.random.default_rng([8, n_items]), scenario, n_items, n_draws=4_000)
    error_of_stated = np.sqrt(expected * (1 - expected) / 1_000)
    assert abs(cell.coverage - expected) <= 3 * np.hypot(cell.mc_se, error_of_stated)


@pytest.mark.parametrize("n_items", [20, 2_000])
def test_panels_that_count_as_error_make_conservative_intervals(n_items):
    for scenario in (D, E):
        assert coverage(np.random.default_rng(9), scenario, n_items).coverage >= 0.99
    assert coverage(np.random.default_rng(9), E_STAR, n_items, n_draws=4_000).coverage >= 0.94


def test_draws_depend_on_their_own_cell():
    table = coverage_table(3, n_draws=40)
    again = coverage(np.random.default_rng([3, 1, 100]), B, 100, n_draws=40)
    assert next(cell for cell in table if cell.scenario == "B" and cell.n_items == 100) == again
    assert len(table) == 42


# ------------------------------------------------------------------- the sufficient statistics are the data's


def simulated_outcomes(rng, levels, n_draws):
    """The obvious way: every effect of every level, shape (n_draws, N, V, M, H, R)."""
    axes = {letter: place + 1 for place, letter in enumerate("NVMHR")}
    shape = (n_draws, *(levels[letter] for letter in "NVMHR"))
    y = np.zeros(shape)
    for term, variance in PUBLISHED.variances.items():
        letters = "NVMHR" if term == frozenset("R") else term
        size = [n_draws] + [1] * 5
        for letter in letters:
            size[axes[letter]] = levels[letter]
        y += np.sqrt(variance) * rng.standard_normal(size)
    panel = np.array(PUBLISHED.panel)
    return y + panel[:, None, None] + panel[None, :, None]


def mean_square(y, stratum, df):
    """MS of an interaction: sum over outcomes of the squared alternating sum of marginal means, over df."""
    keep = {place + 1 for place, letter in enumerate("NVMH") if letter in stratum}
    effect = np.zeros_like(y)
    for k in range(len(keep) + 1):
        for subset in itertools.combinations(sorted(keep), k):
            away = tuple(axis for axis in range(1, 6) if axis not in subset)
            effect += (-1) ** (len(keep) - k) * y.mean(axis=away, keepdims=True)
    return (effect**2).sum(axis=(1, 2, 3, 4, 5)) / df


def test_expected_mean_squares_are_those_of_simulated_outcomes():
    levels = {"N": 4, "V": 3, "M": 3, "H": 3, "R": 2}
    layout = Layout(PUBLISHED, levels)
    y = simulated_outcomes(np.random.default_rng(11), levels, 4_000)
    for stratum, df in zip(layout.strata, layout.df, strict=True):
        if stratum == frozenset("R"):
            squares = ((y - y.mean(axis=5, keepdims=True)) ** 2).sum(axis=(1, 2, 3, 4, 5)) / df
        else:
            squares = mean_square(y, stratum, df)
        expected = layout.expected(stratum)
        if stratum in (frozenset("M"), frozenset("H")):
            expected += 4 * 3 * 3 * 2 * 0.15**2  # Σ of n/3·effect² over df = 2
        assert abs(squares.mean() - expected) <= 4 * squares.std() / np.sqrt(len(squares)), stratum


def test_degrees_of_freedom_add_up():
    layout = Layout(PUBLISHED, {"N": 7, "V": 3, "M": 3, "H": 1, "R": 5})
    assert layout.df.sum() == 7 * 3 * 3 * 5 - 1


def test_naive_is_the_spread_of_the_items():
    layout = Layout(PUBLISHED, {"N": 9, "V": 1, "M": 1, "H": 1, "R": 1})
    assert estimated_variance(layout, A, np.array([[0.36]])) == pytest.approx([0.36 / 9])


def test_variance_of_the_mean_by_anova():
    """Crossed main effects without a negative component: Var̂ = (MS_N + MS_V − MS_rest)/n."""
    layout = Layout(PUBLISHED, {"N": 5, "V": 3, "M": 1, "H": 1, "R": 2})
    squares = {frozenset("N"): 3.0, frozenset("V"): 2.0, frozenset("NV"): 0.8, frozenset("R"): 0.5}
    rest = (8 * 0.8 + 15 * 0.5) / 23
    column = np.array([[squares[stratum]] for stratum in layout.strata])
    assert estimated_variance(layout, B, column) == pytest.approx([(3.0 + 2.0 - rest) / 30])


def test_sizes_are_checked():
    for n_items, n_draws, level in ((1, 10, 0.95), (5, 0, 0.95), (5, 10, 1.0)):
        with pytest.raises(CoverageRefused):
            coverage(np.random.default_rng(1), A, n_items, n_draws=n_draws, level=level)
