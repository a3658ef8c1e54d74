"""The study file (TOML): what may vary, on which models and tasks, what runs it, and for how much.

Every fault is a refusal that names the place and the rule; docs/tuning.md has an example. Paths are relative
to the file.
"""

import math
import stat
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from analytics.errors import CoreError
from analytics.harness import MANDATORY_METADATA
from analytics.resampling import generator
from analytics.research.tuning.cells import MAX_CELLS
from analytics.research.tuning.space import (
    MAX_INTEGER,
    Configuration,
    SpaceParameter,
    SpaceRefused,
    checked,
    is_number,
    parameter,
    shortened,
)
from analytics.text import named

Sampler = Literal["tpe", "random", "nsga2"]
SAMPLERS: tuple[Sampler, ...] = ("tpe", "random", "nsga2")
MIN_RUNS = 2  # that tell reliability
MAX_BYTES = 16 << 20  # of a study file, and of a list of tasks
MAX_SECONDS = 2_000_000.0  # 23 days; the kernel waits for 24 at most
MAX_MESSAGE = 400  # characters of a refusal
MANDATORY_TEXTS = tuple(name for name in MANDATORY_METADATA if name != "task count")
TOP = (
    *("name", "seed", "command", "callable", "deadline_seconds", "models", "tasks", "store", "space"),
    *("baseline", "search", "full", "budget", "metadata", "tau_min"),
)


@dataclass(frozen=True)
class Search:
    """How configurations are looked for.

    sampler: {"tpe", "random", "nsga2"}: ``nsga2`` looks for the front of R, D, C and cost, the others for the
        largest F.
    fraction: of the tasks, one stratified subsample for all trials; over 0, at most 1.
    n_runs: of each task in a trial, at least 2: with one there is no R.
    hyperband: fewest and most runs and the factor between rungs; `n_runs` is the most then.
    patience: trials without a gain after which the search ends.
    """

    sampler: Sampler = "tpe"
    n_trials: int = 50
    fraction: float = 0.3
    n_runs: int = 3
    hyperband: tuple[int, int, int] | None = None
    patience: int = 10

    @property
    def rungs(self) -> tuple[int, ...]:
        """Runs after which a trial is looked at, the last one in full."""
        if self.hyperband is None:
            return (self.n_runs,)
        fewest, most, factor = self.hyperband
        steps = [fewest * factor**i for i in range(int(math.log(most / fewest, factor) + 1e-9) + 1)]
        return tuple(sorted({*steps, most}))

    @property
    def has_front(self) -> bool:
        """Whether several objectives are looked at side by side."""
        return self.sampler == "nsga2"


@dataclass(frozen=True)
class HarnessStudy:
    """A study file that was read and found sound.

    strata: tasks by stratum; one without a name where the file has none.
    baseline: h₀.
    full_runs: of each task in a full evaluation.
    usd: what the study may cost; None: no limit.
    usd_per_evaluation: what a configuration's full run of all models and tasks may cost.
    tau_min: fewest ScorerAUC of a configuration that changes what is measured.
    """

    name: str
    seed: int
    command: tuple[str, ...]
    called: str
    deadline_seconds: float
    models: tuple[str, ...]
    strata: Mapping[str, tuple[str, ...]]
    folder: Path
    store: Path
    space: Mapping[str, SpaceParameter]
    baseline: Configuration
    search: Search
    full_runs: int
    usd: float | None
    usd_per_evaluation: float | None
    metadata: Mapping[str, str]
    tau_min: float

    @property
    def tasks(self) -> tuple[str, ...]:
        """All of them, in ascending order of name."""
        return tuple(sorted(task for tasks in self.strata.values() for task in tasks))

    @property
    def subsample(self) -> tuple[str, ...]:
        """The tasks of every trial: from each stratum its share, at least one, drawn once by the seed."""
        drawn: list[str] = []
        for name in sorted(self.strata):
            tasks = sorted(self.strata[name])
            n = min(len(tasks), max(1, round(self.search.fraction * len(tasks))))
            places = generator(self.seed, f"subsample {name}").choice(len(tasks), n, replace=False)
            drawn += [tasks[place] for place in np.sort(places).tolist()]
        return tuple(sorted(drawn))

    @property
    def plan(self) -> dict[str, Any]:
        """What stored runs rest on: a study whose plan differs is another study."""
        return {
            "models": list(self.models),
            "tasks": {name: list(tasks) for name, tasks in sorted(self.strata.items())},
            "space": {name: asdict(one) for name, one in self.space.items()},
            "baseline": dict(self.baseline),
            "seed": self.seed,
            "sampler": self.search.sampler,
            "fraction": self.search.fraction,
            "n_runs": self.search.n_runs,
            "hyperband": self.search.hyperband,
            "full_runs": self.full_runs,
            "command": list(self.command),
            "callable": self.called,
            "usd_per_evaluation": self.usd_per_evaluation,
        }


def read_study(path: Path) -> HarnessStudy:
    """Read and check a study file."""
    try:
        table = tomllib.loads(_content(path))
    except (ValueError, RecursionError, MemoryError) as error:  # no UTF-8, a number of thousands of digits, …
        raise CoreError(f"{path.name} is no TOML: {_short(error)}", code="study") from None
    except _Fault as fault:
        raise CoreError(f"{path.name}: {fault}", code="study") from None
    try:
        return _study(table, path)
    except (SpaceRefused, _Fault) as fault:
        raise CoreError(f"{path.name}: {_short(fault)}", code="study") from None


def _content(path: Path) -> str:
    there = path.stat()
    if not (stat.S_ISREG(there.st_mode) or stat.S_ISDIR(there.st_mode)):
        raise _Fault(f"{path.name} is no file")
    if there.st_size > MAX_BYTES:
        raise _Fault(f"{path.name} is larger than {MAX_BYTES >> 20} MiB")
    return path.read_text(encoding="utf-8-sig")


def _short(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}…"


class _Fault(Exception):
    """A place of the file, and the rule that it breaks."""


def _study(table: Mapping[str, Any], path: Path) -> HarnessStudy:
    _known("", table, TOP)
    tables = _table("space", table.get("space"))
    space = {name: parameter(name, _table(f"space.{name}", one)) for name, one in tables.items()}
    if not space:
        raise _Fault("space: a table for each parameter, at least one")
    search = _search(_table("search", table.get("search", {})))
    budget = _table("budget", table.get("budget", {}))
    _known("budget", budget, ("usd", "usd_per_evaluation"))
    full = _table("full", table.get("full", {}))
    _known("full", full, ("n_runs",))
    folder = path.resolve().parent
    command, called = _what_runs(table)
    models, strata = _names("models", table.get("models"), least=2), _strata(table.get("tasks"), folder)
    full_runs = _whole("full.n_runs", full.get("n_runs", 5), least=MIN_RUNS)
    n_places = len(models) * sum(map(len, strata.values()))
    for where, n_runs in (("full.n_runs", full_runs), ("search.n_runs", search.n_runs)):
        if n_places * n_runs > MAX_CELLS:
            rule = f"models × tasks × runs are at most {MAX_CELLS:,}, not {n_places * n_runs:,}"
            raise _Fault(f"{where}: {rule}")
    return HarnessStudy(
        name=_text("name", table.get("name")),
        seed=_whole("seed", table.get("seed", 0), least=0),
        command=command,
        called=called,
        deadline_seconds=_number(
            "deadline_seconds", table.get("deadline_seconds"), above=0.0, most=MAX_SECONDS
        ),
        models=models,
        strata=strata,
        folder=folder,
        store=folder / _text("store", table.get("store", f"{path.stem}.tuning")),
        space=space,
        baseline=checked(space, _table("baseline", table.get("baseline")), "baseline"),
        search=search,
        full_runs=full_runs,
        usd=_optional("budget.usd", budget.get("usd")),
        usd_per_evaluation=_optional("budget.usd_per_evaluation", budget.get("usd_per_evaluation")),
        metadata=_metadata(_table("metadata", table.get("metadata", {}))),
        tau_min=_number("tau_min", table.get("tau_min", 0.9), above=0.0),
    )


def _search(table: Mapping[str, Any]) -> Search:
    _known("search", table, ("sampler", "n_trials", "fraction", "n_runs", "hyperband", "patience"))
    sampler = table.get("sampler", "tpe")
    if sampler not in SAMPLERS:
        raise _Fault(f"search.sampler: {shortened(sampler)} is none of {', '.join(SAMPLERS)}")
    hyperband: tuple[int, int, int] | None = None
    if table.get("hyperband") is not None:
        rungs = _table("search.hyperband", table["hyperband"])
        _known("search.hyperband", rungs, ("min", "max", "factor"))
        fewest = _whole("search.hyperband.min", rungs.get("min", 3), least=MIN_RUNS)
        most = _whole("search.hyperband.max", rungs.get("max", 9), least=fewest + 1)
        hyperband = fewest, most, _whole("search.hyperband.factor", rungs.get("factor", 3), least=2)
    if hyperband and sampler == "nsga2":
        raise _Fault("search.hyperband: a front of several figures has no order to stop trials by")
    fraction = _number("search.fraction", table.get("fraction", 0.3), above=0.0, most=1.0)
    n_runs = hyperband[1] if hyperband else table.get("n_runs", 3)
    return Search(
        sampler=sampler,
        n_trials=_whole("search.n_trials", table.get("n_trials", 50), least=1),
        fraction=fraction,
        n_runs=_whole("search.n_runs", n_runs, least=MIN_RUNS),
        hyperband=hyperband,
        patience=_whole("search.patience", table.get("patience", 10), least=1),
    )


def _what_runs(table: Mapping[str, Any]) -> tuple[tuple[str, ...], str]:
    command, called = table.get("command"), table.get("callable", "")
    if (command is None) == (called == ""):
        raise _Fault("command, callable: one of them says what runs the harness")
    if command is None:
        if not isinstance(called, str) or called.count(":") != 1:
            raise _Fault("callable: package.module:function")
        return (), called
    if not isinstance(command, list) or not command or not all(isinstance(one, str) for one in command):
        raise _Fault("command: a list of texts, the program first")
    if not command[0] or any("\0" in one for one in command):
        raise _Fault("command: the program has a name, and no text holds a NUL")
    return tuple(command), ""


def _strata(value: Any, folder: Path) -> Mapping[str, tuple[str, ...]]:
    if isinstance(value, str):
        try:
            lines = _content(folder / _text("tasks", value)).splitlines()
        except UnicodeDecodeError:
            raise _Fault(f"tasks: {value} is no text in UTF-8") from None
        except _Fault as fault:
            raise _Fault(f"tasks: {fault}") from None
        value = [line.strip() for line in lines if line.strip()]
    strata = value if isinstance(value, dict) else {"": value}
    names_of = {name: _names(f"tasks.{name}" if name else "tasks", one) for name, one in strata.items()}
    names = Counter(task for tasks in names_of.values() for task in tasks)
    if repeated := sorted(name for name, n in names.items() if n > 1):
        raise _Fault(f"tasks: {named(repeated[0])} stands in two strata")
    if len(names) < 2:
        raise _Fault("tasks: at least two")
    return names_of


def _metadata(table: Mapping[str, Any]) -> Mapping[str, str]:
    for name in MANDATORY_TEXTS:
        if not isinstance(table.get(name), str) or not table[name].strip():
            raise _Fault(f"metadata.{name!r}: has to be stated; nobody could repeat the study without it")
    return {name: _text(f"metadata.{name}", value) for name, value in table.items()}


def _known(where: str, table: Mapping[str, Any], names: tuple[str, ...]) -> None:
    if odd := sorted(set(table) - set(names)):
        raise _Fault(f"{where}{'.' if where else ''}{odd[0]}: known are {', '.join(names)}")


def _table(where: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _Fault(f"{where}: a table")
    return value


def _text(where: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise _Fault(f"{where}: a text of printable characters, not empty")
    return value


def _names(where: str, value: Any, *, least: int = 1) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) < least or not all(isinstance(one, str) for one in value):
        raise _Fault(f"{where}: a list of at least {least} names")
    if len(set(value)) < len(value):
        raise _Fault(f"{where}: a name stands twice")
    return tuple(sorted(_text(where, one) for one in value))


def _whole(where: str, value: Any, *, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_INTEGER:
        raise _Fault(f"{where}: {shortened(value)} is no whole number of at least {least}")
    return value


def _number(where: str, value: Any, *, above: float, most: float = math.inf) -> float:
    if not is_number(value) or value <= above:
        raise _Fault(f"{where}: {shortened(value)} is no number above {above:g}")
    if value > most:
        raise _Fault(f"{where}: at most {most:,.12g}")
    return float(value)


def _optional(where: str, value: Any) -> float | None:
    return None if value is None else _number(where, value, above=0.0)
