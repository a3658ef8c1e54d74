import itertools
import math

import numpy as np
import pytest
from scipy.stats import fisher_exact

from analytics.command_line import flat_file
from analytics.errors import CoreError
from analytics.trials import improving_trials
from analytics.trials.flags import (
    Dependence,
    Improvement,
    _log_at_most,
    _orders,
    dependent_trials,
    identical_agents,
    only_gains,
    only_improving,
    originals,
    parts,
    run_order,
    unclaimed_orders,
)

NAN = np.nan


def rows(*trials):
    """Columns of an agent whose trials have these outcomes on tasks 0, 1 and so on."""
    task = np.tile(np.arange(len(trials[0])), len(trials))
    trial = np.repeat(np.arange(len(trials)), len(trials[0]))
    return task, trial, np.concatenate(trials).astype(float)


def test_two_equal_trials_on_a_hundred_tasks_are_one():
    passes = np.arange(100) % 2
    assert dependent_trials(*rows(passes, passes)) == Dependence((0, 1), 100, 100, 0.5)


def test_independent_trials_are_not_flagged():
    rng = np.random.default_rng(1)
    assert dependent_trials(*rows(*(rng.integers(0, 2, 300) for _ in range(5)))) is None


def test_the_pair_that_agrees_most_is_told():
    rng = np.random.default_rng(2)
    first, other = rng.integers(0, 2, 400), rng.integers(0, 2, 400)
    nearly = first.copy()
    nearly[0] = 1 - nearly[0]
    result = dependent_trials(*rows(other, first, nearly))
    assert (result.trials, result.n_agreeing, result.n_tasks) == ((1, 2), 399, 400)


def test_99_tasks_or_a_lower_agreement_are_not_enough():
    passes = np.arange(99) % 2
    assert dependent_trials(*rows(passes, passes)) is None
    passes = np.arange(200) % 2
    two_off = passes.copy()
    two_off[:2] = 1 - two_off[:2]  # .990
    assert dependent_trials(*rows(passes, two_off)) is None


def test_an_agent_that_fails_nearly_always_agrees_by_chance():
    one_pass = np.zeros(100)
    one_pass[3] = 1
    assert dependent_trials(*rows(one_pass, one_pass)) is None  # chance .9802
    assert dependent_trials(*rows(np.zeros(100), np.zeros(100))) is None


def test_trials_are_compared_on_common_tasks_and_may_not_repeat():
    passes = np.arange(150) % 2
    task, trial, outcome = rows(passes, passes)
    kept = ~((trial == 1) & (task >= 60))
    assert dependent_trials(task[kept], trial[kept], outcome[kept]) is None
    with pytest.raises(CoreError, match="twice"):
        dependent_trials(np.array([0, 0]), np.array([1, 1]), np.array([0.0, 1.0]))
    with pytest.raises(CoreError, match="differ"):
        dependent_trials(np.array([0]), np.array([1, 1]), np.array([0.0, 1.0]))


def in_turn(*tasks):
    """Columns of an agent with these outcomes on tasks 0, 1 and so on, each in the order of its trials."""
    task = np.repeat(np.arange(len(tasks)), [len(one) for one in tasks])
    return task, np.concatenate(tasks).astype(float)


def test_trials_that_only_improve_by_hand():
    """Two passes of five trials end it with probability 1/C(5, 2) = 1/10: of six tasks 1e-6."""
    late, solved, failed = [0, 0, 0, 1, 1], [1] * 5, [0] * 5
    result = only_improving(*in_turn(*[late] * 6, solved, failed))
    assert result == Improvement(6, 0, pytest.approx(math.log(1e-6), rel=1e-12))
    assert only_improving(*in_turn(*[late] * 5, solved, failed)) is None  # 1e-5
    assert only_improving(*in_turn(*[late[::-1]] * 60)) is None  # only getting worse is no gain
    assert only_improving(*in_turn(*[[0.0, 0.5, 1.0]] * 8)) == Improvement(
        8, 0, pytest.approx(-8 * math.log(6))
    )
    assert only_improving(*in_turn(*[[0.0, 0.5, 1.0]] * 7)) is None  # 6^-7 = 3.6e-6
    assert only_improving(*in_turn(*[[0, 1]] * 20)) is not None  # 2^-20 = 9.5e-7
    assert only_improving(*in_turn(*[[0, 1]] * 19)) is None


def test_a_task_that_gets_worse_hides_nothing():
    """Of 21 tasks with p = 1/10 at most one gets worse with probability 10^-21 + 21·.9·10^-20."""
    late, back = [0, 0, 0, 1, 1], [0, 0, 1, 0, 1]
    result = only_improving(*in_turn(*[late] * 20, back))
    assert result == Improvement(21, 1, pytest.approx(math.log(1e-21 + 21 * 0.9e-20), rel=1e-12))
    assert only_improving(*in_turn(*[late] * 7, back)) == Improvement(8, 1, pytest.approx(math.log(7.3e-7)))
    assert only_improving(*in_turn(*[late] * 6, back)) is None  # 6.4e-6
    tasks = [[0, 1], [0, 0, 1], late, [0, 0.5, 1], [0, 0, 0, 1], [0, 0.2, 0.4, 0.6, 1]] * 2 + [back, [1, 0]]
    log_p, ascends = _orders(*in_turn(*tasks))
    p = np.exp(log_p)
    ways = np.array(list(itertools.product([True, False], repeat=p.size)))
    some = ways[(~ways).sum(axis=1) <= 2]
    chance = np.where(some, p, 1 - p).prod(axis=1).sum()
    assert (~ascends).sum() == 2
    assert _log_at_most(2, log_p) == pytest.approx(math.log(chance), rel=1e-12)


def test_equal_outcomes_and_single_trials_tell_nothing():
    deterministic = np.random.default_rng(1).integers(0, 2, 500)
    assert only_improving(*in_turn(*[[one] * 5 for one in deterministic])) is None
    assert only_improving(*in_turn(*[[one] for one in deterministic])) is None
    assert only_improving(np.empty(0, int), np.empty(0)) is None


def test_the_chance_of_an_order_is_the_share_of_all_orders_that_ascend():
    tasks = [[0, 0, 1, 1, 1], [0, 0.5, 0.5, 1], [0, 0, 0, 1], [0, 0.2, 0.4, 0.4, 1, 1], [1, 1]]
    shares = [
        np.mean([list(order) == sorted(order) for order in itertools.permutations(one)]) for one in tasks
    ]
    result = only_improving(*in_turn(*tasks * 2))
    assert result == Improvement(8, 0, pytest.approx(2 * sum(map(math.log, shares)), rel=1e-12))


def test_honest_repeats_never_only_improve():
    """30,000 agents of 2 to 15 trials on 5 to 134 tasks of any difficulty: 0.03 expected at the most."""
    rng = np.random.default_rng(2)
    for _ in range(30_000):
        n_tasks, n_trials = int(rng.integers(5, 135)), int(rng.integers(2, 16))
        chance = rng.beta(*rng.choice([0.05, 0.3, 1.0], 2), n_tasks)
        outcomes = rng.random((n_tasks, n_trials)) < chance[:, None]
        assert only_improving(np.repeat(np.arange(n_tasks), n_trials), outcomes.ravel().astype(float)) is None


@pytest.mark.parametrize(
    "name", ["terminal_bench_core_011", "swebench_lite_repeats_acr", "hal_gaia", "hal_corebench_hard"]
)
def test_no_real_board_with_repeats_has_trials_that_only_improve(real_data, name):
    flat = flat_file(real_data / f"{name}.csv.gz")
    cell = np.stack([flat.agent, flat.task], axis=1)
    assert len(np.unique(cell, axis=0)) < len(cell)  # some are repeated
    assert improving_trials(flat) == {}


def test_runs_stand_in_the_order_of_the_numbers_in_their_labels():
    assert run_order(["run 10", None, "run 9", "b", "run 9b"]).tolist() == [4, 0, 2, 1, 3]


def test_a_copy_is_told_from_a_coincidence():
    """Half passed: (1/4 + 1/4)^20 < 1e-6 < (1/4 + 1/4)^18; one of 65: ((64² + 1)/65²)^65 = .135."""

    def twins(n_passed, n):
        row = np.array([1.0] * n_passed + [0.0] * (n - n_passed))
        return np.array([row, 1 - row, row, row])

    order = np.array([3, 0, 2, 1])
    assert originals(twins(10, 20), order) == [3, None, 3, None]
    assert originals(twins(10, 20), np.zeros(4, dtype=int)) == [None, None, 0, 0]
    assert originals(twins(9, 18), order) == originals(twins(1, 65), order) == [None] * 4
    lacking = twins(10, 21)
    lacking[:, 20] = np.nan
    assert originals(lacking, order) == [3, None, 3, None]


def test_a_part_of_anothers_outcomes_is_told_from_a_coincidence():
    """20 of 30 tasks, half passed: 2^-20 < 1e-6; 19 tasks are too few; who came later is named."""
    whole = np.array([1.0, 0.0] * 15)
    part, other, short = whole.copy(), whole.copy(), whole.copy()
    part[20:] = other[20:] = short[19:] = np.nan
    other[3] = 1.0
    means = np.array([whole, part, other, short])
    everybody, in_turn = np.arange(4), np.array([0, 1, 2, 3])
    assert parts(means, in_turn, everybody) == [(1, 0, 20)]
    assert parts(means, in_turn[::-1], everybody) == [(0, 1, 20)]
    assert parts(means, in_turn, everybody[2:]) == []
    assert parts(np.array([whole, whole]), in_turn[:2], everybody[:2]) == []  # identical


def test_identical_agents_are_grouped_unless_constant():
    means = np.array([[0, 1, NAN], [1, 1, 1], [0, 1, NAN], [1, 1, 1], [0, 1, 0], [-0.0, 1, NAN]])
    assert identical_agents(means) == [(0, 2, 5)]


@pytest.mark.parametrize("n_tasks", [63, 64, 65, 200])
def test_identical_agents_are_those_of_which_every_outcome_is_the_same(n_tasks):
    """Of rows that begin alike, end alike or are alike, against each pair's own comparison."""
    rng = np.random.default_rng(n_tasks)
    begins = rng.choice([0.0, 0.5, 1.0, NAN], (2, n_tasks))
    means = begins[rng.integers(2, size=40)]
    means[rng.random(40) < 0.4, -1] = 1.0
    means[rng.random(40) < 0.4, 0] = 0.0
    alike = [[np.array_equal(a, b, equal_nan=True) for b in means] for a in means]
    groups = sorted({tuple(np.flatnonzero(row).tolist()) for row in alike})
    assert identical_agents(means) == [group for group in groups if len(group) > 1]


def test_only_gains():
    assert only_gains(np.array([0, 0.5, 1, NAN]), np.array([1, 0.5, 1, 1])) == (1, 3)
    assert only_gains(np.array([0, 1.0]), np.array([1, 0.5])) is None
    assert only_gains(np.array([0, 1.0]), np.array([0, 1.0])) is None
    assert only_gains(np.array([NAN, 1.0]), np.array([1.0, NAN])) is None


def test_orders_that_missing_outcomes_could_turn_are_not_claimed():
    whole, gappy, worse = np.zeros(100), np.zeros(100), np.zeros(100)
    whole[:50] = gappy[:55] = 1
    gappy[90:] = NAN  # 45 + … : bounds .55 to .65
    worse[:20] = 1
    near = np.zeros(100)
    near[:60] = 1
    means = np.array([whole, gappy, worse, near])
    assert np.argwhere(unclaimed_orders(means)).tolist() == [[1, 3], [3, 1]]


def test_the_validity_test_is_fishers():
    for n, first, seconds in ((100, 10, range(0, 20)), (30, 3, range(0, 12))):
        row = np.zeros(n)
        row[:first] = NAN
        for second in seconds:
            other = np.zeros(n)
            other[n - second :] = NAN
            p = fisher_exact([[first, n - first], [second, n - second]]).pvalue
            expected = p < 0.01  # all zeros: the bounds always overlap at 0
            assert unclaimed_orders(np.array([row, other]))[0, 1] == expected, (n, second)


def test_one_percent_missing_is_too_little():
    row, other = np.zeros(2_000), np.zeros(2_000)
    row[:20] = NAN
    assert not unclaimed_orders(np.array([row, other])).any()
    row[:21] = NAN
    assert unclaimed_orders(np.array([row, other])).sum() == 2


def test_trials_of_few_tasks_are_not_held_against_each_other():
    """A label for each row: 60,000 trials of one task, whose pairs would be 1.8 thousand million."""
    n = 60_000
    task, trial = np.arange(n) % 30, np.arange(n)
    assert dependent_trials(task, trial, (task % 2).astype(float)) is None
