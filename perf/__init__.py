"""Benchmarks that print ratios against named rivals in the same run."""

import csv
import gzip
import os
import time
from collections.abc import Callable
from pathlib import Path

Columns = dict[str, list[str]]


def seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def data_folder() -> Path:
    """Return the folder of real data, looked for as the tests do."""
    beside = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
    return Path(os.environ.get("BANDSTAND_REAL_DATA") or beside)


def columns_of(file: str) -> Columns:
    """Read a table of the real data."""
    with gzip.open(data_folder() / f"{file}.csv.gz", "rt", newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return {column: [row[column] for row in rows] for column in rows[0]}
