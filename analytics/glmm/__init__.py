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
from itertools import permutations
from typing import Any

import numpy as np

from analytics.arrays import FloatArray
from analytics.drift.rank_correlation import spearman
from analytics.errors import CoreError
from analytics.glmm.fitting import LogitFit, fit_logit
from analytics.reml import RESIDUAL, VarianceFit
from analytics.reml.model import MixedModel, combined
from analytics.tee.components import CATEGORY, FIXED

__all__ = ["LogitCheck", "LogitFit", "fit_logit", "logit_check"]


LOGISTIC = math.pi**2 / 3.0


@dataclass(frozen=True, eq=False)
class LogitCheck:
    """Shares on both scales, by component: of Var(θ̂), with sum 1."""

    fit: LogitFit
    linear: Mapping[str, float]
    logit: Mapping[str, float]
    by_level: str | None

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
        mean = f"of one {self.by_level}" if self.by_level else "over all outcomes"
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


def logit_check(
    linear: VarianceFit,
    logit: LogitFit,
    *,
    category: str | None = CATEGORY,
    item: str | None = "item",
    by_level: str | None = None,
) -> LogitCheck:
    """Put the shares of two fits of one model, rows and terms of the logit fit, beside each other.

    category, item, by_level: columns of items and their categories; a factor looked at level by level.
    """
    if not logit.converged:
        raise CoreError(f"the logit fit did not converge: {logit.message}", code="not_estimable")
    levels = _Levels(logit.model, category, item, by_level)
    return LogitCheck(
        logit,
        shares(logit, linear.variances, linear.residual, linear.beta, levels),
        shares(logit, logit.variances, LOGISTIC, logit.beta, levels),
        by_level,
    )


def shares(
    fit: LogitFit, variances: FloatArray, residual: float, beta: FloatArray, counted: "_Levels"
) -> dict[str, float]:
    """Return the share of Var(θ̂) of each component, sum 1; the model and its levels are the fit's."""
    model = fit.model
    parts = {
        term.name: variance / counted.divisor(term.factors)
        for term, variance in zip(model.random, variances.tolist(), strict=True)
        if term.factors != {counted.by_level}
    }
    for name, variance in sensitivities(model, beta).items():
        if name != counted.by_level:
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

    def __init__(
        self, model: MixedModel, category: str | None, item: str | None, by_level: str | None
    ) -> None:
        self.category, self.item, self.by_level = category, item, by_level
        self.levels = {name: column.n_levels for name, column in model.factors.items()}
        # every level of the other factor lies in one level of this one, which has fewer
        self.held_by: dict[str, set[str]] = {name: set() for name in model.factors}
        for (name, outer), (other, inner) in permutations(model.factors.items(), 2):
            if outer.n_levels < inner.n_levels:
                pairs = combined([outer.codes, inner.codes], [outer.n_levels, inner.n_levels])
                if int(pairs.max()) + 1 == inner.n_levels:
                    self.held_by[name].add(other)

    def divisor(self, factors: frozenset[str]) -> float:
        """L_T of a term's factors."""
        if factors == {self.category} and self.item in self.levels:
            return float(self.levels[str(self.item)])
        counted = (name for name in factors - {self.by_level} if not self.held_by[name] & factors)
        return float(math.prod(self.levels[name] for name in counted))
