"""How alike the repeated trials of one agent are, from its rows."""

from typing import Any

import numpy as np

from analytics.trials.flags import dependent_trials, only_gains
from analytics.trials.icc import IccRefused, intraclass_correlation, task_trials


def consistency(*, task: np.ndarray, run: np.ndarray, outcome: np.ndarray) -> dict[str, Any]:
    """Tell an agent's intraclass correlation, or why it has none, and trials that repeat each other.

    `task`, `run` and `outcome` are columns of its valid rows; a run is one submission, setting and trial.
    """
    copies = _copies(task, run, outcome)
    if copies:
        return {"reason": f"not measured: {copies}", "copies": copies}
    try:
        found = intraclass_correlation(task_trials(task, outcome))
    except IccRefused as refusal:
        return {"reason": str(refusal), "copies": ""}
    return {
        "icc": found.icc,
        "lower": found.interval.lower if found.interval else None,
        "upper": found.interval.upper if found.interval else None,
        "note": found.note,
        "sigma_w2": found.sigma_w2,
        "trials_per_task": found.n_0,
        "copies": "",
    }


def only_better(*, task: np.ndarray, submission: np.ndarray, outcome: np.ndarray) -> str:
    """Tell of an agent whose latest submission is better on some tasks and worse on none than the one before.

    `task`, `submission` and `outcome` are columns of its valid rows; submissions are numbered in order.
    """
    latest = np.unique(submission)[-2:]
    if latest.size < 2:
        return ""
    n_tasks = int(task.max()) + 1
    earlier, later = (_means(task[submission == one], outcome[submission == one], n_tasks) for one in latest)
    found = only_gains(earlier, later)
    return (
        f"its latest submission is better on {found[0]} of {found[1]} tasks and worse on none"
        if found
        else ""
    )


def _means(task: np.ndarray, outcome: np.ndarray, n_tasks: int) -> np.ndarray:
    """The mean outcome on each task; NaN without one."""
    counts = np.bincount(task, minlength=n_tasks)
    means = np.full(n_tasks, np.nan)
    np.divide(np.bincount(task, outcome, n_tasks), counts, out=means, where=counts > 0)
    return means


def _copies(task: np.ndarray, run: np.ndarray, outcome: np.ndarray) -> str:
    found = dependent_trials(task, run, outcome)
    if found is None:
        return ""
    return (
        f"two trials agree on {found.n_agreeing} of {found.n_tasks} tasks, {found.chance:.0%} expected, "
        "so its trials count as one"
    )
