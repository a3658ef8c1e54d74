"""Bring a board up to date."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from leaderboard.boards.models import Board
from leaderboard.boards.reading import head_of
from leaderboard.catalog.queries import benchmark_of
from leaderboard.operations.services import recompute
from leaderboard.terminal.printing import refusals_as_errors


class Command(BaseCommand):
    help = "Compute subset, calibration and ranking from the present outcomes and publish the board."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("benchmark", metavar="SLUG")

    def handle(self, *, benchmark: str, **_: Any) -> None:
        with refusals_as_errors():
            board, is_new = recompute(benchmark=benchmark_of(benchmark), as_of=timezone.now())
        self.stdout.write(told(board, is_new=is_new))
        self.stdout.write(_next(board))


def told(board: Board, *, is_new: bool) -> str:
    """What was done, in a line."""
    slug = board.benchmark.slug
    if is_new:
        return f"Published board {board.number} of {slug}. {head_of(board).why}"
    return f"Board {board.number} of {slug} is up to date."


def _next(board: Board) -> str:
    """The command that makes sense now: what no study tells yet, else looking."""
    slug = board.benchmark.slug
    if board.variance is None:
        return f"Next: manage.py variance {slug} (where the noise comes from)"
    if board.validation is None:
        return f"Next: manage.py validate {slug} (whether the subset ranks like all tasks)"
    return f"Next: manage.py standings {slug}"
