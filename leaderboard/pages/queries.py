"""What the pages show, read from what is stored alone: nothing is computed but orders and counts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlencode

from django.db.models import Count, OuterRef, Prefetch, QuerySet, Subquery
from django.db.models.functions import Coalesce

from leaderboard.boards.models import Board, Entry
from leaderboard.boards.queries import entries_of, latest_board
from leaderboard.boards.reading import Gap, Line, choose_target, gaps, is_available, lines_at, why_not
from leaderboard.catalog.models import Benchmark, Target, Visibility
from leaderboard.catalog.queries import visible_benchmarks
from leaderboard.studies.models import SubsetTask


@dataclass(frozen=True)
class Column:
    """What a table may be sorted by, and which end comes first."""

    value: Callable[[Line], Any]
    largest_first: bool = False


COLUMNS = {
    "rank": Column(lambda line: line.rank),
    "agent": Column(lambda line: line.entry.name.casefold()),
    "score": Column(lambda line: line.score, largest_first=True),
    "ties": Column(lambda line: len(line.tied) if line.places else None, largest_first=True),
    "subset": Column(lambda line: line.entry.score, largest_first=True),
    "full": Column(lambda line: line.entry.full_score, largest_first=True),
    "icc": Column(lambda line: (line.entry.icc or {}).get("icc"), largest_first=True),
    "tasks": Column(lambda line: line.entry.n_scored, largest_first=True),
    "trials": Column(lambda line: line.entry.n_valid_trials, largest_first=True),
    "date": Column(lambda line: line.entry.submitted_at, largest_first=True),
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

    def sort(self, lines: list[Line]) -> list[Line]:
        """Agents without a value come last either way; equal ones keep their order."""
        value = COLUMNS[self.column].value
        present = [line for line in lines if value(line) is not None]
        absent = [line for line in lines if value(line) is None]
        return sorted(present, key=value, reverse=self.descending) + absent

    def __str__(self) -> str:
        return f"-{self.column}" if self.reverse else self.column


@dataclass(frozen=True)
class Choice:
    """One end of the switch between targets; without an address nothing is said about it, and `why` not."""

    target: str
    is_chosen: bool
    address: str = ""
    why: str = ""


@dataclass(frozen=True)
class BoardPage:
    """A board with everything that stands around it, for one target."""

    board: Board
    target: str
    order: Order
    lines: list[Line]
    ranked: list[Line]
    unranked: list[Entry]
    marks: frozenset[str]
    subset_tasks: list[SubsetTask]

    @property
    def n_ranked_tasks(self) -> int:
        return len(self.subset_tasks) if self.board.subset else self.board.n_tasks

    @property
    def is_behind(self) -> bool:
        """Whether the counted outcomes have changed since."""
        return self.board.data_version < self.board.benchmark.data_version

    @property
    def ranks_on_it(self) -> bool:
        """Whether the target's scores are those that the board itself ranks by."""
        return not self.board.subset or self.target == Target.SUBSET

    @property
    def has_icc(self) -> bool:
        return any("icc" in (line.entry.icc or {}) for line in self.lines)

    @property
    def choices(self) -> list[Choice]:
        return [self._choice(target) for target in Target.values]

    @property
    def gaps(self) -> list[Gap]:
        return gaps(self.board, self.target, self.lines)

    @property
    def flagged(self) -> list[Entry]:
        entries = [*(line.entry for line in self.lines), *self.unranked]
        return [entry for entry in entries if entry.flags]

    @property
    def sources(self) -> list[tuple[str, str]]:
        """Where the intervals of calibrated scores come from, and what that means."""
        told = [line.entry.full_interval or {} for line in self.lines]
        return sorted({(one["source"], one["note"]) for one in told if "source" in one})

    def address(self, *, sort: str, target: str = "") -> str:
        """The query of another view; what is the default is left out of it."""
        target = target or self.target
        chosen = {} if target == choose_target(self.board) else {"target": target}
        return "?" + urlencode(chosen | ({"sort": sort} if sort else {}))

    def _choice(self, target: str) -> Choice:
        if not is_available(self.board, target):
            return Choice(target, target == self.target, why=why_not(self.board, target))
        sort = "" if self.order == Order() else str(self.order)
        return Choice(target, target == self.target, self.address(sort=sort, target=target))


def board_page(benchmark: Benchmark, *, order: Order, target: str) -> BoardPage:
    """Read the latest board; a target that nothing is said about is replaced by the default."""
    board = latest_board(benchmark)
    entries, target = entries_of(board), choose_target(board, target)
    lines = lines_at(target, entries)
    return BoardPage(
        board=board,
        target=target,
        order=order,
        lines=lines,
        ranked=order.sort(lines),
        unranked=[entry for entry in entries if entry.rank is None],
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
