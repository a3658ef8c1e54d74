"""The outcome table: mean outcome of every agent on every task, and what is read off it.

A cell is the mean over the compared conditions (prompt variant, judge, temperature) of the mean over the
valid trials under each. An agent's failure is a valid 0, a harness failure (``valid = false``) is missing. A
cell that lacks a condition is NaN; nothing else is. Formulas: analytics/README.md, *The outcome table*.

Source: Ndzomga, *Efficient Benchmarking of AI Agents*, §3.1, Eq. 1 (X and y).
"""

import math
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from analytics.arrays import CodeArray, CountArray, FloatArray, Mask, ratio, read_only
from analytics.errors import CoreError
from analytics.names import first_names

refuse = partial(CoreError, code="table_malformed")


@dataclass(frozen=True, eq=False)
class OutcomeTable:
    """Mean outcomes of agents on tasks, in name order; the arrays are read-only.

    agents, tasks: names, ascending by Unicode code point, none twice; at least one task.
    means: (n_agents, n_tasks); mean outcome in [0, 1]; NaN where, and only where, `n_valid` is 0.
    n_valid: (n_agents, n_tasks); valid trials, summed over conditions.
    dates: each agent's earliest `submitted_at`; None where it is not known.
    trial_variances: (n_agents, n_tasks); s²_ij; NaN where no two valid trials are alike; see `cell_moments`.
    n_trials: (n_agents, n_tasks); R_ij, from 1 to `n_valid`; NaN where missing. Both or neither is given.
    Raises CoreError: with the field and the first place that contradicts the above.
    """

    agents: tuple[str, ...]
    tasks: tuple[str, ...]
    means: FloatArray
    n_valid: CountArray
    dates: tuple[date | None, ...]
    scaffolds: tuple[str, ...]
    models: tuple[str, ...]
    trial_variances: FloatArray | None = None
    n_trials: FloatArray | None = None

    def __post_init__(self) -> None:
        _check_ascending("agents", self.agents)
        _check_ascending("tasks", self.tasks)
        _check_lengths(self)
        _check_cells(self)
        _check_trials(self)
        for field in ("means", "n_valid", "trial_variances", "n_trials"):
            if getattr(self, field) is not None:
                object.__setattr__(self, field, read_only(getattr(self, field)))

    @classmethod
    def from_frame(cls, frame: Any, **options: Any) -> "OutcomeTable":
        """Build the table from a pandas DataFrame, as `analytics.frames.flat_of` reads it with these options.

        They are `columns`, `percent`, `blank`, `benchmark` and `as_of`. What is missing stays missing;
        `Record.from_frame` decides what it counts as.
        """
        from analytics.record import Counting, Record

        return Record.from_frame(frame, Counting(missing="gap"), **options).compared_table()

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each agent and task; `from_frame` reads it back."""
        from analytics.frames import frame_of

        return frame_of(self)

    def plot(self, *, ax: Any = None) -> Any:
        """Draw agents × tasks by pass rate as a heat map; return the matplotlib Axes.

        Raises PlotRefused: without matplotlib, or where there is nothing to draw.
        """
        from analytics.plots import heat_map

        return heat_map(self, ax)

    @property
    def n_agents(self) -> int:
        """Number of agents."""
        return len(self.agents)

    @property
    def n_tasks(self) -> int:
        """Number of active tasks, m."""
        return len(self.tasks)

    def valid(self) -> Mask:
        """Cells with at least one valid trial, shape (n_agents, n_tasks)."""
        return self.n_valid > 0

    def n_valid_tasks(self) -> CodeArray:
        """Tasks with a valid cell for each agent, n_i, shape (n_agents,)."""
        return np.asarray(np.count_nonzero(self.n_valid, axis=1), dtype=np.int64)

    def scores(self) -> FloatArray:
        """Full scores y_i = Σ_j X[i, j] / n_i over the agent's valid tasks, shape (n_agents,), 0 to 1.

        Ndzomga, Eq. 1, with m replaced by n_i; `Record.bounds` gives how far missing cells could move it.
        Raises CoreError: when an agent has no valid cell.
        """
        n_valid_tasks = self.n_valid_tasks()
        if not n_valid_tasks.all():
            names = [repr(self.agents[i]) for i in np.flatnonzero(n_valid_tasks == 0)]
            raise CoreError(f"no valid outcome for {first_names(names)}: no score", code="no_valid_outcome")
        return np.asarray(np.nansum(self.means, axis=1) / n_valid_tasks, dtype=np.float64)

    def complete(self) -> Mask:
        """Agents with valid cells for at least 95% of the tasks, 20·n_i ≥ 19·m, shape (n_agents,)."""
        return np.asarray(20 * self.n_valid_tasks() >= 19 * self.n_tasks, dtype=np.bool_)

    def restrict(self, agents: Mask | None = None, tasks: Mask | None = None) -> "OutcomeTable":
        """Return the table of the agents and tasks whose mask is true; a mask not given keeps all."""
        rows = _positions("agents", agents, self.n_agents)
        columns = _positions("tasks", tasks, self.n_tasks)
        part = np.ix_(rows, columns)
        return OutcomeTable(
            agents=tuple(self.agents[i] for i in rows),
            tasks=tuple(self.tasks[j] for j in columns),
            means=self.means[part],
            n_valid=self.n_valid[part],
            dates=tuple(self.dates[i] for i in rows),
            scaffolds=tuple(self.scaffolds[i] for i in rows),
            models=tuple(self.models[i] for i in rows),
            trial_variances=None if self.trial_variances is None else self.trial_variances[part],
            n_trials=None if self.n_trials is None else self.n_trials[part],
        )


class CellMoments(NamedTuple):
    """The moments of each cell's trials, shape (n_tasks,) each; see `cell_moments`."""

    means: FloatArray
    n_valid: CountArray
    trial_variances: FloatArray
    n_trials: FloatArray


def naive_standard_error(score: float, n_tasks: int) -> float:
    """Naive standard error of a score ȳ over n tasks with a valid cell: √(ȳ(1 − ȳ)/n).

    It is 0 at ȳ = 0 and ȳ = 1, where it says nothing about the uncertainty, and leaves out that tasks differ,
    that trials were repeated, and all variance from prompts, judges and runs.
    """
    if n_tasks < 1:
        raise CoreError(
            f"no naive standard error over {n_tasks} tasks with a valid outcome", code="no_valid_outcome"
        )
    if not 0.0 <= score <= 1.0:
        raise refuse(f"a score lies from 0 to 1, not at {score}")
    return math.sqrt(score * (1.0 - score) / n_tasks)


def cell_moments(
    task: npt.ArrayLike,
    outcome: npt.ArrayLike,
    valid: npt.ArrayLike,
    n_tasks: int,
    *,
    condition: npt.ArrayLike | None = None,
    n_conditions: int = 1,
    trial: npt.ArrayLike | None = None,
    weight: FloatArray | None = None,
) -> CellMoments:
    """One agent's row of the table with the variance of its trials, in one pass.

    task: (n_rows,); task codes, 0 to `n_tasks` − 1.
    outcome: (n_rows,); 0 to 1 where valid; not looked at elsewhere.
    condition: (n_rows,); condition codes, 0 to `n_conditions` − 1. A cell is the mean over conditions of the
        means of their trials, valid only where each has a valid trial.
    trial: (n_rows,); any whole numbers. Rows of a task with the same one are verdicts on one trial, each
        under another condition; by default each row is a trial of its own.
    weight: (n_rows,); of a row in the mean of its condition, above 0.
    Returns n_trials: R = 1/Σ_t a_t², a_t the share of the cell that trial t decides; of R_c trials under each
        of C conditions, each judged once, C² / Σ_c (1/R_c).
    Returns trial_variances: s² = Σ_p Σ_t (v_t − mean of p)² / Σ_p (n_p − 1), v_t the mean of a trial's
        verdicts, over the panels p: the n_p trials judged under the same conditions. Exactly 0 where all
        trials of each panel are equal, NaN where no panel has two.
    Raises CoreError: with the first row and column at fault.
    """
    tasks, outcomes, checked = _checked_rows(task, outcome, valid, n_tasks)
    weights = None if weight is None else weight[checked]
    if condition is None or n_conditions == 1:
        return _moments(tasks, np.zeros_like(tasks), outcomes, weights, n_tasks)
    conditions = _codes("condition", condition, n_conditions)[checked]
    trials = np.arange(tasks.size) if trial is None else np.asarray(trial)[checked]
    weights = np.ones(tasks.size) if weights is None else weights
    totals = _sums_by_value(tasks * n_conditions + conditions, weights, n_tasks * n_conditions)
    totals = totals.reshape(n_tasks, n_conditions)
    # what a verdict weighs in its cell, as a multiple of what it would where conditions have equal weights
    shares = totals.max(axis=1)[tasks] * weights / totals[tasks, conditions]
    cells = _moments(*_judged(tasks, trials, conditions, outcomes, shares), n_tasks)
    everywhere = (totals > 0).all(axis=1)
    n_valid = np.bincount(tasks, minlength=n_tasks)
    return CellMoments(
        means=np.where(everywhere, cells.means, np.nan),
        n_valid=np.where(everywhere, n_valid, 0).astype(np.int32),
        trial_variances=np.where(everywhere, cells.trial_variances, np.nan),
        n_trials=np.where(everywhere, cells.n_trials, np.nan),
    )


def _judged(
    task: CodeArray, trial: CodeArray, condition: CodeArray, outcome: FloatArray, weight: FloatArray
) -> tuple[CodeArray, CodeArray, FloatArray, FloatArray]:
    """Take each trial's task and panel, the mean of its verdicts and the sum of their weights."""
    order = np.lexsort((weight * outcome, trial, task))  # the order that rows came in leaves no trace
    task, trial, condition = task[order], trial[order], condition[order]
    weight, weighted = weight[order], (weight * outcome)[order]
    first = np.flatnonzero(_starts(task, trial))
    # A panel is known by the sum of what its conditions drew.
    drawn = np.random.default_rng(0).integers(2**62, size=int(condition.max(initial=0)) + 1)
    if not first.size:
        return task, trial, weighted, weight
    total = np.add.reduceat(weight, first)
    values = np.add.reduceat(weighted, first) / total
    return task[first], np.add.reduceat(drawn[condition], first), values, total


def _moments(
    task: CodeArray, panel: CodeArray, outcome: FloatArray, weight: FloatArray | None, n_tasks: int
) -> CellMoments:
    """Take independent trials, one a row, in ascending order of value, then of weight."""
    columns = (outcome, panel, task) if weight is None else (weight, outcome, panel, task)
    order = slice(None) if _ascends(task) else np.lexsort(columns)
    task, panel, outcome = task[order], panel[order], outcome[order]
    first = _starts(task, panel)
    group, last = np.cumsum(first) - 1, np.roll(first, -1)
    n_of_panel, of_task = np.bincount(group), task[first]
    sums = np.bincount(group, weights=outcome)
    apart = np.bincount(group, weights=(outcome - (sums / n_of_panel)[group]) ** 2)
    apart *= outcome[first] != outcome[last]
    parts: list[FloatArray | CodeArray] = [n_of_panel, n_of_panel, sums, apart]
    if weight is not None:
        weight = weight[order]
        parts[:3] = [np.bincount(group, one) for one in (weight, weight**2, weight * outcome)]
    total, squared, summed, squares = (_sums_by_value(of_task, one, n_tasks) for one in parts)
    n_valid = np.bincount(task, minlength=n_tasks)
    return CellMoments(
        means=ratio(summed, total),
        n_valid=n_valid.astype(np.int32),
        trial_variances=ratio(squares, n_valid - np.bincount(of_task, minlength=n_tasks)),
        n_trials=ratio(total**2, squared),
    )


def _starts(task: CodeArray, part: CodeArray) -> Mask:
    """Tell where in sorted rows another task or another part of one begins."""
    first = np.ones(task.size, dtype=np.bool_)
    first[1:] = (task[1:] != task[:-1]) | (part[1:] != part[:-1])
    return first


def _sums_by_value(task: CodeArray, values: FloatArray | CodeArray, n_tasks: int) -> FloatArray:
    """Sum the values of each task in ascending order, so that the order they came in leaves no trace."""
    order = slice(None) if _ascends(task) else np.lexsort((values, task))
    return np.asarray(np.bincount(task[order], weights=values[order], minlength=n_tasks), dtype=np.float64)


def _ascends(task: CodeArray) -> bool:
    """Whether the tasks ascend, none twice, so that there is nothing to order."""
    return bool((task[1:] > task[:-1]).all())


def _check_ascending(field: str, names: tuple[str, ...]) -> None:
    for earlier, later in pairwise(names):
        if earlier >= later:
            raise refuse(
                f"{field}: {later!r} stands after {earlier!r}; names ascend by code point, none twice"
            )


def _check_lengths(table: OutcomeTable) -> None:
    if not table.tasks:
        raise refuse("a table needs at least one task")
    for field in ("dates", "scaffolds", "models"):
        if len(getattr(table, field)) != table.n_agents:
            raise refuse(f"{field}: {len(getattr(table, field))} values for {table.n_agents} agents")
    shape = (table.n_agents, table.n_tasks)
    for field in ("means", "n_valid", "trial_variances", "n_trials"):
        array, dtype = getattr(table, field), np.int32 if field == "n_valid" else np.float64
        if array is not None and (array.dtype != dtype or array.shape != shape):
            raise refuse(f"{field}: {array.dtype} {array.shape}, not {np.dtype(dtype)} {shape}")


def _check_cells(table: OutcomeTable) -> None:
    for name, day in zip(table.agents, table.dates, strict=True):
        if day is not None and (isinstance(day, datetime) or not isinstance(day, date)):
            raise refuse(f"dates: {name!r} has {day!r}, not a date without time of day")
    counted = table.n_valid > 0
    inside = (table.means >= 0.0) & (table.means <= 1.0)
    wrong = (table.n_valid < 0) | np.where(counted, ~inside, ~np.isnan(table.means))
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise refuse(
            f"agent {table.agents[i]!r} on task {table.tasks[j]!r}: mean {table.means[i, j]} "
            f"from {table.n_valid[i, j]} valid trials"
        )


def _check_trials(table: OutcomeTable) -> None:
    """Refuse a variance without trials to vary, and a number of trials that the valid ones cannot give."""
    variances, n_trials = table.trial_variances, table.n_trials
    if variances is None and n_trials is None:
        return
    if variances is None or n_trials is None:
        raise refuse("trial_variances and n_trials are given together")
    # Cells whose variance is not from 0 to ½ on two trials or more, or whose R is not from 1 to n_valid
    in_range = (variances >= 0.0) & (variances <= 0.5 + 1e-9) & (table.n_valid >= 2)
    counted = (n_trials >= 1.0 - 1e-9) & (n_trials <= table.n_valid * (1 + 1e-9))
    right = np.where(table.n_valid > 0, counted, np.isnan(n_trials)) & (np.isnan(variances) | in_range)
    wrong = np.asarray(~right, dtype=np.bool_)
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise refuse(
            f"agent {table.agents[i]!r} on task {table.tasks[j]!r}: variance {variances[i, j]} "
            f"of {n_trials[i, j]} trials from {table.n_valid[i, j]} valid ones"
        )


def _positions(field: str, mask: Mask | None, n: int) -> CodeArray:
    if mask is None:
        return np.arange(n, dtype=np.int64)
    if mask.dtype != np.bool_ or mask.shape != (n,):
        raise refuse(f"{field}: a mask of {mask.dtype} {mask.shape}, not bool ({n},)")
    return np.asarray(np.flatnonzero(mask), dtype=np.int64)


def _whole_numbers(column: str, values: npt.ArrayLike) -> CodeArray:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise CoreError(
            f"{column}: a list of whole numbers is needed, not {array.dtype} {array.shape}",
            code="row_malformed",
        )
    return array.astype(np.int64, copy=False)


def _truths(values: npt.ArrayLike) -> Mask:
    """Refuse what is neither true nor false: as a truth value, the text "0" would count as valid."""
    array = np.asarray(values)
    truths = array.astype(np.bool_) if array.dtype.kind in "biu" or not array.size else None
    if truths is None or (truths != array).any():
        raise CoreError(
            f"valid: true and false, or 1 and 0, are needed, not {array.dtype}", code="row_malformed"
        )
    return truths


def _codes(column: str, values: npt.ArrayLike, n_codes: int) -> CodeArray:
    codes = _whole_numbers(column, values)
    outside = (codes < 0) | (codes >= n_codes)
    if outside.any():
        row = int(np.argmax(outside))
        raise CoreError(
            f"row {row}, {column}: code {codes[row]} is not from 0 to {n_codes - 1}", code="row_malformed"
        )
    return codes


def _checked_rows(
    task: npt.ArrayLike, outcome: npt.ArrayLike, valid: npt.ArrayLike, n_tasks: int
) -> tuple[CodeArray, FloatArray, Mask]:
    tasks, outcomes = _codes("task", task, n_tasks), np.asarray(outcome, dtype=np.float64)
    counted = _truths(valid)
    if len({column.shape for column in (tasks, outcomes, counted)}) > 1:
        shapes = f"task {tasks.shape}, outcome {outcomes.shape}, valid {counted.shape}"
        raise CoreError(f"columns differ in length: {shapes}", code="row_malformed")
    wrong = counted & ~((outcomes >= 0.0) & (outcomes <= 1.0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise CoreError(f"row {row}, outcome: {outcomes[row]} is not from 0 to 1", code="row_malformed")
    return tasks[counted], outcomes[counted], counted
