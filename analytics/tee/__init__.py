"""Total evaluation error: components of one pipeline's score, and what another design would do to it.

==================  =======================================================================================
module              holds
==================  =======================================================================================
``total_error``     `total_error`: from columns to θ̂, its error, and its parts
``design``          what the columns are: items, prompts, judges, temperatures, and how they cross
``components``      variance components by the facets they hold, and the table they are read from
``dstudy``          components and a proposed design to a variance, by estimand and sensitivity
``interventions``   what a variance is made of, and what one change of the design would do
``strata``          a fit of each temperature, judge, prompt or category on its own
``benchmark``       components of a whole benchmark, for all its agents at once
``budget``          the cheapest design for a standard error, the most precise one for a budget
``report``          a study in one paragraph
==================  =======================================================================================
"""

from analytics.tee.budget import Choices, Costs, cheapest, frontier, most_precise
from analytics.tee.components import (
    FACETS,
    Component,
    Components,
    ComponentsMalformed,
    parse_facets,
    read_components,
)
from analytics.tee.design import Declaration, pilot_rules
from analytics.tee.dstudy import DStudyRefused, Projection, Reading, as_json, parse_design, project
from analytics.tee.interventions import interventions, variance_table
from analytics.tee.report import counted_levels, paragraph
from analytics.tee.strata import by_stratum, with_residual
from analytics.tee.total_error import TotalError, total_error

__all__ = [
    "FACETS",
    "Choices",
    "Component",
    "Components",
    "ComponentsMalformed",
    "Costs",
    "DStudyRefused",
    "Declaration",
    "Projection",
    "Reading",
    "TotalError",
    "as_json",
    "by_stratum",
    "cheapest",
    "counted_levels",
    "frontier",
    "interventions",
    "most_precise",
    "paragraph",
    "parse_design",
    "parse_facets",
    "pilot_rules",
    "project",
    "read_components",
    "total_error",
    "variance_table",
    "with_residual",
]
