"""Shares through time: step lines over days, with events."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from django.utils.html import format_html
from django.utils.safestring import SafeString

from leaderboard.plots.marks import dot, drawing, paint, rule, steps, text
from leaderboard.plots.scales import LinearScale, month_ticks, ticks_125

SERIES = (("lead", ""), ("pareto", "6 3"), ("worse", "2 3"))  # colour and dash of the first, second, third
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 12, 34  # margins around the scales


@dataclass(frozen=True)
class TimeSeries:
    """Shares by day; None is a gap, where the share cannot be computed."""

    label: str
    points: Sequence[tuple[date, float | None]]

    @property
    def runs(self) -> list[list[tuple[date, float]]]:
        """The points between gaps."""
        runs: list[list[tuple[date, float]]] = [[]]
        for day, share in self.points:
            if share is None:
                runs.append([])
            else:
                runs[-1].append((day, share))
        return [run for run in runs if run]


def shares_through_time(
    *,
    name: str,
    title: str,
    series: Sequence[TimeSeries],
    lo: float = 0.0,
    events: Sequence[tuple[date, str]] = (),
    width: float = 640,
    height: float = 240,
) -> SafeString:
    """Shares, `lo` to 1, as step lines over days; `events` are upright lines that tell what they are.

    Raises ValueError: no series has a point: there is nothing to draw.
    """
    days = [day for one in series for day, _ in one.points]
    if not days:
        raise ValueError("nothing to draw")
    first, last = min(days), max(days)
    x = LinearScale(first.toordinal(), last.toordinal(), LEFT, width - RIGHT)
    y = LinearScale(lo, 1.0, height - BOTTOM, TOP)
    marks = [*_share_axis(y, width), *_day_axis(x, first, last, height)]
    marks += [_event(x(day.toordinal()), height, label) for day, label in events]
    for place, one in enumerate(series):
        marks += _series(one, x, y, *SERIES[place])
    return drawing(name=name, title=title, width=width, height=height, marks=marks)


def _series(one: TimeSeries, x: LinearScale, y: LinearScale, colour: str, dash: str) -> list[SafeString]:
    marks = []
    for run in one.runs:
        places = [(x(day.toordinal()), y(share)) for day, share in run]
        marks.append(steps(places, stroke=colour, dash=dash))
        marks += [
            dot(*place, fill=colour, title=f"{day}: {100 * share:.1f}% {one.label}", radius=2.2)
            for place, (day, share) in zip(places, run, strict=True)
        ]
    return marks


def _share_axis(y: LinearScale, width: float) -> list[SafeString]:
    marks = []
    for tick in ticks_125(y.lo, y.hi, 4):
        marks.append(rule(LEFT, y(tick), width - RIGHT, y(tick)))
        marks.append(text(LEFT - 6, y(tick) + 4, f"{100 * tick:g}%", anchor="end"))
    return marks


def _day_axis(x: LinearScale, first: date, last: date, height: float) -> list[SafeString]:
    days = month_ticks(first, last) or [first]
    return [text(x(day.toordinal()), height - BOTTOM + 20, f"{day:%Y-%m}") for day in days]


def _event(x: float, height: float, label: str) -> SafeString:
    return format_html(
        '<path {} d="M{} {}V{}" stroke-width="1" stroke-dasharray="1 2"><title>{}</title></path>',
        paint(stroke="ink", css="event"),
        f"{x:g}",
        TOP,
        f"{height - BOTTOM:g}",
        label,
    )
