"""Whether drawn agents stand as was published of them: by hand, and on boards that do not change."""

from datetime import date, timedelta

import numpy as np
import pytest
from scipy.stats import norm

from analytics.drift import published_order


def asked(estimates, errors, scores):
    n = len(scores)
    days = [date(2025, 1, 1) + timedelta(days=i) for i in range(n)]
    parts = (np.array(part, dtype=float) for part in (estimates, errors, scores))
    return published_order(*parts, [f"a{i}" for i in range(n)], days)


def test_the_share_of_pairs_by_loops():
    rng = np.random.default_rng(4)
    scores = np.round(rng.random(10), 2)
    estimates, errors = scores + rng.normal(0, 0.1, 10), rng.uniform(0.02, 0.1, 10)
    result = asked(estimates, errors, scores)

    def share(rows):
        pairs = [(i, j) for i in rows for j in rows if i < j and scores[i] != scores[j]]
        right = [(estimates[i] > estimates[j]) == (scores[i] > scores[j]) for i, j in pairs]
        sure = [norm.cdf(abs(estimates[i] - estimates[j]) / np.hypot(errors[i], errors[j])) for i, j in pairs]
        return np.mean(right), np.mean(sure)

    right, promised = share(range(10))
    without = np.array([share([i for i in range(10) if i != left])[0] for left in range(10)])
    error = np.sqrt(0.9 * ((without - without.mean()) ** 2).sum())
    assert result.evidence["share"] == pytest.approx(right)
    assert result.evidence["promised"] == pytest.approx(promised)
    assert result.evidence["se"] == pytest.approx(error)
    assert result.threshold == pytest.approx(min(0.92, promised))
    assert result.statistic == pytest.approx(min(right + norm.isf(0.005) * error, 1))


def test_an_order_turned_round_alerts_and_one_that_holds_does_not():
    scores = np.linspace(0.1, 0.9, 20)
    assert asked(scores, np.full(20, 0.02), scores).state == "ok"
    result = asked(scores[::-1], np.full(20, 0.02), scores)
    assert (result.state, result.evidence["share"]) == ("alert", 0.0)
    assert "the verdict" in result.advice


def test_between_two_looks_the_last_one_stands():
    scores = np.linspace(0.1, 0.9, 19)
    estimates = np.concatenate([scores[:10], scores[10:][::-1]])
    assert asked(estimates, np.full(19, 0.02), scores).evidence["share"] == 1.0


def test_close_scores_are_not_held_against_estimates_that_promised_little():
    rng = np.random.default_rng(1)
    scores = rng.normal(0.5, 0.01, 40)
    result = asked(scores + rng.normal(0, 0.03, 40), np.full(40, 0.03), scores)
    assert result.evidence["share"] < 0.8
    assert result.state == "ok"


def test_too_few_agents_and_equal_scores_say_nothing():
    assert asked([0.1] * 9, [0.1] * 9, np.arange(9) / 9).state == "insufficient"
    assert asked(np.arange(10) / 10, [0.1] * 10, [0.5] * 10).state == "insufficient"


@pytest.mark.parametrize("spread", [0.03, 0.15])
def test_a_board_that_does_not_change_seldom_alerts(spread):
    """Over looks at 10, 20, 40 and 80 agents, estimates erring as they say."""
    rng = np.random.default_rng(7)
    warned = alerted = 0
    for _ in range(400):
        scores, errors = rng.normal(0.5, spread, 80), rng.uniform(0.01, 0.04, 80)
        estimates = scores + rng.normal(0, errors)
        states = {asked(estimates[:n], errors[:n], scores[:n]).state for n in (10, 20, 40, 80)}
        warned += bool(states & {"warn", "alert"})
        alerted += "alert" in states
    assert warned <= 40
    assert alerted <= 8


def test_estimates_without_a_relation_to_the_scores_are_noticed():
    rng = np.random.default_rng(8)
    result = []
    for _ in range(100):
        scores, estimates = rng.normal(0.5, 0.15, (2, 20))
        result.append(asked(estimates, np.full(20, 0.03), scores).state)
    assert result.count("alert") >= 80
