"""The built-in demonstration benchmark: a history of full runs, then newcomers on the subset."""

from collections.abc import Collection
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from analytics.simulation import SimulatedBenchmark, demonstration, flat_rows

TITLE = "Demonstration"
N_NEWCOMERS = 6


def write_history(path: Path) -> None:
    """Write the full runs of all agents but the latest six."""
    simulated = demonstration()
    rows = _rows(simulated)
    _write(rows.filter(pc.invert(_of_newcomers(rows, simulated))), path)


def write_newcomers(path: Path, *, tasks: Collection[str]) -> None:
    """Write the runs of the latest six agents, which were asked for these tasks only."""
    simulated = demonstration()
    rows = _rows(simulated)
    is_asked = pc.is_in(rows["task"], pa.array(tasks))
    _write(rows.filter(pc.and_(_of_newcomers(rows, simulated), is_asked)), path)


def _rows(simulated: SimulatedBenchmark) -> pa.Table:
    return pa.table(flat_rows(simulated, benchmark=TITLE))


def _of_newcomers(rows: pa.Table, simulated: SimulatedBenchmark) -> pa.ChunkedArray:
    by_date = sorted(zip(simulated.dates, simulated.agents, strict=True))
    return pc.is_in(rows["agent"], pa.array([name for _, name in by_date[-N_NEWCOMERS:]]))


def _write(rows: pa.Table, path: Path) -> None:
    import pyarrow.csv as arrow_csv

    arrow_csv.write_csv(rows, path)
