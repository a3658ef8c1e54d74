"""What moves with a benchmark, and what its columns point to."""

from dataclasses import dataclass
from typing import Any

from django.db import models
from django.db.models import QuerySet

from leaderboard.accounts.models import User
from leaderboard.boards.models import Board, Entry
from leaderboard.catalog.models import Agent, AgentAlias, Benchmark, Model, Policy, Scaffold, Task
from leaderboard.operations.models import (
    Alert,
    Assignment,
    Dispute,
    Erasure,
    RerunAgent,
    RerunRequest,
    Reselection,
)
from leaderboard.studies.models import (
    Calibration,
    DriftCheck,
    StagedStudy,
    SubsetTask,
    TaskSubset,
    ValidationStudy,
    VarianceStudy,
)
from leaderboard.submissions.models import (
    AccountTrust,
    Approval,
    InvalidConfirmation,
    MachineCheck,
    Outcome,
    OutcomeDetail,
    Setting,
    StatusChange,
    Submission,
    Verification,
)

AnyModel = type[models.Model]
PATHS: dict[AnyModel, str] = {
    Benchmark: "pk",
    Policy: "benchmark",
    Task: "benchmark",
    Agent: "benchmark",
    AgentAlias: "benchmark",
    Setting: "benchmark",
    StagedStudy: "benchmark",
    Submission: "agent__benchmark",
    StatusChange: "submission__agent__benchmark",
    MachineCheck: "submission__agent__benchmark",
    InvalidConfirmation: "submission__agent__benchmark",
    Approval: "agent__benchmark",
    Verification: "submission__agent__benchmark",
    AccountTrust: "benchmark",
    Outcome: "submission_id__in",
    OutcomeDetail: "submission_id__in",
    TaskSubset: "benchmark",
    SubsetTask: "subset__benchmark",
    Calibration: "subset__benchmark",
    ValidationStudy: "benchmark",
    VarianceStudy: "benchmark",
    DriftCheck: "benchmark",
    Board: "benchmark",
    Entry: "board__benchmark",
    RerunRequest: "benchmark",
    RerunAgent: "request__benchmark",
    Assignment: "agent__benchmark",
    Assignment.submissions.through: "assignment__agent__benchmark",
    Alert: "benchmark",
    Reselection: "benchmark",
    Dispute: "benchmark",
    Erasure: "benchmark",
}
"""The tables that move, and from each the way to its benchmark."""

BY_NUMBER: dict[tuple[AnyModel, str], AnyModel] = {
    (Outcome, "submission_id"): Submission,
    (Outcome, "task_id"): Task,
    (Outcome, "setting_id"): Setting,
    (OutcomeDetail, "submission_id"): Submission,
    (OutcomeDetail, "task_id"): Task,
    (OutcomeDetail, "setting_id"): Setting,
    (Submission, "asked"): Task,
    (Submission, "study_id"): StagedStudy,
    (TaskSubset, "chosen_from"): Agent,
    (Calibration, "agents"): Agent,
    (Calibration, "tasks"): Task,
    (Assignment, "tasks"): Task,
    (Assignment, "audit"): Task,
}
"""Columns that hold ids, one or an array, without a foreign key."""

NAMED: dict[AnyModel, str] = {User: "email", Scaffold: "name", Model: "name"}
"""What both installations may have, and what it is found by."""

ABOUT = "about.json"


@dataclass(frozen=True)
class TransferSummary:
    """What a file holds."""

    benchmark: Benchmark
    n_boards: int
    n_outcomes: int
    n_accounts: int


def rows_of(model: AnyModel, benchmark: Benchmark) -> "QuerySet[Any]":
    mine: Any = benchmark.pk
    if model in (Outcome, OutcomeDetail):
        mine = Submission.objects.filter(agent__benchmark=benchmark).values("pk")
    return model._default_manager.filter(**{PATHS[model]: mine}).order_by("pk")


def columns(model: AnyModel) -> list[Any]:
    return list(model._meta.concrete_fields)


def is_numbered(model: AnyModel) -> bool:
    return isinstance(model._meta.pk, models.AutoField)


def table(model: AnyModel) -> str:
    return str(model._meta.db_table)


def transfer_summary(benchmark: Benchmark, *, n_accounts: int) -> TransferSummary:
    outcomes = rows_of(Submission, benchmark).aggregate(n=models.Sum("n_outcomes"))["n"]
    return TransferSummary(benchmark, benchmark.boards.count(), outcomes or 0, n_accounts)
