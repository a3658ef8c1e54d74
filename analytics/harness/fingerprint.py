"""The fingerprint of a configuration: SHA-256 of its canonical JSON.

Canonical: keys sorted by code point, no white space, UTF-8 without escapes, strings as they are (no Unicode
normalisation), whole numbers without a point (1.0 is 1, −0.0 is 0), other numbers by the shortest digits that
give them back. Two configurations have one fingerprint exactly when they are equal as values. NaN, infinite
numbers, keys that are not text and types that JSON does not know are refused: a fingerprint that could change
with the program that wrote it is none.

Source: *Toward Meta-Harness Optimization*, §28.12.2; RFC 8785 (which sorts by UTF-16 unit) in spirit.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from analytics.harness.tensor import HarnessRefused

EXACT_WHOLE = 2.0**53


def canonical_json(configuration: Any) -> str:
    """Canonical JSON of a configuration of mappings, lists, text, numbers, truth values and None.

    Raises
    ------
    HarnessRefused
        With the place of what has no canonical form.
    """
    plain = _plain(configuration, "configuration")
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def fingerprint(configuration: Any) -> str:
    """SHA-256 of `canonical_json` in UTF-8, 64 hexadecimal digits.

    Raises
    ------
    HarnessRefused
        As `canonical_json`.
    """
    return hashlib.sha256(canonical_json(configuration).encode()).hexdigest()


def _plain(value: Any, place: str) -> Any:
    if isinstance(value, Mapping):
        return {_key(key, place): _plain(item, f"{place}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, f"{place}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, str):
        return _text(value, place)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return int(value) if value.is_integer() and abs(value) < EXACT_WHOLE else value
    raise HarnessRefused(f"{place}: {value!r} ({type(value).__name__}) has no canonical form")


def _key(key: Any, place: str) -> str:
    if not isinstance(key, str):
        raise HarnessRefused(f"{place}: the key {key!r} is not text")
    return _text(key, place)


def _text(text: str, place: str) -> str:
    """Refuse lone surrogates, which UTF-8 cannot hold."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise HarnessRefused(f"{place}: {text!r} holds a lone surrogate")
    return text
