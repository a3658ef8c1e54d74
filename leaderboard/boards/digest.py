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
    kind = type(value)
    if kind is str:
        return encode_basestring(value)
    if kind is int:
        return int.__repr__(value)
    if value is None:
        return "null"
    if kind is float or isinstance(value, float):
        return f"{value:.9g}"
    if kind is list or isinstance(value, list | tuple):
        return "[" + ",".join([canonical_json(part) for part in value]) + "]"
    if kind is dict or isinstance(value, Mapping):
        parts = [f"{encode_basestring(key)}:{canonical_json(value[key])}" for key in sorted(value)]
        return "{" + ",".join(parts) + "}"
    return json.dumps(value, ensure_ascii=False)
