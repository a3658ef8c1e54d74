"""How many trials of each task a run of the subset should have: the saving, spent on repeats.

The theory is in ``selection/README.md``, “Where every agent stands”.

Symbols: ω̂ ``omega``, R ``n_trials``, C ``n_conditions``, SE ``se`` in score, cost in US dollars.

Not done here: the calibration of the full score is in no error told here, nor a facet that was never
measured.
"""

from collections.abc import Sequence

import numpy as np

from analytics.arrays import IndexArray
from analytics.differences.rows import NEVER_MEASURED, Facet, Row, facet_terms
from analytics.differences.trial_variances import (
    N_AGENTS_OMEGA,
    N_TASKS_OMEGA,
    N_TRIALS_OMEGA,
    n_repeat_often,
    trial_variance_ratio,
)
from analytics.record import TRUST, Record, Trust
from selection.cost import saving
from selection.schema.board import TrialsAdvice, TrialsLine
from selection.standings.savings import heading, of_runs, plausible
from selection.standings.targets import one_trial

N_TASKS_BOUND = 2


def recommended(n_tasks: int, k: int) -> int:
    """R = max(1, ⌊m/k⌋)."""
    return max(1, n_tasks // k)


def trials(
    record: Record, tasks: IndexArray, facets: Sequence[Facet] = NEVER_MEASURED, level: Trust = TRUST[0]
) -> TrialsAdvice | None:
    """Tell what 1, 2 and R trials of each task would be worth, and cost.

    None under two tasks: ȳ(1 − ȳ) of one pass or one failure is 0 and bounds nothing; and without a complete
    agent, as on a board whose tasks became more since its subset was chosen.

    tasks: (k,); the subset.
    facets: those never measured are left out.
    level: {"self_reported", "logs", "verified"}: the least trust of an agent whose cost counts.
    """
    if tasks.size < N_TASKS_BOUND or not record.complete.any():
        return None
    table, telling = record.table, np.flatnonzero(record.telling_noise)
    on_subset = np.ix_(telling, tasks)
    cells = (
        table.means[on_subset],
        None if table.trial_variances is None else table.trial_variances[on_subset],
        None if table.n_trials is None else table.n_trials[on_subset],
    )
    once, k, n_conditions = one_trial(record)[telling], tasks.size, max(1, len(record.compared))
    omega = trial_variance_ratio(*cells, one_trial=once)
    rates = np.nanmean(table.means[np.ix_(np.flatnonzero(record.complete), tasks)], axis=1)
    binomial = float(np.mean(rates * (1.0 - rates)))
    noise = binomial if omega is None else omega * binomial / n_conditions
    cost, most = _cost(record, tasks, level), recommended(record.n_tasks, k)
    options = tuple(
        TrialsLine(
            n_trials=n,
            se=float(np.sqrt(noise / (k * n) + _beyond(record, facets, n))),
            cost_usd=None if cost is None else cost * n_conditions * n,
        )
        for n in sorted({1, 2, most})
    )
    why = _why_unknown(k, n_repeat_often(*cells, one_trial=once)) if omega is None else ""
    return TrialsAdvice(most, omega, omega is None, options, n_conditions, why)


def _beyond(record: Record, facets: Sequence[Facet], n_trials: int) -> float:
    """Return the mean over complete agents of the facet terms of a score, each trial being a run."""
    apart, nothing = {facet.name: False for facet in facets}, np.empty(0)
    rows = [
        Row(nothing, levels={**record.repeats[i].levels, "run": n_trials})
        for i in np.flatnonzero(record.complete)
    ]
    of_agents = [facet_terms((row,), facets, apart)[0] for row in rows]
    return sum(term.variance for terms in of_agents for term in terms) / len(rows)


def _why_unknown(k: int, n_often: int) -> str:
    """Why nobody tells ω̂, in words."""
    if k < N_TASKS_OMEGA:
        return (
            f"telling how much the trials of a task vary takes {N_TASKS_OMEGA} tasks, and the subset has {k}"
        )
    if n_often >= N_AGENTS_OMEGA:
        return "the agents whose trials were repeated pass all of these tasks, or none"
    there = f"there {'is' if n_often == 1 else 'are'} {n_often or 'none'}"
    return (
        f"telling how much the trials of a task vary takes {N_AGENTS_OMEGA} agents with {N_TRIALS_OMEGA} "
        f"independent trials of {N_TASKS_OMEGA} of its tasks; {there}"
    )


def _cost(record: Record, tasks: IndexArray, level: Trust) -> float | None:
    """Median cost of a run of S with one trial a task, in US dollars; None where none is believed."""
    counts = heading(record, level)
    run = saving(of_runs(record)[counts], tasks, plausible(record)[counts]).subset_run
    return run.median if run else None
