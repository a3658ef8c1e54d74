"""What is done to tasks, agents and submissions."""

from django import forms

from leaderboard.admin.actions.base import Action, ActionRequest, ActionResult, Preview, change_url
from leaderboard.admin.drawing import moves_chart
from leaderboard.admin.forms import LongText, ReasonForm
from leaderboard.catalog.models import Agent, Task
from leaderboard.errors import Conflict
from leaderboard.operations import benchmarks, corrections, naming, reviewing
from leaderboard.operations.corrections import MAX_LENGTH, report
from leaderboard.operations.erasing import erase_agent
from leaderboard.studies.answers import words
from leaderboard.submissions.models import LIVE, InvalidConfirmation, Status, Submission
from leaderboard.submissions.queries import is_verified

FOLLOWS = "the board follows by itself."


class NameForm(ReasonForm):
    name = forms.CharField(label="New name", max_length=255)


class IntoForm(ReasonForm):
    into = forms.CharField(
        label="Counts as", max_length=255, help_text="The name of the agent that both are from now on."
    )


class ReportForm(ReasonForm):
    text = LongText(label="What is wrong with its entry", max_length=MAX_LENGTH)


# --------------------------------------------------------------------------------------------------- tasks


def _preview_task(request: ActionRequest) -> Preview:
    from leaderboard.operations.previews import foresee_task

    foreseen = foresee_task(request.row, as_of=request.as_of)
    return Preview(foreseen.sentences, chart=moves_chart(foreseen))


def _retire(request: ActionRequest) -> ActionResult:
    task = benchmarks.retire(task=request.row, **request.decision)
    return ActionResult(f"{task.name} is retired; {FOLLOWS}")


def _restore(request: ActionRequest) -> ActionResult:
    task = benchmarks.restore(task=request.row, by=request.by, reason=request.reason)
    return ActionResult(f"{task.name} counts again; {FOLLOWS}")


def _is_active(task: Task) -> bool:
    return task.retired_at is None


RETIRE = Action(
    "retire",
    "Retire the task",
    "A broken task counts no more: it leaves scores, the subset and what complete means. Its outcomes stay.",
    _retire,
    preview=_preview_task,
    is_open=_is_active,
    is_dangerous=True,
)
RESTORE = Action(
    "restore",
    "Restore the task",
    "Lets a retired task count again, with the outcomes that it has.",
    _restore,
    preview=_preview_task,
    is_open=lambda task: not _is_active(task),
)


# -------------------------------------------------------------------------------------------------- agents


def _rename(request: ActionRequest) -> ActionResult:
    agent = naming.rename(agent=request.row, name=request.cleaned_data["name"], **request.decision)
    return ActionResult(f"It is {agent.name} from now on; {FOLLOWS}")


def _into(request: ActionRequest) -> Agent:
    return naming.agent_named(request.row.benchmark, request.cleaned_data["into"])


def _preview_merge(request: ActionRequest) -> Preview:
    target = _into(request)
    if why := naming.why_not_to_merge(request.row, target):
        raise Conflict(f"They cannot be merged: {why}.", code="cannot_merge")
    n = request.row.submissions.filter(status=Status.ACCEPTED).count()
    sentences = [
        f"{words.counted(n, 'submission')} of {request.row.name} would count as {target.name}'s.",
        f"{request.row.name} would stand on no board any more; deliveries under its name would be "
        "the other's.",
        "A merge is not taken back by a button: withdraw and load again to part the two.",
    ]
    return Preview(sentences)


def _merge(request: ActionRequest) -> ActionResult:
    target = naming.merge(agent=request.row, into=_into(request), **request.decision)
    return ActionResult(f"{request.row.name} counts as {target.name}; {FOLLOWS}", url=change_url(target))


def _erase(request: ActionRequest) -> ActionResult:
    erasure = erase_agent(agent=request.row, **request.decision)
    return ActionResult(f"Its names are gone: it is {erasure.tombstone} everywhere; {FOLLOWS}")


def _what_erasing_does(request: ActionRequest) -> Preview:
    n = request.row.entries.count()
    sentences = [
        f"The name would become a tombstone in the catalog, on {words.counted(n, 'published board')}, in "
        "studies, evidence, events and reports.",
        "Organisation, version, links, and what was delivered beside the outcomes would be gone.",
        "Scores, ranks and digests stay as they were published. This cannot be undone.",
        "Do not write the name into the reason: the reason is kept.",
    ]
    return Preview(sentences)


def _approve(request: ActionRequest) -> ActionResult:
    agent = corrections.approve(benchmark=request.row.benchmark, agent=request.row.name, **request.decision)
    return ActionResult(f"{agent.name} may be ranked again; {FOLLOWS}")


def _report(request: ActionRequest) -> ActionResult:
    dispute = report(agent=request.row, text=request.cleaned_data["text"], by=request.by, as_of=request.as_of)
    return ActionResult("The report waits for a decision.", url=change_url(dispute))


def _is_its_own(agent: Agent) -> bool:
    return agent.merged_into_id is None


RENAME = Action(
    "rename",
    "Rename",
    "Another name from now on. Deliveries under the old one stay its own; published boards keep it.",
    _rename,
    form=NameForm,
    is_open=_is_its_own,
)
MERGE = Action(
    "merge",
    "Merge into another agent",
    "For two names of one agent: what this one delivered counts as the other's.",
    _merge,
    form=IntoForm,
    preview=_preview_merge,
    is_open=_is_its_own,
    is_dangerous=True,
)
ERASE = Action(
    "erase",
    "Erase its names",
    "Replaces the agent's name by a tombstone everywhere, for good.",
    _erase,
    preview=_what_erasing_does,
    is_dangerous=True,
)
APPROVE = Action(
    "approve",
    "Let it be ranked again",
    "For an agent that took outcomes back after a board had shown it, or that is the copy of another.",
    _approve,
    is_open=_is_its_own,
)
REPORT = Action("report", "Report its entry", "Says what is wrong, for a decision.", _report, form=ReportForm)


# --------------------------------------------------------------------------------------------- submissions


def _accept(request: ActionRequest) -> ActionResult:
    reviewing.accept(uuid=request.row.uuid, **request.decision)
    return ActionResult(f"Accepted; {FOLLOWS}")


def _refuse(request: ActionRequest) -> ActionResult:
    reviewing.refuse(uuid=request.row.uuid, **request.decision)
    return ActionResult("Refused: it never counts.")


def _withdraw(request: ActionRequest) -> ActionResult:
    corrections.unload(uuids=[request.row.uuid], **request.decision)
    return ActionResult(f"Withdrawn; {FOLLOWS}")


def _confirm(request: ActionRequest) -> ActionResult:
    corrections.confirm(uuid=request.row.uuid, **request.decision)
    return ActionResult(f"Confirmed; {FOLLOWS}")


def _verify(request: ActionRequest) -> ActionResult:
    corrections.verify(uuid=request.row.uuid, note=request.reason, as_of=request.as_of, by=request.by)
    return ActionResult(f"Verified; {FOLLOWS}")


def _unverify(request: ActionRequest) -> ActionResult:
    corrections.verify(
        uuid=request.row.uuid, note=request.reason, as_of=request.as_of, by=request.by, verified=False
    )
    return ActionResult(f"No longer verified; {FOLLOWS}")


def _is_waiting(submission: Submission) -> bool:
    return submission.status == Status.WAITING


def _has_doubtful(submission: Submission) -> bool:
    confirmed = InvalidConfirmation.objects.filter(submission=submission)
    return bool(submission.n_invalid and not submission.loaded and not confirmed.exists())


ACCEPT = Action("accept", "Accept", "Its outcomes count from now on.", _accept, is_open=_is_waiting)
REFUSE = Action(
    "refuse",
    "Refuse",
    "Its outcomes never count; the same trials may be delivered again.",
    _refuse,
    is_open=_is_waiting,
    is_dangerous=True,
)
WITHDRAW = Action(
    "withdraw",
    "Withdraw",
    "Its outcomes count no more. It stays, with the reason.",
    _withdraw,
    is_open=lambda submission: submission.status in LIVE,
    is_dangerous=True,
)
CONFIRM = Action(
    "confirm",
    "Confirm failures of the harness",
    "Its invalid outcomes are missing from now on instead of failures, and may be delivered again.",
    _confirm,
    is_open=_has_doubtful,
)
VERIFY = Action(
    "verify",
    "Verify",
    "You checked its outcomes, by its logs or by a run of your own. Say how: the reason is kept as the note.",
    _verify,
    is_open=lambda submission: (
        submission.status in LIVE and not submission.loaded and not is_verified(submission)
    ),
)
UNVERIFY = Action(
    "unverify",
    "No longer verify",
    "Takes the verification back. Its outcomes count as before.",
    _unverify,
    is_open=lambda submission: submission.status in LIVE and is_verified(submission),
)
