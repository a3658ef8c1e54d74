"""What is stored follows from the order of deliveries, never from when a worker ran or died."""

from datetime import timedelta

import pytest
from django.db import connection, transaction

from leaderboard.boards.queries import standings_of
from leaderboard.catalog.models import Benchmark, Policy, Task
from leaderboard.operations import reselections, services
from leaderboard.studies.models import Calibration, TaskSubset
from leaderboard.studies.records import Reader
from leaderboard.studies.subsets import get_or_compute_calibration, get_or_compute_subset
from leaderboard.submissions.models import Status, Submission
from leaderboard.submissions.services import append_changes, change_status
from tests.toys import AS_OF, FIRST, csv_text, graded, in_subset, load_text, only, passing, recomputed
from tests.toys import LATER as LATER_COUNTS

N_TASKS = 40
LATER = AS_OF + timedelta(days=1)


def full(n, seed, prefix):
    return csv_text(graded(n, N_TASKS, seed=seed, prefix=prefix))


def withdraw(name, slug):
    submissions = list(Submission.objects.filter(agent__name=name, agent__benchmark__slug=slug))
    with transaction.atomic():
        changes = change_status(
            submissions=submissions, status=Status.WITHDRAWN, at=AS_OF, by=None, reason="a test"
        )
        append_changes(benchmark=Benchmark.objects.get(slug=slug), changes=changes)


def stored(slug):
    """All that was fixed and fitted, by name."""
    benchmark = Benchmark.objects.get(slug=slug)
    names = dict(benchmark.agents.values_list("id", "name"))
    tasks = dict(benchmark.tasks.values_list("id", "name"))
    subsets = [
        (s.number, s.data_version, sorted(names[pk] for pk in s.chosen_from), in_subset_of(s), s.reason)
        for s in TaskSubset.objects.filter(benchmark=benchmark).order_by("number")
    ]
    fits = [
        (
            fit.data_version,
            [names[pk] for pk in fit.agents],
            [tasks[pk] for pk in fit.tasks],
            fit.estimator,
            fit.residuals,
            fit.scaffold_residuals,
            fit.in_time,
        )
        for fit in Calibration.objects.filter(subset__benchmark=benchmark).order_by("data_version", "id")
    ]
    return subsets, fits


def in_subset_of(subset):
    return sorted(subset.tasks.values_list("name", flat=True))


def both_ways(*steps):
    """Take the steps with a recompute after each, and with one at the end; return what the two stored."""
    for step in steps:
        step("watched")
        recomputed("watched")
    for step in steps:
        step("late")
    boards = recomputed("watched"), recomputed("late")
    return [(*stored(slug), board.digest) for slug, board in zip(("watched", "late"), boards, strict=True)]


def load(text, **options):
    return lambda slug: load_text(text, slug=slug, **options)


def reselect(variant, slug):
    """Propose and approve: what an operator does between two deliveries."""
    benchmark = Benchmark.objects.get(slug=slug)
    options = {"by": None, "reason": "pass rates moved", "as_of": LATER}
    found = reselections.propose(benchmark=benchmark, **options)
    return reselections.approve(reselection=found, variant=variant, **options)


def in_use(told):
    """The versions, and the calibrations of the last of them: those before it serve no board any more."""
    subsets, fits, digest = told
    return subsets, [fit for fit in fits if fit[0] >= subsets[-1][1]], digest


def test_one_worker_after_each_delivery_and_one_at_the_end_store_the_same(db, by_ridge):
    steps = [load(full(9, 0, "a")), load(full(8, 1, "b")), *(load(full(1, 2 + i, f"c{i}")) for i in range(7))]
    watched, late = both_ways(*steps)
    assert watched == late
    (subset,), fits, _ = late
    assert subset[:2] == (1, 2)
    assert [(version, len(agents)) for version, agents, *_ in fits] == [(2, 17), (7, 22)]


@pytest.mark.slow(each=True)
def test_an_approval_has_its_place_among_the_deliveries(db, by_ridge, unreplayed):
    """Three more are complete before it and eight after: it is fitted to all of 35, and refitted at 40."""
    steps = [
        load(csv_text(passing(FIRST))),
        load(csv_text(passing(LATER_COUNTS, seed=1, prefix="b"))),
        load(csv_text(graded(3, 20, seed=2, prefix="c"))),
        lambda slug: reselect("plain", slug),
        *(load(csv_text({f"d{i}": "10" * 10})) for i in range(8)),
        lambda slug: withdraw("b03", slug),
    ]
    watched, late = both_ways(*steps)
    assert in_use(watched) == in_use(late)
    subsets, fits, _ = in_use(late)
    assert [subset[:2] for subset in subsets] == [(1, 1), (2, 4)]
    assert [(version, len(agents)) for version, agents, *_ in fits] == [(4, 35), (9, 40)]


def test_rows_made_again_from_the_log_are_those_that_were_there(db, by_ridge, unreplayed):
    """Calibrations are gone, as on a new installation: subset 2 is fitted at its approval once more."""
    load_text(csv_text(passing(FIRST)), slug="toy")
    load_text(csv_text(passing(LATER_COUNTS, seed=1, prefix="b")), slug="toy")
    reselect("hysteresis", "toy")
    load_text(csv_text({f"d{i}": "10" * 10 for i in range(5)}), slug="toy")
    recomputed()
    before = stored("toy")
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("UPDATE boards_board SET calibration_id = NULL")
        cursor.execute("DELETE FROM studies_calibration")
        cursor.execute("SET LOCAL session_replication_role = DEFAULT")
    benchmark = Benchmark.objects.get()
    reader = Reader(benchmark)
    subset = get_or_compute_subset(reader)
    assert subset.number == 2
    get_or_compute_calibration(reader, subset, tasks=reader.now(subset).task_ids)
    subsets, fits = stored("toy")
    assert subsets == before[0]
    assert fits == [fit for fit in before[1] if fit[0] >= subset.data_version]


def test_a_delivery_with_new_tasks_comes_after_those_before_it(db):
    more = csv_text(graded(3, N_TASKS + 20, seed=4, prefix="n"))
    watched, late = both_ways(load(full(16, 0, "a")), load(more))
    assert watched == late
    assert set(late[0][0][3]) <= {f"t{j:02d}" for j in range(N_TASKS)}


def test_who_withdrew_before_the_worker_came_had_still_helped_to_choose(db):
    steps = [load(full(15, 0, "a")), lambda slug: withdraw("a07", slug), load(full(1, 1, "b"))]
    watched, late = both_ways(*steps)
    assert watched == late
    assert "a07" in late[0][0][2]


@pytest.mark.slow(each=True)
def test_an_unsuited_band_is_tried_again_with_each_complete_agent(db):
    """By hand: 1 of 15 agents passes, then 2 of 16 (12.5%), then 3 of 17 (17.6%) on 30 tasks."""
    same = {f"a{i:02d}": ("1" if i < 1 else "0") * N_TASKS for i in range(15)}
    steps = [load(csv_text(same)), *(load(csv_text({f"b{i}": "1" * 30 + "0" * 10})) for i in range(4))]
    watched, late = both_ways(*steps)
    assert watched == late
    number, version, _, tasks, _ = late[0][0]
    assert (number, version, len(tasks)) == (1, 3, 30)


def test_a_subset_run_settles_nothing(db, by_ridge):
    load_text(full(15, 0, "a"))
    subset = in_subset(recomputed())
    load_text(csv_text({"new": only("10" * 20, subset)}))
    recomputed()
    assert (TaskSubset.objects.count(), Calibration.objects.count()) == (1, 1)


def test_the_policy_at_the_delivery_decides(db):
    """A row that came before the delivery that reaches 15 counts, one that came after it does not."""
    load_text(full(9, 0, "a"))
    benchmark = Benchmark.objects.get()
    between, after = AS_OF + timedelta(hours=1), LATER + timedelta(hours=1)
    Policy.objects.create(
        benchmark=benchmark, number=2, missing="gap", strategy="hardest", created_at=between
    )
    load_text(full(6, 1, "b"), as_of=LATER)
    Policy.objects.create(benchmark=benchmark, number=3, strategy="easiest", created_at=after)
    subset = recomputed().subset
    assert (subset.strategy, subset.policy.number, subset.fixed_at) == ("hardest", 2, LATER)


def test_a_policy_row_may_settle_what_no_delivery_had(db):
    load_text(full(9, 0, "a"))
    assert recomputed().subset is None
    Policy.objects.create(benchmark=Benchmark.objects.get(), number=2, subset_from=8)
    subset = recomputed().subset
    assert (subset.n_complete, subset.data_version, subset.policy.number) == (9, 1, 2)
    assert not subset.provisional


def test_a_preview_is_not_stored(db, by_ridge):
    load_text(full(9, 0, "a"))
    board = recomputed()
    preview = standings_of(board).subset
    assert (board.phase, preview.number, preview.provisional) == ("provisional", None, True)
    assert not TaskSubset.objects.exists()
    assert not Calibration.objects.exists()


def test_a_retired_task_leaves_the_subset_and_the_same_agents_are_fitted_anew(db, by_ridge):
    load_text(full(16, 0, "a"))
    first = recomputed()
    retired = in_subset(first)[0]
    Task.objects.filter(name=retired).update(retired_at=LATER, retired_reason="broken")
    Benchmark.objects.update(data_version=2)
    board = recomputed()
    assert board.subset == first.subset
    assert retired not in standings_of(board).subset.tasks
    assert board.calibration != first.calibration
    assert board.calibration.agents == first.calibration.agents
    assert len(board.calibration.tasks) == len(first.calibration.tasks) - 1
    assert recomputed() == board
    assert Calibration.objects.count() == 2


@pytest.mark.slow(each=True)
@pytest.mark.parametrize(
    "step",
    ["get_or_compute_subset", "store_scores", "get_or_compute_calibration", "compute_standings", "publish"],
)
@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
def test_a_worker_that_dies_changes_nothing(db, monkeypatch, step, done):
    load_text(full(16, 0, "a"))
    load_text(full(16, 0, "a"), slug="other")
    original = getattr(services, step)

    def die(*arguments, **options):
        if done:
            original(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(services, step, die)
    with pytest.raises(KeyboardInterrupt):
        recomputed()
    monkeypatch.undo()
    assert recomputed().digest == recomputed("other").digest
    assert stored("toy") == stored("other")
