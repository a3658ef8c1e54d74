"""A level through time against the line at which it alerts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from math import log10

from django.utils.safestring import SafeString

from leaderboard.plots.marks import dot, drawing, rule, steps, text
from leaderboard.plots.scales import LinearScale, month_ticks, ticks_125
from leaderboard.plots.times import TimeSeries

WIDTH, HEIGHT = 344, 130
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 12, 28


@dataclass(frozen=True)
class MonitorLevel:
    """What was looked at on a day: the level, None where it could not be computed, and where it alerts."""

    day: date
    value: float | None
    threshold: float | None


def levels(*, name: str, title: str, looks: Sequence[MonitorLevel]) -> SafeString:
    """Draw levels and thresholds as step lines over days.

    Raises ValueError: no look has a level: there is nothing to draw.
    """
    known = [one.value for one in looks if one.value is not None]
    if not known:
        raise ValueError("nothing to draw")
    seen = [*known, *(one.threshold for one in looks if one.threshold is not None)]
    lo, hi = min(0.0, *seen), max(seen)
    first, last = min(one.day for one in looks), max(one.day for one in looks)
    x = LinearScale(first.toordinal(), last.toordinal(), LEFT, WIDTH - RIGHT)
    y = LinearScale(lo, hi if hi > lo else lo + 1, HEIGHT - BOTTOM, TOP)
    marks = _axes(x, y, first, last)
    marks += _line(TimeSeries("", [(one.day, one.threshold) for one in looks]), x, y, "pareto", "5 3")
    marks += _line(TimeSeries("", [(one.day, one.value) for one in looks]), x, y, "lead", "")
    return drawing(name=name, title=title, width=WIDTH, height=HEIGHT, marks=marks)


def level_text(value: float | None) -> str:
    """A level in about three figures; not known without one."""
    if value is None:
        return "not known"
    if value == 0:
        return "0"
    n = max(0, 2 - int(log10(abs(value)))) if abs(value) >= 1 else 3 - int(log10(abs(value)))
    return f"{value:,.{n}f}".replace("-", "−")


def _line(one: TimeSeries, x: LinearScale, y: LinearScale, colour: str, dash: str) -> list[SafeString]:
    marks = []
    for run in one.runs:
        places = [(x(day.toordinal()), y(value)) for day, value in run]
        if len({day for day, _ in run}) > 1:
            marks.append(steps(places, stroke=colour, dash=dash))
        if not dash:
            marks += [
                dot(*place, fill=colour, title=f"{day}: {level_text(value)}", radius=2.4)
                for place, (day, value) in zip(places, run, strict=True)
            ]
        elif len({day for day, _ in run}) == 1:
            marks.append(
                steps([(LEFT, places[-1][1]), (WIDTH - RIGHT, places[-1][1])], stroke=colour, dash=dash)
            )
    return marks


def _axes(x: LinearScale, y: LinearScale, first: date, last: date) -> list[SafeString]:
    marks = []
    for tick in ticks_125(y.lo, y.hi, 3):
        marks.append(rule(LEFT, y(tick), WIDTH - RIGHT, y(tick)))
        marks.append(text(LEFT - 6, y(tick) + 4, f"{tick:g}".replace("-", "−"), anchor="end"))
    days = month_ticks(first, last, 4) or [first]
    return [*marks, *(text(x(day.toordinal()), HEIGHT - 8, f"{day:%Y-%m}") for day in days)]
