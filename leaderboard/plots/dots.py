"""Values with their intervals, a row each, beside a second value or a line that they are read against."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.utils.html import format_html
from django.utils.safestring import SafeString

from leaderboard.plots.marks import (
    TEXT,
    LinearScale,
    bar,
    cut,
    cut_apart,
    dot,
    drawing,
    paint,
    path,
    rule,
    text,
)
from leaderboard.studies.answers import words

STACK_HEIGHT, SWATCH, LINE = 34, 12, 22
FILLS = ("lead", "tied", "pareto", "worse", "caution", "band")
STACK_WIDTH, STACK_NARROW = 800, 344
StackPart = tuple[str, float, str, bool]  # label, share, text, and whether it is hatched: of another kind


def stacked(*, name: str, title: str, parts: Sequence[StackPart], narrow: bool = False) -> SafeString:
    """Draw parts side by side, in their order, on a bar of their sum; ValueError where that is nothing."""
    whole = sum(share for _, share, *_ in parts)
    if whole <= 0:
        raise ValueError("nothing to draw")
    name = f"{name}-narrow" if narrow else name
    width = STACK_NARROW if narrow else STACK_WIDTH
    x = LinearScale(0, whole, 0, width)
    hatch = format_html(
        '<defs><pattern id="hatch-{}" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><path {} d="M1 0V6" stroke-width="2.4"/></pattern></defs>',
        name,
        paint(stroke="paper"),
    )
    marks, before = [hatch], 0.0
    for place, (part, share, told, is_hatched) in enumerate(parts):
        fill, start, end = FILLS[place % len(FILLS)], x(before), x(before + share)
        top = STACK_HEIGHT + 14 + place * LINE
        for at, y, size, tall in ((start, 0, end - start, STACK_HEIGHT), (0, top, SWATCH, SWATCH)):
            marks.append(bar(at, y, round(size, 2), tall, fill=fill))
            if is_hatched:
                sides = (f"{v:g}" for v in (at, y, round(size, 2), tall))
                rect = '<rect x="{}" y="{}" width="{}" height="{}" fill="url(#hatch-{})"/>'
                marks.append(format_html(rect, *sides, name))
        label = f"{part}, {words.percent(share)}%{f': {told}' if told and not narrow else ''}"
        marks.append(text(SWATCH + 8, top + SWATCH - 1.5, label, fill="ink", anchor="start"))
        before += share
    height = STACK_HEIGHT + 14 + LINE * len(parts)
    return drawing(name=name, title=title, width=width, height=height, marks=marks)


TOP, BOTTOM, RADIUS, TICK, UPRIGHT, NOTE = 26, 24, 5.5, 8, 11, 18
LETTER = 5.5  # the mean width of one, at the size of the words
Named = tuple[float, str]


@dataclass(frozen=True)
class DotRow:
    """A value in words and in numbers, with its interval; without a value the interval alone is drawn."""

    label: str
    note: str  # below the label
    text: str
    at: float | None
    lower: float | None = None
    upper: float | None = None
    tick: float | None = None  # a second value to compare with
    grey: bool = False  # what is clearly another, or not in use
    outlined: bool = False  # what is tied


class DotLayout(NamedTuple):
    """Where things stand: on a page the words left and right of the scale, on a phone above it."""

    width: float
    words: float  # room for a label
    start: float
    end: float
    height: float  # of a row
    line: float  # of the dots, from the top of the row
    label: float  # likewise, of the first line of words


WIDE = DotLayout(width=820, words=304, start=320, end=680, height=46, line=17, label=17)
FULL = DotLayout(width=1200, words=310, start=440, end=1010, height=46, line=17, label=17)
NARROW = DotLayout(width=344, words=344, start=16, end=328, height=64, line=46, label=12)


def dots(
    *,
    name: str,
    title: str,
    rows: Sequence[DotRow],
    lo: float,
    hi: float,
    ticks: Sequence[Named],
    rules: Sequence[Named] = (),
    layout: DotLayout = WIDE,
    notes: bool = True,
) -> SafeString:
    """Draw a row for each value on one scale; `rules` are upright lines that tell above what they are.

    Without `notes` rows are lower. ValueError without a row.
    """
    if not rows:
        raise ValueError("nothing to draw")
    is_narrow = layout is NARROW
    if not notes:
        layout = layout._replace(height=layout.height - NOTE, line=layout.line - (NOTE if is_narrow else 4))
    x = LinearScale(lo, hi, layout.start, layout.end)
    bottom = TOP + layout.height * len(rows)
    spans = [(TOP - 6.0, bottom)]
    if is_narrow:  # words stand above each value: no line crosses them
        middles = [TOP + layout.height * place + layout.line for place in range(len(rows))]
        spans = [(y - UPRIGHT, y + UPRIGHT) for y in middles]
    marks = []
    for value, label in ticks:
        marks += [rule(x(value), top, x(value), end) for top, end in spans]
        marks.append(text(x(value), bottom + TEXT + 5, label))
    for value, label in rules:
        at, half = x.clipped(value), LETTER * len(label) / 2
        near = at - half < layout.start - 10, at + half > layout.end + 10  # words stay inside of the scale
        anchor = {(True, False): "start", (False, True): "end"}.get(near, "middle")
        marks += [rule(at, top, at, end, stroke="muted") for top, end in spans]
        marks.append(text(at, TOP - 11, label, anchor=anchor))
    room = 0 if notes or not is_narrow else LETTER * max(len(row.text) for row in rows) + 8
    labels = cut_apart([row.label for row in rows], int((layout.words - room) / LETTER))
    for place, (row, label) in enumerate(zip(rows, labels, strict=True)):
        top = TOP + place * layout.height
        marks += [*_words(row, label, top, layout), *_value(row, x, top + layout.line)]
    return drawing(
        name=f"{name}-narrow" if is_narrow else name,
        title=title,
        width=layout.width,
        height=bottom + BOTTOM,
        marks=marks,
    )


def both_widths(*, wide: DotLayout = WIDE, **drawing_of: Any) -> dict[str, SafeString]:
    return {"svg": dots(**drawing_of, layout=wide), "narrow": dots(**drawing_of, layout=NARROW)}


def _words(row: DotRow, label: str, top: float, layout: DotLayout) -> list[SafeString]:
    first, second = top + layout.label, top + layout.label + TEXT + 3
    if layout.end > layout.width - 20:  # nothing beside the scale
        room = layout.words - (LETTER + 1) * len(row.text) - 8
        return [
            text(0, first, label, fill="ink", anchor="start", halo=True),
            text(0, second, cut(row.note, int(room / (LETTER + 1))), anchor="start", halo=True),
            text(layout.width, second if row.note else first, row.text, fill="ink", anchor="end", halo=True),
        ]
    return [
        text(0, first, label, fill="ink", anchor="start"),
        text(0, second, cut(row.note, int(layout.words / LETTER)), anchor="start"),
        text(layout.end + 14, first + 4 * bool(row.note), row.text, fill="ink", anchor="start"),
    ]


def _value(row: DotRow, x: LinearScale, y: float) -> list[SafeString]:
    if row.at is None and row.lower is not None and row.upper is not None:
        start, end = x.clipped(row.lower), x.clipped(row.upper)
        return [bar(start - 1, y - TICK / 2, round(end - start + 2, 2), TICK, fill="tied", radius=1)]
    if row.at is None:
        return []
    colour = "worse" if row.grey else "tied"
    marks = []
    if row.lower is not None and row.upper is not None:
        ends = f"M{x.clipped(row.lower):g} {y:g}H{x.clipped(row.upper):g}"
        marks.append(path(ends, stroke=colour, width=2))
    if row.tick is not None:
        upright = f"M{x.clipped(row.tick):g} {y - TICK:g}V{y + TICK:g}"
        marks.append(path(upright, stroke="pareto", width=2))
    drawn = dot(
        x.clipped(row.at),
        y,
        fill="paper" if row.outlined else "worse" if row.grey else "lead",
        stroke="lead" if row.outlined else "paper",
        radius=RADIUS,
        width=2 if row.outlined else 1,
        title="; ".join(part for part in (f"{row.label}: {row.text}", row.note) if part),
    )
    return [*marks, drawn]
