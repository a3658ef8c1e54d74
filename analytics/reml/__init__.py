"""REML: variance components of crossed and nested random effects, none below 0; what is refused.

Source: As in `analytics.reml.variance_components`, `analytics.reml.strata` and `analytics.reml.criterion`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analytics.arrays import CodeArray, FloatArray
from analytics.programs import one_blas_thread
from analytics.reml.criterion import Criterion
from analytics.reml.formula import parse
from analytics.reml.model import (
    FitRefused,
    MixedModel,
    check_fixed,
    check_groupings,
    checked_outcome,
    designed,
    pooled,
)
from analytics.reml.optimum import minimise
from analytics.reml.strata import MIN_NOISE, n_replicates, optimise_many, strata_of
from analytics.reml.variance_components import (
    RESIDUAL,
    FittedInterval,
    VarianceFit,
    check_level,
    degrees_of_freedom,
    small_facets,
    theta_slopes,
)

__all__ = [
    "RESIDUAL",
    "FitRefused",
    "FittedInterval",
    "VarianceFit",
    "check_level",
    "degrees_of_freedom",
    "fit",
    "parse",
    "small_facets",
    "theta_slopes",
]

MIN_SPREAD = 1e-12
FEW_FIXED = 50
MAX_FIXED_NUMBERS = 20_000_000  # of a column for each fixed effect: 160 MB
STEP = 1e-4


def fit(
    columns: Mapping[str, npt.ArrayLike], outcome: npt.ArrayLike, *, random: str, fixed: str = ""
) -> VarianceFit:
    """Estimate variance components by REML.

    columns: labels; only the columns that the terms name are looked at, and each is a factor.
    random, fixed: terms, such as ``item + prompt + item:prompt``; the intercept is fixed beside them.
    Raises FitRefused, CoreError: with the term and the reason.
    """
    y = checked_outcome(outcome)
    design = designed(columns, y.size, random, fixed)
    p, n_components = len(design.fixed_names), len(design.random) + 1
    if p + n_components > y.size:
        raise FitRefused(
            f"{p} fixed effects and {n_components} components from {y.size} rows",
            code="more_parameters_than_rows",
        )
    if np.ptp(y) <= MIN_SPREAD * np.max(np.abs(y)):
        raise FitRefused(
            f"all {y.size} outcomes are {y[0]:g}: there is no variance to split", code="outcome_constant"
        )
    n_alike = n_replicates(design.codes, design.n_levels)
    if n_alike is None:
        return _fit_unbalanced(design, y)
    if n_alike == 1:
        # Refuse the term of all factors in a balanced design without replicates
        for term in design.random:
            if len(term.factors) == len(design.factors):
                raise pooled(term, y.size)
    return _fit_balanced(design, y)


def _fit_balanced(design: MixedModel, y: FloatArray) -> VarianceFit:
    grid = design.grid()
    strata = strata_of(
        y, design.codes, design.n_levels, design.numbers(design.random), design.numbers(design.fixed), grid
    )
    found, steps, ended_well = optimise_many(strata.loadings, strata.df, strata.sum_squares[None, :])
    parameters, n_steps, converged = found[0], int(steps[0]), bool(ended_well[0])
    ended = "expected fall of the criterion below 1e-18" if converged else "no lower criterion found"
    return VarianceFit(
        terms=design.random,
        variances=parameters[:-1],
        residual=float(parameters[-1]),
        fixed_names=design.fixed_names,
        beta=strata.beta,
        beta_covariance=strata.beta_covariance(parameters),
        contrast=grid.mean(axis=0),
        criterion=strata.value_and_gradient(parameters)[0],
        method="balanced: bounded optimum" if n_steps else "balanced: closed form",
        message=f"{n_steps} step{'' if n_steps == 1 else 's'}; {ended}"
        if n_steps
        else "no component of the closed form is below 0",
        converged=converged,
        n_rows=y.size,
        facets=_facets(design),
        likelihood=strata,
    )


def _fit_unbalanced(design: MixedModel, y: FloatArray) -> VarianceFit:
    p, most = len(design.fixed_names), max(FEW_FIXED, MAX_FIXED_NUMBERS // y.size)
    if p > most:
        raise FitRefused(
            f"{p:,} fixed effects in {y.size:,} rows that are not balanced; at most {most:,} are fitted",
            code="too_many_fixed_effects",
        )
    rows, groups = design.rows(), [design.groups(term.factors) for term in design.random]
    check_groupings(design, groups, y.size)
    centred = y - np.mean(y)
    for term, codes in zip(design.random, groups, strict=True):
        within = centred - (np.bincount(codes, weights=centred) / np.bincount(codes))[codes]
        if within @ within <= MIN_NOISE * (centred @ centred):
            raise FitRefused(
                f"{term.name}: rows of one level never differ: the residual is 0 and REML has no optimum",
                code="no_residual_noise",
            )
    check_fixed(design, rows, groups)
    criterion = Criterion(y, design.codes, design.n_levels, design.numbers(design.random), rows)
    with one_blas_thread():
        point, converged, message = minimise(criterion)
        beta = point.beta
    return VarianceFit(
        terms=design.random,
        variances=point.theta[:-1],
        residual=point.residual,
        fixed_names=design.fixed_names,
        beta=beta,
        beta_covariance=point.beta_covariance,
        contrast=design.grid().mean(axis=0),
        criterion=point.value,
        method=f"unbalanced: {criterion.method}",
        message=message,
        converged=converged,
        n_rows=y.size,
        facets=_facets(design),
        likelihood=UnbalancedLikelihood(criterion, groups, y.size),
    )


def _facets(design: MixedModel) -> dict[frozenset[str], int]:
    fixed = frozenset[str]().union(*(term.factors for term in design.fixed))
    random = {term.factors - fixed for term in design.random} - {frozenset()}
    smallest = [factors for factors in random if not any(other < factors for other in random)]
    return {factors: int(design.groups(factors).max()) + 1 for factors in sorted(smallest, key=sorted)}


@dataclass(frozen=True, eq=False)
class UnbalancedLikelihood:
    """The likelihood of an unbalanced design; levels of each random term are (n_rows,)."""

    criterion: Criterion
    groups: Sequence[CodeArray]
    n_rows: int

    def information(self, parameters: FloatArray) -> FloatArray:
        """Average information, shape (n_terms + 1, n_terms + 1)."""
        return self.criterion.at(parameters).information

    def covariance_slopes(self, parameters: FloatArray) -> FloatArray:
        """∂Cov(β̂)/∂φ by differences, shape (n_terms + 1, p, p)."""
        slopes = []
        for t in range(parameters.size):
            lower, upper = parameters.copy(), parameters.copy()
            lower[t] *= np.exp(-STEP)
            upper[t] *= np.exp(STEP)
            if parameters[t] == 0.0:
                upper[t] = STEP * parameters.sum()
            rise = self.criterion.at(upper).beta_covariance - self.criterion.at(lower).beta_covariance
            slopes.append(rise / (upper[t] - lower[t]))
        return np.array(slopes)

    def refits(self, parameters: FloatArray, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """φ* of outcomes drawn from N(0, V(φ)), each fitted again, shape (n_draws, n_terms + 1)."""
        drawn = np.empty((n_draws, parameters.size))
        for i in range(n_draws):
            y = np.sqrt(parameters[-1]) * rng.standard_normal(self.n_rows)
            for codes, variance in zip(self.groups, parameters[:-1], strict=True):
                y += np.sqrt(variance) * rng.standard_normal(int(codes.max()) + 1)[codes]
            with one_blas_thread():
                drawn[i] = minimise(self.criterion.with_outcome(y), start=parameters)[0].theta
        return drawn
