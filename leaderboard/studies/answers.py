"""What a face may know of the answer: its types and words. Nothing heavy is imported."""

from selection.standings import words
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
    "words",
]
