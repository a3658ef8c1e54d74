"""What a flat file without fault holds: names in order, and one array for each column."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from analytics.flat_file import averaged
from analytics.flat_file.across import Checks, Codes, Places, combined, first_places
from analytics.flat_file.columns import LABELS, MEASURED, NAMED, SETTING
from analytics.flat_file.faults import Fault, FlatFileError, quoted, refuse
from analytics.flat_file.table import Table

N_LISTED = 5


class RunSetting(NamedTuple):
    """What a trial was run under; None where the file does not say."""

    prompt_variant: str | None
    judge: str | None
    temperature: float | None
    run: str | None


@dataclass(frozen=True, eq=False)
class FlatFile:
    """The rows of a flat file, in the file's order, none of them at fault.

    agents, scaffolds, models: (n_agents,) each; aligned; in ascending code point order of the agents' names.
    tasks: (n_tasks,); in ascending code point order.
    categories, groups: (n_tasks,) each; of `tasks`; None where no row says.
    settings: (n_settings,); in ascending order, None before any value.
    agent, task, setting: (n_rows,) each; indices into `agents`, `tasks` and `settings`.
    trial: (n_rows,).
    outcome: (n_rows,); from 0 to 1; NaN only where `valid` is false and the field is empty.
    valid: (n_rows,); False for a failure of the harness.
    submitted_at: (n_rows,); UTC; NaT where empty.
    imprecise: (n_rows,); True where only a month or a year is given, or nothing.
    measured: (n_rows,) each; cost, tokens and seconds, as far as the file has the columns; NaN where empty.
    labels: (n_rows,) each; `human` and `human_probability`, as far as the file has the columns; NaN where
        empty.
    metadata: (n_rows,) each; all other columns, and those of `labels` as text; null where empty.
    aliases: alias seen → the column it is taken for.
    """

    benchmark: str
    agents: tuple[str, ...]
    scaffolds: tuple[str, ...]
    models: tuple[str, ...]
    tasks: tuple[str, ...]
    categories: tuple[str | None, ...]
    groups: tuple[str | None, ...]
    settings: tuple[RunSetting, ...]
    agent: npt.NDArray[np.int32]
    task: npt.NDArray[np.int32]
    setting: npt.NDArray[np.int32]
    trial: npt.NDArray[np.int16]
    outcome: npt.NDArray[np.float64]
    valid: npt.NDArray[np.bool_]
    submitted_at: npt.NDArray[np.datetime64]
    imprecise: npt.NDArray[np.bool_]
    measured: dict[str, npt.NDArray[np.float64]]
    labels: dict[str, npt.NDArray[np.float64]]
    metadata: dict[str, Any]
    aliases: dict[str, str]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.trial)


def contents(table: Table) -> FlatFile:
    """Check what only all rows together show, and hand out the columns in their final order.

    Raises FlatFileError: if any row, or the file as a whole, is at fault.
    """
    _check_one_benchmark(table)
    table.close()
    columns = _columns(table)
    source = _expand(table, columns)
    columns["setting"] = _setting_codes(
        [*(columns[name] for name in SETTING if name != "temperature"), _temperature_codes(columns)]
    )
    Checks(table, columns, columns["rows"]).run(columns["doubtful"])
    table.faults.raise_if_any()
    table.limits.check_settings(int(columns["setting"].max(initial=-1)) + 1)
    if not len(columns["rows"]):
        raise refuse("there are no rows")
    return _filled(table, columns, source)


def _check_one_benchmark(table: Table) -> None:
    """Refuse several benchmarks, whatever else is wrong with the file, or none that is the one asked for."""
    names = sorted(table.names["benchmark"].code)
    if "benchmark" in table.fixed:
        return  # rows of another one contradict it
    if len(names) > 1 and table.only is None:
        rule = (
            f"the file holds {len(names):,} benchmarks ({_listed(names)}), and one is read at a time:"
            f" --only {quoted(names[0])} reads the first"
        )
    elif names and table.only not in (None, *names):
        rule = f"no row is of benchmark {quoted(table.only or '')}; the file holds {_listed(names)}"
    else:
        return
    raise FlatFileError((Fault(None, "benchmark", None, rule),))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - N_LISTED:,} more" if len(names) > N_LISTED else ""
    return ", ".join(map(quoted, names[:N_LISTED])) + more


def _columns(table: Table) -> dict[str, npt.NDArray[Any]]:
    names = (name for name in (*LABELS, *MEASURED) if name in table.seen)
    always = (*NAMED, "trial", "outcome", "valid", "submitted_at", "temperature", "n_averaged")
    columns = {name: table.whole(name) for name in (*always, *names)}
    return columns | {"rows": table.rows.whole(table.n), "doubtful": table.doubtful.whole(table.n)}


def _expand(table: Table, columns: dict[str, npt.NDArray[Any]]) -> Places | None:
    """Put trials where a row is the mean of several; give the row that each comes from, None where none is.

    Raises FlatFileError: if there are then too many.
    """
    n_runs = columns.pop("n_averaged")
    if not (n_runs > 1).any():
        return None
    bad = averaged.n_passed(columns["outcome"], n_runs)[1] & (n_runs > 1)
    averaged.tell(table.faults, columns["rows"], columns["outcome"], n_runs, np.flatnonzero(bad))
    table.limits.check_rows(int(n_runs.sum()))
    source, trial, outcome = averaged.expanded(columns["trial"], columns["outcome"], n_runs)
    for name, values in columns.items():
        columns[name] = values[source]
    columns |= {"trial": trial, "outcome": outcome}
    return source


def _filled(table: Table, columns: dict[str, npt.NDArray[Any]], source: Places | None) -> FlatFile:
    agents, agent = _sorted(list(table.names["agent"].code), columns["agent"])
    tasks, task = _sorted(list(table.names["task"].code), columns["task"])
    settings, setting = _sorted_settings(table, columns)
    metadata = table.metadata()
    return FlatFile(
        benchmark=table.only or next(iter(table.names["benchmark"].code)),
        agents=agents,
        scaffolds=tuple(name or "" for name in _of_owner(table, columns, "scaffold", agent, len(agents))),
        models=tuple(name or "" for name in _of_owner(table, columns, "model", agent, len(agents))),
        tasks=tasks,
        categories=_of_owner(table, columns, "category", task, len(tasks)),
        groups=_of_owner(table, columns, "group", task, len(tasks)),
        settings=settings,
        agent=agent,
        task=task,
        setting=setting,
        trial=columns["trial"].astype(np.int16, copy=False),
        outcome=columns["outcome"],
        valid=np.array(columns["valid"]),
        submitted_at=columns["submitted_at"]["at"].copy(),
        imprecise=columns["submitted_at"]["imprecise"].copy(),
        measured={name: columns[name] for name in MEASURED if name in columns},
        labels={name: columns[name] for name in LABELS if name in columns},
        metadata=metadata
        if source is None
        else {name: texts.take(source) for name, texts in metadata.items()},
        aliases=dict(table.aliases),
    )


def _sorted(names: Sequence[str], codes: Codes) -> tuple[tuple[str, ...], Codes]:
    order = sorted(range(len(names)), key=names.__getitem__)
    return tuple(names[code] for code in order), _renumbered(order, codes)


def _renumbered(order: Sequence[int], codes: Codes) -> Codes:
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank[codes]


def _of_owner(
    table: Table, codes: dict[str, Codes], column: str, owner: Codes, n_owners: int
) -> tuple[str | None, ...]:
    """Give the one name in `column` that each owner's rows hold, or None where they hold none."""
    names = list(table.names[column].code)
    first = first_places(np.where(codes[column] >= 0, owner, -1), n_owners)
    return tuple(names[codes[column][place]] if place >= 0 else None for place in first)


def _temperature_codes(columns: dict[str, npt.NDArray[Any]]) -> Codes:
    temperature = columns["temperature"]
    if np.isnan(temperature).all():
        return np.full(len(temperature), -1, np.int32)
    codes = np.unique(temperature, return_inverse=True)[1]
    return np.where(np.isnan(temperature), -1, codes).astype(np.int32)


def _setting_codes(columns: Sequence[Codes]) -> Codes:
    varied = [codes for codes in columns if len(codes) and (codes >= 0).any()]
    if not varied:
        return np.zeros(len(columns[0]), np.int32)
    return np.unique(combined(varied), return_inverse=True)[1].astype(np.int32)


def _sorted_settings(
    table: Table, columns: dict[str, npt.NDArray[Any]]
) -> tuple[tuple[RunSetting, ...], Codes]:
    setting = columns["setting"]
    places = first_places(setting, int(setting.max()) + 1)

    def names(column: str) -> list[str | None]:
        spelled = [*table.names[column].code, None]  # code −1 finds the None
        return [spelled[code] for code in columns[column][places]]

    heats = [None if np.isnan(heat) else float(heat) for heat in columns["temperature"][places]]
    parts = zip(names("prompt_variant"), names("judge"), heats, names("run"), strict=True)
    settings = [RunSetting(*setting_parts) for setting_parts in parts]
    order = sorted(
        range(len(settings)),
        key=lambda code: [(value is not None, "" if value is None else value) for value in settings[code]],
    )
    return tuple(settings[code] for code in order), _renumbered(order, setting)
