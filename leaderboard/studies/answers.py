"""What a face may know of the answer: its types, words and tables, and how a command ends.

Nothing heavy is imported.
"""

from analytics.ending import orderly_end
from analytics.programs import use_no_pandas
from analytics.progress import progress_bar
from analytics.text import as_text
from selection import adaptive_told, validated
from selection.standings import printed, table, words
from selection.standings.changes import Changes, Moved, Place, changes, compared
from selection.standings.gaps import Gap, gaps
from selection.standings.lines import (
    AtTarget,
    Conditions,
    How,
    Line,
    Phase,
    Standings,
    SubsetLine,
    TargetLine,
    Verdict,
)
from selection.standings.verdict import advice_text, random_text, verdict, why_text

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
    "adaptive_told",
    "advice_text",
    "as_text",
    "changes",
    "compared",
    "gaps",
    "orderly_end",
    "printed",
    "progress_bar",
    "random_text",
    "table",
    "use_no_pandas",
    "validated",
    "verdict",
    "why_text",
    "words",
]
