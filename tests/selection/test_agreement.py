"""How far a board agrees with full evaluation."""

import numpy as np
import pytest
from scipy import stats

from selection.agreement import NoTruth, agreement


def test_by_hand():
    """Of 6 pairs one is tied in truth; of the 5 others 3 are in order, 1 is tied, 1 is not."""
    truth = {"a": 0.9, "b": 0.7, "c": 0.7, "d": 0.1}
    said = {"a": 0.8, "b": 0.8, "c": 0.2, "d": 0.3}
    # a-b tied ½, a-c right, a-d right, b-d right, c-d wrong
    assert agreement(said, truth).pairs_correct == pytest.approx(3.5 / 5)


def test_without_ties_it_is_kendalls_tau():
    rng = np.random.default_rng(3)
    x, y = rng.random(30), rng.random(30)
    names = [f"agent {i}" for i in range(30)]
    found = agreement(dict(zip(names, x, strict=True)), dict(zip(names, y, strict=True)))
    assert found.pairs_correct == pytest.approx((stats.kendalltau(x, y).statistic + 1) / 2)
    assert found.rho == pytest.approx(stats.spearmanr(x, y).statistic)
    assert found.top5_overlap == pytest.approx(len({*np.argsort(-x)[:5]} & {*np.argsort(-y)[:5]}) / 5)


def test_the_last_place_of_the_top_goes_by_name():
    truth = dict.fromkeys("abcdef", 0.5)
    said = {name: float(name != "a") for name in "abcdef"}
    assert agreement(said, truth).top5_overlap == pytest.approx(4 / 5)


def test_equal_orders_agree_and_reversed_ones_do_not():
    truth = {f"a{i}": i / 10 for i in range(8)}
    assert agreement(truth, truth) == agreement({k: v / 2 for k, v in truth.items()}, truth)
    assert agreement(truth, truth).pairs_correct == 1
    assert agreement({k: -v for k, v in truth.items()}, truth).pairs_correct == 0


@pytest.mark.parametrize("truth", [{}, {"a": 0.5}, {"a": 0.5, "b": 0.5}])
def test_nothing_is_in_order_where_nothing_differs(truth):
    found = agreement(truth, truth)
    assert (found.pairs_correct, found.rho, found.top5_overlap) == (None, None, None)


def test_who_has_no_truth_is_named():
    with pytest.raises(NoTruth, match="'b'"):
        agreement({"a": 0.1, "b": 0.2}, {"a": 0.1})
