"""The rows of a subset that an operator approved. Nothing is computed: the proposal holds what is stored."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from leaderboard.catalog.models import Policy, Task
from leaderboard.studies.models import SubsetTask, TaskSubset


def activate(
    *,
    previous: TaskSubset,
    content: Mapping[str, Any],
    variant: str,
    estimator_version: int,
    policy: Policy,
    data_version: int,
    as_of: datetime,
) -> TaskSubset:
    """Store a variant of a proposal as the version after `previous`; part of the caller's transaction."""
    chosen = content["variants"][variant]
    subset = TaskSubset.objects.create(
        benchmark=previous.benchmark,
        number=previous.number + 1,
        policy=policy,
        data_version=data_version,
        estimator_version=estimator_version,
        provisional=False,
        strategy=content["strategy"],
        chosen_from=content["chosen_from"],
        compared=content["compared"],
        n_complete=content["n_complete"],
        n_tasks=content["n_tasks"],
        fixed_at=as_of,
        **{name: chosen[name] for name in ("lo", "hi", "widened", "reason")},
    )
    rates = dict(zip(chosen["tasks"], chosen["pass_rates"], strict=True))
    tasks = Task.objects.filter(benchmark=previous.benchmark, name__in=rates).order_by("name")
    SubsetTask.objects.bulk_create(
        SubsetTask(subset=subset, task=task, pass_rate=rates[task.name]) for task in tasks
    )
    return subset
