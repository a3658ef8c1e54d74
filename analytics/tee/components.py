"""Variance components of one study, by the facets that they hold, and the table they are read from.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, Eq. 1 and Appendix C.5.
"""

import csv
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from analytics.errors import CoreError
from analytics.flat_file import is_too_small

FACETS: Mapping[str, str] = MappingProxyType(
    {"N": "items", "V": "prompts", "M": "judges", "H": "temperatures", "R": "replicates", "C": "categories"}
)
RESIDUAL = "Residual"
FIXED = " (fixed)"
CATEGORY = "category"


class ComponentsMalformed(CoreError):
    """A table of variance components contradicts itself or the declared facets."""


@dataclass(frozen=True)
class Component:
    """One variance component.

    variance: σ_T²; for a fixed effect its population variance over the panel.
    facets: letters of `FACETS`; {"R"} is the residual, which every facet of a design averages.
    fixed: a sensitivity σ_λ², σ_τ² (tier 2) and no variance of random effects (tier 1).
    """

    name: str
    variance: float
    facets: frozenset[str]
    fixed: bool = False

    def __post_init__(self) -> None:
        unknown = self.facets - set(FACETS)
        if unknown or not self.facets:
            raise ComponentsMalformed(
                f"component {self.name}: facets {sorted(self.facets)} are not of N V M H R C"
            )
        if not (math.isfinite(self.variance) and self.variance >= 0.0):
            raise ComponentsMalformed(f"component {self.name}: a variance is at least 0, not {self.variance}")
        if self.fixed and not self.facets <= {"M", "H"}:
            raise ComponentsMalformed(f"component {self.name}: only judges and temperatures are fixed")
        if "R" in self.facets and len(self.facets) > 1:
            raise ComponentsMalformed(f"component {self.name}: replicates stand for the residual alone")

    @property
    def tier(self) -> int:
        """1 for noise that averaging reduces, 2 for sensitivity to a design choice."""
        return 2 if self.fixed else 1


@dataclass(frozen=True)
class Components:
    """The variance components of one study, no two with the same facets.

    pooled: the study had one replicate a cell, so that the residual is cell and replicate noise in one; more
        replicates cannot be projected then.
    n_judges: judges of the study, over which σ_λ² was taken; needed by ``judges="random"``.
    """

    entries: tuple[Component, ...]
    pooled: bool = False
    n_judges: int | None = None

    def __post_init__(self) -> None:
        if not self.entries:
            raise ComponentsMalformed("no variance component is given")
        seen: dict[frozenset[str], str] = {}
        for entry in self.entries:
            key = nested(entry.facets)
            if key in seen:
                raise ComponentsMalformed(f"component {entry.name} was already given, as {seen[key]}")
            seen[key] = entry.name


def nested(facets: frozenset[str]) -> frozenset[str]:
    """Return the facets of a term as they count: items lie in categories, so both are the item's."""
    return facets - {"C"} if "N" in facets else facets


def read_components(path: Path | str, facets: Mapping[str, str], n_judges: int | None = None) -> Components:
    """Read a CSV of variance components.

    path: columns ``component`` and ``variance``; others are ignored. Factors are joined by ``:``;
        ``Residual`` is the replicate noise, ``category`` the category, ``X (fixed)`` a sensitivity.
    facets: letter → factor, such as ``{"N": "item_id", "V": "variant_id"}``; ``C`` is ``category`` if not
        given.
    n_judges: see `Components`.
    Raises ComponentsMalformed: with the row at fault, counted from 1, the header not among them.
    """
    letters = _letters(facets)
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as lines:
            entries = tuple(_read_rows(csv.DictReader(lines), letters))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ComponentsMalformed(f"{path} cannot be read as a CSV of components: {error}") from error
    return Components(entries, n_judges=n_judges)


def parse_facets(text: str) -> dict[str, str]:
    """Read ``N=item_id,V=variant_id`` as letter → factor."""
    facets = dict(lettered(text, "facets"))
    _letters(facets)
    return facets


def lettered(text: str, what: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a text such as ``N=item_id,V=variant_id``; `what` they are stands in refusals."""
    seen = set()
    for part in text.split(","):
        letter, equals, value = (piece.strip() for piece in part.partition("="))
        if not (equals and letter and value):
            raise ComponentsMalformed(f"{what}: {part.strip()!r} is not of the form N=…")
        if letter in seen:
            raise ComponentsMalformed(f"{what}: {letter} is given twice")
        seen.add(letter)
        yield letter, value


def _letters(facets: Mapping[str, str]) -> dict[str, str]:
    for letter in facets:
        if letter not in FACETS or letter == "R":
            raise ComponentsMalformed(
                f"facets: {letter} is not one of N V M H C (the replicates are {RESIDUAL})"
            )
    named = {"C": CATEGORY} | dict(facets)
    letters = {factor: letter for letter, factor in named.items()}
    if len(letters) < len(named):
        raise ComponentsMalformed(f"facets: one factor stands for two letters in {dict(facets)}")
    return letters


def _read_rows(reader: "csv.DictReader[str]", letters: Mapping[str, str]) -> Iterator[Component]:
    missing = {"component", "variance"} - set(reader.fieldnames or ())
    if missing:
        raise ComponentsMalformed(
            f"the table of components has no column {' and no column '.join(sorted(missing))}"
        )
    rows: dict[frozenset[str], int] = {}
    for number, row in enumerate(reader, start=1):
        try:
            component = _component(row["component"] or "", row["variance"] or "", letters)
        except ComponentsMalformed as error:
            raise ComponentsMalformed(f"row {number}: {error}") from None
        first = rows.setdefault(nested(component.facets), number)
        if first != number:
            raise ComponentsMalformed(f"row {number}: component {component.name} stands in row {first}, too")
        yield component


def _component(name: str, variance: str, letters: Mapping[str, str]) -> Component:
    name = name.strip()
    try:
        value = float(variance)
    except ValueError:
        raise ComponentsMalformed(f"component {name}: variance {variance!r} is not a number") from None
    if is_too_small(variance):
        raise ComponentsMalformed(
            f"component {name}: variance {variance!r} is too small for a number: write 0"
        )
    factors = [RESIDUAL] if name == RESIDUAL else name.removesuffix(FIXED).split(":")
    unknown = [factor for factor in factors if factor not in letters and name != RESIDUAL]
    if unknown:
        raise ComponentsMalformed(
            f"component {name!r}: {unknown[0]!r} is none of the declared facets {', '.join(sorted(letters))}"
        )
    if len(set(factors)) < len(factors):
        raise ComponentsMalformed(f"component {name!r} holds a factor twice")
    facets = frozenset("R" if name == RESIDUAL else letters[factor] for factor in factors)
    return Component(name, value, facets, fixed=name.endswith(FIXED))
