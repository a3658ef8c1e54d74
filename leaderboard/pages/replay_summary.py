"""A board that replays the history of another one, beside its full runs: what came of it."""

from collections.abc import Mapping
from typing import Any

from django.urls import reverse

from leaderboard.boards.queries import board_numbered, entries_of, standings_of
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.queries import visible_benchmarks
from leaderboard.operations.models import Assignment, Mode
from leaderboard.pages.compare import points_text
from leaderboard.plots.marks import Chart, LinearScale, dot, drawing, rule, text, ticks_125
from leaderboard.studies.answers import AtTarget, Standings, words

N_TOP = 5
PUBLISHED = ("stopped", "drawn")  # stages of a decision
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 480.0, 360.0, 48.0, 12.0, 12.0, 40.0  # of the chart


def full_runs(benchmark: Benchmark) -> dict[str, tuple[float, str]]:
    """By agent, the score of the full run that a replay is beside, and its page on the board that has it.

    Empty where the benchmark is no replay, or that board is not public.
    """
    of = source_of(benchmark)
    if of is None or benchmark.replay is None:
        return {}
    board = board_numbered(of, benchmark.replay["board"])
    entries = entries_of(board)
    keys = {entry.name: entry.agent_id for entry in entries}
    return {
        line.agent: (line.at["full"].score, reverse("pages:agent", args=[of.slug, keys[line.agent]]))
        for line in standings_of(board, entries).agents
        if line.at["full"].score is not None and not line.at["full"].estimated
    }


def source_of(benchmark: Benchmark) -> Benchmark | None:
    if benchmark.replay is None:
        return None
    benchmarks = visible_benchmarks(None).filter(slug=benchmark.replay["of"])
    return benchmarks.filter(boards__number=benchmark.replay["board"]).first()


def replay_summary(benchmark: Benchmark, standings: Standings) -> dict[str, Any] | None:
    of = source_of(benchmark)
    full = {agent: score for agent, (score, _) in full_runs(benchmark).items()}
    results = {
        line.agent: line.at["full"]
        for line in standings.agents
        if line.agent in full and line.at["full"].score is not None
    }
    if of is None or benchmark.replay is None or not results:
        return None
    figures = benchmark.replay["figures"]
    facts = [("Trials saved", f"{words.percent(figures['saved'])}%")]
    if figures["pairs"]:
        pairs = f"{words.percent(figures['pairs']['value'])}%; two agents that run all tasks always are"
        facts.append(("Pairs in the order of full runs", pairs))
    facts.append(("Best five found", f"{figures['best_five'] * N_TOP:g} of {N_TOP}"))
    # Also of those that ran the rest after they had stopped.
    published = {
        name: one["score"]
        for name, decisions in Assignment.objects.filter(
            agent__benchmark=benchmark, mode=Mode.STAGED
        ).values_list("agent__name", "decisions")
        for one in decisions
        if one["stage"] in PUBLISHED
    }
    now = {agent: at.score or 0.0 for agent, at in results.items() if at.estimated}
    for when, scores in (("when it was published", published), ("on this board", now)):
        off = {agent: score - full[agent] for agent, score in scores.items() if agent in full}
        if off:
            most = max(off, key=lambda agent: abs(off[agent]))
            points = f"{points_text(off[most])} points ({most})"
            facts.append((f"Largest error of an estimate {when}", points))
    number = benchmark.replay["board"]
    return {"of": of, "number": number, "facts": facts, "chart": _chart(results, full)}


def _chart(results: Mapping[str, AtTarget], full: Mapping[str, float]) -> Chart:
    """Scores of a board against those of full runs; estimates lie above the others."""
    name, title = "replayed", "Board score against full run"
    around = {
        agent: (at.lower, at.upper)
        for agent, at in results.items()
        if at.estimated and at.lower is not None and at.upper is not None
    }
    scores = {agent: at.score or 0.0 for agent, at in results.items()}
    ends = [v for agent in results for v in (full[agent], scores[agent], *around.get(agent, ()))]
    lo, hi = min(ends), max(ends)
    x, y = LinearScale(lo, hi, LEFT, WIDTH - RIGHT), LinearScale(lo, hi, HEIGHT - BOTTOM, TOP)
    marks = [rule(x(lo), y(lo), x(hi), y(hi))]
    for tick in ticks_125(lo, hi):
        marks.append(text(x(tick), HEIGHT - BOTTOM + 16, f"{100 * tick:g}"))
        marks.append(text(LEFT - 8, y(tick) + 4, f"{100 * tick:g}", anchor="end"))
    marks.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, "full run, %"))
    marks.append(text(LEFT, TOP + 2, "board, %", anchor="start"))
    rows = {}
    for agent in sorted(results, key=lambda one: one in around):
        at, score, own = x(full[agent]), words.percent(scores[agent]), words.percent(full[agent])
        if agent in around:
            lower, upper = around[agent]
            ends_text = f"{words.percent(lower)}–{words.percent(upper)}"
            off = points_text(scores[agent] - full[agent])
            rows[agent] = (agent, score, ends_text, own, off)
            told = f"{agent}: {score}% ({ends_text}), full run {own}%"
            marks.append(rule(at, y(lower), at, y(upper), stroke="tied"))
            marks.append(dot(at, y(scores[agent]), fill="lead", radius=3.5, title=told))
        else:
            rows[agent] = (agent, score, "–", own, "–")
            told = f"{agent}: {score}%, full run {own}%"
            marks.append(dot(at, y(scores[agent]), fill="paper", stroke="worse", radius=3.5, title=told))
    return Chart(
        name=name,
        title=title,
        lede="Each dot is an agent. A filled dot is estimated, with its 95% interval. An empty dot is "
        "measured. On the line, both scores are equal.",
        heads=("Agent", "Board %", "95%", "Full run %", "Difference, points"),
        rows=tuple(rows[agent] for agent in sorted(results, key=lambda one: -full[one])),
        svg=drawing(name=name, title=title, width=WIDTH, height=HEIGHT, marks=marks),
    )
