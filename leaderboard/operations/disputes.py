"""Reports of an entry: anybody may say what is wrong with one, and an operator decides."""

from datetime import datetime

from django.db import transaction

from leaderboard.accounts.models import User
from leaderboard.accounts.services import lock_account
from leaderboard.catalog.models import Agent
from leaderboard.errors import Conflict, Faulty, Refusal
from leaderboard.operations.acting import acting, require_seen
from leaderboard.operations.models import Dispute
from leaderboard.submissions.parsing.flat import Fault

MAX_LENGTH = 5_000  # characters
MAX_OPEN = 50  # reports of one person that wait for operators


class ReportedAlready(Conflict):
    message = "You have reported this entry in these words; the report waits for an operator."


@transaction.atomic
def report(
    *, agent: Agent, text: str, by: User | None, as_of: datetime, board: int | None = None, contact: str = ""
) -> Dispute:
    """Store what somebody says of an agent's entry; it changes nothing until an operator acts."""
    if not text.strip():
        raise Refusal("Say what is wrong with the entry.", code="nothing_said")
    if len(text) > MAX_LENGTH:
        raise Refusal("A report has at most 5,000 characters.", code="said_too_much")
    require_seen(text)
    if board is not None and not agent.benchmark.boards.filter(number=board).exists():
        fault = Fault(None, "board", str(board), "is the number of no board of this benchmark")
        raise Faulty("The report has a fault; nothing was stored.", faults=(fault,))
    if by is not None:
        _refuse_again(agent, text.strip(), by)
    return Dispute.objects.create(
        benchmark=agent.benchmark,
        agent=agent,
        board_number=board,
        text=text.strip(),
        by=by,
        contact=contact,
        created_at=as_of,
    )


def _refuse_again(agent: Agent, text: str, by: User) -> None:
    """Whatever is sent twice, or by a machine, would bury what others report.

    The account is locked, so that two at once wait for each other.
    """
    lock_account(user=by)
    waiting = Dispute.objects.filter(by=by, decided_at=None)
    if waiting.filter(agent=agent, text=text).exists():
        raise ReportedAlready
    if waiting.count() >= MAX_OPEN:
        raise Conflict(
            "Fifty of your reports wait for operators; more are taken once some of those are decided.",
            code="too_many_reports",
        )


@transaction.atomic
def decide(*, dispute: Dispute, upheld: bool, by: User | None, reason: str, as_of: datetime) -> Dispute:
    """Say whether a report is right. What follows (withdraw, confirm, erase) is a step of its own."""
    locked = Dispute.objects.select_for_update().get(pk=dispute.pk)
    if locked.decided_at:
        raise Conflict("This report has been decided already.", code="decided_already")
    with acting(by=by, reason=reason):
        locked.decided_at, locked.decided_by, locked.decided_reason, locked.upheld = as_of, by, reason, upheld
        locked.save(update_fields=["decided_at", "decided_by", "decided_reason", "upheld"])
    return locked
