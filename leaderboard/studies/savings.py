"""What the subset saves: tasks and money, per run and over the subset runs that were made."""

from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from leaderboard.studies.tables import Snapshot
from leaderboard.submissions.queries import costs_of
from selection.cost import CostNotMeasured, Saving, saving, spent


def savings(*, snapshot: Snapshot, columns: np.ndarray) -> dict[str, Any]:
    """Tell what ranking on these columns saves."""
    saved = saving(costs(snapshot), columns)
    return {
        "n_tasks": saved.n_tasks,
        "k": saved.k,
        "reduction": saved.reduction,
        "per_run": asdict(saved.per_run) if saved.per_run else None,
        "subset_run": asdict(saved.subset_run) if saved.subset_run else None,
        "note": saved.note(),
        "so_far": _so_far(saved, _subset_runs(snapshot, columns)),
    }


def _subset_runs(snapshot: Snapshot, columns: np.ndarray) -> np.ndarray:
    """Agents with at least 95% of the subset and without a full run."""
    n_valid = np.count_nonzero(snapshot.table.n_valid[:, columns], axis=1)
    return np.flatnonzero((20 * n_valid >= 19 * columns.size) & ~snapshot.table.complete())


def _so_far(saved: Saving, subset_runs: np.ndarray) -> dict[str, Any]:
    """What agents without a full run were spared."""
    try:
        return asdict(spent(saved, subset_runs))
    except CostNotMeasured:
        n = subset_runs.size
        return {"n_runs": n, "n_tasks_saved": n * saved.n_tasks_saved, "saved": None, "n_not_measured": n}


def costs(snapshot: Snapshot) -> np.ndarray:
    """Cost of each agent's run on each active task, (n_agents, n_tasks); NaN where none was stated."""
    rows = costs_of(s.pk for submissions in snapshot.submissions.values() for s in submissions)
    known = np.full((snapshot.table.n_agents, snapshot.table.n_tasks), np.nan)
    agent = pc.index_in(rows["agent"], pa.array([agent.pk for agent in snapshot.agents], pa.int64()))
    task = pc.index_in(rows["task"], pa.array(snapshot.task_ids, pa.int32()))
    here = pc.is_valid(task).to_numpy()
    known[agent.to_numpy()[here], task.to_numpy()[here].astype(np.int64)] = rows["cost"].to_numpy()[here]
    return known
