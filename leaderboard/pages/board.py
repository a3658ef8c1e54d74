"""The board: read, and answered with its page or its chart."""

from collections.abc import Sequence
from dataclasses import fields

from django.db.models import Max
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from leaderboard.boards.models import Board, Entry
from leaderboard.boards.presentation import tells_costs, without_costs
from leaderboard.boards.queries import (
    NoBoardYet,
    NoSuchBoard,
    board_numbered,
    entries_of,
    latest_board,
    withdrawn_agents,
)
from leaderboard.boards.reading import standings_with
from leaderboard.catalog.models import Benchmark
from leaderboard.pages.asked import Asked, number_in
from leaderboard.pages.board_page import BoardPage, leader_of
from leaderboard.pages.caching import kept
from leaderboard.pages.filters import Filters
from leaderboard.pages.lines import Line, beside, lines_at
from leaderboard.pages.order import Order
from leaderboard.pages.shown import for_all, visible
from leaderboard.pages.since import since
from leaderboard.plots.chart import Chart
from leaderboard.studies.answers import Standings, words


def board_page(benchmark: Benchmark, asked: Asked | None = None, *, number: int | None = None) -> BoardPage:
    """Read a board, the latest where no number is given.

    A target that nothing is said about is replaced by the default, an order too; an older board that is not
    there is ignored.
    """
    asked = asked or Asked()
    board = latest_board(benchmark) if number is None else board_numbered(benchmark, number)
    entries = entries_of(board)
    standings = standings_with(board, entries)
    if not tells_costs(board):
        standings = without_costs(standings)
    target = choose_target(standings, asked.target)
    filters, believed = _filters(asked), words.whole_costs(standings)

    def reference(lines: list[Line]) -> Line | None:
        return choose_reference(lines, asked.vs, filters.keep(lines, believed))

    lines = lines_at(standings, target, entries)
    lines = beside(lines, reference(lines), standings)
    return BoardPage(
        board=board,
        standings=standings,
        target=target,
        order=Order.parse(asked.sort),
        filters=filters,
        lines=lines,
        latest=board.number if number is None else _latest_number(benchmark),
        reference=reference(lines),
        asked=asked,
        withdrawn=_withdrawn(board, entries),
        since=since(board, entries, asked.since),
    )


def choose_target(standings: Standings, asked: str = "") -> str:
    """The target asked for, if something is said about it; else the board's own."""
    told = standings.targets.get(asked)
    return asked if told and told.n_ranked else standings.target


def choose_reference(lines: Sequence[Line], asked: str = "", shown: Sequence[Line] = ()) -> Line | None:
    """The ranked agent asked for by its number; else the first that is shown, or the leader; may be None."""
    pk = number_in(asked)
    found = (line for line in lines if pk is not None and line.pk == pk and line.told.rank is not None)
    return next(found, leader_of(shown) or leader_of(lines))


def _filters(asked: Asked) -> Filters:
    return Filters.parse(
        find=asked.find,
        scaffold=asked.scaffold,
        model=asked.model,
        cost=asked.cost,
        show=asked.show,
        trust=asked.trust,
    )


def _withdrawn(board: Board, entries: Sequence[Entry]) -> frozenset[str]:
    """The agents of the board that are withdrawn by now; every withdrawal is another data version."""
    benchmark = board.benchmark
    gone = withdrawn_agents(benchmark) if board.data_version < benchmark.data_version else set()
    return frozenset(entry.name for entry in entries if entry.agent_id in gone)


def _latest_number(benchmark: Benchmark) -> int:
    return int(benchmark.boards.aggregate(Max("number"))["number__max"])


def cost_chart(benchmark: Benchmark, told: QueryDict) -> Chart | None:
    """The chart alone, of the latest board or of `?board=`."""
    try:
        return board_page(benchmark, Asked.of(told), number=number_in(told.get("board", ""))).chart
    except (NoBoardYet, NoSuchBoard):
        return None


@require_safe
@for_all
@kept(*(field.name for field in fields(Asked)))
def board(request: HttpRequest, slug: str, number: int | None = None) -> HttpResponse:
    benchmark = visible(slug)
    try:
        page = board_page(benchmark, Asked.of(request.GET), number=number)
    except NoBoardYet:
        return render(request, "pages/no_board.html", {"benchmark": benchmark, "here": "board"})
    except NoSuchBoard as missing:
        raise Http404(str(missing)) from missing
    return render(request, "pages/board.html", {"page": page, "benchmark": benchmark, "here": "board"})
