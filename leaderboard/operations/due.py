"""What is due, as queries over what there is: no message can be lost, and a process may die at any line.

What the core is asked for is imported where it is used, so that web workers may name jobs.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet

from leaderboard.boards.models import Board
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.queries import policy_in_force
from leaderboard.operations.models import Notification, NotificationStatus, RerunKind, RerunStatus
from leaderboard.operations.publishing import may_publish_at
from leaderboard.operations.runs import Due
from leaderboard.studies.models import Study, TaskSubset, ValidationStudy, VarianceStudy
from leaderboard.studies.queries import active_subset, latest_study
from leaderboard.submissions.models import Status, Submission

WEEK = timedelta(weeks=1)
N_NEW_COMPLETE = 5  # agents after which a validation does not wait for the night
QUIET, MAX_WAIT = timedelta(minutes=1), timedelta(hours=1)  # it waits for a burst to end, but no longer


def reconcile(as_of: datetime) -> Iterator[Due]:
    """Benchmarks without a board of their present key, or with a recall whose deadline has passed, unless the
    last board is younger than `publish_every`.
    """
    from leaderboard.boards.services import board_with_key
    from leaderboard.operations.phase import known_reruns
    from leaderboard.studies.board_inputs import standing

    for benchmark in _with_outcomes():
        known = standing(benchmark, known_reruns(benchmark, active_subset(benchmark)))
        recalls = benchmark.rerun_requests.filter(kind=RerunKind.RECALL, status=RerunStatus.OPEN)
        is_over = benchmark.frozen_at is None and recalls.filter(deadline__lte=as_of).exists()
        if (is_over or board_with_key(known) is None) and may_publish_at(benchmark) <= as_of:
            key = {
                "data": known.data_version,
                "rules": known.rules_sha256[:12],
                "subset": known.subset and known.subset.number,
                "validation": known.validation and known.validation.pk,
                "variance": known.variance and known.variance.pk,
            }
            yield Due(benchmark, ", ".join(f"{name} {value or 'none'}" for name, value in key.items()))


def check(as_of: datetime) -> Iterator[Due]:
    """Submissions that were too long to be checked as they came."""
    waiting = Submission.objects.filter(status=Status.CHECKING, agent__benchmark__replay__isnull=True)
    for one in waiting.select_related("agent__benchmark").order_by("id"):
        yield Due(one.agent.benchmark, str(one.uuid))


def embargo(as_of: datetime) -> Iterator[Due]:
    """Submissions whose embargo has ended, where no operator has to look at them."""
    from leaderboard.operations.embargoes import ends_by_itself, over

    for pk in over(as_of).order_by("agent__benchmark").values_list("agent__benchmark", flat=True).distinct():
        benchmark = Benchmark.objects.get(pk=pk)
        if ends_by_itself(benchmark):
            yield Due(benchmark)


def drift(as_of: datetime) -> Iterator[Due]:
    """After each board, and in each hour."""
    for benchmark in _with_outcomes():
        board = _latest(benchmark)
        if board is not None and active_subset(benchmark):
            yield Due(benchmark, f"board {board.number}, {as_of.astimezone(UTC):%Y-%m-%d %H}h", once=True)


def validate(as_of: datetime) -> Iterator[Due]:
    """In the night after the data changed, and after five more agents are complete and no more come."""
    for benchmark in _with_outcomes():
        study, board = latest_study(ValidationStudy, benchmark), _latest(benchmark)
        at_once = study is not None and board is not None and _has_grown(study, board, as_of)
        if _is_outdated(ValidationStudy, benchmark, as_of, at_once=at_once):
            yield _of_data(benchmark)


def variance(as_of: datetime) -> Iterator[Due]:
    """In the night after the data changed."""
    for benchmark in _with_outcomes():
        if _is_outdated(VarianceStudy, benchmark, as_of):
            yield _of_data(benchmark)


def validation_runs(as_of: datetime) -> Iterator[Due]:
    """Once in each week, from a week after the first subset was fixed."""
    year, week, _ = as_of.astimezone(UTC).isocalendar()
    old = TaskSubset.objects.filter(benchmark=OuterRef("pk"), fixed_at__lte=as_of - WEEK)
    followed = Benchmark.objects.filter(Exists(old), full_runs_only_at=None, replay__isnull=True)
    for benchmark in followed.order_by("pk"):
        yield Due(benchmark, f"week {year}-{week:02d}", once=True)


def deliver(as_of: datetime) -> Iterator[Due]:
    if Notification.objects.filter(status=NotificationStatus.WAITING, next_at__lte=as_of).exists():
        yield Due()


def housekeeping(as_of: datetime) -> Iterator[Due]:
    yield Due(about=f"night of {last_night(as_of):%Y-%m-%d}", once=True)


def when_asked(as_of: datetime) -> Iterator[Due]:
    """Never by the clock: an alert or an operator queues it."""
    yield from ()


def last_night(as_of: datetime) -> datetime:
    """When the nightly jobs last became due."""
    now = as_of.astimezone(UTC)
    tonight = now.replace(hour=settings.NIGHT_HOUR, minute=0, second=0, microsecond=0)
    return tonight if tonight <= now else tonight - timedelta(days=1)


def _with_outcomes() -> QuerySet[Benchmark]:
    accepted = Submission.objects.filter(agent__benchmark=OuterRef("pk"), status=Status.ACCEPTED)
    return Benchmark.objects.filter(Exists(accepted), replay__isnull=True).order_by("pk")


def _latest(benchmark: Benchmark) -> Board | None:
    return benchmark.boards.order_by("-number").first()


def _has_grown(study: ValidationStudy, board: Board, as_of: datetime) -> bool:
    """Whether five more are complete, and nothing came for a minute: half a burst is studied in vain."""
    if board.n_complete - int(study.result["agents"]) < N_NEW_COMPLETE:
        return False
    latest = Submission.objects.filter(agent__benchmark=board.benchmark_id).latest("received_at")
    return latest.received_at <= as_of - QUIET or study.created_at <= as_of - MAX_WAIT


def _is_outdated(model: type[Study], benchmark: Benchmark, as_of: datetime, *, at_once: bool = False) -> bool:
    """Whether the data have no study yet, and there never was one, or a night has come since the last."""
    from leaderboard.studies.services import is_studied

    study = latest_study(model, benchmark)
    if study is not None and not at_once and study.created_at >= last_night(as_of):
        return False
    return not is_studied(model, benchmark)


def _of_data(benchmark: Benchmark) -> Due:
    return Due(benchmark, f"data {benchmark.data_version}, policy {policy_in_force(benchmark).number}")
