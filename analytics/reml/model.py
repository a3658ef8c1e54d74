"""The factors and terms that a model is made of, and designs that cannot tell its parts.

Labels become codes, text becomes terms, and what no method can estimate is refused, with the term and the
reason: a factor of one level, a random term inside the fixed ones, a random term with a level for each row,
two terms that group the rows alike, fixed columns that depend on each other.

Source: as in `analytics.reml.fitting`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from analytics.arrays import CodeArray, FloatArray
from analytics.reml.factors import (
    Factor,
    FitRefused,
    check_margins,
    combined,
    factor,
    first_rows,
    treatment_design,
    treatment_names,
)
from analytics.reml.formula import Term, parse


@dataclass(frozen=True, eq=False)
class MixedModel:
    """The factors that the terms of a model name, in that order, the terms, and the columns of X."""

    factors: dict[str, Factor]
    random: tuple[Term, ...]
    fixed: tuple[Term, ...]
    fixed_names: tuple[str, ...]

    @property
    def codes(self) -> tuple[CodeArray, ...]:
        """Codes of the factors, shape (n_rows,) each."""
        return tuple(column.codes for column in self.factors.values())

    @property
    def n_levels(self) -> tuple[int, ...]:
        """Levels of the factors."""
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


def checked_outcome(outcome: npt.ArrayLike) -> FloatArray:
    """Return the outcome, shape (n_rows,); raise FitRefused unless every one is finite."""
    y = np.asarray(outcome, dtype=np.float64)
    if y.ndim != 1:
        raise FitRefused(f"the outcome has shape {y.shape}, not (n_rows,)", code="lengths_differ")
    if not np.isfinite(y).all():
        row = int(np.argmin(np.isfinite(y)))
        raise FitRefused(
            f"row {row}: an outcome of {y[row]}; leave out rows without one", code="outcome_missing"
        )
    return y


def designed(columns: Mapping[str, npt.ArrayLike], n_rows: int, random: str, fixed: str) -> MixedModel:
    """Read the terms and code the factors that they name; raise FitRefused or CoreError where they cannot."""
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
    model = MixedModel(factors, random_terms, fixed_terms, treatment_names(fixed_terms, factors))
    for kind, terms in (("random", model.random), ("fixed", model.fixed)):
        for term in terms:
            for name in term.columns:
                if factors[name].n_levels < 2:
                    levels = ", ".join(map(repr, factors[name].levels)) or "none"
                    raise FitRefused(
                        f"{kind} term {term.name}: {name} has one level only ({levels})", code="one_level"
                    )
    for term in model.random:
        if any(term.factors <= fixed.factors for fixed in model.fixed):
            raise _absorbed(term)
    return model


def check_groupings(model: MixedModel, groups: Sequence[CodeArray], n_rows: int) -> None:
    """Refuse a level for each row, and two terms with the same levels under different names."""
    for term, codes in zip(model.random, groups, strict=True):
        if codes.max() + 1 == n_rows:
            raise pooled(term, n_rows)
    for (one, left), (other, right) in combinations(zip(model.random, groups, strict=True), 2):
        n_levels = int(left.max()) + 1
        alike = n_levels == int(right.max()) + 1 == int(combined([left, right], [n_levels] * 2).max()) + 1
        if alike:
            raise FitRefused(
                f"{one.name} and {other.name} group the rows alike: their components are one",
                code="confounded",
            )


def check_fixed(model: MixedModel, x: FloatArray, groups: Sequence[CodeArray]) -> None:
    """Refuse dependent fixed columns, and random terms whose levels the fixed columns tell apart already."""
    if not model.fixed:
        return
    cell = model.groups(frozenset[str]().union(*(term.factors for term in model.fixed)))
    distinct = x[first_rows(cell)]
    if np.linalg.matrix_rank(distinct) < distinct.shape[1]:
        columns = range(1, distinct.shape[1])
        column = next(j for j in columns if np.linalg.matrix_rank(distinct[:, : j + 1]) <= j)
        raise FitRefused(
            f"fixed {model.fixed_names[column]} is a combination of the columns before it in these rows",
            code="rank_deficient",
        )
    for term, codes in zip(model.random, groups, strict=True):
        if codes.max() < x.shape[1]:
            first = first_rows(combined([cell, codes], [int(cell.max()) + 1, int(codes.max()) + 1]))
            levels = np.eye(int(codes.max()) + 1)[codes[first]]
            left = levels - x[first] @ np.linalg.lstsq(x[first], levels)[0]
            if np.max(np.abs(left)) < 1e-8:
                raise _absorbed(term)


def pooled(term: Term, n_rows: int) -> FitRefused:
    """Return the refusal of a random term with a level for each row."""
    return FitRefused(
        f"{term.name}: one row for each of its {n_rows} levels, so that it and the residual are one "
        "(pooled); leave the term out, or give replicates",
        code="pooled",
    )


def _absorbed(term: Term) -> FitRefused:
    return FitRefused(
        f"{term.name} is random, and the fixed terms tell its levels apart already", code="confounded"
    )
