"""What a flat file without fault holds, by rules across rows: names in order, and one array for each column.

One key stands once, an agent has one scaffold and one model, a name has one spelling. Codes are indices into
the distinct names of a column in order of first use, −1 where a field is empty or at fault; places are
indices of rows. All arrays are (n_rows,) unless a shape is given.

A row with n in ``n_averaged`` and mean x stands for trials 1 … n, whatever trial it names itself: nx passed
(outcome 1), which come first, and n − nx failed (outcome 0). nx has to be whole, to 1e-6.
What was measured beside is the mean of the runs too, and is repeated.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from analytics.arrays import FloatArray
from analytics.flat_file.columns import LABELS, MEASURED, NAMED, SETTING
from analytics.flat_file.faults import MAX_FAULTS, Fault, Faults, FlatFileError, excerpt, quoted, refuse
from analytics.flat_file.table import RowNumbers, Table
from analytics.names import first_names, without_case

Codes = npt.NDArray[np.int32]
Places = npt.NDArray[np.int64]


def combined(columns: Sequence[npt.NDArray[Any]]) -> Places:
    """Join columns of codes of at least −1 to one code each row: equal just where all columns are equal."""
    key = np.zeros(len(columns[0]), np.int64)
    n_keys = 1
    for codes in columns:
        n_codes = int(codes.max(initial=-1)) + 2
        if n_keys * n_codes > 2**62:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            n_keys = int(key.max(initial=0)) + 1
        key = key * n_codes + codes + 1
        n_keys *= n_codes
    return key


def repeats(key: Places) -> tuple[Places, Places]:
    """Find the places whose key stands earlier too, ascending; of those reported also the first place."""
    order = np.argsort(key, kind="stable")
    in_order = key[order]
    later = np.sort(order[1:][in_order[1:] == in_order[:-1]])
    return later, order[np.searchsorted(in_order, key[later[:MAX_FAULTS]])]


def first_places(codes: Codes, n_codes: int) -> Places:
    """Find the first place of every code, (n_codes,); −1 where it has none."""
    first = np.full(n_codes, -1, np.int64)
    places = np.flatnonzero(codes >= 0)[::-1]
    first[codes[places]] = places  # of several places of one code the last written is the first in the file
    return first


def look_alike(names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Find the codes of names that are like an earlier one, each with that one's code."""
    earliest: dict[str, int] = {}
    for code, name in enumerate(names):
        other = earliest.setdefault(without_case(name), code)
        if other != code:
            yield code, other


class Checks:
    """The rules across the rows of one table; what breaks them goes to its `faults`.

    codes: (n_rows,) each; the named columns, the trial and, as ``setting``, what tells settings apart.
    """

    def __init__(self, table: Table, codes: dict[str, npt.NDArray[Any]], rows: RowNumbers) -> None:
        self.table, self.faults, self.codes, self.rows = table, table.faults, codes, rows
        self.names = {column: list(names.code) for column, names in table.names.items()}

    def run(self, doubtful: npt.NDArray[np.bool_]) -> None:
        """Check all rules; rows that are `doubtful` have no certain key."""
        self.keys(doubtful)
        for owner, column in (
            ("agent", "scaffold"),
            ("agent", "model"),
            ("task", "category"),
            ("task", "group"),
        ):
            self.one_value(owner, column)
        for column in ("agent", "scaffold", "model"):
            self.one_spelling(column)

    def keys(self, doubtful: npt.NDArray[np.bool_]) -> None:
        """Tell the rows whose agent, task, setting and trial stand in an earlier row too."""
        columns = [self.codes[name] for name in ("agent", "task", "setting", "trial")]
        sure = np.flatnonzero(~doubtful & (columns[0] >= 0) & (columns[1] >= 0) & (columns[3] >= 0))
        later, first = repeats(combined(columns)[sure])
        rule = (
            "the row repeats row {}: agent {}, task {}, trial {}, one setting; give it another trial or run"
        )
        faults = []
        for place, earlier in zip(sure[later[:MAX_FAULTS]], sure[first], strict=True):
            agent, task = (quoted(self._name(column, place)) for column in ("agent", "task"))
            words = rule.format(self.rows[earlier], agent, task, columns[3][place])
            faults.append(Fault(int(self.rows[place]), None, None, words))
        if faults:
            self.faults.extend(len(later), faults[0].row or 0, faults)

    def one_value(self, owner: str, column: str) -> None:
        """Tell where an owner (agent, task) has a second value of `column`, each value once."""
        owners, values = self.codes[owner], self.codes[column]
        known = np.flatnonzero((owners >= 0) & (values >= 0))
        owners, values = owners[known], values[known]
        first = first_places(owners, len(self.names[owner]))[owners]
        differs = np.flatnonzero(values != values[first])
        later, _ = repeats(combined([owners[differs], values[differs]]))
        new = np.delete(differs, later)
        if len(new):
            only = f"and only one {column} is allowed"
            faults = (
                Fault(
                    int(self.rows[place]),
                    self.table.shown(column),
                    excerpt(self._name(column, place)),
                    f"{owner} {quoted(self._name(owner, place))} has {column} "
                    f"{quoted(self._name(column, earlier))} in row {self.rows[earlier]}, {only}",
                )
                for place, earlier in zip(known[new], known[first[new]], strict=True)
            )
            self.faults.extend(len(new), int(self.rows[known[new[0]]]), faults)

    def one_spelling(self, column: str) -> None:
        """Tell the names of `column` that are like an earlier one."""
        pairs = list(look_alike(self.names[column]))
        first = first_places(self.codes[column], len(self.names[column])) if pairs else np.zeros(0, np.int64)
        for code, other in pairs:
            name, earlier = self.names[column][code], self.names[column][other]
            is_case = name.casefold() == earlier.casefold()
            case = "upper and lower case" if is_case else "forms of the same letters"
            rule = (
                f"{quoted(earlier)} in row {self.rows[first[other]]} differs from it only in {case};"
                f" spell each {column} one way"
            )
            row = int(self.rows[first[code]])
            self.faults.add(Fault(row, self.table.shown(column), excerpt(name), rule))

    def _name(self, column: str, place: int) -> str:
        return self.names[column][int(self.codes[column][place])]


TOLERANCE = 1e-6


def _tell_averaged(
    faults: Faults, rows: RowNumbers, outcome: FloatArray, n_runs: FloatArray, bad: Places
) -> None:
    rule = "the mean of {0:.0f} runs that pass or fail is a whole number over {0:.0f}, and "
    rule += "{0:.0f} × {1:.9g} = {2:.9g}"
    if len(bad):
        means = zip(rows[bad].tolist(), outcome[bad].tolist(), n_runs[bad].tolist(), strict=True)
        wrong = (
            Fault(row, "n_averaged", f"{n:.0f}", rule.format(n, value, n * value)) for row, value, n in means
        )
        faults.extend(len(bad), int(rows[bad[0]]), wrong)


N_LISTED = 5


class RunSetting(NamedTuple):
    """What a trial was run under; None where the file does not say."""

    prompt_variant: str | None
    judge: str | None
    temperature: float | None
    run: str | None


@dataclass(frozen=True, eq=False)
class FlatFile:
    """The rows of a flat file, in the file's order, none of them at fault, (n_rows,) each.

    agents, scaffolds, models: (n_agents,) each; in ascending code point order of the agents' names.
    tasks, categories, groups: (n_tasks,) each; tasks in ascending code point order; None where no row says.
    settings: in ascending order, None before any value.
    outcome: from 0 to 1; NaN only where `valid` is false and the field is empty.
    valid: False for a failure of the harness.
    submitted_at: UTC; NaT where empty.
    imprecise: True where only a month or a year is given, or nothing.
    measured: cost, tokens and seconds, as far as the file has the columns; NaN where empty.
    labels: `human` and `human_probability`, as far as the file has the columns; NaN where empty.
    metadata: all other columns, and those of `labels` as text; null where empty.
    aliases: alias seen → the column it is taken for.
    rows: what faults call each row; None where they count from 1.
    row_note: how these count, where an editor would count them otherwise.
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
    rows: RowNumbers | None = None
    row_note: str = ""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.trial)

    def row(self, place: int) -> int:
        """Give the number by which faults call the row at a place."""
        return place + 1 if self.rows is None else int(self.rows[place])


def contents(table: Table) -> FlatFile:
    """Check what only all rows together show, and hand out the columns in their final order."""
    _check_one_benchmark(table)
    table.close()
    names = (name for name in (*LABELS, *MEASURED) if name in table.seen)
    always = (*NAMED, "trial", "outcome", "valid", "submitted_at", "temperature", "n_averaged")
    columns = {name: table.whole(name) for name in (*always, *names)}
    columns |= {"rows": table.rows.whole(table.n), "doubtful": table.doubtful.whole(table.n)}
    source = _expand(table, columns)
    codes = [*(columns[name] for name in SETTING if name != "temperature"), _temperature_codes(columns)]
    varied = [one for one in codes if len(one) and (one >= 0).any()]
    columns["setting"] = np.zeros(len(codes[0]), np.int32)
    if varied:
        columns["setting"] = np.unique(combined(varied), return_inverse=True)[1].astype(np.int32)
    Checks(table, columns, columns["rows"]).run(columns["doubtful"])
    table.faults.raise_if_any()
    table.limits.check_settings(int(columns["setting"].max(initial=-1)) + 1)
    if not len(columns["rows"]):
        raise refuse("the file has no rows")
    return _filled(table, columns, source)


def _check_one_benchmark(table: Table) -> None:
    names = sorted(table.names["benchmark"].code)
    known = first_names(list(map(quoted, names)), N_LISTED)
    if "benchmark" in table.fixed:
        return  # rows of another one contradict it
    if len(names) > 1 and table.only is None:
        rule = (
            f"the file holds {len(names):,} benchmarks ({known}); choose one, for example"
            f" --only {quoted(names[0])}"
        )
    elif names and table.only not in (None, *names):
        rule = f"no row has the benchmark {quoted(table.only or '')}; the file holds {known}"
    else:
        return
    raise FlatFileError((Fault(None, "benchmark", None, rule),))


def _expand(table: Table, columns: dict[str, npt.NDArray[Any]]) -> Places | None:
    """Put n trials where a row is the mean of n; give the row that each comes from, None where none is."""
    n_runs = columns.pop("n_averaged")
    if not (n_runs > 1).any():
        return None
    trial, outcome = columns["trial"], columns["outcome"]
    total = n_runs * outcome
    passed = np.round(total)  # NaN where an empty outcome stands for as many empty ones
    bad = (np.abs(total - passed) > TOLERANCE) & (n_runs > 1)
    _tell_averaged(table.faults, columns["rows"], outcome, n_runs, np.flatnonzero(bad))
    table.limits.check_rows(int(n_runs.sum()))
    table.limits.check_averaged(int(n_runs.sum()), len(n_runs))
    n = n_runs.astype(np.int64)
    source = np.repeat(np.arange(len(n)), n)
    nth = np.arange(len(source)) - np.repeat(np.cumsum(n) - n, n)  # counts from 0 in each row
    several = n[source] > 1
    for name, values in columns.items():
        columns[name] = values[source]
    columns["trial"] = np.where(several, nth + 1, trial[source]).astype(np.int16)
    is_mean = several & ~np.isnan(outcome)[source]
    columns["outcome"] = np.where(is_mean, np.where(nth < passed[source], 1.0, 0.0), outcome[source])
    return source


def _filled(table: Table, columns: dict[str, npt.NDArray[Any]], source: Places | None) -> FlatFile:
    agents, agent = _sorted(list(table.names["agent"].code), columns["agent"])
    tasks, task = _sorted(list(table.names["task"].code), columns["task"])
    settings, setting = _sorted_settings(table, columns)
    metadata = table.metadata()
    if source is not None:
        metadata = {name: texts.take(source) for name, texts in metadata.items()}
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
        metadata=metadata,
        aliases=dict(table.aliases),
        rows=None if _counts_from_1(columns["rows"]) else columns["rows"],
        row_note=table.row_note,
    )


def _counts_from_1(rows: RowNumbers) -> bool:
    return bool(rows[0] == 1 and rows[-1] == len(rows) and (rows[:-1] < rows[1:]).all())


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
    names = list(table.names[column].code)
    first = first_places(np.where(codes[column] >= 0, owner, -1), n_owners)
    return tuple(names[codes[column][place]] if place >= 0 else None for place in first)


def _temperature_codes(columns: dict[str, npt.NDArray[Any]]) -> Codes:
    temperature = columns["temperature"]
    if np.isnan(temperature).all():
        return np.full(len(temperature), -1, np.int32)
    codes = np.unique(temperature, return_inverse=True)[1]
    return np.where(np.isnan(temperature), -1, codes).astype(np.int32)


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
