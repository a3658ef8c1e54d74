"""Who is ranked on a subset: directly, completed, linked, incomplete, or not at all (STATISTICS §5)."""

import numpy as np
import pytest
from leaderboard.studies.tables import snapshot

from leaderboard.catalog.models import Benchmark, Task
from leaderboard.studies.calibrations import columns_of
from selection.linking import ranked, reference
from tests.toys import AS_OF, csv_text, graded, in_subset, lines_of, load_text, only, recomputed

N_TASKS = 60


@pytest.fixture
def board(db):
    """16 complete agents on 60 tasks, a stable subset of at least 20 tasks."""
    load_text(csv_text(graded(16, N_TASKS)))
    board = recomputed()
    assert len(in_subset(board)) >= 20
    return board


def deliver(marks):
    load_text(csv_text({"new": marks}))
    return lines_of(recomputed())["new"]


def by_the_core():
    """The new agent as `selection.linking` ranks it when called directly."""
    current = snapshot(Benchmark.objects.get())
    subset = current.benchmark.subsets.get()
    means, i = current.table.means, current.table.agents.index("new")
    agents = reference(means[current.table.complete()], columns_of(current, subset))
    return ranked(agents, means[i], np.isnan(means[i]) & (current.n_delivered[i] > 0))


def test_all_of_the_subset_is_ranked_directly(board):
    subset = in_subset(board)
    entry = deliver(only("1" * 30 + "0" * 30, subset))
    assert entry.marks == ["subset"]
    assert entry.score == pytest.approx(np.mean([name < "t30" for name in subset]))
    assert entry.n_scored == len(subset)


def test_one_harness_failure_is_completed_and_marked(board):
    marks = only("1" * N_TASKS, in_subset(board)[1:])
    first = int(in_subset(board)[0][1:])
    entry = deliver(marks[:first] + "x" + marks[first + 1 :])
    answer = by_the_core()
    assert answer.how == "completed"
    assert "incomplete" in entry.marks
    assert entry.score == pytest.approx(answer.mean, abs=1e-12)
    assert entry.score < 1
    assert entry.n_scored == len(in_subset(board)) - 1


def test_a_task_that_was_not_run_is_linked_even_if_it_is_one(board):
    entry = deliver(only("1" * N_TASKS, in_subset(board)[1:]))
    answer = by_the_core()
    assert answer.how == "linked"
    assert entry.marks == ["linked"]
    assert entry.score == pytest.approx(answer.mean, abs=1e-12)


def test_exactly_half_is_linked_and_its_error_is_in_the_standard_error(board):
    subset = in_subset(board)
    half = subset[: -(-len(subset) // 2)]
    entry = deliver(only("10" * 30, half))
    answer = by_the_core()
    assert entry.rank is not None
    assert "linked" in entry.marks
    assert entry.score == pytest.approx(answer.mean, abs=1e-12)
    rate = np.mean([int(name[1:]) % 2 == 0 for name in half])
    noise = rate * (1 - rate) / len(half)  # one trial a task: the upper bound
    assert entry.targets["subset"]["se"] ** 2 == pytest.approx(noise + answer.completion.v_link, abs=1e-12)
    middle = (entry.targets["subset"]["lower"] + entry.targets["subset"]["upper"]) / 2
    assert middle == pytest.approx(entry.score, abs=1e-12)


def test_no_linked_agent_feeds_the_subset(board):
    subset = in_subset(board)
    deliver(only("1" * N_TASKS, subset[::2] + subset[1::4]))
    newer = recomputed()
    assert newer.n_complete == 16
    assert newer.calibration == board.calibration


def test_under_ten_complete_agents_nobody_is_linked(db):
    load_text(csv_text(graded(9, N_TASKS)))
    k = len(in_subset(recomputed()))
    entry = deliver(only("1" * N_TASKS, in_subset(recomputed())[: k - 2]))
    assert entry.rank is None
    assert f"{-(-19 * k // 20)} (95%) are needed" in entry.unranked


def test_under_ten_complete_agents_a_failure_leaves_the_rank_and_no_rank_interval(db):
    load_text(csv_text(graded(9, N_TASKS)))
    subset = in_subset(board := recomputed())
    assert len(subset) >= 20
    first = int(subset[0][1:])
    marks = only("1" * N_TASKS, subset)
    entry = deliver(marks[:first] + "x" + marks[first + 1 :])
    board = recomputed()
    assert (entry.rank, entry.score) == (1, 1.0)
    assert "incomplete" in entry.marks
    assert "rank_lower" not in entry.targets["subset"]
    assert "lack tasks which cannot be completed yet: 1" in board.targets["subset"]["note"]


def test_a_task_nobody_ran_keeps_nobody_from_a_rank(db):
    load_text(csv_text(graded(4, 40)))
    benchmark = Benchmark.objects.get()
    Task.objects.create(benchmark=benchmark, name="t99")
    Benchmark.objects.update(data_version=2)
    board = recomputed()
    assert board.n_tasks == 41
    assert board.phase == "cold_start"
    assert all(entry.rank and "rank_lower" in entry.targets["full"] for entry in board.entries.all())


def test_retired_tasks_leave_the_table_the_trials_and_the_subset(board):
    before = lines_of(board)["a08"]
    retired = in_subset(board)[0]
    Task.objects.filter(name=retired).update(retired_at=AS_OF, retired_reason="broken")
    Benchmark.objects.update(data_version=2)
    newer = recomputed()
    after = lines_of(newer)["a08"]
    assert newer.subset == board.subset
    assert (newer.n_tasks, after.n_full, after.n_valid_trials) == (59, 59, 59)
    assert after.n_scored == before.n_scored - 1
    assert newer.calibration != board.calibration
    assert len(newer.calibration.tasks) == len(in_subset(board)) - 1


def test_a_task_retired_outside_the_subset_changes_what_is_predicted(board):
    outside = next(f"t{j:02d}" for j in range(N_TASKS) if f"t{j:02d}" not in in_subset(board))
    Task.objects.filter(name=outside).update(retired_at=AS_OF, retired_reason="broken")
    Benchmark.objects.update(data_version=2)
    newer = recomputed()
    assert newer.calibration.tasks == board.calibration.tasks
    assert newer.calibration.intercept != board.calibration.intercept


def test_a_subset_whose_every_task_is_retired_is_chosen_anew(board):
    Task.objects.filter(name__in=in_subset(board)).update(retired_at=AS_OF, retired_reason="leaked")
    Benchmark.objects.update(data_version=2)
    newer = recomputed()
    assert newer.n_tasks == N_TASKS - len(in_subset(board))
    assert newer.subset is None or newer.subset.number == 2


def test_an_agent_without_a_valid_outcome_is_listed(board):
    entry = deliver("x" * N_TASKS)
    assert (entry.rank, entry.score, entry.full_score, entry.n_full) == (None, None, None, 0)
    assert entry.unranked.startswith("0 of ")
