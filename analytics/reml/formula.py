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
    """A factor or an interaction of factors, in the order typed."""

    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        """As typed, joined by colons."""
        return ":".join(self.columns)

    @property
    def factors(self) -> frozenset[str]:
        """What makes it the same term as another."""
        return frozenset(self.columns)


def parse(text: str, columns: Collection[str]) -> tuple[Term, ...]:
    """Terms of a text, in the order of first appearance; none for a blank one.

    Raises CoreError: with the position, counted from 1, and the columns there are.

    >>> [term.name for term in parse("batch/cask", ["batch", "cask"])]
    ['batch', 'batch:cask']
    """
    if not text.strip():
        return ()
    terms: dict[frozenset[str], Term] = {}
    written = [one for start, part in _split(text, "+") for one in _part(text, start, part, columns)]
    for term, position, in_full in written:
        earlier = terms.setdefault(term.factors, term)
        if earlier is not term and in_full:
            raise CoreError(
                f"position {position} of {text!r}: {term.name} is there already"
                f"{'' if earlier.name == term.name else f', as {earlier.name}'}",
                code="term_repeated",
            )
    return tuple(terms.values())


def _part(text: str, start: int, part: str, columns: Collection[str]) -> list[tuple[Term, int, bool]]:
    """One term, or those that ``*`` and ``/`` stand for, with the position and whether typed in full."""
    signs = re.findall(r"[*/]", part)
    pieces = [(start + at, piece) for at, piece in _split(part, "*/")]
    terms = [_term(text, at, piece, columns) for at, piece in pieces]
    product = [(terms[0], _first_letter(*pieces[0]), not signs)]
    for sign, right, (at, piece) in zip(signs, terms[1:], pieces[1:], strict=True):
        position = _first_letter(at, piece)
        if sign == "*":
            crossed = [(_joined(text, left, right, position), position, False) for left, _, _ in product]
            product += [(right, position, False), *crossed]
        else:
            nest = Term(tuple(dict.fromkeys(column for left, _, _ in product for column in left.columns)))
            product.append((_joined(text, nest, right, position), position, False))
    return product


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
                f"position {position} of {text!r}: unknown column {column!r}. Columns: {there}",
                code="column_unknown",
            )
        term = _joined(text, term, Term((column,)), position)
    return term


def _split(text: str, signs: str) -> list[tuple[int, str]]:
    cuts = [match.start() for match in re.finditer(f"[{re.escape(signs)}]", text)]
    starts, ends = [0, *(cut + 1 for cut in cuts)], [*cuts, len(text)]
    return [(start, text[start:end]) for start, end in zip(starts, ends, strict=True)]


def _first_letter(start: int, piece: str) -> int:
    return start + len(piece) - len(piece.lstrip()) + 1
