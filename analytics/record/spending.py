"""What a run cost: trials added up within a run, mean over the runs that state it.

A run of a task is what one delivery holds of it under one setting. Rows come in the canonical order of
`analytics.record.rows.checked`, so that the order of the file leaves no trace in the sums.
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
        Any whole numbers that tell the runs of a cell apart; the rows of one stand together.
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
    cell, run, amount = cell[stated], run[stated], amount[stated]
    first = np.ones(len(cell), dtype=np.bool_)
    first[1:] = (cell[1:] != cell[:-1]) | (run[1:] != run[:-1])
    of_run = np.bincount(np.cumsum(first) - 1, amount, int(first.sum()))
    means, n_runs = np.full(n_cells, np.nan), np.bincount(cell[first], minlength=n_cells)
    np.divide(np.bincount(cell[first], of_run, n_cells), n_runs, out=means, where=n_runs > 0)
    return means


def total(per_task: FloatArray) -> float | None:
    """Return the sum over the tasks that state it; None where none does."""
    stated = per_task[~np.isnan(per_task)]
    return float(stated.sum()) if stated.size else None
