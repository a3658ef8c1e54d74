"""What a face may know of the answer: its types, words and tables. Nothing heavy is imported."""

from selection.standings import printed, table, words
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
    "How",
    "Line",
    "Phase",
    "Standings",
    "SubsetLine",
    "TargetLine",
    "printed",
    "table",
    "words",
]
