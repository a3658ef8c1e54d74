import math
from datetime import date
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binomtest, spearmanr

from analytics import drift
from analytics.drift.e_value import log_e_values, upper_share
from analytics.drift.monitor import SeriesMismatch
from analytics.drift.saturation import wilson_lower

AGENTS = [f"a{i:03d}" for i in range(600)]
DAYS = [date.fromordinal(date(2025, 1, 1).toordinal() + i) for i in range(600)]


def of(monitor, n):
    return AGENTS[:n], DAYS[:n]


def test_fidelity_needs_twelve_runs_and_warns_from_twenty():
    rng = np.random.default_rng(3)
    scores = rng.random(30)
    near = scores + 0.05 * rng.standard_normal(30)
    assert drift.subset_fidelity(near[:11], scores[:11], 0.7, AGENTS[:11]).state == "insufficient"
    good = drift.subset_fidelity(near[:12], scores[:12], 0.7, AGENTS[:12])
    assert (good.state, good.statistic) == ("ok", pytest.approx(spearmanr(near[:12], scores[:12])[0]))
    assert drift.subset_fidelity(rng.random(12), scores[:12], 0.7, AGENTS[:12]).state == "alert"
    # the latest 20 alone are looked at
    broken = np.concatenate([rng.random(10), near[10:]])
    assert drift.subset_fidelity(broken, scores, 0.7, AGENTS[:30]).evidence["agents"] == AGENTS[10:30]


def test_fidelity_alerts_on_skill_where_rho_is_high_by_construction():
    scores = np.arange(12) / 12
    swapped = scores[[1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10]]
    rho = spearmanr(swapped, scores)[0]
    assert rho > 0.9
    assert drift.subset_fidelity(swapped, scores, 0.5, AGENTS[:12]).state == "ok"
    found = drift.subset_fidelity(swapped, scores, 0.96, AGENTS[:12])
    assert found.state == "alert"
    assert found.evidence["skill"] == pytest.approx((rho - 0.96) / 0.04)


def test_fidelity_warns_where_the_lower_bound_is_low():
    rng = np.random.default_rng(8)
    scores = rng.random(20)
    noisy = scores + 0.16 * rng.standard_normal(20)
    found = drift.subset_fidelity(noisy, scores, 0.4, AGENTS[:20])
    assert found.statistic >= 0.75
    assert found.evidence["lower"] < 0.75
    assert found.state == "warn"
    assert drift.subset_fidelity(noisy[:19], scores[:19], 0.4, AGENTS[:19]).state != "warn"


def test_equal_scores_are_not_an_order():
    found = drift.subset_fidelity(np.full(12, 0.5), np.arange(12) / 12, 0.7, AGENTS[:12])
    assert found.state == "insufficient"
    assert found.statistic is None


def test_a_jump_alarms_and_stands_until_agents_have_come():
    level = [0.4 + 0.01 * (i % 7) for i in range(30)]
    jump = np.array([*level, *([0.8] * 4)])
    found = drift.capability_jump(jump, *of(None, 34))
    assert found.state == "alert"
    assert found.evidence["alarms"][0]["since"] == "a030"
    later = np.array([*level, *([0.8] * 14)])
    assert drift.capability_jump(later, *of(None, 44)).state == "ok"
    assert len(drift.capability_jump(later, *of(None, 44)).evidence["alarms"]) == 1
    assert drift.capability_jump(jump[:10], *of(None, 10)).state == "insufficient"


def test_only_the_past_is_used():
    rng = np.random.default_rng(4)
    series = np.concatenate([rng.normal(0, 1, 60), rng.normal(2, 1, 40)])
    whole = drift.capability_jump(series, *of(None, 100)).evidence["alarms"]
    for n in (40, 70, 90):
        known = drift.capability_jump(series[:n], *of(None, n)).evidence["alarms"]
        assert known == [alarm for alarm in whole if alarm["agent"] in AGENTS[:n]]


def test_steady_progress_alarms():
    rising = np.linspace(0.3, 0.7, 40)
    assert drift.capability_jump(rising, *of(None, 40)).evidence["alarms"]


def test_residuals_and_costs_are_watched_on_both_sides():
    falling = np.concatenate([np.sin(np.arange(25.0)), [-3.0] * 5])
    assert drift.residuals(falling, *of(None, 30)).evidence["alarms"][0]["rising"] is False
    assert drift.cost_per_task(-falling, *of(None, 30)).evidence["alarms"][0]["rising"] is True


@pytest.mark.parametrize(("n_out", "state"), [(0, "ok"), (5, "ok"), (6, "warn"), (10, "warn"), (11, "alert")])
def test_band_erosion_counts_the_tasks_that_left(n_out, state):
    rates = np.array([0.9] * n_out + [0.5] * (20 - n_out) + [np.nan])
    tasks = [f"t{j}" for j in range(21)]
    found = drift.band_erosion(rates, tasks, 0.3, 0.7)
    assert (found.state, found.statistic) == (state, pytest.approx(n_out / 20))
    assert found.evidence["tasks"] == tasks[:n_out]


def test_the_edges_of_the_band_are_inside():
    assert drift.band_erosion(np.array([0.3, 0.7, 3 / 10]), ["a", "b", "c"], 0.3, 0.7).statistic == 0


def test_calibration_alerts_on_too_many_misses_and_not_on_too_few():
    hits = np.zeros(500, bool)
    assert drift.calibration(hits, *of(None, 500)).state == "ok"
    misses = np.zeros(60, bool)
    misses[::4] = True
    found = drift.calibration(misses, *of(None, 60))
    assert found.state == "alert"
    n = np.arange(1, 61)
    logs = log_e_values(np.cumsum(misses), n, 0.05)
    assert found.statistic == pytest.approx(math.exp(logs.max()))
    first = int(np.flatnonzero(logs >= math.log(100))[0])
    assert found.evidence["first_alert"] == {"agent": AGENTS[first], "date": DAYS[first].isoformat()}
    assert drift.calibration(misses[:0], [], []).state == "insufficient"


def test_an_alert_of_an_e_value_stays():
    misses = np.array([True] * 6 + [False] * 200)
    assert drift.calibration(misses, *of(None, 206)).state == "alert"


def test_harness_failures_are_weighed_against_the_upper_limit_of_the_reference():
    n = np.full(20, 100)
    quiet = drift.harness_failures(np.full(20, 1), n, (20, 2_000), *of(None, 20))
    assert quiet.state == "ok"
    loud = drift.harness_failures(np.full(20, 5), n, (20, 2_000), *of(None, 20))
    assert loud.state == "alert"
    assert f"{upper_share(20, 2_000):.2%}" in loud.reason
    assert drift.harness_failures(n[:0], n[:0], (0, 100), [], []).state == "insufficient"


def test_saturation_uses_the_lower_wilson_bound():
    ours = wilson_lower(0.9, 50, 0.025)
    assert ours == pytest.approx(binomtest(45, 50).proportion_ci(0.95, "wilson").low)
    rates = np.array([0.99, 0.5])
    assert drift.saturation(np.array([0.99, 0.4]), 40, AGENTS[:2], rates).state == "ok"
    found = drift.saturation(np.array([0.4, 0.999]), 2_000, AGENTS[:2], rates)
    assert (found.state, found.evidence["agent"]) == ("alert", "a001")
    assert found.evidence["share_of_tasks_above_95"] == 0.5
    assert drift.saturation(np.array([]), 10, [], rates).state == "insufficient"


def test_scaffold_novelty_looks_at_the_latest_twenty():
    scaffolds = ["new"] * 15 + ["old"] * 9 + ["new"] * 11
    found = drift.scaffold_novelty(scaffolds, frozenset({"old"}), AGENTS[:35])
    assert (found.state, found.statistic) == ("warn", 11 / 20)
    assert drift.scaffold_novelty(["old"] * 10, frozenset({"old"}), AGENTS[:10]).state == "ok"
    assert drift.scaffold_novelty(["new"] * 9, frozenset(), AGENTS[:9]).state == "insufficient"


def test_run_variance_matches_all_permutations_of_a_small_sample(monkeypatch):
    monkeypatch.setattr("analytics.drift.harness.FIRST_LOOK", 3)
    rng = np.random.default_rng(5)
    reference, since = rng.random(5), rng.random(3) + 0.4
    both = np.concatenate([since, reference])
    gaps = [
        abs(both[list(chosen)].mean() - np.delete(both, list(chosen)).mean())
        for chosen in combinations(range(8), 3)
    ]
    exact = np.mean(np.array(gaps) >= abs(since.mean() - reference.mean()) - 1e-12)
    found = drift.run_variance(reference, since, AGENTS[:3], np.random.default_rng(6))
    assert found.statistic == pytest.approx(exact, abs=0.01)
    assert found.threshold == 0.005


def test_run_variance_looks_at_10_20_40():
    rng = np.random.default_rng(7)
    reference, quiet = rng.random(30), rng.random(45)
    found = drift.run_variance(reference, quiet, AGENTS[:45], rng)
    assert found.evidence["looks"] == [10, 20, 40]
    assert found.state == "ok"
    assert drift.run_variance(reference, quiet + 1, AGENTS[:45], rng).evidence["first_alert"] == "a009"
    assert drift.run_variance(reference, quiet[:9], AGENTS[:9], rng).state == "insufficient"


def test_false_alerts_a_year():
    charts = [
        drift.capability_jump(np.arange(12.0), *of(None, 12)),
        drift.saturation(np.ones(1), 1, ["a"], np.ones(1)),
    ]
    assert drift.false_alerts_a_year(charts, 400) == pytest.approx(2)


def test_a_rerun_set_has_a_random_part_and_the_rest_on_top():
    since, ties, new = np.arange(20, 60), np.array([1, 2, 30]), np.array([59])
    chosen = drift.rerun_set(since, ties, new, np.random.default_rng(1))
    drawn = [run for run in chosen if run.sampled]
    assert len(drawn) == 8
    assert all(run.inclusion == 8 / 40 and run.agent >= 20 for run in drawn)
    assert {1, 2, 30, 59} <= {run.agent for run in chosen}
    assert [run.agent for run in chosen] == sorted({run.agent for run in chosen})
    few = drift.rerun_set(np.arange(3), ties[:0], ties[:0], np.random.default_rng(1))
    assert [(run.agent, run.inclusion) for run in few] == [(0, 1.0), (1, 1.0), (2, 1.0)]
    assert drift.rerun_set(since[:0], ties[:0], ties[:0], np.random.default_rng(1)) == []


def test_each_agent_is_drawn_with_the_probability_stated():
    draws = [
        run.agent
        for seed in range(2_000)
        for run in drift.rerun_set(
            np.arange(16), np.array([], int), np.array([], int), np.random.default_rng(seed)
        )
    ]
    shares = np.bincount(draws, minlength=16) / 2_000
    assert np.abs(shares - 0.5).max() < 4 * math.sqrt(0.25 / 2_000)


def test_series_of_different_length_are_refused():
    with pytest.raises(SeriesMismatch, match="lengths 2, 3"):
        drift.capability_jump(np.zeros(2), AGENTS[:3], DAYS[:3])
