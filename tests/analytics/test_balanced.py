"""Strata, closed form and bounded optimum of balanced designs.

The slow reference is dense: V is written out, Q evaluated from its definition, and minimised by L-BFGS-B.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from analytics.errors import CoreError
from analytics.reml import fit
from analytics.reml.strata import Strata, n_replicates, optimise_many, strata_of
from tests.refusals import refused

REPEATABLE = settings(derandomize=True, deadline=None, max_examples=40)
SEEDS = st.integers(0, 2**32 - 1)


def crossed(n_levels, n_replicates=1):
    """Codes of a complete crossed design, one array for each factor."""
    axes = np.meshgrid(*(np.arange(n) for n in (*n_levels, n_replicates)), indexing="ij")
    return [axis.ravel() for axis in axes[:-1]]


def drawn(seed, factors, terms, sds, residual_sd=1.0):
    """Outcomes with the given standard deviations."""
    rng = np.random.default_rng(seed)
    y = residual_sd * rng.standard_normal(factors[0].size)
    for term, sd in zip(terms, sds, strict=True):
        codes = np.unique(np.column_stack([factors[f] for f in term]), axis=0, return_inverse=True)[1]
        y = y + sd * rng.standard_normal(codes.max() + 1)[codes]
    return y


def indicator(factors, term):
    codes = np.unique(np.column_stack([factors[f] for f in term]), axis=0, return_inverse=True)[1]
    return np.eye(codes.max() + 1)[codes]


def dense_criterion(y, x, squares, parameters):
    """Q(φ) from its definition; squares are the ZZ' of the terms and the identity."""
    v = np.einsum("t,tij->ij", parameters, squares)
    inverse = np.linalg.inv(v)
    information = x.T @ inverse @ x
    residual = y - x @ np.linalg.solve(information, x.T @ inverse @ y)
    return (
        (len(y) - x.shape[1]) * math.log(2 * math.pi)
        + np.linalg.slogdet(v)[1]
        + np.linalg.slogdet(information)[1]
        + residual @ inverse @ residual
    )


def dense_squares(factors, terms):
    zs = [indicator(factors, term) for term in terms]
    return np.array([*(z @ z.T for z in zs), np.eye(factors[0].size)])


def no_fixed(y, factors, n_levels, terms):
    return strata_of(y, factors, n_levels, terms, (), np.ones((1, 1)))


# ------------------------------------------------------------------------------------------------ by hand


def test_one_way_anova_by_hand():
    # Groups (1, 3), (5, 7), (9, 11): means 2, 6, 10, grand mean 6. SS between = 2·(16 + 0 + 16) = 64 on 2,
    # within = 3·2 = 6 on 3. Residual 2, group variance (32 − 2)/2 = 15, SE² of the mean = 32/6.
    result = fit({"g": list("aabbcc")}, [1, 3, 5, 7, 9, 11], random="g")
    assert result.components == {"g": pytest.approx(15.0, abs=1e-12)}
    assert result.residual == pytest.approx(2.0, abs=1e-12)
    assert result.fixed == {"(Intercept)": pytest.approx(6.0, abs=1e-12)}
    assert result.beta_covariance[0, 0] == pytest.approx(32 / 6, abs=1e-12)
    # Q = 5 log 2π + log 6 + 2 log 32 + 64/32 + 3 log 2 + 6/2
    by_hand = 5 * math.log(2 * math.pi) + math.log(6) + 2 * math.log(32) + 2 + 3 * math.log(2) + 3
    assert result.criterion == pytest.approx(by_hand, abs=1e-12)
    assert (result.method, result.boundary) == ("balanced: closed form", ())


def test_a_negative_component_becomes_an_exact_zero_and_its_stratum_is_pooled():
    # Groups (0, 2), (1, 3), (0, 2): SS between = 2·(1/9 + 4/9 + 1/9) = 4/3 on 2, within 6 on 3.
    # 2/3 < 2: the group variance is 0 and the residual (4/3 + 6)/5 = 22/15.
    result = fit({"g": list("aabbcc")}, [0, 2, 1, 3, 0, 2], random="g")
    assert result.variances.tolist() == [0.0]
    assert result.residual == pytest.approx(22 / 15, rel=1e-14)
    assert (result.boundary, result.method) == (("g",), "balanced: bounded optimum")
    assert result.converged


def test_two_way_strata_by_hand():
    # 2 × 2 table 1 2 / 3 8: mean 3.5, rows −2, +2, columns −1.5, +1.5, interaction ±1.
    factors = crossed((2, 2))
    strata = no_fixed(np.array([1.0, 2, 3, 8]), factors, (2, 2), ((0,), (1,)))
    assert strata.loadings.tolist() == [[2, 0, 1], [0, 2, 1], [0, 0, 1]]
    assert strata.sum_squares == pytest.approx([16, 9, 4], abs=1e-13)
    assert strata.df.tolist() == [1, 1, 1]


def test_crossed_notation_of_nested_levels_pools_the_nested_strata():
    factors = crossed((10, 3), 2)
    y = drawn(1, factors, ((0,), (0, 1)), (1.0, 1.0))
    strata = no_fixed(y, factors, (10, 3), ((0,), (0, 1)))
    assert strata.loadings.tolist() == [[6, 2, 1], [0, 2, 1], [0, 0, 1]]
    assert strata.df.tolist() == [9, 20, 30]


# ---------------------------------------------------------------------------------------- by definition

DESIGNS = [
    ((4, 3), 1, ((0,), (1,)), ()),
    ((4, 3), 2, ((0,), (1,), (0, 1)), ()),
    ((5, 2), 2, ((0,), (0, 1)), ((1,),)),
    ((3, 2, 3), 2, ((0,), (1,), (0, 1), (0, 2), (1, 2), (0, 1, 2)), ((2,),)),
    ((4, 2, 2), 1, ((0,), (0, 1), (0, 2)), ((1,), (2,), (1, 2))),
    ((3, 3, 2), 1, ((0, 1), (0, 2)), ()),
]


def labelled(factors):
    return {name: codes.astype(str).tolist() for name, codes in zip("abc", factors, strict=False)}


def formula(terms):
    return " + ".join(":".join("abc"[f] for f in term) for term in terms)


def dense_design(factors, n_levels, fixed):
    columns = [np.ones(factors[0].size)]
    for term in fixed:
        dummies = [[(factors[f] == level).astype(float) for level in range(1, n_levels[f])] for f in term]
        products = dummies[0] if len(term) == 1 else [a * b for a in dummies[0] for b in dummies[1]]
        columns += products
    return np.column_stack(columns)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("n_levels", "n_replicates", "terms", "fixed"), DESIGNS)
def test_criterion_and_optimum_agree_with_the_dense_definition(n_levels, n_replicates, terms, fixed, seed):
    factors = crossed(n_levels, n_replicates)
    sds = np.random.default_rng(seed).choice([0.0, 0.3, 1.0], len(terms))
    y = drawn(seed, factors, terms, sds)
    result = fit(labelled(factors), y, random=formula(terms), fixed=formula(fixed))
    x, squares = dense_design(factors, n_levels, fixed), dense_squares(factors, terms)
    assert result.criterion == pytest.approx(dense_criterion(y, x, squares, result.parameters), abs=1e-9)
    lowest = min(
        minimize(
            lambda parameters: dense_criterion(y, x, squares, parameters),
            start,
            method="L-BFGS-B",
            bounds=[(0, None)] * len(terms) + [(1e-6, None)],
        ).fun
        for start in (result.parameters + 0.1, np.ones(len(terms) + 1))
    )
    assert result.criterion <= lowest + 1e-8
    inverse = np.linalg.inv(np.einsum("t,tij->ij", result.parameters, squares))
    covariance = np.linalg.inv(x.T @ inverse @ x)
    assert result.beta_covariance == pytest.approx(covariance, rel=1e-9, abs=1e-11)
    assert result.beta == pytest.approx(covariance @ x.T @ inverse @ y, abs=1e-10)


@pytest.mark.parametrize(("n_levels", "n_replicates", "terms", "fixed"), DESIGNS)
def test_gradient_and_information_are_derivatives(n_levels, n_replicates, terms, fixed):
    factors = crossed(n_levels, n_replicates)
    y = drawn(7, factors, terms, [0.7] * len(terms))
    strata = fit(labelled(factors), y, random=formula(terms), fixed=formula(fixed)).likelihood
    at = np.linspace(0.5, 1.5, len(terms) + 1)
    slopes, step = strata.value_and_gradient(at)[1], 1e-6
    moves = step * np.eye(at.size)
    differences = [
        (strata.value_and_gradient(at + move)[0] - strata.value_and_gradient(at - move)[0]) / (2 * step)
        for move in moves
    ]
    assert slopes == pytest.approx(differences, rel=1e-6, abs=1e-6)
    covariances = [
        (strata.beta_covariance(at + move) - strata.beta_covariance(at - move)) / (2 * step) for move in moves
    ]
    assert strata.covariance_slopes(at) == pytest.approx(np.array(covariances), abs=1e-8)
    # Expected information: half the Hessian where SS/df equals λ.
    expected = Strata(
        sum_squares=strata.df * strata.stratum_variances(at),
        df=strata.df,
        loadings=strata.loadings,
        constant=0.0,
        beta=strata.beta,
        fixed_loadings=strata.fixed_loadings,
        fixed_parts=strata.fixed_parts,
    )
    hessian = [
        (expected.value_and_gradient(at + move)[1] - expected.value_and_gradient(at - move)[1]) / (2 * step)
        for move in moves
    ]
    assert strata.information(at) == pytest.approx(np.array(hessian) / 2, rel=1e-5)


@REPEATABLE
@given(SEEDS, st.sampled_from(DESIGNS))
def test_the_strata_split_the_sum_of_squares(seed, design):
    n_levels, n_replicates, terms, _ = design
    factors = crossed(n_levels, n_replicates)
    y = drawn(seed, factors, terms, [1.0] * len(terms))
    strata = no_fixed(y, factors, n_levels, terms)
    assert strata.sum_squares.sum() == pytest.approx(np.sum((y - y.mean()) ** 2), rel=1e-12)
    assert strata.df.sum() == y.size - 1


@REPEATABLE
@given(SEEDS, st.integers(2, 6), st.integers(2, 6), st.integers(2, 4))
def test_the_anova_identities_hold_where_no_component_is_negative(seed, n_a, n_b, n_replicates):
    factors = crossed((n_a, n_b), n_replicates)
    y = drawn(seed, factors, ((0,), (1,), (0, 1)), (2.0, 2.0, 2.0))
    result = fit(labelled(factors), y, random="a + b + a:b")
    table = y.reshape(n_a, n_b, n_replicates)
    rows, columns, cells = table.mean(axis=(1, 2)), table.mean(axis=(0, 2)), table.mean(axis=2)
    ms_a, ms_b = n_b * n_replicates * rows.var(ddof=1), n_a * n_replicates * columns.var(ddof=1)
    inside = cells - rows[:, None] - columns + y.mean()
    ms_ab = n_replicates * np.sum(inside**2) / ((n_a - 1) * (n_b - 1))
    ms_e = np.sum((table - cells[:, :, None]) ** 2) / (n_a * n_b * (n_replicates - 1))
    by_anova = [
        (ms_a - ms_ab) / (n_b * n_replicates),
        (ms_b - ms_ab) / (n_a * n_replicates),
        (ms_ab - ms_e) / n_replicates,
    ]
    if min(by_anova) > 0:
        assert result.variances == pytest.approx(by_anova, rel=1e-9)
        assert result.residual == pytest.approx(ms_e, rel=1e-12)
        assert result.method == "balanced: closed form"
    else:
        assert result.boundary


@REPEATABLE
@given(SEEDS, st.sampled_from(DESIGNS[:4]))
def test_no_other_start_finds_a_lower_criterion(seed, design):
    n_levels, n_replicates, terms, _ = design
    factors = crossed(n_levels, n_replicates)
    strata = no_fixed(drawn(seed, factors, (), ()), factors, n_levels, terms)
    optimum = optimise_many(strata.loadings, strata.df, strata.sum_squares[None])[0][0]
    best = strata.value_and_gradient(optimum)[0]
    slopes = strata.value_and_gradient(optimum)[1]
    assert (slopes[optimum == 0.0] >= 0.0).all()
    assert np.abs(slopes * optimum).max() < 1e-6
    rng = np.random.default_rng(seed)
    for _ in range(4):
        start = np.exp(2 * rng.standard_normal(optimum.size)) * optimum[-1]
        result = minimize(
            strata.value_and_gradient,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * len(terms) + [(0.01 * optimum[-1], None)],
        )
        assert best <= result.fun + 1e-9


def test_many_at_once_are_the_same_as_one_by_one():
    factors = crossed((6, 3, 2), 2)
    terms = ((0,), (1,), (0, 1), (0, 2), (1, 2), (0, 1, 2))
    strata = no_fixed(drawn(3, factors, terms, [0.2] * 6), factors, (6, 3, 2), terms)
    squares = strata.sum_squares * np.random.default_rng(4).chisquare(3, (50, strata.df.size)) / 3
    together, n_steps, converged = optimise_many(strata.loadings, strata.df, squares)
    assert converged.all()
    assert (n_steps > 0).any()
    for row, parameters in zip(squares, together, strict=True):
        alone = optimise_many(strata.loadings, strata.df, row[None])[0][0]
        assert alone == pytest.approx(parameters, rel=1e-9, abs=1e-12)


# ------------------------------------------------------------------------------------------------ refusals


def test_only_complete_designs_with_equal_counts_are_balanced():
    factors = crossed((3, 2), 2)
    assert n_replicates(factors, (3, 2)) == 2
    assert n_replicates([codes[1:] for codes in factors], (3, 2)) is None
    moved = [codes.copy() for codes in factors]
    moved[1][0] = 1 - moved[1][0]
    assert n_replicates(moved, (3, 2)) is None
    assert n_replicates([np.array([0, 1]), np.array([0, 1])], (2, 2)) is None


def test_replicates_that_never_differ_are_refused():
    factors = crossed((3, 2), 2)
    y = factors[0] + 0.3 * factors[1] + 0.1
    with refused(CoreError, "no_residual_noise", match="residual sum of squares is 0 on 8 degrees"):
        no_fixed(y, factors, (3, 2), ((0,), (1,)))


def test_a_cell_term_without_replicates_leaves_no_residual():
    factors = crossed((3, 2))
    with refused(CoreError, "confounded", match="none is left for the residual"):
        no_fixed(np.arange(6.0) ** 2, factors, (3, 2), ((0,), (1,), (0, 1)))


def test_mean_squares_that_are_equal_but_for_rounding_give_an_exact_zero():
    # (0.1 + 0.2)/2 and 0.45/3 differ in the last bit.
    assert (0.1 + 0.2) / 2 != 0.45 / 3
    optima, _, _ = optimise_many(
        np.array([[3.0, 1.0], [0.0, 1.0]]), np.array([2.0, 3.0]), np.array([[0.1 + 0.2, 0.45]])
    )
    assert optima[0, 0] == 0.0
    assert optima[0, 1] == pytest.approx(0.15)
