"""The jobs of the scheduler: when each is due, as a query over what there is, and what it does.

No message can be lost, and a process may die at any line. What a job calls, and what the core is asked for,
is imported when it runs, so that web workers may name jobs and ask for them.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, Max, OuterRef, QuerySet

from leaderboard.accounts.models import User
from leaderboard.boards.models import Board
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.queries import policy_in_force
from leaderboard.errors import Missing
from leaderboard.operations import runs
from leaderboard.operations.models import (
    Alert,
    Event,
    JobRun,
    Lane,
    Notification,
    NotificationStatus,
    RerunKind,
    RerunStatus,
    Upload,
)
from leaderboard.operations.queries import may_publish_at
from leaderboard.operations.runs import Due, Progress, check_claim, rests
from leaderboard.studies.answers import words
from leaderboard.studies.models import Study, TaskSubset, ValidationStudy, VarianceStudy
from leaderboard.studies.queries import active_subset, latest_study
from leaderboard.submissions.models import IdempotencyKey, Status, Submission

DAY, WEEK = timedelta(days=1), timedelta(weeks=1)
N_NEW_COMPLETE = 5  # agents after which a validation does not wait for the night
QUIET, MAX_WAIT = timedelta(minutes=1), timedelta(hours=1)  # it waits for a burst to end, but no longer
KEYS_KEPT = RUNS_KEPT = 30 * DAY
EVENTS_KEPT, UPLOADS_KEPT = 90 * DAY, DAY


@dataclass(frozen=True)
class Job:
    """One kind of job: `due` says what it is to be run for, `run` does it and says in a line what it did."""

    kind: str
    lane: Lane
    due: Callable[[datetime], Iterable[Due]]
    run: Callable[[JobRun, datetime, Progress], str]

    def wanted(self, as_of: datetime) -> Iterator[Due]:
        return (one for one in self.due(as_of) if not rests(self.kind, one, as_of=as_of))


def ask(
    *, kind: str, benchmark: Benchmark | None, by: User | None, reason: str, as_of: datetime, about: str = ""
) -> JobRun:
    if kind not in JOBS:
        raise Missing(f"Unknown job {kind!r}. Use one of {', '.join(JOBS)}.", code="no_such_job")
    of = {"benchmark": benchmark, "about": about}
    return runs.queue(kind=kind, lane=JOBS[kind].lane, by=by, reason=reason, as_of=as_of, **of)


# ------------------------------------------------------------------------------------------------ what is due


def due_checks(as_of: datetime) -> Iterator[Due]:
    """Submissions that were too long to be checked as they came."""
    waiting = Submission.objects.filter(status=Status.CHECKING, agent__benchmark__replay__isnull=True)
    for one in waiting.select_related("agent__benchmark").order_by("id"):
        yield Due(one.agent.benchmark, str(one.uuid))


def due_embargoes(as_of: datetime) -> Iterator[Due]:
    """Submissions whose embargo has ended, where no operator has to look at them."""
    from leaderboard.operations.reviewing import ends_by_itself, over

    for pk in over(as_of).order_by("agent__benchmark").values_list("agent__benchmark", flat=True).distinct():
        benchmark = Benchmark.objects.get(pk=pk)
        if ends_by_itself(benchmark):
            yield Due(benchmark)


def due_boards(as_of: datetime) -> Iterator[Due]:
    """Benchmarks without a board of their present key, or with a recall whose deadline has passed, unless the
    last board is younger than `publish_every`.
    """
    from leaderboard.boards.services import board_with_key
    from leaderboard.operations.services import known_reruns
    from leaderboard.studies.board_inputs import current_inputs

    for benchmark in _with_outcomes():
        known = current_inputs(benchmark, known_reruns(benchmark, active_subset(benchmark)))
        recalls = benchmark.rerun_requests.filter(kind=RerunKind.RECALL, status=RerunStatus.OPEN)
        is_over = benchmark.frozen_at is None and recalls.filter(deadline__lte=as_of).exists()
        if (is_over or board_with_key(known) is None) and may_publish_at(benchmark) <= as_of:
            key = {
                "data": known.data_version,
                "rules": known.rules_sha256[:12],
                "subset": known.subset and known.subset.number,
                "validation": known.validation and known.validation.pk,
                "variance": known.variance and known.variance.pk,
            }
            yield Due(benchmark, ", ".join(f"{name} {value or 'none'}" for name, value in key.items()))


def due_drift(as_of: datetime) -> Iterator[Due]:
    """After each board, and in each hour."""
    for benchmark in _with_outcomes():
        board = _latest(benchmark)
        if board is not None and active_subset(benchmark):
            yield Due(benchmark, f"board {board.number}, {as_of.astimezone(UTC):%Y-%m-%d %H}h", once=True)


def due_validations(as_of: datetime) -> Iterator[Due]:
    """In the night after the data changed, and after five more agents are complete and no more come: half a
    burst is studied in vain.
    """
    for benchmark in _with_outcomes():
        study, board = latest_study(ValidationStudy, benchmark), _latest(benchmark)
        at_once = False
        if study and board and board.n_complete - int(study.result["agents"]) >= N_NEW_COMPLETE:
            latest = Submission.objects.filter(agent__benchmark=benchmark).latest("received_at")
            at_once = latest.received_at <= as_of - QUIET or study.created_at <= as_of - MAX_WAIT
        yield from _unstudied(ValidationStudy, benchmark, as_of, at_once=at_once)


def due_variances(as_of: datetime) -> Iterator[Due]:
    """In the night after the data changed."""
    for benchmark in _with_outcomes():
        yield from _unstudied(VarianceStudy, benchmark, as_of)


def due_validation_runs(as_of: datetime) -> Iterator[Due]:
    """Once in each week, from a week after the first subset was fixed."""
    year, week, _ = as_of.astimezone(UTC).isocalendar()
    old = TaskSubset.objects.filter(benchmark=OuterRef("pk"), fixed_at__lte=as_of - WEEK)
    followed = Benchmark.objects.filter(Exists(old), full_runs_only_at=None, replay__isnull=True)
    for benchmark in followed.order_by("pk"):
        yield Due(benchmark, f"week {year}-{week:02d}", once=True)


def due_deliveries(as_of: datetime) -> Iterator[Due]:
    if Notification.objects.filter(status=NotificationStatus.WAITING, next_at__lte=as_of).exists():
        yield Due()


def due_housekeeping(as_of: datetime) -> Iterator[Due]:
    yield Due(about=f"night of {last_night(as_of):%Y-%m-%d}", once=True)


def when_asked(as_of: datetime) -> Iterator[Due]:
    """Never by the clock: an alert or an operator queues it."""
    yield from ()


def last_night(as_of: datetime) -> datetime:
    """When the nightly jobs last became due."""
    now = as_of.astimezone(UTC)
    tonight = now.replace(hour=settings.NIGHT_HOUR, minute=0, second=0, microsecond=0)
    return tonight if tonight <= now else tonight - DAY


def _with_outcomes() -> QuerySet[Benchmark]:
    accepted = Submission.objects.filter(agent__benchmark=OuterRef("pk"), status=Status.ACCEPTED)
    return Benchmark.objects.filter(Exists(accepted), replay__isnull=True).order_by("pk")


def _latest(benchmark: Benchmark) -> Board | None:
    return benchmark.boards.order_by("-number").first()


def _unstudied(
    model: type[Study], benchmark: Benchmark, as_of: datetime, *, at_once: bool = False
) -> Iterator[Due]:
    """The data, if they have no study yet, and there never was one, or a night has come since the last."""
    from leaderboard.studies.services import is_studied

    study = latest_study(model, benchmark)
    is_time = study is None or at_once or study.created_at < last_night(as_of)
    if is_time and not is_studied(model, benchmark):
        yield Due(benchmark, f"data {benchmark.data_version}, policy {policy_in_force(benchmark).number}")


# ---------------------------------------------------------------------------------------------- what they do


def _prompt(run: JobRun, as_of: datetime, progress: Progress) -> str:
    """Do what is soon done. `about` names the submission to check."""

    def claim() -> None:
        check_claim(run)

    match run.kind:
        case "check":
            from leaderboard.operations.reviewing import conclude

            return conclude(uuid=UUID(run.about), as_of=as_of, check_claim=claim)
        case "embargo":
            from leaderboard.operations.reviewing import end_due

            return end_due(benchmark=_benchmark(run), as_of=as_of)
        case "reconcile":
            from leaderboard.operations.services import recompute

            board, is_new = recompute(benchmark=_benchmark(run), as_of=as_of, paced=True, check_claim=claim)
            return f"published board {board.number}" if is_new else f"board {board.number} is up to date"
        case "drift":  # runs that have arrived count before the monitors are asked
            from leaderboard.operations.drifting import update_alerts
            from leaderboard.operations.reruns import close_due

            done = (close_due(as_of=as_of), update_alerts(benchmark=_benchmark(run), as_of=as_of))
            return "; ".join(filter(None, done))
        case "validation runs":
            from leaderboard.operations.reruns import draw_validation_runs

            return draw_validation_runs(benchmark=_benchmark(run), as_of=as_of)
        case "deliver":
            from leaderboard.operations.webhooks import deliver_due

            return deliver_due(as_of=as_of)
        case "housekeeping":
            from leaderboard.operations.assignments import expire_due

            return "; ".join(filter(None, (clear(as_of=as_of), expire_due(as_of=as_of))))
    raise ValueError(f"nothing is done for a job {run.kind!r}")


def _long(run: JobRun, as_of: datetime, progress: Progress) -> str:
    """Do what takes its time. `about` names the alert that asked for a reselection, or a replay's policy."""
    benchmark = _benchmark(run)

    def claim() -> None:
        check_claim(run)

    if run.kind == "reselect":
        from leaderboard.operations.reselections import propose

        number = run.about.removeprefix("alert ")
        alert = Alert.objects.filter(pk=int(number)).first() if number else None
        of: dict[str, Any] = {"by": run.requested_by, "reason": run.reason, "alert": alert}
        proposed = propose(benchmark=benchmark, as_of=as_of, progress=progress, **of)
        return f"proposed reselection {proposed.pk}"
    if run.kind == "replay":
        from leaderboard.operations.policies import replay_asked

        return replay_asked(run, benchmark, progress)
    from leaderboard.operations.services import measure_variance, validate

    study: Study
    if run.kind == "validate":
        how: dict[str, Any] = {"n_jobs": os.cpu_count() or 1, "progress": progress}
        study, is_new = validate(benchmark=benchmark, as_of=as_of, check_claim=claim, **how)
    elif run.kind == "variance":
        study, is_new = measure_variance(benchmark=benchmark, as_of=as_of, check_claim=claim)
    else:
        raise ValueError(f"nothing is done for a job {run.kind!r}")
    return f"data version {study.data_version}" + ("" if is_new else " was studied before")


@transaction.atomic
def clear(*, as_of: datetime) -> str:
    """Delete answers to repeat, rows of old runs and events that were delivered, and say what it was."""
    _, by_model = IdempotencyKey.objects.filter(created_at__lt=as_of - KEYS_KEPT).delete()
    n_keys = by_model.get(IdempotencyKey._meta.label, 0)
    Upload.objects.filter(created_at__lt=as_of - UPLOADS_KEPT).delete()
    # The last run of each kind and benchmark stays: it tells what was done
    last = JobRun.objects.values("kind", "benchmark").annotate(last=Max("pk")).values("last")
    old = JobRun.objects.filter(created_at__lt=as_of - RUNS_KEPT).exclude(status__in=runs.OPEN)
    n_runs = old.exclude(pk__in=list(last.values_list("last", flat=True))).delete()[0]
    waiting = Notification.objects.filter(event=OuterRef("pk"), status=NotificationStatus.WAITING)
    _, by_model = Event.objects.filter(~Exists(waiting), at__lt=as_of - EVENTS_KEPT).delete()
    n_events = by_model.get(Event._meta.label, 0)
    cleared = ((n_keys, "idempotency key"), (n_runs, "job run"), (n_events, "event"))
    return f"cleared {', '.join(words.counted(n, noun) for n, noun in cleared)}"


def _benchmark(run: JobRun) -> Benchmark:
    if run.benchmark is None:
        raise Missing(f"{run.kind} needs a benchmark.", code="no_such_job")
    return run.benchmark


JOBS = {
    job.kind: job
    for job in (
        Job("check", Lane.PROMPT, due_checks, _prompt),
        Job("embargo", Lane.PROMPT, due_embargoes, _prompt),
        Job("reconcile", Lane.PROMPT, due_boards, _prompt),
        Job("drift", Lane.PROMPT, due_drift, _prompt),
        Job("validation runs", Lane.PROMPT, due_validation_runs, _prompt),
        Job("deliver", Lane.PROMPT, due_deliveries, _prompt),
        Job("housekeeping", Lane.PROMPT, due_housekeeping, _prompt),
        Job("reselect", Lane.LONG, when_asked, _long),
        Job("replay", Lane.LONG, when_asked, _long),
        Job("validate", Lane.LONG, due_validations, _long),
        Job("variance", Lane.LONG, due_variances, _long),
    )
}
"""By kind, in the order in which a lane works them off."""
