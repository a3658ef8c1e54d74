"""How many boards a second, as a share of what the same server gives of an empty Django view.

The service is the real one: gunicorn as it is deployed (2 workers of 4 threads) and the embedded PostgreSQL,
with one address more for the empty view (`perf.served`), which passes the same middleware and asks for
nothing. wrk keeps 8 connections busy; the four kinds of asking alternate, and medians are told of their
shares within each round. Where the machine is busy with other things besides, the speed of one moment says
little: beside it stands the same share by the processor time that web server and PostgreSQL took for an
answer, which is what the speed comes to where nothing else runs. Boards: 57 agents × 500 tasks, all measured,
and 500 × 1,000, of which 15 measured and the others on the tasks that these leave in the band.

Besides, how long the first view of each page takes, by a web server with one worker that has just started,
and with nothing rendered; the least of three. Of 29 × 12,032 too. Run with `python -m perf.pages`.
"""

import atexit
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from leaderboard import postgres
from perf.export import ROOT, children, free_port, wait_until_served
from perf.recompute import write

N_ROUNDS, SECONDS, N_CONNECTIONS = 5, 4, 8
BOARDS = {"57 x 500": ("some", 57, 57, 500), "500 x 1,000": ("many", 15, 500, 1_000)}
WIDE = {"29 x 12,032": ("wide", 29, 29, 12_032)}
EMPTY = "an empty view"
GZIP = ("-H", "Accept-Encoding: gzip")
LEAST = {"compressed": 0.30, "with a matching ETag": 0.55}
N_FIRST = 3
MOST = {"500 x 1,000": 300, "29 x 12,032": 1_000}  # ms of a first view
PLOTS = ("tasks", "best", "date", "scores")


def main() -> None:
    if shutil.which("wrk") is None:
        sys.exit("wrk is not installed: apt-get install wrk")
    folder = Path(tempfile.mkdtemp(prefix="bst-"))
    os.environ["BANDSTAND_HOME"] = str(folder)
    os.environ["DJANGO_SETTINGS_MODULE"] = "perf.served.settings"
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    postgres.ensure()
    fill(folder)
    with served() as (server, web):
        database = int((folder / "data" / "postmaster.pid").read_text().split()[0])
        for name, (slug, *_) in BOARDS.items():
            report(name, server, slug, (web, database))
    for name in MOST:
        report_first(name, (BOARDS | WIDE)[name][0])


@contextmanager
def served(*options: str) -> Iterator[tuple[str, int]]:
    """Serve; yield the address and the process."""
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "--config", "python:leaderboard.serving", *options]
    web = subprocess.Popen([*command, "--bind", f"127.0.0.1:{port}"], cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        wait_until_served(port)
        yield f"http://127.0.0.1:{port}", web.pid
    finally:
        web.terminate()
        web.wait()


def fill(folder: Path) -> None:
    """Publish the boards as an operator would."""
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connections

    call_command("migrate", verbosity=0)
    for slug, n_founders, n_agents, n_tasks in (BOARDS | WIDE).values():
        subset = published(folder / "rows.csv", slug, agents=range(n_founders), n_tasks=n_tasks)
        if n_founders < n_agents:
            newcomers = range(n_founders, n_agents)
            published(folder / "rows.csv", slug, agents=newcomers, n_tasks=n_tasks, tasks=set(subset.tasks))
    connections.close_all()


def published(path: Path, slug: str, **what: Any) -> Any:
    """Load simulated runs and publish the board; return its subset."""
    from leaderboard.boards.queries import head_of
    from leaderboard.catalog.queries import benchmark_of
    from leaderboard.operations.loading import load
    from leaderboard.operations.services import recompute
    from leaderboard.terminal.management.commands.load import read

    write(path, n_trials=1, **what)
    load(flat=read(path)[0], slug=slug, as_of=datetime.now(UTC))
    return head_of(recompute(benchmark=benchmark_of(slug), as_of=datetime.now(UTC))[0]).subset


def report(name: str, server: str, slug: str, server_pids: Sequence[int]) -> None:
    address = f"{server}/b/{slug}"
    tag, n_bytes = first(address)
    asked: dict[str, Sequence[str]] = {
        EMPTY: (f"{server}/empty",),
        "compressed": (*GZIP, address),
        "with a matching ETag": (*GZIP, "-H", f"If-None-Match: {tag}", address),
        "not compressed": (address,),
    }
    rounds = [{what: measured(how, server_pids) for what, how in asked.items()} for _ in range(N_ROUNDS)]
    print(f"{name}: {n_bytes / 1024:.0f} KiB compressed; medians of {N_ROUNDS} rounds of {SECONDS} s each")
    for what in asked:
        rate, taken = (statistics.median(one[what][i] for one in rounds) for i in (0, 1))
        share = statistics.median(one[what][0] / one[EMPTY][0] for one in rounds)
        by_time = statistics.median(one[EMPTY][1] / one[what][1] for one in rounds)
        least = f" (at least {LEAST[what]:.0%})" if what in LEAST else ""
        print(
            f"  {what}: {rate:,.0f} a second, {share:.0%} of an empty view; {1000 * taken:.2f} ms of "
            f"processor time, {by_time:.0%}{least}"
        )


def report_first(name: str, slug: str) -> None:
    """Say how long each page takes that nobody has asked for since the server started."""
    from django.db import connections

    from leaderboard.pages.models import RenderedPage

    addresses, taken = paths(slug), list[list[tuple[float, float]]]()
    for _ in range(N_FIRST):
        RenderedPage.objects.all().delete()
        connections.close_all()
        with served("--workers", "1") as (server, pid):
            time.sleep(1)  # the worker starts after its parent listens
            taken.append([viewed(f"{server}{path}", pid) for path in addresses.values()])
    print(f"{name}: first views (at most {MOST[name]:,} ms), the least of {N_FIRST}, the slowest first")
    for least, what in sorted(zip(map(min, zip(*taken, strict=True)), addresses, strict=True), reverse=True):
        print(f"  {what}: {1000 * least[0]:,.0f} ms; {1000 * least[1]:.0f} ms of processor time")


def paths(slug: str) -> dict[str, str]:
    """The pages of a benchmark by name; the home page is the first that a worker answers."""
    from leaderboard.catalog.models import Agent, Task

    agents = Agent.objects.filter(benchmark__slug=slug).order_by("pk").values_list("pk", flat=True)
    first, last, task = agents[0], agents.reverse()[0], Task.objects.filter(benchmark__slug=slug)[0].pk
    page, api = f"/b/{slug}", f"/api/v1/benchmarks/{slug}"
    below = ("v1", "board.md", "board.csv", "history", "data", "feed", "badge.svg", "card.png", "cite")
    below += ("embed", "validity", "uncertainty", "health", "tasks", *(f"plots/{one}.svg" for one in PLOTS))
    return {
        "the first request of a worker": "/",
        "board": page,
        **{name: f"{page}/{name}" for name in below},
        "a task": f"{page}/tasks/{task}",
        "an agent": f"{page}/agents/{first}",
        "compare": f"{page}/compare",
        "two agents compared": f"{page}/compare?a={first}&a={last}",
        **{f"API, {name}": f"{api}/{name}" for name in ("board", "board.csv", "agents", "tasks", "subsets")},
    }


def viewed(address: str, pid: int) -> tuple[float, float]:
    """Seconds until an address is read, and those of processor time."""
    begin, before = time.perf_counter(), taken_by(pid)
    with urllib.request.urlopen(urllib.request.Request(address, headers={"Accept-Encoding": "gzip"})) as got:
        got.read()
    return time.perf_counter() - begin, taken_by(pid) - before


def first(address: str) -> tuple[str, int]:
    """Ask until every worker has what it sends; return the ETag and how many bytes are sent."""
    for _ in range(20):
        with urllib.request.urlopen(
            urllib.request.Request(address, headers={"Accept-Encoding": "gzip"})
        ) as got:
            tag, sent = got.headers["ETag"], got.read()
    return tag, len(sent)


def measured(how: Sequence[str], pids: Sequence[int]) -> tuple[float, float]:
    """Answers a second, and the seconds of processor time that each took."""
    before = sum(map(taken_by, pids))
    command = ["wrk", "-t1", f"-c{N_CONNECTIONS}", f"-d{SECONDS}s", *how]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", told)
    if refused:
        raise RuntimeError(f"{refused[0]} of {how[-1]}")
    n = int(re.findall(r"(\d+) requests in", told)[0])
    rate = float(re.findall(r"Requests/sec:\s+([\d.]+)", told)[0])
    return rate, (sum(map(taken_by, pids)) - before) / n


def taken_by(pid: int) -> float:
    """Seconds of processor time of a process, its children, and those of them that ended."""
    _, _, told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
    ticks = sum(int(text) for text in told.split()[11:15])
    for child in children(pid):
        with suppress(OSError):
            _, _, of_child = Path(f"/proc/{child}/stat").read_text().rpartition(")")
            ticks += sum(int(text) for text in of_child.split()[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
