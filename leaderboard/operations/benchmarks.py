"""A benchmark: its tasks from a list, what is said about it, its switches, and tasks that count no more."""

import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime

import pghistory
from django.core.exceptions import ValidationError
from django.core.validators import validate_slug
from django.db import models, transaction

from leaderboard.accounts.models import User
from leaderboard.called import PROGRAM
from leaderboard.catalog.models import TASKS_LISTED, Benchmark, Task, Visibility
from leaderboard.catalog.services import (
    N_NAMED,
    bump_shown_version,
    ensure_tasks,
    get_or_create_benchmark,
    grouped_tasks,
)
from leaderboard.errors import Conflict, Faulty, Missing, Refusal
from leaderboard.notify import wake
from leaderboard.operations.acting import AT_COMMAND_LINE, acting
from leaderboard.operations.queries import locked_benchmark
from leaderboard.submissions.parsing.flat import Fault, name_rule
from leaderboard.submissions.parsing.task_list import ListedTask
from leaderboard.submissions.services import append_changes, bump_data_version

DESCRIBED = ("title", "description", "url", "licence", "citation", "unit", "visibility")
NAMED = ("title", "licence", "unit")  # a line of text that can be seen


class Switch(models.TextChoices):
    """What an operator may turn on and off; the fields of a benchmark bear these names."""

    FROZEN = "frozen", "Intake frozen"
    HIDDEN = "hidden", "Hidden"
    FULL_RUNS_ONLY = "full_runs_only", "Full runs only"


@transaction.atomic
def create_benchmark(
    *, slug: str, title: str, tasks: Sequence[ListedTask], by: User | None, reason: str
) -> Benchmark:
    try:
        validate_slug(slug)
    except ValidationError:
        raise Refusal(
            "Invalid name for an address. Use letters, digits, - and _.", code="not_a_slug"
        ) from None
    if Benchmark.objects.filter(slug=slug).exists():
        raise Conflict("A benchmark with this name already exists.", code="slug_taken")
    with acting(by=by, reason=reason):
        list_tasks(slug=slug, tasks=tasks, by=by, reason=reason)
        benchmark = Benchmark.objects.get(slug=slug)
        describe_benchmark(benchmark=benchmark, values={"title": title}, by=by, reason=reason)
    benchmark.refresh_from_db()
    return benchmark


@transaction.atomic
def set_switch(
    *, benchmark: Benchmark, switch: Switch, on: bool, by: User | None, reason: str, as_of: datetime
) -> Benchmark:
    """Turn a switch on, which keeps the reason for all to see, or off."""
    locked = locked_benchmark(benchmark)
    if bool(getattr(locked, f"{switch}_at")) == on:
        raise Conflict("No change: it is already set like this.", code="already_so")
    with acting(by=by, reason=reason):
        setattr(locked, f"{switch}_at", as_of if on else None)
        setattr(locked, f"{switch}_reason", reason if on else "")
        locked.save(update_fields=[f"{switch}_at", f"{switch}_reason"])
        bump_shown_version(benchmark=locked)
    wake()
    return locked


@transaction.atomic
def list_tasks(
    *, slug: str, tasks: Sequence[ListedTask], by: User | None = None, reason: str = AT_COMMAND_LINE
) -> tuple[int, int, bool]:
    """Make the tasks that are new; give category and group where there is none, and the positions listed.

    Returns how many are new, how many are changed, and whether the benchmark is new.
    """
    with acting(by=by, reason=reason):
        benchmark, is_new = get_or_create_benchmark(slug=slug, title=slug)
        before = grouped_tasks(benchmark)
        n_new = ensure_tasks(benchmark=benchmark, categories={task.name: task.category for task in tasks})
        known = {task.name: task for task in benchmark.tasks.select_for_update(no_key=True).order_by("id")}
        if moved := [one for one in tasks if one.group and known[one.name].group not in ("", one.group)]:
            raise Conflict(
                "\n".join(
                    f"The task {one.name!r} is in the group {known[one.name].group!r}, but is listed in "
                    f"{one.group!r}."
                    for one in moved[:N_NAMED]
                ),
                code="task_in_another_group",
            )
        changed = []
        for listed in tasks:
            task = known[listed.name]
            position = task.position if listed.position is None else listed.position
            group = listed.group or task.group
            if (group, position) != (task.group, task.position):
                task.group, task.position = group, position
                changed.append(task)
        Task.objects.bulk_update(changed, ["group", "position"])
        regrouped = {name for name, one in before.items() if one != (known[name].category, known[name].group)}
        renewed = {task.name for task in changed} | regrouped
        n_changed = len(renewed & before.keys())
        if n_changed:
            bump_shown_version(benchmark=benchmark)
        if n_new or n_changed:
            pghistory.create_event(benchmark, label=TASKS_LISTED)
        append_changes(benchmark=benchmark, changes=[], tasks_came=n_new > 0 or bool(regrouped))
        return n_new, n_changed, is_new


@transaction.atomic
def describe_benchmark(
    *, benchmark: Benchmark, values: Mapping[str, str], by: User | None = None, reason: str = AT_COMMAND_LINE
) -> list[str]:
    """Set what is said of a benchmark and return the names of the fields that changed."""
    locked = locked_benchmark(benchmark)
    rule = f"unknown field; known: {', '.join(DESCRIBED)}"
    faults = [Fault(None, name, None, rule) for name in values if name not in DESCRIBED]
    changed = [name for name in DESCRIBED if name in values and getattr(locked, name) != values[name]]
    for name in changed:
        setattr(locked, name, values[name])
    if faults := [*faults, *_faults(locked, changed)]:
        raise Faulty("Nothing was changed.", faults=tuple(faults))
    if changed:
        with acting(by=by, reason=reason):
            locked.save(update_fields=changed)
        bump_shown_version(benchmark=locked)
    return changed


def _faults(benchmark: Benchmark, fields: Sequence[str]) -> list[Fault]:
    try:
        benchmark.clean_fields(exclude={f.name for f in Benchmark._meta.fields} - set(fields))
    except ValidationError as error:
        rules = {field: messages[0] for field, messages in error.message_dict.items()}
        if "visibility" in rules:
            rules["visibility"] = f"one of {', '.join(Visibility.values)}"
        return [Fault(None, field, getattr(benchmark, field)[:80], rule) for field, rule in rules.items()]
    texts = ((field, getattr(benchmark, field)) for field in NAMED if field in fields)
    return [Fault(None, field, text, rule) for field, text in texts if text and (rule := name_rule(text))]


def task_of(benchmark: Benchmark, name: str) -> Task:
    if task := benchmark.tasks.select_related("benchmark").filter(name=name).first():
        return task
    raise Missing(f"Unknown task {name!r} on {benchmark}. Check the spelling.", code="no_such_task")


@transaction.atomic
def retire(*, task: Task, by: User | None, reason: str, as_of: datetime) -> Task:
    """Let a task count no more, from now on: it leaves the subset, the full score and what complete means."""
    locked = _locked(task)
    if locked.retired_at:
        raise Conflict(
            f"{locked.name!r} is retired since {locked.retired_at:%Y-%m-%d}. To count it again: "
            f"{PROGRAM} retire {locked.benchmark} {shlex.quote(locked.name)} --restore --reason TEXT",
            code="retired_already",
        )
    if not locked.benchmark.tasks.filter(retired_at=None).exclude(pk=locked.pk).exists():
        raise Conflict(
            "This is the last task that counts; freeze or hide the benchmark instead.", code="last_task"
        )
    return _set(locked, retired_at=as_of, retired_reason=reason, by=by, reason=reason)


@transaction.atomic
def restore(*, task: Task, by: User | None, reason: str) -> Task:
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
