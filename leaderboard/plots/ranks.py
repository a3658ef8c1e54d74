"""Ranks that agents may hold: a bar from the best to the worst of them on 1 to n, a circle at the rank.

Lengths along the ranks are percents of the width, so that the drawing takes the width that it is given and
circles stay round. Who is tied with the reference has a thick bar, who is not a thin one.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Literal

from django.utils.html import format_html
from django.utils.safestring import SafeString

from leaderboard.plots.marks import LinearScale, paint

Standing = Literal["lead", "tied", "worse", "muted"]  # to the reference; muted: nobody can say
RankBar = tuple[int, int, Standing]  # best and worst rank, and how it stands
THICK = {"lead": 8, "tied": 8, "worse": 3, "muted": 3}
HEIGHT, EDGE, REACH = 16, 3.5, 1.5  # px; percents: margin of the scale, of a bar beyond its ranks
STRIP_WIDTH, STRIP_HEIGHT, N_STRIP = 120, 24, 10


def scale(n: int) -> LinearScale:
    return LinearScale(1, n, EDGE, 100 - EDGE)


def rank_bar(rank: int, ranks: RankBar, n: int) -> SafeString:
    at = scale(n)
    return format_html(
        '<svg width="100%" height="{}" aria-hidden="true" focusable="false">{}'
        '<circle {} cx="{}%" cy="{}" r="3.6" stroke-width="1.3"/></svg>',
        HEIGHT,
        _bar(ranks, at, HEIGHT / 2, THICK[ranks[2]]),
        paint(fill="paper", stroke="ink"),
        *(f"{v:g}" for v in (at(rank), HEIGHT / 2)),
    )


def rank_strip(rows: Iterable[RankBar], n: int) -> SafeString:
    """The bars of the first ten of `n` agents, one under the other, small."""
    at, pitch = scale(n), STRIP_HEIGHT / N_STRIP
    bars = [
        _bar(ranks, at, round(pitch * (place + 0.5), 2), THICK[ranks[2]] / 5)
        for place, ranks in enumerate(islice(rows, N_STRIP))
    ]
    return format_html(
        '<svg class="plot strip" width="{}" height="{}" aria-hidden="true" focusable="false">{}</svg>',
        STRIP_WIDTH,
        STRIP_HEIGHT,
        SafeString("".join(bars)),
    )


def _bar(ranks: RankBar, at: LinearScale, middle: float, thick: float) -> SafeString:
    lower, upper, standing = ranks
    return format_html(
        '<rect {} x="{}%" y="{}" width="{}%" height="{}" rx="{}"/>',
        paint(fill=standing),
        f"{at(lower) - REACH:.5g}",
        f"{middle - thick / 2:g}",
        f"{at(upper) - at(lower) + 2 * REACH:.5g}",
        f"{thick:g}",
        f"{thick / 2:g}",
    )
