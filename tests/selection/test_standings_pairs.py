"""Two agents on request: against scipy and scikit-learn, by definition, and who is left out and why."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from selection.errors import SelectionError
from selection.rules import Rules
from selection.standings import answer
from selection.standings.pairs import pairs
from tests.refusals import refused
from tests.selection.records import NAN, band, board, by_name, record_of, with_newcomers


def pair_of(found, a, b):
    return next(one for one in found.pairs if {one.a, one.b} == {a, b})


def bound(score, n_run):
    """Noise of one trial of each task that was run, of 60; without repeats an upper bound, ω̂ = 1."""
    rate = (score * 60 + 2) / 64
    return n_run * rate * (1 - rate) / 60**2


def test_the_domain_is_the_paired_t_test_of_scipy():
    outcomes = board(14)
    found = pairs(record_of(outcomes), target="domain")
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
    outcomes = board(14)
    found, tasks = pairs(record_of(outcomes), target="subset"), band(outcomes)
    assert (found.target, found.n_tasks, found.omega) == ("subset", tasks.size, None)
    one = found.pairs[0]
    a, b = (outcomes[int(name[1:]), tasks] for name in (one.a, one.b))
    assert one.estimate.method == "neyman"
    # Two half-weight pseudo-tasks of ±1 keep it above 0.
    k, d = tasks.size, a - b
    assert one.estimate.interval.se == pytest.approx(math.sqrt(d @ d + 1 - d.sum() ** 2 / (k + 2)) / (k + 2))
    assert one.estimate.omitted == ("agent:run", "agent:prompt", "agent:judge")


def test_estimated_agents_have_the_error_of_their_calibration():
    outcomes, _ = with_newcomers()
    record = record_of(outcomes)
    found = pairs(record, target="full")
    lines = by_name(answer(record, Rules(target="full")))
    s, other = (lines[name].at["full"].se for name in ("a14", "a15"))
    both = pair_of(found, "a14", "a15").estimate
    n_run = int(np.count_nonzero(~np.isnan(outcomes[14])))
    a, b = (bound(found.agents[name].score, n_run) for name in ("a14", "a15"))
    assert both.interval.se == pytest.approx(math.sqrt(s**2 + other**2 + a + b))
    inverse = (s**2 + other**2) ** 2 / (14 + 4) + (a**2 + b**2) / 59
    assert both.interval.df == pytest.approx((s**2 + other**2 + a + b) ** 2 / inverse)
    mixed = pair_of(found, "a03", "a14").estimate
    assert mixed.interval.se == pytest.approx(math.sqrt(s**2 + a + bound(outcomes[3].mean(), 60)))
    assert pair_of(found, "a03", "a04").estimate.method == "neyman"
    assert {name: at.score for name, at in found.agents.items()} == {
        name: line.at["full"].score for name, line in lines.items()
    }


def test_an_agent_that_passed_everything_is_held_against_estimated_ones():
    outcomes, _ = with_newcomers(n_agents=20)
    outcomes[3] = 1.0
    outcomes[20:, band(outcomes[:20])] = 0.5
    found = pairs(record_of(outcomes), target="full")
    estimate, n_run = pair_of(found, "a03", "a20").estimate, int(np.count_nonzero(~np.isnan(outcomes[20])))
    (term,) = (term for term in estimate.terms if term.name == "upper bound")
    assert term.variance == pytest.approx(bound(1.0, 60) + bound(found.agents["a20"].score, n_run))


def test_the_incumbent_shift_counts_between_old_and_new_alone():
    outcomes, tasks = with_newcomers()
    found = pairs(record_of(outcomes), target="subset")
    complete_ = outcomes[:14]
    shifts = [
        complete_[i, tasks].mean() - complete_[i, band(np.delete(complete_, i, 0))].mean() for i in range(14)
    ]

    def shift(a, b):
        return sum(t.variance for t in pair_of(found, a, b).estimate.terms if t.name == "incumbent shift")

    assert shift("a00", "a14") == pytest.approx(np.var(shifts, ddof=1))
    assert shift("a14", "a15") == shift("a00", "a01") == 0.0


def test_a_choice_of_agents_moves_no_pair():
    record = record_of(board(14))
    some, whole = pairs(record, agents=["a01", "a02", "a03"]), pairs(record)
    for one in some.pairs:
        assert one.estimate == pair_of(whole, one.a, one.b).estimate


def test_agents_without_a_full_run_are_no_part_of_the_domain():
    outcomes, tasks = with_newcomers()
    found = pairs(record_of(outcomes), target="domain")
    assert set(found.left_out) == {"a14", "a15"}
    assert found.left_out["a14"].startswith(f"{60 - tasks.size} of 60 tasks were not run: t0")


def test_identical_agents_differ_by_nothing_that_is_known():
    outcomes = board(6)
    outcomes[1] = outcomes[0]
    one = pair_of(pairs(record_of(outcomes), target="domain"), "a00", "a01")
    assert (one.estimate.interval, one.p_adjusted) == (None, None)
    assert "standard error of 0" in one.reason
    given = pair_of(pairs(record_of(outcomes), target="full"), "a00", "a01")
    assert (given.estimate.value, given.p_adjusted) == (0.0, 1.0)
    assert given.estimate.interval.se == pytest.approx(1 / 62)  # the pseudo-tasks alone


def test_no_order_is_claimed_of_those_that_miss_unevenly_whatever_the_order_of_their_scores():
    """By Manski bounds that overlap and Fisher's exact test; the agent that lacks results comes last."""
    rng, outcomes = np.random.default_rng(5), np.zeros((13, 200))
    for i, row in enumerate(outcomes):
        row[rng.permutation(200)[: 100 + 2 * i]] = 1
    outcomes[0, :9] = NAN
    lower, lacking = np.nansum(outcomes, axis=1), np.isnan(outcomes).sum(axis=1)
    expected = {
        (f"a{i:02d}", f"a{j:02d}")
        for i, j in combinations(range(13), 2)
        if lower[i] <= lower[j] + lacking[j]
        and lower[j] <= lower[i] + lacking[i]
        and stats.fisher_exact([[lacking[i], 200 - lacking[i]], [lacking[j], 200 - lacking[j]]])[1] < 0.01
    }
    found = pairs(record_of(outcomes, lost=np.isnan(outcomes)), target="full")
    assert {tuple(sorted((one.a, one.b))) for one in found.pairs if one.unclaimed} == expected
    assert 0 < len(expected) < 12


def test_refusals():
    record = record_of(board(4))
    assert pairs(record).target == "full"
    cases = [
        ({"target": "subset"}, "no_subset", "only 4 full runs"),
        ({"target": "all"}, "target_unknown", "subset, full, domain, not 'all'"),
        ({"agents": ["A0", "a01"]}, "agent_unknown", "unknown agent 'A0'. Did you mean 'a00', 'a01', 'a02'"),
        ({"agents": ["zzz"]}, "agent_unknown", r"unknown agent 'zzz'$"),
        ({"agents": ["a00"]}, "too_few", "1 of 1 agents can be compared; 2 are needed"),
    ]
    for options, code, message in cases:
        with refused(SelectionError, code, match=message):
            pairs(record, **options)
    with refused(SelectionError, "too_few", match="0 of 3 agents"):
        pairs(record_of(np.full((3, 8), NAN)))


@pytest.mark.parametrize("target", ["subset", "full", "domain"])
@pytest.mark.parametrize("of", ["measured", "estimated", "repeated"])
def test_pairs_are_tied_where_the_board_ties_them(target, of):
    outcomes = with_newcomers()[0] if of == "estimated" else board(16)
    repeats = {"n_trials": 4, "trial_variances": outcomes * (1 - outcomes) + 0.05} if of == "repeated" else {}
    record = record_of(outcomes, **repeats)
    told, found = answer(record), pairs(record, target=target)
    names, lines = [line.agent for line in told.agents], by_name(told)
    critical = told.targets[target].critical
    ties = {
        name: {other for lo, hi in lines[name].at[target].tied_with for other in names[lo : hi + 1]}
        for name in found.agents
    }
    assert [one.is_tied(critical) for one in found.pairs] == [one.b in ties[one.a] for one in found.pairs]
    assert {one.is_tied(critical) for one in found.pairs} == {True, False}


def test_outcomes_stand_beside_the_differences_made_of_them():
    outcomes = board(14)
    found = pairs(record_of(outcomes), target="subset", agents=["a02", "a11"])
    tasks = band(outcomes)
    assert found.tasks == tuple(f"t{j:03d}" for j in tasks)
    assert found.outcomes["a02"].tolist() == outcomes[2, tasks].tolist()
    (one,) = found.pairs
    d = found.outcomes[one.a] - found.outcomes[one.b]
    assert one.estimate.value == pytest.approx(d.mean())
