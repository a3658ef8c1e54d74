"""Benchmarks to test with, loaded through the same door as an operator's."""

import io
from datetime import UTC, datetime

from leaderboard.operations.loading import load
from leaderboard.submissions.parsing.flat import read_stream

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
    flat = read_stream(io.BytesIO(text.encode()), name="toy.csv", as_of=as_of)
    return load(flat=flat, slug=slug, as_of=as_of, **options)


def ladder(n_agents, n_tasks):
    """Agents of evenly spread ability: agent i passes the first tasks in proportion to i."""
    return {
        f"a{i:02d}": "".join(str(int(j * n_agents < (i + 1) * n_tasks - 1)) for j in range(n_tasks))
        for i in range(n_agents)
    }
