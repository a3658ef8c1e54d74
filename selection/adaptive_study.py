"""The study that adaptive assignments of a board rest on: what is frozen, and what a replay says of it.

As `selection.adaptive` and `selection.adaptive_replay`, on the complete agents of one record, as plain values
that `selection.adaptive_steps` reads. A board that does not carry it has the reason instead.

Not done here: nothing is switched on; whether adaptive tasks serve a board is its operator's to decide.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from analytics.command_line import plain
from analytics.errors import CoreError
from analytics.record import Record
from selection.adaptive import Stop, calibrated, prepared
from selection.adaptive_replay import replay
from selection.adaptive_told import verdict
from selection.standings.choice import training

HALF_WIDTHS = (0.05, 0.1)
"""Replayed; an assignment stops at the first."""

Progress = Callable[[int, int], None]


def adaptive_study(record: Record, *, base_seed: int = 0, progress: Progress | None = None) -> dict[str, Any]:
    """Freeze what assignments need, and replay it on past agents.

    Parameters
    ----------
    record : Record
    base_seed : int
        What the random subsets start from.
    progress : callable, optional
        Called with (agents replayed, all).

    Returns
    -------
    dict
        ``available``, ``reason``, ``agents`` (complete ones); where available also ``tasks``,
        ``difficulties``, ``mean``, ``variance``, ``scale``, ``quantile``, ``looks``, ``batch``, ``scores``,
        ``half_width``, ``replay`` (of `AdaptiveReplay`), ``verdict`` and ``gains``.
    """
    agents = training(record)
    try:
        found = replay(record, HALF_WIDTHS, base_seed=base_seed, progress=progress)
        rows = np.arange(agents.n)
        start, calibration = prepared(agents, rows), calibrated(agents, rows)
    except CoreError as refusal:
        return {"available": False, "reason": str(refusal), "agents": agents.n}
    replayed = _known(plain(found))
    told, gains = verdict(replayed)
    return {
        "available": True,
        "reason": "",
        "agents": agents.n,
        "tasks": list(record.table.tasks),
        "difficulties": start.difficulties.tolist(),
        "mean": start.mean,
        "variance": start.variance,
        "scale": calibration.scale.tolist(),
        "quantile": calibration.quantile,
        "looks": list(found.looks),
        "batch": found.batch,
        "scores": sorted(agents.scores.tolist()),
        "half_width": Stop().half_width,
        "replay": replayed,
        "verdict": told,
        "gains": gains,
    }


def _known(value: Any) -> Any:
    """Put None in the place of what is not a number: JSON has no word for it."""
    if isinstance(value, dict):
        return {key: _known(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_known(item) for item in value]
    return None if isinstance(value, float) and value != value else value
