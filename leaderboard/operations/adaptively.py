"""Adaptive assignments: the tasks that tell most about one agent, batch by batch, until enough is known.

The study that an assignment names is frozen; what a request does is one step by it. An agent is asked for the
next batch once all of those before are there, and what it delivers beside them is not looked at.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from leaderboard.catalog.models import Agent, Assigning, Benchmark, Policy
from leaderboard.catalog.queries import policy_in_force
from leaderboard.operations import asking
from leaderboard.operations.models import Assignment, Mode
from leaderboard.studies.adaptive_steps import Step, mean_outcome, step
from leaderboard.studies.models import AdaptiveStudy
from leaderboard.studies.queries import active_subset, latest_study
from leaderboard.submissions.models import Setting
from leaderboard.submissions.queries import live_outcomes, settings_of
from leaderboard.submissions.rows import standing


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


def step_of(assignment: Assignment, outcomes: pa.Table | None = None) -> Step:
    """Where the agent stands; `outcomes` are all that stand for it, as stored where not given."""
    assert assignment.study is not None
    benchmark = assignment.agent.benchmark
    policy, names = policy_in_force(benchmark), dict(benchmark.tasks.values_list("id", "name"))
    if outcomes is None:
        outcomes = live_outcomes([assignment.agent.merged_into_id or assignment.agent_id])
    found = _means(outcomes, policy, assignment.n_trials)
    return step(
        assignment.study,
        asked=[names[pk] for pk in assignment.tasks],
        means={names[pk]: mean for pk, mean in found.items()},
        active=set(asking.names_asked(policy, None).values()),
    )


def told(
    assignment: Assignment | None, outcomes: Callable[[], pa.Table] | None = None
) -> dict[str, Any] | None:
    """Score, interval and what is left; None for another assignment than an adaptive one."""
    if assignment is None or assignment.mode != Mode.ADAPTIVE:
        return None
    return step_of(assignment, outcomes() if outcomes else None).as_plain()


# ------------------------------------------------------------------------------------------------ outcomes


def _means(outcomes: pa.Table, policy: Policy, n_trials: int) -> dict[int, float | None]:
    """Mean outcome by id of each task that has all of its trials, under each condition compared.

    The first trials count, in order of delivery, and within one the lowest, as on the board: a submitter
    numbers its own. One that the harness is said to have failed counts as a failure until an operator
    confirms that; then it is missing.
    """
    facets = {pk: key[: Setting.N_CONDITION] for key, pk in settings_of(policy.benchmark).items()}
    compared = _compared(policy)
    found: defaultdict[int, defaultdict[int, list[float | None]]] = defaultdict(lambda: defaultdict(list))
    for row in _in_order(standing(outcomes).to_pylist()):
        condition = _condition(facets[row["setting"]], compared)
        trials = found[row["task"]][condition]
        if condition >= 0 and len(trials) < n_trials:
            trials.append(None if row["free"] else _value(row))
    n_conditions = max(len(compared), 1)
    whole = {task: by for task, by in found.items() if _has_all(by, n_conditions, n_trials)}
    return {task: mean_outcome([by[one] for one in range(n_conditions)]) for task, by in whole.items()}


def _in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As the record orders trials; what is on trial has no submission's id yet, and comes last."""
    return sorted(rows, key=lambda row: (row["submission"] or math.inf, _value(row), row["trial"]))


def _value(row: Mapping[str, Any]) -> float:
    return float(row["value"]) if row["valid"] else 0.0


def _has_all(by_condition: Mapping[int, Sequence[float | None]], n_conditions: int, n_trials: int) -> bool:
    return all(len(by_condition.get(one, ())) == n_trials for one in range(n_conditions))


def _compared(policy: Policy) -> list[dict[str, Any]]:
    """The conditions that the board compares, where they are fixed; else all count alike."""
    if policy.counted_settings is not None:
        return list(policy.counted_settings)
    subset = active_subset(policy.benchmark)
    return list(subset.compared or []) if subset else []


def _condition(facets: tuple[object, ...], compared: Sequence[Mapping[str, Any]]) -> int:
    """Which of the conditions compared it is; −1: none of them."""
    if not compared:
        return 0
    prompt, judge, temperature = facets
    for place, one in enumerate(compared):
        of_one = one.get("temperature")
        if (prompt, judge) == (one.get("prompt_variant"), one.get("judge")) and of_one in (None, temperature):
            return place
    return -1
