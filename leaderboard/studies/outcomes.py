"""Mean outcomes of all agents on the active tasks, as the last recompute kept them; nothing is fitted.

A part that is kept under the name of what counts now is right now; of an agent that delivered, or took back,
since outcomes were last read nothing is told.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from analytics.arrays import FloatArray, Mask
from analytics.record import People
from analytics.record.conditions import voices
from leaderboard.catalog.models import Agent, Benchmark, MissingPlaces, Policy, Task
from leaderboard.catalog.queries import policy_in_force
from leaderboard.studies.models import AgentScores
from leaderboard.studies.queries import active_subset
from leaderboard.studies.record_cache import by_agent, keys_of, unpacked, voter_of
from leaderboard.studies.rules import counting_of
from leaderboard.submissions.queries import deliveries, trusted_accounts
from selection import single_tasks as single_tasks


@dataclass(frozen=True, eq=False)
class OutcomeGrid:
    """Rows are agents, columns the active tasks by name.

    tasks, retired: by name.
    agents: with an outcome on an active task.
    means: (n_agents, n_tasks); NaN where there is no valid outcome.
    n_invalid: (n_agents, n_tasks); trials that the harness failed.
    n_counted: length n_agents; delivered outcomes that count, as `selection.single_tasks.n_counted` tells.
    n_pass_fail: length n_agents; (n_tasks,) each, see `selection.single_tasks.n_pass_fail`.
    voice: (n_agents,); whether pass rates are learnt from it: at most two of an account that nobody vouches
        for.
    is_graded: whether over 5% of the valid outcomes lie between 0 and 1.
    n_unread: agents whose outcomes have changed since they were last read.
    """

    policy: Policy
    tasks: list[Task]
    retired: list[Task]
    agents: list[Agent]
    means: FloatArray
    n_invalid: npt.NDArray[np.int32]
    n_counted: list[int | None]
    n_pass_fail: list[FloatArray]
    voice: Mask
    is_graded: bool
    n_unread: int

    def in_order(self, rows: Sequence[int]) -> "OutcomeGrid":
        agents = [self.agents[row] for row in rows]
        return replace(
            self,
            agents=agents,
            means=self.means[rows],
            n_invalid=self.n_invalid[rows],
            n_counted=[self.n_counted[row] for row in rows],
            n_pass_fail=[self.n_pass_fail[row] for row in rows],
            voice=self.voice[rows],
        )


def read_outcomes(benchmark: Benchmark) -> OutcomeGrid:
    """Read what is kept of all agents, in nine queries."""
    policy, tasks, retired = counted_tasks(benchmark)
    every = deliveries(benchmark, withdrawn=True)
    delivered, standing = by_agent(every), {one.agent_id for one in every if not one.withdrawn}
    keys = keys_of(delivered, tasks, counting_of(policy, active_subset(benchmark)))
    cached = AgentScores.objects.filter(agent__benchmark=benchmark, agent__in=delivered)
    cached = cached.select_related("agent__scaffold", "agent__model").order_by("agent__name")
    right = [one for one in cached if one.key == keys[one.agent_id]]
    read = unpacked(right)
    rows = [(one.agent, row) for one, row in read if row.n_deliveries]
    trusted = trusted_accounts(benchmark)
    voters = [voter_of(agent, delivered[agent.pk], trusted) for agent, _ in rows]
    return OutcomeGrid(
        policy=policy,
        tasks=tasks,
        retired=retired,
        agents=[agent for agent, _ in rows],
        means=_stacked([row.means for _, row in rows], len(tasks), np.float64),
        n_invalid=_stacked([row.n_invalid for _, row in rows], len(tasks), np.int32),
        n_counted=[
            single_tasks.n_counted(row, zero=missing_fails(policy, is_loaded=row.operator)) for _, row in rows
        ],
        n_pass_fail=[single_tasks.n_pass_fail(row) for _, row in rows],
        voice=voices(voters, [row.finished for _, row in rows]),
        is_graded=single_tasks.is_graded([row for _, row in rows]),
        n_unread=len(standing.difference(one.agent_id for one, _ in read)),
    )


def missing_fails(policy: Policy, *, is_loaded: bool) -> bool:
    """Whether missing outcomes of an agent count as failures."""
    return policy.missing == MissingPlaces.ZERO or (policy.missing == MissingPlaces.ZERO_LOADED and is_loaded)


def counted_tasks(benchmark: Benchmark) -> tuple[Policy, list[Task], list[Task]]:
    """Return the policy in force, the tasks that count under it, and those that were retired; by name."""
    policy = policy_in_force(benchmark)
    every = list(benchmark.tasks.order_by("name"))
    named = None if policy.universe is None else set(policy.universe)
    tasks = [task for task in every if task.retired_at is None and (named is None or task.name in named)]
    return policy, tasks, [task for task in every if task.retired_at]


def _stacked(rows: Sequence[np.ndarray], n_tasks: int, kind: npt.DTypeLike) -> np.ndarray:
    return np.array(rows, dtype=kind).reshape(len(rows), n_tasks)


UNREAD = "what counts of this agent has changed, and is read for the next board"


def people_of(agent: Agent) -> People | None:
    """Return what they said; None where nothing is known of it.

    What is kept of outcomes that no longer are those that count tells nothing.
    """
    rows = AgentScores.objects.filter(agent=agent).values_list("key", "content__row__people")
    key, row_people = rows.first() or ("", None)
    if row_people is None:
        return None
    people, benchmark = People.of_plain(row_people), agent.benchmark
    policy, tasks, _ = counted_tasks(benchmark)
    counting = counting_of(policy, active_subset(benchmark))
    mine = [one for one in deliveries(benchmark, withdrawn=True) if one.agent_id == agent.pk]
    if all(one.withdrawn for one in mine):
        return None
    if key == keys_of(by_agent(mine), tasks, counting)[agent.pk]:
        return people
    return People(people.n_labels, people.n_tasks, reason=UNREAD)
