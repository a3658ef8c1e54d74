import math
import tracemalloc
from collections import defaultdict
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from analytics.differences.error_draws import least_by_tasks
from analytics.differences.neyman_draws import agent_noise, draws_for, task_weights
from analytics.differences.ranks import rank_intervals, resample
from analytics.errors import CoreError
from tests.tables import fifths, names

REPEATABLE = settings(derandomize=True, deadline=None, max_examples=25)


def tied_with(ranks, agent):
    return tuple(np.flatnonzero(ranks.tied[agent]).tolist())


def matrix_of(rows):
    """Mean outcomes on the tasks that all agents have, agents and tasks in name order."""
    cells = defaultdict(list)
    for row in rows:
        if row.get("valid", "1") == "1":
            cells[row["agent"], row["task"]].append(float(row["outcome"]))
    agents, tasks = (sorted({row[column] for row in rows}) for column in ("agent", "task"))
    means = np.array([[np.mean(cells[a, t]) if cells[a, t] else math.nan for t in tasks] for a in agents])
    return agents, means[:, ~np.isnan(means).any(axis=0)]


def slow_ratios(outcomes, v, seed, n_draws):
    """T*_ba pair by pair, with the resampled differences written out and two rows of ±1 of half weight."""
    n, k = outcomes.shape
    result = np.zeros((n_draws, n, n))
    draws = zip(task_weights(k, seed, n_draws), agent_noise(names(n), v, seed, n_draws), strict=True)
    for draw, (weights, noise) in enumerate(draws):
        drawn = np.repeat(np.arange(k), weights.astype(int))
        for a, b in np.argwhere(~np.eye(n, dtype=bool)):
            d = outcomes[b] - outcomes[a]
            shift = d[drawn].mean() - d.mean() + noise[b] - noise[a]
            values = np.concatenate([d[drawn], [1.0, -1.0]])
            counts = np.concatenate([np.ones(k), [0.5, 0.5]])
            spread = np.sum(counts * values**2) - np.sum(counts * values) ** 2 / (k + 2)
            result[draw, b, a] = shift / math.sqrt(spread / (k + 2) ** 2 + v[a] + v[b])
    return result


def reaching(squares, floor):
    """What is at least the floor; 0 elsewhere."""
    return np.where(squares >= floor, squares, 0.0)


def upper_point(largest):
    """Return the ⌈.95(B + 1)⌉-th smallest."""
    return sorted(largest)[math.ceil(0.95 * (len(largest) + 1) - 1e-9) - 1]


@pytest.mark.parametrize("v", [None, [0.0, 0.01, 0.0, 0.02]])
def test_c_and_ranks_equal_those_found_pair_by_pair(v):
    outcomes = fifths(1, 4, 9)
    result = rank_intervals(resample(outcomes, names(4), seed=5, v=v, n_draws=59))
    ratios = slow_ratios(outcomes, np.zeros(4) if v is None else np.array(v), 5, 59)
    critical = upper_point(ratios.max(axis=(1, 2)))
    assert result.critical == pytest.approx(max(critical, stats.t.ppf(0.975, 8)), rel=1e-5)
    each = ratios.max(axis=1)
    least = max(upper_point(each.ravel()), stats.t.ppf(0.95, 8))
    own = [max(upper_point(each[:, a]), least) for a in range(4)]
    means = outcomes.mean(axis=1)
    first = [not any(means[b] - means[a] > own[a] * result.se[a, b] for b in range(4)) for a in range(4)]
    assert result.may_be_first.tolist() == first
    for a in range(4):
        beaten = [
            b for b in range(4) if outcomes[a].mean() - outcomes[b].mean() > result.critical * result.se[a, b]
        ]
        assert np.flatnonzero(result.beats[a]).tolist() == beaten
        assert result.upper[a] == 4 - len(beaten)
        assert result.lower[a] == 1 + np.count_nonzero(result.beats[:, a])


def test_a_standard_error_by_hand():
    # d = 1, 0, 0, 0, 0: (1 + 1 − 1/7)/49, and with v .01 + .02.
    outcomes = np.array([[1.0, 1, 0, 0, 0], [0.0, 1, 0, 0, 0]])
    assert rank_intervals(resample(outcomes, "ab", seed=0)).se[0, 1] == pytest.approx(math.sqrt(13 / 7) / 7)
    result = rank_intervals(resample(outcomes, "ab", seed=0, v=[0.01, 0.02]))
    assert result.se[0, 1] == pytest.approx(math.sqrt(13 / 343 + 0.03))


def test_the_critical_value_of_two_agents_is_near_the_paired_t_quantile():
    d = np.random.default_rng(2).uniform(-1, 1, 400)
    outcomes = np.stack([0.5 + d / 2, 0.5 - d / 2])
    critical = rank_intervals(resample(outcomes, "ab", seed=1, n_draws=4000)).critical
    # Σd² is about 133, so that the pseudo-tasks change se* by less than 1%; Monte Carlo error .04.
    assert critical == pytest.approx(stats.t.ppf(0.975, 399), abs=0.1)


# ------------------------------------------------------------------------------------------- ties and limits


def test_identical_agents_are_tied_and_share_their_rank_interval():
    outcomes = (np.random.default_rng(3).random((5, 60)) < np.linspace(0.1, 0.9, 5)[:, None]).astype(float)
    outcomes[2] = outcomes[1]
    result = rank_intervals(resample(outcomes, names(5), seed=1))
    assert 2 in tied_with(result, 1)
    assert 1 in tied_with(result, 2)
    assert (result.lower[1], result.upper[1]) == (result.lower[2], result.upper[2])
    assert result.beats[4, 0]
    assert 0 not in tied_with(result, 4)


def test_equal_outcomes_leave_every_rank_open():
    for value in (0.0, 0.3, 1.0):
        result = rank_intervals(resample(np.full((4, 6), value), names(4), seed=0, n_draws=50))
        assert (result.lower.tolist(), result.upper.tolist()) == ([1] * 4, [4] * 4)
        assert tied_with(result, 0) == (1, 2, 3)


def test_means_equal_to_nine_decimals_are_equal():
    outcomes = np.array([[0.1, 0.2, 0.3, 0.0, 0.0], [0.3, 0.2, 0.1, 0.0, 0.0]])
    assert len(set(rank_intervals(resample(outcomes, "ab", seed=0, n_draws=50)).means.tolist())) == 1


def test_one_agent_is_first_of_one():
    result = rank_intervals(resample(fifths(0, 1, 8), ("only",), seed=0, n_draws=50))
    assert (result.lower.tolist(), result.upper.tolist(), result.critical) == ([1], [1], None)
    assert tied_with(result, 0) == ()


def test_five_tasks_never_need_less_than_one_pair_would():
    # All five differences are 1: no draw differs from the data and T* is 0.
    result = rank_intervals(resample(np.stack([np.ones(5), np.zeros(5)]), "ab", seed=0))
    assert result.critical == pytest.approx(stats.t.ppf(0.975, 4))
    assert result.beats.tolist() == [[False, True], [False, False]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"outcomes": np.ones((2, 4))}, "ranks need at least 5 tasks, not 4"),
        ({"outcomes": np.ones((2, 1))}, "ranks need at least 5 tasks, not 1"),
        ({"outcomes": np.ones((3, 6))}, r"shape \(3, 6\) for 2 agents"),
        ({"outcomes": np.ones((0, 6)), "agents": ()}, r"shape \(0, 6\) for 0 agents"),
        ({"outcomes": np.array([[1.0] * 6, [1, 1, math.nan, 1, 1, 1]])}, "agent 'b', task 2: nan is not"),
        ({"outcomes": np.full((2, 6), 1.5)}, "agent 'a', task 0: 1.5"),
        ({"agents": ("b", "a")}, "'a' stands after 'b'"),
        ({"agents": ("a", "a")}, "none twice"),
        ({"v": [0.1]}, "v: a finite variance"),
        ({"v": [0.1, -0.1]}, "v: a finite variance"),
        ({"v": [0.1, math.nan]}, "v: a finite variance"),
        ({"n_draws": 18}, "18 draws have no upper 5% point"),
    ],
)
def test_what_cannot_be_ranked_is_refused(changes, message):
    arguments = {"outcomes": np.ones((2, 6)), "agents": ("a", "b"), "seed": 0} | changes
    with pytest.raises(CoreError, match=message):
        resample(**arguments)


# ------------------------------------------------------------------------- randomness, one agent more


@pytest.mark.parametrize("place", [0, 3, 6])
@pytest.mark.parametrize("kind", ["binary", "fifths", "irrational"])
def test_an_agent_more_leaves_the_draws_of_the_others(place, kind):
    rng = np.random.default_rng(place)
    outcomes = {
        "binary": np.rint(rng.random((7, 33))),
        "fifths": fifths(place, 7, 33),
        "irrational": rng.random((7, 33)),
    }
    table, v = outcomes[kind], np.where(rng.random(7) < 0.5, 0.0, 0.003)
    others = np.delete(np.arange(7), place)
    part = resample(table[others], [names(7)[i] for i in others], seed=9, v=v[others], n_draws=100)
    whole = resample(table, names(7), seed=9, v=v, n_draws=100)
    floor = max(whole.ahead.floor, part.ahead.floor)
    before, after = reaching(part.ahead.squares, floor), reaching(whole.ahead.squares, floor)[:, others]
    assert (after >= before).all()
    assert ((after == before) & (before > 0)).any()


def test_the_pairs_of_many_agents_are_those_of_every_two(monkeypatch):
    """Blocks of agents, single precision and tasks not drawn change no pair, to the last bit."""
    table = np.random.default_rng(3).integers(0, 2, (7, 33)).astype(float)
    v = np.array([0, 0, 0.002, 0, 0.001, 0, 0])
    whole = resample(table, names(7), seed=2, v=v, n_draws=300)
    monkeypatch.setattr("analytics.differences.neyman_draws.FEW_AGENTS", 0)  # 256 draws at a time
    by_one = resample(table, names(7), seed=2, v=v, n_draws=300).ahead
    assert by_one.squares.tobytes() == whole.ahead.squares.tobytes()
    result = np.zeros((300, 7))
    for i, j in combinations(range(7), 2):
        pair = resample(table[[i, j]], [names(7)[i], names(7)[j]], seed=2, v=v[[i, j]], n_draws=300)
        result[:, [i, j]] = np.maximum(result[:, [i, j]], pair.ahead.squares)
    assert reaching(result, whole.ahead.floor).tobytes() == whole.ahead.squares.tobytes()


@pytest.mark.parametrize(
    ("n_agents", "n_draws"),
    [(1, 10_000), (512, 10_000), (513, 5_000), (1_024, 5_000), (1_025, 2_500), (2_049, 1_250)],
)
def test_large_boards_have_fewer_draws(n_agents, n_draws):
    """Half as many for each doubling: the effort grows as agents × tasks, not as their pairs."""
    assert draws_for(n_agents) == n_draws


@pytest.mark.parametrize("levels", [2, 6])
def test_fewer_draws_are_the_first_ones(levels):
    table = np.random.default_rng(8).integers(0, levels, (6, 21)) / (levels - 1)
    few, many = (resample(table, names(6), seed=5, n_draws=n) for n in (300, 700))
    floor = max(few.ahead.floor, many.ahead.floor)
    first = reaching(many.ahead.squares[:300], floor)
    assert first.any()
    assert reaching(few.ahead.squares, floor).tobytes() == first.tobytes()


def test_what_excludes_an_agent_is_at_least_what_excludes_a_typical_one():
    """Of 100 ratios 1, 2, … 100, squared here, the 96th; Student's 95% point where that is larger."""
    ratios = np.random.default_rng(1).permutation(np.arange(1.0, 101.0)).reshape(20, 5)
    assert least_by_tasks(ratios**2, 6) == 96.0
    assert least_by_tasks(ratios**2 / 100**2, 6) == pytest.approx(stats.t.ppf(0.95, 6))


def test_unclaimed_orders_are_ties_and_exclude_nobody():
    outcomes = (np.random.default_rng(3).random((5, 60)) < np.linspace(0.1, 0.9, 5)[:, None]).astype(float)
    drawn, unclaimed = resample(outcomes, names(5), seed=1, n_draws=200), np.zeros((5, 5), dtype=bool)
    unclaimed[0] = unclaimed[:, 0] = True
    plain, result = rank_intervals(drawn), rank_intervals(drawn, unclaimed)
    assert not plain.may_be_first[0]
    assert result.may_be_first[0]
    assert tied_with(result, 0) == (1, 2, 3, 4)
    assert (result.beats[1:, 1:] == plain.beats[1:, 1:]).all()
    assert result.critical == plain.critical


def test_the_seed_decides_and_nothing_else():
    outcomes = fifths(4, 6, 20)
    once, again, other = (
        rank_intervals(resample(outcomes, names(6), seed=s, n_draws=200)) for s in (1, 1, 2)
    )
    assert once.critical == again.critical != other.critical
    assert once.beats.tobytes() == again.beats.tobytes()


@REPEATABLE
@given(st.integers(0, 500))
def test_renaming_agents_only_relabels_them(seed):
    outcomes, order = fifths(seed, 5, 12), np.random.default_rng(seed).permutation(5)
    result = rank_intervals(resample(outcomes, names(5), seed=0, n_draws=60))
    moved = rank_intervals(resample(outcomes[order], names(5), seed=0, n_draws=60))
    assert moved.critical == result.critical
    assert (moved.lower == result.lower[order]).all()
    assert (moved.upper == result.upper[order]).all()


@REPEATABLE
@given(st.integers(0, 500))
def test_ranks_and_ties_are_two_ways_to_say_who_beats_whom(seed):
    outcomes = (np.random.default_rng(seed).random((8, 40)) < np.linspace(0.1, 0.9, 8)[:, None]).astype(float)
    result = rank_intervals(resample(outcomes, names(8), seed=0, n_draws=60))
    assert not (result.beats & result.beats.T).any()
    assert result.may_be_first[np.argmax(result.means)]
    assert (result.lower[result.may_be_first] == 1).all()
    by_mean = 1 + (result.means[:, None] < result.means).sum(axis=1)
    assert ((result.lower <= by_mean) & (by_mean <= result.upper)).all()
    for a in range(8):
        width = result.upper[a] - result.lower[a]
        assert len(tied_with(result, a)) == width
        assert all(a in tied_with(result, b) for b in tied_with(result, a))


# ---------------------------------------------------------------------------------------------- real boards


def test_terminal_bench_ranks(real_rows):
    agents, outcomes = matrix_of(real_rows("terminal_bench_core_011"))
    found = rank_intervals(resample(outcomes, agents, seed=1))
    print(f"\nterminal_bench_core_011, {len(agents)} agents on {found.n_tasks} tasks, c {found.critical:.2f}")
    for i in np.argsort(-found.means, kind="stable"):
        print(f"{agents[i]:<44} {found.means[i]:.3f} rank {found.lower[i]}-{found.upper[i]}, "
              f"tied with {len(tied_with(found, i))}")  # fmt: skip
    assert found.lower[np.argmax(found.means)] == 1
    assert found.upper[np.argmin(found.means)] == len(agents)


def test_verified_ranks_need_little_memory(real_rows):
    agents, outcomes = matrix_of(real_rows("swebench_verified_2023_2025"))
    tracemalloc.start()
    found = rank_intervals(resample(outcomes, agents, seed=1))
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    width = np.median(found.upper - found.lower)
    print(f"\n57 x 500, 10,000 draws: {peak:.0f} MiB, c {found.critical:.2f}, median width {width:g} ranks")
    assert outcomes.shape == (57, 500)
    assert peak < 100
    assert found.upper[np.argmin(found.means)] == 57
