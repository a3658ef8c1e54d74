"""Parameters of a harness, configurations of them, and their fingerprints."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from analytics.errors import CoreError

Kind = Literal["float", "log", "int", "choice"]
Role = Literal["instrument", "measurement"]
Setting = float | int | str | bool
Configuration = Mapping[str, Setting]

KINDS: tuple[Kind, ...] = ("float", "log", "int", "choice")
ROLES: tuple[Role, ...] = ("instrument", "measurement")
MAX_INTEGER = 2**63 - 1  # the largest whole number of TOML
MAX_SHOWN = 60
FINGERPRINT = 16  # hexadecimal digits: 64 bits tell any number of trials apart


class SpaceRefused(CoreError):
    """A parameter or a configuration is not one."""


@dataclass(frozen=True)
class SpaceParameter:
    """One setting of a harness.

    kind: {"float", "log", "int", "choice"}: ``log`` is a positive float on a logarithmic scale.
    role: {"instrument", "measurement"}: whether it is how the harness runs (workers, time-outs), or what it
        takes for success (scorers).
    low, high: both included; not of a choice.
    choices: of a choice, at least two.
    """

    name: str
    kind: Kind
    role: Role
    low: float = 0.0
    high: float = 0.0
    choices: tuple[Setting, ...] = ()

    def holds(self, value: Any) -> bool:
        """Whether the value is one of this parameter."""
        if self.kind == "choice":
            return any(value == one and type(value) is type(one) for one in self.choices)
        if not is_number(value) or (self.kind == "int" and not isinstance(value, int)):
            return False
        return bool(self.low <= value <= self.high)

    def suggested(self, trial: Any) -> Setting:
        """Ask an Optuna trial for a value."""
        if self.kind == "choice":
            value: Setting = trial.suggest_categorical(self.name, self.choices)
            return value
        if self.kind == "int":
            return int(trial.suggest_int(self.name, int(self.low), int(self.high)))
        return float(trial.suggest_float(self.name, self.low, self.high, log=self.kind == "log"))


def parameter(name: str, table: Mapping[str, Any]) -> SpaceParameter:
    """Read a table such as ``{kind = "int", low = 1, high = 16, role = "instrument"}``, or refuse it."""
    where = f"space.{name}"
    kind, role = table.get("kind"), table.get("role")
    if kind not in KINDS:
        raise SpaceRefused(f"{where}.kind: {shortened(kind)} is none of {', '.join(KINDS)}")
    if role not in ROLES:
        raise SpaceRefused(f"{where}.role: {shortened(role)} is none of {', '.join(ROLES)}")
    known = {"kind", "role", "choices"} if kind == "choice" else {"kind", "role", "low", "high"}
    if odd := sorted(set(table) - known):
        raise SpaceRefused(f"{where}.{odd[0]}: a {kind} has {', '.join(sorted(known))}")
    if kind == "choice":
        values = table.get("choices")
        if not isinstance(values, list) or len(values) < 2:
            raise SpaceRefused(f"{where}.choices: a list of at least two values")
        if not all(isinstance(one, str | bool) or is_number(one) for one in values):
            raise SpaceRefused(f"{where}.choices: values are texts, numbers, true or false")
        if len({json.dumps(one) for one in values}) < len(values):
            raise SpaceRefused(f"{where}.choices: a value stands twice")
        return SpaceParameter(name, kind, role, choices=tuple(values))
    low, high = (_bound(f"{where}.{end}", table.get(end), whole=kind == "int") for end in ("low", "high"))
    if not low < high:
        raise SpaceRefused(f"{where}: low, {low}, is not below high, {high}")
    if kind == "log" and low <= 0:
        raise SpaceRefused(f"{where}.low: {low} has no logarithm")
    return SpaceParameter(name, kind, role, low, high)


def is_number(value: Any) -> bool:
    """Whether a value is a finite number, a whole one within 64 bits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= MAX_INTEGER if isinstance(value, int) else math.isfinite(value)


def shortened(value: Any) -> str:
    """Return a value as a refusal shows it."""
    text = repr(value)
    text = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
    return f"{text}, beyond 64 bits," if isinstance(value, int) and abs(value) > MAX_INTEGER else text


def _bound(where: str, value: Any, *, whole: bool) -> float:
    kinds = int if whole else int | float
    if not isinstance(value, kinds) or not is_number(value):
        raise SpaceRefused(f"{where}: {shortened(value)} is no {'whole ' if whole else ''}number")
    return value


def checked(space: Mapping[str, SpaceParameter], settings: Mapping[str, Any], where: str) -> Configuration:
    """Return a configuration that gives each parameter a value it may have."""
    if odd := sorted(set(settings) ^ set(space)):
        why = "is no parameter of the space" if odd[0] in settings else "has no value"
        raise SpaceRefused(f"{where}.{odd[0]}: {why}")
    for name, value in settings.items():
        if not space[name].holds(value):
            raise SpaceRefused(f"{where}.{name}: {shortened(value)} is outside of the space")
    return {
        name: float(settings[name]) if space[name].kind in ("float", "log") else settings[name]
        for name in space
    }


def fingerprint(configuration: Configuration) -> str:
    """Name a configuration: SHA-256 of its values, by name, as 16 hexadecimal digits."""
    text = json.dumps(configuration, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:FINGERPRINT]
