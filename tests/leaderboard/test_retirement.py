"""A broken task is taken out of the count, and back."""

from datetime import timedelta

import pytest
from django.utils import timezone

from leaderboard.catalog.models import Benchmark
from leaderboard.errors import Conflict, Missing, Refusal
from leaderboard.operations.asking import asked_tasks
from leaderboard.operations.benchmarks import list_tasks, restore, retire, task_of
from leaderboard.operations.corrections import unload, unload_latest
from leaderboard.operations.previews import foresee_task
from leaderboard.submissions.parsing.task_list import ListedTask
from tests.leaderboard.desk import recorded
from tests.refusals import refused
from tests.toys import (
    AS_OF,
    FIRST,
    csv_text,
    in_subset,
    lines_of,
    load_text,
    only,
    passing,
    recomputed,
)

# By hand: without t2, which only b passes, a has 2 of 2 and b 1 of 2; with it both have 2 of 3.
MARKS = {"a": "110", "b": "101"}
LATER = AS_OF + timedelta(days=1)


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
    with refused(Conflict, "retired_already", match="since 2026-06-01"):
        retire(task=last(small), by=None, reason="broken", as_of=AS_OF)
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
    assert n_moved == 0 or f"{n_moved} of 16 agents would change rank" in told[-1]
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
    assert asked_tasks(benchmark) is None
    for name in subset:
        restore(task=task_of(benchmark, name), by=None, reason="mended")
    after = recomputed()
    assert in_subset(after) == subset
    assert [
        (name, line.at["full"].score, line.at["full"].rank) for name, line in lines_of(after).items()
    ] == [(name, line.at["full"].score, line.at["full"].rank) for name, line in lines_of(before).items()]


# ---------------------------------------------------------------- tasks that only a withdrawn load had

WRONG = csv_text({"a": "...11"}, day="2026-02-05")  # t03 and t04, which b lacks


def undone(benchmark, *, as_of=LATER):
    return [task.name for task in unload_latest(benchmark=benchmark, reason="a typo", as_of=as_of).tasks]


def active(benchmark):
    return sorted(benchmark.tasks.filter(retired_at=None).values_list("name", flat=True))


def test_an_undone_load_takes_its_own_tasks_with_it(small, django_user_model):
    before = recomputed()
    load_text(WRONG)
    small.refresh_from_db()
    ada = django_user_model.objects.create_user("ada@example.org")
    gone = unload_latest(benchmark=small, reason="a typo", as_of=LATER, by=ada)
    assert [task.name for task in gone.tasks] == ["t03", "t04"]
    assert gone.sentences() == ["Retired 2 tasks that only this load had. Loading them again restores them."]
    assert recomputed().digest == before.digest
    task = task_of(small, "t03")
    assert (task.retired_at, task.retired_reason) == (LATER, "a typo")
    assert [(one["reason"], one["user"]) for one in recorded(task)] == [("a typo", ada.pk)]
    assert Benchmark.objects.get().data_version == small.data_version + 1


def test_they_come_back_with_the_next_load_and_go_with_its_undo(small):
    load_text(WRONG)
    before = recomputed()
    undone(small)
    assert load_text(WRONG).notes == ("2 tasks that an undo retired count again.",)
    assert recomputed().digest == before.digest
    assert undone(small) == ["t03", "t04"]
    load_text(csv_text({"b": "...0"}))
    assert active(small) == ["t00", "t01", "t02", "t03"]


def test_an_undone_first_load_leaves_no_task_behind(db):
    load_text(csv_text({"a": "1101", "b": "1011"}))
    benchmark = Benchmark.objects.get()
    undone(benchmark)
    assert active(benchmark) == []
    load_text(csv_text(MARKS), as_of=LATER)
    assert active(benchmark) == ["t00", "t01", "t02"]
    assert scores() == pytest.approx({"a": 2 / 3, "b": 2 / 3})


def test_a_task_that_another_load_has_stays(small):
    load_text(csv_text({"b": "...1"}))
    load_text(WRONG)
    assert undone(small) == ["t04"]
    assert undone(small) == ["t03"]
    assert active(small) == ["t00", "t01", "t02"]


def test_a_task_that_came_with_what_the_load_replaced_stays(small):
    load_text(csv_text({"c": "1111"}))
    load_text(csv_text({"c": "0001"}), replace=True)
    gone = unload_latest(benchmark=small, reason="a typo", as_of=LATER)
    assert not gone.tasks
    assert gone.sentences() == [
        "What was replaced does not come back: 4 earlier results are now missing. "
        "To have them back, load their file again."
    ]


@pytest.mark.parametrize("listed_first", [True, False])
def test_a_task_of_a_list_stays(small, listed_first):
    steps = [
        lambda: list_tasks(slug="toy", tasks=[ListedTask("t03", "", "", None)]),
        lambda: load_text(WRONG, as_of=timezone.now()),  # by the clock of the audit
    ]
    for step in steps if listed_first else reversed(steps):
        step()
    assert undone(small) == (["t04"] if listed_first else [])
    assert "t03" in active(small)


def test_a_list_brings_a_task_back_for_good(small):
    load_text(WRONG)
    undone(small)
    assert list_tasks(slug="toy", tasks=[ListedTask("t03", "", "", None)]) == (1, 0, False)
    assert active(small) == ["t00", "t01", "t02", "t03"]
    load_text(WRONG)
    undone(small)
    assert "t03" in active(small)


def test_a_task_that_an_operator_retired_stays_so_and_a_load_says_it(small):
    load_text(WRONG)
    retire(task=task_of(small, "t03"), by=None, reason="broken", as_of=AS_OF)
    assert undone(small) == ["t04"]
    assert load_text(WRONG).notes == (
        "1 task that an undo retired counts again.",
        "1 task of this load is retired and not counted. To count it: "
        "manage.py retire toy t03 --restore --reason TEXT",
    )
    assert active(small) == ["t00", "t01", "t02", "t04"]


def test_one_submission_withdrawn_takes_its_own_tasks_with_it(small):
    load_text(WRONG)
    last_one = small.agents.get(name="a").submissions.latest("pk")
    assert len(unload(uuids=[last_one.uuid], reason="a typo", as_of=LATER).tasks) == 2
