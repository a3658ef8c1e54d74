"""What the record tells of another policy, a task taken out, or the tasks that agents have in common.

A preview is the same answer twice. Nothing is stored but agents' scores.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np

from leaderboard.accounts.models import User
from leaderboard.called import set_command
from leaderboard.catalog.models import Benchmark, MissingPlaces, Policy, Task
from leaderboard.catalog.queries import active_tasks, policy_in_force
from leaderboard.errors import Conflict
from leaderboard.operations.policies import with_missing_decided
from leaderboard.operations.services import known_reruns
from leaderboard.studies.answers import AtTarget, Standings, words
from leaderboard.studies.board_inputs import board_inputs
from leaderboard.studies.queries import active_subset
from leaderboard.studies.receipt import MAX_VOICES, several
from leaderboard.studies.records import Reader, Snapshot, load_notes, store_scores
from leaderboard.studies.services import CoreError, compute_standings
from leaderboard.submissions.models import Status
from leaderboard.submissions.parsing.flat import FlatFile
from leaderboard.submissions.queries import full_runs, settings_of, trusted_accounts

N_NAMED = 5
MIN_COMMON = 10
RANKS = ("rank", "rank_lower", "rank_upper")


class Foreseen(NamedTuple):
    """What would change, and who would move, with places before and after; `n_ranked` of the larger board."""

    sentences: list[str]
    moves: Sequence[tuple[str, AtTarget, AtTarget]] = ()
    n_ranked: int = 0


def foresee(benchmark: Benchmark, changed: Policy) -> Foreseen:
    """What would change with this policy; nothing without outcomes."""
    reader = Reader(benchmark)

    def change() -> None:
        reader.policy = changed

    return _foresee(reader, change, "With this policy")


def foresee_task(task: Task, *, as_of: datetime) -> Foreseen:
    """What would change were this task retired, or restored where it is retired."""
    reader = Reader(task.benchmark)

    def change() -> None:
        for one in reader.tasks:
            if one.pk == task.pk:
                one.retired_at = None if one.retired_at else as_of

    return _foresee(reader, change, "With this task restored" if task.retired_at else "Without this task")


def _foresee(reader: Reader, change: Callable[[], None], reason: str) -> Foreseen:
    before = _standings(reader)
    if before is None:
        return Foreseen([])
    change()
    try:
        after = _standings(reader)
    except CoreError as error:
        return Foreseen([f"{reason} the results cannot be ranked: {error}."])
    if after is None:
        return Foreseen([f"{reason} there would be nothing to rank."])
    ranks = list(_ranks(before, after)) or ["No change in ranks or rank ranges."]
    sentences = [*_subset(before, after), *ranks]
    old = {line.agent: line.at[before.target] for line in before.agents}
    places = [
        (line.agent, old.get(line.agent, AtTarget()), line.at[after.target]) for line in words.in_order(after)
    ]
    moves = [one for one in places if any(getattr(one[1], rank) != getattr(one[2], rank) for rank in RANKS)]
    return Foreseen(sentences, moves, max(one.targets[one.target].n_ranked for one in (before, after)))


def _standings(reader: Reader) -> Standings | None:
    """The answer on the subset and calibration in use; a new fit comes with a recompute."""
    subset = active_subset(reader.benchmark)
    now = reader.now(subset)
    if now is None:
        return None
    calibration = subset.calibrations.order_by("-data_version").first() if subset else None
    reruns = known_reruns(reader.benchmark, subset)
    return compute_standings(now, board_inputs(now, subset, calibration, reruns))


def _subset(before: Standings, after: Standings) -> Iterator[str]:
    if before.n_tasks != after.n_tasks:
        yield f"{words.counted(after.n_tasks, 'task')} would count instead of {before.n_tasks:,}."
    if before.n_complete != after.n_complete:
        n = words.counted(after.n_complete, "agent")
        yield f"{n} would be complete instead of {before.n_complete:,}."
    old, new = (set(one.subset.tasks) if one.subset else set() for one in (before, after))
    if old != new:
        yield (
            f"There would be {words.counted(len(new), 'ranking task')} instead of {len(old):,}: "
            f"{len(new - old):,} enter, {len(old - new):,} leave (now {_band(before)}, then {_band(after)})."
        )
    elif after.subset and after.subset.number:
        yield f"The {words.counted(len(new), 'ranking task')} stay until you approve others."


def _band(board: Standings) -> str:
    return f"pass rates from {board.subset.lo:.0%} to {board.subset.hi:.0%}" if board.subset else "none"


def _ranks(before: Standings, after: Standings) -> Iterator[str]:
    if before.target != after.target:
        yield f"Ranks would use the target {after.target} instead of {before.target}."
    old, new = ({line.agent: line.at[one.target] for line in one.agents} for one in (before, after))
    agents = words.counted(len(new), "agent")
    for what, place in (("rank", _rank), ("rank range", _range)):
        places = [(agent, place(old.get(agent, AtTarget())), place(at)) for agent, at in new.items()]
        if moved := [f"{agent} {was} → {will_be}" for agent, was, will_be in places if was != will_be]:
            names = words.first_names(moved, N_NAMED)
            yield f"{len(moved):,} of {agents} would change {what}: {names}."


def _rank(at: AtTarget) -> str:
    return "unranked" if at.rank is None else f"{at.rank}"


def _range(at: AtTarget) -> str:
    if at.rank_lower is None or at.rank_upper is None:
        return "none"
    return "–".join(f"{end:,}" for end in sorted({at.rank_lower, at.rank_upper}))


# --------------------------------------------------------------------------------- what agents have in common


def is_partial(flat: FlatFile, benchmark: Benchmark) -> bool:
    """Whether most agents of a file lack results that count: what it costs little to see first.

    Once a subset is fixed, newcomers run it alone: then they lack nothing.
    """
    if active_subset(benchmark) is not None:
        return False
    n_active = active_tasks(benchmark).count()
    cells = np.sort((flat.agent.astype(np.int64) * len(flat.tasks) + flat.task)[flat.valid])
    is_first = np.diff(cells, prepend=-1) > 0
    n_tasks = np.bincount(cells[is_first] // len(flat.tasks), minlength=len(flat.agents))
    n_void = np.bincount(flat.agent[~flat.valid], minlength=len(flat.agents))
    whole = (n_tasks >= n_active) & (20 * n_void <= np.bincount(flat.agent, minlength=len(flat.agents)))
    return int(np.count_nonzero(whole)) * 2 < len(flat.agents)


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
    cells, n = np.unique(flat.agent.astype(np.int64) * len(flat.tasks) + flat.task, return_counts=True)
    most = np.zeros(len(flat.agents), np.int64)
    np.maximum.at(most, cells // len(flat.tasks), n)
    return bool((n < most[cells // len(flat.tasks)]).any())


def never_fails(flat: FlatFile) -> bool:
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
    return User.objects.get(pk=owner) if len(full_runs(benchmark, owner, n_tasks)) > MAX_VOICES else None


def missing_proposal(benchmark: Benchmark) -> str:
    """Say how more agents can be ranked, and by which command; empty where missing results count already."""
    if policy_in_force(benchmark).missing != MissingPlaces.GAP:
        return ""
    try:
        after, undo = with_missing_decided(benchmark)
    except CoreError:
        return ""  # a recompute says what the outcomes do not carry
    if not undo:
        return ""
    found = after.resolved_from.removeprefix("auto: ")
    return f"{found}. To count results so: {set_command(benchmark.slug, ['missing=auto'])}"


def offer_text(benchmark: Benchmark) -> str:
    try:
        now = _all_tasks(benchmark)
    except CoreError:
        return ""  # a recompute says what the outcomes do not carry
    if now is None:
        return ""
    store_scores(now.stale)
    return now.offer


def common_tasks(benchmark: Benchmark) -> list[str]:
    now = _all_tasks(benchmark)
    common = now.shared_tasks if now else ()
    if len(common) < MIN_COMMON:
        raise Conflict(
            f"Only {len(common)} tasks have an outcome from at least 95% of the agents; with {MIN_COMMON} or "
            "more they can be made the tasks of the benchmark.",
            code="too_few_common_tasks",
        )
    return list(common)


def _all_tasks(benchmark: Benchmark) -> Snapshot | None:
    """The present record, whatever tasks the policy names."""
    reader = Reader(benchmark)
    reader.policy.universe = None
    return reader.now(active_subset(benchmark))
