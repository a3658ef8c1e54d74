"""What the pages show, read from what is stored alone: nothing is computed but orders and counts."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlencode

from django.db.models import Count, OuterRef, Prefetch, QuerySet, Subquery
from django.db.models.functions import Coalesce

from leaderboard.boards.models import Board, Entry
from leaderboard.boards.queries import latest_board
from leaderboard.boards.reading import standings_of
from leaderboard.catalog.models import Benchmark, Target, Visibility
from leaderboard.catalog.queries import visible_benchmarks
from leaderboard.studies.answers import AtTarget, Gap, Standings, gaps, words
from leaderboard.studies.answers import Line as Entrant
from leaderboard.studies.models import SubsetTask


@dataclass(frozen=True)
class Line:
    """One agent, seen for one target; `tied` holds names in the order of the board."""

    entry: Entrant
    told: AtTarget
    shares_rank: bool
    tied: tuple[str, ...]

    @property
    def rank(self) -> int | None:
        return self.told.rank

    @property
    def score(self) -> float | None:
        return self.told.score

    @property
    def places(self) -> tuple[int, int] | None:
        """The first and the last rank that it may hold."""
        lower, upper = self.told.rank_lower, self.told.rank_upper
        return None if lower is None or upper is None else (lower, upper)

    @property
    def interval(self) -> tuple[float, float] | None:
        lower, upper = self.told.lower, self.told.upper
        return None if lower is None or upper is None else (lower, upper)


def lines_at(standings: Standings, target: str) -> list[Line]:
    """The lines for a target, by rank; those without a rank last, by name."""
    names = [entry.agent for entry in standings.agents]
    n_of_rank = Counter(entry.at[target].rank for entry in standings.agents)
    lines = [
        Line(
            entry=entry,
            told=entry.at[target],
            shares_rank=n_of_rank[entry.at[target].rank] > 1,
            tied=tuple(
                name for first, last in entry.at[target].tied_with for name in names[first : last + 1]
            ),
        )
        for entry in standings.agents
    ]
    return sorted(lines, key=lambda line: (line.rank is None, line.rank, line.entry.agent))


def choose_target(standings: Standings, asked: str = "") -> str:
    """The target asked for, if something is said about it; else the board's own."""
    told = standings.targets.get(asked)
    return asked if told and told.n_ranked else standings.target


@dataclass(frozen=True)
class Column:
    """What a table may be sorted by, and which end comes first."""

    value: Callable[[Line], Any]
    largest_first: bool = False


COLUMNS = {
    "rank": Column(lambda line: line.rank),
    "agent": Column(lambda line: line.entry.agent.casefold()),
    "score": Column(lambda line: line.score, largest_first=True),
    "ties": Column(lambda line: len(line.tied) if line.places else None, largest_first=True),
    "subset": Column(lambda line: line.entry.at["subset"].score, largest_first=True),
    "full": Column(lambda line: line.entry.at["full"].score, largest_first=True),
    "icc": Column(lambda line: line.entry.icc["icc"], largest_first=True),
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
    standings: Standings
    target: str
    order: Order
    ranked: list[Line]
    unranked: list[Line]
    subset_tasks: list[SubsetTask]

    @property
    def n_ranked_tasks(self) -> int:
        return self.standings.targets[self.target].n_tasks

    @property
    def is_behind(self) -> bool:
        """Whether the counted outcomes have changed since."""
        return self.board.data_version < self.board.benchmark.data_version

    @property
    def ranks_on_it(self) -> bool:
        """Whether the board itself is ordered by the target."""
        return self.target == self.standings.target

    @property
    def marks(self) -> frozenset[str]:
        return frozenset(mark for line in self.standings.agents for mark in line.marks)

    @property
    def covers(self) -> str:
        return words.covers_text(self.standings, self.target)

    @property
    def headline(self) -> str:
        return words.headline(self.standings, self.target)

    @property
    def gaps(self) -> tuple[Gap, ...]:
        return gaps(self.standings, self.target)

    @property
    def saved(self) -> str:
        return words.savings_text(self.standings.savings, with_money=self.board.policy.show_costs)

    @property
    def has_icc(self) -> bool:
        return any(line.entry.icc["icc"] is not None for line in self.ranked)

    @property
    def choices(self) -> list[Choice]:
        return [self._choice(target) for target in Target.values]

    @property
    def flagged(self) -> list[Entrant]:
        return [line for line in self.standings.agents if line.flags]

    def address(self, *, sort: str, target: str = "") -> str:
        """The query of another view; what is the default is left out of it."""
        target = target or self.target
        chosen = {} if target == self.standings.target else {"target": target}
        return "?" + urlencode(chosen | ({"sort": sort} if sort else {}))

    def _choice(self, target: str) -> Choice:
        told = self.standings.targets[target]
        if not told.n_ranked:
            return Choice(target, target == self.target, why=told.reason)
        sort = "" if self.order == Order() else str(self.order)
        return Choice(target, target == self.target, self.address(sort=sort, target=target))


def board_page(benchmark: Benchmark, *, order: Order, target: str) -> BoardPage:
    """Read the latest board; a target that nothing is said about is replaced by the default."""
    board = latest_board(benchmark)
    standings = standings_of(board)
    target = choose_target(standings, target)
    lines = lines_at(standings, target)
    return BoardPage(
        board=board,
        standings=standings,
        target=target,
        order=order,
        ranked=order.sort([line for line in lines if line.rank is not None]),
        unranked=[line for line in lines if line.rank is None],
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
