"""The rows of job runs: taking one, keeping it alive, ending it, and resting after one that failed.

A run belongs to a claim, which the leader draws when it begins to lead. Whoever has lost its claim may go on
computing for a while, but stores nothing: each result is stored in a transaction that holds the row.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from leaderboard.accounts.models import User
from leaderboard.catalog.models import Benchmark
from leaderboard.errors import Conflict, Missing
from leaderboard.notify import wake
from leaderboard.operations.acting import reason_missing
from leaderboard.operations.models import JobRun, JobStatus, Lane

Progress = Callable[[int, int], None]

OPEN = (JobStatus.QUEUED, JobStatus.RUNNING)
FIRST_REST, MAX_REST = timedelta(minutes=1), timedelta(hours=6)
N_LOOKED_AT = 10  # runs; by then the rest is the longest
N_TAKEN_UP_AT_ONCE = 5  # abandoned runs in a row; a job that ends its process each time rests too


@dataclass(frozen=True)
class Due:
    """What a job is to be run for, and the key `about` under which its failures are remembered.

    `once`: a run that is done settles the key for good; else it rests for a minute. Without a key it is run
    as long as it is due.
    """

    benchmark: Benchmark | None = None
    about: str = ""
    once: bool = False


class AlreadyAsked(Conflict):
    message = "This job is already queued or running."


class ClaimLost(RuntimeError):
    """The run was taken over by another scheduler; what it computed is not stored."""


def check_claim(run: JobRun) -> None:
    """Lock the row until the transaction ends, so that nobody takes the run over meanwhile."""
    if _mine(run).select_for_update(no_key=True).first() is None:
        raise ClaimLost


@transaction.atomic
def queue(*, kind: str, lane: Lane, by: User | None, reason: str, as_of: datetime, **of: Any) -> JobRun:
    """Queue a run that a person asked for; `of` are its benchmark and what it is about."""
    if not reason.strip():
        raise reason_missing()
    try:
        with transaction.atomic():
            run = JobRun.objects.create(
                kind=kind, lane=lane, requested_by=by, reason=reason, created_at=as_of, **of
            )
    except IntegrityError:
        raise AlreadyAsked from None
    wake()
    return run


def running(pk: int) -> JobRun:
    run = JobRun.objects.select_related("benchmark").filter(pk=pk, status=JobStatus.RUNNING).first()
    if run is None:
        raise Missing("No such run is in progress. The scheduler starts runs.", code="not_running")
    return run


def begin(*, kind: str, lane: Lane, due: Due, claim: UUID, as_of: datetime) -> JobRun | None:
    what = {"benchmark": due.benchmark, "about": due.about, **_running(claim, as_of)}
    try:
        with transaction.atomic():
            return JobRun.objects.create(kind=kind, lane=lane, created_at=as_of, **what)
    except IntegrityError:
        return None


def begin_queued(*, lane: Lane, claim: UUID, as_of: datetime) -> JobRun | None:
    queued = JobRun.objects.filter(lane=lane, status=JobStatus.QUEUED).order_by("id")
    for run in queued.select_related("benchmark"):
        if JobRun.objects.filter(pk=run.pk, status=JobStatus.QUEUED).update(**_running(claim, as_of)):
            run.refresh_from_db()
            return run
    return None


def _running(claim: UUID, as_of: datetime) -> dict[str, object]:
    return {"status": JobStatus.RUNNING, "claim": claim, "started_at": as_of, "heartbeat_at": as_of}


def beat(run: JobRun, *, n_done: int, n_total: int, as_of: datetime) -> None:
    if not _mine(run).update(n_done=n_done, n_total=n_total, heartbeat_at=as_of):
        raise ClaimLost


def end(run: JobRun, *, status: JobStatus, as_of: datetime, told: str = "", error: str = "") -> bool:
    """Say how the run ended; False where it was taken over, or had ended before."""
    return bool(_mine(run).update(status=status, ended_at=as_of, told=told, error=error))


def abandon(run: JobRun, *, why: str, as_of: datetime) -> None:
    """Leave the run: what made it due makes it due again; what a person asked for is queued again."""
    if run.reason:
        _mine(run).update(status=JobStatus.QUEUED, claim=None, started_at=None, heartbeat_at=None, error=why)
    else:
        end(run, status=JobStatus.ABANDONED, error=why, as_of=as_of)


def abandon_left(*, lane: Lane, as_of: datetime) -> int:
    """Abandon what a lane finds running before it begins anything: whoever ran it is gone."""
    left = list(JobRun.objects.filter(lane=lane, status=JobStatus.RUNNING))
    for run in left:
        abandon(run, why="the scheduler that ran it is gone", as_of=as_of)
    return len(left)


def why_stuck(run: JobRun, *, as_of: datetime) -> str:
    """Why a run apart is given up; empty while it may go on.

    One that has never said how far it is tells nothing by its silence.
    """
    silent = Q(n_total__gt=0, heartbeat_at__lt=as_of - timedelta(seconds=settings.STUCK_AFTER))
    if _mine(run).filter(silent).exists():
        return f"no sign of life for {settings.STUCK_AFTER} s"
    if as_of - (run.started_at or as_of) > timedelta(seconds=settings.LONGEST_JOB):
        return f"not done after {settings.LONGEST_JOB} s"
    return ""


def rests(kind: str, due: Due, *, as_of: datetime) -> bool:
    """Whether this is under way, was done already, or failed so lately that it is not tried again yet."""
    tried = JobRun.objects.filter(kind=kind, benchmark=due.benchmark)
    if tried.filter(status__in=OPEN).exists():
        return True
    latest = list(tried.filter(about=due.about).order_by("-id")[:N_LOOKED_AT])
    failed = list(takewhile(lambda run: run.status != JobStatus.DONE, latest))
    if not latest:
        return False
    ended = latest[0].ended_at or latest[0].created_at
    if not failed:
        return bool(due.about) and (due.once or as_of < ended + FIRST_REST)
    if failed[0].status == JobStatus.ABANDONED and len(failed) < N_TAKEN_UP_AT_ONCE:
        return False
    return as_of < ended + rest_after(len(failed))


def rest_after(n_failed: int) -> timedelta:
    """A minute after the first failure in a row, twice as long after each further one, up to six hours."""
    return min(FIRST_REST * 2 ** (n_failed - 1), MAX_REST)


def _mine(run: JobRun) -> QuerySet[JobRun]:
    return JobRun.objects.filter(pk=run.pk, claim=run.claim, status=JobStatus.RUNNING)
