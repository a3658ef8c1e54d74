"""What a second run of the leader is expected to score: by hand, by scipy's root, and in simulated runs."""

import numpy as np
import pytest
from scipy.optimize import brentq

from analytics.errors import CoreError
from analytics.rerun import regressed

FIVE = np.array([0.2, 0.35, 0.5, 0.65, 0.8])


def variances_of(v, scores, k):
    """V of agents whose noise at the mean spread is v."""
    rates = (k * scores + 2) / (k + 4)
    spread = rates * (1 - rates)
    return v * spread / spread.mean()


def test_five_agents_by_hand():
    # S = 2·(.3² + .15²) = .225; v + τ² = S/4 = .05625; b = 3/4·.01/.05625 = 2/15; .8 − 2/15·.3 = .76.
    result = regressed(FIVE, variances_of(0.01, FIVE, 40), 40)
    assert (result.mean, result.between) == pytest.approx((0.5, 0.04625), rel=1e-12)
    assert result.expected == pytest.approx([0.24, 0.37, 0.5, 0.63, 0.76], rel=1e-12)


def test_agents_that_noise_alone_could_spread_are_one_but_for_a_share():
    # S/.1 = 2.25 < 4, so τ² = 0; b = 3/4; .8 − .75·.3 = .575.
    result = regressed(FIVE, variances_of(0.1, FIVE, 40), 40)
    assert result.between == 0.0
    assert result.expected[-1] == pytest.approx(0.575, rel=1e-12)


def test_equal_scores_stay():
    assert regressed(np.ones(6), np.full(6, 0.01), 20).expected.tolist() == [1.0] * 6


@pytest.mark.parametrize("seed", range(5))
def test_the_between_variance_is_the_root_that_scipy_finds(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(5, 60)), 80
    scores, variances = rng.uniform(0.1, 0.9, n), rng.uniform(1e-5, 6e-3, n)
    rates = (k * scores + 2) / (k + 4)
    v = variances / (rates * (1 - rates)) * np.mean(rates * (1 - rates))

    def generalised_q(between):
        mean = np.average(scores, weights=1 / (v + between))
        return np.sum((scores - mean) ** 2 / (v + between)) - (n - 1)

    root = brentq(generalised_q, 0.0, 1.0, xtol=1e-16, rtol=1e-14)
    result = regressed(scores, variances, k)
    assert result.between == pytest.approx(root, rel=1e-10)
    assert result.mean == pytest.approx(np.average(scores, weights=1 / (v + root)), rel=1e-10)


@pytest.mark.parametrize(("n_trials", "seed"), [(1, 1), (5, 2)])
def test_a_second_run_of_rasch_agents_scores_what_was_expected(n_trials, seed):
    """On average over boards, within four Monte-Carlo errors; without regression it would be far outside."""
    rng = np.random.default_rng(seed)
    n, k, n_boards = 20, 80, 1500
    luck, result = np.empty(n_boards), np.empty(n_boards)
    for board in range(n_boards):
        chances = 1 / (1 + np.exp(rng.normal(0, 1.5, k) - rng.normal(0, 1, (n, 1))))
        scores = rng.binomial(n_trials, chances).mean(axis=1) / n_trials
        leader = int(scores.argmax())
        variances = (chances * (1 - chances)).sum(axis=1) / (n_trials * k**2)
        again = rng.binomial(n_trials, chances[leader]).mean() / n_trials
        luck[board] = scores[leader] - again
        result[board] = scores[leader] - regressed(scores, variances, k).expected[leader]
    error = float(np.std(luck - result, ddof=1)) / np.sqrt(n_boards)
    assert abs(luck.mean() - result.mean()) < 4 * error
    assert luck.mean() > 6 * error


def test_what_cannot_be_told_is_refused():
    with pytest.raises(CoreError, match="4 agents; how much agents differ takes 5"):
        regressed(FIVE[:4], np.full(4, 0.01), 40)
    for scores, variances in ((FIVE, np.zeros(5)), (FIVE * 2, np.full(5, 0.1)), (FIVE, np.full(5, np.nan))):
        with pytest.raises(CoreError, match="outside 0 to 1"):
            regressed(scores, variances, 40)
    with pytest.raises(CoreError, match="scores"):
        regressed(FIVE, np.full(4, 0.01), 40)
