"""Linking: completion and its error word by word, the shift of incumbents."""

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selection.errors import NoTasks, OutcomeRefused, SelectionError, ShapeMismatch
from selection.linking import (
    LinkUnknown,
    ShiftUnknown,
    SubsetRefused,
    complete,
    completion,
    incumbent_shift,
    reference,
)

REPEATABLE = settings(derandomize=True, deadline=None, max_examples=25)
NAN = math.nan
BOARDS = ["hal_gaia", "hal_corebench_hard", "hal_taubench_airline"]


def matrix_of(rows):
    """Mean outcomes, agents and tasks in name order, NaN where missing."""
    cells = defaultdict(list)
    for row in rows:
        if row.get("valid", "1") == "1":
            cells[row["agent"], row["task"]].append(float(row["outcome"]))
    agents, tasks = sorted({r["agent"] for r in rows}), sorted({r["task"] for r in rows})
    return np.array([[np.mean(cells[a, t]) if cells[a, t] else NAN for t in tasks] for a in agents])


def rasch_draws(seed, n, m):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1, (n, 1)) - rng.normal(0, 1.5, (1, m))
    return (rng.random((n, m)) < 1 / (1 + np.exp(-logits))).astype(float)


def maximised(outcomes):
    """θ and b by scipy: the penalised log-likelihood of STATISTICS §2, its derivatives left to BFGS."""
    from scipy.optimize import minimize

    n, m = outcomes.shape
    valid = ~np.isnan(outcomes)
    filled = np.where(valid, outcomes, 0.0)

    def loss(x):
        theta, b = x[:n], x[n:]
        logits = theta[:, None] - b
        penalty = np.sum(theta**2) / 18 + np.sum(b**2) / 18
        return penalty - np.sum(valid * (filled * logits - np.logaddexp(0, logits)))

    def slope(x):
        theta, b = x[:n], x[n:]
        beyond = np.where(valid, filled - 1 / (1 + np.exp(b - theta[:, None])), 0.0)
        return np.r_[theta / 9 - beyond.sum(axis=1), b / 9 + beyond.sum(axis=0)]

    found = minimize(
        loss, np.zeros(n + m), jac=slope, method="BFGS", options={"gtol": 1e-10, "maxiter": 5000}
    )
    b = found.x[n:]
    return b - b.mean()


def ability_of(row, difficulties):
    from scipy.optimize import brentq

    valid = ~np.isnan(row)

    def slope(theta):
        return np.sum(row[valid] - 1 / (1 + np.exp(difficulties[valid] - theta))) - theta / 9

    return brentq(slope, -60, 60, xtol=1e-13)


def completed_mean(row, observed, tasks, difficulties):
    theta = ability_of(np.where(observed, row, NAN), difficulties)
    terms = [row[j] if observed[j] else 1 / (1 + math.exp(difficulties[j] - theta)) for j in tasks]
    return math.fsum(terms) / len(tasks)


# --------------------------------------------------------------------------------------------- by definition


def test_completion_and_its_error_word_by_word():
    outcomes = rasch_draws(1, 13, 15)
    tasks = np.array([1, 3, 4, 6, 7, 9, 10, 13])
    newcomer = rasch_draws(2, 1, 15)[0]
    newcomer[[3, 9, 13, 14]] = NAN
    observed = ~np.isnan(newcomer)
    completed, error = complete(reference(outcomes), newcomer, tasks)
    assert np.array_equal(completed[observed[tasks]], newcomer[tasks[observed[tasks]]])
    assert completed.mean() == pytest.approx(
        completed_mean(newcomer, observed, tasks, maximised(outcomes)), abs=1e-7
    )
    errors = [
        completed_mean(outcomes[c], observed, tasks, maximised(np.delete(outcomes, c, axis=0)))
        - outcomes[c, tasks].mean()
        for c in range(13)
    ]
    best = sorted(range(13), key=lambda c: (-round(outcomes[c, tasks].mean(), 9), c))[:4]
    assert error.v_link == pytest.approx(np.mean(np.square(errors)), abs=1e-8)
    assert error.top_quartile_error == pytest.approx(np.mean([errors[c] for c in best]), abs=1e-7)
    assert (error.degrees, error.n_completed) == (12, 3)


def test_all_tasks_alike_are_completed_at_the_ability():
    # Every complete agent passes half of eight equally hard tasks: b̂ = 0. The newcomer passes 3 of 4.
    # θ̂ solves 3 − 4σ(θ) = θ/9, and r̂ = (3 + 4σ(θ̂))/8.
    half = np.array([[1.0, 0.0] * 4, [0.0, 1.0] * 4] * 5)
    newcomer = np.array([1.0, 1, 1, 0, NAN, NAN, NAN, NAN])
    theta = ability_of(newcomer[:4], np.zeros(4))
    completed, _ = complete(reference(half), newcomer, np.arange(8))
    assert completed.mean() == pytest.approx((3 + 4 / (1 + math.exp(-theta))) / 8, abs=1e-9)


def test_agents_with_missing_cells_count_on_the_tasks_they_have():
    outcomes = rasch_draws(3, 12, 40)
    outcomes[0, 5] = outcomes[1, 8] = NAN
    tasks = np.arange(5, 25)
    observed = np.ones(40, dtype=bool)
    observed[[6, 7, 8]] = False
    found = completion(reference(outcomes), observed, tasks)
    errors = []
    for c in range(12):
        own = tasks[~np.isnan(outcomes[c, tasks])]
        seen = observed & ~np.isnan(outcomes[c])
        difficulties = maximised(np.delete(outcomes, c, axis=0))
        errors.append(completed_mean(outcomes[c], seen, own, difficulties) - outcomes[c, own].mean())
    assert found.v_link == pytest.approx(np.mean(np.square(errors)), abs=1e-8)


@REPEATABLE
@given(st.integers(0, 2**32 - 1), st.integers(10, 16), st.integers(4, 20))
def test_properties_of_a_link(seed, n, m):
    outcomes = rasch_draws(seed, n, m)
    rng = np.random.default_rng(seed)
    tasks = rng.choice(m, rng.integers(2, m + 1), replace=False)
    newcomer = rasch_draws(seed + 1, 1, m)[0]
    newcomer[rng.choice(tasks, tasks.size // 2, replace=False)] = NAN
    completed, error = complete(reference(outcomes), newcomer, tasks)
    # Between all missing tasks failed and all passed.
    known, n_missing = np.nansum(newcomer[tasks]), np.isnan(newcomer[tasks]).sum()
    assert known / tasks.size <= completed.mean() <= (known + n_missing) / tasks.size
    assert error.v_link >= 0
    rows, columns = rng.permutation(n), rng.permutation(m)
    place = np.argsort(columns)
    turned, again = complete(reference(outcomes[rows][:, columns]), newcomer[columns], place[tasks])
    assert turned.mean() == pytest.approx(completed.mean(), abs=1e-9)
    assert again.v_link == pytest.approx(error.v_link, abs=1e-9)


def test_nothing_missing_has_no_error():
    found = completion(reference(rasch_draws(4, 12, 10)), np.ones(10, dtype=bool), np.arange(3, 9))
    assert (found.v_link, found.top_quartile_error, found.n_completed) == (0.0, 0.0, 0)


def test_a_complete_agent_leaves_its_own_error_alone():
    # No leak: what c itself did on the tasks cut away changes r_c, never its completion.
    outcomes = rasch_draws(5, 12, 14)
    observed = np.arange(14) % 3 != 0
    changed = outcomes.copy()
    changed[2, ~observed] = 1 - changed[2, ~observed]
    one, two = reference(outcomes), reference(changed)
    assert np.array_equal(one.difficulties_without[2], two.difficulties_without[2])
    assert not np.array_equal(one.difficulties_without[3], two.difficulties_without[3])


def test_above_a_hundred_complete_agents_tenths_are_left_out():
    outcomes = rasch_draws(6, 103, 12)
    agents = reference(outcomes)
    without = [maximised(outcomes[np.arange(103) % 10 != c % 10]) for c in (0, 17)]
    assert agents.difficulties_without[[0, 17]] == pytest.approx(np.array(without), abs=1e-6)
    whole = reference(outcomes[:100])
    assert not np.array_equal(whole.difficulties_without[0], whole.difficulties_without[10])


def test_abilities_of_all_complete_agents_are_those_of_each():
    outcomes = rasch_draws(13, 14, 30)
    outcomes[2, 4:9] = NAN
    agents, observed = reference(outcomes), np.arange(30) > 11
    found = agents.abilities_from(observed)
    for c in range(14):
        row = np.where(observed, outcomes[c], NAN)
        assert found[c] == pytest.approx(ability_of(row, agents.difficulties_without[c]), abs=1e-9)


def test_tasks_nobody_ran_and_missing_tasks_outside_the_subset_do_not_matter():
    outcomes = rasch_draws(8, 12, 20)
    row, tasks = np.where(np.arange(20) < 2, NAN, 1.0), np.arange(10)
    base, error = complete(reference(outcomes), row, tasks)
    wider = np.column_stack([outcomes, np.full(12, NAN)])
    again, of_wider = complete(reference(wider), np.append(row, 1.0), tasks)
    assert again.mean() == pytest.approx(base.mean(), abs=1e-12)
    assert of_wider.v_link == pytest.approx(error.v_link, abs=1e-12)


def test_a_task_that_one_agent_alone_ran_is_left_out_of_its_own_error():
    outcomes = rasch_draws(9, 12, 20)
    outcomes[1:, 0] = NAN
    observed = np.arange(20) > 2
    found = completion(reference(outcomes), observed, np.arange(8))
    assert math.isfinite(found.v_link)
    assert found.degrees == 11


# ---------------------------------------------------------------------------------------- incumbent shift


def test_shift_by_hand():
    # S is the tasks that at least half of the agents pass: {0, 1} of the outcomes
    # [[1, 1, 0], [1, 0, 1], [0, 1, 0], [0, 0, 0]], so r = 1, ½, ½, 0. Without a0: rates ⅓, ⅓, ⅓, no task.
    # Without a1: ⅓, ⅔, 0: {1}, r = 0. Without a2: ⅔, ⅓, ⅓: {0}, r = 0. Without a3: ⅔, ⅔, ⅓: {0, 1}, r = 0.
    found = incumbent_shift(np.array([1, 0.5, 0.5, 0]), np.array([NAN, 0, 0, 0]))
    assert math.isnan(found.shifts[0])
    assert found.shifts[1:].tolist() == [0.5, 0.5, 0.0]
    assert found.n_skipped == 1
    assert found.mean == pytest.approx(1 / 3)
    assert found.sd == pytest.approx(math.sqrt(1 / 12))
    assert (found.median_gap, found.warns) == (0.5, True)


def test_a_subset_that_nobody_moves_has_no_shift():
    means = rasch_draws(11, 10, 9).mean(axis=1)
    found = incumbent_shift(means, means)
    assert (found.mean, found.sd, found.n_skipped, found.warns) == (0.0, 0.0, 0, False)
    equal = incumbent_shift(np.full(6, 0.5), np.full(6, 0.5))
    assert (equal.mean, equal.median_gap, equal.warns) == (0.0, None, None)


def test_no_shift_of_fewer_than_two_agents():
    with pytest.raises(ShiftUnknown, match="only 0 of 5 agents"):
        incumbent_shift(np.full(5, 0.5), np.full(5, NAN))


# --------------------------------------------------------------------------------------------- real boards


def ridge_errors(outcomes, tasks, observed):
    """r_c predicted by Ridge(α = 1) from the tasks observed, leave-one-agent-out, by scikit-learn."""
    from sklearn.linear_model import Ridge

    filled = np.where(np.isnan(outcomes), np.nanmean(outcomes, axis=0), outcomes)
    means, errors = filled[:, tasks].mean(axis=1), []
    for c in range(len(outcomes)):
        others = np.arange(len(outcomes)) != c
        model = Ridge(alpha=1.0).fit(filled[others][:, observed], means[others])
        errors.append(model.predict(filled[c : c + 1, observed])[0] - means[c])
    return np.array(errors)


def band(outcomes):
    rates = np.nanmean(outcomes, axis=0)
    return np.flatnonzero((rates >= 0.3 - 1e-9) & (rates <= 0.7 + 1e-9))


def by_date(rows, outcomes):
    """Complete agents in order of their first date, names inside a day."""
    days = {}
    for row in rows:
        days[row["agent"]] = min(days.get(row["agent"], "9999"), row["submitted_at"])
    complete = np.mean(~np.isnan(outcomes), axis=1) >= 0.95
    agents = sorted(days)
    return [i for i in sorted(range(len(agents)), key=lambda i: (days[agents[i]], i)) if complete[i]]


@pytest.mark.parametrize("name", [*BOARDS, "terminal_bench_core_011", "swebench_verified_2023_2025"])
def test_linking_across_a_reselection_on_real_boards(real_rows, name):
    # Agents that ran the subset of the older half of the board alone, linked to the subset of today.
    rows = real_rows(name)
    outcomes = matrix_of(rows)
    outcomes = outcomes[by_date(rows, outcomes)]
    tasks, n = band(outcomes), len(outcomes)
    observed = np.isin(np.arange(outcomes.shape[1]), band(outcomes[: n // 2]))
    found, ridge = completion(reference(outcomes), observed, tasks), ridge_errors(outcomes, tasks, observed)
    best = np.argsort(-np.nanmean(outcomes[:, tasks], axis=1), kind="stable")[: -(-n // 4)]
    points, of_ridge = 100 * math.sqrt(found.v_link), 100 * math.sqrt(np.mean(ridge**2))
    top, top_of_ridge = 100 * found.top_quartile_error, 100 * ridge[best].mean()
    print(
        f"{name}: {observed[tasks].mean():.0%} of {tasks.size} observed; completion errs by {points:.1f} "
        f"points (best {top:+.1f}), Ridge by {of_ridge:.1f} (best {top_of_ridge:+.1f})"
    )
    # Figures known beforehand, from another program: completion 3.5 to 5.8 points, Ridge 5 to 9.
    assert 3.45 <= points <= 5.85
    assert 4.5 <= of_ridge < 9.5
    assert points < of_ridge
    assert top_of_ridge < top


# ------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("outcomes", "tasks", "refusal", "message"),
    [
        (np.zeros((12, 3)), [], NoTasks, "no task in the subset"),
        (np.zeros((12, 3)), [3], SubsetRefused, "not positions of 3 active tasks"),
        (np.zeros((12, 3)), [1, 1], SubsetRefused, "a subset of 2 tasks"),
        (np.full((12, 3), NAN), [1], SubsetRefused, "task 1 of the subset: no complete agent has run it"),
    ],
)
def test_tasks_that_cannot_be_completed_are_refused(outcomes, tasks, refusal, message):
    with pytest.raises(refusal, match=message):
        complete(reference(outcomes), np.zeros(3), np.array(tasks, dtype=int))
    assert issubclass(refusal, SelectionError)


def test_an_agent_that_does_not_fit_is_refused():
    agents, tasks = reference(rasch_draws(1, 12, 6)), np.arange(4)
    with pytest.raises(ShapeMismatch, match=r"shape \(3,\)"):
        reference(np.zeros(3))
    with pytest.raises(ShapeMismatch, match="for 6 tasks"):
        complete(agents, np.zeros(5), tasks)
    with pytest.raises(OutcomeRefused, match=r"task 2: 1\.5"):
        complete(agents, np.array([0, 0, 1.5, 0, 0, 0]), tasks)
    with pytest.raises(ShapeMismatch, match="for 6 tasks"):
        completion(agents, np.ones(5, dtype=bool), tasks)
    with pytest.raises(LinkUnknown, match="0 complete agents"):
        completion(agents, np.zeros(6, dtype=bool), tasks)
