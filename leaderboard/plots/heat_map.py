"""Who passed what: a row an agent, a column a task, one silhouette a row; pass rates above, a band behind.

A silhouette is drawn in columns and outcomes, and its transform makes places of them: a run of equal outcomes
is two steps, however long. Its height is in proportion to the outcome, so that half of a row's height is half
of the trials passed, or half of what a graded task gives; a dash stands where there is no outcome.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from django.utils.html import format_html
from django.utils.safestring import SafeString

from leaderboard.plots.marks import TEXT, LinearScale, bar, drawing, linked, paint, rule, text

WIDTH, LETTER = 1200, 7.2  # the mean width of a letter
TOP, PROFILE = 10, 60  # of the pass rates
FIRST_ROW, PITCH, HEIGHT = 80, 13, 11
BOTTOM = 26
MIN_LETTERS, LONGEST_LABEL = len("mean score 100%"), 31  # of what stands left of the map
MAX_GAPPED = 300  # columns with a gap between their bars
DASH = (0.4, 0.2)  # bottom and height of what stands for no outcome, of a row
STRIP_LEFT, STRIP_TOP, TALL, BETWEEN, TICK, STRIP_BOTTOM = 76, 8, 36, 14, 5, 26
Outcome = float | None
# What stands before a row, the whole of it, the outcomes by column, and where it leads, or nothing.
HeatMapRow = tuple[str, str, Sequence[Outcome], str]


def heat_map(
    *,
    name: str,
    title: str,
    rates: Sequence[Outcome],
    rows: Sequence[HeatMapRow],
    band: tuple[int, int, str] | None = None,
    marked: Sequence[bool] = (),
    rate: str = "pass rate",
) -> SafeString:
    """Draw pass rates, or mean scores, by column and a row for each agent; ValueError without a column.

    `band` are columns, the end not among them, and what is said of them. `marked` columns get a tick under
    the map, where that is another set.
    """
    if not rates:
        raise ValueError("nothing to draw")
    left = round(12 + LETTER * max([MIN_LETTERS, *(len(label) for label, *_ in rows)]))
    pitch = (WIDTH - left) / len(rates)
    bottom = FIRST_ROW + PITCH * len(rows)
    marks = []
    if band and band[1] > band[0]:
        first, end, label = band
        x, width = round(left + pitch * first, 2), round(pitch * (end - first), 2)
        middle = min(max(x + width / 2, left + 130), WIDTH - 130)
        marks += [
            bar(x, 0, width, bottom, fill="band"),
            text(round(middle, 2), bottom + 20, label, fill="ink"),
        ]
    foot = TOP + PROFILE
    marks += [
        text(left - 8, TOP + TEXT / 3, f"{rate} 100%", anchor="end"),
        text(left - 8, TOP + PROFILE / 2 + TEXT / 3, "50%", anchor="end"),
        text(left - 8, foot + 2, "0", anchor="end"),
        *(rule(left - 4, y, left, y, stroke="worse") for y in (TOP, TOP + PROFILE / 2, foot)),
        shape_at(bars(rates), fill="lead", x=left, y=foot, pitch=pitch, height=PROFILE),
    ]
    for place, (label, whole, outcomes, address) in enumerate(rows):
        low = FIRST_ROW + PITCH * place + HEIGHT
        drawn = text(left - 8, low - 1.5, label, fill="ink", anchor="end")
        if whole != label:
            drawn = format_html("<g><title>{}</title>{}</g>", whole, drawn)
        marks.append(linked(address, drawn) if address else drawn)
        marks += cells(outcomes, x=left, y=low, pitch=pitch, height=HEIGHT)
    if any(marked):
        ticks = silhouette([float(one) for one in marked])
        marks.append(shape_at(ticks, fill="pareto", x=left, y=bottom + 4, pitch=pitch, height=3))
    marks += [
        text(left, bottom + 20, "easiest", anchor="start"),
        text(WIDTH, bottom + 20, "hardest", anchor="end"),
    ]
    return drawing(
        name=name,
        title=title,
        width=WIDTH,
        height=bottom + BOTTOM,
        marks=marks,
        links=any(address for *_, address in rows),
    )


def silhouette(outcomes: Sequence[Outcome]) -> str:
    """The outline of outcomes over columns of width 1, from the left end on; nothing where there is none."""
    levels = np.round(np.nan_to_num(np.array(outcomes, dtype=np.float64)), 3)
    starts, lengths = _runs(levels)
    heights = [0.0, *levels[starts].tolist(), 0.0]
    steps = (round(to - at, 3) for at, to in pairwise(heights))
    widths = [f"h{n}" for n in lengths.tolist()]
    return "M0 0" + "".join(
        (f"v{step:g}" if step else "") + width for step, width in zip(steps, [*widths, ""], strict=True)
    )


def dashes(outcomes: Sequence[Outcome]) -> str:
    """Bars in the middle of the row over the columns without an outcome; empty where there is none."""
    low, height = DASH
    is_missing = np.isnan(np.array(outcomes, dtype=np.float64))
    starts, lengths = (places.tolist() for places in _runs(is_missing))
    return "".join(
        f"M{first} {low}h{n}v{height}h{-n}z"
        for first, n in zip(starts, lengths, strict=True)
        if is_missing[first]
    )


def _runs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where runs of equal values start, and how long they are."""
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]])[: len(values)])
    return starts, np.diff(starts, append=len(values))


def shape_at(drawn: str, *, fill: str, x: float, y: float, pitch: float, height: float) -> SafeString:
    return format_html(
        '<path {} transform="translate({} {}) scale({} {})" d="{}"/>',
        paint(fill=fill),
        *(f"{x:g}", f"{y:g}", f"{pitch:.6g}", f"{-height:g}", drawn),
    )


def cells(
    outcomes: Sequence[Outcome], *, x: float, y: float, pitch: float, height: float
) -> list[SafeString]:
    marks = []
    if any(outcomes):
        marks.append(shape_at(silhouette(outcomes), fill="lead", x=x, y=y, pitch=pitch, height=height))
    if missing := dashes(outcomes):
        marks.append(shape_at(missing, fill="caution", x=x, y=y, pitch=pitch, height=height))
    return marks


def bars(rates: Sequence[Outcome]) -> str:
    if len(rates) > MAX_GAPPED:
        return silhouette(rates)
    shown = [round(rate or 0.0, 3) for rate in rates]
    return "M0 0" + "".join(f"v{rate:g}h.85v{-rate:g}h.15" if rate else "h1" for rate in shown)


def strip(
    *,
    name: str,
    title: str,
    outcomes: Sequence[Outcome],
    expected: Sequence[Outcome],
    surprising: Sequence[bool] = (),
    band: tuple[int, int] | None = None,
) -> SafeString:
    """One agent on all tasks, from the easiest on, above what is expected of it; ticks mark what surprises.

    `band` are columns, the end not among them. ValueError without a task.
    """
    if not outcomes:
        raise ValueError("nothing to draw")
    is_compared = any(one is not None for one in expected)
    foot = STRIP_TOP + TALL
    low = foot + BETWEEN + TALL if is_compared else foot
    pitch, x = (WIDTH - STRIP_LEFT) / len(outcomes), LinearScale(0, len(outcomes), STRIP_LEFT, WIDTH)
    marks = []
    if band and band[1] > band[0]:
        marks.append(bar(x(band[0]), 0, round(x(band[1]) - x(band[0]), 2), low, fill="band"))
    marks += cells(outcomes, x=STRIP_LEFT, y=foot, pitch=pitch, height=TALL)
    marks.append(text(STRIP_LEFT - 8, foot - TALL / 2 + 4, "outcome", anchor="end"))
    if is_compared:
        drawn = silhouette(expected)
        marks.append(shape_at(drawn, fill="tied", x=STRIP_LEFT, y=low, pitch=pitch, height=TALL))
        marks.append(text(STRIP_LEFT - 8, low - TALL / 2 + 4, "expected", anchor="end"))
    if any(surprising):
        ticks = silhouette([float(one) for one in surprising])
        y = foot + (BETWEEN + TICK) / 2
        marks.append(shape_at(ticks, fill="pareto", x=STRIP_LEFT, y=y, pitch=pitch, height=TICK))
        marks.append(text(STRIP_LEFT - 8, y + 2, "surprise", anchor="end", fill="pareto"))
    marks.append(text(STRIP_LEFT, low + 20, "easiest", anchor="start"))
    marks.append(text(WIDTH, low + 20, "hardest", anchor="end"))
    return drawing(name=name, title=title, width=WIDTH, height=low + STRIP_BOTTOM, marks=marks)
