"""Columns as factors: levels, codes, combinations, and the design matrix of fixed terms.

Source: Chambers & Hastie, *Statistical Models in S*, 1992, §2.3.2 (treatment contrasts).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from analytics.arrays import CodeArray, FloatArray, read_only
from analytics.errors import CoreError
from analytics.reml.formula import Term

INTERCEPT = "(Intercept)"


class FitRefused(CoreError):
    """The columns, the outcome or the design cannot tell the components.

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
    """Code a column of labels: text, numbers or truth values; a label is its text.

    Raises FitRefused: with the first row whose label is None, NaN or empty.
    """
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
    """X for any rows, (n_rows, p), from the code of each fixed factor in them.

    terms: every term inside an interaction is there.
    """
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
