"""What a run cost: one trial of every task, each at the mean of the trials that state it.

An agent that ran each task several times looks no dearer than one that ran it once. Rows come in the
canonical order of `analytics.record.rows.checked`, so that the order of the file leaves no trace in the sums.
"""

import numpy as np

from analytics.arrays import CodeArray, FloatArray


def spending(cell: CodeArray, amount: FloatArray | None, n_cells: int) -> FloatArray:
    """Return what a trial of each cell cost, the mean over those that state it, shape (n_cells,).

    cell: (n_rows,); agent and task, 0 to `n_cells` − 1.
    amount: (n_rows,); of the trial; NaN where not stated.
    Returns: in the unit of `amount`; NaN where no trial states it.
    """
    means = np.full(n_cells, np.nan)
    if amount is None:
        return means
    known = ~np.isnan(amount)
    n_stated = np.bincount(cell[known], minlength=n_cells)
    np.divide(np.bincount(cell[known], amount[known], n_cells), n_stated, out=means, where=n_stated > 0)
    return means


def total(per_task: FloatArray) -> float | None:
    """Return the sum over the tasks that state it; None where none does."""
    known = per_task[~np.isnan(per_task)]
    return float(known.sum()) if known.size else None
