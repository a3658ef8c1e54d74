"""How alike the repeated trials of one agent are, from its rows."""

from typing import Any

import numpy as np

from analytics.flags import dependent_trials
from analytics.icc import IccRefused, intraclass_correlation, task_trials


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
        "note": found.unreliable or found.note,
        "sigma_w2": found.sigma_w2,
        "trials_per_task": found.n_0,
        "copies": "",
    }


def _copies(task: np.ndarray, run: np.ndarray, outcome: np.ndarray) -> str:
    found = dependent_trials(task, run, outcome)
    if found is None:
        return ""
    return (
        f"two trials agree on {found.n_agreeing} of {found.n_tasks} tasks, {found.chance:.0%} expected, "
        "so its trials count as one"
    )
