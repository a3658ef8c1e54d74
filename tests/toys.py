"""Benchmarks to test with, loaded through the same door as an operator's."""

from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from django.db import transaction

from leaderboard.boards.models import Board
from leaderboard.boards.queries import head_of, standings_of
from leaderboard.catalog.models import Benchmark, Policy
from leaderboard.operations.loading import load
from leaderboard.operations.services import recompute
from leaderboard.submissions.parsing.flat import read_file
from tests.kept import stored

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


def load_text(text, *, slug="toy", as_of=AS_OF, missing="gap", **options):
    """Load a file; into an empty database the same one is read once, and from then on its rows are copied.

    missing: what a new benchmark counts missing results as; its first policy says so.
    """

    def loaded():
        flat = flat_of(text, as_of=as_of)
        with transaction.atomic():
            if missing != "auto" and not (options or Benchmark.objects.filter(slug=slug).exists()):
                benchmark = Benchmark.objects.create(slug=slug, title=flat.benchmark)
                Policy.objects.create(benchmark=benchmark, number=1, missing=missing)
            return load(flat=flat, slug=slug, as_of=as_of, **options)

    if options or Benchmark.objects.exists():
        return loaded()
    return stored(("loaded", text, slug, as_of, missing), loaded)


def flat_of(text, *, as_of=AS_OF):
    with TemporaryDirectory() as folder:
        path = Path(folder, "toy.csv")
        path.write_text(text, encoding="utf-8", newline="")
        return read_file(path, as_of=as_of)


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


def first_board(benchmark):
    """The board of a benchmark as it was loaded, by the rules it began with; from the second on a copy."""
    stored(("first board", benchmark.pk), lambda: recompute(benchmark=benchmark, as_of=AS_OF))
    return Board.objects.get(benchmark=benchmark)


def board_of(text, *, slug="toy", as_of=AS_OF):
    """Load a file and publish its board; into an empty database the same rows are copied from then on."""

    def make():
        load_text(text, slug=slug)
        recomputed(slug, as_of=as_of)

    make() if Benchmark.objects.exists() else stored(("board", text, slug, as_of), make)
    return Board.objects.filter(benchmark__slug=slug).latest("number")


def lines_of(board):
    """The lines of a board by name."""
    return {line.agent: line for line in standings_of(board).agents}


def in_subset(board):
    """The tasks of a board's subset by name, in order."""
    return list(head_of(board).subset.tasks)


def only(marks, tasks):
    """The marks on these tasks, and "." on the others."""
    return "".join(mark if f"t{j:02d}" in tasks else "." for j, mark in enumerate(marks))


# A board whose pass rates move: of 16 agents and of 16 later ones so many pass each of 20 tasks. By hand,
# with 5 to 11 of 16 and 10 to 22 of 32 in the band of 30 to 70%, 8 to 24 of 32 in 25 to 75%:
#   first subset t00 to t08; later t07 leaves at 26/32, t08 at 23/32 (it stays with hysteresis), t09 enters at
#   21/32 and t11 at 12/32.
FIRST = [*[8] * 6, 5, 11, 10, 13, 14, 3, 2, 16, 16, 16, 0, 0, 0, 0]
LATER = [*[10] * 6, 11, 15, 13, 8, 15, 9, 2, 16, 16, 16, 0, 0, 0, 0]
S_FIRST = [f"t{j:02d}" for j in range(9)]
S_PLAIN = [*S_FIRST[:7], "t09", "t11"]
S_HYSTERESIS = [*S_FIRST[:7], "t08", "t09", "t11"]


def passing(counts, *, n_agents=16, seed=0, prefix="a"):
    """Agents of rising ability, of whom exactly counts[j] pass task j."""
    rng = np.random.default_rng(seed)
    strength = np.arange(n_agents)[:, None] + rng.normal(0, 4, (n_agents, len(counts)))
    passed = strength.argsort(axis=0).argsort(axis=0) >= n_agents - np.array(counts)
    return {f"{prefix}{i:02d}": "".join(map(str, row)) for i, row in enumerate(passed.astype(int))}


def moved(*, slug="toy"):
    """16 agents, on whom the first subset is fixed, and 16 later ones who move the pass rates."""

    def make():
        load_text(csv_text(passing(FIRST)), slug=slug)
        recomputed(slug)
        load_text(csv_text(passing(LATER, seed=1, prefix="b"), day="2026-02-05"), slug=slug)

    make() if Benchmark.objects.exists() else stored(("moved", slug), make)
    return Benchmark.objects.get(slug=slug)
