"""Intervals of the grand mean θ̂ and of each fixed effect.

Model
-----
For an estimate a'β̂ with Var = a'Cov(β̂)a = g'φ (g_T = ∂Var/∂φ_T; in a balanced design a'Σ_s λ_s B P_s B'a)::

    a'β̂ ± q·SE        SE = √(g'φ̂)        ν = 2 (g'φ̂)² / (g' I(φ̂)⁻¹ g)

θ is the mean over all levels of the fixed factors, each weighing the same.

*satterthwaite*: q = t_ν, with I(φ̂) over the components off the boundary. In a balanced design with as many
strata as such components this is ν = (Σ_s a_s λ̂_s)²/Σ_s (a_s λ̂_s)²/df_s where Var = Σ_s a_s λ̂_s, since
I(φ) = ½M'diag(df/λ²)M is then inverted stratum by stratum. A component on the boundary leaves its column of M
out, which adds its stratum to the one with equal λ: the stratum that it was pooled into.

*conservative*: q = t_d, where a random facet with at most 4 levels adds to the variance; d = the smallest
(levels − 1) among those. Such a facet's variance has few degrees of freedom, and ν, made from estimates,
is often too large just when the variance is estimated too small. This is the rule, not a choice.

*wald* (q normal) and *bootstrap-t* (`analytics.reml.bootstrap`) are for information. *percentile* is refused.

Symbols
-------
======  ====================  =============  ==========
symbol  code                  shape          unit
======  ====================  =============  ==========
a       ``contrast``          (p,)           1
g       ``slopes``            (n_terms + 1)  1
ν       ``df``                scalar         1
d       ``df``, conservative  scalar         1
======  ====================  =============  ==========

Not done here
-------------
No Kenward-Roger inflation of Cov(β̂), no simultaneous intervals. A facet's levels are counted, not weighed.

Source
------
Satterthwaite, *Biometrics Bulletin* 2 (1946) 110-114. Giesbrecht & Burns, *Biometrics* 41 (1985) 477-486
(ν from the information). STATISTICS §7.5 for the rule of 4 levels, whose coverage `tests/analytics` measures.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import ndtri, stdtrit

from analytics.arrays import FloatArray
from analytics.errors import CoreError
from analytics.reml import bootstrap
from analytics.reml.variance_components import Facet, Refits, VarianceFit, check_level

SMALL_FACET = 4

Method: TypeAlias = Literal["by rule", "satterthwaite", "wald", "bootstrap-t", "percentile"]
METHODS = ("by rule", "satterthwaite", "wald", "bootstrap-t")


class IntervalRefused(CoreError):
    """No such interval: `percentile`, `method_unknown`, or `draws_missing` for bootstrap-t."""


@dataclass(frozen=True)
class EstimateInterval:
    """An estimate with its standard error and interval.

    Parameters
    ----------
    estimate, standard_error, lower, upper : float
        In the outcome's unit.
    df : float or None
        Of the t quantile; None where none is used.
    level : float
    method : str
        `satterthwaite`, `conservative`, `wald` or `bootstrap-t`.
    small_facets : tuple of str
        Random facets with at most 4 levels that add to the variance.
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
    """Interval of the grand mean.

    Parameters
    ----------
    fit : VarianceFit
    level : float
    method : str
        `by rule`: `conservative` where a random facet has at most 4 levels, else `satterthwaite`. The
        others for information.
    draws : Refits, optional
        Of `bootstrap.refits`, for `bootstrap-t`.

    Raises
    ------
    IntervalRefused, BootstrapRefused, VarianceRefused
    """
    check_level(level)
    if method == "percentile":
        raise IntervalRefused(
            "θ* − θ̂ is normal with the variance that was put in: its percentiles are the Wald interval; "
            "ask for bootstrap-t",
            code="percentile",
        )
    _check_method(method, METHODS)
    slopes = fit.likelihood.covariance_slopes(fit.parameters)
    return _interval(fit, fit.contrast, level, method, slopes, draws)


def fixed_intervals(
    fit: VarianceFit, level: float = 0.95, method: Method = "by rule"
) -> Mapping[str, EstimateInterval]:
    """Interval of each fixed effect, by name.

    Parameters
    ----------
    fit : VarianceFit
    level : float
    method : str
        `by rule`, `satterthwaite` or `wald`.

    Raises
    ------
    IntervalRefused, VarianceRefused
    """
    check_level(level)
    _check_method(method, METHODS[:-1])
    slopes = fit.likelihood.covariance_slopes(fit.parameters)
    contrasts = np.eye(fit.beta.size)
    return {
        name: _interval(fit, contrast, level, method, slopes)
        for name, contrast in zip(fit.fixed_names, contrasts, strict=True)
    }


def satterthwaite_df(fit: VarianceFit, slopes: FloatArray) -> float:
    """ν = 2(g'φ̂)²/(g' I(φ̂)⁻¹ g) over the components off the boundary.

    Parameters
    ----------
    fit : VarianceFit
    slopes : float array, shape (n_terms + 1,)
        g, the variance's derivative by each component.
    """
    free = fit.free()
    variance = float(slopes @ fit.parameters)
    return 2.0 * variance**2 / float(slopes[free] @ fit.covariance() @ slopes[free])


def small_facets(fit: VarianceFit, slopes: FloatArray) -> tuple[Facet, ...]:
    """Random facets with at most 4 levels inside a term that adds to a variance with these slopes.

    Parameters
    ----------
    fit : VarianceFit
    slopes : float array, shape (n_terms + 1,)
    """
    adding = slopes[:-1] > 1e-9 * np.max(np.abs(slopes))
    terms = [term for term, adds in zip(fit.terms, adding, strict=True) if adds]
    return tuple(
        facet
        for facet in fit.facets
        if facet.n_levels <= SMALL_FACET and any(facet.factors <= term.factors for term in terms)
    )


def _check_method(method: str, methods: tuple[str, ...]) -> None:
    if method not in methods:
        raise IntervalRefused(
            f"no interval here is named {method!r}; there are {', '.join(methods)}", code="method_unknown"
        )


def _interval(
    fit: VarianceFit,
    contrast: FloatArray,
    level: float,
    method: str,
    covariance_slopes: FloatArray,
    draws: Refits | None = None,
) -> EstimateInterval:
    slopes = np.einsum("i,tij,j->t", contrast, covariance_slopes, contrast)
    small = small_facets(fit, slopes)
    if method == "by rule":
        method = "conservative" if small else "satterthwaite"
    df = _degrees(fit, slopes, method, small)
    low, high = _quantiles(fit, level, method, df, draws)
    estimate = float(contrast @ fit.beta)
    error = float(np.sqrt(contrast @ fit.beta_covariance @ contrast))
    return EstimateInterval(
        estimate=estimate,
        standard_error=error,
        lower=estimate - high * error,
        upper=estimate - low * error,
        df=df,
        level=level,
        method=method,
        small_facets=tuple(facet.name for facet in small),
    )


def _degrees(fit: VarianceFit, slopes: FloatArray, method: str, small: tuple[Facet, ...]) -> float | None:
    if method == "conservative":
        return float(min(facet.n_levels for facet in small) - 1)
    return satterthwaite_df(fit, slopes) if method == "satterthwaite" else None


def _quantiles(
    fit: VarianceFit, level: float, method: str, df: float | None, draws: Refits | None
) -> tuple[float, float]:
    """Lower and upper quantile of (estimate − truth)/SE."""
    if method == "bootstrap-t":
        if draws is None:
            raise IntervalRefused("bootstrap-t needs draws: bootstrap.refits(fit, rng)", code="draws_missing")
        return bootstrap.t_quantiles(fit, draws, level)
    upper = (1.0 + level) / 2.0
    quantile = float(ndtri(upper) if df is None else stdtrit(df, upper))
    return -quantile, quantile
