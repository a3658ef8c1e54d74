"""Reads of boards."""

from collections.abc import Iterable
from typing import Any

from django.db.models import F

from leaderboard.boards.models import Board, Entry
from leaderboard.catalog.models import Benchmark
from leaderboard.errors import Missing
from leaderboard.studies.models import ESTIMATOR_VERSION, TaskSubset
from leaderboard.studies.tables import Snapshot


class NoBoardYet(Missing):
    """No board has been published yet."""


def board_with_key(*, snapshot: Snapshot, subset: TaskSubset | None) -> Board | None:
    return Board.objects.filter(
        benchmark=snapshot.benchmark,
        data_version=snapshot.data_version,
        policy=snapshot.policy,
        subset=subset,
        estimator_version=ESTIMATOR_VERSION,
    ).first()


def latest_board(benchmark: Benchmark) -> Board:
    boards = benchmark.boards.select_related("benchmark", "subset", "policy", "calibration")
    if board := boards.order_by("-number").first():
        return board
    raise NoBoardYet


def promises_of(benchmark: Benchmark) -> dict[int, dict[str, float]]:
    """By agent id, the latest calibrated full score that was published with an interval."""
    entries = Entry.objects.filter(board__benchmark=benchmark, full_interval__lower__isnull=False)
    latest = entries.order_by("agent", "-board__number").distinct("agent")
    rows: Iterable[tuple[int, Any, Any]] = latest.values_list("agent", "full_score", "full_interval")
    return {
        agent: {"score": score, "lower": interval["lower"], "upper": interval["upper"]}
        for agent, score, interval in rows
    }


def entries_of(board: Board) -> list[Entry]:
    """The ranked ones by rank, then those that are listed only; names in order inside a rank."""
    return list(board.entries.order_by(F("rank").asc(nulls_last=True), "name"))
