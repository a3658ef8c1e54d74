"""What an operator or a clock does: assignments, jobs, alerts, reruns, reselections, webhooks, disputes."""

import uuid
from typing import ClassVar

import pghistory
import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from leaderboard.accounts.models import ApiToken, User
from leaderboard.catalog.models import APPEND_ONLY, NAME_LENGTH, Agent, Benchmark
from leaderboard.studies.models import DriftCheck, StagedStudy, TaskSubset
from leaderboard.submissions.models import Submission


def checks(**conditions: Q) -> list[models.BaseConstraint]:
    return [models.CheckConstraint(condition=one, name=name) for name, one in conditions.items()]


class RerunKind(models.TextChoices):
    VALIDATION = "validation"
    DRIFT = "drift"
    RECALL = "recall"


class RerunStatus(models.TextChoices):
    OPEN = "open"
    FULFILLED = "fulfilled"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class RerunRequest(models.Model):
    """Agents that are asked to run what they lack of all tasks, until a deadline."""

    benchmark = models.ForeignKey(Benchmark, models.PROTECT, related_name="rerun_requests")
    kind = models.CharField(max_length=16, choices=RerunKind)
    subset = models.ForeignKey(
        TaskSubset, models.PROTECT, null=True, related_name="rerun_requests", help_text="Empty: a recall."
    )
    status = models.CharField(max_length=16, choices=RerunStatus, default=RerunStatus.OPEN)
    reason = models.TextField(help_text="What it was opened for, in words.")
    n_tasks = models.PositiveIntegerField(help_text="Active tasks when it was opened.")
    cost_usd = models.FloatField(null=True, help_text="Of all its runs; empty: no cost is known.")
    opened_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    opened_at = models.DateTimeField()
    deadline = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)
    closed_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    closed_reason = models.TextField(blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["benchmark", "kind"],
                condition=Q(status="open") & ~Q(kind="recall"),
                name="rerunrequest_one_open",
            ),
            *checks(
                rerunrequest_recall_has_no_subset=Q(kind="recall", subset__isnull=True)
                | (~Q(kind="recall") & Q(subset__isnull=False)),
                rerunrequest_choices_known=Q(kind__in=RerunKind.values, status__in=RerunStatus.values),
                rerunrequest_closed_when_not_open=Q(status="open", closed_at__isnull=True)
                | Q(~Q(status="open"), closed_at__isnull=False),
                rerunrequest_deadline_later=Q(deadline__gt=F("opened_at")),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} request {self.pk} of {self.benchmark}"


class RerunAgent(models.Model):
    """An agent that a request names."""

    request = models.ForeignKey(RerunRequest, models.CASCADE, related_name="agents")
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="reruns")
    sampled = models.BooleanField(help_text="Drawn at random; only these feed rank fidelity.")
    inclusion = models.FloatField(help_text="Probability of being drawn; 1 for the others.")
    why = models.TextField()
    n_lacking = models.PositiveIntegerField(help_text="Tasks it lacked when it was asked.")
    cost_usd = models.FloatField(null=True)
    arrived_at = models.DateTimeField(null=True, help_text="When it was found to have all tasks.")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["request", "agent"], name="rerunagent_once"),
            *checks(rerunagent_inclusion_range=Q(inclusion__gt=0, inclusion__lte=1)),
        ]

    def __str__(self) -> str:
        return f"{self.agent} of {self.request}"


class Mode(models.TextChoices):
    SUBSET = "subset"
    FULL = "full"
    DELTA = "delta"
    STAGED = "staged"


class AssignmentStatus(models.TextChoices):
    OPEN = "open"
    FULFILLED = "fulfilled"
    EXPIRED = "expired"


TASKS_CHANGE = (
    "OLD.tasks IS DISTINCT FROM NEW.tasks AND NOT "
    "(OLD.mode = 'staged' AND OLD.status = 'open' AND NEW.tasks[1:cardinality(OLD.tasks)] = OLD.tasks)"
)

DECISIONS_CHANGE = (
    "NOT NEW.decisions @> OLD.decisions "
    "OR jsonb_array_length(NEW.decisions) < jsonb_array_length(OLD.decisions)"
)


class Assignment(models.Model):
    """Which tasks an agent is asked to run. They never change, also when the subset does; to those of an
    staged one batches are added.
    """

    uuid = models.UUIDField(unique=True, default=uuid.uuid4, editable=False)
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="assignments")
    mode = models.CharField(max_length=16, choices=Mode)
    reason = models.TextField(help_text="Why these tasks, in words.")
    subset = models.ForeignKey(TaskSubset, models.PROTECT, null=True, related_name="assignments")
    request = models.ForeignKey(
        RerunRequest, models.PROTECT, null=True, related_name="assignments", help_text="That it answers."
    )
    study = models.ForeignKey(
        StagedStudy,
        models.PROTECT,
        null=True,
        related_name="assignments",
        help_text="That a staged one rests on.",
    )
    tasks = ArrayField(
        models.IntegerField(),
        help_text="Ids, by name, the audit tasks among them; of a staged one in the order of its batches.",
    )
    decisions = models.JSONField(
        default=list,
        help_text="Of a staged one, after each batch: estimate, error, what it was compared with, why.",
    )
    audit = ArrayField(
        models.IntegerField(), default=list, help_text="Ids of those drawn from outside the subset."
    )
    n_trials = models.PositiveSmallIntegerField(help_text="Asked for on each task.")
    n_trials_recommended = models.PositiveSmallIntegerField(null=True)
    status = models.CharField(max_length=16, choices=AssignmentStatus, default=AssignmentStatus.OPEN)
    asked_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="assignments")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    submissions: models.ManyToManyField = models.ManyToManyField(
        Submission, related_name="assignments", help_text="That name it; late ones too."
    )

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["agent"], condition=Q(status="open"), name="assignment_one_open"),
            *checks(
                assignment_choices_known=Q(
                    mode__in=Mode.values,
                    status__in=AssignmentStatus.values,
                    n_trials__gte=1,
                    tasks__len__gte=1,
                ),
                assignment_staged_has_study=Q(mode="staged", study__isnull=False)
                | (~Q(mode="staged") & Q(study=None)),
                assignment_audit_among_tasks=Q(audit__contained_by=F("tasks")),
                assignment_expires_later=Q(expires_at__gt=F("created_at")),
            ),
        ]
        triggers: ClassVar = [
            pgtrigger.Protect(
                name="assignment_tasks_never_change",
                operation=pgtrigger.Update,
                condition=pgtrigger.AnyChange(exclude=["status", "ended_at", "tasks", "decisions"]),
            ),
            pgtrigger.Protect(
                name="assignment_tasks_are_only_added",
                operation=pgtrigger.Update,
                condition=pgtrigger.Condition(TASKS_CHANGE),
            ),
            pgtrigger.Protect(
                name="assignment_decisions_are_only_added",
                operation=pgtrigger.Update,
                condition=pgtrigger.Condition(DECISIONS_CHANGE),
            ),
            pgtrigger.Protect(name="assignment_is_never_deleted", operation=pgtrigger.Delete),
        ]

    def __str__(self) -> str:
        return f"assignment {self.uuid} of {self.agent}"


class Lane(models.TextChoices):
    PROMPT = "prompt"
    LONG = "long"


class JobStatus(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    ABANDONED = "abandoned"


class JobRun(models.Model):
    """One run of a job, with its progress and how it ended."""

    kind = models.CharField(max_length=32)
    lane = models.CharField(max_length=16, choices=Lane)
    benchmark = models.ForeignKey(Benchmark, models.CASCADE, null=True, related_name="job_runs")
    about = models.CharField(
        max_length=NAME_LENGTH, blank=True, help_text="What made it due: a key, so that it runs once for it."
    )
    status = models.CharField(max_length=16, choices=JobStatus, default=JobStatus.QUEUED)
    requested_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    reason = models.TextField(blank=True, help_text="Of whoever asked for it by hand.")
    claim = models.UUIDField(null=True, help_text="Of the leader that runs it.")
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    heartbeat_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    n_done = models.PositiveIntegerField(default=0)
    n_total = models.PositiveIntegerField(default=0)
    told = models.TextField(blank=True, help_text="What it did, in a line.")
    error = models.TextField(blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["kind", "benchmark"],
                condition=Q(status__in=["queued", "running"]),
                nulls_distinct=False,
                name="jobrun_one_at_a_time",
            ),
            *checks(
                jobrun_choices_known=Q(lane__in=Lane.values, status__in=JobStatus.values),
                jobrun_running_is_claimed=~Q(status="running")
                | Q(claim__isnull=False, started_at__isnull=False),
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["kind", "benchmark", "-id"], name="jobrun_latest"),
            models.Index(
                fields=["status"], condition=Q(status__in=["queued", "running"]), name="jobrun_open"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.benchmark}" if self.benchmark else self.kind


class AlertLevel(models.TextChoices):
    WARN = "warn"
    ALERT = "alert"


class Alert(models.Model):
    """What a monitor said of a subset, from when it first said so until it was quiet or decided upon."""

    benchmark = models.ForeignKey(Benchmark, models.PROTECT, related_name="alerts")
    subset = models.ForeignKey(TaskSubset, models.PROTECT, related_name="alerts")
    monitor = models.CharField(max_length=64)
    level = models.CharField(max_length=8, choices=AlertLevel, help_text="The highest it reached.")
    opened_by = models.ForeignKey(DriftCheck, models.PROTECT, related_name="opened")
    latest = models.ForeignKey(DriftCheck, models.PROTECT, related_name="+", help_text="That said so last.")
    evidence = models.JSONField(help_text="What the monitor said, as in the latest check.")
    request = models.ForeignKey(
        RerunRequest, models.PROTECT, null=True, related_name="alerts", help_text="That it opened or joined."
    )
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)
    closed_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    closed_reason = models.TextField(blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["benchmark", "subset", "monitor"],
                condition=Q(closed_at__isnull=True),
                name="alert_one_open",
            ),
            *checks(
                alert_level_known=Q(level__in=AlertLevel.values),
                alert_closed_with_reason=Q(closed_at__isnull=True) | ~Q(closed_reason=""),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.level} of {self.monitor} on {self.benchmark}"


class ReselectionStatus(models.TextChoices):
    PROPOSED = "proposed"
    APPROVED = "approved"
    REJECTED = "rejected"
    OUTDATED = "outdated"


@pghistory.track(
    pghistory.InsertEvent(),
    pghistory.UpdateEvent(condition=pghistory.AnyChange("status")),
    fields=["benchmark", "status", "decided_reason"],
    model_name="ReselectionChange",
)
class Reselection(models.Model):
    """A subset that could take the place of the one in use, and what became of the proposal."""

    benchmark = models.ForeignKey(Benchmark, models.PROTECT, related_name="reselections")
    previous = models.ForeignKey(TaskSubset, models.PROTECT, related_name="+")
    data_version = models.BigIntegerField(help_text="That it was computed from.")
    estimator_version = models.PositiveIntegerField()
    reason = models.TextField(help_text="The rule that asked for it, or the operator.")
    alert = models.ForeignKey(Alert, models.PROTECT, null=True, related_name="reselections")
    content = models.JSONField(
        help_text="Variants (plain, with hysteresis): tasks, entering and leaving with pass rates then and "
        "now, figures, cost, each agent's delta."
    )
    status = models.CharField(max_length=16, choices=ReselectionStatus, default=ReselectionStatus.PROPOSED)
    proposed_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    proposed_at = models.DateTimeField()
    decided_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    decided_at = models.DateTimeField(null=True)
    decided_reason = models.TextField(blank=True)
    variant = models.CharField(max_length=16, blank=True, help_text="That was approved.")
    subset = models.OneToOneField(
        TaskSubset,
        models.PROTECT,
        null=True,
        related_name="reselection",
        help_text="That approval activated.",
    )

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["benchmark"], condition=Q(status="proposed"), name="reselection_one_proposed"
            ),
            *checks(
                reselection_status_known=Q(status__in=ReselectionStatus.values),
                reselection_decided_with_reason=Q(status="proposed", decided_at__isnull=True)
                | Q(~Q(status="proposed") & ~Q(decided_reason=""), decided_at__isnull=False),
                reselection_approved_has_subset=Q(Q(status="approved"), ~Q(variant=""), subset__isnull=False)
                | Q(~Q(status="approved"), subset__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"reselection {self.pk} of {self.benchmark}"


class EventKind(models.TextChoices):
    SUBMISSION_ACCEPTED = "submission.accepted"
    SUBMISSION_REFUSED = "submission.refused"
    BOARD_PUBLISHED = "board.published"
    RANK_CHANGED = "rank.changed"
    SUBSET_ACTIVATED = "subset.activated"
    DRIFT_ALERT = "drift.alert"
    RERUN_REQUESTED = "rerun.requested"


@pghistory.track(
    pghistory.InsertEvent(),
    pghistory.UpdateEvent(condition=pghistory.AnyChange("url", "events", "disabled_at")),
    pghistory.DeleteEvent(),
    fields=["benchmark", "url", "events", "disabled_at", "disabled_reason"],
    model_name="WebhookChange",
)
class Webhook(models.Model):
    """An address that is told of events, each delivery signed with its secret."""

    benchmark = models.ForeignKey(Benchmark, models.CASCADE, related_name="webhooks")
    url = models.URLField(max_length=2000)
    secret = models.CharField(max_length=64)
    events = ArrayField(models.CharField(max_length=32, choices=EventKind))
    created_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField()
    disabled_at = models.DateTimeField(null=True)
    disabled_reason = models.TextField(blank=True)

    class Meta:
        constraints: ClassVar = checks(
            webhook_events_known=Q(events__contained_by=EventKind.values) & ~Q(events=[])
        )

    def __str__(self) -> str:
        return self.url


class Event(models.Model):
    """Something that happened, told once to each webhook and mail address that wants to know."""

    uuid = models.UUIDField(unique=True, default=uuid.uuid4, editable=False)
    benchmark = models.ForeignKey(Benchmark, models.CASCADE, related_name="events")
    kind = models.CharField(max_length=32, choices=EventKind)
    about = models.CharField(max_length=NAME_LENGTH, help_text="What it is of: the same is never told twice.")
    payload = models.JSONField()
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["benchmark", "kind", "about"], name="event_once"),
            *checks(event_kind_known=Q(kind__in=EventKind.values)),
        ]
        triggers: ClassVar = [pgtrigger.Protect(name="event_never_changes", operation=pgtrigger.Update)]

    def __str__(self) -> str:
        return f"{self.kind} of {self.benchmark}"


class NotificationStatus(models.TextChoices):
    WAITING = "waiting"
    DELIVERED = "delivered"
    PARKED = "parked"


@pghistory.track(
    pghistory.UpdateEvent("sent again", condition=pghistory.AnyChange("first_at")),
    fields=["status"],
    model_name="NotificationChange",
)
class Notification(models.Model):
    """An event on its way to a webhook or a mail address: tried again for a day, then parked."""

    event = models.ForeignKey(Event, models.CASCADE, related_name="deliveries")
    webhook = models.ForeignKey(Webhook, models.CASCADE, null=True, related_name="deliveries")
    email = models.EmailField(blank=True)
    status = models.CharField(max_length=16, choices=NotificationStatus, default=NotificationStatus.WAITING)
    n_attempts = models.PositiveIntegerField(default=0)
    next_at = models.DateTimeField(help_text="When it is tried next.")
    first_at = models.DateTimeField(help_text="Since when it is tried; begins anew when sent again by hand.")
    ended_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name, verbose_name_plural = "delivery", "deliveries"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["event", "webhook", "email"], nulls_distinct=False, name="delivery_once"
            ),
            *checks(
                delivery_to_one_address=Q(webhook__isnull=True) & ~Q(email="")
                | Q(webhook__isnull=False, email=""),
                delivery_status_known=Q(status__in=NotificationStatus.values),
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["next_at"], condition=Q(status="waiting"), name="delivery_due")
        ]

    def __str__(self) -> str:
        return f"{self.event} to {self.webhook or self.email}"


class NotificationAttempt(models.Model):
    """One try of a delivery, and what came of it."""

    delivery = models.ForeignKey(Notification, models.CASCADE, related_name="attempts")
    at = models.DateTimeField()
    status = models.PositiveSmallIntegerField(null=True, help_text="HTTP status; empty: no answer.")
    error = models.TextField(blank=True)
    seconds = models.FloatField()

    class Meta:
        verbose_name = "attempt"
        triggers: ClassVar = [pgtrigger.Protect(name="attempt_never_changes", operation=pgtrigger.Update)]

    def __str__(self) -> str:
        return f"attempt at {self.delivery}"


class FailedAttempts(models.Model):
    """Deliveries of a token that stored nothing, faulty ones and dry runs, in a minute."""

    token = models.OneToOneField(ApiToken, models.CASCADE, primary_key=True, related_name="failed_attempts")
    since = models.DateTimeField(help_text="When the minute began.")
    n = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.n} failed attempts of {self.token}"


class Dispute(models.Model):
    """Somebody reports an entry; an operator decides."""

    benchmark = models.ForeignKey(Benchmark, models.CASCADE, related_name="disputes")
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="disputes")
    board_number = models.PositiveIntegerField(null=True)
    text = models.TextField()
    by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    contact = models.EmailField(blank=True)
    created_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True)
    decided_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    decided_reason = models.TextField(blank=True)
    upheld = models.BooleanField(null=True)

    class Meta:
        constraints: ClassVar = checks(
            dispute_decided_with_reason=Q(decided_at__isnull=True, upheld__isnull=True)
            | (Q(decided_at__isnull=False, upheld__isnull=False) & ~Q(decided_reason=""))
        )

    def __str__(self) -> str:
        return f"report of {self.agent}"


class Upload(models.Model):
    """A file that an operator sent and has not confirmed yet; it is dropped after a day."""

    uuid = models.UUIDField(unique=True, default=uuid.uuid4, editable=False)
    benchmark = models.ForeignKey(Benchmark, models.CASCADE, related_name="+")
    by = models.ForeignKey(User, models.CASCADE, related_name="+")
    name = models.CharField(max_length=NAME_LENGTH)
    content = models.BinaryField()
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class Erasure(models.Model):
    """That names were replaced by a tombstone, and why; never what they were."""

    benchmark = models.ForeignKey(Benchmark, models.PROTECT, null=True, related_name="erasures")
    what = models.CharField(max_length=16, help_text="agent or account")
    tombstone = models.CharField(max_length=NAME_LENGTH)
    reason = models.TextField()
    at = models.DateTimeField()
    by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")

    class Meta:
        constraints: ClassVar = checks(erasure_with_reason=~Q(reason=""))
        triggers: ClassVar = [pgtrigger.Protect(name="erasure_is_append_only", operation=APPEND_ONLY)]

    def __str__(self) -> str:
        return f"{self.tombstone}: {self.reason}"
