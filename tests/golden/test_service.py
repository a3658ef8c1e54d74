"""The service in a process of its own, as the numbers of rows stand in addresses."""

import os
import subprocess
import sys
from pathlib import Path

PATIENCE = 900  # seconds


def test_pages_api_receipts_and_exports():
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    # On the server of this session, as its workers are, and on a copy of what the first of them migrated.
    own |= {"PYTEST_XDIST_WORKER": "golden", "BANDSTAND_BESIDE": "_golden"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/golden/service.py"],
        cwd=Path(__file__).resolve().parents[2],
        env=own,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2000:]
