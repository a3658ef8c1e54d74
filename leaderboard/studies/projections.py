"""What another design would make of the stored variance components; arithmetic on a few numbers."""

from collections.abc import Mapping
from typing import Any

from analytics.errors import CoreError
from analytics.tee.agent_projection import as_seen, project_agent
from leaderboard.errors import Conflict
from leaderboard.studies.models import VarianceStudy


def project_error(
    *, study: VarianceStudy, design: Mapping[str, int], estimand: str, sensitivity: str
) -> dict[str, Any]:
    """Project the error of one agent's mean; what the design leaves open is as in the study."""
    if not study.result["available"]:
        raise Conflict(
            f"The latest variance study has no components: {study.result['reason']}.", code="no_components"
        )
    try:
        parts = {one["name"]: one["variance"] for one in study.result["components"]}
        design = {**as_seen(study.result["levels"], parts), **design}
        projection = project_agent(study.result, design, estimand=estimand, sensitivity=sensitivity)
    except CoreError as refusal:
        raise Conflict(
            f"The components do not carry this design: {refusal}.", code="cannot_project"
        ) from refusal
    return {"data_version": study.data_version, **projection}
