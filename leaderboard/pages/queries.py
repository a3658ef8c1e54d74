"""What the pages show, read from what is stored alone: nothing is computed, counted or worded here."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self
from urllib.parse import urlencode

from django.db.models import Max, OuterRef, Prefetch, QuerySet, Subquery

from leaderboard.boards.history import changes_since
from leaderboard.boards.models import Board, Entry
from leaderboard.boards.presentation import tells_costs, without_costs
from leaderboard.boards.queries import (
    NoSuchBoard,
    board_numbered,
    entries_of,
    latest_board,
    with_costs_told,
    withdrawn_agents,
)
from leaderboard.boards.reading import standings_with
from leaderboard.boards.signing import public_key
from leaderboard.catalog.models import Benchmark, Visibility
from leaderboard.catalog.queries import visible_benchmarks
from leaderboard.studies.answers import AtTarget, Changes, Gap, Standings, gaps, printed, table, words
from leaderboard.studies.answers import Line as Entrant
from leaderboard.studies.models import SubsetTask

LONGEST_ASKED = 40  # characters of what an address asks for


@dataclass(frozen=True)
class Line:
    """One agent, seen for one target: its row of the table by head, and the names that it is tied with."""

    entry: Entrant
    told: AtTarget
    cells: Mapping[str, str]
    tied: tuple[str, ...]

    @property
    def bounds(self) -> str:
        return words.bounds_text(self.told)

    @property
    def about(self) -> tuple[tuple[str, str], ...]:
        return words.about(self.entry)


def lines_at(standings: Standings, target: str) -> list[Line]:
    """The lines for a target, by rank; those without a rank last, by name."""
    names = [entry.agent for entry in standings.agents]
    rows = table.rows(standings, target)
    return [
        Line(entry, told := entry.at[target], cells, _names(names, told))
        for entry, cells in zip(words.in_order(standings, target), rows, strict=True)
    ]


def _names(names: list[str], told: AtTarget) -> tuple[str, ...]:
    return tuple(name for first, last in told.tied_with for name in names[first : last + 1])


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
    "rank": Column(lambda line: line.told.rank),
    "agent": Column(lambda line: line.entry.agent.casefold()),
    "score": Column(lambda line: line.told.score, largest_first=True),
    "ties": Column(lambda line: len(line.tied) if line.told.rank_lower else None, largest_first=True),
    "subset": Column(lambda line: line.entry.at["subset"].score, largest_first=True),
    "full": Column(lambda line: line.entry.at["full"].score, largest_first=True),
    "icc": Column(lambda line: line.entry.icc["icc"], largest_first=True),
    "cost": Column(lambda line: line.entry.cost_usd),
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
        """Read the parameter; what is not known is the order by rank (`unknown_asked` says so)."""
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


def unknown_asked(*, target: str, sort: str) -> tuple[str, ...]:
    """Say which of what an address asks for is not known, so that the default is shown in its place."""
    told = {
        f"There is no target “{_named(target)}”, so that this is the board’s own; targets are "
        f"{_listed_names(words.TARGETS)}.": bool(target) and target not in words.TARGETS,
        f"There is no order by “{_named(sort)}”, so that this is the one by rank; a board is sorted by "
        f"{_listed_names(COLUMNS)}.": bool(sort) and sort.removeprefix("-") not in COLUMNS,
    }
    return tuple(sentence for sentence, is_unknown in told.items() if is_unknown)


def _named(text: str) -> str:
    """What was asked for, short and with nothing that cannot be seen."""
    shown = "".join(sign if sign.isprintable() else "�" for sign in text)
    return shown if len(shown) <= LONGEST_ASKED else f"{shown[:LONGEST_ASKED]}…"


def _listed_names(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}"


@dataclass(frozen=True)
class Choice:
    """One end of the switch between targets; without an address nothing is said about it, and `why` not."""

    label: str
    is_chosen: bool
    address: str = ""
    why: str = ""


N_CHANGED_LISTED = 50  # names of one kind of change


@dataclass(frozen=True)
class Since:
    """What changed since an older board."""

    board: Board
    changes: Changes

    @property
    def text(self) -> str:
        return words.changes_text(self.changes)

    @property
    def lists(self) -> list[tuple[str, tuple[str, ...], int]]:
        """For each kind of change its title, the first of its lines, and how many more there are."""
        return [
            (title, lines[:N_CHANGED_LISTED], max(0, len(lines) - N_CHANGED_LISTED))
            for title, lines in words.changed_lists(self.changes)
        ]


@dataclass(frozen=True)
class BoardPage:
    """A board with everything that stands around it, for one target."""

    board: Board
    standings: Standings
    target: str
    order: Order
    lines: list[Line]
    subset_tasks: list[SubsetTask]
    latest: int
    withdrawn: frozenset[str] = frozenset()
    since: Since | None = None
    asked: tuple[str, ...] = ()

    @property
    def is_latest(self) -> bool:
        return self.board.number == self.latest

    @property
    def key(self) -> str | None:
        """Of the signature that the JSON of the board has."""
        return public_key()

    @cached_property
    def ranked(self) -> list[Line]:
        return self.order.sort([line for line in self.lines if line.told.rank is not None])

    @property
    def unranked(self) -> list[Line]:
        return [line for line in self.lines if line.told.rank is None]

    @property
    def is_behind(self) -> bool:
        """Whether the counted outcomes have changed since."""
        return self.board.data_version < self.board.benchmark.data_version

    @property
    def n_ranked(self) -> int:
        return self.standings.targets[self.target].n_ranked

    @property
    def n_target_tasks(self) -> int:
        return self.standings.targets[self.target].n_tasks

    @property
    def heads(self) -> tuple[str, ...]:
        """Of the columns that say something."""
        return tuple(column.head for column in self._shown)

    @property
    def score_head(self) -> str:
        return table.HEADS[self.target]

    @property
    def other_head(self) -> str:
        """Of the scores on the other task set; empty on a board without a subset."""
        return table.other_head(self.target) if self.standings.subset else ""

    @property
    def other_column(self) -> str:
        return "full" if self.target == "subset" else "subset"

    @property
    def headline(self) -> str:
        return words.headline(self.standings, self.target)

    @property
    def scores(self) -> str:
        return words.scores_text(self.standings, self.target)

    @property
    def tasks(self) -> str:
        return words.tasks_of(self.standings, self.target)

    @property
    def phase(self) -> str:
        return words.phase_text(self.standings)

    @property
    def verdict(self) -> str:
        return words.verdict_text(self.standings)

    @property
    def trials(self) -> str:
        return words.trials_text(self.standings.trials)

    @property
    def covers(self) -> str:
        return words.covers_text(self.standings, self.target)

    @property
    def measured(self) -> str:
        return words.measured_text(self.standings)

    @property
    def notices(self) -> tuple[str, ...]:
        return words.other_notices(self.standings)

    @property
    def legend(self) -> dict[str, str]:
        return printed.legend(self.standings, self.target, self._shown)

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """What the rows of ranked agents lack; why others have no rank stands in their own table."""
        return tuple(gap for gap in gaps(self.standings, self.target) if gap.what != "Not ranked")

    @property
    def saved(self) -> str:
        return words.savings_text(self.standings.savings, with_money=tells_costs(self.board))

    @property
    def choices(self) -> list[Choice]:
        return [self._choice(target) for target in words.TARGETS]

    @property
    def flagged(self) -> list[Entrant]:
        return [line for line in self.standings.agents if line.flags]

    @cached_property
    def _shown(self) -> tuple[table.Column, ...]:
        return table.columns(self.standings, self.target)

    def address(self, *, sort: str, target: str = "") -> str:
        """The query of another view; what is the default is left out of it."""
        target = target or self.target
        chosen = {} if target == self.standings.target else {"target": target}
        return "?" + urlencode(chosen | ({"sort": sort} if sort else {}))

    def _choice(self, target: str) -> Choice:
        told = self.standings.targets[target]
        label, is_chosen = words.sentence(words.tasks_of(self.standings, target))[:-1], target == self.target
        if not told.n_ranked:
            return Choice(
                label if told.n_tasks else "The subset", is_chosen, why=f"{words.clause(told.reason)}."
            )
        sort = "" if self.order == Order() else str(self.order)
        return Choice(label, is_chosen, self.address(sort=sort, target=target))


def board_page(
    benchmark: Benchmark, *, sort: str, target: str, number: int | None = None, since: str = ""
) -> BoardPage:
    """Read a board, the latest where no number is given.

    A target that nothing is said about is replaced by the default, an order too; an older board that is not
    there is ignored.
    """
    board = latest_board(benchmark) if number is None else board_numbered(benchmark, number)
    entries = entries_of(board)
    standings = standings_with(board, entries)
    if not tells_costs(board):
        standings = without_costs(standings)
    # Every withdrawal is another data version.
    gone = withdrawn_agents(benchmark) if board.data_version < benchmark.data_version else set()
    chosen = choose_target(standings, target)
    return BoardPage(
        board=board,
        standings=standings,
        target=chosen,
        order=Order.parse(sort),
        lines=lines_at(standings, chosen),
        subset_tasks=_subset_tasks(board),
        asked=unknown_asked(target=target, sort=sort),
        latest=board.number if number is None else _latest_number(benchmark),
        withdrawn=frozenset(entry.name for entry in entries if entry.agent_id in gone),
        since=_since(board, entries, since),
    )


def _latest_number(benchmark: Benchmark) -> int:
    return int(benchmark.boards.aggregate(Max("number"))["number__max"])


def _since(board: Board, entries: list[Entry], asked: str) -> Since | None:
    if not (asked.isascii() and asked.isdecimal() and int(asked[:12]) < board.number):
        return None
    try:
        older = board_numbered(board.benchmark, int(asked[:12]))
    except NoSuchBoard:
        return None
    return Since(older, changes_since(older, board, entries=entries))


@dataclass(frozen=True)
class Listed:
    """A benchmark on the home page, with its latest board or none."""

    benchmark: Benchmark
    board: Board | None
    standings: Standings | None

    @property
    def headline(self) -> str:
        return words.headline(self.standings) if self.standings else ""

    @property
    def n_ranked(self) -> int:
        return self.standings.targets[self.standings.target].n_ranked if self.standings else 0


def listed_benchmarks() -> list[Listed]:
    """The public benchmarks by title."""
    latest = Prefetch("boards", _latest_boards(), to_attr="published")
    listed = visible_benchmarks(None).filter(visibility=Visibility.PUBLIC)
    return [_listed(benchmark) for benchmark in listed.prefetch_related(latest).order_by("title", "slug")]


def _listed(benchmark: Any) -> Listed:
    for board in benchmark.published:
        standings = standings_with(board, board.told)
        return Listed(benchmark, board, standings if tells_costs(board) else without_costs(standings))
    return Listed(benchmark, None, None)


def _latest_boards() -> QuerySet[Board]:
    """The latest board of each benchmark, with its entries in `told`."""
    number = Board.objects.filter(benchmark=OuterRef("benchmark")).order_by("-number").values("number")[:1]
    entries = Prefetch("entries", Entry.objects.order_by("position"), to_attr="told")
    boards = Board.objects.filter(number=Subquery(number)).select_related("policy")
    return with_costs_told(boards).prefetch_related(entries)


def _subset_tasks(board: Board) -> list[SubsetTask]:
    if board.subset is None:
        return []
    return list(board.subset.members.select_related("task").order_by("task__name"))
