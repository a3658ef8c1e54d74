"""Records made directly from a matrix, without rows."""

from collections import defaultdict
from dataclasses import replace
from datetime import date

import numpy as np

from analytics.outcome_table import OutcomeTable
from analytics.record import About, Counting, Record
from analytics.record.alike import Repeats
from selection import ridge
from selection.folds import CompleteAgents
from selection.intervals import intervals

NAN = np.nan


def record_of(
    outcomes,
    *,
    submitted=(),
    asked=None,
    n_trials=1,
    trial_variances=None,
    scaffolds=None,
    names=None,
    dates=None,
    costs=None,
    lost=None,
    counting=None,
):
    """A record of (n_agents, n_tasks) mean outcomes, NaN: not run; `lost` marks cells that the harness lost.

    Agents are loaded by an operator but for the positions in `submitted`, which were asked for `asked`, by
    position, or for what they ran.
    """
    outcomes = np.asarray(outcomes, float)
    n_agents, n_tasks = outcomes.shape
    valid = ~np.isnan(outcomes)
    lost = np.zeros(outcomes.shape, bool) if lost is None else lost
    names = tuple(f"a{i:02d}" for i in range(n_agents)) if names is None else tuple(names)
    scaffolds = ("s",) * n_agents if scaffolds is None else tuple(scaffolds)
    dates = (None,) * n_agents if dates is None else tuple(dates)
    operator = ~np.isin(np.arange(n_agents), list(submitted))
    moments = {}
    if trial_variances is not None:
        moments = {"n_trials": np.where(valid, n_trials, NAN), "trial_variances": trial_variances}
    table = OutcomeTable(
        agents=names,
        tasks=tuple(f"t{j:03d}" for j in range(n_tasks)),
        means=outcomes,
        n_valid=(valid * n_trials).astype(np.int32),
        dates=dates,
        scaffolds=scaffolds,
        models=tuple(f"m-{name}" for name in names),
        **moments,
    )
    wanted = np.ones(outcomes.shape, bool)
    for i in submitted:
        wanted[i] = (asked or {}).get(i, valid[i] | lost[i])
    record = Record(
        table=table,
        about=tuple(
            About(
                name,
                scaffold,
                f"m-{name}",
                submitted_at=day and day.isoformat(),
                account=name,
                vouched=bool(loaded),
            )
            for name, scaffold, day, loaded in zip(names, scaffolds, dates, operator, strict=True)
        ),
        counting=counting or Counting(),
        n_places=((valid | lost) * n_trials).astype(np.int32),
        n_gaps=(lost * n_trials).astype(np.int32),
        n_invalid=(lost * n_trials).astype(np.int32),
        asked=wanted,
        operator=operator,
        arrival=np.arange(n_agents),
        first=np.arange(n_agents),
        completed=np.where(valid.all(axis=1), np.arange(n_agents), -1),
        settled=np.arange(n_agents),
        complete=np.zeros(n_agents, bool),
        voice=np.ones(n_agents, bool),
        costs=np.full(outcomes.shape, NAN) if costs is None else np.asarray(costs, float),
        n_tokens=(None,) * n_agents,
        seconds=(None,) * n_agents,
        n_deliveries=np.ones(n_agents, np.int64),
        repeats=(Repeats(reason="one trial per task"),) * n_agents,
        condition=("",) * n_agents,
    )
    return completed(record)


def completed(record):
    """The record with `complete` as its parts have it."""
    allowed = [
        not (about.withheld or told) for about, told in zip(record.about, record.condition, strict=True)
    ]
    return replace(record, complete=record.is_direct(np.arange(record.n_tasks)) & np.array(allowed))


def board(n_agents=16, n_tasks=60, seed=1):
    """Passes and failures of a Rasch model, abilities evenly spread and growing with the name."""
    rng = np.random.default_rng(seed)
    chance = 1 / (1 + np.exp(rng.normal(0, 1, n_tasks) - np.linspace(-1.2, 1.2, n_agents)[:, None]))
    return (rng.random((n_agents, n_tasks)) < chance).astype(float)


def band(outcomes, lo=0.3, hi=0.7):
    """Positions of the tasks with a pass rate from lo to hi."""
    rates = np.nanmean(outcomes, axis=0)
    return np.flatnonzero((rates >= lo - 1e-9) & (rates <= hi + 1e-9))


def with_newcomers(n_new=2, n_agents=14, n_tasks=60, seed=1):
    """Outcomes of complete agents and of some that ran the band alone, and the band."""
    outcomes = board(n_agents, n_tasks, seed)
    tasks = band(outcomes)
    new = np.full((n_new, n_tasks), NAN)
    new[:, tasks] = np.random.default_rng(seed + 100).integers(0, 2, (n_new, tasks.size))
    return np.vstack([outcomes, new]), tasks


def days(n):
    return [date(2026, 1, 1 + i) for i in range(n)]


def by_name(standings):
    return {line.agent: line for line in standings.agents}


def unnamed(outcomes, scores):
    """Return complete agents of which nothing else is known."""
    outcomes, scores = ridge.checked_agents(outcomes, scores, ridge.ALPHA)
    n = scores.size
    names, unknown = tuple(str(i) for i in range(n)), ("",) * n
    return CompleteAgents(names, outcomes, scores, (None,) * n, unknown, unknown)


def interval(calibrator, outcomes, scaffold=None):
    """Return the interval of one agent."""
    return intervals(calibrator, np.asarray(outcomes, dtype=float)[None, :], [scaffold])[0]


def matrix_of(rows):
    """Mean outcomes of the rows of a file, agents and tasks in name order, NaN where missing."""
    cells = defaultdict(list)
    for row in rows:
        cells[row["agent"], row["task"]].append(float(row["outcome"]))
    agents, tasks = sorted({a for a, _ in cells}), sorted({t for _, t in cells})
    return np.array([[np.mean(cells[a, t]) if cells[a, t] else NAN for t in tasks] for a in agents])


def in_fifths(seed, n, k, share_missing=0.0):
    """Outcomes in fifths, some of them missing, and scores that have nothing to do with them."""
    rng = np.random.default_rng(seed)
    outcomes = rng.integers(0, 6, (n, k)) / 5
    outcomes[rng.random((n, k)) < share_missing] = NAN
    return outcomes, rng.random(n)
