"""The answer for a benchmark, and keeping a study under the key that names what it was computed from."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db import transaction

from analytics.errors import CoreError as CoreError
from analytics.programs import one_blas_thread as one_blas_thread
from leaderboard.catalog.models import Benchmark, Policy
from leaderboard.catalog.queries import policy_in_force
from leaderboard.studies.board_inputs import BoardInputs
from leaderboard.studies.models import ESTIMATOR_VERSION, Study
from leaderboard.studies.queries import AnyStudy
from leaderboard.studies.records import Snapshot
from leaderboard.studies.rules import rules_sha256
from selection.schema.board import Standings
from selection.standings import answer

CheckClaim = Callable[[], None]


def compute_standings(now: Snapshot, known: BoardInputs) -> Standings:
    return answer(now.record, now.rules, known.prior_decisions())


def is_studied(model: type[Study], benchmark: Benchmark) -> bool:
    """Whether the data and rules of now have a study, without reading any outcome."""
    return model._default_manager.filter(**_key(benchmark, policy_in_force(benchmark))).exists()


def no_claim() -> None:
    """Check nothing: what is computed by hand belongs to no claim."""


def get_or_compute(
    model: type[AnyStudy],
    compute: Callable[[], dict[str, Any]],
    *,
    snapshot: Snapshot,
    as_of: datetime,
    check_claim: CheckClaim = no_claim,
    **more: Any,
) -> tuple[AnyStudy, bool]:
    key = _key(snapshot.benchmark, snapshot.policy) | more
    if study := model._default_manager.filter(**key).first():
        return study, False
    result = compute()
    return store_study(
        model, snapshot=snapshot, result=result, as_of=as_of, check_claim=check_claim, **more
    ), True


@transaction.atomic
def store_study(
    model: type[AnyStudy],
    *,
    snapshot: Snapshot,
    result: dict[str, Any],
    as_of: datetime,
    check_claim: CheckClaim = no_claim,
    **more: Any,
) -> AnyStudy:
    """Store a study, or return the one that another process stored meanwhile.

    `check_claim` is called in the same transaction, and refuses where this worker may store no more.
    """
    described = {"policy": snapshot.policy, "result": result, "created_at": as_of}
    check_claim()
    key = _key(snapshot.benchmark, snapshot.policy)
    return model._default_manager.get_or_create(**key, **more, defaults=described)[0]


def _key(benchmark: Benchmark, policy: Policy) -> dict[str, Any]:
    return {
        "benchmark": benchmark,
        "rules": rules_sha256(policy),
        "data_version": benchmark.data_version,
        "estimator_version": ESTIMATOR_VERSION,
    }
