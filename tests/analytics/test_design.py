import itertools

import numpy as np
import pytest

from analytics.errors import CoreError
from analytics.tee.design import Declaration, in_words, layout, pilot_rules, random_terms
from analytics.tee.dstudy import DStudyRefused, Reading
from tests.analytics.factorial import kept

FULL = Declaration("score", "item_id", "variant_id", "judge_model", "temp", "rep", "hazard")


def factorial(n_items=4, n_prompts=2, n_judges=3, n_temperatures=2, n_replicates=2, n_categories=2):
    sizes = (n_items, n_prompts, n_judges, n_temperatures, n_replicates)
    rows = np.array(list(itertools.product(*(range(n) for n in sizes))))
    columns = dict(zip(("item_id", "variant_id", "judge_model", "temp", "rep"), rows.T, strict=True))
    columns["item_id"] = np.array([f"i{code}" for code in columns["item_id"]])
    columns["hazard"] = np.array([f"h{code % n_categories}" for code in rows[:, 0]])
    columns["score"] = np.zeros(len(rows))
    return columns


def test_full_factorial():
    result = layout(factorial(), FULL)
    assert result.levels == {"N": 4, "V": 2, "M": 3, "H": 2, "C": 2, "R": 2}
    assert result.random == (
        "category",
        "item",
        "prompt",
        "item:prompt",
        "item:temperature",
        "prompt:temperature",
        "item:judge",
        "prompt:judge",
        "item:prompt:judge:temperature",
    )
    assert result.fixed == ("judge", "temperature")
    assert result.balanced
    assert not result.pooled
    assert result.not_measured == ()


def test_without_replicates_the_cell_is_part_of_the_residual():
    result = layout(factorial(n_replicates=1), FULL)
    assert result.pooled
    assert result.levels["R"] == 1
    assert "item:prompt:judge:temperature" not in result.random
    assert "item:judge" in result.random
    assert result.not_measured == ("replicate noise apart from the cell (one outcome in each cell)",)


@pytest.mark.parametrize(
    ("levels", "pooled", "terms"),
    [
        ("NVM", False, "item prompt item:prompt item:judge prompt:judge item:prompt:judge"),
        ("NVM", True, "item prompt item:prompt item:judge prompt:judge"),
        ("NVH", False, "item prompt item:prompt item:temperature prompt:temperature item:prompt:temperature"),
        ("NV", False, "item prompt item:prompt"),
        ("NV", True, "item prompt"),
        ("NM", True, "item"),
        ("NH", False, "item item:temperature"),
        ("NMH", False, "item item:temperature item:judge item:judge:temperature"),
        ("N", False, "item"),
        ("N", True, ""),
        ("VM", False, "prompt prompt:judge"),
    ],
)
def test_a_facet_with_one_level_drops_its_terms(levels, pooled, terms):
    counts = {letter: 5 if letter in levels else 1 for letter in "NVMHC"}
    assert random_terms(counts, pooled=pooled) == tuple(terms.split())


def test_categories_of_one_item_each_are_items():
    columns = factorial(n_categories=4)
    result = layout(columns, FULL)
    assert "category" not in result.random
    assert result.not_measured == ("category apart from item (one item in each category)",)


def test_a_facet_that_is_not_declared_has_one_level():
    columns = factorial(n_judges=1, n_temperatures=1)
    result = layout(columns, Declaration("score", "item_id", "variant_id"))
    assert result.levels == {"N": 4, "V": 2, "M": 1, "H": 1, "C": 1, "R": 2}
    assert result.fixed == ()
    assert result.not_measured == ("judge (one level)", "temperature (one level)")


def test_order_of_rows_changes_nothing():
    columns = factorial()
    order = np.random.default_rng(1).permutation(len(columns["score"]))
    assert layout(kept(columns, order), FULL) == layout(columns, FULL)


def test_missing_cells_and_unequal_replicates():
    columns = factorial()
    rows = np.arange(len(columns["score"]))
    result = layout(kept(columns, rows[1:]), FULL)
    assert not result.balanced
    assert result.levels["R"] == 1  # 95 outcomes in 48 cells
    assert not result.pooled
    assert layout(kept(columns, rows[2:]), FULL).levels["R"] == 2
    assert not layout(kept(columns, rows[2:]), FULL).balanced


def test_selected_items_are_no_sample_of_a_domain():
    result = layout(
        factorial(), Declaration("score", "item_id", "variant_id", "judge_model", "temp", items="selected")
    )
    result.check_reading(Reading(estimand="finite"))
    with pytest.raises(DStudyRefused, match=r"4 items were selected .* estimand=finite"):
        result.check_reading(Reading())


def test_in_words():
    columns = factorial()
    words = in_words(columns, FULL)
    assert set(words) == {"item", "prompt", "judge", "temperature", "category"}
    assert words["prompt"] is columns["variant_id"]


def test_pilot():
    met = {(rule.letter, rule.minimum): rule.met for rule in pilot_rules({"N": 30, "V": 2, "R": 4, "M": 2})}
    assert met == {
        ("N", 30): True,
        ("V", 3): False,
        ("R", 5): False,
        ("V", 2): True,
        ("R", 3): True,
        ("M", 2): True,
    }
    assert not any(rule.met for rule in pilot_rules({}))


def change(columns, name, row, value):
    changed = {key: values.copy() for key, values in columns.items()}
    changed[name][row] = value
    return changed


@pytest.mark.parametrize(
    ("columns", "declaration", "match"),
    [
        (factorial(), Declaration("score", "item"), "there is no column item"),
        (factorial(), Declaration("grade", "item_id"), "there is no column grade"),
        (change(factorial(), "hazard", 5, "h1"), FULL, "row 5: item i0 lies in two categories"),
        (
            change(factorial(), "rep", 1, 0),
            FULL,
            "row 1: item i0 has this prompt, judge, temperature and replicate",
        ),
        (kept(factorial(), slice(0, 0)), FULL, r"shape \(0,\)"),
        ({**factorial(), "rep": np.zeros(3)}, FULL, r"column rep has shape \(3,\)"),
        (
            factorial(n_prompts=1, n_judges=1, n_temperatures=1, n_replicates=1),
            Declaration("score", "item_id"),
            "one outcome for each of 4 items",
        ),
    ],
)
def test_refusals(columns, declaration, match):
    with pytest.raises(CoreError, match=match):
        layout(columns, declaration)


def test_a_column_is_one_facet():
    with pytest.raises(CoreError, match="column x is declared for two facets"):
        Declaration("score", "x", "x")
    with pytest.raises(CoreError, match="a sample or selected"):
        Declaration("score", "x", items="chosen")
