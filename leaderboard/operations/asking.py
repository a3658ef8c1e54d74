"""What an agent without an assignment is asked to run, and what a delivery lacks of it."""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from leaderboard.catalog.models import Assigning, Benchmark, MissingPlaces, Policy
from leaderboard.catalog.queries import active_tasks, policy_in_force
from leaderboard.studies.queries import active_subset

N_NAMED = 10
IN_ORDER = "earlier deliveries come first, and the lowest outcomes of one that is no whole run"


def asked_tasks(benchmark: Benchmark) -> list[int] | None:
    """Return the ids of the active tasks of the subset once it is fixed; None: all active tasks are asked.

    The subset alone is asked for where the policy says so; under staged assignment who asks for no batches
    runs all tasks.
    """
    if benchmark.full_runs_only_at or policy_in_force(benchmark).assignment != Assigning.SUBSET:
        return None
    if (subset := active_subset(benchmark)) is None:
        return None
    return list(subset.tasks.filter(retired_at=None).order_by("name").values_list("id", flat=True)) or None


def names_asked(policy: Policy, task_ids: Collection[int] | None) -> dict[int, str]:
    """The names of the tasks asked for by id, in task order."""
    return names_among(dict(active_tasks(policy.benchmark).values_list("id", "name")), policy, task_ids)


def names_among(
    active: Mapping[int, str], policy: Policy, task_ids: Collection[int] | None
) -> dict[int, str]:
    """Do the same with the names of the active tasks."""
    if task_ids is not None:
        wanted = set(task_ids)
        return {pk: name for pk, name in active.items() if pk in wanted}
    universe = None if policy.universe is None else set(policy.universe)
    return {pk: name for pk, name in active.items() if universe is None or name in universe}


def n_outside(rows: pa.Table, task_ids: Collection[int] | None) -> int:
    """How many of the outcomes lie on tasks that were not asked for."""
    return 0 if task_ids is None else int(np.count_nonzero(~np.isin(rows["task"].to_numpy(), list(task_ids))))


def in_blocks(named: Iterable[Collection[int] | None], names: Mapping[int, str]) -> list[dict[int, str]]:
    """Divide tasks by the delivery, in their order, with which each was first asked for.

    `names` are those of all active tasks; they are one block where no delivery names any.
    """
    left, blocks = dict(names), []
    for block in named:
        if own := {pk: left.pop(pk) for pk in block or () if pk in left}:
            blocks.append(own)
    return blocks or [left]


def lacking(
    outcomes: pa.Table,
    names: Mapping[int, str],
    blocks: Sequence[Mapping[int, str]],
    missing: str,
    *,
    unranked: bool = True,
) -> Iterator[str]:
    """Say what an agent's outcomes lack of the tasks asked for, and which of its trials cannot count."""
    yield from absent(outcomes, names, missing, unranked=unranked)
    for block in blocks:
        yield from uneven(outcomes, block, missing)


def absent(
    outcomes: pa.Table, names: Mapping[int, str], missing: str, *, unranked: bool = True
) -> Iterator[str]:
    """Say which of the tasks asked for, whose names these are, have no outcome, and what becomes of that by
    the policy on `missing` outcomes.

    `outcomes` has a row for each task and condition, null where it is not compared, with the number `n` of
    its outcomes. Not `unranked`: these are the rest of a full run, without which the agent stands where it
    stood.
    """
    delivered = set(outcomes["task"].to_pylist())
    lacks = [name for pk, name in names.items() if pk not in delivered]
    if lacks:
        meanwhile = (
            "its score on all tasks is estimated"
            if not unranked
            else "they count as failures, each as often as the task with the most trials was run"
            if missing == MissingPlaces.ZERO
            else "the agent is listed without a rank"
        )
        yield (
            f"{len(lacks):,} of the {len(names):,} tasks asked for {'has' if len(lacks) == 1 else 'have'} "
            f"no outcome ({first(lacks)}): until all are delivered, {meanwhile}"
        )


def trials(outcomes: pa.Table, tasks: Container[int]) -> dict[tuple[int, str], int]:
    """How many trials there are of these tasks under each condition compared."""
    triples = zip(*(outcomes[name].to_pylist() for name in ("task", "condition", "n")), strict=True)
    return {(task, one): n for task, one, n in triples if one is not None and task in tasks}


def uneven(
    outcomes: pa.Table, names: Mapping[int, str], missing: str, *, what: str = "tasks"
) -> Iterator[str]:
    """Say which trials cannot count because others of these tasks have fewer, or which count as failures."""
    n_trials = trials(outcomes, names)
    fewest = min(n_trials.values(), default=0)
    if fewest == max(n_trials.values(), default=0):
        return
    few = sorted({names[task] for (task, _), n in n_trials.items() if n == fewest})
    of_some = f"{what} have from {fewest:,} to {max(n_trials.values()):,} trials"
    if missing == MissingPlaces.ZERO and names.keys() - {task for task, _ in n_trials}:
        yield f"{of_some}, and others none: until all are delivered, what is absent counts as failed"
        return
    yield (
        f"{of_some}: on each only {counting(fewest)}, as many as there are of the fewest ({first(few)}); "
        f"{IN_ORDER}"
    )


def counting(n: int) -> str:
    return "one trial counts" if n == 1 else f"{n:,} trials count"


def first(names: Sequence[str]) -> str:
    more = f" and {len(names) - N_NAMED:,} more" if len(names) > N_NAMED else ""
    return ", ".join(names[:N_NAMED]) + more
