"""The chart beside the verdict: cost against score, or score through time where no cost is believed."""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import date

from leaderboard.pages.lines import BoardLine
from leaderboard.plots.chart import Chart
from leaderboard.plots.pareto import Axis, Point, cost_axis, day_axis, pareto
from leaderboard.studies.answers import Standings, heads, table, words

TIES = {"lead": "the reference", "tied": "tied with it", "worse": "not tied with it", "muted": "not known"}
KINDS: dict[str, tuple[str, Callable[[Sequence[Point]], Axis]]] = {
    "Cost": ("Cost against score", cost_axis),
    "Date": ("Score through time", day_axis),
}
GONE = ", withdrawn"
FRONT_OF_COSTS = (
    "A run is one trial of each task. The line joins {agents} that no other beats at their price or less."
)
FRONT_OF_DAYS = "The line joins {agents} that none before them beats."


def score_chart(
    standings: Standings,
    target: str,
    lines: Iterable[BoardLine],
    agents: str,
    withdrawn_names: Collection[str] = (),
) -> Chart | None:
    """Cost against score; score through time where there is no cost; None where there is no date either.

    None also for a single agent, whose dot would be against nothing.

    `agents` is the address of an agent but for its number; empty where dots lead nowhere. Agents of
    `withdrawn_names` are marked as withdrawn since.
    """
    if standings.targets[target].n_ranked < 2:
        return None
    ranked = [
        line for line in lines if line.target_result.score is not None and line.target_result.rank is not None
    ]
    known = words.whole_costs(standings)
    heading = {line.entry.agent for line in ranked if heads(standings, line.entry)}
    of = "agents" if len(heading) == len(ranked) else words.heading(standings)
    tasks = words.tasks_of(standings, target)
    priced = [(line, known[line.entry.agent]) for line in ranked if line.entry.agent in known]
    if priced:
        lede = FRONT_OF_COSTS.format(agents=of) + _left_out(len(ranked) - len(priced))
        return _chart("Cost", priced, target, tasks, lede, agents, withdrawn_names, heading)
    dated = [(line, day) for line in ranked if (day := _day(line.entry.submitted_at))]
    lede = f"{_no_cost({line.entry.cost_basis for line in ranked})} {FRONT_OF_DAYS.format(agents=of)}"
    return _chart("Date", dated, target, tasks, lede, agents, withdrawn_names, heading) if dated else None


def _chart(
    took: str,
    drawn: Sequence[tuple[BoardLine, float]],
    target: str,
    tasks: str,
    lede: str,
    agents: str,
    withdrawn_names: Collection[str],
    heading: Collection[str],
) -> Chart:
    title, axis_of = KINDS[took]
    score = table.HEADS[target]
    points = [
        _point(
            line,
            at,
            line.cells[score],
            address=f"{agents}{line.pk}" if agents else "",
            is_gone=line.entry.agent in withdrawn_names,
            heads=line.entry.agent in heading,
        )
        for line, at in drawn
    ]
    return Chart(
        name="cost",
        title=title,
        lede=lede,
        heads=("Agent", took, f"Score % on {tasks}, 95%", "Ties"),
        rows=tuple(_row(line, took, score, line.entry.agent in withdrawn_names) for line, _ in drawn),
        svg=pareto(points, axis_of(points), name="cost", title=f"{title}, on {tasks}"),
    )


def _row(line: BoardLine, took: str, score: str, is_gone: bool) -> tuple[str, ...]:
    around = line.cells.get("95%", table.NOTHING)
    text = line.cells[score] if around == table.NOTHING else f"{line.cells[score]} ({around})"
    name = f"{line.entry.agent} (withdrawn since)" if is_gone else line.entry.agent
    return name, line.cells.get(took, table.NOTHING), text, TIES[line.standing]


def _point(line: BoardLine, took: float, score: str, *, address: str, is_gone: bool, heads: bool) -> Point:
    at, cost = line.target_result, words.cost_text(line.entry)
    return Point(
        name=line.entry.agent,
        title=f"{line.entry.agent}{GONE if is_gone else ''}: {score}%"
        + (f", {cost} a run" if cost else f", {line.month}"),
        took=took,
        score=at.score or 0.0,
        interval=None if at.lower is None or at.upper is None else (at.lower, at.upper),
        standing=line.standing,
        address=address,
        more=GONE if is_gone else "",
        heads=heads,
    )


def _no_cost(bases: set[str]) -> str:
    if bases <= {words.NOT_STATED}:
        return "Cost was not stated."
    if words.HIDDEN in bases:
        return "Cost is hidden by the operator's policy."
    return "There is no plausible cost of all trials of an agent."


def _left_out(n: int) -> str:
    if not n:
        return ""
    of, are = ("its", "is") if n == 1 else ("their", "are")
    return f" {words.counted(n, 'agent')} without a plausible cost of all {of} trials {are} not drawn."


def _day(text: str | None) -> int | None:
    """The ordinal of a date; the first day of a month or a year that is stated alone."""
    if text is None:
        return None
    return date.fromisoformat((f"{text[:10]}-01-01")[:10]).toordinal()
