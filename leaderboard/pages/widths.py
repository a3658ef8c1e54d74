"""Bands of other widths, and the tasks that other strategies choose, as the trust page draws them."""

from collections.abc import Mapping, Sequence
from typing import Any

from leaderboard.plots.chart import Chart
from leaderboard.plots.dots import DotRow, dots
from leaderboard.plots.scales import ticks_125
from leaderboard.studies.answers import validated, words

READ_FOR = "pairs_correct_full"
N_ERRORS = 1.96
Plain = Mapping[str, Any]


def width_chart(result: Plain) -> Chart | None:
    """Draw how many pairs bands of each width put in the right order; None where none was measured."""
    widths, n_tasks = validated.bands(result)["widths"], result["tasks"]
    if all(one[READ_FOR] is None for one in widths):
        return None
    return Chart(
        name="widths",
        title="Width of the band",
        lede="Pairs in the right order by the estimated full score when each agent in turn is new, with a "
        "95% interval. A wider band asks for more tasks. Filled: the band in use.",
        heads=("Pass rates", "Tasks", "Pairs in order", "From", "To", "Spearman’s ρ"),
        rows=tuple(_width_row(one) for one in widths),
        **_draw(
            "widths",
            "Pairs in the right order, by width of the band",
            [_width(one, n_tasks) for one in widths],
        ),
    )


def overlap_chart(result: Plain) -> Chart | None:
    """Draw which share of each strategy's tasks lies in the band; None where it was not measured."""
    overlaps, size = validated.bands(result)["overlaps"], result["subset"]["size"]
    drawn = [one for one in overlaps if one["share"] is not None]
    if not drawn:
        return None
    rows = [
        DotRow(
            validated.label(one["strategy"]),
            validated.overlap_text(one, size),
            _percent(one["share"]),
            one["share"],
        )
        for one in drawn
    ]
    return Chart(
        name="overlap",
        title="Tasks of other strategies",
        lede="Of as many tasks as the band holds, chosen by another strategy from the same agents: the share "
        "that lies in the band. A strategy that shares nearly all of them cannot differ from it by much.",
        heads=("Strategy", "In the band", "Tasks"),
        rows=tuple(_overlap_row(one, size) for one in overlaps),
        **_draw("overlap", "Share of the tasks of other strategies in the band", rows, lo=0.0),
    )


def _draw(name: str, title: str, rows: Sequence[DotRow], lo: float | None = None) -> dict[str, Any]:
    """The drawing for a page and that for a phone."""
    least = min(at for row in rows for at in (row.at, row.lower) if at is not None) if lo is None else lo
    ticks = [(tick, f"{100 * tick:g}%") for tick in ticks_125(least, 1.0, 4)]
    of: dict[str, Any] = {"name": name, "title": title, "rows": rows, "lo": least, "hi": 1.0, "ticks": ticks}
    return {"svg": dots(**of), "narrow": dots(**of, narrow=True)}


def _width(one: Plain, n_tasks: int) -> DotRow:
    in_use = " · in use" if one["in_use"] else ""
    lower, upper = _ends(one)
    return DotRow(
        f"{validated.band_text(one)}{in_use}",
        validated.saved_text(one, n_tasks),
        _percent(one[READ_FOR]),
        one[READ_FOR],
        lower,
        upper,
        hollow=not one["in_use"],
    )


def _width_row(one: Plain) -> tuple[str, ...]:
    label = f"{validated.band_text(one)}{' (in use)' if one['in_use'] else ''}"
    if one["reason"]:
        return label, f"{one['size']:,}", f"not measured: {one['reason']}", *("not measured",) * 3
    rho = "not measured" if one["rho"] is None else f"{one['rho']:.3f}"
    return label, f"{one['size']:,}", *map(_percent, (one[READ_FOR], *_ends(one))), rho


def _overlap_row(one: Plain, size: int) -> tuple[str, ...]:
    return (
        validated.label(one["strategy"]),
        _percent(one["share"]),
        one["reason"] or validated.overlap_text(one, size),
    )


def _ends(one: Plain) -> tuple[float, float] | tuple[None, None]:
    error = one["se"].get(READ_FOR)
    if error is None:
        return None, None
    return max(0.0, one[READ_FOR] - N_ERRORS * error), min(1.0, one[READ_FOR] + N_ERRORS * error)


def _percent(value: float | None) -> str:
    return "not measured" if value is None else f"{words.percent(value)}%"
