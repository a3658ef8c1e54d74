"""Colours of marks, by the names that the stylesheet knows them by.

A mark carries its light colour as an attribute, so that a chart also stands alone, and a class for each
(`f-tied`, `s-tied`), by which a stylesheet repaints it for dark and paper. Meaning never hangs on colour
alone: what is worse is hollow or thin, what is second is dashed.
"""

from django.utils.html import format_html
from django.utils.safestring import SafeString

# As the variables of the same names in static/css/bandstand.css; contrasts are in its comments.
PAINT = {
    "paper": "#fdfdfb",
    "ink": "#1c2226",
    "muted": "#4d575e",
    "grid": "#e6e8e3",
    "lead": "#0b5563",
    "tied": "#3f8fa0",
    "worse": "#79828a",
    "tint": "#e6f1f2",
    "pareto": "#b3450f",
    "caution": "#7a4206",
    "band": "#efe3f4",
}


def paint(*, fill: str = "", stroke: str = "", css: str = "") -> SafeString:
    """Attributes that colour a mark; `css` are classes of its own beside. What is not filled is empty."""
    classes = " ".join(part for part in (css, fill and f"f-{fill}", stroke and f"s-{stroke}") if part)
    return format_html(
        'class="{}" fill="{}"{}',
        classes,
        PAINT[fill] if fill else "none",
        format_html(' stroke="{}"', PAINT[stroke]) if stroke else "",
    )
