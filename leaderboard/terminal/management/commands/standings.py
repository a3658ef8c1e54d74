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
    help = "Print the latest board, an older one, or the changes between two."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--format", choices=["table", "csv", "json"], default="table")
        parser.add_argument(
            "--target",
            choices=Target.values,
            help="what the ranks are about; csv and json hold all targets",
        )
        parser.add_argument(
            "--explain",
            action="store_true",
            help="add all columns, what they mean, what intervals cover, and what was not measured",
        )

        # Django keeps --version for its own.
        parser.add_argument("--board", type=int, metavar="N", help="board N instead of the latest")
        parser.add_argument(
            "--since", type=int, metavar="M", help="show what changed since board M instead (not as csv)"
        )

    def handle(
        self,
        *,
        benchmark: Benchmark,
        format: str,
        target: str | None,
        board: int | None,
        since: int | None,
        explain: bool,
        **_: Any,
    ) -> None:
        shown = latest_board(benchmark) if board is None else board_numbered(benchmark, board)
        if since is not None:
            return self.tell_changes(board_numbered(benchmark, since), shown, format)
        return self.tell(shown, format, target, explain=explain)

    def tell_changes(self, older: Board, newer: Board, format: str) -> None:
        if older.number >= newer.number or format == "csv":
            raise CommandError("--since needs the number of an older board, and --format table or json.")
        changes = changes_since(older, newer)
        if format == "json":
            plain = {"benchmark": newer.benchmark.slug, "number": newer.number, "since": older.number}
            self.stdout.write(json.dumps(plain | changes.as_plain(), ensure_ascii=False, indent=2))
        else:
            self.stdout.write(changes_text(older, newer, changes))

    def tell(self, board: Board, format: str, target: str | None, *, explain: bool) -> None:
        standings = standings_of(board)
        if target and not standings.targets[target].n_ranked:
            why = standings.targets[target].reason
            raise CommandError(f"No ranks for the target {target}: {why}.")
        if format == "table":
            self.stdout.write(board_text(board, standings, target or standings.target, explain=explain))
        elif format == "json":
            self.stdout.write(json.dumps(as_dict(board), ensure_ascii=False, indent=2))
        else:
            self.stdout.write(as_csv(flat_rows(standings)).decode(), ending="")
