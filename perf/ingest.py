"""A million outcomes as one gzipped CSV through the interface, against psycopg's COPY of the same rows.

The service is the real one: gunicorn as it is deployed, and the embedded PostgreSQL. The rival writes the
same rows into the same table, with its key, checks and trigger, in one COPY of their text that Arrow has
prepared beforehand: nothing is parsed, checked or hashed. Median of alternating runs; each delivery is a new
agent's, after short ones that let every process import what it needs. How much the web processes grow is read
from the kernel's mark of their highest memory. Run with `python -m perf.ingest`.
"""

import atexit
import contextlib
import gzip
import http.client
import io
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psycopg
import pyarrow as pa
from pyarrow import csv

from leaderboard import postgres

N_TASKS, N_TRIALS = 5_000, 200
N_ROWS = N_TASKS * N_TRIALS
N_RUNS = 3
LIMIT, MOST_GROWTH = 6.0, 200  # times COPY; MiB
MIB = 2**20
PATIENCE = 300
N_SHORT = 12
BOUNDARY = "outcomes-of-one-agent"


def outcome_rows(rng: np.random.Generator) -> pa.Table:
    """Tasks by name, with their trials and outcomes."""
    position = np.arange(N_ROWS)
    names = pa.array([f"task-{j:05d}" for j in range(N_TASKS)])
    return pa.table(
        {
            "task": names.take(pa.array(position // N_TRIALS)),
            "trial": pa.array(position % N_TRIALS, pa.int16()),
            "outcome": pa.array(rng.integers(0, 2, N_ROWS), pa.int8()),
            "valid": pa.array((rng.random(N_ROWS) > 0.01).astype(np.int8)),
        }
    )


def as_delivered(rows: pa.Table, agent: str, day: str) -> bytes:
    """The whole flat file, with the columns that say the same in every row."""
    said = {"benchmark": "ingest", "agent": agent, "scaffold": "Loop", "model": agent, "submitted_at": day}
    for name, text in said.items():
        rows = rows.append_column(name, pa.repeat(text, rows.num_rows))
    out = io.BytesIO()
    csv.write_csv(rows, out, csv.WriteOptions(quoting_style="needed"))
    return gzip.compress(out.getvalue(), 6)


def as_copied(rows: pa.Table, submission: int, setting: int, ids: dict[str, int]) -> bytes:
    """The same rows as the text that COPY takes."""
    tasks = np.array([ids[name] for name in rows["task"].unique().to_pylist()])
    task = tasks[np.arange(rows.num_rows) // N_TRIALS]
    copied = pa.table(
        {
            "submission_id": pa.repeat(submission, rows.num_rows),
            "task_id": task,
            "setting_id": pa.repeat(setting, rows.num_rows),
            "trial": rows["trial"],
            "value": rows["outcome"],
            "valid": rows["valid"],
        }
    )
    out = io.BytesIO()
    csv.write_csv(copied, out, csv.WriteOptions(include_header=False))
    return out.getvalue()


class Service:
    """gunicorn on a home of its own, with an empty benchmark of 5,000 tasks."""

    def __init__(self) -> None:
        self.home = tempfile.mkdtemp(prefix="bst-")
        os.environ["BANDSTAND_HOME"] = self.home
        atexit.register(shutil.rmtree, self.home, ignore_errors=True)
        for name in ("DATABASE_URL", "SECRET_KEY", "ALLOWED_HOSTS"):
            os.environ.pop(name, None)
        postgres.ensure()
        self.manage("migrate", "--verbosity", "0")
        tasks = Path(self.home, "tasks.csv")
        tasks.write_text("name\n" + "".join(f"task-{j:05d}\n" for j in range(N_TASKS)))
        self.manage("tasks", "ingest", str(tasks))
        self.token = self.manage("token", "ada@example.org", "--benchmark", "ingest")[-1]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [sys.executable, "-m", "gunicorn", "--config", "python:leaderboard.serving"]
        self.web = subprocess.Popen([*command, "--bind", f"127.0.0.1:{self.port}"], stderr=subprocess.DEVNULL)
        self.wait()

    def warm_up(self, rows: pa.Table, day: str) -> None:
        """Let every web process take short deliveries."""
        for i in range(N_SHORT):
            self.deliver(as_delivered(rows.slice(0, 1_000), f"short {i}", day), "short.csv.gz")

    def manage(self, *arguments: str) -> list[str]:
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
        return done.stdout.strip().splitlines()

    def wait(self) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                return socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            time.sleep(0.1)
        raise TimeoutError(f"nothing listens on port {self.port}")

    def deliver(self, file: bytes, name: str) -> float:
        """POST a file; return the seconds until it is stored."""
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        content = head.encode() + file + f"\r\n--{BOUNDARY}--\r\n".encode()
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": f"multipart/form-data; boundary={BOUNDARY}",
        }
        asked = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        begin = time.perf_counter()
        asked.request("POST", "/api/v1/benchmarks/ingest/submissions", content, headers)
        answer = asked.getresponse()
        told, seconds = answer.read(), time.perf_counter() - begin
        if answer.status != 201:
            raise RuntimeError(f"{answer.status}: {told[:500]!r}")
        return seconds

    def highest(self) -> dict[int, int]:
        """Bytes of memory of each web process, at its highest."""
        children = Path(f"/proc/{self.web.pid}/task/{self.web.pid}/children").read_text().split()
        return {int(pid): _highest(pid) for pid in children}

    @contextlib.contextmanager
    def connected(self) -> Iterator[psycopg.Connection]:
        folder = str(Path(self.home, "run"))
        with psycopg.connect(host=folder, port=postgres.PORT, dbname=postgres.NAME) as connection:
            yield connection

    def close(self) -> None:
        self.web.send_signal(signal.SIGTERM)
        self.web.wait(PATIENCE)


def _highest(pid: str) -> int:
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(kilobytes) * 1024


def copy(service: Service, rows: pa.Table, submission: int) -> float:
    """COPY into the outcome table; the setting and the tasks are those of the delivery before."""
    with service.connected() as connection:
        ids = dict(connection.execute("SELECT name, id FROM catalog_task").fetchall())
        ((setting,),) = connection.execute("SELECT min(id) FROM submissions_setting").fetchall()
        text = as_copied(rows, submission, setting, ids)
        begin = time.perf_counter()
        with connection.cursor().copy(
            "COPY submissions_outcome (submission_id, task_id, setting_id, trial, value, valid)"
            " FROM STDIN (FORMAT csv)"
        ) as into:
            into.write(text)
        connection.commit()
        return time.perf_counter() - begin


def main() -> None:
    service, rng, day = Service(), np.random.default_rng(1), time.strftime("%Y-%m-%d", time.gmtime())
    try:
        service.warm_up(outcome_rows(rng), day)
        before = service.highest()
        through, bare = [], []
        for run in range(N_RUNS):
            rows = outcome_rows(rng)
            file = as_delivered(rows, f"agent {run}", day)
            through.append(service.deliver(file, f"{run}.csv.gz"))
            bare.append(copy(service, rows, 1_000_000 + run))
        grown = max(n - before[pid] for pid, n in service.highest().items()) / MIB
    finally:
        service.close()
    api, rival = statistics.median(through), statistics.median(bare)
    print(
        f"{N_ROWS:,} outcomes, {len(file) / MIB:.1f} MiB of gzipped CSV, median of {N_RUNS} alternating runs"
    )
    print(f"through the interface {api:.2f} s ({', '.join(f'{one:.2f}' for one in through)})")
    print(f"psycopg's COPY into the same table {rival:.2f} s ({', '.join(f'{one:.2f}' for one in bare)})")
    print(f"ratio {api / rival:.2f} (at most {LIMIT:g})")
    print(f"a web process grew by {grown:.0f} MiB (at most {MOST_GROWTH})")


if __name__ == "__main__":
    main()
