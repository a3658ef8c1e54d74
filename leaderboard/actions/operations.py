"""What is done with a benchmark's outcomes, jobs and people, from its page."""

from typing import Any

from django import forms
from django.db import transaction

from leaderboard.actions.base import ActionRequest, ActionResult, Preview, ReasonForm, action
from leaderboard.actions.people import give_role
from leaderboard.catalog.models import Role
from leaderboard.operations import people
from leaderboard.operations.corrections import after_undo, latest_load, unload_latest
from leaderboard.operations.jobs import JOBS, ask
from leaderboard.operations.loading import LoadReport
from leaderboard.operations.models import EventKind, Upload
from leaderboard.operations.uploads import keep, preview, store, upload_of
from leaderboard.operations.webhooks import add_webhook
from leaderboard.studies.answers import words

OF_ALL = ("deliver", "housekeeping")  # jobs that are of no one benchmark


class UploadForm(ReasonForm):
    needs_file = True
    file = forms.FileField(
        label="File of outcomes",
        required=False,
        help_text="CSV, .xlsx, NDJSON or Parquet, at most 64 MiB: a row for each agent, task and trial, "
        "or for each agent, and a column for each task.",
    )
    options = forms.CharField(
        label="Reading options",
        required=False,
        max_length=1_000,
        help_text="Of a table, where a refusal asks for them: --sheet NAME, --blank fail, --column task=HEAD",
    )
    upload = forms.UUIDField(required=False, widget=forms.HiddenInput)
    replace = forms.BooleanField(
        label="Replace stored results and costs that differ (--replace)",
        required=False,
        help_text="Else a changed outcome is a fault, and nothing is stored.",
    )
    own = forms.BooleanField(
        label="Take over agents that submitters own",
        required=False,
        help_text="Their submissions are withdrawn. The command line calls this --own.",
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not cleaned.get("file") and not cleaned.get("upload"):
            self.add_error("file", "Choose a file.")
        return cleaned


class UndoForm(ReasonForm):
    latest = forms.IntegerField(required=False, widget=forms.HiddenInput)  # the load that was looked at


class JobForm(ReasonForm):
    kind = forms.ChoiceField(label="Job")

    def prepare(self) -> None:
        kinds = [kind for kind in JOBS if kind not in OF_ALL]
        self.fields["kind"].choices = [(kind, kind) for kind in kinds]  # type: ignore[attr-defined]


class PersonForm(ReasonForm):
    email = forms.EmailField(label="E-mail address")
    role = forms.ChoiceField(
        label="Role",
        choices=Role.choices,
        initial=Role.SUBMITTER,
        help_text="Viewers see it while it is private or hidden, submitters deliver, operators decide.",
    )


class InviteForm(PersonForm):
    trusted = forms.BooleanField(
        label="Trust the account",
        required=False,
        help_text="Pass rates, calibration and alerts then take all of its agents, not two.",
    )


class WebhookForm(ReasonForm):
    url = forms.URLField(label="Address", max_length=2_000, assume_scheme="https")
    events = forms.MultipleChoiceField(
        label="Tell it of",
        choices=[(kind.value, kind.value) for kind in EventKind],
        initial=EventKind.values,
        widget=forms.CheckboxSelectMultiple,
    )


def _sent(request: ActionRequest) -> Upload:
    assert request.by  # the command line has `load`
    if uuid := request.cleaned_data["upload"]:
        return upload_of(uuid, benchmark=request.row, by=request.by)
    file = request.cleaned_data["file"]
    return keep(
        benchmark=request.row, by=request.by, name=file.name, content=file.read(), as_of=request.as_of
    )


def _how(request: ActionRequest) -> dict[str, Any]:
    return {name: request.cleaned_data[name] for name in ("replace", "own", "options")}


@transaction.atomic  # a file that is refused is not kept
def _look(request: ActionRequest) -> Preview:
    upload = _sent(request)
    report = preview(upload=upload, as_of=request.as_of, **_how(request))
    sentences = [f"Of {upload.name}:", *load_sentences(report, "would be")]
    return Preview(sentences, {"upload": str(upload.uuid)})


def load_sentences(report: LoadReport, verb: str) -> list[str]:
    invalid = f" ({report.n_invalid:,} invalid)" if report.n_invalid else ""
    sentences = [
        f"{words.counted(report.n_new, 'outcome')}{invalid} {verb} stored as "
        f"{words.counted(report.n_submissions, 'submission')} of {words.counted(report.n_agents, 'agent')}.",
        f"{report.n_same:,} are there already.",
    ]
    if report.n_replaced:
        sentences.append(f"{report.n_replaced:,} {verb} replaced.")
    if report.n_new_tasks:
        sentences.append(f"{words.counted(report.n_new_tasks, 'task')} {verb} made.")
    return [*sentences, *report.notes, *report.decided]


def _what_goes(request: ActionRequest) -> Preview:
    gone = latest_load(request.row)
    n_outcomes = sum(one.submission.n_outcomes for one in gone)
    n_agents = len({one.agent_id for one in gone})
    sentences = [
        f"{words.counted(len(gone), 'submission')} of {words.counted(n_agents, 'agent')} with "
        f"{words.counted(n_outcomes, 'outcome')} would be withdrawn.",
        "They stay stored, and count no more; what they had replaced stays replaced.",
    ]
    return Preview(sentences, {"latest": str(gone[0].arrival)} if gone else {})


@action(
    "upload",
    "Upload outcomes",
    "Stores a flat file of results, all or nothing. You see what would change before you confirm.",
    form=UploadForm,
    preview=_look,
    moves_board=True,
)
def upload(request: ActionRequest) -> ActionResult:
    report = store(upload=_sent(request), **_how(request), **request.decision)
    return ActionResult(" ".join(load_sentences(report, "were")))


@action(
    "undo-load",
    "Undo the latest load",
    "Withdraws the latest file that an operator loaded.",
    form=UndoForm,
    preview=_what_goes,
    is_dangerous=True,
    moves_board=True,
)
def undo(request: ActionRequest) -> ActionResult:
    gone = unload_latest(
        benchmark=request.row, arrival=request.cleaned_data["latest"] or 0, **request.decision
    )
    return ActionResult(" ".join([f"Withdrew {words.counted(len(gone), 'submission')}.", *after_undo(gone)]))


@action(
    "propose",
    "Propose a reselection",
    "Computes which ranking tasks would be chosen today. Nothing changes until you approve.",
    is_open=lambda row: row.subsets.exists() and not row.full_runs_only_at,
)
def propose(request: ActionRequest) -> ActionResult:
    run = ask(kind="reselect", benchmark=request.row, **request.decision)
    return ActionResult("Queued: the proposal appears under Reselections once it is computed.", row=run)


@action("run", "Run a job now", "Queues a job for the scheduler, ahead of its time.", form=JobForm)
def run(request: ActionRequest) -> ActionResult:
    run = ask(kind=request.cleaned_data["kind"], benchmark=request.row, **request.decision)
    return ActionResult(f"Queued: {run.kind}.", row=run)


@action(
    "invite",
    "Invite somebody",
    "Creates a link that opens an account or gives it a role here. It works once, for 14 days.",
    form=InviteForm,
)
def invite(request: ActionRequest) -> ActionResult:
    invitation, secret = people.invite(
        benchmark=request.row,
        email=request.cleaned_data["email"],
        role=Role(request.cleaned_data["role"]),
        trusted=request.cleaned_data["trusted"],
        **request.decision,
    )
    return ActionResult(
        f"Send this link to {invitation.email}. It works once, until {invitation.expires_at:%Y-%m-%d}, and "
        "is shown this once:",
        secret=people.link_of(secret),
    )


@action(
    "member",
    "Give somebody a role",
    "For a person who has an account. The new role replaces the old one.",
    form=PersonForm,
)
def member(request: ActionRequest) -> ActionResult:
    membership = give_role(request, request.row, request.cleaned_data["email"])
    return ActionResult(f"{membership.user} is {membership.role} of {membership.benchmark}.")


@action(
    "webhook",
    "Add a webhook",
    "Sends events to an https address, each signed with a secret that is shown once.",
    form=WebhookForm,
)
def webhook(request: ActionRequest) -> ActionResult:
    webhook, secret = add_webhook(
        benchmark=request.row,
        url=request.cleaned_data["url"],
        events=request.cleaned_data["events"],
        **request.decision,
    )
    return ActionResult(f"{webhook.url} gets events from now on. Its secret, shown only now:", secret=secret)
