"""What a design's variance is made of, and what one change of the design would do to it.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, Appendix C.5 (decomposition), Eqs. 8-10
(changes).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from analytics.tee.components import FACETS, Component, Components
from analytics.tee.dstudy import Design, DStudyRefused, Projection, Reading, project


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

    variance: None where it cannot be projected; `note` says why.
    change: var(θ̂) after over before, minus 1.
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

    design: the design as it stands.
    Raises DStudyRefused: when the design as it stands cannot be projected.

    Notes
    -----
    An added judge is taken to be like the panel: its sensitivity and interactions keep their variances.
    """
    reading = reading or Reading()
    before = project(components, design, reading).variance
    return tuple(_intervention(components, design, reading, before, change) for change in _changes(design))


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
        if letter not in design:
            raise DStudyRefused(f"{FACETS[letter]} ({letter}) are no facet of this design")
        if letter == "N" and reading.estimand == "finite":
            raise DStudyRefused(
                "under the finite estimand this item set is the target: more items are another one"
            )
        after = project(components, changed, reading).variance
    except DStudyRefused as refusal:
        return Intervention(name, changed, None, None, str(refusal))
    return Intervention(name, changed, after, after / before - 1.0)
