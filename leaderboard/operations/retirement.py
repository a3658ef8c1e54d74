"""Taking a broken task out of the count, and back; each changes what is counted, and so the data version.

A retired task leaves the subset, the full score and what complete means. Its outcomes stay stored, and count
again once it is restored.
"""

from datetime import datetime

from django.db import transaction

from leaderboard.accounts.models import User
from leaderboard.catalog.models import Benchmark, Task
from leaderboard.errors import Conflict, Missing
from leaderboard.operations.acting import acting
from leaderboard.submissions.services import bump_data_version


def task_of(benchmark: Benchmark, name: str) -> Task:
    if task := benchmark.tasks.select_related("benchmark").filter(name=name).first():
        return task
    raise Missing(f"There is no task {name!r} on {benchmark}.", code="no_such_task")


@transaction.atomic
def retire(*, task: Task, by: User | None, reason: str, as_of: datetime) -> Task:
    """Let a task count no more, from now on."""
    locked = _locked(task)
    if locked.retired_at:
        raise Conflict(
            f"{locked.name!r} is retired since {locked.retired_at:%Y-%m-%d}.", code="retired_already"
        )
    if not locked.benchmark.tasks.filter(retired_at=None).exclude(pk=locked.pk).exists():
        raise Conflict(
            "This is the last task that counts; freeze or hide the benchmark instead.", code="last_task"
        )
    return _set(locked, retired_at=as_of, retired_reason=reason, by=by, reason=reason)


@transaction.atomic
def restore(*, task: Task, by: User | None, reason: str) -> Task:
    """Let a retired task count again, with the outcomes that it has."""
    locked = _locked(task)
    if not locked.retired_at:
        raise Conflict("This task is not retired.", code="not_retired")
    return _set(locked, retired_at=None, retired_reason="", by=by, reason=reason)


def _locked(task: Task) -> Task:
    locked = Task.objects.select_for_update(no_key=True, of=("self",)).select_related("benchmark")
    return locked.get(pk=task.pk)


def _set(
    task: Task, *, retired_at: datetime | None, retired_reason: str, by: User | None, reason: str
) -> Task:
    with acting(by=by, reason=reason):
        task.retired_at, task.retired_reason = retired_at, retired_reason
        task.save(update_fields=["retired_at", "retired_reason"])
        bump_data_version(benchmark=task.benchmark)
    return task
