"""Whole runs: deliveries that together hold every task equally often.

Source: The rule is this project's own.
"""

import numpy as np

from analytics.arrays import CodeArray, FloatArray, Mask


def whole_runs(
    *,
    series: CodeArray,
    size: CodeArray,
    delivery: CodeArray,
    task: CodeArray,
    outcome: FloatArray,
    standing: Mask,
) -> tuple[Mask, Mask]:
    """Find the trials that are part of a whole run, and those of series that were retried, (n_rows,) each.

    series, size: an agent's tasks of one part under one condition, numbered, and how many tasks it has.
    delivery: place in the order of acceptance.
    standing: false of what was withdrawn.
    """
    whole, retried = (np.zeros(len(series), dtype=np.bool_) for _ in range(2))
    order = np.argsort(series, kind="stable")
    first = np.flatnonzero(np.diff(series[order], prepend=-1))
    for at in np.split(order, first[1:]) if len(order) else ():
        deliveries, row = np.unique(delivery[at], return_inverse=True)
        tasks, column = np.unique(task[at], return_inverse=True)
        shape = (len(deliveries), max(len(tasks), int(size[at[0]])))
        cell = row * shape[1] + column
        n = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
        runs, stands = _part_of_a_run(n), np.zeros(shape[0], dtype=np.bool_)
        stands[row] = standing[at]
        sums = np.asarray(np.bincount(cell, outcome[at], n.size).reshape(shape), dtype=np.float64)
        whole[at], retried[at] = runs[row], _retried(n, sums, runs, stands)
    return whole, retried


def _part_of_a_run(n: CodeArray) -> Mask:
    is_part, first, n_trials = np.zeros(len(n), dtype=np.bool_), 0, np.zeros(n.shape[1], dtype=np.int64)
    for d, more in enumerate(n):
        if (n_trials[more > 0] > 0).any():
            first, n_trials = d, np.zeros_like(n_trials)
        n_trials = n_trials + more
        if n_trials.min() == n_trials.max():
            is_part[first : d + 1] = True
            first, n_trials = d + 1, np.zeros_like(n_trials)
    return is_part


def _retried(n: CodeArray, sums: FloatArray, runs: Mask, standing: Mask) -> bool:
    """Whether a delivery of no whole run, (n_deliveries, n_tasks), is uneven and a later one lower."""
    least = np.where(n > 0, n, n.max()).min(axis=1)
    unequal = np.flatnonzero((least < n.max(axis=1)) & ~runs & standing)
    if not unequal.size or unequal[0] == len(runs) - 1:
        return False
    means = np.divide(sums, n, out=np.full(n.shape, np.nan), where=(n > 0) & standing[:, None])
    return any((np.round(means[d + 1 :] - means[d], 9) < 0).any() for d in unequal.tolist())
