"""Standings and validations as pictures by matplotlib, with the marks of the pages.

Filled: could be the best (95%). Outlined: not clearly worse than the leader. Grey: clearly worse.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.plots import PAINT, PlotRefused, axes_for, name_rows
from selection import validation_text
from selection.schema.board import Line, Standings
from selection.standings import words
from selection.standings.terms import NOBODY_RANKED, in_order, whole_costs

if TYPE_CHECKING:
    from selection.validation import Validation

PAIRS, N_ERRORS = "pairs_correct_full", 1.96
N_ON_INTERVAL = 20  # places of an interval that a name must not cover
# Of each mark: words, fill, edge, and size of the dot.
MARKS = {
    "worse": ("clearly worse than the leader", PAINT["worse"], PAINT["worse"], 4),
    "tied": ("not clearly worse than the leader", PAINT["paper"], PAINT["tied"], 7),
    "first": ("could be the best (95%)", PAINT["lead"], PAINT["lead"], 7),
    "": ("no rank range", PAINT["paper"], PAINT["worse"], 5),
}
ON_TOP: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1, 1), "ncols": 3}
ON_TOP |= {"frameon": False, "fontsize": "small"}
Marked = tuple[Line, str]  # an agent and its mark
PLACES = ((-6, 5, "right"), (6, 5, "left"), (6, -13, "left"), (-6, -13, "right"))  # of a name, in points


def marks(standings: Standings, target: str) -> dict[str, str]:
    """Return the mark of each ranked agent, in order of rank; "" where its ties are not known."""
    ranked = [line for line in in_order(standings, target) if line.at[target].rank is not None]
    if not ranked or ranked[0].at[target].rank_lower is None:
        return {line.agent: "" for line in ranked}
    ties, first = ranked[0].at[target].tied_with, standings.targets[target].may_be_first
    tied = {line.agent for start, end in ties for line in standings.agents[start : end + 1]}
    tied.add(ranked[0].agent)
    return {
        line.agent: "first" if line.agent in first else "tied" if line.agent in tied else "worse"
        for line in ranked
    }


def plot_standings(standings: Standings, kind: str, target: str, ax: Any = None) -> Any:
    """Draw the ranked agents by one of `KINDS`, the first on top or in front."""
    for name, there in ((kind, KINDS), (target, standings.targets)):
        if name not in there:
            raise _nothing(f"{name!r} is none of {', '.join(there)}")
    by_name, found = {line.agent: line for line in standings.agents}, marks(standings, target)
    if not found:
        raise _nothing(standings.targets[target].reason or NOBODY_RANKED)
    return KINDS[kind](standings, target, [(by_name[agent], mark) for agent, mark in found.items()], ax)


def _nothing(why: str) -> PlotRefused:
    return PlotRefused(f"there is nothing to draw: {why}", code="nothing_to_draw")


def _draw_ranks(standings: Standings, target: str, ranked: Sequence[Marked], ax: Any) -> Any:
    ax = axes_for(ax, width=8, rows=len(ranked))
    for row, (line, mark) in enumerate(ranked):
        at = line.at[target]
        if at.rank_lower is not None and at.rank_upper is not None:
            ax.hlines(row, at.rank_lower, at.rank_upper, color=MARKS[mark][2], linewidth=2, zorder=1)
        _dot(ax, at.rank, row, mark)
    name_rows(ax, [line.agent for line, _ in ranked])
    ax.set_xlim(0.5, len(ranked) + 0.5)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_xlabel("rank, with its 95% range")
    _explain(ax, [mark for _, mark in ranked], words.best_text(standings, target))
    return ax


def _draw_cost(standings: Standings, target: str, ranked: Sequence[Marked], ax: Any) -> Any:
    costs = whole_costs(standings)
    ranked = [(line, mark) for line, mark in ranked if line.agent in costs]
    if not ranked:
        raise _nothing("no ranked agent states a cost")
    ax = axes_for(ax, width=8, rows=16)
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator, PercentFormatter

    for line, mark in sorted(ranked, key=lambda one: list(MARKS).index(one[1])):
        at = line.at[target]
        if at.lower is not None and at.upper is not None:
            ax.vlines(costs[line.agent], at.lower, at.upper, color=MARKS[mark][2], linewidth=1.2, zorder=1)
        _dot(ax, costs[line.agent], at.score, mark)
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda cost, _: f"${cost:,.2f}".removesuffix(".00")))
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_xlabel("cost of a run of all tasks")
    ax.set_ylabel("score, with its 95% interval")
    _explain(ax, [mark for _, mark in ranked], words.best_text(standings, target))
    _name_front(ax, [(costs[line.agent], line.at[target].score or 0.0, line.agent) for line, _ in ranked])
    return ax


KINDS = {"ranks": _draw_ranks, "cost": _draw_cost}


def plot_validation(validation: "Validation", ax: Any = None) -> Any:
    """Draw the share of pairs in order by the estimated full score, and of random tasks, a row a test."""
    tests = [
        (validation_text.TESTS[name].label, strategies[validation.strategy], strategies.get("random"))
        for name in validation_text.TESTS
        if name in validation.protocols
        and (strategies := validation.protocols[name].strategies)
        and getattr(strategies[validation.strategy], PAIRS) is not None
    ]
    if not tests:
        raise _nothing("no test could be made")
    ax = axes_for(ax, width=8, rows=2 * len(tests))
    from matplotlib.ticker import PercentFormatter

    name_rows(ax, [label for label, *_ in tests])
    for row, (_, figures, at_random) in enumerate(tests):
        value, error = getattr(figures, PAIRS), (figures.se or figures.spread).get(PAIRS)
        if error is not None:
            lower, upper = max(0.0, value - N_ERRORS * error), min(1.0, value + N_ERRORS * error)
            ax.hlines(row, lower, upper, color=PAINT["tied"], linewidth=2, zorder=1)
        ax.plot(value, row, "o", color=PAINT["lead"])
        if validation.strategy != "random" and at_random and getattr(at_random, PAIRS) is not None:
            ax.plot(getattr(at_random, PAIRS), row, "|", markersize=16, color=PAINT["pareto"])
    ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.set_xlabel("pairs of agents in the right order, with 95% intervals")
    ax.plot([], [], "o", color=PAINT["lead"], label=validation_text.label(validation.strategy))
    ax.plot([], [], "|", markersize=12, color=PAINT["pareto"], label="a random subset of the same size")
    ax.legend(**ON_TOP)
    return ax


def _dot(ax: Any, x: Any, y: Any, mark: str, **more: Any) -> None:
    _, fill, edge, size = MARKS[mark]
    ax.plot(x, y, "o", markersize=size, markerfacecolor=fill, markeredgecolor=edge, **more)


def _explain(ax: Any, there: Sequence[str], best: str) -> None:
    for mark in (mark for mark in reversed(MARKS) if mark in there):
        _dot(ax, [], [], mark, label=best if mark == "first" else MARKS[mark][0])
    ax.legend(**ON_TOP)


def _name_front(ax: Any, points: Sequence[tuple[float, float, str]]) -> None:
    """Name the agents that none beats at their cost or less, where no name covers a mark or a name."""
    best, front = -1.0, []
    for cost, score, name in sorted(points, key=lambda one: (one[0], -one[1])):
        if score > best:
            best = score
            front.append((cost, score, name))
    ax.figure.draw_without_rendering()
    intervals = [segment for lines in ax.collections for segment in lines.get_segments()]
    covered = [(cost, score) for cost, score, _ in points]
    covered += [tuple(place) for ends in intervals for place in np.linspace(ends[0], ends[1], N_ON_INTERVAL)]
    drawn = ax.transData.transform(covered)
    frame, taken = ax.get_window_extent(), list[Any]()
    for cost, score, name in reversed(front):
        for right, up, side in PLACES:
            how = {"textcoords": "offset points", "ha": side, "fontsize": "small", "parse_math": False}
            label = ax.annotate(name, (cost, score), (right, up), **how)
            box = label.get_window_extent()
            is_inside = frame.contains(box.x0, box.y0) and frame.contains(box.x1, box.y1)
            if is_inside and not box.count_contains(drawn) and not box.count_overlaps(taken):
                taken.append(box)
                break
            label.remove()
