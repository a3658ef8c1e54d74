"""What both command lines share: arguments, a flat file as a table, one object as JSON, a refusal as a line.

A command is a function from the parsed arguments to an object of plain values. `run` prints it, as JSON with
full precision under `--json`, else as text. What cannot be computed is a refusal: one line on stderr, exit 2.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from analytics.errors import CoreError
from analytics.flat_file import FlatFile, read
from analytics.outcome_table import OutcomeTable, outcome_table
from analytics.text import as_text

Command = Callable[[argparse.Namespace], Mapping[str, Any]]
Progress = Callable[[int, int], None]

REFUSED = 2


class SeveralBenchmarks(CoreError):
    """The file holds more than one benchmark; a command looks at one."""


class Parser(argparse.ArgumentParser):
    """A parser whose refusals are one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the arguments, and exit 2."""
        self.exit(REFUSED, f"{self.prog}: {message}\n")


def add_command(commands: Any, name: str, command: Command, *, summary: str) -> Parser:
    """Add a command with the options that all of them have.

    Parameters
    ----------
    commands : what `add_subparsers` returned
    name, summary : str
    command : callable
        Called with the parsed arguments.
    """
    parser: Parser = commands.add_parser(name, help=summary, description=summary)
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--json", action="store_true", help="print one JSON object with full precision")
    parser.set_defaults(command=command, called=name)
    return parser


def run(parser: Parser, arguments: Sequence[str] | None) -> int:
    """Parse, call the command, print; return the exit code: 0, or 2 for a refusal."""
    parsed = parser.parse_args(arguments)
    try:
        result = parsed.command(parsed)
    except (CoreError, OSError) as refusal:
        sys.stderr.write(f"{parser.prog} {parsed.called}: {_one_line(refusal)}\n")
        return REFUSED
    text = json.dumps(result, ensure_ascii=False, allow_nan=False) if parsed.json else as_text(result)
    sys.stdout.write(f"{text}\n")
    return 0


def flat_file(path: Path) -> FlatFile:
    """Read the flat file of one benchmark.

    Raises
    ------
    FlatFileError, OSError
    SeveralBenchmarks
    """
    flat = read(path, as_of=datetime.now(UTC))
    if len(flat.benchmarks) > 1:
        named = ", ".join(map(repr, flat.benchmarks[:3]))
        raise SeveralBenchmarks(f"{path.name} holds {len(flat.benchmarks)} benchmarks ({named})")
    return flat


def table_of(flat: FlatFile) -> OutcomeTable:
    """Make the outcome table of a flat file; an agent's date is its earliest."""
    return outcome_table(
        agents=flat.agents,
        tasks=flat.tasks,
        agent=flat.agent,
        task=flat.task,
        setting=flat.setting,
        trial=flat.trial,
        outcome=flat.outcome,
        valid=flat.valid,
        dates=_dates(flat),
        scaffolds=flat.scaffolds,
        models=flat.models,
    )


@contextmanager
def progress_bar(title: str) -> Iterator[Progress]:
    """Yield a callback (done, in all) that moves a bar on stderr; silent where that is no terminal."""
    from rich.console import Console
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    with Bar(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _dates(flat: FlatFile) -> list[date | None]:
    earliest: list[date | None] = []
    for i in range(len(flat.agents)):
        stated = flat.submitted_at[flat.agent == i]
        stated = stated[~np.isnat(stated)]
        earliest.append(stated.min().astype("datetime64[D]").astype(date) if stated.size else None)
    return earliest


def _one_line(refusal: Exception) -> str:
    return " ".join(str(refusal).split()) or " ".join((type(refusal).__doc__ or "").split())
