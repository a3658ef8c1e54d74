import math
from datetime import date
from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import binom, chi2, hypergeom, norm, spearmanr

from analytics import drift
from analytics.differences.estimates import wilson
from analytics.drift import Audit, Invalid, Noise, OnAndOff
from analytics.drift.before_and_since import _left
from analytics.drift.charts import RUN_LENGTH
from analytics.drift.e_value import log_e_values, upper_share
from analytics.drift.monitor import Look, last_look, permutation_p, permuted, rerun_set
from analytics.errors import CoreError
from tests.refusals import refused

AGENTS = [f"a{i:03d}" for i in range(600)]
DAYS = [date.fromordinal(date(2025, 1, 1).toordinal() + i) for i in range(600)]
BAND = ((0.3, 0.7),)


def of(n):
    return AGENTS[:n], DAYS[:n]


# ------------------------------------------------------------------------------------- beyond first batches


def test_newcomers_pool_their_errors_beyond_first_batches():
    z = np.array([-1.2, -0.4, 0.3, -3.1, -0.8, 0.1, -1.0, -0.6, -2.0, -0.3, 9.0])
    result = drift.first_batch_tuning(z, *of(11))
    assert result.statistic == pytest.approx(norm.cdf(-9.0 / math.sqrt(10)))  # the eleventh is of no look
    assert (result.state, result.threshold) == ("alert", pytest.approx(0.0075))
    assert result.evidence["agents"] == ["a003"]
    assert drift.first_batch_tuning(z[:9], *of(9)).state == "insufficient"
    assert drift.first_batch_tuning(np.zeros(40), *of(40)).state == "ok"
    late = np.concatenate([np.zeros(20), np.full(20, -0.9)])  # the last 20 of 40
    assert drift.first_batch_tuning(late, *of(40)).state == "alert"
    with refused(CoreError, "series_mismatch"):
        drift.first_batch_tuning(z, *of(10))


# ------------------------------------------------------------------------------------------------------ looks


def test_looks_come_at_10_20_40_and_halve_their_level():
    result = [last_look(n) for n in (9, 10, 19, 20, 39, 40, 160, 319)]
    assert [look and look.size for look in result] == [None, 10, 10, 20, 20, 40, 160, 160]
    assert [look and look.number for look in result] == [None, 1, 1, 2, 2, 3, 5, 5]
    assert [look.level for look in result if look] == [0.01 / 2 ** (look.number) for look in result if look]
    assert [last_look(n, first=12) and last_look(n, first=12).size for n in (11, 12, 20)] == [None, 12, 20]


def test_all_levels_add_up_to_one_percent():
    assert sum(last_look(10 * 2**j).level for j in range(40)) == pytest.approx(0.01)


def test_a_late_look_has_draws_enough_to_reach_its_level():
    assert last_look(10).n_permutations == 9_999
    for j in range(20):
        look = last_look(10 * 2**j)
        assert 1 / (1 + look.n_permutations) < look.level


def in_turn(*series):
    """Hand out series of draws, so many at a time."""
    drawn, taken = np.array(series, dtype=float), [0]

    def draw(n):
        taken[0] += n
        return drawn[:, taken[0] - n : taken[0]]

    return draw


def test_permutations_end_once_no_statistic_can_reach_a_level():
    """At look 1 a level of .025 is out of reach once .05 of 9,999 draws are as large: after 500 of 1,000."""
    look, high, low = last_look(10), np.ones(9_999), np.zeros(9_999)
    later = np.concatenate([np.zeros(2_000), np.ones(7_999)])
    assert permuted(look, in_turn(high), 1.0).shape == (1, 1_000)
    assert permuted(look, in_turn(low), 1.0).shape == (1, 9_999)
    assert permuted(look, in_turn(high, later), 1.0, 1.0).shape == (2, 3_000)
    assert permuted(look, in_turn(high, low), 1.0, 1.0).shape == (2, 9_999)


@pytest.mark.parametrize("n", [10, 20, 40, 80, 160])
def test_permutations_that_end_early_decide_what_all_of_them_decide(n):
    look, rng = last_look(n), np.random.default_rng(n)
    for share in np.linspace(0, 15, 61) * look.level:
        draws = (rng.random(look.n_permutations) < share).astype(float)
        whole, result = permutation_p(1.0, draws), permuted(look, in_turn(draws), 1.0)[0]
        for times in (1, 2, 5):
            assert (permutation_p(1.0, result) <= times * look.level) == (whole <= times * look.level)
        assert (result == draws[: len(result)]).all()


def test_a_permutation_p_is_never_zero_and_counts_what_is_unknown_as_larger():
    draws = np.array([0.1, 0.2, 0.3, np.nan])
    assert permutation_p(0.2, draws) == (1 + 3) / 5
    assert permutation_p(0.9, draws) == (1 + 1) / 5


# ---------------------------------------------------------------------------------------------- rank fidelity


def correlated(n, noise, seed):
    rng = np.random.default_rng(seed)
    rest = rng.random(n)
    return OnAndOff(rest + noise * rng.standard_normal(n), rest)


def asked(reference, since, **more):
    n = len(since.rest_means)
    return drift.subset_fidelity(reference, since, since.rest_means, more.get("rho_null"), *of(n))


def test_fidelity_is_a_z_test_at_the_last_look():
    reference, since = correlated(30, 0.1, 1), correlated(27, 1.0, 2)
    result = asked(reference, since)
    before, now = spearmanr(*reference)[0], spearmanr(since.subset_means[:20], since.rest_means[:20])[0]
    z = (math.atanh(before) - math.atanh(now)) / math.sqrt(1.06 / 27 + 1.06 / 17)
    assert result.statistic == pytest.approx(norm.sf(z))
    assert result.threshold == 0.0025
    assert (result.evidence["rho_ref"], result.evidence["rho_new"]) == pytest.approx((before, now))
    assert result.evidence["look"]["agent"] == AGENTS[19]
    assert result.state == "alert"


def test_fidelity_says_what_it_could_notice():
    """At the fall it names, the test has a power of .8; where all rank is lost, that of ρ = 0."""
    reference, since = correlated(30, 0.3, 1), correlated(40, 0.3, 2)
    result = asked(reference, since).evidence
    se, z_ref = math.sqrt(1.06 / 27 + 1.06 / 37), math.atanh(result["rho_ref"])
    limit = norm.isf(0.00125)
    assert norm.sf(limit - (z_ref - math.atanh(result["could_notice"])) / se) == pytest.approx(0.8)
    assert result["power_if_lost"] == pytest.approx(norm.sf(limit - z_ref / se))
    assert result["power_if_lost"] < 0.8
    assert (
        "even if the order were lost, this would be noticed only 65% of the time"
        in asked(reference, since).reason
    )
    sharp = asked(correlated(30, 0.1, 1), since)
    assert sharp.evidence["power_if_lost"] > 0.8
    assert f"a fall to {sharp.evidence['could_notice']:.2f} would be noticed 80% of the time" in sharp.reason


def test_a_small_fall_is_no_finding_however_sure():
    """With thousands of runs a fall of less than .10 is significant, and is still no finding."""
    reference, since = correlated(3_000, 0.10, 1), correlated(3_000, 0.16, 2)
    result = drift.subset_fidelity(reference, since, since.rest_means, None, AGENTS * 5, DAYS * 5)
    assert result.statistic < 1e-6
    assert 0 < result.evidence["rho_ref"] - result.evidence["rho_new"] < 0.10
    assert result.state == "ok"


def test_fidelity_needs_twelve_runs_and_ten_before():
    good = correlated(30, 0.05, 3)
    few = OnAndOff(good.subset_means[:11], good.rest_means[:11])
    assert asked(good, few).state == "insufficient"
    assert asked(OnAndOff(good.subset_means[:9], good.rest_means[:9]), good).state == "insufficient"
    assert asked(good, correlated(12, 0.05, 4)).state == "ok"


def test_a_perfect_order_counts_as_half_a_swap_short():
    perfect = OnAndOff(np.arange(20.0), np.arange(20.0))
    result = asked(perfect, perfect)
    assert (result.state, result.statistic) == ("ok", 0.5)


def test_equal_scores_are_not_an_order():
    result = asked(correlated(20, 0.1, 1), OnAndOff(np.full(12, 0.5), np.arange(12) / 12))
    assert (result.state, result.statistic) == ("insufficient", None)


def test_rho_with_the_full_score_is_told_beside():
    reference, since = correlated(30, 0.1, 1), correlated(12, 1.5, 5)
    result = asked(reference, since, rho_null=0.2)
    rho = spearmanr(*since)[0]
    assert rho < 0.75
    assert result.evidence["rho_full"] == pytest.approx(rho)
    assert result.evidence["skill"] == pytest.approx((rho - 0.2) / 0.8)
    assert result.reason.endswith(f"rank correlation with the full score {rho:.2f}, below .75")


# ----------------------------------------------------------------------------------------------------- charts


def test_a_jump_alarms_and_stands_until_agents_have_come():
    level = [0.4 + 0.01 * (i % 7) for i in range(30)]
    result = drift.capability_jump(np.array([*level, *([0.8] * 6)]), *of(36))
    assert result.state == "alert"
    assert result.evidence["alarms"][0]["since"] == "a030"
    later = drift.capability_jump(np.array([*level, *([0.8] * 18)]), *of(48))
    assert later.state == "ok"
    assert len(later.evidence["alarms"]) == 1
    assert drift.capability_jump(np.array(level[:10]), *of(10)).state == "insufficient"


def test_a_chart_warns_before_it_alarms():
    level = [0.4 + 0.01 * (i % 7) for i in range(30)]
    states = [drift.capability_jump(np.array([*level, *([0.8] * n)]), *of(30 + n)).state for n in range(7)]
    assert states == sorted(states, key=["ok", "warn", "alert"].index)
    assert set(states) == {"ok", "warn", "alert"}


def test_an_alarm_after_a_slow_rise_is_an_alert_too():
    """The chart was above 0 for more than ten agents, so that the new level is known at once."""
    rising = np.concatenate([np.sin(np.arange(20)) / 10, np.sin(np.arange(60)) / 10 + np.arange(60) / 150])
    result = drift.capability_jump(rising, *of(80), n_reference=20)
    at = AGENTS.index(result.evidence["alarms"][0]["agent"])
    assert at - AGENTS.index(result.evidence["alarms"][0]["since"]) >= 10
    assert drift.capability_jump(rising[: at + 1], *of(at + 1), n_reference=20).state == "alert"


def test_only_the_past_is_used():
    rng = np.random.default_rng(4)
    series = np.concatenate([rng.normal(0, 1, 60), rng.normal(2, 1, 40)])
    whole = drift.capability_jump(series, *of(100)).evidence["alarms"]
    assert whole
    for n in (40, 70, 90):
        known = drift.capability_jump(series[:n], *of(n)).evidence["alarms"]
        assert known == [alarm for alarm in whole if alarm["agent"] in AGENTS[:n]]


def test_the_founders_are_reference_and_never_alarm():
    values = np.array([*np.linspace(0.1, 0.2, 10), *np.linspace(0.8, 0.9, 20)])
    assert drift.capability_jump(values, *of(30)).evidence["alarms"]
    assert not drift.capability_jump(values, *of(30), n_reference=30).evidence["alarms"]


def test_residuals_and_costs_are_watched_on_both_sides():
    falling = np.concatenate([np.sin(np.arange(25.0)), [-3.0] * 8])
    assert drift.residuals(falling, *of(33)).evidence["alarms"][0]["rising"] is False
    assert drift.cost_per_task(-falling, *of(33)).evidence["alarms"][0]["rising"] is True


def test_estimates_may_lag_further_than_costs_may_move():
    """After a zero at the 25th value each of five new largest ones adds Φ⁻¹((t − ½)/t) − ½."""
    values = np.concatenate([np.sin(np.arange(25.0)), np.arange(2.0, 7.0)])
    result = drift.residuals(values, *of(30))
    assert result.statistic == pytest.approx(sum(norm.ppf((t - 0.5) / t) - 0.5 for t in range(26, 31)))
    assert 7.8 < result.statistic < 9.0
    assert (result.state, result.threshold) == ("warn", 9.0)
    assert drift.cost_per_task(values, *of(30)).state == "alert"


# ----------------------------------------------------------------------------------------------- band erosion


def slow_counts(selected, window, edges):
    """Tasks that left the band, tasks of the band, and how far the former went, one after the other."""
    for lo, hi in edges:
        band = [j for j in range(selected.shape[1]) if lo - 1e-9 <= np.nanmean(selected[:, j]) <= hi + 1e-9]
        if 10 * len(band) >= selected.shape[1]:
            break
    rates = [np.nanmean(window[:, j]) for j in band]
    far = [(lo - rate) / lo if rate < 0.5 else (rate - hi) / (1 - hi) for rate in rates]
    out = [d for d in far if d > 1e-8]
    return len(out), len(band), sum(out)


def eroded(selected, since, edges=BAND, **more):
    tasks = [f"t{j}" for j in range(selected.shape[1])]
    return drift.band_erosion(selected, since, tasks, edges, *of(len(since)), 7, **more)


@pytest.mark.parametrize("share_missing", [0.0, 0.04])
def test_erosion_is_the_permutation_test_by_its_definition(share_missing):
    """Against all choices of 10 of 20 agents, drawn without the monitor's arithmetic."""
    rng = np.random.default_rng(11)
    selected = (rng.random((10, 12)) < rng.random(12)).astype(float)
    since = (rng.random((10, 12)) < rng.random(12)).astype(float)
    both = np.concatenate([selected, since])
    both[rng.random(both.shape) < share_missing] = np.nan
    edges = ((0.3, 0.7), (0.25, 0.75))
    result = eroded(both[:10], both[10:], edges)
    n_out, size, far = slow_counts(both[:10], both[10:], edges)
    draws = []
    for _ in range(3_000):
        order = rng.permutation(20)
        draws.append(slow_counts(both[order[:10]], both[order[10:]], edges))
    assert result.evidence["share"] == pytest.approx(n_out / size)
    counts, sizes, went = np.transpose(draws)
    tests = [
        (2 * np.mean(one >= observed - 1e-12), observed - np.mean(one))
        for observed, one in ((n_out / size, counts / sizes), (far / size, went / size))
    ]
    assert result.statistic == pytest.approx(min(1, min(tests)[0]), abs=0.06)
    summary = result.evidence
    assert summary["distance"] == pytest.approx(far / size)
    assert [summary["excess"], summary["distance_excess"]] == pytest.approx(
        [tests[0][1], tests[1][1]], abs=0.01
    )


def test_tasks_that_all_agents_solve_have_left_the_band():
    rng = np.random.default_rng(2)
    chance = np.where(np.arange(60) < 20, 0.5, 0.02)
    selected, since = ((rng.random((n, 60)) < chance).astype(float) for n in (30, 20))
    assert eroded(selected, since).state == "ok"
    since[:, :20] = 1.0
    result = eroded(selected, since)
    assert (result.state, result.evidence["share"]) == ("alert", 1.0)
    assert result.evidence["excess"] > 0.2
    assert set(result.evidence["tasks"]) <= {f"t{j}" for j in range(20)}


@pytest.mark.parametrize("n_out_of_ten", [0, 2, 5, 8, 10])
def test_how_far_a_task_left_is_linear_from_the_edge_to_all_or_none(n_out_of_ten):
    far = _left(np.array([[0.5, 0.1]]), np.array([[n_out_of_ten / 10, 1.0]]), BAND)[1]
    assert far[0] == pytest.approx([{0: 1.0, 2: 1 / 3, 5: 0.0, 8: 1 / 3, 10: 1.0}[n_out_of_ten], 0.0])


def test_an_alert_tells_the_excess_of_the_test_that_alerts():
    """Tasks at .6 that rise to .72 leave by a little: their number alerts, and how far they went does not."""
    chance = np.full(60, 0.6)
    rng = np.random.default_rng(1)
    selected, since = (rng.random((30, 60)) < chance).astype(float), (rng.random((20, 60)) < chance + 0.12)
    found = eroded(selected, since.astype(float))
    assert found.state == "alert"
    assert found.evidence["excess"] > 0.2 > found.evidence["distance_excess"]
    by_chance = found.evidence["share"] - found.evidence["excess"]
    assert found.reason.startswith(
        "28 of 56 tasks left the limits of the pass rate for the first 20 new agents with full runs: 50%, "
        f"where chance alone gives {by_chance:.0%}; p"
    )
    solved = eroded(selected, np.ones((20, 60)))
    assert solved.state == "alert"
    by_chance = solved.evidence["share"] - solved.evidence["excess"]
    assert f"where chance alone gives {by_chance:.0%}" in solved.reason


def test_six_tasks_that_all_agents_solve_are_seen_to_leave():
    rng = np.random.default_rng(5)
    chance = np.where(np.arange(60) < 6, 0.5, 0.05)
    selected, since = ((rng.random((n, 60)) < chance).astype(float) for n in (30, 20))
    assert eroded(selected, since).state == "ok"
    since[:, :6] = 1.0
    assert eroded(selected, since).state == "alert"


def test_erosion_looks_at_the_window_of_the_last_look():
    rng = np.random.default_rng(3)
    selected, quiet = ((rng.random((n, 40)) < 0.5).astype(float) for n in (15, 45))
    later = quiet.copy()
    later[40:] = 1.0  # after the look at 40
    assert eroded(selected, later) == eroded(selected, quiet)
    early = quiet.copy()
    early[:20] = 1.0  # before the window of 20
    assert eroded(selected, early).evidence["share"] == eroded(selected, quiet).evidence["share"]
    assert eroded(selected, quiet[:9]).state == "insufficient"
    assert eroded(selected[:9], quiet).state == "insufficient"


def test_the_edges_of_the_band_are_inside():
    selected = np.tile([[1.0], [0.0]], (5, 20))
    since = np.zeros((10, 20))
    since[:3] = 1.0  # .3 each
    assert eroded(selected, since).evidence["share"] == 0


# ------------------------------------------------------------------------------------------------ calibration


def test_calibration_alerts_on_too_many_misses_and_not_on_too_few():
    hits = np.zeros(500, bool)
    assert drift.calibration(hits, *of(500)).state == "ok"
    misses = np.zeros(60, bool)
    misses[::3] = True
    result = drift.calibration(misses, *of(60))
    assert result.state == "alert"
    logs = log_e_values(np.cumsum(misses), np.arange(1, 61), 0.05)
    assert result.statistic == pytest.approx(math.exp(logs.max()))
    first = int(np.flatnonzero(logs >= math.log(100))[0])
    assert result.evidence["first_alert"] == {"agent": AGENTS[first], "date": DAYS[first].isoformat()}
    assert drift.calibration(misses[:0], [], []).state == "insufficient"
    early = drift.calibration(np.array([1] * 7 + [0] * 13, dtype=bool), *of(20))
    assert early.reason.startswith(
        "7 of 20 intervals missed; at most 5% were promised; largest e-value so far "
    )
    assert early.reason.endswith(" (after 7 of 20), warns at 20, alerts at 100")


def test_an_alert_of_an_e_value_stays():
    misses = np.array([True] * 6 + [False] * 200)
    assert drift.calibration(misses, *of(206)).state == "alert"


# ------------------------------------------------------------------------------------------------- saturation


def saturated(mean, k, n_trials=1.0, omega=None, latest=None):
    latest = np.full((5, k), 0.5) if latest is None else latest
    return drift.saturation(np.array([0.4, mean]), np.array([1.0, n_trials]), k, omega, ["a", "b"], latest)


def test_saturation_can_fire():
    """All of 60 tasks: the 99% limit is 60/(60 + z²) = .917; of 50 tasks .902, of 40 it is insufficient."""
    result = saturated(1.0, 60)
    assert (result.state, result.statistic) == ("alert", pytest.approx(60 / (60 + norm.isf(0.01) ** 2)))
    assert saturated(1.0, 50).state == "alert"
    assert saturated(1.0, 40).state == "insufficient"
    assert saturated(1.0, 40).advice.startswith("repeat trials")


def test_trials_and_noise_make_a_mean_surer():
    """Each is worth k·R/ω̂: 20 tasks, 5 trials, ω̂ = .5 are worth 200."""
    result = saturated(0.94, 20, 5.0, 0.5)
    assert result.evidence["n"] == pytest.approx(200)
    assert result.statistic == pytest.approx(wilson(0.94, 200, 0.99)[0])
    assert wilson(0.94, 200, 0.95)[0] >= 0.90 > result.statistic
    assert result.state == "warn"
    low, lower = wilson(0.94, 200, 0.95)[0], wilson(0.94, 200, 0.99)[0]
    assert result.reason == (
        f"b scores 94.0% on 20 tasks, at least {low:.1%} with 95% confidence, {lower:.1%} with 99%"
    )
    assert (result.evidence["lower_95"], result.evidence["lower_99"]) == (low, lower)
    assert saturated(0.97, 20, 5.0, 0.5).reason.endswith("with 99% confidence")  # the alert
    assert saturated(0.8, 20, 5.0, 0.5).reason.endswith("with 99% confidence")
    assert saturated(0.95, 20, 5.0, 0.0).statistic == pytest.approx(0.95, abs=1e-3)


def test_of_agents_with_equal_means_the_first_is_the_best():
    latest = np.full((12, 20), 0.5)
    means = np.array([0.3, 0.1 + 0.2])
    result = drift.saturation(means, np.ones(2), 20, None, ["a", "b"], latest)
    assert (result.evidence["agent"], means[1] > means[0]) == ("a", True)


def test_half_of_the_subset_solved_warns_on_a_board_of_any_size():
    latest = np.where(np.arange(20) < 10, 1.0, 0.2) * np.ones((12, 20))
    result = saturated(0.6, 20, latest=latest)
    assert (result.state, result.statistic) == ("warn", 0.5)
    assert result.reason.endswith("; 50.0% of the tasks are passed by more than 95% of the latest 12 agents")
    none = saturated(0.6, 20, latest=np.full((12, 20), 0.5))
    assert none.reason.endswith("; no task is passed by more than 95% of the latest 12 agents")
    assert saturated(0.6, 20, latest=latest[:9]).state == "insufficient"
    assert saturated(0.6, 20, latest=np.full((20, 20), 0.95)).state == "insufficient"


def test_a_solved_subset_of_an_unsolved_benchmark_warns_and_proposes_another():
    """As on MINT, where the best agent had 96.6% of S and 66% of all 586 tasks."""
    found = saturated(0.98, 200)
    full = drift.FullRunScore.measured(0.66, 586, 1.0, None)
    assert (found.state, full.lower) == ("alert", pytest.approx(wilson(0.66, 586, 0.99)[0]))
    asked = drift.of_benchmark(found, full)
    assert (asked.state, asked.statistic, asked.threshold) == ("warn", found.statistic, found.threshold)
    assert asked.reason == (
        f"{found.reason}; on all 586 tasks b has 66.0%, at least {full.lower:.1%}, "
        "so the benchmark is not solved"
    )
    assert asked.advice == "choose new ranking tasks from the latest full runs"
    assert (asked.evidence["subset_alone"], asked.evidence["full_score"]) == (True, 0.66)
    estimated = drift.of_benchmark(found, drift.FullRunScore(0.7, 0.6, 586, is_estimated=True))
    assert "b has an estimated 70.0%, at least 60.0%" in estimated.reason


def test_a_solved_benchmark_alerts_and_what_is_quiet_stays_so():
    result = saturated(0.98, 200)
    assert drift.of_benchmark(result, drift.FullRunScore.measured(0.95, 586, 1.0, None)) == result
    assert (
        drift.of_benchmark(result, drift.FullRunScore.measured(0.92, 586, 1.0, None)).state == "warn"
    )  # ≥ .89
    quiet, low = saturated(0.6, 200), drift.FullRunScore(0.5, 0.4, 586)
    assert drift.of_benchmark(quiet, low) == quiet
    warned = drift.of_benchmark(saturated(0.94, 20, 5.0, 0.5), low)
    assert (warned.state, warned.evidence["subset_alone"]) == ("warn", False)


def test_the_wilson_bound_solves_its_equation():
    """The lower limit is the share from which p lies z standard errors away."""
    for p, n, alpha in ((0.9, 50, 0.05), (1.0, 60, 0.01), (0.5, 7, 0.2)):
        low = wilson(p, n, 1 - alpha)[0]
        assert p - low == pytest.approx(norm.isf(alpha) * math.sqrt(low * (1 - low) / n))


# ----------------------------------------------------------------------------------------------------- tuning


def audit(residuals, expected=0.5):
    """Outcomes that lie so far from what is expected; NaN where nothing was audited."""
    residuals = np.asarray(residuals, dtype=float)
    return Audit(expected + residuals, np.full(residuals.shape, expected))


def tuned(reference, since):
    return drift.subset_tuning(audit(reference), audit(since), *of(len(since)), 3)


def test_tuning_weighs_newcomers_against_draws_of_whole_agents(monkeypatch):
    """Five reference agents at 0 and five at −1 throughout: 80 newcomers have −B₁/80, and the reference has
    −½ + (½ − B₂/10)·√(10/χ²₉), B₁ and B₂ binomial of 80 and ten. Without the stretch p would be .074.
    """
    monkeypatch.setattr("analytics.drift.monitor.CLEARLY_ABOVE", np.inf)  # all 9,999 draws
    reference = np.repeat([[0.0], [-1.0]], 5, axis=0) * np.ones(4)
    since = np.repeat([[-1.0], [0.0]], [60, 20], axis=0) * np.ones(4)
    result = tuned(reference, np.concatenate([since, since]))
    assert result.evidence["gap"] == pytest.approx(-0.75 + 0.5)
    exact = 0.0
    for b1, b2 in product(range(81), range(11)):
        off, needed = 0.5 - b2 / 10, 0.75 - b1 / 80
        if off > 0 and needed > 0:
            beyond = chi2.cdf(10 * (off / needed) ** 2, 9)
        elif off < 0 and needed < 0:
            beyond = chi2.sf(10 * (off / needed) ** 2, 9)
        else:
            beyond = float(needed <= 1e-12)
        exact += binom.pmf(b1, 80, 0.5) * binom.pmf(b2, 10, 0.5) * beyond
    assert result.statistic == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 9_999))


def test_tuning_weighs_newcomers_against_draws_of_tasks():
    """All reference agents are alike, at −1 on half of their tasks: only the tasks drawn differ."""
    reference = np.tile([0.0, -1.0, np.nan, 0.0, -1.0], (10, 1))
    since = np.full((10, 5), np.nan)
    since[:, :2] = -1.0
    since[:3, 0] = 0.0
    result = tuned(reference, since)
    assert result.evidence["gap"] == pytest.approx(-17 / 20 + 0.5)
    assert result.statistic == pytest.approx(binom.sf(16, 20, 0.5), abs=4 * math.sqrt(0.0013 / 10_000))
    assert (result.state, result.threshold) == ("alert", 1.5 * 0.005)


def test_what_is_off_for_everybody_is_no_tuning():
    rng = np.random.default_rng(4)
    reference, since = ((rng.random((n, 30)) < 0.2) - 0.5 for n in (15, 10))
    assert tuned(reference, since).state == "ok"
    assert tuned(np.full((15, 30), 0.1), since - 0.2).state == "alert"


def test_tuning_looks_at_those_audited_since_the_look_before_and_at_twenty_at_least():
    since = np.full((60, 3), np.nan)
    since[::2] = np.where(np.arange(30) < 20, -0.5, 0.5)[:, None]  # audited: 30, the look takes 20
    result = tuned(np.zeros((10, 3)), since)
    assert result.evidence["gap"] == -0.5
    assert result.evidence["look"]["agent"] == AGENTS[38]
    longer = tuned(np.zeros((10, 3)), np.repeat([[0.5], [-0.5], [0.5]], [40, 40, 5], axis=0) * np.ones(3))
    assert longer.evidence["gap"] == -0.5  # the look takes 80, those since the look at 40
    assert tuned(np.zeros((10, 3)), since[:18]).state == "insufficient"
    assert tuned(np.zeros((9, 3)), since).state == "insufficient"
    assert tuned(np.zeros((10, 3)), since[:0]).reason == "no audit task was run"


def test_an_agent_alone_is_flagged_below_minus_three_on_five_tasks():
    outcomes = np.full((3, 12), np.nan)
    outcomes[0, :10] = outcomes[1, :4] = 0.0  # −√10 and −2
    outcomes[2, :9] = 0.0  # −3 exactly
    result = tuned(np.zeros((10, 12)), outcomes - 0.5)
    assert result.state == "insufficient"
    assert result.evidence["agents"] == ["a000"]


# ---------------------------------------------------------------------------------------------------- harness


def invalid(shares, n_trials=100):
    shares = np.asarray(shares)
    return Invalid((shares * n_trials).round().astype(int), np.full(len(shares), n_trials))


def test_failures_are_bet_on_against_the_upper_limit_of_the_reference():
    quiet = drift.harness_failures(invalid([0.01] * 20), invalid([0.01] * 20), *of(20))
    assert quiet.state == "ok"
    assert quiet.evidence["promised"] == pytest.approx(upper_share(20, 2_000))
    loud = drift.harness_failures(invalid([0.01] * 20), invalid([0.05] * 20), *of(20))
    assert loud.state == "alert"
    assert loud.evidence["agents"] == AGENTS[:20]
    fell = drift.harness_failures(invalid([0.01] * 20), invalid([0.05] * 20 + [0.0] * 5), *of(25))
    assert fell.reason.endswith(" (after 20 of 25), warns at 20, alerts at 100")
    assert drift.harness_failures(invalid([0.01] * 9), invalid([0.05] * 20), *of(20)).state == "insufficient"
    assert drift.harness_failures(invalid([1.0] * 20), invalid([0.5]), *of(1)).state == "insufficient"


def test_agents_that_differ_promise_less():
    shares = np.array([0.0] * 8 + [0.10] * 2)
    result = drift.harness_failures(invalid(shares), invalid([0.0]), *of(1))
    t = 2.262157  # t of 9 degrees at .975
    assert result.evidence["promised"] == pytest.approx(
        0.02 + t * shares.std(ddof=1) / math.sqrt(10), abs=1e-6
    )


def test_noise_is_the_variance_over_the_binomial_one():
    means, variances = np.array([[0.5, 1.0, 0.2]]), np.array([[0.5, 0.0, np.nan]])
    result = drift.noise_of(variances, means)
    assert (result.variances[0], result.binomial[0]) == pytest.approx((0.5, 2 * 0.75 * 0.25))


def test_noise_matches_all_permutations_of_a_small_sample(monkeypatch):
    monkeypatch.setattr("analytics.drift.before_and_since.MIN_AGENTS", 5)
    monkeypatch.setattr("analytics.drift.before_and_since.last_look", lambda n: Look(1, 3, 0.005))
    rng = np.random.default_rng(5)
    both = rng.random((8, 2)) + np.array([0.0, 0.5])
    both[:3, 0] += 0.5

    def gap(rows):
        one, other = both[list(rows)].sum(axis=0), np.delete(both, list(rows), axis=0).sum(axis=0)
        return one[0] / one[1] - other[0] / other[1]

    exact = np.mean([gap(rows) >= gap(range(3)) - 1e-12 for rows in combinations(range(8), 3)])
    reference, since = Noise(*both[3:].T), Noise(*both[:3].T)
    result = drift.run_noise(reference, since, *of(3), 6)
    assert result.statistic == pytest.approx(exact, abs=0.012)
    assert result.evidence["since"] - result.evidence["before"] == pytest.approx(gap(range(3)))


def test_only_noise_that_rose_is_found_at_the_last_look():
    rng = np.random.default_rng(7)
    binomial = np.full(60, 10.0)
    values = rng.random(60)
    reference, quiet = Noise(values[:15], binomial[:15]), Noise(values[15:], binomial[15:])

    def ask(shift, n=45):
        return drift.run_noise(reference, Noise(quiet.variances[:n] + shift, quiet.binomial[:n]), *of(n), 1)

    assert [ask(0).state, ask(1).state, ask(-0.9).state, ask(1, 9).state] == [
        "ok",
        "alert",
        "ok",
        "insufficient",
    ]
    assert ask(1, 9).advice == "run new agents twice on each task"
    assert ask(1).evidence["look"]["agent"] == AGENTS[39]
    assert ask(1, 45) == ask(1, 40)


def novel(before, since):
    return drift.scaffold_novelty(before, since, *of(len(since)), 5)


def test_novelty_is_hypergeometric_where_each_new_scaffold_has_one_agent():
    """Six of twenty agents have a scaffold of their own; all six came among the latest ten."""
    result = novel(["old"] * 10, [*"uvwxyz", *["old"] * 4])
    assert result.evidence["share"] == 0.6
    assert result.statistic == pytest.approx(hypergeom.sf(5, 20, 6, 10), abs=4 * math.sqrt(0.0054 / 10_000))
    assert (result.state, result.threshold) == ("warn", 5 * 0.005)


def test_a_scaffold_of_three_is_new_when_all_three_are_late():
    result = novel(["old"] * 10, [*["new"] * 3, *["old"] * 7])
    assert result.statistic == pytest.approx(hypergeom.sf(2, 20, 3, 10), abs=0.015)
    assert result.state == "ok"


def test_scaffolds_of_one_agent_each_are_no_news():
    names = [f"s{i}" for i in range(30)]
    result = novel(names[:10], names[10:])
    assert (result.state, result.evidence["share"], result.statistic) == ("ok", 1.0, 1.0)


def test_novelty_looks_at_the_latest_twenty():
    since = ["new"] * 20 + ["old"] * 20 + ["new"] * 5
    result = novel(["old"] * 15, since)
    assert (result.evidence["share"], result.evidence["look"]["agent"]) == (0, AGENTS[39])
    assert novel(["old"] * 15, since[20:]).state == "ok"  # the look at 20
    assert novel(["old"] * 15, since[:39]).evidence["agents"] == AGENTS[:20]
    assert novel(["old"] * 15, since[:9]).state == "insufficient"
    assert novel(["old"] * 9, since).state == "insufficient"


# -------------------------------------------------------------------------------------------- what all share


def test_false_alerts_a_year():
    """Two charts at 1/7,500 an agent, an e-value and a test at looks with .01 each, erosion with .02."""
    rng = np.random.default_rng(1)
    binary = (rng.random((30, 20)) < 0.5).astype(float)
    monitors = [
        drift.capability_jump(np.arange(12.0), *of(12)),
        drift.cost_per_task(np.arange(12.0), *of(12)),
        drift.calibration(np.zeros(3, bool), *of(3)),
        asked(correlated(20, 0.1, 1), correlated(20, 0.1, 2)),
        eroded(binary[:15], binary[15:]),
        saturated(0.5, 60),
        drift.insufficient("cost per task", "not measured"),
    ]
    assert drift.false_alerts_a_year(monitors, 400) == pytest.approx(2 * 400 / RUN_LENGTH + 0.04)


def test_a_rerun_set_has_a_random_part_and_the_rest_on_top():
    since, ties, new = np.arange(20, 60), np.array([1, 2, 30]), np.array([59])
    chosen = rerun_set(since, ties, new, np.random.default_rng(1))
    drawn = [run for run in chosen if run.sampled]
    assert len(drawn) == 8
    assert all(run.inclusion == 8 / 40 and run.agent >= 20 for run in drawn)
    assert {1, 2, 30, 59} <= {run.agent for run in chosen}
    assert [run.agent for run in chosen] == sorted({run.agent for run in chosen})
    few = rerun_set(np.arange(3), ties[:0], ties[:0], np.random.default_rng(1))
    assert [(run.agent, run.inclusion) for run in few] == [(0, 1.0), (1, 1.0), (2, 1.0)]
    assert rerun_set(since[:0], ties[:0], ties[:0], np.random.default_rng(1)) == []


def test_each_agent_is_drawn_with_the_probability_stated():
    draws = [
        run.agent
        for seed in range(2_000)
        for run in rerun_set(np.arange(16), np.array([], int), np.array([], int), np.random.default_rng(seed))
    ]
    shares = np.bincount(draws, minlength=16) / 2_000
    assert np.abs(shares - 0.5).max() < 4 * math.sqrt(0.25 / 2_000)


def test_series_of_different_length_are_refused():
    with pytest.raises(CoreError, match="lengths 2, 3"):
        drift.capability_jump(np.zeros(2), AGENTS[:3], DAYS[:3])
