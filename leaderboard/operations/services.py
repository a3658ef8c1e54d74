"""What is computed for a benchmark as it is now: its board, studies, and what could replace its subset."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from leaderboard.boards.models import Board
from leaderboard.boards.queries import changes_since, latest_board, promises_of, without_costs
from leaderboard.boards.services import CalledOtherwise, board_with_key, publish
from leaderboard.boards.signing import identity, signed
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.queries import policy_in_force
from leaderboard.errors import Conflict, Refusal
from leaderboard.operations.asking import decisions_of
from leaderboard.operations.events import emit, wished_by_owners
from leaderboard.operations.models import (
    Assignment,
    AssignmentStatus,
    EventKind,
    RerunAgent,
    RerunKind,
    RerunStatus,
)
from leaderboard.operations.people import issue_token as issue_token
from leaderboard.operations.queries import may_publish_at, open_request, pace
from leaderboard.operations.reruns import alert_of_closed_forms, close_answered_recalls, open_recalls
from leaderboard.operations.reviewing import judge_held, judge_new
from leaderboard.operations.runs import Progress
from leaderboard.studies.answers import Standings, words
from leaderboard.studies.board_inputs import BoardInputs, board_inputs
from leaderboard.studies.kinds import (
    ClosedFormsDiffer,
    get_or_compute_drift_check,
    get_or_compute_validation,
    get_or_compute_variance,
)
from leaderboard.studies.models import DriftCheck, TaskSubset, ValidationStudy, VarianceStudy
from leaderboard.studies.queries import Reruns
from leaderboard.studies.receipt import get_or_compute_reference
from leaderboard.studies.record_cache import RecentScores
from leaderboard.studies.records import Reader, Snapshot, store_scores
from leaderboard.studies.reselections import proposal_of
from leaderboard.studies.services import CheckClaim, CoreError, compute_standings, no_claim, one_blas_thread
from leaderboard.studies.staged_steps import DRAWN
from leaderboard.studies.staged_studies import get_or_compute_staged
from leaderboard.studies.subsets import get_or_compute_calibration, get_or_compute_subset
from leaderboard.submissions.models import Status, Submission

MAX_LISTED = 100  # agents of one event; their number is always given
SCORES = RecentScores()  # of the benchmark that this process computed last
ALL_WITHDRAWN = (
    "All outcomes of this benchmark were taken back, so there is nothing to rank: the last board stands."
)


class NothingToRank(Refusal):
    message = "This benchmark has no results yet. Load some first."


@contextmanager
def _computing() -> Iterator[None]:
    """One BLAS thread: more of them wait for each other, ten times as long where cores are busy."""
    try:
        with one_blas_thread():
            yield
    except CoreError as refusal:
        raise Refusal(
            f"The present outcomes do not carry this computation: {refusal}.", code="cannot_compute"
        ) from refusal


@_computing()
def recompute(
    *, benchmark: Benchmark, as_of: datetime, paced: bool = False, check_claim: CheckClaim = no_claim
) -> tuple[Board, bool]:
    """Bring the board up to the present data, rules and studies: subset, calibration, answer, board.

    Each step is stored under a key that names what it came from: a process may die between any two and the
    next one goes on, and two at once do the same work twice but cannot disagree. No board is published before
    whoever stands on the podium by an estimate is asked for the rest and marked. Where an agent got another
    name meanwhile it begins anew. Returns the board with the present key and whether it is new. `paced`, as
    the clock does it, returns the latest board while that is younger than the policy's `publish_every`.
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
    return get_or_compute_variance(
        snapshot=_present(benchmark, as_of)[0], as_of=as_of, check_claim=check_claim
    )


@_computing()
def check_drift(*, benchmark: Benchmark, as_of: datetime) -> tuple[DriftCheck, bool]:
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
    *, benchmark: Benchmark, as_of: datetime, progress: Progress | None
) -> tuple[TaskSubset, int, dict[str, Any]]:
    """Compute what could replace the subset in use; returns that, the data version and the proposals."""
    now, known = _present(benchmark, as_of)
    if known.subset is None:
        raise Conflict(
            "The ranking tasks are not fixed yet, so there is nothing to change.", code="no_subset_in_use"
        )
    if now.n_complete < now.policy.subset_from:
        raise Conflict(
            f"{now.n_complete} agents are complete; a subset that stays is chosen from "
            f"{now.policy.subset_from} on (policy subset_from). Of an account that is not trusted two count.",
            code="too_few_complete",
        )
    proposal = proposal_of(now, known, known.subset, decisions_of(benchmark), progress)
    return known.subset, now.data_version, proposal


def _present(benchmark: Benchmark, as_of: datetime) -> tuple[Snapshot, BoardInputs]:
    """Settle what follows from the deliveries, and read what there is now."""
    reader = Reader(benchmark, SCORES)
    subset = get_or_compute_subset(reader)
    now = reader.now(subset)
    if now is None:
        counted = Submission.objects.filter(agent__benchmark=benchmark, status=Status.ACCEPTED)
        if benchmark.boards.exists() and not counted.exists():
            raise NothingToRank(ALL_WITHDRAWN, code="all_withdrawn")
        raise NothingToRank
    store_scores(now.stale, SCORES)
    get_or_compute_reference(now)
    calibration = get_or_compute_calibration(reader, subset, tasks=now.task_ids) if subset else None
    now = replace(now, stale=())  # they are stored, and hold each agent's rows
    get_or_compute_staged(snapshot=now, decisions=decisions_of(benchmark), subset=subset, as_of=as_of)
    return now, board_inputs(now, subset, calibration, known_reruns(reader.benchmark, subset))


def known_reruns(benchmark: Benchmark, subset: TaskSubset | None) -> Reruns:
    """What a board has to know of rerun requests on the subset in use."""
    recalls = {"request__benchmark": benchmark, "request__kind": RerunKind.RECALL, "arrived_at": None}
    awaited = RerunAgent.objects.filter(**recalls).order_by("agent_id")
    statuses = list(awaited.values_list("agent_id", "request__status"))
    recalled = tuple(pk for pk, status in statuses if status == RerunStatus.OPEN)
    late = [pk for pk, status in statuses if status == RerunStatus.EXPIRED]
    # Who was drawn to run the rest, and ran it, has a measured score, unless it took the rest back
    drawn = Assignment.objects.filter(agent__benchmark=benchmark, decisions__contains=[{"stage": DRAWN}])
    in_vain = drawn.exclude(status=AssignmentStatus.OPEN).values_list("agent_id", flat=True)
    overdue = tuple(sorted({*late, *in_vain}))
    if subset is None:
        return Reruns(recalled=recalled, overdue=overdue)
    sampled = RerunAgent.objects.filter(request__subset=subset, sampled=True).order_by("request_id")
    request = open_request(benchmark, RerunKind.DRIFT)
    until = request and f"{request.deadline:%Y-%m-%d}, of new agents too: {request.reason}"
    return Reruns(
        revalidating=f"full runs are asked for until {until}" if request else "",
        not_revalidated="" if request else _not_revalidated(benchmark, subset),
        sampled=dict(sampled.values_list("agent_id", "inclusion")),
        recalled=recalled,
        overdue=overdue,
    )


def _not_revalidated(benchmark: Benchmark, subset: TaskSubset) -> str:
    expired = {"closed_at": None, "request__status": RerunStatus.EXPIRED}
    alerts = benchmark.alerts.filter(subset=subset, **expired).order_by("opened_at", "id")
    if not (late := list(alerts.select_related("request"))):
        return ""
    monitors = ", ".join(alert.monitor for alert in late)
    deadline = max(alert.request.deadline for alert in late if alert.request)
    return (
        f"the subset was not revalidated since {late[0].opened_at:%Y-%m-%d}: a monitor alarmed ({monitors}), "
        f"and not all full runs that were asked for came by {deadline:%Y-%m-%d}"
    )


def tell_of_board(*, board: Board, standings: Standings, as_of: datetime) -> None:
    """Tell of a new board, in the transaction that publishes it, and of ranks beyond those that the board
    before let agents hold. Costs are told as visitors see them; a place is news to the owners of an agent
    that moved, and of each on the first board.
    """
    benchmark = board.benchmark
    older = benchmark.boards.filter(number__lt=board.number).order_by("-number").first()
    changes = changes_since(older, board) if older else None
    common = {"number": board.number, "path": f"/b/{benchmark.slug}/v{board.number}"}
    since, about = {"since": older.number if older else None}, str(board.number)
    if changes is None:
        moved, counts = {line.agent for line in standings.agents}, None
    else:
        moved = {one.agent for one in changes.moved}
        moved = moved.union(changes.entered, changes.now_ranked, changes.now_unranked)
        lists = ("entered", "left", "withdrawn", "moved", "now_ranked", "now_unranked")
        counts = {name: len(getattr(changes, name)) for name in lists} | {"text": words.changes_text(changes)}
    payload = common | _of_board(board, standings) | since | {"changes": counts}
    emails = wished_by_owners(benchmark, moved)
    emit(benchmark, EventKind.BOARD_PUBLISHED, about, payload, as_of, emails)
    if changes and changes.moved:
        sentences = [words.moved_text(one) for one in changes.moved]
        plain = changes.as_plain()["moved"][:MAX_LISTED]
        payload = {
            "target": changes.target,
            "n_agents": len(changes.moved),
            "agents": [one | {"text": text} for one, text in zip(plain, sentences, strict=False)],
        }
        emit(benchmark, EventKind.RANK_CHANGED, about, common | since | payload, as_of)


def _of_board(board: Board, standings: Standings) -> dict[str, Any]:
    if not policy_in_force(board.benchmark).show_costs:
        standings = without_costs(standings)
    target = standings.targets[standings.target]
    payload = identity(board) | signed(board)
    return {name: value for name, value in payload.items() if name != "benchmark"} | {
        "phase": standings.phase,
        "target": standings.target,
        "n_tasks": target.n_tasks,
        "n_listed": len(standings.agents),
        "n_ranked": target.n_ranked,
        "n_may_be_first": len(target.may_be_first),
        "may_be_first": list(target.may_be_first[:MAX_LISTED]),
        "headline": words.headline(standings),
    }
