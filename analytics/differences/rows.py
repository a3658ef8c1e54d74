"""One agent's cells on some tasks, and how much its score varies beyond them: facets and linking.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, App. D (what cancels).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from analytics.arrays import FloatArray
from analytics.errors import CoreError


@dataclass(frozen=True)
class Facet:
    """A facet that outcomes were averaged over: σ² with the agent and main, score²; None: not measured.

    with_task: σ² with the agent and a task.
    """

    name: str
    with_agent: float | None = None
    main: float | None = None
    df_with_agent: float = math.inf
    df_main: float = math.inf
    with_task: float = 0.0
    df_with_task: float = math.inf


OF_FACETS = "agent:"  # how the names of terms begin that were estimated once for all agents
NEVER_MEASURED = (Facet("run"), Facet("prompt"), Facet("judge"))


def facets_of(result: Mapping[str, Any] | None) -> tuple[Facet, ...]:
    """Return what differences between agents need of runs, prompts and judges, by a variance study."""
    measured = result["facets"] if result and result["available"] else {}
    return tuple(Facet(facet.name, **measured.get(facet.name, {})) for facet in NEVER_MEASURED)


@dataclass(frozen=True, eq=False)
class Row:
    """One agent's cells, (n_tasks,), and how they came about.

    trial_variances, n_trials: as in `OutcomeTable`; None without repeated trials.
    one_trial: trials are copies of one another: R counts as 1.
    levels: levels of each facet the means average over; 1 where not given.
    v_link, df_link: linking variance, score², 0 for an agent ranked directly; its degrees of freedom.
    """

    means: FloatArray
    trial_variances: FloatArray | None = None
    n_trials: FloatArray | None = None
    one_trial: bool = False
    levels: Mapping[str, int] = field(default_factory=dict)
    v_link: float = 0.0
    df_link: float = math.inf


class ErrorTerm(NamedTuple):
    """A part of a variance."""

    name: str
    variance: float
    df: float


def satterthwaite(terms: Sequence[ErrorTerm]) -> float:
    """ν of Σt: (Σt)²/Σ(t²/ν_t), of one term its own to the last bit; infinite where all are known."""
    if len(terms) == 1:
        return terms[0].df
    inverse = math.fsum(term.variance**2 / term.df for term in terms)
    return math.fsum(term.variance for term in terms) ** 2 / inverse if inverse else math.inf


def agent_variance(row: Row, facets: Sequence[Facet] = NEVER_MEASURED) -> tuple[ErrorTerm, ...]:
    """v_a = σ²_agent:run/L + σ²_agent:prompt/V + σ²_agent:judge/M + v_link, as far as measured."""
    terms = [
        ErrorTerm(f"agent:{f.name}", f.with_agent / _n_levels(row, f.name), f.df_with_agent)
        for f in facets
        if f.with_agent is not None
    ]
    if row.v_link:
        terms.append(ErrorTerm("linking", row.v_link, row.df_link))
    for term in terms:
        check_variance(term.name, term.variance)
    return tuple(terms)


def cell_variance(row: Row, facets: Sequence[Facet]) -> list[ErrorTerm]:
    """σ²_agent:task:prompt/(V·k) on given tasks, as far as measured; their spread over tasks holds it."""
    return [
        ErrorTerm(
            f"agent:task:{f.name}", f.with_task / (_n_levels(row, f.name) * row.means.size), f.df_with_task
        )
        for f in facets
        if f.with_task
    ]


def facet_terms(
    rows: Sequence[Row], facets: Sequence[Facet], shared: Mapping[str, bool]
) -> tuple[tuple[ErrorTerm, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the terms of facets, main effects that cancel, what was not measured; by default shared."""
    terms = [term for row in rows for term in agent_variance(row, facets)]
    omitted = [f"agent:{f.name}" for f in facets if f.with_agent is None]
    apart = [f for f in facets if not shared.get(f.name, True)]
    for f in apart:
        if f.main is None:
            omitted.append(f.name)
            continue
        check_variance(f.name, f.main)
        variance = sum(f.main / _n_levels(row, f.name) for row in rows)
        terms.append(ErrorTerm(f.name, variance, f.df_main))
    cancels = tuple(f.name for f in facets if f not in apart)
    # the terms of one component were estimated once, with its degrees of freedom
    totals: dict[tuple[str, float], float] = {}
    for term in terms:
        key = (term.name, term.df)
        totals[key] = totals.get(key, 0.0) + term.variance
    merged = tuple(ErrorTerm(name, variance, df) for (name, df), variance in totals.items())
    return merged, cancels, tuple(omitted)


def check_variance(name: str, variance: float) -> None:
    """Refuse a variance that is negative or not finite."""
    if not (math.isfinite(variance) and variance >= 0):
        raise CoreError(f"{name}: a variance of {variance} is not finite and at least 0", code="component")


def _n_levels(row: Row, facet: str) -> int:
    n_levels = row.levels.get(facet, 1)
    if n_levels < 1:
        raise CoreError(f"{facet}: averaged over {n_levels} levels", code="component")
    return n_levels
