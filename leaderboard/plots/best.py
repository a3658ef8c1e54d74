"""The best score through time: a step line, solid where the new best is clearly better."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from math import log10
from typing import Literal

from django.utils.safestring import SafeString

from leaderboard.plots.marks import (
    LinearScale,
    cut_apart,
    day_ticks,
    dot,
    drawing,
    line,
    month_ticks,
    rule,
    steps,
    text,
    ticks_125,
)

LEVELS_WIDTH, LEVELS_HEIGHT = 344, 130
LEVELS_LEFT, LEVELS_RIGHT, LEVELS_TOP, LEVELS_BOTTOM = 46, 12, 12, 28
Look = tuple[date, float | None, float | None]  # the level, None where there was none, and where it alerts


def levels(*, name: str, title: str, looks: Sequence[Look]) -> SafeString:
    """Draw levels and thresholds as step lines over days; ValueError where no look has a level."""
    known = [value for _, value, _ in looks if value is not None]
    if not known:
        raise ValueError("nothing to draw")
    seen = [*known, *(threshold for *_, threshold in looks if threshold is not None)]
    lo, hi = min(0.0, *seen), max(seen)
    first, last = min(day for day, *_ in looks), max(day for day, *_ in looks)
    x = LinearScale(first.toordinal(), last.toordinal(), LEVELS_LEFT, LEVELS_WIDTH - LEVELS_RIGHT)
    y = LinearScale(lo, hi if hi > lo else lo + 1, LEVELS_HEIGHT - LEVELS_BOTTOM, LEVELS_TOP)
    marks = []
    for tick in ticks_125(y.lo, y.hi, 3):
        marks.append(rule(LEVELS_LEFT, y(tick), LEVELS_WIDTH - LEVELS_RIGHT, y(tick)))
        marks.append(text(LEVELS_LEFT - 6, y(tick) + 4, f"{tick:g}".replace("-", "−"), anchor="end"))
    days = month_ticks(first, last, 4) or [first]
    marks += [text(x(day.toordinal()), LEVELS_HEIGHT - 8, f"{day:%Y-%m}") for day in days]
    for run in _runs([(day, threshold) for day, _, threshold in looks]):
        places = [(x(day.toordinal()), y(value)) for day, value in run]
        if run[0][0] == run[-1][0]:
            places = [(LEVELS_LEFT, places[-1][1]), (LEVELS_WIDTH - LEVELS_RIGHT, places[-1][1])]
        marks.append(steps(places, stroke="pareto", dash="5 3"))
    for run in _runs([(day, value) for day, value, _ in looks]):
        places = [(x(day.toordinal()), y(value)) for day, value in run]
        if run[0][0] != run[-1][0]:
            marks.append(steps(places, stroke="lead"))
        marks += [
            dot(*place, fill="lead", title=f"{day}: {level_text(value)}", radius=2.4)
            for place, (day, value) in zip(places, run, strict=True)
        ]
    return drawing(name=name, title=title, width=LEVELS_WIDTH, height=LEVELS_HEIGHT, marks=marks)


def _runs(points: Sequence[tuple[date, float | None]]) -> list[list[tuple[date, float]]]:
    runs = groupby(points, key=lambda point: point[1] is None)
    return [[(day, value) for day, value in run if value is not None] for is_gap, run in runs if not is_gap]


def level_text(value: float | None) -> str:
    """A level in about three figures; unknown without one."""
    if value is None:
        return "unknown"
    if value == 0:
        return "0"
    n = max(0, 2 - int(log10(abs(value)))) if abs(value) >= 1 else 3 - int(log10(abs(value)))
    return f"{value:,.{n}f}".replace("-", "−")


LEFT, RIGHT, TOP, BOTTOM = 44, 12, 20, 40  # margins around the scales
CHARACTER, ASIDE = 7, 4  # the room that a character takes, and that between a name and its dot
LONGEST = 22  # characters of a name on the drawing
ROOM_OF_TICK = 80
# How a level came: surely above the one before; perhaps; with none that it can be held against.
Step = Literal["sure", "unsure", "first"]
LOOKS = {"sure": ("lead", "", 2.2), "unsure": ("worse", "5 3", 1.6), "first": ("worse", "", 1.6)}


@dataclass(frozen=True)
class BestLevel:
    """A score, from 0 to 1, that stays the best from one day up to where the next level begins."""

    first: float  # days of the boards, as ordinals with the hour as a fraction
    last: float
    score: float
    step: Step
    label: str
    title: str
    more: str = ""  # behind the label, never cut


BOARDS_HEIGHT = 240


def best_through_boards(
    *, name: str, title: str, levels: Sequence[BestLevel], width: float = 440
) -> SafeString:
    """Levels over the days of boards; where a level is the first of its kind no riser leads to it.

    ValueError without a level.
    """
    if not levels:
        raise ValueError("nothing to draw")
    scores = [level.score for level in levels]
    # Levels of one height get room around them.
    lo, hi = max(0.0, min(scores) - 0.05), min(1.0, max(scores) + 0.05)
    x = LinearScale(levels[0].first, levels[-1].last, LEFT, width - RIGHT)
    y = LinearScale(lo, hi, BOARDS_HEIGHT - BOTTOM, TOP)
    marks = _axes(x, y, width)
    for before, level in zip([None, *levels[:-1]], levels, strict=True):
        colour, dash, thick = LOOKS[level.step]
        places = [(x(level.first), y(level.score)), (x(level.last), y(level.score))]
        if before is not None and level.step != "first":
            places.insert(0, (x(level.first), y(before.score)))
        fill = colour if level.step == "sure" else "paper"
        marks.append(line(places, stroke=colour, width=thick, dash=dash))
        marks.append(dot(*places[-2], fill=fill, stroke=colour, width=1.6, radius=4, title=level.title))
    marks += _labels(levels, x, y)
    return drawing(name=name, title=title, width=width, height=BOARDS_HEIGHT, marks=marks)


def _axes(x: LinearScale, y: LinearScale, width: float) -> list[SafeString]:
    marks = []
    for tick in ticks_125(y.lo, y.hi, 4):
        marks.append(rule(LEFT, y(tick), width - RIGHT, y(tick)))
        marks.append(text(LEFT - 6, y(tick) + 4, f"{100 * tick:g}%", anchor="end"))
    n = max(1, int((width - LEFT - RIGHT) / ROOM_OF_TICK))
    below, end = BOARDS_HEIGHT - BOTTOM + 18, width - RIGHT
    for day, label in day_ticks(x.lo, x.hi, min(n, 8)):
        is_last = x(day) + CHARACTER * len(label) / 2 > width
        marks.append(text(end if is_last else x(day), below, label, anchor="end" if is_last else "middle"))
    return [*marks, text((LEFT + end) / 2, below + 17, "day of the board")]


def _labels(levels: Sequence[BestLevel], x: LinearScale, y: LinearScale) -> list[SafeString]:
    """Names over their levels, or before them where longer; those of sure steps first, from the right."""
    marks, taken = [], list[tuple[float, float]]()
    names = list(dict.fromkeys(level.label for level in levels))
    labels = dict(zip(names, cut_apart(names, LONGEST), strict=True))
    for level in sorted(levels, key=lambda one: (one.step != "sure", -one.first)):
        shown = f"{labels[level.label]}{level.more}"
        at, width = x(level.first), CHARACTER * len(shown)
        fits = at + ASIDE + width <= x(level.last)
        start = at + ASIDE if fits else at - ASIDE - width
        if start < LEFT or any(start < end and start + width > begin for begin, end in taken):
            continue
        taken.append((start, start + width))
        place, anchor = (at + ASIDE, "start") if fits else (at - ASIDE, "end")
        marks.append(text(place, y(level.score) - 8, shown, fill="ink", anchor=anchor, halo=True))
    return marks
