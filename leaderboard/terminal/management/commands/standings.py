import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from leaderboard.boards.export import as_csv, flat_rows
from leaderboard.boards.models import Board
from leaderboard.boards.queries import as_dict, board_numbered, changes_since, latest_board, standings_of
from leaderboard.catalog.models import Benchmark, Target
from leaderboard.terminal.command import BenchmarkCommand
from leaderboard.terminal.printing import board_text, changes_text


class Command(BenchmarkCommand):
    help = "Print the latest board of a benchmark, or an older one, or what changed between two."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--format", choices=["table", "csv", "json"], default="table")
        parser.add_argument(
            "--target",
            choices=Target.values,
            help="what the table's intervals, ranks and ties are about; csv and json hold all targets",
        )

        # Django keeps --version for its own.
        parser.add_argument(
            "--board", type=int, metavar="N", help="the board of this number; else the latest"
        )
        parser.add_argument(
            "--since", type=int, metavar="M", help="tell what changed since board M instead; no csv"
        )

    def handle(
        self,
        *,
        benchmark: Benchmark,
        format: str,
        target: str | None,
        board: int | None,
        since: int | None,
        **_: Any,
    ) -> None:
        shown = latest_board(benchmark) if board is None else board_numbered(benchmark, board)
        if since is not None:
            return self.tell_changes(board_numbered(benchmark, since), shown, format)
        return self.tell(shown, format, target)

    def tell_changes(self, older: Board, newer: Board, format: str) -> None:
        if older.number >= newer.number or format == "csv":
            raise CommandError("--since takes the number of an older board, as a table or as json.")
        changes = changes_since(older, newer)
        if format == "json":
            plain = {"benchmark": newer.benchmark.slug, "number": newer.number, "since": older.number}
            self.stdout.write(json.dumps(plain | changes.as_plain(), ensure_ascii=False, indent=2))
        else:
            self.stdout.write(changes_text(older, newer, changes))

    def tell(self, board: Board, format: str, target: str | None) -> None:
        standings = standings_of(board)
        if target and not standings.targets[target].n_ranked:
            why = standings.targets[target].reason
            raise CommandError(f"The board says nothing about the target {target}: {why}.")
        if format == "table":
            self.stdout.write(board_text(board, standings, target or standings.target))
        elif format == "json":
            self.stdout.write(json.dumps(as_dict(board), ensure_ascii=False, indent=2))
        else:
            self.stdout.write(as_csv(flat_rows(standings)).decode(), ending="")
