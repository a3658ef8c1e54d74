"""Which agents have a say in what all agents share."""

import numpy as np
import pytest

from analytics.record import About, Delivery, Record
from analytics.record.conditions import Voter, voices
from tests.analytics.test_record import agents, full, judged, rows_of, self_run


def heard(voters, finished):
    return voices(voters, finished).tolist()


def test_all_that_are_vouched_for_and_two_of_each_other_account():
    voters = [Voter(f"a{i}", "x", i == 4, i) for i in range(5)]
    assert heard(voters, [9, 8, 7, 6, 5]) == [False, False, True, True, True]
    assert heard([*voters, Voter("b", "y", False, 9)], [9, 8, 7, 6, 5, -1])[-1]


def test_who_never_finished_stands_behind_in_the_order_in_which_they_came():
    voters = [Voter("c", "x", False, 1), Voter("b", "x", False, 3), Voter("a", "x", False, 2)]
    assert heard(voters, [-1, -1, -1]) == [True, False, True]
    assert heard(voters, [-1, 7, -1]) == [True, True, False]
    assert heard(voters, [-1, 7, 5]) == [False, True, True]


def test_what_was_withdrawn_keeps_its_place_if_it_had_finished():
    """Without an outcome there is no first delivery: −1."""
    gone, others = Voter("g", "x", False, -1), [Voter(name, "x", False, i) for i, name in enumerate("ab", 3)]
    assert heard([gone, *others], [2, 3, 4]) == [True, True, False]
    assert heard([gone, *others], [-1, -1, -1]) == [False, True, True]


def test_names_decide_between_those_that_finished_at_once():
    voters = [Voter(name, "x", False, 1) for name in "cba"]
    assert heard(voters, [1, 1, 1]) == [False, True, True]


def of(rows, deliveries, accounts, **more):
    about = [
        About(one.name, "s", "m", account=account, vouched=not account)
        for one, account in zip(agents(len(deliveries)), accounts, strict=True)
    ]
    tasks, settings = [f"t{j:03}" for j in range(3)], more.pop("settings", [(None,) * 4])
    return Record.of(about, rows_of(rows, deliveries), tasks=tasks, settings=settings, deliveries=deliveries)


def test_one_account_does_not_choose_the_judge():
    """Three loaded under j, six of one account under its own: two of these are asked."""
    deliveries = [*map(Delivery, range(3)), *(self_run(i, arrival=i) for i in range(3, 9))]
    rows = [row for i in range(9) for row in full(i, [1, 0, i % 2], 1, int(i > 2))]
    judges = {"settings": judged("j", "mine")}
    assert of(rows, deliveries, [""] * 3 + ["x"] * 6, **judges).compared == ("judge j",)
    apart = of(rows, deliveries, [""] * 3 + [f"x{i}" for i in range(6)], **judges)
    assert apart.compared == ("judge mine",)


def test_without_a_full_run_one_account_does_not_choose_it_either():
    deliveries = [*map(Delivery, range(3)), *(self_run(i, arrival=i) for i in range(3, 9))]
    rows = [(i, j, 1, 1, int(i > 2)) for i in range(9) for j in range(2)]
    assert of(rows, deliveries, [""] * 3 + ["x"] * 6, settings=judged("j", "mine")).compared == ("judge j",)


def test_noise_and_graded_outcomes_are_of_those_with_a_say():
    deliveries = [Delivery(0), *(self_run(i, arrival=i) for i in range(1, 5))]
    rows = [row for i in range(5) for row in full(i, [1, 0, 0.5 if i > 2 else 1 - i % 2])]
    result = of(rows, deliveries, ["", *["x"] * 4])
    assert result.voice.tolist() == result.complete.tolist() == [True, True, True, False, False]
    assert result.ran_all.all()
    assert result.telling_noise.tolist() == result.complete.tolist()
    assert result.graded_share == 0.0
    np.testing.assert_array_equal(result.table.n_valid, 1)


@pytest.mark.parametrize(("n_tasks", "alone"), [(3, True), (1, False)])
def test_sources_of_error_are_of_those_vouched_for_where_five_of_them_ran_all_tasks(n_tasks, alone):
    deliveries = [*map(Delivery, range(5)), *(self_run(i, arrival=i) for i in range(5, 12))]
    rows = [row for i in range(5) for row in full(i, [1, 0, i % 2])[:n_tasks]]
    rows += [row for i in range(5, 12) for row in full(i, [1, i % 2, 0])]
    result = of(rows, deliveries, [""] * 5 + [f"x{i}" for i in range(7)])
    assert result.telling.tolist() == [True] * 5 + [not alone] * 7
