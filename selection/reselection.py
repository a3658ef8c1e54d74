"""Reselection: which tasks would enter and leave the subset if it were chosen again, and at what price.

The theory is in ``selection/README.md``, “Reselection”.

Source: Ndzomga, *Efficient Benchmarking of AI Agents*, §5.1, Phase 3. Hysteresis is this project's own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from analytics.arrays import FloatArray, IndexArray, read_only
from analytics.outcome_table import OutcomeTable
from selection import bands
from selection.bands import HI, LO, Band
from selection.cost import Saving, saving
from selection.errors import SelectionError

HYSTERESIS = 0.05

Figures = TypeVar("Figures")


@dataclass(frozen=True, eq=False)
class Proposal(Generic[Figures]):
    """A subset that could take the place of the active one.

    hysteresis: h; 0 under the plain rule.
    tasks: (k,); proposed task indices, ascending; empty where the benchmark is unsuited or has too few
        agents.
    lo, hi: edges of the band that was used; of the first one where there is no subset.
    widened: whether the first band was too thin, so that a wider one was used; False where there is no
        subset.
    entering, leaving: tasks that are new in the subset, and that are no longer in it; ascending.
    deltas: length n_agents; for each agent of the table, the entering tasks it has no valid outcome for.
    figures: what the caller expects of a subset chosen by this rule; None where none were asked for, or there
        is no subset.
    saving: cost of a run on the proposed subset beside a full run; None where there is no subset.
    """

    hysteresis: float
    tasks: IndexArray
    lo: float
    hi: float
    widened: bool
    entering: IndexArray
    leaving: IndexArray
    deltas: tuple[IndexArray, ...]
    figures: Figures | None
    saving: Saving | None

    @property
    def k(self) -> int:
        """Number of proposed tasks."""
        return int(self.tasks.size)


@dataclass(frozen=True, eq=False)
class Proposals(Generic[Figures]):
    """The plain proposal and the one with hysteresis, side by side.

    band: the plain rule's band: pass rates now, unsure edges, and the sentence that says why.
    """

    plain: Proposal[Figures]
    with_hysteresis: Proposal[Figures]
    band: Band


def carry(
    previous: IndexArray,
    pass_rates: FloatArray,
    n_complete: int,
    *,
    hysteresis: float = HYSTERESIS,
    lo: float = LO,
    hi: float = HI,
    widening: bool = True,
) -> IndexArray:
    """Choose the subset that follows `previous`, told from the pass rates alone.

    previous: (k_previous,); task indices of the subset so far; empty where there is none.
    pass_rates: (n_tasks,); 0 to 1; NaN where unknown.
    n_complete: complete agents they rest on; under 5 there is no subset.
    hysteresis: h, 0 to under ½; 0 is the plain rule.
    Returns: (k,); ascending; empty where there is no subset.
    Raises SelectionError (task_unknown, hysteresis_range, band_range).
    """
    previous = _checked_previous(previous, pass_rates.size)
    _check_hysteresis(hysteresis)
    moved = _moved(previous, pass_rates, hysteresis, lo, hi)
    return bands.tasks_in_band(moved, n_complete, lo=lo, hi=hi, widening=widening)


def propose(
    table: OutcomeTable,
    previous: IndexArray,
    *,
    hysteresis: float = HYSTERESIS,
    band: Band | None = None,
    weights: FloatArray | None = None,
    history_window: int | None = None,
    lo: float = LO,
    hi: float = HI,
    widening: bool = True,
    costs: FloatArray | None = None,
    figures: Callable[[float], Figures] | None = None,
) -> Proposals[Figures]:
    """Propose what the active subset could be replaced by, by the plain rule and with hysteresis.

    table: all agents of the benchmark; pass rates rest on the complete ones.
    previous: (k_previous,); the active subset.
    band: of the agents that are to count; when not given, `selection.bands.table_band` of the table.
    costs: (n_agents, n_tasks); as in `selection.cost.saving`; all unknown when not given.
    figures: called with h, once for each h: the figures to expect of this rule, nested and in time.
    Raises SelectionError (task_unknown, hysteresis_range, band_range, shape, weight_range, window_range,
        cost_range).
    """
    previous = _checked_previous(previous, table.n_tasks)
    _check_hysteresis(hysteresis)
    band = band or bands.table_band(
        table, weights, lo=lo, hi=hi, widening=widening, history_window=history_window
    )

    def proposal(h: float) -> Proposal[Figures]:
        moved = _moved(previous, band.pass_rates, h, lo, hi)
        used = bands.band_used(moved, band.n_complete, lo=lo, hi=hi, widening=widening)
        tasks = bands.tasks_in_band(moved, band.n_complete, lo=lo, hi=hi, widening=widening)
        edges = (used.lo, used.hi) if used else (lo, hi)
        return proposed(table, previous, tasks, edges, (lo, hi), h, costs, figures)

    plain = proposal(0.0)
    return Proposals(plain, proposal(hysteresis) if hysteresis else plain, band)


def proposed(
    table: OutcomeTable,
    previous: IndexArray,
    tasks: IndexArray,
    edges: tuple[float, float],
    first: tuple[float, float],
    hysteresis: float = 0.0,
    costs: FloatArray | None = None,
    figures: Callable[[float], Figures] | None = None,
) -> Proposal[Figures]:
    """Tell what it takes to put these tasks in the place of the active subset.

    tasks: (k,); ascending; empty where there is no subset.
    edges, first: the band that was used, and the one tried first.
    Raises SelectionError (shape, cost_range).
    """
    entering = np.setdiff1d(tasks, previous)
    return Proposal(
        hysteresis=hysteresis,
        tasks=read_only(tasks),
        lo=edges[0],
        hi=edges[1],
        widened=edges != first,
        entering=read_only(entering),
        leaving=read_only(np.setdiff1d(previous, tasks)),
        deltas=tuple(read_only(entering[row == 0]) for row in table.n_valid[:, entering]),
        figures=figures(hysteresis) if figures is not None and tasks.size else None,
        saving=saving(_checked_costs(costs, table), tasks) if tasks.size else None,
    )


def _moved(previous: IndexArray, rates: FloatArray, hysteresis: float, lo: float, hi: float) -> FloatArray:
    """p′: the pass rates, those of the previous subset moved by at most h towards the middle of the band."""
    moved = np.array(rates, dtype=np.float64)
    moved[previous] = np.clip((lo + hi) / 2, moved[previous] - hysteresis, moved[previous] + hysteresis)
    return moved


def _checked_previous(previous: IndexArray, n_tasks: int) -> IndexArray:
    tasks = np.unique(np.asarray(previous, dtype=np.intp))
    if tasks.size != np.size(previous):
        raise SelectionError(
            f"{np.size(previous)} tasks in the subset, of which {tasks.size} differ", code="task_unknown"
        )
    if tasks.size and not 0 <= tasks[0] <= tasks[-1] < n_tasks:
        wrong = tasks[0] if tasks[0] < 0 else tasks[-1]
        raise SelectionError(
            f"task {wrong} of the subset is not one of {n_tasks} active tasks", code="task_unknown"
        )
    return tasks


def _check_hysteresis(hysteresis: float) -> None:
    if not 0.0 <= hysteresis < 0.5:
        raise SelectionError(
            f"a hysteresis of {hysteresis}; it lies from 0 to under 0.5", code="hysteresis_range"
        )


def _checked_costs(costs: FloatArray | None, table: OutcomeTable) -> FloatArray:
    if costs is None:
        return np.full(table.means.shape, np.nan)
    costs = np.asarray(costs, dtype=np.float64)
    if costs.shape != table.means.shape:
        raise SelectionError(f"costs {costs.shape} for outcomes {table.means.shape}", code="shape")
    return costs
