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
MOST = 2**63 - 1  # the largest whole number of TOML
MOST_SHOWN = 60
FINGERPRINT = 16  # hexadecimal digits: 64 bits tell any number of trials apart


class SpaceRefused(CoreError):
    """A parameter or a configuration is not one."""


@dataclass(frozen=True)
class Parameter:
    """One setting of a harness.

    Attributes
    ----------
    name : str
    kind : {"float", "log", "int", "choice"}
        ``log`` is a positive float on a logarithmic scale.
    role : {"instrument", "measurement"}
        Whether it is how the harness runs (workers, time-outs), or what it takes for success (scorers).
    low, high : float
        Both included; not of a choice.
    choices : tuple
        Of a choice, at least two.
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


def parameter(name: str, told: Mapping[str, Any]) -> Parameter:
    """Read a table of the study file, such as ``{kind = "int", low = 1, high = 16, role = "instrument"}``.

    Raises
    ------
    SpaceRefused
        With the place and the rule.
    """
    where = f"space.{name}"
    kind, role = told.get("kind"), told.get("role")
    if kind not in KINDS:
        raise SpaceRefused(f"{where}.kind: {shortened(kind)} is none of {', '.join(KINDS)}")
    if role not in ROLES:
        raise SpaceRefused(f"{where}.role: {shortened(role)} is none of {', '.join(ROLES)}")
    known = {"kind", "role", "choices"} if kind == "choice" else {"kind", "role", "low", "high"}
    if odd := sorted(set(told) - known):
        raise SpaceRefused(f"{where}.{odd[0]}: a {kind} has {', '.join(sorted(known))}")
    if kind == "choice":
        return Parameter(name, kind, role, choices=_choices(where, told.get("choices")))
    low, high = (_bound(f"{where}.{end}", told.get(end), whole=kind == "int") for end in ("low", "high"))
    if not low < high:
        raise SpaceRefused(f"{where}: low, {low}, is not below high, {high}")
    if kind == "log" and low <= 0:
        raise SpaceRefused(f"{where}.low: {low} has no logarithm")
    return Parameter(name, kind, role, low, high)


def is_number(told: Any) -> bool:
    """Whether a value is a finite number, a whole one within 64 bits."""
    if isinstance(told, bool) or not isinstance(told, int | float):
        return False
    return abs(told) <= MOST if isinstance(told, int) else math.isfinite(told)


def shortened(told: Any) -> str:
    """Return a value as a refusal shows it."""
    text = repr(told)
    text = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
    return f"{text}, beyond 64 bits," if isinstance(told, int) and abs(told) > MOST else text


def _choices(where: str, told: Any) -> tuple[Setting, ...]:
    if not isinstance(told, list) or len(told) < 2:
        raise SpaceRefused(f"{where}.choices: a list of at least two values")
    if not all(isinstance(one, str | bool) or is_number(one) for one in told):
        raise SpaceRefused(f"{where}.choices: values are texts, numbers, true or false")
    if len({json.dumps(one) for one in told}) < len(told):
        raise SpaceRefused(f"{where}.choices: a value stands twice")
    return tuple(told)


def _bound(where: str, told: Any, *, whole: bool) -> float:
    kinds = int if whole else int | float
    if not isinstance(told, kinds) or not is_number(told):
        raise SpaceRefused(f"{where}: {shortened(told)} is no {'whole ' if whole else ''}number")
    return told


def checked(space: Mapping[str, Parameter], told: Mapping[str, Any], where: str) -> Configuration:
    """Return a configuration that gives each parameter a value it may have.

    Raises
    ------
    SpaceRefused
    """
    if odd := sorted(set(told) ^ set(space)):
        why = "is no parameter of the space" if odd[0] in told else "has no value"
        raise SpaceRefused(f"{where}.{odd[0]}: {why}")
    for name, value in told.items():
        if not space[name].holds(value):
            raise SpaceRefused(f"{where}.{name}: {shortened(value)} is outside of the space")
    return {name: float(told[name]) if space[name].kind in ("float", "log") else told[name] for name in space}


def fingerprint(configuration: Configuration) -> str:
    """Name a configuration: SHA-256 of its values, by name, as 16 hexadecimal digits."""
    text = json.dumps(configuration, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:FINGERPRINT]
