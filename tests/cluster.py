"""A PostgreSQL of its own for the test session: a fresh cluster in a temporary folder, fsync off.

Loaded as a plugin (`-p tests.cluster`), for the settings are read before any conftest. Workers of xdist
inherit the folder and join the server; each has its own database. With DATABASE_URL set the tests use that
server instead.
"""

import atexit
import os
import shutil
import tempfile

import pytest

from leaderboard import postgres

# The tests multiply many small matrices: threads of BLAS in every worker would wait for each other. It reads
# this when numpy is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["BANDSTAND_HOME"] = tempfile.mkdtemp(prefix="bst-")
    # Exit functions run in reverse: the server, joined below, is stopped before its folder goes.
    atexit.register(shutil.rmtree, os.environ["BANDSTAND_HOME"], ignore_errors=True)


def pytest_configure(config: pytest.Config) -> None:
    postgres.ensure(durable=False)
