import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from analytics.differences.estimates import benjamini_hochberg, compare, compare_given, interval_of, score
from analytics.differences.finite_errors import Calibrated, Measured, TrialNoise, error_of
from analytics.differences.groups import Groups, mean_variance
from analytics.differences.ranks import rank_sets
from analytics.differences.rows import ErrorTerm, Facet, Row, agent_variance
from analytics.differences.trial_variances import finite_variances, trial_variance_ratio
from analytics.errors import CoreError
from tests.refusals import refused
from tests.tables import outcome_table

REPEATABLE = settings(derandomize=True, deadline=None)
NAN = math.nan


@pytest.mark.parametrize("variance", np.linspace(0.001, 0.1, 100))
def test_the_degrees_of_freedom_of_one_term_are_its_own(variance):
    assert interval_of(0.2, [ErrorTerm("calibration", variance, 13.0)]).df == 13


def real_table(rows):
    agents, tasks = sorted({row["agent"] for row in rows}), sorted({row["task"] for row in rows})
    return outcome_table(
        agents=agents,
        tasks=tasks,
        agent=[agents.index(row["agent"]) for row in rows],
        task=[tasks.index(row["task"]) for row in rows],
        outcome=[float(row["outcome"]) for row in rows],
        valid=[row.get("valid", "1") == "1" for row in rows],
    )


def drawn(seed, n, m, share_missing=0.2, share_single=0.0):
    """Means, trial variances and numbers of trials of n agents on m tasks, some cells missing or single."""
    rng = np.random.default_rng(seed)
    n_trials = np.where(rng.random((n, m)) < share_single, 1, rng.integers(2, 6, (n, m)))
    trials = rng.random((n, m, 6)) < rng.random((n, m, 1))
    means, variances = np.full((n, m), NAN), np.full((n, m), NAN)
    for i, j in np.ndindex(n, m):
        own = trials[i, j, : n_trials[i, j]]
        if rng.random() >= share_missing:
            means[i, j] = own.mean()
            variances[i, j] = own.var(ddof=1) if own.size > 1 else NAN
    return means, variances, np.where(np.isnan(means), NAN, n_trials)


def slow_variance(a, b, cells):
    """Find SE² of a pair task by task, as the rules are written."""
    means, variances, n_trials = cells
    common = [j for j in range(means.shape[1]) if not math.isnan(means[a, j] + means[b, j])]
    n = len(common)
    if any(math.isnan(variances[i, j]) for i in (a, b) for j in common):
        return np.var([means[a, j] - means[b, j] for j in common], ddof=1) / n if n > 1 else NAN
    return sum(variances[i, j] / n_trials[i, j] for i in (a, b) for j in common) / n**2 if n else NAN


# ------------------------------------------------------------------------------------------------ all pairs


def test_repeated_trials_by_hand():
    # s²/R: a .25/2 and .5/2, b 0/2 and .5/2: (.125 + .25 + 0 + .25)/4.
    se2 = finite_variances(
        np.array([[0.5, 0.5], [1.0, 0.5]]), np.array([[0.25, 0.5], [0.0, 0.5]]), np.full((2, 2), 2.0)
    )
    assert se2[0, 1] == pytest.approx(0.15625, abs=1e-15)
    assert np.isnan(np.diag(se2)).all()


def test_neyman_by_hand():
    # d = 1, 0, 0: variance 1/3, over 3: 1/9.
    means = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    assert finite_variances(means)[0, 1] == pytest.approx(1 / 9, abs=1e-15)


@pytest.mark.parametrize(("share_missing", "share_single"), [(0.0, 0.0), (0.3, 0.0), (0.2, 0.2), (0.8, 0.1)])
def test_all_pairs_equal_the_rules_task_by_task(share_missing, share_single):
    for seed in range(3):
        cells = drawn(seed, 7, 9, share_missing, share_single)
        se2 = finite_variances(*cells)
        for a, b in np.ndindex(7, 7):
            if a != b:
                assert se2[a, b] == pytest.approx(slow_variance(a, b, cells), abs=1e-14, nan_ok=True)


def test_one_common_task_gives_no_neyman_variance_and_none_gives_nothing():
    means = np.array([[1.0, 0.0, NAN], [0.0, NAN, 1.0], [NAN, 1.0, NAN]])
    assert np.isnan(finite_variances(means)).all()


@REPEATABLE
@given(st.integers(0, 1000))
def test_agents_and_tasks_in_another_order_change_nothing(seed):
    cells = drawn(seed, 5, 6, share_single=0.1)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(5), rng.permutation(6)
    moved = finite_variances(*(part[np.ix_(rows, columns)] for part in cells))
    se2 = finite_variances(*cells)
    assert moved == pytest.approx(se2[np.ix_(rows, rows)], abs=1e-14, nan_ok=True)
    assert se2 == pytest.approx(se2.T, abs=0, nan_ok=True)


def test_the_ratio_of_trial_variance_by_hand():
    # 3 agents, 15 tasks, five of them always passed and ten at 1/3 of three trials (s² = 1/3):
    # rate 5/9, ω = (10/3)/(15·20/81) = .9 for each.
    means = np.tile(np.repeat([1.0, 1 / 3], [5, 10]), (3, 1))
    variances, n_trials = np.tile(np.repeat([0.0, 1 / 3], [5, 10]), (3, 1)), np.full((3, 15), 3.0)
    assert trial_variance_ratio(means, variances, n_trials) == pytest.approx(0.9, abs=1e-14)
    # Agents with fewer trials, on fewer tasks, or with copied trials do not count: two are left.
    fewer = n_trials.copy()
    fewer[0, 0] = 2
    assert trial_variance_ratio(means, variances, fewer) is None
    assert trial_variance_ratio(means[:, 1:], variances[:, 1:], n_trials[:, 1:]) is None
    assert trial_variance_ratio(means, variances, n_trials, one_trial=np.eye(3, dtype=bool)[0]) is None
    assert trial_variance_ratio(np.ones((3, 15)), np.zeros((3, 15)), n_trials) is None
    assert trial_variance_ratio(means, None, None) is None


def test_terminal_bench_differences_for_two_targets(real_rows):
    table = real_table(real_rows("terminal_bench_core_011"))
    cells = (table.means, table.trial_variances, table.n_trials)
    omega, rows = trial_variance_ratio(*cells), [Row(*own) for own in zip(*cells, strict=True)]
    own = np.array([score(row, "full", omega=omega).interval.se ** 2 for row in rows])
    full, domain = own[:, None] + own, finite_variances(table.means)
    pairs = np.triu_indices(table.n_agents, 1)
    errors = np.sqrt([full[pairs], domain[pairs]])
    print(f"\nterminal_bench_core_011: {pairs[0].size} pairs, ω̂ {omega:.3f}; SE for full, domain, ratio")
    for a in range(table.n_agents - 1):
        pair = np.sqrt([full[a, a + 1], domain[a, a + 1]])
        print(f"{table.agents[a]:>28} - {table.agents[a + 1]:<28} {pair[0]:.4f} {pair[1]:.4f} "
              f"{pair[1] / pair[0]:.2f}")  # fmt: skip
    print(f"medians {np.median(errors, axis=1).round(4)}, ratio {np.median(errors[1] / errors[0]):.2f}")
    assert 1.8 < np.median(errors[1] / errors[0]) < 2.6


# ------------------------------------------------------------------------------------------------- one pair


def test_the_domain_interval_is_the_paired_t_test():
    from scipy import stats

    rng = np.random.default_rng(2)
    a, b = rng.random(40), rng.random(40)
    b[7] = NAN
    result = compare(Row(a), Row(b))
    test = stats.ttest_rel(np.delete(a, 7), np.delete(b, 7))
    assert (result.interval.lower, result.interval.upper) == pytest.approx(test.confidence_interval(0.95))
    assert result.p_value == pytest.approx(test.pvalue, rel=1e-10)
    assert (result.n_tasks, result.interval.df, result.target) == (39, 38, "domain")
    assert result.cancels == ("run", "prompt", "judge")
    assert result.omitted == ("agent:run", "agent:prompt", "agent:judge")


def test_groups_of_tasks_by_hand(monkeypatch):
    monkeypatch.setattr("analytics.differences.groups.MIN_CLUSTERS", 2)
    # d = 1, 1, 0, 0 in groups of two: mean ½, group sums ±1: 2/(1 − ½)/16 = ¼; one task a group: s_d²/N.
    a, b = Row(np.array([1.0, 1.0, 0.0, 0.0])), Row(np.zeros(4))
    result = compare(a, b, groups=Groups.of(["x", "x", "y", "y"], "cluster"))
    assert (result.method, result.interval.df) == ("clusters", 1)
    assert result.interval.se == pytest.approx(0.5)
    alone = compare(a, b, groups=Groups.of([0, 1, 2, 3], "cluster"))
    assert alone.interval.se == pytest.approx(compare(a, b).interval.se, rel=1e-12)
    assert "at least 2 groups, not 1" in compare(a, b, groups=Groups.of([0, 0, 0, 0], "cluster")).reason
    within = compare(a, b, groups=Groups.of(["x", "y", "x", "y"], "stratum"))
    assert within.method == "strata"
    assert within.interval.se**2 == pytest.approx(2 * 0.5**2 * 0.5 / 2)  # s² = ½ in both
    with pytest.raises(CoreError, match=r"groups \(3,\) for 4 tasks"):
        compare(a, b, groups=Groups.of([0, 1, 2], "cluster"))


def test_a_score_by_groups_is_over_the_valid_tasks_alone():
    x = np.arange(40) % 7 / 6
    x[[3, 22]] = NAN
    groups, valid = Groups.of(np.arange(40) // 3, "cluster"), ~np.isnan(x)
    result = score(Row(x), "domain", groups=groups)
    alone = mean_variance(x[valid], groups.on(valid))
    assert result.interval.se**2 == pytest.approx(alone.variance)
    assert (result.method, result.interval.df) == ("clusters", alone.df)
    assert 12 < alone.df < 13  # 14 groups, three of them with fewer tasks than the others
    assert score(Row(x), "domain", groups=Groups.of(np.arange(40) // 5, "cluster")).interval is None


FACETS = (Facet("run", 0.0012, 0.0004, df_with_agent=24, df_main=4), Facet("prompt", 0.002), Facet("judge"))


def test_main_effects_cancel_when_shared_and_interactions_never():
    rng = np.random.default_rng(3)
    rows = [Row(rng.random(50), levels={"run": 2, "prompt": 4}) for _ in range(2)]
    sampling = compare(*rows).interval.se ** 2
    result = compare(*rows, facets=FACETS)
    # Two agents: 2·.0012/2 + 2·.002/4.
    assert result.interval.se**2 == pytest.approx(sampling + 0.0012 + 0.001, rel=1e-12)
    assert (result.cancels, result.omitted) == (("run", "prompt", "judge"), ("agent:judge",))
    apart = compare(*rows, facets=FACETS, shared={"run": False, "judge": False})
    assert apart.interval.se**2 == pytest.approx(sampling + 0.0012 + 0.001 + 0.0004, rel=1e-12)
    assert (apart.cancels, apart.omitted) == (("prompt",), ("agent:judge", "judge"))
    parts = [(sampling, 49), (0.0012, 24), (0.001, math.inf), (0.0004, 4)]
    df = sum(t for t, _ in parts) ** 2 / sum(t**2 / nu for t, nu in parts)
    assert apart.interval.df == pytest.approx(df, rel=1e-12)


def test_linking_variance_is_part_of_v_a():
    row = Row(np.array([0.0, 1.0, 1.0]), levels={"run": 3}, v_link=0.002, df_link=19)
    assert [(t.name, t.variance, t.df) for t in agent_variance(row, FACETS)] == [
        ("agent:run", pytest.approx(0.0004), 24),
        ("agent:prompt", 0.002, math.inf),
        ("linking", 0.002, 19),
    ]
    other = Row(np.array([0.0, 0.0, 1.0]))
    assert compare(row, other).interval.se ** 2 == pytest.approx(1 / 9 + 0.002, rel=1e-12)


def test_selected_tasks_speak_for_themselves_alone():
    row = Row(np.array([0.0, 1.0]))
    for target in ("full", "domain"):
        with pytest.raises(CoreError, match=f"the target '{target}' cannot be told"):
            score(row, target, selected=True)


def test_no_spread_is_no_standard_error():
    a = np.array([1.0, 0.0, 1.0, 0.0, 1.0])
    alike = compare(Row(a), Row(a))
    assert (alike.value, alike.interval, alike.p_value) == (0.0, None, None)
    assert "the same value on all 5 tasks: a standard error of 0" in alike.reason
    assert "means at 0 or 1" in score(Row(np.ones(5)), "subset", omega=0.3).reason
    still = Row(np.array([1.0, 0.0]), np.zeros(2), np.full(2, 3.0))
    assert "trials that do not differ" in score(still, "full").reason
    assert "one task" in compare(Row(a[:1]), Row(a[1:2])).reason


def test_agents_without_a_common_task_are_refused():
    with pytest.raises(CoreError, match="no difference"):
        compare(Row(np.array([1.0, NAN])), Row(np.array([NAN, 1.0])))
    with pytest.raises(CoreError, match="no mean"):
        score(Row(np.array([NAN, NAN])), "domain")


# ------------------------------------------------------------------------------------------------ given tasks


def measured(name, row):
    return Measured(name, np.where(np.isnan(row.means), 0.5, row.means), row)


def some_of_each(seed=5, k=20):
    """Agents with repeats, with single trials, with some of both, completed and calibrated ones."""
    rng = np.random.default_rng(seed)
    cells = drawn(seed, 5, k, 0.0, 0.0)
    rows = [Row(*(part[i].copy() for part in cells)) for i in range(5)]
    rows[1].trial_variances[:3] = NAN
    rows[2] = Row(rng.integers(0, 2, k).astype(float))
    rows[3] = Row(rng.integers(0, 2, k).astype(float))
    rows[4] = replace(rows[4], v_link=0.002, df_link=11)
    rows[4].means[:2] = rows[4].trial_variances[:2] = NAN
    agents = [measured(f"a{i}", row) for i, row in enumerate(rows)]
    return [*agents, Calibrated("c0", 0.5, 0.003, 12), Calibrated("c1", 0.45, 0.003, 12, 0, 0.001, 9)]


GIVEN_FACETS = (Facet("run", 0.0012, 0.0004, df_with_agent=24), Facet("judge"))


@pytest.mark.parametrize("omega", [None, 0.3])
@pytest.mark.parametrize("facets", [(), GIVEN_FACETS])
def test_a_difference_has_the_variance_that_decides_its_ranks(omega, facets):
    agents, noise = some_of_each(), TrialNoise(omega, 0.02)
    ranks = rank_sets(agents, noise, seed=0, facets=facets, n_draws=99)
    for (i, a), (j, b) in combinations(enumerate(agents), 2):
        result = compare_given(a, b, "full", noise, 20, facets=facets)
        assert result.interval.se == pytest.approx(ranks.se[i, j], rel=1e-12)
        assert result.value == pytest.approx(ranks.means[i] - ranks.means[j], abs=1e-9)
        assert result.interval.df >= 1


def test_two_agents_with_repeats_by_hand():
    # s²/R = .06 in 10 cells each, q̄ = .06: V = (10·.06 + 4·.06)·(10/14)/100 = .006;
    # ν = .006²/(10·.06²/4/10⁴) = 40 for each, 80 for both.
    row = Row(np.full(10, 0.4), np.full(10, 0.3), np.full(10, 5.0))
    a, b = measured("a", row), measured("b", replace(row, means=np.full(10, 0.6)))
    result = compare_given(a, b, "full", TrialNoise(None, 0.06), 10)
    assert result.value == pytest.approx(-0.2)
    assert result.interval.se == pytest.approx(math.sqrt(0.012))
    assert result.interval.df == pytest.approx(80)
    assert (result.method, result.target, result.n_tasks) == ("repeated trials", "full", 10)
    assert result.cancels == ("run", "prompt", "judge")
    wider = compare_given(
        a, b, "subset", TrialNoise(None, 0.06), 10, added=ErrorTerm("incumbent shift", 0.001, 13)
    )
    assert wider.interval.se == pytest.approx(math.sqrt(0.013))
    assert wider.interval.df == pytest.approx(0.013**2 / (0.012**2 / 80 + 0.001**2 / 13))


def test_agents_with_one_trial_by_hand():
    # d = 1, 0, 0, 0, 0: (1 + 1 − 1/7)/49 with 4 degrees of freedom; with ω̂ = ½ and p̃ = (1 + 2)/9, 2/9:
    # ½·(18/81 + 14/81)/5.
    a, b = (measured(n, Row(np.array([x, 0, 0, 0, 0.0]))) for n, x in (("a", 1.0), ("b", 0.0)))
    result = compare_given(a, b, "subset", TrialNoise(), 5)
    assert (result.method, result.interval.df) == ("neyman", 4)
    assert result.interval.se == pytest.approx(math.sqrt(13 / 7) / 7)
    summary = compare_given(a, b, "subset", TrialNoise(0.5), 5)
    assert summary.method == "variance function"
    assert summary.interval.se == pytest.approx(math.sqrt(0.5 * 32 / 81 / 5))
    alike = compare_given(a, replace(a, name="b"), "subset", TrialNoise(), 5)
    assert alike.value == 0.0
    assert alike.interval.se == pytest.approx(1 / 7)


def test_two_predictions_share_one_calibration():
    from scipy import stats

    a, b = Calibrated("a", 0.62, 0.03**2, 24), Calibrated("b", 0.55, 0.03**2, 24)
    result = compare_given(a, b, "full", TrialNoise(), 500)
    half = stats.t.ppf(0.975, 24) * math.sqrt(2) * 0.03
    assert (result.interval.lower, result.interval.upper) == pytest.approx((0.07 - half, 0.07 + half))
    apart = compare_given(a, replace(b, calibration=1, df=9), "full", TrialNoise(), 500)
    assert apart.interval.df == pytest.approx(4 / (1 / 24 + 1 / 9))
    # A measured agent that passed 30 of 100 tasks once: p̃ = 32/104, an upper bound.
    one = measured("c", Row(np.repeat([1.0, 0.0], [30, 70])))
    mixed = compare_given(a, one, "full", TrialNoise(), 100)
    bound = 32 / 104 * (72 / 104) / 100
    assert mixed.interval.se == pytest.approx(math.sqrt(0.03**2 + bound))
    assert mixed.interval.df == pytest.approx((9e-4 + bound) ** 2 / (9e-4**2 / 24 + bound**2 / 99))
    assert {term.name for term in mixed.terms} == {"calibration", "upper bound"}
    linked = compare_given(a, replace(b, v_link=0.0004, df_link=11), "full", TrialNoise(), 500)
    assert linked.interval.se == pytest.approx(math.sqrt(2 * 0.03**2 + 0.0004))
    # What an estimated agent ran itself is noisy too: 20 of 100 tasks once.
    ran = replace(a, row=Row(np.repeat([1.0, 0.0, NAN], [10, 10, 80])))
    noise = 20 * 64 / 104 * (40 / 104) / 100**2
    summary = compare_given(ran, one, "full", TrialNoise(), 100)
    assert summary.interval.se == pytest.approx(math.sqrt(0.03**2 + noise + bound))
    assert {term.name for term in summary.terms} == {"calibration", "upper bound"}
    summary = compare_given(ran, b, "full", TrialNoise(0.5), 100)
    assert [term.name for term in summary.terms] == ["calibration", "variance function"]
    assert summary.terms[1].variance == pytest.approx(noise / 2)


def test_agents_that_cannot_be_compared_so_are_refused():
    a, b = (measured(n, Row(np.ones(k))) for n, k in (("a", 5), ("b", 6)))
    with pytest.raises(CoreError, match="two agents' outcomes"):
        compare_given(a, b, "full", TrialNoise(), 5)
    for wrong in (-1.0, NAN, 0.0):
        with refused(CoreError, "agent_error"):
            compare_given(a, Calibrated("c", 0.5, wrong, 30), "full", TrialNoise(), 5)


def test_the_parts_of_an_agents_variance_are_its_variance():
    for agent in some_of_each():
        for noise in (TrialNoise(), TrialNoise(0.3, 0.02)):
            error = error_of(agent, noise, GIVEN_FACETS)
            assert sum(part.variance for part in error.own) + error.beyond == pytest.approx(error.variance)


# ------------------------------------------------------------------------------------------------ one agent


def test_the_standard_errors_of_one_score():
    from scipy import stats

    means = np.array([1.0, 0.0, 1.0, 1.0, 0.5])
    domain = score(Row(means), "domain")
    assert domain.interval.se == pytest.approx(stats.sem(means))
    bound = score(Row(means), "full")
    assert (bound.method, bound.interval.se) == ("upper bound", pytest.approx(math.sqrt(0.7 * 0.3 / 5)))
    share = score(Row(means), "full", omega=0.25)
    assert (share.method, share.interval.se) == ("variance function", pytest.approx(bound.interval.se / 2))
    repeated = score(Row(means, np.array([0, 0, 0, 0, 0.5]), np.full(5, 2.0)), "full")
    assert (repeated.method, repeated.interval.se) == ("repeated trials", pytest.approx(math.sqrt(0.25) / 5))
    copied = score(Row(means, np.array([0, 0, 0, 0, 0.5]), np.full(5, 2.0), one_trial=True), "full")
    assert copied.method == "upper bound"
    # A lost trial: the sixth task has the mean s² of the others, .2, so that every s² counts ½ + 1/5 times.
    six, trials = np.array([1, 0, 0.5, 0.5, 1, 1]), np.array([2, 2, 2, 2, 2, 1.0])
    lost = score(Row(six, np.array([0, 0, 0.5, 0.5, 0, NAN]), trials), "full")
    assert (lost.method, lost.interval.se) == ("repeated trials", pytest.approx(math.sqrt(0.7 / 36)))
    assert lost.interval.df == pytest.approx(0.7**2 / (2 * 0.35**2))
    most = score(Row(six, np.array([NAN, NAN, 0.5, 0.5, NAN, NAN]), trials), "full")
    assert most.method == "upper bound"
    assert "mean is 0 or 1" in score(Row(np.ones(5)), "full").reason


def test_an_absolute_decision_takes_all_terms_but_what_judges_differ_by():
    """A panel of judges is fixed: by how much they differ is no error."""
    row = Row(np.array([1.0, 0.0, 1.0, 1.0]), levels={"run": 2, "judge": 2})
    facets = (*FACETS[:2], Facet("judge", 0.003, 0.04))
    alone, result = score(row, "domain").interval.se, score(row, "domain", facets=facets)
    assert result.interval.se**2 == pytest.approx(alone**2 + 0.0006 + 0.0002 + 0.002 + 0.0015, rel=1e-12)
    assert result.omitted == ("prompt",)
    assert score(row, "domain", facets=FACETS).omitted == ("agent:judge", "prompt")
    assert result.cancels == ()


# ------------------------------------------------------------------------------------------------ refusals


@REPEATABLE
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_adjusted_p_values_by_their_definition(p_values):
    """The smallest n·q/#{p ≤ q} over the p-values q at or above one's own, at most 1."""
    n = len(p_values)
    rate = {q: n * q / sum(p <= q for p in p_values) for q in p_values}
    expected = [min(1.0, min(rate[q] for q in p_values if q >= p)) for p in p_values]
    assert benjamini_hochberg(p_values) == pytest.approx(expected, abs=1e-14)


@REPEATABLE
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_adjusted_p_values_are_scipy_s(p_values):
    assert benjamini_hochberg(p_values) == pytest.approx(false_discovery_control(p_values), abs=1e-15)


def test_p_values_outside_their_range_are_refused():
    assert benjamini_hochberg([]).size == 0
    for wrong in ([1.1], [NAN], [[0.5]]):
        with pytest.raises(CoreError, match="from 0 to 1"):
            benjamini_hochberg(wrong)


def test_shapes_that_differ_and_impossible_components_are_refused():
    ones = np.ones((2, 3))
    with pytest.raises(CoreError, match="given together"):
        finite_variances(ones, trial_variances=ones)
    with pytest.raises(CoreError, match=r"trial variances \(2, 3\) and numbers of trials \(3, 2\)"):
        finite_variances(ones, ones, ones.T)
    with pytest.raises(CoreError, match="one_trial: float64"):
        trial_variance_ratio(ones, None, None, one_trial=np.ones(2))
    with pytest.raises(CoreError, match="not agents by tasks"):
        finite_variances(ones[0])
    with pytest.raises(CoreError, match="two agents' cells"):
        compare(Row(np.ones(2)), Row(np.ones(3)))
    row = Row(np.array([0.0, 1.0]))
    for facet in (Facet("run", -1.0), Facet("run", None, math.inf)):
        with pytest.raises(CoreError, match="run: a variance of"):
            score(row, "domain", facets=(facet,))
    with pytest.raises(CoreError, match="linking"):
        compare(replace(row, v_link=-0.1), row)
    with pytest.raises(CoreError, match="run: averaged over 0 levels"):
        compare(replace(row, levels={"run": 0}), row, facets=(Facet("run", 0.1),))
