"""One run of a job: here, or as one of the long lane in a process and session of its own, with low priority.

Its group holds loky's workers too, so that one signal ends all of it. A child whose scheduler was killed ends
itself.
"""

import ctypes
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections
from django.utils import timezone

from leaderboard.errors import Refusal
from leaderboard.operations import runs
from leaderboard.operations.jobs import JOBS
from leaderboard.operations.models import JobRun, JobStatus

LOOK_EVERY, BEAT_EVERY = 0.5, 1.0  # seconds
GRACE = 5.0  # seconds from SIGTERM to SIGKILL
PROMPT_NICENESS, LONG_NICENESS = 5, 10  # pages come first, then boards, then studies

logger = logging.getLogger(__name__)


def program(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "leaderboard.command", *arguments]


def environment() -> dict[str, str]:
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(settings.PACKAGE.parent)]))
    return os.environ | {"PYTHONPATH": path}


def perform_apart(run: JobRun, interrupted: Callable[[], bool]) -> None:
    """Run `run-job` to its end; end it when it is stuck, or the scheduler is to end."""
    command = program("run-job", str(run.pk), "--scheduler", str(os.getpid()))
    child = subprocess.Popen(command, env=environment(), start_new_session=True)
    why = ""
    try:
        while child.poll() is None and not why:
            why = "the scheduler ended" if interrupted() else runs.why_stuck(run, as_of=timezone.now())
            if not why:
                time.sleep(LOOK_EVERY)
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):  # to the child and what it started
            with suppress(ProcessLookupError):
                os.killpg(child.pid, number)
            with suppress(subprocess.TimeoutExpired):
                child.wait(GRACE)
                break
    if why:
        runs.abandon(run, why=why, as_of=timezone.now())
    else:  # says nothing where the child said it itself
        error = f"its process ended with {child.returncode}"
        runs.end(run, status=JobStatus.FAILED, error=error, as_of=timezone.now())


def give_way(niceness: int) -> None:
    """Take what processor time others leave, unless this process is as nice already.

    Linux shares time first among sessions (`man 7 sched`, autogroup), where the niceness of a process in a
    session of its own counts for nothing: the session has one too.
    """
    reached = os.nice(max(0, niceness - os.nice(0)))
    if os.getsid(0) == os.getpid():
        with suppress(OSError):  # not every kernel groups by sessions
            Path("/proc/self/autogroup").write_text(str(reached))


def end_with(parent: int) -> None:
    """End this process and what it started as soon as the parent is gone; it may be gone already."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_EVERY)
        os.killpg(0, signal.SIGTERM)
        time.sleep(GRACE)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


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
        if n_done == n_total or self.at - self._written_at >= BEAT_EVERY:
            runs.beat(self._run, n_done=n_done, n_total=n_total, as_of=timezone.now())
            self._written_at = self.at


def perform(run: JobRun, progress: Callable[[int, int], None]) -> None:
    """Do what the run is for, and say in its row how it ended; only the loss of the database is raised."""
    close_old_connections()
    about = {"job": run.kind, "run": run.pk, "benchmark": run.benchmark and run.benchmark.slug}
    try:
        with structlog.contextvars.bound_contextvars(**about):
            status, message = _run_job(run, progress)
            is_done, now = status == JobStatus.DONE, timezone.now()
            level = logging.WARNING if status == JobStatus.FAILED else logging.INFO
            logger.log(level, "%s: %s", run, message if is_done else f"{status}: {message}")
            if status == JobStatus.ABANDONED:
                runs.abandon(run, why=message, as_of=now)
            else:
                runs.end(run, status=status, as_of=now, **{"told" if is_done else "error": message})
    finally:
        close_old_connections()
        if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):  # glibc would keep the gaps that it left
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
