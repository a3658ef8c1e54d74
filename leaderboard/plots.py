"""Charts as inline SVG, drawn from the rows of their table twins; no script, no library, no style attribute.

A chart is a list of marks under two scales. Colours are presentation attributes, so that a chart also stands
alone; where a page is around it, the stylesheet's classes overrule them for light, dark and paper.
The lengths of a drawing are user units, one for a CSS pixel at its natural width.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil, floor, log10

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

INK, MUTED, RULE = "#1c2226", "#4d575e", "#dcdfda"
LEAD, SECOND, THIRD = "#0b5563", "#b3450f", "#79828a"  # told apart by dashes too, see DASHES
COLOURS = (LEAD, SECOND, THIRD)
DASHES = ("", "6 3", "2 3")
TEXT = 12
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 12, 34  # margins around the scales


@dataclass(frozen=True)
class Scale:
    """From values, `lo` to `hi`, to places on the drawing, `start` to `end`; linear, or by the logarithm."""

    lo: float
    hi: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        lo, hi, value = (log10(v) if self.log else v for v in (self.lo, self.hi, value))
        share = (value - lo) / (hi - lo) if hi > lo else 0.5
        return round(self.start + share * (self.end - self.start), 2)


def ticks_125(lo: float, hi: float, n: int = 5) -> list[float]:
    """About `n` round values from `lo` to `hi`, one, two or five times a power of ten apart."""
    if hi <= lo:
        return [lo]
    rough = (hi - lo) / n
    power = 10.0 ** floor(log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * (1 - 1e-9))
    first = ceil(lo / step - 1e-9)
    return [round(i * step, 12) for i in range(first, floor(hi / step + 1e-9) + 1)]


def ticks_13(lo: float, hi: float) -> list[float]:
    """One and three times each power of ten, from `lo` to `hi`; both positive."""
    powers = range(floor(log10(lo)), ceil(log10(hi)) + 1)
    return [v for p in powers for v in (10.0**p, 3 * 10.0**p) if lo * (1 - 1e-9) <= v <= hi * (1 + 1e-9)]


def month_ticks(first: date, last: date, most: int = 7) -> list[date]:
    """First days of months, one to twelve months apart, at most `most` of them."""
    months = range(first.year * 12 + first.month - 1, last.year * 12 + last.month)
    for step in (1, 2, 3, 6, 12, 24, 60, 120):
        every = [date(m // 12, m % 12 + 1, 1) for m in months if m % step == 0]
        found = [day for day in every if first <= day <= last]
        if len(found) <= most:
            return found
    return []


# ------------------------------------------------------------------------------------------------- marks


def line(points: Iterable[tuple[float, float]], *, css: str, colour: str, dash: str = "") -> SafeString:
    """A line through these places."""
    path = "M" + "L".join(f"{x:g} {y:g}" for x, y in points)
    return _path(path, css, colour, dash)


def steps(points: Sequence[tuple[float, float]], *, css: str, colour: str, dash: str = "") -> SafeString:
    """A line that keeps each height until the next place."""
    (x, y), *rest = points
    path = f"M{x:g} {y:g}" + "".join(f"H{x:g}V{y:g}" for x, y in rest)
    return _path(path, css, colour, dash)


def _path(path: str, css: str, colour: str, dash: str) -> SafeString:
    dashed = format_html(' stroke-dasharray="{}"', dash) if dash else mark_safe("")
    return format_html(
        '<path class="{}" d="{}" fill="none" stroke="{}" stroke-width="1.6"{}/>', css, path, colour, dashed
    )


def dot(x: float, y: float, *, css: str, colour: str, title: str, radius: float = 3) -> SafeString:
    """A dot that tells what it is when pointed at."""
    return format_html(
        '<circle class="{}" cx="{}" cy="{}" r="{}" fill="{}"><title>{}</title></circle>',
        css,
        f"{x:g}",
        f"{y:g}",
        f"{radius:g}",
        colour,
        title,
    )


def text(x: float, y: float, said: str, *, css: str = "tick", anchor: str = "middle") -> SafeString:
    return format_html(
        '<text class="{}" x="{}" y="{}" text-anchor="{}" font-size="{}" fill="{}">{}</text>',
        css,
        f"{x:g}",
        f"{y:g}",
        anchor,
        TEXT,
        MUTED,
        said,
    )


def rule(x1: float, y1: float, x2: float, y2: float) -> SafeString:
    return format_html(
        '<path class="rule" d="M{} {}L{} {}" stroke="{}" stroke-width="1"/>',
        *(f"{v:g}" for v in (x1, y1, x2, y2)),
        RULE,
    )


def drawing(*, name: str, title: str, width: float, height: float, marks: Iterable[SafeString]) -> SafeString:
    """The chart. Its title is read out in its place, and its table twin holds the rows."""
    return format_html(
        '<svg xmlns="http://www.w3.org/2000/svg" class="plot {}" viewBox="0 0 {} {}" width="{}" role="img" '
        'aria-labelledby="plot-{}" font-family="sans-serif"><title id="plot-{}">{}</title>{}</svg>',
        name,
        f"{width:g}",
        f"{height:g}",
        f"{width:g}",
        name,
        name,
        title,
        format_html_join("", "{}", ((mark,) for mark in marks)),
    )


# ------------------------------------------------------------------------------------------------ charts


@dataclass(frozen=True)
class Series:
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
    series: Sequence[Series],
    lo: float = 0.0,
    events: Sequence[tuple[date, str]] = (),
    width: float = 640,
    height: float = 240,
) -> SafeString:
    """Shares, `lo` to 1, as step lines over days; `events` are upright lines that tell what they are.

    Raises
    ------
    ValueError
        No series has a point: there is nothing to draw.
    """
    days = [day for one in series for day, _ in one.points]
    if not days:
        raise ValueError("nothing to draw")
    first, last = min(days), max(days)
    x = Scale(first.toordinal(), last.toordinal(), LEFT, width - RIGHT)
    y = Scale(lo, 1.0, height - BOTTOM, TOP)
    marks = [*_share_axis(y, width), *_day_axis(x, first, last, height)]
    marks += [_event(x(day.toordinal()), height, said) for day, said in events]
    for place, one in enumerate(series):
        marks += _series(one, x, y, css=f"series-{place + 1}", colour=COLOURS[place], dash=DASHES[place])
    return drawing(name=name, title=title, width=width, height=height, marks=marks)


def _series(one: Series, x: Scale, y: Scale, *, css: str, colour: str, dash: str) -> list[SafeString]:
    marks = []
    for run in one.runs:
        places = [(x(day.toordinal()), y(share)) for day, share in run]
        marks.append(steps(places, css=css, colour=colour, dash=dash))
        marks += [
            dot(*place, css=css, colour=colour, title=f"{day}: {100 * share:.1f}% {one.label}", radius=2.2)
            for place, (day, share) in zip(places, run, strict=True)
        ]
    return marks


def _share_axis(y: Scale, width: float) -> list[SafeString]:
    marks = []
    for tick in ticks_125(y.lo, y.hi, 4):
        marks.append(rule(LEFT, y(tick), width - RIGHT, y(tick)))
        marks.append(text(LEFT - 6, y(tick) + 4, f"{100 * tick:g}%", anchor="end"))
    return marks


def _day_axis(x: Scale, first: date, last: date, height: float) -> list[SafeString]:
    days = month_ticks(first, last) or [first]
    return [text(x(day.toordinal()), height - BOTTOM + 20, f"{day:%Y-%m}") for day in days]


def _event(x: float, height: float, said: str) -> SafeString:
    return format_html(
        '<path class="event" d="M{} {}V{}" stroke="{}" stroke-width="1" stroke-dasharray="1 2">'
        "<title>{}</title></path>",
        f"{x:g}",
        TOP,
        f"{height - BOTTOM:g}",
        INK,
        said,
    )
