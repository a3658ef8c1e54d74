"""Submissions that are to be shown on a date: they count from then on, where nobody has to look at them."""

from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from leaderboard.catalog.models import Benchmark, Review
from leaderboard.catalog.queries import policy_in_force
from leaderboard.operations.checking import accept_unseen, wait, why_held_now
from leaderboard.operations.corrections import CountsNoMore, locked_submissions
from leaderboard.submissions.models import Judged, Status, Submission
from leaderboard.submissions.queries import without_held


def over(as_of: datetime) -> QuerySet[Submission]:
    """Those that wait although their date has come, and for nothing else."""
    waiting = without_held(Submission.objects.filter(status=Status.WAITING, embargo_until__lte=as_of))
    return waiting.filter(agent__benchmark__replay__isnull=True).order_by("id")


def end_due(*, benchmark: Benchmark, as_of: datetime) -> str:
    """Let those of a benchmark count, each in a transaction of its own; say how many."""
    due = over(as_of).filter(agent__benchmark=benchmark)
    n = sum(_end(submission, as_of) for submission in due)
    return f"{n} embargoes have ended"


@transaction.atomic
def _end(ended: Submission, as_of: datetime) -> bool:
    try:
        (submission,) = locked_submissions([ended.uuid])
    except CountsNoMore:
        return False
    if submission.status != Status.WAITING or not ends_by_itself(submission.agent.benchmark):
        return False
    if why := why_held_now(submission):
        reason = f"its embargo has ended; held for review: {why}"
        wait([submission], reason=reason, as_of=as_of, judged=Judged.IMPLAUSIBLE)
    else:
        accept_unseen(submission, reason="its embargo has ended", as_of=as_of)
    return True


def ends_by_itself(benchmark: Benchmark) -> bool:
    """Whether no operator has to look at what is delivered."""
    return policy_in_force(benchmark).review == Review.AUTOMATIC
