"""A million outcomes as Parquet through the API, against psycopg's COPY TO of the same rows.

The rival reads the rows as they are stored, ids for names, and drops them; the API gives every row the names
of agent, scaffold, model and task, and compresses. Both ask a server of their own, one after the other, each
with its own gunicorn worker; median of five alternating runs. Beside it stands how much the web process grew.
Run with `python -m perf.export`.
"""

import atexit
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree
from typing import Any

from perf import seconds

N_RUNS = 5
N_AGENTS, N_TASKS, N_TRIALS = 200, 1_000, 5
N_ROWS = N_AGENTS * N_TASKS * N_TRIALS
LIMIT = 4.0
ROOT = Path(__file__).resolve().parents[1]
STORED = "COPY (SELECT * FROM submissions_outcome) TO STDOUT (FORMAT csv)"


def main() -> None:
    os.environ["BANDSTAND_HOME"] = tempfile.mkdtemp(prefix="bst-")
    atexit.register(rmtree, os.environ["BANDSTAND_HOME"], ignore_errors=True)
    from leaderboard import postgres

    postgres.ensure()
    fill()
    from django.db import connections

    connections.close_all()
    port = free_port()
    web = subprocess.Popen(
        [
            *(sys.executable, "-m", "gunicorn", "--config", "python:leaderboard.serving"),
            *("--workers", "1", "--bind", f"127.0.0.1:{port}"),
        ],
        cwd=ROOT,
        stderr=subprocess.DEVNULL,
    )
    try:
        report(port, web.pid)
    finally:
        web.terminate()
        web.wait()


def report(port: int, pid: int) -> None:
    url = f"http://127.0.0.1:{port}/api/v1/benchmarks/perf/outcomes.parquet"
    wait_until_served(port)
    download(f"http://127.0.0.1:{port}/api/v1/benchmarks/perf/data-dictionary")
    before = resident(pid)
    runs = [(seconds(lambda: download(url)), seconds(copy_to)) for _ in range(N_RUNS)]
    (api, rival), grown = map(statistics.median, zip(*runs, strict=True)), peak(pid) - before
    print(f"{N_ROWS:,} outcomes, median of {N_RUNS} alternating runs")
    print(f"Parquet through the API {api:.2f} s; COPY TO by psycopg {rival:.2f} s")
    print(f"ratio {api / rival:.2f} (at most {LIMIT:g})")
    print(f"the web process grew by at most {grown:.0f} MiB; the file has {download(url) / 2**20:.1f} MiB")


def fill() -> None:
    """200 agents of which each ran 1,000 tasks five times, as a load stores them."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "leaderboard.settings")
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import transaction

    from leaderboard.catalog.services import (
        AgentDescription,
        ensure_agents,
        ensure_tasks,
        get_or_create_benchmark,
    )
    from leaderboard.submissions.services import append_changes, ensure_settings

    call_command("migrate", verbosity=0)
    names = (f"task {j:04d} of the suite" for j in range(N_TASKS))
    described = [
        AgentDescription(f"agent {i:03d}", f"scaffold {i % 9}", f"model {i % 31}") for i in range(N_AGENTS)
    ]
    with transaction.atomic():
        benchmark, _ = get_or_create_benchmark(slug="perf", title="Perf")
        ensure_tasks(benchmark=benchmark, categories=dict.fromkeys(names))
        tasks = list(benchmark.tasks.order_by("id").values_list("id", flat=True))
        settings = ensure_settings(benchmark=benchmark, settings=[(None, None, None, None)])
        agents = ensure_agents(benchmark=benchmark, descriptions=described, owner=None)
        changes = list(stored(agents.values(), tasks, *settings.values()))
        append_changes(benchmark=benchmark, changes=changes)


def stored(agents: Iterable[Any], tasks: list[int], setting: int) -> Iterator[Any]:
    """Store a submission of each agent."""
    import numpy as np
    import pyarrow as pa

    from leaderboard.submissions.models import Status, Submission
    from leaderboard.submissions.services import record

    rng, n, now = np.random.default_rng(1), N_TASKS * N_TRIALS, datetime(2026, 6, 1, tzinfo=UTC)
    for agent in agents:
        rows = pa.table(
            {
                "agent": pa.array(np.full(n, agent.pk), pa.int64()),
                "task": pa.array(np.repeat(tasks, N_TRIALS), pa.int32()),
                "setting": pa.array(np.full(n, setting), pa.int32()),
                "trial": pa.array(np.tile(np.arange(N_TRIALS), N_TASKS), pa.int16()),
                "value": pa.array(rng.integers(0, 2, n), pa.float32()),
                "valid": pa.array(rng.random(n) > 0.01),
            }
        )
        submission = Submission(
            agent=agent,
            status=Status.ACCEPTED,
            submitted_at=now,
            received_at=now,
            content_sha256=rng.bytes(32),
            n_outcomes=n,
            n_invalid=n - int(rows["valid"].to_numpy().sum()),
            loaded=True,
        )
        yield from record([(submission, rows, ())], reason="perf")


def download(url: str) -> int:
    n = 0
    with urllib.request.urlopen(url) as answer:
        while block := answer.read(1 << 16):
            n += len(block)
    return n


def copy_to() -> int:
    import psycopg

    from leaderboard import postgres

    n, run = 0, str(Path(os.environ["BANDSTAND_HOME"]) / "run")
    with (
        psycopg.connect(host=run, port=postgres.PORT, dbname=postgres.NAME) as connection,
        connection.cursor() as cursor,
        cursor.copy(STORED) as copy,
    ):
        for row in copy:
            n += len(row)
    return n


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found]


def status_of(pid: int, name: str) -> float:
    """MiB of the largest worker."""
    values = [0.0]
    for child in children(pid):
        with suppress(OSError):
            lines = Path(f"/proc/{child}/status").read_text().splitlines()
            values += [int(line.split()[1]) / 1024 for line in lines if line.startswith(name)]
    return max(values)


def resident(pid: int) -> float:
    return status_of(pid, "VmRSS")


def peak(pid: int) -> float:
    return status_of(pid, "VmHWM")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def wait_until_served(port: int) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with socket.socket() as connection:
            if connection.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError("gunicorn does not listen")


if __name__ == "__main__":
    main()
