"""What an operator or a clock does."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db import transaction
from threadpoolctl import threadpool_limits

from leaderboard.accounts.models import ApiToken, Scope
from leaderboard.accounts.services import create_token, get_or_create_user
from leaderboard.boards.models import Board
from leaderboard.boards.queries import promises_of
from leaderboard.boards.services import Draft, publish
from leaderboard.catalog.models import Benchmark, Role
from leaderboard.catalog.queries import benchmark_of
from leaderboard.catalog.services import grant
from leaderboard.errors import Refusal
from leaderboard.operations.phase import phase_of
from leaderboard.studies.calibrations import CoreError, columns_of, settle_calibration
from leaderboard.studies.drift_checks import Promise, settle_drift_check
from leaderboard.studies.models import Calibration, DriftCheck, TaskSubset, ValidationStudy, VarianceStudy
from leaderboard.studies.queries import latest_study
from leaderboard.studies.savings import savings
from leaderboard.studies.standings import standings
from leaderboard.studies.subsets import Band, NoChoice, band_of, settle_subset
from leaderboard.studies.tables import Snapshot, snapshot, store_scores
from leaderboard.studies.validations import settle_validation
from leaderboard.studies.variances import facets_of, settle_variance

Progress = Callable[[int, int], None]

ROLE_FOR = {Scope.READ: Role.VIEWER, Scope.SUBMIT: Role.SUBMITTER, Scope.OPERATE: Role.OPERATOR}


class CannotCompute(Refusal):
    """The present outcomes do not carry this computation."""


class NothingToRank(Refusal):
    """This benchmark has no outcomes yet, so there is nothing to rank."""


@contextmanager
def _computing() -> Iterator[None]:
    """One BLAS thread: more of them wait for each other, ten times as long where cores are busy."""
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    except CoreError as refusal:
        raise CannotCompute(f"The present outcomes do not carry this computation: {refusal}.") from refusal


@_computing()
def recompute(*, benchmark: Benchmark, as_of: datetime) -> tuple[Board, bool]:
    """Bring the board up to the present data: subset, calibration, standings, board.

    Each step is stored under a key that names its data version, so a process may die between any two and
    the next one goes on, and two at once do the same work twice but cannot disagree. Returns the board
    with the present key and whether it is new.
    """
    current = _present(benchmark)
    band = band_of(current)
    subset, no_choice = _subset(current, band, as_of)
    calibration, obstacle = _calibration(current, subset, as_of)
    phase, why = phase_of(benchmark=current.benchmark, band=band, subset=subset, obstacle=no_choice)
    validation = latest_study(ValidationStudy, current.benchmark)
    variance = latest_study(VarianceStudy, current.benchmark)
    draft = Draft(
        snapshot=current,
        subset=subset,
        calibration=calibration,
        validation=validation,
        variance=variance,
        ranking=standings(
            snapshot=current, subset=subset, calibration=calibration, facets=facets_of(variance)
        ),
        savings=savings(snapshot=current, columns=columns_of(current, subset)) if subset else {},
        phase=phase,
        why=why + obstacle,
        n_complete=int(current.table.complete().sum()),
    )
    return publish(draft=draft, published_at=as_of)


@_computing()
def validate(
    *, benchmark: Benchmark, as_of: datetime, n_jobs: int = 1, progress: Progress | None = None
) -> tuple[ValidationStudy, bool]:
    """Validate the selection of tasks on the present data; returns the study and whether it is new."""
    return settle_validation(snapshot=_present(benchmark), as_of=as_of, n_jobs=n_jobs, progress=progress)


@_computing()
def measure_variance(*, benchmark: Benchmark, as_of: datetime) -> tuple[VarianceStudy, bool]:
    """Estimate variance components from the present outcomes; returns the study and whether it is new."""
    return settle_variance(snapshot=_present(benchmark), as_of=as_of)


@_computing()
def check_drift(*, benchmark: Benchmark, as_of: datetime) -> tuple[DriftCheck, bool]:
    """Ask the monitors about the present data; returns the check and whether it is new."""
    promises = {agent: Promise(**promised) for agent, promised in promises_of(benchmark).items()}
    return settle_drift_check(snapshot=_present(benchmark), promises=promises, as_of=as_of)


def _present(benchmark: Benchmark) -> Snapshot:
    current = snapshot(benchmark)
    if current is None:
        raise NothingToRank
    store_scores(current.stale)
    return current


def _subset(current: Snapshot, band: Band, as_of: datetime) -> tuple[TaskSubset | None, str]:
    """Return the subset, or None and why the strategy chooses none: then every agent runs all tasks."""
    try:
        return settle_subset(snapshot=current, band=band, as_of=as_of), ""
    except NoChoice as refusal:
        return None, str(refusal)


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
