"""Submissions that wait for an operator: the policy says so, or they are held as implausible."""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from leaderboard.accounts.models import User
from leaderboard.errors import Conflict
from leaderboard.operations.acting import acting
from leaderboard.operations.arrivals import tell_of_arrivals, tell_of_refusal
from leaderboard.operations.corrections import locked_submissions
from leaderboard.submissions.models import LIVE, Judged, Status, Submission
from leaderboard.submissions.services import append_changes, change_status


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
    let_count(submission=submission, by=by, reason=reason, as_of=as_of, judged=Judged.REVIEWED)
    return submission


def let_count(
    *,
    submission: Submission,
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
    benchmark = submission.agent.benchmark
    replaced = [old for old in (submission.replaces,) if old and old.status in LIVE]
    with acting(by=by, reason=reason):
        changes = change_status(
            submissions=replaced,
            status=Status.SUPERSEDED,
            at=as_of,
            by=by,
            reason=f"by {submission.uuid}",
            after_board=taken_back,
        )
        submission.status = Status.ACCEPTED
        changes += change_status(
            submissions=[submission],
            status=Status.ACCEPTED,
            at=as_of,
            by=by,
            reason=reason,
            after_board=again,
            judged=judged,
        )
        tell_of_arrivals(benchmark=benchmark, changes=changes, as_of=as_of, by_mail=True)
        append_changes(benchmark=benchmark, changes=changes)


@transaction.atomic
def refuse(*, uuid: UUID, by: User | None, reason: str, as_of: datetime) -> Submission:
    """Let a submission never count; its keys are free again."""
    submission = _waiting(uuid)
    with acting(by=by, reason=reason):
        changes = change_status(
            submissions=[submission], status=Status.REFUSED, at=as_of, by=by, reason=reason
        )
        tell_of_refusal(submission=submission, reason=reason, as_of=as_of)
        append_changes(benchmark=submission.agent.benchmark, changes=changes)
    submission.status = Status.REFUSED
    return submission


def _waiting(uuid: UUID) -> Submission:
    (submission,) = locked_submissions([uuid])
    if submission.status != Status.WAITING:
        raise Conflict(
            f"The submission {uuid} is {submission.status}; it does not wait for review.", code="not_waiting"
        )
    return submission
