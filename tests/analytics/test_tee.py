import csv
import gzip
import json
import math

import numpy as np
import pytest
from scipy.stats import t

from analytics.errors import CoreError
from analytics.tee import (
    Declaration,
    DStudyRefused,
    Reading,
    by_stratum,
    interventions,
    paragraph,
    project,
    read_components,
    total_error,
    with_residual,
)
from analytics.tee.report import SCORES
from analytics.tee.total_error import naive_standard_error
from tests.analytics.factorial import factorial, kept
from tests.refusals import refused

DECLARED = Declaration("score", "item", "prompt", "judge", "temperature")
INCLUDE = Reading(sensitivity="include")
FINITE = Reading(estimand="finite")


@pytest.fixture(scope="module")
def study():
    return total_error(factorial(), DECLARED)


@pytest.fixture(scope="module")
def crossed141(real_data):
    with gzip.open(real_data / "reference" / "crossed141.csv.gz", "rt", newline="") as lines:
        rows = list(csv.DictReader(lines))
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    columns["score"] = columns["score"].astype(float)
    return columns, json.loads((real_data / "reference" / "crossed141.exact.json").read_text())


# ------------------------------------------------------------------------------------ components and error


def test_against_the_exact_fit(crossed141):
    """The closed form in the reference file, projected by hand; the mean is that of all outcomes."""
    columns, exact = crossed141
    result = total_error(columns, Declaration("score", "item", "prompt", "judge", "temp", "rep"))
    sizes = {"item": 141, "prompt": 5, "judge": 3, "temp": 3}
    variance = 0.0
    for term, value in exact["vcov"].items():
        divisor = exact["rows"] if term == "Residual" else math.prod(sizes[word] for word in term.split(":"))
        named = term.replace("temp", "temperature")
        entry = next(e for e in result.components.entries if set(e.name.split(":")) == set(named.split(":")))
        assert entry.variance == pytest.approx(value, rel=1e-6)
        variance += value / divisor
    assert result.se == pytest.approx(math.sqrt(variance), rel=1e-6)
    assert result.projection.se == pytest.approx(result.se, rel=1e-9)
    assert result.theta == pytest.approx(columns["score"].mean(), rel=1e-9)


def test_the_fits_error_is_the_projections_where_balanced(study):
    assert study.se == pytest.approx(study.projection.se, rel=1e-8)


def test_sensitivities_are_population_variances(study):
    """In a balanced design fitted effects are differences of marginal means."""
    columns = factorial()
    for word in ("judge", "temperature"):
        means = [columns["score"][columns[word] == level].mean() for level in np.unique(columns[word])]
        entry = next(e for e in study.components.entries if e.name == f"{word} (fixed)")
        assert entry.variance == pytest.approx(np.mean((means - np.mean(means)) ** 2), rel=1e-8)


def test_naive_error_by_hand():
    items = np.array(["a", "a", "b", "c", "c", "c"])
    outcome = np.array([1.0, 3.0, 4.0, 0.0, 0.0, 3.0])
    assert naive_standard_error(items, outcome) == pytest.approx(
        math.sqrt(((2 - 7 / 3) ** 2 + (4 - 7 / 3) ** 2 + (1 - 7 / 3) ** 2) / 2 / 3)
    )


def changes_of(study):
    return interventions(study.components, study.layout.design, study.reading)


def test_tables(study):
    assert math.fsum(row.share_of_mean or 0.0 for row in study.table()) == pytest.approx(1.0)
    assert {row.name for row in study.table() if row.tier == 2} == {"judge (fixed)", "temperature (fixed)"}
    assert {change.name for change in changes_of(study)} >= {"double items", "single judge"}


def test_order_of_rows_and_names_of_levels_change_nothing(study):
    columns = factorial()
    order = np.random.default_rng(3).permutation(len(columns["score"]))
    renamed = kept(columns, order) | {"judge": np.array(["z", "a", "k"])[columns["judge"][order]]}
    again = total_error(renamed, DECLARED)
    assert again.se == pytest.approx(study.se, rel=1e-8)
    assert again.theta == pytest.approx(study.theta, rel=1e-8)
    assert project(again.components, again.layout.design, INCLUDE).se == pytest.approx(
        project(study.components, study.layout.design, INCLUDE).se, rel=1e-8
    )


def test_missing_cells():
    columns = factorial()
    rows = np.random.default_rng(4).permutation(len(columns["score"]))[:600]
    result = total_error(kept(columns, rows), DECLARED)
    contrast, covariance = result.fit.contrast, result.fit.beta_covariance
    assert result.se == pytest.approx(math.sqrt(contrast @ covariance @ contrast))
    assert not any("cells are missing" in note for note in result.notes)
    projected = total_error(kept(columns, rows), DECLARED, INCLUDE)
    assert any("cells are missing" in note for note in projected.notes)


def test_categories_are_fixed_unless_said():
    """Sampled, with equal categories, is the fit's own variance; fixed divides the category by N."""
    columns = factorial(n_items=24)
    declared = Declaration("score", "item", "prompt", "judge", "temperature", category="category")
    fixed = total_error(columns, declared)
    sampled = total_error(columns, declared, Reading(categories="sampled"))
    category = fixed.components.entries[0]
    assert category.name == "category"
    assert fixed.projection.contributions["category"] == pytest.approx(category.variance / 24)
    assert sampled.se == pytest.approx(sampled.projection.se, rel=1e-8)
    assert sampled.se**2 - fixed.se**2 == pytest.approx(category.variance * (1 / 4 - 1 / 24), rel=1e-6)


def test_selected_items_have_no_domain():
    declared = Declaration("score", "item", "prompt", "judge", "temperature", items="selected")
    with pytest.raises(DStudyRefused, match="12 items were selected"):
        total_error(factorial(), declared)
    assert total_error(factorial(), declared, FINITE).se < total_error(factorial(), DECLARED).se


def test_one_outcome_in_a_cell():
    result = total_error(factorial(n_replicates=1), DECLARED, FINITE)
    assert result.components.pooled
    assert any(note.startswith("not measured: replicate noise") for note in result.notes)
    assert any("upper bound" in note for note in result.notes)
    assert {c.name: c.variance for c in changes_of(result)}["+5 replicates"] is None


# ------------------------------------------------------------------------------------------------ intervals


def test_interval_of_five_prompts_is_satterthwaites(study):
    """By definition: ν = (Σ aλ)²/Σ (aλ)²/df over the strata that hold a random facet, from mean squares."""
    result = study.interval()
    assert study.reading.interval_name == "confidence interval"
    assert result.method == "satterthwaite"
    y = factorial()["score"].reshape(12, 5, 3, 2, 2)
    by_both = y.mean(axis=(2, 3, 4))
    item, prompt = by_both.mean(axis=1), by_both.mean(axis=0)
    interaction = by_both - item[:, None] - prompt[None, :] + by_both.mean()
    parts = [
        (item.var(ddof=1) / 12, 11),
        (prompt.var(ddof=1) / 5, 4),
        (-(interaction**2).sum() / 44 / 60, 44),
    ]
    variance = sum(part for part, _ in parts)
    nu = variance**2 / sum(part**2 / df for part, df in parts)
    assert study.se**2 == pytest.approx(variance, rel=1e-8)
    assert result.df == pytest.approx(nu, rel=1e-3)
    assert result.upper - result.lower == pytest.approx(2 * t.ppf(0.975, result.df) * study.se, rel=1e-10)


def test_few_prompts_are_conservative():
    result = total_error(factorial(n_prompts=3), DECLARED).interval(0.9)
    assert (result.method, result.df) == ("conservative", 2.0)
    assert result.upper - result.estimate == pytest.approx(t.ppf(0.95, 2) * result.standard_error)


def test_counting_panels_widens_and_renames():
    result = total_error(factorial(), DECLARED, INCLUDE)
    assert result.reading.interval_name == "design-sensitivity interval"
    assert result.se > total_error(factorial(), DECLARED).se
    random = result.se**2 - sum(
        result.projection.contributions[f"{w} (fixed)"] for w in ("judge", "temperature")
    )
    plain = total_error(factorial(), DECLARED).interval()
    assert result.interval().df == pytest.approx(plain.df * (result.se**2 / random) ** 2, rel=1e-6)


def test_random_judges_have_their_own_degrees():
    result = total_error(factorial(), DECLARED, Reading(judges="random")).interval()
    assert (result.method, result.df) == ("conservative", 2.0)


def test_finite_interval_leaves_items_out():
    result = total_error(factorial(), DECLARED, FINITE)
    assert result.interval().df < result.layout.levels["N"]
    assert result.interval().method == "satterthwaite"


# -------------------------------------------------------------------------------------- naive against TEE


def test_published_width_ratio(real_data):
    """TEE, Table 14, safety: naive width 57% of that at V = M = H = 1, R = 8, under `exclude`.

    E s²/N is the sum of the components that hold items, over N; the ratio of roots is near the mean ratio.
    """
    facets = {"N": "item_id", "V": "variant_id", "M": "judge_model", "H": "temperature"}
    result = read_components(real_data / "published" / "tee_safety_components.csv", facets)
    alone = project(result, {"N": 141, "V": 1, "M": 1, "H": 1, "R": 8})
    naive = math.sqrt(sum(alone.contributions[e.name] for e in result.entries if e.facets & set("NRC")))
    assert naive / alone.se == pytest.approx(0.57, abs=0.01)


# ------------------------------------------------------------------------------------------------- strata


def test_residuals_by_temperature():
    """TEE, E.1: residual variances .005 and .08 by temperature; χ² with 1,440 degrees of freedom each."""
    columns = factorial(n_items=60, n_prompts=4, n_replicates=3, noise=[math.sqrt(0.005), math.sqrt(0.08)])
    fits, _ = by_stratum(columns, DECLARED)
    for level, truth in {"0": 0.005, "1": 0.08}.items():
        assert fits[level].residual == pytest.approx(truth, rel=4 * math.sqrt(2 / 1_440))
        assert "item:prompt:judge" in fits[level].components
    mean_residual = sum(one.residual for one in fits.values()) / 2
    pooled = total_error(columns, DECLARED).components
    assert with_residual(pooled, mean_residual).entries[-3].variance == mean_residual


def test_strata_that_cannot_be_fitted_are_named():
    columns = factorial()
    columns["score"] = np.where(columns["temperature"] == 1, 2.0, columns["score"])
    fits, left_out = by_stratum(columns, DECLARED)
    assert set(fits) == {"0"}
    assert left_out[0].startswith("temperature 1: ")


# ------------------------------------------------------------------------------------------------ refusals


def test_refusals():
    columns = factorial()
    with pytest.raises(CoreError, match="row 7: the outcome is not a finite number"):
        total_error(columns | {"score": np.where(np.arange(720) == 7, np.nan, columns["score"])}, DECLARED)
    with pytest.raises(CoreError, match="no column is declared for strata by category"):
        by_stratum(columns, DECLARED, "category")
    with refused(CoreError, "level", match="level of 95"):
        total_error(columns, DECLARED).interval(95)
    with pytest.raises(CoreError, match="needs two items"):
        naive_standard_error(np.array(["a", "a"]), np.array([0.0, 1.0]))


# ---------------------------------------------------------------------------- these items, unequal outcomes


def unequal(n_items=12, n_prompts=1, seed=1):
    """Items with one to four outcomes under each prompt, in which item 0 lacks the last of several."""
    rng, rows = np.random.default_rng(seed), []
    for item in range(n_items):
        for prompt in range(n_prompts):
            if item == 0 and prompt == n_prompts - 1 > 0:
                continue
            chance = 0.15 + 0.06 * item + 0.1 * prompt
            rows += [(item, prompt, float(rng.random() < chance)) for _ in range(1 + (item + prompt) % 4)]
    item, prompt, score = map(np.array, zip(*rows, strict=True))
    return {"item": item, "prompt": prompt, "score": score}


def test_the_mean_of_these_items_is_that_of_their_means_with_each_R_as_it_is():
    """By hand: the mean of task means, N⁻²·Σ σ̂²/R, in which R is neither floored nor averaged."""
    columns = unequal()
    result = total_error(columns, Declaration("score", "item"), FINITE)
    by_item = [columns["score"][columns["item"] == item] for item in range(12)]
    assert result.theta == pytest.approx(np.mean([one.mean() for one in by_item]), abs=1e-15)
    assert result.theta != pytest.approx(columns["score"].mean(), abs=1e-3)
    variance = result.fit.residual * sum(1 / one.size for one in by_item) / 12**2
    assert result.se == pytest.approx(math.sqrt(variance), rel=1e-12)
    text = paragraph(result)
    assert "The mean over 12 items and 1 to 4 replicates (30 outcomes) is" in text
    assert "cells are missing" not in text


def test_a_lost_cell_leaves_its_item_the_others():
    """By hand, cell by cell: item 0 has one prompt of two."""
    columns = unequal(n_prompts=2)
    result = total_error(columns, Declaration("score", "item", "prompt"), FINITE)
    parts = {entry.name: entry.variance for entry in result.components.entries}
    cells = {}
    for item, prompt, score in zip(*columns.values(), strict=True):
        cells.setdefault((item, prompt), []).append(score)
    weight = {cell: 1 / 12 if cell[0] == 0 else 1 / 24 for cell in cells}
    assert result.theta == pytest.approx(sum(weight[c] * np.mean(cells[c]) for c in cells))
    of_prompt = [sum(w for cell, w in weight.items() if cell[1] == v) for v in (0, 1)]
    variance = parts["prompt"] * sum(w**2 for w in of_prompt)
    variance += parts["item:prompt"] * sum(w**2 for w in weight.values())
    variance += parts["Residual"] * sum(weight[c] ** 2 / len(cells[c]) for c in cells)
    assert result.se == pytest.approx(math.sqrt(variance), rel=1e-12)
    assert math.fsum(result.projection.shares.values()) == pytest.approx(1.0)


def test_of_these_items_the_rows_of_a_balanced_study_weigh_the_same():
    columns = factorial()
    result = total_error(columns, DECLARED, FINITE)
    assert result.theta == pytest.approx(columns["score"].mean(), rel=1e-12)
    projected = project(result.components, result.layout.design, FINITE)
    assert dict(result.projection.contributions) == pytest.approx(dict(projected.contributions), rel=1e-12)


def test_an_interval_is_clipped_to_what_the_mean_can_be():
    result = total_error(unequal(n_prompts=2), Declaration("score", "item", "prompt"), FINITE)
    whole, clipped = result.interval(), result.interval(within=(0.0, 1.0))
    assert whole.lower < 0 < clipped.estimate < 1 < whole.upper
    assert (clipped.lower, clipped.upper) == (0.0, 1.0)
    assert "There is no 95% confidence interval: 2 prompts leave every score from 0 to 1." in paragraph(
        result, SCORES
    )
    assert (result.interval(0.2, (0.0, 1.0)).lower, whole.df) == (result.interval(0.2).lower, 1.0)
