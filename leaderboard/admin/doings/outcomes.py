"""What is done to tasks, agents and submissions."""

from django import forms

from leaderboard.admin.doing import Asked, Doing, Preview, Told, change_url
from leaderboard.admin.drawing import moves_chart
from leaderboard.admin.forms import LongText, ReasonForm
from leaderboard.catalog.models import Agent, Task
from leaderboard.operations import corrections, naming, retirement, reviewing, verifying
from leaderboard.operations.disputes import LONGEST, report
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
    text = LongText(label="What is wrong with its entry", max_length=LONGEST)


# --------------------------------------------------------------------------------------------------- tasks


def _preview_task(asked: Asked) -> Preview:
    from leaderboard.operations.previews import foreseen_of_task

    told = foreseen_of_task(asked.row, as_of=asked.as_of)
    return Preview(told.sentences, chart=moves_chart(told))


def _retire(asked: Asked) -> Told:
    task = retirement.retire(task=asked.row, by=asked.by, reason=asked.reason, as_of=asked.as_of)
    return Told(f"{task.name} is retired; {FOLLOWS}")


def _restore(asked: Asked) -> Told:
    task = retirement.restore(task=asked.row, by=asked.by, reason=asked.reason)
    return Told(f"{task.name} counts again; {FOLLOWS}")


def _is_active(task: Task) -> bool:
    return task.retired_at is None


RETIRE = Doing(
    "retire",
    "Retire the task",
    "A broken task counts no more: it leaves scores, the subset and what complete means. Its outcomes stay.",
    _retire,
    preview=_preview_task,
    is_open=_is_active,
    is_dangerous=True,
)
RESTORE = Doing(
    "restore",
    "Restore the task",
    "Lets a retired task count again, with the outcomes that it has.",
    _restore,
    preview=_preview_task,
    is_open=lambda task: not _is_active(task),
)


# -------------------------------------------------------------------------------------------------- agents


def _rename(asked: Asked) -> Told:
    agent = naming.rename(
        agent=asked.row, name=asked.said["name"], by=asked.by, reason=asked.reason, as_of=asked.as_of
    )
    return Told(f"It is {agent.name} from now on; {FOLLOWS}")


def _into(asked: Asked) -> Agent:
    return naming.agent_named(asked.row.benchmark, asked.said["into"])


def _preview_merge(asked: Asked) -> Preview:
    target = _into(asked)
    if why := naming.why_not_to_merge(asked.row, target):
        raise naming.CannotMerge(f"They cannot be merged: {why}.")
    n = asked.row.submissions.filter(status=Status.ACCEPTED).count()
    sentences = [
        f"{words.counted(n, 'submission')} of {asked.row.name} would count as {target.name}'s.",
        f"{asked.row.name} would stand on no board any more; deliveries under its name would be the other's.",
        "A merge is not taken back by a button: withdraw and load again to part the two.",
    ]
    return Preview(sentences)


def _merge(asked: Asked) -> Told:
    target = naming.merge(
        agent=asked.row, into=_into(asked), by=asked.by, reason=asked.reason, as_of=asked.as_of
    )
    return Told(f"{asked.row.name} counts as {target.name}; {FOLLOWS}", url=change_url(target))


def _erase(asked: Asked) -> Told:
    erasure = erase_agent(agent=asked.row, by=asked.by, reason=asked.reason, as_of=asked.as_of)
    return Told(f"Its names are gone: it is {erasure.tombstone} everywhere; {FOLLOWS}")


def _what_erasing_does(asked: Asked) -> Preview:
    n = asked.row.entries.count()
    sentences = [
        f"The name would become a tombstone in the catalog, on {words.counted(n, 'published board')}, in "
        "studies, evidence, events and reports.",
        "Organisation, version, links, and what was delivered beside the outcomes would be gone.",
        "Scores, ranks and digests stay as they were published. This cannot be undone.",
        "Do not write the name into the reason: the reason is kept.",
    ]
    return Preview(sentences)


def _approve(asked: Asked) -> Told:
    agent = corrections.approve(
        benchmark=asked.row.benchmark,
        agent=asked.row.name,
        reason=asked.reason,
        as_of=asked.as_of,
        by=asked.by,
    )
    return Told(f"{agent.name} may be ranked again; {FOLLOWS}")


def _report(asked: Asked) -> Told:
    dispute = report(agent=asked.row, text=asked.said["text"], by=asked.by, as_of=asked.as_of)
    return Told("The report waits for a decision.", url=change_url(dispute))


def _is_its_own(agent: Agent) -> bool:
    return agent.merged_into_id is None


RENAME = Doing(
    "rename",
    "Rename",
    "Another name from now on. Deliveries under the old one stay its own; published boards keep it.",
    _rename,
    form=NameForm,
    is_open=_is_its_own,
)
MERGE = Doing(
    "merge",
    "Merge into another agent",
    "For two names of one agent: what this one delivered counts as the other's.",
    _merge,
    form=IntoForm,
    preview=_preview_merge,
    is_open=_is_its_own,
    is_dangerous=True,
)
ERASE = Doing(
    "erase",
    "Erase its names",
    "Replaces the agent's name by a tombstone everywhere, for good.",
    _erase,
    preview=_what_erasing_does,
    is_dangerous=True,
)
APPROVE = Doing(
    "approve",
    "Let it be ranked again",
    "For an agent that took outcomes back after a board had shown it, or that is the copy of another.",
    _approve,
    is_open=_is_its_own,
)
REPORT = Doing("report", "Report its entry", "Says what is wrong, for a decision.", _report, form=ReportForm)


# --------------------------------------------------------------------------------------------- submissions


def _accept(asked: Asked) -> Told:
    reviewing.accept(uuid=asked.row.uuid, by=asked.by, reason=asked.reason, as_of=asked.as_of)
    return Told(f"Accepted; {FOLLOWS}")


def _refuse(asked: Asked) -> Told:
    reviewing.refuse(uuid=asked.row.uuid, by=asked.by, reason=asked.reason, as_of=asked.as_of)
    return Told("Refused: it never counts.")


def _withdraw(asked: Asked) -> Told:
    corrections.unload(uuids=[asked.row.uuid], reason=asked.reason, as_of=asked.as_of, by=asked.by)
    return Told(f"Withdrawn; {FOLLOWS}")


def _confirm(asked: Asked) -> Told:
    corrections.confirm(uuid=asked.row.uuid, reason=asked.reason, as_of=asked.as_of, by=asked.by)
    return Told(f"Confirmed; {FOLLOWS}")


def _verify(asked: Asked) -> Told:
    verifying.verify(uuid=asked.row.uuid, note=asked.reason, as_of=asked.as_of, by=asked.by)
    return Told(f"Verified; {FOLLOWS}")


def _unverify(asked: Asked) -> Told:
    verifying.verify(uuid=asked.row.uuid, note=asked.reason, as_of=asked.as_of, by=asked.by, verified=False)
    return Told(f"No longer verified; {FOLLOWS}")


def _is_waiting(submission: Submission) -> bool:
    return submission.status == Status.WAITING


def _has_doubtful(submission: Submission) -> bool:
    confirmed = InvalidConfirmation.objects.filter(submission=submission)
    return bool(submission.n_invalid and not submission.loaded and not confirmed.exists())


ACCEPT = Doing("accept", "Accept", "Its outcomes count from now on.", _accept, is_open=_is_waiting)
REFUSE = Doing(
    "refuse",
    "Refuse",
    "Its outcomes never count; the same trials may be delivered again.",
    _refuse,
    is_open=_is_waiting,
    is_dangerous=True,
)
WITHDRAW = Doing(
    "withdraw",
    "Withdraw",
    "Its outcomes count no more. It stays, with the reason.",
    _withdraw,
    is_open=lambda submission: submission.status in LIVE,
    is_dangerous=True,
)
CONFIRM = Doing(
    "confirm",
    "Confirm failures of the harness",
    "Its invalid outcomes are missing from now on instead of failures, and may be delivered again.",
    _confirm,
    is_open=_has_doubtful,
)
VERIFY = Doing(
    "verify",
    "Verify",
    "You checked its outcomes, by its logs or by a run of your own. Say how: the reason is kept as the note.",
    _verify,
    is_open=lambda submission: (
        submission.status in LIVE and not submission.loaded and not is_verified(submission)
    ),
)
UNVERIFY = Doing(
    "unverify",
    "No longer verify",
    "Takes the verification back. Its outcomes count as before.",
    _unverify,
    is_open=lambda submission: submission.status in LIVE and is_verified(submission),
)
