"""What a face may know of the answer: its types, words and tables. Nothing heavy is imported."""

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
    "gaps",
    "printed",
    "table",
    "words",
]
