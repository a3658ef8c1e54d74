"""What staged assignments of a board rest on: the fit to the agents that teach, and a replay of the rule.

As plain values, which `selection.staged.walks.Fit` reads. Teaching agents are those that ran all tasks and
those that the rule stopped, in order of (date, name); agents without a date share one μ. Of agents that ran
all tasks as the rule let them go on, nothing is replayed: they are the good ones.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from analytics.arrays import FloatArray, IndexArray
from analytics.command_line import plain
from analytics.errors import CoreError
from analytics.record import Record
from selection.folds import CompleteAgents
from selection.staged.replay import replay
from selection.staged.teaching import FullRun, taught
from selection.staged.verdict import verdict
from selection.staged.walks import Fit, Staging
from selection.standings.choice import training

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Walked:
    """An agent that was asked batch by batch.

    Attributes
    ----------
    first, stopped : (float, float) or None
        est and se, c = 1, after its first batch; and where the rule stopped it.
    share : float
        q, the probability that it was drawn, where it was stopped.
    is_over : bool
        Whether it was stopped, and has run nothing since.
    """

    first: tuple[float, float] | None = None
    stopped: tuple[float, float] | None = None
    share: float = 1.0
    is_over: bool = False


def walked(decisions: Sequence[Mapping[str, Any]], fit: Mapping[str, Any]) -> Walked:
    """Return how an agent went by what was decided of it, in order, and the fit that this was by."""
    c = float(fit["scale"]["c"])
    estimates = [(float(one["score"]), float(one["se"]) / c) for one in decisions]
    stops = [k for k, one in enumerate(decisions) if one["stage"] != "running"]
    return Walked(
        first=estimates[0] if estimates else None,
        stopped=estimates[stops[0]] if stops else None,
        share=Fit.from_plain(fit).share_drawn,
        is_over=bool(stops) and decisions[-1]["stage"] == "stopped",
    )


def staged_study(
    record: Record,
    staging: Staging,
    asked: Mapping[str, Walked] | None = None,
    *,
    base_seed: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Fit to the agents that teach, and replay the rule on those that it did not choose.

    Parameters
    ----------
    record : Record
    staging : Staging
    asked : mapping of str to Walked, optional
        Those asked batch by batch, by name; the others ran all tasks or do not teach.
    base_seed : int
        Of the replay's draws and orders.
    progress : callable, optional
        Called with (agents replayed, all).

    Returns
    -------
    dict
        ``available``, ``reason``, ``agents`` (that teach); where available also ``tasks`` by name, ``fit``
        (of `Fit`), and ``replay``, ``verdict`` (None where there are too few agents) with ``replay_reason``.
    """
    asked = asked or {}
    complete = training(record)
    teaching = _teaching(record, complete, asked)
    n = len(teaching.outcomes)
    if n < staging.staged_from:
        reason = f"staged assignment needs {staging.staged_from} agents that teach; there are {n}"
        return {"available": False, "reason": reason, "agents": n}
    try:
        found = taught(
            teaching.outcomes, teaching.scores, teaching.full_runs, staging, first=teaching.first
        ).fit.as_plain()
    except CoreError as refusal:
        return {"available": False, "reason": str(refusal), "agents": n}
    fitted = {
        "available": True,
        "reason": "",
        "agents": n,
        "tasks": list(record.table.tasks),
        "fit": found,
    }
    return fitted | _replayed(_replayable(complete, asked), staging, base_seed, progress)


def _replayed(
    agents: CompleteAgents, staging: Staging, base_seed: int, progress: Progress | None
) -> dict[str, Any]:
    try:
        found = replay(agents, staging, seed=base_seed, progress=progress)
    except CoreError as refusal:
        return {"replay": None, "verdict": None, "replay_reason": str(refusal)}
    return {"replay": _known(plain(found)), "verdict": plain(verdict(found)), "replay_reason": ""}


@dataclass(frozen=True, eq=False)
class _Teaching:
    outcomes: FloatArray
    scores: FloatArray
    full_runs: list[FullRun]
    first: IndexArray


def _teaching(record: Record, complete: CompleteAgents, asked: Mapping[str, Walked]) -> _Teaching:
    table = record.table
    scores = dict(zip(complete.names, complete.scores.tolist(), strict=True))
    rows = [
        i for i, name in enumerate(table.agents) if name in scores or (name in asked and asked[name].is_over)
    ]
    dated = all(table.dates[i] is not None for i in rows)
    rows.sort(key=lambda i: (table.dates[i] or date.min, table.agents[i]) if dated else (date.min, i))
    names = [table.agents[i] for i in rows]
    full_runs = [
        FullRun(row, scores[name], *_weight(asked.get(name)))
        for row, name in enumerate(names)
        if name in scores
    ]
    return _Teaching(
        outcomes=table.means[rows],
        scores=np.array([scores.get(name, np.nan) for name in names]),
        full_runs=full_runs,
        first=np.arange(len(rows)) if dated else np.zeros(len(rows), dtype=np.intp),
    )


def _weight(one: Walked | None) -> tuple[float, tuple[float, float] | None, tuple[float, float] | None]:
    if one is None:
        return 1.0, None, None
    return (one.share if one.stopped else 1.0), one.first, one.stopped


def _replayable(complete: CompleteAgents, asked: Mapping[str, Walked]) -> CompleteAgents:
    kept = [
        i for i, name in enumerate(complete.names) if name not in asked or asked[name].stopped is not None
    ]
    return complete.take(np.array(kept, dtype=np.intp))


def _known(value: Any) -> Any:
    """Put None in the place of what is not a number: JSON has no word for it."""
    if isinstance(value, dict):
        return {key: _known(item) for key, item in value.items()}
    return None if isinstance(value, float) and value != value else value
