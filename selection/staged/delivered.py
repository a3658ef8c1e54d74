"""Which tasks of an agent are there whole, and its mean outcomes on them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from analytics.arrays import CountArray, FloatArray
from analytics.record import Compared, Counting, Delivery, Record, Rows, agent_rows, in_part
from analytics.record.rows import Setting


def delivered_means(record: Record, agent: int, n_trials: int) -> dict[str, float | None]:
    """Return the mean outcomes of the tasks that an agent delivered whole, by name; None: invalid.

    A task is there with all of its trials, under each condition that is compared.

    n_trials: asked for of each task, under each condition.
    """
    n_places = n_trials * max(len(record.compared), 1)
    return _whole(record.table.tasks, record.table.means[agent], record.n_places[agent], n_places)


def means_so_far(
    rows: Rows,
    *,
    tasks: Sequence[str],
    settings: Sequence[Setting],
    deliveries: Sequence[Delivery],
    counting: Counting,
    compared: Compared,
    n_trials: int,
) -> dict[str, float | None]:
    """Return the same of one agent that is still delivering, from its rows (`analytics.record.agent_rows`).

    The record counts as many trials as there are on the task with the fewest; here a task that lacks some is
    left out, so that the others tell what they will tell once it has them.
    """
    known: Any = {
        "n_agents": 1,
        "settings": settings,
        "deliveries": deliveries,
        "counting": counting,
        "compared": compared,
    }
    in_rows = np.flatnonzero(~in_part(rows, tasks=tasks, n_trials=n_trials, **known)[0])
    if not in_rows.size:
        return {}
    left = [tasks[j] for j in in_rows.tolist()]
    (own,) = agent_rows(rows.on(in_rows, len(tasks)), tasks=left, **known)
    return _whole(left, own.means, own.n_places, n_trials * max(len(compared.conditions), 1))


def _whole(
    tasks: Sequence[str], means: FloatArray, n_places: CountArray, n_asked: int
) -> dict[str, float | None]:
    there = np.flatnonzero(n_places >= n_asked).tolist()
    return {tasks[j]: None if np.isnan(means[j]) else float(means[j]) for j in there}
