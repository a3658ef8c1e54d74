"""Watching a board: all drift monitors over a record, in time order, with only the past in view.

Model
-----
Agents stand in the order of (date, name). S is the version in use; *later* agents came after it was fixed: by
a later delivery or, in one delivery (a file), with a date after that of the version. What was promised of an
agent's full score before it ran all tasks comes with what is given; where nothing is given (a file), each
later complete agent is predicted from the complete agents of strictly earlier dates, refitted every
`refit_every`.

`findings` asks every monitor of `analytics.drift` about all agents there are. `replay` asks them after each
later agent, as if one had watched from the day on which S was fixed: the same function over the prefixes of
the record. A file has no versions: its S is chosen from the first `subset_from` complete agents by date (all
of the last date included) and kept.

Symbols
-------
================  ====================  ===============================  ===========
symbol            code                  shape                            unit
================  ====================  ===============================  ===========
S                 ``tasks``             (k,) positions of active tasks   tasks
X                 ``outcomes``          (n_agents, n_tasks), in order    0 to 1
later             ``since``             (n_agents,)                      bool
y − ŷ             ``Promised``          of an agent                      score
================  ====================  ===============================  ===========

Not done here
-------------
No alert is opened, nothing is reselected and nobody is asked to run again. Agents without a date stand first;
a replay refuses them.

Source
------
Ndzomga, *Efficient Benchmarking of AI Agents*, §5.1 and §6; each monitor gives its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

import numpy as np

from analytics import drift
from analytics.arrays import FloatArray, IndexArray, Mask
from analytics.drift.fidelity import rho_null
from analytics.drift.monitor import FIRST_LOOK, N_LATEST, Monitor
from analytics.outcome_table import OutcomeTable
from analytics.record import Record
from analytics.resampling import generator
from selection.bands import mid_range, pass_rates
from selection.errors import SelectionError
from selection.given import Given, Promise, SubsetVersion
from selection.intervals import Calibrator, Interval, interval
from selection.rules import Rules
from selection.standings.choice import training
from selection.standings.full_scores import calibrator, fitted_on

LEVELS = {"insufficient": 0, "ok": 0, "warn": 1, "alert": 2}
DAYS_A_YEAR = 365.25
NO_SUBSET = "no subset is in use, so nothing can drift away from it"


class WatchRefused(SelectionError):
    """A replay needs dates, a subset chosen from enough complete agents, and complete agents after them."""


@dataclass(frozen=True)
class Findings:
    """What the monitors say now.

    Attributes
    ----------
    subset : int or None
        Number of the version that is watched.
    fixed_on : date or None
    n_later : int
        Agents that came after it was fixed.
    monitors : tuple of Monitor
    false_alerts_a_year : float or None
        Expected without any change, at the pace at which agents came; None where all came on one day.
    reason : str
        Why nothing is watched; else empty.
    """

    subset: int | None
    fixed_on: date | None
    n_later: int
    monitors: tuple[Monitor, ...]
    false_alerts_a_year: float | None
    reason: str = ""

    def as_plain(self) -> dict[str, Any]:
        """Return the same as objects of JSON; each monitor says what to do."""
        plain = asdict(self) | {"fixed_on": self.fixed_on.isoformat() if self.fixed_on else None}
        plain["monitors"] = [asdict(one) | {"advice": one.advice} for one in self.monitors]
        return plain


@dataclass(frozen=True)
class Firing:
    """The first time a monitor rose to a state.

    Attributes
    ----------
    agent : str
        After whose outcomes.
    day : date
    n_later : int
        Later agents seen by then.
    reason : str
        What the monitor said.
    """

    agent: str
    day: date
    n_later: int
    reason: str


@dataclass(frozen=True)
class Watched:
    """One monitor over a replay.

    Attributes
    ----------
    name : str
    warn, alert : Firing or None
        First rise to warn, or past it; first rise to alert.
    final : Monitor
        What it says after the last agent.
    """

    name: str
    warn: Firing | None
    alert: Firing | None
    final: Monitor


@dataclass(frozen=True)
class Replay:
    """What the monitors would have said.

    Attributes
    ----------
    version : SubsetVersion
        The subset that was watched.
    n_agents : int
    promises : mapping of str to Promise
        Of the later complete agents, by name.
    missed : tuple of str
        Those whose full score lay outside its interval.
    monitors : tuple of Watched
    false_alerts_a_year : float or None
    """

    version: SubsetVersion
    n_agents: int
    promises: Mapping[str, Promise]
    missed: tuple[str, ...]
    monitors: tuple[Watched, ...]
    false_alerts_a_year: float | None


def findings(record: Record, rules: Rules, given: Given) -> Findings:
    """Ask every monitor about the record as it is.

    Parameters
    ----------
    record : Record
    rules : Rules
    given : Given
        Its last subset version is watched; `promises` are what boards said before.

    Returns
    -------
    Findings
        Without a version in use, or with all of its tasks retired, no monitor and the reason.
    """
    version = given.subsets[-1] if given.subsets else None
    if version is None or not _columns(record, version).size:
        return Findings(None, None, 0, (), None, NO_SUBSET)
    history = _history(record, rules, version, given.promises)
    monitors = tuple(watch(history, history.n_agents) for watch in _MONITORS)
    return Findings(
        subset=version.number,
        fixed_on=version.fixed_on,
        n_later=int(np.count_nonzero(history.since)),
        monitors=monitors,
        false_alerts_a_year=_false_alerts(history, monitors),
    )


def replay(record: Record, rules: Rules, *, progress: Callable[[int, int], None] | None = None) -> Replay:
    """Choose S from the first complete agents and ask every monitor after each agent that came later.

    Parameters
    ----------
    record : Record
    rules : Rules
    progress : callable, optional
        Called with (later agents seen, all later agents).

    Raises
    ------
    WatchRefused
        When an agent has no date, fewer than `subset_from` agents are complete, they give no subset, or no
        complete agent came later.
    """
    version = _first_version(record, rules)
    promises = _predicted(record, rules, version)
    history = _history(record, rules, version, promises)
    later = np.flatnonzero(history.since)
    states: list[list[Monitor]] = []
    for done, t in enumerate([later[0] - 1, *later]):
        states.append([watch(history, int(t) + 1) for watch in _MONITORS])
        if progress is not None:
            progress(done, later.size)
    watched = tuple(_watched(history, later, one) for one in zip(*states, strict=True))
    return Replay(
        version=version,
        n_agents=record.n_agents,
        promises=promises,
        missed=tuple(name for name, _, is_missed in history.kept(history.n_agents) if is_missed),
        monitors=watched,
        false_alerts_a_year=_false_alerts(history, [one.final for one in watched]),
    )


# ----------------------------------------------------------------------------------------------- the history


@dataclass(frozen=True, eq=False)
class _History:
    """A record in time order beside the version that is watched."""

    names: tuple[str, ...]
    days: tuple[date | None, ...]
    scaffolds: tuple[str, ...]
    outcomes: FloatArray
    scores: FloatArray  # mean over the active tasks; NaN without an outcome
    on_subset: FloatArray  # mean over S; NaN for an agent without all of it
    complete: Mask
    spontaneous: Mask  # complete with its first delivery
    since: Mask
    tasks: IndexArray
    task_names: tuple[str, ...]
    version: SubsetVersion
    rho_null: float | None
    trial_variances: FloatArray  # mean over an agent's tasks; NaN where no trial was repeated
    n_invalid: FloatArray
    n_trials: FloatArray
    costs: FloatArray  # mean over the tasks that state it; NaN where none does
    promises: Mapping[str, Promise]
    window: int
    seed: int

    @property
    def n_agents(self) -> int:
        return len(self.names)

    def seen(self, kept: Mask, n: int) -> IndexArray:
        """Positions of the marked agents among the first n."""
        return np.flatnonzero(kept[:n])

    def names_of(self, rows: IndexArray) -> list[str]:
        return [self.names[i] for i in rows]

    def days_of(self, rows: IndexArray) -> list[date | None]:
        return [self.days[i] for i in rows]

    def promised(self, n: int) -> list[tuple[int, Promise]]:
        """Complete agents among the first n of whom something was promised."""
        rows = self.seen(self.complete, n).tolist()
        return [(i, self.promises[self.names[i]]) for i in rows if self.names[i] in self.promises]

    def kept(self, n: int) -> list[tuple[str, date | None, bool]]:
        """Name, day, and whether the full score missed its interval, of those with an interval."""
        return [
            (self.names[i], self.days[i], not lower <= self.scores[i] <= upper)
            for i, promise in self.promised(n)
            if (ends := promise.interval) is not None
            for lower, upper in [ends]
        ]


def _history(
    record: Record, rules: Rules, version: SubsetVersion, promises: Mapping[str, Promise]
) -> _History:
    table, tasks = record.table, _columns(record, version)
    order = np.array(sorted(range(table.n_agents), key=lambda i: (table.dates[i] or date.min, i)), np.intp)
    founders = np.isin(table.agents, version.chosen_from) & record.complete
    in_subset = np.isin(np.arange(table.n_tasks), tasks)
    seed = rules.seed
    return _History(
        names=tuple(table.agents[i] for i in order),
        days=tuple(table.dates[i] for i in order),
        scaffolds=tuple(table.scaffolds[i] for i in order),
        outcomes=table.means[order],
        scores=_row_means(table.means)[order],
        on_subset=np.mean(table.means[order][:, tasks], axis=1),
        complete=record.complete[order],
        spontaneous=(record.complete & (record.completed == record.arrival))[order],
        since=_later(record, version)[order],
        tasks=tasks,
        task_names=table.tasks,
        version=version,
        rho_null=rho_null(table.means[founders], in_subset[None], seed)[0] if founders.any() else None,
        trial_variances=_trial_variances(table)[order],
        n_invalid=record.n_invalid.sum(axis=1)[order].astype(np.float64),
        n_trials=record.n_places.sum(axis=1)[order].astype(np.float64),
        costs=_row_means(record.costs)[order],
        promises=promises,
        window=rules.history_window or N_LATEST,
        seed=seed,
    )


def _columns(record: Record, version: SubsetVersion) -> IndexArray:
    """Positions of the active tasks of the version."""
    wanted = set(version.tasks)
    return np.array([j for j, name in enumerate(record.table.tasks) if name in wanted], dtype=np.intp)


def _later(record: Record, version: SubsetVersion) -> Mask:
    """Agents that came after the version was fixed, shape (n_agents,)."""
    dated = np.array([day is not None and day > version.fixed_on for day in record.table.dates])
    same = record.arrival == version.arrival
    return np.asarray((record.arrival > version.arrival) | (same & dated), dtype=np.bool_)


def _trial_variances(table: OutcomeTable) -> FloatArray:
    spread = table.trial_variances
    return np.full(table.n_agents, np.nan) if spread is None else _row_means(spread)


def _row_means(values: FloatArray) -> FloatArray:
    """Mean of each row over what it has; NaN where it has nothing."""
    known = ~np.isnan(values)
    n_known = np.count_nonzero(known, axis=1)
    means = np.full(len(values), np.nan)
    np.divide(np.nansum(values, axis=1), n_known, out=means, where=n_known > 0)
    return means


# ------------------------------------------------------------------------------------ what a file starts with


def _first_version(record: Record, rules: Rules) -> SubsetVersion:
    """Choose S as a board would have: from the complete agents up to the date on which enough were there."""
    table, needed = record.table, rules.subset_from
    _check_dated(record, needed)
    days = sorted(day for day, kept in zip(table.dates, record.complete, strict=True) if kept and day)
    fixed_on = days[needed - 1]
    founders = np.array([day is not None and day <= fixed_on for day in table.dates]) & record.complete
    if not (record.complete & ~founders).any():
        raise WatchRefused(
            f"{int(founders.sum())} complete agents, and none after {fixed_on}, when {needed} were there to "
            "choose the subset from"
        )
    band = mid_range(table.means[founders], lo=rules.lo, hi=rules.hi)
    if not band.suited:
        raise WatchRefused(f"no subset of the first {int(founders.sum())} complete agents: {band.reason}")
    return SubsetVersion(
        number=1,
        tasks=tuple(table.tasks[j] for j in band.tasks),
        chosen_from=tuple(table.agents[i] for i in np.flatnonzero(founders)),
        arrival=int(record.arrival.max()),
        fixed_on=fixed_on,
        lo=band.lo,
        hi=band.hi,
        widened=band.widened,
        provisional=False,
        strategy="mid_range",
        reason=band.reason,
        n_complete=band.n_complete,
        n_tasks=band.n_tasks,
    )


def _check_dated(record: Record, needed: int) -> None:
    table = record.table
    undated = [name for name, day in zip(table.agents, table.dates, strict=True) if day is None]
    if undated:
        raise WatchRefused(
            f"{len(undated)} of {table.n_agents} agents have no date, {undated[0]!r} among them: "
            "their place in time is not known"
        )
    n_complete = int(np.count_nonzero(record.complete))
    if n_complete < needed:
        raise WatchRefused(f"{n_complete} complete agents; a subset that can be watched needs {needed}")


def _predicted(record: Record, rules: Rules, version: SubsetVersion) -> dict[str, Promise]:
    """Predict each later complete agent from the complete agents of strictly earlier dates."""
    past, columns = _Past(record, rules, version), _columns(record, version)
    later = np.flatnonzero(record.complete & _later(record, version))
    order = sorted(later.tolist(), key=lambda i: (record.table.dates[i] or date.min, i))
    promises = {}
    for i in order:
        day = record.table.dates[i] or date.min
        answer = interval(past.before(day), record.table.means[i, columns], record.table.scaffolds[i])
        if answer.point is not None:
            ends = (answer.lower, answer.upper) if isinstance(answer, Interval) else None
            promises[record.table.agents[i]] = Promise(answer.point, ends)
    return promises


class _Past:
    """The calibration in use on a date, refitted as complete agents come."""

    def __init__(self, record: Record, rules: Rules, version: SubsetVersion) -> None:
        self.agents, self.rules, self.n_fitted = training(record), rules, 0
        self.columns = _columns(record, version)
        self.tasks = tuple(record.table.tasks[j] for j in self.columns)
        self.made: Calibrator | None = None

    def before(self, day: date) -> Calibrator:
        earlier = np.array([other is not None and other < day for other in self.agents.dates])
        n = int(np.count_nonzero(earlier))
        if self.made is None or n - self.n_fitted >= self.rules.refit_every:
            agents = self.agents.take(np.flatnonzero(earlier))
            fitted = fitted_on(agents, self.tasks, self.rules)
            self.made, self.n_fitted = calibrator(agents, self.columns, fitted), n
        return self.made


# ------------------------------------------------------------------------------------------------ monitors


def _fidelity(history: _History, n: int) -> Monitor:
    rows = history.seen(history.since & history.spontaneous, n)
    means = np.array([np.nanmean(history.outcomes[i, history.tasks]) for i in rows])
    return drift.fidelity(means, history.scores[rows], history.rho_null, history.names_of(rows))


def _capability(history: _History, n: int) -> Monitor:
    rows = history.seen(~np.isnan(history.on_subset), n)
    return drift.capability_jump(history.on_subset[rows], history.names_of(rows), history.days_of(rows))


def _erosion(history: _History, n: int) -> Monitor:
    names = [history.task_names[j] for j in history.tasks]
    return drift.band_erosion(_latest_rates(history, n), names, history.version.lo, history.version.hi)


def _latest_rates(history: _History, n: int) -> FloatArray:
    latest = history.seen(history.complete, n)[-history.window :]
    return pass_rates(history.outcomes[latest][:, history.tasks])


def _calibration(history: _History, n: int) -> Monitor:
    told = history.kept(n)
    missed = np.array([is_missed for _, _, is_missed in told], dtype=np.bool_)
    return drift.calibration(missed, [name for name, _, _ in told], [day for _, day, _ in told])


def _residuals(history: _History, n: int) -> Monitor:
    told = history.promised(n)
    rows = np.array([i for i, _ in told], dtype=np.intp)
    values = history.scores[rows] - np.array([promise.score for _, promise in told])
    return drift.residuals(values, history.names_of(rows), history.days_of(rows))


def _saturation(history: _History, n: int) -> Monitor:
    rows = history.seen(~np.isnan(history.on_subset), n)
    rates = _latest_rates(history, n)
    return drift.saturation(history.on_subset[rows], history.tasks.size, history.names_of(rows), rates)


def _novelty(history: _History, n: int) -> Monitor:
    rows = history.seen(history.since, n)
    known = frozenset(history.scaffolds[i] for i in np.flatnonzero(~history.since))
    return drift.scaffold_novelty([history.scaffolds[i] for i in rows], known, history.names_of(rows))


def _failures(history: _History, n: int) -> Monitor:
    rows, before = history.seen(history.since, n), ~history.since
    n_invalid, n_trials = history.n_invalid.astype(np.int64), history.n_trials.astype(np.int64)
    reference = int(n_invalid[before].sum()), int(n_trials[before].sum())
    return drift.harness_failures(
        n_invalid[rows], n_trials[rows], reference, history.names_of(rows), history.days_of(rows)
    )


def _run_variance(history: _History, n: int) -> Monitor:
    """Test at 10, 20, 40, … agents; between two looks the last one stands."""
    known = ~np.isnan(history.trial_variances)
    rows = history.seen(known & history.since, n)
    if rows.size >= FIRST_LOOK:
        rows = rows[: FIRST_LOOK * 2 ** int(np.log2(rows.size / FIRST_LOOK))]
    reference, since = history.trial_variances[known & ~history.since], history.trial_variances[rows]
    rng = generator(history.seed, "run-to-run variance")
    return drift.run_variance(reference, since, history.names_of(rows), rng)


def _cost(history: _History, n: int) -> Monitor:
    if np.isnan(history.costs).all():
        return drift.insufficient("cost per task", "not measured: no cost was stated")
    rows = history.seen(~np.isnan(history.costs), n)
    return drift.cost_per_task(history.costs[rows], history.names_of(rows), history.days_of(rows))


_MONITORS: tuple[Callable[[_History, int], Monitor], ...] = (
    _fidelity,
    _capability,
    _erosion,
    _calibration,
    _residuals,
    _saturation,
    _novelty,
    _failures,
    _run_variance,
    _cost,
)


def _watched(history: _History, later: IndexArray, states: Sequence[Monitor]) -> Watched:
    """Find the first rises of a monitor; the first state is that of the founders alone."""
    levels = [LEVELS[one.state] for one in states]

    def first(level: int) -> Firing | None:
        rises = [t for t in range(1, len(levels)) if levels[t] >= level > levels[t - 1]]
        return _firing(history, int(later[rises[0] - 1]), rises[0], states[rises[0]]) if rises else None

    return Watched(states[-1].name, first(LEVELS["warn"]), first(LEVELS["alert"]), states[-1])


def _firing(history: _History, t: int, n_later: int, state: Monitor) -> Firing:
    return Firing(history.names[t], history.days[t] or date.min, n_later, state.reason)


def _false_alerts(history: _History, monitors: Sequence[Monitor]) -> float | None:
    days = [day for day in history.days if day is not None]
    n_days = (days[-1] - days[0]).days if days else 0
    return drift.false_alerts_a_year(monitors, len(days) / n_days * DAYS_A_YEAR) if n_days else None
