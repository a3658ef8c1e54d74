"""What a face may know of the answer: its types, words and tables, and how a command ends.

Nothing heavy is imported.
"""

from collections.abc import Mapping
from typing import Any

from analytics.programs import orderly_end, use_no_pandas
from analytics.progress import progress_bar
from analytics.text import as_text
from selection import validation_text as validated
from selection.schema.board import (
    AtTarget,
    Conditions,
    How,
    Line,
    Phase,
    Standings,
    SubsetLine,
    TargetLine,
    Verdict,
    descriptions,
)
from selection.staged.text import line_of, replay_figures, replay_row
from selection.standings import printed, table, words
from selection.standings.changes import Changes, Moved, Place, changes, compared
from selection.standings.table import Gap, gaps
from selection.standings.terms import heads
from selection.standings.verdict import advice_text, random_text, verdict, why_text

AVERAGED = {
    "prompt": "under each of {n} prompts",
    "judge": "by each of {n} judges",
    "temperature": "at each of {n} temperatures",
}


def varied(result: Mapping[str, Any]) -> dict[str, int]:
    """Return the facets whose variation with the agent a variance study measured, with their levels."""
    names = {part["name"] for part in result.get("components") or ()}
    return {facet: result["levels"][facet] for facet in AVERAGED if f"agent:{facet}" in names}


def averaged_over(result: Mapping[str, Any]) -> str:
    """Say what the mean of a variance study's projections is over, beside tasks and trials; may be empty."""
    return ", ".join(AVERAGED[facet].format(n=n) for facet, n in varied(result).items())


__all__ = [
    "AtTarget",
    "Changes",
    "Conditions",
    "Gap",
    "How",
    "Line",
    "Moved",
    "Phase",
    "Place",
    "Standings",
    "SubsetLine",
    "TargetLine",
    "Verdict",
    "advice_text",
    "as_text",
    "averaged_over",
    "changes",
    "compared",
    "descriptions",
    "gaps",
    "heads",
    "line_of",
    "orderly_end",
    "printed",
    "progress_bar",
    "random_text",
    "replay_figures",
    "replay_row",
    "table",
    "use_no_pandas",
    "validated",
    "varied",
    "verdict",
    "why_text",
    "words",
]
