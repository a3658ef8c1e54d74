"""What was decided about a benchmark, as a file beside its outcomes, and back from it.

Outcomes alone do not say which tasks new agents were asked to run, under which rules, and on whom estimates
were calibrated: that followed from the order in which deliveries came. Loaded with this file they give the
same board (`boards.signing.digest`). `subsets` has the form that `python -m selection … --subsets FILE`
takes.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime
from operator import methodcaller
from typing import Any

from django.db import transaction

from leaderboard.catalog.models import Benchmark, Policy, Task
from leaderboard.catalog.queries import active_tasks, policy_in_force
from leaderboard.errors import Conflict, Refusal
from leaderboard.studies.models import ESTIMATOR_VERSION, Calibration, SubsetTask, TaskSubset
from leaderboard.studies.queries import active_subset, tasks_sha256
from leaderboard.studies.rules import FIELDS, policy_values
from selection.ridge import RidgeFit


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


OF_TASK = ("name", "category", "group")
OF_RETIRED = (*OF_TASK, "retired_at", "retired_reason")


def versions_file(benchmark: Benchmark) -> dict[str, Any]:
    subset = active_subset(benchmark)
    known = list(benchmark.subsets.order_by("number"))
    agents = dict(benchmark.agents.values_list("id", "name"))
    in_some = benchmark.tasks.filter(subsets__in=known)  # version
    retired = in_some.exclude(retired_at=None).distinct().order_by("name")
    return {
        "benchmark": benchmark.slug,
        "data_version": benchmark.data_version,
        "estimator_version": ESTIMATOR_VERSION,
        "policy": policy_values(policy_in_force(benchmark)),
        "tasks": [{name: getattr(task, name) for name in OF_TASK} for task in active_tasks(benchmark)],
        "retired": [_plain({name: getattr(task, name) for name in OF_RETIRED}) for task in retired],
        "subsets": [_version(one, agents) for one in known],
        "compared": [one.compared for one in known],
        "pass_rates": [dict(one.members.values_list("task__name", "pass_rate")) for one in known],
        "calibration": _calibration(subset) if subset else None,
    }


def _version(subset: TaskSubset, agents: Mapping[int, str]) -> dict[str, Any]:
    version = {name: getattr(subset, name) for name in TaskSubset.VERSION_FIELDS}
    return version | {
        "tasks": list(subset.members.order_by("task__name").values_list("task__name", flat=True)),
        "chosen_from": sorted(agents[pk] for pk in subset.chosen_from),
        "arrival": subset.data_version,
        "fixed_on": subset.fixed_at.date().isoformat(),
    }


def _calibration(subset: TaskSubset) -> dict[str, Any] | None:
    """The one in use; those on other active tasks are made anew."""
    fitted = subset.calibrations.filter(
        estimator_version=ESTIMATOR_VERSION, active=tasks_sha256(_active_ids(subset.benchmark))
    )
    last = fitted.order_by("-data_version", "id").first()
    if last is None:
        return None
    agents = dict(subset.benchmark.agents.values_list("id", "name"))
    tasks = dict(subset.benchmark.tasks.values_list("id", "name"))
    content: dict[str, Any] = {name: list(getattr(last, name)) for name in Calibration.OF_AGENTS}
    return _plain(
        content
        | {
            "estimator": last.estimator,
            "ridge": last.ridge,
            "agents": [agents[pk] for pk in last.agents],
            "tasks": [tasks[pk] for pk in last.tasks],
        }
    )


def _active_ids(benchmark: Benchmark) -> list[int]:
    return list(active_tasks(benchmark).values_list("id", flat=True))


def _plain(content: Mapping[str, Any]) -> dict[str, Any]:
    """The same with dates as text and tuples as lists."""
    plain: dict[str, Any] = json.loads(json.dumps(content, default=methodcaller("isoformat")))
    return plain


# ------------------------------------------------------------------------------------------ from the file


@transaction.atomic
def import_versions(*, benchmark: Benchmark, content: Any) -> Policy | None:
    """Store the versions and the calibration of a file whose outcomes were just loaded into this benchmark.

    They stand as if decided with what was loaded. Returns the file's policy, not yet stored, where it is
    another one than that in force.
    """
    if benchmark.subsets.exists():
        raise Conflict(
            "This benchmark has subset versions of its own; those of a file go into a new benchmark only.",
            code="has_versions",
        )
    with _reading():
        before, values = policy_in_force(benchmark), {name: content["policy"][name] for name in FIELDS}
        is_same, made_by = values == policy_values(before), content["estimator_version"]
    if made_by != ESTIMATOR_VERSION:
        raise Conflict(
            "The file was written by another version of the estimators, whose numbers are others.",
            code="other_estimators",
        )
    with _reading():
        known = set(benchmark.tasks.values_list("name", flat=True))
        tasks = [one for one in (*content["tasks"], *content["retired"]) if one["name"] not in known]
        Task.objects.bulk_create(Task(benchmark=benchmark, **one) for one in tasks)
        subset = _versions(benchmark, content)
        if subset and content["calibration"]:
            _store_calibration(subset, content["calibration"])
    return None if is_same else Policy(benchmark=benchmark, number=before.number + 1, **values)


def versions_in(text: bytes) -> Any:
    with _reading():
        return json.loads(text)


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        message = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise Refusal(
            f"This is not a file of subset versions: {message}. Give the one that "
            "`export --with-subsets` wrote.",
            code="no_versions_file",
        ) from error


def _versions(benchmark: Benchmark, content: Any) -> TaskSubset | None:
    agents = dict(benchmark.agents.values_list("name", "id"))
    tasks = dict(benchmark.tasks.values_list("name", "id"))
    subset = None
    both = zip(content["subsets"], content["compared"], content["pass_rates"], strict=True)
    for version, compared, rates in both:
        subset = TaskSubset.objects.create(
            benchmark=benchmark,
            policy=policy_in_force(benchmark),
            data_version=benchmark.data_version,
            estimator_version=ESTIMATOR_VERSION,
            chosen_from=[agents[name] for name in version["chosen_from"]],
            compared=compared,
            fixed_at=datetime.fromisoformat(f"{version['fixed_on']}T00:00+00:00"),
            **{name: version[name] for name in TaskSubset.VERSION_FIELDS},
        )
        SubsetTask.objects.bulk_create(
            SubsetTask(subset=subset, task_id=tasks[name], pass_rate=rates[name]) for name in version["tasks"]
        )
    return subset


def _store_calibration(subset: TaskSubset, content: Mapping[str, Any]) -> None:
    agents = dict(subset.benchmark.agents.values_list("name", "id"))
    tasks = dict(subset.benchmark.tasks.values_list("name", "id"))
    dates = [day and date.fromisoformat(day) for day in content["dates"]]
    Calibration.objects.create(
        subset=subset,
        policy=subset.policy,
        data_version=subset.data_version,
        active=tasks_sha256(_active_ids(subset.benchmark)),
        estimator_version=ESTIMATOR_VERSION,
        estimator=content["estimator"],
        ridge=content["ridge"] and RidgeFit.of_plain(content["ridge"]).as_plain(),
        n_agents=len(content["agents"]),
        agents=[agents[name] for name in content["agents"]],
        tasks=[tasks[name] for name in content["tasks"]],
        **{name: content[name] for name in Calibration.OF_AGENTS} | {"dates": dates},
    )
