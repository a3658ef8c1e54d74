"""Print a board."""

import csv
import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from leaderboard.boards.presentation import as_dict
from leaderboard.boards.queries import latest_board
from leaderboard.boards.reading import standings_of
from leaderboard.catalog.models import Target
from leaderboard.catalog.queries import benchmark_of
from leaderboard.studies.answers import table
from leaderboard.terminal.printing import board_text, refusals_as_errors


class Command(BaseCommand):
    help = "Print the latest board of a benchmark."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("benchmark", metavar="SLUG", help="its name in addresses")
        parser.add_argument("--format", choices=["table", "csv", "json"], default="table")
        parser.add_argument(
            "--target",
            choices=Target.values,
            help="what the table's intervals, ranks and ties are about; csv and json hold all targets",
        )

    def handle(self, *, benchmark: str, format: str, target: str | None, **_: Any) -> None:
        with refusals_as_errors():
            board = latest_board(benchmark_of(benchmark))
        standings = standings_of(board)
        if target and not standings.targets[target].n_ranked:
            why = standings.targets[target].reason
            raise CommandError(f"The board says nothing about the target {target}: {why}.")
        if format == "table":
            self.stdout.write(board_text(board, standings, target or standings.target))
        elif format == "json":
            self.stdout.write(json.dumps(as_dict(board), ensure_ascii=False, indent=2))
        else:
            lines = [table.guarded(table.flat(line)) for line in standings.agents]
            writer = csv.DictWriter(self.stdout, lines[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)
