"""V_a and ν_a by hand; see STATISTICS §7.4, ranks for finite targets, items 1 and 2."""

import math
from dataclasses import replace

import numpy as np
import pytest

from analytics.differences.finite_errors import Calibrated, Measured, TrialNoise, error_of, trial_noise
from analytics.differences.rows import Facet, Row
from analytics.errors import CoreError

NAN = math.nan
TWO = Row(np.array([0.5, 0.25]), np.array([0.5, 0.25]), np.array([2.0, 4.0]))


def measured(row, outcomes=None):
    return Measured("a", row.means if outcomes is None else np.array(outcomes, float), row)


def test_unequal_trials_by_hand():
    # q = .5/2, .25/4; with pseudo-cells 4·.3: (.25 + .0625 + 1.2)·2/(2 + 4)/2².
    result = error_of(measured(TWO), TrialNoise(None, 0.3))
    assert result.variance == pytest.approx(1.5125 / 12, rel=1e-14)
    # ν = V²/[(.25²/1 + .0625²/3)/2⁴]
    assert result.df == pytest.approx((1.5125 / 12) ** 2 / ((0.0625 + 0.00390625 / 3) / 16), rel=1e-14)
    assert (result.method, result.beyond, result.calibrated) == ("repeated trials", 0.0, 0.0)


def test_where_nobody_complete_differs_between_trials_pseudo_cells_have_a_quarter_of_1_in_r_k():
    # R̄ = 3, k = 2: q̄ = ¼/6; trials all alike: V = 4/24·(2/6)/4, and nothing tells ν.
    row = replace(TWO, trial_variances=np.zeros(2))
    for noise in (TrialNoise(None, 0.0), TrialNoise(None, None)):
        result = error_of(measured(row), noise)
        assert result.variance == pytest.approx(1 / 72, rel=1e-14)
        assert result.df == 1e6


def test_where_nobody_complete_repeats_pseudo_cells_have_the_agents_own_mean():
    # q = .25, .0625: V = (.3125 + 4·.15625)·2/(2 + 4)/2² = .3125/4: nothing is shrunk towards 0.
    assert error_of(measured(TWO), TrialNoise()).variance == pytest.approx(0.3125 / 4, rel=1e-14)


def test_single_cells_take_the_variance_function_of_the_smoothed_mean():
    # k = 4, Σ = 2, p̃ = ½: one = 2·.6·¼ = .3; repeated (.25 + .0625 + .4)·2/6 = .2375.
    row = Row(np.array([0.5, 0.25, 1, 0.25]), np.array([0.5, 0.25, NAN, NAN]), np.array([2.0, 4, 1, 1]))
    result = error_of(measured(row), TrialNoise(0.6, 0.1))
    v = (0.3 + 0.2375) / 16
    assert result.variance == pytest.approx(v, rel=1e-14)
    inverse = (0.0625 + 0.00390625 / 3) / 4**4 + (0.3 / 16) ** 2 / 3
    assert result.df == pytest.approx(v**2 / inverse, rel=1e-14)
    assert result.method == "variance function"


def test_an_agent_of_single_trials_alone_never_has_a_variance_of_0():
    # All passed: p̃ = 12/14; V = ω·p̃(1 − p̃)/k with k − 1 degrees of freedom.
    result = error_of(measured(Row(np.ones(10))), TrialNoise(0.5, 0.1))
    assert result.variance == pytest.approx(0.5 * 24 / 196 / 10, rel=1e-14)
    assert result.df == pytest.approx(9, rel=1e-12)


def two_trials(n_tasks, n_different):
    """All passed, but for one trial of each of these tasks."""
    differ = np.arange(n_tasks) < n_different
    return measured(Row(np.where(differ, 0.5, 1.0), np.where(differ, 0.5, 0.0), np.full(n_tasks, 2.0)))


def test_repeats_that_never_differ_count_as_one_trial():
    # ν says nothing of them. Σ = 15, p̃ = 17/19.
    result = error_of(two_trials(15, 0), TrialNoise(0.6, 0.1))
    assert result.variance == pytest.approx(0.6 * 17 / 19 * 2 / 19 / 15, rel=1e-14)
    assert result.df == 14


def test_repeats_of_fewer_than_four_degrees_of_freedom_count_as_one_trial():
    # q̄ is nearly 0, so that ν = 5·(15/19)², 3.1. Σ = 12.5, p̃ = 14.5/19.
    agent = two_trials(15, 5)
    result = error_of(agent, TrialNoise(0.6, 1e-9))
    assert result.variance == pytest.approx(0.6 * 14.5 / 19 * 4.5 / 19 / 15, rel=1e-14)
    assert (result.df, result.method) == (14, "variance function")
    assert error_of(agent, TrialNoise(None, 1e-9)).method == "neyman"


@pytest.mark.parametrize(("n_tasks", "n_different"), [(15, 7), (14, 5)])
def test_repeats_of_four_degrees_of_freedom_or_on_few_tasks_count(n_tasks, n_different):
    result = error_of(two_trials(n_tasks, n_different), TrialNoise(0.6, 1e-9))
    assert result.df == pytest.approx(n_different * (n_tasks / (n_tasks + 4)) ** 2, rel=1e-6)
    assert result.method == "repeated trials"


def test_without_a_variance_function_single_cells_take_the_mean_of_half_the_tasks_or_more():
    row = Row(np.array([0.5, 0.25, 1, 0.25]), np.array([0.5, 0.25, NAN, NAN]), np.array([2.0, 4, 1, 1]))
    result = error_of(measured(row), TrialNoise(None, 0.1))
    v = (0.2375 + 2 * 0.375) / 16
    assert result.variance == pytest.approx(v, rel=1e-14)
    # Each s² counts 1/R + (2 single)/(2 repeated): .5·1.5 and .25·1.25.
    assert result.df == pytest.approx(v**2 / ((0.75**2 + 0.3125**2 / 3) / 4**4), rel=1e-14)
    assert result.method == "repeated trials"
    # One repeated of four is less than half: by tasks, and p̃(1 − p̃)/k as the upper bound.
    fewer = replace(row, trial_variances=np.array([0.5, NAN, NAN, NAN]))
    result = error_of(measured(fewer), TrialNoise(None, 0.1))
    assert (result.method, result.df) == ("neyman", 3)
    assert result.variance == pytest.approx(0.25 / 4, rel=1e-14)


def test_completed_cells_add_nothing_but_the_linking_variance_once():
    row = Row(
        np.array([0.5, 0.25, NAN]),
        np.array([0.5, 0.25, NAN]),
        np.array([2.0, 4, NAN]),
        v_link=0.01,
        df_link=9,
    )
    result = error_of(measured(row, [0.5, 0.25, 0.7]), TrialNoise(None, 0.1))
    v = 0.2375 / 9 + 0.01
    assert result.variance == pytest.approx(v, rel=1e-14)
    assert result.df == pytest.approx(v**2 / ((0.0625 + 0.00390625 / 3) / 3**4 + 0.01**2 / 9), rel=1e-14)
    assert result.beyond == 0.01


def test_facets_add_their_interaction_with_the_agent():
    row = replace(TWO, levels={"run": 2})
    facets = (Facet("run", 0.008, df_with_agent=5), Facet("judge"))
    result = error_of(measured(row), TrialNoise(None, 0.1), facets)
    assert result.beyond == pytest.approx(0.004)
    assert result.variance == pytest.approx(0.7125 / 12 + 0.004, rel=1e-14)
    assert result.df < error_of(measured(row), TrialNoise(None, 0.1)).df * 2


def test_copies_count_as_one_trial():
    row = replace(TWO, one_trial=True)
    assert error_of(measured(row), TrialNoise(None, 0.1)).method == "neyman"
    # p̃ = 2.75/6
    result = error_of(measured(row), TrialNoise(0.5, 0.1))
    assert result.variance == pytest.approx(0.5 * 2.75 / 6 * 3.25 / 6 / 2, rel=1e-14)


def test_degrees_of_freedom_are_at_least_one():
    row = Row(TWO.means, np.array([0.5, 0.0]), np.array([2.0, 2.0]))
    assert error_of(measured(row), TrialNoise(None, 1e-9)).df == 1


def test_permuted_tasks_change_no_bit():
    rng = np.random.default_rng(1)
    trials = rng.random((200, 5)) < rng.random((200, 1))
    row = Row(trials.mean(axis=1), trials.var(axis=1, ddof=1), np.full(200, 5.0))
    order = rng.permutation(200)
    moved = Row(row.means[order], row.trial_variances[order], row.n_trials[order])
    assert error_of(measured(moved), TrialNoise(0.5, 0.03)) == error_of(measured(row), TrialNoise(0.5, 0.03))
    assert measured(moved).score == measured(row).score


def test_a_calibrated_agent_has_the_error_of_its_calibration_and_of_linking():
    result = error_of(
        Calibrated("c", 0.4, 0.0016, 29, calibration=1, v_link=0.0004, df_link=11), TrialNoise()
    )
    assert (result.variance, result.df, result.calibrated, result.calibration) == (0.0004, 11, 0.0016, 1)
    assert result.total == pytest.approx(0.002)


def test_a_calibrated_agent_has_the_noise_of_the_cells_that_it_ran():
    # 3 of 8 tasks once: p̃ = (.5·8 + 2)/12 = ½, 3·ω̂·¼/8², 7 degrees of freedom; ω̂ = 1 where nobody repeats.
    row = Row(np.array([1.0, 0, 1] + [NAN] * 5))
    agent = Calibrated("c", 0.5, 0.0016, 29, row=row)
    result = error_of(agent, TrialNoise(0.6, 0.1))
    assert result.variance == pytest.approx(3 * 0.6 * 0.25 / 64, rel=1e-14)
    assert (result.df, result.calibrated, result.method) == (7, 0.0016, "calibration")
    assert error_of(agent, TrialNoise()).variance == pytest.approx(3 * 0.25 / 64, rel=1e-14)
    # With repeats q = .5/2, .25/4 and pseudo-cells of 4·.1: (.3125 + .4)·2/6 over 4².
    cells = Row(
        np.array([0.5, 0.25, NAN, NAN]), np.array([0.5, 0.25, NAN, NAN]), np.array([2.0, 4, NAN, NAN])
    )
    result = error_of(replace(agent, row=cells), TrialNoise(None, 0.1))
    assert result.variance == pytest.approx(0.2375 / 16, rel=1e-14)


# ------------------------------------------------------------------------------------------- all complete


def test_the_mean_of_mean_trial_variances_by_hand():
    # Mean q of the agents: (.25 + .0625)/2, .125; the third's trials are copies, the fourth has single ones.
    s2 = np.array([[0.5, 0.25], [0.25, NAN], [0.5, 0.5], [NAN, NAN]])
    n_trials = np.array([[2.0, 4], [2, 1], [2, 2], [1, 1]])
    copies = np.array([False, False, True, False])
    result = trial_noise(np.full((4, 2), 0.5), s2, n_trials, one_trial=copies)
    assert result == TrialNoise(None, pytest.approx(0.140625))
    assert trial_noise(np.full((4, 2), 0.5), None, None) == TrialNoise()


def test_a_variance_function_of_0_tells_nothing():
    means = np.tile([0.0, 1.0], (3, 10))
    result = trial_noise(means, np.zeros((3, 20)), np.full((3, 20), 5.0))
    assert result == TrialNoise(None, 0.0)


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        (Calibrated("c", 0.5, 0.0, 9), "calibration 0 with an error of 0.0"),
        (Calibrated("c", 0.5, NAN, 9), "an error of nan"),
        (Calibrated("c", 0.5, 0.1, 0.5), "0.5 degrees of freedom"),
        (Measured("a", np.array([0.5, 1.5]), TWO), "not all from 0 to 1"),
        (Measured("a", np.array([0.5]), TWO), "cells that are not those of its 1 outcomes"),
        (Measured("a", np.array([0.5]), Row(np.array([NAN]))), "a variance of 0.0"),
    ],
)
def test_what_has_no_error_is_refused(agent, message):
    with pytest.raises(CoreError, match=message):
        error_of(agent, TrialNoise())
