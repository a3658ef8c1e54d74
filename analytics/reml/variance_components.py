"""A fitted model of variance components, and the degrees of freedom of the grand mean.

Source: Patterson & Thompson, *Biometrika* 58 (1971) 545-554 (REML). Bates et al., *J. Stat. Software* 67(1)
(2015), Eq. 41-42 (the criterion and its constants), §2.3 (`bootMer`). Searle, Casella & McCulloch, *Variance
Components*, 1992, §6.6. Satterthwaite, *Biometrics Bulletin* 2 (1946) 110-114. Giesbrecht & Burns,
*Biometrics* 41 (1985) 477-486 (ν from the information). The rule of 4 levels: analytics/README.md, *Intervals
of the grand mean*.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from analytics.arrays import CodeArray, FloatArray
from analytics.errors import CoreError
from analytics.reml.formula import Term

RESIDUAL = "Residual"


class Likelihood(Protocol):
    """The restricted likelihood of one data set as a function of φ, residual last."""

    def information(self, parameters: FloatArray) -> FloatArray:
        """I(φ), half the Hessian of Q or its expectation, shape (n_terms + 1, n_terms + 1)."""

    def covariance_slopes(self, parameters: FloatArray) -> FloatArray:
        """∂Cov(β̂)/∂φ, shape (n_terms + 1, p, p)."""

    def refits(self, parameters: FloatArray, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """φ* of outcomes drawn from N(0, V(φ)), shape (n_draws, n_terms + 1)."""


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
    facets: levels that occur of each random facet: a random term's factors, fixed ones left aside, inside
        which there is no other.
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
    n_rows: int
    facets: Mapping[frozenset[str], int]
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
class FittedInterval:
    """An estimate with its standard error and interval.

    method: `satterthwaite`, `conservative` or `normal`.
    df: of the t quantile; None where none is used.
    """

    estimate: float
    standard_error: float
    lower: float
    upper: float
    level: float
    method: str
    df: float | None = None


def check_level(level: float) -> None:
    """Refuse a confidence level that is not strictly between 0 and 1."""
    if not 0.0 < level < 1.0:
        raise CoreError(f"a confidence level of {level}; it lies strictly between 0 and 1", code="level")


SMALL_FACET = 4


def degrees_of_freedom(
    fit: VarianceFit, slopes: FloatArray, panel: int | None = None
) -> tuple[float | None, str]:
    """Degrees of freedom of a variance with these slopes, and the rule: that of 4 levels first.

    panel: those of levels whose variance is not in the fit; `conservative` wherever there are any.
    `normal` is for where nothing random is in the variance.
    """
    few = [n_levels - 1 for n_levels in small_facets(fit, slopes).values()]
    if panel is not None:
        few.append(panel)
    if few:
        return float(min(few)), "conservative"
    if float(slopes @ fit.parameters) == 0.0:
        return None, "normal"
    return satterthwaite_df(fit, slopes), "satterthwaite"


def theta_slopes(fit: VarianceFit) -> FloatArray:
    """Return g = ∂Var(θ̂)/∂φ, shape (n_terms + 1,)."""
    by_component = fit.likelihood.covariance_slopes(fit.parameters)
    return np.asarray(np.einsum("i,tij,j->t", fit.contrast, by_component, fit.contrast), dtype=np.float64)


def satterthwaite_df(fit: VarianceFit, slopes: FloatArray) -> float:
    """ν = 2(g'φ̂)²/(g' I(φ̂)⁻¹ g) over the components off the boundary, g as of `theta_slopes`."""
    free = fit.free()
    variance = float(slopes @ fit.parameters)
    return 2.0 * variance**2 / float(slopes[free] @ fit.covariance() @ slopes[free])


def small_facets(fit: VarianceFit, slopes: FloatArray) -> dict[frozenset[str], int]:
    """Levels of the random facets with at most 4, inside a term that adds to a variance with these slopes."""
    adding = slopes[:-1] > 1e-9 * np.max(np.abs(slopes))
    terms = [term for term, adds in zip(fit.terms, adding, strict=True) if adds]
    return {
        facet: n_levels
        for facet, n_levels in fit.facets.items()
        if n_levels <= SMALL_FACET and any(facet <= term.factors for term in terms)
    }
