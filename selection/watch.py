"""Watching a board: all drift monitors over a record, in time order, with only the past in view.

The record stands in time order beside the version in use (`selection.history`). Rank fidelity rests on the
agents drawn at random for a full run, once complete, and on those that came complete. Where agents were
stopped (staged assignment), what was published of those that then ran everything is compared with their full
scores too; and what agents did beyond their first batches, against these.

`findings` asks every monitor of `analytics.drift` about all agents there are; `replay` about the prefixes of
a record, after each agent. A file has no versions of S: there it is the band of the first `subset_from`
complete agents by date (all of the last date included), and each later one is predicted from the complete
agents of strictly earlier dates, by `selection.staged.model`.

Source: Ndzomga, *Efficient Benchmarking of AI Agents*, §5.1 and §6; each monitor gives its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from typing import Any

import numpy as np

from analytics import drift
from analytics.arrays import CodeArray, IndexArray
from analytics.drift import Audit, Invalid, Noise, OnAndOff, tuning
from analytics.drift.charts import COST
from analytics.drift.monitor import FIRST_LOOK, N_LATEST, Monitor, last_look
from analytics.drift.rank_fidelity import FIRST_RUNS
from analytics.record import Record
from selection.bands import mid_range
from selection.errors import SelectionError
from selection.history import History, columns_of, history_of, is_later
from selection.prior import PriorDecisions, Promise, SubsetVersion
from selection.rules import Rules
from selection.staged.teaching import of_full_runs
from selection.staged.walks import Fit, beyond_first_batch, estimated
from selection.standings.choice import training

DAYS_A_YEAR = 365.25
UNCONFIRMED = "it alerts by what an operator confirmed alone, not by what submitters call invalid"
VOUCHED = "only agents that are verified or of a trusted account count"
LEVELS = {"insufficient": 0, "ok": 0, "warn": 1, "alert": 2}
NO_SUBSET = "no ranking tasks are in use, so there is nothing to check"


@dataclass(frozen=True)
class Findings:
    """What the monitors say now.

    false_alerts_a_year: expected without any change, at the pace at which agents came; None where all came on
        one day.
    reason: why nothing is watched; else empty.
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


def findings(record: Record, rules: Rules, prior: PriorDecisions) -> Findings:
    """Ask every monitor about the record as it is.

    prior: its last subset version is watched; `promises` are what boards said before, `sampled` who was drawn
        at random for a full run. Without a version, or with all of its tasks retired: no monitor.
    """
    version = prior.subsets[-1] if prior.subsets else None
    if version is None or not columns_of(record, version).size:
        return Findings(None, None, 0, (), None, NO_SUBSET)
    history = history_of(record, rules, prior)
    monitors = tuple(watch(history, history.n_agents) for watch in MONITORS)
    if prior.fits_asked_by:
        monitors = tuple(_walked(record, prior, one) if one.name == tuning.NAME else one for one in monitors)
    if prior.published:
        complete = training(record)
        came = record.completed[record.complete]
        rows = [i for i in np.argsort(came, kind="stable").tolist() if complete.names[i] in prior.published]
        estimates, errors = np.array([prior.published[complete.names[i]] for i in rows]).reshape(-1, 2).T
        monitors = (
            *monitors,
            drift.published_order(
                estimates,
                errors,
                complete.scores[rows],
                [complete.names[i] for i in rows],
                [complete.dates[i] for i in rows],
            ),
        )
    return Findings(
        subset=version.number,
        fixed_on=version.fixed_on,
        n_later=int(np.count_nonzero(history.since)),
        monitors=monitors,
        false_alerts_a_year=false_alerts(history, monitors),
    )


def _fidelity(history: History, n: int) -> Monitor:
    known = ~np.isnan(history.off_subset)
    unasked = history.spontaneous | history.sampled
    rows = history.by_completion(history.seen(history.since & unasked & known, n))
    rows = _looked_at(rows, FIRST_RUNS)
    return history.once(
        ("rank fidelity", rows.size),
        lambda: drift.subset_fidelity(
            history.reference,
            OnAndOff(history.known_on_subset[rows], history.off_subset[rows]),
            history.scores[rows],
            history.rho_null,
            *history.who(rows),
        ),
    )


def _looked_at(rows: IndexArray, first: int = FIRST_LOOK) -> IndexArray:
    """Return the agents of the last look; all where there is none yet."""
    look = last_look(rows.size, first=first)
    return rows if look is None else rows[: look.size]


def _capability(history: History, n: int) -> Monitor:
    rows = history.seen(~np.isnan(history.on_subset), n)
    return drift.capability_jump(
        history.on_subset[rows], *history.who(rows), n_reference=history.n_before(rows)
    )


def _erosion(history: History, n: int) -> Monitor:
    rows = _looked_at(history.seen(history.complete & history.since, n))
    return history.once(
        ("band erosion", rows.size),
        lambda: drift.band_erosion(
            history.outcomes[history.founders],
            history.outcomes[rows],
            history.task_names,
            history.edges,
            *history.who(rows),
            history.seed,
            window=history.window,
        ),
    )


def _calibration(history: History, n: int) -> Monitor:
    misses = history.interval_misses(n)
    rows = np.array(list(misses), dtype=np.intp)
    return drift.calibration(np.array(list(misses.values()), dtype=np.bool_), *history.who(rows))


def _residuals(history: History, n: int) -> Monitor:
    promises = history.promised(n)
    rows = np.array([i for i, _ in promises], dtype=np.intp)
    values = history.scores[rows] - np.array([promise.score for _, promise in promises])
    return drift.residuals(values, *history.who(rows))


def _saturation(history: History, n: int) -> Monitor:
    rows = history.seen(history.vouched & ~np.isnan(history.on_subset), n)
    latest = history.outcomes[np.ix_(rows[-N_LATEST:], history.tasks)]
    monitor = drift.saturation(
        history.on_subset[rows],
        history.trials_on(history.tasks)[rows],
        history.tasks.size,
        history.omega(n, history.tasks),
        history.who(rows)[0],
        latest,
    )
    if not history.vouched[:n].all():
        monitor = replace(monitor, reason=f"{monitor.reason}; {VOUCHED}")
    full = history.full_score(monitor.evidence["agent"], n) if monitor.evidence else None
    return drift.of_benchmark(monitor, full) if full else monitor


def _tuning(history: History, n: int) -> Monitor:
    rows = history.seen(history.since & history.audited.any(axis=1), n)
    none = Audit(np.empty((0, 0)), np.empty((0, 0)))
    reference, since = (history.audit_reference, history.audit_of(rows)) if rows.size else (none, none)
    return drift.subset_tuning(reference, since, *history.who(rows), history.seed)


def _novelty(history: History, n: int) -> Monitor:
    rows = _looked_at(history.seen(history.since, n))
    return history.once(
        ("scaffold novelty", rows.size),
        lambda: drift.scaffold_novelty(
            [history.scaffolds[i] for i in np.flatnonzero(~history.since)],
            [history.scaffolds[i] for i in rows],
            *history.who(rows),
            history.seed,
        ),
    )


def _failures(history: History, n: int) -> Monitor:
    ran = history.n_trials > 0
    rows, before = history.seen(ran & history.since, n), np.flatnonzero(ran & ~history.since)

    def of_counts(n_invalid: CodeArray) -> Monitor:
        reference, since = (Invalid(n_invalid[part], history.n_trials[part]) for part in (before, rows))
        return drift.harness_failures(reference, since, *history.who(rows))

    monitor, confirmed = of_counts(history.n_invalid), of_counts(history.n_invalid - history.n_unconfirmed)
    if monitor.state == "alert" and confirmed.state != "alert":
        return replace(monitor, state="warn", reason=f"{monitor.reason}; {UNCONFIRMED}")
    return monitor


def _noise(history: History, n: int) -> Monitor:
    rows = _looked_at(history.seen(history.repeated & history.since, n))
    before = np.flatnonzero(history.repeated & ~history.since)
    reference, since = (Noise(*(part[rows_of] for part in history.noise)) for rows_of in (before, rows))
    return history.once(
        ("run-to-run noise", rows.size),
        lambda: drift.run_noise(reference, since, *history.who(rows), history.seed),
    )


def _cost(history: History, n: int) -> Monitor:
    if np.isnan(history.costs).all():
        return drift.insufficient(COST, "not measured: no cost was stated")
    rows = history.seen(~np.isnan(history.costs), n)
    return drift.cost_per_task(history.costs[rows], *history.who(rows), n_reference=history.n_before(rows))


def _walked(record: Record, prior: PriorDecisions, monitor: Monitor) -> Monitor:
    """Ask about agents under staged assignment that are finished, where no others show it."""
    if monitor.state != "insufficient":
        return monitor
    table, known = record.table, list[tuple[float, int]]()
    ended = record.voice & (record.complete | np.array([one.stopped for one in record.about]))
    for i in np.argsort(record.arrival, kind="stable").tolist():
        if (study := prior.fits_asked_by.get(table.agents[i])) and ended[i]:
            place = np.array(
                [table.tasks.index(task) if task in table.tasks else -1 for task in study["tasks"]]
            )
            outcomes = np.where(place < 0, np.nan, table.means[i, place])
            z = beyond_first_batch(Fit.from_plain(study["fit"]), outcomes, record.asked[i, place])
            known += [] if z is None else [(z, i)]
    rows = [i for _, i in known]
    return drift.first_batch_tuning(
        np.array([z for z, _ in known]), [table.agents[i] for i in rows], [table.dates[i] for i in rows]
    )


MONITORS: tuple[Callable[[History, int], Monitor], ...] = (
    _fidelity,
    _capability,
    _erosion,
    _calibration,
    _residuals,
    _saturation,
    _tuning,
    _novelty,
    _failures,
    _noise,
    _cost,
)


def false_alerts(history: History, monitors: Sequence[Monitor]) -> float | None:
    """Return the most false alerts to expect in a year; None where all agents came on one day."""
    days = sorted(day for day in history.days if day is not None)
    n_days = (days[-1] - days[0]).days if days else 0
    return drift.false_alerts_a_year(monitors, len(days) / n_days * DAYS_A_YEAR) if n_days else None


@dataclass(frozen=True)
class Firing:
    """The first time a monitor rose to a state."""

    agent: str
    day: date
    n_later: int
    reason: str


@dataclass(frozen=True)
class MonitorReplay:
    """One monitor over a replay.

    warn, alert: first rise to warn, or past it; first rise to alert.
    """

    name: str
    warn: Firing | None
    alert: Firing | None
    final: Monitor


@dataclass(frozen=True)
class DriftReplay:
    """What the monitors would have said.

    promises: of the later complete agents, by name.
    missed: those whose full score lay outside its interval.
    """

    version: SubsetVersion
    n_agents: int
    promises: Mapping[str, Promise]
    missed: tuple[str, ...]
    monitors: tuple[MonitorReplay, ...]
    false_alerts_a_year: float | None


def replay(
    record: Record, rules: Rules, *, progress: Callable[[int, int], None] | None = None
) -> DriftReplay:
    """Choose S from the first complete agents and ask every monitor after each agent that came later."""
    version = _first_version(record, rules)
    promises = _predicted(record, version)
    history = history_of(record, rules, PriorDecisions(subsets=(version,), promises=promises))
    later = np.flatnonzero(history.since)
    states: list[list[Monitor]] = []
    for done, t in enumerate([later[0] - 1, *later]):
        states.append([watch(history, int(t) + 1) for watch in MONITORS])
        if progress is not None:
            progress(done, later.size)
    watched = tuple(_watched(history, later, one) for one in zip(*states, strict=True))
    return DriftReplay(
        version=version,
        n_agents=record.n_agents,
        promises=promises,
        missed=tuple(
            history.names[i] for i, is_miss in history.interval_misses(history.n_agents).items() if is_miss
        ),
        monitors=watched,
        false_alerts_a_year=false_alerts(history, [one.final for one in watched]),
    )


def _first_version(record: Record, rules: Rules) -> SubsetVersion:
    table, needed = record.table, rules.subset_from
    undated = [name for name, day in zip(table.agents, table.dates, strict=True) if day is None]
    if undated:
        have = "has" if len(undated) == 1 else "have"
        raise SelectionError(
            f"{len(undated)} of {table.n_agents} agents {have} no date, such as {undated[0]!r}. State "
            "submitted_at for each agent",
            code="no_replay",
        )
    n_complete = int(np.count_nonzero(record.complete))
    if n_complete < needed:
        agents = "agent" if n_complete == 1 else "agents"
        raise SelectionError(
            f"{n_complete} {agents} with full runs; a check for drift needs {needed}", code="no_replay"
        )
    days = sorted(
        day for day, is_complete in zip(table.dates, record.complete, strict=True) if is_complete and day
    )
    fixed_on = days[needed - 1]
    founders = np.array([day is not None and day <= fixed_on for day in table.dates]) & record.complete
    if not (record.complete & ~founders).any():
        raise SelectionError(
            f"{int(founders.sum())} agents with full runs, and none after {fixed_on}. The ranking tasks are "
            f"chosen from the first {needed} agents; a check for drift needs later agents",
            code="no_replay",
        )
    band = mid_range(table.means[founders], lo=rules.lo, hi=rules.hi, widening=rules.widening)
    if not band.suited:
        raise SelectionError(
            f"no ranking tasks for the first {int(founders.sum())} agents: {band.reason}", code="no_replay"
        )
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


def _predicted(record: Record, version: SubsetVersion) -> dict[str, Promise]:
    agents, columns = training(record), columns_of(record, version)
    places = {name: i for i, name in enumerate(record.table.agents)}
    later = is_later(record, version)[[places[name] for name in agents.names]]
    promises = {}
    for day in sorted({one for one, is_so in zip(agents.dates, later, strict=True) if is_so and one}):
        earlier = np.array([one is not None and one < day for one in agents.dates])
        taught = of_full_runs(agents, np.flatnonzero(earlier))
        for i in np.flatnonzero(later & [one == day for one in agents.dates]).tolist():
            seen = np.full(record.n_tasks, np.nan)
            seen[columns] = agents.outcomes[i, columns]
            scale, _ = taught.scale_for(agents.scaffolds[i], columns)
            one = estimated(taught.model, seen, taught.model.next_mean, scale)
            promises[agents.names[i]] = Promise(one.score, (one.lower, one.upper))
    return promises


def _watched(history: History, later: IndexArray, states: Sequence[Monitor]) -> MonitorReplay:
    """Find the first rises of a monitor; the first state is that of the founders alone."""
    levels = [LEVELS[one.state] for one in states]

    def first(level: int) -> Firing | None:
        for t in range(1, len(levels)):
            if levels[t] >= level > levels[t - 1]:
                i = int(later[t - 1])
                return Firing(history.names[i], history.days[i] or date.min, t, states[t].reason)
        return None

    return MonitorReplay(states[-1].name, first(LEVELS["warn"]), first(LEVELS["alert"]), states[-1])
