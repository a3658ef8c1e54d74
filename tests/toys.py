"""Benchmarks to test with, loaded through the same door as an operator's."""

from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from leaderboard.boards.reading import head_of, standings_of
from leaderboard.catalog.models import Benchmark
from leaderboard.operations.loading import load
from leaderboard.operations.services import recompute
from leaderboard.submissions.parsing.flat import read_file

AS_OF = datetime(2026, 6, 1, 12, tzinfo=UTC)
HEAD = "benchmark,agent,scaffold,model,submitted_at,task,trial,outcome"


def csv_text(outcomes, *, benchmark="Toy", day="2026-01-05"):
    """A flat file from {agent: string of outcomes}, one character a task; "." is not run, "x" invalid."""
    rows = [
        f"{benchmark},{agent},Loop,Model {agent},{day},t{j:02d},1,"
        f"{0 if mark == 'x' else mark},{int(mark != 'x')}"
        for agent, marks in outcomes.items()
        for j, mark in enumerate(marks)
        if mark != "."
    ]
    return "\n".join([f"{HEAD},valid", *rows]) + "\n"


def load_text(text, *, slug="toy", as_of=AS_OF, **options):
    with TemporaryDirectory() as folder:
        path = Path(folder, "toy.csv")
        path.write_text(text, encoding="utf-8", newline="")
        flat = read_file(path, as_of=as_of)
    return load(flat=flat, slug=slug, as_of=as_of, **options)


def ladder(n_agents, n_tasks):
    """Agents of evenly spread ability: agent i passes the first tasks in proportion to i."""
    return {
        f"a{i:02d}": "".join(str(int(j * n_agents < (i + 1) * n_tasks - 1)) for j in range(n_tasks))
        for i in range(n_agents)
    }


def rows_text(rows, *, benchmark="Toy"):
    """A flat file from dicts, one a row; what a row does not say of its agent is filled in."""
    filled = [
        {
            "benchmark": benchmark,
            "scaffold": "Loop",
            "model": f"Model {row['agent']}",
            "submitted_at": "2026-01-05",
            "trial": 1,
        }
        | row
        for row in rows
    ]
    columns = list(dict.fromkeys(column for row in filled for column in row))
    lines = [",".join(str(row.get(column, "")) for column in columns) for row in filled]
    return "\n".join([",".join(columns), *lines]) + "\n"


def graded(n_agents, n_tasks, *, seed=0, prefix="a"):
    """Agents of rising ability on tasks of spread difficulty, each outcome a draw (Rasch)."""
    rng = np.random.default_rng(seed)
    distance = np.linspace(-1.5, 1.5, n_agents)[:, None] - np.linspace(-1.5, 1.5, n_tasks)
    passed = rng.random(distance.shape) < 1 / (1 + np.exp(-distance))
    return {f"{prefix}{i:02d}": "".join(map(str, row)) for i, row in enumerate(passed.astype(int))}


def recomputed(slug="toy", *, as_of=AS_OF):
    return recompute(benchmark=Benchmark.objects.get(slug=slug), as_of=as_of)[0]


def lines_of(board):
    """The lines of a board by name."""
    return {line.agent: line for line in standings_of(board).agents}


def in_subset(board):
    """The tasks of a board's subset by name, in order."""
    return list(head_of(board).subset.tasks)


def only(marks, tasks):
    """The marks on these tasks, and "." on the others."""
    return "".join(mark if f"t{j:02d}" in tasks else "." for j, mark in enumerate(marks))
