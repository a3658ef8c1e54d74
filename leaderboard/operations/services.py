"""What an operator or a clock does."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from leaderboard.boards.models import Board
from leaderboard.boards.queries import latest_board, promises_of
from leaderboard.boards.services import CalledOtherwise, board_with_key, publish
from leaderboard.catalog.models import Benchmark
from leaderboard.errors import Refusal
from leaderboard.operations.people import issue_token as issue_token
from leaderboard.operations.phase import known_reruns
from leaderboard.operations.publishing import may_publish_at, pace, tell_of_board
from leaderboard.operations.rejudging import judge_held, judge_new
from leaderboard.operations.reruns import alert_of_closed_forms, open_recalls, settle_recalls
from leaderboard.operations.reselections import NoSubsetInUse, TooFewComplete
from leaderboard.operations.staging import decisions_of
from leaderboard.studies.calibrations import settle_calibration
from leaderboard.studies.drift_checks import settle_drift_check
from leaderboard.studies.given import Decided, decided
from leaderboard.studies.models import DriftCheck, TaskSubset, ValidationStudy, VarianceStudy
from leaderboard.studies.parts import KeptScores
from leaderboard.studies.plausibility import settle_reference
from leaderboard.studies.records import Reader, Snapshot, store_scores
from leaderboard.studies.reselections import proposal_of
from leaderboard.studies.services import CoreError, Hold, answered, free, one_blas_thread
from leaderboard.studies.staged_studies import settle_staged
from leaderboard.studies.subsets import settle_subset
from leaderboard.studies.validations import ClosedFormsDiffer, settle_validation
from leaderboard.studies.variances import settle_variance
from leaderboard.submissions.models import Status, Submission

Progress = Callable[[int, int], None]
SCORES = KeptScores()  # of the benchmark that this process computed last


class CannotCompute(Refusal):
    """The present outcomes do not carry this computation."""


class NothingToRank(Refusal):
    """This benchmark has no outcomes yet, so there is nothing to rank."""


class AllWithdrawn(NothingToRank):
    """All outcomes of this benchmark were taken back, so there is nothing to rank: the last board stands."""


@contextmanager
def _computing() -> Iterator[None]:
    """One BLAS thread: more of them wait for each other, ten times as long where cores are busy."""
    try:
        with one_blas_thread():
            yield
    except CoreError as refusal:
        raise CannotCompute(f"The present outcomes do not carry this computation: {refusal}.") from refusal


@_computing()
def recompute(
    *, benchmark: Benchmark, as_of: datetime, paced: bool = False, hold: Hold = free
) -> tuple[Board, bool]:
    """Bring the board up to the present data, rules and studies: subset, calibration, answer, board.

    Subset and calibration follow from the order of deliveries, and each step is stored under a key that
    names what it came from: a process may die between any two and the next one goes on, and two at once do
    the same work twice but cannot disagree. No board is published before whoever has to run the rest, as it
    stands on the podium, is asked for it and marked. Where an agent got another name meanwhile it begins
    anew, from names that are read again. Returns the board with the present key and whether it is new.
    `paced`, as the clock does it, returns the latest board while that is younger than the policy's
    `publish_every`. `hold` is called in the transaction that stores the board.
    """
    if paced and as_of < may_publish_at(benchmark):
        return latest_board(benchmark), False
    while True:
        now, known = _present(benchmark, as_of)
        if judge_new(benchmark=benchmark, as_of=as_of) or judge_held(benchmark=benchmark, as_of=as_of):
            continue
        if settle_recalls(now=now, as_of=as_of, hold=hold):
            continue
        if board := board_with_key(known):
            return board, False
        standings, every = answered(now, known), pace(benchmark) if paced else timedelta(0)
        if open_recalls(now=now, known=known, standings=standings, as_of=as_of, hold=hold):
            continue
        with suppress(CalledOtherwise), transaction.atomic():
            hold()
            board, is_new = publish(decided=known, standings=standings, published_at=as_of, every=every)
            if is_new:
                tell_of_board(board=board, standings=standings, as_of=as_of)
            return board, is_new


@_computing()
def validate(
    *,
    benchmark: Benchmark,
    as_of: datetime,
    n_jobs: int = 1,
    progress: Progress | None = None,
    hold: Hold = free,
) -> tuple[ValidationStudy, bool]:
    """Validate the selection of tasks on the present data; returns the study and whether it is new."""
    now, _ = _present(benchmark, as_of)
    try:
        return settle_validation(
            snapshot=now,
            decisions=decisions_of(benchmark),
            as_of=as_of,
            n_jobs=n_jobs,
            progress=progress,
            hold=hold,
        )
    except ClosedFormsDiffer as refusal:
        alert_of_closed_forms(benchmark=benchmark, about=f"data {now.data_version}", why=refusal, as_of=as_of)
        raise


@_computing()
def measure_variance(
    *, benchmark: Benchmark, as_of: datetime, hold: Hold = free
) -> tuple[VarianceStudy, bool]:
    """Estimate variance components from the present outcomes; returns the study and whether it is new."""
    return settle_variance(snapshot=_present(benchmark, as_of)[0], as_of=as_of, hold=hold)


@_computing()
def check_drift(*, benchmark: Benchmark, as_of: datetime) -> tuple[DriftCheck, bool]:
    """Ask the monitors about the present data; returns the check and whether it is new."""
    now, known = _present(benchmark, as_of)
    return settle_drift_check(
        snapshot=now,
        promises=promises_of(benchmark),
        sampled=known.sampled,
        decisions=decisions_of(benchmark),
        as_of=as_of,
    )


@_computing()
def compute_reselection(
    *, benchmark: Benchmark, as_of: datetime, progress: Progress | None = None
) -> tuple[TaskSubset, int, dict[str, Any]]:
    """Compute what could replace the subset in use; returns that, the data version and the proposals."""
    now, known = _present(benchmark, as_of)
    if known.subset is None:
        raise NoSubsetInUse
    if now.n_complete < now.policy.subset_from:
        raise TooFewComplete(
            f"{now.n_complete} agents are complete; a subset that stays is chosen from "
            f"{now.policy.subset_from} on (policy subset_from). Of an account that is not trusted two count."
        )
    return (
        known.subset,
        now.data_version,
        proposal_of(now, known, known.subset, decisions_of(benchmark), progress),
    )


def _is_taken_back(benchmark: Benchmark) -> bool:
    counted = Submission.objects.filter(agent__benchmark=benchmark, status=Status.ACCEPTED)
    return benchmark.boards.exists() and not counted.exists()


def _present(benchmark: Benchmark, as_of: datetime) -> tuple[Snapshot, Decided]:
    """Settle what follows from the deliveries, and read what there is now."""
    reader = Reader(benchmark, SCORES)
    subset = settle_subset(reader)
    now = reader.now(subset)
    if now is None:
        raise AllWithdrawn if _is_taken_back(benchmark) else NothingToRank
    store_scores(now.stale, SCORES)
    settle_reference(now)
    calibration = settle_calibration(reader, subset, tasks=now.task_ids) if subset else None
    now = replace(now, stale=())  # they are stored, and hold each agent's rows
    settle_staged(snapshot=now, decisions=decisions_of(benchmark), subset=subset, as_of=as_of)
    return now, decided(now, subset, calibration, known_reruns(reader.benchmark, subset))
