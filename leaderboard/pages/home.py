"""The home page: a row for each public benchmark, the one that changed last first."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import OuterRef, Prefetch, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from leaderboard.boards.models import Board, Entry
from leaderboard.boards.presentation import tells_costs, without_costs
from leaderboard.boards.queries import with_costs_visible, withdrawn_since
from leaderboard.boards.reading import standings_with
from leaderboard.catalog.models import Benchmark, Visibility
from leaderboard.catalog.queries import visible_benchmarks
from leaderboard.pages.access import for_all
from leaderboard.pages.board import choose_reference
from leaderboard.pages.lines import compare_to, lines_at
from leaderboard.plots.ranks import N_STRIP, rank_strip
from leaderboard.studies.answers import Standings, words


@dataclass(frozen=True)
class Listed:
    """A benchmark on the home page, with its latest board or none."""

    benchmark: Benchmark
    board: Board | None
    standings: Standings | None
    gone: str = ""

    @property
    def verdict_parts(self) -> tuple[str, str]:
        return words.headline_parts(self.standings) if self.standings else ("", "")

    @property
    def n_ranked(self) -> int:
        return self.standings.targets[self.standings.target].n_ranked if self.standings else 0

    @property
    def strip(self) -> SafeString | str:
        """The ranks that the first ten may hold; empty where nobody can say, and for a single agent."""
        if self.standings is None or self.n_ranked < 2:
            return ""
        lines = lines_at(self.standings, self.standings.target)
        shown = compare_to(lines[:N_STRIP], choose_reference(lines), self.standings)
        bars = [
            (line.target_result.rank_lower, line.target_result.rank_upper, line.standing)
            for line in shown
            if line.target_result.rank_lower is not None and line.target_result.rank_upper is not None
        ]
        return rank_strip(bars, self.n_ranked) if bars else ""


def listed_benchmarks() -> list[Listed]:
    """The public benchmarks, the one with the latest board first; those without one last, by title."""
    latest = Prefetch("boards", _latest_boards(), to_attr="published")
    public = visible_benchmarks(None).filter(visibility=Visibility.PUBLIC)
    listed = [_as_listed(one) for one in public.prefetch_related(latest).order_by("title", "slug")]
    return _by_last_change(_with_the_withdrawn(listed))


def _with_the_withdrawn(listed: Sequence[Listed]) -> list[Listed]:
    """Say who was withdrawn since a board."""
    withdrawn_names = withdrawn_since([one.board for one in listed if one.board])
    return [
        replace(one, gone=words.withdrawn_text(withdrawn_names.get(one.board.pk, ()) if one.board else ()))
        for one in listed
    ]


def _by_last_change(listed: Sequence[Listed]) -> list[Listed]:
    changed = [(one.board.published_at, one) for one in listed if one.board is not None]
    last = sorted(changed, key=lambda pair: pair[0], reverse=True)
    return [one for _, one in last] + [one for one in listed if one.board is None]


def _as_listed(benchmark: Any) -> Listed:
    for board in benchmark.published:
        standings = standings_with(board, board.listed)
        return Listed(benchmark, board, standings if tells_costs(board) else without_costs(standings))
    return Listed(benchmark, None, None)


def _latest_boards() -> QuerySet[Board]:
    """The latest board of each benchmark, with its entries in `listed`."""
    number = Board.objects.filter(benchmark=OuterRef("benchmark")).order_by("-number").values("number")[:1]
    entries = Prefetch("entries", Entry.objects.order_by("position"), to_attr="listed")
    boards = Board.objects.filter(number=Subquery(number)).select_related("policy")
    return with_costs_visible(boards).prefetch_related(entries)


@require_safe
@for_all
def home(request: HttpRequest) -> HttpResponse:
    return render(request, "pages/home.html", {"listed": listed_benchmarks()})
