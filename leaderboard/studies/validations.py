"""Validation of a benchmark on its present data, stored as a study: nested, and by a replay."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from leaderboard.catalog.models import Assigning
from leaderboard.errors import Refusal
from leaderboard.studies.models import ValidationStudy
from leaderboard.studies.records import Snapshot
from leaderboard.studies.services import CheckClaim, find_study, no_claim, store_study
from leaderboard.studies.staged_studies import Decisions, rule_of, walks_of
from leaderboard.studies.workers import spread_over

Progress = Callable[[int, int], None]


class ClosedFormsDiffer(Refusal):
    """The closed forms and scikit-learn disagree, so that the validation is not published."""


def get_or_compute_validation(
    *,
    snapshot: Snapshot,
    decisions: Decisions,
    as_of: datetime,
    n_jobs: int = 1,
    progress: Progress | None = None,
    check_claim: CheckClaim = no_claim,
) -> tuple[ValidationStudy, bool]:
    """Return the validation of the present data and whether it was computed just now.

    Raises ClosedFormsDiffer.
    """
    if study := find_study(ValidationStudy, snapshot=snapshot):
        return study, False
    from selection.standings.validating import validation_of

    checked = _check_closed_forms(snapshot)
    is_full = snapshot.policy.assignment == Assigning.FULL
    result = validation_of(
        snapshot.record,
        snapshot.rules,
        rule=None if is_full else rule_of(snapshot.policy),
        walks=walks_of(decisions),
        spread=spread_over(n_jobs),
        progress=progress,
    )
    return store_study(
        ValidationStudy, snapshot=snapshot, result=result | checked, as_of=as_of, check_claim=check_claim
    ), True


def _check_closed_forms(snapshot: Snapshot) -> dict[str, Any]:
    """Hold the closed forms against scikit-learn."""
    from selection.refitted import MAX_DIFFERENCE, refitted

    check = refitted(snapshot.record, snapshot.rules)
    if check and not check["difference"] <= MAX_DIFFERENCE:
        raise ClosedFormsDiffer(
            f"The closed form predicts {check['closed_form']!r} and scikit-learn {check['scikit_learn']!r} "
            f"{check['where']}: they differ by {check['difference']:.1g}, more than {MAX_DIFFERENCE:.0g}. "
            "This validation is not published.",
            **check,
        )
    return {"refitted": check}
