import math
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.outcome_table import OutcomeTable
from selection import rasch
from selection.bands import mid_range, pass_rates
from selection.folds import (
    PROTOCOLS,
    CompleteAgents,
    Fold,
    Plan,
    Rule,
    complete_agents,
    fold_bands,
    fold_pass_rates,
    in_fold,
    nested_plan,
    plan,
)

REPEATABLE = settings(derandomize=True, deadline=None)
NAN = math.nan
DAY = date(2025, 1, 1)


def agents_of(x, *, dates=None, scaffolds=None, models=None):
    x = np.asarray(x, dtype=float)
    n = len(x)
    return CompleteAgents(
        names=tuple(f"a{i:02d}" for i in range(n)),
        outcomes=x,
        scores=np.nanmean(x, axis=1),
        dates=tuple(dates or [None] * n),
        scaffolds=tuple(scaffolds or [""] * n),
        models=tuple(models or [""] * n),
    )


def anyone(n, **parts):
    return agents_of(np.tile([0.0, 1.0], (n, 5)), **parts)


def held_and_trained(found):
    return {fold.name: (fold.held_out.tolist(), fold.training.tolist()) for fold in found.folds}


def test_each_agent_in_turn():
    found = held_and_trained(plan("loao", anyone(6)))
    assert found["a02"] == ([2], [0, 1, 3, 4, 5])
    assert list(found) == [f"a{i:02d}" for i in range(6)]


def test_inside_each_scaffold_of_ten():
    labels = ["B"] * 10 + ["A"] * 9 + ["C"] * 11
    found = plan("within_scaffold", anyone(30, scaffolds=labels))
    assert [fold.pool for fold in found.folds] == ["B"] * 10 + ["C"] * 11
    assert held_and_trained(found)["a03"] == ([3], [0, 1, 2, 4, 5, 6, 7, 8, 9])


def test_agents_whose_scaffold_is_not_stated_are_not_of_one():
    found = plan("within_scaffold", anyone(24, scaffolds=["not stated"] * 12 + ["A"] * 12))
    assert {fold.pool for fold in found.folds} == {"A"}
    assert (
        plan("within_scaffold", anyone(12, scaffolds=["not stated"] * 12)).reason == "no scaffold is stated"
    )


def test_no_scaffold_of_ten():
    found = plan("within_scaffold", anyone(15, scaffolds=["A"] * 9 + ["B"] * 6))
    assert found.folds == ()
    assert found.reason == "no scaffold has 10 complete agents; the largest, 'A', has 9"


@pytest.mark.parametrize(("n", "n_held_out"), [(6, 2), (7, 2), (12, 2), (13, 3), (17, 3), (18, 4), (57, 11)])
def test_a_fifth_is_held_out_at_random(n, n_held_out):
    folds = plan("random_80_20", anyone(n), n_seeds=20).folds
    assert {fold.held_out.size for fold in folds} == {n_held_out}
    assert all(sorted([*f.held_out, *f.training]) == list(range(n)) for f in folds)
    assert len({tuple(fold.held_out) for fold in folds}) > 5


def test_splits_depend_on_the_base_seed_and_their_number_alone():
    few, many = (plan("random_80_20", anyone(20), n_seeds=n).folds for n in (3, 8))
    other = plan("random_80_20", anyone(20), n_seeds=3, base_seed=1).folds
    as_lists = [[fold.held_out.tolist() for fold in folds] for folds in (few, many, other)]
    assert as_lists[0] == as_lists[1][:3]
    assert as_lists[0] != as_lists[2]


def test_scaffolds_that_leave_five_agents():
    found = plan("loso", anyone(10, scaffolds=["A"] * 6 + ["B"] * 3 + ["C"]))
    assert held_and_trained(found) == {
        "B": ([6, 7, 8], [0, 1, 2, 3, 4, 5, 9]),
        "C": ([9], [0, 1, 2, 3, 4, 5, 6, 7, 8]),
    }


@pytest.mark.parametrize(
    ("protocol", "part", "labels", "reason"),
    [
        (
            "loso",
            "scaffolds",
            ["A"] * 9 + ["B"],
            "two scaffolds with at least 2 complete agents are needed; 1 of 2",
        ),
        (
            "lomo",
            "models",
            list("ABCDEFGHIJ"),
            "two models with at least 2 complete agents are needed; 0 of 10",
        ),
    ],
)
def test_groups_need_two_pairs(protocol, part, labels, reason):
    found = plan(protocol, anyone(10, **{part: labels}))
    assert found.folds == ()
    assert reason in found.reason


def test_only_agents_with_an_earlier_date_are_trained_on():
    # Ten on day 0, two on day 1 (not trained on each other), one on day 2.
    order = [0, 1, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0]
    found = plan("temporal", anyone(13, dates=[DAY + timedelta(days=d) for d in order]))
    early = [0, 2, 3, 5, 6, 7, 9, 10, 11, 12]
    assert held_and_trained(found) == {
        "2025-01-02": ([1, 8], early),
        "2025-01-03": ([4], sorted([*early, 1, 8])),
    }


def test_a_missing_date_and_too_few_before():
    dates = [DAY] * 9 + [DAY + timedelta(days=1)] * 4
    late = plan("temporal", anyone(13, dates=dates))
    assert late.folds == ()
    assert late.reason.startswith("at least 10 complete agents must come before a date; the last of 2 dates")
    missing = plan("temporal", anyone(13, dates=[*dates[:-1], None]))
    assert missing.reason == "1 of 13 complete agents has no date"


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
def test_five_agents_leave_too_few(protocol):
    found = plan(protocol, anyone(5))
    assert found.folds == ()
    assert found.reason.startswith("5 complete agents; with one held out at least 5 must remain")


def test_nested_folds_leave_single_scaffolds_out_too():
    agents = anyone(8, scaffolds=["A", "A", "A", "A", "B", "C", "D", "D"])
    assert [fold.name for fold in nested_plan(agents, "scaffold").folds] == ["B", "C", "D"]
    assert len(nested_plan(agents, "agent").folds) == 8
    assert nested_plan(anyone(5), "agent").folds == ()


def test_edges_three_and_seven_tenths_are_in():
    x = np.zeros((11, 5))
    for task, n_passed in enumerate((2, 3, 5, 7, 8)):
        x[:n_passed, task] = 1.0
    x[10] = 1.0  # held out: the other ten give exactly .2, .3, .5, .7, .8
    agents = agents_of(x)
    bands = fold_bands(agents, plan("loao", agents), Rule())
    assert bands.tasks[10].tolist() == [1, 2, 3]


@REPEATABLE
@given(
    st.integers(0, 2**32 - 1),
    st.integers(6, 24),
    st.sampled_from(list(PROTOCOLS)),
    st.sampled_from([0.0, 0.04]),
)
def test_taken_out_of_the_sums_and_direct_give_the_same_subset(seed, n, protocol, share_missing):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, (n, 30)) * (rng.random((n, 30)) < rng.uniform(0.3, 1, 30)) * 1.0
    x[rng.random(x.shape) < share_missing] = NAN
    agents = agents_of(
        x,
        dates=[DAY + timedelta(days=int(d)) for d in rng.integers(0, n, n)],
        scaffolds=[f"s{g}" for g in rng.integers(0, 2, n)],
        models=[f"m{g}" for g in rng.integers(0, 4, n)],
    )
    found = plan(protocol, agents, n_seeds=5)
    bands = fold_bands(agents, found, Rule())
    for fold, rates, tasks in zip(found.folds, bands.rates, bands.tasks, strict=True):
        direct = mid_range(x[fold.training])
        assert rates == pytest.approx(direct.pass_rates, abs=1e-12, nan_ok=True)
        assert tasks.tolist() == direct.tasks.tolist()


def test_a_task_only_the_held_out_agent_ran_has_no_rate():
    x = np.full((8, 4), 0.5)
    x[1:, 2] = NAN
    rates = fold_pass_rates(x, [np.arange(1, 8), np.arange(8)])
    assert np.isnan(rates).tolist() == [[False, False, True, False], [False] * 4]
    assert rates[1] == pytest.approx(pass_rates(x))


def test_a_window_counts_the_latest_training_agents():
    x = np.zeros((12, 10))
    x[:5] = 1.0
    dates = [DAY + timedelta(days=d) for d in range(12)]
    agents = agents_of(x, dates=dates)
    bands = fold_bands(agents, plan("loao", agents), Rule(history_window=8))
    assert bands.counted[11].tolist() == list(range(3, 11))
    assert bands.rates[11].tolist() == [2 / 8] * 10
    assert bands.counted[0].tolist() == list(range(4, 12))


def test_a_fold_without_a_subset_leaves_the_path_as_it_was():
    # Day 10: rates ½, all in. Then everything is solved until rates leave 10-90%, then they come back.
    x = np.array([[1.0] * 10] * 5 + [[0.0] * 10] * 5 + [[1.0] * 10] * 80 + [[0.0] * 10] * 80)
    agents = agents_of(x, dates=[DAY + timedelta(days=d) for d in range(len(x))])
    bands = fold_bands(agents, plan("temporal", agents), Rule(hysteresis=0.05))
    sizes = [tasks.size for tasks in bands.tasks]
    assert set(sizes) == {0, 10}
    assert sizes[0] == 10
    assert sizes[-1] == 10


def test_complete_agents_keep_their_names():
    x = np.ones((4, 40))
    x[1, :3] = NAN
    table = OutcomeTable(
        agents=tuple("abcd"),
        tasks=tuple(f"t{j:02d}" for j in range(40)),
        means=x,
        n_valid=(~np.isnan(x)).astype(np.int32),
        dates=(None,) * 4,
        scaffolds=("",) * 4,
        models=("",) * 4,
    )
    agents = complete_agents(table)
    assert agents.names == ("a", "c", "d")
    assert agents.take(np.array([1, 2])).names == ("c", "d")


def test_no_folds_no_bands():
    bands = fold_bands(anyone(6), Plan("temporal", (), "why"), Rule(hysteresis=0.05))
    assert bands.tasks == ()


@pytest.mark.parametrize("protocol", ["loao", "temporal"])
@pytest.mark.parametrize("hysteresis", [0.0, 0.05])
def test_a_band_that_is_not_to_be_widened_is_not_widened_in_a_fold(protocol, hysteresis):
    """One of 20 tasks lies in 30-70%, 2 are needed; with widening four more within 15-85% come in."""
    outcomes = np.zeros((20, 20))
    outcomes[::2, 0] = 1.0
    outcomes[::5, 1:5] = 1.0
    agents = agents_of(outcomes, dates=[DAY + timedelta(days=i) for i in range(20)])
    folds = plan(protocol, agents)
    widened = fold_bands(agents, folds, Rule(hysteresis=hysteresis))
    assert all(np.array_equal(tasks, range(5)) for tasks in widened.tasks)
    kept = fold_bands(agents, folds, Rule(hysteresis=hysteresis, widening=False))
    assert all(tasks.size == 0 for tasks in kept.tasks)


def test_a_fold_is_named_after_what_it_leaves_out():
    agents = anyone(12)
    told = {name: in_fold(name, Fold("7", np.array([0]), np.array([1]))) for name in PROTOCOLS}
    assert told["random_80_20"] == "in the split of seed 7"
    assert told["loso"] == "without scaffold '7'"
    assert "in the split of seed 0" in plan("random_80_20", agents, n_seeds=1).reason


def one_trial_each(n=20, m=12, missing=0.0):
    rng = np.random.default_rng(4)
    outcomes = (rng.random((n, m)) < 0.5).astype(float)
    outcomes[rng.random((n, m)) < missing] = NAN
    return agents_of(outcomes)


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_folds_of_folds_that_train_on_the_same_agents_share_one_fit(missing):
    """Without agent 3 and then 7, or 7 and then 3: one fit, and that of plain outcomes."""
    agents, both = one_trial_each(missing=missing), np.delete(np.arange(20), [3, 7])
    one, other = (agents.take(np.delete(np.arange(20), i), sharing=True) for i in (3, 7))
    found = one.fit_of(np.delete(np.arange(19), 6))
    assert found is other.fit_of(np.delete(np.arange(19), 3))
    assert found is agents.fit_of(both)
    assert found is one.take(np.delete(np.arange(19), 6)).fit_of(np.arange(18))
    assert agents.take(both).among is None
    alone = rasch.fit(agents.outcomes[both])
    np.testing.assert_allclose(found.difficulties, alone.difficulties, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.abilities, alone.abilities, rtol=0, atol=1e-9)


def test_the_fit_not_asked_for_the_longest_is_forgotten_first(monkeypatch):
    monkeypatch.setattr("selection.folds.MAX_FIT_NUMBERS", 2 * (20 + 12))
    agents = one_trial_each()
    first, second, third = (np.delete(np.arange(20), i) for i in range(3))
    kept, forgotten = agents.fit_of(first), agents.fit_of(second)
    assert agents.fit_of(first) is kept
    agents.fit_of(third)
    assert agents.fit_of(first) is kept
    again = agents.fit_of(second)
    assert again is not forgotten
    assert (again.difficulties == forgotten.difficulties).all()
    assert len(agents.fits) == 2
