"""Staged assignments: batch after batch, until the score of an agent is known and it cannot reach the podium.

The study that an assignment names is frozen, and so is what it decides: each decision is kept as it was made.
An agent is asked for the next batch once all of those before are there, and what it delivers beside them is
not looked at.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from analytics.names import letters
from leaderboard.catalog.models import Agent, Assigning, Benchmark, Policy
from leaderboard.catalog.queries import policy_in_force
from leaderboard.operations import asking
from leaderboard.operations.models import Assignment, Mode
from leaderboard.studies.draws import digest
from leaderboard.studies.models import StagedStudy
from leaderboard.studies.queries import active_subset, latest_study
from leaderboard.studies.receipt import AgentContext, means_of
from leaderboard.studies.staged_steps import DRAWN, STOPPED, WalkState, step
from leaderboard.submissions.models import Submission
from leaderboard.submissions.queries import live_outcomes, settings_of, standing_submissions

TrialDelivery = tuple[pa.Table, Submission]
"""All that would stand for an agent, and the delivery on trial among it: its outcomes have the id 0 where it
is not stored.
"""
BATCHES = (
    "tasks come in batches, until the standard error is at most 3 points and the agent cannot reach the "
    "podium, or it is under 1 point and the agent cannot lead: ask again once these are delivered"
)
ESTIMATED = "estimated"  # of a dry run: stopped or drawn
NOT_YET_TOLD = "whether the rest is to be run all the same is told once this is delivered"
STORED = ("stage", "n_run", "score", "lower", "upper", "se", "podium", "best", "reason")


@dataclass(frozen=True)
class Begun:
    """What a staged assignment starts from: a study, and what was asked for before one that expired."""

    study: StagedStudy
    tasks: list[int]


def earlier(agent: Agent) -> Assignment | None:
    """The agent's last staged assignment."""
    staged = agent.assignments.filter(mode=Mode.STAGED).select_related("study", "agent__benchmark")
    return staged.order_by("-id").first()


def begun(agent: Agent, policy: Policy, *, is_new: bool) -> Begun | None:
    """How an agent is asked batch by batch; None: it is not.

    One that has delivered before is not, as it could have chosen what. One that has begun so goes on,
    whatever the policy says by now.
    """
    if before := earlier(agent):
        assert before.study is not None
        return Begun(before.study, list(before.tasks))
    if policy.assignment != Assigning.STAGED:
        return None
    study = usable_study(agent.benchmark) if is_new else None
    return Begun(study, []) if study else None


def usable_study(benchmark: Benchmark) -> StagedStudy | None:
    """The study of the latest data, where it carries assignments."""
    study = latest_study(StagedStudy, benchmark)
    return study if study and study.result["available"] else None


def first_batch(start: Begun, agent: Agent, policy: Policy) -> list[int]:
    """Ids of what a new assignment asks for; where an earlier one expired, all of that."""
    if start.tasks:
        return start.tasks
    ids = {name: pk for pk, name in asking.names_asked(policy, None).items()}
    first = step(start.study, tasks_run=[], means={}, active=ids.keys(), **_draws(agent, policy))
    return [ids[name] for name in first.batch]


def go_on(assignment: Assignment) -> WalkState:
    """Keep what is decided, and add the next batch where all before it is there; the agent is locked."""
    decision = store_decision(assignment)
    if decision.batch:
        ids = dict(assignment.agent.benchmark.tasks.values_list("name", "id"))
        assignment.tasks = [*assignment.tasks, *(ids[name] for name in decision.batch)]
        assignment.save(update_fields=["tasks"])
    return decision


def store_decision(assignment: Assignment) -> WalkState:
    """Keep what is decided once a batch is there: estimate, error, what it is compared with, and why."""
    staged_step = step_of(assignment)
    if staged_step.score is not None:
        state = {name: value for name, value in asdict(staged_step).items() if name in STORED}
        if not assignment.decisions or assignment.decisions[-1]["n_run"] < staged_step.n_run:
            assignment.decisions = [*assignment.decisions, state]
            assignment.save(update_fields=["decisions"])
    return staged_step


def step_of(assignment: Assignment, trial: TrialDelivery | None = None) -> WalkState:
    """Where the agent stands."""
    assert assignment.study is not None
    benchmark = assignment.agent.benchmark
    policy, names = policy_in_force(benchmark), dict(benchmark.tasks.values_list("id", "name"))
    return step(
        assignment.study,
        tasks_run=[names[pk] for pk in assignment.tasks],
        means=means_so_far(assignment, trial),
        active=set(asking.names_asked(policy, None).values()),
        **_draws(assignment.agent, policy),
    )


def _draws(agent: Agent, policy: Policy) -> dict[str, Any]:
    """What decides an agent's draws: a key of the server; in a replay the policy's seed and its name.

    Versions of an agent are drawn alike, so that nobody asks under many names for the best tasks; so are
    scaffolds and models that differ in marks, blanks or look-alike letters.
    """
    if agent.benchmark.replay is not None:
        return {"seed": policy.base_seed, "agent": agent.name}
    return {
        "seed": int.from_bytes(digest("walk", f"{agent.benchmark_id}")[:8], "big"),
        "agent": " ".join([f"{agent.owner_id}", *map(letters, (agent.scaffold.name, agent.model.name))]),
    }


def means_so_far(assignment: Assignment, trial: TrialDelivery | None = None) -> dict[str, float | None]:
    """Mean outcomes of the tasks that are there whole, by all that stands, as the board counts."""
    agent = assignment.agent.merged_into_id or assignment.agent_id
    benchmark = assignment.agent.benchmark
    policy = policy_in_force(benchmark)
    outcomes, new = trial or (live_outcomes([agent]), None)
    delivered = AgentContext(
        agent=agent,
        submissions=standing_submissions(agent, new),
        policy=policy,
        subset=active_subset(benchmark),
        tasks=asking.names_asked(policy, None),
        settings={pk: facets for facets, pk in settings_of(benchmark).items()},
    )
    return means_of(outcomes, delivered, n_trials=assignment.n_trials)


def summary(
    assignment: Assignment | None, trial: Callable[[], TrialDelivery] | None = None, *, dry_run: bool = False
) -> dict[str, Any] | None:
    """Score, interval and what is left; None for another assignment than a staged one.

    A dry run does not say who is drawn: that is told once the estimate is stored, so that nobody can look for
    outcomes, or an agent, that are not.
    """
    if assignment is None or assignment.mode != Mode.STAGED:
        return None
    staged_step = step_of(assignment, trial() if trial else None)
    plain = staged_step.as_plain()
    if dry_run and staged_step.stage in (STOPPED, DRAWN):
        known, _, _ = staged_step.sentence.partition("; ")
        plain |= {
            "stage": ESTIMATED,
            "done": None,
            "told": f"{known}; {staged_step.reason}: {NOT_YET_TOLD}",
        }
    return plain


def decisions_of(benchmark: Benchmark) -> dict[str, tuple[StagedStudy, list[dict[str, Any]]]]:
    """What was decided of the agents that were asked batch by batch, by name, and by which study."""
    of = Assignment.objects.filter(agent__benchmark=benchmark, mode=Mode.STAGED)
    decisions = {}
    for one in of.select_related("agent", "study").order_by("id"):
        assert one.study is not None
        decisions[one.agent.name] = (one.study, one.decisions)
    return decisions
