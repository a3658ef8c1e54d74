"""A logit check: where the variance of a mean comes from, on the scale of outcomes and on the logit scale.

Binomial models with crossed random effects, by the Laplace approximation. Formulas and symbols:
analytics/README.md, *The logit check*.

Source: Bates, Mächler, Bolker & Walker, *Fitting Linear Mixed-Effects Models Using lme4*, 2015, and lme4's
glmer (D). Tierney & Kadane, *JASA* 81 (1986) 82-86. Messing, *Hidden Measurement Error in LLM Pipelines*,
App. G and Eqs. 3, 7; Nakagawa & Schielzeth, *Biological Reviews* 85 (2010) 935-956 (π²/3).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from analytics.arrays import FloatArray
from analytics.drift.fidelity import spearman
from analytics.errors import CoreError
from analytics.glmm.fitting import LogitFit, fit_logit
from analytics.reml import RESIDUAL, VarianceFit
from analytics.reml.model import MixedModel, combined
from analytics.tee.components import CATEGORY, FIXED

__all__ = ["Facets", "LogitCheck", "LogitFit", "fit_logit", "logit_check"]


LOGISTIC = math.pi**2 / 3.0


@dataclass(frozen=True)
class Facets:
    """Columns of items and of their categories, and a factor whose levels are looked at one by one."""

    category: str | None = None
    item: str | None = None
    by_level: str | None = None


@dataclass(frozen=True, eq=False)
class LogitCheck:
    """Shares on both scales, by component: of Var(θ̂), with sum 1."""

    fit: LogitFit
    linear: Mapping[str, float]
    logit: Mapping[str, float]
    facets: Facets

    @property
    def spearman(self) -> float | None:
        """Rank correlation of the two columns of shares; None where it has none."""
        return spearman(list(self.linear.values()), [self.logit[name] for name in self.linear])

    @property
    def sentence(self) -> str:
        """One sentence where the largest component differs, else nothing."""
        linear, logit = (max(shares, key=shares.__getitem__) for shares in (self.linear, self.logit))
        if linear == logit:
            return ""
        mean = f"of one {self.facets.by_level}" if self.facets.by_level else "over all outcomes"
        return (
            f"The largest part of the variance of the mean {mean} is {linear} on the scale of the outcomes "
            f"({self.linear[linear]:.0%}), but {logit} on the logit scale ({self.logit[logit]:.0%})."
        )

    def as_json(self) -> dict[str, Any]:
        """Return the object that commands and studies tell."""
        return {
            "components": self.fit.components,
            "fixed": self.fit.fixed,
            "shares": {"linear": dict(self.linear), "logit": dict(self.logit)},
            "deviance": self.fit.deviance,
            "spearman": self.spearman,
            "dropped": list(self.fit.dropped),
            "sentence": self.sentence,
        }


def logit_check(linear: VarianceFit, logit: LogitFit, facets: Facets | None = None) -> LogitCheck:
    """Put the shares of two fits of one model, its rows and the terms of the logit fit, beside each other.

    facets: by default the columns named item and category.
    Raises CoreError: when the logit fit did not converge.
    """
    if not logit.converged:
        raise CoreError(f"the logit fit did not converge: {logit.message}", code="not_estimable")
    facets = facets or Facets(CATEGORY, "item")
    return LogitCheck(
        logit,
        shares(logit, linear.variances, linear.residual, linear.beta, facets),
        shares(logit, logit.variances, LOGISTIC, logit.beta, facets),
        facets,
    )


def shares(
    fit: LogitFit, variances: FloatArray, residual: float, beta: FloatArray, facets: Facets
) -> dict[str, float]:
    """Return the share of Var(θ̂) of each component, sum 1; the model and its levels are the fit's."""
    model, counted = fit.model, _Levels(fit.model, facets)
    parts = {
        term.name: variance / counted.divisor(term.factors)
        for term, variance in zip(model.random, variances.tolist(), strict=True)
        if term.factors != {facets.by_level}
    }
    for name, variance in sensitivities(model, beta).items():
        if name != facets.by_level:
            parts[name + FIXED] = variance / counted.divisor(frozenset([name]))
    parts[RESIDUAL] = residual / (counted.divisor(frozenset(model.factors)) * fit.n_rows / fit.n_cells)
    total = math.fsum(parts.values())
    return {name: part / total for name, part in parts.items()}


def sensitivities(model: MixedModel, beta: FloatArray) -> dict[str, float]:
    """Return the population variance of each fixed factor's level means, over the grid of the others."""
    names = [name for name in model.factors if any(name in term.factors for term in model.fixed)]
    means = (model.grid() @ beta).reshape([model.factors[name].n_levels for name in names])
    axes = range(len(names))
    return {
        name: float(np.var(means.mean(axis=tuple(a for a in axes if a != axis))))
        for axis, name in enumerate(names)
    }


class _Levels:
    """Levels of each factor, and which factors hold whole levels of which."""

    def __init__(self, model: MixedModel, facets: Facets) -> None:
        self.facets = facets
        self.levels = {name: column.n_levels for name, column in model.factors.items()}
        self.held_by = {
            name: {other for other in model.factors if other != name and _holds(model, name, other)}
            for name in model.factors
        }

    def divisor(self, factors: frozenset[str]) -> float:
        """L_T of a term's factors."""
        if factors == {self.facets.category} and self.facets.item in self.levels:
            return float(self.levels[str(self.facets.item)])
        counted = (name for name in factors - {self.facets.by_level} if not self.held_by[name] & factors)
        return float(math.prod(self.levels[name] for name in counted))


def _holds(model: MixedModel, name: str, other: str) -> bool:
    """Whether every level of the other factor lies in one level of this one, which has fewer."""
    outer, inner = model.factors[name], model.factors[other]
    if outer.n_levels >= inner.n_levels:
        return False
    pairs = combined([outer.codes, inner.codes], [outer.n_levels, inner.n_levels])
    return int(pairs.max()) + 1 == inner.n_levels
