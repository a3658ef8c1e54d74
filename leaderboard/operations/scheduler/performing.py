"""One run of a job, from its claim to how it ended."""

import ctypes
import logging
import time
from collections.abc import Callable

import structlog
from django.db import InterfaceError, OperationalError, close_old_connections
from django.utils import timezone

from leaderboard.errors import Refusal
from leaderboard.operations import runs
from leaderboard.operations.jobs import JOBS
from leaderboard.operations.models import JobRun, JobStatus

BEAT_EVERY = 1.0  # seconds

logger = logging.getLogger(__name__)


class Interrupted(RuntimeError):
    """The scheduler ended."""


class Pulse:
    """The progress callback of a run: writes how far it is, and ends it when it is to end."""

    def __init__(self, run: JobRun, interrupted: Callable[[], bool]) -> None:
        self._run, self._interrupted = run, interrupted
        self.at = time.monotonic()
        self._written_at = float("-inf")

    def __call__(self, n_done: int, n_total: int) -> None:
        if self._interrupted():
            raise Interrupted
        self.at = time.monotonic()
        if self.at - self._written_at >= BEAT_EVERY:
            runs.beat(self._run, n_done=n_done, n_total=n_total, as_of=timezone.now())
            self._written_at = self.at


def perform(run: JobRun, progress: Callable[[int, int], None]) -> None:
    """Do what the run is for, and say in its row how it ended; only the loss of the database is raised.

    What it took of memory goes back: glibc would keep the gaps that it leaves.
    """
    close_old_connections()
    about = {"job": run.kind, "run": run.pk, "benchmark": run.benchmark and run.benchmark.slug}
    try:
        with structlog.contextvars.bound_contextvars(**about):
            _end(run, *_run_job(run, progress))
    finally:
        close_old_connections()
        trim_heap()


def trim_heap() -> None:
    """Return to the system what the C library holds and nobody uses."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # not in every C library
        trim(0)


def _run_job(run: JobRun, progress: Callable[[int, int], None]) -> tuple[JobStatus, str]:
    try:
        return JobStatus.DONE, JOBS[run.kind].run(run, timezone.now(), progress)
    except (Interrupted, runs.ClaimLost) as left:
        return JobStatus.ABANDONED, type(left).__doc__ or ""
    except Refusal as refusal:
        return JobStatus.FAILED, str(refusal)
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        logger.exception("%s failed", run)
        return JobStatus.FAILED, f"{type(error).__name__}: {error}"


def _end(run: JobRun, status: JobStatus, message: str) -> None:
    level = logging.WARNING if status == JobStatus.FAILED else logging.INFO
    logger.log(level, "%s: %s", run, message if status == JobStatus.DONE else f"{status}: {message}")
    if status == JobStatus.ABANDONED:
        runs.abandon(run, why=message, as_of=timezone.now())
    else:
        where = "told" if status == JobStatus.DONE else "error"
        runs.end(run, status=status, as_of=timezone.now(), **{where: message})
