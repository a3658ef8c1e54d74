"""Scores against what they took: money, or time until somebody had them.

The front joins what nothing beats at its price or less, or at its day or before. Dots tell by their shape how
an agent stands to the reference: filled and large is tied with it, hollow and small is not.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil, floor

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
    text,
    ticks_13,
    ticks_125,
)
from leaderboard.plots.ranks import Standing

WIDTH, HEIGHT = 528, 300
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 12, 38  # margins around the scales
DOTS: dict[Standing, tuple[str, str, float, float]] = {  # fill, stroke, radius, width of the stroke
    "lead": ("lead", "paper", 5, 1),
    "tied": ("tied", "paper", 5, 1),
    "worse": ("paper", "worse", 4, 1.5),
    "muted": ("muted", "paper", 4, 1),
}
BEHIND: tuple[Standing, ...] = ("worse", "muted", "tied", "lead")  # from back to front
SIGN = 6.3  # px, a letter of a name in the mean
LONGEST_NAME = 24
MAX_COVERED = 2  # dots under a name


@dataclass(frozen=True)
class Point:
    """An agent: what it took (US dollars, or a day as its ordinal), its score, and words for both."""

    name: str
    title: str
    took: float
    score: float
    interval: tuple[float, float] | None
    standing: Standing
    address: str = ""
    more: str = ""  # behind the name, never cut
    in_headlines: bool = True  # whether headlines, and the line, may be made from it


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
    scale = LinearScale(lo, hi, LEFT, WIDTH - RIGHT, log=True)
    named = [(v, f"${v:,g}" if v < 100 else f"${v:,.0f}") for v in ticks]
    return scale, named, "cost of a run of all tasks, log scale"


def day_axis(points: Sequence[Point]) -> Axis:
    first, last = (int(end(p.took for p in points)) for end in (min, max))
    days = month_ticks(date.fromordinal(first), date.fromordinal(last)) or [date.fromordinal(first)]
    scale = LinearScale(first, last, LEFT + 8, WIDTH - RIGHT - 8)
    return scale, [(day.toordinal(), f"{day:%Y-%m}") for day in days], "date of submission"


def score_scale(points: Iterable[Point]) -> LinearScale:
    """Upwards, between the tens of percent around all scores."""
    scores = [point.score for point in points]
    lo, hi = floor(10 * min(scores) + 1e-9), ceil(10 * max(scores) - 1e-9)
    if lo == hi:
        lo, hi = max(0, lo - 1), min(10, hi + 1)
    return LinearScale(lo / 10, hi / 10, HEIGHT - BOTTOM, TOP)


def pareto(points: Sequence[Point], axis: Axis, *, name: str, title: str) -> SafeString:
    """Draw the points, their intervals, and the front with the names of those on it.

    ValueError without a point.
    """
    if not points:
        raise ValueError("nothing to draw")
    (x, ticks, axis_title), y, floor_ = axis, score_scale(points), HEIGHT - BOTTOM
    best = front(points)
    tens = ticks_125(y.lo, y.hi, 8)
    marks = [rule(LEFT, y(tick), WIDTH - RIGHT, y(tick)) for tick in tens]
    for tick in tens:
        label = f"{round(100 * tick)}{'%' if tick == tens[-1] else ''}"
        marks.append(text(LEFT - 6, y(tick) + 4, label, anchor="end"))
    marks += [rule(x(v), TOP, x(v), floor_) for v, _ in ticks]
    marks += [text(x(v), floor_ + 16, label) for v, label in ticks]
    marks.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 5, axis_title))
    whiskers: dict[Standing, str] = {}  # one path for each standing; what lies beyond the scale is cut off
    for point in points:
        if point.interval is not None:
            lower, upper = map(y.clipped, point.interval)
            ends = f"M{x(point.took):g} {lower:g}V{upper:g}"
            whiskers[point.standing] = whiskers.get(point.standing, "") + ends
    marks += [path(whiskers[one], stroke=one, width=1.2, css="whiskers") for one in BEHIND if one in whiskers]
    if best:
        marks.append(steps([*_places(best, x, y), (WIDTH - RIGHT, y(best[-1].score))], stroke="pareto"))
    for point in sorted(points, key=lambda point: (BEHIND.index(point.standing), point.score)):
        fill, stroke, radius, width = DOTS[point.standing]
        at = x(point.took), y(point.score)
        drawn = dot(*at, fill=fill, stroke=stroke, radius=radius, width=width, title=point.title)
        marks.append(linked(point.address, drawn, stop=False) if point.address else drawn)
    marks += _names(best, _places(points, x, y), x, y)
    return drawing(name=name, title=title, width=WIDTH, height=HEIGHT, marks=marks, links=True)


def _places(points: Iterable[Point], x: LinearScale, y: LinearScale) -> list[Place]:
    return [(x(point.took), y(point.score)) for point in points]


Box = tuple[float, float, float, float]  # left, top, right, bottom


def _names(
    best: Sequence[Point], places: Sequence[Place], x: LinearScale, y: LinearScale
) -> list[SafeString]:
    """Names beside the front, from the best down; one for which there is no room is left to its title.

    A name hides no dot of the front, and few of the dots at `places`. Above to the left is the best place.
    """
    marks, taken = list[SafeString](), list[Box]()
    of_front = _places(best, x, y)
    labels = cut_apart([point.name for point in best], LONGEST_NAME)
    for point, label in list(zip(best, labels, strict=True))[::-1]:
        name = f"{label}{point.more}"
        width, at, above = SIGN * len(name), x(point.took), y(point.score)
        for left, bottom, anchor in (
            (at - 8 - width, above - 5, "end"),
            (at + 9, above - 6, "start"),
            (at + 9, above + 16, "start"),
            (at - 8 - width, above + 16, "end"),
        ):
            box = (left, bottom - 11, left + width, bottom + 2)
            hides = _n_inside(box, of_front) or _n_inside(box, places) > MAX_COVERED
            inside = (
                left >= LEFT and left + width <= WIDTH - RIGHT and box[1] >= 0 and box[3] <= HEIGHT - BOTTOM
            )
            meets = any(left < r and box[2] > le and box[1] < b and box[3] > t for le, t, r, b in taken)
            if inside and not meets and not hides:
                taken.append(box)
                start = left if anchor == "start" else left + width
                marks.append(text(start, bottom, name, fill="ink", anchor=anchor, halo=True))
                break
    return marks


def _n_inside(box: Box, places: Iterable[Place]) -> int:
    left, top, right, bottom = box
    return sum(left - 4 <= x <= right + 4 and top - 3 <= y <= bottom + 3 for x, y in places)
