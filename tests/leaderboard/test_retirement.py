"""A broken task is taken out of the count, and back."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from leaderboard.catalog.models import Benchmark
from leaderboard.errors import Conflict, Missing, Refusal
from leaderboard.operations.asking import asked_tasks
from leaderboard.operations.benchmarks import (
    restore,
    retire,
    task_of,
)
from leaderboard.operations.corrections import after_undo, unload_latest
from leaderboard.operations.previews import foresee_task
from tests.leaderboard.desk import recorded
from tests.refusals import refused
from tests.toys import AS_OF, FIRST, csv_text, in_subset, lines_of, load_text, only, passing, recomputed

# By hand: without t2, which only b passes, a has 2 of 2 and b 1 of 2; with it both have 2 of 3.
MARKS = {"a": "110", "b": "101"}


@pytest.fixture
def small(db):
    load_text(csv_text(MARKS))
    return Benchmark.objects.get(slug="toy")


def scores():
    return {name: line.at["full"].score for name, line in lines_of(recomputed()).items()}


def last(benchmark):
    return task_of(benchmark, "t02")


def test_a_retired_task_leaves_the_scores_and_comes_back(small):
    assert scores() == pytest.approx({"a": 2 / 3, "b": 2 / 3})
    before = recomputed()
    retire(task=last(small), by=None, reason="its checker is broken", as_of=AS_OF)
    assert scores() == pytest.approx({"a": 1.0, "b": 0.5})
    assert recomputed().n_tasks == 2
    restore(task=last(small), by=None, reason="mended")
    after = recomputed()
    assert after.number == 3
    assert after.digest == before.digest


def test_an_undo_names_the_tasks_that_are_left_without_results(small):
    """t03 came with the second load alone; so did another result of t00, which a has too."""
    load_text(csv_text({"c": "1..0"}))
    gone = unload_latest(benchmark=small, reason="wrong names", as_of=AS_OF)
    assert list(after_undo(gone)) == [
        "1 task has no results now: t03. To leave it out: manage.py retire toy t03 --reason TEXT"
    ]
    retire(task=task_of(small, "t03"), by=None, reason="wrong name", as_of=AS_OF)
    assert list(after_undo(gone)) == []
    assert load_text(csv_text({"c": "1..0"})).notes[0] == (
        "1 task of this load is retired and not counted. To count it: "
        "manage.py retire toy t03 --restore --reason TEXT"
    )


def test_an_undo_says_how_much_was_replaced(small):
    gone = unload_latest(benchmark=small, reason="look", as_of=AS_OF)
    assert not any("replaced" in text for text in after_undo(gone))
    load_text(csv_text(MARKS))
    load_text(csv_text({"a": "111"}), replace=True)
    gone = unload_latest(benchmark=small, reason="undo", as_of=AS_OF)
    assert list(after_undo(gone)) == ["What was replaced does not come back: 3 results. Load its file again."]


def test_its_reason_is_kept_and_that_of_its_return(small, django_user_model):
    ada = django_user_model.objects.create_user("ada@example.org")
    retire(task=last(small), by=ada, reason="its checker is broken", as_of=AS_OF)
    assert (last(small).retired_at, last(small).retired_reason) == (AS_OF, "its checker is broken")
    restore(task=last(small), by=ada, reason="mended")
    told = [(one["reason"], one["user"]) for one in recorded(last(small))]
    assert told == [("its checker is broken", ada.pk), ("mended", ada.pk)]


def test_refusals(small):
    with refused(Conflict, "not_retired"):
        restore(task=last(small), by=None, reason="why not")
    retire(task=last(small), by=None, reason="broken", as_of=AS_OF)
    with refused(Conflict, "retired_already", match="since 2026-06-01.*retire toy t02 --restore"):
        retire(task=last(small), by=None, reason="broken", as_of=AS_OF)
    out = StringIO()
    with pytest.raises(CommandError, match="is retired since"):
        call_command("retire", "toy", "t02", "--reason", "broken", stdout=out)
    assert not out.getvalue()  # nothing of what a first retirement would have done
    retire(task=task_of(small, "t01"), by=None, reason="broken", as_of=AS_OF)
    with refused(Conflict, "last_task"):
        retire(task=task_of(small, "t00"), by=None, reason="broken", as_of=AS_OF)
    with refused(Missing, "no_such_task"):
        task_of(small, "t99")
    with refused(Refusal, "reason_missing"):
        restore(task=last(small), by=None, reason=" ")
    assert last(small).retired_at is not None


def test_a_preview_says_what_comes_true_twice_and_changes_nothing(toy):
    before = recomputed()
    name = in_subset(before)[0]
    version = Benchmark.objects.get(slug="toy").data_version
    told = foresee_task(task_of(toy, name), as_of=AS_OF).sentences
    assert foresee_task(task_of(toy, name), as_of=AS_OF).sentences == told
    assert Benchmark.objects.get(slug="toy").data_version == version
    assert task_of(toy, name).retired_at is None
    assert told[0] == "19 tasks would count instead of 20."
    assert f"{len(in_subset(before)) - 1} ranking tasks instead of {len(in_subset(before))}" in told[1]
    retire(task=task_of(toy, name), by=None, reason="broken", as_of=AS_OF)
    after = recomputed()
    assert after.n_tasks == 19
    assert set(in_subset(before)) - set(in_subset(after)) == {name}
    ranks = [{n: line.at["full"].rank for n, line in lines_of(one).items()} for one in (before, after)]
    n_moved = sum(ranks[0][name] != ranks[1][name] for name in ranks[0])
    assert n_moved == 0 or f"{n_moved} of 16 agents would change rank:" in " ".join(told)
    assert foresee_task(task_of(toy, name), as_of=AS_OF).sentences[0] == "20 tasks would count instead of 19."


def test_a_preview_tells_who_would_move_and_to_where(small):
    before = lines_of(recomputed())
    found = foresee_task(last(small), as_of=AS_OF)
    assert found.sentences == foresee_task(last(small), as_of=AS_OF).sentences
    retire(task=last(small), by=None, reason="broken", as_of=AS_OF)
    after = lines_of(recomputed())
    assert {agent: (was, then) for agent, was, then in found.moves} == {
        name: (before[name].at["full"], after[name].at["full"])
        for name in after
        if before[name].at["full"].rank != after[name].at["full"].rank
    }
    assert [(agent, was.rank, then.rank) for agent, was, then in found.moves] == [("b", 1, 2)]
    assert found.n_ranked == 2


def test_boards_go_on_when_all_tasks_of_the_subset_are_retired(db):
    load_text(csv_text(passing(FIRST)))
    before = recomputed()
    load_text(csv_text({"newcomer": only("1" * 20, in_subset(before))}, day="2026-02-05"))
    benchmark = Benchmark.objects.get(slug="toy")
    before = recomputed()
    subset = in_subset(before)
    for name in subset:
        retire(task=task_of(benchmark, name), by=None, reason="broken", as_of=AS_OF)
        assert recomputed().number > before.number
    without = recomputed()
    assert without.n_tasks == 20 - len(subset)
    assert not set(in_subset(without)) & set(subset)
    assert set(lines_of(without)) == set(lines_of(before)) - {"newcomer"}
    assert asked_tasks(benchmark.policies.get()) is None
    for name in subset:
        restore(task=task_of(benchmark, name), by=None, reason="mended")
    after = recomputed()
    assert in_subset(after) == subset
    assert [
        (name, line.at["full"].score, line.at["full"].rank) for name, line in lines_of(after).items()
    ] == [(name, line.at["full"].score, line.at["full"].rank) for name, line in lines_of(before).items()]
