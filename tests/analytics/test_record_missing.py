"""The rule by hand: what missing outcomes count as where the policy leaves it to the data."""

import numpy as np

from analytics.record import Condition, Counting, Delivery, Record, resolve
from tests.analytics.test_record import agents, rows_of

N_TASKS = 20
TASKS = [f"t{j:02d}" for j in range(N_TASKS)]


def read(rows, n_agents, submitted=()):
    """How a record is made of rows (agent, task, outcome or None: void); `submitted` came with a token."""
    deliveries = [Delivery(agent=i, operator=i not in submitted) for i in range(n_agents)]

    def record(counting):
        return Record.of(
            agents(n_agents),
            rows_of(rows, deliveries),
            tasks=TASKS,
            settings=[(None, None, None, None), (None, "j", None, None)],
            deliveries=deliveries,
            counting=counting,
        )

    return record


def board(n_agents, *, n_void=0, n_absent=0, whole=0):
    """Agents pass the first half of the tasks; all but the first lack the last ones, or lost the next."""
    rows = []
    for i in range(n_agents):
        lacks = i >= whole
        for j in range(N_TASKS - n_absent * lacks):
            lost = lacks and N_TASKS - n_absent - n_void <= j
            rows.append((i, j, None if lost else float(j < 10)))
    return rows


def test_void_results_fail_only_of_agents_that_an_operator_loaded():
    rows = board(6, n_void=2, whole=1)
    rows += [(6, j, 1.0) for j in range(12)]  # a submitter leaves out what it would fail
    rows += [(7, j, None if j > 15 else 1.0) for j in range(N_TASKS)]  # confirmed failures of the harness
    found = resolve(Counting(), read(rows, 8, submitted=(6, 7)))
    assert found.counting.missing == "zero_loaded"
    direct = found.record.is_direct(np.arange(N_TASKS)).tolist()
    assert direct == [True] * 6 + [False] * 2
    assert found.record.n_missing_failed == 10
    lower, upper, n_missing = found.record.bounds(np.arange(N_TASKS))
    assert (lower[6], upper[6], n_missing[6]) == (12 / 20, 1.0, 8)
    assert (lower[7], upper[7], n_missing[7]) == (16 / 20, 1.0, 4)
    assert (lower[:6] == 0.5).all()


def two_settings(*lacks):
    """Agents pass all of what they have under both settings; of each, the tasks it lacks under either."""
    return [
        (i, j, 1.0, 1, setting)
        for i, lacking in enumerate(lacks)
        for setting in range(2)
        for j in range(lacking[setting], N_TASKS)
    ]


def test_results_that_lack_under_one_of_two_settings_are_failures_and_no_other_condition():
    both = (Condition(None, None, None), Condition(None, "j", None))
    read_them = read(two_settings((0, 0), (2, 3), (2, 2), (0, 20)), 4)
    record = read_them(Counting(missing="zero", settings=both))
    assert record.condition == ("", "", "", "no judge stated")  # the last ran nothing under the other
    assert np.round(record.table.means[:3].mean(axis=1) * 40).tolist() == [40, 35, 36]
    assert record.n_missing_failed == 5 + 4
    gaps = read_them(Counting(missing="gap", settings=both))
    assert gaps.condition == ("", "no judge stated", "", "no judge stated")


def test_who_lacks_some_results_under_a_condition_has_no_say_against_it_where_these_fail():
    rows = two_settings(*[(0, 0)] * 7, (0, 6))
    record = read(rows, 8)(Counting(missing="zero"))
    assert (len(record.compared), record.condition, record.n_missing_failed) == (2, ("",) * 8, 6)
    assert round(record.table.means[7].sum() * 2) == 34
    assert read(rows, 8)(Counting(missing="gap")).compared == ("no judge stated",)
    assert read(two_settings(*[(0, 0)] * 7, (0, 11)), 8)(Counting(missing="zero")).left_out == (
        ("judge j", 7),
    )


def test_who_ran_each_task_under_one_of_two_conditions_lacks_all_tasks():
    both = [row for row in two_settings(*[(0, 0)] * 8) if row[0] < 7 or (row[1] < 9) == (row[4] == 0)]
    record = read(both, 8)(Counting(missing="gap"))
    assert (len(record.compared), record.condition[7]) == (2, "judge j")
    assert record.n_lacking.tolist() == [0] * 7 + [20]


def test_what_submitters_deliver_has_no_say():
    """Four loaded agents and twenty of tokens: nothing is decided; nor do tokens empty a loaded board."""
    rows = board(24, n_void=2)
    assert resolve(Counting(), read(rows, 24, submitted=range(4, 24))).reason == ""
    rows = board(6) + [(i, j, 1.0) for i in range(6, 26) for j in range(3)]
    found = resolve(Counting(), read(rows, 26, submitted=range(6, 26)))
    assert found.counting == Counting(missing="gap")
    assert found.reason == "6 of 6 agents can be ranked on all 20 tasks"


def test_conditions_of_submitters_leave_an_operators_load_undecided():
    """Where they leave fewer than five loaded agents to compare, the rule does not decide on those alone."""
    rows = board(6, n_void=2) + [(i, j, 1.0, 1, 1) for i in (6, 7) for j in range(N_TASKS)]
    counting = Counting(settings=(Condition(None, "j", None),))
    found = resolve(counting, read(rows, 8, submitted=(6, 7)))
    assert (found.reason, found.counting.missing) == ("", "gap")


def test_half_of_the_agents_is_enough():
    assert resolve(Counting(), read(board(6, n_void=2, whole=3), 6)).counting.missing == "gap"
    assert resolve(Counting(), read(board(6, n_void=2, whole=2), 6)).counting.missing == "zero_loaded"


def test_rows_that_are_absent_come_first():
    found = resolve(Counting(), read(board(6, n_absent=8), 6))
    assert found.counting == Counting(missing="gap", universe=tuple(TASKS[:12]))
    found = resolve(Counting(), read(board(6, n_absent=8, n_void=2, whole=1), 6))
    assert found.counting == Counting(missing="zero_loaded", universe=tuple(TASKS[:12]))
    assert (found.record.n_left_out, found.record.n_missing_failed) == (8, 10)
    few = resolve(Counting(), read(board(6, n_absent=11, whole=1), 6))  # nine tasks are common
    assert few.counting == Counting(missing="gap")
    named = Counting(universe=tuple(TASKS[:15]))  # an operator chose tasks already
    assert resolve(named, read(board(6, n_absent=8), 6)).counting.universe == named.universe


def test_a_task_that_is_void_for_everybody_fails_for_nobody():
    found = resolve(Counting(), read(board(6, n_void=1), 6))
    assert found.counting == Counting(missing="gap")
    assert found.reason == "6 of 6 agents can be ranked on all 19 tasks"
    found = resolve(Counting(), read(board(6, n_void=2), 6))  # more than 5% of the tasks
    assert found.counting == Counting(missing="gap", universe=tuple(TASKS[:18]))
    wanted = "0 of 6 agents can be ranked on all 20 tasks, 6 of 6 on 18 of them"
    assert found.reason == wanted
    rows = [(i, j, None if j in (i, 19) else 1.0) for i in range(6) for j in range(N_TASKS)]
    found = resolve(Counting(), read(rows, 6))
    assert found.counting == Counting(missing="zero_loaded", universe=tuple(TASKS[:19]))
    assert found.record.n_missing_failed == 6
    nobody = resolve(Counting(), read([(i, j, None) for i in range(6) for j in range(N_TASKS)], 6))
    assert nobody.counting.universe == "all"
