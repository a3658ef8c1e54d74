"""`/metrics`, for who holds METRICS_TOKEN or asks from one of METRICS_NETWORKS; to others it is not there.

It names benchmarks that are private, too.
"""

import hmac
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.db.models import Case, CharField, Count, Min, OuterRef, Q, Subquery, Value, When
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from leaderboard.boards.models import Board
from leaderboard.catalog.models import Benchmark
from leaderboard.counters import of_all_processes
from leaderboard.operations.models import (
    Alert,
    JobRun,
    JobStatus,
    Notification,
    NotificationStatus,
    RerunRequest,
)
from leaderboard.operations.scheduler.leadership import is_led
from leaderboard.submissions.models import Submission
from leaderboard.visitors import address_of, directly_from


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    token = request.headers.get("Authorization", "").removeprefix("Bearer ").encode()
    expected = settings.METRICS_TOKEN.encode()
    if not expected or not hmac.compare_digest(token, expected):
        address = directly_from(request) or address_of(request)
        if address is None or not any(address in network for network in settings.METRICS_NETWORKS):
            raise Http404
    state = CollectorRegistry(auto_describe=False)
    state.register(State(timezone.now()))
    lines = chain.from_iterable(map(generate_latest, (of_all_processes(), state)))
    return HttpResponse(bytes(lines), content_type=CONTENT_TYPE_LATEST)


DAY = timedelta(days=1)


class State:
    """One reading, as a collector of prometheus-client; benchmarks that a replay made are left out."""

    def __init__(self, as_of: datetime) -> None:
        self._as_of = as_of

    def collect(self) -> Iterator[Metric]:
        try:
            metrics = [metric for read in READ for metric in read(self._as_of)]
        except (OperationalError, InterfaceError):
            yield _one("bandstand_database_up", "Whether the database answers.", 0)
            return
        yield _one("bandstand_database_up", "Whether the database answers.", 1)
        yield from metrics


def _one(name: str, about: str, value: float) -> Metric:
    return GaugeMetricFamily(name, about, value=value)


def _by_labels(name: str, about: str, labels: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> Metric:
    gauge = GaugeMetricFamily(name, about, labels=labels)
    for *texts, value in rows:
        gauge.add_metric([text or "" for text in texts], value)
    return gauge


def _counts(as_of: datetime) -> Iterator[Metric]:
    rows = Submission.objects.filter(agent__benchmark__replay__isnull=True)
    counts = rows.values_list("agent__benchmark__slug", "status").annotate(Count("pk"))
    about = "Submissions by what became of them."
    yield _by_labels("bandstand_submissions", about, ("benchmark", "status"), counts)
    alerts = Alert.objects.filter(closed_at=None, benchmark__replay__isnull=True)
    n_open = alerts.values_list("benchmark__slug", "level").annotate(Count("pk"))
    yield _by_labels("bandstand_alerts_open", "Alerts of drift monitors.", ("benchmark", "level"), n_open)
    requests = RerunRequest.objects.filter(status="open", benchmark__replay__isnull=True)
    asked = requests.values_list("benchmark__slug", "kind").annotate(Count("pk"))
    about = "Requests to run agents again."
    yield _by_labels("bandstand_rerun_requests_open", about, ("benchmark", "kind"), asked)
    yield _one("bandstand_scheduler_leads", "Whether a scheduler leads.", is_led())
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        (n_bytes,) = cursor.fetchone()
    yield _one("bandstand_database_bytes", "Size of the database.", n_bytes)


def _boards(as_of: datetime) -> Iterator[Metric]:
    age = GaugeMetricFamily(
        "bandstand_board_age_seconds", "Seconds since the latest board came out.", labels=["benchmark"]
    )
    behind = GaugeMetricFamily(
        "bandstand_board_behind",
        "Data versions that the latest board does not hold; all of them where there is no board.",
        labels=["benchmark"],
    )
    boards = Board.objects.filter(benchmark=OuterRef("pk")).order_by("-number")
    latest = {name: Subquery(boards.values(name)[:1]) for name in ("published_at", "data_version")}
    benchmarks = Benchmark.objects.filter(replay__isnull=True).annotate(at=latest["published_at"])
    rows = benchmarks.annotate(of=latest["data_version"]).values_list("slug", "data_version", "at", "of")
    for slug, data_version, at, of in rows:
        behind.add_metric([slug], data_version - (of or 0))
        if at is not None:
            age.add_metric([slug], (as_of - at).total_seconds())
    yield age
    yield behind


def _jobs(as_of: datetime) -> Iterator[Metric]:
    recent = JobRun.objects.filter(created_at__gte=as_of - DAY)
    counts = recent.values_list("kind", "status").annotate(Count("pk"))
    about = "Job runs that began in the last 24 hours."
    yield _by_labels("bandstand_job_runs", about, ("job", "status"), counts)
    labels = ("job", "benchmark")
    one_each = ("kind", "benchmark__slug")
    ended = JobRun.objects.filter(started_at__isnull=False, ended_at__isnull=False)
    latest = ended.order_by(*one_each, "-id").distinct(*one_each)
    statuses = latest.values_list(*one_each, "status")
    failing = [(kind, slug, status == JobStatus.FAILED) for kind, slug, status in statuses]
    done = latest.filter(status=JobStatus.DONE).values_list(*one_each, "started_at", "ended_at")
    seconds = [(kind, slug, (end - start).total_seconds()) for kind, slug, start, end in done]
    about = "Seconds that the latest run that was done took."
    yield _by_labels("bandstand_job_seconds", about, labels, seconds)
    about = "Whether the latest run that ended has failed."
    yield _by_labels("bandstand_job_failing", about, labels, failing)


def _deliveries(as_of: datetime) -> Iterator[Metric]:
    counts = GaugeMetricFamily(
        "bandstand_deliveries", "Deliveries to webhooks and by mail.", labels=["to", "status"]
    )
    oldest = GaugeMetricFamily(
        "bandstand_delivery_oldest_seconds", "Seconds that the oldest delivery has waited.", labels=["to"]
    )
    to = Case(When(webhook=None, then=Value("mail")), default=Value("webhook"), output_field=CharField())
    since = Min("first_at", filter=Q(status=NotificationStatus.WAITING))
    rows = (
        Notification.objects.annotate(to=to).values_list("to", "status").annotate(n=Count("pk"), since=since)
    )
    for name, status, n, waits_since in rows:
        counts.add_metric([name, status], n)
        if waits_since is not None:
            oldest.add_metric([name], (as_of - waits_since).total_seconds())
    yield counts
    yield oldest


READ = (_counts, _boards, _jobs, _deliveries)
