"""Replays of the rule in force on full runs, alone or beside what could take its place."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from analytics.record import Record
from leaderboard.catalog.models import Benchmark, Policy, Trust
from leaderboard.studies.models import ESTIMATOR_VERSION, StagedStudy
from leaderboard.studies.records import Snapshot
from leaderboard.studies.rules import rules_of, rules_sha256
from leaderboard.studies.staged_studies import Decisions, rule_of, walks_of
from leaderboard.submissions.parsing.flat import FlatFile

if TYPE_CHECKING:
    from selection.staged.study import Course as Course

Progress = Callable[[int, int], None]
IN_USE, ANEW = "in_use", "anew"


def replays_of_subsets(
    now: Snapshot,
    decisions: Decisions,
    tasks: Mapping[str, tuple[str, ...]],
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Replay the policy in force on each subset from the outset, and with one chosen anew as agents come."""
    from selection.staged.study import of_subsets

    return of_subsets(
        now.record, rule_of(now.policy), tasks, walks_of(decisions), now.policy.base_seed, progress
    )


def replays_of_policies(
    now: Snapshot, decisions: Decisions, changed: Policy, progress: Progress | None = None
) -> list[dict[str, Any]]:
    """Replay the policy in force, and another."""
    from selection.staged.study import side_by_side

    rules = (rule_of(now.policy), rule_of(changed))
    return side_by_side(now.record, rules, walks_of(decisions), now.policy.base_seed, progress)


def replay_of_file(
    flat: FlatFile, policy: Policy, n_seeds: int | None = None, progress: Progress | None = None
) -> dict[str, Any]:
    """Replay a policy on the full runs of a file."""
    from selection.staged.study import replayed

    record = Record.from_flat(flat, rules_of(policy).counting)
    return replayed(record, rule_of(policy), base_seed=policy.base_seed, n_seeds=n_seeds, progress=progress)


def replay_of_stored(
    now: Snapshot, decisions: Decisions, n_seeds: int | None = None, progress: Progress | None = None
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
    now: Snapshot, decisions: Decisions, progress: Progress | None = None
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


class Trusted(NamedTuple):
    """How far an agent's outcomes can be checked; `links` to logs where each delivery has them.

    `is_confirmed`: no invalid outcome counts as a failure.
    """

    is_verified: bool
    links: Mapping[str, str]
    is_confirmed: bool


def trusted_as(now: Snapshot) -> dict[str, Trusted]:
    """How far agents are trusted, by name."""
    return {
        one.name: Trusted(
            one.trust == Trust.VERIFIED, one.links if one.trust == Trust.LOGS else {}, not n_unconfirmed
        )
        for one, n_unconfirmed in zip(now.record.about, now.record.n_unconfirmed, strict=True)
    }


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
