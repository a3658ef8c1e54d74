"""The folder of a study: the plan, the journal of finished trials, and a file for each set of runs.

======================  ================================================================================
file                    holds
======================  ================================================================================
plan.json               what all stored runs rest on; another plan is another study
journal.log             Optuna's journal: every finished trial, a line each
runs/KEY.parquet        the cells of one set of runs; KEY: purpose, fingerprint, first and last run
runs/KEY.log            what the program printed
lock                    held while a search runs; who reads needs none
======================  ================================================================================

A trial stands in the journal once it is finished, and which configuration trial n tries follows from the
trials before it alone. So there is nothing to clear up after a crash at any line: the same trial is tried
again, and finds the runs that were stored.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from analytics.errors import CoreError
from analytics.resampling import generator
from analytics.research.tuning.cells import RunCells, RunRequest, stored_cells
from analytics.research.tuning.process import end_left_behind, run
from analytics.research.tuning.space import Configuration, fingerprint
from analytics.research.tuning.study import HarnessStudy


class Store:
    """The stored runs and trials of a study.

    search: which search's trials: that of the study, or one of an ablation.
    Raises CoreError: when the folder holds runs of another plan.
    """

    def __init__(self, study: HarnessStudy, search: str = "") -> None:
        self.study = study
        self.search = search
        self.runs = study.store / "runs"
        self._check_plan()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the folder: plan it where it is new, and end what a crash left behind.

        Raises CoreError: when another process holds it.
        """
        self.runs.mkdir(parents=True, exist_ok=True)
        with (self.study.store / "lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise CoreError(f"another process works in {self.study.store}", code="store") from None
            for mark in sorted(self.runs.glob("*.pid")):
                end_left_behind(mark)
            self._check_plan()
            self._mend()
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
            there = plan
            now = json.loads(json.dumps(self.study.plan))
            if odd := sorted(name for name in now if there.get(name) != now[name]):
                why = f"holds runs of another plan ({', '.join(odd)} differ): name another store"
                raise CoreError(f"{self.study.store} {why}", code="store")

    def _mend(self) -> None:
        """Write the plan of a new folder; drop half a line at the journal's end, and Optuna's stale lock."""
        plan, journal = self.study.store / "plan.json", self.journal
        if not plan.exists():
            partial = plan.with_suffix(".partial")
            partial.write_text(json.dumps(self.study.plan, indent=1), encoding="utf-8")
            partial.replace(plan)
        Path(f"{journal}.lock").unlink(missing_ok=True)
        if journal.exists() and (content := journal.read_bytes()) and not content.endswith(b"\n"):
            os.truncate(journal, content.rfind(b"\n") + 1)

    @property
    def journal(self) -> Path:
        """Where Optuna's journal is."""
        return self.study.store / f"journal{'-' if self.search else ''}{self.search}.log"

    def trials(self) -> list[Any]:
        """Return the finished trials, Optuna's `FrozenTrial`, in order; empty before the first.

        Raises CoreError: when the journal is damaged.
        """
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
        """Return what was asked for: read where it is stored, run and stored where not.

        purpose: ``search`` or ``full``: a full evaluation never takes the runs that a search chose by.
        """
        if stored := self.stored(configuration, request, purpose):
            return stored
        place = self._place(configuration, request, purpose)
        seed = generator(self.study.seed, f"harness {place.name}").integers(2**31)
        stored = run(self.study, configuration, request, seed=int(seed), place=place)
        stored.saved(place.with_suffix(".parquet"))
        return stored

    def _place(self, configuration: Configuration, request: RunRequest, purpose: str) -> Path:
        key = f"{purpose}-{fingerprint(configuration)}-{request.first_run}-{request.last_run}"
        return self.runs / key

    def cost_usd(self) -> float:
        """All that was paid for stored runs, US dollars."""
        return float(sum(stored_cells(path).cost_usd for path in sorted(self.runs.glob("*.parquet"))))
