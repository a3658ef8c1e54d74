"""A board as plain values, the same for the API and for `standings --format json`."""

from typing import Any

from leaderboard.boards.models import Board
from leaderboard.boards.reading import plain_of


def as_dict(board: Board) -> dict[str, Any]:
    """What `Standings.as_plain` tells, and what publishing added."""
    return {
        "benchmark": board.benchmark.slug,
        "number": board.number,
        "published_at": board.published_at.isoformat(),
        "data_version": board.data_version,
        "digest": board.digest,
        **plain_of(board),
    }
