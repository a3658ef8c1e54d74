"""What is due when, and who may say how a run ended: the clock is an argument."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.db import transaction

from leaderboard.accounts.models import User
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.queries import policy_in_force
from leaderboard.errors import Missing, Refusal
from leaderboard.operations import jobs, runs
from leaderboard.operations.benchmarks import list_tasks
from leaderboard.operations.corrections import unload_latest
from leaderboard.operations.events import emit
from leaderboard.operations.jobs import JOBS, Job, ask, clear
from leaderboard.operations.models import (
    Event,
    EventKind,
    JobRun,
    JobStatus,
    Lane,
    NotificationStatus,
    Webhook,
)
from leaderboard.operations.policies import changed_policy, put_in_force
from leaderboard.operations.runs import AlreadyAsked
from leaderboard.operations.scheduler.children import Interrupted, Pulse, perform
from leaderboard.operations.services import measure_variance, recompute, validate
from leaderboard.studies.models import ESTIMATOR_VERSION, TaskSubset, ValidationStudy
from leaderboard.studies.rules import rules_sha256
from leaderboard.submissions.models import IdempotencyKey
from leaderboard.submissions.parsing.task_list import ListedTask
from tests.refusals import refused
from tests.toys import AS_OF, csv_text, graded, ladder, load_text

SECOND, MINUTE, HOUR, DAY = (timedelta(**{unit: 1}) for unit in ("seconds", "minutes", "hours", "days"))
NIGHT = datetime(2026, 6, 2, 3, tzinfo=UTC)  # the first after AS_OF, noon of 1 June


pytestmark = pytest.mark.usefixtures("one_connection")


@pytest.fixture(autouse=True)
def one_processor(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 1)


@pytest.fixture
def small(db):
    """Six complete agents on twelve tasks: quick to validate."""
    load_text(csv_text(graded(6, 12)))
    return Benchmark.objects.get()


def validated(benchmark, *, n_complete, at=AS_OF):
    """A validation of the present data, of which only the number of agents is asked here."""
    policy = policy_in_force(benchmark)
    ValidationStudy.objects.create(
        benchmark=benchmark,
        policy=policy,
        rules=rules_sha256(policy),
        data_version=Benchmark.objects.get(pk=benchmark.pk).data_version,
        estimator_version=ESTIMATOR_VERSION,
        result={"agents": n_complete},
        created_at=at,
    )


def kinds_due(kind, as_of=AS_OF):
    return [(one.benchmark and one.benchmark.slug, one.about) for one in JOBS[kind].wanted(as_of)]


def ended(kind, one, status, *, at=AS_OF):
    """A run of what is due that ended so."""
    run = runs.begin(kind=kind, lane=JOBS[kind].lane, due=one, claim=uuid4(), as_of=at)
    assert runs.end(run, status=status, as_of=at)
    return run


def only_due(kind, as_of=AS_OF):
    (one,) = JOBS[kind].due(as_of)
    return one


# ------------------------------------------------------------------------------------------------ what is due


def test_a_board_is_due_until_there_is_one_of_the_present_data_and_rules(toy):
    ((slug, about),) = kinds_due("reconcile")
    assert (slug, about[:8]) == ("toy", "data 1, ")
    recompute(benchmark=toy, as_of=AS_OF)
    assert kinds_due("reconcile", AS_OF + DAY) == []
    put_in_force(policy=changed_policy(benchmark=toy, values={"assignment_days": "20"}))
    assert kinds_due("reconcile", AS_OF + DAY) == []
    put_in_force(policy=changed_policy(benchmark=toy, values={"band_lo": "0.2"}))
    assert len(kinds_due("reconcile", AS_OF + DAY)) == 1
    recompute(benchmark=toy, as_of=AS_OF)
    measure_variance(benchmark=toy, as_of=AS_OF)
    ((_, about),) = kinds_due("reconcile", AS_OF + DAY)
    assert "variance none" not in about


def test_boards_keep_the_pace_of_the_policy(toy):
    recompute(benchmark=toy, as_of=AS_OF)
    load_text(csv_text({"new": "1" * 20}))
    assert kinds_due("reconcile", AS_OF + 59 * SECOND) == []
    assert len(kinds_due("reconcile", AS_OF + 60 * SECOND)) == 1
    put_in_force(policy=changed_policy(benchmark=toy, values={"publish_every": "0"}))
    assert len(kinds_due("reconcile", AS_OF)) == 1


def test_nothing_is_due_without_outcomes(db):
    list_tasks(slug="empty", tasks=[ListedTask("one", "", "", None)])
    assert [kind for kind in JOBS if kind != "housekeeping" and kinds_due(kind)] == []


def test_nothing_is_due_when_all_was_taken_back(toy):
    unload_latest(benchmark=toy, reason="wrong", as_of=AS_OF)
    assert [kind for kind in JOBS if kind != "housekeeping" and kinds_due(kind)] == []


def test_what_failed_rests_until_its_key_changes(toy):
    first = only_due("reconcile")
    ended("reconcile", first, JobStatus.FAILED)
    assert kinds_due("reconcile", AS_OF + 59 * SECOND) == []
    assert kinds_due("reconcile", AS_OF + MINUTE) == [("toy", first.about)]
    load_text(csv_text({"new": "1" * 20}))
    ((_, about),) = kinds_due("reconcile", AS_OF + SECOND)
    assert about != first.about


def test_each_failure_doubles_the_rest_up_to_six_hours(toy):
    one, at = only_due("reconcile"), AS_OF
    for minutes in (1, 2, 4, 8, 16, 32, 64, 128, 256, 360, 360):
        ended("reconcile", one, JobStatus.FAILED, at=at)
        at += minutes * MINUTE
        assert kinds_due("reconcile", at - SECOND) == []
        assert kinds_due("reconcile", at) == [("toy", one.about)]


def test_a_run_that_made_no_board_is_not_the_last_word(toy):
    one = only_due("reconcile")
    ended("reconcile", one, JobStatus.DONE)
    assert kinds_due("reconcile", AS_OF + 59 * SECOND) == []
    assert kinds_due("reconcile", AS_OF + MINUTE) == [("toy", one.about)]


def test_what_was_abandoned_is_due_at_once_unless_it_always_is(toy):
    one = only_due("reconcile")
    for n_abandoned in range(1, 6):
        assert runs.rests("reconcile", one, as_of=AS_OF) is False, n_abandoned
        ended("reconcile", one, JobStatus.ABANDONED)
    assert runs.rests("reconcile", one, as_of=AS_OF) is True
    assert runs.rests("reconcile", one, as_of=AS_OF + HOUR) is False


def test_studies_are_due_at_once_for_the_first_time_and_then_at_night(toy):
    assert kinds_due("variance") == kinds_due("validate") == [("toy", "data 1, policy 1")]
    measure_variance(benchmark=toy, as_of=AS_OF)
    validated(toy, n_complete=16)
    assert kinds_due("variance", NIGHT) == kinds_due("validate", NIGHT) == []
    load_text(csv_text({"new": "1" * 20}), as_of=AS_OF + HOUR)
    for kind in ("variance", "validate"):
        assert kinds_due(kind, NIGHT - SECOND) == []
        assert kinds_due(kind, NIGHT) == [("toy", "data 2, policy 1")]


def test_five_new_complete_agents_do_not_wait_for_the_night(toy):
    validated(toy, n_complete=16)
    measure_variance(benchmark=toy, as_of=AS_OF)
    for n_new, is_due in ((4, False), (5, True)):
        load_text(csv_text({f"new{i}": "10" * 10 for i in range(n_new)}))
        board, _ = recompute(benchmark=toy, as_of=AS_OF + n_new * SECOND)
        assert board.n_complete == 16 + n_new
        assert bool(kinds_due("validate", AS_OF + MINUTE)) is is_due
        assert not kinds_due("variance", AS_OF + MINUTE)


def test_a_validation_waits_for_the_end_of_a_burst_but_not_for_more_than_an_hour(toy):
    validated(toy, n_complete=16)
    load_text(csv_text({f"new{i}": "10" * 10 for i in range(5)}), as_of=AS_OF + MINUTE)
    recompute(benchmark=toy, as_of=AS_OF + MINUTE)
    assert kinds_due("validate", AS_OF + 2 * MINUTE - SECOND) == []
    assert kinds_due("validate", AS_OF + 2 * MINUTE) == [("toy", "data 2, policy 1")]
    load_text(csv_text({"one more": "10" * 10}), as_of=AS_OF + HOUR - SECOND)
    assert kinds_due("validate", AS_OF + HOUR - SECOND) == []
    assert kinds_due("validate", AS_OF + HOUR) == [("toy", "data 3, policy 1")]


def test_drift_is_looked_for_after_each_board_and_in_each_hour(toy):
    assert kinds_due("drift") == []
    recompute(benchmark=toy, as_of=AS_OF)
    one = only_due("drift")
    assert one.about == "board 1, 2026-06-01 12h"
    ended("drift", one, JobStatus.DONE)
    assert kinds_due("drift", AS_OF + 59 * MINUTE) == []
    assert kinds_due("drift", AS_OF + HOUR) == [("toy", "board 1, 2026-06-01 13h")]
    load_text(csv_text({"new": "1" * 20}))
    recompute(benchmark=toy, as_of=AS_OF + MINUTE)
    assert kinds_due("drift", AS_OF + MINUTE) == [("toy", "board 2, 2026-06-01 12h")]


def test_drift_is_not_looked_for_without_a_subset(db):
    load_text(csv_text(ladder(3, 10)))
    recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF)
    assert not TaskSubset.objects.exists()
    assert kinds_due("drift") == []


def test_validation_runs_are_drawn_once_a_week_and_not_in_the_first(toy):
    recompute(benchmark=toy, as_of=AS_OF)
    assert kinds_due("validation runs", AS_OF + 6 * DAY) == []
    one = only_due("validation runs", AS_OF + 7 * DAY)  # Monday, 8 June
    assert one.about == "week 2026-24"
    ended("validation runs", one, JobStatus.DONE)
    assert kinds_due("validation runs", AS_OF + 13 * DAY) == []
    assert kinds_due("validation runs", AS_OF + 14 * DAY) == [("toy", "week 2026-25")]


def test_deliveries_are_due_when_the_next_try_is(toy):
    Webhook.objects.create(
        benchmark=toy, url="https://example.org", secret="s", events=["board.published"], created_at=AS_OF
    )
    assert kinds_due("deliver") == []
    emit(benchmark=toy, kind=EventKind.BOARD_PUBLISHED, about="1", payload={}, as_of=AS_OF)
    assert kinds_due("deliver", AS_OF - SECOND) == []
    ended("deliver", only_due("deliver"), JobStatus.DONE)
    assert kinds_due("deliver") == [(None, "")]
    ended("deliver", only_due("deliver"), JobStatus.FAILED)
    assert kinds_due("deliver", AS_OF + SECOND) == []


@pytest.mark.parametrize(
    ("now", "night"),
    [
        (datetime(2026, 6, 2, 2, 59, 59, tzinfo=UTC), datetime(2026, 6, 1, 3, tzinfo=UTC)),
        (datetime(2026, 6, 2, 3, tzinfo=UTC), datetime(2026, 6, 2, 3, tzinfo=UTC)),
        (datetime(2026, 1, 1, 1, tzinfo=UTC), datetime(2025, 12, 31, 3, tzinfo=UTC)),
    ],
)
def test_the_last_night(now, night):
    assert jobs.last_night(now) == night


def test_housekeeping_is_due_once_a_night(db, settings):
    one = only_due("housekeeping", NIGHT)
    ended("housekeeping", one, JobStatus.DONE)
    assert kinds_due("housekeeping", NIGHT + 23 * HOUR) == []
    assert kinds_due("housekeeping", NIGHT + DAY) == [(None, "night of 2026-06-03")]
    settings.NIGHT_HOUR = 5
    assert kinds_due("housekeeping", NIGHT + DAY + HOUR) == []


# --------------------------------------------------------------------------------------------------- claims


def begun(benchmark, kind="reconcile", *, lane=Lane.PROMPT, about="x", as_of=AS_OF):
    return runs.begin(kind=kind, lane=lane, due=runs.Due(benchmark, about), claim=uuid4(), as_of=as_of)


def test_one_run_of_a_kind_and_benchmark_at_a_time(toy):
    first = begun(toy)
    assert begun(toy) is None
    assert kinds_due("reconcile") == []
    assert runs.end(first, status=JobStatus.DONE, as_of=AS_OF, told="it is done")
    assert begun(toy) is not None


def test_whoever_lost_the_claim_stores_nothing(small):
    toy, run = small, begun(small)
    assert runs.abandon_left(lane=Lane.LONG, as_of=AS_OF) == 0
    assert runs.abandon_left(lane=Lane.PROMPT, as_of=AS_OF) == 1
    for compute in (recompute, validate, measure_variance):
        with pytest.raises(runs.ClaimLost):
            compute(benchmark=toy, as_of=AS_OF, check_claim=lambda: runs.check_claim(run))
    with pytest.raises(runs.ClaimLost):
        runs.beat(run, n_done=1, n_total=2, as_of=AS_OF)
    assert not runs.end(run, status=JobStatus.DONE, as_of=AS_OF)
    assert not toy.boards.exists()
    assert not ValidationStudy.objects.exists()
    run.refresh_from_db()
    assert (run.status, run.error) == ("abandoned", "the scheduler that ran it is gone")


def test_a_held_run_is_not_taken_over_before_its_result_is_stored(toy):
    run = begun(toy)
    recompute(benchmark=toy, as_of=AS_OF, check_claim=lambda: runs.check_claim(run))
    assert toy.boards.count() == 1
    with transaction.atomic():
        runs.check_claim(run)


def test_a_run_tells_how_it_ended(toy):
    run = begun(toy)
    perform(run, Pulse(run, lambda: False))
    run.refresh_from_db()
    assert (run.status, run.told, run.error) == ("done", "published board 1", "")


def test_a_refusal_is_the_error_of_a_run(db):
    list_tasks(slug="empty", tasks=[ListedTask("one", "", "", None)])
    run = begun(Benchmark.objects.get())
    perform(run, Pulse(run, lambda: False))
    run.refresh_from_db()
    assert (run.status, run.told) == ("failed", "")
    assert run.error == "This benchmark has no results yet. Load some first."


def test_a_fault_is_logged_and_named(toy, monkeypatch, caplog):
    def fails(run, as_of, progress):
        raise ZeroDivisionError("of our own")

    monkeypatch.setitem(JOBS, "faulty", Job("faulty", Lane.PROMPT, jobs.when_asked, fails))
    run = begun(toy, "faulty")
    perform(run, Pulse(run, lambda: False))
    run.refresh_from_db()
    assert (run.status, run.error) == ("failed", "ZeroDivisionError: of our own")
    assert "Traceback" in caplog.text


def test_progress_is_written_and_ends_an_interrupted_run(small):
    run = begun(small, "validate", lane=Lane.LONG)
    looks = []

    def interrupted():
        looks.append(1)
        return len(looks) > 3

    perform(run, Pulse(run, interrupted))
    run.refresh_from_db()
    assert (run.status, run.error) == ("abandoned", "The scheduler ended.")
    assert run.n_total > 0
    assert run.heartbeat_at > AS_OF
    assert not ValidationStudy.objects.exists()
    with pytest.raises(Interrupted):
        Pulse(run, lambda: True)(1, 2)


def test_a_silent_run_is_stuck_and_a_long_one_too(toy, settings):
    settings.STUCK_AFTER, settings.LONGEST_JOB = 60, 3600
    run = begun(toy, "validate", lane=Lane.LONG)
    assert runs.why_stuck(run, as_of=AS_OF + 61 * SECOND) == ""  # it has never told anything
    runs.beat(run, n_done=1, n_total=2, as_of=AS_OF)
    assert runs.why_stuck(run, as_of=AS_OF + 60 * SECOND) == ""
    assert runs.why_stuck(run, as_of=AS_OF + 61 * SECOND) == "no sign of life for 60 s"
    runs.beat(run, n_done=2, n_total=2, as_of=AS_OF + HOUR)
    assert runs.why_stuck(run, as_of=AS_OF + HOUR + SECOND) == "not done after 3600 s"


# -------------------------------------------------------------------------------------------------- by hand


def test_what_is_asked_for_is_queued_once_and_survives_its_scheduler(toy):
    ada = User.objects.create(email="ada@example.org")
    asked = {"kind": "validate", "benchmark": toy, "by": ada, "reason": "a paper", "as_of": AS_OF}
    run = ask(**asked)
    assert (run.status, run.lane, run.requested_by) == ("queued", "long", ada)
    with pytest.raises(AlreadyAsked):
        ask(**asked)
    assert runs.begin_queued(lane=Lane.PROMPT, claim=uuid4(), as_of=AS_OF) is None
    begun = runs.begin_queued(lane=Lane.LONG, claim=uuid4(), as_of=AS_OF)
    assert (begun, begun.status) == (run, "running")
    assert runs.begin_queued(lane=Lane.LONG, claim=uuid4(), as_of=AS_OF) is None
    runs.abandon_left(lane=Lane.LONG, as_of=AS_OF)
    again = runs.begin_queued(lane=Lane.LONG, claim=uuid4(), as_of=AS_OF)
    assert again == run
    assert again.claim != begun.claim


def test_asking_names_a_job_and_a_reason(toy):
    with refused(Missing, "no_such_job"):
        ask(kind="tidy", benchmark=toy, by=None, reason="why not", as_of=AS_OF)
    with refused(Refusal, "reason_missing"):
        ask(kind="validate", benchmark=toy, by=None, reason=" ", as_of=AS_OF)


def test_only_a_running_run_is_worked_off(toy):
    run = begun(toy)
    assert runs.running(run.pk) == run
    runs.abandon(run, why="for a test", as_of=AS_OF)
    with refused(Missing, "not_running"):
        runs.running(run.pk)


# --------------------------------------------------------------------------------------------- housekeeping


def test_housekeeping_clears_what_is_old(toy):
    ada = User.objects.create(email="ada@example.org")
    for key, age in (("old", 31), ("young", 29)):
        IdempotencyKey.objects.create(
            user=ada, benchmark=toy, key=key, request_sha256=b"", created_at=AS_OF - age * DAY
        )
    for about, age in (("old", 91), ("kept", 91), ("young", 89)):
        webhooks = toy.webhooks.filter(disabled_at=None)
        if about == "kept" and not webhooks:
            Webhook.objects.create(
                benchmark=toy, url="https://e.org", secret="s", events=["board.published"], created_at=AS_OF
            )
        emit(toy, EventKind.BOARD_PUBLISHED, about, {}, AS_OF - age * DAY)
    for age in (33, 32, 31, 1):
        ended("reconcile", runs.Due(toy, f"{age}"), JobStatus.DONE, at=AS_OF - age * DAY)
    ended("variance", runs.Due(toy, "last"), JobStatus.DONE, at=AS_OF - 40 * DAY)
    assert clear(as_of=AS_OF) == "cleared 1 idempotency key, 3 job runs, 1 event"
    assert [one.key for one in IdempotencyKey.objects.all()] == ["young"]
    assert {(one.kind, one.about) for one in JobRun.objects.all()} == {
        ("reconcile", "1"),
        ("variance", "last"),
    }
    kept = Event.objects.get(about="kept")
    assert {one.about for one in Event.objects.filter(kind="board.published")} == {"kept", "young"}
    kept.deliveries.update(status=NotificationStatus.PARKED)
    assert clear(as_of=AS_OF) == "cleared 0 idempotency keys, 0 job runs, 1 event"


def test_the_jobs_of_a_fresh_benchmark_are_done(small):
    for kind in ("reconcile", "validate", "variance"):
        run = runs.begin(kind=kind, lane=JOBS[kind].lane, due=only_due(kind), claim=uuid4(), as_of=AS_OF)
        perform(run, Pulse(run, lambda: False))
        run.refresh_from_db()
        assert (run.status, run.error) == ("done", "")
    assert ValidationStudy.objects.get().result["agents"] == 6
