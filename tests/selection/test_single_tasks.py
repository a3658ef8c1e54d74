"""Figures of single tasks by hand, by what they mean, and beside numpy's own correlation."""

import math

import numpy as np
import pytest

from selection.single_tasks import (
    by_rate,
    discriminations,
    expected,
    group_means,
    in_band,
    nearly_complete,
    rates,
    weaker_passing,
)

NAN = np.nan
STAIRS = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=float)


def drawn(n_agents, n_tasks, seed=0):
    rng = np.random.default_rng(seed)
    chance = 1 / (1 + np.exp(-np.subtract.outer(np.linspace(2, -2, n_agents), np.linspace(-2, 2, n_tasks))))
    return (rng.random(chance.shape) < chance).astype(float)


def test_agents_that_ran_95_in_100_tasks_are_on_equal_terms():
    outcomes = np.ones((3, 20))
    outcomes[1, :1], outcomes[2, :2] = NAN, NAN  # 19 and 18 of 20
    assert nearly_complete(outcomes).tolist() == [True, True, False]


def test_where_nobody_ran_nearly_all_everybody_counts_who_ran_something():
    outcomes = np.full((3, 20), NAN)
    outcomes[0, :10], outcomes[1, 10:] = 1, 0
    assert nearly_complete(outcomes).tolist() == [True, True, False]
    assert rates(outcomes).tolist() == [1] * 10 + [0] * 10


def test_a_newcomer_on_the_subset_moves_no_pass_rate():
    newcomer = np.array([[1, NAN, NAN]])
    assert rates(np.vstack([STAIRS, newcomer])).tolist() == rates(STAIRS).tolist() == [0.75, 0.5, 0.25]


def test_a_task_that_nobody_ran_has_no_rate_and_comes_last():
    outcomes = np.ones((2, 20))
    outcomes[:, 0], outcomes[:, 1] = NAN, 0
    assert np.isnan(rates(outcomes)[0])
    assert by_rate(rates(outcomes)).tolist() == [*range(2, 20), 1, 0]


def test_equal_rates_stand_in_task_order_however_they_were_added_up():
    outcomes = np.array([[0.3, 0.1, 1.0], [0.0, 0.2, 1.0]])
    p = rates(outcomes)
    assert p[1] > p[0]
    assert by_rate(p).tolist() == [2, 0, 1]


def test_both_ends_of_the_band_are_in_however_a_rate_was_added_up():
    assert in_band(np.array([0.1 + 0.2, 0.7, 0.29, 0.71, NAN]), 0.3, 0.7).tolist() == [1, 1, 0, 0, 0]


def test_discrimination_by_hand():
    # t1: outcomes 1 1 1 0, means of the others 1 ½ 0 0: deviations ¼ ¼ ¼ −¾ and ⅝ ⅛ −⅜ −⅜, so that
    # Σxy = ⅜, Σx² = ¾, Σy² = 11/16 and r = 3/√33; t3 mirrors it; t2: 1 1 0 0 with 1 ½ ½ 0 gives 1/√2.
    assert discriminations(STAIRS) == pytest.approx([3 / math.sqrt(33), 1 / math.sqrt(2), 3 / math.sqrt(33)])


def test_it_is_the_correlation_with_the_other_tasks_alone():
    outcomes = drawn(30, 25)
    told = discriminations(outcomes)
    for j in range(25):
        others = np.delete(outcomes, j, axis=1).mean(axis=1)
        if 0 < outcomes[:, j].mean() < 1:
            assert told[j] == pytest.approx(np.corrcoef(outcomes[:, j], others)[0, 1])


def test_a_missing_cell_leaves_its_agent_out_of_that_task():
    outcomes = drawn(12, 40)
    outcomes[3, 7] = NAN
    rest = np.delete(outcomes, 3, axis=0)
    others = np.delete(rest, 7, axis=1).mean(axis=1)
    assert discriminations(outcomes)[7] == pytest.approx(np.corrcoef(rest[:, 7], others)[0, 1])


@pytest.mark.parametrize(
    "outcomes",
    [
        np.array([[1, 0], [0, 1.0]]),  # two agents
        np.array([[1, 1], [1, 0], [1, 1.0]]),  # all pass it
        np.array([[1, 0.5], [0, 0.5], [1, 0.5]]),  # all alike on the others
        np.array([[1.0], [0.0], [1.0]]),  # there are no others
    ],
)
def test_where_all_are_equal_there_is_no_discrimination(outcomes):
    assert np.isnan(discriminations(outcomes)[0])


def test_groups_are_means_of_successive_rows():
    outcomes = np.array([[1, NAN], [0, NAN], [1, 1], [0, NAN]])
    first, second = group_means(outcomes, 2)
    assert first[0] == 0.5
    assert np.isnan(first[1])
    assert second.tolist() == [0.5, 1]


@pytest.mark.parametrize(
    ("outcomes", "ranks", "n"),
    [
        ([1, 0, 1, 1], [1, 2, 3, 4], 2),
        ([1, 1, 0, 0], [1, 2, 3, 4], 0),
        ([0, 1, 1, 1], [1, 1, 3, 4], 2),  # one of equal rank is no weaker
        ([0, 1, NAN, 1], [1, NAN, 3, 4], 1),  # without a rank, without an outcome
        ([1, 1], [1, 2], 0),  # nobody fails
        ([0, 0.5, 0.4], [1, 2, 3], 1),  # half is a pass
    ],
)
def test_weaker_agents_that_pass(outcomes, ranks, n):
    assert weaker_passing(np.array(outcomes, dtype=float), np.array(ranks, dtype=float)) == n


def test_expectation_by_hand():
    # Around row 1 stand rows 0 and 2: means ½ ½ 0 0; its own mean lies ½ − ¼ above theirs.
    outcomes = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]], dtype=float)
    told = expected(outcomes, 1, reach=1)
    assert told.difference == 0.25
    assert told.means.tolist() == [0.75, 0.75, 0.25, 0.25]
    assert told.n_neighbours.tolist() == [2, 2, 2, 2]
    assert not told.passes.size  # two neighbours are too few for a surprise


def test_the_first_agent_has_neighbours_below_alone():
    told = expected(STAIRS, 0, reach=2)
    assert told.n_neighbours.tolist() == [2, 2, 2]
    assert told.means.tolist() == [1, 1, 0.5]  # 1, ½, 0 moved by ½


def test_surprises_by_hand():
    # Four neighbours pass t0 to t3, none passes t4 to t9; it fails t0 and passes t9: 4 of 10, as they.
    others = [[1] * 4 + [0] * 6] * 4
    own = [0, 1, 1, 1, 0, 0, 0, 0, 0, 1]
    told = expected(np.array([*others[:2], own, *others[2:]], dtype=float), 2)
    assert told.difference == 0
    assert told.passes.tolist() == [9]
    assert told.failures.tolist() == [0]
    assert (told.n_seldom, told.n_often) == (6, 4)
    assert (told.passes_by_chance, told.failures_by_chance) == (0, 0)


def test_what_is_often_expected_is_what_is_shown_as_at_least_80_percent():
    """Two hundred neighbours pass t0 159 times, 79.5%, which is shown as 80%, and t1 158 times, 79%."""
    others = np.zeros((200, 4))
    others[:159, 0] = others[:158, 1] = others[:41, 2] = others[:43, 3] = 1.0
    own = np.array([[0.795, 0.79, 0.205, 0.215]])
    surprises = expected(np.vstack([others[:100], own, others[100:]]), 100, reach=100)
    assert [f"{100 * mean:.0f}%" for mean in surprises.means] == ["80%", "79%", "20%", "22%"]
    assert (surprises.n_seldom, surprises.n_often) == (1, 1)


def test_a_mean_of_trials_passes_by_chance_as_its_binomial_does():
    """Three trials, then four, of tasks of which the neighbours pass .2; then .8, and what is no pass."""
    others, own = [[0.2, 0.2, 0.8]] * 4, [0.2, 0.2, 0.8]
    outcomes = np.array([*others[:2], own, *others[2:]])
    surprises = expected(outcomes, 2, n_trials=np.array([3.0, 4.0, 2.0]))
    of_three = 3 * 0.2**2 * 0.8 + 0.2**3
    of_four = 6 * 0.2**2 * 0.8**2 + 4 * 0.2**3 * 0.8 + 0.2**4
    assert surprises.passes_by_chance == pytest.approx(of_three + of_four)
    assert surprises.failures_by_chance == pytest.approx(0.2**2)
    graded = expected(outcomes, 2, n_trials=np.array([3.0, NAN, 2.0]))
    assert (graded.passes_by_chance, graded.failures_by_chance) == (None, pytest.approx(0.2**2))


def test_expectations_have_the_agents_own_mean_where_none_is_cut_off():
    outcomes = np.clip(drawn(11, 60, seed=3) * 0.6 + 0.2, 0, 1)
    for i in range(11):
        told = expected(outcomes, i)
        assert 0 < told.means.min() < told.means.max() < 1
        assert told.means.mean() == pytest.approx(outcomes[i].mean())


def test_outcomes_at_the_expected_rates_surprise_as_often_as_by_chance():
    """Agents of one ability on tasks of any difficulty: what is told to come by chance is what comes."""
    rng = np.random.default_rng(0)
    seen, told = 0, 0.0
    for _ in range(500):
        chance = rng.beta(0.5, 0.5, 100)
        outcomes = (rng.random((101, 100)) < chance).astype(float)
        found = expected(outcomes, 50, reach=50)  # a hundred neighbours tell the rates nearly exactly
        seen += len(found.passes) + len(found.failures)
        told += found.passes_by_chance + found.failures_by_chance
    assert seen == pytest.approx(told, rel=0.05)


def test_a_task_that_no_neighbour_ran_has_no_expectation():
    outcomes = np.array([[1, NAN], [1, 1], [0, NAN]])
    told = expected(outcomes, 1)
    assert np.isnan(told.means[1])
    assert told.n_neighbours.tolist() == [2, 0]


def test_the_discrimination_of_some_tasks_is_that_among_all():
    outcomes = np.random.default_rng(3).integers(0, 2, (12, 30)).astype(float)
    outcomes[2, 4] = outcomes[5, 4] = np.nan
    every = discriminations(outcomes)
    assert discriminations(outcomes, [4]) == pytest.approx(every[[4]])
    assert discriminations(outcomes, [7, 1]) == pytest.approx(every[[7, 1]])
