"""Publishing a board."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from leaderboard.boards.digest import digest
from leaderboard.boards.models import Board, Entry, Phase
from leaderboard.boards.queries import board_with_key
from leaderboard.catalog.models import Benchmark
from leaderboard.studies.models import (
    ESTIMATOR_VERSION,
    Calibration,
    TaskSubset,
    ValidationStudy,
    VarianceStudy,
)
from leaderboard.studies.standings import Ranking, Standing
from leaderboard.studies.tables import Snapshot


@dataclass(frozen=True)
class Draft:
    """A board before it has a number."""

    snapshot: Snapshot
    subset: TaskSubset | None
    calibration: Calibration | None
    validation: ValidationStudy | None
    variance: VarianceStudy | None
    ranking: Ranking
    savings: dict[str, Any]
    phase: Phase
    why: str
    n_complete: int


@transaction.atomic
def publish(*, draft: Draft, published_at: datetime) -> tuple[Board, bool]:
    """Store the board under the next number, unless one with its key, or of later data, is there already."""
    benchmark = Benchmark.objects.select_for_update(no_key=True).get(pk=draft.snapshot.benchmark.pk)
    if board := board_with_key(snapshot=draft.snapshot, subset=draft.subset):
        return board, False
    latest = benchmark.boards.order_by("-number").first()
    if latest and latest.data_version > draft.snapshot.data_version:
        return latest, False  # another worker read and published while this one still computed
    names = draft.subset.tasks.values_list("name", flat=True) if draft.subset else None
    board = Board.objects.create(
        benchmark=benchmark,
        number=latest.number + 1 if latest else 1,
        data_version=draft.snapshot.data_version,
        policy=draft.snapshot.policy,
        subset=draft.subset,
        estimator_version=ESTIMATOR_VERSION,
        calibration=draft.calibration,
        validation=draft.validation,
        variance=draft.variance,
        targets=draft.ranking.targets,
        not_measured=draft.ranking.not_measured,
        savings=draft.savings,
        phase=draft.phase,
        why=draft.why,
        n_tasks=draft.snapshot.table.n_tasks,
        n_complete=draft.n_complete,
        digest=digest(policy=draft.snapshot.policy, subset_tasks=names, standings=draft.ranking.standings),
        published_at=published_at,
    )
    Entry.objects.bulk_create(_entry(board, line) for line in draft.ranking.standings)
    return board, True


def _entry(board: Board, line: Standing) -> Entry:
    return Entry(
        board=board,
        agent=line.agent,
        name=line.agent.name,
        scaffold=line.agent.scaffold.name,
        model=line.agent.model.name,
        submitted_at=line.submitted_at,
        **{field: getattr(line, field) for field in Entry.COMPUTED},
    )
