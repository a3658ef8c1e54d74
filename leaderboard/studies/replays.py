"""Replays of what could take the place of a rule in force, beside that."""

from collections.abc import Callable, Mapping
from typing import Any

from leaderboard.catalog.models import Policy
from leaderboard.studies.records import Snapshot
from leaderboard.studies.staged_studies import Decisions, rule_of, walked_of

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
        now.record, rule_of(now.policy), tasks, walked_of(decisions), now.policy.base_seed, progress
    )


def replays_of_policies(
    now: Snapshot, decisions: Decisions, changed: Policy, progress: Progress | None = None
) -> list[dict[str, Any]]:
    """Replay the policy in force, and another."""
    from selection.staged.study import side_by_side

    rules = (rule_of(now.policy), rule_of(changed))
    return side_by_side(now.record, rules, walked_of(decisions), now.policy.base_seed, progress)
