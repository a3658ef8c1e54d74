import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from analytics.drift.e_value import ShareMalformed, largest, log_e_values, upper_share


def test_by_hand():
    # p₀ = .05: a = 1, b = 19. One miss: B(2, 19)/(B(1, 19)·.05) = (1/20)/.05 = 1; one hit: (19/20)/.95 = 1.
    assert log_e_values([1, 0], [1, 1], 0.05) == pytest.approx([0, 0], abs=1e-12)
    # two misses: (1/20)(2/21)/.0025 = 40/21
    assert math.exp(log_e_values([2], [2], 0.05)[0]) == pytest.approx(40 / 21)


@pytest.mark.parametrize("n", [1, 7, 30])
@pytest.mark.parametrize("p", [0.05, 0.2])
def test_its_expectation_is_one_under_the_promised_share(n, p):
    counts = np.arange(n + 1)
    values = np.exp(log_e_values(counts, np.full(n + 1, n), p))
    assert binom.pmf(counts, n, p) @ values == pytest.approx(1)


def test_it_is_a_martingale():
    for missed, n in ((0, 0), (3, 10), (10, 10)):
        later = np.exp(log_e_values([missed, missed + 1], [n + 1, n + 1], 0.05))
        assert 0.95 * later[0] + 0.05 * later[1] == pytest.approx(
            math.exp(log_e_values([missed], [n], 0.05)[0])
        )


def test_exact_rationals():
    # p₀ = .05, s = 3 of n = 5: ∏(1+i)/(20+i) for misses, ∏(19+j)/(23+j) for hits, over p₀³(1−p₀)²
    ratio = Fraction(1 * 2 * 3, 20 * 21 * 22) * Fraction(19 * 20, 23 * 24)
    ratio /= Fraction(1, 20) ** 3 * Fraction(19, 20) ** 2
    assert math.exp(log_e_values([3], [5], 0.05)[0]) == pytest.approx(float(ratio))


def test_upper_share_is_the_root_of_the_binomial_tail():
    share = upper_share(3, 200)
    assert binom.cdf(3, 200, share) == pytest.approx(0.10)
    assert upper_share(0, 10) == pytest.approx(1 - 0.1 ** (1 / 10))


def test_refusals():
    with pytest.raises(ShareMalformed, match="strictly between"):
        log_e_values([0], [1], 0.0)
    with pytest.raises(ShareMalformed, match="from 0 to the number"):
        log_e_values([2], [1], 0.5)
    with pytest.raises(ShareMalformed, match="5 misses of 5"):
        upper_share(5, 5)


def test_largest_is_at_least_one():
    assert largest([]) == 1
    assert largest([-3.0, -1.0]) == 1
    assert largest([0.0, math.log(7), 1.0]) == pytest.approx(7)
    assert largest([5_000.0]) == math.exp(700)


@pytest.mark.slow
def test_false_alerts_over_500_looks(capsys):
    rng = np.random.default_rng(20260101)
    n = np.arange(1, 501)
    missed = np.cumsum(rng.random((20_000, 500)) < 0.05, axis=1)
    logs = log_e_values(missed, np.broadcast_to(n, missed.shape), 0.05)
    alerts = float((logs.max(axis=1) >= math.log(100)).mean())
    with capsys.disabled():
        print(f"\nfalse alerts of the e-value in 500 looks: {alerts:.4f}")
    assert alerts <= 0.01
