"""Whole runs: deliveries that together hold every task equally often.

Source: The rule is this project's own.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from analytics.arrays import CodeArray, FloatArray, Mask


class DeliveredTrials(NamedTuple):
    """Delivered trials, shape (n_rows,) each.

    ``series`` numbers an agent's tasks of one part under one condition, ``size`` is how many tasks it has,
    ``delivery`` the place in the order of acceptance; ``standing`` is false of what was withdrawn.
    """

    series: CodeArray
    size: CodeArray
    delivery: CodeArray
    task: CodeArray
    outcome: FloatArray
    standing: Mask


class Series(NamedTuple):
    """One series: the positions of its trials; the delivery and task of each, numbered from 0."""

    at: CodeArray
    delivery: CodeArray
    task: CodeArray
    n: CodeArray  # trials, (n_deliveries, n_tasks)


def whole_runs(trials: DeliveredTrials) -> tuple[Mask, Mask]:
    """Find the trials that are part of a whole run, and those of series that were retried, (n_rows,) each."""
    whole, retried = (np.zeros(len(trials.series), dtype=np.bool_) for _ in range(2))
    for one in _each(trials):
        runs = _part_of_a_run(one.n)
        whole[one.at] = runs[one.delivery]
        retried[one.at] = _retried(one, runs, trials)
    return whole, retried


def _each(trials: DeliveredTrials) -> Iterator[Series]:
    order = np.argsort(trials.series, kind="stable")
    first = np.flatnonzero(np.diff(trials.series[order], prepend=-1))
    for at in np.split(order, first[1:]) if len(order) else ():
        deliveries, delivery = np.unique(trials.delivery[at], return_inverse=True)
        tasks, task = np.unique(trials.task[at], return_inverse=True)
        shape = (len(deliveries), max(len(tasks), int(trials.size[at[0]])))
        n = np.bincount(delivery * shape[1] + task, minlength=shape[0] * shape[1]).reshape(shape)
        yield Series(at, delivery, task, n)


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


def _retried(one: Series, runs: Mask, trials: DeliveredTrials) -> bool:
    """Whether a delivery of no whole run has unequal numbers of trials, and a later one a lower mean."""
    standing = np.zeros(len(runs), dtype=np.bool_)
    standing[one.delivery] = trials.standing[one.at]
    least = np.where(one.n > 0, one.n, one.n.max()).min(axis=1)
    unequal = np.flatnonzero((least < one.n.max(axis=1)) & ~runs & standing)
    if not unequal.size or unequal[0] == len(runs) - 1:
        return False
    cell = one.delivery * one.n.shape[1] + one.task
    sums = np.bincount(cell, trials.outcome[one.at], one.n.size).reshape(one.n.shape)
    means = np.divide(sums, one.n, out=np.full(one.n.shape, np.nan), where=(one.n > 0) & standing[:, None])
    return any((np.round(means[d + 1 :] - means[d], 9) < 0).any() for d in unequal.tolist())
