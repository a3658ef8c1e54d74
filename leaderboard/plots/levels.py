"""A level through time against the line at which it alerts."""

from collections.abc import Sequence
from datetime import date
from itertools import groupby
from math import log10

from django.utils.safestring import SafeString

from leaderboard.plots.marks import LinearScale, dot, drawing, month_ticks, rule, steps, text, ticks_125

WIDTH, HEIGHT = 344, 130
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 12, 28
Look = tuple[date, float | None, float | None]  # the level, None where there was none, and where it alerts


def levels(*, name: str, title: str, looks: Sequence[Look]) -> SafeString:
    """Draw levels and thresholds as step lines over days; ValueError where no look has a level."""
    known = [value for _, value, _ in looks if value is not None]
    if not known:
        raise ValueError("nothing to draw")
    seen = [*known, *(threshold for *_, threshold in looks if threshold is not None)]
    lo, hi = min(0.0, *seen), max(seen)
    first, last = min(day for day, *_ in looks), max(day for day, *_ in looks)
    x = LinearScale(first.toordinal(), last.toordinal(), LEFT, WIDTH - RIGHT)
    y = LinearScale(lo, hi if hi > lo else lo + 1, HEIGHT - BOTTOM, TOP)
    marks = []
    for tick in ticks_125(y.lo, y.hi, 3):
        marks.append(rule(LEFT, y(tick), WIDTH - RIGHT, y(tick)))
        marks.append(text(LEFT - 6, y(tick) + 4, f"{tick:g}".replace("-", "−"), anchor="end"))
    days = month_ticks(first, last, 4) or [first]
    marks += [text(x(day.toordinal()), HEIGHT - 8, f"{day:%Y-%m}") for day in days]
    for run in _runs([(day, threshold) for day, _, threshold in looks]):
        places = [(x(day.toordinal()), y(value)) for day, value in run]
        if run[0][0] == run[-1][0]:
            places = [(LEFT, places[-1][1]), (WIDTH - RIGHT, places[-1][1])]
        marks.append(steps(places, stroke="pareto", dash="5 3"))
    for run in _runs([(day, value) for day, value, _ in looks]):
        places = [(x(day.toordinal()), y(value)) for day, value in run]
        if run[0][0] != run[-1][0]:
            marks.append(steps(places, stroke="lead"))
        marks += [
            dot(*place, fill="lead", title=f"{day}: {level_text(value)}", radius=2.4)
            for place, (day, value) in zip(places, run, strict=True)
        ]
    return drawing(name=name, title=title, width=WIDTH, height=HEIGHT, marks=marks)


def _runs(points: Sequence[tuple[date, float | None]]) -> list[list[tuple[date, float]]]:
    runs = groupby(points, key=lambda point: point[1] is None)
    return [[(day, value) for day, value in run if value is not None] for is_gap, run in runs if not is_gap]


def level_text(value: float | None) -> str:
    """A level in about three figures; not known without one."""
    if value is None:
        return "not known"
    if value == 0:
        return "0"
    n = max(0, 2 - int(log10(abs(value)))) if abs(value) >= 1 else 3 - int(log10(abs(value)))
    return f"{value:,.{n}f}".replace("-", "−")
