"""A few agents compared on the present data: read, one call, plain values. Nothing is fitted or stored."""

from collections.abc import Collection
from dataclasses import dataclass
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


@dataclass(frozen=True)
class PairComparison:
    """Agents compared on the data of a version; `task_ids` are by name."""

    data_version: int
    compared: PairwiseComparison
    task_ids: dict[str, int]


def comparison(*, benchmark: Benchmark, agents: Collection[str], target: str | None) -> dict[str, Any]:
    """All pairs of these agents on the subset and calibration in use, and the data version read."""
    pairs = compare_agents(benchmark=benchmark, agents=agents, target=target)
    return {"data_version": pairs.data_version, **pairs_values(pairs.compared)}


def compare_agents(*, benchmark: Benchmark, agents: Collection[str], target: str | None) -> PairComparison:
    """The same as the core's own objects."""
    now, prior, views = _read(benchmark)
    try:
        wanted = positions(now.record, agents)
        if target not in views:
            views[target] = view_of(now.record, now.rules, prior, target=target)
        pairs = pairs_of(views[target], wanted)
    except CoreError as refusal:
        raise Conflict(f"These agents cannot be compared: {refusal}.", code="nothing_to_compare") from refusal
    return PairComparison(
        now.data_version, pairs, dict(zip(now.record.table.tasks, now.task_ids, strict=True))
    )


def _read(benchmark: Benchmark) -> Read:
    """Read the record with what was decided, or take what this process read last where nothing changed."""
    key = _key(benchmark)
    if cached := LAST.get(key):
        return cached
    reader = Reader(benchmark)
    subset = active_subset(benchmark)
    now = reader.now(subset)
    if now is None:
        raise Conflict("This benchmark has no outcomes yet.", code="nothing_to_compare")
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
