"""What agents do beyond their first batches: one z, and the monitor on a record."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit

from analytics.drift import tuning
from perf.studies.staged_boards import board, record_of
from perf.studies.staged_cheats import newcomer, taught_by_all
from selection.prior import PriorDecisions, SubsetVersion
from selection.rules import Rules
from selection.staged.walks import beyond_first_batch
from selection.watch import findings
from tests.selection.test_watch import monitor

N_TEACHING = 40


@pytest.fixture(scope="module")
def teaching():
    """Forty full runs on 100 tasks, the fit to them, and twelve others with their chances."""
    agents, chances = board(np.random.default_rng(4), 0.0, n_agents=N_TEACHING + 12)
    return agents, taught_by_all(agents.take(np.arange(N_TEACHING))).fit, chances[N_TEACHING:]


def test_z_is_what_the_first_batch_leaves_unexplained(teaching):
    """By a root finder; nothing but the first batch tells the ability."""
    agents, fit, _ = teaching
    x, asked, first = agents.outcomes[-1], np.zeros(100, dtype=bool), fit.first_batch
    later = np.setdiff1d(np.arange(0, 100, 2), first)
    asked[[*first, *later]] = True
    model, b = fit.model, fit.model.difficulties

    def slope(theta):
        return (x[first] - expit(theta - b[first])).sum() - (theta - model.next_mean) * model.precision

    p = expit(brentq(slope, -10, 10) - b)
    q = p * (1 - p)
    v = model.dispersion / (q[first].sum() + model.precision)
    total, of_tasks = q[later].sum(), (q[later] ** 2 * model.difficulty_variances[later]).sum()
    se = np.sqrt(model.dispersion * total + total**2 * v + of_tasks)
    expected = (x[later] - p[later]).sum() / (fit.scale.c * se)
    assert beyond_first_batch(fit, x, asked) == pytest.approx(expected, abs=1e-6)
    asked[later] = False
    assert beyond_first_batch(fit, x, asked) is None


@pytest.mark.parametrize(("knows", "state"), [(False, "ok"), (True, "alert")])
def test_a_board_of_agents_that_know_the_first_batch_alerts(teaching, knows, state):
    agents, fit, chances = teaching
    luck = np.random.default_rng(5).random(chances.shape)
    ran = []
    for k, p in enumerate(chances):
        outcomes = (luck[k] < p).astype(float)
        if knows:
            outcomes[fit.first_batch] = 1.0
        one = newcomer(fit, outcomes, f"b{k:02d}", 0)
        ran.append(np.where(np.isin(np.arange(100), one.asked), outcomes, np.nan))
    names = (*agents.names[:N_TEACHING], *(f"b{k:02d}" for k in range(len(ran))))
    record = record_of(names, np.vstack([agents.outcomes[:N_TEACHING], *ran]))
    stopped = [
        replace(one, adaptive_reason="batches", stopped=True) if np.isnan(row).any() else one
        for one, row in zip(record.about, record.table.means, strict=True)
    ]
    record, tasks = replace(record, about=tuple(stopped)), record.table.tasks
    version = SubsetVersion(
        number=1,
        tasks=tuple(tasks[j] for j in fit.ranking_tasks),
        chosen_from=names[:N_TEACHING],
        arrival=0,
        fixed_on=agents.dates[N_TEACHING - 1],
        lo=0.3,
        hi=0.7,
        widened=False,
        provisional=False,
        strategy="mid_range",
        reason="",
        n_complete=N_TEACHING,
        n_tasks=100,
    )
    walks = {name: {"tasks": list(tasks), "fit": fit.as_plain()} for name in names[N_TEACHING:]}
    found = monitor(
        findings(record, Rules(), PriorDecisions(subsets=(version,), fits_asked_by=walks)), tuning.NAME
    )
    assert (found.state, found.evidence["n_audited"]) == (state, 12)
    alone = monitor(findings(record, Rules(), PriorDecisions(subsets=(version,))), tuning.NAME)
    assert (alone.state, alone.reason) == ("insufficient", "no audit task was run")
