"""`manage.py reruns` and `manage.py assign`: what they print, do and refuse."""

import pytest
from django.core.management import CommandError

from leaderboard.catalog.models import Agent
from leaderboard.operations.drifting import update_alerts
from leaderboard.operations.models import Alert, Assignment, RerunRequest
from leaderboard.studies.models import DriftCheck
from tests.leaderboard.test_reruns import subset_runs
from tests.toys import AS_OF

AGENT = ("--agent", "newcomer", "--scaffold", "Loop", "--model", "Model 9")


def test_requests_are_opened_shown_and_closed(run, toy):
    subset_runs(toy, 7)
    assert run("reruns", "toy").splitlines() == ["No open alerts.", "No rerun requests."]
    assert run("reruns", "toy", "--draw").startswith("request ")
    opened = run("reruns", "toy", "--open", "a provider changed its models")
    drift = RerunRequest.objects.get(kind="drift")
    lines = opened.splitlines()
    assert lines[0] == f"request {drift.pk} asks for full runs until {drift.deadline:%Y-%m-%d}."
    assert f"drift request {drift.pk}, open, until {drift.deadline:%Y-%m-%d}: a provider changed" in opened
    one = drift.agents.select_related("agent").first()
    assert f"  {one.agent}: {one.n_lacking} tasks to run, drawn at random" in lines
    assert f"request {drift.pk} is closed." in run("reruns", "toy", "--close", str(drift.pk), "it went back")
    assert f"drift request {drift.pk}, cancelled" in run("reruns", "toy")


def test_an_alert_is_shown_and_closed(run, toy):
    assert run("reruns", "toy", "--look").startswith("no change.")
    update_alerts(benchmark=toy, as_of=AS_OF)
    check = DriftCheck.objects.latest("id")
    alert = Alert.objects.create(
        benchmark=toy,
        subset=check.subset,
        monitor="cost per task",
        level="warn",
        opened_by=check,
        latest=check,
        evidence={"reason": "cost per task moved"},
        opened_at=AS_OF,
    )
    assert run("reruns", "toy").splitlines()[:2] == [
        f"warn {alert.pk}: cost per task ranking tasks, version 1, since 2026-06-01",
        "  cost per task moved",
    ]
    assert f"alert {alert.pk} is closed." in run("reruns", "toy", "--close-alert", str(alert.pk), "prices")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--close", "7", "why"], "Unknown rerun request 7"),
        (["--close-alert", "x", "why"], "Unknown alert x"),
        (["--open", " "], "is empty. Say why"),
        (["--open", "why"], "No subset is fixed"),
    ],
)
def test_what_cannot_be_done_is_refused(run, toy, arguments, words):
    with pytest.raises(CommandError, match=words):
        run("reruns", "toy", *arguments)


def test_an_assignment_is_printed_with_its_tasks(run, toy):
    names = subset_runs(toy, 1)
    printed = run("assign", "toy", *AGENT, "--for", "Ada@example.org").splitlines()
    assignment = Assignment.objects.get()
    assert printed[0].startswith(f"Assignment {assignment.uuid} of newcomer, until ")
    assert printed[1] == f"subset: {assignment.reason}."
    assert printed[2].startswith(f"{len(assignment.tasks)} tasks, 1 trial of each (")
    told = [line.strip() for line in printed[3:]]
    assert told == sorted(toy.tasks.filter(pk__in=assignment.tasks).values_list("name", flat=True))
    assert Agent.objects.get(name="newcomer").owner.email == "ada@example.org"
    assert run("assign", "toy", *AGENT).splitlines() == printed
    with pytest.raises(CommandError, match="Unknown account"):
        run("assign", "toy", *AGENT, "--for", "bob@example.org")
    with pytest.raises(CommandError, match="already ran all its tasks"):
        run("assign", "toy", "--agent", names[0], "--scaffold", "Loop", "--model", "Model s0")
