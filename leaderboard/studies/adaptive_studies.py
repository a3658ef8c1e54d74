"""What adaptive assignments rest on, stored as a study: past agents are replayed, and models fitted."""

from collections.abc import Callable
from datetime import datetime

from leaderboard.studies.models import AdaptiveStudy
from leaderboard.studies.records import Snapshot
from leaderboard.studies.services import Hold, free, keep, kept

Progress = Callable[[int, int], None]


def settle_adaptive(
    *, snapshot: Snapshot, as_of: datetime, progress: Progress | None = None, hold: Hold = free
) -> tuple[AdaptiveStudy, bool]:
    """Return the study of the present data and whether it was made just now."""
    if study := kept(AdaptiveStudy, snapshot=snapshot):
        return study, False
    from selection.adaptive_study import adaptive_study

    result = adaptive_study(snapshot.record, base_seed=snapshot.rules.seed, progress=progress)
    return keep(AdaptiveStudy, snapshot=snapshot, result=result, as_of=as_of, hold=hold), True
