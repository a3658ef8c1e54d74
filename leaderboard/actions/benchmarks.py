"""What is done to a benchmark: opened, described, its switches, its rules."""

from collections.abc import Callable
from typing import Any

from django import forms

from leaderboard.actions.base import (
    Action,
    ActionRequest,
    ActionResult,
    LongText,
    Preview,
    ReasonForm,
    action,
)
from leaderboard.catalog.models import Assigning, Benchmark, Policy, Visibility
from leaderboard.catalog.queries import policy_in_force
from leaderboard.catalog.rules import ADVANCED, RULES, shown
from leaderboard.errors import Refusal
from leaderboard.operations.benchmarks import (
    DESCRIBED,
    Switch,
    create_benchmark,
    describe_benchmark,
    list_tasks,
    set_switch,
)
from leaderboard.operations.policies import changed_policy, changes, policy_changed_meanwhile, put_in_force
from leaderboard.operations.uploads import tasks_in

TASKS_HELP = (
    "One row for each task: a head <code>name</code> and, where you have them, <code>category</code>, "
    "<code>group</code> and <code>position</code>; CSV or NDJSON."
)


class TasksForm(ReasonForm):
    needs_file = True
    pasted = LongText(label="Tasks, pasted", required=False, help_text=TASKS_HELP)
    file = forms.FileField(label="or a file of them", required=False)


class CreateForm(TasksForm):
    slug = forms.SlugField(
        label="Name in addresses", max_length=100, help_text="Letters, digits, - and _. It never changes."
    )
    title = forms.CharField(label="Title", max_length=255)
    field_order = ("slug", "title", "pasted", "file")


class DescribeForm(ReasonForm):
    def prepare(self) -> None:
        for name in DESCRIBED:
            field: Any = Benchmark._meta.get_field(name)
            options: dict[str, Any] = {
                "label": name.capitalize(),
                "required": not field.blank,
                "initial": getattr(self.row, name),
                "help_text": field.help_text,
            }
            if name == "visibility":
                self.fields[name] = forms.ChoiceField(choices=Visibility.choices, **options)
            elif name in ("description", "citation"):
                self.fields[name] = LongText(**options)
            else:
                self.fields[name] = forms.CharField(max_length=getattr(field, "max_length", None), **options)


class PolicyForm(ReasonForm):
    """A field for each rule, as text; its help says what it means and what it may be."""

    advanced = ADVANCED
    number = forms.IntegerField(widget=forms.HiddenInput)

    def prepare(self) -> None:
        before = policy_in_force(self.row)
        self.fields["number"].initial = before.number
        for name in (*Policy.BASIC, *ADVANCED):
            field: Any = Policy._meta.get_field(name)
            options: dict[str, Any] = {
                "label": name.replace("_", " ").capitalize(),
                "required": False,
                "initial": shown(name, getattr(before, name)),
                "help_text": f"{str(field.help_text).rstrip('.')}. It is {RULES[name].words}.",
            }
            if field.choices:
                empty = [] if not field.blank else [("", "(empty)")]
                choices = [*empty, *((value, value) for value, _ in field.choices)]
                self.fields[name] = forms.ChoiceField(choices=choices, **options)
            elif isinstance(getattr(before, name), bool):
                self.fields[name] = forms.ChoiceField(choices=[("yes", "yes"), ("no", "no")], **options)
            else:
                self.fields[name] = forms.CharField(**options)

    def policy_values(self) -> dict[str, str]:
        return {
            name: self.cleaned_data[name]
            for name in RULES
            if self.cleaned_data[name] != self.fields[name].initial
        }

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        return {**cleaned, "values": self.policy_values() if not self.errors else {}}


def _listed(request: ActionRequest) -> bytes:
    file = request.cleaned_data["file"]
    return file.read() if file else str(request.cleaned_data["pasted"]).encode()


def _policy_asked(request: ActionRequest) -> Policy:
    before = policy_in_force(request.row)
    if request.cleaned_data["number"] != before.number:
        raise policy_changed_meanwhile()
    after = changed_policy(benchmark=request.row, values=request.cleaned_data["values"])
    if not changes(before, after):
        raise Refusal("No change: these rules are in force.", code="nothing_changes")
    return after


def _preview_policy(request: ActionRequest) -> Preview:
    from leaderboard.operations.policies import get_or_ask_replays, is_replayed
    from leaderboard.operations.previews import foresee

    after = _policy_asked(request)
    sentences = [
        f"{field.replace('_', ' ')}: {shown(field, old) or '(empty)'} → {shown(field, new) or '(empty)'}"
        for field, (old, new) in changes(policy_in_force(request.row), after).items()
    ]
    preview = foresee(request.row, after)
    if is_replayed(policy_in_force(request.row), after):
        sentences += get_or_ask_replays(benchmark=request.row, after=after, **request.decision)
    return Preview([*sentences, *preview.sentences], foreseen=preview)


def _preview_full_runs(request: ActionRequest) -> Preview:
    from leaderboard.operations.policies import get_or_ask_replays

    after = changed_policy(benchmark=request.row, values={"assignment": Assigning.FULL})
    sentences = get_or_ask_replays(benchmark=request.row, after=after, **request.decision)
    return Preview(sentences)


def _turning(
    switch: Switch,
    on: bool,
    label: str,
    words: str,
    preview: Callable[[ActionRequest], Preview] | None = None,
) -> Action:
    def perform(request: ActionRequest) -> ActionResult:
        set_switch(benchmark=request.row, switch=switch, on=on, **request.decision)
        return ActionResult(f"{label}: done.")

    return Action(
        name=f"{'' if on else 'end-'}{switch.replace('_', '-')}",
        label=label,
        words=words,
        perform=perform,
        preview=preview,
        is_open=lambda row: bool(getattr(row, f"{switch}_at")) != on,
        is_dangerous=on,
    )


@action(
    "create",
    "Create a benchmark",
    "Creates a benchmark with the default policy. It takes results once it has tasks; a loaded file creates "
    "its tasks.",
    form=CreateForm,
    staff_only=True,
)
def create(request: ActionRequest) -> ActionResult:
    values, content = request.cleaned_data, _listed(request)
    benchmark = create_benchmark(
        slug=values["slug"],
        title=values["title"],
        tasks=tasks_in(content) if content.strip() else [],
        by=request.by,
        reason=request.reason,
    )
    n_tasks = benchmark.tasks.count()
    return ActionResult(f"{benchmark.title} is open with {n_tasks:,} tasks.", row=benchmark)


@action(
    "describe",
    "Describe",
    "Title, licence, citation, and who sees it. Private means members only.",
    form=DescribeForm,
)
def describe(request: ActionRequest) -> ActionResult:
    values = {name: request.cleaned_data[name] for name in DESCRIBED}
    changed = describe_benchmark(benchmark=request.row, values=values, by=request.by, reason=request.reason)
    return ActionResult(f"Changed: {', '.join(changed)}." if changed else "Nothing was changed.")


@action(
    "tasks",
    "Add tasks",
    "Creates the new tasks of a list, and sets category, group and position of the others.",
    form=TasksForm,
)
def add_tasks(request: ActionRequest) -> ActionResult:
    content = _listed(request)
    if not content.strip():
        raise Refusal("Paste a list of tasks, or choose a file.", code="no_tasks")
    tasks, slug = tasks_in(content), request.row.slug
    n_new, n_changed, _ = list_tasks(slug=slug, tasks=tasks, by=request.by, reason=request.reason)
    return ActionResult(f"{len(tasks):,} tasks listed: {n_new:,} new, {n_changed:,} changed.")


@action(
    "policy",
    "Change the policy",
    "Changes the rules of the benchmark. You see what would change before you confirm.",
    form=PolicyForm,
    preview=_preview_policy,
    moves_board=True,
)
def policy(request: ActionRequest) -> ActionResult:
    after = _policy_asked(request)
    put_in_force(policy=after, by=request.by, reason=request.reason)
    return ActionResult(f"Policy {after.number} is in force.")


SWITCHES = (
    _turning(Switch.FROZEN, True, "Freeze intake", "No submission and no assignment is taken; boards go on."),
    _turning(Switch.FROZEN, False, "Take submissions again", "Ends the freeze."),
    _turning(Switch.HIDDEN, True, "Hide", "Members alone see the benchmark, as if it were private."),
    _turning(Switch.HIDDEN, False, "Show again", "Visitors see the benchmark as its visibility says."),
    _turning(
        Switch.FULL_RUNS_ONLY,
        True,
        "Ask for full runs only",
        "New agents are asked for all tasks, and no subset is used, until you end it.",
        _preview_full_runs,
    ),
    _turning(Switch.FULL_RUNS_ONLY, False, "Use the subset again", "New agents are asked for the subset."),
)
