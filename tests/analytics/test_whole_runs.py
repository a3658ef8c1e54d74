"""A run counts the same however it was delivered, and no way of trying again gains anything."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.flat_file import read
from analytics.record import About, Counting, Delivery, Record, Rows
from analytics.record.files import contents
from tests.toys import AS_OF

PLAIN = (None, None, None, None)
N_ASKED = 2  # trials of a task


@dataclass(frozen=True)
class Runs:
    """Outcomes of one agent, (n_tasks, n_trials), and which of them the harness delivered."""

    name: str
    outcome: np.ndarray
    valid: np.ndarray

    @property
    def mean(self):
        return float(np.where(self.valid, self.outcome, 0.0).mean())

    @property
    def standard_error(self):
        """Of the mean over tasks."""
        per_task = np.where(self.valid, self.outcome, 0.0).mean(axis=1)
        return float(per_task.std(ddof=1) / np.sqrt(len(per_task)))


def scored(runs, parts, *, n_trials=N_ASKED, withdrawn=(), numbers=None, counting=None, **more):
    """The record of one submitter; each part is a delivery: {task: places of its trials among `runs`}."""
    triples = [(d, task, k) for d, part in enumerate(parts) for task, ks in part.items() for k in ks]
    delivery, task, k = np.array(triples, dtype=np.int64).T
    n, m = len(triples), len(runs.outcome)
    rows = Rows(
        agent=np.zeros(n, dtype=np.int64),
        task=task,
        setting=np.zeros(n, dtype=np.int64),
        delivery=delivery,
        trial=np.arange(n) if numbers is None else numbers,
        outcome=np.where(runs.valid[task, k], runs.outcome[task, k], np.nan),
        valid=runs.valid[task, k],
        confirmed=np.zeros(n, dtype=np.bool_),
    )
    names = [f"t{j:03}" for j in range(m)]
    deliveries = more.pop("deliveries", None) or [
        Delivery(0, d, operator=False, n_trials=n_trials, withdrawn=d in withdrawn, **more)
        for d in range(len(parts))
    ]
    return Record.of(
        [About(name=runs.name, scaffold="s", model="m")],
        rows,
        tasks=names,
        settings=[PLAIN],
        deliveries=deliveries,
        counting=counting,
    )


def score(*args, **more):
    return float(scored(*args, **more).table.scores()[0])


def each(tasks, trials):
    return {j: tuple(trials) for j in tasks}


@pytest.fixture(scope="module")
def terminal_bench(real_data):
    """The 13 agents of Terminal-Bench with five trials of each of 80 tasks."""
    result = contents(read(real_data / "terminal_bench_core_011.csv.gz", as_of=AS_OF))
    rows, agents = result["rows"], []
    for i, about in enumerate(result["about"]):
        mine = rows.where(rows.agent == i)
        order = np.lexsort((mine.trial, mine.task))
        shape = (len(result["tasks"]), -1)
        agents.append(Runs(about.name, mine.outcome[order].reshape(shape), mine.valid[order].reshape(shape)))
    return agents


def ways(n_tasks):
    """Deliveries of five trials of every task."""
    tasks = range(n_tasks)
    return {
        "1 then 4": [each(tasks, [0]), each(tasks, [1, 2, 3, 4])],
        "five at once": [each(tasks, range(5))],
        "four shards": [each(tasks[i::4], range(5)) for i in range(4)],
    }


def test_a_run_in_two_steps_counts_as_one_at_once(terminal_bench):
    """Within one standard error for every agent, and for all 13 together within half a point."""
    assert len(terminal_bench) == 13
    differences = {}
    for runs in terminal_bench:
        found = {way: score(runs, parts) for way, parts in ways(len(runs.outcome)).items()}
        print(f"{runs.name[:50]:50} {runs.mean:.3f} ±{runs.standard_error:.3f}", end="")
        for way, at in found.items():
            print(f"  {way} {100 * (at - runs.mean):+.1f}", end="")
            differences.setdefault(way, []).append(at - runs.mean)
            assert abs(at - runs.mean) < runs.standard_error, (runs.name, way)
        print()
        assert found["four shards"] == found["five at once"] == pytest.approx(runs.mean, abs=1e-12)
    print({way: f"{100 * np.mean(found):+.2f} points" for way, found in differences.items()})
    assert all(abs(np.mean(found)) < 0.005 for found in differences.values())


# ---------------------------------------------------------------------------------------------------- by hand


def hand(*outcomes):
    """Outcomes of one agent, a list of trials for each task."""
    n = max(map(len, outcomes))
    filled = np.array([[*trials, *[0] * (n - len(trials))] for trials in outcomes], dtype=np.float64)
    return Runs("by hand", filled, np.ones(filled.shape, dtype=np.bool_))


def test_a_second_run_shares_the_place_that_is_left():
    """1 and then 0, 1, 1, 1 of the first task: (1 + ¾)/2, as good as 1/(¼ + 4/64) = 3.2 trials."""
    result = scored(hand([1, 0, 1, 1, 1], [0, 0, 0, 0, 1]), ways(2)["1 then 4"])
    assert result.table.means.tolist() == [[0.875, 0.125]]
    assert result.table.n_trials.tolist() == [[pytest.approx(3.2, abs=1e-12)] * 2]
    assert result.table.trial_variances.tolist() == [[pytest.approx(0.2, abs=1e-12)] * 2]
    assert (result.n_places.tolist(), result.table.n_valid.tolist()) == ([[5, 5]], [[5, 5]])
    assert result.retried == (False,)


def test_what_is_no_whole_run_takes_its_places_first_where_it_came_first():
    """A pilot of the first task, 1; then both tasks twice: the run shares one place of the first task."""
    runs = hand([1, 0, 1], [1, 0])
    result = scored(runs, [{0: [0]}, {0: [1, 2], 1: [0, 1]}])
    assert result.table.means.tolist() == [[0.75, 0.5]]
    # A delivery with a task that is there already begins another run, which lacks the second task.
    assert scored(
        hand([1, 0, 1, 1], [1, 0]), [{0: [0]}, {0: [1, 2, 3]}, {1: [0, 1]}]
    ).table.means.tolist() == [[0.5, 0.5]]


def test_a_shard_that_was_withdrawn_was_part_of_the_run():
    """Both halves twice, the second withdrawn and delivered anew: that is no whole run, and counts lowest."""
    runs = hand([1, 0], [1, 1, 0, 1])
    shards = [{0: [0, 1]}, {1: [0, 1]}, {1: [2, 3]}]
    assert scored(runs, shards, n_trials=1, withdrawn=[1]).table.means.tolist() == [[0.5, 0]]
    assert scored(runs, [shards[0], shards[2]], n_trials=1).table.means.tolist() == [[0.5, 0.5]]


def test_two_stages_that_are_asked_for_apart_are_whole_runs_of_their_own():
    runs, names = hand([1, 0], [1, 0], [0, 1]), ["t000", "t001", "t002"]
    first = Delivery(0, 0, operator=False, asked=frozenset(names[:2]), n_trials=1)
    later = Delivery(0, 1, operator=False, asked=frozenset(names), n_trials=1)
    parts = [{0: [0, 1], 1: [0, 1]}, {2: [0, 1]}]
    result = scored(runs, parts, deliveries=[first, later])
    assert result.table.means.tolist() == [[0.5, 0.5, 0.5]]


def test_who_tried_again_and_then_did_worse_has_the_lower_mean_and_a_flag():
    """Of the first task 1 and 1, of the second 0; then 0 and 1: (1 + ½)/2 by places, (⅔ + ½)/2 by all."""
    result = scored(hand([1, 1, 0], [0, 1]), [{0: [0, 1], 1: [0]}, {0: [2], 1: [1]}])
    assert result.table.means.tolist() == [[pytest.approx(2 / 3, abs=1e-12), 0.5]]
    assert result.retried == (True,)
    better = scored(hand([1, 0, 1], [0, 1]), [{0: [0, 1], 1: [0]}, {0: [2], 1: [1]}])
    assert better.retried == (False,)
    assert better.table.means.tolist() == [[0.5, 0.5]]
    lower = scored(hand([0, 1, 0], [1, 1]), [{0: [0, 1], 1: [0]}, {0: [2], 1: [1]}])
    assert lower.retried == (True,)
    assert lower.table.means.tolist() == [[pytest.approx(1 / 3, abs=1e-12), 1]]


def test_an_agent_with_fewer_trials_than_it_was_asked_for_is_not_complete():
    runs, parts = hand([1, 0], [1, 1]), ways(2)["1 then 4"]
    short = scored(runs, [parts[0]], fewest_trials=2)
    assert (short.short.tolist(), short.complete.tolist()) == ([True], [False])
    assert not short.is_direct(np.array([0])).any()
    lower, upper, n_missing = short.bounds(np.arange(2))
    assert (lower.tolist(), upper.tolist(), n_missing.tolist()) == ([0.5], [1.0], [2])
    there = scored(runs, [parts[0], each(range(2), [1])], fewest_trials=2)
    assert (there.short.tolist(), there.complete.tolist()) == ([False], [True])
    failed = scored(runs, [parts[0]], fewest_trials=2, counting=Counting(missing="zero"))
    assert (failed.short.tolist(), failed.table.means.tolist()) == ([False], [[0.5, 0.5]])


# ------------------------------------------------------------------------------------------ what may not move


@st.composite
def cut_runs(draw):
    """Trials of each of several whole runs, how each is cut into deliveries, and a number for each trial."""
    n_tasks = draw(st.integers(2, 7))
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    outcomes = draw(
        st.lists(
            st.lists(st.integers(0, 4), min_size=sum(sizes), max_size=sum(sizes)),
            min_size=n_tasks,
            max_size=n_tasks,
        )
    )
    shards = [draw(st.lists(st.integers(0, 3), min_size=n_tasks, max_size=n_tasks)) for _ in sizes]
    numbers = draw(st.permutations(range(n_tasks * sum(sizes))))
    limit = draw(st.one_of(st.none(), st.integers(1, 6)))
    return sizes, np.array(outcomes) / 4, shards, numbers, limit


@settings(max_examples=300, deadline=None)
@given(cut_runs())
def test_neither_the_cuts_nor_the_numbers_of_whole_runs_move_anything(drawn):
    sizes, outcome, shards, numbers, limit = drawn
    runs = Runs("cut", outcome, np.ones(outcome.shape, dtype=np.bool_))
    places = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    whole = [each(range(len(outcome)), ks) for ks in places]
    cut = [
        {j: run[j] for j in run if shard[j] == s}
        for run, shard in zip(whole, shards, strict=True)
        for s in range(4)
    ]
    result = scored(runs, whole, n_trials=limit)
    again = scored(runs, [part for part in cut if part], n_trials=limit, numbers=np.array(numbers))
    for name in ("means", "n_trials", "trial_variances"):
        np.testing.assert_array_equal(getattr(result.table, name), getattr(again.table, name))
    assert result.n_places.tolist() == again.n_places.tolist()
    assert result.retried == again.retried == (False,)


# ------------------------------------------------------------------------------------------ nothing is gained


def inside(failed, tasks):
    """What failed is tried three times in one delivery, and a run follows."""
    return [{j: [0, 1, 2] if failed[j] else [0] for j in tasks}, each(tasks, [3])]


def after(failed, tasks):
    """What failed is tried four times more."""
    return [each(tasks, [0]), each(np.flatnonzero(failed), [1, 2, 3, 4])]


def before(failed, tasks):
    """What failed in a pilot of every second task is tried twice more; then all of them."""
    return [{j: [0, 1, 2] if failed[j] else [0] for j in tasks[::2]}, each(tasks, [3])]


def one_by_one(failed, tasks):
    """What failed is delivered again, a delivery each, and then all others."""
    again = [{j: [1]} for j in np.flatnonzero(failed).tolist()]
    return [each(tasks, [0]), *again, each(np.flatnonzero(~failed), [1])]


def split(failed, tasks):
    """The first half is tried again before the other where it goes worse."""
    again = [each(tasks[::2], [1])] if failed[::2].mean() > failed[1::2].mean() else []
    return [each(tasks[::2], [0]), *again, each(tasks[1::2], [0])]


def best_of_five(failed, tasks):
    """Five trials at once: the one that is numbered first decides nothing."""
    return [each(tasks, range(5))]


def withdrawn(failed, tasks):
    """After a run half of the tasks twice, withdrawn; the other half twice; and then the first half anew."""
    halves = [each(tasks[::2], [1, 2]), each(tasks[1::2], [1, 2]), each(tasks[::2], [3, 4])]
    return [each(tasks, [0]), *halves]


@pytest.mark.parametrize(
    ("way", "gone"),
    [*((way, ()) for way in (inside, after, before, one_by_one, split, best_of_five)), (withdrawn, (1,))],
)
def test_no_way_of_trying_again_gains_anything(terminal_bench, way, gone):
    """Points gained over the mean of all five trials, over agents and orders of their trials."""
    rng, gains, n_flagged = np.random.default_rng(2026), [], 0
    for runs in terminal_bench:
        for _ in range(20):
            order = np.stack([rng.permutation(5) for _ in runs.outcome])
            mixed = Runs(
                runs.name,
                np.take_along_axis(runs.outcome, order, axis=1),
                np.take_along_axis(runs.valid, order, axis=1),
            )
            failed = ~(mixed.valid[:, 0] & (mixed.outcome[:, 0] == 1))
            parts = way(failed, range(len(failed)))
            result = scored(mixed, [part for part in parts if part], withdrawn=gone)
            gains.append(float(result.table.scores()[0]) - runs.mean)
            n_flagged += result.retried[0]
    error = np.std(gains, ddof=1) / np.sqrt(len(gains))
    print(f"{way.__name__:14} {100 * np.mean(gains):+.2f} ±{100 * error:.2f} points, {n_flagged} flagged")
    assert np.mean(gains) < 3 * error + 1e-12
    assert (n_flagged > len(gains) / 2) == (way in (inside, before))
