"""Reads of boards."""

from collections.abc import Iterable
from typing import Any

from leaderboard.boards.models import Board, Entry
from leaderboard.catalog.models import Benchmark
from leaderboard.errors import Missing


class NoBoardYet(Missing):
    """No board has been published yet."""


def latest_board(benchmark: Benchmark) -> Board:
    boards = benchmark.boards.select_related("benchmark", "subset", "policy", "calibration")
    if board := boards.order_by("-number").first():
        return board
    raise NoBoardYet


def promises_of(benchmark: Benchmark) -> dict[int, dict[str, float]]:
    """By agent id, the latest estimated full score that was published with an interval."""
    entries = Entry.objects.filter(
        board__benchmark=benchmark, at__full__estimated=True, at__full__lower__isnull=False
    )
    latest = entries.exclude(at__full__lower=None).order_by("agent", "-board__number").distinct("agent")
    rows: Iterable[tuple[int, Any]] = latest.values_list("agent", "at__full")
    return {agent: {end: told[end] for end in ("score", "lower", "upper")} for agent, told in rows}


def entries_of(board: Board) -> list[Entry]:
    """In the order of the board: by rank, names inside ties, unranked last."""
    return list(board.entries.order_by("position"))
