"""Agents are judged again: on what is taken back, on trust, and at each recompute.

What is held is released once the agent is plausible with it. What counts is held where the agent itself
changed, or was judged by fewer verified agents than there were when it came; never since others did later.
"""

from datetime import datetime

from django.db import transaction
from django.db.models import Min

from leaderboard.catalog.models import Agent, Benchmark
from leaderboard.catalog.queries import policy_in_force
from leaderboard.operations.asking import names_asked
from leaderboard.operations.checking import accept_unseen, status_now, wait
from leaderboard.operations.corrections import CountsNoMore, locked_submissions
from leaderboard.operations.holding import is_judged
from leaderboard.studies.models import VerifiedReference
from leaderboard.studies.queries import active_subset
from leaderboard.studies.receipt import AgentContext, own_row, why_implausible
from leaderboard.submissions.models import Judged, Status, StatusChange, Submission, Verification
from leaderboard.submissions.queries import (
    by_arrival,
    held_for_review,
    live_outcomes,
    settings_of,
    submissions_of,
    trusted_accounts,
    verified_submissions,
)

PLAUSIBLE = "its agent is plausible by now"


def judge_held(*, benchmark: Benchmark, as_of: datetime) -> bool:
    """Let count what is held and is plausible by now; say whether there was any."""
    agents = list(held_for_review(benchmark).order_by("agent").values_list("agent", flat=True).distinct())
    n_released = sum(_judge_held_agent(benchmark, agent, as_of) for agent in agents)
    return n_released > 0


@transaction.atomic
def _judge_held_agent(benchmark: Benchmark, agent: int, as_of: datetime) -> int:
    uuids = list(held_for_review(benchmark).filter(agent=agent).values_list("uuid", flat=True))
    try:
        submissions = locked_submissions(uuids)
    except CountsNoMore:  # taken back meanwhile; the next recompute looks again
        return 0
    return _release(submissions[0].agent, as_of) if submissions else 0


def judge_new(*, benchmark: Benchmark, as_of: datetime) -> bool:
    """Judge what came to count after verified agents had changed, and before they were read anew.

    Returns whether anything is held or released by it.
    """
    before = VerifiedReference.objects.get(benchmark=benchmark).judged_upto
    upto = Benchmark.objects.get(pk=benchmark.pk).data_version
    changes = StatusChange.objects.filter(submission__agent__benchmark=benchmark)
    events = Verification.objects.filter(submission__agent__benchmark=benchmark)
    since = [
        some.filter(data_version__gt=before).aggregate(first=Min("data_version"))["first"]
        for some in (changes.filter(submission__loaded=True), events)
    ]
    changed_at = min(filter(None, since), default=upto)
    new = changes.filter(status=Status.ACCEPTED, submission__loaded=False, data_version__gt=changed_at)
    for agent in sorted(set(new.values_list("submission__agent", flat=True))):
        _judge_new_agent(agent, as_of)
    VerifiedReference.objects.filter(benchmark=benchmark).update(judged_upto=upto)
    return Benchmark.objects.get(pk=benchmark.pk).data_version != upto


@transaction.atomic
def _judge_new_agent(agent: int, as_of: datetime) -> None:
    counting = Submission.objects.filter(agent=agent, status=Status.ACCEPTED).values_list("uuid", flat=True)
    try:
        submissions = locked_submissions(list(counting))
    except CountsNoMore:  # taken back meanwhile, and judged then
        return
    if submissions:
        judge_again(submissions[0].agent, as_of=as_of)


def judge_again(agent: Agent, *, as_of: datetime) -> None:
    """Hold what counts of a locked agent where it is implausible by now; else release what is held."""
    theirs = submissions_of(agent)
    counting = by_arrival(theirs.filter(status=Status.ACCEPTED))
    if why := _why(agent, counting):
        reviewed = theirs.filter(status_changes__judged=Judged.REVIEWED)
        trusted = trusted_accounts(agent.benchmark)
        unseen = [one for one in counting.values() if is_judged(one, trusted) and one not in reviewed]
        if unseen:
            wait(unseen, reason=f"held for review: {why}", as_of=as_of, judged=Judged.IMPLAUSIBLE)
    else:
        _release(agent, as_of)


def _release(agent: Agent, as_of: datetime) -> int:
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
    return sum(_release_one(one, as_of) for one in submissions)


def _why(agent: Agent, submissions: dict[int, Submission]) -> str:
    """Say what is implausible of these submissions together; empty where nothing is, or nobody judges."""
    verified, trusted = verified_submissions(agent.benchmark), trusted_accounts(agent.benchmark)
    if not any(is_judged(one, trusted) for pk, one in submissions.items() if pk not in verified):
        return ""
    policy, pk = policy_in_force(agent.benchmark), agent.merged_into_id or agent.pk
    of = AgentContext(
        agent=pk,
        submissions=submissions,
        policy=policy,
        subset=active_subset(agent.benchmark),
        tasks=names_asked(policy, None),
        settings={pk: facets for facets, pk in settings_of(agent.benchmark).items()},
    )
    return why_implausible(own_row(live_outcomes([pk]), of), of)


def _release_one(submission: Submission, as_of: datetime) -> bool:
    benchmark = submission.agent.benchmark
    status, why = status_now(
        n_outcomes=submission.n_outcomes,
        embargo_until=submission.embargo_until,
        policy=policy_in_force(benchmark),
        as_of=as_of,
        checked=True,
    )
    if status == Status.ACCEPTED:
        accept_unseen(submission, reason=PLAUSIBLE, as_of=as_of)
        return True
    wait([submission], reason=why, as_of=as_of)
    return False
