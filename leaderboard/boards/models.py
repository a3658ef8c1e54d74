"""What is published: boards and their entries, frozen."""

from typing import ClassVar

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from leaderboard.catalog.models import APPEND_ONLY, NAME_LENGTH, Agent, Benchmark, Policy
from leaderboard.studies.models import Calibration, TaskSubset, ValidationStudy, VarianceStudy


class Phase(models.TextChoices):
    COLD_START = "cold_start"
    PROVISIONAL = "provisional"
    ONGOING = "ongoing"
    UNSUITED = "unsuited"


class Board(models.Model):
    """One ranking. A benchmark is behind when no board carries its present key."""

    benchmark = models.ForeignKey(Benchmark, models.PROTECT, related_name="boards")
    number = models.PositiveIntegerField(help_text="Public; the latest is the highest.")
    data_version = models.BigIntegerField()
    policy = models.ForeignKey(Policy, models.PROTECT, related_name="+")
    subset = models.ForeignKey(
        TaskSubset, models.PROTECT, null=True, related_name="boards", help_text="Empty under full runs."
    )
    estimator_version = models.PositiveIntegerField()
    calibration = models.ForeignKey(Calibration, models.PROTECT, null=True, related_name="boards")
    validation = models.ForeignKey(
        ValidationStudy, models.PROTECT, null=True, related_name="boards", help_text="The latest there was."
    )
    variance = models.ForeignKey(
        VarianceStudy, models.PROTECT, null=True, related_name="boards", help_text="The latest there was."
    )
    phase = models.CharField(max_length=16, choices=Phase)
    why = models.TextField(help_text="The phase in a sentence.")
    n_tasks = models.PositiveIntegerField(help_text="Active tasks.")
    n_complete = models.PositiveIntegerField(help_text="Complete agents.")
    targets = models.JSONField(
        default=dict, help_text="For each target what its intervals cover, how they were made, or why not."
    )
    not_measured = models.JSONField(default=list, help_text="Sources of error without an estimate, in words.")
    savings = models.JSONField(default=dict, help_text="Tasks and money that the subset saves.")
    digest = models.CharField(max_length=64, help_text="SHA-256 of the canonical JSON; see boards.digest.")
    published_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["benchmark", "number"], name="board_number_once"),
            models.UniqueConstraint(
                fields=["benchmark", "data_version", "policy", "subset", "estimator_version"],
                nulls_distinct=False,
                name="board_key_once",
            ),
            models.CheckConstraint(condition=Q(phase__in=Phase.values), name="board_phase_known"),
        ]
        triggers: ClassVar = [pgtrigger.Protect(name="board_is_append_only", operation=APPEND_ONLY)]

    def __str__(self) -> str:
        return f"board {self.number} of {self.benchmark}"


class FullScoreSource(models.TextChoices):
    MEASURED = "measured"
    CALIBRATED = "calibrated"


class Entry(models.Model):
    """One agent on one board, as it was when the board was published."""

    board = models.ForeignKey(Board, models.PROTECT, related_name="entries")
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="entries")
    name = models.CharField(max_length=NAME_LENGTH)
    scaffold = models.CharField(max_length=NAME_LENGTH)
    model = models.CharField(max_length=NAME_LENGTH)
    submitted_at = models.DateTimeField(null=True)
    rank = models.PositiveIntegerField(null=True, help_text="Empty: listed, not ranked; `unranked` says why.")
    unranked = models.TextField(blank=True)
    score = models.FloatField(
        null=True, help_text="What the rank comes from: the mean over the ranked tasks."
    )
    naive_se = models.FloatField(null=True, help_text="√(p(1−p)/n) of the score.")
    n_scored = models.PositiveIntegerField(help_text="Ranked tasks with a valid trial.")
    full_score = models.FloatField(null=True)
    full_score_source = models.CharField(max_length=16, choices=FullScoreSource, blank=True)
    full_naive_se = models.FloatField(null=True, help_text="Of a measured full score.")
    full_interval = models.JSONField(
        null=True, help_text="Lower and upper end of a calibrated full score and their source, or why none."
    )
    n_full = models.PositiveIntegerField(help_text="Active tasks with a valid trial.")
    n_valid_trials = models.PositiveIntegerField()
    n_submissions = models.PositiveIntegerField()
    targets = models.JSONField(
        default=dict, help_text="For each target: estimate, standard error, rank interval, tied with whom."
    )
    icc = models.JSONField(null=True, help_text="Intraclass correlation over repeated trials, or why none.")
    flags = models.JSONField(default=list, help_text="What an operator should look at, in words.")
    marks = ArrayField(models.CharField(max_length=16), default=list)

    # What is computed, in the order in which it is told.
    COMPUTED = (
        "rank",
        "unranked",
        "score",
        "naive_se",
        "n_scored",
        "full_score",
        "full_score_source",
        "full_naive_se",
        "full_interval",
        "n_full",
        "n_valid_trials",
        "n_submissions",
        "targets",
        "icc",
        "flags",
        "marks",
    )

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["board", "agent"], name="entry_once"),
            models.CheckConstraint(
                condition=Q(rank__isnull=False, score__isnull=False, unranked="")
                | Q(Q(rank__isnull=True), ~Q(unranked="")),
                name="entry_ranked_or_says_why",
            ),
            models.CheckConstraint(
                condition=Q(full_score__isnull=True, full_score_source="")
                | Q(full_score__isnull=False, full_score_source__in=FullScoreSource.values),
                name="entry_full_score_has_source",
            ),
        ]
        triggers: ClassVar = [pgtrigger.Protect(name="entry_is_append_only", operation=APPEND_ONLY)]

    def __str__(self) -> str:
        return f"{self.name} on {self.board}"
