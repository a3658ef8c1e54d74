"""Coverage of the four sources by simulation: agents, and scaffolds, that are exchangeable.

Abilities and difficulties are normal, outcomes Bernoulli by the Rasch model, and every scaffold shifts every
task. In each replicate one new agent runs a subset chosen on n others, and later all tasks: the interval
holds if it holds that full score. Folds are made here, by hand, each choosing its subset anew.
"""

import math

import numpy as np
import pytest

from selection import full_scores
from selection.bands import pass_rates, tasks_in_band
from selection.intervals import NoInterval, calibrate
from selection.ridge import fit, predict
from tests.selection.records import interval, unnamed

N_TASKS, N_REPLICATES, N_SAMPLED = 60, 1000, 19
SIZES = (15, 25, 60)
N_SCAFFOLDS = {15: 5, 25: 5, 60: 12}


def drawn(rng, scaffold, difficulties, shift):
    """Outcomes of agents; those of one scaffold share what it does to each task."""
    n_scaffolds = scaffold.max() + 1
    of_scaffold = shift * rng.normal(size=(n_scaffolds, difficulties.size))
    logits = rng.normal(size=(scaffold.size, 1)) - difficulties + of_scaffold[scaffold]
    return (rng.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(float)


def chosen(outcomes):
    return tasks_in_band(pass_rates(outcomes), len(outcomes))


def residuals_of(outcomes, held_out):
    """Residuals of each held-out set, subset and Ridge from the others alone; NaN without a subset."""
    residuals, scores = np.full(len(outcomes), np.nan), outcomes.mean(axis=1)
    for rows in held_out:
        others = np.setdiff1d(np.arange(len(outcomes)), rows)
        tasks = chosen(outcomes[others])
        if tasks.size:
            calibration = fit(outcomes[others][:, tasks], scores[others])
            residuals[rows] = scores[rows] - predict(calibration, outcomes[rows][:, tasks])
    return residuals


def one_replicate(source, n, rng):
    """The new agent's interval, or reason, and its full score."""
    groups = np.arange(n) % N_SCAFFOLDS.get(n, 1) if source == "new scaffold" else np.arange(n)
    n_later = N_SAMPLED if source == "post-selection" else 0
    scaffold = np.append(groups, groups.max() + 1 + np.arange(n_later + 1))
    outcomes = drawn(rng, scaffold, rng.normal(0, 1.5, N_TASKS), 0.5)
    training, later, new = outcomes[:n], outcomes[n:-1], outcomes[-1]
    tasks, scores = chosen(training), training.mean(axis=1)
    if not tasks.size:
        return NoInterval("no subset", None), new.mean()
    given = {"residuals": residuals_of(training, np.arange(n)[:, None])}
    if source == "post-selection":
        calibration = fit(training[:, tasks], scores)
        given["post_selection"] = later.mean(axis=1) - predict(calibration, later[:, tasks])
    if source == "new scaffold":
        given["scaffolds"] = [str(g) for g in groups]
        sets = [np.flatnonzero(groups == g) for g in range(groups.max() + 1)]
        given["scaffold_residuals"] = residuals_of(training, sets)
    fitted = full_scores.fit("ridge", unnamed(training, scores), tasks)
    return interval(calibrate(fitted, **given), new[tasks], "new"), new.mean()


CASES = [
    *[("post-selection", n, 0.95) for n in SIZES],
    *[("jackknife+", n, 0.90) for n in SIZES if n >= 19],
    *[("normal", n, 0.95) for n in SIZES if n < 19],
    *[("new scaffold", n, 0.95) for n in SIZES],
]


@pytest.mark.slow
@pytest.mark.parametrize(("source", "n", "stated"), CASES)
def test_coverage(source, n, stated):
    hits, widths, n_none = [], [], 0
    for replicate in range(N_REPLICATES):
        answer, score = one_replicate(source, n, np.random.default_rng([2026, n, replicate]))
        if isinstance(answer, NoInterval):
            n_none += 1
            continue
        # A new scaffold's own interval is taken where it is the wider one.
        assert answer.source == source or source == "new scaffold"
        hits.append(answer.lower <= score <= answer.upper)
        widths.append(answer.half_width)
    coverage, se = np.mean(hits), math.sqrt(stated * (1 - stated) / len(hits))
    print(
        f"{source}, n = {n}: {coverage:.3f} of {len(hits)} (stated {stated:.2f}, 3 SE {3 * se:.3f}), "
        f"half-width {100 * np.mean(widths):.1f} points, {n_none} without an interval"
    )
    assert coverage >= stated - 3 * se
    assert len(hits) > 0.8 * N_REPLICATES


def test_eight_agents_are_refused():
    for replicate in range(20):
        answer, _ = one_replicate("normal", 8, np.random.default_rng([2026, 8, replicate]))
        assert isinstance(answer, NoInterval)
        assert answer.reason in ("residuals of 8 agents; an interval needs at least 10", "no subset")
