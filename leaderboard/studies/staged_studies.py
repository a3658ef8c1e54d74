"""The fit that staged assignments rest on, stored as a study, and replays of the rule in force."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from analytics.record import Record
from leaderboard.catalog.models import Assigning, Benchmark, Policy
from leaderboard.studies.board_inputs import FITS
from leaderboard.studies.models import ESTIMATOR_VERSION, StagedStudy, TaskSubset
from leaderboard.studies.records import Snapshot
from leaderboard.studies.rules import rules_of, rules_sha256
from leaderboard.studies.services import get_or_compute
from leaderboard.submissions.parsing.flat import FlatFile

if TYPE_CHECKING:
    from selection.staged.study import AssignmentRule, WalkResult
    from selection.staged.study import Course as Course
    from selection.staged.walks import Staging


Decisions = Mapping[str, tuple[StagedStudy, Sequence[Mapping[str, Any]]]]
"""What was decided of agents that were asked batch by batch, by name, with the study that decided it."""
Progress = Callable[[int, int], None]
IN_USE = "in_use"


def replays_of_subsets(
    now: Snapshot, decisions: Decisions, tasks: Mapping[str, tuple[str, ...]]
) -> dict[str, Any]:
    """Replay the policy in force on each subset from the outset, and with one chosen anew as agents come."""
    from selection.staged.study import of_subsets

    return of_subsets(now.record, rule_of(now.policy), tasks, walks_of(decisions), now.policy.base_seed)


def replays_of_policies(
    now: Snapshot, decisions: Decisions, changed: Policy, progress: Progress | None
) -> list[dict[str, Any]]:
    from selection.staged.study import side_by_side

    rules = (rule_of(now.policy), rule_of(changed))
    return side_by_side(now.record, rules, walks_of(decisions), now.policy.base_seed, progress)


def replay_of_file(
    flat: FlatFile, policy: Policy, n_seeds: int | None, progress: Progress | None
) -> dict[str, Any]:
    from selection.staged.study import replayed

    record = Record.from_flat(flat, replace(rules_of(policy).counting, missing=cast(Any, policy.missing)))
    return replayed(record, rule_of(policy), base_seed=policy.base_seed, n_seeds=n_seeds, progress=progress)


def replay_of_stored(
    now: Snapshot, decisions: Decisions, n_seeds: int | None, progress: Progress | None
) -> dict[str, Any]:
    """Replay the policy in force on the full runs that it did not choose."""
    from selection.staged.study import replayed

    return replayed(
        now.record,
        rule_of(now.policy),
        walks_of(decisions),
        base_seed=now.policy.base_seed,
        n_seeds=n_seeds,
        progress=progress,
    )


def courses_of(
    now: Snapshot, decisions: Decisions, progress: Progress | None
) -> tuple[dict[str, Any], list["Course"]]:
    """Do the same with the first seed alone, and say what each agent was asked for."""
    from selection.staged.study import courses

    return courses(
        now.record,
        rule_of(now.policy),
        walks_of(decisions),
        base_seed=now.policy.base_seed,
        progress=progress,
    )


def keep_fit(benchmark: Benchmark, policy: Policy, fit: dict[str, Any], as_of: datetime) -> StagedStudy:
    """Store the fit by which the next agent of a replay is asked."""
    benchmark.refresh_from_db(fields=["data_version"])
    return StagedStudy.objects.create(
        benchmark=benchmark,
        rules=rules_sha256(policy),
        data_version=benchmark.data_version,
        estimator_version=ESTIMATOR_VERSION,
        policy=policy,
        result=fit,
        created_at=as_of,
    )


def get_or_compute_staged(
    *, snapshot: Snapshot, decisions: Decisions, subset: TaskSubset | None, as_of: datetime
) -> StagedStudy | None:
    """Return the study of the present data, made if there is none; None where tasks are not assigned so."""
    if snapshot.policy.assignment != Assigning.STAGED:
        return None

    def compute() -> dict[str, Any]:
        from selection.staged.study import staged_fit

        names = list(subset.members.values_list("task__name", flat=True)) if subset else None
        policy = snapshot.policy
        return staged_fit(
            snapshot.record, staging_of(policy), walks_of(decisions), names, FITS, policy.n_trials
        )

    return get_or_compute(StagedStudy, compute, snapshot=snapshot, as_of=as_of)[0]


def walks_of(decisions: Decisions) -> dict[str, "WalkResult"]:
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
    from selection.staged.study import AssignmentRule

    return AssignmentRule(staging_of(policy), str(policy.assignment))


def staging_of(policy: Policy) -> "Staging":
    from selection.staged.walks import Staging

    return Staging(
        podium=policy.podium,
        staged_from=policy.staged_from,
        draw_share=policy.draw_share,
        subset_from=policy.subset_from,
        lo=policy.band_lo,
        hi=policy.band_hi,
    )
