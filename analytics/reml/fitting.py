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
columns that depend on each other; more parameters than rows; an outcome that is constant or not a number.

Source
------
As in `analytics.reml.variance_components`, `analytics.reml.balanced` and `analytics.reml.sparse`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from analytics.arrays import CodeArray, FloatArray
from analytics.errors import CoreError
from analytics.reml import sparse
from analytics.reml.balanced import optimise_many
from analytics.reml.factors import (
    Factor,
    check_margins,
    combined,
    factor,
    first_rows,
    treatment_design,
    treatment_names,
)
from analytics.reml.formula import Term, parse
from analytics.reml.strata import SMALLEST_NOISE, n_replicates, strata_of
from analytics.reml.unbalanced import UnbalancedLikelihood
from analytics.reml.variance_components import Facet, VarianceFit

SMALLEST_SPREAD = 1e-12


class FitRefused(CoreError):
    """The outcome or the design cannot tell the components.

    Codes: ``no_random_term``, ``one_level``, ``pooled``, ``confounded``, ``rank_deficient``,
    ``lengths_differ``, ``more_parameters_than_rows``, ``outcome_constant``,
    ``outcome_missing``, ``no_residual_noise``.
    """


@dataclass(frozen=True, eq=False)
class _Design:
    """The model's factors, numbered, and its terms."""

    factors: dict[str, Factor]
    random: tuple[Term, ...]
    fixed: tuple[Term, ...]
    fixed_names: tuple[str, ...]

    @property
    def codes(self) -> tuple[CodeArray, ...]:
        return tuple(column.codes for column in self.factors.values())

    @property
    def n_levels(self) -> tuple[int, ...]:
        return tuple(column.n_levels for column in self.factors.values())

    def numbers(self, terms: tuple[Term, ...]) -> tuple[tuple[int, ...], ...]:
        """Positions of each term's factors, ascending."""
        position = {name: i for i, name in enumerate(self.factors)}
        return tuple(tuple(sorted(position[name] for name in term.columns)) for term in terms)

    def groups(self, columns: frozenset[str]) -> CodeArray:
        """Codes of the combinations of some factors, shape (n_rows,)."""
        chosen = [self.factors[name] for name in self.factors if name in columns]
        return combined([column.codes for column in chosen], [column.n_levels for column in chosen])

    def grid(self) -> FloatArray:
        """X on the grid of the fixed factors, in their order here, the last varying fastest."""
        named = frozenset[str]().union(*(term.factors for term in self.fixed))
        levels = {name: column.n_levels for name, column in self.factors.items() if name in named}
        axes = np.meshgrid(*(np.arange(n) for n in levels.values()), indexing="ij")
        codes = {name: axis.ravel() for name, axis in zip(levels, axes, strict=True)}
        return treatment_design(self.fixed, codes, self.factors)

    def rows(self) -> FloatArray:
        """X, shape (n_rows, p)."""
        codes = {name: column.codes for name, column in self.factors.items()}
        return treatment_design(self.fixed, codes, self.factors)


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
    y = _checked_outcome(outcome)
    design = _designed(columns, y.size, random, fixed)
    _check_levels(design)
    _check_margins(design)
    _check_outcome(design, y)
    n_alike = n_replicates(design.codes, design.n_levels)
    if n_alike is None:
        return _fit_unbalanced(design, y)
    if n_alike == 1:
        _check_cell(design, y.size)
    return _fit_balanced(design, y)


def _fit_balanced(design: _Design, y: FloatArray) -> VarianceFit:
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


def _fit_unbalanced(design: _Design, y: FloatArray) -> VarianceFit:
    rows, groups = design.rows(), [design.groups(term.factors) for term in design.random]
    _check_groupings(design, groups, y.size)
    _check_noise(design, groups, y)
    _check_fixed(design, rows, groups)
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


def _facets(design: _Design) -> tuple[Facet, ...]:
    fixed = frozenset[str]().union(*(term.factors for term in design.fixed))
    random = {term.factors - fixed for term in design.random} - {frozenset()}
    smallest = [factors for factors in random if not any(other < factors for other in random)]
    facets = [Facet(factors, int(design.groups(factors).max()) + 1) for factors in smallest]
    return tuple(sorted(facets, key=lambda facet: facet.name))


def _checked_outcome(outcome: npt.ArrayLike) -> FloatArray:
    y = np.asarray(outcome, dtype=np.float64)
    if y.ndim != 1:
        raise FitRefused(f"the outcome has shape {y.shape}, not (n_rows,)", code="lengths_differ")
    if not np.isfinite(y).all():
        row = int(np.argmin(np.isfinite(y)))
        raise FitRefused(
            f"row {row}: an outcome of {y[row]}; leave out rows without one", code="outcome_missing"
        )
    return y


def _designed(columns: Mapping[str, npt.ArrayLike], n_rows: int, random: str, fixed: str) -> _Design:
    random_terms, fixed_terms = parse(random, columns), parse(fixed, columns)
    if not random_terms:
        raise FitRefused("no random term is named", code="no_random_term")
    check_margins(fixed_terms)
    names = dict.fromkeys(name for term in (*random_terms, *fixed_terms) for name in term.columns)
    factors = {name: factor(name, columns[name]) for name in names}
    for name, column in factors.items():
        if column.codes.shape != (n_rows,):
            raise FitRefused(
                f"column {name} has {column.codes.size} rows, the outcome {n_rows}", code="lengths_differ"
            )
    return _Design(factors, random_terms, fixed_terms, treatment_names(fixed_terms, factors))


def _check_levels(design: _Design) -> None:
    for kind, terms in (("random", design.random), ("fixed", design.fixed)):
        for term in terms:
            for name in term.columns:
                if design.factors[name].n_levels < 2:
                    levels = ", ".join(map(repr, design.factors[name].levels)) or "none"
                    raise FitRefused(
                        f"{kind} term {term.name}: {name} has one level only ({levels})", code="one_level"
                    )


def _check_outcome(design: _Design, y: FloatArray) -> None:
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


def _check_cell(design: _Design, n_rows: int) -> None:
    """Refuse the term of all factors in a balanced design without replicates."""
    for term in design.random:
        if len(term.factors) == len(design.factors):
            raise _pooled(term, n_rows)


def _pooled(term: Term, n_rows: int) -> FitRefused:
    return FitRefused(
        f"{term.name}: one row for each of its {n_rows} levels, so that it and the residual are one "
        "(pooled); leave the term out, or give replicates",
        code="pooled",
    )


def _check_groupings(design: _Design, groups: list[CodeArray], n_rows: int) -> None:
    """Refuse a level for each row, and two terms with the same levels under different names."""
    for term, codes in zip(design.random, groups, strict=True):
        if codes.max() + 1 == n_rows:
            raise _pooled(term, n_rows)
    for (one, left), (other, right) in combinations(zip(design.random, groups, strict=True), 2):
        if _same_grouping(left, right):
            raise FitRefused(
                f"{one.name} and {other.name} group the rows alike: their components are one",
                code="confounded",
            )


def _check_margins(design: _Design) -> None:
    """Refuse a random term inside a fixed one."""
    for term in design.random:
        if any(term.factors <= fixed.factors for fixed in design.fixed):
            raise _absorbed(term)


def _absorbed(term: Term) -> FitRefused:
    return FitRefused(
        f"{term.name} is random, and the fixed terms tell its levels apart already", code="confounded"
    )


def _same_grouping(one: CodeArray, other: CodeArray) -> bool:
    """Whether two groupings with all levels in use split the rows into the same sets."""
    n_levels = int(one.max()) + 1
    if n_levels != int(other.max()) + 1:
        return False
    return int(combined([one, other], [n_levels, n_levels]).max()) + 1 == n_levels


def _check_noise(design: _Design, groups: list[CodeArray], y: FloatArray) -> None:
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


def _check_fixed(design: _Design, x: FloatArray, groups: list[CodeArray]) -> None:
    """Refuse dependent fixed columns, and random terms whose levels the fixed columns tell apart already."""
    if not design.fixed:
        return
    cell = design.groups(frozenset[str]().union(*(term.factors for term in design.fixed)))
    _check_rank(x[first_rows(cell)], design.fixed_names)
    for term, codes in zip(design.random, groups, strict=True):
        if codes.max() < x.shape[1]:
            first = first_rows(combined([cell, codes], [int(cell.max()) + 1, int(codes.max()) + 1]))
            if _spans(x[first], np.eye(int(codes.max()) + 1)[codes[first]]):
                raise _absorbed(term)


def _check_rank(x: FloatArray, names: tuple[str, ...]) -> None:
    if np.linalg.matrix_rank(x) == x.shape[1]:
        return
    column = next(j for j in range(1, x.shape[1]) if np.linalg.matrix_rank(x[:, : j + 1]) <= j)
    raise FitRefused(
        f"fixed {names[column]} is a combination of the columns before it in these rows",
        code="rank_deficient",
    )


def _spans(x: FloatArray, vectors: FloatArray) -> bool:
    """Whether the columns of X span the vectors."""
    left = vectors - x @ np.linalg.lstsq(x, vectors)[0]
    return bool(np.max(np.abs(left)) < 1e-8)
