"""A run of the long lane: a process of its own, in a session of its own, with low priority.

Its group holds loky's workers too, so that one signal ends all of it. A child whose scheduler was killed ends
itself.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from django.conf import settings
from django.utils import timezone

from leaderboard.operations import runs
from leaderboard.operations.models import JobRun, JobStatus

LOOK_EVERY = 0.5
GRACE = 5.0  # seconds from SIGTERM to SIGKILL
PROMPT_NICENESS, LONG_NICENESS = 5, 10  # pages come first, then boards, then studies


def program(*arguments: str) -> list[str]:
    """The command line that runs a command as this process was run."""
    return [sys.executable, "-m", "leaderboard.command", *arguments]


def environment() -> dict[str, str]:
    """With the package findable from any folder."""
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(settings.PACKAGE.parent)]))
    return os.environ | {"PYTHONPATH": path}


def perform_apart(run: JobRun, interrupted: Callable[[], bool]) -> None:
    """Run `run-job` to its end; end it when it is stuck, or the scheduler is to end."""
    command = program("run-job", str(run.pk), "--scheduler", str(os.getpid()))
    child = subprocess.Popen(command, env=environment(), start_new_session=True)
    try:
        why = _wait_for(child, run, interrupted)
    finally:
        end_group(child)
    if why:
        runs.abandon(run, why=why, as_of=timezone.now())
    else:  # says nothing where the child said it itself
        error = f"its process ended with {child.returncode}"
        runs.end(run, status=JobStatus.FAILED, error=error, as_of=timezone.now())


def _wait_for(child: "subprocess.Popen[bytes]", run: JobRun, interrupted: Callable[[], bool]) -> str:
    """Wait for the child; return why it has to be ended, if it has."""
    while child.poll() is None:
        if interrupted():
            return "the scheduler ended"
        if why := runs.why_stuck(run, as_of=timezone.now()):
            return why
        time.sleep(LOOK_EVERY)
    return ""


def end_group(child: "subprocess.Popen[bytes]") -> None:
    """End the child and what it started; what has not gone by SIGTERM is killed."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with suppress(subprocess.TimeoutExpired):
            child.wait(GRACE)
            return


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
    threading.Thread(target=_watch, args=[parent], daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY)
    os.killpg(0, signal.SIGTERM)
    time.sleep(GRACE)
    os.killpg(0, signal.SIGKILL)
