"""Scores of a board against those of full runs: a dot for each agent, its interval where it is estimated."""

from collections.abc import Sequence
from typing import NamedTuple

from leaderboard.plots.chart import Chart
from leaderboard.plots.marks import dot, drawing, rule, text
from leaderboard.plots.scales import LinearScale, ticks_125

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 480.0, 360.0, 48.0, 12.0, 12.0, 40.0
NAME, TITLE = "replayed", "Board score against full run"
LEDE = (
    "One dot an agent. Filled: estimated, with its 95% interval. Hollow: it ran all tasks. On the line both "
    "scores are the same."
)


class EstimateDot(NamedTuple):
    """Scores from 0 to 1; the interval is None where the agent ran everything."""

    name: str
    full: float
    score: float
    interval: tuple[float, float] | None

    @property
    def cells(self) -> tuple[str, ...]:
        """Name, board score, interval, full run, difference in points."""
        around = "–" if self.interval is None else "–".join(f"{100 * end:.1f}" for end in self.interval)
        off = "–" if self.interval is None else f"{100 * (self.score - self.full):+.1f}".replace("-", "−")
        return self.name, f"{100 * self.score:.1f}", around, f"{100 * self.full:.1f}", off


def against(dots: Sequence[EstimateDot]) -> Chart:
    """Draw at least one dot; estimates lie above the others."""
    ends = [value for one in dots for value in (one.full, one.score, *(one.interval or ()))]
    lo, hi = min(ends), max(ends)
    x, y = LinearScale(lo, hi, LEFT, WIDTH - RIGHT), LinearScale(lo, hi, HEIGHT - BOTTOM, TOP)
    marks = [rule(x(lo), y(lo), x(hi), y(hi))]
    for tick in ticks_125(lo, hi):
        marks.append(text(x(tick), HEIGHT - BOTTOM + 16, f"{100 * tick:g}"))
        marks.append(text(LEFT - 8, y(tick) + 4, f"{100 * tick:g}", anchor="end"))
    marks.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, "full run, %"))
    marks.append(text(LEFT, TOP + 2, "board, %", anchor="start"))
    for one in sorted(dots, key=lambda one: one.interval is not None):
        name, score, around, full, _ = one.cells
        title = f"{name}: {score}%" + (f" ({around})" if one.interval else "") + f", full run {full}%"
        if one.interval:
            marks.append(
                rule(x(one.full), y(one.interval[0]), x(one.full), y(one.interval[1]), stroke="tied")
            )
        fill, stroke = ("lead", "") if one.interval else ("paper", "worse")
        marks.append(dot(x(one.full), y(one.score), fill=fill, stroke=stroke, radius=3.5, title=title))
    return Chart(
        name=NAME,
        title=TITLE,
        lede=LEDE,
        heads=("Agent", "Board %", "95%", "Full run %", "Difference, points"),
        rows=tuple(one.cells for one in sorted(dots, key=lambda one: -one.full)),
        svg=drawing(name=NAME, title=TITLE, width=WIDTH, height=HEIGHT, marks=marks),
    )
