"""Relative decisions: is agent a better than agent b, and by how much, for a target that is named.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, App. D (what cancels). Imbens & Rubin, *Causal
Inference*, 2015, §6.5. Agresti & Min, *Statistics in Medicine* 24 (2005) 729-740 (pseudo-observations).
Benjamini & Hochberg, *JRSS B* 57 (1995) 289-300.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from analytics.arrays import FloatArray
from analytics.differences.estimates import Estimate, Target, interval_of, p_value_of
from analytics.differences.finite_errors import AgentError, Calibrated, Measured, TrialNoise, error_of
from analytics.differences.groups import Groups
from analytics.differences.neyman_draws import pair_variances
from analytics.differences.rows import (
    NEVER_MEASURED,
    ErrorTerm,
    Facet,
    Row,
    check_variance,
    facet_terms,
    satterthwaite,
)
from analytics.differences.scores import domain_term
from analytics.errors import CoreError

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

    a, b: cells on the same tasks in the same order.
    facets: facets the outcomes depend on; by default run, prompt and judge, none of them measured.
    shared: whether both agents ran under the same levels of a facet; true where not given.
    groups: of the tasks; by default they are independent.
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

    noise: of complete agents on these k tasks.
    facets: those never measured are left out.
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
    """Benjamini-Hochberg adjusted p-values: min over larger p of p_(i)·n/i, at most 1.

    p_values: (n,); 0 to 1.
    Returns: (n,); the smallest false discovery rate at which each would be declared.
    """
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
    """Return the parts of SE² but for v: what rests on a calibration, and the noise of trials."""
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
        names = {part.name for part in parts}
        name = "repeated trials" if names <= {"repeated trials"} else "variance function"
        terms.append(_together("upper bound" if "upper bound" in names else name, parts))
    return terms


def _together(name: str, parts: Sequence[ErrorTerm]) -> ErrorTerm:
    """Add independent estimates, with Satterthwaite's degrees of freedom, at least 1."""
    return ErrorTerm(name, math.fsum(part.variance for part in parts), max(satterthwaite(parts), 1.0))
