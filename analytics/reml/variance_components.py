"""A fitted model of variance components: what it holds, and intervals of the components.

Source: Patterson & Thompson, *Biometrika* 58 (1971) 545-554 (REML). Bates et al., *J. Stat. Software* 67(1)
(2015), Eq. 41-42 (the criterion and its constants). Searle, Casella & McCulloch, *Variance Components*, 1992,
§6.6.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtri

from analytics.arrays import CodeArray, FloatArray
from analytics.errors import CoreError
from analytics.reml.formula import Term

RESIDUAL = "Residual"


@dataclass(frozen=True, eq=False)
class Refits:
    """What outcomes drawn from a fit gave: φ*, (n_draws, n_terms + 1), θ* and var̂(θ*), (n_draws,)."""

    parameters: FloatArray
    theta: FloatArray
    theta_variance: FloatArray


class Likelihood(Protocol):
    """The restricted likelihood of one data set as a function of φ, residual last."""

    def value_and_gradient(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Q(φ) and ∂Q/∂φ, shape (n_terms + 1,)."""

    def information(self, parameters: FloatArray) -> FloatArray:
        """I(φ), half the Hessian of Q or its expectation, shape (n_terms + 1, n_terms + 1)."""

    def covariance_slopes(self, parameters: FloatArray) -> FloatArray:
        """∂Cov(β̂)/∂φ, shape (n_terms + 1, p, p)."""

    def refits(
        self,
        parameters: FloatArray,
        beta: FloatArray,
        contrast: FloatArray,
        n_draws: int,
        rng: np.random.Generator,
    ) -> Refits:
        """Draw outcomes from N(Xβ, V(φ)) and fit each."""


@dataclass(frozen=True)
class RandomFacet:
    """A random term, fixed factors left aside, inside which there is no other; combinations that occur."""

    factors: frozenset[str]
    n_levels: int

    @property
    def name(self) -> str:
        """Its factors, joined by colons."""
        return ":".join(sorted(self.factors))


@dataclass(frozen=True, eq=False)
class VarianceFit:
    """Variance components, fixed effects, and how the fit ended.

    terms: random terms, in the order of the formula.
    variances: (n_terms,); σ̂_T², at least 0, exactly 0 on the boundary.
    residual: σ̂_ρ².
    fixed_names: ``(Intercept)``, ``judge[j2]``, …
    beta, beta_covariance: (p,) and (p, p).
    contrast: (p,); c of θ = c'β, the mean over all levels of the fixed factors, each weighing the same.
    criterion: Q(φ̂), lme4's REML criterion.
    method, message: which method found the optimum, and how it ended.
    n_evaluations: steps or evaluations of Q; 0 for a closed form.
    """

    terms: tuple[Term, ...]
    variances: FloatArray
    residual: float
    fixed_names: tuple[str, ...]
    beta: FloatArray
    beta_covariance: FloatArray
    contrast: FloatArray
    criterion: float
    method: str
    message: str
    converged: bool
    n_evaluations: int
    n_rows: int
    facets: tuple[RandomFacet, ...]
    likelihood: Likelihood

    @property
    def parameters(self) -> FloatArray:
        """φ̂: the variances, then the residual."""
        return np.append(self.variances, self.residual)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of φ̂: the terms as typed, then `Residual`."""
        return (*(term.name for term in self.terms), RESIDUAL)

    @property
    def components(self) -> dict[str, float]:
        """σ̂_T² by the term's name as typed."""
        return {term.name: float(v) for term, v in zip(self.terms, self.variances, strict=True)}

    @property
    def fixed(self) -> dict[str, float]:
        """β̂ by name."""
        return dict(zip(self.fixed_names, self.beta.tolist(), strict=True))

    @property
    def boundary(self) -> tuple[str, ...]:
        """Terms whose variance is exactly 0."""
        return tuple(name for name, variance in self.components.items() if variance == 0.0)

    def component(self, name: str) -> float:
        """σ̂_T² of a term, its factors named in any order; σ̂_ρ² for `Residual`."""
        if name == RESIDUAL:
            return self.residual
        wanted = frozenset(name.split(":"))
        for term, variance in zip(self.terms, self.variances, strict=True):
            if term.factors == wanted:
                return float(variance)
        raise CoreError(f"no term {name}; the model has {', '.join(self.names)}", code="term_unknown")

    def free(self) -> CodeArray:
        """Positions in φ̂ of the components off the boundary."""
        return np.flatnonzero(self.parameters > 0.0).astype(np.int64)

    def covariance(self) -> FloatArray:
        """Cov(φ̂) = I(φ̂)⁻¹ over the components off the boundary, in the order of `free`."""
        free = self.free()
        information = self.likelihood.information(self.parameters)[np.ix_(free, free)]
        scale = self.parameters[free]
        inverse = np.linalg.inv(information * np.outer(scale, scale))
        return np.asarray(inverse * np.outer(scale, scale), dtype=np.float64)


@dataclass(frozen=True)
class ComponentInterval:
    """An `asymptotic` or `bootstrap` interval of one component, in outcome²."""

    estimate: float
    standard_error: float
    lower: float
    upper: float
    level: float
    method: str


@dataclass(frozen=True)
class ComponentIntervals:
    """Intervals by component, `Residual` last, and why some have none."""

    intervals: Mapping[str, ComponentInterval]
    notes: Mapping[str, str]


def asymptotic_intervals(fit: VarianceFit, level: float = 0.95) -> ComponentIntervals:
    """Intervals σ̂² exp(±z s/σ̂²) of the components off the boundary."""
    check_level(level)
    free = fit.free()
    intervals = {}
    for position, error in zip(free, np.sqrt(np.diag(fit.covariance())), strict=True):
        estimate = float(fit.parameters[position])
        factor = float(np.exp(ndtri((1.0 + level) / 2.0) * error / estimate))
        intervals[fit.names[position]] = ComponentInterval(
            estimate, float(error), estimate / factor, estimate * factor, level, "asymptotic"
        )
    reason = "on the boundary: the likelihood has no quadratic top there"
    return ComponentIntervals(intervals, dict.fromkeys(fit.boundary, reason))


def check_level(level: float) -> None:
    """Refuse a confidence level that is not strictly between 0 and 1."""
    if not 0.0 < level < 1.0:
        raise CoreError(f"a confidence level of {level}; it lies strictly between 0 and 1", code="level")
