"""The D-study: what a proposed design would make of known variance components.

A component enters with the number of its levels that were averaged over, and counts if it holds a facet that
*varies*: that another run of the study could have drawn or chosen differently. Which do is the `Reading`'s.
Formulas and readings: analytics/README.md, *The D-study*.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, Eqs. 3, 7-10, Appendix C.5 and C.8. Brennan,
*Generalizability Theory*, 2001, ch. 9. Random judges and the refusals are this project's own.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple, get_args, get_type_hints

from analytics.errors import CoreError
from analytics.tee.components import (
    FACETS,
    FIXED,
    Component,
    Components,
    ComponentsMalformed,
    lettered,
    nested,
)

N_JUDGES_RANDOM = 3

Design = Mapping[str, int]


class DStudyRefused(CoreError):
    """A projection was asked for that the components or the design cannot give."""


@dataclass(frozen=True)
class Reading:
    """What the projected variance is about.

    estimand: items are a sample of a domain, or are themselves the target.
    sensitivity: judges and temperatures are conditioned on (confidence intervals), or their choice counts as
        error (design-sensitivity interval).
    """

    estimand: Literal["domain", "finite"] = "domain"
    sensitivity: Literal["exclude", "include"] = "exclude"
    categories: Literal["fixed", "sampled"] = "fixed"
    judges: Literal["fixed", "random"] = "fixed"

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(Reading).items():
            allowed = get_args(kind)
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


@dataclass(frozen=True)
class Projection:
    """Var(θ̂) of a design: σ_T²/divisor of each component that counts, and what the reading conditions on."""

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

    design: proposed levels by letter (N, V, M, H, R, C), at least 1. A fixed facet held at one level is 1,
        and its interactions stay at full size.
    Raises DStudyRefused: a facet of the components that is not in the design; a count below 1; replicates
        asked of a pooled residual; a sensitivity that was never measured; nothing that varies.
    """
    reading = reading or Reading()
    _check_counts(design)
    _check_facets(components, design, reading)
    if components.pooled and design.get("R", 1) > 1:
        raise DStudyRefused(
            f"R = {design['R']} cannot be projected: each task was run once, so the noise between trials is "
            "not known by itself; leave R at 1"
        )
    if reading.categories == "sampled" and design.get("C", 1) > design.get("N", 1):
        raise DStudyRefused(f"{design['C']} categories are more than the design's {design['N']} items")
    if reading.judges == "random":
        n_judges = design.get("M", 1)
        effect = _main_effect(components, "M")
        if effect is None:
            raise DStudyRefused("judges=random needs the main effect of judges, which no component gives")
        if effect.fixed and components.n_judges is None:
            raise DStudyRefused(
                "judges=random needs the number of judges that the sensitivity was taken over"
            )
        for n in (components.n_judges or n_judges, n_judges):
            if n < N_JUDGES_RANDOM:
                raise DStudyRefused(f"judges=random needs at least {N_JUDGES_RANDOM} judges, not {n}")
    terms = counted_terms(components, design, reading)
    counted = {name for name, _, _ in terms}
    projection = Projection(
        design=MappingProxyType(dict(design)),
        reading=reading,
        contributions=MappingProxyType(
            {name: variance / math.prod(design[f] for f in by) for name, variance, by in terms}
        ),
        left_out=tuple(entry.name for entry in components.entries if entry.name not in counted),
    )
    if projection.variance == 0.0:
        raise DStudyRefused(
            f"no standard error: every component that counts under {reading.estimand} and "
            f"{reading.sensitivity} is 0 or was never measured"
        )
    return projection


def counted_terms(
    components: Components, facets: Iterable[str], reading: Reading
) -> tuple[tuple[str, float, frozenset[str]], ...]:
    """Return the components that count under a reading: name, variance, and the facets that divide it.

    For random judges the variance is s_λ² = σ_λ²·n/(n − 1) over the n judges of the study.

    facets: letters of the design, all of which divide the residual (but categories).
    """
    design, varying, n = frozenset(facets) - {"C"}, reading.varying(), components.n_judges
    terms = []
    for entry in components.entries:
        divisor = design if entry.facets == {"R"} else _divisors(entry, reading)
        if divisor & varying:
            is_panel = reading.judges == "random" and entry.fixed and entry.facets == {"M"}
            variance = entry.variance * n / (n - 1) if is_panel and n else entry.variance
            terms.append((entry.name, variance, divisor))
    return tuple(terms)


def as_json(projection: Projection) -> dict[str, float | dict[str, float]]:
    """Return the answer of the command line: ``{"variance", "se", "shares"}``."""
    return {"variance": projection.variance, "se": projection.se, "shares": projection.shares}


def parse_design(text: str) -> dict[str, int]:
    """Read ``N=141,V=5`` as letter → count."""
    try:
        pairs = dict(lettered(text, "design"))
    except ComponentsMalformed as error:
        raise DStudyRefused(str(error)) from error
    for letter, count in pairs.items():
        if not (count.isascii() and count.isdecimal()):
            raise DStudyRefused(f"the design's {letter} is a whole number from 1, not {count!r}")
    design = {letter: int(count) for letter, count in pairs.items()}
    _check_counts(design)
    return design


def _check_counts(design: Design) -> None:
    for letter, count in design.items():
        if letter not in FACETS:
            raise DStudyRefused(f"the design names {letter}, which is none of {' '.join(FACETS)}")
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise DStudyRefused(
                f"the design's {letter} ({FACETS[letter]}) is a whole number from 1, not {count}"
            )


def _check_facets(components: Components, facets: Iterable[str], reading: Reading) -> None:
    facets_there = frozenset(facets) | {"C"} if reading.categories == "fixed" else frozenset(facets)
    for entry in components.entries:
        for letter in sorted(_divisors(entry, reading) - facets_there):
            raise DStudyRefused(
                f"component {entry.name}: the design does not give the number of {FACETS[letter]} ({letter})"
            )
        if reading.categories == "fixed" and "C" in nested(entry.facets) and len(entry.facets) > 1:
            raise DStudyRefused(f"component {entry.name}: interactions of categories need categories=sampled")
    if reading.sensitivity == "include":
        # where a panel interacts but has no main effect, that would silently count as 0
        panels = frozenset[str]().union(*(entry.facets for entry in components.entries)) & {"M", "H"}
        for letter in sorted(panels):
            if _main_effect(components, letter) is None:
                raise DStudyRefused(
                    f"sensitivity=include needs the main effect of {FACETS[letter]} ({letter}), and no "
                    f"component '…{FIXED}' gives it"
                )


def _main_effect(components: Components, letter: str) -> Component | None:
    return next((entry for entry in components.entries if entry.facets == {letter}), None)


def _divisors(entry: Component, reading: Reading) -> frozenset[str]:
    if entry.facets == {"C"} and reading.categories == "fixed":
        return frozenset("N")
    return nested(entry.facets)


class VarianceRow(NamedTuple):
    """A line of the decomposition: σ_T²/Σσ², and the share of Var(θ̂), None where conditioned on."""

    name: str
    variance: float
    share_of_observation: float
    contribution: float | None
    share_of_mean: float | None
    tier: int


def variance_table(components: Components, projection: Projection) -> tuple[VarianceRow, ...]:
    """Return the decomposition, sensitivities (tier 2) part of the total; largest contribution first."""
    total = math.fsum(entry.variance for entry in components.entries)
    rows = []
    for entry in components.entries:
        contribution = projection.contributions.get(entry.name)
        share = None if contribution is None else contribution / projection.variance
        rows.append(
            VarianceRow(entry.name, entry.variance, entry.variance / total, contribution, share, entry.tier)
        )
    return tuple(sorted(rows, key=lambda row: (-(row.contribution or 0.0), -row.variance, row.name)))


@dataclass(frozen=True)
class Intervention:
    """A change of the design, Var(θ̂) with it, and that over before − 1; None with a note where unknown."""

    name: str
    design: Design
    variance: float | None
    change: float | None
    note: str = ""


def interventions(
    components: Components, design: Design, reading: Reading | None = None
) -> tuple[Intervention, ...]:
    """Project five one-step changes: items doubled, +2 prompts, +1 judge, a single judge, +5 replicates.

    An added judge is taken to be like the panel: its sensitivity and interactions keep their variances.
    """
    reading = reading or Reading()
    before = project(components, design, reading).variance
    count = {letter: design.get(letter, 0) for letter in FACETS}
    changes = (
        ("double items", "N", 2 * count["N"]),
        ("+2 prompts", "V", count["V"] + 2),
        ("+1 judge", "M", count["M"] + 1),
        ("single judge", "M", 1),
        ("+5 replicates", "R", count["R"] + 5),
    )
    projected = []
    for name, letter, n in changes:
        changed = dict(design) | {letter: n}
        try:
            if letter not in design:
                raise DStudyRefused(f"{FACETS[letter]} ({letter}) are no facet of this design")
            if letter == "N" and reading.estimand == "finite":
                raise DStudyRefused(
                    "under the finite estimand this item set is the target: more items are another one"
                )
            after = project(components, changed, reading).variance
            projected.append(Intervention(name, changed, after, after / before - 1.0))
        except DStudyRefused as refusal:
            projected.append(Intervention(name, changed, None, None, str(refusal)))
    return tuple(projected)
