"""Pairs and ranks of a table: against scipy and scikit-learn, by definition, and who is left out and why."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits

from analytics.outcome_table import OutcomeTable
from selection.bands import mid_range
from selection.decisions import (
    AgentUnknown,
    NoSubset,
    TargetUnknown,
    TooFewRanked,
    calibrator,
    compare,
    rank,
)
from selection.folds import complete_agents
from selection.linking import incumbent_shift, ranked, reference

NAN = math.nan


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1, user_api="blas"):
        yield


def table_of(outcomes, *, scaffolds=None, n_trials=None, trial_variances=None):
    n_agents, n_tasks = outcomes.shape
    valid = ~np.isnan(outcomes)
    moments = {}
    if n_trials is not None:
        moments = {"n_trials": np.where(valid, float(n_trials), NAN), "trial_variances": trial_variances}
    return OutcomeTable(
        agents=tuple(f"a{i:02d}" for i in range(n_agents)),
        tasks=tuple(f"t{j:03d}" for j in range(n_tasks)),
        means=outcomes,
        n_valid=(valid * (n_trials or 1)).astype(np.int32),
        dates=(None,) * n_agents,
        scaffolds=("s",) * n_agents if scaffolds is None else tuple(scaffolds),
        models=("m",) * n_agents,
        **moments,
    )


def board(n_agents=14, n_tasks=60, seed=1):
    rng = np.random.default_rng(seed)
    chance = 1 / (1 + np.exp(rng.normal(0, 1, n_tasks) - np.linspace(-1.2, 1.2, n_agents)[:, None]))
    return (rng.random((n_agents, n_tasks)) < chance).astype(float)


def with_newcomers(n_new=2, seed=1):
    """Fourteen complete agents and some that ran the first half of the subset alone, or all of it."""
    outcomes = board(seed=seed)
    tasks = mid_range(outcomes).tasks
    rng = np.random.default_rng(seed + 100)
    new = np.full((n_new, outcomes.shape[1]), NAN)
    new[:, tasks] = rng.integers(0, 2, (n_new, tasks.size))
    return np.vstack([outcomes, new]), tasks


def pair_of(found, a, b):
    return next(one for one in found.pairs if {one.a, one.b} == {a, b})


# -------------------------------------------------------------------------------------------------- foreign


def test_the_domain_is_the_paired_t_test_of_scipy():
    outcomes = board()
    found = compare(table_of(outcomes), target="domain")
    assert (found.n_tasks, len(found.pairs)) == (60, 14 * 13 // 2)
    for one in found.pairs:
        a, b = (outcomes[int(name[1:])] for name in (one.a, one.b))
        test = stats.ttest_rel(a, b)
        assert one.estimate.value == pytest.approx(a.mean() - b.mean())
        assert one.estimate.p_value == pytest.approx(test.pvalue, rel=1e-9)
        low, high = test.confidence_interval()
        assert (one.estimate.interval.lower, one.estimate.interval.upper) == pytest.approx((low, high))
    p = [one.estimate.p_value for one in found.pairs]
    assert [one.p_adjusted for one in found.pairs] == pytest.approx(stats.false_discovery_control(p))


def test_one_trial_on_the_subset_is_neyman_on_its_tasks():
    outcomes = board()
    found = compare(table_of(outcomes))
    tasks = mid_range(outcomes).tasks
    assert (found.target, found.n_tasks, found.omega) == ("subset", tasks.size, None)
    one = found.pairs[0]
    a, b = (outcomes[int(name[1:]), tasks] for name in (one.a, one.b))
    assert one.estimate.method == "neyman"
    assert one.estimate.interval.se == pytest.approx(stats.sem(a - b))
    assert one.estimate.omitted == ("agent:run", "agent:prompt", "agent:judge")


def test_calibrated_agents_against_scikit_learn():
    outcomes, tasks = with_newcomers()
    found = compare(table_of(outcomes), target="full")
    complete, scores = outcomes[:14], outcomes[:14].mean(axis=1)
    ridge = Ridge(alpha=1.0).fit(complete[:, tasks], scores)
    residuals = []
    for i in range(14):
        others = np.arange(14) != i
        chosen = mid_range(complete[others]).tasks
        left = Ridge(alpha=1.0).fit(complete[np.ix_(others, chosen)], scores[others])
        residuals.append(scores[i] - left.predict(complete[i : i + 1, chosen])[0])
    s_loo2 = np.mean(np.square(residuals))
    new = {side.agent: side for side in found.sides if side.how == "calibrated"}
    assert set(new) == {"a14", "a15"}
    predicted = ridge.predict(outcomes[14:, tasks])
    assert [new[name].value for name in ("a14", "a15")] == pytest.approx(predicted, abs=1e-10)
    both = pair_of(found, "a14", "a15").estimate
    assert both.interval.se == pytest.approx(np.sqrt(2 * s_loo2))
    assert both.interval.df == 13
    half = stats.t.ppf(0.975, 13) * np.sqrt(2 * s_loo2)
    assert both.interval.upper - both.value == pytest.approx(half)
    mixed = pair_of(found, "a03", "a14").estimate
    y = scores[3]
    assert mixed.interval.se == pytest.approx(
        np.sqrt(s_loo2 + y * (1 - y) / 60)
    )  # one trial: the upper bound
    assert pair_of(found, "a03", "a04").estimate.method == "neyman"


# ---------------------------------------------------------------------------------------------- definitions


def test_a_new_scaffold_has_its_own_error():
    outcomes, tasks = with_newcomers()
    table = table_of(outcomes, scaffolds=[f"s{i % 6}" for i in range(14)] + ["s0", "unseen"])
    sides = {side.agent: side for side in compare(table, target="full").sides}
    complete = complete_agents(table)
    parts = calibrator(complete, tasks).scaffold_components
    assert parts.n_scaffolds == 6
    assert sides["a15"].full.se2 == pytest.approx(parts.between * 7 / 6 + parts.within)
    assert (sides["a15"].full.df, sides["a14"].full.df) == (5, 13)
    one = pair_of(compare(table, target="full"), "a14", "a15").estimate
    assert one.interval.se == pytest.approx(math.sqrt(sides["a14"].full.se2 + sides["a15"].full.se2))


def test_a_new_scaffold_without_enough_others_is_left_out():
    outcomes, _ = with_newcomers()
    found = compare(table_of(outcomes, scaffolds=["s"] * 15 + ["unseen"]), target="full")
    assert "new scaffold, cannot be calibrated" in found.left_out["a15"]
    assert len(found.sides) == 15


def test_the_incumbent_shift_counts_between_old_and_new_alone():
    outcomes, tasks = with_newcomers()
    outcomes[14:, tasks[: tasks.size // 4]] = NAN
    found = compare(table_of(outcomes))
    others = reference(outcomes[:14], tasks)
    links = [ranked(others, row) for row in outcomes[14:]]
    shift = incumbent_shift(outcomes[:14]).sd ** 2
    assert shift > 0

    def linking(a, b):
        return sum(t.variance for t in pair_of(found, a, b).estimate.terms if t.name == "linking")

    assert linking("a00", "a14") == pytest.approx(links[0].completion.v_link + shift)
    assert linking("a14", "a15") == pytest.approx(sum(link.completion.v_link for link in links))
    assert linking("a00", "a01") == 0.0
    assert pair_of(found, "a14", "a15").estimate.value == pytest.approx(abs(links[0].mean - links[1].mean))
    places = {place.agent: place for place in rank(table_of(outcomes)).places}
    assert places["a14"].v == pytest.approx(links[0].completion.v_link + shift)
    assert places["a14"].mean == pytest.approx(links[0].mean)
    assert places["a00"].v == 0.0


def test_copied_trials_count_as_one():
    rng = np.random.default_rng(4)
    outcomes = rng.integers(0, 3, (6, 40)) / 2
    table = table_of(outcomes, n_trials=2, trial_variances=np.where(outcomes == 0.5, 0.5, 0.0))
    found = compare(table, target="full")
    assert {one.estimate.method for one in found.pairs} == {"repeated trials"}
    copied = compare(table, target="full", copied=["a00"])
    methods = {(one.a, one.b): one.estimate.method for one in copied.pairs}
    assert all((method == "neyman") is ("a00" in pair) for pair, method in methods.items())


def test_task_groups_stand_beside_the_domain():
    outcomes = board()
    groups = np.arange(60) % 6
    found = compare(table_of(outcomes), target="domain", agents=["a00", "a13"], groups=groups)
    (one,) = found.pairs
    d = outcomes[13] - outcomes[0]
    sums = [np.sum(d[groups == g] - d.mean()) for g in range(6)]
    assert one.estimate.grouped.se == pytest.approx(math.sqrt(6 / 5 * np.sum(np.square(sums))) / 60)
    assert one.estimate.grouped.df == 5


def test_missing_at_random_is_not_assumed():
    outcomes = board(n_agents=10, n_tasks=400)
    missing = np.flatnonzero(outcomes[5] == 0)[:18]  # under 5%: the agent stays complete
    outcomes[5, missing] = NAN
    outcomes[6] = outcomes[5]
    outcomes[6, missing] = 0.0
    failed = np.isnan(outcomes)
    found = compare(table_of(outcomes), target="full", failed=failed)
    assert pair_of(found, "a05", "a06").unclaimed
    assert not pair_of(found, "a00", "a09").unclaimed
    places = {place.agent: place for place in rank(table_of(outcomes), target="full", failed=failed).places}
    assert "a06" in places["a05"].tied_with
    assert places["a05"].how == "completed"


def test_ranks_count_the_strictly_better():
    outcomes = board()
    outcomes[3] = outcomes[2]
    found = rank(table_of(outcomes), target="full")
    means = np.round(outcomes.mean(axis=1), 9)
    for place in found.places:
        i = int(place.agent[1:])
        assert place.rank == 1 + np.sum(means > means[i])
        assert place.lower <= place.rank <= place.upper
    assert [p.rank for p in found.places] == sorted(p.rank for p in found.places)
    by_name = {place.agent: place for place in found.places}
    assert by_name["a02"].rank == by_name["a03"].rank
    assert "a03" in by_name["a02"].tied_with
    assert found.note.startswith("conservative")
    assert rank(table_of(outcomes), target="domain").note == ""


def test_a_choice_of_agents_does_not_move_the_subset():
    table = table_of(board())
    some, whole = compare(table, agents=["a01", "a02", "a03"]), compare(table)
    assert np.array_equal(some.band.tasks, whole.band.tasks)
    for one in some.pairs:
        assert one.estimate == pair_of(whole, one.a, one.b).estimate


def test_incomplete_agents_are_no_part_of_the_domain():
    outcomes, tasks = with_newcomers()
    for found in (
        compare(table_of(outcomes), target="domain").left_out,
        rank(table_of(outcomes), target="domain").unranked,
    ):
        assert found == dict.fromkeys(
            ["a14", "a15"], f"{tasks.size} of 60 tasks have a valid outcome; 57 (95%) are needed"
        )


def test_identical_agents_differ_by_nothing_that_is_known():
    outcomes = board(n_agents=6)
    outcomes[1] = outcomes[0]
    one = pair_of(compare(table_of(outcomes), target="full"), "a00", "a01")
    assert one.estimate.interval is None
    assert one.p_adjusted is None
    assert "standard error of 0" in one.reason


# ------------------------------------------------------------------------------------------------- refusals


def test_refusals():
    table = table_of(board(n_agents=4))
    with pytest.raises(NoSubset, match="only 4 complete agents"):
        compare(table, target="subset")
    assert compare(table).target == rank(table).target == "full"
    with pytest.raises(TargetUnknown, match="subset, full, domain, not 'all'"):
        rank(table, target="all")
    with pytest.raises(AgentUnknown, match=r"no agent 'A0' among 4; near are 'a00', 'a01', 'a02'"):
        compare(table, agents=["A0", "a01"])
    with pytest.raises(AgentUnknown, match=r"no agent 'zzz' among 4$"):
        compare(table, agents=["zzz"])
    with pytest.raises(TooFewRanked, match="1 of 1 agents"):
        compare(table, agents=["a00"])
    empty = replace(table, means=np.full((4, 60), NAN), n_valid=np.zeros((4, 60), np.int32))
    with pytest.raises(TooFewRanked, match="no agent is complete"):
        rank(empty)
