"""Replays of what could take the place of a rule: in proposals, previews, and where a verdict falls."""

import io
import json
from dataclasses import replace as changed
from datetime import timedelta

import pytest
from django.core.management import call_command

from analytics.command_line import plain
from leaderboard.catalog.models import Benchmark, Policy
from leaderboard.catalog.queries import policy_in_force
from leaderboard.catalog.rules import RULES, shown
from leaderboard.operations import jobs
from leaderboard.operations.drifting import close_alert, update_alerts
from leaderboard.operations.models import Alert, Event, JobRun, Notification
from leaderboard.operations.reselections import propose
from leaderboard.studies.models import ValidationStudy
from leaderboard.studies.queries import active_subset
from leaderboard.studies.records import Reader
from leaderboard.studies.services import store_study
from selection.cli import main
from selection.staged.replay import Figure
from selection.staged.text import line_of
from tests.leaderboard.desk import person
from tests.selection.test_staged import GOOD
from tests.toys import AS_OF, board_of, csv_text, graded, load_text, moved, recomputed

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("replayed_twice")]


@pytest.fixture(autouse=True)
def staged_by_default(subset_by_default, monkeypatch):
    monkeypatch.setitem(vars(Policy._meta.get_field("assignment")), "_get_default", lambda: "staged")


def toy():
    return Benchmark.objects.get(slug="toy")


def printed(*arguments):
    out = io.StringIO()
    call_command(*arguments, stdout=out, stderr=io.StringIO())
    return out.getvalue()


@pytest.fixture
def file(tmp_path):
    """The present outcomes as they are exported."""

    def exported():
        path = tmp_path / "export.csv"
        printed("export", "toy", "--output", str(path))
        return path

    return exported


def core(capsys, *arguments):
    assert main(["replay", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def same(stored, told):
    assert stored["verdict"] == told["verdict"]
    for name, figure in stored["figures"].items():
        assert figure == told[name] or figure == pytest.approx(told[name], abs=1e-9), name


def test_a_proposal_has_the_replays_of_the_core_on_the_exported_file(file, tmp_path, capsys):
    proposal = propose(benchmark=moved(), by=None, reason="they moved", as_of=AS_OF)
    content, path, names = proposal.content, file(), tmp_path / "s.txt"
    replays, rules = content["replays"], ("--subset-from", Policy.objects.latest("number").subset_from)
    assert replays.keys() == {"in_use", "plain", "hysteresis", "anew"}
    tasks = {name: content["variants"][name]["tasks"] for name in ("plain", "hysteresis")}
    tasks["in_use"] = proposal.previous.members.values_list("task__name", flat=True)
    for name, subset in tasks.items():
        names.write_text("\n".join(subset))
        same(replays[name], core(capsys, path, "--subset", names, *rules))
    same(replays["anew"], core(capsys, path, "--reselect", *rules))
    told = printed("reselect", "toy")
    for name in replays:
        assert f"{100 * replays[name]['figures']['saved']:.1f}%" in told
    assert "Chosen each time" in told
    assert "so their figures are too good" in " ".join(told.split())


@pytest.fixture
def board(db):
    board_of(csv_text(graded(24, 60)))
    return toy()


def test_another_podium_and_full_runs_are_replayed_by_the_command(board, file, capsys):
    path = file()
    told = printed("policy", "toy", "--set", "podium=8", "--dry-run")
    for rules, line in (
        ((), "Replay, in force (podium 3): "),
        (("--podium", 8), "Replay, then (podium 8): "),
    ):
        found = core(capsys, path, *rules)
        figures = {name: value for name, value in found.items() if name != "verdict"}
        assert line + line_of({"figures": figures, "verdict": found["verdict"]}) in told
    full = printed("policy", "toy", "--set", "assignment=full", "--dry-run")
    assert "Replay, then (full runs): saved 0.0%; pairs in order 100.0%" in full
    assert "Replay" not in printed("policy", "toy", "--set", "backdating_days=9", "--dry-run")
    assert toy().policies.latest("number").podium == 3


def test_the_desk_asks_for_a_job_and_shows_what_it_found(board, client):
    client.force_login(person("staff@example.org", staff=True))
    address = f"/admin/catalog/benchmark/{board.pk}/policy/"
    policy = policy_in_force(board)
    form = {name: shown(name, getattr(policy, name)) for name in RULES}
    form |= {"number": policy.number, "podium": "8", "reason": "more of the best"}
    page = client.post(address, form).content.decode()
    assert "are being replayed" in page
    run = JobRun.objects.get(kind="replay")
    assert run.status == "queued"
    run.told = jobs.JOBS["replay"].run(run, AS_OF, lambda done, n: None)
    run.status = "done"
    run.save()
    assert run.told.splitlines() == [
        line
        for line in printed("policy", "toy", "--set", "podium=8", "--dry-run").splitlines()
        if line.startswith("Replay")
    ]
    again = client.post(address, form).content.decode()
    assert "Replay, then (podium 8): saved" in again
    assert JobRun.objects.filter(kind="replay").count() == 1


# -------------------------------------------------------------------------------------------- a verdict falls


def validated(word, n):
    """A validation of data of its own, with a replay of this verdict."""
    load_text(csv_text({f"late{n}": "10" * 30}), as_of=AS_OF + timedelta(days=n))
    recomputed()
    figures = plain(changed(GOOD, saved=0.3, pairs=Figure(0.85 if word == "not yet" else 0.96, 0.01, 9)))
    replay = {"rule": "podium 3", "figures": figures, "verdict": {"word": word, "text": word, "reasons": []}}
    result = {"replay": replay | {"reason": ""}, "others": [], "protocols": {}, "agents": 24}
    if word == "not yet":
        better = figures | {"pairs": {"value": 0.97, "se": 0.01, "n": 9}}
        result["others"] = [replay | {"rule": "podium 5", "figures": better, "reason": ""}]
    snapshot = Reader(toy()).now(active_subset(toy()))
    return store_study(ValidationStudy, snapshot=snapshot, result=result, as_of=AS_OF)


def looked():
    return update_alerts(benchmark=toy(), as_of=AS_OF)


def of_verdict():
    return Alert.objects.filter(monitor="verdict")


def test_a_verdict_that_falls_alerts_once_and_closes_when_it_recovers(board):
    person("staff@example.org", staff=True)
    validated("mostly", 1)
    looked()
    assert not of_verdict().exists()
    validated("not yet", 2)
    assert "verdict: alert" in looked()
    looked()
    alert = of_verdict().get()
    assert (alert.level, alert.closed_at, alert.request) == ("alert", None, None)
    reason, advice = alert.evidence["reason"], alert.evidence["advice"]
    assert "was mostly (saved 30.0%; pairs in order 96.0% (SE 1.0)" in reason
    assert "is not yet (saved 30.0%; pairs in order 85.0% (SE 1.0)" in reason
    assert "podium 5 (saved 30.0%; pairs in order 97.0% (SE 1.0)" in advice
    told = Event.objects.get(kind="drift.alert", payload__monitor="verdict")
    assert told.payload["evidence"]["reason"] == reason
    assert Notification.objects.filter(event=told, email="staff@example.org").exists()
    assert JobRun.objects.filter(kind="reselect", about=f"alert {alert.pk}").count() == 1
    validated("yes", 3)
    assert "verdict: closed, quiet again" in looked()
    alert.refresh_from_db()
    assert alert.closed_at == AS_OF
    validated("full runs", 4)
    looked()
    assert of_verdict().count() == 2


def test_a_verdict_that_never_was_better_does_not_fall(board):
    validated("not yet", 1)
    looked()
    assert not of_verdict().exists()


def test_an_alert_closed_by_hand_stays_closed_until_the_verdict_was_better(board):
    validated("mostly", 1)
    validated("not yet", 2)
    looked()
    close_alert(alert=of_verdict().get(), by=None, reason="we know", as_of=AS_OF)
    validated("not yet", 3)
    looked()
    assert of_verdict().count() == 1
    validated("mostly", 4)
    looked()
    validated("not yet", 5)
    looked()
    assert of_verdict().filter(closed_at=None).count() == 1
