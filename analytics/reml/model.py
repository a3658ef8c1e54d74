"""Columns as factors, the terms of a model, and designs that do not identify them.

Refused, with the term and the reason: a factor of one level, a random term inside the fixed ones, a random
term with a level for each row, two terms that group the rows alike, fixed columns that depend on each other.

Source: Chambers & Hastie, *Statistical Models in S*, 1992, §2.3.2 (treatment contrasts).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import numpy.typing as npt

from analytics.arrays import CodeArray, FloatArray, read_only
from analytics.errors import CoreError
from analytics.reml.formula import Term, parse

INTERCEPT = "(Intercept)"


class FitRefused(CoreError):
    """The columns, the outcome or the design do not identify the components.

    Codes: ``label_missing``, ``margin_missing``, ``no_random_term``, ``one_level``, ``pooled``,
    ``confounded``, ``rank_deficient``, ``lengths_differ``, ``more_parameters_than_rows``,
    ``outcome_constant``, ``outcome_missing``, ``no_residual_noise``, ``too_many_fixed_effects``.
    """


@dataclass(frozen=True, eq=False)
class Factor:
    """A column of labels as codes (n_rows,) of its levels, all in use, by ascending Unicode code point."""

    codes: CodeArray
    levels: tuple[str, ...]

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return len(self.levels)


def factor(name: str, labels: npt.ArrayLike) -> Factor:
    """Code a column of labels by their texts; refuse the first row whose label is None, NaN or empty."""
    listed = labels if isinstance(labels, list) else np.asarray(labels).tolist()
    text_of = {
        label: "" if label is None or label != label else str(label)  # NaN alone differs from itself
        for label in set(listed)
    }
    if "" in text_of.values():
        row = next(i for i, label in enumerate(listed) if not text_of[label])
        raise FitRefused(f"row {row} has no label in column {name}", code="label_missing")
    levels = sorted(set(text_of.values()))
    number = {level: code for code, level in enumerate(levels)}
    code_of = {label: number[text] for label, text in text_of.items()}
    codes = np.fromiter(map(code_of.__getitem__, listed), dtype=np.int64, count=len(listed))
    return Factor(codes=read_only(codes), levels=tuple(levels))


def combined(codes: Sequence[CodeArray], n_levels: Sequence[int]) -> CodeArray:
    """Codes 0, 1, … of the combinations that occur, shape (n_rows,), in lexicographic order."""
    joint = _dense(codes[0], n_levels[0])
    for following, n_following in zip(codes[1:], n_levels[1:], strict=True):
        n_joint = int(joint.max()) + 1
        joint = _dense(joint * n_following + following, n_joint * n_following)
    return joint


def first_rows(codes: CodeArray) -> CodeArray:
    """First position of each code 0, 1, … among the codes, all of which occur."""
    first = np.empty(int(codes.max()) + 1, dtype=np.int64)
    first[codes[::-1]] = np.arange(codes.size)[::-1]
    return first


def treatment_names(terms: Sequence[Term], factors: dict[str, Factor]) -> tuple[str, ...]:
    """Names of the columns of X: ``(Intercept)``, ``judge[j2]``, ``judge[j2]:temp[t2]``."""
    names = [INTERCEPT]
    for term in terms:
        choices = [[f"{column}[{level}]" for level in factors[column].levels[1:]] for column in term.columns]
        names += [":".join(choice) for choice in product(*choices)]
    return tuple(names)


def treatment_design(
    terms: Sequence[Term], codes: dict[str, CodeArray], factors: dict[str, Factor]
) -> FloatArray:
    """X for any rows, (n_rows, p), from the codes; every term inside an interaction is there."""
    columns = [np.ones(next((column.size for column in codes.values()), 1))]
    for term in terms:
        dummies = [
            [codes[name] == level for level in range(1, factors[name].n_levels)] for name in term.columns
        ]
        columns += [np.prod(choice, axis=0).astype(np.float64) for choice in product(*dummies)]
    return np.column_stack(columns)


def check_margins(terms: Sequence[Term]) -> None:
    """Refuse a fixed interaction without all the terms inside it."""
    there = {term.factors for term in terms}
    for term in terms:
        for column in term.columns:
            inside = Term(tuple(name for name in term.columns if name != column))
            if inside.columns and inside.factors not in there:
                raise FitRefused(
                    f"fixed {term.name} needs fixed {inside.name} beside it", code="margin_missing"
                )


def _dense(codes: CodeArray, n_codes: int) -> CodeArray:
    if n_codes > 8 * codes.size:
        return np.unique(codes, return_inverse=True)[1].astype(np.int64)
    number = np.cumsum(np.bincount(codes, minlength=n_codes) > 0) - 1
    return np.asarray(number[codes], dtype=np.int64)


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
