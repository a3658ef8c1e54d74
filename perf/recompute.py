"""A board after one new submission, against the same board made from nothing.

The rival is our own recompute when nothing is stored: each agent's outcomes read and reduced, the subset
chosen, the calibration fitted with its nested residuals, everything ranked. After that one agent delivers
the subset, and what only it changes is computed. Simulated outcomes, a server of its own.
Run with `python -m perf.recompute`; with `large` for 500 agents × 500 tasks × 5 trials.
"""

import atexit
import os
import shutil
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv

from leaderboard import postgres
from perf import seconds

BOARDS = {"": ((57, 500, 1), 0.20, 3.0), "large": ((500, 500, 5), 0.10, None)}


def write(path: Path, *, agents: range, n_tasks: int, n_trials: int, tasks: set[str] | None = None) -> None:
    """Write passes and failures of a Rasch model whose tasks are the same for whatever agents."""
    difficulty = np.random.default_rng(1).normal(0, 1.5, n_tasks)
    names = np.array([f"task {j:04d}" for j in range(n_tasks)])
    kept = np.ones(n_tasks, bool) if tasks is None else np.isin(names, list(tasks))
    blocks = []
    for i in agents:
        rng = np.random.default_rng([2, i])
        p = 1 / (1 + np.exp(difficulty[kept] - rng.normal(0, 1)))
        outcome = rng.random((n_trials, p.size)) < p
        blocks.append(
            pa.table(
                {
                    "benchmark": ["Perf"] * outcome.size,
                    "agent": [f"agent {i:04d}"] * outcome.size,
                    "scaffold": [f"scaffold {i % 7}"] * outcome.size,
                    "model": [f"model {i:04d}"] * outcome.size,
                    "submitted_at": [f"2025-{1 + i % 12:02d}-{1 + i % 28:02d}"] * outcome.size,
                    "task": np.tile(names[kept], n_trials),
                    "trial": np.repeat(np.arange(n_trials), p.size),
                    "outcome": outcome.ravel().astype(int),
                }
            )
        )
    arrow_csv.write_csv(pa.concat_tables(blocks), path)


def main() -> None:
    (n_agents, n_tasks, n_trials), share, limit = BOARDS[sys.argv[1] if len(sys.argv) > 1 else ""]
    folder = Path(tempfile.mkdtemp(prefix="bst-"))
    os.environ["BANDSTAND_HOME"] = str(folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    postgres.ensure()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "leaderboard.settings")
    import django

    django.setup()
    from django.core.management import call_command

    from leaderboard.boards.queries import head_of
    from leaderboard.catalog.queries import benchmark_of
    from leaderboard.operations.loading import load
    from leaderboard.operations.services import recompute
    from leaderboard.terminal.management.commands.load import read

    def store(**what: Any) -> None:
        write(folder / "rows.csv", n_tasks=n_tasks, n_trials=n_trials, **what)
        load(flat=read(folder / "rows.csv")[0], slug="perf", as_of=datetime.now(UTC))

    made = []

    def board() -> None:
        made.append(recompute(benchmark=benchmark_of("perf"), as_of=datetime.now(UTC))[0])

    call_command("migrate", verbosity=0)
    store(agents=range(n_agents))
    whole = seconds(board)
    subset = head_of(made[0]).subset
    newcomers = []
    for i in range(n_agents, n_agents + 3):
        store(agents=range(i, i + 1), tasks=set(subset.tasks))
        newcomers.append(seconds(board))
    one = sorted(newcomers)[1]
    print(f"{n_agents} agents x {n_tasks} tasks x {n_trials}: {subset.size} tasks in the subset")
    print(f"board from nothing {whole:.2f} s; after one new submission {one:.2f} s (median of 3)")
    print(f"{one / whole:.1%} of it (at most {share:.0%}" + (f", {limit:g} s)" if limit else ")"))


if __name__ == "__main__":
    main()
