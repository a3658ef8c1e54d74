"""How many of the tasks the agents of a benchmark have in common."""

from dataclasses import dataclass

from django.db import connection

from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.queries import active_tasks
from leaderboard.errors import Conflict
from leaderboard.submissions.queries import deliveries

MIN_COMMON = 10

# A task with a valid outcome of an agent counts once, however often the agent ran it.
COVERED = """
    SELECT DISTINCT s.agent_id, o.task_id
    FROM submissions_outcome o JOIN submissions_submission s ON s.id = o.submission_id
    WHERE s.id = ANY(%s) AND o.valid AND o.task_id = ANY(%s)
"""


class TooFewCommonTasks(Conflict):
    """The agents have too few tasks in common."""


@dataclass(frozen=True)
class Coverage:
    """Of the agents that were asked for all tasks: how many have run (almost) all, and what is common.

    `common`: names of the tasks with a valid outcome from at least 95% of them, in task order.
    """

    n_agents: int
    n_complete: int
    n_tasks: int
    common: tuple[str, ...]

    @property
    def is_thin(self) -> bool:
        """Whether fewer than half of the agents can be ranked."""
        return 2 * self.n_complete < self.n_agents


def coverage(benchmark: Benchmark) -> Coverage:
    """Count over the active tasks and the agents without an assignment."""
    counting = deliveries(benchmark)
    partial = {one.agent_id for one in counting if one.asked is not None}
    counted = [one.submission for one in counting if one.agent_id not in partial]
    tasks = dict(active_tasks(benchmark).values_list("id", "name"))
    with connection.cursor() as cursor:
        cursor.execute(COVERED, [counted, list(tasks)])
        pairs = cursor.fetchall()
    of_agent: dict[int, int] = dict.fromkeys({one.agent_id for one in counting} - partial, 0)
    of_task = dict.fromkeys(tasks, 0)
    for agent, task in pairs:
        of_agent[agent] += 1
        of_task[task] += 1
    return Coverage(
        n_agents=len(of_agent),
        n_complete=sum(_is_most(n, len(tasks)) for n in of_agent.values()),
        n_tasks=len(tasks),
        common=tuple(tasks[task] for task, n in of_task.items() if n and _is_most(n, len(of_agent))),
    )


def common_tasks(benchmark: Benchmark) -> list[str]:
    """Return the common tasks, from 10 on: fewer rank nobody."""
    found = coverage(benchmark)
    if len(found.common) < MIN_COMMON:
        raise TooFewCommonTasks(
            f"Only {len(found.common)} tasks have a valid outcome from at least 95% of the {found.n_agents} "
            f"agents; from {MIN_COMMON} on they can be made the tasks of the benchmark."
        )
    return list(found.common)


def _is_most(n: int, total: int) -> bool:
    """At least 95%, compared exactly."""
    return 20 * n >= 19 * total
