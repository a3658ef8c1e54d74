"""What is taken back, confirmed or approved after it was delivered. Nothing is deleted: the log says why."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
from django.db import transaction
from django.db.models import Q

from leaderboard.accounts.models import ApiToken, User
from leaderboard.boards.models import Entry
from leaderboard.catalog.models import Agent, Benchmark, Role
from leaderboard.catalog.queries import operates, role_of
from leaderboard.errors import Conflict, Forbidden, Missing
from leaderboard.operations.acting import acting
from leaderboard.studies.queries import active_subset
from leaderboard.submissions.models import LIVE, Approval, InvalidConfirmation, Judged, Status, Submission
from leaderboard.submissions.queries import AcceptedSubmission, deliveries, live_outcomes, withheld
from leaderboard.submissions.services import append_changes, bump_data_version, change_status


class NoSuchSubmission(Missing):
    message = "There is no such submission."


def not_your_submission() -> Forbidden:
    return Forbidden(
        "This submission belongs to another account; its owner or an operator can withdraw it.",
        code="not_your_submission",
    )


class CountsNoMore(Conflict):
    message = "A submission that was refused, superseded or withdrawn does not count any more."


def has_been_shown(agent: Agent, before: datetime | None = None) -> bool:
    """Whether a board has shown this agent, so that its owner knows, or knew before, how it came out."""
    shown = Entry.objects.filter(agent__in=filter(None, (agent.pk, agent.merged_into_id)))
    return (shown if before is None else shown.filter(board__published_at__lte=before)).exists()


@transaction.atomic
def withdraw(*, uuid: UUID, token: ApiToken, reason: str, as_of: datetime) -> Submission:
    """Take a submission back, by its owner or an operator.

    Once a board has shown the agent, its owner's withdrawal leaves it without a rank until an operator
    approves.
    """
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
    from leaderboard.operations.rejudging import judge_again  # which locks by what stands here

    if not (by_operator or is_theirs(submission, by)):
        raise not_your_submission()
    shown = not by_operator and has_been_shown(submission.agent)
    judged = "" if by_operator else _judged(submission)
    with acting(by=by, reason=reason):
        _withdraw([submission], by=by, reason=reason, as_of=as_of, after_board=shown, judged=judged)
        judge_again(submission.agent, as_of=as_of)
    return submission


def _judged(submission: Submission) -> str:
    """Whether what stands of the same tasks beside a submission is better."""
    live = live_outcomes([submission.agent_id])
    its = pc.equal(live["submission"], submission.pk)
    better = is_better(live.filter(pc.invert(its)), live.filter(its))
    return Judged.BETTER if better else ""


def is_better(rows: pa.Table, gone: pa.Table) -> bool:
    """Whether outcomes are better on average than those of a submission taken back, over the tasks of both.

    Under whatever prompt or judge: these are labels that a submitter chooses.
    """
    new = _means(rows)
    for one in pc.unique(gone["submission"]):
        old = _means(gone.filter(pc.equal(gone["submission"], one)))
        differences = [new[task] - old[task] for task in new.keys() & old.keys()]
        if differences and round(sum(differences) / len(differences), 6) > 0:  # of four bytes each
            return True
    return False


def _means(rows: pa.Table) -> dict[int, float]:
    """Mean outcome by task; what is invalid is a failure."""
    values: dict[int, list[float]] = {}
    for one in rows.select(["task", "value", "valid"]).to_pylist():
        values.setdefault(one["task"], []).append(one["value"] if one["valid"] else 0.0)
    return {task: sum(of) / len(of) for task, of in values.items()}


def may_withdraw(submission: Submission, user: User) -> bool:
    """Whether it still counts or may come to, and this person may take it back."""
    if submission.status not in LIVE:
        return False
    return is_theirs(submission, user) or role_of(user, submission.agent.benchmark) == Role.OPERATOR


def is_theirs(submission: Submission, user: User) -> bool:
    """Whether this person may take it back: of their agent, and not from an operator's file."""
    return submission.agent.owner == user and not submission.loaded


@transaction.atomic
def unload(
    *, uuids: Sequence[UUID], reason: str, as_of: datetime, by: User | None = None
) -> list[Submission]:
    """Withdraw these submissions, which are of one benchmark, by an operator's hand."""
    submissions = locked_submissions(uuids)
    if len({submission.agent.benchmark_id for submission in submissions}) > 1:
        raise Conflict(
            "These submissions are of several benchmarks; unload those of one at a time.",
            code="several_benchmarks",
        )
    with acting(by=by, reason=reason):
        _withdraw(submissions, by=by, reason=reason, as_of=as_of)
    return submissions


@transaction.atomic
def unload_latest(
    *, benchmark: Benchmark, reason: str, as_of: datetime, by: User | None = None, arrival: int | None = None
) -> list[Submission]:
    """Withdraw what still counts of the latest load; where `arrival` is given, of no other one."""
    gone = latest_load(benchmark)
    if not gone:
        raise Conflict("No load counts on this benchmark.", code="nothing_to_unload")
    if arrival is not None and arrival != gone[0].arrival:
        raise Conflict(
            "Another load is the latest by now; look again at what would go.", code="loaded_meanwhile"
        )
    return unload(uuids=[one.submission.uuid for one in gone], reason=reason, as_of=as_of, by=by)


def latest_load(benchmark: Benchmark) -> list[AcceptedSubmission]:
    """What still counts of the latest load."""
    loaded = [one for one in deliveries(benchmark) if one.submission.loaded]
    latest = max((one.arrival for one in loaded), default=None)
    return [one for one in loaded if one.arrival == latest]


@transaction.atomic
def confirm(*, uuid: UUID, reason: str, as_of: datetime, by: User | None = None) -> Submission:
    """Confirm that the invalid outcomes of a submission are failures of the harness.

    From then on they are missing instead of failures, and their keys may be delivered again.
    """
    (submission,) = locked_submissions([uuid])
    obstacle = _why_not_to_confirm(submission)
    if obstacle:
        raise Conflict(f"There is nothing to confirm in {uuid}: {obstacle}.", code="nothing_to_confirm")
    version = bump_data_version(benchmark=submission.agent.benchmark)
    InvalidConfirmation.objects.create(
        submission=submission, data_version=version, at=as_of, by=by, reason=reason
    )
    return submission


def _why_not_to_confirm(submission: Submission) -> str:
    if not submission.n_invalid:
        return "none of its outcomes is invalid"
    if submission.loaded:
        return "an operator loaded it, so they count as failures of the harness already"
    if InvalidConfirmation.objects.filter(submission=submission).exists():
        return "they were confirmed before"
    return ""


@transaction.atomic
def approve(
    *, benchmark: Benchmark, agent: str, reason: str, as_of: datetime, by: User | None = None
) -> Agent:
    """Let an agent be ranked again that took outcomes back after a board had shown it, or a copy count."""
    locked = benchmark.agents.filter(name=agent).select_for_update(no_key=True).first()
    if locked is None:
        raise Missing(f"There is no agent {agent!r} on {benchmark}.", code="no_such_agent")
    if locked.pk not in withheld(benchmark) and not _is_copy(locked):
        raise Conflict(
            f"{agent!r} is neither withheld nor the copy of another: nothing needs to be approved.",
            code="nothing_to_approve",
        )
    version = bump_data_version(benchmark=benchmark)
    Approval.objects.create(agent=locked, data_version=version, at=as_of, by=by, reason=reason)
    return locked


def _is_copy(agent: Agent) -> bool:
    """Whether the agent is left out of calibration since its outcomes are another's."""
    # A web worker, which only withdraws, never imports what makes a record.
    from leaderboard.studies.records import Reader

    now = Reader(agent.benchmark).now(active_subset(agent.benchmark))
    return now is not None and bool(dict(zip(now.agents, now.record.copy_of, strict=True)).get(agent))


def locked_submissions(uuids: Sequence[UUID]) -> list[Submission]:
    """Return live submissions, their agents locked in the order in which deliveries lock them."""
    named = Q(submissions__uuid__in=uuids) | Q(merged__submissions__uuid__in=uuids)
    agents = Agent.objects.filter(named).order_by("id")
    ids = sorted(set(agents.values_list("id", flat=True)))
    list(Agent.objects.filter(pk__in=ids).order_by("id").select_for_update(no_key=True))
    rows = Submission.objects.filter(uuid__in=uuids).select_related("agent__benchmark", "agent__owner")
    submissions = list(rows.order_by("id"))
    if absent := set(uuids) - {submission.uuid for submission in submissions}:
        raise NoSuchSubmission(f"There is no submission {', '.join(sorted(map(str, absent)))}.")
    for submission in submissions:
        if submission.status not in LIVE:
            raise CountsNoMore(f"The submission {submission.uuid} is {submission.status}; it does not count.")
    return submissions


def _withdraw(
    submissions: Sequence[Submission],
    *,
    by: User | None,
    reason: str,
    as_of: datetime,
    after_board: bool = False,
    judged: str = "",
) -> None:
    changes = change_status(
        submissions=submissions,
        status=Status.WITHDRAWN,
        at=as_of,
        by=by,
        reason=reason,
        after_board=after_board,
        judged=judged,
    )
    append_changes(benchmark=submissions[0].agent.benchmark, changes=changes)
