"""One agent on all tasks, from the easiest on, against what its neighbours in rank lead one to expect."""

from collections.abc import Sequence

from django.utils.safestring import SafeString

from leaderboard.plots.heat_map import Outcome, cells
from leaderboard.plots.marks import bar, drawing, steps, text
from leaderboard.plots.scales import Scale

LEFT, WIDTH, TOP, TALL = 44, 1100, 10, 80
BOTTOM = 26


def strip(
    *,
    name: str,
    title: str,
    outcomes: Sequence[Outcome],
    expected: Sequence[Outcome],
    band: tuple[int, int] | None = None,
) -> SafeString:
    """Draw outcomes as silhouettes and expectations as steps; `band` are columns, the end not among them.

    Raises
    ------
    ValueError
        There is no task.
    """
    if not outcomes:
        raise ValueError("nothing to draw")
    foot, pitch = TOP + TALL, (WIDTH - LEFT) / len(outcomes)
    x, y = Scale(0, len(outcomes), LEFT, WIDTH), Scale(0, 1, foot, TOP)
    marks = []
    if band and band[1] > band[0]:
        marks.append(bar(x(band[0]), 0, round(x(band[1]) - x(band[0]), 2), foot, fill="band"))
    marks += cells(outcomes, x=LEFT, y=foot, pitch=pitch, height=TALL)
    for run in _runs(expected):
        first, shares = run
        places = [(x(first + i), y(share)) for i, share in enumerate(shares)]
        end = (x(first + len(shares)), y(shares[-1]))
        marks.append(steps([*places, end], stroke="paper", width=4))
        marks.append(steps([*places, end], stroke="pareto", width=2))
    marks += [text(LEFT - 6, y(share) + 4, said, anchor="end") for share, said in ((1, "100%"), (0, "0"))]
    marks.append(text(LEFT, foot + 20, "easiest", anchor="start"))
    marks.append(text(WIDTH, foot + 20, "hardest", anchor="end"))
    return drawing(name=name, title=title, width=WIDTH, height=foot + BOTTOM, marks=marks)


def _runs(expected: Sequence[Outcome]) -> list[tuple[int, list[float]]]:
    """The stretches without a gap, each with the column that it begins at."""
    runs: list[tuple[int, list[float]]] = []
    before: Outcome = None
    for column, share in enumerate(expected):
        if share is not None:
            if before is None:
                runs.append((column, []))
            runs[-1][1].append(share)
        before = share
    return runs
