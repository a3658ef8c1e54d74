"""Heavy work on one process, on two, and on a Dask cluster that loses a worker: the same numbers."""

import json
import os
import signal
import subprocess
import sys

import pytest
from django.core.exceptions import ImproperlyConfigured

from leaderboard import settings as module
from leaderboard.catalog.models import Benchmark
from leaderboard.errors import Refusal
from leaderboard.operations.services import validate
from leaderboard.studies.kinds import cluster, spread_over
from leaderboard.studies.records import Reader
from selection.standings import validating
from tests.leaderboard.service import PATIENCE, ROOT, free_port, wait_until
from tests.refusals import refused
from tests.toys import AS_OF, csv_text, graded, load_text

BESIDE = ("replay", "others", "refitted")  # made where the validation is asked for
ONLY = {
    "protocols": ("loao", "temporal"),
    "strategies": ("mid_range", "spread", "easiest", "random"),
    "seeds": 20,
    "n_null_draws": 10,
}


@pytest.fixture
def few(monkeypatch):
    """Eight units of work instead of fifty-four."""
    original = validating.validate
    monkeypatch.setattr(validating, "validate", lambda table, **rest: original(table, **ONLY | rest))


@pytest.fixture
def dask(tmp_path):
    """A scheduler and two workers, each a process; returns its address and the workers."""
    port, processes = free_port(), []

    def start(module, *arguments):
        command = [sys.executable, "-m", f"distributed.cli.{module}", *arguments, "--no-dashboard"]
        with (tmp_path / f"{module}-{len(processes)}.log").open("wb") as log:
            processes.append(subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log))
        return processes[-1]

    start("dask_scheduler", "--host", "127.0.0.1", "--port", str(port))
    address = f"tcp://127.0.0.1:{port}"
    alone = ("--nthreads", "1", "--no-nanny", "--local-directory", str(tmp_path))
    workers = [start("dask_worker", address, *alone) for _ in range(2)]
    yield address, workers
    for process in reversed(processes):
        process.kill()
        process.wait(PATIENCE)


def n_workers(address):
    from distributed import Client

    with Client(address, set_as_default=False, timeout=PATIENCE) as client:
        return len(client.nthreads())


@pytest.mark.slow
def test_the_numbers_do_not_depend_on_where_they_are_made(db, few, dask, settings):
    address, workers = dask
    load_text(csv_text(graded(12, 40)))
    benchmark = Benchmark.objects.get()
    now = Reader(benchmark).now(None)
    one, two = (
        validating.validation_of(now.record, now.rules, spread=spread_over(n_jobs)) for n_jobs in (1, 2)
    )
    wait_until(lambda: n_workers(address) == 2)
    seen = []

    def progress(done, total):
        seen.append((done, total))
        if len(seen) == 2:  # one unit is done, the others are sent
            os.kill(workers[0].pid, signal.SIGKILL)

    settings.DASK_SCHEDULER_ADDRESS = address
    study, is_new = validate(benchmark=benchmark, as_of=AS_OF, progress=progress)
    assert is_new
    assert seen[-1][0] == seen[-1][1] > seen[1][0] > 0
    assert workers[0].wait(PATIENCE) == -signal.SIGKILL
    assert n_workers(address) == 1
    assert json.dumps(one) == json.dumps(two)
    told = {name: value for name, value in study.result.items() if name not in BESIDE}
    assert told == json.loads(json.dumps(one))
    with refused(Refusal, "cluster_unreachable", match="has no workers"):
        list(cluster(address, patience=1)(os._exit, [(1,)]))  # the unit ends the last worker


def test_a_cluster_that_is_not_there_is_named():
    address = f"tcp://127.0.0.1:{free_port()}"
    with refused(Refusal, "cluster_unreachable", match=f"No Dask scheduler answers at {address}"):
        list(cluster(address, patience=0.5)(len, [((),)]))


@pytest.mark.parametrize("text", ["scheduler:8786", "http://scheduler:8786", "tcp://scheduler"])
def test_an_address_that_dask_does_not_know_is_refused(monkeypatch, text):
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", text)
    with pytest.raises(ImproperlyConfigured, match="tcp://scheduler:8786"):
        module.address("DASK_SCHEDULER_ADDRESS")
