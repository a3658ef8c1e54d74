"""What every test may use."""

import csv
import gzip
import os
from collections import Counter
from pathlib import Path

import hypothesis
import pytest
from django.conf import settings

ROOT = Path(__file__).resolve().parent.parent
LONGEST = ("test_docs.py", "test_server.py")


def pytest_configure() -> None:
    # Else each client reads all static files before its first request: a tenth of a second of processor.
    settings.WHITENOISE_AUTOREFRESH = True
    # How long a crowded machine takes says nothing of the code.
    hypothesis.settings.register_profile(
        "untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
    hypothesis.settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seeds", type=int, metavar="N", help="of every slow test only the first N parameter sets (all)"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest files first; of every slow test as many parameter sets as were asked for."""
    items.sort(key=lambda item: item.path.name not in LONGEST)  # no worker is left with one at the end
    limit = config.getoption("seeds")
    if limit is None:
        return
    n_seen = Counter[str]()
    left_out = []
    for item in items:
        test = item.nodeid.partition("[")[0]
        if item.get_closest_marker("slow"):
            n_seen[test] += 1
        if n_seen[test] > limit:
            left_out.append(item)
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


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
