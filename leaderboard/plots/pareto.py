"""The pictures of a board: scores against what they took, money or time, and the first agents by score.

The front joins what nothing beats at its price or less, or at its day or before. A filled dot could be the
best, an outlined one is not clearly worse than the leader, a small one is. Places across are percents of the
width, so that letters keep their size on a phone; what is in sight there alone or never has its class.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil, floor
from typing import NamedTuple

from django.utils.safestring import SafeString

from leaderboard.plots.marks import (
    LinearScale,
    Place,
    cut_apart,
    dot,
    drawing,
    linked,
    month_ticks,
    path,
    rule,
    steps,
    stretched,
    text,
    ticks_13,
    ticks_125,
)
from leaderboard.plots.ranks import RankMark

WIDTH, HEIGHT = 528, 286
LEFT, RIGHT, TOP, BOTTOM = 10.5, 97.5, 10, 36  # percents of the width; px above and below the scale
DOTS: dict[RankMark, tuple[str, str, float, float]] = {  # fill, stroke, radius, width of the stroke
    "first": ("lead", "paper", 5, 1),
    "both": ("lead", "ink", 5, 2),
    "tied": ("paper", "lead", 4.5, 2),
    "worse": ("worse", "paper", 3.2, 0.8),
    "muted": ("muted", "paper", 3.2, 0.8),
}
BEHIND: tuple[RankMark, ...] = ("worse", "muted", "tied", "first", "both")  # from back to front
WHISKERS: dict[RankMark, str] = {
    "first": "lead",
    "both": "lead",
    "tied": "lead",
    "worse": "worse",
    "muted": "muted",
}
SIGN = 6.7  # px, a letter of a name in the mean
# Widths that names are placed for, and how long these may be; which is in sight, says the stylesheet.
ROOMS = {"roomy": (WIDTH, 30), "tight": (288, 22)}
MAX_TICKS = 5  # of words along the bottom, on a phone
LAST = 94  # percent of the width from where on a word in the middle of its tick would not fit


@dataclass(frozen=True)
class Point:
    """An agent: what it took (US dollars, or a day as its ordinal), its score, and words for both.

    is_out: a filter leaves it out.
    """

    name: str
    title: str
    took: float
    score: float
    interval: tuple[float, float] | None
    standing: RankMark
    address: str = ""
    more: str = ""  # behind the name, never cut
    in_headlines: bool = True  # whether headlines, and the line, may be made from it
    is_out: bool = False


Axis = tuple[LinearScale, list[tuple[float, str]], str]  # along the bottom: ticks in words, what it is of


def front(points: Iterable[Point]) -> list[Point]:
    """The points that none with as little or less beats, from the least taken to the best score.

    Of those that headlines are made from.
    """
    best: list[Point] = []
    for point in sorted(
        (one for one in points if one.in_headlines), key=lambda point: (point.took, -point.score)
    ):
        if not best or point.score > best[-1].score:
            best.append(point)
    return best


def cost_axis(points: Sequence[Point]) -> Axis:
    lo, hi = min(p.took for p in points) / 1.25, max(p.took for p in points) * 1.25
    ticks = ticks_13(lo, hi)
    if len(ticks) > 8:
        ticks = ticks[::2]
    elif len(ticks) < 2:  # costs so near that no 1 or 3 lies between
        ticks = [tick for tick in ticks_125(lo, hi, 5) if tick > 0]
    scale = LinearScale(lo, hi, LEFT, RIGHT, log=True)
    named = [(v, f"${v:,g}" if v < 100 else f"${v:,.0f}") for v in ticks]
    return scale, named, "cost of a full run, log scale"


def day_axis(points: Sequence[Point]) -> Axis:
    first, last = (int(end(p.took for p in points)) for end in (min, max))
    days = month_ticks(date.fromordinal(first), date.fromordinal(last)) or [date.fromordinal(first)]
    scale = LinearScale(first, last, LEFT + 3, RIGHT - 3)
    return scale, [(day.toordinal(), f"{day:%Y-%m}") for day in days], "date of submission"


def score_scale(points: Iterable[Point], start: float, end: float) -> LinearScale:
    """Between the tens of percent around all scores and their intervals."""
    ends = [end for point in points for end in (point.score, *(point.interval or ()))]
    lo, hi = floor(10 * min(ends) + 1e-9), ceil(10 * max(ends) - 1e-9)
    if lo == hi:
        lo, hi = max(0, lo - 1), min(10, hi + 1)
    return LinearScale(lo / 10, hi / 10, start, end)


def pareto(points: Sequence[Point], axis: Axis, *, name: str, title: str) -> SafeString:
    """Draw the points, their intervals, and the front with the names of those on it.

    ValueError without a point.
    """
    if not points:
        raise ValueError("nothing to draw")
    (x, ticks, axis_title), y, floor_ = axis, score_scale(points, HEIGHT - BOTTOM, TOP), HEIGHT - BOTTOM
    best = front(points)
    tens = ticks_125(y.lo, y.hi, 8)
    lines = [rule(LEFT, y(tick), RIGHT, y(tick), fluid=True) for tick in tens]
    lines += [rule(x(v), TOP, x(v), floor_, fluid=True) for v, _ in ticks]
    ends = {
        point: f"M{x(point.took):g} {y(point.interval[0]):g}V{y(point.interval[1]):g}"
        for point in points
        if point.interval
    }
    lines += _whiskers(ends)
    if best:
        places = [(x(point.took), y(point.score)) for point in best]
        lines.append(steps([*places, (RIGHT, places[-1][1])], stroke="pareto", fluid=True))
    marks = [stretched(lines, HEIGHT)]
    for tick in tens:
        label = f"{round(100 * tick)}{'%' if tick == tens[0] else ''}"
        marks.append(text(f"{LEFT:g}%", y(tick) + 4, label, anchor="end", dx=-4))
    for place, (v, label) in enumerate(ticks):
        css = "roomy" if place % 2 and len(ticks) > MAX_TICKS else ""
        marks.append(_below(x(v), floor_ + 16, label, css))
    marks.append(text(f"{(LEFT + RIGHT) / 2:g}%", HEIGHT - 4, axis_title))
    marks += _dots([(point, x(point.took), y(point.score)) for point in points])
    for css in ROOMS:
        marks += _names(best, points, x, y, css)
    return drawing(name=name, title=title, width=WIDTH, height=HEIGHT, marks=marks, links=True, fluid=True)


def _below(x: float, y: float, label: str, css: str = "") -> SafeString:
    """What a tick is called; at the end of the width it stands before it."""
    at, anchor = (x, "middle") if x < LAST else (100, "end")
    return text(f"{at:g}%", y, label, anchor=anchor, css=css)


def _whiskers(ends: dict[Point, str]) -> list[SafeString]:
    """One path for all that look alike: a standing, left out by a filter or not."""
    drawn: dict[tuple[bool, RankMark], str] = {}
    for point, end in ends.items():
        key = not point.is_out, point.standing
        drawn[key] = drawn.get(key, "") + end
    return [
        path(drawn[key], stroke=WHISKERS[key[1]] if key[0] else "grid", width=1.2, css="whiskers", fluid=True)
        for key in sorted(drawn, key=lambda key: (key[0], BEHIND.index(key[1])))
    ]


def _dots(places: Iterable[tuple[Point, float, float]]) -> list[SafeString]:
    marks = []
    for point, x, y in sorted(
        places, key=lambda one: (not one[0].is_out, BEHIND.index(one[0].standing), one[0].score)
    ):
        fill, stroke, radius, width = DOTS[point.standing]
        drawn = dot(
            f"{x:g}%",
            y,
            fill=fill,
            stroke=stroke,
            radius=radius,
            width=width,
            title=point.title,
            css=point.standing,
        )
        marks.append(linked(point.address, drawn, stop=False, dim=point.is_out) if point.address else drawn)
    return marks


class Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Box") -> bool:
        return (
            self.left < other.right
            and self.right > other.left
            and self.top < other.bottom
            and self.bottom > other.top
        )


def _names(
    best: Sequence[Point], points: Iterable[Point], x: LinearScale, y: LinearScale, css: str
) -> list[SafeString]:
    """Names beside the front, from the best down, at the width of `css`; one without room is left out.

    A name covers no dot, no whisker, no line and no other name. Above to the left is the best place.
    """
    width, longest = ROOMS[css]

    def at(point: Point) -> Place:
        return x(point.took) * width / 100, y(point.score)

    taken = []
    for point in points:
        across, down = at(point)
        radius = DOTS[point.standing][2] + 1
        taken.append(Box(across - radius, down - radius, across + radius, down + radius))
        if point.interval:
            taken.append(Box(across - 1, y(point.interval[1]), across + 1, y(point.interval[0])))
    corners = [at(point) for point in best]
    for (left, low), (right, high) in zip(
        corners, [*corners[1:], (RIGHT * width / 100, corners[-1][1])] if corners else [], strict=True
    ):
        taken += [Box(left, low - 1, right, low + 1), Box(right - 1, high, right + 1, low)]
    marks = []
    labels = cut_apart([point.name for point in best], longest)
    for point, label in list(zip(best, labels, strict=True))[::-1]:
        name, (across, down) = f"{label}{point.more}", at(point)
        size = SIGN * len(name)
        low, high = (y(end) for end in point.interval or (point.score, point.score))
        for dx, bottom, anchor, left in (
            (-8, down - 5, "end", -8 - size),
            (9, down - 6, "start", 9),
            (9, down + 16, "start", 9),
            (-8, down + 16, "end", -8 - size),
            (0, high - 5, "middle", -size / 2),
            (0, low + 13, "middle", -size / 2),
        ):
            box = Box(across + left, bottom - 11, across + left + size, bottom + 3)
            is_inside = (
                box.left >= LEFT * width / 100
                and box.right <= width
                and box.top >= 0
                and box.bottom <= HEIGHT - BOTTOM
            )
            if is_inside and not any(map(box.meets, taken)):
                taken.append(box)
                marks.append(
                    text(
                        f"{x(point.took):g}%",
                        bottom,
                        name,
                        fill="ink",
                        anchor=anchor,
                        halo=True,
                        dx=dx,
                        css=css,
                    )
                )
                break
    return marks


# --------------------------------------------------------------------------------------------------- scores

ROW, ABOVE, BELOW = 13.5, 6, 24  # px: of an agent, around all
NAMES = 46  # percent of the width that names take, left of the scale
ROOM_OF_NAMES = {"roomy": 32, "tight": 19}  # signs


def first_scores(points: Sequence[Point], *, name: str, title: str) -> SafeString:
    """Draw a row for each point, in their order: its name, its score as a dot, its interval.

    ValueError without a point.
    """
    if not points:
        raise ValueError("nothing to draw")
    x = score_scale(points, NAMES, RIGHT)
    bottom = ABOVE + ROW * len(points)
    rows = {point: ABOVE + ROW * (place + 0.5) for place, point in enumerate(points)}
    tens = ticks_125(x.lo, x.hi, 4)
    lines = [rule(x(tick), ABOVE, x(tick), bottom, fluid=True) for tick in tens]
    lines += _whiskers(
        {
            point: f"M{x(point.interval[0]):g} {row:g}H{x(point.interval[1]):g}"
            for point, row in rows.items()
            if point.interval
        }
    )
    marks = [stretched(lines, bottom)]
    for tick in tens:
        label = f"{round(100 * tick)}{'%' if tick == tens[-1] else ''}"
        marks.append(_below(x(tick), bottom + 15, label))
    for css, room in ROOM_OF_NAMES.items():
        for point, label in zip(points, cut_apart([p.name for p in points], room), strict=True):
            marks.append(
                text(
                    f"{NAMES}%",
                    rows[point] + 4,
                    label,
                    fill="muted" if point.is_out else "ink",
                    anchor="end",
                    dx=-8,
                    css=css,
                )
            )
    marks += _dots([(point, x(point.score), row) for point, row in rows.items()])
    return drawing(
        name=name, title=title, width=WIDTH, height=bottom + BELOW, marks=marks, links=True, fluid=True
    )
