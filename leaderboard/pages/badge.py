"""The badge of a board or of one agent on it: the ranks that it may hold, never its rank alone."""

from http import HTTPStatus
from typing import NamedTuple

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from leaderboard.boards.headlines import outlines
from leaderboard.boards.models import Board, Entry
from leaderboard.boards.queries import withdrawn_agents
from leaderboard.boards.reading import head_of
from leaderboard.catalog.models import Benchmark
from leaderboard.pages.access import for_all, visible
from leaderboard.pages.feed import printable
from leaderboard.plots.badge import badge as draw_badge
from leaderboard.studies.answers import words

LONGEST = 32  # characters of a title
NO_BOARD = "no board yet"
NOT_THERE = "not on the board"


class BadgeText(NamedTuple):
    """What a badge says: over which tasks stands in its title."""

    value: str
    over: str = ""
    is_known: bool = True


@require_safe
@for_all
def badge(request: HttpRequest, slug: str) -> HttpResponse:
    benchmark = visible(slug)
    text = badge_text(benchmark, request.GET.get("agent"))
    title = printable(benchmark.title)
    label = title if len(title) <= LONGEST else f"{title[: LONGEST - 1]}…"
    whole = f"{title}: {text.value}{text.over}"
    return HttpResponse(
        draw_badge(label=label, value=text.value, title=whole),
        content_type="image/svg+xml",
        status=HTTPStatus.OK if text.is_known else HTTPStatus.NOT_FOUND,
    )


def badge_text(benchmark: Benchmark, agent: str | None) -> BadgeText:
    """Of the latest board, or of an agent by its key; who is not listed is as nobody."""
    board = benchmark.boards.select_related("policy").order_by("-number").first()
    if board is None:
        return BadgeText(NO_BOARD)
    target = head_of(board).targets[board.target]
    over = f", on {words.task_set(board.target, target.n_tasks)}"
    if agent is None:
        return BadgeText(words.could_be_first(outlines([board])[board.pk]), over)
    entry = _entry(board, agent)
    if entry is None:
        return BadgeText(NOT_THERE, is_known=False)
    if board.data_version < benchmark.data_version and entry.agent_id in withdrawn_agents(benchmark):
        return BadgeText("withdrawn")
    return BadgeText(ranks_of(entry, board, target.n_ranked), over)


def _entry(board: Board, agent: str) -> Entry | None:
    if not (agent.isascii() and agent.isdecimal()):
        return None
    key = int(agent[:18])
    of_agent = Q(agent=key) | Q(agent__merged=key)
    return board.entries.filter(of_agent).select_related("agent").first()


def ranks_of(entry: Entry, board: Board, n_ranked: int) -> str:
    """The text “ranks 1–11 of 32”; of an agent without a rank, that it is listed."""
    at = entry.at[board.target]
    if at["rank"] is None:
        return "listed, not ranked"
    if at["rank_lower"] is None:
        return f"one of {n_ranked:,}, ranks not known"
    if at["rank_lower"] == at["rank_upper"]:
        return f"rank {at['rank_lower']:,} of {n_ranked:,}"
    return f"ranks {at['rank_lower']:,}–{at['rank_upper']:,} of {n_ranked:,}"
