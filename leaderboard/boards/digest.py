"""The digest of a board: equal contents give equal digests, on any machine and under any ids."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from leaderboard.boards.models import Entry
from leaderboard.catalog.models import Policy
from leaderboard.studies.standings import Standing

POLICY_FIELDS = (
    "band_lo",
    "band_hi",
    "strategy",
    "history_window",
    "hysteresis",
    "duplicates",
    "counted_settings",
    "refit_every",
    "default_target",
    "base_seed",
)


def digest(*, policy: Policy, subset_tasks: Iterable[str] | None, standings: Iterable[Standing]) -> str:
    """SHA-256 of the canonical JSON of the policy's values, the subset's tasks and the entries by name."""
    content = {
        "policy": {field: getattr(policy, field) for field in POLICY_FIELDS},
        "subset": None if subset_tasks is None else sorted(subset_tasks),
        "entries": {line.agent.name: _entry(line) for line in standings},
    }
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def canonical_json(value: Any) -> str:
    """Sorted keys, no white space, characters as they are, and fractions as `%.9g` prints them."""
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, Mapping):
        return (
            "{"
            + ",".join(f"{canonical_json(key)}:{canonical_json(value[key])}" for key in sorted(value))
            + "}"
        )
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(canonical_json, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _entry(line: Standing) -> dict[str, Any]:
    described = {"scaffold": line.agent.scaffold.name, "model": line.agent.model.name}
    dated = {"submitted_at": line.submitted_at.isoformat() if line.submitted_at else None}
    return described | dated | {field: getattr(line, field) for field in Entry.COMPUTED}
