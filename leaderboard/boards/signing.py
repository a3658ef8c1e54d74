"""Signed digests: that this server published a board of this digest under this number, at this time.

What is signed, with Ed25519 (RFC 8032), is `signed_bytes`: the `canonical_json` of benchmark, number,
published_at, data_version and digest, as they stand in the published board. The key is the setting
SIGNING_KEY, the base64 of a seed of 32 bytes. The embedded server makes one of its own, once, and keeps it
beside its data; any other signs nothing without the setting.
"""

import hashlib
import json
import secrets
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from functools import lru_cache
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings

from leaderboard import postgres
from leaderboard.boards.models import Board


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


ALGORITHM = "Ed25519"
SEED_LENGTH = 32  # bytes


def identity(board: Board) -> dict[str, Any]:
    return {
        "benchmark": board.benchmark.slug,
        "number": board.number,
        "published_at": board.published_at.isoformat(),
        "data_version": board.data_version,
        "digest": board.digest,
    }


def signed_bytes(board: Board) -> bytes:
    return canonical_json(identity(board)).encode()


def signed(board: Board) -> dict[str, str | None]:
    """Signature and public key in base64; both are None where this server has no key."""
    key = private_key()
    if key is None:
        return {"signature": None, "key": None}
    return {"signature": _text(key.sign(signed_bytes(board))), "key": public_key()}


def public_key() -> str | None:
    """The raw public key in base64, 32 bytes; None where this server signs nothing."""
    key = private_key()
    return None if key is None else _text(key.public_key().public_bytes_raw())


def private_key() -> Ed25519PrivateKey | None:
    seed = settings.SIGNING_KEY or (_stored_seed(postgres.home()) if settings.EMBEDDED else "")
    return _key_of(seed) if seed else None


@lru_cache(maxsize=4)
def _key_of(seed: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(b64decode(seed))


@lru_cache(maxsize=4)
def _stored_seed(home: Path) -> str:
    return postgres.secret_in(home / "signing.key", lambda: _text(secrets.token_bytes(SEED_LENGTH)))


def _text(content: bytes) -> str:
    return b64encode(content).decode()
