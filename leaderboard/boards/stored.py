"""The digest of a board by what is stored of it, in whatever shape it was published."""

from collections.abc import Iterable
from typing import Any

from leaderboard.boards.models import Board, Entry
from leaderboard.boards.signing import digest
from leaderboard.studies.rules import policy_values

HUGE = 10**16  # from here on the database gives a fraction back as a whole number; no count is as large


def stored_digest(board: Board, entries: Iterable[Entry]) -> str:
    """What `publish` computed, unless an erasure or somebody else changed the board since."""
    subset = board.content["subset"]
    return digest(
        policy=policy_values(board.policy),
        subset=subset["tasks"] if subset else None,
        agents=[_fractions(entry.line) | {"agent": entry.name} for entry in entries],
    )


def _fractions(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _fractions(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_fractions(one) for one in value]
    return float(value) if type(value) is int and value >= HUGE else value
