"""Deliveries through the service: what is asked, what a receipt says, what gains nothing."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import ClassVar

import pytest
from django.db import connection

from leaderboard.boards.export import rows_of
from leaderboard.boards.models import Entry
from leaderboard.catalog.models import Agent, Benchmark, Model, Policy, Task
from leaderboard.catalog.services import AgentDescription, AgentMismatch
from leaderboard.errors import Conflict, Forbidden
from leaderboard.operations import reviewing
from leaderboard.operations.assignments import assign, names_of
from leaderboard.operations.corrections import approve, confirm, unload, unload_latest, verify, withdraw
from leaderboard.operations.delivered import Followed
from leaderboard.operations.naming import merge
from leaderboard.operations.queries import CountsNoMore
from leaderboard.operations.reviewing import accept
from leaderboard.operations.services import recompute
from leaderboard.studies.outcomes import read_outcomes
from leaderboard.studies.queries import active_subset
from leaderboard.studies.receipt import TWO_TEMPERATURES
from leaderboard.studies.record_cache import unpack
from leaderboard.studies.records import Reader
from leaderboard.submissions import queries
from leaderboard.submissions.models import Submission
from leaderboard.submissions.queries import deliveries, outcomes_of, withheld
from selection.standings.choice import band_of
from tests.leaderboard import world
from tests.leaderboard.world import stored
from tests.refusals import refused
from tests.toys import (
    AS_OF,
    board_of,
    csv_text,
    first_board,
    graded,
    in_subset,
    ladder,
    lines_of,
    load_text,
    recomputed,
    rows_text,
)

TODAY = f"{AS_OF:%Y-%m-%d}"


@pytest.fixture
def ada(toy):
    return token("ada@example.org")


def token(email, scope="submit"):
    return world.token(email, scope, is_trusted=False)


def deliver(by, outcomes, agent="newcomer", *, model="Model 9", version="", first=1, **more):
    """Submit {task: outcomes of its trials, None for an invalid one}, or rows, and return the receipt."""
    rows = (
        outcomes
        if isinstance(outcomes, list)
        else [
            {"task": task, "trial": trial, "outcome": outcome, "valid": outcome is not None}
            for task, trials in outcomes.items()
            for trial, outcome in enumerate(trials, start=first)
        ]
    )
    described = {"name": agent, "scaffold": "Loop", "model": model} if isinstance(agent, str) else agent
    described |= {"version": version} if version else {}
    return world.deliver(by, rows, described, **({"submitted_at": TODAY} | more))


def every_task(outcome=1, *, n=20):
    return {f"t{j:02d}": [outcome] for j in range(n)}


def counted(benchmark, receipt):
    return [one for one in deliveries(benchmark) if str(one.submission.uuid) == receipt["id"]]


def test_what_was_withdrawn_is_read_with_its_agent_alone_and_counts_nowhere(ada, toy, monkeypatch):
    read, original = [], queries.measured_outcomes_of

    def seen(submissions, withdrawn=()):
        read.append((sorted(submissions), sorted(withdrawn)))
        return original(*read[-1])

    monkeypatch.setattr(queries, "measured_outcomes_of", seen)
    gone, first = deliver(ada, every_task(), "gone", model="Model 8"), deliver(ada, every_task(0), "again")
    for one in (gone, first):
        withdraw(uuid=stored(one).uuid, token=ada, reason="a bug", as_of=AS_OF)
    second = deliver(ada, every_task() | {"t03": [None]}, "again")
    now = Reader(toy).now(None)
    every = {one.submission.pk: one for one in deliveries(toy, withdrawn=True)}
    withdrawn = sorted(stored(one).pk for one in (gone, first))
    assert read == [(sorted({*every} - {*withdrawn}), withdrawn)]
    assert ("gone" in now.record.table.agents, "again" in now.record.table.agents) == (False, True)
    assert now.record.n_deliveries[now.record.table.agents.index("again")] == 1
    rows = {one.agent.name: unpack(one) for one in now.stale}
    for name, last in (("gone", gone), ("again", first)):
        assert rows[name].finished == every[stored(last).pk].arrival
    assert rows["again"].arrival == rows["again"].completed == every[stored(second).pk].arrival
    assert rows["again"].means.tolist() == [1.0] * 3 + [0.0] + [1.0] * 16
    recompute(benchmark=toy, as_of=AS_OF)
    read.clear()
    load_text(csv_text({"new": "1" * 20}))
    recompute(benchmark=toy, as_of=AS_OF)
    assert read == [([Submission.objects.get(agent__name="new").pk], [])]
    assert read_outcomes(toy).n_unread == 0
    assert "gone" not in {agent.name for agent in read_outcomes(toy).agents}


class TestAsked:
    def test_all_tasks_before_there_is_a_subset(self, ada, toy):
        receipt = deliver(ada, every_task())
        assert (stored(receipt).asked, receipt["n_outside"], receipt["warnings"]) == (None, 0, [])

    def test_the_tasks_of_the_subset_once_it_is_fixed(self, ada, toy):
        board = first_board(toy)
        names = in_subset(board)
        receipt = deliver(ada, every_task())
        assert sorted(toy.tasks.filter(pk__in=stored(receipt).asked).values_list("name", flat=True)) == names
        assert receipt["n_outside"] == 20 - len(names) > 0
        assert receipt["warnings"] == []
        (one,) = counted(toy, receipt)
        kept = one.submission
        assert (kept.asked, kept.n_trials, kept.loaded) == (stored(receipt).asked, None, False)

    def test_a_retired_task_is_not_asked_for(self, ada, toy):
        names = in_subset(first_board(toy))
        toy.tasks.filter(name=names[0]).update(retired_at=AS_OF, retired_reason="broken")
        assert len(stored(deliver(ada, every_task())).asked) == len(names) - 1

    def test_all_tasks_where_an_operator_wants_full_runs(self, ada, toy):
        first_board(toy)
        Benchmark.objects.update(full_runs_only_at=AS_OF, full_runs_only_reason="an audit")
        assert stored(deliver(ada, every_task())).asked is None

    def test_all_tasks_while_the_subset_is_a_preview(self, db):
        load_text(csv_text(ladder(8, 20)))
        recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF)
        assert stored(deliver(token("ada@example.org"), every_task())).asked is None


class TestReceipts:
    def test_what_is_lacking_is_counted_and_named(self, ada):
        receipt = deliver(ada, every_task(n=17))
        assert receipt["warnings"] == [
            "3 of the 20 tasks asked for have no outcome (t17, t18, t19): until all are delivered, the "
            "agent is not ranked"
        ]
        again = deliver(ada, {task: [1] for task in ("t17", "t18", "t19")})
        assert again["warnings"] == []

    def test_where_missing_outcomes_are_failures_it_says_so(self, ada, toy):
        Policy.objects.create(benchmark=toy, number=2, missing="zero")
        (said,) = deliver(ada, every_task(n=17))["warnings"]
        assert said.endswith(
            "(t17, t18, t19): until all are delivered, they count as failures, as often as the "
            "task with most trials ran"
        )
        at = lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["newcomer"].at["full"]
        assert (at.score, at.rank is None) == (17 / 20, False)

    def test_where_they_are_what_lacks_of_other_tasks_is_failed_too(self, ada, toy):
        Policy.objects.create(benchmark=toy, number=2, missing="zero")
        of_all, of_trials = deliver(ada, every_task(n=17) | {"t00": [1, 1], "t03": [0]})["warnings"]
        assert of_all.startswith("3 of the 20 tasks asked for have no outcome")
        assert of_trials == (
            "tasks have from 1 to 2 trials, and others none: until all are delivered, missing results count "
            "as failures"
        )
        assert lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["newcomer"].at["full"].score == 0.425
        (said,) = deliver(ada, {task: [0] for task in ("t17", "t18", "t19")})["warnings"]
        assert "tasks have from 1 to 2 trials: on each only one trial counts" in said
        assert lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["newcomer"].at["full"].score == 0.8

    def test_only_the_first_names_are_told(self, ada):
        (warning,) = deliver(ada, every_task(n=1))["warnings"]
        assert warning.startswith("19 of the 20 tasks asked for have no outcome (t01, ")
        assert "t10 and 9 more)" in warning

    def test_more_trials_on_some_tasks_count_for_nothing(self, ada):
        receipt = deliver(ada, every_task() | {"t03": [0, 1, 1]})
        (warning,) = receipt["warnings"]
        assert warning.startswith("tasks have from 1 to 3 trials: on each only one trial counts, as many as ")
        assert warning.endswith(
            " and 9 more); earlier submissions count first, with their lowest results if they are not whole "
            "runs"
        )
        assert receipt["n_outcomes"] == 22

    def test_of_one_delivery_the_lowest_count_as_it_says(self, ada, toy):
        (said,) = deliver(ada, every_task() | {"t03": [1, 0]})["warnings"]
        assert "earlier submissions count first, with their lowest results if they are not whole runs" in said
        assert lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["newcomer"].at["full"].score == 0.95

    def test_fractions_on_a_board_of_passes_and_failures(self, ada, toy):
        first_board(toy)
        asked = {task: [0.5] for task in every_task()}
        assert deliver(ada, asked)["warnings"] == [
            "20 outcomes lie between 0 and 1; all that an operator loaded here are 0 or 1: the board flags "
            "the agent for the operator (a mean of several runs says so by n_averaged)",
            "held for review: 20 of its outcomes lie between 0 and 1; those of verified agents are all 0 or "
            "1; it counts once an operator has accepted it",
        ]
        flag = "outcomes between 0 and 1, where all agents that an operator loaded have 0 or 1"
        accept(uuid=Submission.objects.get(agent__name="newcomer").uuid, by=None, reason="seen", as_of=AS_OF)
        lines = lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])
        assert [line.agent for line in lines.values() if flag in line.flags] == ["newcomer"]

    def test_fractions_on_a_board_of_fractions(self, ada, toy):
        load_text(rows_text([{"agent": "b", "task": "t00", "outcome": 0.25}]))
        recompute(benchmark=toy, as_of=AS_OF)
        assert deliver(ada, {task: [0.5] for task in every_task()})["warnings"] == []
        assert lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["newcomer"].flags == ()

    def test_trials_delivered_later_even_out(self, ada):
        deliver(ada, every_task())
        assert deliver(ada, {"t00": [1]}, first=2)["warnings"] != []
        assert deliver(ada, every_task(), first=3)["warnings"] != []
        rest = {task: [1] for task in every_task() if task != "t00"}
        assert deliver(ada, rest, first=2)["warnings"] == []

    def test_solved_extras_are_counted_as_outside(self, ada, toy):
        names = in_subset(first_board(toy))
        extras = [task for task in every_task() if task not in names]
        receipt = deliver(ada, {task: [0] for task in names} | {extras[0]: [1]})
        assert (receipt["n_outside"], receipt["warnings"]) == (1, [])

    def test_failed_trials_called_invalid_count_as_failures(self, ada, toy):
        receipt = deliver(ada, every_task() | {"t04": [None], "t05": [None]})
        assert receipt["n_invalid"] == 2
        assert receipt["warnings"] == [
            "2 invalid outcomes count as failures until an operator confirms that the harness failed"
        ]
        assert not counted(toy, receipt)[0].confirmed


def under(outcomes, *, trial=1, **condition):
    """Rows of a body, each under this prompt, judge or temperature."""
    return [
        {"task": task, "trial": trial, "outcome": outcome} | condition
        for task, (outcome,) in outcomes.items()
    ]


def places_of(benchmark, name="newcomer"):
    """The places that the record counts of an agent, by task."""
    record = Reader(benchmark).now(active_subset(benchmark)).record
    places = record.n_places[[one.name for one in record.about].index(name)]
    return dict(zip(record.table.tasks, places.tolist(), strict=True))


class TestConditions:
    @pytest.mark.parametrize(
        ("field", "levels", "ours", "other"),
        [
            ("judge", ("j1", "j2"), "judge j1", "judge j2"),
            ("prompt_variant", ("p1", "p2"), "prompt p1", "prompt p2"),
        ],
    )
    def test_what_is_not_compared_is_said(self, db, field, levels, ours, other):
        rows = [
            {"agent": agent, "task": f"t{j:02d}", "outcome": mark, field: levels[0]}
            for agent, marks in ladder(8, 20).items()
            for j, mark in enumerate(marks)
        ]
        load_text(rows_text(rows))
        ada, toy = token("ada@example.org"), Benchmark.objects.get()
        recompute(benchmark=toy, as_of=AS_OF)
        alone = deliver(ada, under(every_task(), **{field: levels[1]}))
        assert alone["warnings"] == [
            f"ran only under {other}; this board compares {ours}. These results do not count; the agent "
            "is not ranked"
        ]
        board = recompute(benchmark=toy, as_of=AS_OF)[0]
        line = lines_of(board)["newcomer"]
        assert (line.condition, line.n_tasks, line.marks) == (other, 20, ("elsewhere",))
        assert {at.reason for at in line.at.values()} == {
            f"ran only under {other}; this board compares {ours}"
        }
        both = deliver(ada, under(every_task(), **{field: levels[0]}))
        assert both["warnings"] == [f"results under {other} do not count: this board compares {ours}"]
        assert lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["newcomer"].condition == ""
        assert deliver(ada, under(every_task(), **{field: levels[0]}), agent="b", model="b")["warnings"] == []

    def test_too_few_outcomes_under_what_is_compared(self, ada, toy):
        """Under both judges; two of the tasks asked for are missing under the one that is compared."""
        recompute(benchmark=toy, as_of=AS_OF)
        ours = [row for row in under(every_task()) if row["task"] not in ("t09", "t10")]
        k = active_subset(toy).tasks.count()
        few = f"2 of its {k} tasks lack a valid result under no judge stated, more than 5%"
        receipt = deliver(ada, [*ours, *under(every_task(), judge="easy")])
        assert f"{few}: the agent is not ranked" in receipt["warnings"]
        assert not any("alone" in said for said in receipt["warnings"])
        line = lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["newcomer"]
        assert {at.reason for at in line.at.values()} == {few}

    def test_a_temperature_that_is_not_compared(self, db):
        """It is a condition where an agent has two of them."""
        rows = [
            {"agent": agent, "task": f"t{j:02d}", "outcome": mark, "temperature": heat}
            for agent, marks in ladder(8, 20).items()
            for heat in ((0, 1) if agent == "a00" else (0,))
            for j, mark in enumerate(marks)
        ]
        load_text(rows_text(rows))
        recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF)
        ada = token("ada@example.org")
        (said,) = deliver(ada, under(every_task(), temperature=1.0))["warnings"]
        assert said.startswith("ran only under temperature 1; this board compares temperature 0. ")
        assert deliver(ada, under(every_task(), temperature=0.0), agent="b", model="b")["warnings"] == []

    def test_the_conditions_of_a_fixed_subset_stay(self, ada, toy):
        first_board(toy)
        (said,) = deliver(ada, under(every_task(), judge="easy"))["warnings"]
        assert said.startswith("ran only under judge easy; this board compares no judge stated. ")

    def test_nothing_is_said_where_nothing_is_known(self, ada, toy):
        assert deliver(ada, under(every_task(), judge="easy"))["warnings"] == []

    def test_trials_at_two_temperatures_are_trials_of_one_condition(self, ada, toy):
        rows = under(every_task(), temperature=0.1) + under(every_task(n=10), temperature=0.9)
        receipt = deliver(ada, rows)
        (said,) = receipt["warnings"]
        assert said.startswith("tasks have from 1 to 2 trials: on each only one trial counts, as many as ")
        assert "(t10, t11, t12" in said
        assert set(places_of(toy).values()) == {1}
        assert Followed(stored(receipt), token=None, as_of=AS_OF).lacking == [said]

    def test_a_later_run_at_another_temperature_is_bounded_with_the_first(self, ada, toy):
        first_board(toy)
        asked = assign(
            benchmark=toy, agent=AgentDescription("newcomer", "Loop", "Model 9"), by=ada.user, as_of=AS_OF
        )
        n, tasks = asked.n_trials_recommended, {task: [1] for task in names_of(asked)}
        first, second = (
            [row for trial in range(n) for row in under(tasks, trial=trial + 1, temperature=heat)]
            for heat in (0.1, 0.9)
        )
        assert deliver(ada, first)["warnings"] == []
        said = deliver(ada, second)["warnings"]
        assert (
            f"there are {2 * n} trials of each task asked for, and the score takes {n}: earlier submissions "
            "first; a whole run counts with its mean, others with their lowest results"
        ) in said
        assert {places_of(toy)[task] for task in tasks} == {n}

    def test_full_runs_at_two_temperatures_choose_nothing_where_five_were_loaded(self, db):
        load_text(csv_text(ladder(8, 20)))
        toy, ada = Benchmark.objects.get(), token("ada@example.org")
        recompute(benchmark=toy, as_of=AS_OF)  # it has no subset yet
        assert deliver(ada, under(every_task(), temperature=0.1))["warnings"] == []
        assert deliver(ada, under(every_task(), temperature=0.9))["warnings"] == []
        assert set(places_of(toy).values()) == {2}

    def test_full_runs_at_two_temperatures_may_be_told_apart(self, db):
        load_text(csv_text(ladder(4, 20)))
        toy, ada = Benchmark.objects.get(), token("ada@example.org")
        assert deliver(ada, under(every_task(), temperature=0.1))["warnings"] == []
        assert deliver(ada, under(every_task(), temperature=0.9))["warnings"] == [TWO_TEMPERATURES]
        assert set(places_of(toy).values()) == {0}
        load_text(csv_text({f"later {name}": marks for name, marks in ladder(16, 20).items()}))
        first_board(toy)  # it fixes a subset, of which every temperature counts
        assert set(places_of(toy).values()) == {2}
        assert TWO_TEMPERATURES not in deliver(ada, under(every_task(), temperature=0.5))["warnings"]

    def test_trials_under_what_is_not_compared_even_out_nothing(self, ada, toy):
        first_board(toy)
        rows = under(every_task()) + under(every_task(), trial=2) + under(every_task(n=9), judge="easy")
        assert deliver(ada, rows)["warnings"] == [
            "results under judge easy do not count: this board compares no judge stated"
        ]

    def test_each_compared_condition_has_its_own_trials(self, db):
        rows = [
            {"agent": agent, "task": f"t{j:02d}", "outcome": mark, "judge": judge}
            for agent, marks in ladder(8, 20).items()
            for judge in ("j1", "j2")
            for j, mark in enumerate(marks)
        ]
        load_text(rows_text(rows))
        toy = Benchmark.objects.get()
        recompute(benchmark=toy, as_of=AS_OF)
        ada = token("ada@example.org")
        described = AgentDescription("newcomer", "Loop", "Model 9")
        assert assign(benchmark=toy, agent=described, by=ada.user, as_of=AS_OF).n_trials == 1
        both = [[row for judge in ("j1", "j2") for row in under(every_task(), trial=trial, judge=judge)]
                for trial in (1, 2)]  # fmt: skip
        assert deliver(ada, both[0])["warnings"] == []
        assert set(places_of(toy).values()) == {2}
        assert any("on each task at most one trial counts" in one or "the score takes 1" in one
                   for one in deliver(ada, both[1])["warnings"])  # fmt: skip
        assert set(places_of(toy).values()) == {2}


class TestOneSubmissionCounts:
    """By the policy only the latest or the first submission of an agent counts."""

    LACKS = (
        "10 of the 20 tasks asked for have no outcome (t10, t11, t12, t13, t14, t15, t16, t17, t18, t19): "
        "until the latest submission has all, the agent is not ranked"
    )
    UNEVEN = (
        "tasks have from 1 to 2 trials: on each only one trial counts, as many as there are of the fewest "
        "(t01, t02, t03, t04, t05, t06, t07, t08, t09, t10 and 9 more); a submission that is not a whole run "
        "counts with its lowest results"
    )

    @pytest.mark.parametrize("run", [None, "b"])
    @pytest.mark.parametrize(
        ("duplicates", "second", "warned", "trials"),
        [
            ("latest", every_task(1), [], [1] * 20),
            ("latest", every_task(1, n=10), [LACKS], [1] * 10 + [0] * 10),
            ("latest", every_task(1) | {"t00": [0, 1]}, [UNEVEN], [1] * 20),
            ("latest", {f"t{j:02d}": [j % 2, 1 - j % 2] for j in range(20)}, [], [2] * 20),
            ("first", every_task(1), [], [1] * 20),
            ("first", every_task(1, n=10), [], [1] * 20),
            ("first", every_task(1) | {"t00": [0, 1]}, [], [1] * 20),
        ],
    )
    def test_a_second_run(self, ada, toy, duplicates, second, warned, trials, run):
        Policy.objects.create(benchmark=toy, number=2, duplicates=duplicates, resubmission="free")
        described = AgentDescription("newcomer", "Loop", "Model 9")
        assign(benchmark=toy, agent=described, by=ada.user, as_of=AS_OF)
        assert deliver(ada, every_task(0))["warnings"] == []
        rows = [
            {"task": task, "trial": trial, "outcome": outcome} | ({"run": run} if run else {})
            for task, outcomes in second.items()
            for trial, outcome in enumerate(outcomes, start=2)
        ]
        receipt = deliver(ada, rows)
        assert receipt["warnings"] == [*warned, f"only the {duplicates} submission of an agent counts"]
        texts = [one["told"] for one in receipt["checks"] if one["name"] == "trials"]
        assert texts == ([self.UNEVEN] if self.UNEVEN in warned else [f"{max(trials)} of each task"])
        assert Followed(stored(receipt), token=None, as_of=AS_OF).lacking == warned
        assert [places_of(toy)[f"t{j:02d}"] for j in range(20)] == trials

    def test_the_first_lacks_what_the_second_has(self, ada, toy):
        Policy.objects.create(benchmark=toy, number=2, duplicates="first")
        deliver(ada, every_task(n=10))
        lacks, alone = deliver(ada, {f"t{j:02d}": [1] for j in range(10, 20)})["warnings"]
        assert lacks == self.LACKS.replace("latest", "first")
        assert alone == "only the first submission of an agent counts"
        assert sum(places_of(toy).values()) == 10


class TestConfirmation:
    def test_it_counts_and_frees_the_keys(self, ada, toy):
        receipt = deliver(ada, every_task() | {"t04": [None]})
        with refused(Conflict, "duplicate_outcomes"):
            deliver(ada, {"t04": [1]})
        before = Benchmark.objects.get().data_version
        confirm(uuid=stored(receipt).uuid, reason="the sandbox was down", as_of=AS_OF)
        assert Benchmark.objects.get().data_version == before + 1
        assert counted(toy, receipt)[0].confirmed
        again = deliver(ada, {"t04": [1]})
        assert again["warnings"] == []
        ids = [stored(receipt).pk, stored(again).pk]
        assert outcomes_of(ids).num_rows == 20
        assert outcomes_of(ids)["valid"].to_pylist() == [True] * 20
        with refused(Conflict, "duplicate_outcomes") as refusal:
            deliver(ada, {"t04": [0]})
        assert refusal.value.details["keys"][0]["submission"] == again["id"]

    def test_who_copies_in_the_place_of_a_lost_run_is_no_original(self, ada, toy):
        eve, passes = token("eve@example.org"), {f"t{j:02d}": [j % 2] for j in range(20)}
        lost = deliver(eve, {task: [None] for task in passes}, agent="copier")
        confirm(uuid=stored(lost).uuid, reason="the sandbox was down", as_of=AS_OF)
        deliver(ada, passes, agent="original")
        deliver(eve, passes, agent="copier")
        lines = lines_of(recomputed())
        assert lines["original"].flags == ()
        assert [flag.partition(";")[0] for flag in lines["copier"].flags] == [
            "the same outcome as original on every task"
        ]

    def test_only_what_needs_it(self, ada, toy):
        with refused(Conflict, "nothing_to_confirm", match="none of its outcomes"):
            confirm(uuid=stored(deliver(ada, every_task())).uuid, reason="a bug", as_of=AS_OF)
        receipt = deliver(ada, every_task() | {"t04": [None]}, agent="other", version="2")
        confirm(uuid=stored(receipt).uuid, reason="a bug", as_of=AS_OF)
        with refused(Conflict, "nothing_to_confirm", match="before"):
            confirm(uuid=stored(receipt).uuid, reason="a bug", as_of=AS_OF)
        load_text(csv_text({"loaded": "1x"}))
        with refused(Conflict, "nothing_to_confirm", match="operator loaded"):
            confirm(uuid=Submission.objects.latest("id").uuid, reason="a bug", as_of=AS_OF)


class TestCopies:
    """Full runs with one vector of outcomes, under different names."""

    MARKS = "01101001100101101001"  # 10 passes of 20: (1/4 + 1/4)²⁰ < 1e-6

    def deliver_copies(self, by, numbers):
        for i in numbers:
            outcomes = {f"t{j:02d}": [int(mark)] for j, mark in enumerate(self.MARKS)}
            deliver(by, outcomes, agent=f"made-up {i}", model=f"Made {i}")

    def test_six_teach_as_much_as_one(self, ada, toy):
        self.deliver_copies(ada, range(1))
        one = Reader(toy).now(None)
        self.deliver_copies(ada, range(1, 6))
        six = Reader(toy).now(None)
        assert (one.n_complete, six.n_complete, six.record.n_agents) == (17, 17, 22)
        rates = [band_of(now.record, now.rules).pass_rates.tolist() for now in (one, six)]
        assert rates[0] == rates[1]
        assert six.record.copy_of[-5:] == ("made-up 0",) * 5

    def test_an_operator_lets_one_count(self, ada, toy):
        self.deliver_copies(ada, range(2))
        board = recompute(benchmark=toy, as_of=AS_OF)[0]
        line = lines_of(board)["made-up 1"]
        assert line.flags == (
            "the same outcome as made-up 0 on every task; pass rates and calibration leave it out until an "
            "operator approves it",
        )
        assert line.at["full"].rank is not None
        assert lines_of(board)["made-up 0"].flags == ()  # it came first
        with refused(Conflict, "nothing_to_approve", match="neither withheld nor the copy"):
            approve(benchmark=toy, agent="made-up 0", reason="seen", as_of=AS_OF)
        approve(benchmark=toy, agent="made-up 1", reason="two keys for one model, on purpose", as_of=AS_OF)
        now = Reader(toy).now(None)
        assert (now.n_complete, set(now.record.copy_of)) == (18, {""})

    def test_the_leaders_outcomes_on_the_subset_are_known_again(self, db):
        board_of(csv_text(graded(20, 60)))
        toy = Benchmark.objects.get()
        best = graded(20, 60)["a19"]
        names = in_subset(recompute(benchmark=toy, as_of=AS_OF)[0])
        deliver(token("ada@example.org"), {task: [int(best[int(task[1:])])] for task in names})
        lines = lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])
        assert lines["newcomer"].flags == (
            f"the same outcome as a19 on all {len(names)} tasks that both ran",
        )
        assert lines["a19"].flags == ()

    def test_what_an_operator_loads_counts_and_comes_first(self, ada, toy):
        self.deliver_copies(ada, range(1))
        load_text(csv_text({"loaded": self.MARKS, "loaded too": self.MARKS}))
        record = Reader(toy).now(None).record
        assert dict(zip(record.table.agents, record.copy_of, strict=True))["made-up 0"] == "loaded"
        assert int(record.complete.sum()) == 18


class TestResubmission:
    def taken_back(self, ada, toy, how, by=None):
        receipt = deliver(ada, every_task(0))
        recompute(benchmark=toy, as_of=AS_OF)
        if how == "replaces":
            return deliver(by or ada, every_task(1), replaces=receipt["id"])
        withdraw(uuid=stored(receipt).uuid, token=by or ada, reason="a bug", as_of=AS_OF)
        return deliver(ada, every_task(1))

    @pytest.mark.parametrize("how", ["replaces", "withdraws"])
    def test_a_second_try_after_a_board_waits_for_approval(self, ada, toy, how):
        receipt = self.taken_back(ada, toy, how)
        agent = Agent.objects.get(name="newcomer")
        assert list(withheld(toy)) == [agent.pk]
        assert "until an operator approves" in receipt["warnings"][-1]
        approve(benchmark=toy, agent="newcomer", reason="the scorer was at fault", as_of=AS_OF)
        assert withheld(toy) == {}
        with refused(Conflict, "nothing_to_approve"):
            approve(benchmark=toy, agent="newcomer", reason="again", as_of=AS_OF)

    @pytest.mark.parametrize("how", ["replaces", "withdraws"])
    def test_an_operator_may(self, ada, toy, how):
        self.taken_back(ada, toy, how, by=token("olga@example.org", "operate"))
        assert withheld(toy) == {}

    def test_a_policy_may_allow_it(self, ada, toy):
        Policy.objects.create(benchmark=toy, number=2, resubmission="free")
        assert self.taken_back(ada, toy, "replaces")["warnings"] == []
        assert withheld(toy) == {}

    @pytest.mark.parametrize("again", [{"first": 2}, {"run": "second"}])
    def test_where_the_last_counts_alone_another_delivery_takes_back(self, ada, toy, again):
        Policy.objects.create(benchmark=toy, number=2, duplicates="latest")
        honest = every_task(0) | {"t00": [1]}
        first = again.get("first", 1)
        rows = [
            {"task": task, "trial": first, "outcome": 1} | {k: v for k, v in again.items() if k == "run"}
            for task in honest
        ]
        deliver(ada, honest)
        before = lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["newcomer"]
        receipt = deliver(ada, rows)
        assert receipt["warnings"] == [
            "only the latest submission of an agent counts",
            "outcomes of this agent were taken back: it is listed without a rank until an operator approves",
        ]
        line = lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["newcomer"]
        assert before.at["full"].rank is not None
        assert line.at["full"].rank is None
        assert "withheld" in line.marks
        approve(benchmark=toy, agent="newcomer", reason="the scorer was at fault", as_of=AS_OF)
        assert withheld(toy) == {}

    def test_an_operator_may_deliver_the_last_one(self, ada, toy):
        Policy.objects.create(benchmark=toy, number=2, duplicates="latest")
        deliver(ada, every_task(0))
        recompute(benchmark=toy, as_of=AS_OF)
        deliver(token("olga@example.org", "operate"), every_task(1), first=2)
        assert withheld(toy) == {}

    def test_where_all_count_running_tasks_again_is_flagged(self, ada, toy):
        """The first run keeps its half of the score: nothing is taken back, so that nothing is withheld."""
        deliver(ada, every_task(1))
        recompute(benchmark=toy, as_of=AS_OF)
        assert deliver(ada, every_task(0), first=2)["warnings"] == [
            "tasks of this agent were delivered before, and a board has shown it since: both runs count, and "
            "the board flags the agent for the operator"
        ]
        assert withheld(toy) == {}
        line = lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["newcomer"]
        assert "submitted more results for its tasks after a board had shown it" in line.flags
        assert (line.at["full"].score, line.at["full"].rank is None) == (0.5, False)

    def test_a_second_run_that_no_assignment_asked_for_is_not_said_to_count(self, ada, toy):
        described = AgentDescription("newcomer", "Loop", "Model 9")
        assignment = assign(benchmark=toy, agent=described, by=ada.user, as_of=AS_OF)
        assert max(assignment.n_trials, assignment.n_trials_recommended or 0) == 1
        deliver(ada, every_task(0))
        recompute(benchmark=toy, as_of=AS_OF)
        (said,) = deliver(ada, every_task(1), first=2)["warnings"]
        assert said.endswith(
            "on each task at most one trial counts, as its assignment asked, and the board flags the agent "
            "for the operator; earlier submissions count first, with their lowest results if they are not "
            "whole runs"
        )
        assert lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["newcomer"].at["full"].score == 0.0

    def test_a_new_version_beside_one_that_was_taken_back_is_flagged(self, ada, toy):
        """The withdrawn one leaves the board, and the next would stand there as if it were the first try."""
        receipt = deliver(ada, every_task(0), version="1")
        recompute(benchmark=toy, as_of=AS_OF)
        withdraw(uuid=stored(receipt).uuid, token=ada, reason="a bug", as_of=AS_OF)
        deliver(ada, every_task(0), "newcomer 2", version="2")
        with refused(AgentMismatch, "looks_like_another"):
            deliver(ada, every_task(1), "newcomer 3", version="3", model="\uff2dodel 9")
        deliver(ada, every_task(1), "unlike", model="Model 8")
        deliver(token("bob@example.org"), every_task(1), "of another", version="2")
        told = "another agent of its account, of the same scaffold and model, took outcomes back and waits"
        lines = lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])
        flagged = {name for name, line in lines.items() if any(told in flag for flag in line.flags)}
        assert (flagged, "newcomer" in lines) == ({"newcomer 2"}, False)
        approve(benchmark=toy, agent="newcomer", reason="a bug indeed", as_of=AS_OF)
        assert not any(
            told in flag for flag in lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["newcomer 2"].flags
        )

    def test_what_was_still_missing_is_no_second_run(self, ada, toy):
        deliver(ada, every_task(n=17) | {"t16": [None]})
        confirm(uuid=Submission.objects.latest("id").uuid, reason="the sandbox was down", as_of=AS_OF)
        recompute(benchmark=toy, as_of=AS_OF)
        rest = {task: [1] for task in ("t16", "t17", "t18", "t19")}
        assert deliver(ada, rest)["warnings"] == []
        assert lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["newcomer"].flags == ()

    def test_failures_that_were_kept_back_until_a_board_showed_it_are_flagged(self, ada, toy):
        Policy.objects.create(benchmark=toy, number=2, missing="zero")
        deliver(ada, every_task(n=8))
        deliver(ada, {"t08": [0]})  # before a board
        recompute(benchmark=toy, as_of=AS_OF)
        *lacks, said = deliver(ada, {f"t{j:02d}": [1] for j in range(9, 20)})["warnings"]
        assert said == (
            "a board has shown this agent with missing results, which counted as failures: the board flags "
            "the agent for the operator"
        )
        assert lacks == []
        line = lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["newcomer"]
        assert line.flags == ("submitted more results for its tasks after a board had shown it",)
        assert line.at["full"].rank is not None

    def test_failures_under_another_prompt_that_were_kept_back_are_flagged(self, ada, toy):
        """All agents are loaded under a second prompt, too, and both are compared."""
        rows = [
            {"agent": name, "task": f"t{j:02d}", "prompt_variant": "p", "outcome": j % 2}
            for name in toy.agents.values_list("name", flat=True)
            for j in range(20)
        ]
        load_text(rows_text(rows))
        both = [{"prompt_variant": None, "judge": None}, {"prompt_variant": "p", "judge": None}]
        Policy.objects.create(benchmark=toy, number=2, missing="zero", counted_settings=both)
        half = {f"t{j:02d}": [j % 2] for j in range(10)}
        rest = {f"t{j:02d}": [int(j % 3 > 0)] for j in range(10, 20)}
        deliver(ada, [*under(half | rest), *under(half, prompt_variant="p")])
        line = lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["newcomer"]
        assert line.at["full"].score == pytest.approx((2 * 5 + 7) / 40)
        (said,) = deliver(ada, under(rest, prompt_variant="p"))["warnings"]
        assert said.endswith("counted as failures: the board flags the agent for the operator")

    TOLD = "outcomes of this agent were taken back: it is listed without a rank until an operator approves"

    def passes(self, n, first=0):
        return {f"t{j:02d}": [int(j < n)] for j in range(first, 20)}

    def retry(self, by, receipt, outcomes, how="withdraws", **more):
        """Take a delivery back, and deliver others in its place."""
        if how == "replaces":
            return deliver(by, outcomes, replaces=receipt["id"], **more)
        withdraw(uuid=stored(receipt).uuid, token=by, reason="again", as_of=AS_OF)
        return deliver(by, outcomes, **more)

    @pytest.mark.parametrize("how", ["replaces", "withdraws"])
    @pytest.mark.parametrize("n", [7, 12])
    def test_tasks_run_again_before_a_board_wait_too_better_or_worse(self, ada, toy, how, n):
        first = deliver(ada, self.passes(10))
        assert withheld(toy) == {}
        again = self.retry(ada, first, self.passes(n), how)
        assert again["warnings"] == [self.TOLD]
        agent = stored(again).agent
        assert list(withheld(toy)) == list(withheld(toy, agent=agent)) == [agent.pk]
        assert withheld(toy, upto=toy.data_version) == {}
        line = lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["newcomer"]
        assert (line.at["full"].rank, "withheld" in line.marks) == (None, True)
        approve(benchmark=toy, agent="newcomer", reason="the scorer was at fault", as_of=AS_OF)
        assert withheld(toy) == {}
        assert lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["newcomer"].at["full"].score == n / 20

    def test_its_page_says_so_until_an_operator_approves(self, ada, toy):
        again = self.retry(ada, deliver(ada, self.passes(7)), self.passes(12))
        waits = "The agent took results back, so it has no rank until an operator approves."
        assert Followed(stored(again), token=ada, as_of=AS_OF).standing == waits
        approve(benchmark=toy, agent="newcomer", reason="a bug", as_of=AS_OF)
        said = Followed(stored(again), token=ada, as_of=AS_OF).standing
        assert said == "It counts. The next board shows it."

    def test_under_an_embargo_it_is_told_before_it_counts(self, ada, toy):
        till = (AS_OF + timedelta(days=1)).isoformat()
        again = self.retry(ada, deliver(ada, self.passes(7)), self.passes(12), embargo_until=till)
        assert again["warnings"] == [self.TOLD.replace(": ", ": once these count, ")]

    def test_so_do_failed_slices(self, ada, toy):
        deliver(ada, {f"t{j:02d}": [1] for j in range(10)})
        failed = deliver(ada, {f"t{j:02d}": [0] for j in range(10, 20)})
        withdraw(uuid=stored(failed).uuid, token=ada, reason="again", as_of=AS_OF)
        assert withheld(toy) == {}
        deliver(ada, self.passes(15, first=10), run="b")
        assert len(withheld(toy)) == 1

    @pytest.mark.parametrize("label", ["prompt_variant", "judge", "run"])
    def test_so_do_those_under_another_label_or_beside_a_run_too_good_to_be_true(self, ada, toy, label):
        rows = [{"task": task, "trial": 1, "outcome": y, label: "x"} for task, (y,) in every_task(1).items()]
        other = deliver(ada, rows)
        withdraw(uuid=stored(other).uuid, token=ada, reason="again", as_of=AS_OF)
        again = self.retry(ada, deliver(ada, self.passes(5)), self.passes(9))
        assert again["warnings"] == [self.TOLD]
        assert len(withheld(toy)) == 1

    def test_so_do_those_of_which_the_better_run_stood_before(self, ada, toy):
        worse = deliver(ada, self.passes(7))
        deliver(ada, self.passes(12), run="b")
        assert withheld(toy) == {}
        withdraw(uuid=stored(worse).uuid, token=ada, reason="again", as_of=AS_OF)
        assert len(withheld(toy)) == 1

    def test_so_do_those_of_what_was_merged(self, ada, toy):
        worse = deliver(ada, self.passes(7), "old", run="a", model="Model 8")
        deliver(ada, self.passes(12), run="b")
        old, newcomer = (Agent.objects.get(name=name) for name in ("old", "newcomer"))
        merge(agent=old, into=newcomer, by=None, reason="same", as_of=AS_OF)
        withdraw(uuid=stored(worse).uuid, token=ada, reason="again", as_of=AS_OF)
        assert list(withheld(toy)) == list(withheld(toy, agent=newcomer)) == [newcomer.pk]

    @pytest.mark.parametrize("ends", [True, False])
    def test_so_do_those_under_an_embargo(self, ada, toy, ends):
        """Taken back under it, or replaced by what counts once its own has ended."""
        till = AS_OF + timedelta(days=1)
        worse = deliver(ada, every_task(0), embargo_until=(till + timedelta(days=9)).isoformat())
        if ends:
            deliver(ada, {"t00": [0]}, replaces=worse["id"], embargo_until=till.isoformat())
            reviewing.end_due(benchmark=toy, as_of=till)
        else:
            withdraw(uuid=stored(worse).uuid, token=ada, reason="again", as_of=AS_OF)
        assert withheld(toy) == {}
        deliver(ada, {task: [1] for task in every_task() if task != "t00"})
        assert len(withheld(toy)) == 1

    def test_nor_is_a_later_run_missed_where_the_first_one_stands(self, ada, toy):
        deliver(ada, self.passes(12))
        second = deliver(ada, self.passes(7), first=2)
        withdraw(uuid=stored(second).uuid, token=ada, reason="broken off", as_of=AS_OF)
        assert withheld(toy) == {}

    def test_the_same_outcomes_again_do_not_whole_or_in_parts(self, ada, toy):
        first = deliver(ada, self.passes(12))
        assert self.retry(ada, first, self.passes(12))["warnings"] == []
        assert withheld(toy) == {}
        of = {"agent": "parts", "model": "Model 8"}
        both = {task: y * 2 for task, y in self.passes(12).items()}
        self.retry(ada, deliver(ada, both, **of), self.passes(12), **of)
        assert len(withheld(toy)) == 1
        assert deliver(ada, self.passes(12), first=2, **of)["warnings"] == []
        assert withheld(toy) == {}

    def test_the_first_run_again_after_another_frees_nothing(self, ada, toy):
        first = deliver(ada, self.passes(7))
        self.retry(ada, first, self.passes(12), run="b")
        deliver(ada, self.passes(7))
        assert len(withheld(toy)) == 1

    def test_a_second_trial_after_the_same_outcomes_again(self, ada, toy):
        self.retry(ada, deliver(ada, self.passes(12)), self.passes(12))
        assert deliver(ada, self.passes(15), first=2)["warnings"] == []
        assert withheld(toy) == {}

    def test_what_an_operator_delivers_in_its_place(self, ada, toy):
        withdraw(uuid=stored(deliver(ada, self.passes(7))).uuid, token=ada, reason="wrong", as_of=AS_OF)
        deliver(token("op@example.org", "operate"), self.passes(12))
        assert withheld(toy) == {}

    def test_what_an_operator_accepts_in_its_place(self, ada, toy):
        first = deliver(ada, self.passes(7))
        Policy.objects.create(benchmark=toy, number=2, review="manual")
        second = deliver(ada, self.passes(12), replaces=first["id"])
        accept(uuid=stored(second).uuid, by=None, reason="seen", as_of=AS_OF)
        assert withheld(toy) == {}

    def test_a_version_cut_down_to_its_failures_counts_as_taken_back(self, ada, toy):
        lesser = deliver(ada, self.passes(7), "one", version="1")
        deliver(ada, self.passes(20, first=20) | {"t19": [0]}, "one", version="1", replaces=lesser["id"])
        deliver(ada, self.passes(12), "two", version="2")
        assert lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["two"].at["full"].correction > 0
        approve(benchmark=toy, agent="one", reason="a bug", as_of=AS_OF)

    def test_a_merge_changes_no_version_before_it(self, ada, toy):
        worse = deliver(ada, self.passes(7), "old", run="a", model="Model 8")
        withdraw(uuid=stored(worse).uuid, token=ada, reason="again", as_of=AS_OF)
        deliver(ada, self.passes(12), run="b")
        toy.refresh_from_db()
        old, newcomer = (Agent.objects.get(name=name) for name in ("old", "newcomer"))
        merge(agent=old, into=newcomer, by=None, reason="same", as_of=AS_OF)
        assert (list(withheld(toy)), withheld(toy, upto=toy.data_version)) == ([newcomer.pk], {})

    def test_the_same_outcomes_under_a_corrected_label_or_number(self, ada, toy):
        """As by whoever forgot the label of a run, and by those whose trials were not numbered apart."""
        trials = {f"t{j:02d}": [int(j < 12), int(j % 3 == 0), int(j > 4)] for j in range(20)}
        first = deliver(ada, trials)
        second = deliver(ada, trials, run="b", replaces=first["id"])
        third = deliver(ada, trials, run="b", first=4, replaces=second["id"])
        assert (second["warnings"], third["warnings"], withheld(toy)) == ([], [], {})

    def test_what_still_waits_is_told_with_each_later_delivery(self, ada, toy):
        part, rest = ({f"t{j:02d}": [1] for j in js} for js in (range(10), range(10, 20)))
        self.retry(ada, deliver(ada, {task: [0] for task in part}), part)
        assert self.TOLD in deliver(ada, rest)["warnings"]
        assert len(withheld(toy)) == 1

    def test_what_a_job_lets_count_for_an_operator(self, ada, toy):
        """In the place of the owner's, who took nothing back."""
        first, till = deliver(ada, self.passes(7)), AS_OF + timedelta(days=1)
        operator, until = token("op@example.org", "operate"), till.isoformat()
        deliver(operator, self.passes(12), replaces=first["id"], embargo_until=until)
        reviewing.end_due(benchmark=toy, as_of=till)
        assert deliver(ada, self.passes(15), first=2)["warnings"] == []
        assert withheld(toy) == {}

    def test_what_an_operator_accepts_after_a_withdrawal(self, ada, toy):
        first = deliver(ada, self.passes(7))
        Policy.objects.create(benchmark=toy, number=2, review="manual")
        again = self.retry(ada, first, self.passes(12))
        assert again["warnings"] == ["outcomes of this agent were taken back: an operator reviews these"]
        accept(uuid=stored(again).uuid, by=None, reason="seen", as_of=AS_OF)
        assert withheld(toy) == {}

    def test_a_confirmation_changes_no_version_before_it(self, ada, toy):
        void = self.retry(ada, deliver(ada, self.passes(7)), {f"t{j:02d}": [None] for j in range(20)})
        toy.refresh_from_db()
        assert len(withheld(toy)) == 1
        confirm(uuid=stored(void).uuid, reason="the sandbox was down", as_of=AS_OF)
        assert (withheld(toy), len(withheld(toy, upto=toy.data_version))) == ({}, 1)

    def test_nor_do_failures_of_the_harness_that_an_operator_confirmed(self, ada, toy):
        void = deliver(ada, {f"t{j:02d}": [None] for j in range(20)})
        confirm(uuid=stored(void).uuid, reason="the sandbox was down", as_of=AS_OF)
        assert self.retry(ada, void, self.passes(12))["warnings"] == []
        assert withheld(toy) == {}

    def test_nor_does_what_an_operator_took_back(self, ada, toy):
        operator = token("op@example.org", "operate")
        first = deliver(ada, every_task(0))
        withdraw(uuid=stored(first).uuid, token=operator, reason="a bug", as_of=AS_OF)
        second = deliver(ada, self.passes(7))
        deliver(operator, self.passes(12), replaces=second["id"])
        assert withheld(toy) == {}

    def test_nor_where_the_policy_allows_it(self, ada, toy):
        Policy.objects.create(benchmark=toy, number=2, resubmission="free")
        assert self.retry(ada, deliver(ada, self.passes(7)), self.passes(12))["warnings"] == []
        assert withheld(toy) == {}

    def test_what_waits_for_review_was_not_shown(self, ada, toy):
        deliver(ada, every_task(0))
        recompute(benchmark=toy, as_of=AS_OF)
        Policy.objects.create(benchmark=toy, number=2, review="manual")
        waiting = deliver(ada, every_task(0), run="second")
        withdraw(uuid=stored(waiting).uuid, token=ada, reason="a bug", as_of=AS_OF)
        assert withheld(toy) == {}

    def test_what_an_operator_loaded_is_not_its_owners_to_take_back(self, ada, toy):
        deliver(ada, {"t00": [1]}, agent="Famous", model="Model Famous")
        load_text(csv_text({"Famous": "." + "1" * 19}))
        loaded = Submission.objects.get(agent__name="Famous", loaded=True)
        with refused(Forbidden, "not_your_submission"):
            withdraw(uuid=loaded.uuid, token=ada, reason="mine", as_of=AS_OF)
        with refused(Forbidden, "not_your_submission"):
            deliver(ada, {"t01": [0]}, agent="Famous", model="Model Famous", replaces=str(loaded.uuid))
        withdraw(uuid=loaded.uuid, token=token("op@example.org", "operate"), reason="wrong", as_of=AS_OF)

    def test_only_its_owner_and_operators_withdraw(self, ada, toy):
        receipt = deliver(ada, every_task())
        with refused(Forbidden, "not_your_submission"):
            withdraw(uuid=stored(receipt).uuid, token=token("eve@example.org"), reason="a bug", as_of=AS_OF)
        withdraw(uuid=stored(receipt).uuid, token=ada, reason="a bug", as_of=AS_OF)
        with pytest.raises(CountsNoMore):
            withdraw(uuid=stored(receipt).uuid, token=ada, reason="a bug", as_of=AS_OF)


class TestSecondName:
    def test_one_agent_has_one_name(self, ada):
        first = deliver(ada, every_task(0))
        with refused(Conflict, "second_name", match="'newcomer': 'fresh'") as refusal:
            deliver(ada, every_task(1), agent="fresh", model="MODEL 9")
        assert refusal.value.details["agents"] == ["newcomer", "fresh"]
        withdraw(uuid=stored(first).uuid, token=ada, reason="a bug", as_of=AS_OF)
        with refused(Conflict, "second_name"):
            deliver(ada, every_task(1), agent="fresh")

    @pytest.mark.parametrize("alike", [{"model": "\uff2dodel 9"}, {"scaffold": "\uff2coop"}])
    def test_a_scaffold_or_model_that_reads_the_same_is_no_other(self, ada, alike):
        deliver(ada, every_task(0))
        with refused(Conflict, "second_name"):
            deliver(ada, every_task(1), {"name": "fresh", "scaffold": "Loop", "model": "Model 9"} | alike)

    @pytest.mark.parametrize("alike", [{"version": "l.O"}, {"model": "Моdel 9"}, {"scaffold": "L00p"}])
    def test_nor_is_one_whose_letters_look_the_same(self, ada, alike):
        """The letter l for the digit 1; Cyrillic М and о; zeros."""
        first = {"name": "newcomer", "scaffold": "Loop", "model": "Model 9", "version": "1.0"}
        deliver(ada, every_task(0), first)
        with refused(Conflict, "second_name"):
            deliver(ada, every_task(1), first | {"name": "fresh"} | alike)

    def test_another_version_owner_or_model_is_another_agent(self, ada):
        deliver(ada, every_task())
        deliver(ada, every_task(), agent="newer", version="2")
        deliver(ada, every_task(), agent="larger", model="Model 10")
        deliver(token("eve@example.org"), every_task(), agent="eve's")
        assert Agent.objects.exclude(owner=None).count() == 4


class TestVersions:
    """Versions of one agent by one account, of which none is clearly better, stand as one line."""

    def deliver(self, by, name, version, n_passed, **more):
        outcomes = {f"t{j:02d}": [int(j < n_passed)] for j in range(20)}
        deliver(by, outcomes, agent=name, version=version, **more)

    def test_the_best_of_them_stands_and_the_others_under_it(self, ada, toy, client):
        self.deliver(ada, "first", "1", 12)
        self.deliver(ada, "second", "2", 14)
        self.deliver(ada, "larger", "1", 14, model="Model 10")
        self.deliver(token("eve@example.org"), "eve's", "1", 14)
        board, _ = recompute(benchmark=toy, as_of=AS_OF)
        lines = lines_of(board)
        first, second = (lines[name].at["full"] for name in ("first", "second"))
        assert (first.rank, first.folded_under, first.score) == (None, "second", 0.6)
        assert second.rank is not None
        assert 0 < second.correction < 0.05
        assert second.score == pytest.approx(0.7 - second.correction)
        assert lines["larger"].at["full"].score == lines["eve's"].at["full"].score == 0.7
        page = client.get("/b/toy").content.decode()
        assert page.count('<a class="mark" href="#unranked-title">1 more version: −') == 1
        assert "Shares the line of second: not clearly better (95%)." in page
        ids = dict(toy.agents.values_list("name", "pk"))
        pair = client.get(f"/b/toy/compare?a={ids['second']}&a={ids['larger']}").content.decode()
        assert "second</bdi>: the board shows versions of one agent as one row" in pair
        other = client.get(f"/b/toy/compare?a={ids['larger']}&a={ids['a03']}").content.decode()
        assert "versions of one agent" not in other
        rows = {row["agent"]: row for row in rows_of(board)}
        assert (rows["first"]["full_folded_under"], rows["second"]["full_folded_under"]) == ("second", "")

    def test_what_an_operator_loads_stands_apart(self, toy):
        assert all(not line.at["full"].folded_under for line in lines_of(first_board(toy)).values())


class TestLookAlikes:
    """What an agent is made of is compared inside the benchmark, as its name is."""

    def test_a_scaffold_or_model_that_looks_like_anothers_is_refused(self, ada):
        deliver(world.token("eve@example.org"), every_task(0), agent="eve's", model="Claude 9")
        with refused(
            AgentMismatch, "looks_like_another", match=r"The model 'С1audе 9' reads like 'Claude 9'"
        ):
            deliver(ada, every_task(1), agent="mine", model="С1audе 9")
        with refused(AgentMismatch, "looks_like_another", match=r"The scaffold 'Lо0p' reads like 'Loop'"):
            deliver(ada, every_task(1), {"name": "mine", "scaffold": "Lо0p", "model": "Claude 9"})
        assert not Agent.objects.filter(name="mine").exists()
        deliver(ada, every_task(1), agent="mine", model="claude 9")
        assert Agent.objects.get(name="mine").model.name == "Claude 9"

    def test_only_agents_that_are_vouched_for_and_count_bind_others(self, ada, toy):
        eve, team = token("eve@example.org"), {"scaffold": "Team", "model": "Claude 9"}
        receipt = deliver(eve, every_task(0), {"name": "junk", "scaffold": "Tеam", "model": "C1aude 9"})
        deliver(ada, every_task(1), {"name": "mine"} | team)
        verify(uuid=stored(receipt).uuid, note="reran it", as_of=AS_OF)
        with refused(AgentMismatch, "looks_like_another", match="'Team' reads like 'Tеam'"):
            deliver(token("bob@example.org"), every_task(1), {"name": "bob's"} | team)
        withdraw(uuid=stored(receipt).uuid, token=eve, reason="oops", as_of=AS_OF)
        with refused(AgentMismatch, "looks_like_another", match="'Team' reads like 'Tеam'"):
            deliver(eve, every_task(1), {"name": "eve's", "scaffold": "Team", "model": "M"})
        deliver(token("bob@example.org"), every_task(1), {"name": "bob's"} | team)

    def test_the_row_of_another_benchmark_refuses_nothing(self, ada):
        Model.objects.create(name="Claude 9")
        deliver(ada, every_task(1), agent="mine", model="С1audе 9")
        assert Agent.objects.get(name="mine").model.name == "С1audе 9"

    def test_what_nobody_may_know_of_yet_refuses_nothing(self, ada, toy):
        eve, until = token("eve@example.org"), f"{AS_OF + timedelta(days=9):%Y-%m-%d}"
        deliver(eve, every_task(0), agent="hidden", model="Stealth 2", embargo_until=until)
        deliver(ada, every_task(1), agent="mine", model="Stea1th 2")

    def test_an_operator_is_told_of_it_and_loads_it(self, toy):
        head = "benchmark,agent,scaffold,model,submitted_at,task,trial,outcome\n"
        rows = "".join(f"Toy,{name},Loop,{model},2026-02-01,t00,1,0\n" for name, model in (
            ("GPT-4o agent", "GPT-4o"), ("GPT-40 agent", "GPT-40")
        ))  # fmt: skip
        report = load_text(head + rows, as_of=AS_OF)
        assert [note.split(";")[0].split(". ")[0] for note in report.notes] == [
            "The agent 'GPT-40 agent' reads like 'GPT-4o agent', which already exists",
            "The agent 'GPT-4o agent' reads like 'GPT-40 agent', which already exists",
            "The model 'GPT-40' reads like 'GPT-4o', which already exists",
            "The model 'GPT-4o' reads like 'GPT-40', which already exists",
        ]


def asked(toy, by, described):
    """The tasks that an agent is asked for, whose passes have been delivered."""
    assignment = assign(benchmark=toy, agent=described, by=by.user, as_of=AS_OF)
    assert assignment.mode == "delta"
    return Task.objects.filter(pk__in=assignment.tasks)


class TestCheats:
    """A mid-table agent that fails every other task gains nothing by how it delivers."""

    HONEST: ClassVar = {f"t{j:02d}": [j % 2] for j in range(20)}

    def entry(self, toy, name="newcomer"):
        board, _ = recompute(benchmark=toy, as_of=AS_OF)
        return Entry.objects.get(board=board, name=name)

    def full_score(self, toy):
        return self.entry(toy).line["at"]["full"]["score"]

    def failed(self, outcomes):
        return {task for task, (outcome, *_) in outcomes.items() if not outcome}

    @pytest.mark.parametrize("trials", [[0], [0, 1, 1], [1, 1, 1, 0]])
    def test_more_trials_on_failed_tasks(self, ada, toy, trials):
        """The honest delivery first; also where a pass is numbered first."""
        deliver(ada, self.HONEST | dict.fromkeys(self.failed(self.HONEST), trials))
        assert self.full_score(toy) == 0.5

    def test_failures_called_invalid(self, ada, toy):
        one = min(self.failed(self.HONEST))
        receipt = deliver(ada, self.HONEST | {one: [None]})
        assert self.full_score(toy) == 0.5
        confirm(uuid=stored(receipt).uuid, reason="the sandbox was down", as_of=AS_OF)
        assert self.full_score(toy) > 0.5  # by completion: an operator has looked

    def test_failures_told_as_means_of_three_runs(self, ada, toy):
        failed = self.failed(self.HONEST)
        plain = [{"task": task, "trial": 1, "outcome": 1} for task in self.HONEST if task not in failed]
        means = [{"task": task, "trial": 1, "outcome": 1 / 3, "n_averaged": 3} for task in failed]
        deliver(ada, plain + means)
        assert self.full_score(toy) == 0.5

    @pytest.mark.parametrize("lucky", [0.0, 1.0])
    def test_failures_tried_at_another_temperature(self, ada, toy, lucky):
        rows = [
            {"task": task, "trial": 1, "outcome": x, "temperature": 0.7} for task, (x,) in self.HONEST.items()
        ]
        again = [
            {"task": task, "trial": 1, "outcome": 1, "temperature": lucky}
            for task in self.failed(self.HONEST)
        ]
        deliver(ada, rows + again)
        assert (self.entry(toy).line["at"]["full"]["score"] or 0) <= 0.5

    def test_more_trials_in_a_later_delivery(self, ada, toy):
        deliver(ada, self.HONEST)
        deliver(ada, {task: [1, 1] for task in self.failed(self.HONEST)}, first=2)
        assert self.full_score(toy) == 0.5

    def test_failed_tasks_outside_the_subset_tried_again(self, ada, toy):
        names = in_subset(first_board(toy))
        honest = {task: trials * 2 for task, trials in self.HONEST.items() if task in names}
        rest = {task: trials for task, trials in self.HONEST.items() if task not in names}
        receipt = deliver(ada, honest | rest | {task: [0, 1] for task in self.failed(rest)})
        (warning,) = receipt["warnings"]
        assert warning.startswith("the other tasks have from 1 to 2 trials: on each only one trial counts")
        assert self.full_score(toy) == 0.5

    def test_failed_tasks_left_out(self, ada, toy):
        one = min(self.failed(self.HONEST))
        deliver(ada, {task: trials for task, trials in self.HONEST.items() if task != one})
        assert self.entry(toy).rank is None

    @pytest.mark.parametrize("way", ["embargo_until", "withdrawn"])
    def test_an_assignment_of_the_failed_tasks_alone(self, ada, toy, way):
        """Passes wait, or are taken back; asked for are the failures, which are tried again."""
        names = in_subset(first_board(toy))
        honest = {task: trials for task, trials in self.HONEST.items() if task in names}
        failed = self.failed(honest)
        passed = {task: [1] for task in honest if task not in failed}
        deliver(ada, honest, agent="honest", model="Model 8")
        later = {"embargo_until": f"{AS_OF + timedelta(days=80):%Y-%m-%d}"} if way == "embargo_until" else {}
        receipt = deliver(ada, passed, **later, **({"run": "early"} if later else {}))
        described = AgentDescription("newcomer", "Loop", "Model 9")
        assert {task.name for task in asked(toy, ada, described)} >= failed
        deliver(ada, {task: [0] for task in failed})
        if way == "withdrawn":
            withdraw(uuid=stored(receipt).uuid, token=ada, reason="a bug", as_of=AS_OF)
        deliver(ada, passed)
        deliver(ada, {task: [1] for task in failed}, first=2)
        assert (
            self.entry(toy).line["at"]["subset"]["score"]
            == self.entry(toy, "honest").line["at"]["subset"]["score"]
        )

    def test_solved_extras(self, ada, toy):
        names = in_subset(first_board(toy))
        deliver(ada, {task: trials for task, trials in self.HONEST.items() if task in names})
        honest = self.entry(toy).line["at"]
        easy = next(task for task in sorted(self.HONEST) if task not in names)
        deliver(ada, {easy: [1]})
        cheating = self.entry(toy).line["at"]
        for target in ("full", "subset"):
            assert cheating[target]["score"] == honest[target]["score"]

    def test_a_second_try(self, ada, toy):
        first = deliver(ada, self.HONEST)
        assert self.entry(toy).rank is not None
        deliver(ada, every_task(1), replaces=first["id"])
        entry = self.entry(toy)
        assert entry.rank is None
        assert "resubmitted" in entry.line["at"]["full"]["reason"]
        approve(benchmark=toy, agent="newcomer", reason="the scorer was at fault", as_of=AS_OF)
        assert self.entry(toy).rank == 1


class TestUnload:
    def test_the_latest_load_goes_as_a_whole(self, toy):
        load_text(csv_text({"b0": "1" * 20, "b1": "0" * 20}))
        version = Benchmark.objects.get().data_version
        gone = unload_latest(benchmark=toy, reason="the wrong file", as_of=AS_OF)
        assert [submission.agent.name for submission in gone] == ["b0", "b1"]
        assert Benchmark.objects.get().data_version == version + 1
        changes = gone[0].status_changes.order_by("id")
        assert [(c.status, c.reason, c.data_version) for c in changes] == [
            ("accepted", "load", version),
            ("withdrawn", "the wrong file", version + 1),
        ]
        assert len(deliveries(toy)) == 16
        assert load_text(csv_text({"b0": "1" * 20})).n_new == 20

    def test_submissions_are_left_alone(self, ada, toy):
        receipt = deliver(ada, every_task())
        unload_latest(benchmark=toy, reason="all of it", as_of=AS_OF)
        assert [str(one.submission.uuid) for one in deliveries(toy)] == [receipt["id"]]
        with refused(Conflict, "nothing_to_unload"):
            unload_latest(benchmark=toy, reason="more", as_of=AS_OF)

    def test_all_or_none(self, toy):
        first, second = Submission.objects.values_list("uuid", flat=True)[:2]
        unload(uuids=[first], reason="broken", as_of=AS_OF)
        with pytest.raises(CountsNoMore):
            unload(uuids=[second, first], reason="broken", as_of=AS_OF)
        assert len(deliveries(toy)) == 15


def at_once(n, call, n_threads=None):
    """Call with 0 … n−1, by default all at once; return what came back, exceptions included."""

    def one(i):
        try:
            return call(i)
        except Exception as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(n_threads or n) as pool:
        return list(pool.map(one, range(n)))


@pytest.mark.django_db(transaction=True)
def test_deliveries_at_once_each_have_their_version():
    load_text(csv_text(ladder(6, 20)))
    ada, toy = token("ada@example.org"), Benchmark.objects.get()
    before = toy.data_version
    receipts = at_once(4, lambda i: deliver(ada, every_task(), agent=f"n{i}", version=str(i)))
    arrivals = sorted(one.arrival for one in deliveries(toy) if not one.submission.loaded)
    assert arrivals == [before + 1, before + 2, before + 3, before + 4]
    assert len({receipt["id"] for receipt in receipts}) == 4
    assert Benchmark.objects.get().data_version == before + 4


@pytest.mark.django_db(transaction=True)
def test_two_names_at_once_are_one_agent():
    load_text(csv_text(ladder(6, 20)))
    ada = token("ada@example.org")
    answers = at_once(4, lambda i: deliver(ada, every_task(), agent=f"n{i}"))
    assert sum(getattr(answer, "code", "") == "second_name" for answer in answers) == 3
    assert Agent.objects.exclude(owner=None).count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("names", [["newcomer"], ["newcomer", "fresh"]])
def test_first_deliveries_of_one_agent_at_once_never_wait_in_a_circle(names):
    load_text(csv_text(ladder(6, 20)))
    ada = token("ada@example.org")

    def first(i):
        return deliver(ada, every_task(), agent=names[i % len(names)], first=i + 1)

    answers = at_once(12, first, n_threads=3)
    codes = [answer.code for answer in answers if isinstance(answer, Exception)]
    assert codes == ["second_name"] * (12 - 12 // len(names))
    assert Agent.objects.exclude(owner=None).count() == 1
    assert Submission.objects.filter(loaded=False).count() == 12 // len(names)


@pytest.mark.django_db(transaction=True)
def test_a_withdrawal_and_a_replacement_at_once_take_back_once():
    load_text(csv_text(ladder(6, 20)))
    ada = token("ada@example.org")
    first = deliver(ada, every_task(0))
    at_once(
        2,
        lambda i: (
            deliver(ada, every_task(1), replaces=first["id"])
            if i
            else withdraw(uuid=stored(first).uuid, token=ada, reason="a bug", as_of=AS_OF)
        ),
    )
    statuses = list(stored(first).status_changes.order_by("id").values_list("status", flat=True))
    assert statuses in (["accepted", "superseded"], ["accepted", "withdrawn"])
