"""REML for crossed and nested variance components: the one entry, `fit`, and what it refuses.

Model
-----
That of `analytics.reml.variance_components`: y = Xβ + Σ_T Z_T u_T + e, where the components minimise lme4's
REML criterion under σ_T² ≥ 0. The terms come as text (`analytics.reml.formula`), columns as labels
(`analytics.reml.factors`).

Method
------
Where every combination of all the factors named has the same number of rows, `analytics.reml.balanced`
(on strata; ``balanced: closed form`` or ``balanced: bounded optimum``); else `analytics.reml.sparse`
(``unbalanced: patterns`` or ``unbalanced: blocked``). The fit names its method, how it ended, and the
components on the boundary. Neither the order of the rows nor the names of the levels changes a component or
the criterion: a change of base level multiplies X by a matrix of determinant ±1.

Refused, with the term and the reason
-------------------------------------
A factor of one level; a random term with a level for each row (the cell without replicates: it and the
residual are one, `pooled`); two terms that group the rows alike; a random term inside the fixed ones; fixed
columns that depend on each other, or are too many for the memory; more parameters than rows; an outcome that
is constant or not a number.

Source
------
As in `analytics.reml.variance_components`, `analytics.reml.balanced` and `analytics.reml.sparse`.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from analytics.arrays import CodeArray, FloatArray
from analytics.reml import sparse
from analytics.reml.balanced import optimise_many
from analytics.reml.model import (
    FitRefused,
    Model,
    check_fixed,
    check_groupings,
    checked_outcome,
    designed,
    pooled,
)
from analytics.reml.strata import SMALLEST_NOISE, n_replicates, strata_of
from analytics.reml.unbalanced import UnbalancedLikelihood
from analytics.reml.variance_components import Facet, VarianceFit

SMALLEST_SPREAD = 1e-12
FEW_FIXED = 50
MOST_FIXED_NUMBERS = 20_000_000  # of a column for each fixed effect: 160 MB


def fit(
    columns: Mapping[str, npt.ArrayLike], outcome: npt.ArrayLike, *, random: str, fixed: str = ""
) -> VarianceFit:
    """Estimate variance components by REML.

    Parameters
    ----------
    columns : mapping of str to sequence of shape (n_rows,)
        Labels; only the columns that the terms name are looked at, and each is a factor.
    outcome : sequence of float, shape (n_rows,)
    random : str
        Random terms, such as ``item + prompt + item:prompt``.
    fixed : str
        Fixed terms beside the intercept, such as ``judge + temperature``.

    Raises
    ------
    FormulaRefused
        By the text.
    FactorRefused
        By a missing label, or a fixed interaction without its margins.
    FitRefused, StrataRefused, SparseRefused
        Where the rows or the design cannot tell the components, with the term and the reason.
    """
    y = checked_outcome(outcome)
    design = designed(columns, y.size, random, fixed)
    _check_outcome(design, y)
    n_alike = n_replicates(design.codes, design.n_levels)
    if n_alike is None:
        return _fit_unbalanced(design, y)
    if n_alike == 1:
        _check_cell(design, y.size)
    return _fit_balanced(design, y)


def _fit_balanced(design: Model, y: FloatArray) -> VarianceFit:
    grid = design.grid()
    strata = strata_of(
        y, design.codes, design.n_levels, design.numbers(design.random), design.numbers(design.fixed), grid
    )
    optima = optimise_many(strata.loadings, strata.df, strata.sum_squares[None, :])
    parameters, n_steps, converged = optima.parameters[0], int(optima.n_steps[0]), bool(optima.converged[0])
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
        n_evaluations=n_steps,
        n_rows=y.size,
        facets=_facets(design),
        likelihood=strata,
    )


def _fit_unbalanced(design: Model, y: FloatArray) -> VarianceFit:
    _check_size(design, y.size)
    rows, groups = design.rows(), [design.groups(term.factors) for term in design.random]
    check_groupings(design, groups, y.size)
    _check_noise(design, groups, y)
    check_fixed(design, rows, groups)
    criterion = sparse.Criterion(y, design.codes, design.n_levels, design.numbers(design.random), rows)
    found = sparse.minimise(criterion)
    return VarianceFit(
        terms=design.random,
        variances=found.variances,
        residual=found.residual,
        fixed_names=design.fixed_names,
        beta=found.beta,
        beta_covariance=found.beta_covariance,
        contrast=design.grid().mean(axis=0),
        criterion=found.criterion,
        method=f"unbalanced: {found.method}",
        message=found.message,
        converged=found.converged,
        n_evaluations=found.n_evaluations,
        n_rows=y.size,
        facets=_facets(design),
        likelihood=UnbalancedLikelihood(criterion, groups, rows),
    )


def _check_size(design: Model, n_rows: int) -> None:
    """Refuse so many fixed effects that their columns alone would fill the memory."""
    p, most = len(design.fixed_names), max(FEW_FIXED, MOST_FIXED_NUMBERS // n_rows)
    if p > most:
        raise FitRefused(
            f"{p:,} fixed effects in {n_rows:,} rows that are not balanced; at most {most:,} are fitted",
            code="too_many_fixed_effects",
        )


def _facets(design: Model) -> tuple[Facet, ...]:
    fixed = frozenset[str]().union(*(term.factors for term in design.fixed))
    random = {term.factors - fixed for term in design.random} - {frozenset()}
    smallest = [factors for factors in random if not any(other < factors for other in random)]
    facets = [Facet(factors, int(design.groups(factors).max()) + 1) for factors in smallest]
    return tuple(sorted(facets, key=lambda facet: facet.name))


def _check_outcome(design: Model, y: FloatArray) -> None:
    p, n_components = len(design.fixed_names), len(design.random) + 1
    if p + n_components > y.size:
        raise FitRefused(
            f"{p} fixed effects and {n_components} components from {y.size} rows",
            code="more_parameters_than_rows",
        )
    if np.ptp(y) <= SMALLEST_SPREAD * np.max(np.abs(y)):
        raise FitRefused(
            f"all {y.size} outcomes are {y[0]:g}: there is no variance to split", code="outcome_constant"
        )


def _check_cell(design: Model, n_rows: int) -> None:
    """Refuse the term of all factors in a balanced design without replicates."""
    for term in design.random:
        if len(term.factors) == len(design.factors):
            raise pooled(term, n_rows)


def _check_noise(design: Model, groups: list[CodeArray], y: FloatArray) -> None:
    """Refuse outcomes that a single term gives in full."""
    centred = y - np.mean(y)
    for term, codes in zip(design.random, groups, strict=True):
        n_rows = np.bincount(codes)
        within = centred - (np.bincount(codes, weights=centred) / n_rows)[codes]
        if within @ within <= SMALLEST_NOISE * (centred @ centred):
            raise FitRefused(
                f"{term.name}: rows of one level never differ: the residual is 0 and REML has no optimum",
                code="no_residual_noise",
            )
