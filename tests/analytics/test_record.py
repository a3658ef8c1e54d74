"""The record by hand: three agents on few tasks, every rule of counting with its numbers on paper."""

import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from analytics.errors import CoreError
from analytics.record import (
    About,
    Condition,
    Counting,
    Delivery,
    Record,
    Rows,
    agent_rows,
    compare,
    condition_counts,
    offer,
    record,
    shared_tasks,
)
from analytics.record.alike import Repeats
from analytics.trials.icc import convergence
from selection.standings import answer

NAN = math.nan
PLAIN = (None, None, None, None)
INVALID = None  # confirmed
CLAIMED = "claimed invalid"  # not confirmed


def judged(*judges, run=None):
    return [(None, judge, None, run) for judge in judges]


def rows_of(rows, deliveries):
    """Rows from (agent, task, outcome[, trial[, setting[, delivery[, cost]]]]); else the first delivery."""
    full = [(*row, *(1, 0, None, NAN)[len(row) - 3 :]) for row in rows]
    mine = {d.agent: position for position, d in reversed(list(enumerate(deliveries)))}
    columns = list(zip(*full, strict=True)) or [()] * 7
    agent, task, outcome, trial, setting, delivery, cost = columns
    whole = [mine[i] if d is None else d for i, d in zip(agent, delivery, strict=True)]
    return Rows(
        agent=np.array(agent, dtype=np.int64),
        task=np.array(task, dtype=np.int64),
        setting=np.array(setting, dtype=np.int64),
        delivery=np.array(whole, dtype=np.int64),
        trial=np.array(trial, dtype=np.int64),
        outcome=np.array([NAN if one in (INVALID, CLAIMED) else one for one in outcome], dtype=np.float64),
        valid=np.array([one not in (INVALID, CLAIMED) for one in outcome], dtype=np.bool_),
        confirmed=np.array([one == INVALID for one in outcome], dtype=np.bool_),
        cost_usd=np.array(cost, dtype=np.float64),
        n_tokens=100 * np.array(cost, dtype=np.float64),
    )


def agents(n, **changes):
    return [About(name=f"a{i:02}", scaffold="s", model="m", **changes) for i in range(n)]


def made(rows, *, n_tasks=3, levels=(PLAIN,), deliveries=None, about=None, **counting):
    n_agents = 1 + max(row[0] for row in rows)
    deliveries = deliveries or [Delivery(agent=i) for i in range(n_agents)]
    return Record.of(
        about or owned(agents(n_agents), deliveries),
        rows_of(rows, deliveries),
        tasks=[f"t{j:03}" for j in range(n_tasks)],
        settings=list(levels),
        deliveries=deliveries,
        counting=Counting(**counting),
    )


def owned(about, deliveries):
    """The agents, each that a submitter delivered of an account of its own."""
    own = {one.agent for one in deliveries if not one.operator}
    return [replace(one, account=one.name, vouched=i not in own) for i, one in enumerate(about)]


def self_run(agent=0, **changes):
    return Delivery(agent=agent, operator=False, **changes)


def full(agent, outcomes, *rest):
    return [(agent, task, outcome, *rest) for task, outcome in enumerate(outcomes)]


def same(found, expected):
    np.testing.assert_array_equal(found, np.array(expected, dtype=np.asarray(found).dtype))


# ------------------------------------------------------------------------------------------------------ cells


def test_graded_trials_are_counted_among_the_valid_ones_that_count():
    """Of a0 two of three trials, of a1 none of three; a2, which is not complete, teaches nothing: 2 of 6."""
    result = made([*full(0, [0.5, 0.25, 1]), *full(1, [0, 1, 1]), *full(2, [0.5, 0.5, INVALID])])
    assert result.complete.tolist() == [True, True, False]
    assert result.graded_share == pytest.approx(2 / 6)
    mean_of_two = made([(0, 0, 1, 1), (0, 0, 0, 2), *full(1, [0, 1, 1])])
    assert mean_of_two.graded_share == 0.0


def test_three_agents_by_hand():
    result = made(full(0, [1, 0, 1]) + full(1, [0, 0.5, INVALID]) + full(2, [1, 1]))
    same(result.table.means, [[1, 0, 1], [0, 0.5, NAN], [1, 1, NAN]])
    same(result.n_places, [[1, 1, 1], [1, 1, 1], [1, 1, 0]])
    same(result.n_gaps, [[0, 0, 0], [0, 0, 1], [0, 0, 0]])
    assert result.complete.tolist() == [True, False, False]  # 1 of 3 places missing, whether void or absent
    assert result.completed.tolist() == [0, 0, -1]
    lower, upper, n_missing = result.bounds(np.arange(3))
    np.testing.assert_allclose(lower, [2 / 3, 0.5 / 3, 2 / 3], rtol=1e-15)
    np.testing.assert_allclose(upper, [2 / 3, 1.5 / 3, 1], rtol=1e-15)
    assert n_missing.tolist() == [0, 1, 1]


def test_agents_stand_in_name_order_and_one_without_a_row_is_left_out():
    about = [About(name=name, scaffold="s", model=name.upper()) for name in ("z", "B", "a")]
    result = made([*full(0, [1, 1, 1]), (2, 0, 0)], about=about, deliveries=[Delivery(i) for i in range(3)])
    assert result.table.agents == ("a", "z")
    assert result.table.models == ("A", "Z")
    assert [one.name for one in result.about] == ["a", "z"]


def test_a_trial_counts_once_and_a_condition_counts_once():
    """Judge j1: runs of 1, 1 and of 0; judge j2: the first run, 0.8 and 0.2: (2/3 + 1/2)/2."""
    settings = [(None, "j1", None, "a"), (None, "j1", None, "b"), (None, "j2", None, "a")]
    rows = [(0, 0, 1, 1, 0), (0, 0, 1, 2, 0), (0, 0, 0, 1, 1), (0, 0, 0.8, 1, 2), (0, 0, 0.2, 2, 2)]
    result = made(rows, n_tasks=1, levels=settings)
    assert result.compared == ("judge j1", "judge j2")
    assert result.table.means[0, 0] == pytest.approx(7 / 12, rel=1e-15)
    assert result.table.n_valid[0, 0] == 5
    assert result.n_judged_again == (2,)  # run a: 1 and 2 by both judges; run b: 1 by one
    (line,) = answer(result).agents
    assert line.n_trials == 3
    # Trials of the first run decide 1/6 + 1/4 of the cell each, with (1/6 + .8/4)/(5/12) = .88 and .52.
    assert result.table.trial_variances[0, 0] == pytest.approx((0.88 - 0.52) ** 2 / 2, rel=1e-12)
    assert result.table.n_trials[0, 0] == pytest.approx(1 / (2 * (5 / 12) ** 2 + (1 / 6) ** 2), rel=1e-12)


@pytest.mark.parametrize("how", ["numbers", "runs"])
def test_labels_make_no_trials_of_the_verdicts_on_a_submitted_one(how):
    """Two judges scored three trials of each task; the second one's verdicts have other numbers, or a run."""
    verdicts = [(task, trial, (task + trial) % 3 == 0) for task in range(4) for trial in (1, 2, 3)]
    honest = [(0, task, one, trial, judge) for task, trial, one in verdicts for judge in (0, 1)]
    levels = [*judged("j1", "j2"), (None, "j2", None, "b")]
    moved = {"numbers": (3, 1), "runs": (0, 2)}[how]
    other = [(*row[:3], row[3] + moved[0] * row[4], row[4] and moved[1]) for row in honest]
    given = {"n_tasks": 4, "levels": levels, "deliveries": [self_run(0)]}
    expected, result = made(honest, **given), made(other, **given)
    assert expected.n_judged_again == result.n_judged_again == (12,)
    for field in ("means", "trial_variances", "n_trials", "n_valid"):
        same(getattr(result.table, field), getattr(expected.table, field).tolist())
    loaded = made(other, n_tasks=4, levels=levels)
    assert loaded.n_judged_again == (0,)


def test_verdicts_that_change_places_make_no_trials_that_differ_less():
    """Each of 20 tasks is passed in one trial of two; the second judge's verdicts have swapped numbers."""
    rows = [(0, task, (task + trial) % 2, trial, 0) for task in range(20) for trial in (1, 2)]
    honest = [*rows, *((*row[:4], 1) for row in rows)]
    swapped = [*rows, *((*row[:3], 3 - row[3], 1) for row in rows)]
    given = {"n_tasks": 20, "levels": judged("j1", "j2"), "deliveries": [self_run(0)]}
    expected, result = made(honest, **given), made(swapped, **given)
    assert np.unique(expected.table.trial_variances) == [0.5]
    same(result.table.trial_variances, expected.table.trial_variances.tolist())


def test_names_of_runs_that_are_given_afterwards_gain_nothing():
    """Ten outcomes of one task: each pass a run of its own, all failures in the last; half are passed."""
    settings = [(None, None, None, f"r{run}") for run in range(5)]
    passes = [(0, 0, 1, 1, run) for run in range(5)]
    failures = [(0, 0, 0, trial, 4) for trial in range(2, 7)]
    assert made(passes + failures, n_tasks=1, levels=settings).table.means[0, 0] == 0.5


def test_the_effective_trials_give_the_variance_of_the_cell():
    """Var(X) = s²/R by definition, where every trial has the same variance: by the weights of the trials."""
    counts = {0: (3, 1), 1: (2,)}  # trials of each run, by condition
    settings, rows, weights = [], [], Counter()
    for condition, runs in counts.items():
        for run, n in enumerate(runs):
            settings.append((None, f"j{condition}", None, f"r{run}"))
            rows += [(0, 0, 0.5, 1 + t, len(settings) - 1) for t in range(n)]
            weights.update({(run, t): 1 / (len(counts) * sum(runs)) for t in range(n)})  # judged by both: one
    result = made(rows, n_tasks=1, levels=settings)
    assert 1 / result.table.n_trials[0, 0] == pytest.approx(sum(w**2 for w in weights.values()), rel=1e-12)


def test_a_cell_is_valid_only_under_every_compared_condition():
    rows = full(0, [1, 1, 1], 1, 0) + full(0, [0, INVALID, 0], 1, 1)
    named = tuple(Condition(None, judge, None) for judge in ("j1", "j2"))
    result = made(rows, levels=judged("j1", "j2"), settings=named)
    same(result.table.means, [[0.5, NAN, 0.5]])
    same(result.n_places, [[2, 2, 2]])
    same(result.n_gaps, [[0, 2, 0]])  # nothing is left of the task
    assert result.n_judged_again == (2,)


def test_a_condition_that_was_never_run_leaves_no_place():
    rows = full(0, [1, 1, 1], 1, 0) + full(0, [0, 1], 1, 1)
    named = tuple(Condition(None, judge, None) for judge in ("j1", "j2"))
    result = made(rows, levels=judged("j1", "j2"), settings=named)
    same(result.n_places, [[2, 2, 0]])
    same(result.table.means, [[0.5, 1, NAN]])


# --------------------------------------------------------------------------------------------- counted trials


def test_only_as_many_trials_count_as_every_task_has():
    """Trials 3, 1, 2 on the tasks: R_a = 1, the first by number."""
    rows = [(0, 0, 0, 1), (0, 0, 1, 2), (0, 0, 1, 3), (0, 1, 0, 1), (0, 2, 1, 2), (0, 2, 0, 1)]
    result = made(rows, deliveries=[self_run()])
    same(result.table.means, [[0, 0, 0]])
    same(result.n_places, [[1, 1, 1]])
    loaded = made(rows)  # an operator's: all count
    same(loaded.table.means, [[2 / 3, 0, 0.5]])
    same(loaded.n_places, [[3, 1, 2]])


def test_the_first_trials_are_those_accepted_first():
    """The later delivery, which came first into the list, brings lower numbers; they come second."""
    deliveries = [self_run(arrival=7), self_run(arrival=2)]
    rows = full(0, [1, 1, 1], 1, 0, 0) + full(0, [0, 0, 0], 5, 0, 1)
    result = made(rows[:-1] + rows[-1:], deliveries=deliveries)
    same(result.table.means, [[0.5, 0.5, 0.5]])  # two on every task: both count
    result = made(rows[1:], deliveries=deliveries)  # task 0 has the one of arrival 2
    same(result.table.means, [[0, 0, 0]])


def test_numbers_of_trials_gain_nothing_within_a_delivery():
    """What failed is tried three times more, and a pass numbered first: the failure counts."""
    rows = [(0, 0, 1, 1), (0, 1, 1, 1), (0, 1, 1, 2), (0, 1, 1, 3), (0, 1, 0, 4), (0, 2, 0, 1)]
    result = made(rows, deliveries=[self_run()])
    same(result.table.means, [[1, 0, 0]])
    same(result.n_places, [[1, 1, 1]])


def test_trials_beside_what_was_asked_for_gain_nothing_in_a_full_run():
    """Two trials of t000, which is asked for; what failed of the rest is tried again: the failure counts."""
    asked = [(0, 0, 1, 1), (0, 0, 0, 2)]
    rest = [(0, 1, 1, 1), (0, 2, 0, 1)]
    one = self_run(asked=frozenset({"t000"}))
    result = made([*asked, *rest, (0, 2, 1, 2)], deliveries=[one])
    same(result.table.means, [[0.5, 1, 0]])
    same(result.n_places, [[2, 1, 1]])
    twice = made([*asked, *rest, (0, 1, 1, 2), (0, 2, 1, 2)], deliveries=[one])
    same(twice.table.means, [[0.5, 1, 0.5]])  # every task was tried again
    thrice = made([*asked, *rest, *[(0, j, 1, t) for j in (1, 2) for t in (2, 3)]], deliveries=[one])
    same(thrice.table.means, [[0.5, 1, 2 / 3]])


def test_a_whole_run_counts_with_its_mean_and_no_second_one_beyond_what_was_asked_for():
    """Two of each task at once are both counted; a second delivery where one was asked for is not."""
    rows = full(0, [1, 0, 1], 1) + full(0, [0, 1, 0], 2)
    for one in (self_run(), self_run(n_trials=1), self_run(n_trials=5)):
        same(made(rows, deliveries=[one]).table.means, [[0.5, 0.5, 0.5]])
    two = [self_run(n_trials=1), self_run(arrival=1, n_trials=1)]
    apart = full(0, [1, 0, 1], 1) + full(0, [0, 1, 0], 2, 0, 1)
    result = made(apart, deliveries=two)
    same(result.table.means, [[1, 0, 1]])
    assert result.table.n_valid.tolist() == [[1, 1, 1]]
    asked = [replace(one, n_trials=2) for one in two]
    same(made(apart, deliveries=asked).table.means, [[0.5, 0.5, 0.5]])


def test_tasks_that_are_asked_for_as_outcomes_come_in_count_no_more_trials_than_asked_for():
    """Else who fails both tasks of a batch would try both again."""
    rows = full(0, [1, 0, 1], 1) + full(0, [0, 1, 0], 2)
    same(made(rows, deliveries=[self_run(n_trials=1, capped=True)]).table.means, [[0, 0, 0]])


def test_two_parts_of_a_run_count_whole():
    """Two trials of two tasks, then two of the third: both count, though one was asked for."""
    rows = [(0, 0, 1, 1), (0, 0, 0, 2), (0, 1, 1, 1), (0, 1, 1, 2), (0, 2, 0, 1, 0, 1), (0, 2, 1, 2, 0, 1)]
    two = [self_run(n_trials=1), self_run(arrival=1, n_trials=1)]
    same(made(rows, deliveries=two).table.means, [[0.5, 1, 0.5]])


def test_tasks_asked_for_later_leave_the_trials_of_the_earlier_ones():
    """t000 and t001 twice at once, by which t000 has .5; then t002, asked for anew, once."""
    first = [(0, 0, 1, 1), (0, 0, 0, 2), (0, 1, 1, 1), (0, 1, 1, 2)]
    earlier, anew = frozenset({"t000", "t001"}), frozenset({"t000", "t001", "t002"})
    two = [self_run(asked=earlier, n_trials=1), self_run(arrival=1, asked=anew, n_trials=1)]
    result = made([*first, (0, 2, 1, 1, 0, 1)], deliveries=two)
    same(result.table.means, [[0.5, 1, 1]])
    same(result.n_places, [[2, 2, 1]])
    thrice = made([*first, *[(0, 2, int(t > 1), t, 0, 1) for t in (1, 2, 3)]], deliveries=two)
    same(thrice.table.means, [[0.5, 1, 2 / 3]])
    three = [*two, self_run(arrival=2, asked=anew, n_trials=1)]
    again = made([*first, (0, 2, 0, 1, 0, 1), (0, 2, 1, 2, 0, 2)], deliveries=three)
    same(again.table.means, [[0.5, 1, 0]])  # which was there before


def test_an_assignment_bounds_no_tasks_that_were_delivered_without_one():
    """Twice without being asked for a number; then t002, by an assignment of one: the others keep both."""
    first = [(0, 0, 0, 1), (0, 1, 1, 1), (0, 0, 1, 2, 0, 1), (0, 1, 1, 2, 0, 1)]
    earlier = frozenset({"t000", "t001"})
    two = [self_run(asked=earlier), self_run(arrival=1, asked=earlier)]
    anew = self_run(arrival=2, asked=frozenset({*earlier, "t002"}), n_trials=1)
    result = made([*first, (0, 2, 1, 1, 0, 2)], deliveries=[*two, anew])
    same(result.table.means, [[0.5, 1, 1]])
    same(result.n_places, [[2, 2, 1]])
    bounded = made([*first, (0, 2, 1, 1, 0, 2)], deliveries=[replace(two[0], n_trials=1), two[1], anew])
    same(bounded.n_places, [[1, 1, 1]])


@pytest.mark.parametrize("named", [None, frozenset({"t001", "t002"})])
def test_the_rest_of_a_full_run_counts_all_trials_that_it_came_with(named):
    """t000, asked for, once; the rest thrice, unasked or asked for, and then once more: three count."""
    asked = self_run(asked=frozenset({"t000"}), n_trials=1)
    deliveries = [asked, *(replace(asked, arrival=i, asked=named or asked.asked) for i in (1, 2))]
    rest = [(0, j, int(t <= j), t, 0, 1) for j in (1, 2) for t in (1, 2, 3)]
    result = made([(0, 0, 1, 1), *rest], deliveries=deliveries)
    same(result.table.means, [[1, 1 / 3, 2 / 3]])
    same(result.n_places, [[1, 3, 3]])
    more = made([(0, 0, 1, 1), *rest, (0, 1, 1, 4, 0, 2), (0, 2, 1, 4, 0, 2)], deliveries=deliveries)
    same(more.table.means, [[1, 1 / 3, 2 / 3]])


def test_passing_trials_alone_gain_nothing_where_gaps_are_failures():
    """Of two trials each 1 and 0; 0 and 0; 1 and 1: the failures left out, or told."""
    honest = [(0, 0, 1, 1), (0, 0, 0, 2), (0, 1, 0, 1), (0, 1, 0, 2), (0, 2, 1, 1), (0, 2, 1, 2)]
    passes = [row for row in honest if row[2] == 1]
    for one in (self_run(), self_run(n_trials=1), self_run(n_trials=2)):
        for rows in (honest, passes):
            result = made(rows, n_tasks=3, deliveries=[one], missing="zero")
            same(result.table.means, [[0.5, 0, 1]])
            same(result.n_places, [[2, 2, 2]])


def test_an_invalid_trial_is_counted_among_those_delivered():
    """Invalid rows are trials: R_a = 2, so that the third valid one on task 0 is not needed."""
    rows = [(0, 0, CLAIMED, 1), (0, 0, 1, 2), (0, 0, 1, 3), *full(0, [1, 1], 1), *full(0, [1, 1], 2)]
    rows = [row for row in rows if not (row[1] == 0 and len(row) == 4 and row[2] == 1 and row[3] == 1)]
    result = made([*rows, (0, 2, 0, 1), (0, 2, 0, 2)], deliveries=[self_run()])
    same(result.n_places, [[2, 2, 2]])
    same(result.table.means, [[0.5, 1, 0]])


def test_an_unconfirmed_invalid_trial_counts_0_and_a_confirmed_one_is_a_gap():
    rows = full(0, [1, CLAIMED, INVALID])
    result = made(rows, deliveries=[self_run()])
    same(result.table.means, [[1, 0, NAN]])
    same(result.n_gaps, [[0, 0, 1]])
    assert made(rows).n_gaps.tolist() == [[0, 1, 1]]  # what an operator loads is confirmed


def finished(rows, deliveries, n_tasks=3, levels=(PLAIN,), counting=None):
    given = {
        "n_agents": 1 + max(one.agent for one in deliveries),
        "tasks": [f"t{j:03}" for j in range(n_tasks)],
        "settings": list(levels),
        "deliveries": deliveries,
        "counting": counting or Counting(),
    }
    compared = compare(condition_counts(rows_of(rows, deliveries), **given), given["counting"])
    return agent_rows(rows_of(rows, deliveries), compared=compared, **given)


def test_who_first_had_all_of_the_equal_outcomes_is_the_original():
    """The first agent delivers one task early, and the rest once the second agent has run everything."""
    outcomes = [task % 3 == 0 for task in range(40)]
    deliveries = [self_run(arrival=1), self_run(1, arrival=2), self_run(arrival=3)]
    late = [(0, task, one, 1, 0, 2 * (task > 0)) for task, one in enumerate(outcomes)]
    rows = [*late, *full(1, outcomes, 1, 0, 1)]
    assert made(rows, n_tasks=40, deliveries=deliveries).copy_of == ("a01", "")
    first = [replace(one, arrival=at) for one, at in zip(deliveries, (1, 3, 2), strict=True)]
    assert made(rows, n_tasks=40, deliveries=first).copy_of == ("", "a00")
    for lacks in ("zero", "gap"):  # whether or not a task is missing that both lack, or that fails
        few = [row for row in rows if row[1] != 1]
        assert made(few, n_tasks=40, deliveries=deliveries, missing=lacks).copy_of == ("a01", "")
    failed = [row for row in rows if row[:2] != (0, 1)]
    assert made(failed, n_tasks=40, deliveries=deliveries, missing="zero").copy_of == ("a01", "")


def test_an_original_that_delivers_more_of_the_same_stays_one():
    """The first agent has run everything at 1, the second copies it at 2, and the first goes on at 3."""
    outcomes = [task % 3 == 0 for task in range(40)]
    deliveries = [self_run(arrival=1), self_run(1, arrival=2), self_run(arrival=3)]
    original, copy = full(0, outcomes, 1, 0, 0), full(1, outcomes, 1, 0, 1)
    again = [*original, *copy, *full(0, outcomes, 2, 0, 2)]
    for duplicates in ("mean", "first", "latest"):
        assert made(again, n_tasks=40, deliveries=deliveries, duplicates=duplicates).copy_of == ("", "a00")
    passed = [row for row in original if row[2]]
    failed = [(*row[:5], 2) for row in original if not row[2]]
    later = [*passed, *failed, *copy]
    assert made(later, n_tasks=40, deliveries=deliveries, missing="zero").copy_of == ("", "a00")
    # two of 40 tasks that came late are no others than the copy's; three are
    for n_late, copies in ((2, ("", "a00")), (3, ("a01", ""))):
        late = [(*row[:5], 2 * (row[1] < n_late)) for row in original]
        assert made([*late, *copy], n_tasks=40, deliveries=deliveries).copy_of == copies
    about = owned(agents(2), deliveries)
    vouched = [replace(about[0], vouched=True), about[1]]
    assert made([*late, *copy], n_tasks=40, deliveries=deliveries, about=vouched).copy_of == ("", "a00")


def test_failures_that_a_first_delivery_brings_make_no_original():
    """Eight of 200 tasks are passed; a task that fails at 1 is all that the copy has before 3."""
    outcomes = [task % 25 == 0 for task in range(200)]
    deliveries = [self_run(arrival=1), self_run(1, arrival=2), self_run(arrival=3)]
    late = [(0, task, one, 1, 0, 2 * (task != 1)) for task, one in enumerate(outcomes)]
    rows = [*late, *full(1, outcomes, 1, 0, 1)]
    for missing in ("zero", "gap"):
        assert made(rows, n_tasks=200, deliveries=deliveries, missing=missing).copy_of == ("a01", "")


def test_an_outcome_comes_with_the_delivery_that_held_it():
    """The first agent's run at 1 was lost; what stands in its place since 3 is the second agent's of 2."""
    outcomes = [task % 3 == 0 for task in range(40)]
    deliveries = [self_run(arrival=1), self_run(1, arrival=2), self_run(arrival=3)]
    rows = rows_of([*full(0, outcomes, 1, 0, 0), *full(1, outcomes, 1, 0, 1)], deliveries)
    given = {"tasks": [f"t{j:03}" for j in range(40)], "settings": [PLAIN], "deliveries": deliveries}
    for came_with, copies in ((None, ("", "a00")), (np.where(rows.agent == 0, 2, 1), ("a01", ""))):
        came = replace(rows, came_with=came_with)
        result = Record.of(owned(agents(2), deliveries), came, counting=Counting(), **given)
        assert result.copy_of == copies


def test_what_an_agent_ran_before_it_copied_is_not_what_it_has_now():
    """Its own run at 1 differs on three of ten tasks; the last delivery counts alone, or the mean of both."""
    outcomes = [task % 3 == 0 for task in range(40)]
    own = [one != (task % 10 < 3) for task, one in enumerate(outcomes)]
    deliveries = [self_run(arrival=1), self_run(1, arrival=2), self_run(arrival=3)]
    rows = [*full(0, own, 1, 0, 0), *full(1, outcomes, 1, 0, 1), *full(0, outcomes, 1, 0, 2)]
    assert made(rows, n_tasks=40, deliveries=deliveries, duplicates="latest").copy_of == ("a01", "")


@pytest.mark.parametrize("missing", ["gap", "zero"])
def test_earlier_runs_that_hold_half_of_the_results_each_make_no_original(missing):
    """At 1 and 2 the first agent passes every other task, and the others; at 4 it delivers the copy."""
    outcomes = [task % 3 == 0 for task in range(40)]
    deliveries = [self_run(arrival=1), self_run(arrival=2), self_run(1, arrival=3), self_run(arrival=4)]
    halves = [row for k in (0, 1) for row in full(0, [task % 2 == k for task in range(40)], k + 1, 0, k)]
    rows = [*halves, *full(1, outcomes, 1, 0, 2), *full(0, outcomes, 3, 0, 3)]
    result = made(rows, n_tasks=40, deliveries=deliveries, duplicates="latest", missing=missing)
    assert result.copy_of == ("a01", "")


def test_passes_on_nearly_all_tasks_make_no_original_of_whoever_passed_some():
    """The first passes 35 of 40 tasks at 1, the second 25 of these at 2, which the first copies at 3."""
    many, some = ([int(task < n) for task in range(40)] for n in (35, 25))
    deliveries = [self_run(arrival=1), self_run(1, arrival=2), self_run(arrival=3)]
    rows = [*full(0, many, 1, 0, 0), *full(1, some, 1, 0, 1), *full(0, some, 2, 0, 2)]
    for missing in ("gap", "zero"):
        result = made(rows, n_tasks=40, deliveries=deliveries, duplicates="latest", missing=missing)
        assert result.copy_of == ("a01", "")


def test_an_agent_finished_with_what_first_held_every_task_though_it_was_withdrawn():
    """t000 and t001 at 3, withdrawn; t002 at 5; all again at 9."""
    early = self_run(arrival=3, withdrawn=True)
    deliveries = [early, self_run(arrival=5), self_run(arrival=9), self_run(1, arrival=4, withdrawn=True)]
    part = [*full(0, [1, 1], 1, 0, 0), (0, 2, 1, 1, 0, 1)]
    again, other = full(0, [0, 1, 1], 2, 0, 2), full(1, [1, 1, 1], 1, 0, 3)
    whole, gone = finished([*part, *again, *other], deliveries)
    assert (whole.finished, whole.completed, whole.arrival, whole.n_deliveries) == (5, 9, 5, 2)
    assert (gone.finished, gone.completed, gone.arrival, gone.n_deliveries) == (4, -1, -1, 0)
    lacking, _ = finished([*part[1:], *other], deliveries)
    assert (lacking.finished, lacking.completed) == (-1, -1)


def test_an_agent_finished_under_whatever_setting():
    """Everybody else ran under the hard judge, this one under another."""
    levels, deliveries = judged("easy", "hard"), [Delivery(0), Delivery(1), self_run(2, arrival=6)]
    rows = [*full(0, [1, 1, 1], 1, 1), *full(1, [1, 0, 1], 1, 1), *full(2, [1, 1, 1], 1, 0)]
    row = finished(rows, deliveries, levels=levels)[2]
    assert (row.finished, row.completed) == (6, -1)


# ------------------------------------------------------------------------------------ gaps, places, who ranks


def test_missing_counts_as_zero_if_the_rules_say_so():
    rows = full(0, [1, INVALID, 1]) + full(1, [1, 1])
    result = made(rows, missing="zero")
    same(result.table.means, [[1, 0, 1], [1, 1, 0]])
    same(result.n_gaps, [[0, 0, 0], [0, 0, 0]])
    assert result.complete.tolist() == [True, True]
    assert result.completed.tolist() == [0, 0]
    lower, upper, n_missing = result.bounds(np.arange(3))
    assert lower.tolist() == upper.tolist() == [2 / 3, 2 / 3]
    assert n_missing.tolist() == [0, 0]


def test_a_failure_for_every_usual_trial_of_an_absent_task():
    """Trials 2, 2, 3 and none: the lower median is 2, so 2 failures."""
    rows = [(0, task, 1, trial) for task, n in enumerate((2, 2, 3)) for trial in range(n)]
    result = made(rows, n_tasks=4, missing="zero")
    same(result.n_places, [[2, 2, 3, 2]])
    same(result.table.means, [[1, 1, 1, 0]])
    same(result.table.trial_variances, [[0, 0, 0, 0]])


def test_what_a_submitter_never_delivered_stays_missing_or_counts_as_failed():
    result = made(full(0, [1, 1]), deliveries=[self_run()])
    same(result.table.means, [[1, 1, NAN]])
    assert result.short.tolist() == [True]
    assert not result.is_direct(np.array([0, 1])).any()  # ranked nowhere
    zero = made(full(0, [1, 1]), deliveries=[self_run()], missing="zero")
    same(zero.table.means, [[1, 1, 0]])
    assert (zero.short.tolist(), zero.is_direct(np.arange(3)).tolist()) == ([False], [True])
    assert zero.complete.tolist() == [False]  # its failures are made up: pass rates know nothing of them


@pytest.mark.parametrize(("n_gaps", "direct"), [(0, True), (1, True), (2, False)])
def test_one_place_in_twenty_may_be_a_gap(n_gaps, direct):
    outcomes = [INVALID] * n_gaps + [1] * (20 - n_gaps)
    for deliveries in ([Delivery(0)], [self_run()]):
        result = made(full(0, outcomes), n_tasks=20, deliveries=deliveries)
        assert result.is_direct(np.arange(20)).tolist() == result.complete.tolist() == [direct]
        assert result.is_direct(np.arange(n_gaps, 20)).tolist() == [True]
    absent = [row for row in full(0, outcomes) if row[2] == 1]
    result = made(absent, n_tasks=20)
    assert result.complete.tolist() == [direct]  # in an operator's load a task without a row is a gap
    assert result.completed.tolist() == [0 if direct else -1]
    result = made(absent, n_tasks=20, deliveries=[self_run()])
    assert result.complete.tolist() == [n_gaps == 0]  # in a submission it was never delivered


def test_gaps_are_counted_by_places_and_not_by_tasks():
    """Four trials on each of 5 tasks, one void: 1 of 20, though no cell is missing; two: 2 of 20."""
    rows = [
        (0, task, 1 if (task, trial) != (0, 0) else INVALID, trial) for task in range(5) for trial in range(4)
    ]
    assert made(rows, n_tasks=5).complete.tolist() == [True]
    rows[5] = (0, 1, INVALID, 1)
    result = made(rows, n_tasks=5)
    assert result.complete.tolist() == [False]
    assert result.table.valid().all()
    lower, upper, n_missing = result.bounds(np.arange(5))
    assert (lower[0], upper[0], n_missing[0]) == (pytest.approx(18 / 20), pytest.approx(1), 2)


def test_an_agent_without_any_place_is_not_direct():
    result = made(full(0, [INVALID] * 3) + full(1, [1, 1, 1]))
    assert result.is_direct(np.arange(3)).tolist() == [False, True]
    assert [part.tolist() for part in result.bounds(np.arange(3))] == [[0, 1], [1, 1], [3, 0]]


def test_a_task_without_a_row_has_as_many_places_as_the_others_on_average():
    """20 tasks, 18 of them delivered, 8 with 5 trials: 2 of 20 are missing, though 2 of 52 is little."""
    rows = [(0, j, 1, t) for j in range(18) for t in range(5 if j < 8 else 1)]
    assert made(rows, n_tasks=20).complete.tolist() == [False]
    assert made([*rows, (0, 18, 1)], n_tasks=20).complete.tolist() == [True]


def test_who_may_not_be_ranked_is_not_complete():
    result = made(full(0, [1, 1, 1]), about=agents(1, withheld="resubmitted: better"))
    assert result.complete.tolist() == [False]
    assert result.is_direct(np.arange(3)).tolist() == [True]


# ------------------------------------------------------------------------------------- assignments and extras


def assigned(*names, **changes):
    return self_run(asked=frozenset(names), **changes)


def test_extras_count_once_every_task_was_delivered():
    some = made(full(0, [0, 1]), deliveries=[assigned("t000")])
    same(some.table.means, [[0, NAN, NAN]])
    assert (some.short.tolist(), some.completed.tolist()) == ([False], [-1])
    assert some.is_direct(np.array([0])).tolist() == [True]
    deliveries = [assigned("t000", arrival=3), self_run(arrival=5), self_run(arrival=8)]
    rows = [(0, 0, 0), (0, 1, 1, 1, 0, 1), (0, 2, 1, 1, 0, 2)]
    whole = made(rows, deliveries=deliveries)
    same(whole.table.means, [[0, 1, 1]])
    same(whole.asked, [[True, False, False]])
    assert (whole.arrival.tolist(), whole.completed.tolist()) == ([3], [8])
    assert whole.n_deliveries.tolist() == [3]
    assert whole.complete.tolist() == [True]


def test_an_assigned_task_that_was_not_delivered_makes_short():
    result = made(full(0, [1]), deliveries=[assigned("t000", "t001")])
    assert result.short.tolist() == [True]
    assert result.is_direct(np.array([0])).tolist() == [False]
    same(result.n_places, [[1, 0, 0]])  # and does not force R_a to 0
    assert not made(full(0, [1])).short.any()


def test_two_assignments_ask_for_both():
    deliveries = [assigned("t000"), assigned("t001", arrival=1)]
    result = made([(0, 0, 1), (0, 1, 0, 1, 0, 1)], deliveries=deliveries)
    same(result.asked, [[True, True, False]])
    same(result.table.means, [[1, 0, NAN]])


def test_of_an_assignment_outside_the_active_tasks_nothing_is_left():
    result = made(full(0, [1, 1, 1]), deliveries=[assigned("retired")])
    same(result.asked, [[False] * 3])
    assert result.complete.tolist() == [True]  # it has delivered every task


# ------------------------------------------------------------------------------------------------- duplicates


@pytest.mark.parametrize(("duplicates", "means"), [("mean", 0.5), ("first", 0.0), ("latest", 1.0)])
def test_which_deliveries_count(duplicates, means):
    deliveries = [self_run(arrival=9), self_run(arrival=4)]
    rows = full(0, [1, 1, 1], 2, 0, 0) + full(0, [0, 0, 0], 1, 0, 1)
    result = made(rows, deliveries=deliveries, duplicates=duplicates)
    same(result.table.means, [[means] * 3])
    assert (result.n_deliveries.tolist(), result.arrival.tolist(), result.completed.tolist()) == (
        [2],
        [4],
        [4],
    )


# ------------------------------------------------------------------------------------------------- conditions


def test_two_judges_on_different_agents():
    """j1 on two agents, j2 on one: j1 is compared, the third is listed under j2."""
    rows = full(0, [1, 1, 1]) + full(1, [0, 1, 1]) + full(2, [1, 1, 1], 1, 1)
    result = made(rows, levels=judged("j1", "j2"))
    assert result.compared == ("judge j1",)
    assert result.left_out == (("judge j2", 1),)
    assert result.condition == ("", "", "judge j2")
    assert result.complete.tolist() == [True, True, False]
    assert np.isnan(result.table.means[2]).all()
    assert not result.is_direct(np.arange(3))[2]
    zero = made(rows, levels=judged("j1", "j2"), missing="zero")
    assert np.isnan(zero.table.means[2]).all()  # it was asked under j2: nothing is made up


def test_equal_numbers_of_agents_are_told_apart_by_outcomes_then_name():
    rows = full(0, [1, 1, 1]) + full(1, [0, 1, 1], 1, 1)
    assert made(rows, levels=judged("j2", "j1")).compared == ("judge j1",)
    assert made([*rows, (0, 0, 1, 2)], levels=judged("j2", "j1")).compared == ("judge j2",)


def test_conditions_that_nearly_all_full_runs_have_are_compared():
    rows = [row for i in range(20) for j in (0, 1) for row in full(i, [1, 0, 1], 1, j)]
    nineteen = [row for row in rows if not (row[0] == 7 and row[4] == 1)]
    result = made(nineteen, levels=judged("j1", "j2"))
    assert result.compared == ("judge j1", "judge j2")
    assert result.condition[7] == "judge j1"
    assert result.left_out == ()
    eighteen = [row for row in nineteen if not (row[0] == 9 and row[4] == 1)]
    result = made(eighteen, levels=judged("j1", "j2"))
    assert result.compared == ("judge j1",)
    assert result.left_out == (("judge j2", 18),)
    assert set(result.condition) == {""}


def test_holders_of_the_commonest_bring_what_nearly_all_of_them_have():
    """Three agents under a and b, two under c: a and b, though neither has 95% of the agents."""
    rows = [row for i in range(3) for j in (0, 1) for row in full(i, [1, 0, 1], 1, j)]
    rows += [row for i in (3, 4) for row in full(i, [1, 0, 1], 1, 2)]
    result = made(rows, levels=judged("a", "b", "c"))
    assert result.compared == ("judge a", "judge b")
    assert result.condition == ("", "", "", "judge c", "judge c")


def test_of_the_many_conditions_of_an_agent_ten_are_named():
    rows = full(0, [1, 0, 1]) + [row for j in range(1, 16) for row in full(1, [1, 0, 1], 1, j)]
    result = made(rows, levels=judged("a", *(f"b{j:02d}" for j in range(15))))
    assert result.compared == ("judge a",)
    assert result.condition[1] == ", ".join(f"judge b{j:02d}" for j in range(10)) + " and 5 more"


def test_only_full_runs_choose():
    """One full run under j1; two runs of the assigned task under j2 do not outvote it."""
    deliveries = [self_run(0), assigned("t000", agent=1), assigned("t000", agent=2)]
    rows = [*full(0, [1, 0, 1]), (1, 0, 1, 1, 1), (2, 0, 1, 1, 1)]
    result = made(rows, levels=judged("j1", "j2"), deliveries=deliveries)
    assert result.compared == ("judge j1",)
    assert result.condition == ("", "judge j2", "judge j2")
    assert not result.short.any()  # told by the condition


@pytest.mark.parametrize(("n_loaded", "compared"), [(4, "judge mine"), (5, "judge j")])
def test_where_five_full_runs_were_loaded_whoever_submits_more_chooses_nothing(n_loaded, compared):
    deliveries = [*map(Delivery, range(n_loaded)), *(self_run(i) for i in range(n_loaded, n_loaded + 6))]
    rows = [row for i, one in enumerate(deliveries) for row in full(i, [1, 0, 0], 1, int(not one.operator))]
    result = made(rows, levels=judged("j", "mine"), deliveries=deliveries)
    assert result.compared == (compared,)
    assert [bool(message) for message in result.condition] == [
        one.operator == (n_loaded == 4) for one in deliveries
    ]


@pytest.mark.parametrize("missing", ["zero", "zero_loaded"])
@pytest.mark.parametrize("n_run", [2, 3, 4])
def test_loaded_agents_that_ran_half_choose_where_the_rest_fails(missing, n_run):
    """Five were loaded without all of four tasks; a submitter has run all under a judge of its own."""
    rows = [row for i in range(5) for row in full(i, [1, 0, 1, 0][:n_run])]
    deliveries = [*map(Delivery, range(5)), self_run(5)]
    given = {"n_tasks": 4, "levels": judged("j", "mine"), "deliveries": deliveries}
    result = made([*rows, *full(5, [1, 1, 0, 0], 1, 1)], **given, missing=missing)
    assert result.compared == ("judge j",)
    assert result.complete.tolist() == [True] * 5 + [False]
    gaps = made([*rows, *full(5, [1, 1, 0, 0], 1, 1)], **given)  # else the one full run chooses
    assert gaps.compared == ("judge j" if n_run == 4 else "judge mine",)


def test_half_of_a_submitters_run_chooses_for_nobody_where_the_rest_fails():
    """Four were loaded under both judges of four tasks; a submitter ran half of them under one."""
    rows = [row for i in range(4) for s in (0, 1) for row in full(i, [1, 1 - s, 0, 1], 1, s)]
    deliveries = [*map(Delivery, range(4)), self_run(4)]
    given = {"n_tasks": 4, "levels": judged("easy", "strict"), "missing": "zero", "deliveries": deliveries}
    assert made([*rows, *full(4, [1, 1])], **given).compared == ("judge easy", "judge strict")


def test_a_submitters_half_runs_at_two_temperatures_make_no_condition_where_the_rest_fails():
    rows = [row for i in range(4) for row in full(i, [1, 0, 1, 0], 1, i % 2)]
    halves = [(4, task, 1, 1, task % 2) for task in range(4)]
    deliveries = [*map(Delivery, range(4)), self_run(4)]
    result = made([*rows, *halves], n_tasks=4, levels=HEATS, missing="zero", deliveries=deliveries)
    assert result.compared == ()


def test_leaving_out_the_stricter_judge_takes_it_from_nobody():
    """Five were loaded under both judges; one of six with a full run is more than 5%."""
    rows = [row for i in range(5) for s in (0, 1) for row in full(i, [1, 1 - s, 0], 1, s)]
    deliveries = [*map(Delivery, range(5)), self_run(5)]
    result = made([*rows, *full(5, [1, 1, 0])], levels=judged("easy", "strict"), deliveries=deliveries)
    assert result.compared == ("judge easy", "judge strict")
    assert result.condition == (*[""] * 5, "judge easy")
    assert result.complete.tolist() == [True] * 5 + [False]


def test_where_five_full_runs_were_loaded_who_submits_two_temperatures_makes_it_no_condition():
    deliveries = [*map(Delivery, range(5)), self_run(5)]
    rows = [row for i in range(5) for row in full(i, [1, 0, 1], 1, i % 2)]
    both = [*full(5, [1, 0, 1]), *full(5, [0, 0, 1], 1, 1)]
    assert made([*rows, *both], levels=HEATS, deliveries=deliveries).compared == ()
    assert made([*rows, *both], levels=HEATS).compared != ()


def test_a_run_of_the_assigned_tasks_has_a_condition():
    deliveries = [self_run(0), assigned("t000", agent=1)]
    result = made([*full(0, [1, 0, 1]), (1, 0, 1)], deliveries=deliveries)
    assert result.is_direct(np.array([0])).tolist() == [True, True]


def test_an_incomplete_run_is_not_told_from_its_condition():
    rows = full(0, [1, 1, 1]) + full(1, [1])
    result = made([*rows, (0, 0, 1, 1, 1)], levels=judged("j1", "j2"))
    assert result.condition == ("", "")


def test_not_stated_is_a_level_and_facets_that_do_not_vary_are_not_named():
    levels = [("p", None, 0.0, None), ("p", "j", 0.0, None)]
    result = made(full(0, [1, 1, 1]) + full(1, [1, 1, 1]) + full(2, [1, 1, 1], 1, 1), levels=levels)
    assert (result.compared, result.left_out) == (("no judge stated",), (("judge j", 1),))


def test_a_condition_in_words():
    levels = [("p1", "j1", 0.0, None), ("p2", "j1", 0.7, None), ("p2", "j2", 0.7, None)]
    rows = [row for i in (0, 1) for s in range(3) for row in full(i, [1, 1, 1], 1, s)]
    result = made(rows, levels=levels)
    assert result.compared == (
        "prompt p1, judge j1, temperature 0",
        "prompt p2, judge j1, temperature 0.7",
        "prompt p2, judge j2, temperature 0.7",
    )


HEATS = [(None, None, 0.0, None), (None, None, 1.0, None)]


def test_temperature_is_a_facet_only_where_an_agent_has_two():
    apart = full(0, [1, 1, 1]) + full(1, [0, 0, 0], 1, 1)
    result = made(apart, levels=HEATS)
    assert result.compared == ()
    assert result.complete.tolist() == [True, True]
    result = made([*apart, *full(0, [0, 0, 0], 1, 1)], levels=HEATS)
    assert result.compared == ("temperature 1",)  # of both agents, temperature 0 of one
    assert result.condition == ("", "")
    result = made([*apart, *full(2, [1, 0, 1]), *full(1, [0, 1, 0])], levels=HEATS)
    assert result.compared == ("temperature 0",)
    assert result.condition == ("", "", "")


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("n_tried", [1, 18])
def test_a_pilot_at_another_temperature_changes_nobody_compared(loaded, n_tried):
    """On 18 of 20 tasks: under 95%. The agents that state one temperature each keep their ranks."""
    rows = full(0, [1] * 20) + full(1, [0] * 20, 1, 1) + full(2, [1] * 20) + full(2, [0] * n_tried, 1, 1)
    deliveries = [Delivery(0), Delivery(1), Delivery(2, operator=loaded)]
    result = made(rows, n_tasks=20, levels=HEATS, deliveries=deliveries)
    assert (result.compared, set(result.condition)) == ((), {""})
    assert result.complete.tolist() == [True, True, True]


def test_nineteen_of_twenty_tasks_at_each_of_two_temperatures_are_a_vote():
    rows = full(0, [1] * 20) + full(1, [0] * 20, 1, 1) + full(2, [1] * 19) + full(2, [0] * 19, 1, 1)
    result = made(rows, n_tasks=20, levels=HEATS)
    assert result.compared != ()


@pytest.mark.parametrize(("loaded", "compared"), [(False, ()), (True, ("temperature 0",))])
def test_without_a_full_run_what_an_operator_loaded_tells(loaded, compared):
    rows = full(0, [1, 1]) + full(1, [0, 0]) + [(1, 0, 0, 1, 1)]
    deliveries = [Delivery(0), Delivery(1, operator=loaded)]
    assert made(rows, levels=HEATS, deliveries=deliveries).compared == compared


def test_a_run_label_is_no_condition():
    levels = [(None, None, None, "a"), (None, None, None, "b")]
    result = made(full(0, [1, 1, 1]) + full(1, [0, 0, 0], 1, 1), levels=levels)
    assert (result.compared, result.left_out, set(result.condition)) == ((), (), {""})


def test_named_conditions_are_compared_whatever_most_have():
    rows = full(0, [1, 1, 1]) + full(1, [0, 1, 1]) + full(2, [1, 1, 1], 1, 1)
    result = made(rows, levels=judged("j1", "j2"), settings=(Condition(None, "j2", None),))
    assert result.compared == ("judge j2",)
    assert result.complete.tolist() == [False, False, True]
    nobody = made(rows, levels=judged("j1", "j2"), settings=(Condition(None, "j3", None),))
    assert nobody.compared == ("judge j3",)
    assert nobody.condition == ("judge j1", "judge j1", "judge j2")


def test_a_condition_named_without_temperature_takes_in_all():
    """Named before anybody had two temperatures: an agent that adds one votes nobody out."""
    levels = [(None, None, 0.0, None), (None, None, 1.0, None)]
    rows = full(0, [1, 1, 1]) + full(0, [0, 0, 0], 1, 1) + full(1, [0, 1, 1], 1, 1)
    result = made(rows, levels=levels, settings=(Condition(None, None, None),))
    assert result.complete.tolist() == [True, True]
    same(result.table.means, [[0.5] * 3, [0, 1, 1]])


# --------------------------------------------------------------------------------------------------- universe


def test_no_condition_named_is_refused():
    with pytest.raises(CoreError, match="no condition is named"):
        made(full(0, [1, 1, 1]), settings=())


@pytest.mark.parametrize(("vouched", "n"), [(False, 12), (True, 11)])
def test_who_is_not_vouched_for_takes_no_task_out(vouched, n):
    """Beside five that are vouched for."""
    rows = [row for i in range(6) for row in full(i, [1] * 12) if row[:2] != (5, 0)]
    whole = made(rows, n_tasks=12)
    about = (*whole.about[:5], replace(whole.about[5], vouched=vouched))
    assert len(shared_tasks(replace(whole, about=about))) == n


def test_common_tasks_are_those_that_nearly_all_have():
    """Of 20 agents, 19 have task 0, 18 task 1, all the others; 11 tasks, 10 are common."""
    rows = [row for i in range(20) for row in full(i, [1] * 12)]
    rows = [row for row in rows if (row[1], row[0]) not in ((0, 3), (1, 4), (1, 5))]
    rows = [row for row in rows if row[1] != 11 or row[0] == 0]
    result = made(rows, n_tasks=12, universe="common")
    assert result.table.tasks == ("t000", *(f"t{j:03}" for j in range(2, 11)))
    assert result.universe == (
        "10 of 12 tasks are active, those with an outcome from at least 95% of 20 agents; "
        "left out: t001, t011"
    )
    whole = made(rows, n_tasks=12)
    assert len(shared_tasks(whole)) == 10
    assert whole.complete.sum() == 1
    assert offer(whole) == (
        "1 of 20 agents are complete on all 12 tasks; all 20 share 10: whoever operates the board may have "
        "them compared on these"
    )
    assert result.complete.sum() == 19
    assert offer(result) == ""


def test_runs_of_assigned_tasks_do_not_shrink_the_universe():
    deliveries = [self_run(0), assigned("t000", agent=1)]
    result = made([*full(0, [1] * 10), (1, 0, 1)], n_tasks=10, deliveries=deliveries, universe="common")
    assert (result.n_tasks, result.universe) == (10, "")


def test_under_ten_common_tasks_are_refused():
    with pytest.raises(CoreError, match="9 tasks have an outcome from at least 95% of 1 agents; 10 are"):
        made(full(0, [1] * 9), n_tasks=12, universe="common")
    assert offer(made(full(0, [1] * 9), n_tasks=12)) == ""


def test_a_universe_by_name():
    result = made(full(0, [1, 0, 1]), universe=("t002", "t000"))
    assert result.table.tasks == ("t000", "t002")
    assert result.universe == "2 of 3 tasks are active, those named; left out: t001"
    with pytest.raises(CoreError, match="'t9' is no task"):
        made(full(0, [1, 0, 1]), universe=("t9",))
    with pytest.raises(CoreError, match="nothing is no task"):
        made(full(0, [1, 0, 1]), universe=())


# --------------------------------------------------------------------------------------------- costs, repeats


def test_a_run_is_one_trial_of_every_task_at_the_mean_of_those_that_state_a_cost():
    """By hand: (2 + 1 + 5)/3 dollars on the first task, .5 on the second, and 100 tokens a dollar."""
    levels = [(None, None, None, "a"), (None, None, None, "b")]
    rows = [
        (0, 0, 1, 1, 0, None, 2.0),
        (0, 0, 1, 2, 0, None, 1.0),
        (0, 0, INVALID, 1, 1, None, 5.0),  # it was paid for
        (0, 1, 1, 1, 0, None, 0.5),
        (0, 1, 1, 2, 0, None, NAN),
        (0, 2, 1, 1, 0, None, NAN),
    ]
    result = made(rows, levels=levels)
    same(result.costs, [[8.0 / 3.0, 0.5, NAN]])
    assert result.n_uncosted == (2,)
    assert result.n_tokens == (pytest.approx(800.0 / 3.0 + 50.0),)
    assert result.seconds == (None,)


def test_a_failure_called_invalid_hides_no_cost():
    """It counts as a failure, so that what it cost is missed; of one that is confirmed it is not."""
    rows = [(0, 0, 1, 1, 0, None, 2.0), (0, 1, CLAIMED, 1, 0, None, NAN), (0, 2, INVALID, 1, 0, None, NAN)]
    assert made(rows, deliveries=[self_run()]).n_uncosted == (1,)
    assert made(rows).n_uncosted == (0,)  # what an operator loads is confirmed


def test_each_of_several_conditions_has_a_consistency_of_its_own():
    """Twelve tasks under j1 with three trials, under j2 with two that always agree."""
    rng = np.random.default_rng(5)
    draws = rng.integers(0, 2, (12, 3)).astype(float)
    rows = [(0, j, draws[j, t], t, 0) for j in range(12) for t in range(3)]
    rows += [(0, j, draws[j, 0], t, 1) for j in range(12) for t in range(2)]
    result = made(rows, n_tasks=12, levels=judged("j1", "j2"))
    assert len(result.compared) == 2
    n, a = 3, 12
    between = n * draws.mean(axis=1).var(ddof=1)
    within = draws.var(axis=1, ddof=1).mean()
    summary = result.repeats[0]
    assert (summary.icc, summary.sigma_w2, summary.trials_needed, summary.n_tasks) == (None, None, None, a)
    assert summary.reason.startswith("not measured: each of the 2 conditions has its own")
    assert summary.levels == {"run": 1, "prompt": 1, "judge": 2}
    first, second = summary.by_condition
    assert first["icc"] == pytest.approx(max(0, (between - within) / (between + (n - 1) * within)), rel=1e-12)
    assert first["sigma_w2"] == pytest.approx(within, rel=1e-12)
    assert (first["trials_per_task"], first["n_tasks"]) == (pytest.approx(3), a)
    assert (second["icc"], second["n_tasks"]) == (None, a)
    assert "(MSW = 0)" in second["reason"]
    turned = made(rows, n_tasks=12, levels=judged("j3", "j2")).repeats[0]
    assert replace(turned, by_condition=()) == replace(summary, by_condition=())
    assert turned.by_condition == (second, first)
    assert Repeats.of_plain(json.loads(json.dumps(summary.as_plain()))) == summary


def test_copies_under_any_of_several_conditions_count_as_one():
    rng = np.random.default_rng(6)
    draws, other = rng.integers(0, 2, 200).astype(float), rng.integers(0, 2, (2, 200)).astype(float)
    rows = [
        row for t in (0, 1) for j in range(200) for row in ((0, j, draws[j], t, 0), (0, j, other[t, j], t, 1))
    ]
    for names in (("j1", "j2"), ("j3", "j2")):
        (told,) = made(rows, n_tasks=200, levels=judged(*names)).repeats
        assert told.copies.startswith("two trials agree on 200 of 200 tasks, 5")
        assert told.reason == f"not measured: {told.copies}"
        assert {one["reason"] for one in told.by_condition} == {told.reason}


def cumulative(n_tasks=134, n_trials=15, seed=8):
    """Outcomes of the shape of ALFWorld's: of each task as many failures as there are tries, then passes."""
    first = np.random.default_rng(seed).geometric(0.35, n_tasks)[:, None]
    return (np.arange(1, n_trials + 1) >= first).astype(float)


@pytest.mark.parametrize("by_run", [False, True])
def test_trials_that_only_improve_count_as_one(by_run):
    """15 trials of 134 tasks, none of which goes back, beside 15 honest repeats of as many passes a trial."""
    tries = cumulative()
    honest = np.random.default_rng(9).permuted(tries, axis=1)
    levels = [(None, None, None, f"run {t}") for t in range(1, 16)] if by_run else [PLAIN]
    rows = [
        (i, j, matrix[j, t], 1, t) if by_run else (i, j, matrix[j, t], t + 1)
        for i, matrix in enumerate((tries, honest))
        for j in range(134)
        for t in range(15)
    ]
    improves, repeats = made(rows, n_tasks=134, levels=levels).repeats
    n_mixed = np.count_nonzero(tries.min(axis=1) < tries.max(axis=1))
    assert improves.copies == (
        f"its trials are cumulative, not repeats: none of the {n_mixed} tasks with different outcomes gets "
        "worse from any trial to the next, so its error counts them as one"
    )
    assert (improves.icc, improves.reason) == (None, f"not measured: {improves.copies}")
    assert repeats.copies == ""
    assert repeats.icc is not None


@pytest.mark.parametrize("n_worse", [0, 1, 5])
def test_of_a_submitters_cumulative_trials_the_first_is_its_score(n_worse):
    """The best so far of each try gains nothing; what an operator loaded keeps its mean.

    Nor does it help to let a few tasks get worse.
    """
    tries = cumulative()
    tries[np.flatnonzero(tries[:, 0])[:n_worse], 7] = 0.0
    rows = [(i, j, tries[j, t], t + 1) for i in range(2) for j in range(134) for t in range(15)]
    result = made(rows, n_tasks=134, deliveries=[Delivery(agent=0), self_run(1)])
    same(result.table.means[0], tries.mean(axis=1))
    same(result.table.means[1], tries[:, 0])
    some = {0: "none", 1: "only 1", 5: "only 5"}[n_worse]
    assert result.repeats[1].copies.startswith(f"its trials are cumulative, not repeats: {some} of the ")
    assert f"outcomes {'get' if n_worse == 5 else 'gets'} worse" in result.repeats[1].copies
    same(result.n_places[1], [15] * 134)


def test_from_how_many_trials_on_the_consistency_settles():
    """One agent passes, or fails, nine of ten trials of a task; the other has too few to part them in two."""
    rng = np.random.default_rng(7)
    sure = (rng.random((400, 16)) < np.where(np.arange(400) % 2, 0.9, 0.1)[:, None]).astype(float)
    coins = rng.integers(0, 2, (100, 3)).astype(float)
    rows = [(0, j, sure[j, t], t, 0) for j in range(400) for t in range(16)]
    rows += [(1, j, coins[j, t], t, 0) for j in range(100) for t in range(3)]
    settled, short = made(rows, n_tasks=400).repeats
    alone = convergence(np.repeat(np.arange(400), 16), sure.ravel(), seed=0)
    assert (settled.trials_needed, settled.needed) == (
        alone.trials_needed,
        f"{alone.trials_needed} trials per task",
    )
    assert settled.trials_needed is not None
    assert short.trials_needed is None
    assert short.needed == "not measured: no task has 4 valid trials"
    (uneven,) = made([row for row in rows if row[0] == 0 and (row[1] > 2 or row[3] < 3)], n_tasks=400).repeats
    (few,) = made([row for row in rows if row[0] == 0 and (row[1] < 5 or row[3] < 3)], n_tasks=400).repeats
    assert few.needed == "not measured: 5 tasks have 4 valid trials or more; 10 such tasks are needed"
    rest = convergence(np.repeat(np.arange(397), 16), sure[3:].ravel(), seed=0)
    assert uneven.needed == f"{rest.verdict}, over the 397 of 400 tasks with 4 or more"


def test_runs_are_repeats_and_copies_have_no_consistency():
    rng = np.random.default_rng(6)
    draws = rng.integers(0, 2, 200).astype(float)
    levels = [(None, None, None, "a"), (None, None, None, "b")]
    rows = full(0, draws, 1, 0) + full(0, draws, 1, 1) + full(1, draws) + full(1, rng.permutation(draws), 2)
    found = made(rows, n_tasks=200, levels=levels)
    assert found.repeats[0].copies.startswith("two trials agree on 200 of 200 tasks, 5")
    assert found.repeats[0].icc is None
    assert found.repeats[0].reason == f"not measured: {found.repeats[0].copies}"
    assert found.repeats[0].levels["run"] == 2
    assert found.repeats[1].copies == ""


def test_a_latest_delivery_that_only_gains_is_told_though_it_counts_for_little():
    deliveries = [self_run(arrival=0), self_run(arrival=1)]
    rows = [*full(0, [0, 0, 1], 1, 0, 0), (0, 0, 1, 2, 0, 1), (0, 2, 1, 2, 0, 1)]
    result = made(rows, deliveries=deliveries)
    assert result.repeats[0].gains == "its latest submission is better on 1 of 2 tasks and worse on none"
    same(result.table.means, [[0, 0, 1]])
    assert made([*rows[:-1], (0, 2, 0, 2, 0, 1)], deliveries=deliveries).repeats[0].gains == ""


# --------------------------------------------------------------------------------------------------- refusals


def test_rows_that_point_nowhere_are_refused():
    deliveries = [Delivery(0)]
    good = {"tasks": ["t0"], "settings": [PLAIN], "deliveries": deliveries, "counting": Counting()}
    with pytest.raises(CoreError, match="task: 1 to 1, not 0 to 0"):
        condition_counts(rows_of([(0, 1, 1)], deliveries), n_agents=1, **good)
    with pytest.raises(CoreError, match="setting: 2 to 2, not 0 to 0"):
        condition_counts(rows_of([(0, 0, 1, 1, 2)], deliveries), n_agents=1, **good)
    with pytest.raises(CoreError, match="tasks ascend"):
        condition_counts(rows_of([(0, 0, 1)], deliveries), n_agents=1, **good | {"tasks": ["b", "a"]})
    with pytest.raises(CoreError, match="tasks ascend"):
        condition_counts(rows_of([], deliveries), n_agents=1, **good | {"tasks": []})


def test_the_parts_can_be_called_one_by_one():
    """What a database does: keep one agent's line, and read the other's again."""
    deliveries = [Delivery(0), self_run(1)]
    rows = rows_of(full(0, [1, 0, 1]) + full(1, [1, 1, 0]), deliveries)
    given = {"tasks": ["a", "b", "c"], "settings": [PLAIN], "counting": Counting()}
    result = compare(condition_counts(rows, n_agents=2, deliveries=deliveries, **given), Counting())
    both = agent_rows(rows, n_agents=2, deliveries=deliveries, compared=result, **given)
    alone = agent_rows(
        rows_of(full(0, [1, 1, 0]), [self_run()]),
        n_agents=1,
        deliveries=[self_run()],
        compared=compare(
            condition_counts(
                rows_of(full(0, [1, 1, 0]), [self_run()]), n_agents=1, deliveries=[self_run()], **given
            ),
            Counting(),
        ),
        **given,
    )
    stacked = record(
        agents(2), [both[0], alone[0]], tasks=["a", "b", "c"], counting=Counting(), compared=result
    )
    same(stacked.table.means, [[1, 0, 1], [1, 1, 0]])
    assert stacked.operator.tolist() == [True, False]
    with pytest.raises(CoreError, match="2 agents, 1 lines, 2 conditions differ"):
        record(agents(2), both[:1], tasks=["a", "b", "c"], counting=Counting(), compared=result)


def test_without_rows_there_is_a_record_without_agents():
    deliveries = [Delivery(0)]
    result = Record.of(
        agents(1), rows_of([], deliveries), tasks=["a"], settings=[PLAIN], deliveries=deliveries
    )
    assert (result.n_agents, result.n_tasks) == (0, 1)
    assert result.table.means.shape == (0, 1)
