from typing import Any

from django.utils import timezone

from leaderboard.boards.models import Board
from leaderboard.boards.queries import head_of
from leaderboard.called import PROGRAM
from leaderboard.catalog.models import Benchmark
from leaderboard.operations.services import recompute
from leaderboard.studies.answers import progress_bar
from leaderboard.studies.rules import rules_sha256
from leaderboard.terminal.command import BenchmarkCommand

MIN_COMPLETE = 5  # that a subset is chosen from


class Command(BenchmarkCommand):
    help = "Compute the ranking from all results and publish the board."

    def handle(self, *, benchmark: Benchmark, **_: Any) -> None:
        with progress_bar("recompute"):
            board, is_new = recompute(benchmark=benchmark, as_of=timezone.now())
        self.stdout.write(board_text(board, is_new=is_new))
        # Next a study that was not made and would tell something, else looking. A validation under earlier
        # rules says nothing of these; it takes a choice of tasks, and a complete agent besides those that
        # could make one.
        is_validated = board.validation is not None and board.validation.rules == rules_sha256(board.policy)
        subset, next_command = head_of(board).subset, f"standings {benchmark}"
        can_be = subset is not None and subset.size < board.n_tasks and board.n_complete > MIN_COMPLETE
        if board.variance is None and board.n_tasks > 1 and board.entries.count() > 1:
            next_command = f"variance {benchmark} (sources of error)"
        elif not is_validated and can_be:
            next_command = f"validate {benchmark} (do the ranking tasks order agents as all tasks do?)"
        self.stdout.write(f"Next: {PROGRAM} {next_command}")


def board_text(board: Board, *, is_new: bool) -> str:
    slug = board.benchmark.slug
    if is_new:
        return f"Published board {board.number} of {slug}. {head_of(board).why}"
    return f"No change: board {board.number} of {slug} is up to date."
