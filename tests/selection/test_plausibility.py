"""What is implausible of an agent beside verified ones."""

import itertools

import numpy as np
import pytest
import scipy.stats

from analytics.command_line import flat_file
from analytics.differences.estimates import wilson
from analytics.record import Record
from selection.plausibility import implausible, reference, upper_tail

REAL = {
    "swebench_verified_2023_2025": 57,
    "hal_gaia": 32,
    "hal_corebench_hard": 38,
    "hal_taubench_airline": 26,
    "hal_scicode": 24,
    "terminal_bench_core_011": 13,
}


def judged(verified, means, *, n_trials=1, n_graded=0, is_pass_fail=True, **more):
    found = reference(np.array(verified, float), is_pass_fail=is_pass_fail)
    means = np.array(means, float)
    return implausible(found, means, np.full(means.shape, float(n_trials)), n_graded=n_graded, **more)


def test_the_lower_end_is_wilsons():
    # 8 of 10, by hand: (.8 + .19207 − 1.95996·√(.016 + .0096036))/1.38415
    assert wilson(0.8, 10, 0.975)[0] == pytest.approx(0.490162, abs=1e-6)
    for passed, n in ((0, 5), (3, 7), (161, 161), (480, 500)):
        foreign = scipy.stats.binomtest(passed, n).proportion_ci(method="wilson")
        assert wilson(passed / n, n, 0.975)[0] == pytest.approx(foreign.low, abs=1e-12)


def test_the_tail_by_definition():
    p = np.array([0.1, 0.5, 0.02, 0.9])
    for n in range(6):
        by_definition = sum(
            np.prod([q if passed else 1 - q for q, passed in zip(p, which, strict=True)])
            for which in itertools.product((0, 1), repeat=4)
            if sum(which) >= n
        )
        assert upper_tail(p, n) == pytest.approx(by_definition, abs=1e-15)


def test_the_tail_of_equal_probabilities_is_binomial():
    for n, k, p in ((20, 3, 0.01), (85, 40, 0.3), (500, 12, 0.004)):
        expected = scipy.stats.binom.sf(k - 1, n, p)
        assert upper_tail(np.full(n, p), k) == pytest.approx(expected, abs=1e-14)


# ------------------------------------------------------------------------------------------------- the rules

LADDER = [[1.0] * n + [0.0] * (40 - n) for n in (10, 14, 18, 22, 26)]


def test_one_far_ahead_of_all_is_implausible_and_one_within_its_interval_is_not():
    # the best has 26 of 40 = .65; 35 of 40 has Wilson's lower end .739, 32 of 40 has .652, 31 has .625
    assert "it scores 87.5% on the 40 tasks" in judged(LADDER, [1.0] * 35 + [0.0] * 5, n_trials=1)
    assert judged(LADDER, [1.0] * 31 + [0.0] * 9) == ""


def test_on_the_tasks_that_it_ran_alone():
    # on the ten tasks that the best fails, it passes all; on the ten that all pass nobody is ahead
    some = np.full(40, np.nan)
    some[:10] = 1.0
    assert judged(LADDER, some) == ""
    some[10:30] = 1.0
    assert "on the 30 tasks that it ran" in judged(LADDER, some)


@pytest.mark.parametrize(
    ("more", "tasks"),
    [
        ({"n_ran": 40}, "the 40 tasks that it ran"),
        ({"n_ran": 1200}, "40 of the 1,200 tasks that it ran"),
        ({"n_ran": 40, "is_part": True}, "these 40 tasks"),
        ({"n_ran": 44, "is_part": True}, "40 of these 44 tasks"),
    ],
)
def test_the_tasks_that_were_judged_are_counted(more, tasks):
    assert judged(LADDER, [1.0] * 40, **more).startswith(f"it scores 100.0% on {tasks} (95% interval from ")


def test_far_ahead_on_the_ranking_tasks_alone_is_implausible():
    # each verified agent passes 16 of the first 20 tasks and 10 of the 20 ranking tasks; of 20 of 20 Wilson's
    # lower end is 20/23.8415 = .839
    j = np.arange(20)
    verified = [[*((j + 4 * v) % 20 < 16), *((j + 4 * v) % 20 < 10)] for v in range(5)]
    ranking, passed = np.arange(40) >= 20, [0.0] * 20 + [1.0] * 20
    assert judged(verified, passed) == judged(verified, passed, ranking=~ranking) == ""
    assert judged(verified, passed, ranking=ranking, n_ran=60) == (
        "it scores 100.0% on 20 ranking tasks (95% interval from 83.9%); "
        "the best verified agent scores 50.0% there"
    )
    assert judged(verified, [1.0] * 20 + [np.nan] * 20, ranking=ranking).startswith(
        "it scores 100.0% on the 20 tasks that it ran"
    )
    assert judged(verified, [0.5] * 20 + [np.nan] * 20, ranking=ranking) == ""


def test_failures_where_all_fail_are_plausible():
    assert judged([[0.0] * 6] * 5, [0.0] * 6) == ""


def test_passes_that_nobody_had_are_implausible_where_the_rest_does_not_explain_them():
    # alone: 8 of the 14 tasks that nobody passed, and no other one
    odd = [0.0] * 26 + [1.0] * 8 + [0.0] * 6
    told = "it passes 8 tasks that no verified agent passed; its other results predict "
    assert judged(LADDER, odd) == f"{told}fewer than 0.1"
    better = [1.0] * 16 + [0.0] * 10 + [1.0] * 10 + [0.0] * 4
    assert judged(LADDER, better).endswith("its other results predict 2.8")
    # a good one with a single such pass
    assert judged(LADDER, [1.0] * 26 + [1.0] + [0.0] * 13) == ""


def test_more_trials_explain_more_passes():
    one_each = [1.0] * 12 + [0.0] * 14 + [0.2] * 4 + [0.0] * 10
    assert "no verified agent passed" in judged(LADDER * 6, one_each, n_trials=1)
    assert judged(LADDER * 6, one_each, n_trials=200) == ""


def test_fractions_where_verified_outcomes_are_pass_or_fail():
    assert "3 of its outcomes lie between 0 and 1" in judged(LADDER[:1], [0.97] * 40, n_graded=3)
    assert judged(LADDER[:1], [0.97] * 40, n_graded=3, is_pass_fail=False) == ""


def test_four_verified_agents_judge_nothing_but_fractions():
    assert judged(LADDER[:4], [1.0] * 40) == ""
    assert judged(LADDER, [1.0] * 40) != ""
    assert judged(np.empty((0, 40)), [0.97] * 40, n_graded=40) == ""


def test_an_agent_without_an_outcome_is_not_judged():
    assert judged(LADDER, [np.nan] * 40) == ""


@pytest.fixture(params=REAL)
def board(request, real_data):
    record = Record.from_flat(flat_file(real_data / f"{request.param}.csv.gz"), None)
    assert record.n_agents == REAL[request.param]
    return request.param, record


def test_honest_agents_of_real_boards_are_not_held(board):
    """Each against all others as verified: at most one of a board."""
    name, record = board
    means, is_pass_fail = record.table.means, not any(record.n_graded)
    held = {}
    for i, agent in enumerate(record.table.agents):
        others = reference(np.delete(means, i, axis=0), is_pass_fail=is_pass_fail)
        trials = record.table.n_trials[i]
        if why := implausible(others, means[i], trials, n_graded=record.n_graded[i]):
            held[agent] = why
    print(f"{name}: {len(held)} of {record.n_agents} held", held)
    assert len(held) <= 1


def test_honest_agents_are_not_held_on_a_part_or_in_slices(board):
    """Of the tasks that 30 to 70% pass, and of ten slices of random tasks, judged after each."""
    name, record = board
    means, trials = record.table.means, record.table.n_trials
    rate, order = np.nanmean(means, axis=0), np.random.default_rng(0).permutation(record.n_tasks)
    slices = np.array_split(order, 10)
    ranking = (rate >= 0.3) & (rate <= 0.7)
    parts = [np.isin(np.arange(record.n_tasks), np.concatenate(slices[:n])) for n in range(1, 11)]
    held = set()
    for i, agent in enumerate(record.table.agents):
        others = reference(np.delete(means, i, axis=0), is_pass_fail=not any(record.n_graded))
        for part in [ranking, *parts]:
            of_part, n_graded = np.where(part, means[i], np.nan), record.n_graded[i]
            if implausible(others, of_part, trials[i], n_graded=n_graded, ranking=ranking):
                held.add(agent)
    print(f"{name}: {len(held)} of {record.n_agents} ever held")
    assert len(held) <= 1


def test_passes_on_everything_are_held_on_real_boards(board):
    _, record = board
    others = reference(record.table.means, is_pass_fail=not any(record.n_graded))
    n_tasks = record.n_tasks
    assert implausible(others, np.ones(n_tasks), np.ones(n_tasks), n_graded=0)
