"""Small plots as SVG. Positions are attributes of geometry, colours are classes: the CSP forbids style="".

Each plot repeats numbers that stand beside it as text.
"""

import math
from dataclasses import dataclass
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from leaderboard.pages.queries import Line
from leaderboard.studies.models import SubsetTask, TaskSubset

register = template.Library()

WIDTH, MARGIN = 160, 5  # of a score's plot; as in score_axis.html
BIN = 0.05
HISTOGRAM_LEFT, HISTOGRAM_WIDTH = 10, 320
HISTOGRAM_TOP, HISTOGRAM_HEIGHT = 20, 90


@register.simple_tag
def score_plot(line: Line) -> SafeString | str:
    """A dot at the score, with a line over its 95% interval, on 0 to 100%."""
    told = line.told
    if told.score is None:
        return ""
    low = told.score if told.lower is None else told.lower
    high = told.score if told.upper is None else told.upper
    return format_html(
        '<svg class="plot" width="{width}" height="14" viewBox="0 0 {width} 14"'
        ' aria-hidden="true" focusable="false">'
        '<line class="track" x1="{start}" x2="{end}" y1="7" y2="7"/>'
        '<line class="whisker" x1="{low}" x2="{high}" y1="7" y2="7"/>'
        '<circle class="dot" cx="{at}" cy="7" r="3.5"/></svg>',
        width=WIDTH,
        start=_along(0),
        end=_along(1),
        low=_along(low),
        high=_along(high),
        at=_along(told.score),
    )


def _along(share: float) -> str:
    return f"{MARGIN + (WIDTH - 2 * MARGIN) * min(max(share, 0), 1):.1f}"


@dataclass(frozen=True)
class Bar:
    """The tasks whose pass rate lies from lo to hi; a rate on an edge is in the upper bar."""

    lo: float
    hi: float
    n: int
    share: float

    @property
    def x(self) -> str:
        return f"{HISTOGRAM_LEFT + HISTOGRAM_WIDTH * self.lo:.1f}"

    @property
    def end(self) -> str:
        return f"{HISTOGRAM_LEFT + HISTOGRAM_WIDTH * self.hi:.1f}"

    @property
    def width(self) -> str:
        return f"{HISTOGRAM_WIDTH * (self.hi - self.lo):.1f}"

    @property
    def middle(self) -> str:
        return f"{HISTOGRAM_LEFT + HISTOGRAM_WIDTH * (self.lo + self.hi) / 2:.1f}"

    @property
    def y(self) -> str:
        return f"{HISTOGRAM_TOP + HISTOGRAM_HEIGHT * (1 - self.share):.1f}"

    @property
    def height(self) -> str:
        return f"{HISTOGRAM_HEIGHT * self.share:.1f}"

    @property
    def label_y(self) -> str:
        return f"{HISTOGRAM_TOP + HISTOGRAM_HEIGHT * (1 - self.share) - 4:.1f}"


def bars(subset: TaskSubset, rates: list[float]) -> list[Bar]:
    """Split the band in parts of about five points and count the pass rates in each; both ends are in."""
    n_bars = max(1, round((subset.hi - subset.lo) / BIN))
    width = (subset.hi - subset.lo) / n_bars
    counts = [0] * n_bars
    for rate in rates:
        place = math.floor((rate - subset.lo) / width + 1e-9)
        counts[min(max(place, 0), n_bars - 1)] += 1
    highest = max(counts, default=0) or 1
    return [
        Bar(lo=subset.lo + i * width, hi=subset.lo + (i + 1) * width, n=n, share=n / highest)
        for i, n in enumerate(counts)
    ]


@register.inclusion_tag("pages/histogram.html")
def histogram(subset: TaskSubset, tasks: list[SubsetTask]) -> dict[str, Any]:
    whole = Bar(lo=subset.lo, hi=subset.hi, n=len(tasks), share=1)
    return {"subset": subset, "band": whole, "bars": bars(subset, [task.pass_rate for task in tasks])}
