"""What staged assignments rest on, stored as a study: a fit, and a replay of the rule."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from leaderboard.catalog.models import Policy
from leaderboard.studies.models import StagedStudy
from leaderboard.studies.records import Snapshot
from leaderboard.studies.services import Hold, free, keep, kept

if TYPE_CHECKING:
    from selection.staged.walks import Staging

Progress = Callable[[int, int], None]


def settle_staged(
    *,
    snapshot: Snapshot,
    decisions: Mapping[str, tuple[StagedStudy, Sequence[Mapping[str, Any]]]],
    as_of: datetime,
    progress: Progress | None = None,
    hold: Hold = free,
) -> tuple[StagedStudy, bool]:
    """Return the study of the present data and whether it was made just now.

    `decisions` are those about agents that were asked batch by batch, by name, with the study that made them.
    """
    if study := kept(StagedStudy, snapshot=snapshot):
        return study, False
    from selection.staged.study import staged_study, walked

    result = staged_study(
        snapshot.record,
        staging_of(snapshot.policy),
        {name: walked(made, by.result["fit"]) for name, (by, made) in decisions.items()},
        base_seed=snapshot.rules.seed,
        progress=progress,
    )
    return keep(StagedStudy, snapshot=snapshot, result=result, as_of=as_of, hold=hold), True


def verdict_of(study: StagedStudy) -> str:
    """What the replay says, or why there is none."""
    result = study.result
    if not result["available"]:
        return str(result["reason"])
    return str(result["verdict"]["text"] if result["verdict"] else result["replay_reason"])


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
