import csv
import itertools
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.tee import (
    Component,
    Components,
    ComponentsMalformed,
    DStudyRefused,
    Reading,
    as_json,
    interventions,
    parse_design,
    parse_facets,
    project,
    read_components,
    variance_table,
)

FACETS = {"N": "item_id", "V": "variant_id", "M": "judge_model", "H": "temperature"}
SAFETY = {"N": 141, "V": 5, "M": 3, "H": 3, "R": 8}
INCLUDE = Reading(sensitivity="include")


def components(pooled=False, n_judges=3, **variances):
    """Components by the letters of their facets; a trailing f marks a sensitivity."""
    entries = [
        Component(key, variance, frozenset(key.removesuffix("f")), fixed=key.endswith("f"))
        for key, variance in variances.items()
    ]
    return Components(tuple(entries), pooled=pooled, n_judges=n_judges)


ALL = components(
    N=0.7, V=0.3, NV=0.2, NH=0.11, VH=0.05, NM=0.4, VM=0.06, NVMH=0.13, R=0.9, C=0.08, Mf=0.02, Hf=0.01
)
SMALL = {"N": 10, "V": 2, "M": 4, "H": 3, "R": 5}


def published(real_data, domain, n_judges=3):
    return read_components(real_data / "published" / f"tee_{domain}_components.csv", FACETS, n_judges)


def scenarios(real_data, domain):
    with (real_data / "published" / f"tee_{domain}_dstudy.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            design = {"N": int(row["n_items_d"]), "V": int(row["n_prompts_d"]), "R": int(row["n_reps_d"])}
            design["H"] = 1 if row["fix_temp"] == "TRUE" else 3
            design["M"] = 1 if row["fix_judge"] == "TRUE" else 3
            yield row["scenario"], design, float(row["total_var"])


# ------------------------------------------------------------------------------------- published figures


@pytest.mark.parametrize("domain", ["safety", "pairwise"])
def test_published_scenarios(real_data, domain):
    seen = 0
    for name, design, variance in scenarios(real_data, domain):
        assert project(published(real_data, domain), design).variance == pytest.approx(variance, rel=1e-12), (
            name
        )
        seen += 1
    assert seen == 10


def test_safety_with_the_choice_of_judge_counted(real_data):
    """Messing, §4.1 and C.8: 0.000354; judge 43.8%, item:judge 16.7%, prompt:judge 12.4%, item 20.8%."""
    projection = project(published(real_data, "safety"), SAFETY, INCLUDE)
    assert projection.variance == pytest.approx(3.54e-4, abs=5e-7)
    assert projection.se == pytest.approx(0.019, abs=5e-4)
    shares = projection.shares
    assert shares["judge_model (fixed)"] == pytest.approx(0.438, abs=5e-4)
    assert shares["item_id:judge_model"] == pytest.approx(0.167, abs=5e-4)
    assert shares["variant_id:judge_model"] == pytest.approx(0.124, abs=5e-4)
    assert shares["item_id"] == pytest.approx(0.208, abs=5e-4)
    assert math.fsum(shares.values()) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(("reading", "growth"), [(Reading(), 1.055), (INCLUDE, 1.466)])
def test_single_judge(real_data, reading, growth):
    change = {c.name: c for c in interventions(published(real_data, "safety"), SAFETY, reading)}[
        "single judge"
    ]
    assert change.change == pytest.approx(growth, abs=5e-4)


def test_published_interventions(real_data):
    """The published table: +5 replicates 0.0%, +2 prompts 6.9%, double items 38.9% less."""
    changes = {c.name: c.change for c in interventions(published(real_data, "safety"), SAFETY)}
    assert changes["double items"] == pytest.approx(-0.389, abs=5e-4)
    assert changes["+2 prompts"] == pytest.approx(-0.069, abs=5e-4)
    assert changes["+5 replicates"] == pytest.approx(0.0, abs=5e-4)


def test_divisors_of_table_13():
    """Messing, Table 13 (MMLU, 200 items): rounded components, so only their divisors can be checked."""
    mmlu = components(N=0.063, NM=0.028, C=0.009, NV=0.009)
    parts = project(mmlu, {"N": 200, "V": 5, "M": 3, "H": 3, "R": 8}).contributions
    for name, share in {"N": 0.354, "NM": 0.052, "C": 0.051, "NV": 0.010}.items():
        assert parts[name] / 0.00089 == pytest.approx(share, abs=5e-4)


def test_shares_per_observation(real_data):
    """The published column `pct_total`."""
    result = published(real_data, "safety")
    rows = {row.name: row for row in variance_table(result, project(result, SAFETY, INCLUDE))}
    with (real_data / "published" / "tee_safety_components.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            share = 100 * rows[row["component"]].share_of_observation
            assert share == pytest.approx(float(row["pct_total"]), abs=0.0051)
            assert rows[row["component"]].tier == (2 if row["tier"] == "pipeline-side" else 1)


# --------------------------------------------------------------------------------------- by hand, by property


def test_by_hand():
    result = components(N=0.5, V=0.1, NV=0.06, R=0.12)
    projection = project(result, {"N": 10, "V": 2, "R": 3})
    assert projection.variance == pytest.approx(0.05 + 0.05 + 0.003 + 0.002)


@given(st.lists(st.floats(0.01, 2.0), min_size=5, max_size=5), st.integers(1, 5), st.integers(1, 3))
def test_variance_is_that_of_the_mean_of_the_effects(variances, n_items, n_prompts):
    """By definition: the mean is linear in the effects, so Var = Σ (weight of the effect)²·σ²."""
    result = dict(zip(("N", "V", "NM", "NVMH", "R"), variances, strict=True))
    levels = {"N": n_items, "V": n_prompts, "M": 2, "H": 2, "R": 2}
    weights = {}
    cells = list(itertools.product(*(range(n) for n in levels.values())))
    for cell in cells:
        at = dict(zip(levels, cell, strict=True))
        for term in result:
            facets = "NVMHR" if term == "R" else term
            effect = (term, tuple(at[f] for f in facets))
            weights[effect] = weights.get(effect, 0.0) + 1.0 / len(cells)
    slow = math.fsum(weight**2 * result[term] for (term, _), weight in weights.items())
    assert project(components(**result), levels).variance == pytest.approx(slow, rel=1e-12)


@given(st.sampled_from("NVMHR"), st.integers(1, 5))
def test_more_levels_never_hurt(letter, more):
    for reading in (Reading(), INCLUDE, Reading(estimand="finite"), Reading(judges="random")):
        grown = SMALL | {letter: SMALL[letter] + more}
        assert project(ALL, grown, reading).variance <= project(ALL, SMALL, reading).variance


def test_finite_leaves_out_what_holds_items_and_panels_only():
    domain, finite = project(ALL, SMALL), project(ALL, SMALL, Reading(estimand="finite"))
    assert set(domain.contributions) - set(finite.contributions) == {"N", "C", "NM", "NH"}
    assert finite.left_out == ("N", "NH", "NM", "C", "Mf", "Hf")
    assert {finite.shares[name] for name in finite.left_out} == {0.0}


def test_finite_with_include_keeps_the_panels_interactions():
    both = project(ALL, SMALL, Reading(estimand="finite", sensitivity="include"))
    assert both.left_out == ("N", "C")
    assert both.contributions["NM"] == pytest.approx(0.4 / 40)
    assert both.contributions["Mf"] == pytest.approx(0.02 / 4)
    assert both.contributions["Hf"] == pytest.approx(0.01 / 3)


def test_panel_interactions_alone_are_no_error_of_a_declared_panel():
    result = components(N=0.5, MH=0.2, Mf=0.1, Hf=0.1, R=0.1)
    assert "MH" in project(result, SMALL).left_out
    assert project(result, SMALL, INCLUDE).contributions["MH"] == pytest.approx(0.2 / 12)


def test_a_facet_held_at_one_level_leaves_its_interactions_at_full_size():
    alone = project(ALL, SMALL | {"M": 1, "H": 1})
    assert alone.contributions["NM"] == pytest.approx(0.4 / 10)
    assert alone.contributions["NVMH"] == pytest.approx(0.13 / 20)
    assert alone.contributions["R"] == pytest.approx(0.9 / 100)


def test_categories():
    fixed = project(ALL, SMALL)
    sampled = project(ALL, SMALL | {"C": 4}, Reading(categories="sampled"))
    assert fixed.contributions["C"] == pytest.approx(0.08 / 10)
    assert sampled.contributions["C"] == pytest.approx(0.08 / 4)
    assert sampled.contributions["R"] == fixed.contributions["R"]
    assert project(ALL, SMALL | {"C": 4}).variance == fixed.variance


def test_items_in_categories_are_items():
    nested = components(C=0.1, CN=0.5, R=0.1)
    assert project(nested, {"N": 20, "R": 2}).contributions["CN"] == pytest.approx(0.5 / 20)
    with pytest.raises(ComponentsMalformed, match="already given"):
        components(CN=0.5, N=0.5)


def test_random_judges():
    """s² = Σ(λ − mean)²/(n − 1) is 3/2 of the population variance of three judges, whatever M is proposed."""
    reading = Reading(judges="random")
    projection = project(ALL, SMALL | {"M": 5}, reading)
    assert projection.contributions["Mf"] == pytest.approx(0.02 * 1.5 / 5)
    assert projection.degrees_of_freedom == 4
    assert "Hf" in projection.left_out
    assert project(ALL, SMALL).degrees_of_freedom is None
    finite = project(ALL, SMALL, Reading(estimand="finite", judges="random"))
    assert "NM" in finite.contributions
    assert "NH" in finite.left_out


def test_interval_names():
    assert Reading().interval_name == "confidence interval"
    assert INCLUDE.interval_name == "design-sensitivity interval"


def test_table_is_ordered_and_leaves_conditioned_shares_open():
    rows = variance_table(ALL, project(ALL, SMALL))
    assert [row.contribution or 0.0 for row in rows] == sorted(
        (row.contribution or 0.0 for row in rows), reverse=True
    )
    assert math.fsum(row.share_of_mean or 0.0 for row in rows) == pytest.approx(1.0)
    assert {row.name for row in rows if row.share_of_mean is None} == {"Mf", "Hf"}


def test_json_has_full_precision():
    answer = json.loads(json.dumps(as_json(project(ALL, SMALL)), allow_nan=False))
    assert set(answer) == {"variance", "se", "shares"}
    assert answer["se"] == math.sqrt(answer["variance"])


# ------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("found", "design", "reading", "match"),
    [
        (ALL, {"N": 10, "V": 2, "M": 4, "R": 5}, Reading(), r"NH.*temperatures \(H\)"),
        (ALL, {"N": 10, "V": 2, "M": 4, "H": 3}, Reading(), r"R.*replicates \(R\)"),
        (components(C=0.1, R=0.2), {"R": 5}, Reading(), r"C.*items \(N\)"),
        (ALL, SMALL, Reading(categories="sampled"), r"categories \(C\)"),
        (ALL, SMALL | {"C": 11}, Reading(categories="sampled"), "11 categories are more than.* 10 items"),
        (ALL, SMALL | {"N": 0}, Reading(), r"N \(items\) is a whole number from 1, not 0"),
        (ALL, SMALL | {"V": 2.5}, Reading(), r"V \(prompts\) is a whole number from 1"),
        (ALL, SMALL | {"M": True}, Reading(), r"M \(judges\) is a whole number"),
        (ALL, SMALL | {"K": 3}, Reading(), "names K"),
        (components(N=1.0, R=1.0, pooled=True), {"N": 5, "R": 2}, Reading(), "R = 2 cannot be projected"),
        (components(NM=1.0, R=1.0), {"N": 5, "M": 2, "R": 2}, INCLUDE, r"main effect of judges \(M\)"),
        (components(CV=1.0, R=1.0), SMALL, Reading(), "categories=sampled"),
        (ALL, SMALL | {"M": 2}, Reading(judges="random"), "at least 3 judges, not 2"),
        (components(Mf=1.0, n_judges=2), SMALL, Reading(judges="random"), "at least 3 judges, not 2"),
        (components(Mf=1.0, n_judges=None), SMALL, Reading(judges="random"), "the number of judges"),
        (components(NM=1.0), SMALL, Reading(judges="random"), "main effect of judges"),
        (components(N=1.0), SMALL, Reading(estimand="finite"), "no standard error"),
        (components(N=0.0, R=0.0), SMALL, Reading(), "no standard error"),
    ],
)
def test_refusals(found, design, reading, match):
    with pytest.raises(DStudyRefused, match=match):
        project(found, design, reading)


def test_readings_are_checked():
    with pytest.raises(DStudyRefused, match="domain or finite, not 'infinite'"):
        Reading(estimand="infinite")


def test_interventions_say_what_cannot_be_projected():
    result = components(N=1.0, R=0.5, pooled=True)
    notes = {change.name: change for change in interventions(result, {"N": 5, "R": 1})}
    assert notes["+2 prompts"].note == "prompts (V) are no facet of this design"
    assert "cannot be projected" in notes["+5 replicates"].note
    assert notes["+5 replicates"].variance is None
    assert notes["double items"].change == pytest.approx(-0.5)
    finite = {change.name: change for change in interventions(ALL, SMALL, Reading(estimand="finite"))}
    assert "this item set is the target" in finite["double items"].note


# -------------------------------------------------------------------------------------------------- reading


def write(tmp_path, text):
    path = tmp_path / "components.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_read_components(tmp_path):
    path = write(
        tmp_path, "\ufeffcomponent,sd,variance\nvariant_id:item_id,9,1e-2\nResidual,9,0.5\ncategory,9,0\n"
    )
    result = read_components(path, FACETS)
    assert [(e.name, e.variance, e.facets) for e in result.entries] == [
        ("variant_id:item_id", 0.01, frozenset("NV")),
        ("Residual", 0.5, frozenset("R")),
        ("category", 0.0, frozenset("C")),
    ]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("component,value\nitem_id,1\n", "no column variance"),
        ("component,variance\nitem_id,1\nprompt,1\n", "row 2: component 'prompt': 'prompt' is none of"),
        ("component,variance\nitem_id,x\n", "row 1: component item_id: variance 'x' is not a number"),
        ("component,variance\nitem_id\n", "row 1: .* variance '' is not a number"),
        ("component,variance\nitem_id,-1\n", "row 1: .* at least 0, not -1"),
        ("component,variance\nitem_id,nan\n", "row 1: .* at least 0, not nan"),
        ("component,variance\nitem_id,inf\n", "row 1: .* at least 0, not inf"),
        (
            "component,variance\nitem_id,1e-400\n",
            "row 1: .* variance '1e-400' is too small for a number: write 0",
        ),
        ("component,variance\nitem_id (fixed),1\n", "row 1: .* only judges and temperatures are fixed"),
        ("component,variance\nitem_id:item_id,1\n", "row 1: .* holds a factor twice"),
        (
            "component,variance\nitem_id:variant_id,1\nResidual,1\nvariant_id:item_id,1\n",
            "row 3: .* stands in row 1, too",
        ),
        ("component,variance\n", "no variance component"),
        ("", "no column component and no column variance"),
    ],
)
def test_read_components_refuses_by_row(tmp_path, text, match):
    with pytest.raises(ComponentsMalformed, match=match):
        read_components(write(tmp_path, text), FACETS)


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_components(tmp_path / "absent.csv", FACETS)


def test_arguments():
    assert parse_facets("N=item_id, V=variant_id") == {"N": "item_id", "V": "variant_id"}
    assert parse_design("N=141,V=5") == {"N": 141, "V": 5}


@pytest.mark.parametrize("text", ["", "N", "N=", "=x", "N=a,N=b", "K=a", "R=rep", "N=a,V=a"])
def test_bad_facets(text):
    with pytest.raises(ComponentsMalformed):
        parse_facets(text)


@pytest.mark.parametrize("text", ["", "N", "N=", "N=1,N=2", "N=0", "N=-1", "N=1.5", "N=x", "K=2", "N=²"])
def test_bad_designs(text):
    with pytest.raises(DStudyRefused):
        parse_design(text)
