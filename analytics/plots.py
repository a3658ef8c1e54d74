"""The outcome table as a heat map, and the axes and colours of all plots; matplotlib is imported late."""

from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.errors import CoreError

if TYPE_CHECKING:
    from analytics.outcome_table import OutcomeTable

# The light colours of the pages.
PAINT = {
    "paper": "#fdfdfb",
    "grid": "#e6e8e3",
    "lead": "#0b5563",
    "tied": "#3f8fa0",
    "worse": "#79828a",
    "pareto": "#b3450f",
    "missing": "#e0b184",
}
ROW, MARGIN = 0.24, 1.3  # inches: of a row, of title and axis together
MAX_LABELS = 40  # tasks whose names have room below a heat map


class PlotRefused(CoreError):
    """A plot cannot be made (code matplotlib_missing), or there is nothing to draw (nothing_to_draw)."""


def axes_for(ax: Any, *, width: float, rows: int) -> Any:
    """Return `ax`, or the axes of a new figure with room for so many rows.

    width: inches.
    Raises PlotRefused: without matplotlib.
    """
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise PlotRefused(
            "a plot needs matplotlib, which is not installed: pip install 'bandstand[plots]'",
            code="matplotlib_missing",
        ) from None
    return pyplot.subplots(figsize=(width, MARGIN + ROW * rows), layout="constrained")[1]


def name_rows(ax: Any, names: list[str]) -> None:
    """Write a name beside each row, the first on top."""
    ax.set_yticks(range(len(names)), names, parse_math=False)  # a name may hold dollar signs
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)


def heat_map(table: "OutcomeTable", ax: Any = None) -> Any:
    """Draw mean outcomes: agents by score from the top, tasks by pass rate from the left."""
    ax = axes_for(ax, width=10, rows=table.n_agents)
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Patch

    valid = table.valid()
    sums, n_agents, n_tasks = np.where(valid, table.means, 0.0), valid.sum(axis=0), valid.sum(axis=1)
    if not valid.any():
        raise PlotRefused("there is nothing to draw: no outcome is valid", code="nothing_to_draw")
    rows = np.argsort(-sums.sum(axis=1) / np.maximum(n_tasks, 1), kind="stable")
    columns = np.argsort(-sums.sum(axis=0) / np.maximum(n_agents, 1), kind="stable")
    ends = [PAINT["grid"], PAINT["lead"]]
    colours = LinearSegmentedColormap.from_list("pass rate", ends).with_extremes(bad=PAINT["missing"])
    shown = table.means[np.ix_(rows, columns)]
    image = ax.imshow(shown, cmap=colours, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    name_rows(ax, [table.agents[i] for i in rows])
    if table.n_tasks <= MAX_LABELS:
        ax.set_xticks(range(table.n_tasks), [table.tasks[j] for j in columns], rotation=90, parse_math=False)
    else:
        ax.set_xticks([])
    ax.set_xlabel(f"{table.n_tasks:,} tasks, the easiest first")
    ax.figure.colorbar(image, ax=ax, label="pass rate", fraction=0.05, pad=0.01)
    if not valid.all():
        missing = Patch(facecolor=PAINT["missing"], label="missing")
        ax.legend(handles=[missing], loc="lower right", bbox_to_anchor=(1, 1), frameon=False)
    return ax
