"""How a table of people is read, and the flat file that it becomes."""

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from analytics.command_line import Answer, add_command
from analytics.tables import read_table, table_options


def add(commands: Any) -> None:
    """Register the command."""
    summary = "How a table of your own is read; writes it as a flat file."
    parser = add_command(commands, "table", _table, summary=summary)
    parser.add_argument("--to", type=Path, metavar="FILE.parquet", help="write it here as a flat file")


def _table(arguments: argparse.Namespace) -> Answer:
    options, only = table_options(vars(arguments)), arguments.only
    flat, note = read_table(arguments.file, options, as_of=datetime.now(UTC), only=only, out=arguments.to)
    counts = {"agents": len(flat.agents), "tasks": len(flat.tasks), "outcomes": flat.n_rows}
    return Answer({"read_as": note, "benchmark": flat.benchmark, **counts})
