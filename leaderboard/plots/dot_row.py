"""One row of dots, agents by rank: the more of a dot is filled, the more of its trials the agent passed.

The filled disc inside of a ring has the share of its area that is the outcome. A dash stands for an agent
without an outcome; agents without a rank stand apart, at the right end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from django.utils.safestring import SafeString, mark_safe

from leaderboard.plots.marks import dot, drawing, linked, rule, text
from leaderboard.plots.scales import LinearScale

WIDTH, HEIGHT, MIDDLE = 1200, 64, 20
EDGE, GAP = 10, 24
LARGEST, SMALLEST = 6.0, 1.5


@dataclass(frozen=True)
class Dot:
    """Outcome None: missing."""

    outcome: float | None
    title: str
    address: str


def dot_row(*, name: str, title: str, ranked: Sequence[Dot], unranked: Sequence[Dot] = ()) -> SafeString:
    """Draw the agents from the best on, those without a rank behind them.

    Raises ValueError: there is no agent.
    """
    n = len(ranked) + len(unranked)
    if not n:
        raise ValueError("nothing to draw")
    gap = GAP if ranked and unranked else 0
    x = LinearScale(0, max(n - 1, 1), EDGE, WIDTH - EDGE - gap)
    radius = min(LARGEST, max(SMALLEST, 0.42 * (x(1) - x(0))))
    marks = [rule(0, MIDDLE, WIDTH, MIDDLE)]
    for place, one in enumerate((*ranked, *unranked)):
        marks.append(_dot(one, x(place) + (gap if place >= len(ranked) else 0), radius))
    if ranked:
        marks.append(text(0, HEIGHT - 10, "best", anchor="start"))
        marks.append(text(x(len(ranked) - 1) + radius, HEIGHT - 10, "last", anchor="end"))
    if unranked:
        marks.append(text(WIDTH, HEIGHT - 10, "without a rank", anchor="end"))
    return drawing(name=name, title=title, width=WIDTH, height=HEIGHT, marks=marks, links=True)


def _dot(one: Dot, x: float, radius: float) -> SafeString:
    x = round(x, 2)
    if one.outcome is None:
        return linked(
            one.address, dot(x, MIDDLE, fill="caution", radius=round(radius / 3, 2), title=one.title)
        )
    if one.outcome >= 1:
        return linked(one.address, dot(x, MIDDLE, fill="lead", stroke="lead", radius=radius, title=one.title))
    ring = dot(x, MIDDLE, fill="paper", stroke="worse", radius=radius, width=1.5, title=one.title)
    if not one.outcome:
        return linked(one.address, ring)
    inside = dot(x, MIDDLE, fill="lead", radius=round(radius * sqrt(one.outcome), 2))
    return linked(one.address, mark_safe(ring + inside))
