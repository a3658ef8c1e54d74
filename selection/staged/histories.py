"""What each agent of a history would have been asked to run, and what would have been said of it.

=============  =============================================================================================
``walked``     staged assignment, as `selection.staged.walks` says
``on_subset``  assignment of the first version: the first `subset_from` agents run everything, the later ones
               S alone, one in five of them drawn to run everything once its estimate is kept
``in_full``    full runs of everybody
=============  =============================================================================================

Agents come in a given order and teach from their end on. Full scores of agents that ran S alone are completed
by the model (`selection.staged.model`), their errors scaled to those of full runs on S.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from analytics.arrays import FloatArray, IndexArray
from selection.folds import CompleteAgents
from selection.staged.teaching import FullRun, Teaching, taught
from selection.staged.walks import (
    NO_TASKS,
    Fit,
    Stage,
    Staging,
    Step,
    WalkEstimate,
    estimated,
    is_drawn,
    step,
)

ONE_IN = 5

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Walk:
    """What one agent was asked to run.

    batches: tasks, in the order in which they were asked for.
    published: the estimate when it was stopped, also where it was drawn; None where it ran everything by the
        rule.
    first: score and `model_se` after its first batch.
    steps: what was decided, from the first batch on; empty where it was asked for everything at once.
    """

    agent: int
    batches: tuple[IndexArray, ...]
    published: WalkEstimate | None = None
    is_drawn: bool = False
    first: tuple[float, float] | None = None
    steps: tuple[Step, ...] = ()
    fit: Fit | None = None

    @property
    def n_tasks(self) -> int:
        """Tasks run."""
        return sum(batch.size for batch in self.batches)


@dataclass(frozen=True, eq=False)
class StagedHistory:
    """One order of the agents, replayed.

    truth: (n,); y of the agents in their order.
    board: (n,); their scores on the last board.
    """

    truth: FloatArray
    board: FloatArray
    walks: tuple[Walk, ...]
    subset: IndexArray | None = None

    @cached_property
    def n_run(self) -> IndexArray:
        """Tasks run by each, (n,)."""
        return np.array([walk.n_tasks for walk in self.walks])


def walked(
    agents: CompleteAgents, order: Sequence[int], staging: Staging, *, seed: int = 0, **how: Any
) -> StagedHistory:
    """Replay staged assignment in one order of the agents; `how` as of `replayed`."""
    n_first = staging.staged_from
    return replayed(
        agents,
        order,
        staging,
        n_first,
        lambda taught_by, i: run_agent(agents, i, taught_by.fit, seed),
        True,
        **how,
    )


def replayed(
    agents: CompleteAgents,
    order: Sequence[int],
    staging: Staging,
    n_first: int,
    ask: Callable[[Teaching, int], tuple[Walk, FullRun | None]],
    recalling: bool = False,
    *,
    subset: IndexArray | None = None,
    reselected: bool = False,
    progress: Progress | None = None,
) -> StagedHistory:
    """Let the first agents run everything, and ask each later one by what all before it teach.

    subset: S from the outset; by default the band of those that have come, fixed with the agent that reaches
        `subset_from`.
    """
    m, teach = (
        agents.outcomes.shape[1],
        partial(taught, staging=staging, subset=subset, reselected=reselected),
    )
    outcomes, scores, full_runs = list[FloatArray](), list[float](), list[FullRun]()
    walks, teaching = list[Walk](), None
    for done, i in enumerate(order):
        truth = float(agents.scores[i])
        run: FullRun | None = FullRun(done, truth)
        walk = Walk(i, (np.arange(m),))
        if teaching is not None:
            walk, run = ask(teaching, i)
        ran = np.concatenate(walk.batches)
        seen = np.full(m, np.nan)
        seen[ran] = agents.outcomes[i, ran]
        if run is not None:
            full_runs.append(replace(run, row=done, vouched=agents.is_vouched(i)))
        outcomes.append(seen)
        scores.append(truth if run is not None else np.nan)
        walks.append(walk)
        while len(outcomes) >= n_first:
            teaching = teach(np.array(outcomes), np.array(scores), full_runs, before=teaching)
            if not recalling or not teaching.recalled.size:
                break
            for row in teaching.recalled.tolist():
                one = walks[row]
                outcomes[row], scores[row] = agents.outcomes[one.agent], float(agents.scores[one.agent])
                rest = np.setdiff1d(np.arange(m), np.concatenate(one.batches))
                walks[row] = replace(one, batches=(*one.batches, rest))
                vouched = agents.is_vouched(one.agent)
                full_runs.append(FullRun(row, scores[row], first=one.first, vouched=vouched))
        if progress:
            progress(done + 1, len(order))
    assert teaching is not None
    return StagedHistory(agents.scores[list(order)], teaching.estimates, tuple(walks), teaching.subset)


def run_agent(agents: CompleteAgents, i: int, fit: Fit, seed: int) -> tuple[Walk, FullRun | None]:
    """Ask one agent batch by batch; return what it ran, and its full run, without a row, if it made one."""
    truth, outcomes = float(agents.scores[i]), agents.outcomes[i]
    every = np.ones(fit.n_tasks, dtype=np.bool_)
    batches, steps, estimates = list[IndexArray](), list[Step](), list[tuple[float, float]]()
    published, drawn = None, False
    while True:
        next_step = step(
            fit,
            assigned_tasks=np.concatenate([NO_TASKS, *batches]).tolist(),
            outcomes=outcomes,
            delivered=every,
            active=every,
            seed=seed,
            agent=agents.names[i],
        )
        steps.append(next_step)
        if known := next_step.estimate:
            estimates.append((known.score, known.model_se))
            if next_step.stage != Stage.RUNNING:
                published, drawn = known, next_step.stage == Stage.DRAWN
        if not next_step.batch:
            break
        batches.append(np.array(next_step.batch, dtype=np.intp))
    first = estimates[0] if estimates else None
    walk = Walk(i, tuple(batches), published, drawn, first, tuple(steps), fit)
    if published is None:
        return walk, FullRun(-1, truth, 1.0, walk.first)
    if not drawn:
        return walk, None
    return walk, FullRun(-1, truth, fit.share_drawn, walk.first, estimates[-1])


def on_subset(
    agents: CompleteAgents, order: Sequence[int], staging: Staging, *, seed: int = 0, **how: Any
) -> StagedHistory:
    """Replay the fixed subset in one order of the agents; while no band suits, they run everything."""
    every = np.arange(agents.outcomes.shape[1])

    def ask(teaching: Teaching, i: int) -> tuple[Walk, FullRun | None]:
        truth, tasks = float(agents.scores[i]), teaching.ranking_tasks
        if not tasks.size:
            return Walk(i, (every,)), FullRun(-1, truth)
        on_tasks = np.full(every.size, np.nan)
        on_tasks[tasks] = agents.outcomes[i, tasks]
        scale = teaching.scale_on(tasks)
        known = estimated(teaching.model, on_tasks, teaching.model.next_mean, scale)
        is_whole = is_drawn(seed, agents.names[i], 1.0 / ONE_IN)
        rest = (np.setdiff1d(every, tasks),) if is_whole else ()
        walk = Walk(i, (tasks, *rest), known, is_whole)
        ends = (known.score, known.model_se)
        return walk, FullRun(-1, truth, 1.0 / ONE_IN, ends, ends) if is_whole else None

    return replayed(agents, order, staging, staging.subset_from, ask, **how)


def in_full(agents: CompleteAgents, order: Sequence[int], staging: Staging, **how: Any) -> StagedHistory:
    """Replay full runs of everybody: nothing of a rule counts."""
    every, truth = np.arange(agents.outcomes.shape[1]), agents.scores[list(order)]
    if progress := how.get("progress"):
        progress(len(order), len(order))
    return StagedHistory(truth, truth, tuple(Walk(i, (every,)) for i in order))
