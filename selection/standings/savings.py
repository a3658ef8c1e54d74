"""What the subset saves and should cost: tasks and money, and how many trials its tasks should have.

Saved are the tasks that an agent was not asked to run and did not run, where it ran all that it was asked to
run, of the subset or of tasks chosen for it. An agent that was asked for all tasks saves nothing by what it
lacks, as in a loaded file, which has no assignments; nor does one that delivered part of its assignment, or
is not at the end of its batches. Money is what one trial of each task that was not run would have cost at the
agent's own mean. Costs are those of the agents that headlines are made from; one that is not plausible beside
the others is left out, and counted. What an agent stated that ran less than a tenth of what it was asked for
is of no run: it decides neither what is plausible nor what is saved.

The theory is in ``selection/README.md``, “Cost” and, of the trials, “Where every agent stands”.
Source: Ndzomga, *Efficient Benchmarking of AI Agents*, Tables 2 and 5, §4.3 (linear scaling with the tasks).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from analytics.arrays import FloatArray, IndexArray, Mask, read_only
from analytics.differences.rows import NEVER_MEASURED, Facet, Row, cell_variance, facet_terms
from analytics.differences.trial_variances import N_AGENTS_OMEGA, N_TASKS_OMEGA, N_TRIALS_OMEGA
from analytics.record import TRUST, Record, Trust
from selection.errors import SelectionError
from selection.held_out import row_means
from selection.schema.board import TrialsAdvice, TrialsLine
from selection.standings.placing import AgentOnTasks
from selection.standings.targets import n_vouched_repeat, noise_of
from selection.standings.terms import HEADING, IN_PART, at_least, believed

Basis = Literal["measured per task", "linear in tasks", "implausible", "not measured"]
MEASURED: Basis = "measured per task"
LINEAR: Basis = "linear in tasks"
IMPLAUSIBLE: Basis = "implausible"
NOT_MEASURED: Basis = "not measured"
SAME = 1e-9
BASIS = {MEASURED: "per task", LINEAR: "linear"}
NOT_STATED = "not stated"
N_TASKS_BOUND = 2


Spread = dict[str, float]  # of an amount over agents, in US dollars
QUANTILES = {"median": 0.5, "lower_quartile": 0.25, "upper_quartile": 0.75, "smallest": 0.0, "largest": 1.0}


@dataclass(frozen=True, eq=False)
class Saving:
    """What a subset saves on one benchmark, in US dollars; NaN and None where not measured.

    saved, subset_costs: (n_agents,); what a subset run of each agent saves, w_i, and costs.
    basis: length n_agents; how w_i was found, or why it was not.
    per_run, subset_run: over the agents for whom it is known.
    """

    n_tasks: int
    k: int
    saved: FloatArray
    subset_costs: FloatArray
    basis: tuple[Basis, ...]
    per_run: Spread | None
    subset_run: Spread | None

    @property
    def reduction(self) -> float:
        """Share of the tasks a subset run is saved, 1 − k/m."""
        return 1.0 - self.k / self.n_tasks

    def note(self, agents: str = "agents") -> str:
        """Return how the money was found, in a sentence: with the number of agents behind each basis."""
        if self.per_run is None:
            return f"cost: {NOT_MEASURED}"
        counted = [(basis, self.basis.count(basis)) for basis in get_args(Basis)]
        n_agents = len(self.basis)
        return "cost: " + ", ".join(f"{basis} for {n} of {n_agents} {agents}" for basis, n in counted if n)

    def as_plain(self, agents: str = "agents") -> dict[str, Any]:
        """Return the reduction and the money, with the note on it."""
        money = {"per_run": self.per_run, "subset_run": self.subset_run}
        return {"reduction": self.reduction, **money, "note": self.note(agents)}


def saving(costs: FloatArray, tasks: IndexArray, plausible: Mask | None = None) -> Saving:
    """Tell what a subset run saves, for each agent and over them.

    costs: (n_agents, n_tasks); of a trial, the mean over its trials; NaN where not known.
    plausible: (n_agents,); whose costs are believed; by default all.
    """
    costs, in_subset = _checked_costs(costs, tasks)
    n_agents, n_tasks = costs.shape
    believed = np.ones(n_agents, dtype=np.bool_) if plausible is None else plausible
    subset_costs, full_costs = np.full(n_agents, np.nan), np.full(n_agents, np.nan)
    basis: list[Basis] = [NOT_MEASURED] * n_agents
    for i in np.flatnonzero((~np.isnan(costs)).any(axis=1)).tolist():
        known = costs[i][~np.isnan(costs[i])]
        if not believed[i]:
            basis[i] = IMPLAUSIBLE
        elif known.size < n_tasks or np.ptp(known) <= SAME * known.max():
            basis[i], per_task = LINEAR, np.nanmean(costs[i])
            subset_costs[i], full_costs[i] = np.count_nonzero(in_subset) * per_task, n_tasks * per_task
        else:
            basis[i] = MEASURED
            subset_costs[i], full_costs[i] = np.sum(costs[i][in_subset]), np.sum(costs[i])
    saved = full_costs - subset_costs
    return Saving(
        n_tasks=costs.shape[1],
        k=int(np.count_nonzero(in_subset)),
        saved=read_only(saved),
        subset_costs=read_only(subset_costs),
        basis=tuple(basis),
        per_run=_spread(saved),
        subset_run=_spread(subset_costs),
    )


def _spread(amounts: FloatArray) -> Spread | None:
    known = amounts[~np.isnan(amounts)]
    if not known.size:
        return None
    return dict(zip(QUANTILES, np.quantile(known, list(QUANTILES.values())).tolist(), strict=True))


def _checked_costs(costs: FloatArray, tasks: IndexArray) -> tuple[FloatArray, Mask]:
    costs, tasks = np.asarray(costs, dtype=np.float64), np.asarray(tasks, dtype=np.intp)
    if costs.ndim != 2:
        raise SelectionError(f"costs have shape {costs.shape}, not (n_agents, n_tasks)", code="shape")
    if not tasks.size:
        raise SelectionError("no task in the subset", code="no_tasks")
    if tasks.min() < 0 or tasks.max() >= costs.shape[1] or np.unique(tasks).size != tasks.size:
        raise SelectionError(
            f"a subset of {tasks.size} tasks that are not {costs.shape[1]} tasks' positions", code="shape"
        )
    wrong = (costs < 0.0) | np.isinf(costs)
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise SelectionError(
            f"agent {i}, task {j}: a cost of {costs[i, j]}; it is finite and not negative", code="cost_range"
        )
    in_subset = np.zeros(costs.shape[1], dtype=np.bool_)
    in_subset[tasks] = True
    return costs, in_subset


def savings(
    record: Record,
    tasks: IndexArray,
    on_tasks: Sequence[AgentOnTasks],
    chosen: Collection[int] = (),
    level: Trust = TRUST[0],
) -> dict[str, Any]:
    """Tell what asking for these tasks alone saves.

    chosen: positions of the agents that came to the end of tasks chosen for them.
    level: the least trust of an agent whose cost counts.
    Returns: ``n_tasks``, ``k``, ``reduction``, ``per_run`` and ``subset_run`` in US dollars or None,
        ``note``, ``so_far``; where some of its ``n_runs`` are on tasks chosen for the agent, with their
        ``n_chosen``.
    """
    counts, usable = trusted(record, level), plausible(record)
    saved = saving(of_runs(record)[counts], tasks, usable[counts])
    # What agents that did as they were asked were not asked to run, and did not run
    by_choice = np.isin(np.arange(record.n_agents), list(chosen))
    did = record.complete | by_choice | np.array([one.outcomes is not None for one in on_tasks])
    n_saved = np.where(did, np.count_nonzero(~record.asked & (record.n_places == 0), axis=1), 0)
    money = row_means(record.costs)
    money[~(usable & counts)] = np.nan
    money = money[n_saved > 0] * n_saved[n_saved > 0]
    is_known = ~np.isnan(money)
    n_chosen = int(np.count_nonzero(by_choice & (n_saved > 0)))
    return {
        "n_tasks": saved.n_tasks,
        "k": saved.k,
        **saved.as_plain("agents" if counts.all() else HEADING[level]),
        "so_far": {
            "n_runs": int(np.count_nonzero(n_saved)),
            "n_tasks_saved": int(n_saved.sum()),
            "saved": float(money[is_known].sum()) if is_known.any() else None,
            "n_not_measured": int(np.count_nonzero(~is_known)),
            **({"n_chosen": n_chosen} if n_chosen else {}),
        },
    }


def trusted(record: Record, level: Trust) -> Mask:
    """Tell which agents headlines and sentences about costs are made from, (n_agents,)."""
    return np.array([at_least(one.trust, level) for one in record.about], dtype=np.bool_)


def run_costs(record: Record) -> list[tuple[float | None, str]]:
    """Return the cost of each agent's run of all active tasks in US dollars, and how it was found.

    Stated of some of its trials or tasks alone, whichever way it is reckoned: these may be the cheap ones.
    """
    result = saving(record.costs, np.arange(record.n_tasks))
    n_uncosted = np.array(record.n_uncosted or (0,) * record.n_agents)
    in_part = (n_uncosted > 0) | ~_ran(record)
    return [
        (None, NOT_STATED) if np.isnan(cost) else (float(cost), IN_PART if part else BASIS[basis])
        for cost, basis, part in zip(result.subset_costs, result.basis, in_part, strict=True)
    ]


def plausible(record: Record) -> Mask:
    """Tell whose stated cost of a run is believed, (n_agents,)."""
    costs = dict(enumerate(run_costs(record)))
    known = believed(
        {i: cost for i, (cost, _) in costs.items() if cost is not None},
        in_part={i for i, (_, how) in costs.items() if how == IN_PART},
        verified={i for i, one in enumerate(record.about) if one.trust == "verified"},
    )
    return np.isin(np.arange(record.n_agents), list(known))


def of_runs(record: Record) -> FloatArray:
    """Return the costs of agents that ran at least a tenth of what they were asked for; NaN of the others."""
    return np.where(_ran(record)[:, None], record.costs, np.nan)


def _ran(record: Record) -> Mask:
    n_ran = np.count_nonzero((record.n_places > 0) & record.asked, axis=1)
    return np.asarray(10 * n_ran >= np.count_nonzero(record.asked, axis=1), dtype=np.bool_)


def trials(
    record: Record, tasks: IndexArray, facets: Sequence[Facet] = NEVER_MEASURED, level: Trust = TRUST[0]
) -> TrialsAdvice | None:
    """Tell what 1, 2 and R = max(1, ⌊m/k⌋) trials of each task of the subset would be worth, and cost.

    None under two tasks: ȳ(1 − ȳ) of one pass or one failure is 0 and bounds nothing; and without a complete
    agent, as on a board whose tasks became more since its subset was chosen. The calibration of the full
    score is in no error told here, nor a facet that was never measured.

    level: the least trust of an agent whose cost counts.
    """
    if tasks.size < N_TASKS_BOUND or not record.complete.any():
        return None
    k, n_conditions, omega = tasks.size, max(1, len(record.compared)), noise_of(record, tasks).omega
    of_complete = np.ix_(np.flatnonzero(record.complete), tasks)
    rates = np.nanmean(record.table.means[of_complete], axis=1)
    binomial = float(np.mean(rates * (1.0 - rates)))
    # Judges of the same trials add none: independent trials for each one asked for, as these agents ran.
    n_apart = float(n_conditions)
    if record.table.n_trials is not None:
        apart = record.table.n_trials[of_complete] * n_conditions / record.table.n_valid[of_complete]
        n_apart = float(np.nanmedian(apart))
    noise = binomial if omega is None else omega * binomial / n_apart
    counts = trusted(record, level)
    run = saving(of_runs(record)[counts], tasks, plausible(record)[counts]).subset_run
    cost, most = (run["median"] if run else None), max(1, record.n_tasks // k)
    options = tuple(
        TrialsLine(
            n_trials=n,
            se=float(np.sqrt(noise / (k * n) + _beyond(record, facets, n, k))),
            cost_usd=None if cost is None else cost * n_apart * n,
        )
        for n in sorted({1, 2, most})
    )
    why = _why_unknown(record, tasks) if omega is None else ""
    return TrialsAdvice(most, omega, omega is None, options, n_conditions, why)


def _beyond(record: Record, facets: Sequence[Facet], n_trials: int, k: int) -> float:
    apart, cells = {facet.name: False for facet in facets}, np.empty(k)
    rows = [
        Row(cells, levels={**record.repeats[i].levels, "run": n_trials})
        for i in np.flatnonzero(record.complete)
    ]
    of_agents = [(*facet_terms((row,), facets, apart)[0], *cell_variance(row, facets)) for row in rows]
    return sum(term.variance for terms in of_agents for term in terms) / len(rows)


def _why_unknown(record: Record, tasks: IndexArray) -> str:
    k = tasks.size
    if k < N_TASKS_OMEGA:
        return f"these are upper bounds: an estimate needs {N_TASKS_OMEGA} ranking tasks, and there are {k}"
    n_often = n_vouched_repeat(record, tasks)
    if n_often >= N_AGENTS_OMEGA:
        return "these are upper bounds: repeated trials of these tasks never differ"
    so_far = f" ({n_often} so far)" if n_often else ""
    whose = "" if record.vouched.all() else " that are verified or of a trusted account"
    return (
        f"for an estimate instead of an upper bound, run {N_AGENTS_OMEGA} agents{whose} {N_TRIALS_OMEGA} "
        f"times on {N_TASKS_OMEGA} ranking tasks{so_far}"
    )
