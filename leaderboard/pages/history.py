"""What the page on history shows: the boards of a benchmark, newest first, what each changed, the best score.

Whether a new best is surely better is read off the board that shows it first: whether the former best is tied
with it there. Nothing is computed anew.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from itertools import pairwise
from typing import Any

from django.db.models import F, Q
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from leaderboard.boards.history import Version, versions
from leaderboard.boards.models import Board, Entry
from leaderboard.boards.queries import withdrawn_agents
from leaderboard.catalog.models import Benchmark
from leaderboard.pages.access import for_all, visible
from leaderboard.plots.best import BestLevel, Step, best_through_boards
from leaderboard.plots.chart import Chart
from leaderboard.studies.answers import words

N_VERSIONS = 20
MAX_DRAWN = 200  # boards
WITHDRAWN = " (withdrawn since)"
HEADS = ("Board", "Published", "Best", "Score %", "Over", "Beside the best before")


@dataclass(frozen=True)
class HistoryRow:
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

    rows: list[HistoryRow]
    is_latest: bool
    before: int | None
    best: Chart | None

    @property
    def verdict(self) -> str:
        """How many boards there were, and what the latest changed."""
        row = self.rows[0]
        day = f"{row.board.published_at.day} {row.board.published_at:%B %Y}"
        number = f"board {row.board.number}, of {day}"
        if not row.text:
            return f"One board so far, of {day}."
        n = words.counted(row.board.number, "board")
        return f"{n} so far. With {number}: {words.clause(row.text)}."


def history_page(benchmark: Benchmark, *, before: str = "") -> HistoryPage:
    """Read the boards under a number, or the latest; what is no number is ignored."""
    number = int(before[:12]) if before.isascii() and before.isdecimal() else None
    latest, are_more = versions(benchmark, before=number, most=N_VERSIONS)
    last = latest[-1].board.number if latest and are_more else None
    best = best_chart(benchmark) if number is None and latest else None
    return HistoryPage([HistoryRow(one) for one in latest], is_latest=number is None, before=last, best=best)


@require_safe
@for_all
def history(request: HttpRequest, slug: str) -> HttpResponse:
    benchmark = visible(slug)
    page = history_page(benchmark, before=request.GET.get("before", ""))
    return render(request, "pages/history.html", {"page": page, "benchmark": benchmark, "here": "history"})


# ------------------------------------------------------------------------------------------- the best score


@dataclass(frozen=True)
class BoardLeader:
    """An agent of the first rank on a board, with all that is needed to hold it against the one before."""

    agent: int
    name: str
    score: float
    estimated: bool
    tied_with: list[tuple[int, int]]
    has_ties: bool


@dataclass(frozen=True)
class Best:
    """The first rank of one board; `over` names the tasks that its score is over."""

    board: Board
    over: str
    leaders: list[BoardLeader]

    @property
    def first(self) -> BoardLeader:
        return self.leaders[0]

    @property
    def score(self) -> str:
        return f"{'~' if self.first.estimated else ''}{words.percent(self.first.score)}"

    @property
    def name(self) -> str:
        more = len(self.leaders) - 1
        return f"{self.first.name} and {more:,} more" if more else self.first.name


@dataclass(frozen=True)
class BestChange:
    """A board on which the best score is another; the step to it, and why it is drawn so."""

    best: Best
    step: Step
    why: str


def plot_best(benchmark: Benchmark, params: QueryDict) -> Chart | None:
    return best_chart(benchmark)


def best_chart(benchmark: Benchmark) -> Chart | None:
    """The best score through the boards: four queries, however many there are; None without a rank."""
    boards = _boards_to_draw(benchmark)
    bests = list(_bests(boards, withdrawn_agents(benchmark)))
    if not bests:
        return None
    # The first board, and each on which another agent or another score is the best
    pairs = [(old, new) for old, new in pairwise(bests) if _is_another(old, new)]
    places = _places(pairs)
    changes = [
        BestChange(bests[0], "first", "the first board drawn"),
        *(BestChange(new, *_step_between(old, new, places)) for old, new in pairs),
    ]
    title = "The best score through time"
    drawn = best_through_boards(name="best", title=title, levels=_levels(changes, bests[-1].board))
    left_out = f" The latest {MAX_DRAWN} boards." if len(boards) == MAX_DRAWN else ""
    return Chart(
        name="best",
        title=title,
        lede="A step is solid where the new best is surely better than the one before, and dashed where the "
        f"two are tied or nothing tells. A line without a step to it begins anew: other tasks.{left_out}",
        heads=HEADS,
        rows=tuple(_row(change) for change in changes),
        svg=drawn,
    )


def _boards_to_draw(benchmark: Benchmark) -> list[Any]:
    """The latest boards by number, each with the number of tasks that it is over; not with all it tells."""
    sizes = {f"n_{target}": F(f"content__targets__{target}__n_tasks") for target in words.TARGETS}
    boards = benchmark.boards.defer("content").annotate(**sizes).order_by("-number")
    return list(boards[:MAX_DRAWN])[::-1]


def _row(change: BestChange) -> tuple[str, ...]:
    best = change.best
    day = f"{best.board.published_at:%Y-%m-%d}"
    return (f"{best.board.number}", day, best.name, best.score, best.over, change.why)


def _bests(boards: Sequence[Any], withdrawn_ids: Collection[int]) -> Iterable[Best]:
    """Who has the first rank on each board, for the target that it is ordered by."""
    leaders_by_board = _leaders(boards, withdrawn_ids)
    for board in boards:
        over = words.task_set(board.target, getattr(board, f"n_{board.target}"))
        if leaders := leaders_by_board.get(board.pk):
            yield Best(board, over, leaders)


def _leaders(boards: Sequence[Board], withdrawn_ids: Collection[int]) -> dict[int, list[BoardLeader]]:
    """By board; it is said of whoever was withdrawn since."""
    targets = sorted({board.target for board in boards})
    names = ("score", "estimated", "tied_with", "rank_lower")
    fields = [F(f"at__{target}__{name}") for target in targets for name in names]
    first = Entry.objects.filter(board__in=boards, rank=1).order_by("board", "position")
    at = {board.pk: len(names) * targets.index(board.target) for board in boards}
    leaders: dict[int, list[BoardLeader]] = {}
    for board, agent, name, *values in first.values_list("board", "agent", "name", *fields):
        score, estimated, tied, lower = values[at[board] : at[board] + len(names)]
        name += WITHDRAWN if agent in withdrawn_ids else ""
        leader = BoardLeader(agent, name, score, estimated, tied, has_ties=lower is not None)
        leaders.setdefault(board, []).append(leader)
    return leaders


def _is_another(old: Best, new: Best) -> bool:
    return (old.first.agent, old.first.score, _scale(old)) != (new.first.agent, new.first.score, _scale(new))


def _scale(best: Best) -> tuple[Any, ...]:
    """What a score can be compared within: a target, its tasks, and on a subset its version."""
    return best.board.target, best.over, best.board.subset_id if best.board.target == "subset" else None


def _places(pairs: Sequence[tuple[Best, Best]]) -> dict[tuple[int, int], int]:
    """Where the former best stand, ranked, on the boards on which they are not the best any more."""
    wanted = Q(pk__in=())
    for old, new in pairs:
        wanted |= Q(board=new.board, agent__in=[one.agent for one in old.leaders])
    entries = Entry.objects.filter(wanted, rank__isnull=False).values_list("board", "agent", "position")
    return {(board, agent): position for board, agent, position in entries}


def _step_between(old: Best, new: Best, places: dict[tuple[int, int], int]) -> tuple[Step, str]:
    """How the step is drawn, and why; only what the newer board tells of the former best counts."""
    if _scale(old) != _scale(new):
        return "first", "over other tasks: not comparable"
    if {one.agent for one in old.leaders} & {one.agent for one in new.leaders}:
        return "unsure", "the same agent, with another score"
    there = [places.get((new.board.pk, one.agent)) for one in old.leaders]
    if None in there:
        return "unsure", f"{old.name} is not ranked any more"
    if not new.first.has_ties:
        return "unsure", "this board tells no ties"
    tied = any(
        low <= place <= high for low, high in new.first.tied_with for place in there if place is not None
    )
    return ("unsure", f"tied with {old.name}") if tied else ("sure", f"surely better than {old.name}")


def _levels(changes: Sequence[BestChange], last: Board) -> list[BestLevel]:
    ends = [change.best.board for change in changes[1:]] + [last]
    return [
        BestLevel(
            first=_day(change.best.board),
            last=_day(end),
            score=change.best.first.score,
            step=change.step,
            label=change.best.name.replace(WITHDRAWN, ""),
            title=f"Board {change.best.board.number}: {change.best.name}, {change.best.score}% on "
            f"{change.best.over}; {change.why}",
            more=", withdrawn" if change.best.first.name.endswith(WITHDRAWN) else "",
        )
        for change, end in zip(changes, ends, strict=True)
    ]


def _day(board: Board) -> float:
    """When it was published, as an ordinal day in UTC with the hour as a fraction."""
    at = board.published_at.astimezone(UTC)
    return at.toordinal() + (at - at.replace(hour=0, minute=0, second=0, microsecond=0)) / timedelta(days=1)
