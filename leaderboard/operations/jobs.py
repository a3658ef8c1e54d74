"""The jobs of the scheduler: when each is due, and what it does.

What a job calls is imported when it runs, so that web workers may name jobs and ask for them.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, transaction

from leaderboard.accounts.models import User
from leaderboard.catalog.models import Benchmark
from leaderboard.errors import Conflict, Missing
from leaderboard.notify import wake
from leaderboard.operations import due
from leaderboard.operations.acting import reason_missing
from leaderboard.operations.models import Alert, JobRun, Lane
from leaderboard.operations.runs import Due, check_claim, rests

Progress = Callable[[int, int], None]


class AlreadyAsked(Conflict):
    message = "This job is queued or running already."


@dataclass(frozen=True)
class Job:
    """One kind of job: `due` says what it is to be run for, `run` does it and says in a line what it did."""

    kind: str
    lane: Lane
    due: Callable[[datetime], Iterable[Due]]
    run: Callable[[JobRun, datetime, Progress], str]

    def wanted(self, as_of: datetime) -> Iterator[Due]:
        """What is due and neither done nor resting."""
        return (one for one in self.due(as_of) if not rests(self.kind, one, as_of=as_of))


@transaction.atomic
def ask(
    *, kind: str, benchmark: Benchmark | None, by: User | None, reason: str, as_of: datetime, about: str = ""
) -> JobRun:
    """Queue a run that the clock did not ask for."""
    if not reason.strip():
        raise reason_missing()
    if kind not in JOBS:
        raise Missing(f"There is no job {kind!r}; known are {', '.join(JOBS)}.", code="no_such_job")
    try:
        with transaction.atomic():
            run = JobRun.objects.create(
                kind=kind,
                lane=JOBS[kind].lane,
                benchmark=benchmark,
                about=about,
                requested_by=by,
                reason=reason,
                created_at=as_of,
            )
    except IntegrityError:
        raise AlreadyAsked from None
    wake()
    return run


# ---------------------------------------------------------------------------------------------- what they do


def _check(run: JobRun, as_of: datetime, progress: Progress) -> str:
    """`about` names the submission."""
    from leaderboard.operations.checking import conclude

    return conclude(uuid=UUID(run.about), as_of=as_of, check_claim=lambda: check_claim(run))


def _embargo(run: JobRun, as_of: datetime, progress: Progress) -> str:
    from leaderboard.operations.embargoes import end_due

    return end_due(benchmark=_benchmark(run), as_of=as_of)


def _reconcile(run: JobRun, as_of: datetime, progress: Progress) -> str:
    from leaderboard.operations.services import recompute

    board, is_new = recompute(
        benchmark=_benchmark(run), as_of=as_of, paced=True, check_claim=lambda: check_claim(run)
    )
    return f"published board {board.number}" if is_new else f"board {board.number} is up to date"


def _drift(run: JobRun, as_of: datetime, progress: Progress) -> str:
    """Runs that have arrived count before the monitors are asked."""
    from leaderboard.operations.drifting import look
    from leaderboard.operations.reruns import close_due

    messages = (close_due(as_of=as_of), look(benchmark=_benchmark(run), as_of=as_of))
    return "; ".join(filter(None, messages))


def _validate(run: JobRun, as_of: datetime, progress: Progress) -> str:
    from leaderboard.operations.services import validate

    study, is_new = validate(
        benchmark=_benchmark(run),
        as_of=as_of,
        n_jobs=os.cpu_count() or 1,
        progress=progress,
        check_claim=lambda: check_claim(run),
    )
    return _study_message(study.data_version, is_new)


def _variance(run: JobRun, as_of: datetime, progress: Progress) -> str:
    from leaderboard.operations.services import measure_variance

    study, is_new = measure_variance(
        benchmark=_benchmark(run), as_of=as_of, check_claim=lambda: check_claim(run)
    )
    return _study_message(study.data_version, is_new)


def _study_message(data_version: int, is_new: bool) -> str:
    return f"data version {data_version}" + ("" if is_new else " was studied before")


def _validation_runs(run: JobRun, as_of: datetime, progress: Progress) -> str:
    from leaderboard.operations.reruns import draw_validation_runs

    return draw_validation_runs(benchmark=_benchmark(run), as_of=as_of)


def _reselect(run: JobRun, as_of: datetime, progress: Progress) -> str:
    """`about` names the alert that asked, where it was one."""
    from leaderboard.operations.reselections import propose

    alert = Alert.objects.filter(pk=int(run.about.removeprefix(ALERT))).first() if run.about else None
    proposed = propose(
        benchmark=_benchmark(run),
        by=run.requested_by,
        reason=run.reason,
        as_of=as_of,
        alert=alert,
        progress=progress,
    )
    return f"proposed reselection {proposed.pk}"


def _replay(run: JobRun, as_of: datetime, progress: Progress) -> str:
    """`about` says which policy."""
    from leaderboard.operations.replays import replay_asked

    return replay_asked(run, _benchmark(run), progress)


def _deliver(run: JobRun, as_of: datetime, progress: Progress) -> str:
    from leaderboard.operations.webhooks import deliver_due

    return deliver_due(as_of=as_of)


def _housekeeping(run: JobRun, as_of: datetime, progress: Progress) -> str:
    from leaderboard.operations.assignments import expire_due
    from leaderboard.operations.housekeeping import clear

    return "; ".join(filter(None, (clear(as_of=as_of), expire_due(as_of=as_of))))


def _benchmark(run: JobRun) -> Benchmark:
    if run.benchmark is None:
        raise Missing(f"{run.kind} is run for one benchmark, and none is named.", code="no_such_job")
    return run.benchmark


ALERT = "alert "
JOBS = {
    job.kind: job
    for job in (
        Job("check", Lane.PROMPT, due.check, _check),
        Job("embargo", Lane.PROMPT, due.embargo, _embargo),
        Job("reconcile", Lane.PROMPT, due.reconcile, _reconcile),
        Job("drift", Lane.PROMPT, due.drift, _drift),
        Job("validation runs", Lane.PROMPT, due.validation_runs, _validation_runs),
        Job("deliver", Lane.PROMPT, due.deliver, _deliver),
        Job("housekeeping", Lane.PROMPT, due.housekeeping, _housekeeping),
        Job("reselect", Lane.LONG, due.when_asked, _reselect),
        Job("replay", Lane.LONG, due.when_asked, _replay),
        Job("validate", Lane.LONG, due.validate, _validate),
        Job("variance", Lane.LONG, due.variance, _variance),
    )
}
"""By kind, in the order in which a lane works them off."""
