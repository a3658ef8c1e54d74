"""Intervals of the grand mean θ̂, or of another combination; the parametric bootstrap.

Source: Satterthwaite, *Biometrics Bulletin* 2 (1946) 110-114. Giesbrecht & Burns, *Biometrics* 41 (1985)
477-486 (ν from the information). STATISTICS §7.5 for the rule of 4 levels, whose coverage `tests/analytics`
measures. Efron & Tibshirani, *An Introduction to the Bootstrap*, 1993, §12.5 and §13.3. Bates et al.,
*J. Stat. Software* 67(1) (2015), §2.3 (`bootMer`).
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import ndtri, stdtrit

from analytics.arrays import FloatArray
from analytics.errors import CoreError
from analytics.reml.variance_components import (
    ComponentInterval,
    ComponentIntervals,
    RandomFacet,
    Refits,
    VarianceFit,
    check_level,
)

MIN_DRAWS_T = 2_000
MIN_DRAWS = 200


def refits(fit: VarianceFit, rng: np.random.Generator, n_draws: int = MIN_DRAWS_T) -> Refits:
    """Draw from the fitted model and fit each of the draws, at least 200."""
    if n_draws < MIN_DRAWS:
        raise CoreError(
            f"{n_draws} draws; percentiles of a bootstrap need at least {MIN_DRAWS}", code="bootstrap"
        )
    return fit.likelihood.refits(fit.parameters, fit.beta, fit.contrast, n_draws, rng)


def component_intervals(fit: VarianceFit, draws: Refits, level: float = 0.95) -> ComponentIntervals:
    """Percentile intervals of all components, from draws of this fit."""
    check_level(level)
    tails = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
    lower, upper = np.quantile(draws.parameters, tails, axis=0)
    spread = np.std(draws.parameters, axis=0, ddof=1)
    intervals = {
        name: ComponentInterval(
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
    return ComponentIntervals(intervals, dict.fromkeys(fit.boundary, reason))


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


@dataclass(frozen=True)
class EstimateInterval:
    """An estimate with its standard error and interval.

    df: of the t quantile; None where none is used.
    method: `satterthwaite`, `conservative`, `wald` or `bootstrap-t`.
    small_facets: random facets with at most 4 levels that add to the variance.
    """

    estimate: float
    standard_error: float
    lower: float
    upper: float
    df: float | None
    level: float
    method: str
    small_facets: tuple[str, ...]


def theta_interval(
    fit: VarianceFit, level: float = 0.95, method: Method = "by rule", draws: Refits | None = None
) -> EstimateInterval:
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
        df = float(min(facet.n_levels for facet in small) - 1)
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
    return EstimateInterval(
        estimate=estimate,
        standard_error=error,
        lower=estimate - high * error,
        upper=estimate - low * error,
        df=df,
        level=level,
        method=named,
        small_facets=tuple(facet.name for facet in small),
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


def small_facets(fit: VarianceFit, slopes: FloatArray) -> tuple[RandomFacet, ...]:
    """Random facets with at most 4 levels inside a term that adds to a variance with these slopes."""
    adding = slopes[:-1] > 1e-9 * np.max(np.abs(slopes))
    terms = [term for term, adds in zip(fit.terms, adding, strict=True) if adds]
    return tuple(
        facet
        for facet in fit.facets
        if facet.n_levels <= SMALL_FACET and any(facet.factors <= term.factors for term in terms)
    )
