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
    into = forms.CharField(label="Counts as", max_length=255, help_text="The name that both have afterwards.")


def _into(request: ActionRequest) -> Agent:
    return naming.agent_named(request.row.benchmark, request.cleaned_data["into"])


def _preview_merge(request: ActionRequest) -> Preview:
    source, target = request.row, _into(request)
    naming.check_mergeable(source, target)
    n = source.submissions.filter(status=Status.ACCEPTED).count()
    sentences = [
        f"{words.counted(n, 'submission')} of {source.name} would count for {target.name}.",
        f"{source.name} would leave the board. New results under its name would count for {target.name}.",
        "A merge cannot be undone. To separate them, withdraw the results and load them again.",
    ]
    return Preview(sentences)


def is_its_own(agent: Agent) -> bool:
    return agent.merged_into_id is None


@action(
    "rename",
    "Rename",
    "Give an agent another name. Results under the old name stay its own, and published boards keep the old "
    "name.",
    form=NameForm,
    is_open=is_its_own,
    moves_board=True,
)
def rename(request: ActionRequest) -> ActionResult:
    agent = naming.rename(agent=request.row, name=request.cleaned_data["name"], **request.decision)
    return ActionResult(f"{request.row.name} is now called {agent.name}.")


@action(
    "merge",
    "Merge into another agent",
    "Join two names of one agent: all results of the first, past and future, count for the second. Not "
    "possible if both have a result for the same task, setting and trial.",
    form=IntoForm,
    preview=_preview_merge,
    is_open=is_its_own,
    is_dangerous=True,
    moves_board=True,
)
def merge(request: ActionRequest) -> ActionResult:
    target = naming.merge(agent=request.row, into=_into(request), **request.decision)
    return ActionResult(f"{request.row.name} now counts as {target.name}.", row=target)
