"""Means of agents and their differences, with an interval for a named target: value ± t_ν·√Σt.

Every error names its target::

    subset   expected mean over the k selected tasks       finite; only order and ties are claimed from it
    full     expected mean over all active tasks           finite where measured, else from ŷ
    domain   mean over the tasks these are a sample of     never from selected tasks

Degrees of freedom of a sum of terms SE² = Σ_q t_q are Satterthwaite's, ν = (Σ t_q)²/Σ(t_q²/ν_q).

Source: Satterthwaite, *Biometrics Bulletin* 2 (1946) 110-114. Imbens & Rubin, *Causal Inference*, 2015, §6.5.
Messing, *Hidden Measurement Error in LLM Pipelines*, App. D (what cancels). Agresti & Min, *Statistics in
Medicine* 24 (2005) 729-740 (pseudo-observations). Benjamini & Hochberg, *JRSS B* 57 (1995) 289-300. The
variance function is this project's own.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtr, stdtrit

from analytics.arrays import FloatArray
from analytics.differences.finite_errors import AgentError, Calibrated, Measured, TrialNoise, error_of
from analytics.differences.groups import METHODS, Groups, mean_variance
from analytics.differences.neyman_draws import pair_variances
from analytics.differences.rows import (
    NEVER_MEASURED,
    OF_FACETS,
    ErrorTerm,
    Facet,
    Row,
    cell_variance,
    check_variance,
    facet_terms,
    satterthwaite,
)
from analytics.differences.trial_variances import checked_cells
from analytics.errors import CoreError

Target = Literal["subset", "full", "domain"]


@dataclass(frozen=True)
class Interval:
    """A standard error and the two-sided 95% interval it gives, not clipped."""

    se: float
    df: float
    lower: float
    upper: float


class NamedInterval(NamedTuple):
    """A 95% interval and how it was made."""

    lower: float
    upper: float
    method: str


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


def score(
    row: Row,
    target: Target,
    *,
    selected: bool = False,
    omega: float | None = None,
    facets: Sequence[Facet] = NEVER_MEASURED,
    groups: Groups | None = None,
) -> Estimate:
    """ȳ over the agent's valid tasks with its absolute interval for the target: nothing cancels.

    ``domain`` s/√N, or by groups of tasks; finite by repeated trials N⁻²·Σ s²_j/R_j, where a task of a single
    trial has the mean of the other s²; with single trials on more than half of the tasks ȳ(1 − ȳ)/N, named
    "upper bound", or with ω̂ the variance function, ω̂·ȳ(1 − ȳ)/N where all are single. Every facet adds its
    interaction with the agent and, but for the panel of judges, which is fixed, its main effect.

    selected: the tasks are a selected subset: only the target `subset` is answered from them.
    omega: ω̂ of these tasks; see `analytics.differences.trial_variances`.
    facets: facets the outcomes depend on; by default run, prompt and judge, none of them measured.
    groups: of the row's tasks, for the target ``domain``; by default they are independent.
    """
    if selected and target != "subset":
        raise CoreError(
            f"selected tasks are not a sample of all tasks: the target {target!r} cannot be told from them; "
            "its prediction can",
            code="target",
        )
    if row.means.ndim != 1:
        raise CoreError(f"an agent's cells of shape {row.means.shape}", code="shapes_differ")
    check_variance("linking", row.v_link)
    valid = ~np.isnan(row.means)
    if not valid.any():
        raise CoreError("an agent without a valid outcome has no mean", code="no_common_task")
    variances, n_trials = (
        None if part is None else part[None] for part in (row.trial_variances, row.n_trials)
    )
    once = np.array([row.one_trial], dtype=np.bool_)
    means, shares = (part[0] for part in checked_cells(row.means[None], variances, n_trials, once))
    counts = np.full(row.means.shape, np.nan) if row.n_trials is None else row.n_trials
    if not valid.all():
        means, shares, counts = means[valid], shares[valid], counts[valid]
    value = float(means.mean())
    if target == "domain":
        term, reason = domain_term(means, None if groups is None else groups.on(valid))
    else:
        term, reason = _finite_term(value, shares, counts, omega)
    added, _, omitted = facet_terms((row,), facets, {facet.name: facet.name == "judge" for facet in facets})
    holds_cells = target == "domain" or term.name == "upper bound"
    terms = (
        ()
        if reason
        else (term, *(() if holds_cells else cell_variance(replace(row, means=means), facets)), *added)
    )
    return Estimate(
        value=value,
        target=target,
        method=term.name,
        interval=interval_of(value, terms),
        p_value=None,
        n_tasks=means.size,
        terms=terms,
        cancels=(),
        omitted=omitted,
        reason=reason,
    )


def domain_term(values: FloatArray, groups: Groups | None = None) -> tuple[ErrorTerm, str]:
    """Return s²/N of values on N tasks, or that of their groups, or the reason why there is none."""
    n = values.size
    if n < 2:
        return ErrorTerm("domain", 0.0, 1.0), "one task tells nothing about the spread over tasks"
    if groups is None:
        term = ErrorTerm("domain", float(np.var(values, ddof=1)) / n, n - 1)
    elif groups.fault:
        return ErrorTerm(METHODS[groups.role], 0.0, 1.0), groups.fault
    else:
        term = mean_variance(values, groups)
    return _positive(term, f"the same value on all {n} tasks")


def _finite_term(
    rate: float, variances: FloatArray, counts: FloatArray, omega: float | None
) -> tuple[ErrorTerm, str]:
    """Return the variance of the mean by the first rule that applies: N⁻²·Σ s²_j/R_j by trials.

    Degrees of freedom are R_j − 1 each, N − 1 for the cells of one trial where ω̂ is known.
    variances, counts: s²_j/R_j and R_j, NaN where R is 1.
    """
    n, known = variances.size, ~np.isnan(variances)
    own, n_trials, n_one = variances[known], counts[known], int(np.count_nonzero(~known))
    if omega is None and 2 * n_one > n:
        return _positive(ErrorTerm("upper bound", rate * (1 - rate) / n, max(n - 1, 1)), "the mean is 0 or 1")
    if omega is None:
        own, single = own * (1.0 + n_trials * n_one / own.size), 0.0
    else:
        single = omega * rate * (1 - rate) * n_one / n**2
    own = own / n**2
    variance = float(own.sum()) + single
    inverse_df = float(np.sum(own**2 / (n_trials - 1))) + single**2 / max(n - 1, 1)
    name = "repeated trials" if omega is None or not n_one else "variance function"
    df = variance**2 / inverse_df if inverse_df > 0 else 1.0
    return _positive(ErrorTerm(name, variance, df), "trials that do not differ, or means at 0 or 1")


def _positive(term: ErrorTerm, cause: str) -> tuple[ErrorTerm, str]:
    """Refuse a variance that is 0 to rounding: the data show no spread to measure it by."""
    if term.variance > 1e-20:
        return term, ""
    return term, f"{cause}: a standard error of 0 would say that the value is known exactly"


Agent = Measured | Calibrated


def compare(
    a: Row,
    b: Row,
    *,
    facets: Sequence[Facet] = NEVER_MEASURED,
    shared: Mapping[str, bool] | None = None,
    groups: Groups | None = None,
) -> Estimate:
    """δ̂ = mean of X[a, j] − X[b, j] over the common tasks, a sample of tasks, with its interval.

    shared: whether both agents ran under the same levels of a facet; true where not given.
    """
    if a.means.ndim != 1 or a.means.shape != b.means.shape:
        raise CoreError(
            f"two agents' cells of shapes {a.means.shape} and {b.means.shape}", code="shapes_differ"
        )
    for row in (a, b):
        check_variance("linking", row.v_link)
    if groups is not None and groups.code.shape != a.means.shape:
        raise CoreError(f"groups {groups.code.shape} for {a.means.size} tasks", code="shapes_differ")
    common = ~np.isnan(a.means) & ~np.isnan(b.means)
    if not common.any():
        raise CoreError(
            "two agents without a common task with valid outcomes have no difference", code="no_common_task"
        )
    d = a.means[common] - b.means[common]
    term, reason = domain_term(d, None if groups is None else groups.on(common))
    added, cancels, omitted = facet_terms((a, b), facets, shared or {})
    terms = () if reason else (term, *added)
    value = float(d.mean())
    interval = interval_of(value, terms)
    return Estimate(
        value=value,
        target="domain",
        method=term.name,
        interval=interval,
        p_value=p_value_of(value, interval),
        n_tasks=d.size,
        terms=terms,
        cancels=cancels,
        omitted=omitted,
        reason=reason,
    )


def compare_given(
    a: Agent,
    b: Agent,
    target: Target,
    noise: TrialNoise,
    n_tasks: int,
    *,
    facets: Sequence[Facet] = NEVER_MEASURED,
    added: ErrorTerm | None = None,
) -> Estimate:
    """δ̂ = score of a − score of b on given tasks, with the variance that decides their ranks.

    added: variance that counts in the decision on the pair, as the incumbent shift does.
    """
    sides = (a, b)
    errors = [error_of(agent, noise, facets) for agent in sides]
    rows = [agent.row for agent in sides if isinstance(agent, Measured)]
    beyond, cancels, omitted = facet_terms(rows, facets, {})
    linked = [
        ErrorTerm("linking", one.v_link, one.df_link)
        for one in sides
        if isinstance(one, Calibrated) and one.v_link
    ]
    terms = (*_own(sides, errors), *beyond, *linked, *([added] if added else []))
    value = a.score - b.score
    interval = interval_of(value, terms)
    return Estimate(
        value=value,
        target=target,
        method=terms[0].name,
        interval=interval,
        p_value=p_value_of(value, interval),
        n_tasks=n_tasks,
        terms=terms,
        cancels=cancels if len(rows) == len(sides) else (),
        omitted=omitted,
        reason="",
    )


def benjamini_hochberg(p_values: npt.ArrayLike) -> FloatArray:
    """Benjamini-Hochberg adjusted p-values, (n,): min over larger p of p_(i)·n/i, at most 1."""
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise CoreError("p-values are a list of numbers from 0 to 1", code="component")
    # Not scipy.stats' own: a web worker adjusts a handful and would load all of it.
    largest_first = np.argsort(p)[::-1]
    ranks = np.arange(p.size, 0, -1)
    adjusted = np.empty_like(p)
    adjusted[largest_first] = np.minimum.accumulate(p[largest_first] * p.size / ranks)
    return adjusted


def _own(sides: Sequence[Agent], errors: Sequence[AgentError]) -> list[ErrorTerm]:
    measured = [agent for agent in sides if isinstance(agent, Measured)]
    if len(measured) == len(sides) and any(error.method == "neyman" for error in errors):
        a, b = (agent.outcomes for agent in measured)
        if a.shape != b.shape:
            raise CoreError(f"two agents' outcomes of shapes {a.shape} and {b.shape}", code="shapes_differ")
        variance = pair_variances(np.stack([a, b]), np.zeros(2))[0, 1]
        return [ErrorTerm("neyman", float(variance), max(a.size - 1, 1))]
    terms = []
    if calibrated := [error for error in errors if error.calibrated]:
        parts = [ErrorTerm("calibration", error.calibrated, error.calibration_df) for error in calibrated]
        total = _together("calibration", parts)
        one = len({error.calibration for error in calibrated}) == 1
        terms.append(total._replace(df=parts[0].df) if one else total)
    parts = [part for error in errors for part in error.own]
    if measured or parts:
        names = {part.name for part in parts if not part.name.startswith(OF_FACETS)}
        name = "repeated trials" if names <= {"repeated trials"} else "variance function"
        terms.append(_together("upper bound" if "upper bound" in names else name, parts))
    return terms


def _together(name: str, parts: Sequence[ErrorTerm]) -> ErrorTerm:
    """Add independent estimates, with Satterthwaite's degrees of freedom, at least 1."""
    return ErrorTerm(name, math.fsum(part.variance for part in parts), max(satterthwaite(parts), 1.0))


def wilson(p: float, n: float, level: float) -> tuple[float, float]:
    """One-sided lower and upper bounds of a share p of n at a level, each by itself; n need not be whole.

    Source: Wilson, *JASA* 22 (1927) 209-212.
    """
    z = float(ndtri(level))
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)
