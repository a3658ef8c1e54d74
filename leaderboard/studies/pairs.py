"""A few agents compared on the present data: read, one call, plain values. Nothing is fitted or stored."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from analytics.errors import CoreError
from leaderboard.catalog.models import Benchmark
from leaderboard.errors import Refusal
from leaderboard.studies.given import decided
from leaderboard.studies.queries import active_subset
from leaderboard.studies.records import Reader
from selection.compared import values
from selection.standings.pairs import Compared, pairs


class NothingToCompare(Refusal):
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
    reader = Reader(benchmark)
    subset = active_subset(benchmark)
    now = reader.now(subset)
    if now is None:
        raise NothingToCompare("This benchmark has no outcomes yet.")
    calibration = subset.calibrations.order_by("-data_version").first() if subset else None
    given = decided(now, subset, calibration).given()
    try:
        found = pairs(now.record, now.rules, given, agents=agents, target=target)
    except CoreError as refusal:
        raise NothingToCompare(f"These agents cannot be compared: {refusal}.") from refusal
    return Found(now.data_version, found, dict(zip(now.record.table.tasks, now.task_ids, strict=True)))
