"""The first page: what is open, and what to do next about it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.urls import reverse

from leaderboard.admin.actions import action_url, change_url
from leaderboard.boards.models import Board
from leaderboard.catalog.models import Benchmark, Policy
from leaderboard.operations.models import (
    Alert,
    Dispute,
    JobRun,
    JobStatus,
    Notification,
    NotificationStatus,
    RerunRequest,
    RerunStatus,
    Reselection,
    ReselectionStatus,
)
from leaderboard.studies.answers import words
from leaderboard.submissions.models import Status, Submission

Row = tuple[str, tuple[str, ...]]  # an address and the texts of the columns
NextStep = tuple[str, str, str]  # what there is to do, the words of its link, its address
N_ROWS = 8  # of a list; its number always stands there


@dataclass(frozen=True)
class Card:
    """A list of what is open: rows of texts, the first one a link."""

    title: str
    url: str
    n: int
    headers: tuple[str, ...]
    rows: list[Row]
    none: str


class Dashboard:
    """What the operator of these benchmarks should see first; jobs of no one benchmark are staff's."""

    def __init__(self, operated: QuerySet[Benchmark], *, is_staff: bool, as_of: datetime) -> None:
        of = {"benchmark__in": operated.values("pk")}
        self.operated, self.as_of, self.is_staff = operated, as_of, is_staff
        self.alerts = Alert.objects.filter(**of, closed_at=None).select_related("benchmark", "request")
        self.requests = (
            RerunRequest.objects.filter(**of, status=RerunStatus.OPEN)
            .select_related("benchmark")
            .annotate(
                n_asked=Count("agents"), n_arrived=Count("agents", filter=Q(agents__arrived_at__isnull=False))
            )
            .order_by("deadline")
        )
        waiting = Submission.objects.filter(agent__benchmark__in=operated.values("pk"), status=Status.WAITING)
        self.waiting = waiting.select_related("agent__benchmark").order_by("received_at")
        self.disputes = Dispute.objects.filter(**of, decided_at=None).select_related("agent", "benchmark")
        self.proposals = Reselection.objects.filter(**of, status=ReselectionStatus.PROPOSED).select_related(
            "benchmark", "previous"
        )
        self.parked = Notification.objects.filter(
            event__benchmark__in=operated.values("pk"),
            status=NotificationStatus.PARKED,
            webhook__disabled_at=None,
            webhook__isnull=False,
        )
        # The last run of each kind and benchmark where it failed, and runs that give no sign of life
        same = Q(benchmark=OuterRef("benchmark")) | Q(benchmark=None)  # of each benchmark, or of none
        later = JobRun.objects.filter(same, kind=OuterRef("kind"), pk__gt=OuterRef("pk"))
        mine = Q(**of) | (Q(benchmark=None) if is_staff else Q())
        silent = Q(status=JobStatus.RUNNING, heartbeat_at__lt=as_of - timedelta(seconds=settings.STUCK_AFTER))
        runs = JobRun.objects.filter(mine, silent | Q(status=JobStatus.FAILED))
        self.jobs = runs.filter(~Exists(later)).select_related("benchmark").order_by("-id")
        self.steps = list(self._steps())

    def _steps(self) -> Iterator[NextStep]:
        for proposal in self.proposals[:N_ROWS]:
            yield (
                f"{proposal.benchmark}: another subset is proposed ({proposal.reason}).",
                "Compare and decide",
                change_url(proposal),
            )
        for submission in self.waiting[:N_ROWS]:
            yield (
                f"{submission.agent.benchmark}: a submission of {submission.agent} waits for review.",
                "Review",
                change_url(submission),
            )
        for dispute in self.disputes[:N_ROWS]:
            yield (
                f"{dispute.benchmark}: the entry of {dispute.agent} was reported.",
                "Decide",
                action_url(dispute, "decide"),
            )
        yield from self._about_alerts()
        for run in self.jobs[:N_ROWS]:
            yield (f"{run}: {_trouble(run)}.", "Look, and run again", change_url(run))
        yield from self._beginnings()

    def _about_alerts(self) -> Iterator[NextStep]:
        proposed = {proposal.benchmark_id for proposal in self.proposals}
        for alert in self.alerts.order_by("opened_at", "id"):
            request = alert.request
            if request and request.status == RerunStatus.EXPIRED and alert.benchmark_id not in proposed:
                yield (
                    f"{alert.benchmark}: runs asked for on {alert.monitor} did not arrive by "
                    f"{request.deadline:%Y-%m-%d}. Propose another subset, or ask for full runs only.",
                    "Propose",
                    action_url(alert.benchmark, "propose"),
                )
            else:
                to_do = alert.evidence["advice"]
                if request and request.status == RerunStatus.OPEN:
                    to_do = f"wait for full runs, until {request.deadline:%Y-%m-%d}"
                since = f"{alert.level} since {alert.opened_at:%Y-%m-%d}"
                yield (f"{alert.benchmark}: {alert.monitor}, {since}: {to_do}.", "Look", change_url(alert))

    def _beginnings(self) -> Iterator[NextStep]:
        if self.is_staff and not self.operated.exists():
            yield ("There is no benchmark yet.", "Create one", reverse("admin:catalog_benchmark_create"))
        boards = Board.objects.filter(benchmark=OuterRef("pk"))
        for benchmark in self.operated.filter(~Exists(boards)).order_by("slug")[:N_ROWS]:
            if benchmark.data_version == 0 or not benchmark.agents.exists():
                yield (f"{benchmark}: no outcomes yet.", "Upload a file", action_url(benchmark, "upload"))

    def cards(self) -> list[Card]:
        parked = self.parked.select_related("event", "webhook").order_by("-id")
        return [
            _card(
                "Open alerts",
                "operations_alert",
                self.alerts,
                "Benchmark Monitor Level Since",
                lambda one: (str(one.benchmark), one.monitor, one.level, f"{one.opened_at:%Y-%m-%d}"),
            ),
            _card(
                "Open rerun requests",
                "operations_rerunrequest",
                self.requests,
                "Benchmark Kind Deadline Arrived",
                lambda one: (
                    *(str(one.benchmark), one.kind),
                    *(f"{one.deadline:%Y-%m-%d}", f"{one.n_arrived} of {one.n_asked}"),
                ),
            ),
            _card(
                "Waiting for review",
                "submissions_submission",
                self.waiting,
                "Agent Benchmark Since",
                lambda one: (str(one.agent), str(one.agent.benchmark), f"{one.received_at:%Y-%m-%d %H:%M}"),
            ),
            _card(
                "Reported entries",
                "operations_dispute",
                self.disputes,
                "Agent Benchmark Since",
                lambda one: (str(one.agent), str(one.benchmark), f"{one.created_at:%Y-%m-%d}"),
            ),
            _card(
                "Proposed subsets",
                "operations_reselection",
                self.proposals,
                "Benchmark Since Reason",
                lambda one: (str(one.benchmark), f"{one.proposed_at:%Y-%m-%d}", one.reason[:60]),
            ),
            _card(
                "Jobs in trouble",
                "operations_jobrun",
                self.jobs,
                "Job Benchmark Trouble",
                lambda one: (one.kind, str(one.benchmark or "all"), _trouble(one)[:60]),
            ),
            _card(
                "Parked deliveries",
                "operations_notification",
                parked,
                "Event Webhook Tries",
                lambda one: (one.event.kind, str(one.webhook), f"{one.n_attempts}"),
            ),
            self._quota(),
        ]

    def _quota(self) -> Card:
        """Submissions since midnight UTC of the busiest tokens, beside what the policy allows."""
        begin = self.as_of.replace(hour=0, minute=0, second=0, microsecond=0)
        today = Submission.objects.filter(
            agent__benchmark__in=self.operated.values("pk"), received_at__gte=begin, token__isnull=False
        )
        used = list(
            today.values("token__user__email", "agent__benchmark", "agent__benchmark__slug")
            .annotate(n=Count("pk"))
            .order_by("-n")[:N_ROWS]
        )
        benchmarks = {row["agent__benchmark"] for row in used}
        policies = Policy.objects.filter(benchmark__in=benchmarks).order_by("benchmark", "-number")
        allowed = dict(policies.distinct("benchmark").values_list("benchmark", "quota_per_account"))
        address = reverse("admin:submissions_submission_changelist")
        rows: list[Row] = [
            (
                address,
                (
                    row["token__user__email"],
                    row["agent__benchmark__slug"],
                    f"{row['n']:,} of {allowed[row['agent__benchmark']]:,}",
                ),
            )
            for row in used
        ]
        headers = ("Account", "Benchmark", "Used today")
        return Card("Quota use today", address, len(rows), headers, rows, "Nothing was submitted today.")


def _card(
    title: str, table: str, rows: QuerySet[Any], headers: str, texts: Callable[[Any], tuple[str, ...]]
) -> Card:
    address = reverse(f"admin:{table}_changelist")
    shown = [(change_url(one), texts(one)) for one in rows[:N_ROWS]]
    return Card(title, address, rows.count(), tuple(headers.split()), shown, "None.")


def _trouble(run: JobRun) -> str:
    if run.status == JobStatus.RUNNING:
        return f"no sign of life since {run.heartbeat_at:%Y-%m-%d %H:%M}"
    lines = run.error.strip().splitlines()
    return f"failed: {lines[-1] if lines else 'without a word'}"


def summary(desk: Dashboard) -> str:
    n = len(desk.steps)
    return f"{words.counted(n, 'thing')} to do." if n else "Nothing needs a decision."
