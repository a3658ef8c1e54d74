"""Nested validation of a benchmark on its present data, stored as a study."""

from collections.abc import Callable
from datetime import datetime

from leaderboard.studies.models import ValidationStudy
from leaderboard.studies.services import keep, kept
from leaderboard.studies.tables import Snapshot

Progress = Callable[[int, int], None]


def settle_validation(
    *, snapshot: Snapshot, as_of: datetime, n_jobs: int = 1, progress: Progress | None = None
) -> tuple[ValidationStudy, bool]:
    """Return the validation of the present data and whether it was computed just now."""
    if study := kept(ValidationStudy, snapshot=snapshot):
        return study, False
    from selection.validation import as_json, validate

    policy = snapshot.policy
    validation = validate(
        snapshot.table,
        lo=policy.band_lo,
        hi=policy.band_hi,
        history_window=policy.history_window,
        hysteresis=policy.hysteresis,
        policy_strategy=policy.strategy,
        base_seed=policy.base_seed,
        jobs=n_jobs,
        progress=progress,
    )
    return keep(ValidationStudy, snapshot=snapshot, result=as_json(validation), as_of=as_of), True
