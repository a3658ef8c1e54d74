"""Trials that a loaded file does not hold, by hand, by definition and on real boards."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from analytics.command_line import flat_file
from analytics.outcome_table import cell_moments
from analytics.record import Counting, Delivery, Record
from analytics.record.absent import absent_trials, expected_trials, passes_alone, with_failures
from analytics.record.files import contents
from selection.standings import answer
from tests.analytics.test_record import INVALID, full, judged, made, same, self_run

REAL = (
    "hal_corebench_hard",
    "hal_gaia",
    "hal_scicode",
    "hal_taubench_airline",
    "swebench_lite_repeats_acr",
    "swebench_verified_2023_2025",
    "terminal_bench_core_011",
)


def everyone(n):
    return np.ones(n, dtype=bool)


def five_trials(*rest):
    """Five agents with 5 trials on 4 tasks, and one more."""
    return np.array([[5] * 4] * 5 + [list(rest)])


def trials(agent, *of_task):
    return [(agent, task, one, trial) for task, ones in enumerate(of_task) for trial, one in enumerate(ones)]


def others():
    return [row for agent in range(5) for row in trials(agent, *[[1, 0, 1, 0, 1]] * 4)]


def test_nearly_all_others_tell_what_was_to_be_expected():
    assert expected_trials(five_trials(5, 3, 2, 0), everyone(6)).tolist() == [5] * 6
    same(absent_trials(five_trials(5, 3, 2, 0), everyone(6))[5], [0, 2, 3, 0])


def test_an_agent_is_not_measured_by_more_than_it_shows():
    assert expected_trials(five_trials(1, 1, 1, 1), everyone(6))[5] == 1
    assert expected_trials(five_trials(3, 3, 2, 1), everyone(6))[5] == 3


def test_one_more_trial_than_all_others_have_makes_no_others_missing():
    once = np.array([[1] * 4] * 5 + [[9, 1, 1, 1]])
    assert expected_trials(once, everyone(6)).tolist() == [1] * 6


def test_four_others_are_too_few_to_tell():
    assert expected_trials(five_trials(5, 3, 2, 0)[1:], everyone(5))[-1] == 2  # its own fewest


def test_of_what_a_submitter_delivers_nothing_is_expected():
    loaded = np.array([True] * 5 + [False])
    assert expected_trials(five_trials(5, 3, 2, 0), loaded)[5] == 0
    assert expected_trials(five_trials(5, 3, 2, 0), ~loaded)[:5].tolist() == [0] * 5


@pytest.mark.parametrize(("n_short", "expected"), [(1, 3), (2, 2)])
def test_nineteen_of_its_own_twenty_tasks_tell_too(n_short, expected):
    mine = np.array([[3] * (20 - n_short) + [2] * n_short])
    assert expected_trials(mine, everyone(1)).tolist() == [expected]


def test_absent_trials_by_hand():
    """Passes of 5, 3 and 1 of 5 trials and a task without a row: (5 + 3 + 1 + 0)/20."""
    rows = others() + trials(5, [1] * 5, [1] * 3, [1])
    zero = made(rows, n_tasks=4, missing="zero")
    np.testing.assert_allclose(zero.table.means[5], [1, 3 / 5, 1 / 5, 0], rtol=1e-15)
    # of 1, 1, 1, 0, 0 and 1, 0, 0, 0, 0: Σ(x − mean)²/4
    np.testing.assert_allclose(zero.table.trial_variances[5], [0, 1.2 / 4, 0.8 / 4, 0], atol=1e-15)
    same(zero.table.n_trials[5], [5, 5, 5, 5])
    same(zero.n_places[5], [5, 5, 5, 5])
    assert zero.uneven == (
        "1 of 6 agents ran some tasks fewer times than most of theirs, or than most others did (a05): "
        "missing results count as failures",
        "1 agent has only passes and lacks tasks or trials: a05; if its failures were left out, its score "
        "is too high",
    )
    gap = made(rows, n_tasks=4)
    same(gap.table.means[5], [1, 1, 1, np.nan])
    same(gap.n_places[5], [5, 5, 5, 0])
    same(gap.n_gaps[5], [0, 2, 4, 0])
    lower, upper, n_missing = gap.bounds(np.arange(4))
    assert (lower[5], upper[5], n_missing[5]) == (pytest.approx(9 / 20), 1.0, 11)
    assert not gap.is_direct(np.arange(3))[5]


def test_what_cannot_be_told_is_said():
    result = made(trials(0, [1, 1], [1], [0]) + trials(1, [1], [1], [0]))
    assert result.uneven == (
        "1 of 2 agents has fewer trials on some tasks than on others: each task counts with the trials that "
        "it has",
    )
    same(result.n_gaps, [[0] * 3] * 2)


def test_failures_more_are_what_their_rows_would_be():
    """Of one setting: the same cells as with a row for each failure."""
    rng = np.random.default_rng(3)
    n, more = rng.integers(1, 6, 40), rng.integers(0, 4, 40)
    task, outcome = np.repeat(np.arange(40), n), rng.random(n.sum())
    failed = np.repeat(np.arange(40), more)
    cells = cell_moments(task, outcome, task >= 0, 40)
    tasks = np.concatenate([task, failed])
    whole = cell_moments(tasks, np.concatenate([outcome, 0.0 * failed]), tasks >= 0, 40)
    for result, expected in zip(with_failures(cells, more), whole, strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", REAL)
def test_no_real_board_lacks_a_trial(name, real_data):
    result = Record.from_flat(flat_file(real_data / f"{name}.csv.gz"))
    assert result.uneven == ()


@pytest.fixture
def without_convergence(monkeypatch):
    """From how many trials on the ICC of each agent settles, which is drawn, is not looked at."""
    monkeypatch.setattr("analytics.record.alike._needed", lambda part: (None, ""))


@pytest.mark.usefixtures("without_convergence")
def test_an_agent_loaded_with_its_passes_alone_gains_nothing(real_data):
    """Each of the 13 agents of Terminal-Bench: as many points as with all its rows, and no rank otherwise."""
    parts = contents(flat_file(real_data / "terminal_bench_core_011.csv.gz"))
    rows, zero = parts["rows"], Counting(missing="zero")
    full = Record.of(**parts, counting=zero).table.scores()
    for agent in range(13):
        passes = rows.where((rows.agent != agent) | (rows.valid & (rows.outcome == 1)))
        result = Record.of(**{**parts, "rows": passes}, counting=zero)
        np.testing.assert_allclose(result.table.scores(), full, rtol=1e-12)
        gaps = Record.of(**{**parts, "rows": passes})
        (position,) = (i for i, one in enumerate(gaps.about) if one.name == parts["about"][agent].name)
        assert not gaps.is_direct(np.flatnonzero(gaps.n_places[position]))[position]


@pytest.mark.usefixtures("without_convergence")
def test_an_agent_delivered_with_its_passes_alone_gains_nothing(real_data):
    """By itself, whether one trial was asked for or five; and of five at once for one asked all count."""
    parts = contents(flat_file(real_data / "terminal_bench_core_011.csv.gz"))
    rows = parts["rows"]

    def scores(rows, n_trials, **counting):
        own = [replace(one, operator=False, n_trials=n_trials) for one in parts["deliveries"]]
        result = Record.of(**{**parts, "rows": rows, "deliveries": own}, counting=Counting(**counting))
        return result.table.means.mean(axis=1)

    whole = np.bincount(rows.agent, np.where(rows.valid, rows.outcome, 0)) / np.bincount(rows.agent)
    names = [one.name for one in parts["about"]]
    expected = whole[np.argsort(names)]
    passes = rows.where(rows.valid & (rows.outcome == 1))
    for n_trials in (1, 5):
        np.testing.assert_allclose(scores(passes, n_trials, missing="zero"), expected, rtol=1e-12)
        np.testing.assert_allclose(scores(rows, n_trials, missing="zero"), expected, rtol=1e-12)


def one_pass_a_task(rows, agent):
    """Without the failures of an agent, and of its passes one on each task."""
    passed = np.flatnonzero((rows.agent == agent) & rows.valid & (rows.outcome == 1))
    _, first = np.unique(rows.task[passed], return_index=True)
    kept = rows.agent != agent
    kept[passed[first]] = True
    return rows.where(kept)


def test_an_absent_trial_counts_once_however_many_judges_there_are():
    """Two trials of 4 tasks, each judged twice; the last agent lacks the second trial of 2 tasks."""
    lacking = {(5, 0, 2), (5, 1, 2)}
    rows = [
        (agent, task, task % 2, trial, setting)
        for agent, task, trial, setting in product(range(6), range(4), (1, 2), (0, 1))
        if (agent, task, trial) not in lacking
    ]
    for levels, n_trials in ((judged("j1", "j2"), 8), ([(name, None, None, None) for name in "pq"], 16)):
        result = made(rows, n_tasks=4, levels=levels, missing="zero")
        assert result.n_missing_failed == 4
        assert {line.n_trials for line in answer(result).agents} == {n_trials}
    few = answer(made(rows, n_tasks=4, levels=judged("j1", "j2")))
    (why,) = [line.at["full"].reason for line in few.agents if line.at["full"].rank is None]
    assert why == "4 of its 16 results on 4 tasks have no valid outcome, more than 5%"


def test_a_missing_task_has_as_many_failures_as_trials_were_asked_for():
    """Two trials of 4 tasks with two prompts are 16, whoever judged them; the last agent lacks a task."""
    prompts = [("p", None, None, None), ("q", None, None, None)]
    each = [(prompt, judge, None, None) for prompt, *_ in prompts for judge in ("j1", "j2")]
    for levels, n_trials in ((prompts, 16), (each, 16), (judged("j1", "j2"), 8)):
        rows = [
            (agent, task, (task + trial) % 2, trial, setting)
            for agent, task, trial, setting in product(range(6), range(4), (1, 2), range(len(levels)))
            if (agent, task) != (5, 0)
        ]
        result = made(rows, n_tasks=4, levels=levels, missing="zero")
        assert {line.n_trials for line in answer(result).agents} == {n_trials}
        assert (result.table.n_trials == n_trials / 4).all()


@pytest.mark.parametrize("lost", [{1, 2}, {2}])
def test_the_verdict_of_one_judge_alone_is_of_a_trial_that_is_there(lost):
    """Two trials of 40 tasks, two judges; of the last agent's first task one judge lacks some verdicts."""
    rows = [
        (agent, task, (task + trial + agent) % 2, trial, judge)
        for agent, task, trial, judge in product(range(6), range(40), (1, 2), (0, 1))
        if (agent, task, judge) != (5, 0, 1) or trial not in lost
    ]
    result = made(rows, n_tasks=40, levels=judged("j1", "j2"), missing="zero")
    assert result.n_missing_failed == len(lost)
    assert [line.n_trials for line in answer(result).agents] == [80] * 6
    assert result.n_judged_again == (80,) * 6


def test_who_copied_is_flagged_though_one_task_came_early():
    """Agent 6 delivers one task, agent 7 all of them, then agent 6 the rest as agent 7 had it."""
    rows = [
        (agent, task, (task * (agent + 3) + agent) % 4 == 0) for agent, task in product(range(6), range(40))
    ]
    outcomes = [task % 3 == 0 for task in range(40)]
    rows += [(6, task, one, 1, 0, 6 + 2 * (task > 0)) for task, one in enumerate(outcomes)]
    rows += [(7, task, one, 1, 0, 7) for task, one in enumerate(outcomes)]
    deliveries = [Delivery(i) for i in range(6)]
    deliveries += [self_run(6, arrival=1), self_run(7, arrival=2), self_run(6, arrival=3)]
    flags = {line.agent: line.flags for line in answer(made(rows, n_tasks=40, deliveries=deliveries)).agents}
    assert flags["a07"] == ()
    assert [flag.partition(";")[0] for flag in flags["a06"]] == ["the same outcome as a07 on every task"]


def test_absent_trials_are_the_same_ones_for_each_judge():
    """Three trials were asked for: one judge scored two of the first task, the other one."""
    rows = [
        (0, task, (task + trial) % 2, trial, judge)
        for task, trial, judge in product(range(4), (1, 2, 3), (0, 1))
        if task or trial + judge < 3
    ]
    asked = [self_run(n_trials=3, fewest_trials=3)]
    result = made(rows, n_tasks=4, levels=judged("j1", "j2"), deliveries=asked, missing="zero")
    assert result.n_missing_failed == 3
    assert result.table.n_trials.tolist() == [[3.0] * 4]
    assert [line.n_trials for line in answer(result).agents] == [12]


@pytest.mark.usefixtures("without_convergence")
@pytest.mark.parametrize("missing", ["gap", "zero"])
def test_an_agent_of_which_one_pass_a_task_is_there_is_named(real_data, missing):
    """Each agent of Terminal-Bench: nothing in its rows says how often it failed, so that it is said."""
    parts = contents(flat_file(real_data / "terminal_bench_core_011.csv.gz"))
    for agent, about in enumerate(parts["about"]):
        rows = one_pass_a_task(parts["rows"], agent)
        result = Record.of(**{**parts, "rows": rows}, counting=Counting(missing=missing))
        assert result.uneven[-1] == (
            f"1 agent has only passes and lacks tasks or trials: {about.name}; if its failures were left "
            "out, its score is too high"
        )


def test_passes_alone_by_hand():
    """Named: 0 lacks a task. Not named: 1 passes all, 2 has a failure, 3 a fraction, 4 an invalid row."""
    rows = full(0, [1, 1]) + full(1, [1, 1, 1]) + full(2, [1, 0]) + full(3, [1, 0.5]) + full(4, [1, INVALID])
    result = (
        "1 agent has only passes and lacks tasks or trials: a00; if its failures were left out, its score"
    )
    assert [one.startswith(result) for one in made(rows).uneven] == [True]
    assert made(rows, missing="zero").uneven == ()  # what 0 lacks has failed
    repeated = trials(0, [1, 1], [1, 1]) + rows[2:]  # how often it ran them nothing tells
    assert [one.startswith(result) for one in made(repeated, missing="zero").uneven] == [True]


def test_fewer_trials_than_nearly_all_others_have():
    """One trial of each task, all passed, where five others have five."""
    result = "1 agent has only passes and lacks tasks or trials: a05; "
    assert made(others() + trials(5, [1], [1], [1], [1]), n_tasks=4).uneven[-1].startswith(result)
    assert made(others() + trials(5, *[[1] * 5] * 4), n_tasks=4).uneven == ()


@pytest.mark.parametrize("again", [[1, 0], [0, 1], [1] * 9 + [0]])
def test_failed_tasks_that_were_run_again(again):
    """Five tasks passed at once, and five with a failure and another trial; not where one is otherwise."""
    result = (
        "1 agent has more trials on just those tasks with a failure: a05; if failed tasks were run again, "
    )
    mine = [[1]] * 5 + [again] * 5
    rest = [cell for agent in range(5) for cell in trials(agent, *[[1], [0]] * 5)]
    assert made(rest + trials(5, *mine), n_tasks=10).uneven[-1].startswith(result)
    for cell, other in ((0, [0]), (5, [1, 1]), (5, [0])):
        cells = [other if i == cell else one for i, one in enumerate(mine)]
        assert not any("run again" in one for one in made(rest + trials(5, *cells), n_tasks=10).uneven)


def test_only_the_first_names_are_told():
    assert passes_alone(["a", "b", "c", "d", "e"])[0].startswith(
        "5 agents have only passes and lack tasks or trials: a, b, c and 2 more; if failures"
    )


@pytest.mark.parametrize("name", REAL)
def test_no_agent_of_a_real_board_has_passes_alone(name, real_data):
    result = Record.from_flat(flat_file(real_data / f"{name}.csv.gz"), Counting(missing="zero"))
    assert result.uneven == ()
