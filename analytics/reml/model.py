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
    """The factors, numbered, and the terms of a model.

    factors: those that the terms name, in that order.
    fixed_names: columns of X.
    """

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
    """Return the outcome, shape (n_rows,), every one finite.

    Raises FitRefused.
    """
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
    """Read the terms and code the factors that they name.

    Raises FitRefused, CoreError: a factor of one level and a random term inside a fixed one among them.
    """
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
    _check_levels(model)
    _check_margins(model)
    return model


def _check_levels(model: MixedModel) -> None:
    for kind, terms in (("random", model.random), ("fixed", model.fixed)):
        for term in terms:
            for name in term.columns:
                if model.factors[name].n_levels < 2:
                    levels = ", ".join(map(repr, model.factors[name].levels)) or "none"
                    raise FitRefused(
                        f"{kind} term {term.name}: {name} has one level only ({levels})", code="one_level"
                    )


def _check_margins(model: MixedModel) -> None:
    for term in model.random:
        if any(term.factors <= fixed.factors for fixed in model.fixed):
            raise _absorbed(term)


def check_groupings(model: MixedModel, groups: Sequence[CodeArray], n_rows: int) -> None:
    """Refuse a level for each row, and two terms with the same levels under different names."""
    for term, codes in zip(model.random, groups, strict=True):
        if codes.max() + 1 == n_rows:
            raise pooled(term, n_rows)
    for (one, left), (other, right) in combinations(zip(model.random, groups, strict=True), 2):
        if _same_grouping(left, right):
            raise FitRefused(
                f"{one.name} and {other.name} group the rows alike: their components are one",
                code="confounded",
            )


def check_fixed(model: MixedModel, x: FloatArray, groups: Sequence[CodeArray]) -> None:
    """Refuse dependent fixed columns, and random terms whose levels the fixed columns tell apart already."""
    if not model.fixed:
        return
    cell = model.groups(frozenset[str]().union(*(term.factors for term in model.fixed)))
    _check_rank(x[first_rows(cell)], model.fixed_names)
    for term, codes in zip(model.random, groups, strict=True):
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
    left = vectors - x @ np.linalg.lstsq(x, vectors)[0]
    return bool(np.max(np.abs(left)) < 1e-8)


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


def _same_grouping(one: CodeArray, other: CodeArray) -> bool:
    """Whether two groupings with all levels in use split the rows into the same sets."""
    n_levels = int(one.max()) + 1
    if n_levels != int(other.max()) + 1:
        return False
    return int(combined([one, other], [n_levels, n_levels]).max()) + 1 == n_levels
