import math
from collections import Counter
from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selection import bands, rasch
from selection.errors import SelectionError
from selection.strategies import SEEDED, STRATEGIES, Training
from tests.refusals import refused
from tests.selection.records import matrix_of

REPEATABLE = settings(derandomize=True, deadline=None)
NAN = math.nan


def picked(name, training, k, seed=0):
    return STRATEGIES[name](training, k, np.random.default_rng(seed)).tolist()


def rated(rates, n=10):
    """Training agents whose pass rates are given; no strategy that reads rates alone looks further."""
    rates = np.array(rates, dtype=float)
    return Training(np.full((n, rates.size), NAN), np.full(n, NAN), np.arange(n), rates)


def board(n_passed, n=10):
    """One column for each number: that many of the agents pass."""
    outcomes = np.array([[float(i < n_passed_by) for n_passed_by in n_passed] for i in range(n)])
    return Training.of(outcomes, outcomes.mean(axis=1))


def simulated(seed, n, m, share_missing=0.0):
    """Pass or fail by abilities and difficulties, with a date for each agent."""
    rng = np.random.default_rng(seed)
    logits = 1.2 * rng.standard_normal((n, 1)) - 1.5 * rng.standard_normal(m)
    outcomes = (rng.random((n, m)) < 1 / (1 + np.exp(-logits))).astype(float)
    missing = rng.random((n, m)) < share_missing
    missing[0], missing[:, 0] = False, False
    outcomes[missing] = NAN
    dates = [date(2025, 1, 1 + int(day)) for day in rng.integers(0, 28, n)]
    return outcomes, np.nanmean(outcomes, axis=1), dates


# ------------------------------------------------------------------------------------------------ by hand


def test_the_registry_holds_the_nine_strategies():
    names = "mid_range greedy random easiest hardest stratified information spread forecast"
    assert list(STRATEGIES) == names.split()
    assert set(STRATEGIES) >= SEEDED
    with pytest.raises(TypeError):
        STRATEGIES["best"] = STRATEGIES["random"]


def test_the_band_picks_and_sets_the_number():
    training = rated([0.0, 0.3, 0.5, 0.7, 0.71, NAN])
    assert training.band_tasks.tolist() == [1, 2, 3]
    assert picked("mid_range", training, 3) == [1, 2, 3]
    with refused(SelectionError, "band_differs", match="the band holds 3 tasks, not 2"):
        picked("mid_range", training, 2)


def test_a_policy_may_start_with_another_band():
    rates = np.array([0.2, 0.3, 0.5, 0.8])
    training = Training(np.empty((9, 4)), np.empty(9), np.arange(9), rates, lo=0.15, hi=0.85)
    assert training.band_tasks.tolist() == [0, 1, 2, 3]


def test_the_easiest_and_the_hardest_take_ties_in_task_order():
    training = rated([0.5, 0.9, NAN, 0.5, 0.1, 0.9, 0.5])
    assert picked("easiest", training, 3) == [0, 1, 5]
    assert picked("hardest", training, 3) == [0, 3, 4]
    assert picked("easiest", training, 6) == picked("hardest", training, 6) == [0, 1, 3, 4, 5, 6]


def test_rates_that_differ_by_rounding_alone_are_ties():
    training = rated([0.3, 0.1 + 0.2, 0.3 - 1e-12])
    assert picked("easiest", training, 1) == [0]
    assert picked("hardest", training, 1) == [0]


def test_the_spread_takes_even_ranks_between_the_ends():
    # Inside: tasks 1, 3, 4, 6, 7 with p = .5, .03, .5, .97, .2; by (p, index) 3, 7, 1, 4, 6.
    training = rated([0.02, 0.5, 0.98, 0.03, 0.5, NAN, 0.97, 0.2, 0.0, 1.0])
    assert picked("spread", training, 5) == [1, 3, 4, 6, 7]
    assert picked("spread", training, 3) == [1, 3, 6]  # positions 0, 2, 4
    assert picked("spread", training, 2) == [3, 6]  # 0, 4
    assert picked("spread", training, 4) == [3, 4, 6, 7]  # 0, 1.33, 2.67, 4: 0, 1, 3, 4


def test_stratified_takes_one_of_each_tenth():
    rates = np.arange(20)[::-1] / 19
    for seed in range(20):
        tasks = picked("stratified", rated(rates), 10, seed)
        assert sorted(task // 2 for task in tasks) == list(range(10))


def test_a_short_group_passes_the_rest_on_in_order():
    # 12 tasks: groups of 2, 2, 1, 1, 1, 1, 1, 1, 1, 1. Eleven are one of each group and one more. Drawn for
    # group 1 it stays there and a task of group 0 is left out; drawn for a group of one it comes round to
    # group 0, as if drawn for that, and a task of group 1 is left out: nine times in ten.
    training, n_seeds = rated(np.arange(12) / 12), 400
    left_out = Counter()
    for seed in range(n_seeds):
        left_out.update(set(range(12)) - set(picked("stratified", training, 11, seed)))
    assert set(left_out) == {0, 1, 2, 3}
    assert left_out[2] + left_out[3] == pytest.approx(0.9 * n_seeds, abs=5 * math.sqrt(0.09 * n_seeds))


def test_information_takes_the_tasks_near_the_abilities():
    # All agents alike: θ is the same for all, and P(1 − P) falls with the distance of p from ½.
    row = np.array([0.05, 0.5, 0.9, 0.45, 0.7, 0.2])
    training = Training.of(np.tile(row, (6, 1)), np.full(6, row.mean()))
    assert picked("information", training, 3) == [1, 3, 4]


def test_equally_informative_tasks_stand_in_task_order():
    row = np.array([0.2, 0.5, 0.5, 0.8, 0.5])
    training = Training.of(np.tile(row, (6, 1)), np.full(6, row.mean()))
    assert picked("information", training, 2) == [1, 2]
    assert picked("information", training, 4) == [0, 1, 2, 4]


@pytest.mark.parametrize(("backwards", "latest"), [(False, slice(3, 13)), (True, slice(1, 11))])
def test_the_forecast_asks_the_latest_ten_by_date_and_name(backwards, latest):
    # Two old agents and eleven of one day: of these the first by name is left out of the sum.
    outcomes = np.random.default_rng(1).random((13, 12))
    dates = [date(2024, 1, 1)] * 2 + [date(2025, 1, 1)] * 11
    if backwards:
        outcomes, dates = outcomes[::-1], dates[::-1]
    fitted = rasch.fit(outcomes)
    p = 1 / (1 + np.exp(fitted.difficulties - fitted.abilities[latest, None]))
    expected = sorted(np.argsort(-(p * (1 - p)).sum(axis=0))[:5].tolist())
    assert picked("forecast", Training.of(outcomes, outcomes.mean(axis=1), dates), 5) == expected


def test_with_ten_agents_or_fewer_the_forecast_is_the_information():
    outcomes, scores, dates = simulated(3, 10, 30)
    training = Training.of(outcomes, scores, dates)
    assert picked("forecast", training, 9) == picked("information", training, 9)


def test_greedy_takes_the_column_that_is_the_score():
    outcomes, _, _ = simulated(4, 20, 12)
    training = Training.of(outcomes, outcomes[:, 7])
    assert picked("greedy", training, 1) == [7]


def test_greedy_takes_the_first_of_twin_tasks():
    outcomes, _, _ = simulated(4, 20, 12)
    outcomes[:, [3, 9]] = outcomes[:, [7, 7]]
    assert picked("greedy", Training.of(outcomes, outcomes[:, 7]), 1) == [3]


# --------------------------------------------------------------------------------------------- by definition


BOARDS = st.tuples(st.integers(0, 2**32 - 1), st.integers(5, 20), st.integers(3, 40))


@REPEATABLE
@given(BOARDS, st.sampled_from(sorted(set(STRATEGIES) - {"mid_range"})), st.data())
def test_k_different_tasks_in_order(sizes, name, data):
    outcomes, scores, dates = simulated(*sizes, share_missing=0.05)
    training = Training.of(outcomes, scores + 1e-3 * np.arange(scores.size), dates)
    rates = np.nanmean(outcomes, axis=0)
    n_available = np.count_nonzero((rates > 0.02) & (rates < 0.98)) if name == "spread" else rates.size
    if not n_available:
        return
    k = data.draw(st.integers(1, n_available))
    tasks = picked(name, training, k)
    assert tasks == sorted(set(tasks))
    assert len(tasks) == k
    assert set(tasks) <= set(range(rates.size))


@REPEATABLE
@given(BOARDS, st.sampled_from(sorted(set(STRATEGIES) - {"mid_range"})))
def test_a_task_nobody_ran_is_never_picked_and_changes_nothing(sizes, name):
    outcomes, scores, dates = simulated(*sizes)
    scores = scores + 1e-3 * np.arange(scores.size)
    with_gap = np.insert(outcomes, 2, NAN, axis=1)
    n_inside = int(np.sum((outcomes.mean(axis=0) > 0.02) & (outcomes.mean(axis=0) < 0.98)))
    if n_inside < 2:
        return
    tasks = picked(name, Training.of(outcomes, scores, dates), n_inside - 1)
    moved = picked(name, Training.of(with_gap, scores, dates), n_inside - 1)
    assert moved == [task + (task >= 2) for task in tasks]


@REPEATABLE
@given(BOARDS, st.sampled_from(sorted(set(STRATEGIES) - {"mid_range"})))
def test_agents_left_out_have_no_say(sizes, name):
    outcomes, scores, dates = simulated(*sizes)
    n = scores.size
    scores = scores + 1e-3 * np.arange(n)
    rows = np.arange(0, n - 1)
    rates = bands.pass_rates(outcomes[rows])
    other_outcomes, other_scores = outcomes.copy(), scores.copy()
    other_outcomes[n - 1], other_scores[n - 1] = 1 - outcomes[n - 1], 0.5
    k = int(np.sum((rates > 0.02) & (rates < 0.98)))
    if not k:
        return
    plain = Training.of(outcomes[rows], scores[rows], dates[: n - 1])
    for all_outcomes, all_scores in ((outcomes, scores), (other_outcomes, other_scores)):
        fold = Training(all_outcomes, all_scores, rows, rates, dates)
        assert picked(name, fold, k) == picked(name, plain, k)
        assert fold.band_tasks.tolist() == plain.band_tasks.tolist()


@REPEATABLE
@given(BOARDS, st.sampled_from([(0.30, 0.70), (0.2, 0.8), (0.45, 0.55)]))
def test_the_band_is_that_of_the_whole_selection(sizes, edges):
    outcomes, scores, _ = simulated(*sizes, share_missing=0.05)
    lo, hi = edges
    band = bands.mid_range(outcomes, lo=lo, hi=hi)
    assert Training.of(outcomes, scores, lo=lo, hi=hi).band_tasks.tolist() == band.tasks.tolist()


def test_weights_count_in_the_pass_rates_alone():
    outcomes, scores, dates = simulated(6, 12, 20)
    weights = np.arange(1.0, 13.0)
    weighted = Training.of(outcomes, scores, dates, weights)
    assert weighted.pass_rates.tolist() == bands.pass_rates(outcomes, weights).tolist()
    plain = Training.of(outcomes, scores, dates)
    for name in ("greedy", "information", "forecast"):
        assert picked(name, weighted, 6) == picked(name, plain, 6)


@pytest.mark.parametrize("name", sorted(SEEDED))
def test_a_draw_depends_on_its_generator_alone(name):
    training = board([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10] * 3)
    draws = [picked(name, training, 12, seed) for seed in range(30)]
    assert draws == [picked(name, training, 12, seed) for seed in range(30)]
    assert len({tuple(tasks) for tasks in draws}) > 25


def test_every_task_is_drawn_equally_often():
    # 4,000 draws of 3 of 10 rated tasks: each is in 30%, give or take 5 binomial standard errors.
    training = rated([0.1 * i for i in range(10)] + [NAN])
    counts = Counter(task for seed in range(4000) for task in picked("random", training, 3, seed))
    assert set(counts) == set(range(10))
    assert max(abs(c - 1200) for c in counts.values()) < 5 * math.sqrt(4000 * 0.3 * 0.7)


def test_random_subsets_of_one_generator_are_nested():
    training = rated([0.1 * i for i in range(10)] + [NAN])
    assert set(picked("random", training, 3, 7)) < set(picked("random", training, 6, 7))


def test_the_remainder_goes_to_distinct_groups_and_tasks_are_drawn_equally_inside():
    # 30 tasks in tenths of 3, k = 14: one or two of each tenth, two in exactly four of them.
    training = rated(np.arange(30) / 30)
    counts = Counter()
    for seed in range(3000):
        tasks = picked("stratified", training, 14, seed)
        per_group = Counter(task // 3 for task in tasks)
        assert sorted(per_group.values()) == [1] * 6 + [2] * 4
        counts.update(tasks)
    assert max(abs(counts[t] - 1400) for t in range(30)) < 5 * math.sqrt(3000 * (14 / 30) * (16 / 30))


@REPEATABLE
@given(st.lists(st.integers(0, 3), min_size=10, max_size=45), st.data())
def test_groups_give_their_quota_and_what_was_passed_on(levels, data):
    # Reference: hand out one by one; a full group passes its one on to the next.
    k, seed = data.draw(st.integers(1, len(levels))), data.draw(st.integers(0, 99))
    rates = np.array(levels) / 3
    order = sorted(range(len(levels)), key=lambda j: (rates[j], j))
    groups = [group.tolist() for group in np.array_split(order, 10)]
    extra = np.random.default_rng(seed).choice(10, k % 10, replace=False)
    quotas = [k // 10 + (g in extra) for g in range(10)]
    taken, rest = [0] * 10, 0
    for g in [*range(10), *range(10)]:
        wanted, quotas[g] = quotas[g] + rest, 0
        gives = min(wanted, len(groups[g]) - taken[g])
        taken[g], rest = taken[g] + gives, wanted - gives
    assert rest == 0
    tasks = picked("stratified", rated(rates), k, seed)
    assert [len(set(tasks) & set(group)) for group in groups] == taken


# ----------------------------------------------------------------------------------------- foreign program


def greedy_by_refits(outcomes, scores, k):
    """The definition: scikit-learn fitted once for each candidate and agent left out."""
    from sklearn.linear_model import Ridge

    chosen = []
    for _ in range(k):
        r2 = {}
        for j in set(range(outcomes.shape[1])) - set(chosen):
            x = outcomes[:, [*chosen, j]]
            errors = [
                scores[i] - Ridge(1.0).fit(np.delete(x, i, 0), np.delete(scores, i)).predict(x[[i]])[0]
                for i in range(scores.size)
            ]
            r2[j] = round(1 - np.sum(np.square(errors)) / np.sum((scores - scores.mean()) ** 2), 9)
        chosen.append(min(r2, key=lambda j: (-r2[j], j)))
    return sorted(chosen)


def greedy_by_hat_matrices(outcomes, scores, k):
    """The definition by e_i/(1 − h_i), one hat matrix from scratch for each candidate."""
    n, chosen = scores.size, []
    for _ in range(k):
        r2 = {}
        for j in set(range(outcomes.shape[1])) - set(chosen):
            centred = outcomes[:, [*chosen, j]]
            centred = centred - centred.mean(axis=0)
            inverse = np.linalg.inv(centred.T @ centred + np.eye(centred.shape[1]))
            hat = 1 / n + centred @ inverse @ centred.T
            errors = (scores - hat @ scores) / (1 - np.diag(hat))
            r2[j] = round(1 - np.sum(errors**2) / np.sum((scores - scores.mean()) ** 2), 9)
        chosen.append(min(r2, key=lambda j: (-r2[j], j)))
    return sorted(chosen)


def test_greedy_on_a_toy_equals_refits_of_scikit_learn():
    outcomes, scores, _ = simulated(9, 8, 14)
    for k in (1, 2, 5):
        assert picked("greedy", Training.of(outcomes, scores), k) == greedy_by_refits(outcomes, scores, k)


@pytest.mark.slow(each=True)
def test_greedy_on_a_real_board_equals_refits_of_scikit_learn(real_rows):
    outcomes = matrix_of(real_rows("hal_corebench_hard"))
    assert not np.isnan(outcomes).any()
    scores = outcomes.mean(axis=1)
    assert picked("greedy", Training.of(outcomes, scores), 2) == greedy_by_refits(outcomes, scores, 2)


@pytest.mark.parametrize("name", ["hal_corebench_hard", "hal_taubench_airline", "hal_gaia"])
def test_greedy_to_full_size_equals_hat_matrices_from_scratch(real_rows, name):
    outcomes = matrix_of(real_rows(name))
    scores = np.nanmean(outcomes, axis=1)
    completed = np.where(np.isnan(outcomes), np.nanmean(outcomes, axis=0), outcomes)
    training = Training.of(outcomes, scores)
    k = min(20, training.band_tasks.size)
    assert picked("greedy", training, k) == greedy_by_hat_matrices(completed, scores, k)


@REPEATABLE
@given(st.integers(0, 2**32 - 1), st.integers(4, 9), st.integers(2, 9))
def test_greedy_equals_hat_matrices_from_scratch_with_missing_cells_at_column_means(seed, n, m):
    outcomes, scores, _ = simulated(seed, n, m, share_missing=0.15)
    scores = scores + 1e-2 * np.arange(n)
    completed = np.where(np.isnan(outcomes), np.nanmean(outcomes, axis=0), outcomes)
    for k in (1, m // 2 + 1):
        expected = greedy_by_hat_matrices(completed, scores, k)
        assert picked("greedy", Training.of(outcomes, scores), k) == expected


# ------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize("name", sorted(set(STRATEGIES) - {"mid_range"}))
@pytest.mark.parametrize("k", [0, 5])
def test_a_number_of_tasks_that_cannot_be_had_is_refused(name, k):
    outcomes = np.column_stack([np.eye(4), np.full(4, NAN)])
    training = Training.of(outcomes, np.arange(4.0), [date(2025, 1, 1)] * 4)
    with refused(SelectionError, "too_few_tasks", match=f"{name}: {k} tasks asked for, 4 to choose from"):
        picked(name, training, k)


def test_the_spread_needs_k_tasks_between_the_ends():
    with refused(SelectionError, "too_few_tasks", match="spread: 2 tasks asked for, 1 to choose from"):
        picked("spread", rated([0.0, 0.01, 0.5, 0.98, 1.0]), 2)


def test_an_unsuited_board_and_too_few_agents_have_no_band():
    for training in (rated([0.0] * 11 + [0.5]), rated([0.5] * 4, n=4)):
        assert training.band_tasks.tolist() == []
        with refused(SelectionError, "too_few_tasks", match="no subset"):
            picked("mid_range", training, 1)


@pytest.mark.parametrize("name", sorted(SEEDED))
def test_a_draw_without_a_generator_is_refused(name):
    with refused(SelectionError, "generator_missing", match=f"{name} is a draw"):
        STRATEGIES[name](rated([0.5, 0.5]), 1, None)


@pytest.mark.parametrize("dates", [None, [date(2025, 1, 1)] * 11 + [None]])
def test_the_forecast_needs_every_date(dates):
    outcomes, scores, _ = simulated(2, 12, 9)
    n_undated = 12 if dates is None else 1
    with refused(
        SelectionError, "dates_missing", match=f"forecast: {n_undated} of 12 training agents have no date"
    ):
        picked("forecast", Training.of(outcomes, scores, dates), 3)


def test_a_missing_date_of_an_agent_left_out_is_none_of_the_folds_business():
    outcomes, scores, dates = simulated(2, 12, 9)
    fold = Training(outcomes, scores, np.arange(11), bands.pass_rates(outcomes[:11]), [*dates[:11], None])
    assert len(picked("forecast", fold, 3)) == 3


def test_greedy_refuses_equal_scores_and_two_agents():
    outcomes, _, _ = simulated(2, 6, 9)
    with refused(SelectionError, "scores_equal", match=r"all 6 training agents score 0\.25"):
        picked("greedy", Training.of(outcomes, np.full(6, 0.25) + 1e-12 * np.arange(6)), 3)
    with refused(SelectionError, "too_few_agents", match="needs at least 3; there are 2"):
        picked("greedy", Training.of(outcomes[:2], np.array([0.1, 0.9])), 3)


@pytest.mark.parametrize(
    ("outcomes", "scores", "dates", "refusal", "message"),
    [
        ([[0.0, 1.0]], [0.5, 0.5], None, "shape", r"scores \(2,\) for 1 agents"),
        ([[0.0, 1.0]], [0.5], [], "shape", "0 dates for 1 agents"),
        ([[0.0, 1.0]], [NAN], None, "score_missing", "agent 0 has no full score"),
        ([[0.0, 1.2]], [0.5], None, "outcome_range", "agent 0, task 1: 1.2"),
    ],
)
def test_what_cannot_train_is_refused_by_name(outcomes, scores, dates, refusal, message):
    with refused(SelectionError, refusal, match=message):
        Training.of(np.array(outcomes), np.array(scores), dates)
