"""What a face may know of the answer: its types, words and tables, and how a command ends.

Nothing heavy is imported.
"""

from collections.abc import Mapping
from typing import Any

from analytics.programs import begin_command as begin_command
from analytics.programs import import_less as import_less
from analytics.programs import orderly_end as orderly_end
from analytics.programs import progress_bar as progress_bar
from analytics.text import WIDTH as WIDTH
from analytics.text import as_text as as_text
from analytics.text import at_most as at_most
from selection import validation_text as validated
from selection.schema.board import AtTarget as AtTarget
from selection.schema.board import Line as Line
from selection.schema.board import Standings as Standings
from selection.schema.board import SubsetLine as SubsetLine
from selection.schema.board import TargetLine as TargetLine
from selection.schema.board import Verdict as Verdict
from selection.schema.board import descriptions as descriptions
from selection.staged.text import line_of as line_of
from selection.staged.text import replay_figures as replay_figures
from selection.staged.text import replay_row as replay_row
from selection.standings import printed as printed
from selection.standings import table as table
from selection.standings import words as words
from selection.standings.changes import Changes as Changes
from selection.standings.changes import Place as Place
from selection.standings.changes import compared as compared
from selection.standings.verdict import advice_text as advice_text
from selection.standings.verdict import random_text as random_text
from selection.standings.verdict import verdict as verdict
from selection.standings.verdict import why_text as why_text

__all__ = ["validated"]
AVERAGED = {
    "prompt": "under each of {n} prompts",
    "judge": "by each of {n} judges",
    "temperature": "at each of {n} temperatures",
}


def varied(result: Mapping[str, Any]) -> dict[str, int]:
    """Return the facets whose variation with the agent a variance study measured, with their levels."""
    names = {part["name"] for part in result.get("components") or ()}
    unknown = result.get("advice", {}).get("unknown", ())
    known = [one for one in AVERAGED if f"agent:{one}" in names and f"{one}s" not in unknown]
    return {facet: result["levels"][facet] for facet in known}


def averaged_over(result: Mapping[str, Any]) -> str:
    """Say what the mean of a variance study's projections is over, beside tasks and trials; may be empty."""
    return ", ".join(AVERAGED[facet].format(n=n) for facet, n in varied(result).items())
