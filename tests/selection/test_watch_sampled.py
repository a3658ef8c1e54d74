"""Watching full runs that were drawn at random, and audit tasks: what is looked at, by hand."""

from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import spearmanr
from threadpoolctl import threadpool_limits

from selection import history, rasch
from selection.history import history_of
from selection.prior import PriorDecisions
from selection.rules import Rules
from selection.watch import findings, replay
from tests.selection.records import board, record_of

N_FOUNDERS, N_LATER, N_TASKS = 15, 30, 60
N = N_FOUNDERS + N_LATER
DAYS = [date(2026, 1, 1) + timedelta(days=i) for i in range(N)]
RULES = Rules()


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1, user_api="blas"):
        yield


def abilities_at_random(seed=3):
    """A board whose agents come in no order of ability."""
    outcomes = board(N, N_TASKS, seed)
    return outcomes[np.random.default_rng(seed).permutation(N)]


def came_with(record, arrival):
    """The record whose agents were complete with their first delivery, the only one."""
    return replace(record, arrival=arrival, first=arrival, completed=arrival)


@pytest.fixture(scope="module")
def later():
    """Fifteen founders in one delivery, then an agent a delivery, and the version chosen from the first."""
    with threadpool_limits(1, user_api="blas"):
        record = record_of(abilities_at_random(), dates=DAYS, submitted=range(N_FOUNDERS, N))
        version = replay(came_with(record, np.zeros(N, int)), RULES).version
    arrival = np.where(np.arange(N) < N_FOUNDERS, 0, np.arange(N))
    return came_with(record, arrival), replace(version, arrival=0)


def columns(record, version):
    return np.flatnonzero(np.isin(record.table.tasks, version.tasks))


def run_later(record, rows, *, at):
    """The record in which these agents were complete with a later delivery only."""
    completed = record.completed.copy()
    completed[rows] = at
    return replace(record, completed=completed)


def with_means(record, means):
    """The record with other mean outcomes, of one trial each."""
    ran = (~np.isnan(means)).astype(np.int32)
    return replace(record, table=replace(record.table, means=means, n_valid=ran), n_places=ran)


def monitor(found, name):
    return next(one for one in found.monitors if one.name == name)


def test_rank_fidelity_takes_full_runs_that_were_drawn(later):
    record, version = later
    asked = np.arange(N_FOUNDERS, N_FOUNDERS + 12)
    record = run_later(record, np.arange(N_FOUNDERS, N), at=100)
    names = [record.table.agents[i] for i in asked]
    given = PriorDecisions(subsets=(version,))
    silent = monitor(findings(record, RULES, given), "rank fidelity")
    assert silent.reason.startswith("0 full runs since")
    drawn = replace(given, sampled=dict.fromkeys(names, 0.4))
    told = monitor(findings(record, RULES, drawn), "rank fidelity")
    outcomes, tasks = record.table.means[asked], columns(record, version)
    on, off = outcomes[:, tasks].mean(axis=1), np.delete(outcomes, tasks, axis=1).mean(axis=1)
    assert told.evidence["rho_new"] == pytest.approx(spearmanr(on, off).statistic)
    assert told.evidence["rho_full"] == pytest.approx(spearmanr(on, outcomes.mean(axis=1)).statistic)


def test_who_was_drawn_and_has_not_run_everything_is_not_looked_at(later):
    record, version = later
    means = record.table.means.copy()
    means[N_FOUNDERS:, np.setdiff1d(np.arange(N_TASKS), columns(record, version))[0]] = np.nan
    complete = np.arange(N) < N_FOUNDERS
    record = replace(with_means(record, means), complete=complete)
    given = PriorDecisions(subsets=(version,), sampled=dict.fromkeys(record.table.agents[N_FOUNDERS:], 1.0))
    assert monitor(findings(record, RULES, given), "rank fidelity").reason.startswith("0 full runs since")


def test_a_look_takes_full_runs_in_the_order_in_which_they_came(later):
    """The first look is at the 12 that were complete first, whenever their agents were submitted."""
    record, version = later
    record = run_later(record, np.arange(N_FOUNDERS, N_FOUNDERS + 5), at=100)
    given = PriorDecisions(subsets=(version,), sampled=dict.fromkeys(record.table.agents[N_FOUNDERS:], 1.0))
    rows = np.arange(N_FOUNDERS, N_FOUNDERS + 17)
    part = replace(record, complete=record.complete & (np.arange(N) < rows[-1] + 1))
    told = monitor(findings(part, RULES, given), "rank fidelity")
    assert told.evidence["look"]["agent"] == record.table.agents[rows[-1]]


def test_promises_are_kept_in_the_order_of_completion(later):
    record, version = later
    first = record.table.agents[N_FOUNDERS]
    history = history_of(run_later(record, [N_FOUNDERS], at=100), RULES, PriorDecisions(subsets=(version,)))
    rows = np.arange(N_FOUNDERS, N)
    assert history.who(history.by_completion(rows))[0][-1] == first


def audited(later, *, tuned=0.0, n_audit=4, seed=5):
    """The later agents ran S and some other tasks each; `tuned` is what they pass more of S."""
    record, version = later
    rng, tasks = np.random.default_rng(seed), columns(record, version)
    outside = np.setdiff1d(np.arange(N_TASKS), tasks)
    means, asked = record.table.means.copy(), {}
    for i in range(N_FOUNDERS, N):
        drawn = rng.choice(outside, n_audit, replace=False)
        means[i, np.setdiff1d(outside, drawn)] = np.nan
        means[i, tasks] = np.maximum(means[i, tasks], rng.random(tasks.size) < tuned)
        asked[i] = np.isin(np.arange(N_TASKS), [*tasks, *drawn])
    return record_of(means, dates=DAYS, submitted=asked, asked=asked), replace(version, arrival=14)


def test_what_the_subset_predicts_of_audit_tasks_by_hand(later):
    record, version = audited(later)
    history = history_of(record, RULES, PriorDecisions(subsets=(version,)))
    rows = np.flatnonzero(history.since)
    told, tasks = history.audit_of(rows), columns(record, version)
    founders = record.table.means[:N_FOUNDERS]
    b = rasch.fit(founders).difficulties
    for i, row in zip(rows, told.outcomes, strict=True):
        mine = record.table.means[record.table.agents.index(history.names[i])]
        expected = np.where(np.isin(np.arange(N_TASKS), tasks), np.nan, mine)
        assert np.array_equal(row, expected, equal_nan=True)
        score = lambda theta, x=mine: float((x[tasks] - expit(theta - b[tasks])).sum() - theta / 9)  # noqa: E731
        assert told.expected[i - rows[0]] == pytest.approx(expit(brentq(score, -20, 20) - b), abs=1e-8)


def test_a_founder_is_predicted_without_itself(later):
    record, version = audited(later)
    history = history_of(record, RULES, PriorDecisions(subsets=(version,)))
    reference = history.audit_reference
    means = record.table.means[:N_FOUNDERS]
    for fold, tasks, row, told in zip(
        history.nested.folds, history.nested.tasks, reference.outcomes, reference.expected, strict=True
    ):
        (i,) = fold.held_out
        rates = np.delete(means, i, axis=0).mean(axis=0)
        assert np.array_equal(tasks, np.flatnonzero((rates >= 0.3 - 1e-9) & (rates <= 0.7 + 1e-9)))
        assert np.array_equal(np.isnan(row), np.isin(np.arange(N_TASKS), tasks))
        b = rasch.fit(np.delete(means, i, axis=0)).difficulties
        alone = np.where(np.isin(np.arange(N_TASKS), tasks), means[i], np.nan)
        assert told == pytest.approx(expit(rasch.ability(alone, b) - b), abs=1e-8)


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        ({}, True),
        ({"loaded": True}, False),  # nobody asked
        ({"all": True}, False),  # it was asked for everything
        ({"lacks": "audit"}, False),  # it may have chosen what to deliver
        ({"lacks": "subset"}, False),  # it did not run S
        ({"complete": True}, False),  # it ran everything at once
        ({"public": True}, False),  # its audit tasks stood in an earlier version
    ],
)
def test_whose_tasks_are_audit_tasks(later, change, counts):
    record, version = audited(later)
    i, versions = N_FOUNDERS + 3, (version,)
    extra = np.flatnonzero(record.asked[i] & ~np.isin(record.table.tasks, version.tasks))
    arrays = {name: getattr(record, name).copy() for name in ("asked", "operator", "completed")}
    means = record.table.means.copy()
    if "lacks" in change:
        j = extra[0] if change["lacks"] == "audit" else columns(record, version)[0]
        means[i, j] = np.nan
    arrays["asked"][i] |= change.get("all", False)
    arrays["operator"][i] |= change.get("loaded", False)
    if change.get("complete"):
        arrays["completed"][i] = record.arrival[i]
    if change.get("public"):
        old = replace(version, tasks=tuple(record.table.tasks[j] for j in extra))
        versions = (old, version)
    record = replace(with_means(record, means), **arrays)
    history = history_of(record, RULES, PriorDecisions(subsets=versions))
    mine = history.audited[history.names.index(record.table.agents[i])]
    assert np.flatnonzero(mine).tolist() == (extra.tolist() if counts else [])


def test_an_agent_that_runs_the_rest_later_keeps_its_audit_tasks(later):
    record, version = audited(later)
    i = N_FOUNDERS + 3
    extra = record.asked[i] & ~np.isin(record.table.tasks, version.tasks)
    means = record.table.means.copy()
    means[i] = np.nan_to_num(means[i])
    record = run_later(with_means(record, means), [i], at=100)
    history = history_of(record, RULES, PriorDecisions(subsets=(version,)))
    assert np.array_equal(history.audited[history.names.index(record.table.agents[i])], extra)


def test_agents_tuned_to_the_subset_are_noticed(later):
    told = {}
    for tuned in (0.0, 0.6):
        record, version = audited(later, tuned=tuned)
        told[tuned] = monitor(
            findings(record, RULES, PriorDecisions(subsets=(version,))), "tuning to the subset"
        )
    assert told[0.0].state == "ok"
    assert told[0.6].state == "alert"
    assert told[0.6].evidence["n_audited"] == N_LATER
    assert told[0.6].evidence["gap"] < told[0.0].evidence["gap"]


def test_a_task_nobody_ran_before_tells_nothing():
    logits = np.array([0.0, np.nan, 1.0])
    told = history.of_newcomers(
        np.array([[1.0, 1.0, 0.0]]), np.array([[False, True, True]]), np.array([0]), logits
    )
    assert np.array_equal(told.outcomes, [[np.nan, np.nan, 0.0]], equal_nan=True)


def test_noise_of_a_founder_is_counted_where_the_others_passed_half(later):
    """On tasks chosen because it came out near one half, it has more noise than later agents have there."""
    record, version = later
    rng, founders = np.random.default_rng(8), record.table.means[:N_FOUNDERS]
    variances = 0.4 * rng.random(record.table.means.shape)
    trials = np.full(variances.shape, 2, np.int32)
    repeated = {"trial_variances": variances, "n_trials": trials.astype(float), "n_valid": trials}
    record = replace(record, table=replace(record.table, **repeated), n_places=trials)
    history = history_of(record, RULES, PriorDecisions(subsets=(version,)))
    assert history.names == record.table.agents
    for i in range(N):
        rates = founders[np.arange(N_FOUNDERS) != i].mean(axis=0)
        tasks = (rates > 0.299) & (rates < 0.701) if i < N_FOUNDERS else columns(record, version)
        mean = record.table.means[i, tasks].mean()
        assert history.noise.variances[i] == pytest.approx(variances[i, tasks].sum())
        assert history.noise.binomial[i] == pytest.approx(variances[i, tasks].size * mean * (1 - mean))


def test_published_order_takes_what_was_said_of_stopped_agents_and_their_full_runs(later):
    record, version = later
    names = record.table.agents[N_FOUNDERS : N_FOUNDERS + 12]
    scores = record.table.means.mean(axis=1)[N_FOUNDERS : N_FOUNDERS + 12]
    given = PriorDecisions(subsets=(version,))
    assert "published order" not in {one.name for one in findings(record, RULES, given).monitors}
    said = dict(zip(names, zip((1 - scores).tolist(), [0.02] * 12, strict=True), strict=True))
    record = run_later(record, N_FOUNDERS + np.array([0, 5]), at=100)  # the last two to be complete
    told = monitor(findings(record, RULES, replace(given, published=said)), "published order")
    assert (told.state, told.evidence["share"]) == ("alert", 0.0)
    assert told.evidence["look"]["agent"] == names[11]
