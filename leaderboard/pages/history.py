"""What the page on history shows: the boards of a benchmark, newest first, and what each changed."""

from dataclasses import dataclass
from typing import Any

from leaderboard.boards.history import Version, versions
from leaderboard.catalog.models import Benchmark
from leaderboard.studies.answers import words

N_VERSIONS = 20


@dataclass(frozen=True)
class Row:
    version: Version

    @property
    def board(self) -> Any:
        return self.version.board

    @property
    def before(self) -> int:
        return int(self.board.number) - 1

    @property
    def text(self) -> str:
        return words.changes_text(self.version.changes) if self.version.changes else ""


@dataclass(frozen=True)
class HistoryPage:
    """Some of the boards; `before` is the number that the next older ones lie under, None at the first."""

    rows: list[Row]
    is_latest: bool
    before: int | None


def history_page(benchmark: Benchmark, *, before: str = "") -> HistoryPage:
    """Read the boards under a number, or the latest; what is no number is ignored."""
    number = int(before[:12]) if before.isascii() and before.isdecimal() else None
    told, are_more = versions(benchmark, before=number, most=N_VERSIONS)
    last = told[-1].board.number if told and are_more else None
    return HistoryPage([Row(one) for one in told], is_latest=number is None, before=last)
