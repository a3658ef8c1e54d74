import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.tee import (
    Choices,
    Component,
    Components,
    Costs,
    DStudyRefused,
    Reading,
    cheapest,
    frontier,
    most_precise,
    project,
)

VARIANCES = {"N": 0.5, "V": 0.02, "NV": 0.1, "NM": 0.3, "VM": 0.03, "NVM": 0.1, "R": 0.4}
FOUND = Components(
    (
        *(Component(key, variance, frozenset(key)) for key, variance in VARIANCES.items()),
        Component("Mf", 0.02, frozenset("M"), fixed=True),
    ),
    n_judges=3,
)
INCLUDE = Reading(sensitivity="include")
COSTS = Costs(0.01, {"N": 0.3, "V": 2.0, "M": 5.0})
SMALL = {"N": (2, 30), "V": (1, 4), "M": (1, 3), "R": (1, 3)}


def every_design(bounds):
    ranges = (range(lo, hi + 1) for lo, hi in bounds.values())
    return [dict(zip(bounds, levels, strict=True)) for levels in itertools.product(*ranges)]


def test_cost_by_hand():
    assert Costs(0.5, {"N": 2.0, "V": 3.0}).of({"N": 4, "V": 2, "R": 3, "C": 7}) == 0.5 * 24 + 8 + 6


@settings(max_examples=30, deadline=None)
@given(st.floats(0.15, 0.9), st.sampled_from([Reading(), INCLUDE, Reading(estimand="finite")]))
def test_cheapest_is_that_of_a_full_search(target, reading):
    choices = Choices(FOUND, COSTS, SMALL, reading)
    fits = [d for d in every_design(SMALL) if project(FOUND, d, reading).se <= target]
    if not fits:
        with pytest.raises(DStudyRefused, match="no design within the bounds"):
            cheapest(choices, target)
        return
    result = cheapest(choices, target)
    assert result.se <= target * (1 + 1e-12)
    assert COSTS.of(result.design) == pytest.approx(min(COSTS.of(d) for d in fits), rel=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.floats(3.0, 60.0), st.sampled_from([Reading(), INCLUDE]))
def test_most_precise_is_that_of_a_full_search(budget, reading):
    choices = Choices(FOUND, COSTS, SMALL, reading)
    fits = [d for d in every_design(SMALL) if COSTS.of(d) <= budget]
    if not fits:
        with pytest.raises(DStudyRefused, match=f"smallest design .* costs .*, not {budget:g} or less"):
            most_precise(choices, budget)
        return
    result = most_precise(choices, budget)
    assert COSTS.of(result.design) <= budget * (1 + 1e-12)
    assert result.se == pytest.approx(min(project(FOUND, d, reading).se for d in fits), rel=1e-12)


def test_the_other_facets_may_be_the_wide_one():
    bounds = {"N": (20, 20), "V": (1, None), "M": (1, 2), "R": (1, 2)}
    result = cheapest(Choices(FOUND, COSTS, bounds), 0.24)
    narrow = {**bounds, "V": (1, 60)}
    fits = [d for d in every_design(narrow) if project(FOUND, d).se <= 0.24]
    assert COSTS.of(result.design) == pytest.approx(min(COSTS.of(d) for d in fits))


def test_sampled_categories_bound_the_items():
    result = Components((*FOUND.entries, Component("C", 0.2, frozenset("C"))))
    reading = Reading(categories="sampled")
    bounds = {"N": (6, 20), "C": (2, 6), "V": (2, 2), "M": (2, 2), "R": (1, 1)}
    fits = [d for d in every_design(bounds) if project(result, d, reading).se <= 0.33]
    best = cheapest(Choices(result, COSTS, bounds, reading), 0.33)
    assert COSTS.of(best.design) == pytest.approx(min(map(COSTS.of, fits)))


def test_the_two_searches_agree():
    """What the cheapest design for a target costs buys no smaller SE than a design of that cost has."""
    choices = Choices(FOUND, COSTS, {**SMALL, "N": (2, None)}, INCLUDE)
    first = cheapest(choices, 0.2)
    assert most_precise(choices, COSTS.of(first.design)).se <= first.se
    assert COSTS.of(cheapest(choices, most_precise(choices, 50.0).se).design) <= 50.0


def test_frontier_falls():
    choices = Choices(FOUND, COSTS, {**SMALL, "N": (2, None)}, INCLUDE)
    points = frontier(choices, [500, 1, 20, 40, 80, 40, 10_000])
    assert len(points) == 5
    costs = [COSTS.of(point.design) for point in points]
    assert costs == sorted(costs)
    assert all(a.se > b.se for a, b in itertools.pairwise(points))


def test_frontier_leaves_out_money_that_buys_nothing():
    choices = Choices(FOUND, COSTS, {"N": (2, 5), "V": (1, 1), "M": (1, 1), "R": (1, 1)})
    assert [point.design["N"] for point in frontier(choices, [100, 1_000, 10_000])] == [5]
    with pytest.raises(DStudyRefused, match="more than any budget"):
        frontier(choices, [0.1])


def test_an_unreachable_target_names_what_remains():
    choices = Choices(FOUND, COSTS, {"N": (2, None), "V": (1, 4), "M": (1, 3), "R": (1, 3)}, INCLUDE)
    floor = (0.02 / 4 + 0.03 / 12 + 0.02 / 3) ** 0.5
    with pytest.raises(DStudyRefused) as refusal:
        cheapest(choices, 0.1)
    assert f"at V = 4, M = 3, R = 3 an SE of {floor:.4g} remains" in str(refusal.value)
    assert "no number of items brings the SE under 0.1" in str(refusal.value)
    assert "Mf 47%, V 35%, VM 18%" in str(refusal.value)


@pytest.mark.parametrize(
    ("bounds", "match"),
    [
        (
            {**SMALL, "N": (2, None), "V": (1, None)},
            "only one facet may be without an upper end, not N and V",
        ),
        ({**SMALL, "N": (0, 5)}, "bounds of N: from 0 to 5"),
        ({**SMALL, "N": (6, 5)}, "bounds of N: from 6 to 5"),
        ({"N": (1, 5), "V": (1, 2), "R": (1, 1)}, r"judges \(M\)"),
        ({**SMALL, "R": (1, None)}, None),
    ],
)
def test_bounds_are_checked(bounds, match):
    if match is None:
        assert Choices(FOUND, COSTS, bounds)
        return
    with pytest.raises(DStudyRefused, match=match):
        Choices(FOUND, COSTS, bounds)


def test_more_refusals():
    choices = Choices(FOUND, COSTS, SMALL)
    for target in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(DStudyRefused, match="a target standard error is above 0"):
            cheapest(choices, target)
    with pytest.raises(DStudyRefused, match="cost of call is at least 0"):
        Costs(-1.0)
    with pytest.raises(DStudyRefused, match="costs name K"):
        Costs(1.0, {"K": 1.0})
    with pytest.raises(DStudyRefused, match="items cost nothing and have no upper end"):
        Choices(FOUND, Costs(0.0), {**SMALL, "N": (2, None)})
    with pytest.raises(DStudyRefused, match="combinations of V, M, R are over"):
        cheapest(Choices(FOUND, COSTS, {"N": (1, None), "V": (1, 999), "M": (1, 99), "R": (1, 99)}), 0.5)
    pooled = Components(
        (Component("N", 1.0, frozenset("N")), Component("R", 1.0, frozenset("R"))), pooled=True
    )
    with pytest.raises(DStudyRefused, match="cannot be projected"):
        Choices(pooled, COSTS, {"N": (2, 9), "R": (1, 3)})
