"""Assignments: which tasks an agent is asked to run, and whether it has."""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from functools import partial
from secrets import SystemRandom
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
from django.db import transaction
from django.db.models import QuerySet

from leaderboard.accounts.models import User
from leaderboard.accounts.services import lock_account
from leaderboard.boards.queries import head_of
from leaderboard.catalog.models import Agent, Assigning, Benchmark, Policy
from leaderboard.catalog.queries import policy_in_force
from leaderboard.catalog.services import DESCRIBED_OTHERWISE, AgentDescription, AgentMismatch, ensure_agents
from leaderboard.errors import Conflict, Forbidden, Frozen
from leaderboard.operations import asking, naming, quotas
from leaderboard.operations.models import Assignment, AssignmentStatus, Mode, RerunKind
from leaderboard.operations.queries import open_request, request_naming
from leaderboard.studies.models import StagedStudy
from leaderboard.studies.queries import active_subset
from leaderboard.studies.rules import counting_of, n_audit_tasks
from leaderboard.studies.staged_steps import DRAWN, WalkState
from leaderboard.submissions.models import LIVE, Status, Submission
from leaderboard.submissions.queries import live_outcomes, settings_of, submissions_of

N_NAMED = 100  # tasks that a refusal names


def not_your_agent() -> Forbidden:
    return Forbidden(
        "This name, or one that reads like it, belongs to another account; its owner or an operator can "
        "add to it.",
        code="not_your_agent",
    )


def nothing_lacks() -> Conflict:
    return Conflict("This agent already ran all its tasks.", code="nothing_lacks")


@transaction.atomic
def assign(
    *,
    benchmark: Benchmark,
    agent: AgentDescription,
    by: User | None,
    as_of: datetime,
    by_operator: bool = False,
) -> Assignment:
    """Say which tasks an agent is to run; asked again, repeat it, or add the next batch of a staged one.

    `by` is the account that asks, and owns an agent that is new; None: an operator at the command line.
    The agent is locked, so that of two that ask at once the second gets what the first one got.
    """
    locked = Benchmark.objects.get(pk=benchmark.pk)
    check_open(locked)
    described_agent = agent_of(
        benchmark=locked, described=agent, by=by, by_operator=by_operator or by is None, as_of=as_of
    )
    if by and not submissions_of(described_agent).exists():
        naming.check_made_of(described_agent)
    if standing := _current(described_agent, as_of):
        return _going_on(standing, as_of) if standing.mode == Mode.STAGED else standing
    naming.expire(described_agent.assignments, as_of)
    policy = policy_in_force(locked)
    if by is not None and not by_operator:
        quotas.check_assignments(policy=policy, user=by, as_of=as_of)
    return _new(described_agent, policy, by, as_of)


def check_open(benchmark: Benchmark) -> None:
    if benchmark.frozen_at:
        raise Frozen(f"This benchmark takes no results at present: {benchmark.frozen_reason}")
    if of := benchmark.replay and benchmark.replay["of"]:
        raise Conflict(f"This is a replay of {of} and takes no results. Submit to {of}.", code="replay")


def agent_of(
    *, benchmark: Benchmark, described: AgentDescription, by: User | None, by_operator: bool, as_of: datetime
) -> Agent:
    """The agent, made if it is new, and locked after the account that asks; closed to others than its owner
    and operators, who are not told how one is described that nobody may know of yet.
    """
    if by:
        lock_account(user=by)
    if not by_operator:
        naming.check_no_marks(benchmark, described)
    naming.free_unused(benchmark=benchmark, names=[described.name], by=by, as_of=as_of)
    try:
        agent = ensure_agents(benchmark=benchmark, descriptions=[described], owner=by)[described.name]
    except AgentMismatch as error:
        may_know = partial(naming.may_know, benchmark=benchmark, name=described.name)
        if by is None or by_operator or may_know(by=None):
            raise
        if not may_know(by=by):
            raise not_your_agent() from None
        if error.code != DESCRIBED_OTHERWISE:
            raise
        # A scaffold or model is spelt as whoever stated it first spelt it, on whatever benchmark
        raise AgentMismatch(
            f"You described {described.name!r} differently before. Repeat name, scaffold, model and version, "
            "or give a changed agent a name of its own.",
            code=DESCRIBED_OTHERWISE,
        ) from None
    if agent.owner != by and not by_operator:
        raise not_your_agent()
    return agent


def _current(agent: Agent, as_of: datetime) -> Assignment | None:
    return agent.assignments.filter(status=AssignmentStatus.OPEN, expires_at__gt=as_of).first()


def _new(agent: Agent, policy: Policy, by: User | None, as_of: datetime) -> Assignment:
    asked, stored = _wanted(agent, policy), live_outcomes([agent.pk])
    is_new = not submissions_of(agent).exists()  # who took everything back has seen what it scores
    if not (asked.request or agent.benchmark.full_runs_only_at) and (
        study := asking.study_to_begin(agent, policy, is_new=is_new)
    ):
        return _assign_staged(agent, policy, study, by, as_of)
    has = _has(stored, policy.n_trials)
    drawn = _audit(agent, policy, asked.tasks, is_new=not stored.num_rows) if asked.subset else []
    tasks = [pk for pk in asking.names_asked(policy, [*asked.tasks, *drawn]) if pk not in has]
    if not tasks:
        raise nothing_lacks()
    asked.audit = [pk for pk in drawn if pk in tasks and pk not in asked.tasks]
    asked.tasks = tasks
    if has:
        asked.reason += "; asked for is what the agent lacks of it"
    if n_audit := len(asked.audit):
        n = "1 task" if n_audit == 1 else f"{n_audit} tasks"
        asked.reason += f"; {n} from outside it, drawn for this agent, check that it ranks like the rest"
    asked.mode = Mode.DELTA if has else Mode.SUBSET if asked.subset else Mode.FULL
    if asked.subset and (board := agent.benchmark.boards.order_by("-number").first()):
        trials = head_of(board).trials
        asked.n_trials_recommended = trials.recommended if trials else None
    asked.n_trials, asked.asked_by, asked.created_at = policy.n_trials, by, as_of
    asked.expires_at = as_of + timedelta(days=policy.assignment_days)
    asked.save(force_insert=True)
    return asked


def _assign_staged(
    agent: Agent, policy: Policy, study: StagedStudy, by: User | None, as_of: datetime
) -> Assignment:
    """Begin with the first batch; go on where an earlier assignment expired.

    One that has come to its end stays: there is nothing more to ask for.
    """
    before = asking.earlier(agent)
    if before and before.status == AssignmentStatus.FULFILLED and asking.step_of(before).is_over:
        return before
    tasks = list(before.tasks) if before else asking.first_batch(study, agent, policy)
    if not tasks:
        raise nothing_lacks()
    made = Assignment.objects.create(
        agent=agent,
        mode=Mode.STAGED,
        reason=asking.BATCHES,
        study=study,
        tasks=tasks,
        n_trials=before.n_trials if before else policy.n_trials,
        asked_by=by,
        created_at=as_of,
        expires_at=as_of + timedelta(days=policy.assignment_days),
    )
    return _going_on(made, as_of)


def _going_on(assignment: Assignment, as_of: datetime) -> Assignment:
    _end_if(assignment, asking.add_next_batch(assignment).is_over, as_of)
    return assignment


def _wanted(agent: Agent, policy: Policy) -> Assignment:
    """What an agent is asked for now, whatever it has, not stored yet.

    All tasks while there is no subset, full runs are asked for, or a request names the agent; else the
    subset.
    """
    benchmark = agent.benchmark
    everything, subset = list(asking.names_asked(policy, None)), active_subset(benchmark)
    asked = Assignment(agent=agent, tasks=everything)
    if benchmark.full_runs_only_at:
        asked.reason = f"an operator asked for full runs: {benchmark.full_runs_only_reason}"
        return asked
    if request := request_naming(agent):
        asked.request = request
        asked.reason = f"a {request.kind} request names this agent: {request.reason}"
        return asked
    if policy.assignment == Assigning.FULL:
        asked.reason = "the policy asks every agent for all tasks"
        return asked
    is_staged, of_subset = policy.assignment == Assigning.STAGED, asking.asked_tasks(policy)
    in_batches = is_staged and (subset is not None or asking.usable_study(benchmark) is not None)
    if not (of_subset or in_batches):
        board = benchmark.boards.order_by("-number").first()
        why = head_of(board).why if board else "no board has been published yet"
        asked.reason = f"no ranking tasks are in use, so every agent runs all tasks: {why}"
    elif request := open_request(benchmark, RerunKind.DRIFT):
        asked.request, asked.reason = request, f"a drift request is open: {request.reason}"
    elif of_subset is None or subset is None:
        asked.reason = "batches are for agents that have not delivered yet; others run all tasks"
        if asking.usable_study(benchmark) is None:
            asked.reason = "batches begin with the next board; until then every agent runs all tasks"
    else:
        asked.tasks, asked.subset = of_subset, subset
        asked.reason = f"subset {subset.number} is asked for, {len(of_subset)} of {len(everything)} tasks"
    return asked


def _has(stored: pa.Table, n_trials: int) -> set[int]:
    """Ids of the tasks with that many outcomes; confirmed failures of the harness are lacking."""
    n = Counter(stored.filter(pc.invert(stored["free"]))["task"].to_pylist())
    return {task for task, n_stored in n.items() if n_stored >= n_trials}


def _audit(agent: Agent, policy: Policy, of_subset: list[int], *, is_new: bool) -> list[int]:
    """Tasks from outside the subset, drawn once for an agent: who asks again gets no other ones."""
    earlier = agent.assignments.exclude(subset=None).order_by("-id").first()
    if earlier or not is_new:
        return list(earlier.audit) if earlier else []
    outside = [pk for pk in asking.names_asked(policy, None) if pk not in of_subset]
    n = n_audit_tasks(len(of_subset), policy.audit_share)
    return SystemRandom().sample(outside, min(n, len(outside)))


# ---------------------------------------------------------------------------------------------- delivering


def find_assignment(
    *, agent: Agent, named: UUID | None, replaces: Sequence[Submission], as_of: datetime
) -> Assignment | None:
    """The assignment that a delivery is for: the one it names, that of what it replaces, or the open one.

    One by which tasks were chosen for the agent is open also after its days; the last one, of the present
    subset, is open again where all that was delivered for it was withdrawn.
    """
    if named is not None:
        if assignment := agent.assignments.filter(uuid=named).first():
            return assignment
        raise Conflict("`assignment` must name an assignment of the same agent.", code="not_its_assignment")
    if before := Assignment.objects.filter(submissions__in=replaces).order_by("-id").first():
        return before
    theirs = list(agent.assignments.select_related("study").order_by("-id"))
    current = [one for one in theirs if one.status == AssignmentStatus.OPEN and one.expires_at > as_of]
    if found := [*current, *(one for one in theirs if one.mode == Mode.STAGED)]:
        return found[0]
    last = theirs[0] if theirs else None
    if last is None or last.status != AssignmentStatus.FULFILLED:
        return None
    is_of_now = last.subset is None or last.subset == active_subset(agent.benchmark)
    return last if is_of_now and not last.submissions.exclude(status=Status.WITHDRAWN).exists() else None


def check_asked(assignment: Assignment | None, rows: pa.Table, before: pa.Table) -> None:
    """Refuse outcomes that nobody asked for of an agent that is asked batch by batch, or asks again.

    They would make its score a measured one, and who has run all tasks in secret would deliver the rest where
    it is better than the estimate. An assignment from before the latest one asks for nothing more; and a task
    that is there under one prompt and judge was run.
    """
    if assignment is None:
        return
    latest = assignment.agent.assignments.order_by("-id").first()
    if assignment.mode != Mode.STAGED and latest is not None and latest.mode == Mode.STAGED:
        assignment = latest
    if assignment.mode != Mode.STAGED:
        return
    benchmark = assignment.agent.benchmark
    if again := _run_under_other_labels(benchmark, rows, before):
        raise Conflict(
            "Some of these tasks were run before under another prompt or judge, and an agent that is asked "
            "batch by batch runs each once. Nothing was stored. Name the submission that this one "
            "`replaces`, if its labels were wrong.",
            code="not_asked_for",
            n_tasks=len(again),
            tasks=_first_tasks(benchmark, again),
        )
    if others := set(rows["task"].to_pylist()).difference(assignment.tasks):
        raise Conflict(
            "This agent is asked for tasks batch by batch, and some of these were not asked for; nothing "
            "was stored. Ask for its assignment: that names the next batch or, for an agent that a recall"
            " or a drift request names, all that remain. An operator can open a drift request.",
            code="not_asked_for",
            n_tasks=len(others),
            tasks=_first_tasks(benchmark, others),
        )


def _run_under_other_labels(benchmark: Benchmark, rows: pa.Table, before: pa.Table) -> set[int]:
    """Ids of tasks that stand under a prompt or judge that is not compared, and come again under another."""
    if not before.num_rows:
        return set()
    labels = {pk: facets[:2] for facets, pk in settings_of(benchmark).items()}
    compared = counting_of(policy_in_force(benchmark), active_subset(benchmark)).settings
    counted = set() if compared == "comparable" else {one[:2] for one in compared}
    stands = before.filter(pc.invert(before["free"]))
    new, old = (
        {
            (task, labels[setting])
            for task, setting in zip(*(one["task"].to_pylist(), one["setting"].to_pylist()), strict=True)
        }
        for one in (rows, stands)
    )
    elsewhere = {task for task, label in old if label not in counted}
    return {task for task, _ in new - old if task in elsewhere}


def _first_tasks(benchmark: Benchmark, ids: set[int]) -> list[str]:
    named = benchmark.tasks.filter(pk__in=ids).order_by("name")
    return list(named.values_list("name", flat=True)[:N_NAMED])


def tasks_asked_for(
    assignment: Assignment | None, agent: Agent, policy: Policy, as_of: datetime
) -> list[int] | None:
    """Ids of the tasks whose absence leaves the agent without a rank; None: all active tasks.

    An agent that runs the rest of a full run gains nothing by a part of it, and loses nothing. One that has
    not run what it was asked for before a drift request was opened is asked for all tasks while it is open,
    unless it has an assignment from before, within its days.
    """
    is_subset = assignment is None or _is_the_rest(assignment)
    is_over = assignment is not None and assignment.mode != Mode.STAGED and _is_late(assignment, as_of)
    if (is_subset or is_over) and _owes_a_full_run(agent, policy):
        if not _live(agent).exclude(asked=None).exists():
            return None
        return list(asking.names_asked(policy, None))  # with those named before
    if assignment is None or is_subset:
        return asking.asked_tasks(policy)
    # Ids of its tasks, and of all of its subset, which is not for the submitter to divide
    if assignment.subset is None:
        return list(assignment.tasks)
    of_subset = assignment.subset.tasks.filter(retired_at=None).order_by("name").values_list("id", flat=True)
    return [*(pk for pk in of_subset if pk not in assignment.tasks), *assignment.tasks]


def _owes_a_full_run(agent: Agent, policy: Policy) -> bool:
    """Whether a drift request is open, and the agent lacked a task that it was asked for as it was opened."""
    request = open_request(agent.benchmark, RerunKind.DRIFT)
    if request is None:
        return False
    earlier = _live(agent).filter(received_at__lte=request.opened_at)
    tasks_of = dict(earlier.values_list("pk", "asked"))
    if not tasks_of:
        return True
    stored = live_outcomes([agent.pk])
    before = stored.filter(pc.is_in(stored["submission"], pa.array(list(tasks_of), pa.int32())))
    named = [pk for tasks in tasks_of.values() for pk in tasks or ()] or None
    return not asking.names_asked(policy, named).keys() <= _has(before, 1)


def _live(agent: Agent) -> QuerySet[Submission]:
    return submissions_of(agent).filter(status__in=LIVE)


def _is_the_rest(assignment: Assignment) -> bool:
    return assignment.mode == Mode.DELTA and assignment.subset_id is None


def wanted_by(assignment: Assignment | None, submission: Submission) -> list[int] | None:
    """Ids of all the tasks that a delivery was asked for; None: all active tasks."""
    if assignment is None or submission.asked is None or not _is_the_rest(assignment):
        return submission.asked
    return [*(pk for pk in submission.asked if pk not in assignment.tasks), *assignment.tasks]


def n_counted(assignment: Assignment | None) -> int | None:
    """How many trials of a task are asked for: as many as the policy has, or recommended where more.

    The rest of a full run says nothing of the trials on the subset, which were delivered before.
    """
    if assignment is None or _is_the_rest(assignment):
        return None
    return max(assignment.n_trials, assignment.n_trials_recommended or 0)


def _is_late(assignment: Assignment, as_of: datetime) -> bool:
    return assignment.status == AssignmentStatus.EXPIRED or assignment.expires_at <= as_of


def link_delivery(
    *, assignment: Assignment, submission: Submission, outcomes: pa.Table, as_of: datetime
) -> WalkState | None:
    """Link a delivery to its assignment, and end this or the one that is open where nothing is left to run;
    returns how far a staged one has come. `outcomes` has the number `n` of the agent's outcomes for each
    task and condition.
    """
    assignment.submissions.add(submission)
    for other in assignment.agent.assignments.filter(status=AssignmentStatus.OPEN).exclude(pk=assignment.pk):
        _end_where_covered(other, outcomes, as_of)
    return _end_where_covered(assignment, outcomes, as_of)


def _end_where_covered(assignment: Assignment, outcomes: pa.Table, as_of: datetime) -> WalkState | None:
    """It is fulfilled where the agent's outcomes cover it, and a staged one where enough is known."""
    if assignment.mode == Mode.STAGED:
        walk = asking.store_decision(assignment)
        _end_if(assignment, walk.is_over, as_of)
        return walk
    n = Counter[int]()
    for task, n_outcomes in zip(outcomes["task"].to_pylist(), outcomes["n"].to_pylist(), strict=True):
        n[task] += n_outcomes
    _end_if(assignment, all(n[task] >= assignment.n_trials for task in assignment.tasks), as_of)
    return None


def _end_if(assignment: Assignment, covers: bool, as_of: datetime) -> None:
    if covers and assignment.status == AssignmentStatus.OPEN and not _is_late(assignment, as_of):
        assignment.status, assignment.ended_at = AssignmentStatus.FULFILLED, as_of
        assignment.save(update_fields=["status", "ended_at"])


def reopen(agents: Collection[int], as_of: datetime) -> None:
    """Open staged assignments again that lack results because some were withdrawn.

    They stay open until their last day. They expire after it, if another assignment followed, and if the
    agent was drawn: an agent that withdraws its remaining tasks has no rank.
    """
    fulfilled = Assignment.objects.filter(
        agent__in=agents, mode=Mode.STAGED, status=AssignmentStatus.FULFILLED
    )
    for one in fulfilled.select_related("study", "agent__benchmark"):
        if asking.step_of(one).is_over:
            continue
        is_latest = not one.agent.assignments.filter(pk__gt=one.pk).exists()
        was_drawn = any(decision["stage"] == DRAWN for decision in one.decisions)
        one.status, one.ended_at = AssignmentStatus.EXPIRED, as_of
        if is_latest and not was_drawn and one.expires_at > as_of:
            one.status, one.ended_at = AssignmentStatus.OPEN, None
        one.save(update_fields=["status", "ended_at"])


def summary(
    assignment: Assignment | None,
    as_of: datetime,
    walk: WalkState | None,
    *,
    dry_run: bool,
) -> dict[str, Any] | None:
    if assignment is None:
        return None
    plain: dict[str, Any] = {name: getattr(assignment, name) for name in ("mode", "status")}
    plain = {"id": str(assignment.uuid), **plain, "late": bool(lateness(assignment, as_of))}
    if walk is not None:
        plain["staged"] = asking.staged_summary(walk, dry_run=dry_run)
    return plain


def lateness(assignment: Assignment | None, as_of: datetime) -> list[str]:
    is_open = assignment is not None and assignment.status != AssignmentStatus.FULFILLED
    if assignment is None or not is_open or not _is_late(assignment, as_of):
        return []
    day = f"{_expired_at(assignment):%Y-%m-%d}"
    return [f"the assignment expired on {day}: the outcomes count, marked as late"]


def came_late(assignment: Assignment) -> bool:
    """Whether outcomes came for it after it had expired, and were not taken back."""
    if assignment.status == AssignmentStatus.FULFILLED:
        return False
    after = assignment.submissions.filter(received_at__gte=_expired_at(assignment))
    return after.filter(status__in=LIVE).exists()


def _expired_at(assignment: Assignment) -> datetime:
    return min(assignment.expires_at, assignment.ended_at or assignment.expires_at)


def names_of(assignment: Assignment) -> Collection[str]:
    """The tasks of an assignment by name; those of a staged one in the order of its batches."""
    tasks = assignment.agent.benchmark.tasks.filter(pk__in=assignment.tasks)
    names = dict(tasks.order_by("name").values_list("id", "name"))
    return [names[pk] for pk in assignment.tasks] if assignment.mode == Mode.STAGED else list(names.values())


def expire_due(*, as_of: datetime) -> str:
    n = naming.expire(Assignment.objects.filter(expires_at__lte=as_of), as_of)
    return f"{n} assignments have expired"
