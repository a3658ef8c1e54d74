"""Residuals that differ between temperatures, judges, prompts or categories: a fit of each level on its own.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, Eq. 3 and Appendix C.7.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from analytics.errors import CoreError
from analytics.reml import VarianceFit
from analytics.tee.components import Components
from analytics.tee.design import LETTERS, Declaration, layout
from analytics.tee.total_error import Columns, fit_layout, outcome_of


@dataclass(frozen=True)
class LevelComponents:
    """Components of a separate fit in each level of one facet: σ̂_ρ², and σ̂_T² by term.

    left_out: levels whose fit was refused, and why.
    """

    facet: str
    residuals: Mapping[str, float]
    components: Mapping[str, Mapping[str, float]]
    left_out: tuple[str, ...]

    @property
    def mean_residual(self) -> float:
        """σ̄², the mean over levels, each weighing the same."""
        return math.fsum(self.residuals.values()) / len(self.residuals)


def by_stratum(columns: Columns, declaration: Declaration, facet: str = "temperature") -> LevelComponents:
    """Fit each level of a facet on its own, for residuals that differ between levels (TEE, C.7).

    facet: {"temperature", "judge", "prompt", "category"}.
    """
    column = declaration.facets().get(LETTERS.get(facet, ""))
    if column is None or facet == "item":
        raise CoreError(f"no column is declared for strata by {facet}", code="design")
    fits: dict[str, VarianceFit] = {}
    left_out: list[str] = []
    for level in np.unique(np.asarray(columns[column])):
        rows = np.asarray(columns[column]) == level
        part = {name: np.asarray(values)[rows] for name, values in columns.items()}
        try:
            fits[str(level)] = fit_layout(part, outcome_of(part, declaration), layout(part, declaration))
        except CoreError as refusal:
            left_out.append(f"{facet} {level}: {refusal}")
    if not fits:
        raise CoreError(f"no level of {facet} can be fitted ({'; '.join(left_out[:3])})", code="design")
    return LevelComponents(
        facet=facet,
        residuals={level: fitted.residual for level, fitted in fits.items()},
        components={level: fitted.components for level, fitted in fits.items()},
        left_out=tuple(left_out),
    )


def with_residual(components: Components, residual: float) -> Components:
    """Return the components with σ̄² in the place of the residual (TEE, Eq. 3)."""
    entries = (
        replace(entry, variance=residual) if entry.facets == {"R"} else entry for entry in components.entries
    )
    return replace(components, entries=tuple(entries))
