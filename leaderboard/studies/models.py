"""Numbers computed from a stated data version: which tasks, how they calibrate, and agents' scores."""

from typing import ClassVar

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from leaderboard.catalog.models import APPEND_ONLY, Agent, Benchmark, Estimator, Policy, Strategy, Task

ESTIMATOR_VERSION = 34
"""Raised by hand whenever a change of the code changes a published number."""


class TaskSubset(models.Model):
    """A version of S that was fixed. The highest number is active; before the first one S is a preview."""

    benchmark = models.ForeignKey(Benchmark, models.PROTECT, related_name="subsets")
    number = models.PositiveIntegerField()
    policy = models.ForeignKey(
        Policy, models.PROTECT, related_name="+", help_text="In force when it was fixed."
    )
    data_version = models.BigIntegerField(
        help_text="Reached with the delivery that fixed it, or the approval that activated it."
    )
    estimator_version = models.PositiveIntegerField()
    lo = models.FloatField()
    hi = models.FloatField()
    widened = models.BooleanField()
    provisional = models.BooleanField(help_text="Chosen from 5 to 14 complete agents.")
    strategy = models.CharField(max_length=16, choices=Strategy)
    chosen_from = ArrayField(models.BigIntegerField(), help_text="Ids of the complete agents, by name.")
    compared = models.JSONField(
        null=True,
        help_text="The conditions that are compared from then on, as a list of objects; "
        "empty where no condition varied.",
    )
    n_complete = models.PositiveIntegerField(help_text="Complete agents that it was chosen from.")
    n_tasks = models.PositiveIntegerField(help_text="Active tasks it was chosen from.")
    reason = models.TextField()
    fixed_at = models.DateTimeField(help_text="When that was.")
    tasks: models.ManyToManyField = models.ManyToManyField(Task, through="SubsetTask", related_name="subsets")

    VERSION_FIELDS = (
        "number",
        "lo",
        "hi",
        "widened",
        "provisional",
        "strategy",
        "reason",
        "n_complete",
        "n_tasks",
    )

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["benchmark", "number"], name="tasksubset_number_once"),
            models.CheckConstraint(
                condition=Q(lo__gte=0, hi__lte=1, lo__lt=F("hi")), name="tasksubset_band_in_order"
            ),
            models.CheckConstraint(
                condition=Q(n_complete__gte=5, chosen_from__len=F("n_complete")),
                name="tasksubset_enough_agents",
            ),
            models.CheckConstraint(
                condition=Q(strategy__in=Strategy.values), name="tasksubset_strategy_known"
            ),
        ]
        triggers: ClassVar = [pgtrigger.Protect(name="tasksubset_is_append_only", operation=APPEND_ONLY)]

    def __str__(self) -> str:
        return f"subset {self.number} of {self.benchmark}"


class SubsetTask(models.Model):
    subset = models.ForeignKey(TaskSubset, models.PROTECT, related_name="members")
    task = models.ForeignKey(Task, models.PROTECT, related_name="memberships")
    pass_rate = models.FloatField(help_text="When it was chosen.")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["subset", "task"], name="subsettask_once"),
            models.CheckConstraint(condition=Q(pass_rate__range=(0, 1)), name="subsettask_pass_rate_range"),
        ]
        triggers: ClassVar = [pgtrigger.Protect(name="subsettask_is_append_only", operation=APPEND_ONLY)]

    def __str__(self) -> str:
        return f"{self.task} in {self.subset}"


class Calibration(models.Model):
    """On whom the full score was calibrated at a delivery, and how far off it was."""

    subset = models.ForeignKey(TaskSubset, models.PROTECT, related_name="calibrations")
    policy = models.ForeignKey(
        Policy, models.PROTECT, related_name="+", help_text="In force at the delivery that it was fitted at."
    )
    data_version = models.BigIntegerField(help_text="Reached with the delivery that it was fitted at.")
    active = models.CharField(max_length=64, help_text="SHA-256 of the ids of the active tasks.")
    estimator_version = models.PositiveIntegerField()
    estimator = models.CharField(max_length=16, choices=Estimator)
    n_agents = models.PositiveIntegerField(help_text="Complete agents it was fitted to.")
    agents = ArrayField(models.BigIntegerField(), help_text="Their ids, by name.")
    dates = ArrayField(models.DateField(null=True), help_text="Theirs, as stated then.")
    tasks = ArrayField(models.IntegerField(), help_text="Ids of the active tasks of the subset, by name.")
    residuals = ArrayField(
        models.FloatField(null=True),
        help_text="Leave-one-agent-out, selection repeated; empty where the fold gave no prediction.",
    )
    scaffold_residuals = ArrayField(
        models.FloatField(null=True), help_text="Leave-one-scaffold-out; empty likewise."
    )
    in_time = ArrayField(
        models.FloatField(null=True),
        help_text="Each agent predicted from those of strictly earlier dates; empty likewise.",
    )

    ridge = models.JSONField(
        null=True, help_text="Intercept, coefficients and means of the columns; null where it is no `ridge`."
    )

    OF_AGENTS = ("dates", "residuals", "scaffold_residuals", "in_time")  # one for each agent

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["subset", "data_version", "active", "estimator_version"], name="calibration_once"
            ),
            models.CheckConstraint(
                condition=Q(
                    agents__len=F("n_agents"),
                    dates__len=F("n_agents"),
                    residuals__len=F("n_agents"),
                    scaffold_residuals__len=F("n_agents"),
                    in_time__len=F("n_agents"),
                ),
                name="calibration_lengths_agree",
            ),
        ]
        triggers: ClassVar = [pgtrigger.Protect(name="calibration_is_append_only", operation=APPEND_ONLY)]

    def __str__(self) -> str:
        return f"calibration of {self.subset} on {self.n_agents} agents"


class Study(models.Model):
    """A study of the whole benchmark on one data version, kept as the core's own JSON."""

    benchmark = models.ForeignKey(Benchmark, models.PROTECT, related_name="%(class)s_set")
    policy = models.ForeignKey(Policy, models.PROTECT, related_name="+")
    rules = models.CharField(max_length=64, help_text="SHA-256 of what the policy says of numbers.")
    data_version = models.BigIntegerField()
    estimator_version = models.PositiveIntegerField()
    result = models.JSONField()
    created_at = models.DateTimeField()

    class Meta:
        abstract = True
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["benchmark", "rules", "data_version", "estimator_version"], name="%(class)s_once"
            )
        ]
        triggers: ClassVar = [pgtrigger.Protect(name="study_is_append_only", operation=APPEND_ONLY)]


class ValidationStudy(Study):
    """Nested validation: how well a subset ranks and scores like the whole."""

    def __str__(self) -> str:
        return f"validation of {self.benchmark} at data version {self.data_version}"


class VarianceStudy(Study):
    """Variance components of the outcomes, and what was never measured."""

    def __str__(self) -> str:
        return f"variance components of {self.benchmark} at data version {self.data_version}"


class StagedStudy(Study):
    """The fit that staged assignments rest on, or why there are none."""

    def __str__(self) -> str:
        return f"staged assignment on {self.benchmark} at data version {self.data_version}"


class DriftCheck(Study):
    """What the monitors of one subset said."""

    subset = models.ForeignKey(TaskSubset, models.PROTECT, null=True, related_name="drift_checks")

    class Meta(Study.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["benchmark", "rules", "subset", "data_version", "estimator_version"],
                nulls_distinct=False,
                name="driftcheck_once",
            )
        ]

    def __str__(self) -> str:
        return f"drift of {self.subset} at data version {self.data_version}"


class AgentScores(models.Model):
    """An agent's part of the record (`analytics.record.AgentRow`): derived from its outcomes, rebuildable.

    Outcomes never change, so what decides the row tells whether it is still right.
    """

    agent = models.OneToOneField(Agent, models.CASCADE, primary_key=True, related_name="scores")
    key = models.CharField(
        max_length=64,
        help_text="SHA-256 of what decides it: its deliveries, the active tasks, how outcomes are counted.",
    )
    under = models.CharField(max_length=64, help_text="SHA-256 of the conditions that are compared.")
    data_version = models.BigIntegerField(help_text="Of the benchmark when it was read.")
    n_tasks = models.PositiveIntegerField(help_text="Active tasks, in ascending order of name.")
    arrays = models.BinaryField(help_text="Little-endian, one after the other; see studies.record_cache.")
    content = models.JSONField(help_text="What is no array.")

    def __str__(self) -> str:
        return f"scores of {self.agent}"


class VerifiedReference(models.Model):
    """What verified agents did, by which deliveries are judged (`selection.plausibility`): rebuildable."""

    benchmark = models.OneToOneField(
        Benchmark, models.CASCADE, primary_key=True, related_name="verified_reference"
    )
    sha256 = models.CharField(
        max_length=64, help_text="Of tasks and means, to tell whether it is still right."
    )
    tasks = ArrayField(models.IntegerField(), help_text="Ids of the active tasks, by name.")
    n_agents = models.PositiveIntegerField()
    is_pass_fail = models.BooleanField(help_text="No outcome of theirs lies between 0 and 1.")
    judged_upto = models.BigIntegerField(
        default=-1, help_text="Data version up to which deliveries were judged by who was verified then."
    )
    arrays = models.BinaryField(help_text="Means by agent, then difficulties: little-endian, compressed.")

    def __str__(self) -> str:
        return f"{self.n_agents} verified agents of {self.benchmark}"
