"""The built-in demonstration benchmark as a flat file."""

from pathlib import Path

import pyarrow as pa

from analytics.simulation import demonstration, flat_rows

TITLE = "Demonstration"


def write_demonstration(path: Path) -> None:
    """Write the simulated outcomes of `analytics.simulation` as CSV."""
    import pyarrow.csv as arrow_csv

    arrow_csv.write_csv(pa.table(flat_rows(demonstration(), benchmark=TITLE)), path)
