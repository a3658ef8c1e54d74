"""Which tasks the agents of a benchmark have in common: as the record tells."""

from collections.abc import Collection

import numpy as np

from leaderboard.accounts.models import User
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.queries import active_tasks
from leaderboard.errors import Conflict
from leaderboard.studies.queries import active_subset
from leaderboard.studies.receipt import MAX_VOICES, several
from leaderboard.studies.records import Reader, Snapshot, load_notes, store_scores
from leaderboard.studies.services import CoreError
from leaderboard.submissions.models import Status
from leaderboard.submissions.parsing.flat import FlatFile
from leaderboard.submissions.queries import full_runs, settings_of, trusted_accounts

MIN_COMMON = 10


def is_partial(flat: FlatFile, benchmark: Benchmark) -> bool:
    """Whether most agents of a file lack over 5% of the active tasks: what it costs little to see first.

    Once a subset is fixed, newcomers run it alone: then they lack nothing.
    """
    if active_subset(benchmark) is not None:
        return False
    n_active = active_tasks(benchmark).count()
    cells = np.unique(flat.agent.astype(np.int64) * len(flat.tasks) + flat.task)
    n_tasks = np.bincount(cells // len(flat.tasks))
    return int(np.count_nonzero(20 * n_tasks >= 19 * n_active)) * 2 < len(flat.agents)


def warnings(files: Collection[FlatFile], benchmark: Benchmark) -> list[str]:
    """Say which outcomes of a benchmark do not count as they stand, where a file gives reason to look."""
    is_doubtful = any(is_uneven(flat) or never_fails(flat) for flat in files)
    if not (is_doubtful or several(settings_of(benchmark))):
        return []
    subset = active_subset(benchmark)
    try:
        now = Reader(benchmark).now(subset)
    except CoreError:
        return []  # a recompute says what the outcomes do not carry
    if now is None:
        return []
    store_scores(now.stale)
    return load_notes(now, {name for flat in files for name in flat.agents})


def is_uneven(flat: FlatFile) -> bool:
    """Whether an agent has more trials on some of its tasks than on others."""
    cells, n = np.unique(flat.agent.astype(np.int64) * len(flat.tasks) + flat.task, return_counts=True)
    most = np.zeros(len(flat.agents), np.int64)
    np.maximum.at(most, cells // len(flat.tasks), n)
    return bool((n < most[cells // len(flat.tasks)]).any())


def never_fails(flat: FlatFile) -> bool:
    """Whether of some agent of a file only passes are there."""
    lowest = np.ones(len(flat.agents))
    np.minimum.at(lowest, flat.agent, np.where(flat.valid, flat.outcome, 0.0))
    return bool((lowest == 1.0).any())


def loader_of(benchmark: Benchmark) -> User | None:
    """The one account that submits, where it has more full runs than teach; None where there is no such."""
    submitted = benchmark.agents.filter(submissions__loaded=False, submissions__status=Status.ACCEPTED)
    owners = set(submitted.values_list("owner", flat=True))
    if len(owners) != 1 or None in owners or owners <= trusted_accounts(benchmark):
        return None
    (owner,) = owners
    n_tasks = active_tasks(benchmark).count()
    many = len(full_runs(benchmark, owner, n_tasks)) > MAX_VOICES
    return User.objects.get(pk=owner) if many else None


def offer_text(benchmark: Benchmark) -> str:
    """Where most agents cannot be ranked, say on which tasks they could be; else empty."""
    try:
        now = _all_tasks(benchmark)
    except CoreError:
        return ""  # a recompute says what the outcomes do not carry
    if now is None:
        return ""
    store_scores(now.stale)
    return now.offer


def common_tasks(benchmark: Benchmark) -> list[str]:
    """Return the common tasks, from 10 on: fewer rank nobody."""
    now = _all_tasks(benchmark)
    common = now.shared_tasks if now else ()
    if len(common) < MIN_COMMON:
        raise Conflict(
            f"Only {len(common)} tasks have an outcome from at least 95% of the agents; from {MIN_COMMON} on "
            "they can be made the tasks of the benchmark.",
            code="too_few_common_tasks",
        )
    return list(common)


def _all_tasks(benchmark: Benchmark) -> Snapshot | None:
    """The present record, whatever tasks the policy names."""
    reader = Reader(benchmark)
    reader.policy.universe = None
    return reader.now(active_subset(benchmark))
