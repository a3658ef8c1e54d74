"""`fit` against lme4 on reference data, its invariances, its refusals, and the check of an optimum."""

import csv
import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics import reml
from analytics.errors import CoreError
from analytics.reml import FitRefused, fit
from tests.analytics.optimum_check import check_optimum, value_and_gradient
from tests.refusals import refused
from tests.tables import columns_of

REPEATABLE = settings(derandomize=True, deadline=None, max_examples=25)
CROSSED = (
    "item + prompt + item:prompt + item:temp + prompt:temp + item:judge + prompt:judge"
    " + item:prompt:judge:temp"
)
# name, outcome, random, fixed, file with the reference's components
REFERENCES = [
    ("crossed141", "score", CROSSED, "temp + judge", "crossed141.exact"),
    ("unbalanced40", "score", CROSSED, "temp + judge", "unbalanced40.lmer-tight"),
    ("boundary30", "score", CROSSED, "temp + judge", "boundary30.lmer-tight"),
    ("tbcore", "score", "agent + task + agent:task", "", "tbcore.lmer-tight"),
    ("Penicillin", "diameter", "plate + sample", "", "Penicillin.reml"),
    ("Pastes", "strength", "batch + sample", "", "Pastes.reml"),
    pytest.param(
        *("InstEval", "y", "s + d + dept:service", "", "InstEval.reml"), marks=pytest.mark.slow(each=True)
    ),
]


def reference_fit(real_rows, name, outcome, random, fixed):
    columns = columns_of(real_rows(f"reference/{name}"))
    return fit(columns, [float(value) for value in columns[outcome]], random=random, fixed=fixed)


def reference(real_data, name):
    """Components by group, criterion, and lme4's fixed effects with their standard errors where stored."""
    stored = json.loads((real_data / "reference" / f"{name}.json").read_text())
    components = stored.get("vcov") or {part["group"]: part["vcov"] for part in stored["components"]}
    criterion = stored.get("REMLcrit", stored.get("deviance_or_REMLcrit"))
    return components, criterion, stored.get("fixef", {}), stored.get("fixef_se", {})


# ---------------------------------------------------------------------------------------- foreign program


@pytest.mark.parametrize(("name", "outcome", "random", "fixed", "file"), REFERENCES)
def test_criterion_and_components_of_lme4(real_rows, real_data, name, outcome, random, fixed, file):
    result = reference_fit(real_rows, name, outcome, random, fixed)
    components, criterion, effects, errors = reference(real_data, file)
    assert result.converged
    assert result.criterion <= criterion + 1e-4
    total = sum(components.values())
    found = {frozenset(name.split(":")): one for name, one in result.components.items()}
    found[frozenset({"Residual"})] = result.residual
    for group, variance in components.items():
        tolerance = 1e-4 if variance >= 0.01 * total else 5e-3
        assert found[frozenset(group.split(":"))] == pytest.approx(variance, rel=tolerance, abs=0.0), group
    if effects:
        assert result.beta == pytest.approx(list(effects.values()), rel=1e-6)
        assert np.sqrt(np.diag(result.beta_covariance)) == pytest.approx(list(errors.values()), rel=1e-4)


def test_both_zeros_of_boundary30_are_exact_and_named(real_rows):
    result = reference_fit(real_rows, "boundary30", "score", CROSSED, "temp + judge")
    assert result.boundary == ("item:temp", "prompt:temp")
    assert result.method == "balanced: bounded optimum"
    assert (result.components["item:temp"], result.components["prompt:temp"]) == (0.0, 0.0)


def test_dyestuff2_has_no_batch_variance(real_data):
    # lme4 1.1-31: batch 0, residual 13.8063, criterion 161.8283.
    with (real_data / "reference" / "Dyestuff2.csv").open(newline="") as lines:
        columns = columns_of(list(csv.DictReader(lines)))
    result = fit(columns, [float(value) for value in columns["Yield"]], random="Batch")
    assert (result.components, result.boundary) == ({"Batch": 0.0}, ("Batch",))
    assert result.residual == pytest.approx(13.8063, abs=5e-5)
    assert result.criterion == pytest.approx(161.8283, abs=5e-5)


def test_nested_levels_under_names_of_their_own_or_not_are_one_model(real_rows, real_data):
    columns = columns_of(real_rows("reference/Pastes"))
    y = [float(value) for value in columns["strength"]]
    nested, named = fit(columns, y, random="batch/cask"), fit(columns, y, random="batch + sample")
    assert (nested.method, named.method) == ("balanced: closed form", "unbalanced: patterns")
    assert nested.criterion == pytest.approx(named.criterion, abs=1e-8)
    assert nested.parameters == pytest.approx(named.parameters, rel=1e-5)


def test_fixed_effects_are_named_by_level(real_rows):
    result = reference_fit(real_rows, "boundary30", "score", CROSSED, "temp + judge")
    assert list(result.fixed) == ["(Intercept)", "temp[t2]", "temp[t3]", "judge[j2]", "judge[j3]"]


# --------------------------------------------------------------------------------------------- properties


def design(seed, n_rows_left_out=0):
    """Item × prompt × judge with two replicates; without the first so many rows of a random order."""
    rng = np.random.default_rng(seed)
    item, prompt, judge, _ = (axis.ravel() for axis in np.meshgrid(range(6), range(3), range(2), range(2)))
    y = (
        rng.standard_normal(6)[item]
        + 0.5 * rng.standard_normal(3)[prompt]
        + rng.standard_normal((6, 3))[item, prompt]
        + 0.3 * judge
        + 0.5 * rng.standard_normal(item.size)
    )
    kept = np.sort(rng.permutation(item.size)[n_rows_left_out:])
    return {"item": item[kept], "prompt": prompt[kept], "judge": judge[kept]}, y[kept]


def small_fit(columns, y, random="item + prompt + item:prompt"):
    return fit(columns, y, random=random, fixed="judge")


@REPEATABLE
@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 5]))
def test_the_order_of_rows_does_not_matter(seed, n_left_out):
    columns, y = design(seed, n_left_out)
    order = np.random.default_rng(seed).permutation(y.size)
    turned = small_fit({name: codes[order] for name, codes in columns.items()}, y[order])
    result = small_fit(columns, y)
    assert turned.criterion == pytest.approx(result.criterion, abs=1e-8)
    assert turned.parameters == pytest.approx(result.parameters, rel=1e-4, abs=1e-7)
    assert turned.boundary == result.boundary


@REPEATABLE
@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 5]))
def test_the_names_of_levels_do_not_matter(seed, n_left_out):
    columns, y = design(seed, n_left_out)
    rng = np.random.default_rng(seed)
    renamed = {name: [f"x{i}" for i in rng.permutation(9)[codes]] for name, codes in columns.items()}
    result, other = small_fit(columns, y), small_fit(renamed, y)
    assert other.criterion == pytest.approx(result.criterion, abs=1e-8)
    assert other.parameters == pytest.approx(result.parameters, rel=1e-4, abs=1e-7)
    assert other.contrast @ other.beta == pytest.approx(result.contrast @ result.beta, abs=1e-6)


@REPEATABLE
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0, 5]),
    st.sampled_from([1e-3, 0.5, 40.0]),
    st.sampled_from([-100.0, 0.0, 3.0]),
)
def test_components_scale_with_the_square_of_the_outcome(seed, n_left_out, factor, shift):
    columns, y = design(seed, n_left_out)
    result, scaled = small_fit(columns, y), small_fit(columns, factor * y + shift)
    assert scaled.parameters == pytest.approx(factor**2 * result.parameters, rel=1e-4, abs=1e-7 * factor**2)
    change = 2 * (y.size - 2) * np.log(factor)
    assert scaled.criterion == pytest.approx(result.criterion + change, abs=1e-7)
    assert scaled.beta == pytest.approx(factor * result.beta + [shift, 0.0], abs=1e-6 * max(factor, 1.0))


@REPEATABLE
@given(st.integers(0, 2**32 - 1))
def test_both_methods_find_the_same_optimum(seed):
    # The same rows, the balanced design written so that the method for unbalanced ones is taken: the
    # interaction as a column of its own makes the grid of the named factors incomplete.
    columns, y = design(seed)
    columns["cell"] = [f"{i}/{p}" for i, p in zip(columns["item"], columns["prompt"], strict=True)]
    result, other = small_fit(columns, y), small_fit(columns, y, "item + prompt + cell")
    assert (result.method[:9], other.method[:11]) == ("balanced:", "unbalanced:")
    assert other.criterion == pytest.approx(result.criterion, abs=1e-8)
    assert other.parameters == pytest.approx(result.parameters, rel=1e-4, abs=1e-6)
    assert other.beta_covariance == pytest.approx(result.beta_covariance, rel=1e-4)


def test_terms_are_named_as_typed():
    columns, y = design(1)
    result = small_fit(columns, y, "prompt + prompt:item + item")
    assert list(result.components) == ["prompt", "prompt:item", "item"]


def test_numbers_are_labels_in_the_order_of_their_text():
    y = [1.0, 2.0, 4.0, 3.0, 7.0, 5.0, 6.5, 3.5, 2.5]
    result = fit({"g": [1, 2, 3] * 3, "h": [2, 2, 2, 10, 10, 10, 1, 1, 1]}, y, random="g", fixed="h")
    assert list(result.fixed) == ["(Intercept)", "h[10]", "h[2]"]
    assert result.fixed["(Intercept)"] == pytest.approx(np.mean([6.5, 3.5, 2.5]))


# ------------------------------------------------------------------------------------- is it an optimum


@pytest.mark.parametrize("n_left_out", [0, 5])
def test_an_optimum_passes_its_check(n_left_out):
    result = small_fit(*design(3, n_left_out))
    check = check_optimum(result, np.random.default_rng(0))
    assert check.passed
    assert check.smallest_curvature > 0.1
    assert abs(check.best_restart) < 1e-6


@pytest.mark.parametrize("factor", [1.02, 0.8])
def test_a_neighbour_of_the_optimum_does_not(factor):
    result = small_fit(*design(3))
    moved = dataclasses.replace(result, variances=factor * result.variances)
    moved = dataclasses.replace(moved, criterion=value_and_gradient(result, moved.parameters)[0])
    check = check_optimum(moved, np.random.default_rng(0))
    assert not check.passed
    assert check.largest_free_slope > 1e-3
    assert check.best_restart < 0.0


def test_a_false_zero_is_found_out():
    result = small_fit(*design(3))
    moved = dataclasses.replace(result, variances=result.variances * [0.0, 1.0, 1.0])
    check = check_optimum(moved, np.random.default_rng(0), n_restarts=0)
    assert check.smallest_boundary_slope < 0.0
    assert not check.passed


def test_the_check_of_boundary30(real_rows):
    result = reference_fit(real_rows, "boundary30", "score", CROSSED, "temp + judge")
    check = check_optimum(result, np.random.default_rng(0))
    assert check.passed
    assert check.smallest_boundary_slope > 0.0


# ------------------------------------------------------------------------------------------------ refusals

Y = [1.0, 2.0, 4.0, 3.0, 5.0, 9.0, 2.0, 6.0]
GRID = {
    "a": list("wwxxyyzz"),
    "b": list("klklklkl"),
    "one": list("oooooooo"),
    "same": list("11223344"),
    "half": list("ppppqqqq"),
    "gap": ["r", "r", "", "s", "r", "r", "s", "s"],
    "row": list("ABCDEFGH"),
    "odd": list("klkkklkl"),
    "deep": list("12345678"),
}


@pytest.mark.parametrize(
    ("random", "fixed", "refusal", "code", "message"),
    [
        ("", "b", FitRefused, "no_random_term", "no random term"),
        ("one", "", FitRefused, "one_level", "random term one: one has one level only .'o'."),
        ("a + a:one", "", FitRefused, "one_level", "random term a:one: one has one level only"),
        ("a", "one", FitRefused, "one_level", "fixed term one"),
        ("a + b + a:b", "", FitRefused, "pooled", r"a:b: one row for each of its 8 levels.*one \(pooled\)"),
        ("row", "", FitRefused, "pooled", "row: one row for each of its 8 levels"),
        ("half + row", "", FitRefused, "pooled", "row: one row"),
        ("a + same", "", FitRefused, "confounded", "a and same group the rows alike"),
        ("a + half:a", "", FitRefused, "confounded", "a and half:a group the rows alike"),
        (
            "a + b",
            "b",
            FitRefused,
            "confounded",
            "b is random, and the fixed terms tell its levels apart already",
        ),
        (
            "a + half",
            "a",
            FitRefused,
            "confounded",
            "a is random, and the fixed terms tell its levels apart already",
        ),
        ("odd + half", "a", FitRefused, "confounded", "half is random"),
        (
            "odd",
            "a + half",
            FitRefused,
            "rank_deficient",
            r"fixed half\[q\] is a combination of the columns before it",
        ),
        ("b", "a:half", FitRefused, "margin_missing", "fixed a:half needs fixed half"),
        (
            "a",
            "deep",
            FitRefused,
            "more_parameters_than_rows",
            "8 fixed effects and 2 components from 8 rows",
        ),
        ("gap", "", FitRefused, "label_missing", "row 2 has no label in column gap"),
    ],
)
def test_unidentifiable_designs_are_refused_with_term_and_reason(random, fixed, refusal, code, message):
    with refused(refusal, code, match=message):
        fit(GRID, Y, random=random, fixed=fixed)


@pytest.mark.parametrize(
    ("outcome", "refusal", "code", "message"),
    [
        ([2.0] * 8, FitRefused, "outcome_constant", "all 8 outcomes are 2"),
        ([0.1 + 0.2, 0.3] * 4, FitRefused, "outcome_constant", "all 8 outcomes are 0.3"),
        ([*Y[:3], float("nan"), *Y[4:]], FitRefused, "outcome_missing", "row 3: an outcome of nan"),
        ([*Y[:7], float("inf")], FitRefused, "outcome_missing", "row 7"),
        (Y[:7], FitRefused, "lengths_differ", "column a has 8 rows, the outcome 7"),
        (
            [1, 1, 2, 2, 3, 3, 5, 5],
            CoreError,
            "no_residual_noise",
            "residual sum of squares is 0 on 4 degrees",
        ),
    ],
)
def test_outcomes_without_an_answer_are_refused(outcome, refusal, code, message):
    with refused(refusal, code, match=message):
        fit(GRID, outcome, random="a")


def test_rows_that_never_differ_within_a_term_are_refused_in_unbalanced_designs_too():
    with refused(FitRefused, "no_residual_noise", match="odd:half: rows of one level never differ"):
        fit(GRID, [1, 2, 1, 1, 3, 5, 3, 5], random="half + odd:half")


def test_fixed_effects_that_would_fill_the_memory_are_refused(monkeypatch):
    columns = {"a": [0, 0, 0, 1, 1, 1, 2, 2, 2, 3], "b": [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]}
    y = [1, 2, 4, 3, 1, 5, 2, 2, 6, 1]
    monkeypatch.setattr(reml, "FEW_FIXED", 2)
    monkeypatch.setattr(reml, "MAX_FIXED_NUMBERS", 29)
    message = "3 fixed effects in 10 rows that are not balanced; at most 2 are fitted"
    with refused(FitRefused, "too_many_fixed_effects", match=message):
        fit(columns, y, random="a", fixed="b")
    monkeypatch.setattr(reml, "MAX_FIXED_NUMBERS", 30)
    assert len(fit(columns, y, random="a", fixed="b").fixed) == 3


def test_outcomes_are_one_column():
    with refused(FitRefused, "lengths_differ", match=r"shape \(2, 4\)"):
        fit(GRID, np.reshape(Y, (2, 4)), random="a")
