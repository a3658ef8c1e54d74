"""What an agent without an assignment is asked to run, and what a delivery lacks of it."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from leaderboard.catalog.models import Benchmark, MissingPlaces, Policy
from leaderboard.catalog.queries import active_tasks
from leaderboard.studies.queries import active_subset

N_NAMED = 10


def asked_tasks(benchmark: Benchmark) -> list[int] | None:
    """Return the ids of the active tasks of the subset once it is fixed; None: all active tasks are asked."""
    subset = None if benchmark.full_runs_only_at else active_subset(benchmark)
    if subset is None:
        return None
    return list(subset.tasks.filter(retired_at=None).order_by("name").values_list("id", flat=True)) or None


def names_asked(policy: Policy, asked: Collection[int] | None) -> dict[int, str]:
    """The names of the tasks asked for by id, in task order."""
    tasks = active_tasks(policy.benchmark)
    if asked is not None:
        tasks = tasks.filter(pk__in=asked)
    elif policy.universe is not None:
        tasks = tasks.filter(name__in=policy.universe)
    return dict(tasks.values_list("id", "name"))


def n_outside(rows: pa.Table, asked: Collection[int] | None) -> int:
    """How many of the outcomes lie on tasks that were not asked for."""
    return 0 if asked is None else int(np.count_nonzero(~np.isin(rows["task"].to_numpy(), list(asked))))


def lacking(
    outcomes: pa.Table, names: Mapping[int, str], missing: str, *, unranked: bool = True
) -> Iterator[str]:
    """Say what an agent's outcomes lack of the tasks asked for, whose names these are, what becomes of it by
    the policy on `missing` outcomes, and trials that cannot count because other tasks have fewer.

    Not `unranked`: these are the rest of a full run, without which the agent stands where it stood.
    """
    delivered = set(outcomes["task"].to_pylist())
    absent = [name for pk, name in names.items() if pk not in delivered]
    if absent:
        meanwhile = (
            "its score on all tasks is estimated"
            if not unranked
            else "they count as failures"
            if missing == MissingPlaces.ZERO
            else "the agent is listed without a rank"
        )
        yield (
            f"{len(absent):,} of the {len(names):,} tasks asked for {'has' if len(absent) == 1 else 'have'} "
            f"no outcome ({_first(absent)}): until all are delivered, {meanwhile}"
        )
    yield from _uneven(outcomes, names)


def _uneven(outcomes: pa.Table, names: Mapping[int, str]) -> Iterator[str]:
    pairs = zip(outcomes["task"].to_pylist(), outcomes["condition"].to_pylist(), strict=True)
    n_trials = Counter(pair for pair in pairs if pair[0] in names)
    fewest = min(n_trials.values(), default=0)
    if fewest == max(n_trials.values(), default=0):
        return
    few = sorted({names[task] for (task, _), n in n_trials.items() if n == fewest})
    counting = "trial counts" if fewest == 1 else f"{fewest:,} trials count"
    yield (
        f"tasks have from {fewest:,} to {max(n_trials.values()):,} trials: on each only the first {counting},"
        f" as many as there are of the fewest ({_first(few)})"
    )


def _first(names: Sequence[str]) -> str:
    more = f" and {len(names) - N_NAMED:,} more" if len(names) > N_NAMED else ""
    return ", ".join(map(repr, names[:N_NAMED])) + more
