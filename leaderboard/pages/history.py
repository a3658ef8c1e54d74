"""What the page on history shows: the boards of a benchmark, newest first, what each changed, the best score.

Whether a new best is clearly better is read off the board that shows it first: whether the former best is
tied with it there. Nothing is computed anew.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from itertools import pairwise
from typing import Any

from django.db.models import F, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from leaderboard.boards.models import Board, Entry
from leaderboard.boards.queries import boards_with_changes, withdrawn_agents
from leaderboard.catalog.models import Benchmark
from leaderboard.pages.access import for_all, number_in, visible
from leaderboard.plots.best import BestLevel, Step, best_through_boards
from leaderboard.plots.marks import Chart
from leaderboard.studies.answers import words

N_VERSIONS = 20
MIN_DRAWN, MAX_DRAWN = 3, 200  # boards
WITHDRAWN = " (withdrawn since)"
HEADS = ("Board", "Date", "Best", "Score %", "Tasks", "Compared with the previous best")


@for_all
def history(request: HttpRequest, slug: str) -> HttpResponse:
    """The boards under a number, or the latest; `before` is what the next older ones lie under."""
    benchmark = visible(slug)
    number = number_in(request.GET.get("before", ""))
    latest, are_more = boards_with_changes(benchmark, before=number, most=N_VERSIONS)
    rows = [
        {
            "board": one.board,
            "n_ranked": one.n_ranked,
            "n_listed": one.n_listed,
            "changes": one.changes,
            "keys": one.keys,
            "before": one.board.number - 1,
            "text": words.changes_text(one.changes) if one.changes else "",
        }
        for one in latest
    ]
    verdict, board_count = "", latest[0].board.number if latest else 0
    if latest:
        board, text = latest[0].board, str(rows[0]["text"])
        day = f"{board.published_at.day} {board.published_at:%B %Y}"
        verdict = f"One board so far, published {day}."
        if text:
            n = words.counted(board.number, "board")
            verdict = f"{n} so far. Board {board.number}, {day}: {words.clause(text)}."
    page = {
        "rows": rows,
        "verdict": verdict,
        "is_latest": number is None,
        "before": latest[-1].board.number if latest and are_more else None,
        "best": best_chart(benchmark) if number is None and board_count >= MIN_DRAWN else None,
    }
    return render(request, "pages/history.html", {"page": page, "benchmark": benchmark, "here": "history"})


# ------------------------------------------------------------------------------------------- the best score


@dataclass(frozen=True)
class Best:
    """The first rank of one board: all agents that hold it, the first of them, and the tasks of the score."""

    board: Board
    over: str
    agents: list[int]
    agent_name: str
    score: float
    estimated: bool
    tied_with: list[tuple[int, int]] | None  # None where the board tells no ties

    @property
    def name(self) -> str:
        more = len(self.agents) - 1
        return f"{self.agent_name} and {more:,} more" if more else self.agent_name

    @property
    def scale(self) -> tuple[Any, ...]:
        """What a score can be compared within: a target, its tasks, and on a subset its version."""
        target = self.board.target
        return target, self.over, self.board.subset_id if target == "subset" else None


def best_chart(benchmark: Benchmark) -> Chart | None:
    """The best score through the boards: four queries, however many there are; None without a rank."""
    sizes = {f"n_{target}": F(f"content__targets__{target}__n_tasks") for target in words.TARGETS}
    boards: Any = benchmark.boards.defer("content").annotate(**sizes).order_by("-number")
    boards = list(boards[:MAX_DRAWN])[::-1]
    bests = _bests(boards, withdrawn_agents(benchmark))
    if not bests:
        return None
    changes, rows, levels = _changes(bests), [], []
    ends = [best.board for best, _, _ in changes[1:]] + [bests[-1].board]
    for (best, step, why), end in zip(changes, ends, strict=True):
        number, percent = best.board.number, words.percent(best.score)
        day, score = f"{best.board.published_at:%Y-%m-%d}", f"{'~' if best.estimated else ''}{percent}"
        rows.append((f"{number}", day, best.name, score, best.over, why))
        levels.append(
            BestLevel(
                first=_day(best.board),
                last=_day(end),
                score=best.score,
                step=step,
                label=best.name.replace(WITHDRAWN, ""),
                title=f"Board {number}: {best.name}, {score}% on {best.over}; {why}",
                more=", withdrawn" if best.agent_name.endswith(WITHDRAWN) else "",
            )
        )
    title = "Best score over time"
    left_out = f" Latest {MAX_DRAWN} boards only." if len(boards) == MAX_DRAWN else ""
    return Chart(
        name="best",
        title=title,
        lede="A solid step is clearly better (95%). A dashed step is a tie or unknown. Without a step, the "
        f"score is on other tasks.{left_out}",
        heads=HEADS,
        rows=tuple(rows),
        svg=best_through_boards(name="best", title=title, levels=levels),
    )


def _bests(boards: Sequence[Any], withdrawn_ids: Collection[int]) -> list[Best]:
    targets = sorted({board.target for board in boards})
    names = ("score", "estimated", "tied_with", "rank_lower")
    fields = [F(f"line__at__{target}__{name}") for target in targets for name in names]
    first = Entry.objects.filter(board__in=boards, rank=1).order_by("board", "position")
    known, bests = {board.pk: board for board in boards}, dict[int, Best]()
    for key, agent, name, *values in first.values_list("board", "agent", "name", *fields):
        if key in bests:
            bests[key].agents.append(agent)
            continue
        board = known[key]
        at = len(names) * targets.index(board.target)
        score, estimated, tied, lower = values[at : at + len(names)]
        over = words.task_set(board.target, getattr(board, f"n_{board.target}"))
        name += WITHDRAWN if agent in withdrawn_ids else ""
        bests[key] = Best(board, over, [agent], name, score, estimated, None if lower is None else tied)
    return [bests[board.pk] for board in boards if board.pk in bests]


def _changes(bests: Sequence[Best]) -> list[tuple[Best, Step, str]]:
    """The first board, and each on which another agent or score is the best: how it is drawn, and why.

    Only what the newer board tells of the former best counts.
    """
    pairs = [
        (old, new)
        for old, new in pairwise(bests)
        if (old.agents[0], old.score, old.scale) != (new.agents[0], new.score, new.scale)
    ]
    wanted = Q(pk__in=())
    for old, new in pairs:
        wanted |= Q(board=new.board, agent__in=old.agents)
    ranked = Entry.objects.filter(wanted, rank__isnull=False)
    places = {(board, agent): at for board, agent, at in ranked.values_list("board", "agent", "position")}
    changes: list[tuple[Best, Step, str]] = [(bests[0], "first", "first board shown")]
    for old, new in pairs:
        there = [places.get((new.board.pk, agent)) for agent in old.agents]
        if old.scale != new.scale:
            changes.append((new, "first", "on other tasks, not comparable"))
        elif set(old.agents) & set(new.agents):
            changes.append((new, "unsure", "same agent, another score"))
        elif None in there:
            changes.append((new, "unsure", f"{old.name} is no longer ranked"))
        elif new.tied_with is None:
            changes.append((new, "unsure", "ties unknown"))
        elif any(low <= place <= high for low, high in new.tied_with for place in there if place is not None):
            changes.append((new, "unsure", f"tied with {old.name}"))
        else:
            changes.append((new, "sure", f"clearly better than {old.name}"))
    return changes


def _day(board: Board) -> float:
    """When it was published, as an ordinal day in UTC with the hour as a fraction."""
    at = board.published_at.astimezone(UTC)
    return at.toordinal() + (at - at.replace(hour=0, minute=0, second=0, microsecond=0)) / timedelta(days=1)
