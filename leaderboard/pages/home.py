"""The home page: a row for each public benchmark, the one that changed last first."""

from typing import Any

from django.db.models import OuterRef, Prefetch, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from leaderboard.boards.models import Board, Entry
from leaderboard.boards.queries import visible_standings, with_costs_visible, withdrawn_since
from leaderboard.catalog.models import Visibility
from leaderboard.catalog.queries import visible_benchmarks
from leaderboard.pages.access import for_all
from leaderboard.pages.board import choose_reference
from leaderboard.pages.board_table import compare_to, lines_at
from leaderboard.plots.ranks import N_STRIP, rank_strip
from leaderboard.studies.answers import Standings, validated, words


def listed_benchmarks() -> list[dict[str, Any]]:
    """The public benchmarks, the one with the latest board first; those without one last, by title."""
    number = Board.objects.filter(benchmark=OuterRef("benchmark")).order_by("-number").values("number")[:1]
    entries = Prefetch("entries", Entry.objects.order_by("position"), to_attr="listed")
    latest = with_costs_visible(Board.objects.filter(number=Subquery(number)).select_related("policy"))
    published = Prefetch("boards", latest.prefetch_related(entries), to_attr="published")
    public = visible_benchmarks(None).filter(visibility=Visibility.PUBLIC)
    benchmarks: list[Any] = list(public.prefetch_related(published).order_by("title", "slug"))
    boards = sorted(
        (board for one in benchmarks for board in one.published),
        key=lambda board: board.published_at,
        reverse=True,
    )
    withdrawn = withdrawn_since(boards)
    rows = []
    for board in boards:
        standings = visible_standings(board, board.listed)
        rows.append(
            {
                "benchmark": board.benchmark,
                "board": board,
                "standings": standings,
                "gone": words.withdrawn_text(withdrawn.get(board.pk, ())),
                "verdict_parts": words.headline_parts(standings),
                "n_ranked": standings.targets[standings.target].n_ranked,
                "strip": _strip(standings),
            }
        )
    return rows + [{"benchmark": one} for one in benchmarks if not one.published]


def _strip(standings: Standings) -> str:
    n = standings.targets[standings.target].n_ranked
    if n < 2:
        return ""
    lines = lines_at(standings, standings.target)
    compare_to(choose_reference(lines), lines[:N_STRIP], standings)
    bars = [
        (line.target_result.rank_lower, line.target_result.rank_upper, line.standing)
        for line in lines[:N_STRIP]
        if line.target_result.rank_lower is not None and line.target_result.rank_upper is not None
    ]
    return rank_strip(bars, n) if bars else ""


@for_all
def home(request: HttpRequest) -> HttpResponse:
    return render(request, "pages/home.html", {"listed": listed_benchmarks()})


# ---------------------------------------------------------------------------------------------------- methods

TARGETS = {
    words.sentence(words.TARGETS[name].format(n="…"))[:-1]: meaning for name, meaning in words.COVERS.items()
}


@for_all
def methods(request: HttpRequest) -> HttpResponse:
    shown = {
        "zero": words.ZERO,
        "covers": words.COVERS,
        "targets": TARGETS,
        "marks": words.MARKS,
        "phases": {phase.replace("_", " "): meaning for phase, meaning in words.PHASES.items()},
        "protocols": {one.label: words.sentence(one.meaning) for one in validated.PROTOCOLS.values()},
        "figures": validated.LEGEND,
        "trust": {words.TRUST[level]: text for level, text in words.TRUST_MEANS.items()},
    }
    return render(request, "pages/methods.html", shown)
