"""Coverage of the intervals that decide, by simulation; every test prints what it measured."""

import numpy as np
import pytest

from analytics.differences.estimates import compare, compare_given
from analytics.differences.finite_errors import Measured, TrialNoise, trial_noise
from analytics.differences.ranks import rank_intervals, resample
from analytics.differences.rows import Row

pytestmark = pytest.mark.slow

N_PAIRS = 1_500
N_BOARDS = 250
N_DRAWS = 999
NOMINAL = 0.95
DIFFERENCE = 0.02
CELLS = ("means", "trial_variances", "n_trials")


def tolerance(n):
    """Three binomial standard errors at 95%."""
    return 3 * np.sqrt(NOMINAL * (1 - NOMINAL) / n)


def rates(rng, n_agents, n_tasks):
    """True pass rates whose means over all tasks are .6 for agent 0 and .58 for the others."""
    first = rng.beta(1.2, 0.8, n_tasks)
    rest = 0.8 * first + 0.2 * rng.random((n_agents - 1, n_tasks))
    return np.vstack([first, rest])


def tried(rng, p, n_trials):
    """Each agent's row after trials with pass rates p."""
    trials = rng.random((*p.shape, n_trials)) < p[..., None]
    counts = np.full(p.shape, float(n_trials))
    variances = trials.var(axis=-1, ddof=1) if n_trials > 1 else np.full(p.shape, np.nan)
    return [Row(m, s, c) for m, s, c in zip(trials.mean(axis=-1), variances, counts, strict=True)]


def given(a, b, noise):
    """Compare two agents on given tasks."""
    sides = (Measured(name, row.means, row) for name, row in (("a", a), ("b", b)))
    return compare_given(*sides, "full", noise, a.means.size)


def noise_of(rows):
    return trial_noise(*(np.stack([getattr(r, f) for r in rows]) for f in CELLS))


def covered(estimate, truth):
    return estimate.interval.lower <= truth <= estimate.interval.upper


@pytest.mark.parametrize("n_trials", [1, 5])
@pytest.mark.parametrize("n_tasks", [30, 100, 500])
def test_paired_intervals(n_tasks, n_trials):
    rng = np.random.default_rng((n_tasks, n_trials))
    hits, methods = np.zeros((N_PAIRS, 2)), set()
    for i in range(N_PAIRS):
        p = rates(rng, 2, n_tasks)
        a, b = tried(rng, p, n_trials)
        finite = given(a, b, noise_of([a, b]))
        methods.add(finite.method)
        hits[i] = covered(compare(a, b), DIFFERENCE), covered(finite, (p[0] - p[1]).mean())
    domain, finite = hits.mean(axis=0)
    (method,) = methods
    print(f"\nN = {n_tasks}, {n_trials} trials: domain {domain:.3f}, finite {finite:.3f} ({method})")
    assert domain == pytest.approx(NOMINAL, abs=tolerance(N_PAIRS))
    assert finite > NOMINAL - tolerance(N_PAIRS)
    assert (method == "neyman") == (n_trials == 1)
    assert n_trials == 1 or finite == pytest.approx(NOMINAL, abs=tolerance(N_PAIRS))


@pytest.mark.parametrize("n_tasks", [30, 100, 500])
def test_the_variance_function_of_other_agents(n_tasks):
    rng = np.random.default_rng(n_tasks)
    hits, ratios = np.zeros(N_PAIRS), []
    for i in range(N_PAIRS):
        p = rates(rng, 5, n_tasks)
        others = tried(rng, p[2:], 5)
        a, b = tried(rng, p[:2], 1)
        estimate = given(a, b, noise_of(others))
        hits[i] = covered(estimate, (p[0] - p[1]).mean())
        ratios.append(estimate.interval.se / given(a, b, TrialNoise()).interval.se)
    ratio = np.median(ratios)
    print(f"\nN = {n_tasks}: variance function {hits.mean():.3f}, its SE over neyman's {ratio:.2f}")
    assert hits.mean() == pytest.approx(NOMINAL, abs=tolerance(N_PAIRS))


def board(rng, n_agents, n_tasks, spread):
    """Outcomes of agents in ties of three, the last two with equal outcomes, and their abilities."""
    ability = np.repeat(np.linspace(-1.2, 1.2, -(-n_agents // 3)), 3)[:n_agents]
    ability[-1] = ability[-2]
    logit = ability[:, None] - rng.normal(0, 1.5, n_tasks) + rng.normal(0, spread, (n_agents, n_tasks))
    outcomes = (rng.random((n_agents, n_tasks)) < 1 / (1 + np.exp(-logit))).astype(float)
    outcomes[-1] = outcomes[-2]
    return outcomes, ability


@pytest.mark.parametrize("spread", [0.0, 1.5])
@pytest.mark.parametrize(("n_agents", "n_tasks"), [(10, 15), (38, 15), (26, 28), (32, 82)])
def test_rank_intervals_hold_for_all_agents_at_once(n_agents, n_tasks, spread):
    # Without interaction (spread 0) agents tied in ability are tied on every task: both targets at once.
    rng = np.random.default_rng((n_agents, n_tasks, int(10 * spread)))
    names = [f"a{i:02d}" for i in range(n_agents)]
    right, widths = np.zeros(N_BOARDS), np.zeros(N_BOARDS)
    for i in range(N_BOARDS):
        outcomes, ability = board(rng, n_agents, n_tasks, spread)
        result = rank_intervals(resample(outcomes, names, seed=i, n_draws=N_DRAWS))
        right[i] = not (result.beats & (ability[:, None] <= ability)).any()
        widths[i] = np.mean(result.upper - result.lower)
    print(
        f"\n({n_agents}, {n_tasks}), interaction SD {spread}: {right.mean():.3f} of {N_BOARDS} boards "
        f"without a wrong order; mean width {widths.mean():.1f} ranks"
    )
    assert right.mean() > NOMINAL - tolerance(N_BOARDS)


@pytest.mark.parametrize(("n_agents", "n_tasks"), [(2, 5), (2, 8), (2, 15), (3, 10), (4, 6)])
def test_few_agents_on_few_tasks(n_agents, n_tasks):
    # All agents alike, tasks that agents pass or fail independently of each other: the hardest case.
    rng = np.random.default_rng((n_agents, n_tasks))
    names = [f"a{i}" for i in range(n_agents)]
    outcomes = (rng.random((2 * N_BOARDS, n_agents, n_tasks)) < 0.5).astype(float)
    result = [rank_intervals(resample(x, names, seed=i, n_draws=N_DRAWS)) for i, x in enumerate(outcomes)]
    right = np.mean([not ranks.beats.any() for ranks in result])
    print(f"\n({n_agents}, {n_tasks}): {right:.3f} of {2 * N_BOARDS} boards without a wrong order")
    assert right > NOMINAL - tolerance(2 * N_BOARDS)
