"""Staged assignments: the study, the policy, batches, receipts, and what gains nothing."""

import csv
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import StringIO
from uuid import UUID

import numpy as np
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection, transaction
from django.db.utils import ProgrammingError
from scipy.stats import t

from analytics.record import Record
from leaderboard.accounts.models import User
from leaderboard.boards.queries import promises_of, standings_of
from leaderboard.catalog.models import Agent, Benchmark, Policy
from leaderboard.catalog.services import AgentDescription
from leaderboard.errors import Conflict
from leaderboard.operations import jobs
from leaderboard.operations.asking import decisions_of, means_so_far, step_of
from leaderboard.operations.assignments import assign, expire_due, names_of
from leaderboard.operations.corrections import confirm, unload, withdraw
from leaderboard.operations.models import Assignment
from leaderboard.operations.naming import merge
from leaderboard.operations.reruns import open_drift_request
from leaderboard.operations.reviewing import accept
from leaderboard.operations.services import check_drift, validate
from leaderboard.studies.answers import words
from leaderboard.studies.models import StagedStudy
from leaderboard.studies.queries import active_subset
from leaderboard.studies.records import Reader
from leaderboard.submissions.models import Submission
from selection.single_tasks import delivered_means
from selection.staged.model import estimate
from selection.staged.replay import replay, verdict
from selection.staged.study import staged_fit
from selection.staged.study import walked as walked_by
from selection.staged.teaching import FullRun, taught
from selection.staged.walks import Fit, Staging, step
from selection.standings.choice import training
from tests.kept import stored
from tests.leaderboard.test_assignments import runs
from tests.leaderboard.test_receipts import deliver
from tests.leaderboard.test_same_board import by_itself
from tests.leaderboard.world import token
from tests.refusals import refused
from tests.toys import AS_OF, board_of, csv_text, graded, lines_of, load_text, only, recomputed

N_TASKS, N_PAST, FIRST, NEXT = 100, 16, 22, 15  # the first batch with its audit tasks, and each later one
NEW = AgentDescription("newcomer", "Loop", "Model 9")
OVER = AS_OF + timedelta(days=14)
WEAK = "".join(str(int(j % 3 == 0)) for j in range(N_TASKS))
"""What a newcomer would pass."""


STAGED = {"assignment": "staged", "draw_share": 0.0}


def in_force():
    """16 complete agents on 100 tasks, and a subset; staged assignments are in force."""
    board_of(csv_text(graded(N_PAST, N_TASKS)))
    Policy.objects.create(benchmark=toy(), number=2, **STAGED)
    recomputed()


@pytest.fixture
def board(db):
    stored("staged", in_force)
    return toy()


@pytest.fixture
def ada(board):
    return token("ada@example.org")


@pytest.fixture
def walked(db):
    """Whose token it was, the receipts of an agent that has come to its end, and the board that follows."""

    def make():
        in_force()
        by = token("ada@example.org")
        return by, walk(by), recomputed()

    return stored("walked", make)


def toy():
    return Benchmark.objects.get(slug="toy")


def ask(by, agent=NEW, *, as_of=AS_OF):
    return assign(benchmark=toy(), agent=agent, by=by.user, as_of=as_of)


def waiting(assignment):
    """The batch under way, in the order asked."""
    return list(step_of(assignment).waiting)


def waiting_names(assignment):
    by_id = dict(toy().tasks.values_list("id", "name"))
    return [by_id[pk] for pk in assignment.tasks]


def estimate_of(assignment, outcomes):
    """By the core, from these outcomes alone."""
    fit, tasks = fit_of(assignment.study), assignment.study.result["tasks"]
    seen = np.array([outcomes.get(task, [np.nan])[0] for task in tasks], dtype=float)
    return estimate(fit.model, seen, fit.model.next_mean).score


def marked(tasks, marks=WEAK):
    return {task: [int(marks[int(task[1:])])] for task in tasks}


def walk(by, marks=WEAK, agent=NEW.name, **more):
    """Run batch after batch until nothing is left; return the receipts."""
    described, receipts = AgentDescription(agent, "Loop", more.get("model", NEW.model)), []
    while (assignment := ask(by, described)).status == "open":
        tasks = waiting(assignment)
        receipts.append(deliver(by, marked(tasks, marks), agent=agent, **more))
    return receipts


def drawn():
    """Walk to the end where whoever is stopped is drawn; return whose token it was."""
    Policy.objects.create(benchmark=toy(), number=3, publish_every=0, **STAGED | {"draw_share": 1.0})
    recomputed()
    by = token("ada@example.org")
    while deliver(by, marked(waiting(ask(by))))["assignment"]["staged"]["stage"] == "running":
        pass
    recomputed()
    return by


def not_asked(assignment):
    """The names of all other tasks, in order."""
    asked = {*waiting_names(assignment)}
    return [f"t{j:02d}" for j in range(N_TASKS) if f"t{j:02d}" not in asked]


def printed(*arguments):
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


class TestStudy:
    def test_it_is_the_cores_on_the_complete_agents(self, board):
        found = StagedStudy.objects.get().result
        agents = training(record_of(board))
        by_date = sorted(range(N_PAST), key=lambda i: (agents.dates[i], agents.names[i]))
        outcomes, scores = agents.outcomes[by_date], agents.scores[by_date]
        runs = [FullRun(i, float(y)) for i, y in enumerate(scores)]
        fit = taught(outcomes, scores, runs, Staging()).fit
        assert found["tasks"] == list(record_of(board).table.tasks)
        assert found["fit"]["difficulties"] == pytest.approx(fit.model.difficulties.tolist())
        assert (found["fit"]["podium"], found["fit"]["best"]) == (fit.podium, fit.best)
        assert found["fit"]["first_batch"] == fit.first_batch.tolist()
        assert (found["agents"], len(found["fit"]["first_batch"])) == (N_PAST, FIRST - 2)

    def test_it_is_for_as_many_trials_as_are_asked_for(self, db):
        texts = [csv_text(graded(8, 40, seed=k)).replace(",1,", f",{k + 1},") for k in range(3)]
        head, *_ = texts[0].partition("\n")
        board_of("\n".join([head, *(text.partition("\n")[2].strip() for text in texts), ""]))
        for n_trials in (1, 3):
            Policy.objects.create(benchmark=toy(), number=n_trials + 1, n_trials=n_trials, **STAGED)
            recomputed()
        one, three = (study.result["fit"] for study in StagedStudy.objects.order_by("id"))
        known = staged_fit(record_of(toy()), Staging(draw_share=0.0), n_trials=1)["fit"]
        assert one["dispersion"] == pytest.approx(known["dispersion"])
        assert one["scale"] == pytest.approx(known["scale"])
        assert three["dispersion"] < 0.7 * one["dispersion"]

    def test_it_is_made_with_each_board_and_once(self, board):
        assert StagedStudy.objects.count() == 1
        recomputed()
        assert StagedStudy.objects.count() == 1
        load_text(csv_text(graded(1, N_TASKS, seed=7, prefix="z")))
        recomputed()
        assert [study.result["agents"] for study in StagedStudy.objects.order_by("id")] == [16, 17]

    def test_too_few_agents_are_stored_with_the_reason(self, db):
        board_of(csv_text(graded(4, 20)))
        assert not StagedStudy.objects.exists()
        Policy.objects.create(benchmark=toy(), number=2, **STAGED)
        recomputed()
        assert StagedStudy.objects.get().result == {
            "available": False,
            "reason": "staged assignment needs 5 agents that teach; there are 4",
            "agents": 4,
        }

    def test_the_first_batch_is_of_the_subset_in_use(self, board):
        fit, tasks = fit_of(StagedStudy.objects.get()), StagedStudy.objects.get().result["tasks"]
        names = active_subset(board).members.values_list("task__name", flat=True)
        assert {tasks[j] for j in fit.ranking_tasks} == {*names}


@pytest.mark.usefixtures("quick", "replayed_twice")
class TestVerdict:
    def test_a_validation_leads_with_the_replay_of_the_core(self, board):
        study, _ = validate(benchmark=board, as_of=AS_OF)
        agents = training(record_of(board))
        again = replay(agents, Staging(draw_share=0.0), seed=0)
        found = study.result["replay"]
        assert (found["figures"]["saved"], found["figures"]["pairs"]["value"]) == (
            again.saved,
            again.pairs.value,
        )
        assert found["verdict"]["text"] == verdict(again)["text"]
        told = standings_of(recomputed()).verdict
        assert (told.word, told.sentence, told.protocol) == (
            verdict(again)["word"],
            verdict(again)["text"],
            "replay",
        )
        assert told.sentence in " ".join(printed("validate", "toy").split())
        assert "pairs in order" in printed("validate", "toy", "--full")

    def test_under_ten_full_runs_are_too_few(self, db):
        board_of(csv_text(graded(9, 20)))
        Policy.objects.create(benchmark=toy(), number=2, **STAGED)
        study, _ = validate(benchmark=toy(), as_of=AS_OF)
        reason = "a replay needs 10 agents that ran all tasks; there are 9"
        told = {"rule": "podium 3", "figures": None, "verdict": None, "reason": reason}
        assert study.result["replay"] == told
        assert f"Not known yet: {reason}." in printed("validate", "toy")

    def test_where_the_subset_is_asked_for_that_is_replayed(self, db):
        board_of(csv_text(graded(20, 20)))
        Policy.objects.create(benchmark=toy(), number=2, assignment="subset")
        found = validate(benchmark=toy(), as_of=AS_OF)[0].result["replay"]
        assert found["rule"] == "ranking tasks only"
        again = replay(training(record_of(toy())), assignment="subset")
        assert (found["figures"]["saved"], found["verdict"]["text"]) == (again.saved, verdict(again)["text"])

    def test_there_is_none_of_full_runs(self, db):
        board_of(csv_text(graded(20, 20)))
        Policy.objects.create(benchmark=toy(), number=2, assignment="full")
        assert "replay" not in validate(benchmark=toy(), as_of=AS_OF)[0].result


@pytest.mark.usefixtures("replayed_twice")
class TestPolicy:
    @pytest.mark.parametrize("duplicates", ["latest", "first"])
    def test_no_batch_alone_may_count(self, board, duplicates):
        with pytest.raises(CommandError, match="each batch is a submission"):
            call_command("policy", "toy", "--set", f"duplicates={duplicates}")
        assert "Policy 3 is in force." in printed(
            "policy", "toy", "--set", f"duplicates={duplicates}", "assignment=subset"
        )


class TestBatches:
    def test_an_agent_is_walked_through_its_batches_as_the_core_walks_it(self, walked):
        _, receipts, _ = walked
        (assignment,) = Assignment.objects.all()
        assert (assignment.mode, assignment.status) == ("staged", "fulfilled")
        fit, tasks = fit_of(assignment.study), assignment.study.result["tasks"]
        outcomes, every = np.array([float(mark) for mark in WEAK]), np.ones(N_TASKS, dtype=bool)
        by_id = dict(toy().tasks.values_list("id", "name"))
        asked = [tasks.index(by_id[pk]) for pk in assignment.tasks]
        assert set(fit.first_batch) < set(asked[:FIRST])
        last = receipts[-1]["assignment"]["staged"]
        found = step(
            fit, assigned_tasks=asked, outcomes=outcomes, delivered=every, active=every, seed=0, agent=""
        )
        assert (last["stage"], last["done"], last["waiting"]) == ("stopped", True, [])
        assert last["n_run"] == len(asked) < last["n_tasks"] == N_TASKS
        known = found.estimate
        told = [last[name] for name in ("score", "lower", "upper", "se")]
        assert told == pytest.approx([known.score, known.lower, known.upper, known.se])
        assert (last["podium"], last["best"], last["reason"]) == (fit.podium, fit.best, found.reason)
        assert "nothing is left to run" in last["told"]
        kept = assignment.decisions
        assert [one["n_run"] for one in kept] == [len(asked[: FIRST + k * NEXT]) for k in range(len(kept))]
        assert kept[-1]["score"] == last["score"]
        assert [one["stage"] for one in kept] == ["running"] * (len(kept) - 1) + ["stopped"]

    def test_the_best_run_all_tasks_and_are_measured(self, ada):
        receipts = walk(ada, "1" * N_TASKS)
        last = receipts[-1]["assignment"]["staged"]
        assert (last["stage"], last["done"], last["score"], last["n_run"]) == (
            "complete",
            True,
            None,
            N_TASKS,
        )
        line = lines_of(recomputed())["newcomer"]
        assert (line.how, line.at["full"].score, line.at["full"].rank) == ("measured", 1.0, 1)

    def test_one_that_is_drawn_has_its_estimate_and_runs_the_rest(self, board):
        Policy.objects.create(benchmark=toy(), number=3, assignment="staged", draw_share=1.0)
        recomputed()
        ada = token("ada@example.org")
        while (last := deliver(ada, marked(waiting(ask(ada))))["assignment"]["staged"])["stage"] == "running":
            assert last["score"] is not None
        assert (last["stage"], last["done"]) == ("drawn", False)
        line = lines_of(recomputed())["newcomer"]
        assert (line.how, line.at["full"].score) == ("estimated", by_present_fit()["score"])
        rest = ask(ada)
        assert len(waiting(rest)) == N_TASKS - last["n_run"]
        assert rest.decisions[-1]["score"] == last["score"]
        told = deliver(ada, marked(waiting(rest)))["assignment"]["staged"]
        assert (told["stage"], told["done"]) == ("complete", True)
        line = lines_of(recomputed())["newcomer"]
        assert (line.how, line.at["full"].score) == ("measured", pytest.approx(WEAK.count("1") / N_TASKS))
        study, decisions = decisions_of(toy())["newcomer"]
        c = study.result["fit"]["scale"]["c"]
        _, drawn, share = walked_by(decisions, study.result["fit"])
        assert drawn == pytest.approx((last["score"], last["se"] / c))
        assert share == 1.0

    def test_decisions_are_only_ever_added(self, walked):
        assignment = Assignment.objects.get()
        for changed in (assignment.decisions[:-1], [assignment.decisions[0] | {"score": 0.9}]):
            assignment.decisions = changed
            with transaction.atomic(), pytest.raises(ProgrammingError, match="Cannot update"):
                assignment.save()

    def test_asking_again_without_delivering_gives_the_same(self, ada):
        first = ask(ada)
        assert ask(ada).tasks == first.tasks
        assert len(first.tasks) == FIRST
        deliver(ada, marked(waiting(first)))
        second = ask(ada)
        assert (second.pk, second.tasks[:FIRST], len(second.tasks)) == (first.pk, first.tasks, FIRST + NEXT)
        assert ask(ada).tasks == second.tasks

    def test_after_the_end_there_is_nothing_more(self, walked):
        ada, _, _ = walked
        over = ask(ada)
        assert (over.status, ask(ada)) == ("fulfilled", over)
        assert Assignment.objects.count() == 1

    def test_outcomes_decide_what_comes_next(self, ada):
        def asked(name, mark):
            described = AgentDescription(name, "Loop", name)
            deliver(ada, marked(waiting(ask(ada, described)), mark * N_TASKS), name, model=name)
            return ask(ada, described).tasks

        strong, weak = asked("strong", "1"), asked("weak", "0")
        shared = {*StagedStudy.objects.get().result["fit"]["first_batch"]}
        names = sorted(toy().tasks.values_list("name", flat=True))
        by_id = dict(toy().tasks.values_list("id", "name"))
        for tasks in (strong, weak):
            assert shared < {names.index(by_id[pk]) for pk in tasks[:FIRST]}
        assert strong[FIRST:] != weak[FIRST:]

    @pytest.mark.parametrize("change", [lambda tasks: tasks[::-1], lambda tasks: tasks[:-1]])
    def test_tasks_are_only_ever_added(self, ada, change):
        assignment = ask(ada)
        assignment.tasks = change(assignment.tasks)
        with pytest.raises(ProgrammingError, match="Cannot update"):
            assignment.save()

    def test_after_its_days_another_goes_on_with_the_same_tasks(self, ada):
        first = ask(ada)
        deliver(ada, marked(waiting(first)))
        second = ask(ada, as_of=OVER)
        assert second.pk != first.pk
        assert (second.study_id, second.tasks[:FIRST]) == (first.study_id, first.tasks)
        assert len(second.tasks) == FIRST + NEXT
        assert expire_due(as_of=OVER) == "0 assignments have expired"

    def test_the_last_batch_counts_also_after_its_days(self, ada):
        """It need not name the assignment: nothing else could be meant."""
        assignment = before_the_last_batch(ada)
        expire_due(as_of=OVER)
        told = deliver(ada, marked(waiting(assignment)))["assignment"]
        assert (told["id"], told["late"], told["staged"]["done"]) == (str(assignment.uuid), True, True)
        assert lines_of(recomputed())["newcomer"].at["full"].score == by_present_fit()["score"]

    def test_a_newer_study_changes_nothing_for_who_has_begun(self, ada):
        first = ask(ada)
        load_text(csv_text(graded(2, N_TASKS, seed=7, prefix="z")))
        recomputed()
        newer = StagedStudy.objects.latest("id")
        deliver(ada, marked(waiting(first)))
        assert ask(ada).study_id == first.study_id
        other = ask(ada, AgentDescription("other", "Loop", "Model 10"))
        assert other.study == newer

    def test_who_delivered_before_is_asked_for_all_tasks(self, ada):
        deliver(ada, marked(["t00"]))
        rest = ask(ada)
        assert (rest.mode, len(rest.tasks)) == ("delta", N_TASKS - 1)
        assert "others run all tasks" in rest.reason

    def test_until_the_next_board_everyone_is_asked_for_all_tasks(self, db):
        board_of(csv_text(graded(N_PAST, N_TASKS)))
        Policy.objects.create(benchmark=toy(), number=2, **STAGED)
        by = token("ada@example.org")
        first = ask(by)
        assert (first.mode, len(first.tasks)) == ("full", N_TASKS)
        assert first.reason == "batches begin with the next board; until then every agent runs all tasks"
        recomputed()
        assert ask(by, AgentDescription("other", "Loop", "Model 10")).mode == "staged"

    def test_all_tasks_are_asked_for_while_a_drift_request_is_open(self, ada):
        stopped = AgentDescription("stopped", "Loop", "Model 10")
        walk(ada, agent=stopped.name, model=stopped.model)
        recomputed()
        ran = len(ask(ada, stopped).tasks)
        request = open_drift_request(benchmark=toy(), reason="the jump", as_of=AS_OF)
        assert [one.agent.name for one in request.agents.all()] == ["stopped"]
        assert (ask(ada).mode, len(ask(ada).tasks)) == ("full", N_TASKS)
        rest = ask(ada, stopped)
        assert (rest.mode, len(rest.tasks)) == ("delta", N_TASKS - ran)

    def test_without_a_study_all_tasks_are_asked_for(self, ada, monkeypatch):
        monkeypatch.setattr("leaderboard.studies.queries.ESTIMATOR_VERSION", 10_000)
        assert (ask(ada).mode, len(ask(ada).tasks)) == ("full", N_TASKS)

    def test_a_failure_of_the_harness_is_not_asked_again(self, ada):
        tasks = waiting(ask(ada))
        receipt = deliver(ada, marked(tasks[:1] + tasks[2:]) | {tasks[1]: [None]})
        counted = ask(ada)  # a failure until somebody confirms that it is none
        assert len(counted.tasks) == FIRST + NEXT
        confirm(uuid=UUID(receipt["id"]), reason="the sandbox was full", as_of=AS_OF)
        assert ask(ada).tasks == counted.tasks

    def test_a_retired_task_is_asked_for_no_longer(self, ada):
        tasks = waiting(ask(ada))
        toy().tasks.filter(name=tasks[0]).update(retired_at=AS_OF, retired_reason="broken")
        deliver(ada, marked(tasks[1:]))
        assert len(ask(ada).tasks) == FIRST + NEXT
        assert walk(ada)[-1]["assignment"]["staged"]["done"]


class TestWhatGainsNothing:
    def test_only_the_solved_tasks_of_a_batch(self, ada):
        assignment = ask(ada)
        tasks = waiting(assignment)
        receipt = deliver(ada, runs(tasks[:1]))
        told = receipt["assignment"]["staged"]
        assert (told["score"], told["done"], told["waiting"]) == (None, False, tasks[1:])
        assert receipt["assignment"]["status"] == "open"
        assert ask(ada).tasks == assignment.tasks  # no next batch

    def test_tasks_outside_the_batches(self, ada):
        """Neither before the end nor with the batch that leads to it."""
        first = ask(ada)
        tasks = waiting(first)
        outside = not_asked(first)
        for more in (outside[-12:], [*tasks, *outside]):
            with refused(Conflict, "not_asked_for", match="Ask for its assignment") as caught:
                deliver(ada, runs(more))
        assert caught.value.details == {"n_tasks": N_TASKS - FIRST, "tasks": outside}
        assert not Submission.objects.filter(agent__name="newcomer").exists()
        told = deliver(ada, marked(tasks))["assignment"]["staged"]
        known = estimate_of(first, marked(waiting_names(first)))
        assert told["score"] == pytest.approx(known)

    def test_running_failed_tasks_again_under_another_prompt(self, ada):
        """The failures stand under a label that is not compared; without it they would be run once more."""
        tasks = waiting(ask(ada))
        failed = [task for task in tasks if WEAK[int(task[1:])] == "0"]
        labelled = [row | {"prompt_variant": "b"} for row in rows_of(failed, trials=[(1, 0)])]
        deliver(ada, labelled)
        with refused(Conflict, "not_asked_for", match="under another prompt") as caught:
            deliver(ada, runs(failed))
        assert caught.value.details["tasks"] == sorted(failed)

    def test_an_earlier_assignment_of_all_tasks(self, ada):
        """Asked for while the policy was another one, and named once the batches are under way."""
        Policy.objects.create(benchmark=toy(), number=3, assignment="full")
        full = ask(ada)
        assert full.mode == "full"
        Policy.objects.create(benchmark=toy(), number=4, **STAGED)
        recomputed()
        expire_due(as_of=OVER)
        batch = ask(ada, as_of=OVER)
        assert batch.mode == "staged"
        with refused(Conflict, "not_asked_for"):
            deliver(ada, runs(not_asked(batch)), as_of=OVER, assignment=str(full.uuid))

    def test_delivering_the_rest_where_it_is_better(self, walked):
        """Of an agent that was stopped; it runs on where it is asked to."""
        ada, _, board = walked
        rest = not_asked(Assignment.objects.get())
        with refused(Conflict, "not_asked_for"):
            deliver(ada, runs(rest))
        assert recomputed() == board
        open_drift_request(benchmark=toy(), reason="the jump", as_of=AS_OF)
        with refused(Conflict, "not_asked_for"):
            deliver(ada, runs(rest[:1]))
        assert sorted(names_of(ask(ada))) == rest
        deliver(ada, marked(rest))
        line = lines_of(recomputed())["newcomer"]
        assert (line.how, line.at["full"].score) == ("measured", pytest.approx(WEAK.count("1") / N_TASKS))
        assert line.at["subset"].rank is not None

    def test_delivering_the_rest_where_it_is_better_after_being_drawn(self, board):
        """Who keeps it back has no rank after the days of its assignment, and asks in vain for more."""
        ada = drawn()
        told = by_present_fit()
        line = lines_of(recomputed())["newcomer"]
        assert (line.how, line.at["full"].score) == ("estimated", told["score"])
        assert line.at["full"].rank is not None
        assert expire_due(as_of=OVER) == "1 assignments have expired"
        (one,) = jobs.due_boards(OVER)
        assert one.benchmark == toy()
        for _ in range(2):
            line = lines_of(recomputed(as_of=OVER))["newcomer"]
            assert (line.how, line.at["full"].rank, line.at["full"].score) == ("incomplete", None, None)
            assert "as it was drawn" in line.at["full"].reason
            lower, upper = line.at["full"].bounds
            assert lower < told["score"] < upper
            rest = waiting(ask(ada, as_of=OVER))
        deliver(ada, marked(rest), as_of=OVER)
        line = lines_of(recomputed(as_of=OVER))["newcomer"]
        assert (line.how, line.at["full"].score) == ("measured", pytest.approx(WEAK.count("1") / N_TASKS))

    def test_a_part_of_the_rest_after_being_drawn(self, board):
        ada = drawn()
        deliver(ada, runs(waiting(ask(ada))[:10]))
        line = lines_of(recomputed())["newcomer"]
        assert (line.how, line.at["full"].rank) == ("incomplete", None)

    def test_taking_the_rest_back_after_being_drawn(self, board):
        ada = drawn()
        receipt = deliver(ada, marked(waiting(ask(ada)), "0" * N_TASKS))
        withdraw(uuid=UUID(receipt["id"]), token=ada, reason="it was worse", as_of=AS_OF)
        line = lines_of(recomputed())["newcomer"]
        assert (line.how, line.at["full"].rank, line.at["full"].score) == ("incomplete", None, None)

    def test_taking_a_full_run_back_and_asking(self, ada):
        receipt = deliver(ada, marked(every_name()))
        withdraw(uuid=UUID(receipt["id"]), token=ada, reason="it was worse", as_of=AS_OF)
        assignment = ask(ada)
        assert (assignment.mode, len(assignment.tasks)) == ("full", N_TASKS)

    def test_asking_under_many_versions(self, ada):
        tasks = [
            set(ask(ada, AgentDescription(f"newcomer {k}", "Loop", NEW.model, version=f"{k}")).tasks)
            for k in range(3)
        ]
        assert tasks[0] == tasks[1] == tasks[2]

    def test_more_trials_of_failed_tasks(self, ada):
        assignment = ask(ada)
        tasks = waiting(assignment)
        told = deliver(ada, {task: [0, 1, 1] for task in tasks})["assignment"]["staged"]
        assert told["score"] == pytest.approx(estimate_of(assignment, runs(tasks, 0)))

    @pytest.mark.parametrize("trials", [[0, 1], [1, 0]])
    def test_numbering_the_better_trial_first(self, ada, trials):
        """Of trials delivered together the lowest counts, on receipt and board alike."""
        while (assignment := ask(ada)).status == "open":
            deliver(ada, dict.fromkeys(waiting(assignment), trials))
        walk(ada, "0" * N_TASKS, agent="honest", model="Model 10")
        lines = lines_of(recomputed())
        full = lines["newcomer"].at["full"].score
        assert full == by_present_fit()["score"]
        assert lines["honest"].at["full"].score == pytest.approx(full, abs=0.01)  # other audit tasks

    def test_leaving_out_second_trials_at_the_end(self, ada):
        Policy.objects.create(benchmark=toy(), number=3, n_trials=2, **STAGED)
        while (assignment := ask(ada)).status == "open":
            outcomes = {task: 2 * run for task, run in marked(waiting(assignment)).items()}
            with transaction.atomic():
                is_last = deliver(ada, outcomes)["assignment"]["staged"]["done"]
                transaction.set_rollback(is_last)
            if is_last:
                break
        receipt = deliver(ada, {task: run[:1] for task, run in outcomes.items()})
        assert receipt["assignment"]["staged"]["waiting"] == waiting(assignment)
        assert lines_of(recomputed())["newcomer"].at["full"].rank is None
        told = deliver(ada, {task: run[1:] for task, run in outcomes.items()}, first=2)["assignment"]
        assert told["staged"]["done"]
        full = lines_of(recomputed())["newcomer"].at["full"]
        assert (full.rank is not None, full.score) == (True, by_present_fit()["score"])

    def test_letting_the_days_pass_and_delivering_the_subset(self, ada):
        deliver(ada, marked(waiting(ask(ada))))
        expire_due(as_of=OVER)
        ran = waiting_names(Assignment.objects.get())
        with refused(Conflict, "not_asked_for"):
            deliver(ada, runs(sorted(set(names_of_subset()) - set(ran))))
        assert lines_of(recomputed())["newcomer"].at["subset"].rank is None

    def test_taking_all_back_and_delivering_the_subset(self, walked):
        ada, receipts, _ = walked
        for receipt in receipts:
            withdraw(uuid=UUID(receipt["id"]), token=ada, reason="another try", as_of=AS_OF)
        with refused(Conflict, "not_asked_for"):
            deliver(ada, runs(names_of_subset()))
        receipt = deliver(
            ada, runs(sorted({*names_of_subset()} & {*waiting_names(Assignment.objects.get())}))
        )
        assert receipt["assignment"]["staged"]["done"] is False
        line = lines_of(recomputed())["newcomer"]
        assert (line.how, line.at["full"].rank, line.at["subset"].rank) == ("incomplete", None, None)

    def test_calling_failures_invalid(self, ada):
        assignment = ask(ada)
        tasks = waiting(assignment)
        told = deliver(ada, {task: [None] for task in tasks})["assignment"]["staged"]
        assert told["score"] == pytest.approx(estimate_of(assignment, runs(tasks, 0)))

    def test_a_second_name_sees_what_everybody_is_asked_first(self, ada):
        first = ask(ada)
        with refused(Conflict, "second_name"):
            walk(ada, agent="again")
        other = ask(ada, AgentDescription("other", "Loop", "Model 10"))
        assert len(set(other.tasks) - set(first.tasks)) <= 2  # audit tasks are drawn for each


def test_a_receipt_knows_its_delivery_whoever_delivers(board):
    eve = token("eve@example.org", is_trusted=False)
    assignment = ask(eve)
    tasks = waiting(assignment)
    tried, told = (
        deliver(eve, marked(tasks), dry_run=is_dry)["assignment"]["staged"] for is_dry in (True, False)
    )
    assert told["n_run"] == tried["n_run"] == len(tasks)
    assert told["score"] == tried["score"] == pytest.approx(estimate_of(assignment, marked(tasks)))


def every_name():
    return sorted(toy().tasks.values_list("name", flat=True))


def fit_of(study):
    return Fit.from_plain(study.result["fit"])


def record_of(benchmark) -> Record:
    return Reader(benchmark).now(None).record


def by_present_fit(name="newcomer"):
    """The estimate of an agent that was stopped, by the latest fit."""
    return StagedStudy.objects.latest("id").result["estimates"][name]


def names_of_subset():
    return list(toy().subsets.get().tasks.values_list("name", flat=True))


class TestBoard:
    def test_at_its_end_an_agent_is_ranked_by_its_estimate(self, walked):
        """By the fit made with the board; the receipt told it by that which decided."""
        _, receipts, board = walked
        told = by_present_fit()
        assert told["score"] == pytest.approx(receipts[-1]["assignment"]["staged"]["score"], abs=0.01)
        line, study = lines_of(board)["newcomer"], StagedStudy.objects.latest("id")
        full, degrees = line.at["full"], study.result["fit"]["scale"]["degrees"]
        assert (line.how, line.marks, full.rank is not None) == ("estimated", ("chosen tasks",), True)
        assert [full.score, full.lower, full.upper] == pytest.approx(
            [told["score"], told["lower"], told["upper"]]
        )
        assert full.se == pytest.approx(told["se"])
        assert full.upper - full.score == pytest.approx(told["se"] * t.ppf(0.975, degrees))
        assert full.source == "tasks chosen for the agent"
        for target in ("subset", "domain"):
            assert line.at[target].rank is None
            assert line.at[target].reason.startswith("it was asked batch by batch")
        told = words.scores_text(standings_of(board))
        assert told.startswith("Scores are on all 100 tasks: measured for 16 agents, ")
        assert told.endswith(", estimated (~) for 1 from tasks chosen for each.")

    def test_what_it_was_spared_is_counted_as_for_the_subset(self, walked, client):
        ada, receipts, board = walked
        told = receipts[-1]["assignment"]["staged"]
        spared = {"n_runs": 1, "n_tasks_saved": N_TASKS - told["n_run"], "saved": None}
        for savings in (
            standings_of(board).savings,
            client.get("/api/v1/benchmarks/toy/board").json()["savings"],
        ):
            assert savings["so_far"] == spared | {"n_not_measured": 1, "n_chosen": 1}
        said = f"So far 1 agent saved {N_TASKS - told['n_run']} tasks of a full run."
        assert words.savings_text(standings_of(board).savings).endswith(said)
        assert said in client.get("/b/toy").content.decode()
        described = AgentDescription("under way", "Loop", "Model 10")
        deliver(ada, marked(waiting(ask(ada, described))), agent="under way", model="Model 10")
        deliver(ada, runs(names_of_subset()), agent="unasked", model="Model 11")
        so_far = standings_of(recomputed()).savings["so_far"]
        assert (so_far["n_runs"], so_far["n_chosen"]) == (1, 1)
        assert so_far["n_tasks_saved"] == N_TASKS - told["n_run"]

    def test_the_file_of_the_board_says_who_was_asked_so(self, walked, client):
        text = client.get("/api/v1/benchmarks/toy/board.csv").content.decode()
        rows = {row["agent"]: row for row in csv.DictReader(StringIO(text))}
        told = [rows["newcomer"][name] for name in ("how", "marks", "full_source", "full_estimated")]
        assert told == ["estimated", "chosen tasks", "tasks chosen for the agent", "True"]
        assert (rows["a00"]["marks"], rows["a00"]["full_source"]) == ("", "")

    def test_before_its_end_it_is_listed_with_the_reason(self, ada):
        deliver(ada, marked(waiting(ask(ada))))
        board = recomputed()
        line = lines_of(board)["newcomer"]
        assert (line.how, line.at["full"].rank, line.at["full"].score) == ("incomplete", None, None)
        assert line.at["full"].reason == ("it is asked batch by batch, and not all of its tasks have arrived")
        ask(ada)  # the next batch changes no board
        assert recomputed() == board

    def test_a_file_has_the_same_board(self, walked, tmp_path):
        """With the same Given; a file does not say who delivered it, how often, and what was asked for."""
        _, _, board = walked
        ran = Assignment.objects.get().tasks
        there = set(toy().tasks.filter(pk__in=ran).values_list("name", flat=True))
        newcomer = csv_text({"newcomer": only(WEAK, there)}, day=f"{AS_OF:%Y-%m-%d}")
        past = csv_text(graded(N_PAST, N_TASKS))
        (tmp_path / "all.csv").write_text(
            past + newcomer.split("\n", 1)[1].replace("Model newcomer", "Model 9")
        )
        file = by_itself(tmp_path / "all.csv", board).as_plain()
        stored = standings_of(board).as_plain()
        for line in [*file["agents"], *stored["agents"]]:
            del line["run_by"], line["trust"], line["n_submissions"]
        for told in (file, stored):
            del told["savings"]["so_far"]
        for key in file:
            assert file[key] == stored[key], key

    def test_it_feeds_no_band_and_one_monitor(self, ada):
        """That of tuning, which looks at what agents do beyond their first batches."""
        before, quiet = recomputed(), check_drift(benchmark=toy(), as_of=AS_OF)[0]
        walk(ada)
        after, check = recomputed(), check_drift(benchmark=toy(), as_of=AS_OF)[0]
        assert (after.calibration, after.n_complete) == (before.calibration, N_PAST)
        assert check.pk != quiet.pk
        found = [{one["name"]: one for one in made.result["monitors"]} for made in (quiet, check)]
        before, after = (one.pop("tuning to the subset") for one in found)
        assert found[0] == found[1]
        assert (before["reason"], after["evidence"]["n_audited"]) == ("no audit task was run", 1)
        assert "agents that ran tasks beyond a first batch: 1;" in after["reason"]
        assert promises_of(toy()) == {}

    def test_its_pages_say_how_it_came_to_its_score(self, walked, client):
        agent = Agent.objects.get(name="newcomer")
        page = client.get(f"/b/toy/agents/{agent.pk}").content.decode()
        assert "~" in page
        board = client.get("/b/toy").content.decode()
        assert "from tasks chosen for each" in board
        left_out = (
            "1 other is left out. Ranking tasks are chosen with estimates for those of them that stopped"
        )
        assert left_out in client.get("/b/toy/tasks").content.decode()
        other = Agent.objects.get(name="a00").pk
        pair = client.get(f"/b/toy/compare?a={agent.pk}&a={other}")
        assert pair.status_code == 200
        assert "~" in pair.content.decode()
        listed = client.get("/b/toy?target=subset").content.decode()
        assert "It was asked batch by batch, so that it is ranked by its estimated score" in listed


def test_a_version_that_is_begun_and_left_lowers_the_line_of_the_finished_one(ada):
    walk(ada)
    before = lines_of(recomputed())["newcomer"].at["full"]
    second = AgentDescription("second", "Loop", NEW.model, "2")
    deliver(ada, marked(waiting(ask(ada, second))), agent="second", version="2")
    lines = lines_of(recomputed())
    at, left = lines["newcomer"].at["full"], lines["second"].at["full"]
    assert before.correction == 0 < at.correction
    assert at.score < before.score
    assert (left.rank, left.folded_under) == (None, "newcomer")
    assert left.reason.startswith("shares the line of newcomer: not clearly worse; ")


@pytest.mark.parametrize("by_owner", [True, False])
def test_a_version_that_its_owner_took_back_lowers_the_line_of_the_one_that_stays(ada, by_owner):
    """Before it was finished, and so before a board showed it; not one that an operator takes back."""
    second = AgentDescription("second", "Loop", NEW.model, "2")
    first = deliver(ada, marked(waiting(ask(ada, second))), agent="second", version="2")
    walk(ada)
    if by_owner:
        withdraw(uuid=UUID(first["id"]), token=ada, reason="it was unlucky", as_of=AS_OF)
    else:
        unload(uuids=[UUID(first["id"])], reason="another's", as_of=AS_OF)
    at = lines_of(recomputed())["newcomer"].at["full"]
    assert (at.correction > 0, at.n_taken_back) == (by_owner, int(by_owner))


def test_a_version_of_which_most_was_taken_back_lowers_the_line_of_the_one_that_stays(ada):
    """All but one task is withdrawn, before a board."""
    second = AgentDescription("second", "Loop", NEW.model, "2")
    marks = marked(waiting(ask(ada, second)))
    first = min(marks)
    deliver(ada, {first: marks.pop(first)}, agent="second", version="2")
    rest = deliver(ada, marks, agent="second", version="2")
    walk(ada)
    withdraw(uuid=UUID(rest["id"]), token=ada, reason="it was unlucky", as_of=AS_OF)
    at = lines_of(recomputed())["newcomer"].at["full"]
    assert at.correction > 0


def test_a_replay_takes_nothing_new(ada):
    Benchmark.objects.filter(slug="toy").update(replay={"of": "other", "board": 1})
    with refused(Conflict, "replay", "Submit to other"):
        ask(ada)


# ------------------------------------------------------------------------------------- one record, one answer

PROMPTS = [{"prompt_variant": name, "judge": None, "temperature": None} for name in ("p1", "p2")]


def on_receipt():
    """What the core is told of the agent's outcomes by a receipt."""
    return means_so_far(Assignment.objects.get())[1]


def on_board():
    """What it is told of them by the record of the board."""
    now = Reader(toy()).now(active_subset(toy()))
    agent = Agent.objects.get(name="newcomer")
    name = (agent.merged_into or agent).name
    place = now.record.table.agents.index(name)
    return delivered_means(now.record, place, Assignment.objects.get().n_trials)


def rows_of(tasks, *, prompt=None, run=None, trials=((1, 1),)):
    return [
        {"task": task, "trial": trial, "outcome": outcome, "valid": outcome is not None}
        | ({"prompt_variant": prompt} if prompt else {})
        | ({"run": run} if run else {})
        for task in tasks
        for trial, outcome in trials
    ]


def delivers(*deliveries):
    """What is delivered of two tasks, one delivery after the other: trials by the place of the task."""

    def happens(by, tasks):
        for first, outcomes in deliveries:
            deliver(by, {tasks[j]: trials for j, trials in outcomes.items()}, first=first)

    return happens


def confirmed_failure(by, tasks):
    receipt = deliver(by, {tasks[0]: [None], tasks[1]: [1]})
    confirm(uuid=UUID(receipt["id"]), reason="the sandbox was full", as_of=AS_OF)


def delivered_again(by, tasks):
    confirmed_failure(by, tasks)
    deliver(by, {tasks[0]: [1]})


def failures_of_which_some_are_confirmed(by, tasks):
    receipt = deliver(by, {tasks[0]: [None, 1], tasks[1]: [1, 0]})
    confirm(uuid=UUID(receipt["id"]), reason="the sandbox was full", as_of=AS_OF)


def several_runs(by, tasks):
    deliver(by, rows_of(tasks, run="a", trials=[(1, 0), (2, 1)]))
    deliver(by, rows_of(tasks, run="b", trials=[(1, 1)]))


def two_conditions(by, tasks):
    Policy.objects.create(benchmark=toy(), number=4, counted_settings=PROMPTS, **STAGED)
    deliver(by, rows_of(tasks, prompt="p1"))
    deliver(by, rows_of(tasks[:1], prompt="p2", trials=[(1, 0)]) + rows_of(tasks[1:], prompt="p3"))


def retired(by, tasks):
    deliver(by, {tasks[0]: [0], tasks[1]: [1]})
    toy().tasks.filter(name=tasks[0]).update(retired_at=AS_OF, retired_reason="broken")


def replaced(by, tasks):
    first = deliver(by, {task: [1] for task in tasks})
    deliver(by, {task: [0] for task in tasks}, replaces=first["id"])


def out_of_turn(by, tasks):
    """What was held back counts after what was delivered later."""
    Policy.objects.create(benchmark=toy(), number=4, review="manual", **STAGED)
    first = deliver(by, {task: [1] for task in tasks})
    assert first["status"] == "waiting"
    Policy.objects.create(benchmark=toy(), number=5, **STAGED)
    deliver(by, {task: [0] for task in tasks}, first=2)
    accept(uuid=UUID(first["id"]), by=None, reason="it is fine", as_of=AS_OF)


def merged(by, tasks):
    deliver(by, {tasks[0]: [1]})
    other = {"name": "newcomer 2024", "scaffold": "Loop", "model": "Model 10"}
    deliver(by, {tasks[0]: [0], tasks[1]: [1]}, agent=other, first=2)
    old, new = (Agent.objects.get(name=name) for name in ("newcomer", "newcomer 2024"))
    merge(agent=old, into=new, by=None, reason="one and the same", as_of=AS_OF)


@pytest.mark.parametrize(
    ("happens", "n_trials", "means"),
    [
        (delivers((1, {0: [0]}), (1, {1: [1]})), 1, {0: 0.0, 1: 1.0}),
        (delivers((1, {0: [0], 1: [0]}), (2, {0: [1], 1: [1]})), 1, {0: 0.0, 1: 0.0}),
        (delivers((1, {0: [1, 0, 1], 1: [1, 0, 1]})), 1, {0: 0.0, 1: 0.0}),
        (delivers((1, {0: [1, 0, 1], 1: [1, 0, 1]})), 2, {0: 0.5, 1: 0.5}),
        (delivers((1, {0: [0.1, 0.7], 1: [0.1, 0.7]})), 2, {0: 0.4, 1: 0.4}),
        (delivers((1, {0: [None], 1: [1]})), 1, {0: 0.0, 1: 1.0}),
        (confirmed_failure, 1, {0: None, 1: 1.0}),
        (delivered_again, 1, {0: 1.0, 1: 1.0}),
        (failures_of_which_some_are_confirmed, 2, {0: 1.0, 1: 0.5}),
        (several_runs, 2, {0: 0.5, 1: 0.5}),
        (several_runs, 3, {0: 2 / 3, 1: 2 / 3}),
        (two_conditions, 1, {0: 0.5}),
        (retired, 1, {1: 1.0}),
        (replaced, 1, {0: 0.0, 1: 0.0}),
        (out_of_turn, 1, {0: 0.0, 1: 0.0}),
        (merged, 1, {0: 1.0, 1: 1.0}),
    ],
)
def test_a_receipt_counts_as_the_board_does(ada, happens, n_trials, means):
    Policy.objects.create(benchmark=toy(), number=3, n_trials=n_trials, **STAGED)
    tasks = waiting(ask(ada))[:2]
    happens(ada, tasks)
    assert on_receipt() == pytest.approx({tasks[j]: mean for j, mean in means.items()})
    assert on_receipt() == on_board()


def test_missing_ones_that_count_as_failures_are_so_on_both(ada):
    tasks = waiting(ask(ada))
    Policy.objects.create(benchmark=toy(), number=4, missing="zero", **STAGED)
    deliver(ada, {tasks[0]: [1]})
    assert on_receipt() == on_board() == dict.fromkeys(tasks, 0.0) | {tasks[0]: 1.0}


def test_a_task_that_lacks_trials_holds_up_no_other_on_a_receipt(ada):
    """The board shows no figure of the agent before it has them."""
    Policy.objects.create(benchmark=toy(), number=3, n_trials=2, **STAGED)
    tasks = waiting(ask(ada))
    deliver(ada, {tasks[0]: [1, 0], tasks[1]: [1]})
    assert (on_receipt(), on_board()) == ({tasks[0]: 0.5}, {})


def test_a_dry_run_says_what_the_receipt_will(ada):
    """What was delivered first counts first, whatever number it has, until it is replaced."""
    deliver(ada, marked(waiting(ask(ada))))
    tasks = waiting(ask(ada))
    passed = deliver(ada, {task: [1] for task in tasks}, first=2)
    failed, scores = {task: [0] for task in tasks}, []
    for more in ({}, {"replaces": passed["id"]}):
        tried = deliver(ada, failed, dry_run=True, **more)["assignment"]
        with transaction.atomic():
            assert deliver(ada, failed, **more)["assignment"] == tried
            assert on_receipt() == on_board()
            transaction.set_rollback(True)
        scores.append(tried["staged"]["score"])
    assert scores[0] == passed["assignment"]["staged"]["score"] > scores[1]


@pytest.mark.slow(each=True)
@pytest.mark.django_db(transaction=True)
def test_ten_at_once_add_one_batch():
    board_of(csv_text(graded(N_PAST, N_TASKS)))
    Policy.objects.create(benchmark=toy(), number=2, **STAGED)
    recomputed()
    ada = token("ada@example.org")
    deliver(ada, marked(waiting(ask(ada))))
    user = User.objects.get(email="ada@example.org")

    def once(_):
        try:
            return tuple(assign(benchmark=toy(), agent=NEW, by=user, as_of=AS_OF).tasks)
        finally:
            connection.close()

    with ThreadPoolExecutor(10) as threads:
        (tasks,) = set(threads.map(once, range(10)))
    assert len(tasks) == FIRST + NEXT
    assert Assignment.objects.count() == 1


@pytest.fixture
def post(ada, client):
    """POST a body as its owner and return status and answer."""
    from leaderboard.operations.services import issue_token

    _, secret = issue_token(
        email="ada@example.org", slug="toy", scope="submit", name="web", as_of=AS_OF, life=timedelta(days=300)
    )
    client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {secret}"

    def send(where, **body):
        address = f"/api/v1/benchmarks/toy/{where}"
        answer = client.post(address, json.dumps({"agent": WHO} | body), content_type="application/json")
        return answer.status_code, answer.json()

    return send


WHO = {"name": "newcomer", "scaffold": "Loop", "model": "Model 9"}


def test_the_interface_gives_batches_and_says_what_is_left(post, client):
    status, asked = post("assignments")
    assert (status, asked["mode"], asked["study"]) == (201, "staged", StagedStudy.objects.get().pk)
    assert asked["staged"]["waiting"] == asked["tasks"]
    rows = [{"task": task, "trial": 1, "outcome": 1} for task in asked["tasks"]]
    _, tried = post("submissions?dry_run=true", outcomes=rows)
    assert "; ask for the next 15 tasks: " in tried["assignment"]["staged"]["told"]
    _, receipt = post("submissions", outcomes=rows)
    assert receipt["assignment"]["staged"] == tried["assignment"]["staged"]
    status, further = post("assignments")
    assert (status, further["id"], len(further["tasks"])) == (200, asked["id"], FIRST + NEXT)
    assert further["staged"]["waiting"] == further["tasks"][FIRST:]
    found = client.get(f"/api/v1/submissions/{receipt['id']}").json()
    assert found["assignment"]["staged"]["waiting"] == further["tasks"][FIRST:]
    assert client.get(f"/api/v1/benchmarks/toy/assignments/{asked['id']}").json() == further
    client.force_login(User.objects.get(email="ada@example.org"))
    page = client.get(f"/submissions/{receipt['id']}").content.decode()
    assert "15 tasks asked for are still to be run; then ask again" in page
    assert "sk again" not in asked["reason"]  # it stays, also where nothing is left


@pytest.fixture
def read(post, client):
    """An assignment as its owner reads it."""

    def one(assignment):
        return client.get(f"/api/v1/benchmarks/toy/assignments/{assignment.uuid}").json()

    return one


@pytest.mark.parametrize(("at", "status"), [(AS_OF, "open"), (OVER, "expired")])
def test_one_that_lacks_results_again_is_not_fulfilled(ada, read, at, status):
    receipts = walk(ada)
    assignment = Assignment.objects.get()
    told = read(assignment)
    assert (told["status"], told["staged"]["stage"]) == ("fulfilled", "stopped")
    withdraw(uuid=UUID(receipts[-1]["id"]), token=ada, reason="a wrong run", as_of=at)
    told, rest = read(assignment), waiting(assignment)
    assert (told["status"], told["staged"]["stage"], told["staged"]["waiting"]) == (status, "running", rest)
    assert (told["ended_at"] is None) == (status == "open")
    asked = ask(ada, as_of=at)
    assert (asked == assignment, waiting(asked)) == (status == "open", rest)
    receipt = deliver(ada, marked(rest), as_of=at)["assignment"]
    assert (receipt["id"], receipt["status"], receipt["late"]) == (str(asked.uuid), "fulfilled", False)


def test_one_of_a_drawn_agent_expires_where_it_takes_the_rest_back(board, read):
    ada = drawn()
    receipt = deliver(ada, marked(waiting(ask(ada)), "0" * N_TASKS))
    assert receipt["assignment"]["status"] == "fulfilled"
    withdraw(uuid=UUID(receipt["id"]), token=ada, reason="it was worse", as_of=AS_OF)
    told = read(Assignment.objects.get())
    assert (told["status"], told["staged"]["stage"]) == ("expired", "running")
    assert lines_of(recomputed())["newcomer"].at["full"].rank is None
    again = deliver(ada, marked(told["staged"]["waiting"]))
    assert any(f"expired on {AS_OF:%Y-%m-%d}: the outcomes count" in one for one in again["warnings"])
    assert read(Assignment.objects.get())["late"] is True


def test_another_assignment_hides_no_draw(board):
    ada = drawn()
    before = decisions_of(toy())["newcomer"]
    expire_due(as_of=OVER)
    deliver(ada, marked(waiting(ask(ada, as_of=OVER))), as_of=OVER)
    assert Assignment.objects.count() == 2
    assert decisions_of(toy())["newcomer"] == before
    assert before[1][-1]["stage"] == "drawn"


def before_the_last_batch(by):
    """The assignment, when one batch is left."""
    while True:
        assignment = ask(by)
        with transaction.atomic():
            is_last = deliver(by, marked(waiting(assignment)))["assignment"]["staged"]["done"]
            transaction.set_rollback(is_last)
        if is_last:
            assignment.refresh_from_db()
            return assignment


def test_it_says_whether_results_came_late(ada, read):
    assignment = before_the_last_batch(ada)
    expire_due(as_of=OVER)
    assert read(assignment)["late"] is False
    receipt = deliver(ada, marked(waiting(assignment)), as_of=OVER)
    told = read(assignment)
    assert (told["status"], told["late"], receipt["assignment"]["late"]) == ("expired", True, True)
    withdraw(uuid=UUID(receipt["id"]), token=ada, reason="a wrong run", as_of=OVER)
    assert read(assignment)["late"] is False


def test_what_another_one_covers_is_fulfilled(ada, read):
    first = before_the_last_batch(ada)
    second = ask(ada, as_of=OVER)
    named = deliver(ada, marked(waiting(first)), as_of=OVER, assignment=str(first.uuid))["assignment"]
    assert (named["id"], named["status"], named["late"]) == (str(first.uuid), "expired", True)
    told = read(second)
    assert (told["status"], told["staged"]["done"], told["submissions"]) == ("fulfilled", True, [])
    second.refresh_from_db()
    assert second.decisions[-1]["stage"] == "stopped"


@pytest.mark.parametrize("stage", ["stopped", "drawn"])
def test_the_interface_tells_who_is_drawn_once_the_estimate_is_stored(post, monkeypatch, stage):
    """A dry run of the last batch answers alike, whether the agent is drawn or not."""

    def drawn_is(answer):
        monkeypatch.setattr("selection.staged.walks.is_drawn", lambda *_: answer)

    told = {"stage": "running"}
    while told["stage"] == "running":
        _, asked = post("assignments")
        marks = marked(asked["staged"]["waiting"])
        rows = [{"task": task, "trial": 1, "outcome": one} for task, (one,) in marks.items()]
        tried = []
        for answer in (False, True):
            drawn_is(answer)
            tried.append(post("submissions?dry_run=true", outcomes=rows)[1])
        drawn_is(stage == "drawn")
        told = post("submissions", outcomes=rows)[1]["assignment"]["staged"]
        stopped, drawn = tried
        assert drawn == stopped
    assert (told["stage"], told["done"]) == (stage, stage == "stopped")
    assert Assignment.objects.get().decisions[-1]["score"] == told["score"]
    before = stopped["assignment"]["staged"]
    assert (before["stage"], before["done"], before["score"]) == ("estimated", None, told["score"])
    assert before["told"].endswith("after these results you learn whether to run the rest")


def test_new_benchmarks_ask_batch_by_batch():
    assert Policy._meta.get_field("assignment").default == "staged"
