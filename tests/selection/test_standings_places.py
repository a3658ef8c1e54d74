"""Which subset is in use, who is ranked on it and who is listed with a reason, phases and savings."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from analytics.record import Counting
from selection.folds import generator
from selection.prior import OVER, PriorDecisions, Staged, SubsetVersion
from selection.rules import Rules
from selection.standings import answer, printed, table, words
from selection.standings.choice import chosen_tasks, training
from selection.strategies import STRATEGIES, Training
from tests.selection.records import (
    NAN,
    band,
    board,
    by_name,
    completed,
    days,
    record_of,
    with_newcomers,
)


def version(tasks, chosen_from, number=1, **other):
    stated = {
        "number": number,
        "tasks": tuple(f"t{j:03d}" for j in tasks),
        "chosen_from": tuple(chosen_from),
        "arrival": number,
        "fixed_on": date(2026, 1, number),
        "lo": 0.3,
        "hi": 0.7,
        "widened": False,
        "provisional": False,
        "strategy": "mid_range",
        "reason": f"version {number}",
        "n_complete": len(chosen_from),
        "n_tasks": 60,
    }
    return SubsetVersion(**stated | other)


def on_subset(found, name):
    return by_name(found)[name].at["subset"]


# ------------------------------------------------------------------------------------------- phases, choices


@pytest.mark.parametrize(
    ("n", "phase", "has_subset"),
    [
        (1, "cold_start", 0),
        (4, "cold_start", 0),
        (5, "provisional", 1),
        (14, "provisional", 1),
        (15, "ongoing", 1),
    ],
)
def test_the_phase_follows_from_the_complete_agents(n, phase, has_subset):
    found = answer(record_of(board(n, 60)))
    assert (found.phase, found.subset is not None, found.n_complete) == (phase, bool(has_subset), n)
    assert (found.savings is not None) == bool(has_subset)
    assert (found.target, found.why_target) == ("full", "")
    if phase == "provisional":
        assert found.subset.provisional
        assert found.why.endswith(
            "this choice is a preview until 15 agents have run all tasks or been stopped."
        )
    assert found.why[0].isupper() or found.why[0].isdigit()
    assert found.why.endswith(".")


def test_the_rules_say_from_when_on_a_subset_is_more_than_a_preview():
    record = record_of(board(15, 60))
    assert answer(record, Rules(subset_from=16)).phase == "provisional"
    assert answer(record_of(board(8, 60)), Rules(subset_from=8)).phase == "ongoing"


def test_without_a_usable_band_agents_run_everything():
    outcomes = np.zeros((16, 40))
    outcomes[:, :20] = 1.0
    found = answer(record_of(outcomes))
    assert (found.phase, found.subset, found.savings, found.target) == ("unsuited", None, None, "full")
    assert found.why.startswith("None of 40 tasks has a pass rate")
    assert found.targets["subset"].n_ranked == 0
    assert {line.at["subset"].reason for line in found.agents} == {found.targets["subset"].reason}


def test_an_operator_asks_for_full_runs_or_a_drift_request_is_open():
    record = record_of(board(16, 60))
    full = answer(record, None, PriorDecisions(full_runs_only="the suite is being repaired"))
    assert (full.phase, full.subset) == ("ongoing", None)
    assert full.why == "An operator asked for full runs: the suite is being repaired."
    again = answer(
        record, None, PriorDecisions(revalidating="rank fidelity fell: 8 agents are asked to run all tasks")
    )
    assert again.phase == "revalidating"
    assert again.why.startswith("Rank fidelity fell")
    assert again.subset is not None


def test_the_subset_is_the_band_of_the_complete_agents():
    outcomes, tasks = with_newcomers(n_agents=16)
    line = answer(record_of(outcomes)).subset
    assert line.tasks == tuple(f"t{j:03d}" for j in tasks)
    assert (line.number, line.size, line.n_complete, line.lo, line.hi) == (None, tasks.size, 16, 0.3, 0.7)


def test_the_latest_agents_set_the_pass_rates():
    outcomes = board(20, 60)
    record = record_of(outcomes, dates=days(20))
    found = answer(record, Rules(history_window=10))
    assert found.subset.tasks == tuple(f"t{j:03d}" for j in band(outcomes[10:]))
    assert found.subset.n_complete == 10


def test_a_narrow_band_widens_unless_the_rules_forbid_it():
    outcomes = board(16, 60)
    rules = Rules(lo=0.51, hi=0.53)  # no pass rate of 16 agents lies there
    assert answer(record_of(outcomes), rules).subset.widened
    found = answer(record_of(outcomes), replace(rules, widening=False))
    assert (found.phase, found.subset) == ("unsuited", None)
    assert "the band is not widened" in found.why
    agents = training(record_of(outcomes))
    assert chosen_tasks(agents, rules)[0].size
    assert not chosen_tasks(agents, replace(rules, widening=False))[0].size


@pytest.mark.parametrize("strategy", sorted(set(STRATEGIES) - {"mid_range"}))
def test_a_strategy_chooses_as_many_tasks_as_the_band(strategy):
    outcomes = board(16, 40)
    record = record_of(outcomes, dates=days(16))
    found = answer(record, Rules(strategy=strategy, seed=7))
    training = Training.of(outcomes, outcomes.mean(axis=1), record.table.dates)
    what = () if strategy == "random" else ("subset",)
    chosen = STRATEGIES[strategy](training, band(outcomes).size, generator(7, strategy, *what))
    assert found.subset.tasks == tuple(f"t{j:03d}" for j in sorted(chosen))
    assert found.subset.strategy == strategy
    assert "by the strategy" in found.subset.reason


def test_a_strategy_that_refuses_means_full_runs():
    found = answer(record_of(board(16, 40)), Rules(strategy="forecast"))
    assert (found.subset, found.phase, found.target) == (None, "ongoing", "full")
    assert found.why == (
        "The strategy forecast chooses no tasks: forecast: 16 of 16 training agents have no date."
    )


def test_a_version_that_was_fixed_stands_less_what_was_retired():
    outcomes = board(16, 60)
    record = record_of(outcomes)
    fixed = version([1, 2, 5, 8, 13, 99], record.table.agents[:15])
    found = answer(record, None, PriorDecisions(subsets=(fixed,)))
    assert found.subset.tasks == ("t001", "t002", "t005", "t008", "t013")
    assert found.subset.number == 1
    assert found.subset.reason == "version 1; 1 of its tasks were retired since"
    assert (found.phase, found.targets["subset"].n_tasks) == ("ongoing", 5)
    gone = answer(record, None, PriorDecisions(subsets=(version([98, 99], record.table.agents),)))
    assert gone.subset.number is None


# -------------------------------------------------------------------------------------------- who is ranked


def submission(outcomes, row, *, asked, lost=()):
    """The record with one agent more, a submitter's, that was asked for some tasks."""
    outcomes = np.vstack([outcomes, row])
    gone = np.zeros(outcomes.shape, bool)
    gone[-1, list(lost)] = True
    wanted = np.zeros(outcomes.shape[1], bool)
    wanted[list(asked)] = True
    names = [f"a{i:02d}" for i in range(len(outcomes) - 1)] + ["new"]
    new = len(outcomes) - 1
    return record_of(outcomes, submitted=[new], asked={new: wanted}, lost=gone, names=names)


@pytest.fixture
def history():
    """16 complete agents on 60 tasks, and a subset of at least 20 tasks."""
    outcomes = board(16, 60)
    tasks = band(outcomes)
    assert tasks.size >= 20
    return outcomes, tasks


def test_all_of_the_subset_is_ranked_directly(history):
    outcomes, tasks = history
    row = np.full(60, NAN)
    row[tasks] = np.arange(tasks.size) % 2
    found = answer(submission(outcomes, row, asked=tasks))
    told = on_subset(found, "new")
    assert told.score == pytest.approx(np.mean(row[tasks]))
    assert (told.n_valid, told.n_missing, told.reason) == (tasks.size, 0, "")
    line = by_name(found)["new"]
    assert (line.how, line.marks, line.n_tasks) == ("estimated", ("estimated",), tasks.size)


def test_one_harness_failure_is_completed_and_marked(history):
    outcomes, tasks = history
    row = np.full(60, NAN)
    row[tasks[1:]] = 1.0
    found = answer(submission(outcomes, row, asked=tasks, lost=tasks[:1]))
    told = on_subset(found, "new")
    assert (tasks.size - 1) / tasks.size < told.score < 1  # what is missing is neither failed nor passed
    assert by_name(found)["new"].marks == ("estimated", "completed")
    assert (told.n_valid, told.n_missing) == (tasks.size - 1, 1)


def test_more_than_5_percent_lost_is_listed_with_its_bounds(history):
    outcomes, tasks = history
    n_lost = tasks.size // 20 + 1
    row = np.full(60, NAN)
    row[tasks[n_lost:]] = 1.0
    found = answer(submission(outcomes, row, asked=tasks, lost=tasks[:n_lost]))
    told = on_subset(found, "new")
    assert (told.rank, told.score) == (None, None)
    assert told.bounds == pytest.approx(((tasks.size - n_lost) / tasks.size, 1.0))
    assert told.reason == (
        f"{n_lost} of its {tasks.size} trials on {tasks.size} ranking tasks have no valid outcome, "
        "more than 5%"
    )


def test_an_agent_that_ran_all_tasks_and_lost_too_many_is_listed_not_estimated(history):
    """Its outcomes on the subset are whole: there it is ranked, and on all tasks it has its bounds alone."""
    outcomes, tasks = history
    lost = np.zeros((len(outcomes) + 1, 60), bool)
    lost[-1, np.setdiff1d(np.arange(60), tasks)[:4]] = True
    row = np.where(lost[-1], NAN, np.arange(60) % 2)
    found = answer(record_of(np.vstack([outcomes, row]), lost=lost))
    line = next(one for one in found.agents if one.agent == f"a{len(outcomes):02d}")
    assert line.at["subset"].rank is not None
    full = line.at["full"]
    assert (full.rank, full.score, full.estimated) == (None, None, False)
    n_passed = float(np.nansum(row))
    assert full.bounds == pytest.approx((n_passed / 60, (n_passed + 4) / 60))
    assert (line.how, line.marks) == ("incomplete", ("incomplete",))
    (cells,) = [one for one in table.rows(found, "full") if one["Agent"] == line.agent]
    assert cells["Possible score %"] == f"{words.percent(n_passed / 60)}–{words.percent((n_passed + 4) / 60)}"
    assert (cells["Rank"], cells["Score %"]) == ("", "–")


def test_a_task_that_never_arrived_is_listed_by_name_even_if_it_is_one(history):
    outcomes, tasks = history
    row = np.full(60, NAN)
    row[tasks[1:]] = 1.0
    found = answer(submission(outcomes, row, asked=tasks))
    told = on_subset(found, "new")
    assert told.rank is None
    assert told.reason == (
        f"it has no result of 1 of the {tasks.size} tasks that it was asked to run: t{tasks[0]:03d}"
    )
    assert by_name(found)["new"].how == "incomplete"
    assert found.savings["so_far"]["n_runs"] == 0


def test_from_a_file_a_part_of_the_subset_is_no_run_of_it(history):
    outcomes, tasks = history
    row = np.full(60, NAN)
    row[tasks[: -(-tasks.size // 2)]] = 1.0
    record = record_of(np.vstack([outcomes, row]))
    found = answer(record)
    assert on_subset(found, "a16").rank is None
    assert "tasks were not run: " in on_subset(found, "a16").reason
    under_both = answer(replace(record, compared=("prompt p1", "prompt p2")))  # under one of them it may have
    assert "tasks were not run under all 2 compared conditions: " in on_subset(under_both, "a16").reason
    assert by_name(found)["a16"].how == "incomplete"


def test_a_reselection_loses_nobody_who_ran_an_earlier_version(history):
    """The second version lets six tasks of the first go and takes six others in."""
    outcomes, tasks = history
    second = np.sort(np.concatenate([tasks[6:], np.setdiff1d(np.arange(60), tasks)[:6]]))
    names = [f"a{i:02d}" for i in range(16)]
    given = PriorDecisions(subsets=(version(tasks, names, 1), version(second, names, 2)))
    row = np.full(60, NAN)
    row[tasks] = np.arange(tasks.size) % 2
    record = submission(outcomes, row, asked=tasks)
    before = by_name(answer(record, None, PriorDecisions(subsets=given.subsets[:1])))["new"].at["full"]
    new = by_name(answer(record, None, given))["new"]
    told = new.at["full"]
    assert (new.how, new.marks) == ("estimated", ("estimated",))
    assert (told.score, told.lower, told.upper, told.se) == pytest.approx(
        (before.score, before.lower, before.upper, before.se)
    )
    assert told.rank == before.rank
    assert new.at["subset"].rank is None
    only_second = answer(record, None, PriorDecisions(subsets=given.subsets[1:]))
    assert by_name(only_second)["new"].how == "incomplete"
    given = PriorDecisions(subsets=(*given.subsets, version(range(60), names, 3)))
    assert by_name(answer(record, None, given))["new"].at["full"].score == pytest.approx(told.score)


@pytest.mark.parametrize("n", [9, 10])
def test_under_ten_complete_agents_nothing_is_completed(n):
    outcomes = board(n, 60)
    tasks = band(outcomes)
    row = np.full(60, NAN)
    row[tasks[1:]] = 1.0
    told = on_subset(answer(submission(outcomes, row, asked=tasks, lost=tasks[:1])), "new")
    assert (told.rank is None) == (n == 9)
    if n == 9:
        assert told.reason == (
            f"1 of {tasks.size} ranking tasks has no valid outcome; an estimate needs 10 full runs "
            "and there are 9"
        )


def test_withheld_agents_and_other_conditions_are_listed(history):
    outcomes, _ = history
    record = record_of(outcomes)
    about = list(record.about)
    about[3] = replace(about[3], withheld="resubmitted: waits for an operator")
    conditions = ["judge j2" if i == 5 else "" for i in range(16)]
    found = answer(
        completed(
            replace(
                record,
                about=tuple(about),
                condition=tuple(conditions),
                compared=("judge j1",),
                left_out=(("judge j2", 1),),
            )
        )
    )
    assert found.n_complete == 14
    for target in ("subset", "full", "domain"):
        assert by_name(found)["a03"].at[target].reason == "resubmitted: waits for an operator"
        assert by_name(found)["a05"].at[target].reason == (
            "ran only under judge j2; this board compares judge j1"
        )
        assert found.targets[target].n_ranked == 14
    assert by_name(found)["a03"].marks == ("incomplete", "withheld")
    assert by_name(found)["a05"].condition == "judge j2"
    assert found.conditions.compared == ("judge j1",)
    left_out = "left out: judge j2 (full runs of 1 agent)"
    assert found.notices[0] == f"Agents are compared under judge j1; {left_out}."
    assert found.notices[1].startswith("2 of 16 agents are not ranked: ")
    assert {"1 waits for an operator's approval", "1 ran only under judge j2"} <= set(
        found.notices[1].removesuffix(".").split(": ")[1].split(", ")
    )


def test_a_task_nobody_ran_keeps_nobody_from_a_rank():
    outcomes = np.column_stack([board(4, 40), np.full(4, NAN)])
    found = answer(record_of(outcomes))
    assert (found.n_tasks, found.targets["full"].n_tasks) == (41, 40)
    assert all(line.at["full"].rank_lower for line in found.agents)


# -------------------------------------------------------------------------------------------- what is spared


def test_savings_count_what_was_not_run_by_assignment(history):
    """Two runs of the subset spare the rest; a full run without 3 of 60 tasks, and a part, spare nothing."""
    outcomes, tasks = history
    rows = np.full((4, 60), NAN)
    rows[0, tasks] = rows[1, tasks] = 1.0
    rows[2, 3:] = 1.0
    rows[3, tasks[:4]] = 1.0
    every = np.vstack([outcomes, rows])
    wanted = np.zeros(60, bool)
    wanted[tasks] = True
    record = record_of(every, submitted=[16, 17, 19], asked={16: wanted, 17: wanted, 19: wanted})
    spared = answer(record).savings["so_far"]
    assert (spared["n_runs"], spared["n_tasks_saved"]) == (2, 2 * (60 - tasks.size))
    assert (spared["saved"], spared["n_not_measured"]) == (None, 2)


def test_missing_rows_of_a_loaded_file_save_nothing():
    """As on WildBench: 6 of the loaded agents lack 3 rows each, nobody asked them to leave these out."""
    outcomes = board(20, 100)
    for i in range(6):
        outcomes[i, [7 * i + j for j in range(3)]] = NAN
    found = answer(record_of(outcomes))
    assert sum(line.n_tasks == 97 and line.at["full"].rank is not None for line in found.agents) == 6
    assert found.savings["so_far"] == {"n_runs": 0, "n_tasks_saved": 0, "saved": None, "n_not_measured": 0}
    assert words.savings_text(found.savings) == ""


def test_savings_in_money_are_at_the_agents_own_mean(history):
    outcomes, tasks = history
    costs = np.full((17, 60), NAN)
    costs[0] = 2.0
    costs[16, tasks] = 0.5
    row = np.full(60, NAN)
    row[tasks] = 1.0
    found = answer(record_of(np.vstack([outcomes, row]), submitted=[16], costs=costs))
    assert found.savings["so_far"]["saved"] == pytest.approx(0.5 * (60 - tasks.size))
    assert words.savings_text(found.savings).endswith(
        f"So far 1 agent saved {60 - tasks.size} tasks of a full run, "
        f"${0.5 * (60 - tasks.size):.2f} at its own mean cost per task."
    )
    assert found.savings["subset_run"]["largest"] == pytest.approx(2.0 * tasks.size)
    lines = by_name(found)
    assert (lines["a00"].cost_usd, lines["a00"].cost_basis) == (pytest.approx(120.0), "linear")
    assert lines["a16"].cost_usd == pytest.approx(30.0)
    assert (lines["a01"].cost_usd, lines["a01"].cost_basis) == (None, "not stated")


def self_reported(record, *agents):
    about = tuple(
        replace(one, trust="self_reported" if i in agents else "verified")
        for i, one in enumerate(record.about)
    )
    return replace(record, about=about)


def test_sentences_about_costs_are_made_from_verified_agents_alone(history):
    """a00 at two dollars a task and the newcomer at half a dollar are self-reported."""
    outcomes, tasks = history
    costs = np.full((17, 60), NAN)
    costs[0] = 2.0
    costs[16, tasks] = 0.5
    row = np.full(60, NAN)
    row[tasks] = 1.0
    record = self_reported(record_of(np.vstack([outcomes, row]), submitted=[16], costs=costs), 0, 16)
    found = answer(record)
    assert found.headline_from == "verified"
    assert (found.savings["per_run"], found.savings["so_far"]["saved"]) == (None, None)
    assert found.savings["so_far"]["n_runs"] == 1
    assert "$" not in words.savings_text(found.savings) + words.trials_text(found.trials)
    assert by_name(found)["a00"].cost_usd == pytest.approx(120.0)
    everyone = answer(record, Rules(headline_from="self_reported"))
    assert everyone.savings["per_run"] is not None
    costs[1] = 1.0
    told = answer(replace(record, costs=costs))
    assert told.savings["per_run"]["median"] == 60 - tasks.size
    assert told.savings["note"] == (
        "cost: linear in tasks for 1 of 15 verified agents, not measured for 14 of 15 verified agents"
    )
    assert told.trials.options[0].cost_usd == tasks.size
    assert (told.savings["so_far"]["saved"], told.savings["so_far"]["n_not_measured"]) == (None, 1)


@pytest.mark.parametrize("target", ["full", "domain"])
def test_the_best_is_looked_for_among_verified_agents(target):
    """A self-reported agent that passes everything rules nobody out."""
    outcomes = board(16, 60)
    ahead = record_of(np.vstack([outcomes, np.ones((1, 60))]), submitted=[16])
    first = answer(record_of(outcomes)).targets[target].may_be_first
    found = answer(self_reported(ahead, 16))
    assert found.targets[target].may_be_first == first
    assert len(first) > 1
    assert (
        words.could_be_first(found)
        == f"{len(found.targets['full'].may_be_first)} of 16 verified agents could be the best"
    )
    among = f"{printed.BEST} could be the best of the verified agents (95%); other rank ranges can include 1."
    out = printed.text(found, target)
    assert among in " ".join(out.split())
    (leader,) = (row for row in out.splitlines() if "a16" in row)
    assert printed.BEST not in leader
    explained = " ".join(printed.ranks(found, target).split())
    assert "The best of the verified agents is one of these (95%)." in explained
    assert answer(self_reported(ahead, 16), Rules(headline_from="logs")).targets[target].may_be_first == first
    assert answer(ahead).targets[target].may_be_first == ("a16",)
    assert by_name(found)["a16"].at[target].rank == 1


@pytest.mark.parametrize("stated", [1e-4, 2e4])
def test_a_cost_of_a_few_tasks_decides_nothing(history, stated):
    """Forty that ran one task of sixty, and one that ran all at a cent, beside sixteen at a dollar a task."""
    outcomes, _ = history
    few = np.full((40, 60), NAN)
    few[:, 0] = 1.0
    costs = np.full((57, 60), 1.0)
    costs[16] = 0.01
    costs[17:] = np.where(np.isnan(few), NAN, stated)
    found = answer(record_of(np.vstack([outcomes, outcomes[:1], few]), costs=costs))
    told, lines = found.savings, by_name(found)
    assert told["per_run"]["median"] == 60 - told["k"]
    assert told["note"] == (
        "cost: linear in tasks for 16 of 57 agents, implausible for 1 of 57 agents, "
        "not measured for 40 of 57 agents"
    )
    assert (lines["a16"].cost_usd, lines["a17"].cost_basis) == (pytest.approx(0.6), "in part")
    believed = words.costs(found)
    assert believed.keys() >= {f"a{i:02d}" for i in range(16)}
    assert "a16" not in believed


def test_savings_leave_out_a_cost_that_is_not_believed(history):
    """By hand: 15 runs at a dollar a task, one at a cent; the newcomer at a cent too."""
    outcomes, tasks = history
    k, costs = tasks.size, np.full((17, 60), 1.0)
    costs[3] = 0.01
    costs[16] = NAN
    costs[16, tasks] = 0.01
    row = np.full(60, NAN)
    row[tasks] = 1.0
    found = answer(record_of(np.vstack([outcomes, row]), submitted=[16], costs=costs))
    told = found.savings
    assert (told["per_run"]["smallest"], told["per_run"]["largest"]) == (60 - k, 60 - k)
    assert told["note"] == "cost: linear in tasks for 15 of 17 agents, implausible for 2 of 17 agents"
    assert (told["so_far"]["n_runs"], told["so_far"]["saved"], told["so_far"]["n_not_measured"]) == (
        1,
        None,
        1,
    )
    assert found.trials.options[0].cost_usd == k
    lines = by_name(found)
    assert (lines["a03"].cost_usd, lines["a03"].cost_basis) == (pytest.approx(0.6), "linear")


def test_a_cost_of_the_cheap_trials_alone_is_marked(history):
    """The best agent states what its five cheapest tasks cost; then, of each task, one trial."""
    outcomes, _ = history
    costs = np.tile(np.random.default_rng(0).lognormal(0.0, 1.0, 60), (16, 1))
    best = int(np.argmax(outcomes.mean(axis=1)))
    cheap = np.argsort(costs[best])[:5]
    told = costs.copy()
    told[best] = NAN
    told[best, cheap] = costs[best, cheap]
    n_uncosted = np.zeros(16, int)
    n_uncosted[best] = 55
    for given in (told, costs):
        found = answer(replace(record_of(outcomes, costs=given), n_uncosted=tuple(n_uncosted)))
        line = by_name(found)[f"a{best:02d}"]
        assert line.cost_basis == "in part"
        assert words.cost_text(line).startswith("~$")
        assert dict(words.about(line))["Cost"].endswith("from the trials that state a cost, not all")
    whole = by_name(answer(record_of(outcomes, costs=costs)))[f"a{best:02d}"]
    assert (whole.cost_basis, words.cost_text(whole)) == ("per task", f"${costs[best].sum():.2f}")


# ------------------------------------------------------------------------------------------------- notices


def test_over_a_quarter_without_outcomes_names_the_other_way_to_count_them():
    outcomes = board(12, 60)
    lost = np.zeros(outcomes.shape, bool)
    lost[:4, :6] = True
    outcomes[lost] = NAN
    found = answer(record_of(outcomes, lost=lost))
    told = "4 agents could be ranked if an operator counts missing results as failures."
    assert told in found.notices
    zero = answer(record_of(outcomes, lost=lost, counting=Counting(missing="zero")))
    assert told not in zero.notices
    lost[3] = False
    outcomes[3] = 1.0
    assert told not in answer(record_of(outcomes, lost=lost)).notices


def test_where_fewer_than_half_are_ranked_the_common_tasks_are_offered():
    outcomes = board(12, 60)
    outcomes[:8, 40:] = NAN
    found = answer(record_of(outcomes))
    assert words.next_step_text(found, words.flags) == (
        "Run `--universe common` to rank agents on the tasks that nearly all of them ran."
    )
    assert found.target == "full"
    outcomes = board(12, 60)
    outcomes[:5, 40:] = NAN
    assert answer(record_of(outcomes)).next_step == ""


def test_who_was_stopped_with_two_tasks_left_is_estimated():
    """Its mean over what it ran leaves out two tasks that nobody passes: 76 of 78 would be 97.4%."""
    outcomes = np.vstack([board(16, 80), np.ones(80)])
    outcomes[:, 78:] = 0.0
    outcomes[16, 76:] = [0.0, 0.0, NAN, NAN]
    record = record_of(outcomes)
    stopped = Staged((1, 1), 16, OVER, k=78, score=0.952, lower=0.95, upper=0.97, se=0.004, degrees=20)
    found = answer(record, Rules(), PriorDecisions(staged={"a16": stopped}))
    line = by_name(found)["a16"].at["full"]
    assert (line.estimated, line.score) == (True, 0.952)
    assert by_name(answer(record, Rules(), PriorDecisions()))["a16"].at["full"].estimated is False
    assert found.n_complete == 16
