"""Reselection: which tasks would enter and leave the subset if it were chosen again, and at what price.

The theory is in ``selection/README.md``, “Reselection”.

Source: Ndzomga, *Efficient Benchmarking of AI Agents*, §5.1, Phase 3. Hysteresis is this project's own.
"""

from dataclasses import dataclass

import numpy as np

from analytics.arrays import FloatArray, IndexArray, read_only
from analytics.outcome_table import OutcomeTable
from selection import bands
from selection.bands import HI, LO, Band
from selection.errors import SelectionError

HYSTERESIS = 0.05


@dataclass(frozen=True, eq=False)
class Proposal:
    """A subset that could take the place of the active one.

    hysteresis: h; 0 under the plain rule.
    tasks: (k,); ascending; empty where the benchmark is unsuited or has too few agents.
    lo, hi: edges of the band that was used; of the first one where there is no subset.
    widened: whether the first band was too thin, so that a wider one was used.
    entering, leaving: tasks that are new in the subset, and that are no longer in it; ascending.
    deltas: length n_agents; for each agent of the table, the entering tasks it has no valid outcome for.
    """

    hysteresis: float
    tasks: IndexArray
    lo: float
    hi: float
    widened: bool
    entering: IndexArray
    leaving: IndexArray
    deltas: tuple[IndexArray, ...]

    @property
    def k(self) -> int:
        """Number of proposed tasks."""
        return int(self.tasks.size)


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
    """Choose the subset that follows `previous`, from the pass rates alone, (k,), ascending.

    previous: (k_previous,); task indices of the subset so far; empty where there is none.
    pass_rates: (n_tasks,); 0 to 1; NaN where unknown.
    n_complete: complete agents they rest on; under 5 there is no subset.
    hysteresis: h, 0 to under ½; 0 is the plain rule.
    """
    previous = _checked_previous(previous, pass_rates.size)
    _check_hysteresis(hysteresis)
    moved = _moved(previous, pass_rates, hysteresis, lo, hi)
    return bands.tasks_in_band(moved, n_complete, lo=lo, hi=hi, widening=widening)


def propose(
    table: OutcomeTable,
    previous: IndexArray,
    band: Band,
    *,
    hysteresis: float = HYSTERESIS,
    lo: float = LO,
    hi: float = HI,
    widening: bool = True,
) -> tuple[Proposal, Proposal]:
    """Propose what the active subset could be replaced by, by the plain rule and with hysteresis.

    previous: (k_previous,); the active subset.
    band: of the agents that are to count.
    """
    previous = _checked_previous(previous, table.n_tasks)
    _check_hysteresis(hysteresis)

    def proposal(h: float) -> Proposal:
        moved = _moved(previous, band.pass_rates, h, lo, hi)
        used = bands.band_used(moved, band.n_complete, lo=lo, hi=hi, widening=widening)
        tasks = bands.tasks_in_band(moved, band.n_complete, lo=lo, hi=hi, widening=widening)
        return proposed(table, previous, tasks, used or (lo, hi), (lo, hi), h)

    plain = proposal(0.0)
    return plain, proposal(hysteresis) if hysteresis else plain


def proposed(
    table: OutcomeTable,
    previous: IndexArray,
    tasks: IndexArray,
    edges: tuple[float, float],
    first: tuple[float, float],
    hysteresis: float = 0.0,
) -> Proposal:
    """Tell what it takes to put these tasks in the place of the active subset.

    edges, first: the band that was used, and the one tried first.
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
