"""The answer for a benchmark, and keeping a study under the key that names what it was computed from."""

from datetime import datetime
from typing import Any, TypeVar

from analytics.errors import CoreError
from analytics.record import offer, shared_tasks
from leaderboard.studies.given import Decided
from leaderboard.studies.models import ESTIMATOR_VERSION, Study
from leaderboard.studies.records import Snapshot
from leaderboard.studies.rules import rules_sha256
from selection.standings import answer
from selection.standings.lines import Standings

__all__ = ["CoreError", "answered", "keep", "kept", "offer", "shared_tasks"]

AnyStudy = TypeVar("AnyStudy", bound=Study)


def answered(now: Snapshot, known: Decided) -> Standings:
    """Who stands where: the same call as for a file."""
    return answer(now.record, now.rules, known.given())


def kept(model: type[AnyStudy], *, snapshot: Snapshot, **more: Any) -> AnyStudy | None:
    """Return the study of the present data, if there is one."""
    return model._default_manager.filter(**_key(snapshot), **more).first()


def keep(
    model: type[AnyStudy], *, snapshot: Snapshot, result: dict[str, Any], as_of: datetime, **more: Any
) -> AnyStudy:
    """Store a study, or return the one that another process stored meanwhile."""
    described = {"policy": snapshot.policy, "result": result, "created_at": as_of}
    return model._default_manager.get_or_create(**_key(snapshot), **more, defaults=described)[0]


def _key(snapshot: Snapshot) -> dict[str, Any]:
    return {
        "benchmark": snapshot.benchmark,
        "rules": rules_sha256(snapshot.policy),
        "data_version": snapshot.data_version,
        "estimator_version": ESTIMATOR_VERSION,
    }
