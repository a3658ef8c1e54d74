"""What happened: submissions and their outcomes, one row per agent, task, setting and trial."""

import uuid
from typing import ClassVar

import pghistory
import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q

from leaderboard.accounts.models import ApiToken, User
from leaderboard.catalog.models import APPEND_ONLY, NAME_LENGTH, Agent, Benchmark


class RealField(models.FloatField):
    """Four bytes, for a column that is stored by the million."""

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return "real"


class Setting(models.Model):
    """The facets under which a trial ran. Outcomes name it without a foreign key: it is never deleted."""

    id = models.AutoField(primary_key=True)  # four bytes: it stands in every outcome
    benchmark = models.ForeignKey(Benchmark, models.PROTECT, related_name="settings")
    # NULL is "not stated", which the unique constraint counts as one value; "" is refused.
    prompt_variant = models.CharField(max_length=NAME_LENGTH, null=True)  # noqa: DJ001
    judge = models.CharField(max_length=NAME_LENGTH, null=True)  # noqa: DJ001
    temperature = models.FloatField(null=True)
    run = models.CharField(max_length=NAME_LENGTH, null=True)  # noqa: DJ001

    FACETS = ("prompt_variant", "judge", "temperature", "run")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["benchmark", "prompt_variant", "judge", "temperature", "run"],
                nulls_distinct=False,
                name="setting_once",
            ),
            models.CheckConstraint(
                condition=~Q(prompt_variant="") & ~Q(judge="") & ~Q(run=""), name="setting_stated"
            ),
        ]
        triggers: ClassVar = [pgtrigger.Protect(name="setting_is_append_only", operation=APPEND_ONLY)]

    def __str__(self) -> str:
        texts = [f"{facet} {value}" for facet in self.FACETS if (value := getattr(self, facet)) is not None]
        return ", ".join(texts) or "the plain setting"


class Status(models.TextChoices):
    CHECKING = "checking"
    WAITING = "waiting"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    SUPERSEDED = "superseded"
    WITHDRAWN = "withdrawn"


LIVE = (Status.CHECKING, Status.WAITING, Status.ACCEPTED)
COUNTING = (Status.ACCEPTED, Status.SUPERSEDED, Status.WITHDRAWN)  # what becomes so changes what counts


@pghistory.track(
    pghistory.UpdateEvent(condition=pghistory.AnyChange("status")),
    fields=["status"],
    model_name="SubmissionChange",
)
class Submission(models.Model):
    """One delivery of an agent's outcomes. Only its status ever changes."""

    id = models.AutoField(primary_key=True)  # four bytes: it stands in every outcome
    uuid = models.UUIDField(unique=True, default=uuid.uuid4, editable=False)
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="submissions")
    status = models.CharField(max_length=16, choices=Status)
    submitted_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="submissions")
    token = models.ForeignKey(ApiToken, models.PROTECT, null=True, related_name="submissions")
    submitted_at = models.DateTimeField(null=True, help_text="As stated by the submitter.")
    imprecise = models.BooleanField(
        default=False, help_text="Only the month or year of submitted_at is known."
    )
    received_at = models.DateTimeField(help_text="By the clock of the service.")
    backdated = models.BooleanField(default=False)
    content_sha256 = models.BinaryField(max_length=32)
    n_outcomes = models.PositiveIntegerField()
    n_invalid = models.PositiveIntegerField()
    replaces = models.ForeignKey("self", models.PROTECT, null=True, related_name="replaced_by")
    links = models.JSONField(default=dict)
    embargo_until = models.DateTimeField(null=True, help_text="Hidden until this time.")
    loaded = models.BooleanField(
        default=False,
        help_text="Loaded by an operator: all trials count, and invalid ones are confirmed.",
    )
    asked = ArrayField(
        models.IntegerField(), null=True, help_text="Ids of the requested tasks; empty: all active tasks."
    )
    n_trials = models.PositiveSmallIntegerField(
        null=True, help_text="Requested trials per task; empty: as many as submitted."
    )
    study_id = models.BigIntegerField(
        null=True,
        help_text="Id of the study that chose the requested tasks in that order; empty: none did.",
    )

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(status__in=Status.values), name="submission_status_known"),
            models.CheckConstraint(condition=Q(n_outcomes__gte=1), name="submission_not_empty"),
            models.CheckConstraint(
                condition=Q(asked__isnull=True) | Q(asked__len__gte=1), name="submission_asked_not_empty"
            ),
            models.CheckConstraint(
                condition=Q(n_trials__isnull=True) | Q(n_trials__gte=1), name="submission_n_trials_positive"
            ),
            models.UniqueConstraint(
                fields=["agent", "content_sha256"],
                condition=Q(status__in=LIVE),
                name="submission_content_once",
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["agent", "status"], name="submission_of_agent")]
        triggers: ClassVar = [
            pgtrigger.Protect(name="submission_is_never_deleted", operation=pgtrigger.Delete),
            pgtrigger.Protect(
                name="submission_changes_status_only",
                operation=pgtrigger.Update,
                condition=pgtrigger.AnyChange(exclude=["status"]),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agent} ({self.uuid})"


class Judged(models.TextChoices):
    """What was found of an agent's whole line when a submission changed its status."""

    IMPLAUSIBLE = "implausible"
    REVIEWED = "reviewed"  # an operator looked at it and let it count


DATA_VERSION = "The data version of the benchmark that was reached with this"


class StatusChange(models.Model):
    """When a submission's status became what, through whom, and why.

    Those with a data version are the log of deliveries: replayed up to a version, it tells what counted then.
    """

    submission = models.ForeignKey(Submission, models.PROTECT, related_name="status_changes")
    status = models.CharField(max_length=16, choices=Status)
    data_version = models.BigIntegerField(
        null=True, help_text=f"{DATA_VERSION}; empty where it changed nothing that counts."
    )
    after_board = models.BooleanField(
        default=False,
        help_text="A board had shown the agent before its owner withdrew results or submitted them again.",
    )
    judged = models.CharField(max_length=16, choices=Judged, blank=True, default="")
    at = models.DateTimeField()
    by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    reason = models.TextField(blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(status__in=Status.values), name="statuschange_status_known"),
            models.CheckConstraint(
                condition=Q(status__in=COUNTING, data_version__isnull=False)
                | Q(status=Status.WAITING)  # with a version where it had counted
                | Q(~Q(status__in=COUNTING), data_version__isnull=True),
                name="statuschange_counts_with_version",
            ),
            models.CheckConstraint(
                condition=Q(after_board=False) | Q(status__in=COUNTING),
                name="statuschange_after_board_counts",
            ),
        ]
        triggers: ClassVar = [pgtrigger.Protect(name="statuschange_is_append_only", operation=APPEND_ONLY)]

    def __str__(self) -> str:
        return f"{self.submission} became {self.status}"


class MachineCheck(models.Model):
    """What the machine found in a submission; shown on its page, and none of it refuses by itself."""

    submission = models.OneToOneField(Submission, models.PROTECT, related_name="machine_check")
    found = models.JSONField(help_text="Each: name, level (passed, noted, warned), message.")
    at = models.DateTimeField()

    class Meta:
        triggers: ClassVar = [pgtrigger.Protect(name="machinecheck_is_append_only", operation=APPEND_ONLY)]

    def __str__(self) -> str:
        return f"checks of {self.submission}"


class InvalidConfirmation(models.Model):
    """An operator confirmed that the invalid outcomes of this submission are failures of the harness.

    Until then they count as failures of the agent. What an operator loads is confirmed without a row here.
    """

    submission = models.OneToOneField(Submission, models.PROTECT, related_name="confirmation")
    data_version = models.BigIntegerField(help_text=f"{DATA_VERSION}.")
    at = models.DateTimeField()
    by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    reason = models.TextField(blank=True)

    class Meta:
        triggers: ClassVar = [pgtrigger.Protect(name="confirmation_is_append_only", operation=APPEND_ONLY)]

    def __str__(self) -> str:
        return f"invalid outcomes of {self.submission} confirmed"


class Approval(models.Model):
    """An operator lets an agent be ranked again that took outcomes back, or lets a copy count."""

    agent = models.ForeignKey(Agent, models.PROTECT, related_name="approvals")
    data_version = models.BigIntegerField(help_text=f"{DATA_VERSION}.")
    at = models.DateTimeField()
    by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    reason = models.TextField()

    class Meta:
        constraints: ClassVar = [models.CheckConstraint(condition=~Q(reason=""), name="approval_with_reason")]
        triggers: ClassVar = [pgtrigger.Protect(name="approval_is_append_only", operation=APPEND_ONLY)]

    def __str__(self) -> str:
        return f"{self.agent} approved"


class Verification(models.Model):
    """An operator confirmed a submission, or took that back; the latest holds.

    What an operator loaded is verified without a row here.
    """

    submission = models.ForeignKey(Submission, models.PROTECT, related_name="verifications")
    verified = models.BooleanField()
    data_version = models.BigIntegerField(help_text=f"{DATA_VERSION}.")
    at = models.DateTimeField()
    by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    note = models.TextField(blank=True)

    class Meta:
        triggers: ClassVar = [pgtrigger.Protect(name="verification_is_append_only", operation=APPEND_ONLY)]

    def __str__(self) -> str:
        return f"{self.submission} {'verified' if self.verified else 'no longer verified'}"


class AccountTrust(models.Model):
    """An operator trusts an account on a benchmark, or does so no longer; the latest holds."""

    benchmark = models.ForeignKey(Benchmark, models.PROTECT, related_name="account_trusts")
    account = models.ForeignKey(User, models.PROTECT, related_name="+")
    trusted = models.BooleanField()
    data_version = models.BigIntegerField(help_text=f"{DATA_VERSION}.")
    at = models.DateTimeField()
    by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    reason = models.TextField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=~Q(reason=""), name="accounttrust_with_reason")
        ]
        triggers: ClassVar = [pgtrigger.Protect(name="accounttrust_is_append_only", operation=APPEND_ONLY)]

    def __str__(self) -> str:
        return f"{self.account} {'trusted' if self.trusted else 'no longer trusted'} on {self.benchmark}"


class Outcome(models.Model):
    """One trial's result on one task.

    Narrow on purpose: the four columns of the key are plain numbers without foreign keys, which would make
    a bulk load ten times slower. `submissions.services` checks the references once per submission, under
    a lock; tasks and settings are never deleted.
    """

    pk = models.CompositePrimaryKey("submission_id", "task_id", "setting_id", "trial")
    submission_id = models.IntegerField()
    task_id = models.IntegerField()
    setting_id = models.IntegerField()
    trial = models.SmallIntegerField()
    value = RealField(null=True, help_text="From 0 to 1; empty only where the trial is invalid.")
    valid = models.BooleanField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(value__range=(0, 1)), name="outcome_value_range"),
            models.CheckConstraint(
                condition=Q(value__isnull=False) | Q(valid=False), name="outcome_valid_has_value"
            ),
            models.CheckConstraint(condition=Q(trial__gte=0), name="outcome_trial_not_negative"),
        ]
        triggers: ClassVar = [pgtrigger.Protect(name="outcome_is_append_only", operation=APPEND_ONLY)]

    def __str__(self) -> str:
        return f"trial {self.trial} on task {self.task_id}"


class OutcomeDetail(models.Model):
    """What else was delivered with an outcome; same key, a row only where there is something."""

    pk = models.CompositePrimaryKey("submission_id", "task_id", "setting_id", "trial")
    submission_id = models.IntegerField()
    task_id = models.IntegerField()
    setting_id = models.IntegerField()
    trial = models.SmallIntegerField()
    cost_usd = models.FloatField(null=True)
    n_input_tokens = models.BigIntegerField(null=True)
    n_output_tokens = models.BigIntegerField(null=True)
    seconds_environment = models.FloatField(null=True)
    seconds_execution = models.FloatField(null=True)
    seconds_scoring = models.FloatField(null=True)
    human = models.FloatField(null=True, help_text="Result according to people.")
    human_probability = models.FloatField(
        null=True, help_text="Probability that the task was sampled for human review."
    )
    metadata = models.JSONField(null=True)

    class Meta:
        triggers: ClassVar = [pgtrigger.Protect(name="outcomedetail_is_append_only", operation=APPEND_ONLY)]

    def __str__(self) -> str:
        return f"detail of trial {self.trial} on task {self.task_id}"


class IdempotencyKey(models.Model):
    """The stored answer to a request that a client may repeat."""

    user = models.ForeignKey(User, models.CASCADE, related_name="+")
    benchmark = models.ForeignKey(Benchmark, models.CASCADE, related_name="+")
    key = models.CharField(max_length=NAME_LENGTH)
    request_sha256 = models.BinaryField(max_length=32)
    status = models.PositiveSmallIntegerField(null=True)
    body = models.JSONField(null=True)
    submission = models.ForeignKey(Submission, models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "benchmark", "key"], name="idempotencykey_once")
        ]

    def __str__(self) -> str:
        return self.key
