import math
from collections import defaultdict
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from analytics.drift.rank_correlation import (
    kendall,
    midranks,
    rho_null,
    skill,
    spearman,
    spearman_interval,
)
from analytics.errors import CoreError
from tests.refusals import refused

REPEATABLE = settings(derandomize=True, deadline=None)
SAMPLE = st.lists(st.sampled_from([0.0, 0.1, 0.2, 1 / 3, 0.5, 0.9, 1.0]), min_size=2, max_size=12)


def matrix_of(rows):
    """Mean outcomes of agents on tasks in name order, NaN where there is no valid trial."""
    cells = defaultdict(list)
    for row in rows:
        if row.get("valid", "1") == "1":
            cells[row["agent"], row["task"]].append(float(row["outcome"]))
    agents, tasks = (sorted({row[column] for row in rows}) for column in ("agent", "task"))
    return np.array([[np.mean(cells[a, t]) if cells[a, t] else math.nan for t in tasks] for a in agents])


# ------------------------------------------------------------------------------------------------- by hand


def test_midranks_share_the_mean_of_their_places():
    assert midranks([0.3, 0.1, 0.3, 0.2]).tolist() == [3.5, 1.0, 3.5, 2.0]
    assert midranks([[1.0, 1.0], [0.0, 2.0]]).tolist() == [[1.5, 1.5], [1.0, 2.0]]


def test_what_is_equal_to_nine_decimals_is_a_tie():
    assert midranks([0.1 + 0.2, 0.3, 0.3 + 1e-8]).tolist() == [1.5, 1.5, 3.0]
    assert spearman([0.1 + 0.2, 0.3], [1.0, 2.0]) is None
    assert kendall([0.1 + 0.2, 0.3], [1.0, 2.0]) is None
    assert midranks([0.0, -1e-12]).tolist() == [1.5, 1.5]


def test_spearman_and_kendall_by_hand():
    # Ranks 1 2 3 4 and 2 1 4 3: 1 - 6*4/(4*15) = 0.6; 4 of 6 pairs agree: (4 - 2)/6.
    assert spearman([1, 2, 3, 4], [2, 1, 4, 3]) == pytest.approx(0.6, abs=1e-15)
    assert kendall([1, 2, 3, 4], [2, 1, 4, 3]) == pytest.approx(1 / 3, abs=1e-15)
    # One tie in a: pairs that differ in a 2, in b 3; both concordant: 2/sqrt(6).
    assert kendall([1, 2, 2], [1, 2, 3]) == pytest.approx(2 / math.sqrt(6), abs=1e-15)


def test_an_order_and_its_reverse_are_exactly_one_and_minus_one():
    values = np.random.default_rng(1).random(57)
    assert (spearman(values, values), kendall(values, -values)) == (1.0, -1.0)
    assert (spearman(values, -values), kendall(values, values)) == (-1.0, 1.0)


@pytest.mark.parametrize(("a", "b"), [([], []), ([1.0], [2.0]), ([1.0, 1.0], [1.0, 2.0]), ([1, 2], [3, 3])])
def test_no_order_no_correlation(a, b):
    assert spearman(a, b) is None
    assert kendall(a, b) is None


@pytest.mark.parametrize(("a", "b"), [([1.0, 2.0], [1.0]), ([1.0, math.nan], [1.0, 2.0]), ([[1.0]], [[1.0]])])
def test_what_is_not_two_samples_is_refused(a, b):
    for statistic in (spearman, kendall):
        with refused(CoreError, "sample_malformed"):
            statistic(a, b)
    with pytest.raises(CoreError, match="no rank"):
        midranks([math.inf])


# ---------------------------------------------------------------------------------------- foreign programs


@REPEATABLE
@given(st.data())
def test_ranks_and_correlations_equal_those_of_scipy(data):
    from scipy import stats

    a = data.draw(SAMPLE)
    b = data.draw(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=len(a), max_size=len(a)))
    assert midranks(a).tolist() == stats.rankdata(a).tolist()
    assume(len(set(a)) > 1 and len(set(b)) > 1)
    assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-12)
    assert kendall(a, b) == pytest.approx(stats.kendalltau(a, b).statistic, abs=1e-12)


@REPEATABLE
@given(SAMPLE, st.randoms(use_true_random=False))
def test_both_are_symmetric_and_blind_to_order_and_scale(a, random):
    b = random.sample(a, len(a))
    order = random.sample(range(len(a)), len(a))
    for statistic in (spearman, kendall):
        assert statistic(a, b) == statistic(b, a)
        assert statistic([a[i] for i in order], [b[i] for i in order]) == statistic(a, b)
        assert statistic([10 * x + 3 for x in a], b) == statistic(a, b)


# ---------------------------------------------------------------------------------------------------- skill


def mean_over_all_permutations(outcomes, subset):
    """Average Spearman over every way to permute every column."""
    columns = [list(permutations(column)) for column in outcomes.T]
    rhos = []
    for chosen in product(*columns):
        permuted = np.array(chosen).T
        rhos.append(spearman(permuted[:, subset].mean(axis=1), permuted.mean(axis=1)))
    return np.mean([rho for rho in rhos if rho is not None])


def test_rho_null_is_the_mean_over_all_permutations():
    outcomes = np.array([[0.0, 0.2, 1.0], [0.5, 0.4, 0.0], [1.0, 0.9, 0.3]])
    subset = np.array([True, True, False])
    (estimate,) = rho_null(outcomes, subset[None], seed=1, n_draws=4000)
    # 216 equally likely matrices; the sd of rho is below 0.5, so 4,000 draws have an error below 0.008.
    assert estimate == pytest.approx(mean_over_all_permutations(outcomes, subset), abs=0.024)


# Recomputed independently from the HAL matrices with the mid-range subset; Monte Carlo error about .005.
@pytest.mark.parametrize(
    ("name", "k", "expected"),
    [("hal_corebench_hard", 15, 0.763), ("hal_gaia", 82, 0.772), ("hal_taubench_airline", 28, 0.811)],
)
def test_rho_null_of_real_boards(real_rows, name, k, expected):
    outcomes = matrix_of(real_rows(name))
    rates = np.nanmean(outcomes, axis=0)
    subset = (rates > 0.3 - 1e-9) & (rates < 0.7 + 1e-9)
    assert subset.sum() == k
    (value,) = rho_null(outcomes, subset[None], seed=1)
    print(f"{name}: rho_null {value:.3f} ({expected} expected)")
    assert value == pytest.approx(expected, abs=0.01)


def test_rho_null_depends_on_seed_and_not_on_the_other_subsets_or_the_chunks(monkeypatch):
    rng = np.random.default_rng(3)
    outcomes = rng.integers(0, 2, (12, 20)).astype(float)
    outcomes[3, 4] = math.nan
    subsets = rng.random((5, 20)) < 0.5
    together = rho_null(outcomes, subsets, seed=7, n_draws=50)
    assert together == tuple(rho_null(outcomes, s[None], seed=7, n_draws=50)[0] for s in subsets)
    assert together != rho_null(outcomes, subsets, seed=8, n_draws=50)
    monkeypatch.setattr("analytics.drift.rank_correlation.CHUNK_CELLS", 1)
    assert together == rho_null(outcomes, subsets, seed=7, n_draws=50)


def test_the_whole_suite_and_constant_outcomes_have_their_own_values():
    outcomes = np.random.default_rng(0).random((6, 4))
    assert rho_null(outcomes, np.ones((1, 4), dtype=bool), seed=0, n_draws=20) == (1.0,)
    assert rho_null(np.ones((6, 4)), np.ones((1, 4), dtype=bool), seed=0, n_draws=20) == (None,)


def test_an_agent_without_a_cell_in_the_subset_is_left_out_there():
    rng = np.random.default_rng(5)
    outcomes = rng.random((5, 6))
    outcomes[0, :2] = math.nan
    subset = np.arange(6) < 2
    values = rho_null(outcomes, np.array([subset, ~subset]), seed=0, n_draws=400)
    # 2 of 6 or 4 of 6 equal tasks: the correlation with the whole is about sqrt(2/6) and sqrt(4/6).
    assert values[0] == pytest.approx(math.sqrt(2 / 6), abs=0.15)
    assert values[1] == pytest.approx(math.sqrt(4 / 6), abs=0.15)


@pytest.mark.parametrize(
    ("outcomes", "subsets", "message"),
    [
        (np.ones((2, 3)), np.ones((1, 2), dtype=bool), "subsets: bool"),
        (np.ones((2, 3)), np.ones((1, 3)), "subsets: float64"),
        (np.ones((2, 3)), np.zeros((1, 3), dtype=bool), "subset 0 has no task"),
        (np.ones(3), np.ones((1, 3), dtype=bool), "not agents by tasks"),
        (np.array([[1.0], [math.nan]]), np.ones((1, 1), dtype=bool), "agent 1 has no valid cell"),
    ],
)
def test_subsets_that_do_not_fit_are_refused(outcomes, subsets, message):
    with pytest.raises(CoreError, match=message):
        rho_null(outcomes, subsets, seed=0)


def test_skill_by_hand():
    assert skill(0.9, 0.8) == pytest.approx(0.5)
    assert skill(0.8, 0.8) == 0.0
    assert skill(1.0, 0.7) == 1.0
    assert (skill(None, 0.8), skill(0.9, None), skill(1.0, 1.0)) == (None, None, None)


# ------------------------------------------------------------------------------------------------- interval


def test_the_interval_is_the_jackknife_of_fishers_z():
    from scipy import stats

    rng = np.random.default_rng(11)
    y = rng.random(20)
    r = y + rng.normal(0, 0.2, 20)
    left_out = [stats.spearmanr(np.delete(r, i), np.delete(y, i)).statistic for i in range(20)]
    z = [math.atanh(rho) for rho in left_out]
    error = math.sqrt(19 / 20 * sum((value - sum(z) / 20) ** 2 for value in z))
    centre, half = math.atanh(stats.spearmanr(r, y).statistic), stats.t.ppf(0.975, 19) * error
    assert spearman_interval(r, y) == pytest.approx((math.tanh(centre - half), math.tanh(centre + half)))
    assert spearman(r, y) == pytest.approx(math.tanh(centre))


@pytest.mark.parametrize(
    ("a", "b", "rho"),
    [([0.1, 0.2, 0.3], [1, 2, 3], 1.0), ([0.5, 0.5], [0.1, 0.2], None), ([0.5], [0.5], None)],
)
def test_a_perfect_order_and_none_have_no_interval(a, b, rho):
    assert (spearman(a, b), spearman_interval(a, b)) == (rho, None)
