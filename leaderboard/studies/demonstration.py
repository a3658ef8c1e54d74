"""The built-in demonstration benchmark: a history of full runs, then newcomers on the subset."""

from collections.abc import Callable, Collection
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from analytics.simulation import demonstration, flat_rows

TITLE = "Demonstration"
N_NEWCOMERS = 6
OPEN_MODELS = ("Cinder 70", "Damson 4", "Cinder 120", "Damson 5")


def write_history(path: Path) -> None:
    """Write the full runs of all agents but the latest six."""
    _write(path, lambda rows, is_late: pc.invert(is_late))


def write_newcomers(path: Path, *, tasks: Collection[str]) -> None:
    """Write the runs of the latest six agents, which were asked for these tasks only."""
    _write(path, lambda rows, is_late: pc.and_(is_late, pc.is_in(rows["task"], pa.array(tasks))))


def _write(path: Path, wanted: Callable[[pa.Table, pa.ChunkedArray], pa.ChunkedArray]) -> None:
    import pyarrow.csv as arrow_csv

    simulated = demonstration()
    rows = pa.table(flat_rows(simulated, benchmark=TITLE))
    rows = rows.append_column("open_model", pc.is_in(rows["model"], pa.array(OPEN_MODELS)))
    by_date = sorted(zip(simulated.dates, simulated.agents, strict=True))
    is_late = pc.is_in(rows["agent"], pa.array([name for _, name in by_date[-N_NEWCOMERS:]]))
    arrow_csv.write_csv(rows.filter(wanted(rows, is_late)), path)
