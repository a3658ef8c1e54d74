"""What other sites show of a board: a badge, a picture beside a link, and a small table in a frame.

A badge shows the rank range of an agent, never its rank alone. The picture has no words: those stand
in the title and description beside it, in the letters of whoever shows them.
"""

import struct
import zlib
from collections.abc import Collection, Sequence
from http import HTTPStatus
from typing import Any
from unicodedata import east_asian_width

import numpy as np
from csp.decorators import csp_replace
from django.db.models import F, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.clickjacking import xframe_options_exempt
from numpy.typing import NDArray

from leaderboard.boards.models import Board, Entry
from leaderboard.boards.queries import (
    NoBoardYet,
    head_of,
    latest_board,
    outlines,
    standings_of,
    withdrawn_agents,
)
from leaderboard.catalog.models import Benchmark, Trust
from leaderboard.pages.access import absolute, for_all, visible
from leaderboard.pages.for_programs import printable
from leaderboard.plots.marks import PAINT, LinearScale
from leaderboard.plots.ranks import RankMark, rank_bar, rank_mark
from leaderboard.studies.answers import table, words

# ---------------------------------------------------------------------------------------------------- badge

LONGEST = 32  # characters of a title
NO_BOARD, NOT_THERE = "no board yet", "not on the board"
ROOM = 8  # beside a text
NARROW, WIDE = 6.6, 11.5  # of a character at 11 px; no font is measured, and `textLength` settles the rest
LABEL, VALUE = "#1c2226", "#0b5563"  # ink and lead of the pages; white on them has 16 and 8 to 1


@for_all
def badge(request: HttpRequest, slug: str) -> HttpResponse:
    benchmark = visible(slug)
    value, over = badge_text(benchmark, request.GET.get("agent"))
    title = printable(benchmark.title)
    label = title if len(title) <= LONGEST else f"{title[: LONGEST - 1]}…"
    return HttpResponse(
        draw_badge(label=label, value=value, title=f"{title}: {value}{over}"),
        content_type="image/svg+xml",
        status=HTTPStatus.NOT_FOUND if value == NOT_THERE else HTTPStatus.OK,
    )


def badge_text(benchmark: Benchmark, agent: str | None) -> tuple[str, str]:
    """Of the latest board, or of an agent by its key, and over which tasks; who is unlisted is nobody."""
    board = benchmark.boards.select_related("policy").order_by("-number").first()
    if board is None:
        return NO_BOARD, ""
    target = head_of(board).targets[board.target]
    over = f", on {words.task_set(board.target, target.n_tasks)}"
    if agent is None:
        return words.could_be_first(outlines([board])[board.pk]), over
    entry = None
    if agent.isascii() and agent.isdecimal():
        key = int(agent[:18])
        of_agent = Q(agent=key) | Q(agent__merged=key)
        entry = board.entries.filter(of_agent).select_related("agent").first()
    if entry is None:
        return NOT_THERE, ""
    if board.data_version < benchmark.data_version and entry.agent_id in withdrawn_agents(benchmark):
        return "withdrawn", ""
    return ranks_of(entry, board, target.n_ranked), over


def ranks_of(entry: Entry, board: Board, n_ranked: int) -> str:
    at = entry.line["at"][board.target]
    if at["rank"] is None:
        return "not ranked"
    if at["rank_lower"] is None:
        return f"one of {n_ranked:,}, ranks not known"
    if at["rank_lower"] == at["rank_upper"]:
        return f"rank {at['rank_lower']:,} of {n_ranked:,}"
    return f"ranks {at['rank_lower']:,}–{at['rank_upper']:,} of {n_ranked:,}"


def draw_badge(*, label: str, value: str, title: str) -> str:
    """Two words in two boxes; `title` is read out in their place, and shown when they are pointed at."""
    left, right = width_of(label), width_of(value)
    boxes = [
        {"text": text, "x": f"{x:g}", "width": f"{width:g}", "fill": fill}
        | {"middle": f"{x + width / 2:g}", "length": f"{max(width - 2 * ROOM, 1):g}"}
        for text, x, width, fill in ((label, 0, left, LABEL), (value, left, right, VALUE))
    ]
    return render_to_string("pages/badge.svg", {"title": title, "boxes": boxes, "width": f"{left + right:g}"})


def width_of(text: str) -> float:
    n_wide = sum(east_asian_width(sign) in "WF" for sign in text)
    return round(n_wide * WIDE + (len(text) - n_wide) * NARROW + 2 * ROOM, 1)


# --------------------------------------------------------------------------------------------------- picture

WIDTH, HEIGHT = 1200, 630  # what most sites ask for
MAX_AGENTS, RECALLED = 10, "recalled"
MARGIN, ABOVE = 80, 65
THICK, THIN, EDGE = 26, 10, 3
SIGNATURE = b"\x89PNG\r\n\x1a\n"
RGB = 2  # the colour type
# The ends of the rank range of an agent (its rank where there is none) around its rank, and how it is marked.
Ranked = tuple[int, int, int, RankMark]


@for_all
def card(request: HttpRequest, slug: str) -> HttpResponse:
    benchmark = visible(slug)
    ranked, n_ranked = first_of(benchmark)
    if ranked:
        return HttpResponse(draw_card(ranked, n_ranked), content_type="image/png")
    if bounds := bounds_of(benchmark):
        return HttpResponse(draw_bounds(bounds), content_type="image/png")
    raise Http404("No ranks were published of this benchmark.")


def bounds_of(benchmark: Benchmark) -> list[table.BoundsRow]:
    """Between which scores agents of the latest board lie, where nobody is ranked: two queries."""
    board = benchmark.boards.order_by("-number").first()
    if board is None or board.content["targets"][board.target]["n_ranked"]:
        return []
    return table.bounds(standings_of(board))[:MAX_AGENTS]


def first_of(benchmark: Benchmark) -> tuple[list[Ranked], int]:
    """The first agents of the latest board that make headlines, and how many are ranked: two queries."""
    board = benchmark.boards.order_by("-number").first()
    if board is None:
        return [], 0
    target = board.content["targets"][board.target]
    names = ("rank_lower", "rank", "rank_upper", "tied_with")
    fields = [F(f"line__at__{board.target}__{name}") for name in names]
    levels = [*Trust.values][[*Trust.values].index(head_of(board).headline_from) :]
    ranked = board.entries.filter(rank__isnull=False, line__trust__in=levels)
    entries = ranked.exclude(line__marks__contains=[RECALLED]).order_by("position")
    rows = list(entries.values_list("name", "position", *fields)[:MAX_AGENTS])
    first = set(target["may_be_first"])
    tied = tied_positions(rows[0][1], rows[0][-1]) if rows and rows[0][2] else None
    shown = [
        (
            lower or rank,
            rank,
            upper or rank,
            rank_mark(could_be_best=name in first, is_tied=is_in(place, tied)),
        )
        for name, place, lower, rank, upper, _ in rows
    ]
    return shown, target["n_ranked"]


def tied_positions(leader: int, ties: Sequence[Sequence[int]]) -> set[int]:
    """Of the leader, and of who is tied with it."""
    return {leader, *(place for first, last in ties for place in range(first, last + 1))}


def is_in(place: int, tied: Collection[int] | None) -> bool | None:
    return None if tied is None else place in tied


def draw_card(ranked: Sequence[Ranked], n_ranked: int) -> bytes:
    """A bar an agent over ranks 1 to n with a dot at its rank.

    It is filled where the agent could be the best, outlined where it is not clearly worse, thin where it is.
    """
    canvas = Canvas(WIDTH, HEIGHT)
    x = LinearScale(1, max(n_ranked, 2), MARGIN, WIDTH - MARGIN)
    row = (HEIGHT - 2 * ABOVE) / MAX_AGENTS
    for i, (lower, rank, upper, marked) in enumerate(ranked):
        middle = ABOVE + (i + 0.5) * row
        thick, fill = (THICK, "lead") if marked in ("first", "tied") else (THIN, "worse")
        start, end = x(lower) - THICK / 2, x(upper) + THICK / 2
        canvas.bar(MARGIN - THICK, middle - 1, WIDTH - 2 * (MARGIN - THICK), 2, fill="grid")
        canvas.bar(start, middle - thick / 2, end - start, thick, fill=fill)
        if marked == "tied":
            top, width, height = middle - thick / 2 + EDGE, end - start - 2 * EDGE, thick - 2 * EDGE
            canvas.bar(start + EDGE, top, width, height, fill="paper")
        canvas.disc(x(rank), middle, THICK / 2 - 1, fill="ink")
        canvas.disc(x(rank), middle, THICK / 2 - 5, fill="paper")
    return canvas.png()


def draw_bounds(bounds: Sequence[table.BoundsRow]) -> bytes:
    """A bar an agent over 0 to 100%: from the score if all missing results failed, to that if all passed."""
    canvas = Canvas(WIDTH, HEIGHT)
    x, row = LinearScale(0, 1, MARGIN, WIDTH - MARGIN), (HEIGHT - 2 * ABOVE) / MAX_AGENTS
    for i, one in enumerate(bounds):
        middle, start = ABOVE + (i + 0.5) * row, x(one.low) - THICK / 2
        canvas.bar(MARGIN - THICK, middle - 1, WIDTH - 2 * (MARGIN - THICK), 2, fill="grid")
        canvas.bar(start, middle - THICK / 2, x(one.high) + THICK / 2 - start, THICK, fill="tied")
    return canvas.png()


class Canvas:
    def __init__(self, width: int, height: int) -> None:
        self._pixels = np.empty((height, width, 3), dtype=np.uint8)
        self._pixels[:] = _rgb("paper")

    def bar(self, x: float, y: float, width: float, height: float, *, fill: str) -> None:
        radius = height / 2
        ends = (x + radius, x + width - radius)
        for end in ends:
            self.disc(end, y + radius, radius, fill=fill)
        left, right = (round(end) for end in ends)
        self._pixels[round(y) : round(y + height), left:right] = _rgb(fill)

    def disc(self, x: float, y: float, radius: float, *, fill: str) -> None:
        """A pixel on the edge takes as much of the colour as about lies inside."""
        height, width = self._pixels.shape[:2]
        top, bottom = max(0, int(y - radius) - 1), min(height, int(y + radius) + 2)
        left, right = max(0, int(x - radius) - 1), min(width, int(x + radius) + 2)
        down, across = np.ogrid[top:bottom, left:right]
        away = np.hypot(down + 0.5 - y, across + 0.5 - x)
        inside = np.clip(radius + 0.5 - away, 0, 1)[..., None]
        part = self._pixels[top:bottom, left:right]
        part[:] = np.rint(part + inside * (_rgb(fill) - part.astype(float))).astype(np.uint8)

    def png(self) -> bytes:
        """PNG (RFC 2083): eight bits a sample, every row with filter 0, in one compressed block."""
        height, width = self._pixels.shape[:2]
        rows = np.zeros((height, 1 + width * 3), dtype=np.uint8)
        rows[:, 1:] = self._pixels.reshape(height, width * 3)
        head = struct.pack(">IIBBBBB", width, height, 8, RGB, 0, 0, 0)
        content = zlib.compress(rows.tobytes(), 6)
        return SIGNATURE + _chunk(b"IHDR", head) + _chunk(b"IDAT", content) + _chunk(b"IEND", b"")


def _rgb(name: str) -> NDArray[np.uint8]:
    return np.frombuffer(bytes.fromhex(PAINT[name][1:]), dtype=np.uint8)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


# ----------------------------------------------------------------------------------------------------- frame

N_ROWS, MAX_ROWS = 10, 50


@for_all
@xframe_options_exempt
@csp_replace({"frame-ancestors": ["*"]})  # type: ignore[arg-type]  # its types know no arguments
def embed(request: HttpRequest, slug: str) -> HttpResponse:
    """Other sites may frame this page alone; on it there is nothing to press but links that lead out.

    The latest board, and of its agents what is shown: three queries, and two where the data are newer.
    """
    benchmark, n = visible(slug), request.GET.get("n", "")
    wanted = int(n[:4]) if n.isascii() and n.isdecimal() else N_ROWS
    try:
        page = _embed_page(latest_board(benchmark), min(max(wanted, 1), MAX_ROWS))
    except NoBoardYet:
        page = None
    whole = absolute(request, reverse("pages:board", args=[slug]))
    return render(request, "pages/embed.html", {"page": page, "benchmark": benchmark, "whole": whole})


def _embed_page(board: Board, n: int) -> dict[str, Any]:
    standings, benchmark = outlines([board])[board.pk], board.benchmark
    withdrawn: set[str] = set()
    if board.data_version < benchmark.data_version:
        entries = board.entries.filter(agent__in=withdrawn_agents(benchmark))
        withdrawn = set(entries.values_list("name", flat=True))
    n_ranked = standings.targets[board.target].n_ranked
    ranked = [line for line in words.in_order(standings) if line.at[board.target].rank is not None]
    heading = {line.agent for line in ranked if words.in_headlines(standings, line)}
    first = heading.intersection(standings.targets[board.target].may_be_first)
    leader = next((line for line in ranked if line.agent in heading), ranked[0] if ranked else None)
    places, tied = {line.agent: place for place, line in enumerate(standings.agents)}, None
    if leader and leader.at[board.target].rank_lower is not None:
        ties = board.entries.values_list(f"line__at__{board.target}__tied_with", flat=True)
        tied = tied_positions(places[leader.agent], ties.get(position=places[leader.agent]))
    rows = []  # the rank range of each, drawn, and the score
    for line in ranked[:n]:
        at, ranks, bar = line.at[board.target], "not known", ""
        if at.rank is not None and at.rank_lower is not None and at.rank_upper is not None:
            ranks = f"{at.rank_lower:,}–{at.rank_upper:,}"
            is_tied = is_in(places[line.agent], tied)
            marked = rank_mark(could_be_best=line.agent in first, is_tied=is_tied)
            bar = rank_bar(at.rank, (at.rank_lower, at.rank_upper, marked), n_ranked)
        rows.append((line, ranks, bar, f"{'~' if at.estimated else ''}{words.percent(at.score or 0.0)}"))
    return {
        "board": board,
        "headline": words.headline(standings),
        "best": words.best_text(standings),
        "tells_trust": words.tells_trust(standings),
        "over": words.tasks_of(standings, board.target),
        "n_ranked": n_ranked,
        "withdrawn": withdrawn,
        "rows": rows,
    }
