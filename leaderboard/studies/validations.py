"""Nested validation of a benchmark on its present data, stored as a study."""

from collections.abc import Callable
from datetime import datetime

from leaderboard.studies.models import ValidationStudy
from leaderboard.studies.records import Snapshot
from leaderboard.studies.services import keep, kept

Progress = Callable[[int, int], None]


def settle_validation(
    *, snapshot: Snapshot, as_of: datetime, n_jobs: int = 1, progress: Progress | None = None
) -> tuple[ValidationStudy, bool]:
    """Return the validation of the present data and whether it was computed just now."""
    if study := kept(ValidationStudy, snapshot=snapshot):
        return study, False
    from selection.validation import as_json, validate

    record, rules = snapshot.record, snapshot.rules
    validation = validate(
        record.table.restrict(agents=record.complete),
        lo=rules.lo,
        hi=rules.hi,
        history_window=rules.history_window,
        hysteresis=rules.hysteresis,
        widening=rules.widening,
        policy_strategy=rules.strategy,
        base_seed=rules.seed,
        jobs=n_jobs,
        progress=progress,
    )
    result = as_json(validation) | {"agents_in_file": record.n_agents}
    return keep(ValidationStudy, snapshot=snapshot, result=result, as_of=as_of), True
