"""Who passed one task: a dot an agent by rank, and pass rates by quarter against a band."""

from collections.abc import Sequence
from math import sqrt

from django.utils.safestring import SafeString, mark_safe

from leaderboard.plots.marks import LinearScale, bar, dot, drawing, line, linked, rule, text
from leaderboard.studies.answers import words

WIDTH, HEIGHT, MIDDLE, EDGE, GAP = 1200, 64, 20, 10, 24
LARGEST, SMALLEST = 6.0, 1.5
Dot = tuple[float | None, str, str]  # the outcome, None where it is missing; the title; the address
Quarter = tuple[int, int, float, int]  # year, quarter, mean outcome of the agents dated in it, their number
QUARTERS_WIDTH, QUARTERS_HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 220, 44, 12, 12, 44
LARGEST_QUARTER, SMALLEST_QUARTER = 7.0, 3.0
MAX_NAMED = 12  # quarters under the axis


def dot_row(*, name: str, title: str, ranked: Sequence[Dot], unranked: Sequence[Dot] = ()) -> SafeString:
    """Draw the agents from the best on, those without a rank apart at the right end.

    The filled disc inside of a ring has the share of its area that is the outcome; a small dot is an agent
    without one. ValueError where there is no agent.
    """
    n = len(ranked) + len(unranked)
    if not n:
        raise ValueError("nothing to draw")
    gap = GAP if ranked and unranked else 0
    x = LinearScale(0, max(n - 1, 1), EDGE, WIDTH - EDGE - gap)
    radius = min(LARGEST, max(SMALLEST, 0.42 * (x(1) - x(0))))
    marks = [rule(0, MIDDLE, WIDTH, MIDDLE)]
    for place, (outcome, told, address) in enumerate((*ranked, *unranked)):
        at = round(x(place) + (gap if place >= len(ranked) else 0), 2)
        if outcome is None:
            mark = dot(at, MIDDLE, fill="caution", radius=round(radius / 3, 2), title=told)
        elif outcome >= 1:
            mark = dot(at, MIDDLE, fill="lead", stroke="lead", radius=radius, title=told)
        else:
            mark = dot(at, MIDDLE, fill="paper", stroke="worse", radius=radius, width=1.5, title=told)
            if outcome:
                inside = dot(at, MIDDLE, fill="lead", radius=round(radius * sqrt(outcome), 2))
                mark = mark_safe(mark + inside)
        marks.append(linked(address, mark))
    if ranked:
        marks.append(text(0, HEIGHT - 10, "best", anchor="start"))
        marks.append(text(x(len(ranked) - 1) + radius, HEIGHT - 10, "last", anchor="end"))
    if unranked:
        marks.append(text(WIDTH, HEIGHT - 10, "not ranked", anchor="end"))
    return drawing(name=name, title=title, width=WIDTH, height=HEIGHT, marks=marks, links=True)


def by_quarter(
    *, name: str, title: str, quarters: Sequence[Quarter], band: tuple[float, float]
) -> SafeString:
    """A dot a quarter, larger where agents are more, as far apart as they are in time.

    ValueError where there is no quarter.
    """
    if not quarters:
        raise ValueError("nothing to draw")
    months = [4 * year + quarter - 1 for year, quarter, *_ in quarters]
    x = LinearScale(months[0], months[-1], LEFT + 24, QUARTERS_WIDTH - RIGHT - 24)
    y = LinearScale(0, 1, QUARTERS_HEIGHT - BOTTOM, TOP)
    lo, hi = band
    most = max(n for *_, n in quarters)
    places = [(x(month), y(rate)) for month, (_, _, rate, _) in zip(months, quarters, strict=True)]
    marks = [bar(LEFT, y(hi), QUARTERS_WIDTH - LEFT - RIGHT, round(y(lo) - y(hi), 2), fill="band")]
    for share in sorted({0.0, lo, hi, 1.0}):
        marks.append(rule(LEFT, y(share), QUARTERS_WIDTH - RIGHT, y(share)))
        marks.append(text(LEFT - 6, y(share) + 4, f"{round(100 * share, 4):g}%", anchor="end"))
    marks.append(line(places, stroke="tied", width=1.2))
    every = -(-len(quarters) // MAX_NAMED)
    for i, ((year, quarter, rate, n), place) in enumerate(zip(quarters, places, strict=True)):
        radius = round(SMALLEST_QUARTER + (LARGEST_QUARTER - SMALLEST_QUARTER) * sqrt(n / most), 2)
        told = f"{year} Q{quarter}: {words.percent(rate)}% of {n}"
        marks.append(dot(*place, fill="lead", radius=radius, title=told))
        if i % every == 0:
            marks.append(text(place[0], QUARTERS_HEIGHT - BOTTOM + 18, f"{year} Q{quarter}"))
            marks.append(text(place[0], QUARTERS_HEIGHT - BOTTOM + 34, f"n = {n}"))
    return drawing(name=name, title=title, width=QUARTERS_WIDTH, height=QUARTERS_HEIGHT, marks=marks)
