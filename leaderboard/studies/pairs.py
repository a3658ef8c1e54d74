"""A few agents compared on the present data: read, one call, plain values. Nothing is fitted or stored."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from analytics.errors import CoreError
from leaderboard.catalog.models import Benchmark
from leaderboard.errors import Conflict
from leaderboard.studies.given import decided
from leaderboard.studies.models import Calibration
from leaderboard.studies.queries import active_subset
from leaderboard.studies.records import Reader, Snapshot
from selection.compared import values
from selection.given import Given
from selection.standings.pairs import Compared, View, pairs_of, positions, view_of

MOST_CELLS = 500_000  # of a record that is kept


@dataclass(frozen=True)
class _Read:
    """What is read of a benchmark, and how targets look at it, as far as they were asked for."""

    now: Snapshot
    given: Given
    views: dict[str | None, View] = field(default_factory=dict)


LAST: dict[tuple[Any, ...], _Read] = {}  # what this process read last, by its key


class NothingToCompare(Conflict):
    """These agents cannot be compared."""


@dataclass(frozen=True)
class Found:
    """Agents compared on the data of a version; `task_ids` are by name."""

    data_version: int
    compared: Compared
    task_ids: dict[str, int]


def compared(*, benchmark: Benchmark, agents: Collection[str], target: str | None) -> dict[str, Any]:
    """All pairs of these agents on the subset and calibration in use, and the data version read."""
    found = found_of(benchmark=benchmark, agents=agents, target=target)
    return {"data_version": found.data_version, **values(found.compared)}


def found_of(*, benchmark: Benchmark, agents: Collection[str], target: str | None) -> Found:
    """The same as the core's own objects."""
    read = _read(benchmark)
    now = read.now
    try:
        wanted = positions(now.record, agents)
        if target not in read.views:
            read.views[target] = view_of(now.record, now.rules, read.given, target=target)
        found = pairs_of(read.views[target], wanted)
    except CoreError as refusal:
        raise NothingToCompare(f"These agents cannot be compared: {refusal}.") from refusal
    return Found(now.data_version, found, dict(zip(now.record.table.tasks, now.task_ids, strict=True)))


def _read(benchmark: Benchmark) -> _Read:
    """Read the record with what was decided, or take what this process read last where nothing changed."""
    key = _key(benchmark)
    if kept := LAST.get(key):
        return kept
    reader = Reader(benchmark)
    subset = active_subset(benchmark)
    now = reader.now(subset)
    if now is None:
        raise NothingToCompare("This benchmark has no outcomes yet.")
    calibration = subset.calibrations.order_by("-data_version").first() if subset else None
    read = _Read(now, decided(now, subset, calibration).given())
    LAST.clear()
    if now.record.table.means.size <= MOST_CELLS and key == _key(benchmark):
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
