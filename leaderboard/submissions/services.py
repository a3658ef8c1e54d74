"""Writes to submissions. Each runs inside the caller's transaction, which ends with `append_changes`."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from django.db import connection

from leaderboard.accounts.models import User
from leaderboard.catalog.models import Benchmark, Task
from leaderboard.notify import wake
from leaderboard.submissions.copying import copy_in
from leaderboard.submissions.models import (
    COUNTING,
    Outcome,
    OutcomeDetail,
    Setting,
    Status,
    StatusChange,
    Submission,
)
from leaderboard.submissions.queries import settings_of
from leaderboard.submissions.rows import KEY, details_of


def ensure_settings(
    *, benchmark: Benchmark, settings: Iterable[tuple[Any, ...]]
) -> dict[tuple[Any, ...], int]:
    """Return the ids of these settings, those that are new included."""
    known = settings_of(benchmark)
    absent = [
        Setting(benchmark=benchmark, **dict(zip(Setting.FACETS, s, strict=True)))
        for s in settings
        if tuple(s) not in known
    ]
    if not absent:
        return known
    Setting.objects.bulk_create(absent, ignore_conflicts=True)
    return settings_of(benchmark)


def record_submission(
    *, submission: Submission, rows: pa.Table, by: User | None, reason: str = "", judged: str = ""
) -> StatusChange:
    """Store a submission and its outcomes, and return its first status, not yet appended to its history.

    The outcomes name tasks and settings without foreign keys, so the ids are checked here, once, and held
    by a lock until the transaction ends.
    """
    _hold(Task, pc.unique(rows["task"]).to_pylist())
    _hold(Setting, pc.unique(rows["setting"]).to_pylist())
    submission.save(force_insert=True)
    copy_in(_keyed(rows, submission, ["value", "valid"]), model=Outcome)
    if details := details_of(rows):
        copy_in(_keyed(details, submission, details.column_names[len(KEY) :]), model=OutcomeDetail)
    return StatusChange(
        submission=submission,
        status=submission.status,
        at=submission.received_at,
        by=by,
        reason=reason,
        judged=judged,
    )


def change_status(
    *,
    submissions: Sequence[Submission],
    status: Status,
    at: datetime,
    by: User | None,
    reason: str = "",
    after_board: bool = False,
    judged: str = "",
) -> list[StatusChange]:
    """Set the status and return what is to be appended to each submission's history."""
    Submission.objects.filter(pk__in=[s.pk for s in submissions]).update(status=status)
    return [
        StatusChange(
            submission=s,
            status=status,
            at=at,
            by=by,
            reason=reason,
            after_board=after_board and s.status == Status.ACCEPTED,
            judged=judged,
        )
        for s in submissions
    ]


def append_changes(
    *, benchmark: Benchmark, changes: Sequence[StatusChange], tasks_came: bool = False
) -> None:
    """Append to the history, under one new data version where what counts has changed.

    These are the last statements of a transaction: the row of the benchmark is locked from here on. Tasks
    that came with it bear the same version; tasks that got a category or group count as coming, too.
    """
    counting = [
        change
        for change in changes
        if change.status in COUNTING or change.submission.status == Status.ACCEPTED  # it had counted
    ]
    if counting or tasks_came:
        version = bump_data_version(benchmark=benchmark)
        for change in counting:
            change.data_version = version
        if tasks_came:
            benchmark.tasks.filter(since=None).update(since=version)
    StatusChange.objects.bulk_create(changes)


def carry_details(*, old: Sequence[Submission], new: Submission) -> None:
    """Copy the details of superseded outcomes to those that `new` took over unchanged."""
    key = {"submission_id", "task_id", "setting_id", "trial"}
    columns = ", ".join(f.name for f in OutcomeDetail._meta.concrete_fields if f.name not in key)
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            INSERT INTO submissions_outcomedetail (submission_id, task_id, setting_id, trial, {columns})
            SELECT n.submission_id, task_id, setting_id, trial, {columns}
            FROM submissions_outcomedetail d
            JOIN submissions_outcome o USING (submission_id, task_id, setting_id, trial)
            JOIN submissions_outcome n USING (task_id, setting_id, trial)
            WHERE o.submission_id = ANY(%s) AND n.submission_id = %s
                AND (n.value, n.valid) IS NOT DISTINCT FROM (o.value, o.valid)
            """,
            [[s.pk for s in old], new.pk],
        )


def bump_data_version(*, benchmark: Benchmark) -> int:
    """Say that the counted outcomes change, at the end of the transaction; return the version reached.

    The scheduler wakes when it is committed.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE catalog_benchmark SET data_version = data_version + 1 WHERE id = %s"
            " RETURNING data_version",
            [benchmark.pk],
        )
        (version,) = cursor.fetchone()
    wake()
    return int(version)


def _hold(model: type[Task] | type[Setting], ids: list[int]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT id FROM {model._meta.db_table} WHERE id = ANY(%s) ORDER BY id FOR KEY SHARE", [ids]
        )
        if cursor.rowcount != len(ids):
            raise RuntimeError(f"an outcome names a {model._meta.model_name} that does not exist")


def _keyed(rows: pa.Table, submission: Submission, columns: list[str]) -> pa.Table:
    ids = pa.repeat(pa.scalar(submission.pk, pa.int32()), rows.num_rows)
    key = {
        "submission_id": ids,
        "task_id": rows["task"],
        "setting_id": rows["setting"],
        "trial": rows["trial"],
    }
    return pa.table(key | {name: rows[name] for name in columns})
