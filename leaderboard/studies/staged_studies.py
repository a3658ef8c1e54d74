"""What staged assignments rest on, stored as a study: a fit to the agents that teach."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from leaderboard.catalog.models import Assigning, Policy
from leaderboard.studies.models import StagedStudy, TaskSubset
from leaderboard.studies.records import Snapshot
from leaderboard.studies.services import Hold, free, keep, kept

if TYPE_CHECKING:
    from selection.staged.study import Rule, Walked
    from selection.staged.walks import Staging

Decisions = Mapping[str, tuple[StagedStudy, Sequence[Mapping[str, Any]]]]
"""What was decided of agents that were asked batch by batch, by name, with the study that decided it."""


def settle_staged(
    *,
    snapshot: Snapshot,
    decisions: Decisions,
    subset: TaskSubset | None,
    as_of: datetime,
    hold: Hold = free,
) -> StagedStudy | None:
    """Return the study of the present data, made if there is none; None where tasks are not assigned so."""
    if snapshot.policy.assignment != Assigning.STAGED:
        return None
    if study := kept(StagedStudy, snapshot=snapshot):
        return study
    from selection.staged.study import staged_fit

    names = subset.members.values_list("task__name", flat=True) if subset else None
    result = staged_fit(
        snapshot.record,
        staging_of(snapshot.policy),
        walked_of(decisions),
        None if names is None else list(names),
    )
    return keep(StagedStudy, snapshot=snapshot, result=result, as_of=as_of, hold=hold)


def walked_of(decisions: Decisions) -> dict[str, "Walked"]:
    """How agents went that were asked batch by batch, by name."""
    from selection.staged.study import walked

    return {name: walked(made, by.result["fit"]) for name, (by, made) in decisions.items()}


def published_of(decisions: Decisions, sampled: Collection[str]) -> dict[str, tuple[float, float]]:
    """By name, score and standard error with which agents were stopped that were asked for the rest.

    Drawn by the rule, or for a rerun request; not those that ran on, or delivered the rest unasked.
    """
    found = {}
    for name, (_, made) in decisions.items():
        end = next((one for one in made if one["stage"] != "running"), None)
        if end is not None and (end["stage"] == "drawn" or name in sampled):
            found[name] = (end["score"], end["se"])
    return found


def rule_of(policy: Policy) -> "Rule":
    """The rule by which a policy assigns, for a replay."""
    from selection.staged.study import Rule

    return Rule(staging_of(policy), str(policy.assignment))


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
