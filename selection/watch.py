"""Watching a board: all drift monitors over a record, in time order, with only the past in view.

Model
-----
Agents stand in the order of (date, name). S is the version in use; *later* agents came after it was fixed: by
a later delivery or, in one delivery (a file), with a date after that of the version. What was promised of an
agent's full score before it ran all tasks comes with what is given.

`findings` asks every monitor of `analytics.drift` about all agents there are; `selection.replay` asks the
same of the prefixes of a record.

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
No alert is opened, nothing is reselected and nobody is asked to run again. Agents without a date stand first.

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
from selection.bands import pass_rates
from selection.given import Given, Promise, SubsetVersion
from selection.rules import Rules

DAYS_A_YEAR = 365.25
NO_SUBSET = "no subset is in use, so nothing can drift away from it"


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
    if version is None or not columns_of(record, version).size:
        return Findings(None, None, 0, (), None, NO_SUBSET)
    history = history_of(record, rules, version, given.promises)
    monitors = tuple(watch(history, history.n_agents) for watch in MONITORS)
    return Findings(
        subset=version.number,
        fixed_on=version.fixed_on,
        n_later=int(np.count_nonzero(history.since)),
        monitors=monitors,
        false_alerts_a_year=false_alerts(history, monitors),
    )


# ----------------------------------------------------------------------------------------------- the history


@dataclass(frozen=True, eq=False)
class History:
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
        """Number of agents."""
        return len(self.names)

    def seen(self, kept: Mask, n: int) -> IndexArray:
        """Positions of the marked agents among the first n."""
        return np.flatnonzero(kept[:n])

    def names_of(self, rows: IndexArray) -> list[str]:
        """Names of the agents at these positions."""
        return [self.names[i] for i in rows]

    def days_of(self, rows: IndexArray) -> list[date | None]:
        """Dates of the agents at these positions."""
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


def history_of(
    record: Record, rules: Rules, version: SubsetVersion, promises: Mapping[str, Promise]
) -> History:
    """Put a record in time order beside the version and the promises that are watched."""
    table, tasks = record.table, columns_of(record, version)
    order = np.array(sorted(range(table.n_agents), key=lambda i: (table.dates[i] or date.min, i)), np.intp)
    founders = np.isin(table.agents, version.chosen_from) & record.complete
    in_subset = np.isin(np.arange(table.n_tasks), tasks)
    seed = rules.seed
    return History(
        names=tuple(table.agents[i] for i in order),
        days=tuple(table.dates[i] for i in order),
        scaffolds=tuple(table.scaffolds[i] for i in order),
        outcomes=table.means[order],
        scores=_row_means(table.means)[order],
        on_subset=np.mean(table.means[order][:, tasks], axis=1),
        complete=record.complete[order],
        spontaneous=(record.complete & (record.completed == record.arrival))[order],
        since=is_later(record, version)[order],
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


def columns_of(record: Record, version: SubsetVersion) -> IndexArray:
    """Positions of the active tasks of the version."""
    wanted = set(version.tasks)
    return np.array([j for j, name in enumerate(record.table.tasks) if name in wanted], dtype=np.intp)


def is_later(record: Record, version: SubsetVersion) -> Mask:
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


# ------------------------------------------------------------------------------------------------ monitors


def _fidelity(history: History, n: int) -> Monitor:
    rows = history.seen(history.since & history.spontaneous, n)
    means = np.array([np.nanmean(history.outcomes[i, history.tasks]) for i in rows])
    return drift.subset_fidelity(means, history.scores[rows], history.rho_null, history.names_of(rows))


def _capability(history: History, n: int) -> Monitor:
    rows = history.seen(~np.isnan(history.on_subset), n)
    return drift.capability_jump(history.on_subset[rows], history.names_of(rows), history.days_of(rows))


def _erosion(history: History, n: int) -> Monitor:
    names = [history.task_names[j] for j in history.tasks]
    return drift.band_erosion(_latest_rates(history, n), names, history.version.lo, history.version.hi)


def _latest_rates(history: History, n: int) -> FloatArray:
    latest = history.seen(history.complete, n)[-history.window :]
    return pass_rates(history.outcomes[latest][:, history.tasks])


def _calibration(history: History, n: int) -> Monitor:
    told = history.kept(n)
    missed = np.array([is_missed for _, _, is_missed in told], dtype=np.bool_)
    return drift.calibration(missed, [name for name, _, _ in told], [day for _, day, _ in told])


def _residuals(history: History, n: int) -> Monitor:
    told = history.promised(n)
    rows = np.array([i for i, _ in told], dtype=np.intp)
    values = history.scores[rows] - np.array([promise.score for _, promise in told])
    return drift.residuals(values, history.names_of(rows), history.days_of(rows))


def _saturation(history: History, n: int) -> Monitor:
    rows = history.seen(~np.isnan(history.on_subset), n)
    rates = _latest_rates(history, n)
    return drift.saturation(history.on_subset[rows], history.tasks.size, history.names_of(rows), rates)


def _novelty(history: History, n: int) -> Monitor:
    rows = history.seen(history.since, n)
    known = frozenset(history.scaffolds[i] for i in np.flatnonzero(~history.since))
    return drift.scaffold_novelty([history.scaffolds[i] for i in rows], known, history.names_of(rows))


def _failures(history: History, n: int) -> Monitor:
    rows, before = history.seen(history.since, n), ~history.since
    n_invalid, n_trials = history.n_invalid.astype(np.int64), history.n_trials.astype(np.int64)
    reference = int(n_invalid[before].sum()), int(n_trials[before].sum())
    return drift.harness_failures(
        n_invalid[rows], n_trials[rows], reference, history.names_of(rows), history.days_of(rows)
    )


def _run_variance(history: History, n: int) -> Monitor:
    """Test at 10, 20, 40, … agents; between two looks the last one stands."""
    known = ~np.isnan(history.trial_variances)
    rows = history.seen(known & history.since, n)
    if rows.size >= FIRST_LOOK:
        rows = rows[: FIRST_LOOK * 2 ** int(np.log2(rows.size / FIRST_LOOK))]
    reference, since = history.trial_variances[known & ~history.since], history.trial_variances[rows]
    rng = generator(history.seed, "run-to-run variance")
    return drift.run_variance(reference, since, history.names_of(rows), rng)


def _cost(history: History, n: int) -> Monitor:
    if np.isnan(history.costs).all():
        return drift.insufficient("cost per task", "not measured: no cost was stated")
    rows = history.seen(~np.isnan(history.costs), n)
    return drift.cost_per_task(history.costs[rows], history.names_of(rows), history.days_of(rows))


MONITORS: tuple[Callable[[History, int], Monitor], ...] = (
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


def false_alerts(history: History, monitors: Sequence[Monitor]) -> float | None:
    """Return the false alerts expected in a year; None where all agents came on one day."""
    days = [day for day in history.days if day is not None]
    n_days = (days[-1] - days[0]).days if days else 0
    return drift.false_alerts_a_year(monitors, len(days) / n_days * DAYS_A_YEAR) if n_days else None
