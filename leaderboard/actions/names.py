"""What is done to the names of agents."""

from django import forms

from leaderboard.actions.base import ActionRequest, ActionResult, Preview, ReasonForm, action
from leaderboard.catalog.models import Agent
from leaderboard.operations import naming
from leaderboard.studies.answers import words
from leaderboard.submissions.models import Status


class NameForm(ReasonForm):
    name = forms.CharField(label="New name", max_length=255)


class IntoForm(ReasonForm):
    into = forms.CharField(
        label="Counts as", max_length=255, help_text="The name of the agent that both are from now on."
    )


def _into(request: ActionRequest) -> Agent:
    return naming.agent_named(request.row.benchmark, request.cleaned_data["into"])


def _preview_merge(request: ActionRequest) -> Preview:
    source, target = request.row, _into(request)
    naming.check_mergeable(source, target)
    n = source.submissions.filter(status=Status.ACCEPTED).count()
    sentences = [
        f"{words.counted(n, 'submission')} of {source.name} would count as {target.name}'s.",
        f"{source.name} would stand on no board any more; deliveries under its name would be the other's.",
        "A merge cannot be undone: withdraw and load again to part the two.",
    ]
    return Preview(sentences)


def is_its_own(agent: Agent) -> bool:
    return agent.merged_into_id is None


@action(
    "rename",
    "Rename",
    "Call an agent by another name from now on. Deliveries under the old name stay its own, and boards that "
    "were published keep it.",
    form=NameForm,
    is_open=is_its_own,
    moves_board=True,
)
def rename(request: ActionRequest) -> ActionResult:
    agent = naming.rename(agent=request.row, name=request.cleaned_data["name"], **request.decision)
    return ActionResult(f"{request.row.name} is {agent.name} from now on.")


@action(
    "merge",
    "Merge into another agent",
    "For two names of one agent: all that this one delivered, and what comes under its name, counts as the "
    "other's. Refused where both hold an outcome of the same task, setting and trial.",
    form=IntoForm,
    preview=_preview_merge,
    is_open=is_its_own,
    is_dangerous=True,
    moves_board=True,
)
def merge(request: ActionRequest) -> ActionResult:
    target = naming.merge(agent=request.row, into=_into(request), **request.decision)
    return ActionResult(f"{request.row.name} counts as {target.name}.", row=target)
