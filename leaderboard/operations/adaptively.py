"""Adaptive assignments: the tasks that tell most about one agent, batch by batch, until enough is known.

The study that an assignment names is frozen; what a request does is one step by it. An agent is asked for the
next batch once all of those before are there, and what it delivers beside them is not looked at.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from leaderboard.catalog.models import Agent, Assigning, Benchmark, Policy
from leaderboard.catalog.queries import policy_in_force
from leaderboard.operations import asking
from leaderboard.operations.models import Assignment, Mode
from leaderboard.studies.adaptive_steps import Step, step
from leaderboard.studies.models import AdaptiveStudy
from leaderboard.studies.own_parts import OfAgent, means_of
from leaderboard.studies.queries import active_subset, latest_study
from leaderboard.submissions.models import Submission
from leaderboard.submissions.queries import live_outcomes, settings_of, standing_submissions

Trial = tuple[pa.Table, Submission]
"""All that would stand for an agent, and the delivery on trial among it: its outcomes have the id 0 where it
is not stored.
"""


@dataclass(frozen=True)
class Begun:
    """What an adaptive assignment starts from: a study, and what was asked for before one that expired."""

    study: AdaptiveStudy
    tasks: list[int]


def earlier(agent: Agent) -> Assignment | None:
    """The agent's last adaptive assignment."""
    found = agent.assignments.filter(mode=Mode.ADAPTIVE).select_related("study", "agent__benchmark")
    return found.order_by("-id").first()


def begun(agent: Agent, policy: Policy, *, is_new: bool) -> Begun | None:
    """How an agent is asked adaptively that would be asked for the subset; None: it is asked for that.

    One that has delivered before is not, as it could have chosen what. One that has begun so goes on,
    whatever the policy says by now.
    """
    if before := earlier(agent):
        assert before.study is not None
        return Begun(before.study, list(before.tasks))
    if policy.assignment != Assigning.ADAPTIVE:
        return None
    study = usable_study(agent.benchmark) if is_new else None
    return Begun(study, []) if study else None


def usable_study(benchmark: Benchmark) -> AdaptiveStudy | None:
    """The study of the latest data, where it carries assignments."""
    study = latest_study(AdaptiveStudy, benchmark)
    return study if study and study.result["available"] else None


def first_batch(start: Begun, policy: Policy) -> list[int]:
    """Ids of what a new assignment asks for; where an earlier one expired, all of that."""
    if start.tasks:
        return start.tasks
    ids = {name: pk for pk, name in asking.names_asked(policy, None).items()}
    found = step(start.study, asked=[], means={}, active=ids.keys())
    return [ids[name] for name in found.batch]


def go_on(assignment: Assignment) -> Step:
    """Add the next batch where all before it is there; the agent is locked."""
    found = step_of(assignment)
    if found.batch:
        ids = dict(assignment.agent.benchmark.tasks.values_list("name", "id"))
        assignment.tasks = [*assignment.tasks, *(ids[name] for name in found.batch)]
        assignment.save(update_fields=["tasks"])
    return found


def step_of(assignment: Assignment, trial: Trial | None = None) -> Step:
    """Where the agent stands."""
    assert assignment.study is not None
    benchmark = assignment.agent.benchmark
    names = dict(benchmark.tasks.values_list("id", "name"))
    return step(
        assignment.study,
        asked=[names[pk] for pk in assignment.tasks],
        means=means_so_far(assignment, trial),
        active=set(asking.names_asked(policy_in_force(benchmark), None).values()),
    )


def means_so_far(assignment: Assignment, trial: Trial | None = None) -> dict[str, float | None]:
    """Mean outcomes of the tasks that are there whole, by all that stands, as the board counts."""
    agent = assignment.agent.merged_into_id or assignment.agent_id
    benchmark = assignment.agent.benchmark
    policy = policy_in_force(benchmark)
    outcomes, new = trial or (live_outcomes([agent]), None)
    delivered = OfAgent(
        agent=agent,
        submissions=standing_submissions(agent, new),
        policy=policy,
        subset=active_subset(benchmark),
        tasks=asking.names_asked(policy, None),
        settings={pk: facets for facets, pk in settings_of(benchmark).items()},
    )
    return means_of(outcomes, delivered, n_trials=assignment.n_trials)


def told(assignment: Assignment | None, trial: Callable[[], Trial] | None = None) -> dict[str, Any] | None:
    """Score, interval and what is left; None for another assignment than an adaptive one."""
    if assignment is None or assignment.mode != Mode.ADAPTIVE:
        return None
    return step_of(assignment, trial() if trial else None).as_plain()
