"""How a stored board is read: as the typed answer that it was made from."""

from collections.abc import Iterable
from typing import Any

from leaderboard.boards.models import Board, Entry
from leaderboard.boards.queries import entries_of
from leaderboard.studies.answers import Standings


def standings_of(board: Board) -> Standings:
    """Everything, with a line for each agent: one query."""
    return Standings.of_plain(plain_of(board))


def standings_with(board: Board, entries: Iterable[Entry]) -> Standings:
    """The same with entries that were read already: no query."""
    return Standings.of_plain(_plain(board, entries))


def head_of(board: Board) -> Standings:
    """The same without the lines of the agents: no query."""
    return Standings.of_plain(_plain(board, ()))


def plain_of(board: Board) -> dict[str, Any]:
    """What `Standings.as_plain` gave when the board was made."""
    return _plain(board, entries_of(board))


def _plain(board: Board, entries: Iterable[Entry]) -> dict[str, Any]:
    agents = [
        {"agent": entry.name} | {field: getattr(entry, field) for field in Entry.LINE_FIELDS}
        for entry in entries
    ]
    return board.content | {"agents": agents}
