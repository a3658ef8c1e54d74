"""The D-study: what a proposed design would make of known variance components.

Model
-----
θ̂ is the mean of all outcomes of a design with N items, V prompts, M judges, H temperatures and R replicates
of each cell. A term T of the variance model (item, item:judge, …) enters with the number of its levels that
were averaged over::

    Var(θ̂) = Σ_T σ_T² / Π_{f in T} L_f            residual: σ² / (N·V·M·H·R)

over the terms that hold at least one facet which *varies*, that is, which another run of the study could have
drawn or chosen differently:

======================================  ===========================================================
reading                                 facets that vary
======================================  ===========================================================
``estimand="domain"``                   items (and sampled categories), prompts, replicates
``estimand="finite"``                   prompts, replicates: this item set is the target
``sensitivity="exclude"``               no more: judges and temperatures are a declared panel
``sensitivity="include"``               judges and temperatures too, with σ_λ²/M and σ_τ²/H
``judges="random"``                     judges, with s_λ²/M, s_λ² by the divisor n − 1
======================================  ===========================================================

Categories of items: under ``categories="fixed"`` both the category and the item within it are divided by N;
under ``"sampled"`` the category is divided by C. A term that holds item and category is the item.

Symbols
-------
==========================  ==============================  =====================================  =========
symbol                      code                            shape                                  unit
==========================  ==============================  =====================================  =========
σ_T²                        ``Component.variance``          scalar                                 outcome²
T                           ``Component.facets``            set of the letters N V M H R C         none
L_f (N, V, M, H, R, C)      ``design``                      letter → count, at least 1             levels
σ_λ², σ_τ²                  ``Component`` with ``fixed``    scalar, population variance (1/M)      outcome²
Var(θ̂)                      ``Projection.variance``         scalar                                 outcome²
share of Var(θ̂)             ``Projection.shares``           component → share, sum 1               0 to 1
==========================  ==============================  =====================================  =========

Not done here
-------------
Components are taken as known; their own uncertainty is no part of Var(θ̂). The sampling fraction of a finite
population of prompts or judges is not corrected for. A selected task subset is not a sample of tasks: its
size must not stand in for N under ``domain``.

Source
------
Messing, *Hidden Measurement Error in LLM Pipelines*, Eqs. 3, 7-10, Appendix C.5 and C.8. Brennan,
*Generalizability Theory*, 2001, ch. 9. Random judges and the refusals are this project's own.
"""

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

from analytics.errors import CoreError

FACETS: Mapping[str, str] = MappingProxyType(
    {
        "N": "items",
        "V": "prompts",
        "M": "judges",
        "H": "temperatures",
        "R": "replicates",
        "C": "categories",
    }
)
RESIDUAL = "Residual"
FIXED = " (fixed)"
CATEGORY = "category"
N_JUDGES_RANDOM = 3

Design = Mapping[str, int]


class DStudyRefused(CoreError):
    """A projection was asked for that the components or the design cannot give."""


class ComponentsMalformed(CoreError):
    """A table of variance components contradicts itself or the declared facets."""


@dataclass(frozen=True)
class Component:
    """One variance component.

    Parameters
    ----------
    name : str
        As the fit or the file calls it.
    variance : float
        σ_T², at least 0, finite; for a fixed effect its population variance over the panel.
    facets : frozenset of str
        Letters of `FACETS`; {"R"} is the residual, which every facet of a design averages.
    fixed : bool
        A sensitivity σ_λ², σ_τ² (tier 2) and no variance of random effects (tier 1).

    Raises
    ------
    ComponentsMalformed
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
    """The variance components of one study.

    Parameters
    ----------
    entries : tuple of Component, length at least 1
        No two with the same facets.
    pooled : bool
        The study had one replicate a cell, so that the residual is cell and replicate noise in one; more
        replicates cannot be projected then.
    n_judges : int, optional
        Judges of the study, over which σ_λ² was taken; needed by ``judges="random"``.

    Raises
    ------
    ComponentsMalformed
    """

    entries: tuple[Component, ...]
    pooled: bool = False
    n_judges: int | None = None

    def __post_init__(self) -> None:
        if not self.entries:
            raise ComponentsMalformed("no variance component is given")
        seen: dict[frozenset[str], str] = {}
        for entry in self.entries:
            key = _nested(entry.facets)
            if key in seen:
                raise ComponentsMalformed(f"component {entry.name} was already given, as {seen[key]}")
            seen[key] = entry.name


@dataclass(frozen=True)
class Reading:
    """What the projected variance is about.

    Parameters
    ----------
    estimand : {"domain", "finite"}
        Items are a sample of a domain, or are themselves the target.
    sensitivity : {"exclude", "include"}
        Judges and temperatures are conditioned on (confidence intervals), or their choice counts as error
        (design-sensitivity interval).
    categories : {"fixed", "sampled"}
    judges : {"fixed", "random"}

    Raises
    ------
    DStudyRefused
    """

    estimand: Literal["domain", "finite"] = "domain"
    sensitivity: Literal["exclude", "include"] = "exclude"
    categories: Literal["fixed", "sampled"] = "fixed"
    judges: Literal["fixed", "random"] = "fixed"

    def __post_init__(self) -> None:
        for name, allowed in _READINGS.items():
            if getattr(self, name) not in allowed:
                raise DStudyRefused(f"{name} is {' or '.join(allowed)}, not {getattr(self, name)!r}")

    def varying(self) -> frozenset[str]:
        """Return the letters of the facets that another run could have drawn or chosen differently."""
        letters = "VR"
        letters += "NC" if self.estimand == "domain" else ""
        letters += "MH" if self.sensitivity == "include" else ""
        letters += "M" if self.judges == "random" else ""
        return frozenset(letters)

    @property
    def interval_name(self) -> str:
        """What an interval of this reading may be called."""
        return "confidence interval" if self.sensitivity == "exclude" else "design-sensitivity interval"


_READINGS = {
    "estimand": ("domain", "finite"),
    "sensitivity": ("exclude", "include"),
    "categories": ("fixed", "sampled"),
    "judges": ("fixed", "random"),
}


class Term(NamedTuple):
    """A component that counts: its variance and the facets whose levels divide it."""

    name: str
    variance: float
    facets: frozenset[str]


@dataclass(frozen=True)
class Projection:
    """Var(θ̂) of a design, component by component.

    Attributes
    ----------
    design : mapping of str to int
    reading : Reading
    contributions : mapping of str to float
        σ_T²/divisor of each component that counts, outcome².
    left_out : tuple of str
        Components that the reading conditions on, in the order given.
    """

    design: Design
    reading: Reading
    contributions: Mapping[str, float]
    left_out: tuple[str, ...]

    @property
    def variance(self) -> float:
        """Var(θ̂), outcome²."""
        return math.fsum(self.contributions.values())

    @property
    def se(self) -> float:
        """Standard error √Var(θ̂), in the unit of the outcome."""
        return math.sqrt(self.variance)

    @property
    def shares(self) -> dict[str, float]:
        """Share of Var(θ̂) of every component, sum 1; 0 for those the reading conditions on."""
        variance = self.variance
        shares = {name: part / variance for name, part in self.contributions.items()}
        return shares | dict.fromkeys(self.left_out, 0.0)

    @property
    def degrees_of_freedom(self) -> int | None:
        """M − 1 for random judges (t quantile); None where another rule gives them."""
        return self.design["M"] - 1 if self.reading.judges == "random" else None


def project(components: Components, design: Design, reading: Reading | None = None) -> Projection:
    """Project Var(θ̂) = Σ_T σ_T² / Π_{f in T} L_f.

    Parameters
    ----------
    components : Components
    design : mapping of str to int
        Proposed levels by letter (N, V, M, H, R, C), at least 1. A fixed facet held at one level is 1, and
        its interactions stay at full size.
    reading : Reading, optional
        ``Reading()``: domain, exclude, fixed categories.

    Raises
    ------
    DStudyRefused
        A facet of the components that is not in the design; a count below 1; replicates asked of a pooled
        residual; a sensitivity that was never measured; nothing that varies.

    Notes
    -----
    Messing, Eqs. 3 and 8-10: the terms of temperature and judge are divided by H and M where averaged over.
    """
    reading = reading or Reading()
    _check_design(components, design, reading)
    terms = counted_terms(components, design, reading)
    counted = {term.name for term in terms}
    projection = Projection(
        design=MappingProxyType(dict(design)),
        reading=reading,
        contributions=MappingProxyType(
            {term.name: term.variance / math.prod(design[f] for f in term.facets) for term in terms}
        ),
        left_out=tuple(entry.name for entry in components.entries if entry.name not in counted),
    )
    if projection.variance == 0.0:
        raise DStudyRefused(
            f"no standard error: every component that counts under {reading.estimand} and "
            f"{reading.sensitivity} is 0 or was never measured"
        )
    return projection


def counted_terms(components: Components, facets: Iterable[str], reading: Reading) -> tuple[Term, ...]:
    """Return the components that count under a reading, each with the facets that divide it.

    Parameters
    ----------
    components : Components
    facets : iterable of str
        Letters of the design, all of which divide the residual (but categories).
    reading : Reading
    """
    design, varying = frozenset(facets) - {"C"}, reading.varying()
    averaged = (_averaged(entry, design, reading) for entry in components.entries)
    return tuple(
        Term(entry.name, _sampled_variance(entry, components, reading), divisor)
        for entry, divisor in zip(components.entries, averaged, strict=True)
        if divisor & varying
    )


def as_json(projection: Projection) -> dict[str, float | dict[str, float]]:
    """Return the answer of the command line: ``{"variance", "se", "shares"}``."""
    return {"variance": projection.variance, "se": projection.se, "shares": projection.shares}


# -------------------------------------------------------------------------------------- tables for a reader


class VarianceRow(NamedTuple):
    """A line of the decomposition table.

    `share_of_observation` is σ_T²/Σσ² over all components; `share_of_mean` is the share of Var(θ̂), None
    where the reading conditions on the component.
    """

    name: str
    variance: float
    share_of_observation: float
    contribution: float | None
    share_of_mean: float | None
    tier: int


def variance_table(components: Components, projection: Projection) -> tuple[VarianceRow, ...]:
    """Return the decomposition: per observation, of Var(θ̂), and tier; largest contribution first.

    Notes
    -----
    Messing, Appendix C.5. Sensitivities (tier 2) are part of the total per observation, as published.
    """
    total = math.fsum(entry.variance for entry in components.entries)
    rows = (_variance_row(entry, total, projection) for entry in components.entries)
    return tuple(sorted(rows, key=lambda row: (-(row.contribution or 0.0), -row.variance, row.name)))


@dataclass(frozen=True)
class Intervention:
    """One change of the design and what it does to Var(θ̂).

    Attributes
    ----------
    name : str
    design : mapping of str to int
    variance : float or None
        None where it cannot be projected; `note` says why.
    change : float or None
        Var(θ̂) after over before, minus 1.
    note : str
    """

    name: str
    design: Design
    variance: float | None
    change: float | None
    note: str = ""


def interventions(
    components: Components, design: Design, reading: Reading | None = None
) -> tuple[Intervention, ...]:
    """Project five one-step changes: items doubled, +2 prompts, +1 judge, a single judge, +5 replicates.

    Parameters
    ----------
    components : Components
    design : mapping of str to int
        The design as it stands.
    reading : Reading, optional

    Raises
    ------
    DStudyRefused
        When the design as it stands cannot be projected.

    Notes
    -----
    An added judge is taken to be like the panel: its sensitivity and interactions keep their variances.
    """
    reading = reading or Reading()
    before = project(components, design, reading).variance
    return tuple(_intervention(components, design, reading, before, change) for change in _changes(design))


# ------------------------------------------------------------------------------------------------- reading


def read_components(path: Path | str, facets: Mapping[str, str], n_judges: int | None = None) -> Components:
    """Read a CSV of variance components.

    Parameters
    ----------
    path : path
        Columns ``component`` and ``variance``; others are ignored. Factors are joined by ``:``;
        ``Residual`` is the replicate noise, ``category`` the category, ``X (fixed)`` a sensitivity.
    facets : mapping of str to str
        Letter → factor, such as ``{"N": "item_id", "V": "variant_id"}``; ``C`` is ``category`` if not given.
    n_judges : int, optional
        See `Components`.

    Raises
    ------
    ComponentsMalformed
        With the row at fault and the rule. Rows count from 1, the header not among them.
    """
    letters = _letters(facets)
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as lines:
            entries = tuple(_read_rows(csv.DictReader(lines), letters))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ComponentsMalformed(f"{path} cannot be read as a CSV of components: {error}") from error
    return Components(entries, n_judges=n_judges)


def parse_facets(text: str) -> dict[str, str]:
    """Read ``N=item_id,V=variant_id`` as letter → factor.

    Raises
    ------
    ComponentsMalformed
    """
    facets = dict(_pairs(text, "facets"))
    _letters(facets)
    return facets


def parse_design(text: str) -> dict[str, int]:
    """Read ``N=141,V=5`` as letter → count.

    Raises
    ------
    DStudyRefused
    """
    try:
        pairs = dict(_pairs(text, "design"))
    except ComponentsMalformed as error:
        raise DStudyRefused(str(error)) from error
    for letter, count in pairs.items():
        if not (count.isascii() and count.isdecimal()):
            raise DStudyRefused(f"the design's {letter} is a whole number from 1, not {count!r}")
    design = {letter: int(count) for letter, count in pairs.items()}
    _check_counts(design)
    return design


def _pairs(text: str, what: str) -> Iterator[tuple[str, str]]:
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
    """Factor → letter, with ``category`` for C where no other factor is named."""
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
        first = rows.setdefault(_nested(component.facets), number)
        if first != number:
            raise ComponentsMalformed(f"row {number}: component {component.name} stands in row {first}, too")
        yield component


def _component(name: str, variance: str, letters: Mapping[str, str]) -> Component:
    name = name.strip()
    try:
        value = float(variance)
    except ValueError:
        raise ComponentsMalformed(f"component {name}: variance {variance!r} is not a number") from None
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


# -------------------------------------------------------------------------------------------------- checks


def _check_counts(design: Design) -> None:
    for letter, count in design.items():
        if letter not in FACETS:
            raise DStudyRefused(f"the design names {letter}, which is none of {' '.join(FACETS)}")
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise DStudyRefused(
                f"the design's {letter} ({FACETS[letter]}) is a whole number from 1, not {count}"
            )


def _check_design(components: Components, design: Design, reading: Reading) -> None:
    _check_counts(design)
    _check_facets(components, design, reading)
    if components.pooled and design.get("R", 1) > 1:
        raise DStudyRefused(
            f"R = {design['R']} cannot be projected: with one replicate a cell, cell and replicate noise "
            "were measured as one"
        )
    if reading.categories == "sampled" and design.get("C", 1) > design.get("N", 1):
        raise DStudyRefused(f"{design['C']} categories are more than the design's {design['N']} items")
    if reading.judges == "random":
        _check_random_judges(components, design.get("M", 1))


def _check_facets(components: Components, facets: Iterable[str], reading: Reading) -> None:
    """Refuse a design that lacks a facet of the components, and a reading they cannot give.

    Raises
    ------
    DStudyRefused
        With the component and the facet.
    """
    given = frozenset(facets) | {"C"} if reading.categories == "fixed" else frozenset(facets)
    for entry in components.entries:
        for letter in sorted(_divisors(entry, reading) - given):
            raise DStudyRefused(
                f"component {entry.name}: the design does not give the number of {FACETS[letter]} ({letter})"
            )
        if reading.categories == "fixed" and "C" in _nested(entry.facets) and len(entry.facets) > 1:
            raise DStudyRefused(f"component {entry.name}: interactions of categories need categories=sampled")
    if reading.sensitivity == "include":
        _check_sensitivities(components)


def _check_sensitivities(components: Components) -> None:
    """Refuse ``include`` where a panel interacts but has no main effect: it would silently count as 0."""
    held = frozenset[str]().union(*(entry.facets for entry in components.entries))
    for letter in sorted(held & {"M", "H"}):
        if _main_effect(components, letter) is None:
            raise DStudyRefused(
                f"sensitivity=include needs the main effect of {FACETS[letter]} ({letter}), and no component "
                f"'…{FIXED}' gives it"
            )


def _check_random_judges(components: Components, n_judges: int) -> None:
    effect = _main_effect(components, "M")
    if effect is None:
        raise DStudyRefused("judges=random needs the main effect of judges, which no component gives")
    if effect.fixed and components.n_judges is None:
        raise DStudyRefused("judges=random needs the number of judges that the sensitivity was taken over")
    for n in (components.n_judges or n_judges, n_judges):
        if n < N_JUDGES_RANDOM:
            raise DStudyRefused(f"judges=random needs at least {N_JUDGES_RANDOM} judges, not {n}")


def _main_effect(components: Components, letter: str) -> Component | None:
    return next((entry for entry in components.entries if entry.facets == {letter}), None)


# --------------------------------------------------------------------------------------------- computation


def _nested(facets: frozenset[str]) -> frozenset[str]:
    """Items lie in categories: a term that holds both is the item's."""
    return facets - {"C"} if "N" in facets else facets


def _divisors(entry: Component, reading: Reading) -> frozenset[str]:
    """Facets of the component; a fixed category is divided as the items in it are."""
    if entry.facets == {"C"} and reading.categories == "fixed":
        return frozenset("N")
    return _nested(entry.facets)


def _averaged(entry: Component, design: frozenset[str], reading: Reading) -> frozenset[str]:
    """Facets whose levels divide the component: all of the design for the residual."""
    return design if entry.facets == {"R"} else _divisors(entry, reading)


def _sampled_variance(entry: Component, components: Components, reading: Reading) -> float:
    """σ_λ², and for random judges s_λ² = σ_λ²·n/(n − 1) over the n judges of the study."""
    if reading.judges == "random" and entry.fixed and entry.facets == {"M"} and components.n_judges:
        return entry.variance * components.n_judges / (components.n_judges - 1)
    return entry.variance


def _variance_row(entry: Component, total: float, projection: Projection) -> VarianceRow:
    contribution = projection.contributions.get(entry.name)
    return VarianceRow(
        name=entry.name,
        variance=entry.variance,
        share_of_observation=entry.variance / total,
        contribution=contribution,
        share_of_mean=None if contribution is None else contribution / projection.variance,
        tier=entry.tier,
    )


def _changes(design: Design) -> Iterator[tuple[str, str, int]]:
    """Yield the five changes: name, letter, what is put in the place of its count."""
    count = {letter: design.get(letter, 0) for letter in FACETS}
    yield "double items", "N", 2 * count["N"]
    yield "+2 prompts", "V", count["V"] + 2
    yield "+1 judge", "M", count["M"] + 1
    yield "single judge", "M", 1
    yield "+5 replicates", "R", count["R"] + 5


def _intervention(
    components: Components, design: Design, reading: Reading, before: float, change: tuple[str, str, int]
) -> Intervention:
    name, letter, count = change
    changed = dict(design) | {letter: count}
    try:
        _check_change(design, reading, letter)
        after = project(components, changed, reading).variance
    except DStudyRefused as refusal:
        return Intervention(name, changed, None, None, str(refusal))
    return Intervention(name, changed, after, after / before - 1.0)


def _check_change(design: Design, reading: Reading, letter: str) -> None:
    if letter not in design:
        raise DStudyRefused(f"{FACETS[letter]} ({letter}) are no facet of this design")
    if letter == "N" and reading.estimand == "finite":
        raise DStudyRefused(
            "under the finite estimand this item set is the target: more items are another one"
        )
