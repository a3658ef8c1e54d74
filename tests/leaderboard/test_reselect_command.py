"""`manage.py reselect`: shown, proposed, approved, rejected."""

from functools import partial

import pytest
from django.core.management import CommandError

from leaderboard.catalog.models import Benchmark
from leaderboard.operations.models import Reselection
from leaderboard.operations.services import recompute
from leaderboard.studies.queries import active_subset
from tests.toys import AS_OF, S_FIRST, csv_text, load_text, moved, only

pytestmark = pytest.mark.usefixtures("replayed_twice")


@pytest.fixture
def run(run):
    return partial(run, "reselect", "toy")


@pytest.fixture
def drifted(db):
    return moved()


def rows(text, title):
    """The cells of a table's lines, two spaces apart."""
    block = text.split(f"\n{title}:\n")[1].split("\n\n")[0]
    lines = [line for line in block.splitlines() if line.startswith("  ")]
    return [line.split() for line in lines]


def test_from_a_proposal_to_a_new_version(drifted, run, unreplayed):
    load_text(csv_text({"new": only("10" * 10, S_FIRST)}))
    assert run() == ("No proposal for toy.\nNext: manage.py reselect toy --propose REASON\n")
    told = run("--propose", "pass rates moved")
    number = Reselection.objects.get().pk
    assert told.startswith(f"proposal          {number}, proposed, ")
    assert "pass rates of 20 tasks over 32 agents\n" in told
    assert rows(told, "Plain rule: enter")[1:3] == [["t09", "0.812", "0.656"], ["t11", "0.188", "0.375"]]
    assert rows(told, "With hysteresis: leave")[1] == ["t07", "0.688", "0.812"]
    assert rows(told, "Plain rule: would have to run")[1] == ["new", "2", "t09,", "t11"]
    assert "Version 1, in use      9" in told
    assert "Later agents     not available: one fold alone" in told
    assert run() == told
    assert f"Next: manage.py reselect toy --approve {number} --variant plain --reason REASON" in told
    done = run("--approve", str(number), "--variant", "hysteresis", "--reason", "agreed")
    assert done.startswith("Ranking tasks, version 2, are active: 10 of 20 tasks by their pass rates over 32")
    assert done.endswith("Next: manage.py recompute toy (to use them on the board)\n")
    assert active_subset(drifted).number == 2
    assert run().startswith("No proposal for toy.")


def test_a_proposal_without_a_change_is_an_answer(toy, run):
    """Chosen again on the same outcomes, the subset is the same: a script that asks each night goes on."""
    recompute(benchmark=toy, as_of=AS_OF)
    assert active_subset(toy).number == 1
    assert run("--propose", "every night") == ("No change: the same ranking tasks would be chosen today.\n")
    assert not Reselection.objects.exists()


def test_rejected_and_outdated(drifted, run, unreplayed):
    run("--propose", "pass rates moved")
    number = str(Reselection.objects.get().pk)
    Benchmark.objects.update(full_runs_only_at="2026-06-01T00:00Z", full_runs_only_reason="a new harness")
    assert "Cannot be approved: an operator asked for full runs only: a new harness." in run()
    told = run("--reject", number, "--reason", "not yet")
    assert told == f"Proposal {number} is rejected. Ranking tasks, version 1, stay in use.\n"
    with pytest.raises(CommandError, match="This proposal is rejected already: not yet"):
        run("--reject", number, "--reason", "again")


@pytest.mark.parametrize(
    ("arguments", "told", "code"),
    [
        (["--propose", " "], "A reason is required", 1),
        (["--approve", "1", "--variant", "plain"], "--reason is empty", 1),
        (["--approve", "1", "--reason", "agreed"], "--approve needs --variant plain or hysteresis", 2),
        (["--reject", "999999", "--reason", "no"], "Unknown proposal 999999 on toy. None is open.", 1),
        (["--propose", "by hand"], "The ranking tasks are not fixed yet", 1),
    ],
)
def test_refusals(db, run, arguments, told, code):
    load_text(csv_text({f"a{i}": "10" * 10 for i in range(4)}))
    with pytest.raises(CommandError, match=told) as refused:
        run(*arguments)
    assert refused.value.returncode == code
