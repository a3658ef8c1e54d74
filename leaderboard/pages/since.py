"""What changed since an older board, as the board page tells it."""

from dataclasses import dataclass

from leaderboard.boards.history import changes_since
from leaderboard.boards.models import Board, Entry
from leaderboard.boards.queries import NoSuchBoard, board_numbered
from leaderboard.pages.asked import number_in
from leaderboard.studies.answers import Changes, words


@dataclass(frozen=True)
class Since:
    """What changed since an older board."""

    board: Board
    changes: Changes

    @property
    def text(self) -> str:
        return words.changes_text(self.changes)


def since(board: Board, entries: list[Entry], asked: str) -> Since | None:
    """What changed since the board asked for; None where that is no older board."""
    older_number = number_in(asked)
    if older_number is None or older_number >= board.number:
        return None
    try:
        older = board_numbered(board.benchmark, older_number)
    except NoSuchBoard:
        return None
    return Since(older, changes_since(older, board, entries=entries))
