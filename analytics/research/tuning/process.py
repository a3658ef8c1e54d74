"""One run of the harness, as a process group that ends with its deadline, or with whoever comes next.

The request is JSON on standard input, the answer a file of JSON that the request names. Before the program
starts, its process writes who it is (number and start time) into a file; whoever finds that file later, after
a crash, ends the whole group first. What the program prints is kept as a log.

Limits: a process that leaves its group by a session of its own is not found again. Start times come from
/proc; where there is none, a group that was left behind is named and not ended.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from analytics.command_line import NO_SPACE
from analytics.errors import CoreError
from analytics.research.tuning.cells import AnswerRefused, RunCells, RunRequest, failed, read_answer
from analytics.research.tuning.space import Configuration
from analytics.research.tuning.study import HarnessStudy

CALLED = "analytics.research.tuning.called"
ROOM = 1 << 20  # bytes: a disk with less is full
MARK = re.compile(r"([1-9][0-9]{0,8}) ([0-9]*)\n?")


def run(
    study: HarnessStudy, configuration: Configuration, wanted: RunRequest, *, seed: int, place: Path
) -> RunCells:
    """Run the harness once; whatever it does, return cells.

    seed: for the harness to draw from.
    place: without suffix: of the answer (.json), the log (.log) and the mark of the process (.pid).
    Raises CoreError: when there is no such program: no trial could ever work.
    Raises CoreError: when the run failed and the disk is full: whether by itself nobody knows.
    """
    answer, mark = place.with_suffix(".json"), place.with_suffix(".pid")
    _removed(answer)
    request = {
        "configuration": dict(configuration),
        "models": list(wanted.models),
        "tasks": list(wanted.tasks),
        "first_run": wanted.first_run,
        "n_runs": len(wanted.runs),
        "seed": seed,
        "deadline": time.time() + study.deadline_seconds,
        "answer": str(answer),
    }
    try:
        why = _ended(study, json.dumps(request), place)
    finally:
        end_left_behind(mark)
    try:
        cells = failed(why, answer, wanted) if why else read_answer(answer, wanted)
    except AnswerRefused as refusal:
        cells = failed(str(refusal), answer, wanted)
    except OSError:
        cells = failed("the run left no answer", answer, wanted)
    is_full = bool(cells.failure) and _is_full(place.parent)  # asked before the answer goes, and frees some
    _removed(answer)
    if is_full:
        raise CoreError(
            f"no space is left in {place.parent} for the answer of a run: free some, and go on",
            code="no_space",
        )
    return cells


def _is_full(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(ROOM))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.errno in NO_SPACE
    return False


def _removed(answer: Path) -> None:
    """Remove what a run left in the place of its answer, a folder too."""
    if answer.is_dir() and not answer.is_symlink():
        shutil.rmtree(answer)
    else:
        answer.unlink(missing_ok=True)


def _ended(study: HarnessStudy, request: str, place: Path) -> str:
    """Start the program, feed it, wait for its end; return why its answer does not count, or nothing."""
    command = list(study.command) or [sys.executable, "-m", CALLED, study.called]
    mark = place.with_suffix(".pid")
    with place.with_suffix(".log").open("wb") as log:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=study.folder,
                env=os.environ | {"PYTHONPATH": _path()},
                start_new_session=True,
                preexec_fn=lambda: _marked(mark),
            )
        except OSError as error:
            raise CoreError(
                f"{command[0]} cannot be started: {error.strerror}", code="harness_not_started"
            ) from None
        except subprocess.SubprocessError:  # of what was to be done before it
            if _is_full(place.parent):
                raise CoreError(
                    f"no space is left in {place.parent}: free some, and go on", code="no_space"
                ) from None
            raise CoreError(f"{mark} cannot be written", code="harness_not_started") from None
        try:
            process.communicate(request.encode(), timeout=study.deadline_seconds)
        except subprocess.TimeoutExpired:
            return f"not done after {study.deadline_seconds:g} seconds"
        finally:
            _kill(process.pid)
            process.wait()
    if process.returncode < 0:
        return f"ended by signal {_signal(-process.returncode)}"
    return f"ended with code {process.returncode}" if process.returncode else ""


def _signal(number: int) -> str:
    """Name a signal; those for real time have a number alone."""
    names = {one.value: one.name for one in signal.Signals}
    return names.get(number, str(number))


def _path() -> str:
    """Say where our packages are, first: the program is started in the folder of the study."""
    there = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join(part for part in (str(Path(__file__).parents[3]), there) if part)


def _marked(mark: Path) -> None:
    """In the new process, before it becomes the program: write who it is."""
    number = os.getpid()
    descriptor = os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.write(descriptor, f"{number} {started_at(number)}\n".encode())
    os.fsync(descriptor)
    os.close(descriptor)


def started_at(number: int) -> str:
    """When a process started, as the kernel counts; empty where that is unknown or there is none."""
    try:
        status = Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return ""
    return status.rpartition(")")[2].split()[19]


def end_left_behind(mark: Path) -> None:
    """End the group that a mark names, if it is still that one, and remove the mark.

    Raises CoreError: where start times are unknown and a process of that number is there.
    """
    try:
        match = MARK.fullmatch(mark.read_text(encoding="ascii", errors="replace"))
    except OSError:
        return
    if match and _is_there(int(match[1])):
        number, start = match.groups()
        now = started_at(int(number))
        if not start:
            raise CoreError(
                f"process {number} may be a run of before: end it, then delete {mark}", code="left_behind"
            )
        if now in ("", start):  # a leader that is gone, or the same one
            _kill(int(number))
    mark.unlink(missing_ok=True)


def _is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _kill(group: int) -> None:
    """End every process of a group that is still there."""
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
