"""Validation of a benchmark on its present data, stored as a study: nested, and by a replay."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from leaderboard.catalog.models import Assigning
from leaderboard.errors import Refusal
from leaderboard.studies.models import ValidationStudy
from leaderboard.studies.records import Snapshot
from leaderboard.studies.services import Hold, free, keep, kept
from leaderboard.studies.staged_studies import Decisions, rule_of, walked_of
from leaderboard.studies.workers import spread_over

Progress = Callable[[int, int], None]


class ClosedFormsDiffer(Refusal):
    """The closed forms and scikit-learn disagree, so that the validation is not published."""


def settle_validation(
    *,
    snapshot: Snapshot,
    decisions: Decisions,
    as_of: datetime,
    n_jobs: int = 1,
    progress: Progress | None = None,
    hold: Hold = free,
) -> tuple[ValidationStudy, bool]:
    """Return the validation of the present data and whether it was computed just now.

    Raises
    ------
    ClosedFormsDiffer
    """
    if study := kept(ValidationStudy, snapshot=snapshot):
        return study, False
    from selection.standings.validating import validation_of

    checked = _checked(snapshot)
    is_full = snapshot.policy.assignment == Assigning.FULL
    result = validation_of(
        snapshot.record,
        snapshot.rules,
        rule=None if is_full else rule_of(snapshot.policy),
        asked=walked_of(decisions),
        spread=spread_over(n_jobs),
        progress=progress,
    )
    return keep(ValidationStudy, snapshot=snapshot, result=result | checked, as_of=as_of, hold=hold), True


def _checked(snapshot: Snapshot) -> dict[str, Any]:
    """Hold the closed forms against scikit-learn."""
    from selection.refitted import MOST_DIFFERENCE, refitted

    found = refitted(snapshot.record, snapshot.rules)
    if found and not found["difference"] <= MOST_DIFFERENCE:
        raise ClosedFormsDiffer(
            f"The closed form predicts {found['closed_form']!r} and scikit-learn {found['scikit_learn']!r} "
            f"{found['where']}: they differ by {found['difference']:.1g}, more than {MOST_DIFFERENCE:.0g}. "
            "This validation is not published.",
            **found,
        )
    return {"refitted": found}
