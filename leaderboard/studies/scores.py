"""An agent's part of the record as bytes, so that a recompute reads only the outcomes that are new.

All but the means are compressed: of one trial each a hundredth is left, and bytes travel as text of twice
their length.
"""

import zlib
from dataclasses import fields
from typing import Any

import numpy as np

from analytics.arrays import FloatArray
from analytics.record import AgentRow, People
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
    "n_invalid": "<i4",
    "n_too_few": "<i4",
    "asked": "?",
}
FASTEST = 1
OTHERS = {name: kind for name, kind in KINDS.items() if name != "means"}
PLAIN = tuple(one.name for one in fields(AgentRow) if one.name not in (*KINDS, "repeats", "people"))


def pack(row: AgentRow) -> tuple[bytes, dict[str, Any]]:
    """The means, the other arrays one after the other, compressed, and what is no array."""
    means, *others = (np.asarray(getattr(row, name)).astype(kind).tobytes() for name, kind in KINDS.items())
    plain = {name: getattr(row, name) for name in PLAIN} | {"repeats": row.repeats.as_plain()}
    if row.people is not None:
        plain["people"] = row.people.as_plain()
    return means + zlib.compress(b"".join(others), FASTEST), plain


def unpack(stored: AgentScores, known: dict[bytes, bytes] | None = None) -> AgentRow:
    """The row; `known` holds what was decompressed before, as most agents of one trial each have the same."""
    known = {} if known is None else known
    content, means = dict(stored.content["row"]), means_of(stored)
    compressed, offset = bytes(memoryview(stored.arrays)[means.nbytes :]), 0
    if compressed not in known:
        known[compressed] = zlib.decompress(compressed)
    values = known[compressed]
    arrays: dict[str, Any] = {"means": means}
    for name, kind in OTHERS.items():
        arrays[name] = np.frombuffer(values, kind, stored.n_tasks, offset)
        offset += arrays[name].nbytes
    content["repeats"] = Repeats.of_plain(content["repeats"])
    if people := content.get("people"):
        content["people"] = People.of_plain(people)
    return AgentRow(**arrays, **content)


def means_of(stored: AgentScores) -> FloatArray:
    """The mean outcome on each task, which alone tells who may be alike."""
    return np.frombuffer(stored.arrays, KINDS["means"], stored.n_tasks)
