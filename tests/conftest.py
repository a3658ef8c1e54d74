"""What every test may use."""

import csv
import gzip
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real outcome matrices, which lies outside the project."""
    folder = Path(os.environ.get("BANDSTAND_REAL_DATA") or ROOT.parent / "shared" / "data")
    if folder.is_dir():
        return folder
    if os.environ.get("REQUIRE_REAL_DATA") == "1":
        pytest.fail(f"REQUIRE_REAL_DATA=1, but there is no folder {folder}")
    return pytest.skip(f"no real data: there is no folder {folder}")


@pytest.fixture(scope="session")
def real_rows(real_data):
    """Read a real file by the csv module, so that a check owes nothing to the project's reader."""

    def rows(name):
        with gzip.open(real_data / f"{name}.csv.gz", "rt", newline="", encoding="utf-8") as lines:
            return list(csv.DictReader(lines))

    return rows
