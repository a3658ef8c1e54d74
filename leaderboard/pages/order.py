"""By what the table is sorted."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from leaderboard.pages.lines import Line


@dataclass(frozen=True)
class Column:
    """What a table may be sorted by, and which end comes first."""

    value: Callable[[Line], Any]
    largest_first: bool = False


COLUMNS = {
    "rank": Column(lambda line: line.told.rank),
    "agent": Column(lambda line: line.entry.agent.casefold()),
    "score": Column(lambda line: line.told.score, largest_first=True),
    "ties": Column(lambda line: line.n_tied, largest_first=True),
    "subset": Column(lambda line: line.entry.at["subset"].score, largest_first=True),
    "full": Column(lambda line: line.entry.at["full"].score, largest_first=True),
    "icc": Column(lambda line: line.entry.icc["icc"], largest_first=True),
    "cost": Column(lambda line: line.compared_cost),
    "tasks": Column(lambda line: line.entry.n_tasks, largest_first=True),
    "trials": Column(lambda line: line.entry.n_trials, largest_first=True),
    "date": Column(lambda line: line.entry.submitted_at, largest_first=True),
}


@dataclass(frozen=True)
class Order:
    """The order of the ranking, as in `?sort=full`; `?sort=-full` is the other way round."""

    column: str = "rank"
    reverse: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the parameter; what is not known is the order by rank (`asked.unknown` says so)."""
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

    def sort(self, lines: list[Line]) -> list[Line]:
        """Agents without a value come last either way; equal ones keep their order."""
        value = COLUMNS[self.column].value
        present = [line for line in lines if value(line) is not None]
        absent = [line for line in lines if value(line) is None]
        return sorted(present, key=value, reverse=self.descending) + absent

    def __str__(self) -> str:
        return f"-{self.column}" if self.reverse else self.column
