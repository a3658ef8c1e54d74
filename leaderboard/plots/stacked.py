"""One bar of shares that make up a whole, with a line of words for each below it."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.html import format_html
from django.utils.safestring import SafeString

from leaderboard.plots.marks import LinearScale, bar, drawing, paint, text

HEIGHT, SWATCH, LINE = 34, 12, 22
FILLS = ("lead", "tied", "pareto", "worse", "caution", "band")
WIDE, NARROW = 800, 344


@dataclass(frozen=True)
class StackPart:
    """A share of the whole; a hatched one is of another kind, which `text` tells."""

    label: str
    share: float
    text: str = ""
    hatched: bool = False


def stacked(*, name: str, title: str, parts: Sequence[StackPart], narrow: bool = False) -> SafeString:
    """Draw parts side by side, in their order, on a bar of their sum; ValueError where that is nothing."""
    whole = sum(part.share for part in parts)
    if whole <= 0:
        raise ValueError("nothing to draw")
    name = f"{name}-narrow" if narrow else name
    width = NARROW if narrow else WIDE
    x = LinearScale(0, whole, 0, width)
    hatch = format_html(
        '<defs><pattern id="hatch-{}" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><path {} d="M1 0V6" stroke-width="2.4"/></pattern></defs>',
        name,
        paint(stroke="paper"),
    )
    marks, before = [hatch], 0.0
    for place, part in enumerate(parts):
        fill, start, end = FILLS[place % len(FILLS)], x(before), x(before + part.share)
        top = HEIGHT + 14 + place * LINE
        more = f": {part.text}" if part.text and not narrow else ""
        label = f"{part.label}, {100 * part.share:.1f}%{more}"
        marks += _fill(name, part, fill, start, 0, end - start, HEIGHT)
        marks += _fill(name, part, fill, 0, top, SWATCH, SWATCH)
        marks.append(text(SWATCH + 8, top + SWATCH - 1.5, label, fill="ink", anchor="start"))
        before += part.share
    height = HEIGHT + 14 + LINE * len(parts)
    return drawing(name=name, title=title, width=width, height=height, marks=marks)


def _fill(
    name: str, part: StackPart, fill: str, x: float, y: float, width: float, height: float
) -> list[SafeString]:
    drawn = [bar(x, y, round(width, 2), height, fill=fill)]
    if part.hatched:
        drawn.append(
            format_html(
                '<rect x="{}" y="{}" width="{}" height="{}" fill="url(#hatch-{})"/>',
                *(f"{v:g}" for v in (x, y, round(width, 2), height)),
                name,
            )
        )
    return drawn
