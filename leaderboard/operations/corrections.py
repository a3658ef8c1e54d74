"""What is decided of a submission once it was delivered: taken back, confirmed, approved, verified, disputed.

Nothing is deleted: the log says why.
"""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Sum

from leaderboard.accounts.models import ApiToken, User
from leaderboard.accounts.services import lock_account
from leaderboard.called import PROGRAM
from leaderboard.catalog.models import Agent, Benchmark, Role
from leaderboard.catalog.queries import operates, role_of
from leaderboard.errors import Conflict, Faulty, Forbidden, Missing, Refusal
from leaderboard.operations.acting import acting, require_seen
from leaderboard.operations.models import Dispute
from leaderboard.operations.queries import has_been_shown, locked_submissions
from leaderboard.operations.reviewing import change, judge_again
from leaderboard.studies.answers import words
from leaderboard.studies.queries import active_subset
from leaderboard.studies.second_runs import RunAgreement, compare_runs, drawn_tasks
from leaderboard.submissions.models import (
    LIVE,
    AccountTrust,
    Approval,
    InvalidConfirmation,
    Outcome,
    Status,
    StatusChange,
    Submission,
    Verification,
)
from leaderboard.submissions.parsing.flat import Fault, FlatFile
from leaderboard.submissions.queries import (
    AcceptedSubmission,
    deliveries,
    is_verified,
    trusted_accounts,
    withdrawn_by_owner,
    withheld,
)
from leaderboard.submissions.services import bump_data_version

MAX_LENGTH = 5_000  # characters of a report
N_NAMED = 3
MAX_OPEN = 50  # reports of one person that wait for operators


def not_your_submission() -> Forbidden:
    return Forbidden(
        "This submission belongs to another account; its owner or an operator can withdraw it.",
        code="not_your_submission",
    )


@transaction.atomic
def withdraw(*, uuid: UUID, token: ApiToken, reason: str, as_of: datetime) -> Submission:
    """Take a submission back; if its owner does, the agent may have to wait for an operator: `withheld`."""
    (submission,) = locked_submissions([uuid])
    by_operator = operates(token, submission.agent.benchmark)
    return _taken_back(submission, by=token.user, by_operator=by_operator, reason=reason, as_of=as_of)


@transaction.atomic
def withdraw_by(*, uuid: UUID, user: User, reason: str, as_of: datetime) -> Submission:
    """The same by a person who is signed in, with all the roles that they have."""
    (submission,) = locked_submissions([uuid])
    by_operator = role_of(user, submission.agent.benchmark) == Role.OPERATOR
    return _taken_back(submission, by=user, by_operator=by_operator, reason=reason, as_of=as_of)


def _taken_back(
    submission: Submission, *, by: User, by_operator: bool, reason: str, as_of: datetime
) -> Submission:
    if not (by_operator or is_theirs(submission, by)):
        raise not_your_submission()
    shown = not by_operator and has_been_shown(submission.agent)
    with acting(by=by, reason=reason):
        change([submission], Status.WITHDRAWN, by=by, reason=reason, at=as_of, after_board=shown)
        judge_again(submission.agent, as_of=as_of)
    return submission


def may_withdraw(submission: Submission, user: User) -> bool:
    if submission.status not in LIVE:
        return False
    return is_theirs(submission, user) or role_of(user, submission.agent.benchmark) == Role.OPERATOR


def is_theirs(submission: Submission, user: User) -> bool:
    """Whether this person may take it back: of their agent, and not from an operator's file."""
    return submission.agent.owner == user and not submission.loaded


def after_undo(gone: Sequence[Submission]) -> Iterator[str]:
    """Say which tasks of withdrawn submissions nobody has a result of now, and what does not come back."""
    benchmark = gone[0].agent.benchmark
    here = Submission.objects.filter(agent__benchmark=benchmark, status__in=LIVE)
    left = _tasks_in([one.pk for one in gone]) - _tasks_in(here.values_list("pk", flat=True))
    names = [task.name for task in benchmark.tasks.filter(pk__in=left, retired_at=None).order_by("name")]
    if names:
        have, it = ("has", "it") if len(names) == 1 else ("have", "one")
        retire = f"{PROGRAM} retire {benchmark} {shlex.quote(names[0])} --reason TEXT"
        without = f"{words.counted(len(names), 'task')} {have} no results now"
        yield f"{without}: {words.first_names(names, N_NAMED)}. To leave {it} out: {retire}"
    came = StatusChange.objects.filter(submission__in=gone, status=Status.ACCEPTED)
    replaced = StatusChange.objects.filter(
        submission__agent__in={submission.agent_id for submission in gone},
        status=Status.SUPERSEDED,
        data_version__in=came.values("data_version"),
    )
    if n := replaced.aggregate(n=Sum("submission__n_outcomes", default=0))["n"]:
        yield f"What was replaced does not come back: {words.counted(n, 'result')}. Load its file again."


def _tasks_in(submissions: Iterable[int]) -> set[int]:
    rows = Outcome.objects.filter(submission_id__in=list(submissions))
    return set(rows.values_list("task_id", flat=True).distinct())


@transaction.atomic
def unload(
    *, uuids: Sequence[UUID], reason: str, as_of: datetime, by: User | None = None
) -> list[Submission]:
    submissions = locked_submissions(uuids)
    if len({submission.agent.benchmark_id for submission in submissions}) > 1:
        raise Conflict(
            "These submissions are of several benchmarks; unload those of one at a time.",
            code="several_benchmarks",
        )
    with acting(by=by, reason=reason):
        change(submissions, Status.WITHDRAWN, by=by, reason=reason, at=as_of)
    return submissions


@transaction.atomic
def unload_latest(
    *, benchmark: Benchmark, reason: str, as_of: datetime, by: User | None = None, arrival: int | None = None
) -> list[Submission]:
    """Withdraw what still counts of the latest load; where `arrival` is given, of no other one."""
    gone = latest_load(benchmark)
    if not gone:
        raise Conflict(
            "No loaded file counts on this benchmark, so there is nothing to withdraw.",
            code="nothing_to_unload",
        )
    if arrival is not None and arrival != gone[0].arrival:
        raise Conflict(
            "Another load is the latest by now; look again at what would go.", code="loaded_meanwhile"
        )
    return unload(uuids=[one.submission.uuid for one in gone], reason=reason, as_of=as_of, by=by)


def latest_load(benchmark: Benchmark) -> list[AcceptedSubmission]:
    loaded = [one for one in deliveries(benchmark) if one.submission.loaded]
    latest = max((one.arrival for one in loaded), default=None)
    return [one for one in loaded if one.arrival == latest]


@transaction.atomic
def confirm(*, uuid: UUID, reason: str, as_of: datetime, by: User | None = None) -> Submission:
    """Let invalid outcomes of a submission be missing, not failures; their keys may be delivered again."""
    (submission,) = locked_submissions([uuid])
    obstacle = ""
    if not submission.n_invalid:
        obstacle = "none of its outcomes is invalid"
    elif submission.loaded:
        obstacle = "an operator loaded it, so they count as failures of the harness already"
    elif InvalidConfirmation.objects.filter(submission=submission).exists():
        obstacle = "they were confirmed before"
    if obstacle:
        raise Conflict(f"Nothing to confirm in {uuid}: {obstacle}.", code="nothing_to_confirm")
    version = bump_data_version(benchmark=submission.agent.benchmark)
    InvalidConfirmation.objects.create(
        submission=submission, data_version=version, at=as_of, by=by, reason=reason
    )
    return submission


@transaction.atomic
def approve(
    *, benchmark: Benchmark, agent: str, reason: str, as_of: datetime, by: User | None = None
) -> Agent:
    """Let an agent be ranked again that took outcomes back, or a copy count."""
    locked = benchmark.agents.filter(name=agent).select_for_update(no_key=True).first()
    if locked is None:
        raise Missing(f"Unknown agent {agent!r} on {benchmark}. Check the spelling.", code="no_such_agent")
    took_back = withdrawn_by_owner(benchmark, upto=None)
    if locked.pk not in took_back and not withheld(benchmark, agent=locked):
        # A web worker, which only withdraws, never imports what makes a record.
        from leaderboard.studies.records import Reader

        now = Reader(benchmark).now(active_subset(benchmark))
        if now is None or not dict(zip(now.agents, now.record.copy_of, strict=True)).get(locked):
            raise Conflict(
                f"{agent!r} is neither withheld nor the copy of another: nothing needs to be approved.",
                code="nothing_to_approve",
            )
    version = bump_data_version(benchmark=benchmark)
    Approval.objects.create(agent=locked, data_version=version, at=as_of, by=by, reason=reason)
    return locked


# ----------------------------------------------------------------------------- what an operator vouches for


@transaction.atomic
def verify(
    *, uuid: UUID, note: str, as_of: datetime, by: User | None = None, verified: bool = True
) -> Submission:
    (submission,) = locked_submissions([uuid])
    was_verified = is_verified(submission)
    if verified and (was_verified or submission.loaded):
        by_whom = ": an operator loaded it." if submission.loaded else "."
        raise Conflict(f"Submission {uuid} is already verified{by_whom}", code="nothing_to_verify")
    if not verified and not was_verified:
        raise Conflict(
            f"No operator confirmed the submission {uuid}, so there is nothing to undo.", code="not_verified"
        )
    version = bump_data_version(benchmark=submission.agent.benchmark)
    Verification.objects.create(
        submission=submission, verified=verified, data_version=version, at=as_of, by=by, note=note
    )
    judge_again(submission.agent, as_of=as_of)
    return submission


@transaction.atomic
def draw(*, uuid: UUID, n: int) -> list[str]:
    (submission,) = locked_submissions([uuid])
    return drawn_tasks(submission, n)


@transaction.atomic
def verify_by_rerun(
    *, uuid: UUID, flat: FlatFile, note: str, as_of: datetime
) -> tuple[Submission, RunAgreement]:
    """Confirm a submission if an operator's own run of the drawn tasks agrees with it; else leave it."""
    (submission,) = locked_submissions([uuid])
    agreement = compare_runs(submission, flat)
    if agreement.agrees:
        verify(uuid=uuid, note="; ".join(filter(None, (note, figures(agreement)))), as_of=as_of)
    return submission, agreement


def figures(of: RunAgreement) -> str:
    return (
        f"rerun of {of.n_tasks} tasks: {of.first_mean:.1%} submitted, {of.second_mean:.1%} rerun; "
        f"better on {of.n_first} and {of.n_second} tasks; {of.test}, p = {of.p:.3g}"
    )


@transaction.atomic
def trust_account(
    *,
    benchmark: Benchmark,
    account: User,
    reason: str,
    as_of: datetime,
    by: User | None = None,
    trusted: bool = True,
) -> None:
    lock_account(user=account)
    agents = list(benchmark.agents.filter(owner=account).order_by("id").select_for_update(no_key=True))
    if (account.pk in trusted_accounts(benchmark)) == trusted:
        raise Conflict(
            f"{account.email} is {'trusted' if trusted else 'not trusted'} on {benchmark} already.",
            code="trust_unchanged",
        )
    with acting(by=by, reason=reason):
        version, of = bump_data_version(benchmark=benchmark), {"benchmark": benchmark, "account": account}
        AccountTrust.objects.create(
            **of, trusted=trusted, data_version=version, at=as_of, by=by, reason=reason
        )
        for agent in agents:
            judge_again(agent, as_of=as_of)


# ------------------------------------------------------------------------------------- reports of an entry


@transaction.atomic
def report(
    *, agent: Agent, text: str, by: User | None, as_of: datetime, board: int | None = None, contact: str = ""
) -> Dispute:
    """Store what somebody says of an agent's entry; it changes nothing until an operator acts."""
    if not text.strip():
        raise Refusal("Say what is wrong with the entry.", code="nothing_said")
    if len(text) > MAX_LENGTH:
        raise Refusal("The report is too long. Use at most 5,000 characters.", code="said_too_much")
    require_seen(text)
    text = text.strip()
    if board is not None and not agent.benchmark.boards.filter(number=board).exists():
        fault = Fault(None, "board", str(board), "unknown board number")
        raise Faulty("The report has an error. Nothing was stored.", faults=(fault,))
    if by is not None:
        lock_account(user=by)  # two at once wait for each other
        waiting = Dispute.objects.filter(by=by, decided_at=None)
        if waiting.filter(agent=agent, text=text).exists():
            raise Conflict(
                "You have reported this entry in these words; the report waits for an operator.",
                code="reported_already",
            )
        if waiting.count() >= MAX_OPEN:
            raise Conflict(
                "Fifty of your reports wait for operators; more are taken once some of those are decided.",
                code="too_many_reports",
            )
    of = {"benchmark": agent.benchmark, "agent": agent, "board_number": board}
    return Dispute.objects.create(text=text, by=by, contact=contact, created_at=as_of, **of)


@transaction.atomic
def decide(*, dispute: Dispute, upheld: bool, by: User | None, reason: str, as_of: datetime) -> Dispute:
    """Say whether a report is right. What follows (withdraw, confirm, erase) is a step of its own."""
    locked = Dispute.objects.select_for_update().get(pk=dispute.pk)
    if locked.decided_at:
        raise Conflict("This report is already decided.", code="decided_already")
    with acting(by=by, reason=reason):
        locked.decided_at, locked.decided_by, locked.decided_reason, locked.upheld = as_of, by, reason, upheld
        locked.save(update_fields=["decided_at", "decided_by", "decided_reason", "upheld"])
    return locked
