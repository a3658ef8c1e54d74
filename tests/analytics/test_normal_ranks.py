import numpy as np
import pytest
from scipy.stats import studentized_range, t

from analytics.differences.normal_ranks import DRAW, ErrorsRefused, normal_rank_intervals

NAMES = [f"a{i:02d}" for i in range(40)]


def ranked(scores, se2, estimated=False, df=9, seed=1, n_draws=20_000):
    """`df` of one calibration for all estimated agents, or of several with `estimated` their positions."""
    scores = np.asarray(scores, float)
    se2 = np.broadcast_to(np.asarray(se2, float), scores.shape)
    if np.ndim(df) == 0:
        estimated, df = np.where(estimated, 0, -1), (df,)
    which = np.broadcast_to(estimated, scores.shape)
    return normal_rank_intervals(
        scores, se2, NAMES[: scores.size], calibration=which, df=df, seed=seed, n_draws=n_draws
    )


@pytest.mark.parametrize(("n", "df"), [(2, 8), (5, 20), (12, 30)])
def test_with_one_estimated_variance_it_is_tukeys_range(n, df):
    found = ranked(np.zeros(n), 0.04, True, df, n_draws=60_000)
    assert found.critical == pytest.approx(studentized_range.ppf(0.95, n, df) / np.sqrt(2), abs=0.04)


def test_two_agents_get_students_t():
    assert ranked([0, 0], 1, True, 6, n_draws=100_000).critical == pytest.approx(t.ppf(0.975, 6), abs=0.05)


def test_by_hand():
    # c ≈ 2.34 for three known variances; differences of .5 at √.02 = .141 are clear, of .1 are not
    found = ranked([0.9, 0.8, 0.3], 0.01)
    assert found.lower.tolist() == [1, 1, 3]
    assert found.upper.tolist() == [2, 2, 3]
    assert [found.tied_with(i) for i in range(3)] == [(1,), (0,), ()]


def test_coverage_of_all_differences_at_once():
    rng = np.random.default_rng(4)
    se2 = np.array([0.01] * 6 + [0.04] * 6)
    estimated, df = np.arange(12) >= 6, 15
    hits = 0
    for _ in range(400):
        errors = rng.standard_normal(12) * np.sqrt(se2)
        seen = np.where(estimated, se2 * rng.chisquare(df) / df, se2)
        found = ranked(errors, seen, estimated, df, seed=0, n_draws=2_000)
        hits += not found.beats.any()  # all true scores are equal
    assert hits / 400 >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 400)


@pytest.mark.parametrize("n", [2, 3, 17])
def test_the_quantile_is_that_of_all_pairs_of_all_draws(n):
    """By definition, without the bound that spares most pairs; two calibrations beside measured agents."""
    rng = np.random.default_rng(n)
    se2, which, df = rng.uniform(0.001, 0.02, n), rng.integers(-1, 2, n), (12, 5)
    found = ranked(rng.random(n), se2, which, df, seed=3, n_draws=500)
    draws = np.random.default_rng((3, DRAW))
    errors = draws.standard_normal((500, n)) * np.sqrt(se2)
    scales = np.array([draws.chisquare(one, 500) / one for one in df] + [np.ones(500)])
    largest = [
        max(
            abs(e[a] - e[b]) / np.sqrt(se2[a] * scales[which[a], i] + se2[b] * scales[which[b], i])
            for a in range(n)
            for b in range(a)
        )
        for i, e in enumerate(errors)
    ]
    assert found.critical == pytest.approx(np.sort(largest)[int(np.ceil(0.95 * 501)) - 1], rel=1e-12)


def test_it_is_deterministic_for_a_seed_and_refuses_what_has_no_error():
    assert ranked([0.1, 0.2], 0.1).critical == ranked([0.1, 0.2], 0.1).critical
    for scores, se2, df in (
        ([0.1], 0.1, 9),
        ([0.1, 0.2], 0.0, 9),
        ([0.1, np.nan], 0.1, 9),
        ([0.1, 0.2], 0.1, 0),
    ):
        with pytest.raises(ErrorsRefused):
            ranked(scores, se2, df=df)
