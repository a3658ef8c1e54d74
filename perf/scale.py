"""A large benchmark: seconds and memory of what it asks for, and how they grow from a tenth of its outcomes.

632 agents × 1,581 tasks × 1 trial are simulated, and 200 × 500, both axes divided by √10; with `large`
2,000 × 5,000, which is 10⁷ outcomes, and 632 × 1,581; with `huge` 5,000 × 20,000, which is 10⁸, and 10⁷.
Each size has a server of its own; boards, validation and page each a process, as in a service. With the
first word of a step, nothing follows that step. What is timed is what an operator, a clock or a reader
starts: `manage.py load`, the board from nothing, the board after one more agent has run the subset, nested
validation by leaving one agent out and by time of the policy's strategy, and the board's page from a web
worker that has never made it. Memory is the largest sum over all processes at work, PostgreSQL's among them,
of what each holds for itself and its part of what they share (PSS), looked at four times a second. Growth is
the power of the number of outcomes, by the processor time of the same processes: that is what the
seconds come to where nothing else runs.
Run with `python -m perf.scale [load|board|one|validation] [large|huge]`; `large` takes half an hour.
"""

import atexit
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from analytics.programs import begin_command
from perf.export import ROOT, children, free_port, wait_until_served

HUGE, WHOLE, TENTH, HUNDREDTH = (5_000, 20_000), (2_000, 5_000), (632, 1_581), (200, 500)
LOAD, BOARD, ONE, VALIDATION, PAGE = "load", "board from nothing", "one new submission", "validation", "page"
STEPS = (LOAD, BOARD, ONE, VALIDATION, PAGE)
POWER = {LOAD: 1.1, BOARD: 1.3, VALIDATION: 1.8, PAGE: 1.1}
MOST_SECONDS = {ONE: 10.0}
GIB = 2**30
MOST_BYTES = dict.fromkeys(STEPS, 4 * GIB) | {VALIDATION: 8 * GIB}
N_JOBS = 2
MOST_ROWS = 5_000_000


@dataclass(frozen=True)
class Taken:
    """What a step took: seconds of the clock, of the processor, and the largest sum of memory."""

    seconds: float
    of_processor: float
    n_bytes: int


def main() -> None:
    words = sys.argv[1:]
    sizes = (WHOLE, HUGE) if "huge" in words else (TENTH, WHOLE) if "large" in words else (HUNDREDTH, TENTH)
    last = next((i for i, step in enumerate(STEPS) if step.split()[0] in words), len(STEPS) - 1)
    steps = STEPS[: last + 1]
    small, large = (measured(*size, steps) for size in sizes)
    grown = math.log(math.prod(sizes[1]) / math.prod(sizes[0]))
    print("seconds, processor seconds, memory")
    print(f"{'':20}{told_size(sizes[0]):>32}{told_size(sizes[1]):>34}   growth")
    for step in steps:
        power = math.log(large[step].of_processor / small[step].of_processor) / grown
        print(f"{step:20}{told(small[step]):>32}{told(large[step]):>34}   {limits(step, power)}")


def told_size(size: tuple[int, int]) -> str:
    return f"{size[0]:,} x {size[1]:,}"


def told(taken: Taken) -> str:
    return f"{taken.seconds:,.1f} s {taken.of_processor:,.1f} s {taken.n_bytes / GIB:.2f} GiB"


def limits(step: str, power: float) -> str:
    """The power, and what is asked of the larger size."""
    asked = [f"{MOST_BYTES[step] // GIB} GiB"]
    asked += [f"power {POWER[step]:g}"] if step in POWER else []
    asked += [f"{MOST_SECONDS[step]:g} s"] if step in MOST_SECONDS else []
    return f"{power:4.2f} (at most {', '.join(asked)})"


# --------------------------------------------------------------------------------------- one size


def measured(n_agents: int, n_tasks: int, wanted: tuple[str, ...]) -> dict[str, Taken]:
    """Take the steps at one size, on a server of its own."""
    home = Path(tempfile.mkdtemp(prefix="bst-"))
    os.environ["BANDSTAND_HOME"] = str(home)
    code = "import sys; from leaderboard import postgres; postgres.ensure(); sys.stdin.read()"
    server = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE)
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    try:
        subprocess.run([sys.executable, "manage.py", "migrate", "--verbosity", "0"], cwd=ROOT, check=True)
        database = int((home / "data" / "postmaster.pid").read_text().split()[0])
        found: dict[str, Taken] = {}
        for steps in ((LOAD, BOARD, ONE), (VALIDATION,), (PAGE,)):  # each in a process of its own
            if asked := [step for step in steps if step in wanted]:
                size = ["--steps", str(home), str(n_agents), str(n_tasks)]
                found |= watched([sys.executable, "-m", "perf.scale", *size, *asked], database)
        return found
    finally:
        server.communicate()
        shutil.rmtree(home, ignore_errors=True)


def watched(command: list[str], database: int) -> dict[str, Taken]:
    """Run steps in a process; what it says between them tells when one ends."""
    found: dict[str, Taken] = {}
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    pids, spent = (process.pid, database), spent_by(database)
    with watching(*pids) as peak:
        for line in process.stdout or ():
            if not line.startswith("{"):
                print(line, end="", flush=True)
                continue
            said, before = json.loads(line), spent
            n_bytes, peak[0] = peak[0], 0
            spent = sum(map(spent_by, pids))
            if said["step"]:
                found[said["step"]] = Taken(said["seconds"], spent - before, n_bytes)
                print(f"  {said['step']}: {told(found[said['step']])}", flush=True)
    if process.wait():
        raise SystemExit(process.returncode)
    return found


@contextmanager
def watching(*pids: int) -> Iterator[list[int]]:
    """Keep the largest sum of memory seen."""
    peak, ended = [0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.25):
            peak[0] = max(peak[0], sum(map(held_by, pids)))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


def held_by(pid: int) -> int:
    """Bytes of a process and of all below it, what is shared by its share."""
    n_bytes = 0
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        n_bytes = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    with suppress(OSError):
        n_bytes += sum(map(held_by, children(pid)))
    return n_bytes


def spent_by(pid: int) -> float:
    """Seconds of processor time of a process, of all below it, and of those of them that ended."""
    with suppress(OSError):
        _, _, told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
        own = sum(int(text) for text in told.split()[11:15]) / os.sysconf("SC_CLK_TCK")
        return own + sum(map(spent_by, children(pid)))
    return 0.0


# --------------------------------------------------------------------------------------- the steps


def take_steps(home: Path, n_agents: int, n_tasks: int, wanted: list[str]) -> None:
    """Take the steps as a command does, and say of each when it begins and how long it took."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "leaderboard.settings"
    begin_command()
    import django

    django.setup()
    if LOAD in wanted:
        boards(home, n_agents, n_tasks, wanted)
    if VALIDATION in wanted:
        timed(VALIDATION, validated)
    if PAGE in wanted:
        served()


def boards(home: Path, n_agents: int, n_tasks: int, wanted: list[str]) -> None:
    """Load, and make the board as far as is wanted."""
    from perf.recompute import write

    files, one = written(home, n_agents, n_tasks), home / "one.csv"
    timed(LOAD, lambda: [loaded(file) for file in files])
    if BOARD not in wanted:
        return
    board = timed(BOARD, made)
    tasks = subset_of(board)
    print(f"  {len(tasks):,} tasks in the subset", flush=True)
    if ONE in wanted:
        write(one, agents=range(n_agents, n_agents + 1), n_tasks=n_tasks, n_trials=1, tasks=tasks)
        timed(ONE, lambda: (stored(one), made()))


def written(home: Path, n_agents: int, n_tasks: int) -> list[Path]:
    """Write files of a size that is accepted: one of 512 MiB is the largest."""
    from perf.recompute import write

    step = max(1, MOST_ROWS // n_tasks)
    parts = [range(first, min(first + step, n_agents)) for first in range(0, n_agents, step)]
    files = [home / f"rows-{i}.csv" for i in range(len(parts))]
    for file, agents in zip(files, parts, strict=True):
        write(file, agents=agents, n_tasks=n_tasks, n_trials=1)
    return files


def loaded(file: Path) -> None:
    command = [sys.executable, "manage.py", "load", "--benchmark", "perf", str(file)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=sys.stderr)
    file.unlink()


def timed(step: str, call: Callable[[], Any]) -> Any:
    print(json.dumps({"step": ""}), flush=True)
    begin = time.perf_counter()
    answer = call()
    print(json.dumps({"step": step, "seconds": time.perf_counter() - begin}), flush=True)
    return answer


def made() -> Any:
    from leaderboard.catalog.queries import benchmark_of
    from leaderboard.operations.services import recompute

    return recompute(benchmark=benchmark_of("perf"), as_of=datetime.now(UTC))[0]


def subset_of(board: Any) -> set[str]:
    from leaderboard.boards.queries import head_of

    return set(head_of(board).subset.tasks)


def stored(file: Path) -> None:
    from leaderboard.operations.loading import load
    from leaderboard.terminal.management.commands.load import read

    load(flat=read(file)[0], slug="perf", as_of=datetime.now(UTC))


def validated() -> None:
    """Validate as the nightly job does, by two protocols and one strategy."""
    from leaderboard.catalog.queries import benchmark_of
    from leaderboard.studies.records import Reader
    from selection.standings.validating import validation_of

    now = Reader(benchmark_of("perf")).now(None)
    if now is None:
        raise RuntimeError("nothing to validate")
    only = {"protocols": ("loao", "temporal"), "strategies": (now.rules.strategy,)}
    found = validation_of(now.record, now.rules, jobs=N_JOBS, **only)
    for name, protocol in found["protocols"].items():
        figures = protocol["strategies"][now.rules.strategy]
        print(f"  {name}: {protocol['n_folds']} folds, rho {figures['rho']:.3f}", flush=True)


def served() -> None:
    """Ask a web worker for the board's page, which it makes."""
    import urllib.request

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
        wait_until_served(port)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/"):
            pass  # what a worker imports, it imports once
        address = f"http://127.0.0.1:{port}/b/perf"
        page = timed(PAGE, lambda: urllib.request.urlopen(address).read())
        print(f"  a page of {len(page) / 2**20:.2f} MiB", flush=True)
    finally:
        web.terminate()
        web.wait()


if __name__ == "__main__":
    if "--steps" in sys.argv:
        at = sys.argv.index("--steps")
        take_steps(Path(sys.argv[at + 1]), int(sys.argv[at + 2]), int(sys.argv[at + 3]), sys.argv[at + 4 :])
    else:
        main()
