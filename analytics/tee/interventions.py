"""What a design's variance is made of, and what one change of the design would do to it.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, Appendix C.5 (decomposition), Eqs. 8-10
(changes).
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from analytics.tee.components import FACETS, Components
from analytics.tee.dstudy import Design, DStudyRefused, Projection, Reading, project


class VarianceRow(NamedTuple):
    """A line of the decomposition table.

    share_of_observation: σ_T²/Σσ² over all components.
    share_of_mean: share of Var(θ̂); None where the reading conditions on the component.
    """

    name: str
    variance: float
    share_of_observation: float
    contribution: float | None
    share_of_mean: float | None
    tier: int


def variance_table(components: Components, projection: Projection) -> tuple[VarianceRow, ...]:
    """Return the decomposition: per observation, of Var(θ̂), and tier; largest contribution first.

    Sensitivities (tier 2) are part of the total per observation, as published.
    """
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
    """One change of the design and what it does to Var(θ̂): after over before, minus 1.

    variance: None where it cannot be projected; `note` says why.
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
    return tuple(_intervention(components, design, reading, before, *change) for change in changes)


def _intervention(
    components: Components,
    design: Design,
    reading: Reading,
    before: float,
    name: str,
    letter: str,
    count: int,
) -> Intervention:
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
