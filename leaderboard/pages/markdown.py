"""A board as Markdown, to paste elsewhere: the rows that the page shows, under its verdict."""

import re
from collections.abc import Iterable, Iterator

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from leaderboard.boards.queries import NoBoardYet, NoSuchBoard
from leaderboard.pages.access import absolute, for_all, visible
from leaderboard.pages.board import board_page
from leaderboard.pages.board_page import BoardPage
from leaderboard.pages.board_query import BoardQuery, number_in
from leaderboard.pages.lines import BoardLine
from leaderboard.studies.answers import words

SIGNS = re.compile(r"([\\`*_\[\]<>|~#&]|^[-+=])")  # that Markdown may take for something else
LEFT = ("Agent", "Trust", "Date", "Marks")
PLAIN = ("Rank", "May hold", "Agent", "Trust", "95%", "Cost", "Trials", "Date")


@require_safe
@for_all
def markdown(request: HttpRequest, slug: str) -> HttpResponse:
    """The latest board, or that of `?board=`."""
    benchmark = visible(slug)
    try:
        page = board_page(
            benchmark, BoardQuery.of(request.GET), number=number_in(request.GET.get("board", ""))
        )
    except (NoBoardYet, NoSuchBoard) as missing:
        raise Http404(str(missing)) from missing
    address = absolute(request, reverse("pages:version", args=[slug, page.board.number]))
    text = "\n\n".join(_parts(page, benchmark.title, address))
    return HttpResponse(f"{text}\n", content_type="text/markdown; charset=utf-8")


def _parts(page: BoardPage, title: str, address: str) -> Iterator[str]:
    yield f"## {_escaped(title)}"
    yield _escaped(page.headline)
    if second := page.second_run:
        yield _escaped(second)
    yield _escaped(page.scores)
    if not page.is_latest:
        yield f"Not the latest board: board {page.latest} is."
    if page.rows:
        yield "\n".join(_table(page))
    for notice in page.notices:
        yield _escaped(notice)
    if ranks := page.ranks_text:
        yield _escaped(ranks)
    yield (
        _escaped(words.sentence(page.counted))
        + f" Board {page.board.number}, {page.board.published_at:%Y-%m-%d}: <{address}>"
    )


def _table(page: BoardPage) -> Iterator[str]:
    """The columns of the page's view; costs and dates as they are stated."""
    heads = [
        head for head in page.heads if page.is_wide or head in (*PLAIN, page.score_head, page.other_head)
    ]
    yield _row(heads)
    yield _row("---" if head in LEFT else "--:" for head in heads)
    for line in page.rows:
        yield _row(_cell(page, line, head) for head in heads)


def _cell(page: BoardPage, line: BoardLine, head: str) -> str:
    text = _escaped(line.cells[head])
    is_gone = head == "Agent" and line.entry.agent in page.withdrawn
    return f"~~{text}~~ withdrawn since" if is_gone else text


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """Text in which nothing is taken for Markdown or HTML, in one line."""
    return SIGNS.sub(r"\\\1", " ".join(text.split()))
