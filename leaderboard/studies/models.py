"""Numbers computed from a stated data version: which tasks, how they calibrate, and agents' scores."""

from typing import ClassVar

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from leaderboard.catalog.models import APPEND_ONLY, Agent, Benchmark, Policy, Task

ESTIMATOR_VERSION = 2
"""Raised by hand whenever a change of the code changes a published number."""


class TaskSubset(models.Model):
    """A versioned selection of tasks. The highest number is the active one."""

    benchmark = models.ForeignKey(Benchmark, models.PROTECT, related_name="subsets")
    number = models.PositiveIntegerField()
    policy = models.ForeignKey(Policy, models.PROTECT, related_name="+")
    data_version = models.BigIntegerField()
    estimator_version = models.PositiveIntegerField()
    lo = models.FloatField()
    hi = models.FloatField()
    widened = models.BooleanField()
    provisional = models.BooleanField(
        help_text="Chosen from 5 to 14 complete agents; chosen anew as more come."
    )
    n_complete = models.PositiveIntegerField(help_text="Complete agents that the pass rates come from.")
    n_tasks = models.PositiveIntegerField(help_text="Active tasks it was chosen from.")
    reason = models.TextField()
    created_at = models.DateTimeField()
    tasks: models.ManyToManyField = models.ManyToManyField(Task, through="SubsetTask", related_name="subsets")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["benchmark", "number"], name="tasksubset_number_once"),
            models.CheckConstraint(
                condition=Q(lo__gte=0, hi__lte=1, lo__lt=F("hi")), name="tasksubset_band_in_order"
            ),
            models.CheckConstraint(condition=Q(n_complete__gte=5), name="tasksubset_enough_agents"),
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
    """The Ridge regression of the full score on the outcomes of a subset (STATISTICS §3)."""

    subset = models.ForeignKey(TaskSubset, models.PROTECT, related_name="calibrations")
    policy = models.ForeignKey(Policy, models.PROTECT, related_name="+")
    data_version = models.BigIntegerField()
    estimator_version = models.PositiveIntegerField()
    n_agents = models.PositiveIntegerField(help_text="Complete agents it was fitted to.")
    alpha = models.FloatField()
    intercept = models.FloatField()
    tasks = ArrayField(models.IntegerField(), help_text="Ids of the tasks, in the order of the coefficients.")
    coefficients = ArrayField(models.FloatField())
    column_means = ArrayField(models.FloatField(), help_text="What a missing cell is completed with.")
    agents = ArrayField(models.BigIntegerField(), help_text="Ids of the agents it was fitted to, by name.")
    residuals = ArrayField(
        models.FloatField(null=True),
        help_text="Leave-one-agent-out, selection repeated; empty where the fold gave no prediction.",
    )
    scaffold_residuals = ArrayField(
        models.FloatField(null=True), help_text="Leave-one-scaffold-out; empty likewise."
    )
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["subset", "policy", "data_version", "estimator_version"], name="calibration_once"
            ),
            models.CheckConstraint(
                condition=Q(
                    coefficients__len=F("tasks__len"),
                    column_means__len=F("tasks__len"),
                    agents__len=F("n_agents"),
                    residuals__len=F("n_agents"),
                    scaffold_residuals__len=F("n_agents"),
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
    data_version = models.BigIntegerField()
    estimator_version = models.PositiveIntegerField()
    result = models.JSONField()
    created_at = models.DateTimeField()

    class Meta:
        abstract = True
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["benchmark", "policy", "data_version", "estimator_version"], name="%(class)s_once"
            ),
        ]
        triggers: ClassVar = [pgtrigger.Protect(name="study_is_append_only", operation=APPEND_ONLY)]


class ValidationStudy(Study):
    """Nested validation: how well a subset ranks and scores like the whole (STATISTICS §4)."""

    def __str__(self) -> str:
        return f"validation of {self.benchmark} at data version {self.data_version}"


class VarianceStudy(Study):
    """Variance components of the outcomes, and what was never measured (STATISTICS §7)."""

    def __str__(self) -> str:
        return f"variance components of {self.benchmark} at data version {self.data_version}"


class DriftCheck(Study):
    """What the monitors of one subset said (STATISTICS §9)."""

    subset = models.ForeignKey(TaskSubset, models.PROTECT, null=True, related_name="drift_checks")

    class Meta(Study.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["benchmark", "policy", "subset", "data_version", "estimator_version"],
                nulls_distinct=False,
                name="driftcheck_once",
            ),
        ]

    def __str__(self) -> str:
        return f"drift of {self.subset} at data version {self.data_version}"


class AgentScores(models.Model):
    """An agent's mean and the moments of its trials on each task: derived from its outcomes, rebuildable.

    Outcomes never change, so the accepted submissions and the policy tell whether a row is still right.
    """

    agent = models.OneToOneField(Agent, models.CASCADE, primary_key=True, related_name="scores")
    policy = models.ForeignKey(Policy, models.PROTECT, related_name="+")
    submissions = ArrayField(models.IntegerField(), help_text="Ids of the submissions it was read from.")
    data_version = models.BigIntegerField(help_text="Of the benchmark when it was read.")
    tasks = ArrayField(
        models.IntegerField(), help_text="Ids of the active tasks, in ascending order of name."
    )
    means = ArrayField(models.FloatField(null=True), help_text="Empty where the agent has no valid trial.")
    n_valid = ArrayField(models.IntegerField())
    n_delivered = ArrayField(models.IntegerField(), help_text="Trials, those the harness failed included.")
    consistency = models.JSONField(help_text="Of its repeated trials; see studies.consistency.")
    trial_variances = ArrayField(
        models.FloatField(null=True), help_text="Of the trials of a task; empty where none was repeated."
    )
    n_trials = ArrayField(
        models.FloatField(null=True), help_text="The variance of a mean is that of a trial over this."
    )

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(
                    means__len=F("tasks__len"),
                    n_valid__len=F("tasks__len"),
                    n_delivered__len=F("tasks__len"),
                    trial_variances__len=F("tasks__len"),
                    n_trials__len=F("tasks__len"),
                ),
                name="agentscores_lengths_agree",
            ),
        ]

    def __str__(self) -> str:
        return f"scores of {self.agent}"
