"""Which tasks the ranking is made on: the band of mid-range difficulty, and when it is chosen anew."""

from datetime import datetime

import numpy as np
from django.db import transaction

from leaderboard.catalog.models import Benchmark, Strategy
from leaderboard.errors import Refusal
from leaderboard.studies.models import ESTIMATOR_VERSION, SubsetTask, TaskSubset
from leaderboard.studies.tables import Snapshot
from selection.bands import Band, latest_agents, table_band
from selection.errors import SelectionError
from selection.folds import generator
from selection.strategies import STRATEGIES, Training


def band_of(snapshot: Snapshot) -> Band:
    policy = snapshot.policy
    return table_band(
        snapshot.table, lo=policy.band_lo, hi=policy.band_hi, history_window=policy.history_window
    )


class NoChoice(Refusal):
    """The strategy of the policy chooses no subset of these tasks."""


def active_subset(benchmark: Benchmark) -> TaskSubset | None:
    return benchmark.subsets.order_by("-number").first()


def settle_subset(*, snapshot: Snapshot, band: Band, as_of: datetime) -> TaskSubset | None:
    """Return the subset that the ranking is made on; None means full runs.

    A stable subset stays until a reselection. A provisional one, chosen from 5 to 14 complete agents, is
    chosen anew whenever they change (docs/decisions/provisional-subset.md).

    Raises
    ------
    NoChoice
    """
    if snapshot.benchmark.full_runs_only_at:
        return None
    with transaction.atomic():
        Benchmark.objects.select_for_update(no_key=True).get(pk=snapshot.benchmark.pk)
        latest = active_subset(snapshot.benchmark)
        all_retired = latest and not np.isin(task_ids(latest), snapshot.task_ids).any()
        active = None if all_retired else latest
        if active and (not active.provisional or active.data_version > snapshot.data_version):
            return active
        if not band.suited:
            return None
        tasks = chosen_tasks(snapshot, band)
        if active and _is_same(active, band, snapshot, tasks):
            return active
        return _create(snapshot, band, tasks, number=latest.number + 1 if latest else 1, as_of=as_of)


def chosen_tasks(snapshot: Snapshot, band: Band) -> np.ndarray:
    """Positions of the tasks that the policy's strategy chooses, as many as the band holds."""
    policy = snapshot.policy
    if policy.strategy == Strategy.MID_RANGE:
        return band.tasks
    complete = np.flatnonzero(snapshot.table.complete())
    rows = complete[latest_agents([snapshot.table.dates[i] for i in complete], policy.history_window)]
    mask = np.isin(np.arange(snapshot.table.n_agents), rows)
    known = snapshot.table.restrict(agents=mask)
    training = Training.of(known.means, known.scores(), known.dates, lo=policy.band_lo, hi=policy.band_hi)
    try:
        rng = generator(policy.base_seed, policy.strategy, "subset")
        return STRATEGIES[policy.strategy](training, band.size, rng)
    except SelectionError as error:
        raise NoChoice(f"the strategy {policy.strategy} chooses no subset: {error}") from error


def task_ids(subset: TaskSubset) -> list[int]:
    """The ids of its tasks, in task order."""
    return list(subset.members.order_by("task__name").values_list("task_id", flat=True))


def _is_same(subset: TaskSubset, band: Band, snapshot: Snapshot, tasks: np.ndarray) -> bool:
    described = (subset.lo, subset.hi, subset.widened, subset.provisional)
    return (
        described == (band.lo, band.hi, band.widened, band.stage == "provisional")
        and task_ids(subset) == snapshot.task_ids[tasks].tolist()
    )


def _create(snapshot: Snapshot, band: Band, tasks: np.ndarray, *, number: int, as_of: datetime) -> TaskSubset:
    subset = TaskSubset.objects.create(
        benchmark=snapshot.benchmark,
        number=number,
        policy=snapshot.policy,
        data_version=snapshot.data_version,
        estimator_version=ESTIMATOR_VERSION,
        lo=band.lo,
        hi=band.hi,
        widened=band.widened,
        provisional=band.stage == "provisional",
        n_complete=band.n_complete,
        n_tasks=band.n_tasks,
        reason=band.reason,
        created_at=as_of,
    )
    SubsetTask.objects.bulk_create(
        SubsetTask(subset=subset, task_id=task, pass_rate=rate)
        for task, rate in zip(snapshot.task_ids[tasks].tolist(), band.pass_rates[tasks].tolist(), strict=True)
    )
    return subset
