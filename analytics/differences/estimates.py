"""A mean or a difference with its interval for a named target: value ± t_ν·√Σt.

Every error names its target::

    subset   expected mean over the k selected tasks       finite; only order and ties are claimed from it
    full     expected mean over all active tasks           finite where measured, else from ŷ
    domain   mean over the tasks these are a sample of     never from selected tasks

Degrees of freedom of a sum of terms SE² = Σ_q t_q are Satterthwaite's, ν = (Σ t_q)²/Σ(t_q²/ν_q).

Source: Satterthwaite, *Biometrics Bulletin* 2 (1946) 110-114.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from scipy.special import stdtr, stdtrit

from analytics.differences.rows import ErrorTerm, satterthwaite

Target = Literal["subset", "full", "domain"]


@dataclass(frozen=True)
class Interval:
    """A standard error and the two-sided 95% interval it gives, not clipped."""

    se: float
    df: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Estimate:
    """A mean or a difference, its interval for a named target, and what the interval leaves out.

    method: the rule that gave the variance over tasks or trials.
    interval: None where no standard error can be given; `reason` says why.
    p_value: two-sided, of a difference of 0; None for a single mean or without an interval.
    terms: the parts of SE².
    cancels: main effects that both agents share.
    omitted: components that were never measured.
    """

    value: float
    target: Target
    method: str
    interval: Interval | None
    p_value: float | None
    n_tasks: int
    terms: tuple[ErrorTerm, ...]
    cancels: tuple[str, ...]
    omitted: tuple[str, ...]
    reason: str


def interval_of(value: float, terms: Sequence[ErrorTerm]) -> Interval | None:
    """Return value ± t_ν·√Σt, ν = (Σt)²/Σ(t²/ν_t); None where the sum is 0."""
    variance = sum(term.variance for term in terms)
    if variance <= 0:
        return None
    se, df = math.sqrt(variance), satterthwaite(terms)
    half = float(stdtrit(df, 0.975)) * se
    return Interval(se=se, df=df, lower=value - half, upper=value + half)


def p_value_of(value: float, interval: Interval | None) -> float | None:
    """Two-sided p-value of a difference of 0; None without an interval."""
    return None if interval is None else 2 * float(stdtr(interval.df, -abs(value) / interval.se))
