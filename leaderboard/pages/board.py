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
from leaderboard.pages.access import for_all, visible
from leaderboard.pages.board_page import BoardPage, leader_of, since
from leaderboard.pages.board_query import BoardQuery, number_in
from leaderboard.pages.caching import cached_page
from leaderboard.pages.filters import Filters
from leaderboard.pages.lines import BoardLine, compare_to, lines_at
from leaderboard.pages.order import Order
from leaderboard.plots.chart import Chart
from leaderboard.studies.answers import Standings, words


def board_page(
    benchmark: Benchmark, query: BoardQuery | None = None, *, number: int | None = None
) -> BoardPage:
    """Read a board, the latest where no number is given.

    A target that nothing is said about is replaced by the default, an order too; an older board that is not
    there is ignored.
    """
    query = query or BoardQuery()
    board = latest_board(benchmark) if number is None else board_numbered(benchmark, number)
    entries = entries_of(board)
    standings = standings_with(board, entries)
    if not tells_costs(board):
        standings = without_costs(standings)
    target = choose_target(standings, query.target)
    filters, believed = _filters(query), words.whole_costs(standings)

    def reference(lines: list[BoardLine]) -> BoardLine | None:
        return choose_reference(lines, query.vs, filters.keep(lines, believed))

    lines = lines_at(standings, target, entries)
    lines = compare_to(lines, reference(lines), standings)
    return BoardPage(
        board=board,
        standings=standings,
        target=target,
        order=Order.parse(query.sort),
        filters=filters,
        lines=lines,
        latest=board.number if number is None else _latest_number(benchmark),
        reference=reference(lines),
        query=query,
        withdrawn=_withdrawn_names(board, entries),
        since=since(board, entries, query.since),
    )


def choose_target(standings: Standings, wanted: str = "") -> str:
    """The target asked for, if something is said about it; else the board's own."""
    target = standings.targets.get(wanted)
    return wanted if target and target.n_ranked else standings.target


def choose_reference(
    lines: Sequence[BoardLine], wanted: str = "", shown: Sequence[BoardLine] = ()
) -> BoardLine | None:
    """The ranked agent asked for by its number; else the first that is shown, or the leader; may be None."""
    pk = number_in(wanted)
    matching = (
        line for line in lines if pk is not None and line.pk == pk and line.target_result.rank is not None
    )
    return next(matching, leader_of(shown) or leader_of(lines))


def _filters(query: BoardQuery) -> Filters:
    return Filters.parse(
        find=query.find,
        scaffold=query.scaffold,
        model=query.model,
        cost=query.cost,
        show=query.show,
        trust=query.trust,
    )


def _withdrawn_names(board: Board, entries: Sequence[Entry]) -> frozenset[str]:
    """The agents of the board that are withdrawn by now; every withdrawal is another data version."""
    benchmark = board.benchmark
    withdrawn_ids = withdrawn_agents(benchmark) if board.data_version < benchmark.data_version else set()
    return frozenset(entry.name for entry in entries if entry.agent_id in withdrawn_ids)


def _latest_number(benchmark: Benchmark) -> int:
    return int(benchmark.boards.aggregate(Max("number"))["number__max"])


def cost_chart(benchmark: Benchmark, params: QueryDict) -> Chart | None:
    """The chart alone, of the latest board or of `?board=`."""
    try:
        return board_page(benchmark, BoardQuery.of(params), number=number_in(params.get("board", ""))).chart
    except (NoBoardYet, NoSuchBoard):
        return None


@require_safe
@for_all
@cached_page(*(field.name for field in fields(BoardQuery)))
def board(request: HttpRequest, slug: str, number: int | None = None) -> HttpResponse:
    benchmark = visible(slug)
    try:
        page = board_page(benchmark, BoardQuery.of(request.GET), number=number)
    except NoBoardYet:
        return render(request, "pages/no_board.html", {"benchmark": benchmark, "here": "board"})
    except NoSuchBoard as missing:
        raise Http404(str(missing)) from missing
    return render(request, "pages/board.html", {"page": page, "benchmark": benchmark, "here": "board"})
