"""Pass rates by quarter against a band: a dot a quarter, larger where agents are more, and their number."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from django.utils.safestring import SafeString

from leaderboard.plots.marks import bar, dot, drawing, line, rule, text
from leaderboard.plots.scales import LinearScale

WIDTH, HEIGHT = 640, 220
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 12, 44
LARGEST, SMALLEST = 7.0, 3.0
MAX_NAMED = 12  # quarters under the axis


@dataclass(frozen=True)
class Quarter:
    """The mean outcome of the agents dated in it."""

    year: int
    quarter: int
    rate: float
    n: int

    @property
    def place(self) -> int:
        return 4 * self.year + self.quarter - 1

    def __str__(self) -> str:
        return f"{self.year} Q{self.quarter}"


def by_quarter(
    *, name: str, title: str, quarters: Sequence[Quarter], band: tuple[float, float]
) -> SafeString:
    """Draw the quarters, which stand as far apart as they are in time.

    Raises ValueError: there is no quarter.
    """
    if not quarters:
        raise ValueError("nothing to draw")
    x = LinearScale(quarters[0].place, quarters[-1].place, LEFT + 24, WIDTH - RIGHT - 24)
    y = LinearScale(0, 1, HEIGHT - BOTTOM, TOP)
    lo, hi = band
    most = max(one.n for one in quarters)
    places = [(x(one.place), y(one.rate)) for one in quarters]
    marks = [bar(LEFT, y(hi), WIDTH - LEFT - RIGHT, round(y(lo) - y(hi), 2), fill="band")]
    for share in sorted({0.0, lo, hi, 1.0}):
        marks += [
            rule(LEFT, y(share), WIDTH - RIGHT, y(share)),
            text(LEFT - 6, y(share) + 4, f"{round(100 * share, 4):g}%", anchor="end"),
        ]
    marks.append(line(places, stroke="tied", width=1.2))
    every = -(-len(quarters) // MAX_NAMED)
    for i, (one, place) in enumerate(zip(quarters, places, strict=True)):
        radius = round(SMALLEST + (LARGEST - SMALLEST) * sqrt(one.n / most), 2)
        title_of_quarter = f"{one}: {100 * one.rate:.1f}% of {one.n}"
        marks.append(dot(*place, fill="lead", radius=radius, title=title_of_quarter))
        if i % every == 0:
            marks.append(text(place[0], HEIGHT - BOTTOM + 18, f"{one}"))
            marks.append(text(place[0], HEIGHT - BOTTOM + 34, f"n = {one.n}"))
    return drawing(name=name, title=title, width=WIDTH, height=HEIGHT, marks=marks)
