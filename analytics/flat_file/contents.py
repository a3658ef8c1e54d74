"""What a flat file without fault holds: names in order, and one array for each column."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from analytics.flat_file.across import Checks, Codes, Places, combined, first_places
from analytics.flat_file.columns import MEASURED, NAMED, SETTING
from analytics.flat_file.faults import refuse
from analytics.flat_file.table import Table


class Setting(NamedTuple):
    """What a trial was run under; None where the file does not say."""

    prompt_variant: str | None
    judge: str | None
    temperature: float | None
    run: str | None


@dataclass(frozen=True, eq=False)
class FlatFile:
    """The rows of a flat file, in the file's order, none of them at fault.

    Attributes
    ----------
    benchmarks : tuple of str
        Distinct values; more than one is for the caller to judge.
    agents, scaffolds, models : tuple of str, (n_agents,) each
        Aligned; in ascending code point order of the agents' names.
    tasks : tuple of str, (n_tasks,)
        In ascending code point order.
    categories : tuple of (str or None), (n_tasks,)
        Of `tasks`; None where no row says.
    settings : tuple of Setting, (n_settings,)
        In ascending order, None before any value.
    agent, task, setting : int32 array, (n_rows,) each
        Indices into `agents`, `tasks` and `settings`.
    trial : int16 array, (n_rows,)
    outcome : float64 array, (n_rows,)
        From 0 to 1; NaN only where `valid` is false and the field is empty.
    valid : bool array, (n_rows,)
        False for a failure of the harness.
    submitted_at : datetime64[s] array, (n_rows,)
        UTC; NaT where empty.
    imprecise : bool array, (n_rows,)
        True where only a month or a year is given, or nothing.
    measured : dict of str to float64 array, (n_rows,) each
        Cost, tokens and seconds, as far as the file has the columns; NaN where empty.
    metadata : dict of str to pyarrow.ChunkedArray of string, (n_rows,) each
        All other columns; null where empty.
    aliases : dict of str to str
        Alias seen → the column it is taken for.
    """

    benchmarks: tuple[str, ...]
    agents: tuple[str, ...]
    scaffolds: tuple[str, ...]
    models: tuple[str, ...]
    tasks: tuple[str, ...]
    categories: tuple[str | None, ...]
    settings: tuple[Setting, ...]
    agent: npt.NDArray[np.int32]
    task: npt.NDArray[np.int32]
    setting: npt.NDArray[np.int32]
    trial: npt.NDArray[np.int16]
    outcome: npt.NDArray[np.float64]
    valid: npt.NDArray[np.bool_]
    submitted_at: npt.NDArray[np.datetime64]
    imprecise: npt.NDArray[np.bool_]
    measured: dict[str, npt.NDArray[np.float64]]
    metadata: dict[str, Any]
    aliases: dict[str, str]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.trial)


def contents(table: Table) -> FlatFile:
    """Check what only all rows together show, and hand out the columns in their final order.

    Raises
    ------
    FlatFileError
        If any row, or the file as a whole, is at fault.
    """
    table.close()
    codes = {column: table.whole(column) for column in (*NAMED, "trial")}
    temperature = table.whole("temperature")
    columns = [codes[name] for name in SETTING if name != "temperature"]
    codes["setting"] = _setting_codes([*columns, _temperature_codes(temperature)])
    Checks(table, codes, table.rows.whole(table.n)).run(table.doubtful.whole(table.n))
    table.faults.raise_if_any()
    if table.n == 0:
        raise refuse("there are no rows")
    return _filled(table, codes, temperature)


def _filled(table: Table, codes: dict[str, Codes], temperature: npt.NDArray[np.float64]) -> FlatFile:
    agents, agent = _sorted(list(table.names["agent"].code), codes["agent"])
    tasks, task = _sorted(list(table.names["task"].code), codes["task"])
    settings, setting = _sorted_settings(table, codes, temperature)
    dated = table.whole("submitted_at")
    return FlatFile(
        benchmarks=tuple(sorted(table.names["benchmark"].code)),
        agents=agents,
        scaffolds=tuple(name or "" for name in _of_owner(table, codes, "scaffold", agent, len(agents))),
        models=tuple(name or "" for name in _of_owner(table, codes, "model", agent, len(agents))),
        tasks=tasks,
        categories=_of_owner(table, codes, "category", task, len(tasks)),
        settings=settings,
        agent=agent,
        task=task,
        setting=setting,
        trial=codes["trial"].astype(np.int16, copy=False),
        outcome=table.whole("outcome"),
        valid=table.whole("valid"),
        submitted_at=dated["at"].copy(),
        imprecise=dated["imprecise"].copy(),
        measured={name: table.whole(name) for name in MEASURED if name in table.seen},
        metadata=table.metadata(),
        aliases=dict(table.aliases),
    )


def _sorted(names: Sequence[str], codes: Codes) -> tuple[tuple[str, ...], Codes]:
    """Sort names by code point, and renumber their codes, (n_rows,), to match."""
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


def _temperature_codes(temperature: npt.NDArray[np.float64]) -> Codes:
    """Give the distinct temperatures codes from 0, −1 where there is none."""
    if np.isnan(temperature).all():
        return np.full(len(temperature), -1, np.int32)
    codes = np.unique(temperature, return_inverse=True)[1]
    return np.where(np.isnan(temperature), -1, codes).astype(np.int32)


def _setting_codes(columns: Sequence[Codes]) -> Codes:
    """Give the distinct settings codes from 0."""
    varied = [codes for codes in columns if len(codes) and (codes >= 0).any()]
    if not varied:
        return np.zeros(len(columns[0]), np.int32)
    return np.unique(combined(varied), return_inverse=True)[1].astype(np.int32)


def _sorted_settings(
    table: Table, codes: dict[str, Codes], temperature: npt.NDArray[np.float64]
) -> tuple[tuple[Setting, ...], Codes]:
    setting = codes["setting"]
    settings = _settings_at(table, codes, temperature, first_places(setting, int(setting.max()) + 1))
    order = sorted(range(len(settings)), key=lambda code: _none_first(settings[code]))
    return tuple(settings[code] for code in order), _renumbered(order, setting)


def _settings_at(
    table: Table, codes: dict[str, Codes], temperature: npt.NDArray[np.float64], places: Places
) -> list[Setting]:
    def names(column: str) -> list[str | None]:
        spelled = [*table.names[column].code, None]  # code −1 finds the None
        return [spelled[code] for code in codes[column][places]]

    heats = [None if np.isnan(heat) else float(heat) for heat in temperature[places]]
    columns = zip(names("prompt_variant"), names("judge"), heats, names("run"), strict=True)
    return [Setting(*parts) for parts in columns]


def _none_first(setting: Setting) -> tuple[tuple[bool, str | float], ...]:
    return tuple((value is not None, "" if value is None else value) for value in setting)
