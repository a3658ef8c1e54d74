"""The home page: a row for each public benchmark, the one that changed last first."""

from typing import Any

from django.conf import settings
from django.db.models import OuterRef, Prefetch, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from leaderboard.boards.models import Board, Entry
from leaderboard.boards.queries import visible_standings, with_costs_visible, withdrawn_since
from leaderboard.catalog.models import Visibility
from leaderboard.catalog.queries import visible_benchmarks
from leaderboard.pages.access import absolute, for_all
from leaderboard.pages.board import choose_reference
from leaderboard.pages.board_table import compare_to, cost_cell, leader_of, lines_at
from leaderboard.studies.answers import validated, words

N_FIRST = 5
FIND_FROM = 8  # benchmarks


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
    rows = [_row(board, words.withdrawn_text(withdrawn.get(board.pk, ()))) for board in boards]
    return rows + [{"benchmark": one} for one in benchmarks if not one.published]


def _row(board: Any, gone: str) -> dict[str, Any]:
    standings = visible_standings(board, board.listed)
    lines = lines_at(standings, standings.target, board.listed)
    leader = leader_of(lines)
    first = [line for line in lines[:N_FIRST] if line.target_result.rank is not None]
    compare_to(choose_reference(lines), lines, standings)
    return {
        "benchmark": board.benchmark,
        "board": board,
        "gone": gone,
        "verdict": words.sentence(words.could_be_first(standings)),
        "n_ranked": standings.targets[standings.target].n_ranked,
        "first": first,
        "leader": leader,
        "over": words.tasks_of(standings, standings.target),
        "cost": cost_cell({}, leader) if leader else "",
    }


@for_all
def home(request: HttpRequest) -> HttpResponse:
    every, find = listed_benchmarks(), request.GET.get("find", "").strip()[:255]
    found = [
        one
        for one in every
        if find.casefold() in f"{one['benchmark'].title} {one['benchmark'].description}".casefold()
    ]
    shown = {"listed": found, "n": len(every), "find": find, "has_find": len(every) >= FIND_FROM}
    return render(request, "pages/home.html", shown)


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


@for_all
def submit(request: HttpRequest) -> HttpResponse:
    shown = {"server": absolute(request, "/").rstrip("/"), "registration": settings.OPEN_REGISTRATION}
    return render(request, "pages/submit.html", shown)
