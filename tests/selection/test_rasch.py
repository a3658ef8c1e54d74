import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, brentq, minimize, minimize_scalar

from selection import rasch
from selection.errors import SelectionError
from selection.rasch import RaschUnfinished, ability, fit, information
from tests.refusals import refused

REPEATABLE = settings(derandomize=True, deadline=None)
NAN = math.nan
SIZES = st.tuples(st.integers(0, 2**32 - 1), st.integers(1, 14), st.integers(1, 20))


def drawn(seed, n, m, share_missing=0.0):
    """Outcomes in fifths; every agent and task keeps a valid cell."""
    rng = np.random.default_rng(seed)
    outcomes = rng.integers(0, 6, (n, m)) / 5
    missing = rng.random((n, m)) < share_missing
    missing[0], missing[:, 0] = False, False
    outcomes[missing] = NAN
    return outcomes


def passed(seed, n, m):
    rng = np.random.default_rng(seed)
    logits = 1.5 * rng.standard_normal((n, 1)) - 2.0 * rng.standard_normal(m)
    return (rng.random((n, m)) < 1 / (1 + np.exp(-logits))).astype(float)


def log_likelihood(outcomes, abilities, difficulties):
    """ℓ by its definition, cell by cell."""
    total = -sum(t * t for t in abilities) / 18 - sum(b * b for b in difficulties) / 18
    for i, j in np.argwhere(~np.isnan(outcomes)):
        p = 1 / (1 + math.exp(difficulties[j] - abilities[i]))
        total += outcomes[i, j] * math.log(p) + (1 - outcomes[i, j]) * math.log(1 - p)
    return total


def derivatives(outcomes, abilities, difficulties):
    """Of ℓ, by θ then by b, in the symbols of the theory."""
    beyond = np.nan_to_num(outcomes - 1 / (1 + np.exp(difficulties - abilities[:, None])))
    return np.concatenate([beyond.sum(1) - abilities / 9, -beyond.sum(0) - difficulties / 9])


def unshifted(fitted):
    """θ and b before Σb = 0: at the maximum the derivatives of all θ and all b add up to −(Σθ + Σb)/9 = 0."""
    n_both = fitted.abilities.size + fitted.difficulties.size
    shift = -fitted.abilities.sum() / n_both
    return fitted.abilities + shift, fitted.difficulties + shift


def test_outcomes_of_a_half_tell_nothing_apart(monkeypatch):
    monkeypatch.setattr(rasch, "MAX_ITERATIONS", 1)  # where it begins is where it ends
    fitted = fit(np.full((3, 4), 0.5))
    assert fitted.abilities.tolist() == [0.0] * 3
    assert fitted.difficulties.tolist() == [0.0] * 4
    assert fitted.largest_derivative == 0.0


def test_two_agents_and_two_tasks():
    # Both agents alike and the tasks mirror images: θ = 0, b = (−d, d), 2(x − σ(d)) = d/9.
    # d = log 3: σ = ¾, x = ¾ + log 3/18.
    x = 0.75 + math.log(3) / 18
    fitted = fit(np.array([[x, 1 - x], [x, 1 - x]]))
    assert fitted.abilities == pytest.approx([0.0, 0.0], abs=1e-11)
    assert fitted.difficulties == pytest.approx([-math.log(3), math.log(3)], abs=1e-11)


def test_one_task_passed_by_all_and_one_by_none():
    # x = 1 above: d(1 + e^d) = 18.
    d = brentq(lambda d: d * (1 + math.exp(d)) - 18, 1, 3, xtol=1e-14)
    fitted = fit(np.array([[1.0, 0.0], [1.0, 0.0]]))
    assert fitted.difficulties == pytest.approx([-d, d], abs=1e-10)
    assert fitted.abilities == pytest.approx([0.0, 0.0], abs=1e-10)


def test_one_agent_that_passes_one_task():
    # θ = −b = t before the shift, 1 − σ(2t) = t/9; after it b = 0 and θ = 2t.
    t = brentq(lambda t: 9 / (1 + math.exp(2 * t)) - t, 0, 3, xtol=1e-14)
    fitted = fit(np.array([[1.0]]))
    assert fitted.difficulties.tolist() == [0.0]
    assert fitted.abilities == pytest.approx([2 * t], abs=1e-10)


def test_the_ability_behind_one_outcome():
    # x − σ(θ − b) = θ/9; θ = log 3, b = 0: x = ¾ + log 3/9.
    assert ability(np.array([0.75 + math.log(3) / 9]), np.zeros(1)) == pytest.approx(math.log(3), abs=1e-11)
    assert ability(np.array([0.5, NAN, 0.5]), np.array([-1.0, 7.0, 1.0])) == pytest.approx(0.0, abs=1e-11)


def test_information_is_a_quarter_where_ability_meets_difficulty():
    # At a distance of log 3, P = ¾ or ¼: 3/16.
    told = information(np.array([0.0, 0.0, math.log(3)]), np.array([0.0, math.log(3)]))
    assert told == pytest.approx([1 / 4 + 1 / 4 + 3 / 16, 3 / 16 + 3 / 16 + 1 / 4], abs=1e-15)
    assert information(np.empty(0), np.zeros(2)).tolist() == [0.0, 0.0]


def test_the_derivatives_are_those_of_the_penalised_log_likelihood():
    outcomes = drawn(1, 5, 7, share_missing=0.2)
    valid, n = ~np.isnan(outcomes), 5
    at = np.random.default_rng(2).standard_normal(12)
    numeric = approx_fprime(at, lambda v: log_likelihood(outcomes, v[:n], v[n:]), 1e-6)
    passed = np.where(valid, outcomes, 0.0)
    up, harder, curvature = rasch._derivatives(
        passed, valid.astype(float), np.ones(valid.shape[1]), at[:n], at[n:]
    )
    assert np.concatenate([up, harder]) == pytest.approx(numeric, abs=1e-5)
    assert derivatives(outcomes, at[:n], at[n:]) == pytest.approx(numeric, abs=1e-5)
    steps = approx_fprime(at, lambda v: derivatives(outcomes, v[:n], v[n:]), 1e-7)
    assert curvature == pytest.approx(np.where(valid, steps[:n, n:], 0.0), abs=1e-6)


@REPEATABLE
@given(SIZES)
def test_at_the_end_no_derivative_is_above_the_limit_and_the_difficulties_add_up_to_0(sizes):
    outcomes = drawn(*sizes, share_missing=0.1)
    fitted = fit(outcomes)
    assert fitted.largest_derivative < 1e-11
    assert abs(derivatives(outcomes, *unshifted(fitted))).max() < 2e-11
    assert fitted.difficulties.sum() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("n", "m"), [(57, 500), (300, 40), (400, 800)])
def test_large_boards_end_below_the_limit_too(n, m, monkeypatch):
    monkeypatch.setattr(rasch, "MAX_ITERATIONS", 30)  # in so few steps
    outcomes = passed(4, n, m)
    fitted = fit(outcomes)
    assert fitted.largest_derivative < 1e-11
    assert abs(derivatives(outcomes, *unshifted(fitted))).max() < 3e-11


def test_separated_outcomes_have_finite_abilities():
    # A Guttman scale of 40 steps, whose unpenalised maximum lies at infinity.
    fitted = fit(np.tri(40, 39, -1))
    assert fitted.largest_derivative < 1e-11
    assert (np.diff(fitted.abilities) > 0).all()
    assert (np.diff(fitted.difficulties) > 0).all()
    assert abs(fitted.abilities).max() < 20


@REPEATABLE
@given(SIZES)
def test_failure_and_success_exchanged_turn_every_sign(sizes):
    outcomes = drawn(*sizes, share_missing=0.1)
    fitted, turned = fit(outcomes), fit(1 - outcomes)
    assert turned.abilities == pytest.approx(-fitted.abilities, abs=1e-9)
    assert turned.difficulties == pytest.approx(-fitted.difficulties, abs=1e-9)


@REPEATABLE
@given(SIZES)
def test_tasks_are_agents_that_fail_where_agents_pass(sizes):
    outcomes = drawn(*sizes, share_missing=0.1)
    (abilities, difficulties) = unshifted(fit(outcomes))
    (as_abilities, as_difficulties) = unshifted(fit(1 - outcomes.T))
    assert as_abilities == pytest.approx(difficulties, abs=1e-9)
    assert as_difficulties == pytest.approx(abilities, abs=1e-9)


@REPEATABLE
@given(SIZES, st.randoms(use_true_random=False))
def test_the_order_of_agents_and_tasks_does_not_matter(sizes, random):
    outcomes = drawn(*sizes, share_missing=0.1)
    n, m = outcomes.shape
    rows, columns = random.sample(range(n), n), random.sample(range(m), m)
    fitted, turned = fit(outcomes), fit(outcomes[np.ix_(rows, columns)])
    assert turned.abilities == pytest.approx(fitted.abilities[rows], abs=1e-9)
    assert turned.difficulties == pytest.approx(fitted.difficulties[columns], abs=1e-9)


def test_without_missing_cells_the_means_order_agents_and_tasks():
    # With all cells valid ∂ℓ/∂θ_i is the agent's total less a function that rises with θ_i alone.
    outcomes = passed(5, 30, 40)
    fitted = fit(outcomes)
    ties, order = np.unique(outcomes.sum(axis=1), return_inverse=True)
    means = np.array([fitted.abilities[order == t].mean() for t in range(ties.size)])
    assert fitted.abilities == pytest.approx(means[order], abs=1e-10)
    assert (np.diff(means) > 0).all()


@pytest.mark.parametrize(
    ("n", "m", "share_missing"), [(2, 2, 0.0), (6, 11, 0.0), (12, 5, 0.2), (15, 25, 0.1)]
)
def test_equal_to_a_general_optimiser(n, m, share_missing):
    outcomes = drawn(7, n, m, share_missing)

    def loss(v):
        return -log_likelihood(outcomes, v[:n], v[n:])

    def slope(v):
        return -derivatives(outcomes, v[:n], v[n:])

    found = minimize(loss, np.zeros(n + m), jac=slope, method="BFGS", options={"gtol": 1e-8, "maxiter": 5000})
    shift = found.x[n:].mean()
    # ℓ curves by at least 1/9 everywhere: |v − maximum| ≤ 9·|slope at v|.
    reach = 9 * np.linalg.norm(slope(found.x)) + 1e-9
    assert reach < 1e-5
    fitted = fit(outcomes)
    assert fitted.abilities == pytest.approx(found.x[:n] - shift, abs=2 * reach)
    assert fitted.difficulties == pytest.approx(found.x[n:] - shift, abs=2 * reach)


@pytest.mark.parametrize(("n", "m"), [(4, 6), (12, 30), (30, 12)])
def test_equal_to_the_penalised_logistic_regression_of_scikit_learn(n, m):
    # One column for each agent and, negative, for each task; ½|w|² + C·loss with C = 9 is 9 times −ℓ.
    # A fractional outcome is a success of weight x and a failure of weight 1 − x.
    from sklearn.linear_model import LogisticRegression

    outcomes = drawn(8, n, m, share_missing=0.1)
    cells = np.argwhere(~np.isnan(outcomes))
    design = np.zeros((len(cells), n + m))
    design[np.arange(len(cells)), cells[:, 0]] = 1
    design[np.arange(len(cells)), n + cells[:, 1]] = -1
    weights = outcomes[tuple(cells.T)]
    model = LogisticRegression(C=9.0, fit_intercept=False, solver="newton-cholesky", tol=1e-13, max_iter=500)
    model.fit(
        np.vstack([design, design]),
        np.repeat([1, 0], len(cells)),
        sample_weight=np.concatenate([weights, 1 - weights]),
    )
    abilities, difficulties = unshifted(fit(outcomes))
    assert np.concatenate([abilities, difficulties]) == pytest.approx(model.coef_[0], abs=1e-7)


@pytest.mark.parametrize("name", ["hal_corebench_hard", "hal_taubench_airline"])
def test_equal_to_steps_that_alternate_on_real_boards(real_rows, name):
    # Newton steps in each θ given b, then in each b given θ, until no derivative exceeds 1e-11.
    cells = {}
    for row in real_rows(name):
        cells.setdefault((row["agent"], row["task"]), []).append(float(row["outcome"]))
    agents, tasks = sorted({a for a, _ in cells}), sorted({t for _, t in cells})
    outcomes = np.array([[np.mean(cells[a, t]) if (a, t) in cells else NAN for t in tasks] for a in agents])
    valid, n = ~np.isnan(outcomes), len(agents)
    abilities, difficulties = np.zeros(n), np.zeros(len(tasks))
    for _ in range(20_000):
        for axis in (1, 0):
            p = 1 / (1 + np.exp(difficulties - abilities[:, None]))
            information = (valid * p * (1 - p)).sum(axis) + 1 / 9
            slopes = derivatives(outcomes, abilities, difficulties)
            if axis:
                abilities = abilities + slopes[:n] / information
            else:
                difficulties = difficulties + slopes[n:] / information
        if abs(derivatives(outcomes, abilities, difficulties)).max() < 1e-11:
            break
    else:
        pytest.fail("the alternating steps have not ended")
    fitted = fit(outcomes)
    assert fitted.abilities == pytest.approx(abilities - difficulties.mean(), abs=1e-9)
    assert fitted.difficulties == pytest.approx(difficulties - difficulties.mean(), abs=1e-9)


@REPEATABLE
@given(SIZES)
def test_an_ability_is_the_maximum_in_one_variable(sizes):
    outcomes = drawn(*sizes, share_missing=0.1)
    rng = np.random.default_rng(sizes[0])
    difficulties = 2 * rng.standard_normal(outcomes.shape[1])
    row = outcomes[-1]
    found = minimize_scalar(
        lambda t: -log_likelihood(row[None, :], [t], difficulties), bounds=(-30, 30), options={"xatol": 1e-9}
    )
    theirs, ours = found.x, ability(row, difficulties)
    assert ours == pytest.approx(theirs, abs=1e-5)
    assert abs(np.nansum(row - 1 / (1 + np.exp(difficulties - ours))) - ours / 9) < 2e-11


@pytest.mark.parametrize(
    ("outcomes", "refusal", "message"),
    [
        ([0.0, 1.0], "shape", r"shape \(2,\)"),
        (np.empty((3, 0)), "no_tasks", "no task"),
        (np.empty((0, 3)), "agent_unobserved", "there is no agent"),
        ([[0.0, 1.0], [NAN, NAN]], "agent_unobserved", "agent 1 has no valid cell"),
        ([[0.0, NAN], [1.0, NAN]], "task_unobserved", "task 1: no agent has a valid cell"),
        ([[0.0, 1.0], [0.5, 1.5]], "outcome_range", "agent 1, task 1: 1.5 is not from 0 to 1"),
        ([[0.0, math.inf]], "outcome_range", "inf is not from 0 to 1"),
    ],
)
def test_what_cannot_be_fitted_is_refused_by_name(outcomes, refusal, message):
    with refused(SelectionError, refusal, match=message):
        fit(np.array(outcomes))


@pytest.mark.parametrize(
    ("outcomes", "difficulties", "refusal", "message"),
    [
        ([0.0, 1.0], [0.0], "shape", r"outcomes \(2,\) for difficulties \(1,\)"),
        ([NAN, NAN], [0.0, 1.0], "agent_unobserved", "agent 0 has no valid cell"),
        ([0.0, 1.0], [0.0, NAN], "not_finite", "entry 1 is nan"),
        ([0.0, 2.0], [0.0, 0.0], "outcome_range", "2.0 is not from 0 to 1"),
        ([], [], "no_tasks", "no task"),
        ([[0.0]], [[0.0]], "shape", r"logits have shape \(1, 1\)"),
    ],
)
def test_an_ability_that_cannot_be_told_is_refused_by_name(outcomes, difficulties, refusal, message):
    with refused(SelectionError, refusal, match=message):
        ability(np.array(outcomes), np.array(difficulties))


def test_a_fit_that_does_not_end_says_what_is_left(monkeypatch):
    monkeypatch.setattr(rasch, "MAX_ITERATIONS", 1)
    with pytest.raises(RaschUnfinished, match="is left after 1 steps"):
        fit(passed(3, 10, 12))
    with pytest.raises(RaschUnfinished, match="is left after 1 steps"):
        ability(np.ones(3), np.zeros(3))


def test_the_arrays_of_a_fit_refuse_to_be_written_to():
    fitted = fit(passed(3, 4, 5))
    assert not fitted.abilities.flags.writeable
    assert not fitted.difficulties.flags.writeable


def test_a_step_that_nothing_decides_is_refused():
    with refused(SelectionError, "model_unfinished", match="tell no ability from another"):
        rasch.solver(lambda up: 0.0 * up, np.ones(3))(np.ones(3))
