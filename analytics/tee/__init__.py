"""Total evaluation error: components of one pipeline's score, and what another design would do to it."""

from analytics.tee.agent_projection import as_seen, project_agent
from analytics.tee.benchmark import study_of_file
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
from analytics.tee.dstudy import (
    DStudyRefused,
    Reading,
    as_json,
    interventions,
    parse_design,
    project,
    variance_table,
)
from analytics.tee.report import counted_levels, paragraph
from analytics.tee.total_error import TotalError, by_stratum, total_error, with_residual

__all__ = [
    "FACETS",
    "Choices",
    "Component",
    "Components",
    "ComponentsMalformed",
    "Costs",
    "DStudyRefused",
    "Declaration",
    "Reading",
    "TotalError",
    "as_json",
    "as_seen",
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
    "project_agent",
    "read_components",
    "study_of_file",
    "total_error",
    "variance_table",
    "with_residual",
]
