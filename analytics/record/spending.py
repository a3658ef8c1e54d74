"""What a run cost: trials added up within a run, mean over the runs that state it.

A run of a task is what one delivery holds of it under one setting. Addends are sorted by value, so that the
order of rows leaves no trace.
"""

import numpy as np

from analytics.arrays import CodeArray, FloatArray


def spending(cell: CodeArray, run: CodeArray, amount: FloatArray | None, n_cells: int) -> FloatArray:
    """Return what a run of each cell cost: Σ over trials, mean over runs, shape (n_cells,).

    Parameters
    ----------
    cell : int array, shape (n_rows,)
        Agent and task, 0 to `n_cells` − 1.
    run : int array, shape (n_rows,)
        Any whole numbers from 0 that tell the runs of a cell apart.
    amount : float array, shape (n_rows,), or None
        Of the trial; NaN where not stated.

    Returns
    -------
    float64 array
        In the unit of `amount`; NaN where no trial states it.
    """
    if amount is None:
        return np.full(n_cells, np.nan)
    stated = ~np.isnan(amount)
    group = cell[stated] * (int(run.max(initial=0)) + 1) + run[stated]
    groups, number = np.unique(group, return_inverse=True)
    of_run = _sums(number, amount[stated], len(groups))
    of_cell = groups // (int(run.max(initial=0)) + 1)
    return _means(of_cell, of_run, n_cells)


def total(per_task: FloatArray) -> float | None:
    """Return the sum over the tasks that state it; None where none does."""
    stated = per_task[~np.isnan(per_task)]
    return float(stated.sum()) if stated.size else None


def _means(group: CodeArray, values: FloatArray, n_groups: int) -> FloatArray:
    means, n = np.full(n_groups, np.nan), np.bincount(group, minlength=n_groups)
    np.divide(_sums(group, values, n_groups), n, out=means, where=n > 0)
    return means


def _sums(group: CodeArray, values: FloatArray, n_groups: int) -> FloatArray:
    order = np.lexsort((values, group))
    return np.asarray(np.bincount(group[order], values[order], n_groups), dtype=np.float64)
