"""Cost: what a subset saves, in tasks and in money.

The theory is in ``selection/README.md``, “Cost”.

Source: Ndzomga, *Efficient Benchmarking of AI Agents*, Tables 2 and 5, §4.3 (linear scaling with the tasks).
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from analytics.arrays import FloatArray, IndexArray, Mask, read_only
from selection.errors import SelectionError

Basis = Literal["measured per task", "linear in tasks", "implausible", "not measured"]
MEASURED: Basis = "measured per task"
LINEAR: Basis = "linear in tasks"
IMPLAUSIBLE: Basis = "implausible"
NOT_MEASURED: Basis = "not measured"
SAME = 1e-9


@dataclass(frozen=True)
class Spread:
    """Middle and spread of an amount over agents, in US dollars."""

    median: float
    lower_quartile: float
    upper_quartile: float
    smallest: float
    largest: float


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


def saving(costs: FloatArray, tasks: IndexArray, plausible: Mask | None = None) -> Saving:
    """Tell what a subset run saves, for each agent and over them.

    costs: (n_agents, n_tasks); of a trial, the mean over its trials; NaN where not known.
    plausible: (n_agents,); whose costs are believed; by default all.
    """
    costs, in_subset = _checked(costs, tasks)
    n_agents, n_tasks = costs.shape
    believed = np.ones(n_agents, dtype=np.bool_) if plausible is None else plausible
    subset_costs, full_costs = np.full(n_agents, np.nan), np.full(n_agents, np.nan)
    basis = list[Basis]()
    for i, (row, is_believed) in enumerate(zip(costs, believed, strict=True)):
        known = row[~np.isnan(row)]
        if not known.size:
            basis.append(NOT_MEASURED)
        elif not is_believed:
            basis.append(IMPLAUSIBLE)
        elif known.size < n_tasks or np.ptp(known) <= SAME * known.max():
            basis.append(LINEAR)
            per_task = np.nanmean(row)
            subset_costs[i], full_costs[i] = np.count_nonzero(in_subset) * per_task, n_tasks * per_task
        else:
            basis.append(MEASURED)
            subset_costs[i], full_costs[i] = np.sum(row[in_subset]), np.sum(row)
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
    smallest, lower, median, upper, largest = np.quantile(known, [0.0, 0.25, 0.5, 0.75, 1.0])
    return Spread(float(median), float(lower), float(upper), float(smallest), float(largest))


def _checked(costs: FloatArray, tasks: IndexArray) -> tuple[FloatArray, Mask]:
    costs, tasks = np.asarray(costs, dtype=np.float64), np.asarray(tasks, dtype=np.intp)
    if costs.ndim != 2:
        raise SelectionError(f"costs have shape {costs.shape}, not (n_agents, n_tasks)", code="shape")
    if not tasks.size:
        raise SelectionError("no task in the subset", code="no_tasks")
    if tasks.min() < 0 or tasks.max() >= costs.shape[1] or np.unique(tasks).size != tasks.size:
        raise SelectionError(
            f"a subset of {tasks.size} tasks that are not {costs.shape[1]} tasks' positions", code="shape"
        )
    wrong = ~np.isnan(costs) & ~((costs >= 0.0) & np.isfinite(costs))
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise SelectionError(
            f"agent {i}, task {j}: a cost of {costs[i, j]}; it is finite and not negative", code="cost_range"
        )
    in_subset = np.zeros(costs.shape[1], dtype=np.bool_)
    in_subset[tasks] = True
    return costs, in_subset
