"""Two runs of the same tasks, held against tests by hand and scipy's."""

import numpy as np
import pytest
from scipy import stats

from analytics.errors import CoreError
from analytics.rerun import agreement


def runs(n_both, n_first, n_second, n_neither=0):
    """Outcomes of two runs by who passed a task."""
    pairs = [(1, 1)] * n_both + [(1, 0)] * n_first + [(0, 1)] * n_second + [(0, 0)] * n_neither
    return np.array(pairs, dtype=float).T


@pytest.mark.parametrize(
    ("b", "c", "p"),
    [
        (7, 0, 2 / 2**7),
        (8, 0, 2 / 2**8),
        (0, 8, 2 / 2**8),
        (1, 8, 2 * (1 + 9) / 2**9),
        (3, 3, 1.0),
        (0, 0, 1.0),
    ],
)
def test_passes_by_hand(b, c, p):
    result = agreement(*runs(10, b, c, 2))
    assert (result.test, result.n_first, result.n_second) == ("McNemar", b, c)
    assert result.p == pytest.approx(p, rel=1e-12)
    assert result.agrees == (p >= 0.01)
    assert result.first_mean == pytest.approx((10 + b) / (12 + b + c))
    assert result.second_mean == pytest.approx((10 + c) / (12 + b + c))


@pytest.mark.parametrize(("b", "c"), [(1, 0), (2, 9), (14, 3), (40, 21)])
def test_passes_as_scipy(b, c):
    expected = stats.binomtest(b, b + c, 0.5).pvalue
    assert agreement(*runs(5, b, c)).p == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("shift", [0.0, 0.05, 0.3])
def test_graded_outcomes_as_scipy(shift):
    rng = np.random.default_rng(3)
    first = rng.uniform(0, 0.6, 24)
    second = np.clip(first + shift + rng.normal(0, 0.05, 24), 0, 1)
    result = agreement(first, second)
    assert result.test == "paired t"
    assert result.p == pytest.approx(stats.ttest_rel(second, first).pvalue, rel=1e-9)


def test_a_graded_difference_by_hand():
    first, second = np.array([0.5, 0.5, 0.5]), np.array([0.6, 0.7, 0.8])
    # mean .2, s .1, t = .2·√3/.1 = 3.464 with 2 degrees of freedom: p = 1 − t/√(t² + 2)
    t = 2 * np.sqrt(3)
    assert agreement(first, second).p == pytest.approx(1 - t / np.sqrt(t**2 + 2), rel=1e-9)


@pytest.mark.parametrize(("shift", "p"), [(0.0, 1.0), (0.25, 0.0)])
def test_differences_that_are_all_alike(shift, p):
    first = np.array([0.5, 0.25, 0.5])
    assert agreement(first, first + shift).p == p


@pytest.mark.parametrize("n", [20, 60])
def test_an_honest_run_is_refused_no_more_often_than_it_says(n):
    rng = np.random.default_rng(n)
    rates = rng.uniform(0, 1, n)
    n_refused = sum(not agreement(*(rng.random((2, n)) < rates).astype(float)).agrees for _ in range(2000))
    assert stats.binomtest(n_refused, 2000, 0.01, alternative="greater").pvalue > 0.001


@pytest.mark.parametrize(
    ("first", "second"),
    [([1.0, 0.0], [1.0]), ([1.0], [1.0]), ([np.nan, 1.0], [1.0, 1.0]), ([2.0, 1.0], [1.0, 0.0])],
)
def test_what_cannot_be_compared_is_refused(first, second):
    with pytest.raises(CoreError):
        agreement(np.array(first), np.array(second))
