"""What charts are made of: scales and round ticks, lines, dots, bars, words, and the drawing around them.

A mark carries its light colour as an attribute, so that a chart also stands alone, and a class for each
(`f-tied`, `s-tied`), by which a stylesheet repaints it for dark and paper. Meaning never hangs on colour
alone: what is worse is thin, what is second is dashed. Lengths are user units, one for a CSS pixel
at the natural width of a drawing.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil, floor, log10

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe


@dataclass(frozen=True)
class Chart:
    """What a page shows as a figure, and /b/{slug}/plots/{name}.svg alone; `lede` says how to read it."""

    name: str
    title: str
    lede: str
    svg: SafeString
    heads: tuple[str, ...] = ()  # of the table twin, with a row for each mark; none where the page is that
    rows: tuple[tuple[str, ...], ...] = ()
    narrow: SafeString | None = None  # for a phone, where that is another drawing


# As the variables of the same names in static/css/bandstand.css; contrasts are in its comments.
PAINT = {
    "paper": "#fdfdfb",
    "ink": "#1c2226",
    "muted": "#4d575e",
    "grid": "#e6e8e3",
    "lead": "#0b5563",
    "tied": "#3f8fa0",
    "worse": "#79828a",
    "pareto": "#b3450f",
    "caution": "#7a4206",
    "band": "#efe3f4",
}
TEXT = 12
Place = tuple[float, float]
Across = float | str  # px, or a percent of the width: 12.5%


@dataclass(frozen=True)
class LinearScale:
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

    def clipped(self, value: float) -> float:
        return self(min(max(value, self.lo), self.hi))


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
        days = [day for day in every if first <= day <= last]
        if len(days) <= most:
            return days
    return []


def day_ticks(lo: float, hi: float, most: int = 7) -> list[tuple[float, str]]:
    """Between two days as ordinals: first days of months, or days where these are too few; in words too."""
    first, last = date.fromordinal(floor(lo)), date.fromordinal(floor(hi))
    months = month_ticks(first, last, most)
    if len(months) > 1:
        return [(float(day.toordinal()), f"{day:%Y-%m}") for day in months]
    days = [day for day in ticks_125(ceil(lo), floor(hi), most) if day == int(day) and lo <= day <= hi]
    return [(day, date.fromordinal(int(day)).isoformat()) for day in days or [lo]]


def paint(*, fill: str = "", stroke: str = "", css: str = "") -> SafeString:
    """Attributes that colour a mark; `css` are classes of its own. What is not filled is empty."""
    classes = " ".join(part for part in (css, fill and f"f-{fill}", stroke and f"s-{stroke}") if part)
    return format_html(
        'class="{}" fill="{}"{}',
        classes,
        PAINT[fill] if fill else "none",
        format_html(' stroke="{}"', PAINT[stroke]) if stroke else "",
    )


def line(points: Iterable[Place], *, stroke: str, width: float = 1.6, dash: str = "") -> SafeString:
    return path("M" + "L".join(f"{x:g} {y:g}" for x, y in points), stroke=stroke, width=width, dash=dash)


def steps(points: Sequence[Place], *, stroke: str, dash: str = "", fluid: bool = False) -> SafeString:
    (x, y), *rest = points
    drawn = f"M{x:g} {y:g}" + "".join(f"H{x:g}V{y:g}" for x, y in rest)
    return path(drawn, stroke=stroke, width=1.6, dash=dash, fluid=fluid)


def path(
    drawn: str, *, stroke: str, width: float = 1, dash: str = "", css: str = "", fluid: bool = False
) -> SafeString:
    """A line; `fluid`: it stays as thick as it is where `stretched` makes the drawing wider."""
    more = format_html(' stroke-dasharray="{}"', dash) if dash else mark_safe("")
    more += mark_safe(' vector-effect="non-scaling-stroke"') if fluid else mark_safe("")
    return format_html(
        '<path {} d="{}" stroke-width="{}"{}/>', paint(stroke=stroke, css=css), drawn, f"{width:g}", more
    )


def rule(
    x1: float, y1: float, x2: float, y2: float, *, stroke: str = "grid", fluid: bool = False
) -> SafeString:
    return path(f"M{x1:g} {y1:g}L{x2:g} {y2:g}", stroke=stroke, fluid=fluid)


def stretched(marks: Iterable[SafeString], height: float) -> SafeString:
    """Lines whose lengths across are percents of the width that the drawing takes."""
    return format_html(
        '<svg width="100%" height="{}" viewBox="0 0 100 {}" preserveAspectRatio="none">{}</svg>',
        f"{height:g}",
        f"{height:g}",
        SafeString("".join(marks)),
    )


def bar(x: float, y: float, width: float, height: float, *, fill: str, radius: float = 0) -> SafeString:
    rounded = format_html(' rx="{}"', f"{radius:g}") if radius else mark_safe("")
    return format_html(
        '<rect {} x="{}" y="{}" width="{}" height="{}"{}/>',
        paint(fill=fill),
        *(f"{v:g}" for v in (x, y, width, height)),
        rounded,
    )


def _across(x: Across) -> str:
    return x if isinstance(x, str) else f"{x:g}"


def dot(
    x: Across,
    y: float,
    *,
    fill: str,
    stroke: str = "",
    radius: float = 3,
    width: float = 1,
    title: str = "",
    css: str = "",
) -> SafeString:
    return format_html(
        '<circle {} cx="{}" cy="{}" r="{}"{}>{}</circle>',
        paint(fill=fill, stroke=stroke, css=css),
        _across(x),
        *(f"{v:g}" for v in (y, radius)),
        format_html(' stroke-width="{}"', f"{width:g}") if stroke else "",
        format_html("<title>{}</title>", title) if title else "",
    )


def linked(address: str, mark: SafeString, *, stop: bool = True, dim: bool = False) -> SafeString:
    """A mark that leads somewhere; `stop`: the keyboard stops at it, which has no other way there."""
    more = ("" if stop else ' tabindex="-1"') + (' class="dim" opacity="0.25"' if dim else "")
    return format_html('<a href="{}"{}>{}</a>', address, mark_safe(more), mark)


def cut(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1].rstrip()}…"


def cut_apart(names: Sequence[str], most: int) -> list[str]:
    """Names of at most so many signs: of those that would read alike the middle is left out instead."""
    ends = [cut(name, most) for name in names]
    n, head = Counter(ends), (most - 1) // 3
    return [
        end if n[end] == 1 or len(name) <= most else f"{name[:head]}…{name[len(name) - (most - 1 - head) :]}"
        for name, end in zip(names, ends, strict=True)
    ]


def text(
    x: Across,
    y: float,
    words: str,
    *,
    fill: str = "muted",
    anchor: str = "middle",
    halo: bool = False,
    dx: float = 0,
    css: str = "",
) -> SafeString:
    more = format_html(' dx="{}"', f"{dx:g}") if dx else mark_safe("")
    if halo:
        more += format_html(' stroke="{}" stroke-width="3" paint-order="stroke"', PAINT["paper"])
    return format_html(
        '<text class="{}f-{}{}" x="{}" y="{}" text-anchor="{}" font-size="{}" fill="{}"{}>{}</text>',
        f"{css} " if css else "",
        fill,
        " s-paper" if halo else "",
        _across(x),
        f"{y:g}",
        anchor,
        TEXT,
        PAINT[fill],
        more,
        words,
    )


def drawing(
    *,
    name: str,
    title: str,
    width: float,
    height: float,
    marks: Iterable[SafeString],
    links: bool = False,
    fluid: bool = False,
) -> SafeString:
    """The chart. Its title is read out in its place; one with links inside is a group to walk through.

    fluid: its places across are percents, so that another width makes no letter larger or smaller.
    """
    size = f"{width:g}", f"{height:g}"
    box = mark_safe("") if fluid else format_html(' viewBox="0 0 {} {}"', *size)
    return format_html(
        '<svg xmlns="http://www.w3.org/2000/svg" class="plot {}{}"{} width="{}" height="{}" '
        'role="{}" aria-labelledby="plot-{}" font-family="sans-serif"><title id="plot-{}">{}</title>{}</svg>',
        name,
        " fluid" if fluid else "",
        box,
        *size,
        "group" if links else "img",
        name,
        name,
        title,
        SafeString("".join(marks)),
    )
