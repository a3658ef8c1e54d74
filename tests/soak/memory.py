"""The memory of the processes that serve, and whether it grows."""

import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

EVERY = 2.0  # seconds
N_BLOCKS = 10
PAGE = 4096
SETTLED, HALF = 0.2, 0.5  # of a run: what a process takes before is its start


@dataclass(frozen=True)
class Slope:
    """MiB a minute, with its standard error; `late` and `late_error` those of the second half."""

    per_minute: float
    error: float
    peak: float
    late: float
    late_error: float


class Sampler(threading.Thread):
    """Looks every two seconds at the resident memory of named groups of processes."""

    def __init__(self, roots: dict[str, "list[int]"]) -> None:
        """`roots`: by name a list that holds the process that leads; it may be changed meanwhile."""
        super().__init__(daemon=True)
        self.roots, self.over = roots, threading.Event()
        self.begin = time.monotonic()
        self.seen: dict[str, list[tuple[float, float]]] = {name: [] for name in roots}

    def run(self) -> None:
        while not self.over.wait(EVERY):
            minute = (time.monotonic() - self.begin) / 60
            for name, (pid,) in self.roots.items():
                pids = [pid, *children(pid)] if name == "web" else [pid]
                if total := sum(resident(one) for one in pids):
                    self.seen[name].append((minute, total))

    def slopes(self) -> dict[str, Slope]:
        self.over.set()
        self.join()
        return {name: slope(seen) for name, seen in self.seen.items()}


def children(pid: int) -> list[int]:
    with suppress(OSError):
        return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    return []


def resident(pid: int) -> float:
    """MiB; 0 of a process that is gone."""
    with suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE / 2**20
    return 0.0


def slope(seen: Iterable[tuple[float, float]]) -> Slope:
    minutes, mib = np.array(list(seen)).reshape(-1, 2).T
    whole, late = (_line(minutes, mib, since) for since in (SETTLED, HALF))
    return Slope(*whole, float(mib.max(initial=0)), *late)


def _line(minutes: np.ndarray, mib: np.ndarray, since: float) -> tuple[float, float]:
    """A line through the means of ten blocks: looks that follow each other are nearly one."""
    late = minutes >= since * minutes.max(initial=0)
    blocks = [
        (minutes[late][b].mean(), mib[late][b].mean())
        for b in np.array_split(np.arange(late.sum()), N_BLOCKS)
        if len(b)
    ]
    if len(blocks) < 3:
        return float("nan"), float("nan")
    x, y = np.array(blocks).T
    centred = x - x.mean()
    gradient = centred @ y / (centred @ centred)
    left = y - y.mean() - gradient * centred
    error = np.sqrt(left @ left / (len(x) - 2) / (centred @ centred))
    return float(gradient), float(error)
