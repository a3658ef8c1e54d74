"""A PostgreSQL of its own for the test session: a fresh cluster in a temporary folder, fsync off.

Loaded as a plugin (`-p tests.cluster`), for the settings are read before any conftest. Workers of xdist
inherit the folder and join the server; each has its own database, a copy of one that was migrated once. With
DATABASE_URL set the tests use that server instead.
"""

import atexit
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from leaderboard import postgres

ROOT = Path(__file__).resolve().parent.parent
# The tests multiply many small matrices: threads of BLAS in every worker would wait for each other. It reads
# this when numpy is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# The tests start hundreds of processes. Where no bytecode may lie beside the source, each would compile
# everything anew: half a second of processor.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    os.environ["PYTHONPYCACHEPREFIX"] = str(ROOT / ".pytest_cache" / "bytecode")
    sys.pycache_prefix, sys.dont_write_bytecode = os.environ["PYTHONPYCACHEPREFIX"], False

if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["BANDSTAND_HOME"] = tempfile.mkdtemp(prefix="bst-")
    # Exit functions run in reverse: the server, joined below, is stopped before its folder goes.
    atexit.register(shutil.rmtree, os.environ["BANDSTAND_HOME"], ignore_errors=True)
HOME = Path(os.environ["BANDSTAND_HOME"])


def pytest_configure(config: pytest.Config) -> None:
    postgres.ensure(durable=False)


@contextmanager
def alone(name):
    """One process of the session at a time."""
    with (HOME / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def copied_home(name, fill, base=None):
    """A copy of a home that `fill` filled, from `base` on if there is one, for whoever asked first."""
    stored = HOME / name
    with alone(name):
        if not stored.exists():
            unfinished = base() if base else tempfile.mkdtemp(prefix="bst-")
            fill(unfinished)
            os.rename(unfinished, stored)
    home = tempfile.mkdtemp(prefix="bst-")
    subprocess.run(["cp", "-a", f"{stored}/.", home], check=True)
    return home
