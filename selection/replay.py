"""Replay: what the drift monitors would have said, agent by agent, had the subset been chosen early.

Model
-----
Agents come in the order of (date, name). The subset S is the band of the *founders*, all complete agents up
to the date on which 15 are complete; it then stays. Each later agent t is judged by the past alone:

- ŷ_t and its interval come from the complete agents dated strictly before t, calibrated on S and refitted
  when 5 more of them have come; the interval takes the sources of `selection.intervals` but post-selection;
- every monitor of `analytics.drift.monitors` is asked again, with the agents up to and including t.

A monitor *fires* at the first later agent at which it passes from a lower state to warn or alert; a state it
had with the founders alone is not counted.

==========================  ================================================================================
monitor                     what it is given
==========================  ================================================================================
rank fidelity               r and y of the complete agents since, ρ₀ of S from the founders
capability jump, cost       means over S of all agents with all of S; mean costs; founders as reference
band erosion                pass rates of the latest 20 complete agents
calibration                 whether y lay in the interval, where there was one
calibration residuals       y − ŷ, where there was a ŷ
saturation                  means over S of all agents with all of S
scaffold novelty            scaffolds of the agents since, against those of the founders' time
harness failures            invalid trials of all agents since, against those of the founders' time
run-to-run variance         variance of a trial, averaged over an agent's tasks; founders' time as reference
==========================  ================================================================================

Symbols
-------
========  =====================  ==========================  ==========
symbol    code                   shape                       unit
========  =====================  ==========================  ==========
S         ``band.tasks``         (k,) task indices           tasks
r         ``subset_mean``        scalar, one an agent        0 to 1
y, ŷ      ``score, prediction``  scalar, one an agent        score
========  =====================  ==========================  ==========

Limits: agents that were complete when they came stand for those drawn at random for validation. Agents of one
date are seen in the order of their names.

Not done here
-------------
The subset is not chosen again after an alert. No rerun is asked for.

Source
------
Ndzomga, *Efficient Benchmarking of AI Agents*, §5.1, Phases 2 and 3. The replay is this project's own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from analytics.arrays import CodeArray, FloatArray, IndexArray, Mask
from analytics.drift import monitors as drift
from analytics.drift.fidelity import rho_null
from analytics.drift.monitors import FIRST_LOOK, Monitor
from analytics.outcome_table import OutcomeTable
from selection.bands import N_AGENTS_STABLE, Band, mid_range, pass_rates
from selection.errors import SelectionError
from selection.folds import complete_agents, generator
from selection.intervals import Calibrator, Interval, NoInterval, interval
from selection.rules import Rules
from selection.standings.full_scores import calibrator, fitted_on

REFIT_EVERY = 5
WINDOW = drift.N_LATEST
LEVELS = {"insufficient": 0, "ok": 0, "warn": 1, "alert": 2}
DAYS_A_YEAR = 365.25


class ReplayRefused(SelectionError):
    """A replay needs dates, a subset chosen from 15 complete agents, and agents after them."""


@dataclass(frozen=True, eq=False)
class Trials:
    """What a table does not hold of its agents, shape (n_agents,) each, in the table's order.

    Attributes
    ----------
    n_invalid, n_trials : int array
        Trials the harness failed, and all trials.
    costs : float array
        Mean cost of a task's trial, US dollars; NaN where not known.
    """

    n_invalid: CodeArray
    n_trials: CodeArray
    costs: FloatArray


@dataclass(frozen=True)
class Judged:
    """A later complete agent and what was predicted of it.

    Attributes
    ----------
    agent : str
    day : date
    score, subset_mean : float
        y and r.
    prediction, lower, upper : float or None
        ŷ and its interval, from agents of earlier dates.
    source : str
        Of the interval; empty without one.
    missed : bool or None
        Whether y lay outside; None without an interval.
    note : str
        Why there is no interval.
    """

    agent: str
    day: date
    score: float
    subset_mean: float
    prediction: float | None
    lower: float | None
    upper: float | None
    source: str
    missed: bool | None
    note: str


@dataclass(frozen=True)
class Firing:
    """The first time a monitor rose to a state.

    Attributes
    ----------
    agent : str
        After whose outcomes.
    day : date
    n_since : int
        Later agents seen by then.
    reason : str
        What the monitor said.
    """

    agent: str
    day: date
    n_since: int
    reason: str


@dataclass(frozen=True)
class Watched:
    """One monitor over the whole replay.

    Attributes
    ----------
    name : str
    warn : Firing or None
        First rise to warn, or past it.
    alert : Firing or None
        First rise to alert.
    final : Monitor
        What it says after the last agent.
    """

    name: str
    warn: Firing | None
    alert: Firing | None
    final: Monitor


@dataclass(frozen=True, eq=False)
class Replay:
    """What the monitors would have said.

    Attributes
    ----------
    n_agents : int
        Agents of the table.
    founders : tuple of str
        Complete agents that S was chosen from, in the order of (date, name).
    chosen_on : date
        The last founder's date.
    band : Band
    tasks : tuple of str
        Names of S.
    judged : tuple of Judged
        Later complete agents, in time order.
    monitors : tuple of Watched
    false_alerts_a_year : float or None
        Expected without any change, at the pace at which agents came; None where all came on one day.
    """

    n_agents: int
    founders: tuple[str, ...]
    chosen_on: date
    band: Band
    tasks: tuple[str, ...]
    judged: tuple[Judged, ...]
    monitors: tuple[Watched, ...]
    false_alerts_a_year: float | None


def replay(
    table: OutcomeTable,
    trials: Trials | None = None,
    *,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Replay:
    """Run the drift monitors over a table in time order.

    Parameters
    ----------
    table : OutcomeTable
    trials : Trials, optional
        Without it harness failures and cost are not watched.
    seed : int
        Of ρ₀ and of the permutation test.
    progress : callable, optional
        Called with (later agents seen, all later agents).

    Raises
    ------
    ReplayRefused
        When an agent has no date, fewer than 15 agents are complete, they give no subset, or no complete
        agent came later.
    """
    history = _history(table, trials, seed)
    states: list[list[Monitor]] = []
    later = np.flatnonzero(history.since)
    for done, t in enumerate([later[0] - 1, *later]):
        states.append([watch(history, int(t) + 1) for watch in _MONITORS])
        if progress is not None:
            progress(done, later.size)
    series = list(zip(*states, strict=True))
    watched = tuple(_watched(history, later, one) for one in series)
    return Replay(
        n_agents=table.n_agents,
        founders=tuple(history.names[i] for i in np.flatnonzero(history.complete & ~history.since)),
        chosen_on=history.days[int(later[0]) - 1],
        band=history.band,
        tasks=tuple(table.tasks[j] for j in history.band.tasks),
        judged=history.judged,
        monitors=watched,
        false_alerts_a_year=_false_alerts(history, [one.final for one in watched]),
    )


# ----------------------------------------------------------------------------------------------- the history


@dataclass(frozen=True, eq=False)
class _History:
    """A table in time order, with what is fixed when the subset is chosen.

    `since` marks the agents dated after the founders; `subset_means` is NaN for an agent without all of S,
    and `judged` are the complete agents since.
    """

    names: tuple[str, ...]
    days: tuple[date, ...]
    scaffolds: tuple[str, ...]
    outcomes: FloatArray
    tasks: tuple[str, ...]
    complete: Mask
    since: Mask
    band: Band
    rho_null: float | None
    subset_means: FloatArray
    trial_variances: FloatArray
    trials: Trials | None
    judged: tuple[Judged, ...]
    seed: int

    def seen(self, kept: Mask, n: int) -> IndexArray:
        """Positions of the marked agents among the first n."""
        return np.flatnonzero(kept[:n])

    def names_of(self, rows: IndexArray) -> list[str]:
        return [self.names[i] for i in rows]

    def days_of(self, rows: IndexArray) -> list[date]:
        return [self.days[i] for i in rows]

    def judged_by(self, n: int) -> list[Judged]:
        """Return the complete agents since, among the first n."""
        return list(self.judged[: int(np.count_nonzero((self.complete & self.since)[:n]))])


def _history(table: OutcomeTable, trials: Trials | None, seed: int) -> _History:
    days = _dated(table)
    order = np.array(sorted(range(table.n_agents), key=lambda i: (days[i], i)), dtype=np.intp)
    complete, in_order = table.complete()[order], tuple(days[i] for i in order)
    since = _since(complete, in_order)
    outcomes = table.means[order]
    founders = outcomes[complete & ~since]
    band = mid_range(founders)
    if not band.suited:
        raise ReplayRefused(f"no subset of the first {len(founders)} complete agents: {band.reason}")
    in_subset = np.isin(np.arange(table.n_tasks), band.tasks)
    return _History(
        names=tuple(table.agents[i] for i in order),
        days=in_order,
        scaffolds=tuple(table.scaffolds[i] for i in order),
        outcomes=outcomes,
        tasks=table.tasks,
        complete=complete,
        since=since,
        band=band,
        rho_null=rho_null(founders, in_subset[None], seed)[0],
        subset_means=np.mean(outcomes[:, band.tasks], axis=1),
        trial_variances=_trial_variances(table)[order],
        trials=None if trials is None else _in_order(trials, order),
        judged=tuple(_judged(table, band.tasks, order[complete & since])),
        seed=seed,
    )


def _trial_variances(table: OutcomeTable) -> FloatArray:
    """Each agent's variance of a trial, mean over the tasks that tell it; NaN where none does."""
    spread = np.full(table.n_agents, np.nan)
    if table.trial_variances is not None:
        known = ~np.isnan(table.trial_variances)
        n_known = np.count_nonzero(known, axis=1)
        np.divide(np.nansum(table.trial_variances, axis=1), n_known, out=spread, where=n_known > 0)
    return spread


def _in_order(trials: Trials, order: IndexArray) -> Trials:
    return Trials(trials.n_invalid[order], trials.n_trials[order], trials.costs[order])


def _since(complete: Mask, days: Sequence[date]) -> Mask:
    """Mark the agents dated after the day on which 15 are complete."""
    chosen_on = days[int(np.flatnonzero(complete)[N_AGENTS_STABLE - 1])]
    since = np.array([day > chosen_on for day in days], dtype=np.bool_)
    if not (complete & since).any():
        raise ReplayRefused(
            f"{int(np.count_nonzero(complete))} complete agents, and none after {chosen_on}, when "
            f"{N_AGENTS_STABLE} were there to choose the subset from"
        )
    return since


# --------------------------------------------------------------------------------------- the later agents


def _judged(table: OutcomeTable, tasks: IndexArray, rows: IndexArray) -> list[Judged]:
    """Predict each later complete agent from those of earlier dates."""
    past = _Past(table, tasks)
    scores = table.restrict(agents=table.complete()).scores()
    place = np.cumsum(table.complete()) - 1
    return [_judge(table, tasks, int(i), float(scores[place[i]]), past) for i in rows]


class _Past:
    """The calibration in use on a date, refitted as complete agents come."""

    def __init__(self, table: OutcomeTable, tasks: IndexArray) -> None:
        self.table, self.tasks, self.n_fitted = table, tasks, 0
        self.made: Calibrator | None = None

    def before(self, day: date) -> Calibrator:
        earlier = np.array([other is not None and other < day for other in self.table.dates])
        kept = earlier & self.table.complete()
        n = int(np.count_nonzero(kept))
        if self.made is None or n - self.n_fitted >= REFIT_EVERY:
            agents = complete_agents(self.table.restrict(agents=kept))
            self.made = calibrator(agents, self.tasks, fitted_on(agents, (), Rules()))
            self.n_fitted = n
        return self.made


def _judge(table: OutcomeTable, tasks: IndexArray, i: int, score: float, past: _Past) -> Judged:
    day = table.dates[i] or date.min
    row = table.means[i, tasks]
    answer = interval(past.before(day), row, table.scaffolds[i])
    subset_mean = float(np.nanmean(row))
    if isinstance(answer, NoInterval):
        return Judged(
            table.agents[i], day, score, subset_mean, answer.point, None, None, "", None, answer.reason
        )
    missed = not answer.lower <= score <= answer.upper
    return _with_interval(table.agents[i], day, score, subset_mean, answer, missed=missed)


def _with_interval(
    agent: str, day: date, score: float, subset_mean: float, answer: Interval, *, missed: bool
) -> Judged:
    return Judged(
        agent, day, score, subset_mean, answer.point, answer.lower, answer.upper, answer.source, missed, ""
    )


# ------------------------------------------------------------------------------------------------ monitors


def _fidelity(history: _History, n: int) -> Monitor:
    seen = history.judged_by(n)
    means, scores = (np.array([getattr(one, name) for one in seen]) for name in ("subset_mean", "score"))
    return drift.fidelity(means, scores, history.rho_null, [one.agent for one in seen])


def _capability(history: _History, n: int) -> Monitor:
    rows = history.seen(~np.isnan(history.subset_means), n)
    return drift.capability_jump(history.subset_means[rows], history.names_of(rows), history.days_of(rows))


def _erosion(history: _History, n: int) -> Monitor:
    latest = history.seen(history.complete, n)[-WINDOW:]
    rates = pass_rates(history.outcomes[latest][:, history.band.tasks])
    names = [history.tasks[j] for j in history.band.tasks]
    return drift.band_erosion(rates, names, history.band.lo, history.band.hi)


def _calibration(history: _History, n: int) -> Monitor:
    told = [one for one in history.judged_by(n) if one.missed is not None]
    missed = np.array([one.missed for one in told], dtype=np.bool_)
    return drift.calibration(missed, [one.agent for one in told], [one.day for one in told])


def _residuals(history: _History, n: int) -> Monitor:
    told = [(one, one.prediction) for one in history.judged_by(n) if one.prediction is not None]
    values = np.array([one.score - prediction for one, prediction in told])
    return drift.residuals(values, [one.agent for one, _ in told], [one.day for one, _ in told])


def _saturation(history: _History, n: int) -> Monitor:
    rows = history.seen(~np.isnan(history.subset_means), n)
    latest = history.seen(history.complete, n)[-WINDOW:]
    rates = pass_rates(history.outcomes[latest][:, history.band.tasks])
    return drift.saturation(history.subset_means[rows], history.band.size, history.names_of(rows), rates)


def _novelty(history: _History, n: int) -> Monitor:
    rows = history.seen(history.since, n)
    known = frozenset(history.scaffolds[i] for i in np.flatnonzero(~history.since))
    return drift.scaffold_novelty([history.scaffolds[i] for i in rows], known, history.names_of(rows))


def _harness(history: _History, n: int) -> Monitor:
    if history.trials is None:
        return drift.insufficient("harness failures", "not measured: trials were not counted")
    rows, before = history.seen(history.since, n), ~history.since
    n_invalid, n_trials = history.trials.n_invalid, history.trials.n_trials
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
    reference = history.trial_variances[known & ~history.since]
    since = history.trial_variances[rows]
    rng = generator(history.seed, "run-to-run variance")
    return drift.run_variance(reference, since, history.names_of(rows), rng)


def _cost(history: _History, n: int) -> Monitor:
    if history.trials is None or np.isnan(history.trials.costs).all():
        return drift.insufficient("cost per task", "not measured: no cost was stated")
    rows = history.seen(~np.isnan(history.trials.costs), n)
    return drift.cost_per_task(history.trials.costs[rows], history.names_of(rows), history.days_of(rows))


_MONITORS: tuple[Callable[[_History, int], Monitor], ...] = (
    _fidelity,
    _capability,
    _erosion,
    _calibration,
    _residuals,
    _saturation,
    _novelty,
    _harness,
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


def _firing(history: _History, t: int, n_since: int, state: Monitor) -> Firing:
    return Firing(history.names[t], history.days[t], n_since, state.reason)


def _false_alerts(history: _History, monitors: Sequence[Monitor]) -> float | None:
    n_days = (history.days[-1] - history.days[0]).days
    if n_days == 0:
        return None
    return drift.false_alerts_a_year(monitors, len(history.names) / n_days * DAYS_A_YEAR)


# -------------------------------------------------------------------------------------------------- checks


def _dated(table: OutcomeTable) -> tuple[date, ...]:
    undated = [name for name, day in zip(table.agents, table.dates, strict=True) if day is None]
    if undated:
        raise ReplayRefused(
            f"{len(undated)} of {table.n_agents} agents have no date, {undated[0]!r} among them: "
            "their place in time is not known"
        )
    n_complete = int(np.count_nonzero(table.complete()))
    if n_complete < N_AGENTS_STABLE:
        raise ReplayRefused(
            f"{n_complete} complete agents; a subset that can be watched needs {N_AGENTS_STABLE}"
        )
    return tuple(day for day in table.dates if day is not None)
