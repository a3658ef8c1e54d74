"""What the fields of a policy may say: text to value, and the rule in words."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from leaderboard.catalog.models import NAME_LENGTH, Policy

FACETS = ("prompt_variant", "judge", "temperature")
HOTTEST = 1e12  # of a temperature in a file
COMMON = "common"
"""What `universe` may be set to; the row then holds the names of the tasks that are common at that time."""


@dataclass(frozen=True)
class FieldRule:
    """`read` turns text into the value, or raises ValueError where it breaks the rule `words`."""

    words: str
    read: Callable[[str], Any]


def _whole(least: int, most: int) -> FieldRule:
    def read(text: str) -> int:
        value = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
        if not least <= value <= most:
            raise ValueError(text)
        return value

    return FieldRule(f"a whole number from {least:,} to {most:,}", read)


def _number(words: str, is_allowed: Callable[[Decimal], bool]) -> FieldRule:
    def read(text: str) -> float:
        if not text.isascii() or "_" in text:  # which Decimal reads
            raise ValueError(text)
        try:
            value = Decimal(text)
        except InvalidOperation:
            raise ValueError(text) from None
        if not (value.is_finite() and is_allowed(Decimal(float(value)))):  # as it will be stored
            raise ValueError(text)
        return float(value)

    return FieldRule(words, read)


NOISE = _number("a number above 0 and at most 1", lambda value: 0 < value <= 1)


def _trial_noise(text: str) -> str:
    omega, _, source = text.partition(" from ")
    if text and not (
        source.strip() and text.isprintable() and len(text) <= NAME_LENGTH and NOISE.read(omega)
    ):
        raise ValueError(text)
    return text


def _universe(text: str) -> list[str] | None:
    if text in ("", "all"):
        return None
    names = json.loads(text)
    if not (isinstance(names, list) and names and all(isinstance(name, str) for name in names)):
        raise ValueError(text)
    return sorted(names)


def _conditions(text: str) -> list[dict[str, Any]] | None:
    if text in ("", "comparable"):
        return None
    conditions = json.loads(text)
    if not (isinstance(conditions, list) and conditions and all(map(_is_condition, conditions))):
        raise ValueError(text)
    return [{facet: condition.get(facet) for facet in FACETS} for condition in conditions]


def _is_condition(value: object) -> bool:
    if not isinstance(value, Mapping) or not value or value.keys() - set(FACETS):
        return False
    temperature = value.get("temperature")
    is_number = isinstance(temperature, int | float) and not isinstance(temperature, bool)
    texts = (value.get("prompt_variant"), value.get("judge"))
    return (temperature is None or (is_number and 0 <= temperature <= HOTTEST)) and all(
        text is None or (isinstance(text, str) and text.isprintable() and 0 < len(text) <= NAME_LENGTH)
        for text in texts
    )


SWITCH = {"yes": True, "true": True, "no": False, "false": False}
OTHERWISE: Mapping[str, FieldRule] = {
    "hysteresis": _number("a number of at least 0 and under 0.5", lambda value: 0 <= value < Decimal("0.5")),
    "universe": FieldRule("all, common, or a JSON list of names of tasks", _universe),
    "counted_settings": FieldRule(
        "comparable, or a JSON list of objects with prompt_variant, judge and temperature, each null where "
        'it is not stated (not "")',
        _conditions,
    ),
    "trial_noise": FieldRule(
        f"{NOISE.words}, from, and the benchmark that measured it; or empty: an upper bound", _trial_noise
    ),
}


def _rule(field: Any) -> FieldRule:
    """What a field may say by its choices and validators; what empty means stands in its help."""
    if field.name in OTHERWISE:
        return OTHERWISE[field.name]
    if isinstance(field, models.BooleanField):
        return FieldRule("yes or no", lambda text: SWITCH[text.lower()])
    if field.choices:
        values = [value for value, _ in field.choices]
        rule = FieldRule(f"one of {', '.join(values)}", dict(zip(values, values, strict=True)).__getitem__)
    else:
        least = max(one.limit_value for one in field.validators if isinstance(one, MinValueValidator))
        most = min(one.limit_value for one in field.validators if isinstance(one, MaxValueValidator))
        is_number = isinstance(field, models.FloatField)
        rule = (
            _number(f"a number from {least:g} to {most:g}", lambda value: least <= value <= most)
            if is_number
            else _whole(least, most)
        )
    if not field.blank:
        return rule
    meaning, empty = field.help_text.partition("empty: ")[2].rstrip("."), field.get_default()
    return FieldRule(f"{rule.words}; or empty: {meaning}", lambda text: rule.read(text) if text else empty)


RULES: Mapping[str, FieldRule] = {
    field.name: _rule(field)
    for field in Policy._meta.concrete_fields
    if field.name not in ("id", "benchmark", "number", "resolved_from", "created_at", "created_by")
}
"""By field of a policy, in the order in which they are listed."""

ADVANCED = tuple(field for field in RULES if field not in Policy.BASIC)


def described(field: str) -> str:
    return f"{RULES[field].words}{' (advanced)' if field in ADVANCED else ''}"


def shown(field: str, value: Any) -> str:
    if field == "universe" and value is not None:
        return f"{len(value):,} tasks"
    if value is None:
        return {"universe": "all", "counted_settings": "comparable"}.get(field, "")
    if isinstance(value, bool):
        return "yes" if value else "no"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else f"{value}"
