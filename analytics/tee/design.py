"""The design of a study: which columns are which facet, how many levels, and which terms follow.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, Eq. 1, Appendix C.1 and C.6 (model, minimum
design), Appendix L (minimum pilot). The minimum of two judges is this project's own.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from analytics.arrays import CodeArray
from analytics.errors import CoreError
from analytics.tee.dstudy import DStudyRefused, Reading

#: Letter → the word that stands in terms.
WORDS: Mapping[str, str] = MappingProxyType(
    {"N": "item", "V": "prompt", "M": "judge", "H": "temperature", "C": "category"}
)
LETTERS: Mapping[str, str] = MappingProxyType({word: letter for letter, word in WORDS.items()})
CROSSED = ("N", "V", "M", "H")
TERMS = ("N", "V", "NV", "NH", "VH", "NM", "VM")
PANELS = ("M", "H")
refuse = partial(CoreError, code="design")


@dataclass(frozen=True)
class Declaration:
    """Which column is which facet; a facet without one has a single level.

    replicate: without it, rows of one cell are replicates.
    items: whether the items are a sample of a domain or were selected by their outcomes (a task subset),
        which only the finite estimand may be about.
    """

    outcome: str
    item: str
    prompt: str | None = None
    judge: str | None = None
    temperature: str | None = None
    replicate: str | None = None
    category: str | None = None
    items: Literal["sample", "selected"] = "sample"

    def __post_init__(self) -> None:
        columns = [self.outcome, *self.facets().values(), *([self.replicate] if self.replicate else [])]
        twice = {column for column in columns if columns.count(column) > 1}
        if twice:
            raise refuse(f"column {min(twice)} is declared for two facets")
        if self.items not in ("sample", "selected"):
            raise refuse(f"items are a sample or selected, not {self.items!r}")

    def facets(self) -> dict[str, str]:
        """Return letter → column of the declared facets, replicates aside."""
        named = {letter: getattr(self, word) for letter, word in WORDS.items()}
        return {letter: column for letter, column in named.items() if column is not None}


@dataclass(frozen=True)
class DesignLayout:
    """What the data hold of a declared design.

    levels: N, V, M, H, R, C; R is the whole part of the mean number of outcomes in an observed cell.
    random, fixed: terms in words, for the fit.
    pooled: one outcome in each cell.
    balanced: every cell is observed, all equally often.
    not_measured: what the design cannot tell, in words.
    replicates: the fewest and the most outcomes of an observed cell.
    """

    declaration: Declaration
    levels: Mapping[str, int]
    random: tuple[str, ...]
    fixed: tuple[str, ...]
    pooled: bool
    balanced: bool
    n_rows: int
    not_measured: tuple[str, ...]
    replicates: tuple[int, int] = (1, 1)

    @property
    def design(self) -> dict[str, int]:
        """The levels as a design of the D-study."""
        return dict(self.levels)

    def check_reading(self, reading: Reading) -> None:
        """Refuse the domain estimand for selected items."""
        if self.declaration.items == "selected" and reading.estimand == "domain":
            raise DStudyRefused(
                f"the {self.levels['N']} items were selected by their outcomes and are not a sample of a "
                "domain: only estimand=finite can be about them"
            )


def layout(columns: Mapping[str, npt.ArrayLike], declaration: Declaration) -> DesignLayout:
    """Count levels and cells, and name the terms that follow."""
    codes = _codes(columns, declaration)
    levels = {letter: int(codes[letter].max()) + 1 if letter in codes else 1 for letter in WORDS}
    counts = np.bincount(_cell(codes, levels), minlength=math.prod(levels[letter] for letter in CROSSED))
    n_rows, n_observed = int(counts.sum()), int(np.count_nonzero(counts))
    if declaration.category is not None:
        # Refuse an item that lies in two categories
        first = np.full(int(codes["N"].max()) + 1, -1)
        first[codes["N"][::-1]] = codes["C"][::-1]
        astray = np.flatnonzero(first[codes["N"]] != codes["C"])
        if astray.size:
            item = np.asarray(columns[declaration.item])[astray[0]]
            raise refuse(f"row {astray[0]}: item {item} lies in two categories")
    if "R" in codes:
        n_replicates = int(codes["R"].max()) + 1
        _, again = np.unique(_cell(codes, levels) * n_replicates + codes["R"], return_index=True)
        if again.size < n_rows:
            row = int(np.setdiff1d(np.arange(n_rows), again)[0])
            item = np.asarray(columns[declaration.item])[row]
            raise refuse(f"row {row}: item {item} has this prompt, judge, temperature and replicate twice")
    pooled = int(counts.max()) == 1
    random = random_terms(levels, pooled=pooled)
    if not random:
        raise refuse(f"one outcome for each of {levels['N']} items: nothing but a naive error follows")
    return DesignLayout(
        declaration=declaration,
        levels=MappingProxyType({**levels, "R": max(1, n_rows // n_observed)}),
        random=random,
        fixed=tuple(WORDS[letter] for letter in PANELS if levels[letter] > 1),
        pooled=pooled,
        balanced=bool(counts.min() == counts.max()),
        n_rows=n_rows,
        not_measured=_not_measured(levels, pooled),
        replicates=(int(counts[counts > 0].min()), int(counts.max())),
    )


def random_terms(levels: Mapping[str, int], *, pooled: bool) -> tuple[str, ...]:
    """Return the random terms of a design, residual aside; a facet with one level drops its terms.

    pooled: one outcome in each cell, so that the term of all facets together is part of the residual.
    """
    crossed = "".join(letter for letter in "NVMH" if levels.get(letter, 1) > 1)
    terms = [term for term in TERMS if set(term) <= set(crossed)]
    if crossed and set(crossed) not in map(set, terms):
        terms.append(crossed)
    if pooled:
        terms = [term for term in terms if set(term) != set(crossed)]
    if 1 < levels.get("C", 1) < levels.get("N", 1):
        terms.insert(0, "C")
    return tuple(":".join(WORDS[letter] for letter in term) for term in terms)


def in_words(columns: Mapping[str, npt.ArrayLike], declaration: Declaration) -> dict[str, npt.ArrayLike]:
    """Return the declared facets under the words of the terms, for the fit."""
    return {WORDS[letter]: columns[column] for letter, column in declaration.facets().items()}


PILOT = (
    ("N", 30, "TEE, Appendix C.6"),
    ("V", 3, "TEE, Appendix C.6"),
    ("R", 5, "TEE, Appendix C.6"),
    ("V", 2, "TEE, Appendix L"),
    ("R", 3, "TEE, Appendix L"),
    ("M", 2, "this project"),
)


class PilotRule(NamedTuple):
    """A minimum number of levels of a facet, how many there are, whose rule it is."""

    letter: str
    minimum: int
    n_levels: int
    source: str

    @property
    def met(self) -> bool:
        """Whether there are enough."""
        return self.n_levels >= self.minimum


def pilot_rules(levels: Mapping[str, int]) -> tuple[PilotRule, ...]:
    """Hold a design against the minimum pilots; a letter that is not there counts as one level."""
    return tuple(
        PilotRule(letter, minimum, levels.get(letter, 1), source) for letter, minimum, source in PILOT
    )


def _codes(columns: Mapping[str, npt.ArrayLike], declaration: Declaration) -> dict[str, CodeArray]:
    facets = declaration.facets() | ({"R": declaration.replicate} if declaration.replicate else {})
    for column in [declaration.outcome, *facets.values()]:
        if column not in columns:
            raise refuse(f"there is no column {column}")
    labels = {letter: np.asarray(columns[column]) for letter, column in facets.items()}
    n_rows = np.asarray(columns[declaration.outcome]).shape
    for letter, values in labels.items():
        if values.shape != n_rows or len(n_rows) != 1 or not values.size:
            raise refuse(f"column {facets[letter]} has shape {values.shape}, the outcome {n_rows}")
    return {
        letter: np.unique(values, return_inverse=True)[1].astype(np.int64)
        for letter, values in labels.items()
    }


def _cell(codes: Mapping[str, CodeArray], levels: Mapping[str, int]) -> CodeArray:
    cell = np.zeros_like(codes["N"])
    for letter in CROSSED:
        cell = cell * levels[letter] + codes.get(letter, np.int64(0))
    return cell


def _not_measured(levels: Mapping[str, int], pooled: bool) -> tuple[str, ...]:
    alone = [f"{WORDS[letter]} (one level)" for letter in ("V", "M", "H") if levels[letter] == 1]
    if pooled:
        alone.append("replicate noise apart from the cell (one outcome in each cell)")
    if levels["C"] == levels["N"] > 1:
        alone.append("category apart from item (one item in each category)")
    return tuple(alone)
