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
from leaderboard.errors import Conflict, Refusal
from leaderboard.operations.people import issue_token as issue_token
from leaderboard.operations.phase import known_reruns
from leaderboard.operations.publishing import may_publish_at, pace, tell_of_board
from leaderboard.operations.rejudging import judge_held, judge_new
from leaderboard.operations.reruns import alert_of_closed_forms, close_answered_recalls, open_recalls
from leaderboard.operations.staging import decisions_of
from leaderboard.studies.board_inputs import BoardInputs, board_inputs
from leaderboard.studies.kinds import (
    ClosedFormsDiffer,
    get_or_compute_drift_check,
    get_or_compute_validation,
    get_or_compute_variance,
)
from leaderboard.studies.models import DriftCheck, TaskSubset, ValidationStudy, VarianceStudy
from leaderboard.studies.receipt import get_or_compute_reference
from leaderboard.studies.record_cache import RecentScores
from leaderboard.studies.records import Reader, Snapshot, store_scores
from leaderboard.studies.reselections import proposal_of
from leaderboard.studies.services import CheckClaim, CoreError, compute_standings, no_claim, one_blas_thread
from leaderboard.studies.staged_studies import get_or_compute_staged
from leaderboard.studies.subsets import get_or_compute_calibration, get_or_compute_subset
from leaderboard.submissions.models import Status, Submission

Progress = Callable[[int, int], None]
SCORES = RecentScores()  # of the benchmark that this process computed last
ALL_WITHDRAWN = (
    "All outcomes of this benchmark were taken back, so there is nothing to rank: the last board stands."
)


class CannotCompute(Refusal):
    message = "The present outcomes do not carry this computation."


class NothingToRank(Refusal):
    message = "This benchmark has no outcomes yet, so there is nothing to rank."


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
    *, benchmark: Benchmark, as_of: datetime, paced: bool = False, check_claim: CheckClaim = no_claim
) -> tuple[Board, bool]:
    """Bring the board up to the present data, rules and studies: subset, calibration, answer, board.

    Subset and calibration follow from the order of deliveries, and each step is stored under a key that
    names what it came from: a process may die between any two and the next one goes on, and two at once do
    the same work twice but cannot disagree. No board is published before whoever has to run the rest, as it
    stands on the podium, is asked for it and marked. Where an agent got another name meanwhile it begins
    anew, from names that are read again. Returns the board with the present key and whether it is new.
    `paced`, as the clock does it, returns the latest board while that is younger than the policy's
    `publish_every`. `check_claim` is called in the transaction that stores the board.
    """
    if paced and as_of < may_publish_at(benchmark):
        return latest_board(benchmark), False
    while True:
        now, known = _present(benchmark, as_of)
        if judge_new(benchmark=benchmark, as_of=as_of) or judge_held(benchmark=benchmark, as_of=as_of):
            continue
        if close_answered_recalls(now=now, as_of=as_of, check_claim=check_claim):
            continue
        if board := board_with_key(known):
            return board, False
        standings, every = compute_standings(now, known), pace(benchmark) if paced else timedelta(0)
        if open_recalls(now=now, known=known, standings=standings, as_of=as_of, check_claim=check_claim):
            continue
        with suppress(CalledOtherwise), transaction.atomic():
            check_claim()
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
    check_claim: CheckClaim = no_claim,
) -> tuple[ValidationStudy, bool]:
    """Validate the selection of tasks on the present data; returns the study and whether it is new."""
    now, _ = _present(benchmark, as_of)
    try:
        return get_or_compute_validation(
            snapshot=now,
            decisions=decisions_of(benchmark),
            as_of=as_of,
            n_jobs=n_jobs,
            progress=progress,
            check_claim=check_claim,
        )
    except ClosedFormsDiffer as refusal:
        alert_of_closed_forms(benchmark=benchmark, about=f"data {now.data_version}", why=refusal, as_of=as_of)
        raise


@_computing()
def measure_variance(
    *, benchmark: Benchmark, as_of: datetime, check_claim: CheckClaim = no_claim
) -> tuple[VarianceStudy, bool]:
    """Estimate variance components from the present outcomes; returns the study and whether it is new."""
    return get_or_compute_variance(
        snapshot=_present(benchmark, as_of)[0], as_of=as_of, check_claim=check_claim
    )


@_computing()
def check_drift(*, benchmark: Benchmark, as_of: datetime) -> tuple[DriftCheck, bool]:
    """Ask the monitors about the present data; returns the check and whether it is new."""
    now, known = _present(benchmark, as_of)
    return get_or_compute_drift_check(
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
        raise Conflict("No subset is fixed yet, so there is nothing to reselect.", code="no_subset_in_use")
    if now.n_complete < now.policy.subset_from:
        raise Conflict(
            f"{now.n_complete} agents are complete; a subset that stays is chosen from "
            f"{now.policy.subset_from} on (policy subset_from). Of an account that is not trusted two count.",
            code="too_few_complete",
        )
    return (
        known.subset,
        now.data_version,
        proposal_of(now, known, known.subset, decisions_of(benchmark), progress),
    )


def _is_taken_back(benchmark: Benchmark) -> bool:
    counted = Submission.objects.filter(agent__benchmark=benchmark, status=Status.ACCEPTED)
    return benchmark.boards.exists() and not counted.exists()


def _present(benchmark: Benchmark, as_of: datetime) -> tuple[Snapshot, BoardInputs]:
    """Settle what follows from the deliveries, and read what there is now."""
    reader = Reader(benchmark, SCORES)
    subset = get_or_compute_subset(reader)
    now = reader.now(subset)
    if now is None:
        if _is_taken_back(benchmark):
            raise NothingToRank(ALL_WITHDRAWN, code="all_withdrawn")
        raise NothingToRank
    store_scores(now.stale, SCORES)
    get_or_compute_reference(now)
    calibration = get_or_compute_calibration(reader, subset, tasks=now.task_ids) if subset else None
    now = replace(now, stale=())  # they are stored, and hold each agent's rows
    get_or_compute_staged(snapshot=now, decisions=decisions_of(benchmark), subset=subset, as_of=as_of)
    return now, board_inputs(now, subset, calibration, known_reruns(reader.benchmark, subset))
