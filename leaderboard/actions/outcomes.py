"""What is done to tasks, agents (but for their names) and submissions."""

from functools import partial

from leaderboard.actions.base import (
    Action,
    ActionRequest,
    ActionResult,
    LongText,
    Preview,
    ReasonForm,
    action,
)
from leaderboard.actions.names import is_its_own
from leaderboard.catalog.models import Task
from leaderboard.operations import benchmarks, corrections, reviewing
from leaderboard.operations.corrections import MAX_LENGTH
from leaderboard.operations.erasing import COMES_BACK, erase_agent
from leaderboard.studies.answers import words
from leaderboard.submissions.models import LIVE, InvalidConfirmation, Status, Submission
from leaderboard.submissions.queries import is_verified


class ReportForm(ReasonForm):
    text = LongText(label="What is wrong with its entry", max_length=MAX_LENGTH)


# --------------------------------------------------------------------------------------------------- tasks


def _preview_task(request: ActionRequest) -> Preview:
    from leaderboard.operations.previews import foresee_task

    foreseen = foresee_task(request.row, as_of=request.as_of)
    return Preview(foreseen.sentences, foreseen=foreseen)


def _is_active(task: Task) -> bool:
    return task.retired_at is None


@action(
    "retire",
    "Retire the task",
    "Remove a broken task from scores and ranking tasks. Agents need not run it. Its results stay and count "
    "again after a restore.",
    preview=_preview_task,
    is_open=_is_active,
    is_dangerous=True,
    moves_board=True,
)
def retire(request: ActionRequest) -> ActionResult:
    task = benchmarks.retire(task=request.row, **request.decision)
    return ActionResult(f"{task.name} is retired.")


@action(
    "restore",
    "Restore the task",
    "Count a retired task again, with its results.",
    preview=_preview_task,
    is_open=lambda task: not _is_active(task),
    moves_board=True,
)
def restore(request: ActionRequest) -> ActionResult:
    task = benchmarks.restore(task=request.row, by=request.by, reason=request.reason)
    return ActionResult(f"{task.name} counts again.")


# -------------------------------------------------------------------------------------------------- agents


def _what_erasing_does(request: ActionRequest) -> Preview:
    n = request.row.entries.count()
    sentences = [
        f"The name would become a tombstone in the catalog, on {words.counted(n, 'published board')}, in "
        "studies, evidence, events and reports.",
        "Organisation, version, links, and what was delivered beside the outcomes would be gone.",
        "Scores, ranks and digests stay as they were published. This cannot be undone.",
        COMES_BACK,
        "Do not write the name into the reason: the reason is kept.",
    ]
    return Preview(sentences)


@action(
    "erase",
    "Erase its names",
    "Removes the agent's name everywhere. This cannot be undone.",
    preview=_what_erasing_does,
    is_dangerous=True,
    moves_board=True,
)
def erase(request: ActionRequest) -> ActionResult:
    erasure = erase_agent(agent=request.row, **request.decision)
    return ActionResult(f"Its names are gone: it is {erasure.tombstone} everywhere. {COMES_BACK}")


@action(
    "approve",
    "Let it be ranked again",
    "Rank an agent again after its owner took results back, or count an agent whose results equal "
    "another's on every task.",
    is_open=is_its_own,
    moves_board=True,
)
def approve(request: ActionRequest) -> ActionResult:
    agent = corrections.approve(benchmark=request.row.benchmark, agent=request.row.name, **request.decision)
    return ActionResult(f"{agent.name} may be ranked again, and counts.")


@action("report", "Report its entry", "Says what is wrong, for a decision.", form=ReportForm)
def report(request: ActionRequest) -> ActionResult:
    dispute = corrections.report(
        agent=request.row, text=request.cleaned_data["text"], by=request.by, as_of=request.as_of
    )
    return ActionResult("The report waits for a decision.", row=dispute)


# --------------------------------------------------------------------------------------------- submissions


def _verify(request: ActionRequest, *, verified: bool = True) -> ActionResult:
    corrections.verify(
        uuid=request.row.uuid, note=request.reason, as_of=request.as_of, by=request.by, verified=verified
    )
    return ActionResult("Verified." if verified else "No longer verified.")


def _is_waiting(submission: Submission) -> bool:
    return submission.status == Status.WAITING


@action("accept", "Accept", "Its outcomes count from now on.", is_open=_is_waiting, moves_board=True)
def accept(request: ActionRequest) -> ActionResult:
    reviewing.accept(uuid=request.row.uuid, **request.decision)
    return ActionResult("Accepted.")


@action(
    "refuse",
    "Refuse",
    "Its results never count. The same trials may be delivered again.",
    is_open=_is_waiting,
    is_dangerous=True,
)
def refuse(request: ActionRequest) -> ActionResult:
    reviewing.refuse(uuid=request.row.uuid, **request.decision)
    return ActionResult("Refused: it never counts.")


@action(
    "withdraw",
    "Withdraw",
    "Its results no longer count. The submission stays, with the reason.",
    is_open=lambda submission: submission.status in LIVE,
    is_dangerous=True,
    moves_board=True,
)
def withdraw(request: ActionRequest) -> ActionResult:
    corrections.unload(uuids=[request.row.uuid], **request.decision)
    return ActionResult("Withdrawn.")


@action(
    "confirm",
    "Confirm failures of the harness",
    "Its invalid results no longer count as failures. They are missing and may be delivered again.",
    is_open=lambda of: (
        of.n_invalid and not of.loaded and not InvalidConfirmation.objects.filter(submission=of).exists()
    ),
    moves_board=True,
)
def confirm(request: ActionRequest) -> ActionResult:
    confirmed = corrections.confirm(uuid=request.row.uuid, **request.decision)
    agent, n = confirmed.agent, confirmed.n_invalid
    outcomes, are = words.counted(n, "invalid outcome"), "is a failure" if n == 1 else "are failures"
    return ActionResult(f"Confirmed: {outcomes} of {agent.name} {are} of the harness.")


verify = Action(
    "verify",
    "Verify",
    "You checked its logs or ran it yourself. Say how; the note is kept.",
    _verify,
    is_open=lambda submission: (
        submission.status in LIVE and not submission.loaded and not is_verified(submission)
    ),
    moves_board=True,
)

unverify = Action(
    "unverify",
    "No longer verify",
    "Removes the mark. Its results count as before.",
    partial(_verify, verified=False),
    is_open=lambda submission: submission.status in LIVE and is_verified(submission),
    moves_board=True,
)
