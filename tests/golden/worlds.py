"""Outcomes that are told in full: the demonstration, two prompts, full runs beside runs of the subset."""

from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from analytics.flat_file import read
from analytics.record import Record
from leaderboard.studies.demonstration import write_history, write_newcomers
from leaderboard.terminal.management.commands.demo import FILE as DEMONSTRATION
from selection.standings import answer
from tests.toys import rows_text

__all__ = ["AS_OF", "DEMONSTRATION", "mixed_text", "prompts_text"]
AS_OF = datetime(2026, 6, 1, 12, tzinfo=UTC)


def prompts_text():
    """Agents under two prompts, one of them under the second alone."""
    rng = np.random.default_rng(2)
    return rows_text(
        {
            "agent": f"a{i:02d}",
            "task": f"t{j:02d}",
            "prompt_variant": prompt,
            "outcome": int(rng.random() < p),
            "cost_usd": 0.25,
        }
        for i in range(20)
        for prompt in (("p1", "p2") if i < 19 else ("p2",))
        for j, p in enumerate(np.linspace(0.05, 0.95, 30))
    )


def mixed_text():
    """The simulated demonstration: a history of full runs, and newcomers on the subset that it chooses."""
    with TemporaryDirectory() as folder:
        history, newcomers = Path(folder) / "history.csv", Path(folder) / "newcomers.csv"
        write_history(history)
        chosen = answer(Record.from_flat(read(history, as_of=AS_OF))).subset.tasks
        write_newcomers(newcomers, tasks=chosen)
        return history.read_text() + newcomers.read_text().partition("\n")[2]
