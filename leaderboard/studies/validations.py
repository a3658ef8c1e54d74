"""Nested validation of a benchmark on its present data, stored as a study."""

from collections.abc import Callable
from datetime import datetime

from leaderboard.studies.models import ValidationStudy
from leaderboard.studies.records import Snapshot
from leaderboard.studies.services import Hold, free, keep, kept
from leaderboard.studies.workers import spread_over

Progress = Callable[[int, int], None]


def settle_validation(
    *,
    snapshot: Snapshot,
    as_of: datetime,
    n_jobs: int = 1,
    progress: Progress | None = None,
    hold: Hold = free,
) -> tuple[ValidationStudy, bool]:
    """Return the validation of the present data and whether it was computed just now."""
    if study := kept(ValidationStudy, snapshot=snapshot):
        return study, False
    from selection.standings.validating import validation_of

    spread = spread_over(n_jobs)
    result = validation_of(snapshot.record, snapshot.rules, spread=spread, progress=progress)
    return keep(ValidationStudy, snapshot=snapshot, result=result, as_of=as_of, hold=hold), True
