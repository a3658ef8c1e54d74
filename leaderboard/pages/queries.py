"""What the pages show, read from what is stored alone: nothing is computed but orders and counts."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from django.db.models import Count, OuterRef, Prefetch, QuerySet, Subquery
from django.db.models.functions import Coalesce

from leaderboard.boards.models import Board, Entry
from leaderboard.boards.queries import entries_of, latest_board
from leaderboard.catalog.models import Benchmark, Visibility
from leaderboard.catalog.queries import visible_benchmarks
from leaderboard.studies.models import SubsetTask


@dataclass(frozen=True)
class Column:
    """What a table may be sorted by, and which end comes first."""

    value: Callable[[Entry], Any]
    largest_first: bool = False


COLUMNS = {
    "rank": Column(lambda entry: entry.rank),
    "agent": Column(lambda entry: entry.name.casefold()),
    "score": Column(lambda entry: entry.score, largest_first=True),
    "full": Column(lambda entry: entry.full_score, largest_first=True),
    "tasks": Column(lambda entry: entry.n_scored, largest_first=True),
    "trials": Column(lambda entry: entry.n_valid_trials, largest_first=True),
    "date": Column(lambda entry: entry.submitted_at, largest_first=True),
}


@dataclass(frozen=True)
class Order:
    """The order of the ranking, as in `?sort=full`; `?sort=-full` is the other way round."""

    column: str = "rank"
    reverse: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the parameter; what is not known is ignored."""
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

    def sort(self, entries: list[Entry]) -> list[Entry]:
        """Entries without a value come last either way; equal ones keep their order."""
        value = COLUMNS[self.column].value
        present = [entry for entry in entries if value(entry) is not None]
        absent = [entry for entry in entries if value(entry) is None]
        return sorted(present, key=value, reverse=self.descending) + absent


@dataclass(frozen=True)
class BoardPage:
    """A board with everything that stands around it."""

    board: Board
    order: Order
    ranked: list[Entry]
    unranked: list[Entry]
    shared_ranks: frozenset[int | None]
    marks: frozenset[str]
    subset_tasks: list[SubsetTask]

    @property
    def n_ranked_tasks(self) -> int:
        return len(self.subset_tasks) if self.board.subset else self.board.n_tasks

    @property
    def is_behind(self) -> bool:
        """Whether the counted outcomes have changed since."""
        return self.board.data_version < self.board.benchmark.data_version


def board_page(benchmark: Benchmark, order: Order) -> BoardPage:
    board = latest_board(benchmark)
    entries = entries_of(board)
    ranked = [entry for entry in entries if entry.rank is not None]
    n_of_rank = Counter(entry.rank for entry in ranked)
    return BoardPage(
        board=board,
        order=order,
        ranked=order.sort(ranked),
        unranked=[entry for entry in entries if entry.rank is None],
        shared_ranks=frozenset(rank for rank, n in n_of_rank.items() if n > 1),
        marks=frozenset(mark for entry in entries for mark in entry.marks),
        subset_tasks=_subset_tasks(board),
    )


def listed_benchmarks() -> QuerySet[Benchmark]:
    """The public benchmarks by title; `published` holds the latest board or nothing."""
    latest = Prefetch("boards", _latest_boards(), to_attr="published")
    listed = visible_benchmarks(None).filter(visibility=Visibility.PUBLIC)
    return listed.prefetch_related(latest).order_by("title", "slug")


def _latest_boards() -> QuerySet[Board]:
    """The latest board of each benchmark, with its first ranks in `leaders`."""
    number = Board.objects.filter(benchmark=OuterRef("benchmark")).order_by("-number").values("number")[:1]
    leaders = Prefetch("entries", Entry.objects.filter(rank=1).order_by("name"), to_attr="leaders")
    return (
        Board.objects.filter(number=Subquery(number))
        .annotate(
            n_agents=_count(Entry.objects.filter(board=OuterRef("pk")), "board"),
            n_subset_tasks=_count(SubsetTask.objects.filter(subset=OuterRef("subset")), "subset"),
        )
        .prefetch_related(leaders)
    )


def _count(rows: QuerySet[Any], group: str) -> Coalesce:
    """Count in a query of its own: joins to two tables would multiply each other's rows."""
    return Coalesce(Subquery(rows.order_by().values(group).annotate(n=Count("pk")).values("n")), 0)


def _subset_tasks(board: Board) -> list[SubsetTask]:
    if board.subset is None:
        return []
    return list(board.subset.members.select_related("task").order_by("task__name"))
