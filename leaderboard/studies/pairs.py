"""A few agents compared on the present data: read, one call, plain values. Nothing is fitted or stored."""

from collections.abc import Collection
from typing import Any

from analytics.errors import CoreError
from leaderboard.catalog.models import Benchmark
from leaderboard.errors import Conflict
from leaderboard.studies.board_inputs import board_inputs
from leaderboard.studies.models import Calibration
from leaderboard.studies.queries import active_subset
from leaderboard.studies.records import Reader, Snapshot
from selection.prior import PriorDecisions
from selection.standings.pairs import PairwiseComparison, View, pairs_of, pairs_values, positions, view_of

MAX_CELLS = 500_000  # of a record that is kept


# The present record, what was decided, and how targets look at it, as far as they were asked for
Read = tuple[Snapshot, PriorDecisions, dict[str | None, View]]
LAST: dict[tuple[Any, ...], Read] = {}  # what this process read last, by its key


def comparison(*, benchmark: Benchmark, agents: Collection[str], target: str | None) -> dict[str, Any]:
    """All pairs of these agents on the subset and calibration in use, and the data version read."""
    data_version, pairs, _ = compare_agents(benchmark=benchmark, agents=agents, target=target)
    return {"data_version": data_version, **pairs_values(pairs)}


def compare_agents(
    *, benchmark: Benchmark, agents: Collection[str], target: str | None
) -> tuple[int, PairwiseComparison, dict[str, int]]:
    """The data version, the core's own comparison, and the ids of its tasks by name."""
    now, prior, views = _read(benchmark)
    try:
        wanted = positions(now.record, agents)
        if target not in views:
            views[target] = view_of(now.record, now.rules, prior, target=target)
        pairs = pairs_of(views[target], wanted)
    except CoreError as refusal:
        raise Conflict(f"Cannot compare these agents: {refusal}.", code="nothing_to_compare") from refusal
    return now.data_version, pairs, dict(zip(now.record.table.tasks, now.task_ids, strict=True))


def _read(benchmark: Benchmark) -> Read:
    """Read the record with what was decided, or take what this process read last where nothing changed."""
    key = _key(benchmark)
    if cached := LAST.get(key):
        return cached
    reader = Reader(benchmark)
    subset = active_subset(benchmark)
    now = reader.now(subset)
    if now is None:
        raise Conflict("This benchmark has no results yet.", code="nothing_to_compare")
    calibration = subset.calibrations.order_by("-data_version").first() if subset else None
    read: Read = (now, board_inputs(now, subset, calibration).prior_decisions(), {})
    LAST.clear()
    if now.record.table.means.size <= MAX_CELLS and key == _key(benchmark):
        LAST[key] = read
    return read


def _key(benchmark: Benchmark) -> tuple[Any, ...]:
    """All that decides what is read: whatever else changes is another data version, or another one shown."""
    at = Benchmark.objects.values_list(
        "pk", "created_at", "data_version", "shown_version", "full_runs_only_reason"
    ).get(pk=benchmark.pk)
    latest = (
        rows.order_by("-pk").values_list("pk", flat=True).first()
        for rows in (
            benchmark.policies,
            benchmark.subsets,
            Calibration.objects.filter(subset__benchmark=benchmark),
            benchmark.validationstudy_set,
            benchmark.variancestudy_set,
        )
    )
    return (*at, *latest)
