"""Who passed what: a row an agent, a column a task, one silhouette a row; pass rates above, a band behind.

A silhouette is drawn in columns and outcomes, and its transform makes places of them: a run of equal outcomes
is two steps, however long. Its height is in proportion to the outcome, so that half of a row's height is half
of the trials passed, or half of what a graded task gives; a dash stands where there is no outcome.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from django.utils.html import format_html
from django.utils.safestring import SafeString

from leaderboard.plots.marks import TEXT, bar, drawing, linked, paint, rule, text

LEFT, WIDTH = 306, 1200
TOP, PROFILE = 10, 60  # of the pass rates
FIRST_ROW, PITCH, HEIGHT = 80, 13, 11
BOTTOM = 26
LONGEST_LABEL = int((LEFT - 12) / 7.2)  # letters, by their mean width
MAX_GAPPED = 300  # columns with a gap between their bars
DASH = (0.4, 0.2)  # bottom and height of what stands for no outcome, of a row
Outcome = float | None


@dataclass(frozen=True)
class HeatMapRow:
    """What stands before a row, the whole of it, where it leads, and the outcomes by column."""

    label: str
    name: str
    outcomes: Sequence[Outcome]
    address: str = ""


@dataclass(frozen=True)
class Tinted:
    """Columns from `first` up to `end`, for pass rates from lo to hi, and what is said of them."""

    first: int
    end: int
    lo: float
    hi: float
    text: str


def heat_map(
    *,
    name: str,
    title: str,
    rates: Sequence[Outcome],
    rows: Sequence[HeatMapRow],
    band: Tinted | None = None,
    marked: Sequence[bool] = (),
) -> SafeString:
    """Draw pass rates by column and a row for each agent.

    `marked` columns get a tick under the map, where that is another set than the band.

    Raises ValueError: there is no column.
    """
    if not rates:
        raise ValueError("nothing to draw")
    pitch = (WIDTH - LEFT) / len(rates)
    bottom = FIRST_ROW + PITCH * len(rows)
    marks = [*_band(band, pitch, bottom), *_profile(rates, pitch)]
    for place, row in enumerate(rows):
        marks += _row(row, FIRST_ROW + PITCH * place, pitch)
    marks += _ticks(marked, bottom, pitch)
    marks += [
        text(LEFT, bottom + 20, "easiest", anchor="start"),
        text(WIDTH, bottom + 20, "hardest", anchor="end"),
    ]
    return drawing(
        name=name,
        title=title,
        width=WIDTH,
        height=bottom + BOTTOM,
        marks=marks,
        links=any(r.address for r in rows),
    )


def silhouette(outcomes: Sequence[Outcome]) -> str:
    """The outline of outcomes over columns of width 1, from the left end on; nothing where there is none."""
    drawn, height = "M0 0", 0.0
    for level, run in groupby(round(one or 0.0, 3) for one in outcomes):
        step = round(level - height, 3)
        drawn += (f"v{step:g}" if step else "") + f"h{sum(1 for _ in run)}"
        height = level
    return drawn + (f"v{-height:g}" if height else "")


def dashes(outcomes: Sequence[Outcome]) -> str:
    """Bars in the middle of the row over the columns without an outcome; empty where there is none."""
    low, height = DASH
    return "".join(
        f"M{first} {low}h{end - first}v{height}h{first - end}z" for first, end in _missing(outcomes)
    )


def _missing(outcomes: Sequence[Outcome]) -> Iterator[tuple[int, int]]:
    first = 0
    for is_missing, run in groupby(one is None for one in outcomes):
        end = first + sum(1 for _ in run)
        if is_missing:
            yield first, end
        first = end


def shape_at(drawn: str, *, fill: str, x: float, y: float, pitch: float, height: float) -> SafeString:
    """A shape in columns and outcomes, its lower left end at (x, y)."""
    return format_html(
        '<path {} transform="translate({} {}) scale({} {})" d="{}"/>',
        paint(fill=fill),
        f"{x:g}",
        f"{y:g}",
        f"{pitch:.6g}",
        f"{-height:g}",
        drawn,
    )


def cells(
    outcomes: Sequence[Outcome], *, x: float, y: float, pitch: float, height: float
) -> list[SafeString]:
    """A row of outcomes whose lower left end is at (x, y)."""
    marks = []
    if any(outcomes):
        marks.append(shape_at(silhouette(outcomes), fill="lead", x=x, y=y, pitch=pitch, height=height))
    if missing := dashes(outcomes):
        marks.append(shape_at(missing, fill="caution", x=x, y=y, pitch=pitch, height=height))
    return marks


def bars(rates: Sequence[Outcome]) -> str:
    """A bar a column, with gaps between them where there is room."""
    if len(rates) > MAX_GAPPED:
        return silhouette(rates)
    shown = [round(rate or 0.0, 3) for rate in rates]
    return "M0 0" + "".join(f"v{rate:g}h.85v{-rate:g}h.15" if rate else "h1" for rate in shown)


def _row(row: HeatMapRow, top: float, pitch: float) -> list[SafeString]:
    label = text(LEFT - 8, top + HEIGHT - 1.5, row.label, fill="ink", anchor="end")
    drawn = format_html("<g><title>{}</title>{}</g>", row.name, label) if row.name != row.label else label
    return [
        linked(row.address, drawn) if row.address else drawn,
        *cells(row.outcomes, x=LEFT, y=top + HEIGHT, pitch=pitch, height=HEIGHT),
    ]


def _band(band: Tinted | None, pitch: float, bottom: float) -> list[SafeString]:
    if band is None or band.end <= band.first:
        return []
    x, width = round(LEFT + pitch * band.first, 2), round(pitch * (band.end - band.first), 2)
    middle = min(max(x + width / 2, LEFT + 130), WIDTH - 130)
    return [bar(x, 0, width, bottom, fill="band"), text(round(middle, 2), bottom + 20, band.text, fill="ink")]


def _profile(rates: Sequence[Outcome], pitch: float) -> list[SafeString]:
    foot = TOP + PROFILE
    return [
        text(LEFT - 8, TOP + TEXT / 3, "pass rate 100%", anchor="end"),
        text(LEFT - 8, TOP + PROFILE / 2 + TEXT / 3, "50%", anchor="end"),
        text(LEFT - 8, foot + 2, "0", anchor="end"),
        *(rule(LEFT - 4, y, LEFT, y, stroke="worse") for y in (TOP, TOP + PROFILE / 2, foot)),
        shape_at(bars(rates), fill="lead", x=LEFT, y=foot, pitch=pitch, height=PROFILE),
    ]


def _ticks(marked: Sequence[bool], bottom: float, pitch: float) -> list[SafeString]:
    if not any(marked):
        return []
    drawn = silhouette([float(one) for one in marked])
    return [shape_at(drawn, fill="pareto", x=LEFT, y=bottom + 4, pitch=pitch, height=3)]
