"""Print a board."""

import csv
import json
import shutil
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from leaderboard.boards.presentation import as_dict
from leaderboard.boards.queries import entries_of, latest_board
from leaderboard.catalog.queries import benchmark_of
from leaderboard.operations.printing import board_text, refusals_as_errors


class Command(BaseCommand):
    help = "Print the latest board of a benchmark."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("benchmark", metavar="SLUG")
        parser.add_argument("--format", choices=["table", "csv", "json"], default="table")

    def handle(self, *, benchmark: str, format: str, **_: Any) -> None:
        with refusals_as_errors():
            board = latest_board(benchmark_of(benchmark))
        entries = entries_of(board)
        if format == "table":
            self.stdout.write(board_text(board, entries, width=shutil.get_terminal_size((160, 24)).columns))
        elif format == "json":
            self.stdout.write(json.dumps(as_dict(board, entries), ensure_ascii=False, indent=2))
        else:
            lines = [
                entry | {"marks": " ".join(entry["marks"])} for entry in as_dict(board, entries)["entries"]
            ]
            writer = csv.DictWriter(self.stdout, lines[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)
