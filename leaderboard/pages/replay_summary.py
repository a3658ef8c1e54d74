"""A board that replays the history of another one, beside its full runs: what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.http import QueryDict
from django.urls import reverse

from leaderboard.boards.models import Entry
from leaderboard.boards.queries import NoBoardYet, board_numbered, entries_of, latest_board
from leaderboard.boards.reading import standings_with
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.queries import visible_benchmarks
from leaderboard.operations.models import Assignment, Mode
from leaderboard.plots.against import EstimateDot, against
from leaderboard.plots.chart import Chart
from leaderboard.studies.answers import AtTarget, Standings, words

N_TOP = 5
PUBLISHED = ("stopped", "drawn")  # stages of a decision


@dataclass(frozen=True)
class ReplayedRun:
    """The score of an agent that ran everything, and its page on the board that has it."""

    score: float
    address: str


@dataclass(frozen=True)
class ReplaySummary:
    """`of` is the benchmark whose history this one replays."""

    of: Benchmark
    number: int
    facts: tuple[tuple[str, str], ...]
    chart: Chart


def full_runs(benchmark: Benchmark) -> Mapping[str, ReplayedRun]:
    """The full runs that a replay is beside, by agent; empty where it is none, or its board is not public."""
    of = source_of(benchmark)
    if of is None or benchmark.replay is None:
        return {}
    board = board_numbered(of, benchmark.replay["board"])
    entries = entries_of(board)
    pages: Mapping[str, Entry] = {entry.name: entry for entry in entries}
    return {
        line.agent: ReplayedRun(
            line.at["full"].score, reverse("pages:agent", args=[of.slug, pages[line.agent].agent_id])
        )
        for line in standings_with(board, entries).agents
        if line.at["full"].score is not None and not line.at["full"].estimated
    }


def source_of(benchmark: Benchmark) -> Benchmark | None:
    """The benchmark that is replayed, where visitors see it."""
    if benchmark.replay is None:
        return None
    benchmarks = visible_benchmarks(None).filter(slug=benchmark.replay["of"])
    return benchmarks.filter(boards__number=benchmark.replay["board"]).first()


def replay_summary(benchmark: Benchmark, standings: Standings) -> ReplaySummary | None:
    """None where the benchmark is no replay, or its full runs are not for whoever sees it."""
    full, of = full_runs(benchmark), source_of(benchmark)
    results = {
        line.agent: line.at["full"]
        for line in standings.agents
        if line.agent in full and line.at["full"].score is not None
    }
    if of is None or benchmark.replay is None or not results:
        return None
    figures = benchmark.replay["figures"]
    facts = [
        ("Runs not needed", f"{words.percent(figures['saved'])}%"),
        *(
            [("Pairs in the order of full runs", f"{words.percent(figures['pairs']['value'])}%")]
            if figures["pairs"]
            else []
        ),
        ("Best five found", f"{figures['best_five'] * N_TOP:g} of {N_TOP}"),
    ]
    estimates = {
        "Largest error of an estimate when it was published": _published_scores(benchmark),
        "Largest error of an estimate on this board": {
            agent: at.score or 0.0 for agent, at in results.items() if at.estimated
        },
    }
    for name, of_agents in estimates.items():
        off = {agent: score - full[agent].score for agent, score in of_agents.items() if agent in full}
        if off:
            most = max(off, key=lambda agent: abs(off[agent]))
            points = f"{100 * off[most]:+.1f}".replace("-", "−")
            facts.append((name, f"{points} points ({most})"))
    return ReplaySummary(of, benchmark.replay["board"], tuple(facts), _chart(results, full))


def _published_scores(benchmark: Benchmark) -> dict[str, float]:
    """What was published of the agents that stopped, also of those that ran the rest later."""
    assignments = Assignment.objects.filter(agent__benchmark=benchmark, mode=Mode.STAGED)
    return {
        name: one["score"]
        for name, decisions in assignments.values_list("agent__name", "decisions")
        for one in decisions
        if one["stage"] in PUBLISHED
    }


def _chart(results: Mapping[str, AtTarget], full: Mapping[str, ReplayedRun]) -> Chart:
    dots = [
        EstimateDot(
            name=agent,
            full=full[agent].score,
            score=at.score or 0.0,
            interval=(at.lower, at.upper)
            if at.estimated and at.lower is not None and at.upper is not None
            else None,
        )
        for agent, at in results.items()
    ]
    return against(dots)


def plot_replay(benchmark: Benchmark, params: QueryDict) -> Chart | None:
    """The chart alone, of the latest board."""
    try:
        board = latest_board(benchmark)
    except NoBoardYet:
        return None
    summary = replay_summary(benchmark, standings_with(board, entries_of(board)))
    return summary.chart if summary else None
