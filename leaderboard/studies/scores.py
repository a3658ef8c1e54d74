"""An agent's part of the record as bytes, so that a recompute reads only the outcomes that are new."""

from dataclasses import fields
from typing import Any

import numpy as np

from analytics.record import AgentRow
from analytics.repeats import Repeats
from leaderboard.studies.models import AgentScores

KINDS = {
    "means": "<f8",
    "trial_variances": "<f8",
    "n_trials": "<f8",
    "costs": "<f8",
    "n_valid": "<i4",
    "n_places": "<i4",
    "n_gaps": "<i4",
    "asked": "?",
}
PLAIN = tuple(one.name for one in fields(AgentRow) if one.name not in (*KINDS, "repeats"))


def packed(row: AgentRow) -> tuple[bytes, dict[str, Any]]:
    """The arrays one after the other, and what is no array."""
    arrays = b"".join(np.asarray(getattr(row, name)).astype(kind).tobytes() for name, kind in KINDS.items())
    return arrays, {name: getattr(row, name) for name in PLAIN} | {"repeats": row.repeats.as_plain()}


def unpacked(stored: AgentScores) -> AgentRow:
    content, offset = dict(stored.content["row"]), 0
    arrays: dict[str, Any] = {}
    for name, kind in KINDS.items():
        arrays[name] = np.frombuffer(stored.arrays, kind, stored.n_tasks, offset)
        offset += arrays[name].nbytes
    return AgentRow(**arrays, **content | {"repeats": Repeats.of_plain(content["repeats"])})
