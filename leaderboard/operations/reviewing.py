"""Whether a delivery counts: at once, after its checks, embargo or review, or not as it is implausible.

An agent's whole line is judged beside verified agents: what would count with a delivery, and the same with
what is held already, under the agent's lock. A delivery in slices is judged like a whole one, and what waits
for something else, or is checked, hides nothing. Agents are judged again on what is taken back, on trust, and
at each recompute. What is held is released once the agent is plausible with it; what counts is held where the
agent itself changed, or was judged by fewer verified agents than there were when it came, never since others
did later.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

import pyarrow.compute as pc
from django.db import transaction
from django.db.models import Min, QuerySet

from leaderboard.accounts.models import User
from leaderboard.catalog.models import Agent, Benchmark, Policy, Review
from leaderboard.catalog.queries import operates, policy_in_force
from leaderboard.errors import Conflict
from leaderboard.operations import checking
from leaderboard.operations.acting import acting
from leaderboard.operations.asking import agent_context
from leaderboard.operations.assignments import reopen
from leaderboard.operations.delivered import DeliveredRows, stored_delivery
from leaderboard.operations.events import tell_of_arrivals, tell_of_refusal
from leaderboard.operations.queries import CountsNoMore, has_been_shown, locked_submissions
from leaderboard.studies.answers import words
from leaderboard.studies.models import VerifiedReference
from leaderboard.studies.receipt import own_row, why_implausible
from leaderboard.submissions.models import LIVE, Judged, Status, StatusChange, Submission, Verification
from leaderboard.submissions.queries import (
    by_arrival,
    held_for_review,
    is_verified,
    live_outcomes,
    submissions_of,
    trusted_accounts,
    verified_submissions,
    without_held,
)
from leaderboard.submissions.services import append_changes, change_status

N_IN_REQUEST = 20_000  # outcomes; what has more is checked by the scheduler


@transaction.atomic
def accept(*, uuid: UUID, by: User | None, reason: str, as_of: datetime) -> Submission:
    """Let a submission count; what it replaces is superseded with it.

    The operator has looked at it, so that an agent that a board has shown needs no further approval.
    """
    submission = _waiting(uuid)
    if submission.embargo_until and submission.embargo_until > as_of:
        raise Conflict(
            f"The submission {uuid} is under embargo until {submission.embargo_until:%Y-%m-%d %H:%M} UTC.",
            code="under_embargo",
        )
    _let_count(submission, by=by, reason=reason, as_of=as_of, judged=Judged.REVIEWED)
    return submission


@transaction.atomic
def refuse(*, uuid: UUID, by: User | None, reason: str, as_of: datetime) -> Submission:
    submission = _waiting(uuid)
    with acting(by=by, reason=reason):
        tell_of_refusal(submission=submission, reason=reason, as_of=as_of)
        change([submission], Status.REFUSED, by=by, reason=reason, at=as_of)
    submission.status = Status.REFUSED
    return submission


def change(submissions: Sequence[Submission], status: Status, **why: Any) -> None:
    """Change locked submissions of one benchmark; ends the caller's transaction. `why`: by, reason, at."""
    changes = change_status(submissions=submissions, status=status, **why)
    if status not in LIVE:
        reopen({submission.agent_id for submission in submissions}, why["at"])
    append_changes(benchmark=submissions[0].agent.benchmark, changes=changes)


def _waiting(uuid: UUID) -> Submission:
    (submission,) = locked_submissions([uuid])
    if submission.status != Status.WAITING:
        raise Conflict(
            f"The submission {uuid} is {submission.status}; it does not wait for review.", code="not_waiting"
        )
    return submission


def _let_count(
    submission: Submission,
    *,
    by: User | None,
    reason: str,
    as_of: datetime,
    taken_back: bool = False,
    again: bool = False,
    judged: str = "",
) -> None:
    """Let a locked submission count from now on, at the end of the caller's transaction.

    `taken_back`: after a board had shown the agent, its owner takes back what this replaces; `again`: and
    had delivered such tasks before.
    """
    benchmark, stamp = submission.agent.benchmark, {"at": as_of, "by": by}
    replaced = [old for old in (submission.replaces,) if old and old.status in LIVE]
    old: dict[str, Any] = stamp | {"reason": f"by {submission.uuid}", "after_board": taken_back}
    new: dict[str, Any] = stamp | {"reason": reason, "after_board": again, "judged": judged}
    with acting(by=by, reason=reason):
        changes = change_status(submissions=replaced, status=Status.SUPERSEDED, **old)
        submission.status = Status.ACCEPTED
        changes += change_status(submissions=[submission], status=Status.ACCEPTED, **new)
        tell_of_arrivals(benchmark=benchmark, changes=changes, as_of=as_of, by_mail=True)
        append_changes(benchmark=benchmark, changes=changes)


# ------------------------------------------------------------------------------------- what nobody looked at


def status_now(
    *,
    n_outcomes: int,
    embargo_until: datetime | None,
    policy: Policy,
    as_of: datetime,
    checked: bool = False,
    implausible: str = "",
) -> tuple[Status, str]:
    """What becomes of a submission, and why it does not count; empty where it does."""
    if n_outcomes > N_IN_REQUEST and not checked:
        return Status.CHECKING, f"it has more than {N_IN_REQUEST:,} outcomes"
    reasons = []
    if policy.review == Review.MANUAL:
        reasons.append("an operator reviews it")
    if embargo_until and embargo_until > as_of:
        reasons.append(f"under embargo until {embargo_until:%Y-%m-%d %H:%M} UTC")
    if implausible:
        reasons.append(f"held for review: {implausible}")
    return (Status.WAITING if reasons else Status.ACCEPTED), "; ".join(reasons)


def conclude(*, uuid: UUID, as_of: datetime, check_claim: Callable[[], None] = lambda: None) -> str:
    """Check a submission that waits for it, and let it count or wait; `check_claim` keeps the run's claim.

    Both are stored in one transaction, so that who comes after a process that died finds it again.
    """
    submission = Submission.objects.select_related("agent__benchmark", "token__user").get(uuid=uuid)
    if submission.status != Status.CHECKING:
        return f"{submission.agent} is {submission.status} already"
    results = checking.check(submission)
    with transaction.atomic():
        check_claim()
        try:
            (submission,) = locked_submissions([uuid])
        except CountsNoMore as taken_back:
            return str(taken_back)
        if submission.status != Status.CHECKING:
            return f"{submission.agent} is {submission.status} already"
        checking.keep(submission, results, as_of=as_of)
        implausible = _why_held_now(submission)
        status = _settle(
            submission, reason="the scheduler has checked it", as_of=as_of, implausible=implausible
        )
    delivered = f"{words.counted(submission.n_outcomes, 'outcome')} of {submission.agent}"
    return f"{delivered}: {words.counted(len(checking.warnings(results)), 'warning')}, now {status}"


def _settle(submission: Submission, *, reason: str, as_of: datetime, implausible: str = "") -> Status:
    status, why = status_now(
        n_outcomes=submission.n_outcomes,
        embargo_until=submission.embargo_until,
        policy=policy_in_force(submission.agent.benchmark),
        as_of=as_of,
        checked=True,
        implausible=implausible,
    )
    if status == Status.ACCEPTED:
        _accept_unseen(submission, reason=reason, as_of=as_of)
    else:
        judged = Judged.IMPLAUSIBLE if implausible else ""
        change([submission], Status.WAITING, by=None, reason=why, at=as_of, judged=judged)
    return status


def _accept_unseen(submission: Submission, *, reason: str, as_of: datetime) -> None:
    """Let a locked submission count that no operator has looked at: as if it had counted at once.

    What its owner took back or ran again is marked, where a board had shown the agent before it came, or
    before its embargo was over: for so long its owner could choose.
    """
    agent, token = submission.agent, submission.token
    by_operator = token is None or operates(token, agent.benchmark)
    decided = max(filter(None, (submission.received_at, submission.embargo_until)))
    shown = not by_operator and has_been_shown(agent, before=decided)
    delivered = stored_delivery(submission, overtaken=True)
    _let_count(
        submission,
        by=None,
        reason=reason,
        as_of=as_of,
        taken_back=shown and submission.replaces_id is not None,
        again=shown and delivered.is_again,
    )


# ------------------------------------------------------------------------------------------------- embargoes


def over(as_of: datetime) -> QuerySet[Submission]:
    """Submissions that wait although their date has come, and for nothing else."""
    waiting = without_held(Submission.objects.filter(status=Status.WAITING, embargo_until__lte=as_of))
    return waiting.filter(agent__benchmark__replay__isnull=True).order_by("id")


def end_due(*, benchmark: Benchmark, as_of: datetime) -> str:
    """Let those of a benchmark count, each in a transaction of its own; say how many."""
    n, ended = 0, "its embargo has ended"
    for one in over(as_of).filter(agent__benchmark=benchmark):
        with suppress(CountsNoMore), transaction.atomic():
            (submission,) = locked_submissions([one.uuid])
            if submission.status != Status.WAITING or not ends_by_itself(submission.agent.benchmark):
                continue
            if why := _why_held_now(submission):
                why, judged = f"{ended}; held for review: {why}", Judged.IMPLAUSIBLE
                change([submission], Status.WAITING, by=None, reason=why, at=as_of, judged=judged)
            else:
                _accept_unseen(submission, reason=ended, as_of=as_of)
            n += 1
    return f"{n} embargoes have ended"


def ends_by_itself(benchmark: Benchmark) -> bool:
    return policy_in_force(benchmark).review == Review.AUTOMATIC


# --------------------------------------------------------------------------------------------- plausibility


def why_held(delivered: DeliveredRows) -> str:
    """Say what is implausible of the agent with this delivery; empty where nothing is, or nobody judges."""
    submission = delivered.submission
    if not _is_judged(submission, delivered.trusted) or (submission.pk and is_verified(submission)):
        return ""
    besides = [delivered.beside_counting()]
    if delivered.before.num_rows:
        awaiting = held_for_review(submission.agent.benchmark).filter(agent=submission.agent)
        if pks := set(awaiting.values_list("pk", flat=True)):
            besides.append(delivered.beside_counting(pks))
    return next(filter(None, (_why_of(one, delivered) for one in besides)), "")


def _why_of(judged: DeliveredRows, delivered: DeliveredRows) -> str:
    """Say what is implausible of a delivery with all that stands, or with a part of it."""
    is_part = judged.before.num_rows == 0 < delivered.before.num_rows
    tasks = (delivered.rows if is_part else delivered.outcomes)["task"]
    n_ran = pc.count_distinct(tasks).as_py()
    return why_implausible(judged.row, judged.of_agent, n_ran=n_ran, is_part=is_part)


def _why_held_now(submission: Submission) -> str:
    return why_held(stored_delivery(submission, overtaken=True))


def _is_judged(submission: Submission, trusted: Collection[int]) -> bool:
    """Whether neither an operator delivered it nor one of the accounts that operators trust."""
    benchmark, token = submission.agent.benchmark, submission.token
    if submission.loaded or token is None or operates(token, benchmark):
        return False
    return submission.submitted_by_id not in trusted


def judge_held(*, benchmark: Benchmark, as_of: datetime) -> bool:
    """Let count what is held and is plausible by now; say whether there was any."""
    waiting = held_for_review(benchmark)
    agents = list(waiting.order_by("agent").values_list("agent", flat=True).distinct())
    done = [_locked(waiting.filter(agent=agent), _release, as_of) for agent in agents]
    return sum(filter(None, done)) > 0


def judge_new(*, benchmark: Benchmark, as_of: datetime) -> bool:
    """Judge what came to count after verified agents had changed, and before they were read anew.

    Returns whether anything is held or released by it.
    """
    before = VerifiedReference.objects.defer("arrays", "tasks").get(benchmark=benchmark).judged_upto
    upto = Benchmark.objects.get(pk=benchmark.pk).data_version
    if upto == before:
        return False
    changes = StatusChange.objects.filter(submission__agent__benchmark=benchmark)
    events = Verification.objects.filter(submission__agent__benchmark=benchmark)
    since = [
        some.filter(data_version__gt=before).aggregate(first=Min("data_version"))["first"]
        for some in (changes.filter(submission__loaded=True), events)
    ]
    changed_at = min(filter(None, since), default=upto)
    new = changes.filter(status=Status.ACCEPTED, submission__loaded=False, data_version__gt=changed_at)
    for agent in sorted(set(new.values_list("submission__agent", flat=True))):
        _locked(Submission.objects.filter(agent=agent, status=Status.ACCEPTED), judge_again, as_of)
    VerifiedReference.objects.filter(benchmark=benchmark).update(judged_upto=upto)
    return Benchmark.objects.get(pk=benchmark.pk).data_version != upto


@transaction.atomic
def _locked(theirs: QuerySet[Submission], judge: Callable[..., int | None], as_of: datetime) -> int | None:
    """Judge an agent whose submissions these are; where one is taken back meanwhile, who does judges it."""
    try:
        submissions = locked_submissions(list(theirs.values_list("uuid", flat=True)))
    except CountsNoMore:
        return None
    return judge(submissions[0].agent, as_of=as_of) if submissions else None


def judge_again(agent: Agent, *, as_of: datetime) -> None:
    """Hold what counts of a locked agent where it is implausible by now; else release what is held."""
    theirs = submissions_of(agent)
    counting = by_arrival(theirs.filter(status=Status.ACCEPTED))
    if why := _why(agent, counting):
        reviewed = theirs.filter(status_changes__judged=Judged.REVIEWED)
        trusted = trusted_accounts(agent.benchmark)
        unseen = [one for one in counting.values() if _is_judged(one, trusted) and one not in reviewed]
        if unseen:
            why = f"held for review: {why}"
            change(unseen, Status.WAITING, by=None, reason=why, at=as_of, judged=Judged.IMPLAUSIBLE)
    else:
        _release(agent, as_of=as_of)


def _release(agent: Agent, *, as_of: datetime) -> int:
    """Let count what is held of a locked agent, if it is plausible with what counts; return how many.

    What is under embargo, or is to be replaced, is not released, and hides nothing.
    """
    waiting = held_for_review(agent.benchmark).filter(agent=agent).select_related("agent__benchmark")
    submissions = [one for one in waiting if not (one.embargo_until and one.embargo_until > as_of)]
    replaced = {one.replaces_id for one in submissions if one.replaces_id}
    submissions = [one for one in submissions if one.pk not in replaced]
    counting = submissions_of(agent).filter(status=Status.ACCEPTED).exclude(pk__in=replaced)
    together = counting | Submission.objects.filter(pk__in=[one.pk for one in submissions])
    if not submissions or _why(agent, by_arrival(together)):
        return 0
    reason = "its agent is plausible by now"
    return sum(_settle(one, reason=reason, as_of=as_of) == Status.ACCEPTED for one in submissions)


def _why(agent: Agent, submissions: dict[int, Submission]) -> str:
    """Say what is implausible of these submissions together; empty where nothing is, or nobody judges."""
    verified, trusted = verified_submissions(agent.benchmark), trusted_accounts(agent.benchmark)
    if not any(_is_judged(one, trusted) for pk, one in submissions.items() if pk not in verified):
        return ""
    pk = agent.merged_into_id or agent.pk
    of = agent_context(pk, submissions, policy_in_force(agent.benchmark))
    outcomes = live_outcomes([pk])
    return why_implausible(own_row(outcomes, of), of, n_ran=pc.count_distinct(outcomes["task"]).as_py())
