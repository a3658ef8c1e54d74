"""The home page: a row for each public benchmark, the one that changed last first."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from django.conf import settings
from django.db.models import OuterRef, Prefetch, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from leaderboard.boards.models import Board, Entry
from leaderboard.boards.queries import tells_costs, visible_standings, with_costs_visible, withdrawn_since
from leaderboard.catalog.models import Visibility
from leaderboard.catalog.queries import visible_benchmarks
from leaderboard.pages.access import absolute, for_all
from leaderboard.pages.board import choose_reference
from leaderboard.pages.board_table import compare_to, cost_cell, lines_at
from leaderboard.studies.answers import validated, words

N_FIRST = 5
FIND_FROM = 8  # benchmarks


MAX_KEPT = 1_000
SHOWN: dict[tuple[Any, ...], dict[str, Any]] = {}  # what was shown of boards, which do not change


def listed_benchmarks() -> list[dict[str, Any]]:
    """The public benchmarks, the one with the latest board first; those without one last, by title."""
    number = Board.objects.filter(benchmark=OuterRef("benchmark")).order_by("-number").values("number")[:1]
    latest = with_costs_visible(Board.objects.filter(number=Subquery(number)).select_related("policy"))
    published = Prefetch("boards", latest, to_attr="published")
    public = visible_benchmarks(None).filter(visibility=Visibility.PUBLIC)
    benchmarks: list[Any] = list(public.prefetch_related(published).order_by("title", "slug"))
    boards = sorted(
        (board for one in benchmarks for board in one.published),
        key=lambda board: board.published_at,
        reverse=True,
    )
    withdrawn, shown = withdrawn_since(boards), _shown(boards)
    rows = [
        {
            "benchmark": board.benchmark,
            "board": board,
            "gone": words.withdrawn_text(withdrawn.get(board.pk, ())),
        }
        | shown[board.pk]
        for board in boards
    ]
    return rows + [{"benchmark": one} for one in benchmarks if not one.published]


def _shown(boards: Sequence[Board]) -> dict[int, dict[str, Any]]:
    """What is shown of each board: agents are read of those alone that this process has not shown yet."""
    # A name may be erased from a board: then another version is shown.
    keys = {
        board.pk: (board.pk, board.digest, board.benchmark.shown_version, tells_costs(board))
        for board in boards
    }
    shown = {pk: SHOWN[key] for pk, key in keys.items() if key in SHOWN}
    new = {board.pk: board for board in boards if board.pk not in shown}
    entries = Entry.objects.filter(board__in=new).order_by("board", "position") if new else ()
    for pk, listed in groupby(entries, key=lambda entry: entry.board_id):
        shown[pk] = _row(new[pk], list(listed))
        if len(SHOWN) >= MAX_KEPT:
            SHOWN.clear()
        SHOWN[keys[pk]] = shown[pk]
    return shown


def _row(board: Board, entries: Sequence[Entry]) -> dict[str, Any]:
    standings = visible_standings(board, entries)
    lines = lines_at(standings, standings.target, entries)
    # Those that headlines are made from, as on the board itself.
    named = [
        line
        for line in lines
        if line.target_result.rank is not None and words.in_headlines(standings, line.entry)
    ]
    leader = named[0] if named else None
    n_ranked = standings.targets[standings.target].n_ranked
    compare_to(choose_reference(lines), lines, standings)
    return {
        "verdict": words.sentence(words.could_be_first(standings)),
        "n_ranked": n_ranked,
        "n_listed": len(lines),
        "first": [
            (line.pk, line.entry.agent, line.target_result, line.bar if n_ranked > 1 else "")
            for line in named[:N_FIRST]
        ],
        "among": words.among_text(standings),
        "best": leader.target_result if leader else None,
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
