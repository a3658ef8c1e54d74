"""The digest of a board: equal contents give equal digests, on any machine and under any ids."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from json.encoder import encode_basestring
from typing import Any


def digest(
    *, policy: Mapping[str, Any], subset: Iterable[str] | None, agents: Iterable[Mapping[str, Any]]
) -> str:
    """SHA-256 of the canonical JSON of the policy's values, the subset's tasks and the entries by name."""
    content = {
        "policy": policy,
        "subset": None if subset is None else sorted(subset),
        "entries": {agent["agent"]: agent for agent in agents},
    }
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def canonical_json(value: Any) -> str:
    """Sorted keys, no white space, characters as they are, and fractions as `%.9g` prints them."""
    if isinstance(value, str):
        return str(encode_basestring(value))
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
