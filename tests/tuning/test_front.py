"""The front: nobody on it is beaten, nobody off it is not; and the volume that it dominates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from analytics.errors import CoreError
from analytics.research.tuning.report import as_markdown, front, hypervolume
from tests.refusals import refused

POINTS = arrays(np.float64, st.tuples(st.integers(1, 12), st.just(3)), elements=st.integers(0, 3))


def beats(a, b):
    return bool((a >= b).all() and (a > b).any())


@given(POINTS)
def test_none_on_it_is_beaten_all_others_are_and_equal_ones_stand_once(points):
    on = front(points)
    assert on == sorted(on)
    for i in on:
        assert not any(beats(other, points[i]) for other in points)
    for i in set(range(len(points))) - set(on):
        assert any(beats(points[j], points[i]) or (points[j] == points[i]).all() for j in on)
    assert len({tuple(points[i]) for i in on}) == len(on)


def test_of_equal_points_the_first_is_kept():
    assert front([[1.0, 2.0], [1.0, 2.0], [2.0, 1.0], [0.0, 0.0]]) == [0, 2]


def test_a_volume_by_hand():
    # two boxes of 2 x 1 and 1 x 2 that share a square of 1 x 1
    assert hypervolume([[2.0, 1.0], [1.0, 2.0]], (0.0, 0.0)) == pytest.approx(3.0)
    # three bars along the axes of a cube: 3·2·... each 3 x 1 x 1, all share the cube of 1
    assert hypervolume([[3, 1, 1], [1, 3, 1], [1, 1, 3]], (0, 0, 0)) == pytest.approx(7.0)
    assert hypervolume([[1.0, 1.0]], (1.0, 0.0)) == 0.0


@given(POINTS)
def test_the_volume_is_the_share_of_unit_cells_below_some_point(points):
    cells = np.stack(np.meshgrid(*[np.arange(3) + 0.5] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    below = (cells[:, None] < points[None]).all(axis=2).any(axis=1)
    assert hypervolume(points, (0.0, 0.0, 0.0)) == pytest.approx(below.sum())


def test_what_is_no_matrix_of_numbers_is_refused():
    with refused(CoreError, "front"):
        front([[np.nan, 1.0]])
    with refused(CoreError, "front"):
        hypervolume([[1.0, 1.0]], (0.0,))


def test_the_report_says_that_its_two_reliabilities_are_estimated_apart():
    figures = {"R": 0.797, "D": 1.0, "C": 1.0, "F": 0.6, "cost_usd": 1.0, "configuration": {}}
    best = figures | {"fingerprint": "abc", "R": 0.847, "ci": [0.01, 0.09], "difference": 0.053}
    result = {
        **{"study": "s", "n_trials": 3, "cost_usd": 1.0, "below_protocol": [], "baseline": figures},
        **{"best": best, "candidates": [best], "front": None, "ablations": None, "stability": None},
        **{"metadata": {}, "notes": {}},
    }
    shown = as_markdown(result)
    assert "R rose by 0.053 (0.010 to 0.090)" in shown
    assert "0.797" in shown
    assert "0.847" in shown
    assert (
        "ΔR is estimated from the means of the runs, the R of the tables from the variance components of all "
        "scores"
    ) in shown
