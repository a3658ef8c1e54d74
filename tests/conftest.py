"""What every test may use."""

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
