"""The ranks that an agent may hold, as a small bar on the line of all ranks."""

from django.utils.html import format_html
from django.utils.safestring import SafeString

from leaderboard.plots.marks import bar, dot, rule
from leaderboard.plots.scales import Scale

WIDTH, HEIGHT, EDGE, THICK = 120, 14, 5, 6


def rank_set(lower: int, rank: int, upper: int, *, of: int) -> SafeString:
    """From `lower` to `upper` of ranks 1 to `of`, with a circle at the rank; its words stand beside it."""
    x = Scale(1, max(of, 2), EDGE, WIDTH - EDGE)
    middle = HEIGHT / 2
    start, end = x(lower) - THICK / 2, x(upper) + THICK / 2
    return format_html(
        '<svg class="plot" width="{w}" height="{h}" viewBox="0 0 {w} {h}" aria-hidden="true" '
        'focusable="false">'
        "{track}{bar}{dot}</svg>",
        w=WIDTH,
        h=HEIGHT,
        track=rule(EDGE, middle, WIDTH - EDGE, middle),
        bar=bar(start, middle - THICK / 2, end - start, THICK, fill="tied", radius=THICK / 2),
        dot=dot(x(rank), middle, fill="paper", stroke="ink", radius=3),
    )
