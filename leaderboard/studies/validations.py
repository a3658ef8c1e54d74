"""Validation of a benchmark on its present data, stored as a study: nested, and by a replay."""

from collections.abc import Callable
from datetime import datetime

from leaderboard.catalog.models import Assigning
from leaderboard.studies.models import ValidationStudy
from leaderboard.studies.records import Snapshot
from leaderboard.studies.services import Hold, free, keep, kept
from leaderboard.studies.staged_studies import Decisions, rule_of, walked_of
from leaderboard.studies.workers import spread_over

Progress = Callable[[int, int], None]


def settle_validation(
    *,
    snapshot: Snapshot,
    decisions: Decisions,
    as_of: datetime,
    n_jobs: int = 1,
    progress: Progress | None = None,
    hold: Hold = free,
) -> tuple[ValidationStudy, bool]:
    """Return the validation of the present data and whether it was computed just now."""
    if study := kept(ValidationStudy, snapshot=snapshot):
        return study, False
    from selection.standings.validating import validation_of

    is_full = snapshot.policy.assignment == Assigning.FULL
    result = validation_of(
        snapshot.record,
        snapshot.rules,
        rule=None if is_full else rule_of(snapshot.policy),
        asked=walked_of(decisions),
        spread=spread_over(n_jobs),
        progress=progress,
    )
    return keep(ValidationStudy, snapshot=snapshot, result=result, as_of=as_of, hold=hold), True
