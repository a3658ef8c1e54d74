"""What another policy, or a task taken out, would change: the same answer twice. Nothing is stored."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from leaderboard.catalog.models import Benchmark, Policy, Task
from leaderboard.operations.phase import known_reruns
from leaderboard.studies.answers import AtTarget, Standings, words
from leaderboard.studies.board_inputs import board_inputs
from leaderboard.studies.queries import active_subset
from leaderboard.studies.records import Reader
from leaderboard.studies.services import CoreError, compute_standings

N_NAMED = 5


@dataclass(frozen=True)
class Move:
    """An agent whose rank, or the ranks that it may hold, would be others."""

    agent: str
    before: AtTarget
    after: AtTarget


@dataclass(frozen=True)
class Foreseen:
    """What would change: sentences, and who would move, by rank then; `n_ranked` on the larger board."""

    sentences: list[str]
    moves: tuple[Move, ...] = ()
    n_ranked: int = 0


def preview(benchmark: Benchmark, changed: Policy) -> list[str]:
    """Say, a sentence each, what would change with this policy; nothing without outcomes."""
    return foresee(benchmark, changed).sentences


def preview_of_task(task: Task, *, as_of: datetime) -> list[str]:
    """Say what would change were this task retired, or restored where it is retired."""
    return foresee_task(task, as_of=as_of).sentences


def foresee(benchmark: Benchmark, changed: Policy) -> Foreseen:
    """The same with the agents that would move."""
    reader = Reader(benchmark)

    def change() -> None:
        reader.policy = changed

    return _foresee(reader, change, "With this policy")


def foresee_task(task: Task, *, as_of: datetime) -> Foreseen:
    """The same with the agents that would move."""
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
        return Foreseen([f"{reason} the present outcomes carry no board: {error}."])
    if after is None:
        return Foreseen([f"{reason} there would be nothing to rank."])
    sentences = [*_subset(before, after), *_ranks(before, after)] or ["No rank changes, nor the subset."]
    n_ranked = max(one.targets[one.target].n_ranked for one in (before, after))
    return Foreseen(sentences, tuple(_moves(before, after)), n_ranked)


def _moves(before: Standings, after: Standings) -> Iterator[Move]:
    old = {line.agent: line.at[before.target] for line in before.agents}
    for line in words.in_order(after):
        was, line_after = old.get(line.agent, AtTarget()), line.at[after.target]
        if any(
            getattr(was, name) != getattr(line_after, name) for name in ("rank", "rank_lower", "rank_upper")
        ):
            yield Move(line.agent, was, line_after)


def _standings(reader: Reader) -> Standings | None:
    """The answer on the subset and calibration in use; a new fit comes with a recompute."""
    subset = active_subset(reader.benchmark)
    now = reader.now(subset)
    if now is None:
        return None
    calibration = subset.calibrations.order_by("-data_version").first() if subset else None
    return compute_standings(
        now, board_inputs(now, subset, calibration, known_reruns(reader.benchmark, subset))
    )


def _subset(before: Standings, after: Standings) -> Iterator[str]:
    if before.n_tasks != after.n_tasks:
        yield f"{words.counted(after.n_tasks, 'task')} would be active instead of {before.n_tasks:,}."
    if before.n_complete != after.n_complete:
        n = words.counted(after.n_complete, "agent")
        yield f"{n} would be complete instead of {before.n_complete:,}."
    old, new = (set(one.subset.tasks) if one.subset else set() for one in (before, after))
    if old != new:
        yield (
            f"The subset would have {words.counted(len(new), 'task')} instead of {len(old):,}: "
            f"{len(new - old):,} enter, {len(old - new):,} leave ({_band(before)} now, {_band(after)} then)."
        )
    elif after.subset and after.subset.number:
        yield f"The subset stays, with {words.counted(len(new), 'task')}: it is fixed until a reselection."


def _band(board: Standings) -> str:
    return f"band {board.subset.lo:.0%} to {board.subset.hi:.0%}" if board.subset else "no subset"


def _ranks(before: Standings, after: Standings) -> Iterator[str]:
    if before.target != after.target:
        yield f"The board would be ordered by the target {after.target} instead of {before.target}."
    old, new = ({line.agent: line.at[one.target].rank for line in one.agents} for one in (before, after))
    moved = [agent for agent in new if new[agent] != old.get(agent)]
    if moved:
        sentence = ", ".join(
            f"{agent} {_rank(old.get(agent))} → {_rank(new[agent])}" for agent in moved[:N_NAMED]
        )
        more = f" and {len(moved) - N_NAMED:,} more" if len(moved) > N_NAMED else ""
        yield f"{len(moved):,} of {words.counted(len(new), 'agent')} would change rank: {sentence}{more}."


def _rank(rank: int | None) -> str:
    return "unranked" if rank is None else f"{rank}"
