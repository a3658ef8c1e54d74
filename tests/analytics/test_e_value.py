import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom

from analytics.drift.e_value import e_text, first_alert, largest, log_bets, log_e_values, upper_share
from analytics.errors import CoreError


def e_values(n_missed, n, promised=0.05):
    return np.exp(log_e_values(n_missed, n, promised))


def test_one_event_by_hand():
    """One event weighs E(p)/p₀ or E(1 − p)/(1 − p₀), p exponential with mean .1 above p₀ and cut off at 1."""
    tail = math.exp(-0.95 / 0.1)
    mean = 0.05 + 0.1 - 0.95 * tail / (1 - tail)
    assert e_values([1, 0], [1, 1]) == pytest.approx([mean / 0.05, (1 - mean) / 0.95], rel=1e-12)


@pytest.mark.parametrize(
    ("missed", "n", "promised"), [(3, 10, 0.05), (20, 60, 0.05), (5, 5, 0.05), (5, 500, 0.05), (9, 700, 0.01)]
)
def test_it_is_the_integral(missed, n, promised):
    def integrand(p):
        ratio = (p / promised) ** missed * ((1 - p) / (1 - promised)) ** (n - missed)
        return ratio * math.exp(-(p - promised) / 0.1)

    points = [max(promised, missed / n + step / math.sqrt(n)) for step in (-1, -0.3, 0.01, 0.3)]
    result = quad(integrand, promised, 1, points=points, limit=500, epsabs=0, epsrel=1e-10)[0]
    total = 0.1 * (1 - math.exp(-(1 - promised) / 0.1))
    assert e_values([missed], [n], promised)[0] == pytest.approx(result / total, rel=1e-8)


@pytest.mark.parametrize("n", [1, 7, 30, 3_000])
@pytest.mark.parametrize("p", [0.05, 0.2])
def test_its_expectation_is_one_at_the_promised_share_and_less_below(n, p):
    counts = np.arange(n + 1)
    values = log_e_values(counts, np.full(n + 1, n), p)

    def expectation(truth):
        return np.exp(values + binom.logpmf(counts, n, truth)).sum()

    assert expectation(p) == pytest.approx(1, rel=1e-9)
    assert expectation(p / 2) < 1


def test_it_is_a_martingale():
    for missed, n in ((0, 0), (3, 10), (10, 10)):
        later = e_values([missed, missed + 1], [n + 1, n + 1])
        assert 0.95 * later[0] + 0.05 * later[1] == pytest.approx(e_values([missed], [n])[0])


def test_too_few_misses_are_no_evidence():
    assert (log_e_values(np.zeros(200), np.arange(200), 0.05) <= 1e-12).all()


def test_upper_share_is_the_root_of_the_binomial_tail():
    share = upper_share(3, 200)
    assert binom.cdf(3, 200, share) == pytest.approx(0.10)
    assert upper_share(0, 10) == pytest.approx(1 - 0.1 ** (1 / 10))


def test_refusals():
    with pytest.raises(CoreError, match="strictly between"):
        log_e_values([0], [1], 0.0)
    with pytest.raises(CoreError, match="from 0 to the number"):
        log_e_values([2], [1], 0.5)
    with pytest.raises(CoreError, match="5 misses of 5"):
        upper_share(5, 5)
    with pytest.raises(CoreError, match="strictly between"):
        log_bets(np.array([0.5]), 1.0)
    with pytest.raises(CoreError, match="from 0 to 1"):
        log_bets(np.array([1.5]), 0.5)


def test_largest_is_at_least_one():
    assert largest(np.empty(0)) == 1
    assert largest(np.array([-3.0, -1.0])) == 1
    assert largest(np.array([0.0, math.log(7), 1.0])) == pytest.approx(7)
    assert largest(np.array([5_000.0])) == math.exp(700)


def test_the_first_alert_is_where_e_reaches_100():
    missed = np.cumsum([True] * 6)
    logs, values = log_e_values(missed, np.arange(1, 7), 0.05), e_values(missed, np.arange(1, 7))
    assert largest(logs) == pytest.approx(values.max())
    assert first_alert(logs) == int(np.argmax(values >= 100))
    assert first_alert(logs[:1]) is None


def test_the_words_are_of_the_largest_and_not_of_the_last():
    """Seven misses of twelve, then none of eight: E was largest after the twelfth."""
    missed = np.cumsum([0] * 5 + [1] * 7 + [0] * 8)
    logs = log_e_values(missed, np.arange(1, 21), 0.05)
    assert logs[-1] < logs[11]
    assert e_text(logs) == (
        f"largest e-value so far {math.exp(logs[11]):.3g} (after 12 of 20), warns at 20, alerts at 100"
    )
    none = log_e_values(np.zeros(3), np.arange(1, 4), 0.05)
    assert e_text(none) == "largest e-value so far 1 (before the first), warns at 20, alerts at 100"


def test_bets_by_hand():
    """All that can be lost is the stake; a share of p₀ changes nothing, one of 2p₀ pays 1 + u."""
    u = ((np.arange(100) + 0.5) / 100) ** 2
    result = np.exp(log_bets(np.array([0.02, 0.04, 0.0]), 0.02))
    assert result == pytest.approx([1, np.mean(1 + u), np.mean((1 + u) * (1 - u))], rel=1e-12)


def test_bets_are_a_martingale_whatever_the_distribution():
    """Of values .5 and 0 with mean p₀, and of any before them, the expectation stays."""
    before = np.array([0.3, 0.0, 0.1])
    base = np.exp(log_bets(before, 0.1))[-1]
    high, low = (np.exp(log_bets(np.append(before, x), 0.1))[-1] for x in (0.5, 0.0))
    assert 0.2 * high + 0.8 * low == pytest.approx(base, rel=1e-12)


@pytest.mark.slow
def test_false_alerts_over_500_looks(capsys):
    rng = np.random.default_rng(20260101)
    missed = np.cumsum(rng.random((20_000, 500)) < 0.05, axis=1)
    logs = np.stack([_by_count(missed[:, i], i + 1) for i in range(500)])
    alerts = float((logs.max(axis=0) >= math.log(100)).mean())
    with capsys.disabled():
        print(f"\nfalse alerts of the e-value in 500 looks: {alerts:.4f}")
    assert alerts <= 0.01


def _by_count(missed, n):
    """E of each history after n events, computed once for each count."""
    counts = np.arange(n + 1)
    return log_e_values(counts, np.full(n + 1, n), 0.05)[missed]
