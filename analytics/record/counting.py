"""Which outcomes count, and as what; the refusal of this room."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from analytics.errors import CoreError


class RecordRefused(CoreError):
    """Rows from which no record can be made."""


class Condition(NamedTuple):
    """What outcomes are compared under; None where not stated.

    A temperature of None is any temperature: it is part of a condition only where an agent has two.
    """

    prompt_variant: str | None
    judge: str | None
    temperature: float | None


@dataclass(frozen=True)
class Counting:
    """Which outcomes count, and as what. The record is reduced by it.

    Attributes
    ----------
    duplicates : {"mean", "latest", "first"}
        Which of an agent's deliveries count: all of them, the latest, the first.
    settings : "comparable" or tuple of Condition
        The conditions compared: by the rule of `analytics.record`, or these.
    missing : {"gap", "zero"}
        A place that was asked for and has no valid outcome is a gap, or counts as a failure.
    universe : "all", "common" or tuple of str
        The active tasks: all, those with a valid outcome from at least 95% of the agents without an
        assignment, or these.
    """

    duplicates: Literal["mean", "latest", "first"] = "mean"
    settings: Literal["comparable"] | tuple[Condition, ...] = "comparable"
    missing: Literal["gap", "zero"] = "gap"
    universe: Literal["all", "common"] | tuple[str, ...] = "all"
