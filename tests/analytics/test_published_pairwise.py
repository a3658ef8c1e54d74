"""Published figures on pairwise scoring that contradict each other: what follows from the printed numbers.

Every number that goes in is printed in *Hidden Measurement Error in LLM Pipelines* (TEE); what is asserted is
ours.
"""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import spearmanr

from analytics.tee import Reading, project, read_components

# Table 17: battles and those that both decide, with the agreement on these; creative writing, persuasion,
# coding, factual questions.
TABLE_17 = {
    "single Likert": [(967, 343, 0.668), (1280, 327, 0.618), (939, 357, 0.709), (1006, 336, 0.682)],
    "single pairwise": [(1062, 577, 0.692), (1426, 749, 0.621), (1078, 563, 0.707), (1105, 597, 0.730)],
    "TEE Likert": [(1064, 278, 0.763), (1428, 250, 0.736), (1078, 351, 0.761), (1106, 292, 0.733)],
    "TEE pairwise": [(1064, 475, 0.743), (1428, 595, 0.652), (1078, 482, 0.749), (1106, 493, 0.746)],
}
N_BATTLES = 4_676


def decided(pipeline):
    return sum(n_ab for _, n_ab, _ in TABLE_17[pipeline])


def test_pooled_agreement_follows_from_the_rows():
    pooled = [
        np.average([share for *_, share in rows], weights=[n_ab for _, n_ab, _ in rows])
        for rows in TABLE_17.values()
    ]
    assert np.round(pooled, 4).tolist() == [0.6702, 0.6831, 0.7492, 0.7187]


def test_the_test_split_is_all_battles():
    """A fifth of the battles would be 935."""
    assert sum(n for n, _, _ in TABLE_17["TEE Likert"]) == N_BATTLES
    assert round(N_BATTLES / 5) == 935


def test_the_lifts_compare_different_battles():
    assert (decided("single Likert"), decided("TEE Likert")) == (1_363, 1_171)
    assert (decided("single pairwise"), decided("TEE pairwise")) == (2_486, 2_045)


def test_people_tie_on_more_than_a_third():
    """The single judge ties on 9.1% and decides, with people, 2,486 of 4,671: neither ~35% nor ~20%."""
    n = sum(n for n, _, _ in TABLE_17["single pairwise"])
    least, most = 1 - decided("single pairwise") / n - 0.091, 1 - decided("single pairwise") / n
    assert (round(least, 3), round(most, 3)) == (0.377, 0.468)


def test_a_correlation_of_four_categories_is_no_evidence():
    orders = [abs(spearmanr(range(4), order).statistic) for order in permutations(range(4))]
    assert np.mean(np.array(orders) > 0.8 - 1e-9) == pytest.approx(1 / 3)


def test_the_share_of_second_answers_is_that_of_the_three_judges():
    """Two texts print 66% and 81% for one run; its judges chose the second answer in 91, 70 and 38%."""
    assert np.mean([0.91, 0.70, 0.38]) == pytest.approx(0.663, abs=5e-4)


def test_both_orders_double_the_calls():
    one_order = 150 * 5 * 3 * 3 * 3
    assert (one_order, 2 * one_order) == (20_250, 40_500)


def test_the_archived_components_are_of_another_run(real_data):
    """Without position, and judges are 24.4% where App. H prints 68.4%."""
    facets = {"N": "item_id", "V": "variant_id", "M": "judge_model", "H": "temperature"}
    components = read_components(real_data / "published" / "tee_pairwise_components.csv", facets, 3)
    assert not any("position" in entry.name for entry in components.entries)
    design = {"N": 150, "V": 5, "M": 3, "H": 3, "R": 3}
    shares = project(components, design, Reading(sensitivity="include")).shares
    assert shares["judge_model (fixed)"] == pytest.approx(0.244, abs=5e-4)


def test_what_a_single_judge_costs():
    """Shares of Var(θ̂) at three judges, in %; at one judge each term with a judge is three times that."""
    likert = {"judge": 54.4, "prompt:judge": 9.3, "item:judge": 0.7}
    exclude = 2 * (likert["prompt:judge"] + likert["item:judge"]) / (100 - likert["judge"])
    assert exclude == pytest.approx(0.438, abs=0.001)  # what Fig. 13 prints, as σ_λ² losing its 1/M
    assert 2 * sum(likert.values()) == pytest.approx(128.8)
    judge, position, item, item_judge = 68.4, 20.9, 7.6, 1.9
    unnamed = 100 - judge - position - item - item_judge
    assert 2 * (item_judge + unnamed) / (100 - judge) < 0.20  # exclude, at most; Fig. 14 prints 40.6%
    assert 2 * (judge + item_judge) == pytest.approx(140.6)
