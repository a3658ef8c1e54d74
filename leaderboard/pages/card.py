"""The picture that other sites show beside a link to a board: the ranks that its first agents may hold.

A bar is an outline where no operator verified the agent. It holds no words: those stand in the title and
description beside it, in the letters of whoever shows them.
"""

from collections.abc import Sequence
from typing import NamedTuple

from django.db.models import F
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from leaderboard.boards.reading import head_of
from leaderboard.catalog.models import Benchmark, Trust
from leaderboard.pages.access import for_all, visible
from leaderboard.plots.raster import Canvas
from leaderboard.plots.scales import LinearScale

WIDTH, HEIGHT = 1200, 630  # what most sites ask for
MAX_AGENTS, RECALLED = 10, "recalled"
BESIDE, ABOVE = 80, 65
THICK, THIN, EDGE = 26, 10, 3


class Ranked(NamedTuple):
    """The ranks that an agent may hold (its own where no others are known); whether it could be the best."""

    lower: int
    rank: int
    upper: int
    is_first: bool
    is_verified: bool = True


@require_safe
@for_all
def card(request: HttpRequest, slug: str) -> HttpResponse:
    benchmark = visible(slug)
    ranked, n_ranked = first_of(benchmark)
    if not ranked:
        raise Http404("No ranks were published of this benchmark.")
    return HttpResponse(draw_card(ranked, n_ranked), content_type="image/png")


def first_of(benchmark: Benchmark) -> tuple[list[Ranked], int]:
    """The first agents of the latest board that make headlines, and how many are ranked: two queries."""
    board = benchmark.boards.order_by("-number").first()
    if board is None:
        return [], 0
    target = board.content["targets"][board.target]
    fields = [F(f"at__{board.target}__{name}") for name in ("rank_lower", "rank", "rank_upper")]
    levels = [*Trust.values][[*Trust.values].index(head_of(board).headline_from) :]
    ranked = board.entries.filter(rank__isnull=False, trust__in=levels)
    entries = ranked.exclude(marks__contains=[RECALLED]).order_by("position")
    rows = entries.values_list("name", "trust", *fields)[:MAX_AGENTS]
    first = [
        Ranked(lower or rank, rank, upper or rank, name in target["may_be_first"], trust == Trust.VERIFIED)
        for name, trust, lower, rank, upper in rows
    ]
    return first, target["n_ranked"]


def draw_card(ranked: Sequence[Ranked], n_ranked: int) -> bytes:
    """A bar an agent over ranks 1 to n, thick where it could be the best, with a dot at its rank."""
    canvas = Canvas(WIDTH, HEIGHT)
    x = LinearScale(1, max(n_ranked, 2), BESIDE, WIDTH - BESIDE)
    row = (HEIGHT - 2 * ABOVE) / MAX_AGENTS
    for i, one in enumerate(ranked):
        middle = ABOVE + (i + 0.5) * row
        thick = THICK if one.is_first else THIN
        start, end = x(one.lower) - THICK / 2, x(one.upper) + THICK / 2
        canvas.bar(BESIDE - THICK, middle - 1, WIDTH - 2 * (BESIDE - THICK), 2, fill="grid")
        fill = "tied" if one.is_first else "worse"
        canvas.bar(start, middle - thick / 2, end - start, thick, fill=fill)
        if not one.is_verified:
            canvas.bar(
                start + EDGE,
                middle - thick / 2 + EDGE,
                end - start - 2 * EDGE,
                thick - 2 * EDGE,
                fill="paper",
            )
        canvas.disc(x(one.rank), middle, THICK / 2 - 1, fill="ink")
        canvas.disc(x(one.rank), middle, THICK / 2 - 5, fill="paper")
    return canvas.png()
