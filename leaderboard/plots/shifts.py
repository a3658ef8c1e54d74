"""The ranks that agents may hold before and after a change: two bars an agent, the thin one before."""

from collections.abc import Sequence
from typing import NamedTuple

from django.utils.safestring import SafeString

from leaderboard.plots.marks import Chart, LinearScale, bar, dot, drawing, rule, text, ticks_125

LEFT, RIGHT, TOP, BOTTOM, ROW = 230, 16, 8, 40, 30
THIN, THICK = 3, 7
LONGEST = 34  # characters of a name beside its bars
NONE = "not ranked"


class RankSpan(NamedTuple):
    """A rank and those that may be held; None without."""

    rank: int | None
    lower: int | None
    upper: int | None

    @property
    def text(self) -> str:
        if self.rank is None:
            return NONE
        around = f" ({self.lower:,}–{self.upper:,})" if self.lower and self.upper else ""
        return f"{self.rank:,}{around}"


class Shift(NamedTuple):
    agent: str
    before: RankSpan
    after: RankSpan


def shifts_chart(*, shifts: Sequence[Shift], of: int, title: str, name: str = "shifts") -> Chart:
    """Ranks 1 to `of` of these agents; the table twin holds the same rows."""
    width, height = 640, TOP + ROW * len(shifts) + BOTTOM
    x = LinearScale(1, max(of, 2), LEFT, width - RIGHT)
    marks = []
    for tick in (1, *(t for t in ticks_125(1, max(of, 2), 5) if t > 1 and t == int(t))):
        marks.append(rule(x(tick), TOP, x(tick), height - BOTTOM))
        marks.append(text(x(tick), height - BOTTOM + 16, f"{tick:.0f}"))
    marks.append(text((LEFT + width - RIGHT) / 2, height - 6, "rank"))
    for place, one in enumerate(shifts):
        middle, agent = TOP + ROW * (place + 0.5), one.agent
        shown = agent if len(agent) <= LONGEST else f"{agent[: LONGEST - 1]}…"
        marks.append(text(LEFT - 14, middle + 4, shown, fill="ink", anchor="end"))
        marks += _span(one.before, x, middle - 7, THIN, "worse", f"{agent} now: {one.before.text}")
        marks += _span(one.after, x, middle + 3, THICK, "tied", f"{agent} then: {one.after.text}")
    return Chart(
        name=name,
        title=title,
        lede="Thin: now. Thick: then. A bar holds every rank that the agent may hold, the circle its rank.",
        heads=("Agent", "Now", "Then"),
        rows=tuple((one.agent, one.before.text, one.after.text) for one in shifts),
        svg=drawing(name=name, title=title, width=width, height=height, marks=marks),
    )


def _span(span: RankSpan, x: LinearScale, y: float, thick: float, fill: str, title: str) -> list[SafeString]:
    """A bar with its circle; a circle alone without a rank interval, words without a rank."""
    if span.rank is None:
        return [text(LEFT, y + 4, NONE, anchor="start")]
    marks = [dot(x(span.rank), y, fill="paper", stroke="ink", radius=thick / 2 + 0.5, title=title)]
    if span.lower is None or span.upper is None:
        return marks
    start, end = x(span.lower) - thick / 2, x(span.upper) + thick / 2
    return [bar(start, y - thick / 2, end - start, thick, fill=fill, radius=thick / 2), *marks]
