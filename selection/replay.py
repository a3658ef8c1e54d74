"""Replay: when each monitor would first have fired, had a subset been chosen early and watched since.

Model
-----
A file has no versions of S: it is chosen from the first `subset_from` complete agents by date (all of the
last date included) and kept. Each later complete agent is predicted from the complete agents of strictly
earlier dates, by `selection.staged.model`. The monitors of `selection.watch` are asked after each later
agent, the same functions over the prefixes of the record.

Not done here
-------------
S is the band of the rules, whatever their strategy.

Source
------
As in `selection.watch`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from analytics.arrays import IndexArray
from analytics.drift.monitor import Monitor
from analytics.record import Record
from selection.bands import mid_range
from selection.errors import SelectionError
from selection.history import History, columns_of, history_of, is_later
from selection.prior import PriorDecisions, Promise, SubsetVersion
from selection.rules import Rules
from selection.staged.teaching import of_full_runs
from selection.staged.walks import estimated
from selection.standings.choice import training
from selection.watch import MONITORS, false_alerts

LEVELS = {"insufficient": 0, "ok": 0, "warn": 1, "alert": 2}


@dataclass(frozen=True)
class Firing:
    """The first time a monitor rose to a state.

    agent: after whose outcomes.
    n_later: later agents seen by then.
    reason: what the monitor said.
    """

    agent: str
    day: date
    n_later: int
    reason: str


@dataclass(frozen=True)
class MonitorReplay:
    """One monitor over a replay.

    warn, alert: first rise to warn, or past it; first rise to alert.
    final: what it says after the last agent.
    """

    name: str
    warn: Firing | None
    alert: Firing | None
    final: Monitor


@dataclass(frozen=True)
class DriftReplay:
    """What the monitors would have said.

    version: the subset that was watched.
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
    """Choose S from the first complete agents and ask every monitor after each agent that came later.

    progress: called with (later agents seen, all later agents).
    Raises SelectionError: no_replay: when an agent has no date, fewer than `subset_from` agents are complete,
        they give no subset, or no complete agent came later.
    """
    version = _first_version(record, rules)
    promises = _predicted(record, rules, version)
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
        missed=tuple(name for name, _, is_missed in history.interval_misses(history.n_agents) if is_missed),
        monitors=watched,
        false_alerts_a_year=false_alerts(history, [one.final for one in watched]),
    )


# ------------------------------------------------------------------------------------ what a file starts with


def _first_version(record: Record, rules: Rules) -> SubsetVersion:
    """Choose S as a board would have: from the complete agents up to the date on which enough were there."""
    table, needed = record.table, rules.subset_from
    _check_dated(record, needed)
    days = sorted(
        day for day, is_complete in zip(table.dates, record.complete, strict=True) if is_complete and day
    )
    fixed_on = days[needed - 1]
    founders = np.array([day is not None and day <= fixed_on for day in table.dates]) & record.complete
    if not (record.complete & ~founders).any():
        raise SelectionError(
            f"{int(founders.sum())} complete agents, and none after {fixed_on}: the subset is chosen from "
            f"the first {needed} and all of their last day, and those that come later are watched",
            code="no_replay",
        )
    band = mid_range(table.means[founders], lo=rules.lo, hi=rules.hi, widening=rules.widening)
    if not band.suited:
        raise SelectionError(
            f"no subset of the first {int(founders.sum())} complete agents: {band.reason}", code="no_replay"
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


def _check_dated(record: Record, needed: int) -> None:
    table = record.table
    undated = [name for name, day in zip(table.agents, table.dates, strict=True) if day is None]
    if undated:
        raise SelectionError(
            f"{len(undated)} of {table.n_agents} agents have no date, {undated[0]!r} among them: "
            "their place in time is not known",
            code="no_replay",
        )
    n_complete = int(np.count_nonzero(record.complete))
    if n_complete < needed:
        agents = "agent" if n_complete == 1 else "agents"
        raise SelectionError(
            f"{n_complete} complete {agents}; a subset that can be watched needs {needed}", code="no_replay"
        )


def _predicted(record: Record, rules: Rules, version: SubsetVersion) -> dict[str, Promise]:
    """Predict each later complete agent from the complete agents of strictly earlier dates."""
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
        rises = [t for t in range(1, len(levels)) if levels[t] >= level > levels[t - 1]]
        return _firing(history, int(later[rises[0] - 1]), rises[0], states[rises[0]]) if rises else None

    return MonitorReplay(states[-1].name, first(LEVELS["warn"]), first(LEVELS["alert"]), states[-1])


def _firing(history: History, t: int, n_later: int, state: Monitor) -> Firing:
    return Firing(history.names[t], history.days[t] or date.min, n_later, state.reason)
