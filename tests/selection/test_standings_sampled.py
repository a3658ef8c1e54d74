"""Sampled full runs carry the interval of an estimated score, against scikit-learn; what a board says."""

from dataclasses import replace
from datetime import date
from functools import cache

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from selection.prior import PriorDecisions, SubsetVersion
from selection.rules import Rules
from selection.standings import answer
from selection.standings.choice import training
from selection.standings.full_scores import fitted_on
from tests.selection.records import NAN, band, board, by_name, record_of

RULES = Rules(target="full", estimator="ridge")
N_FOUNDERS, N_SAMPLED, N_TASKS = 15, 19, 60
N_COMPLETE = N_FOUNDERS + N_SAMPLED


@cache
def made(n_sampled=N_SAMPLED):
    """Founders, complete agents that came later, and one that ran S; what is given of them."""
    outcomes = board(N_COMPLETE + 1, N_TASKS, seed=4)
    outcomes = outcomes[np.random.default_rng(4).permutation(len(outcomes))]
    tasks = band(outcomes[:N_FOUNDERS])
    outcomes[-1, np.setdiff1d(np.arange(N_TASKS), tasks)] = NAN
    record = record_of(outcomes, submitted=range(N_FOUNDERS, N_COMPLETE + 1))
    version = SubsetVersion(
        number=1,
        tasks=tuple(record.table.tasks[j] for j in tasks),
        chosen_from=record.table.agents[:N_FOUNDERS],
        arrival=N_FOUNDERS - 1,
        fixed_on=date(2026, 1, 1),
        lo=0.3,
        hi=0.7,
        widened=False,
        provisional=False,
        strategy="mid_range",
        reason="by hand",
        n_complete=N_FOUNDERS,
        n_tasks=N_TASKS,
    )
    # fitted to the founders and five of those that came later, as a refit leaves it
    agents = training(record).take(np.arange(N_FOUNDERS + 5))
    fitted = fitted_on(agents, version.tasks, RULES)
    names = record.table.agents[N_FOUNDERS : N_FOUNDERS + n_sampled]
    given = PriorDecisions(subsets=(version,), fitted=fitted, sampled=dict.fromkeys(names, 0.1))
    return record, tasks, given


def residual(outcomes, tasks, i):
    """Y − ŷ of agent i by the fit of scikit-learn to the others that the calibration holds."""
    others = np.setdiff1d(np.arange(N_FOUNDERS + 5), [i])
    ridge = Ridge(alpha=1.0).fit(outcomes[np.ix_(others, tasks)], outcomes[others].mean(axis=1))
    return float(outcomes[i].mean() - ridge.predict(outcomes[i, tasks][None])[0])


def test_the_interval_rests_on_runs_that_were_drawn():
    """Split conformal of 19: ŷ ± the ⌈.95·20⌉ = 19th smallest residual, the largest."""
    record, tasks, given = made()
    outcomes = record.table.means
    sampled = np.array([residual(outcomes, tasks, i) for i in range(N_FOUNDERS, N_COMPLETE)])
    line = by_name(answer(record, RULES, given))[record.table.agents[-1]].at["full"]
    fit = np.arange(N_FOUNDERS + 5)
    ridge = Ridge(alpha=1.0).fit(outcomes[np.ix_(fit, tasks)], outcomes[fit].mean(axis=1))
    point, half = ridge.predict(outcomes[-1, tasks][None])[0], np.abs(sampled).max()
    assert line.source == "post-selection"
    assert line.score == pytest.approx(point)
    highest = (outcomes[-1, tasks].sum() + N_TASKS - tasks.size) / N_TASKS  # all else passed
    assert (line.lower, line.upper) == pytest.approx((max(point - half, 0.0), min(point + half, highest)))
    assert line.se == pytest.approx(np.sqrt(np.mean(sampled**2)))


def test_with_one_run_fewer_it_rests_on_agents_left_out():
    record, _, given = made(N_SAMPLED - 1)
    line = by_name(answer(record, RULES, given))[record.table.agents[-1]].at["full"]
    assert line.source == "jackknife+"


def test_whoever_was_drawn_and_has_not_run_everything_carries_nothing():
    record, _, given = made()
    named = replace(given, sampled={name: 0.1 for name in record.table.agents if name not in given.sampled})
    assert (
        answer(record, RULES, named).as_plain()
        == answer(record, RULES, replace(given, sampled={})).as_plain()
    )


def test_a_board_says_that_a_request_is_open_or_ran_out():
    record, _, given = made()
    assert answer(record, RULES, given).phase == "ongoing"
    open_ = answer(record, RULES, replace(given, revalidating="runs are asked for"))
    assert (open_.phase, open_.why) == ("revalidating", "Runs are asked for.")
    late = answer(record, RULES, replace(given, not_revalidated="not revalidated since 2026-05-01"))
    assert late.phase == "ongoing"
    assert "Not revalidated since 2026-05-01." in late.notices
