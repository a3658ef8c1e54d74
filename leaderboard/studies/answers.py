"""What a face may know of the answer: its types, words and tables, and how a command ends.

Nothing heavy is imported.
"""

from analytics.ending import orderly_end
from analytics.progress import progress_bar
from analytics.text import as_text
from selection import validated
from selection.standings import printed, table, words
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
)
from selection.standings.verdict import verdict

__all__ = [
    "AtTarget",
    "Conditions",
    "Gap",
    "How",
    "Line",
    "Phase",
    "Standings",
    "SubsetLine",
    "TargetLine",
    "as_text",
    "gaps",
    "orderly_end",
    "printed",
    "progress_bar",
    "table",
    "validated",
    "verdict",
    "words",
]
