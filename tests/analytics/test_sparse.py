"""Checked by the definition with V written out in full, by hand, and by lme4's stored fits."""

import csv
import gzip
import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.errors import CoreError
from analytics.programs import one_blas_thread
from analytics.reml import layout
from analytics.reml.criterion import Criterion
from analytics.reml.optimum import minimise
from tests.refusals import refused

TERMS = ((0,), (1,), (0, 1), (1, 2), (0, 2), (0, 1, 2))


@pytest.fixture(scope="module", autouse=True)
def _one_blas_thread():
    """The slow references are of small matrices, too."""
    with one_blas_thread():
        yield


def indicators(factors, term):
    rows = np.stack([factors[f] for f in term], axis=1)
    levels = np.unique(rows, axis=0)
    return (rows[:, None, :] == levels[None, :, :]).all(axis=2).astype(float)


def by_definition(y, factors, terms, design, theta):
    """−2 log restricted likelihood, its gradient and average information from V = Σ σ_t² Z_t Z_t' + σ² I."""
    parts = [indicators(factors, term) for term in terms]
    parts = [z @ z.T for z in parts] + [np.eye(y.size)]
    v = sum(variance * part for variance, part in zip(theta, parts, strict=True))
    inverse = np.linalg.inv(v)
    moment = design.T @ inverse @ design
    p = inverse - inverse @ design @ np.linalg.solve(moment, design.T @ inverse)
    determinants = np.linalg.slogdet(v)[1] + np.linalg.slogdet(moment)[1]
    value = determinants + y @ p @ y + (y.size - design.shape[1]) * np.log(2 * np.pi)
    gradient = np.array([np.trace(p @ part) - y @ p @ part @ p @ y for part in parts])
    vectors = np.column_stack([part @ p @ y for part in parts])
    return value, gradient, vectors.T @ p @ vectors / 2


def beta_by_definition(y, factors, terms, design, theta):
    v = theta[-1] * np.eye(y.size)
    for term, variance in zip(terms, theta, strict=False):
        z = indicators(factors, term)
        v += variance * z @ z.T
    moment = design.T @ np.linalg.solve(v, design)
    return np.linalg.solve(moment, design.T @ np.linalg.solve(v, y)), np.linalg.inv(moment)


def contrasts(codes, n_levels):
    return np.column_stack([np.ones(codes.size)] + [codes == level for level in range(1, n_levels)]).astype(
        float
    )


def random_case(seed, *, n_rows=None, covariate=False):
    """A random unbalanced design of three factors, every level present, with components, some of them 0."""
    rng = np.random.default_rng(seed)
    n_levels = tuple(int(n) for n in rng.integers(2, [9, 6, 5]))
    n_rows = n_rows or int(rng.integers(40, 90))
    factors = tuple(rng.permutation(np.arange(n_rows) * n // n_rows) for n in n_levels)
    terms = tuple(term for term in TERMS if rng.random() < 0.7) or ((0,),)
    design = contrasts(factors[2], n_levels[2])
    if covariate:
        design = np.column_stack([design, rng.normal(size=n_rows)])
    y = 5.0 + rng.normal(size=n_rows)
    for term in terms:
        z = indicators(factors, term)
        y += z @ rng.normal(size=z.shape[1]) * rng.choice([0.0, 0.3, 1.0])
    theta = rng.exponential(size=len(terms) + 1)
    theta[:-1] *= rng.random(len(terms)) < 0.8
    return (y, factors, n_levels, terms, design), theta


def criterion_of(case):
    """The criterion, or None where the random design is refused."""
    try:
        return Criterion(*case)
    except CoreError:
        return None


def relative(found, wanted):
    return np.max(np.abs(found - wanted)) / np.max(np.abs(wanted))


class TestByDefinition:
    @pytest.mark.parametrize("border", [256, 0], ids=["stored in full", "stored sparsely"])
    @pytest.mark.parametrize("covariate", [False, True])
    def test_value_gradient_and_information(self, monkeypatch, border, covariate):
        monkeypatch.setattr(layout, "WIDEST_FULL_BORDER", border)
        n_compared = 0
        for seed in range(40):
            case, theta = random_case(seed, covariate=covariate)
            criterion = criterion_of(case)
            if criterion is None:
                continue
            n_compared += 1
            y, factors, _, terms, design = case
            value, gradient, information = by_definition(y, factors, terms, design, theta)
            assert criterion.at(theta).value == pytest.approx(value, abs=1e-9)
            assert relative(criterion.at(theta).gradient, gradient) < 1e-9
            assert relative(criterion.at(theta).information, information) < 1e-9
            beta, covariance = beta_by_definition(y, factors, terms, design, theta)
            np.testing.assert_allclose(criterion.at(theta).beta, beta, rtol=1e-8, atol=1e-9)
            np.testing.assert_allclose(criterion.at(theta).beta_covariance, covariance, rtol=1e-8, atol=1e-10)
        assert n_compared > 30

    @given(seed=st.integers(0, 10**6))
    @settings(max_examples=40, deadline=None)
    def test_gradient_is_the_slope_of_the_value(self, seed):
        case, theta = random_case(seed)
        criterion = criterion_of(case)
        if criterion is None:
            return
        theta = theta + 0.05
        for t in range(theta.size):
            step = np.zeros_like(theta)
            step[t] = 1e-5 * theta[t]
            rise = criterion.at(theta + step).value - criterion.at(theta - step).value
            slope = criterion.at(theta).gradient[t]
            assert rise / (2 * step[t]) == pytest.approx(slope, rel=1e-5, abs=1e-5 / theta[t])

    def test_equal_blocks_are_one_pattern(self):
        """12 items on a 3 × 2 grid twice, of which three items lack a cell: two patterns."""
        grid = np.array(list(product(range(12), range(3), range(2), range(2))))
        grid = grid[~((grid[:, 0] < 3) & (grid[:, 1] == 1) & (grid[:, 2] == 0))]
        factors, terms = tuple(grid[:, :3].T), TERMS
        rng = np.random.default_rng(3)
        y, design = rng.normal(size=len(grid)), contrasts(factors[2], 2)
        criterion = Criterion(y, factors, (12, 3, 2), terms, design)
        assert criterion.method == "patterns"
        assert sum(batch.first_block.size for batch in criterion.layout.batches) == 2
        assert sum(batch.pattern_of.size for batch in criterion.layout.batches) == 12
        theta = np.array([0.7, 0.2, 0.3, 0.1, 0.0, 0.4, 0.5])
        value, gradient, information = by_definition(y, factors, terms, design, theta)
        assert criterion.at(theta).value == pytest.approx(value, abs=1e-9)
        assert relative(criterion.at(theta).gradient, gradient) < 1e-10
        assert relative(criterion.at(theta).information, information) < 1e-10

    @pytest.mark.parametrize("separate", [False, True], ids=["batch:cask", "cask names of their own"])
    def test_nested_factors_leave_no_border(self, separate):
        batch, cask = np.repeat(np.arange(6), 6), np.tile(np.repeat(np.arange(3), 2), 6)
        terms = ((0,), (1,)) if separate else ((0,), (0, 1))
        factors, n_levels = ((batch, batch * 3 + cask), (6, 18)) if separate else ((batch, cask), (6, 3))
        y, design = np.random.default_rng(2).normal(size=36), np.ones((36, 1))
        criterion = Criterion(y, factors, n_levels, terms, design)
        assert criterion.layout.n_border == 1
        theta = np.array([0.5, 1.5, 0.3])
        assert criterion.at(theta).value == pytest.approx(
            by_definition(y, factors, terms, design, theta)[0], abs=1e-10
        )

    def test_nested_blocks_of_one_shape_are_one_pattern(self):
        """Codes of the inner factor are its own in every block; only the shape counts. Three rows each."""
        batch, cask = np.repeat(np.arange(5), 12), np.repeat(np.arange(20), 3)
        third = np.tile(np.arange(3), 20)
        y, design = np.random.default_rng(2).normal(size=60), contrasts(third, 3)
        criterion = Criterion(y, (batch, cask), (5, 20), ((0,), (1,)), design)
        assert [batch.first_block.size for batch in criterion.layout.batches] == [1]


class TestByHand:
    def test_one_way_balanced(self):
        """Two columns of 3: MSB = 13.5, MSW = 1; σ² = 1, σ_b² = 12.5/3; λ = 13.5."""
        y, group = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), np.repeat([0, 1], 3)
        result, converged, _ = minimise(Criterion(y, (group,), (2,), ((0,),), np.ones((6, 1))))
        assert converged
        assert result.residual == pytest.approx(1.0, rel=1e-6)
        assert result.theta[0] == pytest.approx(12.5 / 3.0, rel=1e-6)
        assert result.beta == pytest.approx([3.5])
        assert result.beta_covariance[0, 0] == pytest.approx(13.5 / 6.0, rel=1e-6)
        # log|V| = 4·log 1 + 2·log 13.5; log(X'V⁻¹X) = log(6/13.5); y'Py = 4 + 1; n − p = 5.
        by_hand = 2 * np.log(13.5) + np.log(6 / 13.5) + 5 + 5 * np.log(2 * np.pi)
        assert result.value == pytest.approx(by_hand, abs=1e-9)

    def test_equal_means_give_exactly_zero(self):
        """MSB = 0: the optimum is σ_b² = 0, σ² = SS/(n − 1) = 4/5."""
        y, group = np.array([1.0, 2.0, 3.0, 1.0, 2.0, 3.0]), np.repeat([0, 1], 3)
        result, _, _ = minimise(Criterion(y, (group,), (2,), ((0,),), np.ones((6, 1))))
        assert result.theta[0] == 0.0
        assert result.gradient[0] > 0.0
        assert result.residual == pytest.approx(0.8, rel=1e-6)
        assert result.value == pytest.approx(
            5 * np.log(0.8) + np.log(6) + 5 + 5 * np.log(2 * np.pi), abs=1e-9
        )


class TestProperties:
    @given(seed=st.integers(0, 10**6))
    @settings(max_examples=25, deadline=None)
    def test_order_of_rows_and_names_of_levels_change_nothing(self, seed):
        (y, factors, n_levels, terms, design), theta = random_case(seed)
        criterion = criterion_of((y, factors, n_levels, terms, design))
        if criterion is None:
            return
        rng = np.random.default_rng(seed)
        rows = rng.permutation(y.size)
        names = [rng.permutation(n + 3) for n in n_levels]
        renamed = tuple(name[factor][rows] for name, factor in zip(names, factors, strict=True))
        other = Criterion(y[rows], renamed, [n + 3 for n in n_levels], terms, design[rows])
        first, second = criterion.at(theta), other.at(theta)
        assert second.value == pytest.approx(first.value, rel=1e-12, abs=1e-9)
        assert relative(second.gradient, first.gradient) < 1e-9

    @given(seed=st.integers(0, 10**6), scale=st.sampled_from([1e-4, 0.3, 1e5]))
    @settings(max_examples=25, deadline=None)
    def test_scale_equivariance(self, seed, scale):
        case, _ = random_case(seed)
        criterion = criterion_of(case)
        if criterion is None:
            return
        result, other = (minimise(one)[0] for one in (criterion, criterion.with_outcome(scale * case[0])))
        n_free = case[0].size - case[4].shape[1]
        assert other.value == pytest.approx(result.value + 2 * n_free * np.log(scale), abs=1e-7)
        np.testing.assert_allclose(
            other.theta[:-1], scale**2 * result.theta[:-1], rtol=1e-4, atol=1e-6 * scale**2
        )
        np.testing.assert_array_equal(other.theta == 0.0, result.theta == 0.0)

    @given(seed=st.integers(0, 10**6))
    @settings(max_examples=40, deadline=None)
    def test_the_optimum_is_one(self, seed):
        """No component's derivative points down, off the boundary it is 0, and no neighbour is lower."""
        case, _ = random_case(seed)
        criterion = criterion_of(case)
        if criterion is None:
            return
        result, converged, _ = minimise(criterion)
        assert converged
        theta = result.theta
        slope = result.gradient * theta.sum()
        assert np.all(slope > -1e-3)
        assert np.all(np.abs(slope[theta > 0.0]) < 1e-3)
        rng = np.random.default_rng(seed)
        for _ in range(5):
            near = theta * np.exp(0.02 * rng.normal(size=theta.size)) + 1e-3 * theta.sum() * (theta == 0.0)
            assert criterion.at(near).value >= result.value - 1e-9

    def test_a_far_origin_costs_no_digits(self):
        (y, *rest), _ = random_case(11)
        near, far = (minimise(Criterion(one, *rest))[0] for one in (y, y + 1e6))
        assert far.value == pytest.approx(near.value, abs=1e-5)
        assert far.beta[0] == pytest.approx(near.beta[0] + 1e6, abs=1e-5)

    def test_another_outcome_is_a_fresh_criterion(self):
        (y, *rest), theta = random_case(5)
        other = np.random.default_rng(1).normal(size=y.size)
        criterion = Criterion(y, *rest)
        replaced, fresh = criterion.with_outcome(other).at(theta), Criterion(other, *rest).at(theta)
        assert replaced.value == fresh.value
        np.testing.assert_array_equal(replaced.gradient, fresh.gradient)
        assert criterion.at(theta).value == Criterion(y, *rest).at(theta).value

    def test_both_stores_end_at_one_optimum(self, monkeypatch):
        case, _ = random_case(21, n_rows=300)
        full, _, _ = minimise(Criterion(*case))
        monkeypatch.setattr(layout, "WIDEST_FULL_BORDER", 0)
        sparsely, _, _ = minimise(Criterion(*case))
        assert (full.criterion.method, sparsely.criterion.method) == ("patterns", "blocked")
        assert sparsely.value == pytest.approx(full.value, abs=1e-9)
        np.testing.assert_allclose(sparsely.theta[:-1], full.theta[:-1], rtol=1e-5, atol=1e-9)

    @pytest.mark.parametrize("seed", range(6))
    def test_far_starts_end_at_one_optimum(self, seed):
        case, _ = random_case(seed + 30, n_rows=200)
        criterion, rng = Criterion(*case), np.random.default_rng(seed)
        result, _, _ = minimise(criterion)
        for _ in range(5):
            start = np.exp(3.0 * rng.normal(size=criterion.n_terms + 1))
            other, _, _ = minimise(criterion, start=start)
            assert other.value == pytest.approx(result.value, abs=1e-8)
            np.testing.assert_allclose(other.theta[:-1], result.theta[:-1], rtol=1e-9)


ITEM, PROMPT, TEMP, JUDGE = "item", "prompt", "temp", "judge"
CROSSED = (
    (ITEM,),
    (PROMPT,),
    (ITEM, PROMPT),
    (ITEM, TEMP),
    (PROMPT, TEMP),
    (ITEM, JUDGE),
    (PROMPT, JUDGE),
    (ITEM, PROMPT, JUDGE, TEMP),
)
FITS = {
    "unbalanced40": ("score", CROSSED, (TEMP, JUDGE), "lmer-tight"),
    "boundary30": ("score", CROSSED, (TEMP, JUDGE), "lmer-tight"),
    "crossed141": ("score", CROSSED, (TEMP, JUDGE), "exact"),
    "tbcore": ("score", (("agent",), ("task",), ("agent", "task")), (), "lmer-tight"),
    "Pastes": ("strength", (("batch",), ("sample",)), (), "reml"),
    "Penicillin": ("diameter", (("plate",), ("sample",)), (), "reml"),
    "InstEval": ("y", (("s",), ("d",), ("dept", "service")), (), "reml"),
}
LARGEST = "InstEval"


def read(real_data, name):
    outcome, random, fixed, kind = FITS[name]
    with gzip.open(real_data / "reference" / f"{name}.csv.gz", "rt", newline="") as lines:
        rows = list(csv.DictReader(lines))
    columns = sorted({column for term in random for column in term} | set(fixed))
    coded = [np.unique([row[column] for row in rows], return_inverse=True) for column in columns]
    n_levels = [levels.size for levels, _ in coded]
    factors = tuple(codes for _, codes in coded)
    design = [np.ones((len(rows), 1))]
    design += [contrasts(factors[columns.index(f)], n_levels[columns.index(f)])[:, 1:] for f in fixed]
    terms = tuple(tuple(columns.index(column) for column in term) for term in random)
    y = np.array([float(row[outcome]) for row in rows])
    return (y, factors, n_levels, terms, np.hstack(design)), stored(real_data, name, kind)


def stored(real_data, name, kind):
    """Criterion, components in the order of the terms, and fixed effects where given."""
    fit = json.loads((real_data / "reference" / f"{name}.{kind}.json").read_text())
    components = fit.get("vcov") or {part["group"]: part["vcov"] for part in fit["components"]}
    by_factors = {frozenset(group.split(":")): variance for group, variance in components.items()}
    variances = [by_factors[frozenset(term)] for term in FITS[name][1]]
    criterion = fit.get("deviance_or_REMLcrit", fit.get("REMLcrit"))
    return criterion, np.array([*variances, by_factors[frozenset(["Residual"])]]), fit.get("fixef")


class TestAgainstLme4:
    @pytest.mark.parametrize(
        "name", [*sorted(FITS.keys() - {LARGEST}), pytest.param(LARGEST, marks=pytest.mark.slow(each=True))]
    )
    def test_stored_fit(self, real_data, name):
        case, (criterion, components, fixed) = read(real_data, name)
        result, converged, _ = minimise(Criterion(*case))
        estimates = result.theta
        small = components < 0.01 * components.sum()
        assert converged
        assert result.value <= criterion + 1e-4
        np.testing.assert_array_equal(estimates == 0.0, components == 0.0)
        np.testing.assert_allclose(estimates[~small], components[~small], rtol=1e-4)
        np.testing.assert_allclose(estimates[small], components[small], rtol=5e-3)
        if fixed:
            np.testing.assert_allclose(result.beta, list(fixed.values()), atol=1e-5)

    def test_two_large_factors_are_blocked_by_the_largest(self, real_data):
        case, _ = read(real_data, "InstEval")
        criterion = Criterion(*case)
        assert criterion.method == "blocked"
        assert criterion.layout.n_border == 1128 + 28 + 1


class TestRefusals:
    y = np.random.default_rng(4).normal(size=24)
    a, b = np.repeat(np.arange(6), 4), np.tile(np.arange(4), 6)
    ones = np.ones((24, 1))

    def refusal(
        self, *, y=None, factors=None, n_levels=(6, 4), terms=((0,), (1,)), design=None, code="not_estimable"
    ):
        with refused(CoreError, code) as raised:
            minimise(
                Criterion(
                    self.y if y is None else y,
                    factors or (self.a, self.b),
                    n_levels,
                    terms,
                    self.ones if design is None else design,
                )
            )
        return str(raised.value)

    def test_one_level(self):
        assert self.refusal(factors=(self.a, 0 * self.b)) == "term (1,) has only one level"

    def test_a_level_for_each_row(self):
        assert "(0, 1) has one row per level (24)" in self.refusal(terms=((0,), (0, 1)))

    def test_a_factor_twice(self):
        assert (
            self.refusal(factors=(self.a, 5 - self.a), n_levels=(6, 6))
            == "terms (0,) and (1,) are the same: 6 levels each"
        )

    def test_random_and_fixed(self):
        assert self.refusal(design=contrasts(self.b, 4)) == "the fixed effects span the 4 levels of term (1,)"

    def test_more_fixed_effects_than_rows(self):
        assert self.refusal(design=np.eye(24)) == "24 fixed effects need more than 24 rows"

    @pytest.mark.parametrize("level", [0.0, 0.1, 1e9])
    def test_constant_outcome(self, level):
        assert "all 24 outcomes are equal after the fixed effects" in self.refusal(y=np.full(24, level))

    def test_replicates_without_noise(self):
        refusal = self.refusal(y=np.repeat(np.random.default_rng(0).normal(size=6), 4), terms=((0,),))
        assert "do not differ within the 6 cells" in refusal

    def test_outcome_reproduced_by_the_terms(self):
        """Rows of one level differ only by the fixed covariate: the residual has no lower bound."""
        y = np.repeat([1.0, 5.0, 2.0, 7.0, 3.0, 4.0], 4) + 0.5 * self.b
        assert "the residual tends to 0" in self.refusal(
            y=y, terms=((0,),), design=np.column_stack([self.ones, self.b])
        )

    def test_outcome_not_finite(self):
        assert "not finite" in self.refusal(y=np.where(self.a == 0, np.nan, self.y), code="argument")

    @pytest.mark.parametrize("change", [{"n_levels": (5, 4)}, {"terms": ((0,), (2,))}, {"terms": ()}])
    def test_arguments(self, change):
        assert self.refusal(**change, code="argument")

    @pytest.mark.parametrize("start", [[1.0, 1.0], [1.0, -1.0, 1.0], [1.0, 1.0, 0.0], [1.0, np.nan, 1.0]])
    def test_start(self, start):
        with refused(CoreError, "argument"):
            minimise(Criterion(self.y, (self.a, self.b), (6, 4), ((0,), (1,)), self.ones), start=start)
