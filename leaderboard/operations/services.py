"""What an operator or a clock does."""

from datetime import datetime, timedelta

from django.db import transaction

from leaderboard.accounts.models import ApiToken, Scope
from leaderboard.accounts.services import create_token, get_or_create_user
from leaderboard.boards.models import Board
from leaderboard.boards.services import Draft, publish
from leaderboard.catalog.models import Benchmark, Role
from leaderboard.catalog.queries import benchmark_of
from leaderboard.catalog.services import grant
from leaderboard.errors import Refusal
from leaderboard.operations.phase import phase_of
from leaderboard.studies.calibrations import CoreError, settle_calibration
from leaderboard.studies.models import Calibration, TaskSubset
from leaderboard.studies.standings import standings
from leaderboard.studies.subsets import band_of, settle_subset
from leaderboard.studies.tables import Snapshot, snapshot, store_scores

ROLE_FOR = {Scope.READ: Role.VIEWER, Scope.SUBMIT: Role.SUBMITTER, Scope.OPERATE: Role.OPERATOR}


class NothingToRank(Refusal):
    """This benchmark has no outcomes yet, so there is nothing to rank."""


def recompute(*, benchmark: Benchmark, as_of: datetime) -> tuple[Board, bool]:
    """Bring the board up to the present data: subset, calibration, standings, board.

    Each step is stored under a key that names its data version, so a process may die between any two and
    the next one goes on, and two at once do the same work twice but cannot disagree. Returns the board
    with the present key and whether it is new.
    """
    current = snapshot(benchmark)
    if current is None:
        raise NothingToRank
    store_scores(current.stale)
    band = band_of(current)
    subset = settle_subset(snapshot=current, band=band, as_of=as_of)
    calibration, obstacle = _calibration(current, subset, as_of)
    phase, why = phase_of(benchmark=current.benchmark, band=band, subset=subset)
    draft = Draft(
        snapshot=current,
        subset=subset,
        calibration=calibration,
        standings=standings(snapshot=current, subset=subset, calibration=calibration),
        phase=phase,
        why=why + obstacle,
        n_complete=int(current.table.complete().sum()),
    )
    return publish(draft=draft, published_at=as_of)


def _calibration(
    current: Snapshot, subset: TaskSubset | None, as_of: datetime
) -> tuple[Calibration | None, str]:
    """Return the calibration, or None and the reason as a sentence; under full runs none is needed."""
    if subset is None:
        return None, ""
    try:
        return settle_calibration(snapshot=current, subset=subset, as_of=as_of), ""
    except CoreError as error:
        return None, f" Full scores are not calibrated: {error}."


@transaction.atomic
def issue_token(
    *, email: str, slug: str, scope: Scope, name: str, as_of: datetime, life: timedelta
) -> tuple[ApiToken, str]:
    """Make a token for one benchmark, with account and role where they are absent; return its secret too."""
    benchmark = benchmark_of(slug)
    user, _ = get_or_create_user(email=email)
    grant(user=user, benchmark=benchmark, role=ROLE_FOR[scope])
    # A scope includes the lesser ones.
    scopes = list(Scope.values)[: list(Scope).index(scope) + 1]
    return create_token(
        user=user, name=name, scopes=scopes, benchmarks=[slug], created_at=as_of, expires_at=as_of + life
    )
