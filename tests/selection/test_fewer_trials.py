"""Newcomers with fewer trials than the agents that teach: φ, the scale of errors, coverage."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from selection.staged.model import estimate, fit
from selection.staged.study import staged_fit
from selection.staged.teaching import FullRun, taught
from selection.staged.walks import Staging
from selection.standings.full_scores import Completing, taught_by
from tests.selection.records import NAN, record_of

N_TRIALS, N_TASKS = 5, 120


def trials_of(n, m=N_TASKS, *, n_trials=N_TRIALS, seed=0):
    """Passes and failures, (n_trials, n, m); tasks suit some agents more than others."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 0.8, (n, 1)) - rng.normal(0, 1.5, m) + rng.normal(0, 0.7, (n, m))
    return (rng.random((n_trials, n, m)) < expit(logits)).astype(float)


def teaching(trials, n_trials):
    """What these agents teach newcomers with that many trials of a task."""
    means, variances = trials.mean(axis=0), trials.var(axis=0, ddof=1)
    runs = [FullRun(i, float(y)) for i, y in enumerate(means.mean(axis=1))]
    noise = variances * (1 / n_trials - 1 / len(trials))
    return taught(
        means, means.mean(axis=1), runs, Staging(), first=np.zeros(len(means), dtype=int), noise=noise
    )


def record_with(trials, n_trials, *rows, **more):
    """Agents with these trials, and some with `n_trials` alone: their outcomes, NaN where not run."""
    means = np.vstack([trials.mean(axis=0), *rows])
    variances = np.full(means.shape, NAN)
    n = np.full(means.shape, n_trials)
    variances[: trials.shape[1]], n[: trials.shape[1]] = trials.var(axis=0, ddof=1), len(trials)
    return record_of(means, n_trials=n, trial_variances=variances, **more)


def by_hand(trials, r, batch):
    """φ and c² of newcomers with r trials."""
    means, variances = trials.mean(axis=0), trials.var(axis=0, ddof=1)
    n, m, big = *means.shape, len(trials)
    extra = variances * (1 / r - 1 / big)

    def dispersion(model, rows):
        above = below = 0.0
        for i, row in enumerate(rows):
            for j in range(m):
                p = expit(model.abilities[i] - model.difficulties[j])
                above += (means[row, j] - p) ** 2 + extra[row, j]
                below += p * (1 - p)
        return above / below

    everybody, squares = fit(means, np.zeros(n, dtype=int)), []
    for i in range(n):
        rest = [k for k in range(n) if k != i]
        model = fit(means[rest], np.zeros(n - 1, dtype=int))
        model = replace(model, dispersion=dispersion(model, rest))
        seen = np.full(m, np.nan)
        seen[batch] = means[i, batch]
        one = estimate(model, seen, float(everybody.means[i]))
        w, ran = one.passing * (1 - one.passing), ~np.isnan(seen)
        moved = w[~ran].sum() / (w[ran].sum() + model.dispersion / model.spread)
        added = (extra[i, ~ran].sum() + moved**2 * extra[i, ran].sum()) / m**2
        squares.append(((means[i].mean() - one.score) ** 2 + added) / one.se**2)
    return dispersion(everybody, range(n)), (4 + sum(squares)) / (4 + n)


@pytest.mark.parametrize("r", [1, 2])
def test_the_closed_form_by_hand(r):
    trials, batch = trials_of(8, 30, seed=3), np.arange(0, 30, 4)
    found, (dispersion, c2) = teaching(trials, r), by_hand(trials, r, batch)
    assert found.model.dispersion < dispersion < 1.2
    assert found.of_newcomers.dispersion == pytest.approx(dispersion, rel=1e-8)
    assert found.scale_on(batch).c == pytest.approx(math.sqrt(c2), rel=1e-7)
    assert found.fit.model.dispersion == found.of_newcomers.dispersion


def test_of_pass_fail_trials_one_alone_varies_as_a_pass():
    """(x − p)² + s²(R − 1)/R = x(1 − 2p) + p², which is p(1 − p) where x = p."""
    trials = trials_of(36)
    found = teaching(trials, 1)
    assert found.model.dispersion < 0.4
    assert found.of_newcomers.dispersion == pytest.approx(1, abs=0.06)
    x, p = trials.mean(axis=0), expit(found.model.abilities[:, None] - found.model.difficulties)
    of_one = np.sum(x * (1 - 2 * p) + p**2) / np.sum(p * (1 - p))
    assert found.of_newcomers.dispersion == pytest.approx(of_one)


@pytest.mark.parametrize("n_taught", [1, 5])
def test_with_as_many_trials_as_the_others_nothing_changes(n_taught):
    trials = trials_of(12, 40, n_trials=n_taught)
    record = record_with(trials, 1) if n_taught > 1 else record_of(trials[0])
    assert staged_fit(record, Staging(), n_trials=n_taught) == staged_fit(record, Staging())
    assert taught_by(record, Staging(), n_trials=n_taught).noise is None


def test_the_fit_of_a_record_is_for_the_trials_asked_for():
    """Under two conditions that are compared, three trials each, one of each is asked for."""
    trials = trials_of(12, 40, n_trials=6, seed=1)
    record = record_with(trials, 1)
    for n_trials, compared in ((1, ()), (2, ()), (1, ("one", "two"))):
        n = n_trials * max(len(compared), 1)
        result = staged_fit(replace(record, compared=compared), Staging(), n_trials=n_trials)["fit"]
        known = teaching(trials, n)
        assert result["dispersion"] == pytest.approx(known.of_newcomers.dispersion)
        assert result["scale"]["c"] == pytest.approx(known.scale.c)


def test_who_ran_some_tasks_once_is_estimated_with_the_error_of_one_trial():
    trials = trials_of(13, 60, seed=2)
    known, batch = teaching(trials[:, :12], 1), np.arange(0, 60, 3)
    once = np.full(60, NAN)
    once[batch] = trials[0, 12, batch]
    record = record_with(trials[:, :12], 1, once, submitted=[12])
    result = Completing(record).estimated(12, batch, np.arange(60), 0)
    by_model = estimate(known.of_newcomers, once, known.model.mean_after(0))
    assert result.score == pytest.approx(by_model.score)
    assert math.sqrt(result.se2) == pytest.approx(known.scale_on(batch).c * by_model.se)
    often = Completing(record_with(trials[:, :12], 5, once, submitted=[12]))
    assert math.sqrt(often.estimated(12, batch, np.arange(60), 0).se2) < 0.7 * math.sqrt(result.se2)


@pytest.mark.slow(each=True)
@pytest.mark.parametrize("n_taught", [10, 30])
def test_intervals_of_one_trial_hold_one_full_run(n_taught):
    """With five trials of each task in the history: 40 newcomers of each board, by 24, 60 and 98 tasks."""
    found = {24: [], 60: [], 98: []}
    for seed in range(20):
        trials = trials_of(n_taught + 40, seed=seed)
        known = teaching(trials[:, :n_taught], 1)
        nearest = np.argsort(np.abs(known.completed.mean(axis=0) - 0.5), kind="stable")
        for n_run, answers in found.items():
            batch = known.first_batch if n_run == 24 else nearest[:n_run]
            for outcomes in trials[0, n_taught:]:
                seen = np.full(N_TASKS, np.nan)
                seen[batch] = outcomes[batch]
                one = estimate(known.of_newcomers, seen, known.model.next_mean)
                se, error = known.scale.c * one.se, outcomes.mean() - one.score
                answers.append((se, error, abs(error) <= known.scale.quantile * se))
    for answers in found.values():
        se, error, holds = np.array(answers).T
        assert 0.93 <= holds.mean() <= 0.98
        assert se.mean() == pytest.approx(math.sqrt(np.mean(error**2)), rel=0.15)
