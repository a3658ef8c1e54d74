"""How to cite a board: its number, its date, its digest, and what the benchmark itself asks to be cited."""

import re

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from leaderboard.boards.models import Board
from leaderboard.boards.queries import NoBoardYet, NoSuchBoard, board_numbered, latest_board
from leaderboard.catalog.models import Benchmark
from leaderboard.pages.access import absolute, for_all, visible
from leaderboard.pages.feed import printable

TEXT = """\
{title}, board {number}. Bandstand, {day}. {address}
Digest of the board (SHA-256): {digest}

The benchmark itself: {citation}
Licence of its outcomes: {licence}

@misc{{{key},
  title = {{{{{bib_title}: leaderboard, board {number}}}}},
  howpublished = {{Bandstand, \\url{{{address}}}}},
  year = {{{year}}},
  month = {{{month}}},
  note = {{SHA-256 {digest}}}
}}
"""
OF_TEX = {sign: f"\\{sign}" for sign in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


@require_safe
@for_all
def cite(request: HttpRequest, slug: str) -> HttpResponse:
    """The latest board, or the one of `?board=`, as text."""
    benchmark, number = visible(slug), request.GET.get("board", "")
    try:
        is_number = number.isascii() and number.isdecimal()
        board = board_numbered(benchmark, int(number[:12])) if is_number else latest_board(benchmark)
    except (NoBoardYet, NoSuchBoard) as missing:
        raise Http404(str(missing)) from missing
    address = absolute(request, reverse("pages:version", args=[slug, board.number]))
    text = citation(benchmark, board, address=address)
    return HttpResponse(text, content_type="text/plain; charset=utf-8")


def citation(benchmark: Benchmark, board: Board, *, address: str) -> str:
    """The sentence, the benchmark's own citation as it stands, and BibTeX."""
    title = printable(benchmark.title)
    return TEXT.format(
        title=title,
        bib_title="".join(OF_TEX.get(sign, sign) for sign in title),
        number=board.number,
        day=f"{board.published_at.day} {board.published_at:%B %Y}",
        year=board.published_at.year,
        month=f"{board.published_at:%b}".lower(),
        address=address,
        digest=board.digest,
        key=f"{re.sub(r'[^a-z0-9-]', '-', benchmark.slug.lower())}-board-{board.number}",
        citation=benchmark.citation.strip() or "not stated",
        licence=benchmark.licence.strip() or "not stated",
    )
