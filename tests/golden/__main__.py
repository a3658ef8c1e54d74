"""Keep what the house puts out now: `python -m tests.golden`; without a change nothing differs."""

import os
import sys

import pytest

if __name__ == "__main__":
    os.environ["GOLDEN"] = "write"
    sys.exit(pytest.main(["-q", "-n", "2", "tests/golden"]))
