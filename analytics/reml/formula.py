"""Random and fixed terms of a model, read from text such as ``item + prompt + item:prompt``.

Source: Wilkinson & Rogers, *Applied Statistics* 22 (1973) 392-399. R's ``formula`` gives the shorthands the
same meaning, and lme4 theirs in ``(1 | a/b)``.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from analytics.errors import CoreError


@dataclass(frozen=True)
class Term:
    """A factor or an interaction of factors.

    columns: in the order typed.
    """

    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        """As typed, joined by colons."""
        return ":".join(self.columns)

    @property
    def factors(self) -> frozenset[str]:
        """What makes it the same term as another."""
        return frozenset(self.columns)


@dataclass(frozen=True)
class _Written:
    term: Term
    position: int
    in_full: bool


def parse(text: str, columns: Collection[str]) -> tuple[Term, ...]:
    """Terms of a text; none for a blank one.

    columns: the names that may occur.
    Returns: in the order of first appearance.
    Raises CoreError: with the position, counted from 1, and the columns there are.

    Examples
    --------
    >>> [term.name for term in parse("batch/cask", ["batch", "cask"])]
    ['batch', 'batch:cask']
    """
    if not text.strip():
        return ()
    terms: dict[frozenset[str], Term] = {}
    for written in _expanded(text, columns):
        earlier = terms.setdefault(written.term.factors, written.term)
        if earlier is not written.term and written.in_full:
            raise CoreError(
                f"position {written.position} of {text!r}: {written.term.name} is there already"
                f"{'' if earlier.name == written.term.name else f', as {earlier.name}'}",
                code="term_repeated",
            )
    return tuple(terms.values())


def _expanded(text: str, columns: Collection[str]) -> list[_Written]:
    return [written for start, part in _split(text, "+") for written in _part(text, start, part, columns)]


def _part(text: str, start: int, part: str, columns: Collection[str]) -> list[_Written]:
    """One term, or the terms that ``*`` and ``/`` stand for, from the left."""
    signs = re.findall(r"[*/]", part)
    pieces = [(start + at, piece) for at, piece in _split(part, "*/")]
    terms = [_term(text, at, piece, columns) for at, piece in pieces]
    product = [_Written(terms[0], _first_letter(*pieces[0]), not signs)]
    for sign, term, (at, piece) in zip(signs, terms[1:], pieces[1:], strict=True):
        position = _first_letter(at, piece)
        product = (
            _times(text, product, term, position) if sign == "*" else _over(text, product, term, position)
        )
    return product


def _times(text: str, left: list[_Written], right: Term, position: int) -> list[_Written]:
    crossed = [_Written(_joined(text, one.term, right, position), position, False) for one in left]
    return [*left, _Written(right, position, False), *crossed]


def _over(text: str, left: list[_Written], right: Term, position: int) -> list[_Written]:
    nest = Term(tuple(dict.fromkeys(column for one in left for column in one.term.columns)))
    return [*left, _Written(_joined(text, nest, right, position), position, False)]


def _joined(text: str, left: Term, right: Term, position: int) -> Term:
    for column in right.columns:
        if column in left.factors:
            raise CoreError(
                f"position {position} of {text!r}: {column} is crossed with itself", code="factor_repeated"
            )
    return Term(left.columns + right.columns)


def _term(text: str, start: int, piece: str, columns: Collection[str]) -> Term:
    term = Term(())
    for at, name in _split(piece, ":"):
        position = _first_letter(start + at, name)
        column = name.strip()
        if not column:
            raise CoreError(
                f"position {position} of {text!r}: a column's name is missing", code="name_missing"
            )
        if column not in columns:
            there = ", ".join(sorted(columns))
            raise CoreError(
                f"position {position} of {text!r}: no column {column!r}; there are {there}",
                code="column_unknown",
            )
        term = _joined(text, term, Term((column,)), position)
    return term


def _split(text: str, signs: str) -> list[tuple[int, str]]:
    cuts = [match.start() for match in re.finditer(f"[{re.escape(signs)}]", text)]
    starts, ends = [0, *(cut + 1 for cut in cuts)], [*cuts, len(text)]
    return [(start, text[start:end]) for start, end in zip(starts, ends, strict=True)]


def _first_letter(start: int, piece: str) -> int:
    """Position, from 1, of a piece's first letter, or of where it is missing."""
    return start + len(piece) - len(piece.lstrip()) + 1
