"""A fitted model of variance components, intervals of these and of the grand mean; the parametric bootstrap.

Source: Patterson & Thompson, *Biometrika* 58 (1971) 545-554 (REML). Bates et al., *J. Stat. Software* 67(1)
(2015), Eq. 41-42 (the criterion and its constants), §2.3 (`bootMer`). Searle, Casella & McCulloch, *Variance
Components*, 1992, §6.6. Satterthwaite, *Biometrics Bulletin* 2 (1946) 110-114. Giesbrecht & Burns,
*Biometrics* 41 (1985) 477-486 (ν from the information). Efron & Tibshirani, *An Introduction to the
Bootstrap*, 1993, §12.5, §13.3. The rule of 4 levels: analytics/README.md, *Intervals of the grand mean*.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
from scipy.special import ndtri, stdtrit

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
    """An estimate with its standard error and interval: of a component, in outcome², or of a mean.

    method: `asymptotic` or `bootstrap`; `satterthwaite`, `conservative`, `wald`, `bootstrap-t` or `normal`.
    df: of the t quantile; None where none is used.
    small_facets: random facets with at most 4 levels that add to the variance.
    """

    estimate: float
    standard_error: float
    lower: float
    upper: float
    level: float
    method: str
    df: float | None = None
    small_facets: tuple[str, ...] = ()


def asymptotic_intervals(
    fit: VarianceFit, level: float = 0.95
) -> tuple[dict[str, FittedInterval], dict[str, str]]:
    """Intervals σ̂² exp(±z s/σ̂²) of the components off the boundary, and why others have none."""
    check_level(level)
    free = fit.free()
    intervals = {}
    for position, error in zip(free, np.sqrt(np.diag(fit.covariance())), strict=True):
        estimate = float(fit.parameters[position])
        factor = float(np.exp(ndtri((1.0 + level) / 2.0) * error / estimate))
        intervals[fit.names[position]] = FittedInterval(
            estimate, float(error), estimate / factor, estimate * factor, level, "asymptotic"
        )
    reason = "on the boundary: the likelihood has no quadratic top there"
    return intervals, dict.fromkeys(fit.boundary, reason)


def check_level(level: float) -> None:
    """Refuse a confidence level that is not strictly between 0 and 1."""
    if not 0.0 < level < 1.0:
        raise CoreError(f"a confidence level of {level}; it lies strictly between 0 and 1", code="level")


MIN_DRAWS_T = 2_000
MIN_DRAWS = 200


def refits(fit: VarianceFit, rng: np.random.Generator, n_draws: int = MIN_DRAWS_T) -> Refits:
    """Draw from the fitted model and fit each of the draws, at least 200."""
    if n_draws < MIN_DRAWS:
        raise CoreError(
            f"{n_draws} draws; percentiles of a bootstrap need at least {MIN_DRAWS}", code="bootstrap"
        )
    return fit.likelihood.refits(fit.parameters, fit.beta, fit.contrast, n_draws, rng)


def component_intervals(
    fit: VarianceFit, draws: Refits, level: float = 0.95
) -> tuple[dict[str, FittedInterval], dict[str, str]]:
    """Percentile intervals of all components, from draws of this fit, and which are too short."""
    check_level(level)
    tails = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
    lower, upper = np.quantile(draws.parameters, tails, axis=0)
    spread = np.std(draws.parameters, axis=0, ddof=1)
    intervals = {
        name: FittedInterval(
            float(fit.parameters[position]),
            float(spread[position]),
            float(lower[position]),
            float(upper[position]),
            level,
            "bootstrap",
        )
        for position, name in enumerate(fit.names)
    }
    reason = "on the boundary: drawn from a model without it, so that the interval is too short"
    return intervals, dict.fromkeys(fit.boundary, reason)


def t_quantiles(fit: VarianceFit, draws: Refits, level: float = 0.95) -> tuple[float, float]:
    """Lower and upper quantile of t* = (θ* − θ̂)/SE*, from at least 2,000 draws of this fit."""
    check_level(level)
    if draws.theta.size < MIN_DRAWS_T:
        raise CoreError(
            f"{draws.theta.size} draws; bootstrap-t needs at least {MIN_DRAWS_T}", code="bootstrap"
        )
    studentised = (draws.theta - fit.contrast @ fit.beta) / np.sqrt(draws.theta_variance)
    lower, upper = np.quantile(studentised, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return float(lower), float(upper)


SMALL_FACET = 4

Method: TypeAlias = Literal["by rule", "satterthwaite", "wald", "bootstrap-t", "percentile"]
METHODS = ("by rule", "satterthwaite", "wald", "bootstrap-t")


def theta_interval(
    fit: VarianceFit, level: float = 0.95, method: Method = "by rule", draws: Refits | None = None
) -> FittedInterval:
    """Interval of the grand mean, or of whatever `fit.contrast` says.

    method: `by rule`: `conservative` where a random facet has at most 4 levels, else `satterthwaite`.
    draws: of `refits`, for `bootstrap-t`.
    """
    check_level(level)
    if method == "percentile":
        raise CoreError(
            "θ* − θ̂ is normal with the variance that was put in: its percentiles are the Wald interval; "
            "ask for bootstrap-t",
            code="percentile",
        )
    if method not in METHODS:
        raise CoreError(
            f"no interval here is named {method!r}; there are {', '.join(METHODS)}", code="method_unknown"
        )
    slopes = theta_slopes(fit)
    small = small_facets(fit, slopes)
    rule = "conservative" if small else "satterthwaite"
    named = rule if method == "by rule" else method
    df = None
    if named == "conservative":
        df = float(min(small.values()) - 1)
    elif named == "satterthwaite":
        df = satterthwaite_df(fit, slopes)
    if named == "bootstrap-t":
        if draws is None:
            raise CoreError("bootstrap-t needs draws: bootstrap.refits(fit, rng)", code="draws_missing")
        low, high = t_quantiles(fit, draws, level)
    else:
        upper = (1.0 + level) / 2.0
        high = float(ndtri(upper) if df is None else stdtrit(df, upper))
        low = -high
    estimate = float(fit.contrast @ fit.beta)
    error = float(np.sqrt(fit.contrast @ fit.beta_covariance @ fit.contrast))
    return FittedInterval(
        estimate=estimate,
        standard_error=error,
        lower=estimate - high * error,
        upper=estimate - low * error,
        df=df,
        level=level,
        method=named,
        small_facets=tuple(":".join(sorted(facet)) for facet in small),
    )


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
