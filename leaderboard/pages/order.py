"""By what the table is sorted."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from leaderboard.pages.lines import BoardLine


@dataclass(frozen=True)
class SortKey:
    """What a table may be sorted by, and which end comes first."""

    value: Callable[[BoardLine], Any]
    largest_first: bool = False


COLUMNS = {
    "rank": SortKey(lambda line: line.target_result.rank),
    "agent": SortKey(lambda line: line.entry.agent.casefold()),
    "score": SortKey(lambda line: line.target_result.score, largest_first=True),
    "ties": SortKey(lambda line: line.n_tied, largest_first=True),
    "subset": SortKey(lambda line: line.entry.at["subset"].score, largest_first=True),
    "full": SortKey(lambda line: line.entry.at["full"].score, largest_first=True),
    "icc": SortKey(lambda line: line.entry.icc["icc"], largest_first=True),
    "cost": SortKey(lambda line: line.compared_cost),
    "tasks": SortKey(lambda line: line.entry.n_tasks, largest_first=True),
    "trials": SortKey(lambda line: line.entry.n_trials, largest_first=True),
    "date": SortKey(lambda line: line.entry.submitted_at, largest_first=True),
}


@dataclass(frozen=True)
class Order:
    """The order of the ranking, as in `?sort=full`; `?sort=-full` is the other way round."""

    column: str = "rank"
    reverse: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the parameter; what is not known is the order by rank (`board_query.unknown` says so)."""
        column = text.removeprefix("-")
        return cls(column, text.startswith("-")) if column in COLUMNS else cls()

    @property
    def descending(self) -> bool:
        return COLUMNS[self.column].largest_first != self.reverse

    def direction(self, column: str) -> str:
        """The value of aria-sort; empty for a column that the table is not sorted by."""
        if column != self.column:
            return ""
        return "descending" if self.descending else "ascending"

    def after_choosing(self, column: str) -> str:
        """The parameter of the link in this column's head: chosen again, it turns the order round."""
        return f"-{column}" if column == self.column and not self.reverse else column

    def sort(self, lines: list[BoardLine]) -> list[BoardLine]:
        """Agents without a value come last either way; equal ones keep their order."""
        value = COLUMNS[self.column].value
        present = [line for line in lines if value(line) is not None]
        absent = [line for line in lines if value(line) is None]
        return sorted(present, key=value, reverse=self.descending) + absent

    def __str__(self) -> str:
        return f"-{self.column}" if self.reverse else self.column
