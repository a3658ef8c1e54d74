"""What staged assignments rest on, stored as a study: a fit to the agents that teach."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from leaderboard.catalog.models import Assigning, Policy
from leaderboard.studies.models import StagedStudy, TaskSubset
from leaderboard.studies.records import Snapshot
from leaderboard.studies.services import CheckClaim, find_study, no_claim, store_study

if TYPE_CHECKING:
    from selection.staged.study import AssignmentRule, WalkResult
    from selection.staged.walks import Staging

Decisions = Mapping[str, tuple[StagedStudy, Sequence[Mapping[str, Any]]]]
"""What was decided of agents that were asked batch by batch, by name, with the study that decided it."""


def get_or_compute_staged(
    *,
    snapshot: Snapshot,
    decisions: Decisions,
    subset: TaskSubset | None,
    as_of: datetime,
    check_claim: CheckClaim = no_claim,
) -> StagedStudy | None:
    """Return the study of the present data, made if there is none; None where tasks are not assigned so."""
    if snapshot.policy.assignment != Assigning.STAGED:
        return None
    if study := find_study(StagedStudy, snapshot=snapshot):
        return study
    from selection.staged.study import staged_fit

    names = subset.members.values_list("task__name", flat=True) if subset else None
    result = staged_fit(
        snapshot.record,
        staging_of(snapshot.policy),
        walks_of(decisions),
        None if names is None else list(names),
    )
    return store_study(StagedStudy, snapshot=snapshot, result=result, as_of=as_of, check_claim=check_claim)


def walks_of(decisions: Decisions) -> dict[str, "WalkResult"]:
    """How agents went that were asked batch by batch, by name."""
    from selection.staged.study import walked

    return {name: walked(made, by.result["fit"]) for name, (by, made) in decisions.items()}


def published_of(decisions: Decisions, sampled: Collection[str]) -> dict[str, tuple[float, float]]:
    """By name, score and standard error with which agents were stopped that were asked for the rest.

    Drawn by the rule, or for a rerun request; not those that ran on, or delivered the rest unasked.
    """
    published = {}
    for name, (_, made) in decisions.items():
        end = next((one for one in made if one["stage"] != "running"), None)
        if end is not None and (end["stage"] == "drawn" or name in sampled):
            published[name] = (end["score"], end["se"])
    return published


def rule_of(policy: Policy) -> "AssignmentRule":
    """The rule by which a policy assigns, for a replay."""
    from selection.staged.study import AssignmentRule

    return AssignmentRule(staging_of(policy), str(policy.assignment))


def staging_of(policy: Policy) -> "Staging":
    """The rule of staged assignment that a policy states."""
    from selection.staged.walks import Staging

    return Staging(
        podium=policy.podium,
        staged_from=policy.staged_from,
        draw_share=policy.draw_share,
        subset_from=policy.subset_from,
        lo=policy.band_lo,
        hi=policy.band_hi,
    )
