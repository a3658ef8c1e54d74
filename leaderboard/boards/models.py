"""What is published: boards and their entries, frozen."""

from typing import ClassVar

import pgtrigger
from django.db import models
from django.db.models import Q

from leaderboard.catalog.models import APPEND_ONLY, NAME_LENGTH, Agent, Benchmark, Policy
from leaderboard.studies.models import Calibration, TaskSubset, ValidationStudy, VarianceStudy


class Phase(models.TextChoices):
    COLD_START = "cold_start"
    PROVISIONAL = "provisional"
    ONGOING = "ongoing"
    REVALIDATING = "revalidating"
    SATURATED = "saturated"
    UNSUITED = "unsuited"


class Board(models.Model):
    """One ranking. A benchmark is behind when its latest board does not carry its present key."""

    benchmark = models.ForeignKey(Benchmark, models.PROTECT, related_name="boards")
    number = models.PositiveIntegerField(help_text="Public; the latest is the highest.")
    data_version = models.BigIntegerField()
    policy = models.ForeignKey(
        Policy, models.PROTECT, related_name="+", help_text="In force when it was made."
    )
    rules = models.CharField(
        max_length=64, help_text="SHA-256 of what policy, switches and open requests say of the numbers."
    )
    subset = models.ForeignKey(
        TaskSubset, models.PROTECT, null=True, related_name="boards", help_text="Empty before one is fixed."
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
    target = models.CharField(max_length=8, help_text="What the board is ordered by.")
    n_tasks = models.PositiveIntegerField(help_text="Active tasks.")
    n_complete = models.PositiveIntegerField(help_text="Complete agents.")
    content = models.JSONField(help_text="What is known of it (`Standings.as_plain`), but for the agents.")
    digest = models.CharField(max_length=64, help_text="SHA-256 of the canonical JSON; see boards.signing.")
    published_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["benchmark", "number"], name="board_number_once"),
            models.CheckConstraint(condition=Q(phase__in=Phase.values), name="board_phase_known"),
        ]
        triggers: ClassVar = [pgtrigger.Protect(name="board_is_append_only", operation=APPEND_ONLY)]

    def __str__(self) -> str:
        return f"board {self.number} of {self.benchmark}"


class Entry(models.Model):
    """One agent on one board, as it was when the board was published."""

    board = models.ForeignKey(Board, models.PROTECT, related_name="entries")
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="entries")
    position = models.PositiveIntegerField(help_text="On the board; ties are told in these.")
    rank = models.PositiveIntegerField(null=True, help_text="For the target that the board is ordered by.")
    name = models.CharField(max_length=NAME_LENGTH)
    line = models.JSONField(help_text="What `Line` tells of it, but its name.")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["board", "agent"], name="entry_once"),
            models.UniqueConstraint(fields=["board", "position"], name="entry_position_once"),
        ]
        triggers: ClassVar = [pgtrigger.Protect(name="entry_is_append_only", operation=APPEND_ONLY)]

    def __str__(self) -> str:
        return f"{self.name} on {self.board}"
