"""The folder of a study: the plan, the journal of finished trials, and a file for each set of runs.

======================  ================================================================================
plan.json               what all stored runs rest on; another plan is another study
journal.log             Optuna's journal: every finished trial, a line each
runs/KEY.parquet        the cells of one set of runs; KEY: purpose, fingerprint, first and last run
runs/KEY.log            what the program printed
runs/KEY.pid            number and start time of a program that runs, or ran when somebody crashed
lock                    held while a search runs; who reads needs none
======================  ================================================================================

A trial stands in the journal once it is finished, and which configuration trial n tries follows from the
trials before it alone. So there is nothing to clear up after a crash at any line: the same trial is tried
again, and finds the runs that were stored.
"""

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from analytics.command_line import NO_SPACE
from analytics.errors import CoreError
from analytics.resampling import generator
from analytics.research.tuning.cells import (
    AnswerRefused,
    RunCells,
    RunRequest,
    failed,
    read_answer,
    stored_cells,
)
from analytics.research.tuning.space import Configuration, fingerprint
from analytics.research.tuning.study import HarnessStudy

ROOM = 1 << 20  # bytes: a disk with less is full
MARK = re.compile(r"([1-9][0-9]{0,8}) ([0-9]*)\n?")
# Runs a function as a harness: `package.module:function` is the argument.
CALL = """
import importlib, json, os, sys
from pathlib import Path

sys.path.insert(0, os.getcwd())
module, _, name = sys.argv[1].partition(":")
request = json.load(sys.stdin)
answer = getattr(importlib.import_module(module), name)(request)
Path(request["answer"]).write_text(json.dumps(answer), encoding="utf-8")
"""


class Store:
    """The stored runs and trials of a study, or of the search of an ablation; refuses another plan's."""

    def __init__(self, study: HarnessStudy, search: str = "") -> None:
        self.study = study
        self.search = search
        self.runs = study.store / "runs"
        self._check_plan()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the folder, alone: plan it where it is new, and end what a crash left behind."""
        self.runs.mkdir(parents=True, exist_ok=True)
        with (self.study.store / "lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise CoreError(f"another process works in {self.study.store}", code="store") from None
            for mark in sorted(self.runs.glob("*.pid")):
                end_left_behind(mark)
            self._check_plan()
            plan, journal = self.study.store / "plan.json", self.journal
            if not plan.exists():
                partial = plan.with_suffix(".partial")
                partial.write_text(json.dumps(self.study.plan, indent=1), encoding="utf-8")
                partial.replace(plan)
            # drop half a line at the journal's end, and Optuna's stale lock
            Path(f"{journal}.lock").unlink(missing_ok=True)
            if journal.exists() and (content := journal.read_bytes()) and not content.endswith(b"\n"):
                os.truncate(journal, content.rfind(b"\n") + 1)
            yield

    def _check_plan(self) -> None:
        path = self.study.store / "plan.json"
        if path.exists():
            try:
                plan = json.loads(path.read_text(encoding="utf-8"))
            except (ValueError, RecursionError) as error:
                raise CoreError(f"{path} is damaged ({error}): name another store", code="store") from None
            if not isinstance(plan, dict):
                raise CoreError(f"{path} is damaged (no object): name another store", code="store")
            now = json.loads(json.dumps(self.study.plan))
            if odd := sorted(name for name in now if plan.get(name) != now[name]):
                why = f"holds runs of another plan ({', '.join(odd)} differ): name another store"
                raise CoreError(f"{self.study.store} {why}", code="store")

    @property
    def journal(self) -> Path:
        """Where Optuna's journal is."""
        return self.study.store / f"journal{'-' if self.search else ''}{self.search}.log"

    def trials(self) -> list[Any]:
        """Return the finished trials, Optuna's `FrozenTrial`, in order; refuse a damaged journal."""
        if not self.journal.exists():
            return []
        try:
            stored: list[Any] = self._optuna().trials
            if not all("figures" in one.user_attrs and one.state.is_finished() for one in stored):
                raise ValueError("a trial has no figures")
        except (AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
            why = f"{self.journal} is damaged ({type(error).__name__}: {error})"
            raise CoreError(
                f"{why}: delete it, and the same trials are made of the stored runs", code="store"
            ) from None
        return stored

    def add(self, trial: Any) -> None:
        """Append a finished trial: one line, on the disk when this returns."""
        self._optuna().add_trial(trial)

    def _optuna(self) -> Any:
        import optuna
        from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        path = str(self.journal)
        backend = JournalFileBackend(path, JournalFileOpenLock(path))
        storage = optuna.storages.JournalStorage(backend)
        directions: list[Literal["maximize"]] = ["maximize"] * (4 if self.study.search.has_front else 1)
        return optuna.create_study(
            storage=storage, study_name=self.study.name, directions=directions, load_if_exists=True
        )

    def stored(self, configuration: Configuration, request: RunRequest, purpose: str) -> RunCells | None:
        """Return runs that are there already."""
        path = self._place(configuration, request, purpose).with_suffix(".parquet")
        return stored_cells(path, request) if path.exists() else None

    def cells(self, configuration: Configuration, request: RunRequest, purpose: str) -> RunCells:
        """Read or run what is asked for; ``full`` never takes the runs that a ``search`` chose by."""
        if stored := self.stored(configuration, request, purpose):
            return stored
        place = self._place(configuration, request, purpose)
        seed = generator(self.study.seed, f"harness {place.name}").integers(2**31)
        stored = run_harness(self.study, configuration, request, seed=int(seed), place=place)
        stored.saved(place.with_suffix(".parquet"))
        return stored

    def _place(self, configuration: Configuration, request: RunRequest, purpose: str) -> Path:
        key = f"{purpose}-{fingerprint(configuration)}-{request.first_run}-{request.last_run}"
        return self.runs / key

    def cost_usd(self) -> float:
        """All that was paid for stored runs, US dollars."""
        return float(sum(stored_cells(path).cost_usd for path in sorted(self.runs.glob("*.parquet"))))


def run_harness(
    study: HarnessStudy, configuration: Configuration, wanted: RunRequest, *, seed: int, place: Path
) -> RunCells:
    """Run the harness once, as a process group that ends with its deadline, or with whoever comes next.

    The request is JSON on standard input, the answer a file of JSON that it names. What the program prints is
    kept as a log. Whatever it does, cells are returned.

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
    if answer.is_dir() and not answer.is_symlink():
        shutil.rmtree(answer)
    else:
        answer.unlink(missing_ok=True)


def _ended(study: HarnessStudy, request: str, place: Path) -> str:
    """Start the program, feed it, wait for its end; return why its answer does not count, or nothing."""
    command = list(study.command) or [sys.executable, "-c", CALL, study.called]
    mark = place.with_suffix(".pid")
    # The program is started in the folder of the study; our packages are found first.
    paths = str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")

    def write_mark() -> None:
        """In the new process, before it becomes the program: write who it is."""
        number = os.getpid()
        descriptor = os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(descriptor, f"{number} {started_at(number)}\n".encode())
        os.fsync(descriptor)
        os.close(descriptor)

    with place.with_suffix(".log").open("wb") as log:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=study.folder,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
                start_new_session=True,
                preexec_fn=write_mark,
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
        names = {one.value: one.name for one in signal.Signals}  # those for real time have a number alone
        return f"ended by signal {names.get(-process.returncode, -process.returncode)}"
    return f"ended with code {process.returncode}" if process.returncode else ""


def started_at(number: int) -> str:
    """When a process started, as the kernel counts; empty where that is unknown or there is none."""
    try:
        status = Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return ""
    return status.rpartition(")")[2].split()[19]


def end_left_behind(mark: Path) -> None:
    """End the group that a mark names, if it is still that one, and remove the mark.

    A process that left its group by a session of its own is not found again.

    Raises CoreError: where start times are unknown and a process of that number is there.
    """
    try:
        match = MARK.fullmatch(mark.read_text(encoding="ascii", errors="replace"))
    except OSError:
        return
    if match and _kill(int(match[1]), 0):
        number, start = match.groups()
        if not start:
            raise CoreError(
                f"process {number} may be a run of before: end it, then delete {mark}", code="left_behind"
            )
        if started_at(int(number)) in ("", start):  # a leader that is gone, or the same one
            _kill(int(number))
    mark.unlink(missing_ok=True)


def _kill(group: int, number: int = signal.SIGKILL) -> bool:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
