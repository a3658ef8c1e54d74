"""An operator runs tasks drawn at random again, and the service compares."""

import pytest
from django.core.management import CommandError, call_command

from leaderboard.submissions.models import Submission, Verification
from leaderboard.submissions.queries import is_verified
from tests.leaderboard.test_receipts import deliver, token
from tests.toys import csv_text, ladder, load_text, rows_text

N = 60


@pytest.fixture
def submitted(db):
    """A submission that passes 45 of 60 tasks."""
    load_text(csv_text(ladder(4, N)))
    outcomes = {f"t{j:02d}": [int(j % 4 != 0)] for j in range(N)}
    return Submission.objects.get(uuid=deliver(token("ada@example.org"), outcomes, "plain")["id"])


def drawn(submission, capsys, n=20):
    call_command("verify", str(submission.uuid), "--draw", str(n))
    return capsys.readouterr().out.split()


def passes(task):
    return int(int(task[1:]) % 4 != 0)


@pytest.fixture
def rerun(submitted, tmp_path):
    """Deliver the operator's own outcomes, {task: outcome}."""

    def do(outcomes, **more):
        rows = [{"agent": "plain", "task": task, "outcome": one} | more for task, one in outcomes.items()]
        file = tmp_path / "rerun.csv"
        file.write_text(rows_text(rows))
        call_command("verify", str(submitted.uuid), "--rerun", str(file), "--note", "our machine")

    return do


def test_the_draw_is_the_same_each_time_and_known_to_the_server_alone(submitted, capsys, settings):
    first = drawn(submitted, capsys)
    assert len(set(first)) == 20
    assert drawn(submitted, capsys) == first
    assert drawn(submitted, capsys, 30)[:20] == first
    settings.SECRET_KEY = "another"
    assert drawn(submitted, capsys) != first


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


def test_graded_runs_are_compared_by_their_means(submitted, rerun, capsys):
    tasks = drawn(submitted, capsys)
    with pytest.raises(CommandError, match="paired t, p = "):
        rerun({task: 0.1 + 0.2 * passes(task) for task in tasks})
    assert not is_verified(submitted)


def test_other_tasks_than_those_drawn_are_refused(submitted, rerun, capsys):
    tasks = drawn(submitted, capsys)
    chosen = sorted({f"t{j:02d}" for j in range(N)} - set(drawn(submitted, capsys, 21)))[:1]
    with pytest.raises(CommandError, match=f"1 tasks of the file were not drawn: {chosen[0]}"):
        rerun({task: passes(task) for task in [*tasks, *chosen]})
    with pytest.raises(
        CommandError, match=f"1 of 20 drawn tasks have no valid outcome in the file: {tasks[-1]}"
    ):
        rerun({task: passes(task) for task in tasks[:-1]})
    with pytest.raises(CommandError, match="20 of 20 drawn tasks have no valid"):
        rerun(dict.fromkeys(tasks, 1), valid="false")
    assert not Verification.objects.exists()


def test_too_few_tasks_are_refused(db, capsys):
    load_text(csv_text(ladder(4, 20)))
    few = deliver(token("ada@example.org"), {f"t{j:02d}": [1] for j in range(19)}, "few")
    with pytest.raises(CommandError, match="19 active tasks; 20 are needed"):
        call_command("verify", few["id"], "--draw")
    with pytest.raises(CommandError, match="at least 20"):
        call_command("verify", few["id"], "--draw", "5")
