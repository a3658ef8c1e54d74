"""Reads of boards."""

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


def entries_of(board: Board) -> list[Entry]:
    """The ranked ones by rank, then those that are listed only; names in order inside a rank."""
    return list(board.entries.order_by(F("rank").asc(nulls_last=True), "name"))
