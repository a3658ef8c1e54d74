"""What a changed policy would change, before it is put in force. Nothing is stored."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from leaderboard.catalog.models import Benchmark, Policy
from leaderboard.studies.subsets import Band, NoChoice, active_subset, band_of, chosen_tasks
from leaderboard.studies.tables import Snapshot, snapshot

OF_TABLE = ("duplicates", "counted_settings", "missing", "universe")


def preview(benchmark: Benchmark, changed: Policy) -> list[str]:
    """Say, a sentence each, what would change with this policy; nothing without outcomes."""
    current = snapshot(benchmark)
    if current is None:
        return []
    return list(_sentences(current, replace(current, policy=changed)))


def _sentences(now: Snapshot, then: Snapshot) -> Iterator[str]:
    if any(getattr(now.policy, field) != getattr(then.policy, field) for field in OF_TABLE):
        yield "Which outcomes count changes, and so may pass rates, subset and ranks."
        return
    before, after = band_of(now), band_of(then)
    if (before.lo, before.hi, before.size) != (after.lo, after.hi, after.size):
        yield f"The band changes: {_band(before)} now, {_band(after)} then."
    subset = active_subset(now.benchmark)
    if subset is not None and not subset.provisional:
        yield f"The subset stays, with {subset.tasks.count()} tasks: it is fixed until a reselection."
        return
    yield from _chosen(_tasks(now, before), _tasks(then, after))


def _chosen(now: set[int], then: set[int]) -> Iterator[str]:
    if now != then:
        yield (
            f"The subset would have {len(then)} tasks instead of {len(now)}: {len(then - now)} enter, "
            f"{len(now - then)} leave."
        )


def _tasks(current: Snapshot, band: Band) -> set[int]:
    try:
        chosen = chosen_tasks(current, band) if band.suited else np.zeros(0, np.int64)
    except NoChoice:
        chosen = np.zeros(0, np.int64)
    return set(chosen.tolist())


def _band(band: Band) -> str:
    return f"{band.lo:.0%} to {band.hi:.0%} with {band.size} of {band.n_tasks} tasks"
