"""An operator runs tasks drawn at random again, and the service compares."""

import json

import pytest
from django.core.management import CommandError, call_command

from leaderboard import postgres
from leaderboard.submissions.models import Submission, Verification
from leaderboard.submissions.queries import is_verified
from tests.leaderboard.service import Service, full_run
from tests.leaderboard.test_receipts import deliver, token
from tests.toys import csv_text, ladder, load_text, rows_text

N = 60


@pytest.fixture
def submitted(db):
    """A submission that passes 45 of 60 tasks."""
    load_text(csv_text(ladder(4, N)))
    outcomes = {f"t{j:02d}": [int(j % 4 != 0)] for j in range(N)}
    return submitted_as("plain", outcomes)


def submitted_as(agent, outcomes):
    receipt = deliver(token("ada@example.org"), outcomes, agent, model=f"Model {agent}")
    return Submission.objects.get(uuid=receipt["id"])


def drawn(submission, capsys, n=20):
    call_command("verify", str(submission.uuid), "--draw", str(n))
    return capsys.readouterr().out.split()


def passes(task):
    return int(int(task[1:]) % 4 != 0)


@pytest.fixture
def rerun(submitted, tmp_path):
    """Deliver the operator's own outcomes, {task: outcome}."""

    def do(outcomes, submission=submitted, benchmark="Toy", **more):
        rows = [{"agent": "plain", "task": task, "outcome": one} | more for task, one in outcomes.items()]
        file = tmp_path / "rerun.csv"
        file.write_text(rows_text(rows, benchmark=benchmark))
        call_command("verify", str(submission.uuid), "--rerun", str(file), "--note", "our machine")

    return do


def test_the_draw_is_the_same_each_time_and_known_to_the_server_alone(submitted, capsys, settings, tmp_path):
    first = drawn(submitted, capsys)
    assert len(set(first)) == 20
    settings.SECRET_KEY = "another"  # the embedded server has another one at each start
    assert drawn(submitted, capsys) == first
    assert drawn(submitted, capsys, 30)[:20] == first
    settings.EMBEDDED = False
    by_secret_key = drawn(submitted, capsys)
    assert by_secret_key != first
    settings.SECRET_KEY = "a third"
    assert drawn(submitted, capsys) != by_secret_key


def test_each_embedded_server_makes_a_key_and_keeps_it_to_itself(submitted, capsys, monkeypatch, tmp_path):
    first = drawn(submitted, capsys)
    monkeypatch.setattr(postgres, "home", lambda: tmp_path)
    assert drawn(submitted, capsys) != first
    (kept,) = tmp_path.iterdir()
    assert (kept.name, kept.stat().st_mode & 0o777) == ("draw.key", 0o600)


def test_what_one_process_draws_another_accepts(tmp_path):
    """Each process of an embedded server without a SECRET_KEY makes one at random."""
    service = Service()
    try:
        service.load(csv_text(ladder(4, 40)), "toy")
        service.web()
        answer = service.submit("toy", service.token("toy"), full_run("plain", "1" * 40))
        uuid = json.loads(answer[2])["id"]
        tasks = service.manage("verify", uuid, "--draw")
        file = tmp_path / "rerun.csv"
        file.write_text(rows_text([{"agent": "plain", "task": one, "outcome": 1} for one in tasks]))
        assert "is verified" in service.manage("verify", uuid, "--rerun", str(file))[0]
    finally:
        service.close()


def test_two_submissions_get_other_tasks(submitted, capsys):
    other = deliver(token("bob@example.org"), {f"t{j:02d}": [1] for j in range(N)}, "other")
    assert drawn(Submission.objects.get(uuid=other["id"]), capsys) != drawn(submitted, capsys)


def test_a_run_that_agrees_verifies(submitted, rerun, capsys):
    tasks = drawn(submitted, capsys)
    outcomes = {task: passes(task) for task in tasks}
    outcomes[tasks[0]] = 1 - outcomes[tasks[0]]
    rerun(outcomes)
    assert "is verified: rerun of 20 tasks" in capsys.readouterr().out
    assert is_verified(submitted)
    assert Verification.objects.get().note.startswith("our machine; rerun of 20 tasks: ")
    assert "McNemar, p = 1" in Verification.objects.get().note


def test_a_run_that_disagrees_leaves_it_as_it_is_with_the_figures(submitted, rerun, capsys):
    tasks = drawn(submitted, capsys)
    n = sum(map(passes, tasks))
    assert n >= 8
    with pytest.raises(
        CommandError, match=rf"0\.0% rerun; better on {n} and 0 tasks; McNemar, p = "
    ) as refused:
        rerun(dict.fromkeys(tasks, 0))
    assert f"p = {2 / 2**n:.3g}" in str(refused.value)
    assert not Verification.objects.exists()


def test_what_is_verified_stays_so_when_a_run_disagrees(submitted, rerun, capsys):
    tasks = drawn(submitted, capsys)
    call_command("verify", str(submitted.uuid), "--note", "read the logs")
    with pytest.raises(CommandError, match="It stays verified, but the runs differ by more than chance"):
        rerun(dict.fromkeys(tasks, 0))
    assert is_verified(submitted)


def test_graded_runs_are_compared_by_their_means(submitted, rerun, capsys):
    outcomes = {f"t{j:02d}": [0.9 - 0.1 * (j % 4)] for j in range(N)}
    graded = submitted_as("graded", outcomes)
    tasks = drawn(graded, capsys)
    with pytest.raises(CommandError, match="paired t, p = "):
        rerun({task: outcomes[task][0] / 2 for task in tasks}, graded, agent="graded", model="Model graded")
    assert not is_verified(graded)


def test_fractions_are_no_run_of_what_passes_or_fails(submitted, rerun, capsys):
    """Halves everywhere would be compared by a t test, which has less power, and agree."""
    tasks = drawn(submitted, capsys)
    with pytest.raises(
        CommandError, match=r"outcomes are 0 or 1; the file has 0\.5 on task t\d\d\. Give each"
    ):
        rerun(dict.fromkeys(tasks, 0.5))
    rerun({task: passes(task) for task in tasks} | {tasks[0]: 0.5}, n_averaged=2)
    assert "paired t" in Verification.objects.get().note


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"agent": "x", "model": "Model plain"}, "agent 'x' in the file, 'plain' submitted"),
        ({"scaffold": "Tree"}, "scaffold 'Tree' in the file, 'Loop' submitted"),
        ({"model": "M", "scaffold": "T"}, "scaffold 'T' .* submitted; model 'M' .*, 'Model plain' submitted"),
        ({"benchmark": "Other"}, "benchmark 'Other' in the file, 'toy' submitted"),
        ({"temperature": 0.5}, r"temperature 0\.5 in the file, not stated submitted"),
        ({"judge": "j", "prompt_variant": "v"}, "prompt_variant 'v' .*; judge 'j' in the file, not stated"),
    ],
)
def test_a_run_of_something_else_is_refused(submitted, rerun, capsys, other, told):
    outcomes = {task: passes(task) for task in drawn(submitted, capsys)}
    with pytest.raises(CommandError, match=f"The file is of another run: {told}"):
        rerun(outcomes, **other)
    rerun(outcomes, run="ours")
    assert is_verified(submitted)


def test_a_run_under_the_conditions_that_were_stated(submitted, rerun, capsys):
    rows = [{"task": f"t{j:02d}", "trial": 1, "outcome": 1, "temperature": 0.7} for j in range(N)]
    warm = submitted_as("warm", rows)
    mine = {"submission": warm, "agent": "warm", "model": "Model warm"}
    outcomes = dict.fromkeys(drawn(warm, capsys), 1)
    with pytest.raises(CommandError, match=r"temperature not stated in the file, 0\.7 submitted"):
        rerun(outcomes, **mine)
    rerun(outcomes, temperature=0.7, **mine)
    assert is_verified(warm)


def test_a_file_under_a_name_that_the_agent_had_is_its_own(submitted, rerun, capsys):
    outcomes = {task: passes(task) for task in drawn(submitted, capsys)}
    call_command("rename", "toy", "plain", "Plain 2", "--reason", "asked for")
    rerun(outcomes)
    assert is_verified(submitted)


@pytest.mark.parametrize("note", ["a \x1b[31mred note", "x" * 5_001])
def test_a_note_keeps_the_rules_of_reasons(submitted, note):
    with pytest.raises(CommandError, match=r"cannot be seen|5,001 characters. Use at most 5,000"):
        call_command("verify", str(submitted.uuid), "--note", note)
    assert not Verification.objects.exists()


def test_other_tasks_than_those_drawn_are_refused(submitted, rerun, capsys):
    tasks = drawn(submitted, capsys)
    others = sorted({f"t{j:02d}" for j in range(N)} - set(drawn(submitted, capsys, 36)))
    with pytest.raises(
        CommandError, match=f"Not drawn, but in the file: {', '.join(others[:5])} and 11 more. Run the tasks"
    ):
        rerun({task: passes(task) for task in [*tasks, *others[:16]]})
    with pytest.raises(CommandError, match=f"Drawn, but without a valid outcome in the file: {tasks[-1]}\\."):
        rerun({task: passes(task) for task in tasks[:-1]})
    with pytest.raises(CommandError, match=r"without a valid outcome in the file: .* and 15 more"):
        rerun(dict.fromkeys(tasks, 1), valid="false")
    assert not Verification.objects.exists()


def test_too_few_tasks_are_refused(db, capsys):
    load_text(csv_text(ladder(4, 20)))
    few = deliver(token("ada@example.org"), {f"t{j:02d}": [1] for j in range(19)}, "few")
    with pytest.raises(CommandError, match="19 active tasks; 20 are needed"):
        call_command("verify", few["id"], "--draw")
    with pytest.raises(CommandError, match="at least 20"):
        call_command("verify", few["id"], "--draw", "5")
