"""One agent on all tasks, from the easiest on, above what is expected of it; ticks mark what surprises."""

from collections.abc import Sequence

from django.utils.safestring import SafeString

from leaderboard.plots.heat_map import Outcome, cells, shape_at, silhouette
from leaderboard.plots.marks import bar, drawing, text
from leaderboard.plots.scales import LinearScale

LEFT, WIDTH, TOP, TALL, BETWEEN = 76, 1200, 8, 36, 14
TICK = 5
BOTTOM = 26


def strip(
    *,
    name: str,
    title: str,
    outcomes: Sequence[Outcome],
    expected: Sequence[Outcome],
    surprising: Sequence[bool] = (),
    band: tuple[int, int] | None = None,
) -> SafeString:
    """Draw outcomes and expectations as silhouettes; `band` are columns, the end not among them.

    Raises ValueError: there is no task.
    """
    if not outcomes:
        raise ValueError("nothing to draw")
    is_compared = any(one is not None for one in expected)
    foot = TOP + TALL
    low = foot + BETWEEN + TALL if is_compared else foot
    pitch, x = (WIDTH - LEFT) / len(outcomes), LinearScale(0, len(outcomes), LEFT, WIDTH)
    marks = []
    if band and band[1] > band[0]:
        marks.append(bar(x(band[0]), 0, round(x(band[1]) - x(band[0]), 2), low, fill="band"))
    marks += cells(outcomes, x=LEFT, y=foot, pitch=pitch, height=TALL)
    marks.append(text(LEFT - 8, foot - TALL / 2 + 4, "outcome", anchor="end"))
    if is_compared:
        drawn = silhouette(expected)
        marks.append(shape_at(drawn, fill="tied", x=LEFT, y=low, pitch=pitch, height=TALL))
        marks.append(text(LEFT - 8, low - TALL / 2 + 4, "expected", anchor="end"))
    if any(surprising):
        ticks = silhouette([float(one) for one in surprising])
        y = foot + (BETWEEN + TICK) / 2
        marks.append(shape_at(ticks, fill="pareto", x=LEFT, y=y, pitch=pitch, height=TICK))
        marks.append(text(LEFT - 8, y + 2, "surprise", anchor="end", fill="pareto"))
    marks.append(text(LEFT, low + 20, "easiest", anchor="start"))
    marks.append(text(WIDTH, low + 20, "hardest", anchor="end"))
    return drawing(name=name, title=title, width=WIDTH, height=low + BOTTOM, marks=marks)
