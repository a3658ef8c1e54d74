"""What agents are asked to run, and what a delivery lacks of it.

A staged assignment asks batch after batch, until the score of an agent is known and it cannot reach the
podium. The study that it names is frozen, and so is what it decides: each decision is kept as it was made.
The next batch is asked for once all before it is there, and what is delivered beside them is not looked at.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa

from analytics.names import letters
from leaderboard.catalog.models import Agent, Assigning, Benchmark, Duplicates, MissingPlaces, Policy
from leaderboard.catalog.queries import active_tasks, policy_in_force
from leaderboard.operations.models import Assignment, Mode
from leaderboard.studies.answers import words
from leaderboard.studies.models import StagedStudy
from leaderboard.studies.queries import active_subset, latest_study
from leaderboard.studies.receipt import AgentContext, means_of
from leaderboard.studies.rules import draw_digest
from leaderboard.studies.staged_steps import DRAWN, STOPPED, WalkState, step
from leaderboard.submissions.models import Submission
from leaderboard.submissions.queries import live_outcomes, settings_of, standing_submissions

N_NAMED = 10


def asked_tasks(policy: Policy) -> list[int] | None:
    """Ids of the active tasks of the subset, once it is fixed and the policy asks for it alone; None: all."""
    benchmark = policy.benchmark
    if benchmark.full_runs_only_at or policy.assignment != Assigning.SUBSET:
        return None
    if (subset := active_subset(benchmark)) is None:
        return None
    return list(subset.tasks.filter(retired_at=None).order_by("name").values_list("id", flat=True)) or None


def names_asked(policy: Policy, task_ids: Collection[int] | None) -> dict[int, str]:
    """The names of the tasks asked for by id, in task order."""
    return names_among(dict(active_tasks(policy.benchmark).values_list("id", "name")), policy, task_ids)


def agent_context(agent: int, submissions: dict[int, Submission], policy: Policy) -> AgentContext:
    return AgentContext(
        agent=agent,
        submissions=submissions,
        policy=policy,
        subset=active_subset(policy.benchmark),
        tasks=names_asked(policy, None),
        settings={pk: facets for facets, pk in settings_of(policy.benchmark).items()},
    )


def names_among(
    active: Mapping[int, str], policy: Policy, task_ids: Collection[int] | None
) -> dict[int, str]:
    if task_ids is not None:
        wanted = set(task_ids)
        return {pk: name for pk, name in active.items() if pk in wanted}
    universe = None if policy.universe is None else set(policy.universe)
    return {pk: name for pk, name in active.items() if universe is None or name in universe}


def n_outside(rows: pa.Table, task_ids: Collection[int] | None) -> int:
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
    policy: Policy,
    *,
    unranked: bool,
) -> Iterator[str]:
    """Say what an agent's outcomes lack of the tasks asked for, and which of its trials cannot count."""
    yield from absent(outcomes, names, policy, unranked=unranked)
    for block in blocks:
        yield from uneven(outcomes, block, policy)


def absent(
    outcomes: pa.Table, names: Mapping[int, str], policy: Policy, *, unranked: bool = True
) -> Iterator[str]:
    """Say which of the tasks of these names have no outcome, and what becomes of that by the policy on
    `missing` ones. Not `unranked`: an agent stands as it stood without them, the rest of a full run.

    `outcomes` has a row for each task and condition, null where it is not compared, with their number `n`.
    """
    delivered = set(outcomes["task"].to_pylist())
    lacks = [name for pk, name in names.items() if pk not in delivered]
    if lacks:
        meanwhile = (
            "its score on all tasks is estimated"
            if not unranked
            else "they count as failures, as often as the task with most trials ran"
            if policy.missing == MissingPlaces.ZERO
            else "the agent is not ranked"
        )
        yield (
            f"{len(lacks):,} of the {len(names):,} tasks asked for {'has' if len(lacks) == 1 else 'have'} "
            f"no outcome ({words.first_names(lacks, N_NAMED)}): {until_all(policy)}, {meanwhile}"
        )


def trials(outcomes: pa.Table, tasks: Container[int]) -> dict[tuple[int, str], int]:
    triples = zip(*(outcomes[name].to_pylist() for name in ("task", "condition", "n")), strict=True)
    return {(task, one): n for task, one, n in triples if one is not None and task in tasks}


def uneven(
    outcomes: pa.Table, names: Mapping[int, str], policy: Policy, *, what: str = "tasks"
) -> Iterator[str]:
    """Say which trials cannot count because others of these tasks have fewer, or which count as failures."""
    n_trials = trials(outcomes, names)
    fewest = min(n_trials.values(), default=0)
    if fewest == max(n_trials.values(), default=0):
        return
    few = sorted({names[task] for (task, _), n in n_trials.items() if n == fewest})
    of_some = f"{what} have from {fewest:,} to {max(n_trials.values()):,} trials"
    if policy.missing == MissingPlaces.ZERO and names.keys() - {task for task, _ in n_trials}:
        yield f"{of_some}, and others none: {until_all(policy)}, missing results count as failures"
        return
    yield (
        f"{of_some}: on each only {counting(fewest)}, as many as there are of the fewest "
        f"({words.first_names(few, N_NAMED)}); {in_order(policy)}"
    )


def until_all(policy: Policy) -> str:
    if policy.duplicates == Duplicates.MEAN:
        return "until all are delivered"
    return f"until the {policy.duplicates} submission has all"


def in_order(policy: Policy) -> str:
    """Say which of more trials than can count do."""
    if policy.duplicates == Duplicates.MEAN:
        return "earlier submissions count first, with their lowest results if they are not whole runs"
    return "a submission that is not a whole run counts with its lowest results"


def counting(n: int) -> str:
    return "one trial counts" if n == 1 else f"{n:,} trials count"


TrialDelivery = tuple[pa.Table, Submission]
"""All that would stand for an agent, and the delivery on trial among it: its outcomes have the id 0 where it
is not stored.
"""
BATCHES = (
    "tasks come in batches until the standard error is at most 3 points and the agent is unlikely to "
    "reach the top places, or is under 1 point and the agent is unlikely to lead"
)
NOT_YET_TOLD = "after these results you learn whether to run the rest"
STORED = ("stage", "n_run", "score", "lower", "upper", "se", "podium", "best", "reason")


def earlier(agent: Agent) -> Assignment | None:
    staged = agent.assignments.filter(mode=Mode.STAGED).select_related("study", "agent__benchmark")
    return staged.order_by("-id").first()


def study_to_begin(agent: Agent, policy: Policy, *, is_new: bool) -> StagedStudy | None:
    """The study by which an agent is asked batch by batch; None: it is not.

    One that has delivered before is not, as it could have chosen what. One that has begun so goes on,
    whatever the policy says by now.
    """
    if before := earlier(agent):
        return before.study
    if policy.assignment != Assigning.STAGED or not is_new:
        return None
    return usable_study(agent.benchmark)


def usable_study(benchmark: Benchmark) -> StagedStudy | None:
    study = latest_study(StagedStudy, benchmark)
    return study if study and study.result["available"] else None


def first_batch(study: StagedStudy, agent: Agent, policy: Policy) -> list[int]:
    ids = {name: pk for pk, name in names_asked(policy, None).items()}
    walk = step(study, tasks_run=[], means={}, active=ids.keys(), **_draws(agent, policy))
    return [ids[name] for name in walk.batch]


def add_next_batch(assignment: Assignment) -> WalkState:
    """Keep what is decided, and add the next batch where all before it is there; the agent is locked."""
    decision = store_decision(assignment)
    if decision.batch:
        ids = dict(assignment.agent.benchmark.tasks.values_list("name", "id"))
        assignment.tasks = [*assignment.tasks, *(ids[name] for name in decision.batch)]
        assignment.save(update_fields=["tasks"])
    return decision


def store_decision(assignment: Assignment) -> WalkState:
    """Keep what is decided once a batch is there: estimate, error, what it is compared with, and why."""
    walk, stored = step_of(assignment), assignment.decisions
    if walk.score is not None and (not stored or stored[-1]["n_run"] < walk.n_run):
        state = {name: value for name, value in asdict(walk).items() if name in STORED}
        assignment.decisions = [*stored, state]
        assignment.save(update_fields=["decisions"])
    return walk


def step_of(assignment: Assignment, trial: TrialDelivery | None = None) -> WalkState:
    assert assignment.study is not None
    delivered, means = means_so_far(assignment, trial)
    names = dict(assignment.agent.benchmark.tasks.values_list("id", "name"))
    return step(
        assignment.study,
        tasks_run=[names[pk] for pk in assignment.tasks],
        means=means,
        active=set(delivered.tasks.values()),
        **_draws(assignment.agent, delivered.policy),
    )


def _draws(agent: Agent, policy: Policy) -> dict[str, Any]:
    """What decides an agent's draws: a key of the server; in a replay the policy's seed and its name.

    Versions, and names that differ in marks, blanks or look-alike letters, are drawn alike, so that nobody
    asks under many names for the best tasks.
    """
    if agent.benchmark.replay is not None:
        return {"seed": policy.base_seed, "agent": agent.name}
    made_of = (letters(one.name) for one in (agent.scaffold, agent.model))
    return {
        "seed": int.from_bytes(draw_digest("walk", f"{agent.benchmark_id}")[:8], "big"),
        "agent": " ".join([f"{agent.owner_id}", *made_of]),
    }


def means_so_far(
    assignment: Assignment, trial: TrialDelivery | None = None
) -> tuple[AgentContext, dict[str, float | None]]:
    """Mean outcomes of the tasks that are there whole, by all that stands, as the board counts; and that."""
    agent = assignment.agent.merged_into_id or assignment.agent_id
    outcomes, new = trial or (live_outcomes([agent]), None)
    policy = policy_in_force(assignment.agent.benchmark)
    delivered = agent_context(agent, standing_submissions(agent, new), policy)
    return delivered, means_of(outcomes, delivered, n_trials=assignment.n_trials)


def staged_summary(walk: WalkState, *, dry_run: bool = False) -> dict[str, Any]:
    """Score, interval and what is left of a staged assignment.

    A dry run does not say who is drawn: that is told once the estimate is stored, so that nobody can look for
    outcomes, or an agent, that are not.
    """
    plain = walk.as_plain()
    if dry_run and walk.stage in (STOPPED, DRAWN):
        known, _, _ = walk.sentence.partition("; ")
        plain |= {"stage": "estimated", "done": None, "told": f"{known}; {walk.reason}: {NOT_YET_TOLD}"}
    return plain


def decisions_of(benchmark: Benchmark) -> dict[str, tuple[StagedStudy, list[dict[str, Any]]]]:
    """What was decided of the agents that were asked batch by batch, by name, and by which study.

    Of several assignments by the latest with a decision; none takes the place of one that was drawn.
    """
    of = Assignment.objects.filter(agent__benchmark=benchmark, mode=Mode.STAGED)
    decisions = dict[str, tuple[StagedStudy, list[dict[str, Any]]]]()
    for one in of.select_related("agent", "study").order_by("id"):
        assert one.study is not None
        _, known = decisions.get(one.agent.name, (None, []))
        if not known or (one.decisions and not any(made["stage"] == DRAWN for made in known)):
            decisions[one.agent.name] = (one.study, one.decisions)
    return decisions
