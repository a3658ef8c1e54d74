"""What the fields of a policy may say: text to value, and the rule in words."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from leaderboard.catalog.models import (
    NAME_LENGTH,
    Assigning,
    Duplicates,
    Estimator,
    MissingPlaces,
    Resubmission,
    Review,
    Strategy,
    Target,
    TaskGroups,
    Trust,
)

FACETS = ("prompt_variant", "judge", "temperature")
LARGEST = 2**31 - 1
HOTTEST = 1e12  # of a temperature in a file
COMMON = "common"
"""What `universe` may be set to; the row then holds the names of the tasks that are common at that time."""


@dataclass(frozen=True)
class FieldRule:
    """`read` turns text into the value, or raises ValueError where it breaks the rule `words`."""

    words: str
    read: Callable[[str], Any]


def _whole(least: int, most: int = LARGEST, *, empty: str = "") -> FieldRule:
    def read(text: str) -> int | None:
        if empty and not text:
            return None
        value = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
        if not least <= value <= most:
            raise ValueError(text)
        return value

    span = f"from {least} to {most}" if most < LARGEST else f"of at least {least}"
    return FieldRule(f"a whole number {span}" + (f", or empty: {empty}" if empty else ""), read)


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


FRACTION = _number("a number from 0 to 1", lambda value: 0 <= value <= 1)
NOISE = _number("a number above 0 and at most 1", lambda value: 0 < value <= 1)


def _share(*, empty: str) -> FieldRule:
    return FieldRule(
        f"{FRACTION.words}; or empty: {empty}", lambda text: FRACTION.read(text) if text else None
    )


def _one_of(values: list[str], *, empty: str = "") -> FieldRule:
    def read(text: str) -> str:
        if text not in values and not (empty and text == ""):
            raise ValueError(text)
        return text

    return FieldRule(f"one of {', '.join(values)}" + (f"; or empty: {empty}" if empty else ""), read)


def _trial_noise(text: str) -> str:
    omega, _, source = text.partition(" from ")
    if text and not (
        source.strip() and text.isprintable() and len(text) <= NAME_LENGTH and NOISE.read(omega)
    ):
        raise ValueError(text)
    return text


def _yes_or_no(text: str) -> bool:
    return {"yes": True, "true": True, "no": False, "false": False}[text.lower()]


def _universe(text: str) -> list[str] | None:
    if text in ("", "all"):
        return None
    names = json.loads(text)
    if not (isinstance(names, list) and names and all(isinstance(name, str) for name in names)):
        raise ValueError(text)
    return sorted(set(names))


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


RULES: Mapping[str, FieldRule] = {
    "band_lo": FRACTION,
    "band_hi": FRACTION,
    "strategy": _one_of(Strategy.values),
    "history_window": _whole(5, empty="all complete agents"),
    "hysteresis": _number("a number of at least 0 and under 0.5", lambda value: 0 <= value < Decimal("0.5")),
    "subset_from": _whole(5, 50),
    "estimator": _one_of(Estimator.values, empty="the board chooses"),
    "refit_every": _whole(5, 10),
    "default_target": _one_of(Target.values, empty="the board chooses"),
    "groups": _one_of(TaskGroups.values),
    "missing": _one_of(MissingPlaces.values),
    "universe": FieldRule("all, common, or a JSON list of names of tasks", _universe),
    "duplicates": _one_of(Duplicates.values),
    "counted_settings": FieldRule(
        "comparable, or a JSON list of objects with prompt_variant, judge and temperature, each null where "
        'it is not stated (not "")',
        _conditions,
    ),
    "headline_from": _one_of(Trust.values, empty="verified, once there are five verified agents"),
    "trial_noise": FieldRule(
        f"{NOISE.words}, from, and the benchmark that measured it; or empty: an upper bound", _trial_noise
    ),
    "n_trials": _whole(1, 32_767),
    "resubmission": _one_of(Resubmission.values),
    "assignment": _one_of(Assigning.values),
    "podium": _whole(1, 100),
    "staged_from": _whole(5, 1_000),
    "draw_share": _share(empty="a quarter until 30 full runs can be replayed, then a tenth"),
    "audit_share": FRACTION,
    "review": _one_of(Review.values),
    "members_only": FieldRule("yes or no", _yes_or_no),
    "quota_per_account": _whole(1),
    "quota_per_agent": _whole(1),
    "backdating_days": _whole(0, 36_500),
    "assignment_days": _whole(1, 36_500),
    "rerun_days": _whole(1, 36_500),
    "publish_every": _whole(0),
    "show_costs": FieldRule("yes or no", _yes_or_no),
    "base_seed": _whole(0),
}
"""By field of a policy, in the order in which they are listed."""


def shown(field: str, value: Any) -> str:
    """A value as it may be set."""
    if field == "universe" and value is not None:
        return f"{len(value):,} tasks"
    if value is None:
        return {"universe": "all", "counted_settings": "comparable"}.get(field, "")
    if isinstance(value, bool):
        return "yes" if value else "no"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else f"{value}"
