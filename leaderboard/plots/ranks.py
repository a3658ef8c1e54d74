"""Ranks that agents may hold: a bar from the best to the worst of them on 1 to n, a circle at the rank.

Lengths along the ranks are percents of the width, so that the drawing takes the width that it is given and
circles stay round. A filled bar could be the best, an outlined one is not clearly worse, a thin one is.
"""

from collections.abc import Sequence
from typing import Literal

from django.utils.html import format_html
from django.utils.safestring import SafeString

from leaderboard.plots.marks import Chart, LinearScale, bar, dot, drawing, paint, rule, text, ticks_125
from leaderboard.studies.answers import AtTarget

LEFT, RIGHT, TOP, BOTTOM, ROW = 230, 16, 8, 40, 30
THIN_BAR, THICK_BAR = 3, 7
LONGEST = 34  # characters of a name beside its bars
NONE = "not ranked"


Shift = tuple[str, AtTarget, AtTarget]  # an agent, and where it stands before and after


def shifts_chart(*, shifts: Sequence[Shift], of: int, title: str, name: str = "shifts") -> Chart:
    """Ranks 1 to `of` of these agents; the table twin holds the same rows."""
    width, height = 640, TOP + ROW * len(shifts) + BOTTOM
    x = LinearScale(1, max(of, 2), LEFT, width - RIGHT)
    marks = []
    for tick in (1, *(t for t in ticks_125(1, max(of, 2), 5) if t > 1 and t == int(t))):
        marks.append(rule(x(tick), TOP, x(tick), height - BOTTOM))
        marks.append(text(x(tick), height - BOTTOM + 16, f"{tick:.0f}"))
    marks.append(text((LEFT + width - RIGHT) / 2, height - 6, "rank"))
    rows = tuple((agent, _ranks_text(before), _ranks_text(after)) for agent, before, after in shifts)
    for place, (agent, before, after) in enumerate(shifts):
        middle, (_, now, then) = TOP + ROW * (place + 0.5), rows[place]
        shown = agent if len(agent) <= LONGEST else f"{agent[: LONGEST - 1]}…"
        marks.append(text(LEFT - 14, middle + 4, shown, fill="ink", anchor="end"))
        marks += _span(before, x, middle - 7, THIN_BAR, "worse", f"{agent} now: {now}")
        marks += _span(after, x, middle + 3, THICK_BAR, "tied", f"{agent} then: {then}")
    return Chart(
        name=name,
        title=title,
        lede="Thin: now. Thick: then. A bar is the 95% rank range, the circle the rank.",
        heads=("Agent", "Now", "Then"),
        rows=rows,
        svg=drawing(name=name, title=title, width=width, height=height, marks=marks),
    )


def _ranks_text(at: AtTarget) -> str:
    if at.rank is None:
        return NONE
    return f"{at.rank:,}" + (
        f" ({at.rank_lower:,}–{at.rank_upper:,})" if at.rank_lower and at.rank_upper else ""
    )


def _span(at: AtTarget, x: LinearScale, y: float, thick: float, fill: str, title: str) -> list[SafeString]:
    """A bar with its circle; a circle alone without a rank range, words without a rank."""
    if at.rank is None:
        return [text(LEFT, y + 4, NONE, anchor="start")]
    marks = [dot(x(at.rank), y, fill="paper", stroke="ink", radius=thick / 2 + 0.5, title=title)]
    if at.rank_lower is None or at.rank_upper is None:
        return marks
    start, end = x(at.rank_lower) - thick / 2, x(at.rank_upper) + thick / 2
    return [bar(start, y - thick / 2, end - start, thick, fill=fill, radius=thick / 2), *marks]


# How an agent is marked: it could be the best; so, and tied with another agent that others are compared with;
# tied with that or with the leader; clearly worse or better; nobody can say.
RankMark = Literal["first", "both", "tied", "worse", "muted"]
RankBar = tuple[int, int, RankMark]  # best and worst rank, and how it is marked
BARS: dict[RankMark, tuple[float, str, str]] = {  # thickness, fill, outline
    "first": (8, "lead", ""),
    "both": (8, "lead", "ink"),
    "tied": (8, "paper", "lead"),
    "worse": (3, "worse", ""),
    "muted": (3, "muted", ""),
}
HEIGHT, EDGE, REACH = 16, 3.5, 1.5  # px; percents: margin of the scale, of a bar beyond its ranks


def rank_mark(*, could_be_best: bool, is_tied: bool | None, is_leader: bool = True) -> RankMark:
    """How an agent is marked.

    is_tied: with the leader, or with another agent where not `is_leader`; None where that is not known.
    """
    if could_be_best:
        return "both" if is_tied and not is_leader else "first"
    return "muted" if is_tied is None else "tied" if is_tied else "worse"


def scale(n: int) -> LinearScale:
    return LinearScale(1, n, EDGE, 100 - EDGE)


def rank_bar(rank: int, ranks: RankBar, n: int) -> SafeString:
    at = scale(n)
    return format_html(
        '<svg width="100%" height="{}" aria-hidden="true" focusable="false">{}'
        '<circle {} cx="{}%" cy="{}" r="3.6" stroke-width="1.3"/></svg>',
        HEIGHT,
        _bar(ranks, at, HEIGHT / 2),
        paint(fill="paper", stroke="ink"),
        *(f"{v:g}" for v in (at(rank), HEIGHT / 2)),
    )


def _bar(ranks: RankBar, at: LinearScale, middle: float) -> SafeString:
    lower, upper, marked = ranks
    thick, fill, outline = BARS[marked]
    edge = 1.6 if outline else 0  # half of it lies outside
    thick -= edge
    return format_html(
        '<rect {}{} x="{}%" y="{}" width="{}%" height="{}" rx="{}"/>',
        paint(fill=fill, stroke=outline, css=marked),
        format_html(' stroke-width="{}"', f"{edge:g}") if outline else "",
        f"{at(lower) - REACH:.5g}",
        f"{middle - thick / 2:g}",
        f"{at(upper) - at(lower) + 2 * REACH:.5g}",
        f"{thick:g}",
        f"{thick / 2:g}",
    )
