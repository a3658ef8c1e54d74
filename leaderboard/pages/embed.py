"""A small table of the first agents, to stand in a frame on another site."""

from dataclasses import dataclass
from typing import Any

from csp.decorators import csp_replace
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.safestring import SafeString
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.http import require_safe

from leaderboard.boards.headlines import outlines
from leaderboard.boards.models import Board
from leaderboard.boards.queries import NoBoardYet, latest_board, withdrawn_agents
from leaderboard.catalog.models import Benchmark
from leaderboard.pages.access import absolute, for_all, visible
from leaderboard.plots.ranks import RankBar, rank_bar
from leaderboard.studies.answers import Line, Standings, words

N_ROWS, MAX_ROWS = 10, 50


@dataclass(frozen=True)
class EmbedRow:
    line: Line
    target: str
    n_ranked: int

    @property
    def target_result(self) -> Any:
        return self.line.at[self.target]

    @property
    def ranks(self) -> str:
        """The ranks that it may hold, and never one alone that was not told for sure."""
        if self.target_result.rank_lower is None:
            return "not known"
        return f"{self.target_result.rank_lower:,}–{self.target_result.rank_upper:,}"

    @property
    def score(self) -> str:
        return f"{'~' if self.target_result.estimated else ''}{words.percent(self.target_result.score)}"

    @property
    def drawn(self) -> SafeString | str:
        if self.target_result.rank_lower is None:
            return ""
        ranks: RankBar = (self.target_result.rank_lower, self.target_result.rank_upper, "tied")
        return rank_bar(self.target_result.rank, ranks, self.n_ranked)


@dataclass(frozen=True)
class EmbedPage:
    board: Board
    standings: Standings
    n: int
    withdrawn: frozenset[str] = frozenset()

    @property
    def headline(self) -> str:
        return words.headline(self.standings)

    @property
    def tells_trust(self) -> bool:
        return words.tells_trust(self.standings)

    @property
    def over(self) -> str:
        return words.tasks_of(self.standings, self.board.target)

    @property
    def n_ranked(self) -> int:
        return self.standings.targets[self.board.target].n_ranked

    @property
    def rows(self) -> list[EmbedRow]:
        target = self.board.target
        ranked = [line for line in words.in_order(self.standings) if line.at[target].rank is not None]
        return [EmbedRow(line, target, self.n_ranked) for line in ranked[: self.n]]


def embed_page(benchmark: Benchmark, *, n: str = "") -> EmbedPage:
    """The latest board, and of its agents what is shown: two queries, and two where the data are newer.

    Raises NoBoardYet.
    """
    board = latest_board(benchmark)
    wanted = int(n[:4]) if n.isascii() and n.isdecimal() else N_ROWS
    return EmbedPage(
        board, outlines([board])[board.pk], min(max(wanted, 1), MAX_ROWS), _withdrawn_names(benchmark, board)
    )


def _withdrawn_names(benchmark: Benchmark, board: Board) -> frozenset[str]:
    """The agents by name of which everything was taken back since."""
    if board.data_version >= benchmark.data_version:
        return frozenset()
    entries = board.entries.filter(agent__in=withdrawn_agents(benchmark))
    return frozenset(entries.values_list("name", flat=True))


@require_safe
@for_all
@xframe_options_exempt
@csp_replace({"frame-ancestors": ["*"]})  # type: ignore[arg-type]  # its types know no arguments
def embed(request: HttpRequest, slug: str) -> HttpResponse:
    """Other sites may frame this page alone; on it there is nothing to press but links that lead out."""
    benchmark = visible(slug)
    try:
        page = embed_page(benchmark, n=request.GET.get("n", ""))
    except NoBoardYet:
        page = None
    whole = absolute(request, reverse("pages:board", args=[slug]))
    return render(request, "pages/embed.html", {"page": page, "benchmark": benchmark, "whole": whole})
