"""Rank sets on given tasks: by hand, by property, and against the plain way through all pairs."""

import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm, studentized_range, t

from analytics.differences import error_draws, neyman_draws
from analytics.differences.error_draws import draw_errors, may_be_first, upper_point
from analytics.differences.estimates import score
from analytics.differences.finite_errors import Calibrated, Measured, TrialNoise, error_of, trial_noise
from analytics.differences.neyman_draws import agent_noise, ahead, task_weights
from analytics.differences.ranks import FEW_TASKS_NOTE, NOTES, rank_intervals, rank_sets, resample
from analytics.differences.rows import Facet, Row
from analytics.errors import CoreError

REPEATABLE = settings(derandomize=True, deadline=None, max_examples=25)
NOISE = TrialNoise(None, 0.02)


def names(n):
    return [f"a{i:03d}" for i in range(n)]


def tried(rng, p, n_trials, **row):
    """Rows of means, s² and R after trials with pass rates p."""
    trials = rng.random((*p.shape, n_trials)) < p[..., None]
    s2 = trials.var(axis=-1, ddof=1) if n_trials > 1 else np.full(p.shape, math.nan)
    return Row(trials.mean(axis=-1), s2, np.full(p.shape, float(n_trials)), **row)


def agent(name, row):
    return Measured(name, row.means, row)


def board(seed, n=8, k=40, n_trials=5, spread=0.3):
    rng = np.random.default_rng(seed)
    p = np.clip(rng.random(k) + np.linspace(-spread, spread, n)[:, None], 0.02, 0.98)
    return [agent(name, tried(rng, row, n_trials)) for name, row in zip(names(n), p, strict=True)]


def noise_of(agents):
    return trial_noise(*(np.array([getattr(a.row, f) for a in agents]) for f in Row.__annotations__ if f in
                         ("means", "trial_variances", "n_trials")))  # fmt: skip


def plain(agents, noise, *, seed, n_draws, by_tasks=()):
    """c² and who may be first, through all pairs of all draws; draws of errors from the module."""
    errors = [error_of(one, noise) for one in agents]
    n = len(agents)
    judged = ~np.eye(n, dtype=bool)
    for a, b in by_tasks:
        judged[a, b] = judged[b, a] = False
    draws = draw_errors([one.name for one in agents], errors, judged, seed=seed, n_draws=n_draws)
    signed = draws.errors[:, None] - draws.errors
    ratios = signed**2 / (draws.seen[:, None] + draws.seen)
    ratios[~judged] = 0.0
    return draws, ratios, np.where(signed > 0, ratios, 0.0)


# ---------------------------------------------------------------------------------------------------- by hand


def three():
    """Three agents on two tasks with unequal R: means .9, .8 and .1."""
    rows = (
        Row(np.array([1.0, 0.8]), np.array([0.0, 0.2]), np.array([2.0, 5.0])),
        Row(np.array([0.7, 0.9]), np.array([0.3, 0.1]), np.array([10.0, 10.0])),
        Row(np.array([0.2, 0.0]), np.array([0.2, 0.0]), np.array([5.0, 3.0])),
    )
    return [agent(name, row) for name, row in zip("abc", rows, strict=True)]


def test_three_agents_on_two_tasks_by_hand():
    # (Σq + 4·.02)·(2/6)/4: Σq = 0 + .04, .03 + .01, .04 + 0.
    result = rank_sets(three(), NOISE, seed=1)
    assert result.variances == pytest.approx([0.01, 0.01, 0.01], rel=1e-12)
    assert result.df == pytest.approx([0.01**2 / (q2 / 16) for q2 in (0.04**2 / 4, 0.001 / 9, 0.04**2 / 4)])
    assert result.se == pytest.approx(np.full((3, 3), math.sqrt(0.02)))
    assert result.means.tolist() == [0.9, 0.8, 0.1]
    # d = .1, .7, .8 at √.02: .71, 4.9 and 5.7 standard errors; c of three with ν of about 1 to 14 is larger.
    beats = [
        [result.means[i] - result.means[j] > result.critical * math.sqrt(0.02) for j in range(3)]
        for i in range(3)
    ]
    assert result.beats.tolist() == beats
    assert result.n_tasks == 2
    assert result.methods == ("repeated trials",) * 3
    assert result.notes == ()


def test_a_clear_order_by_hand():
    # s² = .01 in 40 cells of 5 trials: V = (40·.002 + 4·.002)·(40/44)/40² = 5e-5; .5 is 50 standard errors.
    rows = [Row(np.full(40, m), np.full(40, 0.01), np.full(40, 5.0)) for m in (0.3, 0.8, 0.8)]
    result = rank_sets(
        [agent(n, r) for n, r in zip("abc", rows, strict=True)], TrialNoise(None, 0.002), seed=0
    )
    assert result.variances == pytest.approx(np.full(3, 5e-5))
    assert (result.lower.tolist(), result.upper.tolist()) == ([3, 1, 1], [3, 2, 2])
    assert result.may_be_first.tolist() == [False, True, True]
    assert np.flatnonzero(result.tied[1]).tolist() == [2]
    # ν = 160 for each: c near that of three known variances, 2.34
    assert result.critical == pytest.approx(studentized_range.ppf(0.95, 3, math.inf) / math.sqrt(2), abs=0.07)


def under_prompts(with_agent):
    rows = [Row(np.full(40, m), np.full(40, 0.01), np.full(40, 5.0)) for m in (0.3, 0.8)]
    facet = Facet("prompt", with_agent, df_with_agent=5.0)
    agents = [agent(n, r) for n, r in zip("ab", rows, strict=True)]
    return rank_sets(agents, TrialNoise(None, 0.002), seed=0, facets=(facet,), n_draws=100_000)


def test_what_agents_vary_by_with_the_prompt_is_known_by_one_estimate_for_all():
    """It is nearly all of both variances: c of two agents is t with its degrees of freedom."""
    assert under_prompts(0.01).critical == pytest.approx(t.ppf(0.975, 5), rel=0.01)


def test_a_facet_estimated_as_0_may_have_been_missed():
    """By definition, with ν = 160 of each agent's trials and 5 of the facet; so c never gets smaller."""
    rng = np.random.default_rng(1)
    own, shared = rng.chisquare(160, (2, 400_000)) / 160, rng.chisquare(5, 400_000) / 5
    gaps = np.abs(rng.normal(0, math.sqrt(2), 400_000)) / np.sqrt(np.minimum(own, shared).sum(axis=0))
    assert under_prompts(0.0).critical == pytest.approx(np.quantile(gaps, 0.95), rel=0.02)
    without = rank_sets(board(3, n=24, n_trials=2), NOISE, seed=0)
    facet = Facet("prompt", 0.0, df_with_agent=23.0)
    assert rank_sets(board(3, n=24, n_trials=2), NOISE, seed=0, facets=(facet,)).critical >= without.critical


def test_what_suits_an_agent_on_a_task_under_one_prompt_is_averaged_by_tasks():
    """V_a by hand: .09/(2·40) more of 40 tasks under two prompts; a spread over tasks holds it."""
    row = Row(np.full(40, 0.5), np.full(40, 0.01), np.full(40, 5.0), levels={"prompt": 2})
    before = Facet("prompt", 0.01, df_with_agent=5.0)
    after = replace(before, with_task=0.09, df_with_task=200.0)
    once = Row(row.means, levels=row.levels)
    for one, added in ((row, 0.09 / 80), (once, 0.0)):
        old, new = (error_of(agent("a", one), NOISE, (facet,)).variance for facet in (before, after))
        assert new == pytest.approx(old + added, rel=1e-12)
        old, new = (score(one, "full", facets=(facet,)).interval.se ** 2 for facet in (before, after))
        assert new == pytest.approx(old + added, rel=1e-12)


def test_two_agents_of_known_variance_need_the_normal_quantile():
    rows = [Row(np.full(50, m), np.full(50, 0.2), np.full(50, 1e5)) for m in (0.5, 0.5)]
    result = rank_sets([agent(n, r) for n, r in zip("ab", rows, strict=True)], NOISE, seed=3, n_draws=60_000)
    assert result.critical == pytest.approx(norm.ppf(0.975), abs=0.03)


def test_agents_of_one_calibration_share_its_error():
    # Two of them: T = |e_a − e_b|/(√2·s_cal·√(χ²/ν)) with errors of t₅ made to variance 1.
    result = rank_sets([Calibrated(n, 0.5, 0.04, 7) for n in "ab"], TrialNoise(), seed=1, n_draws=100_000)
    rng = np.random.default_rng(0)
    e = rng.standard_t(5, (2, 400_000)) * math.sqrt(3 / 5)
    shared = np.abs(e[0] - e[1]) / np.sqrt(2 * rng.chisquare(7, 400_000) / 7)
    assert result.critical == pytest.approx(np.quantile(shared, 0.95), abs=0.05)
    assert result.df.tolist() == [7, 7]
    apart = rank_sets(
        [Calibrated(n, 0.5, 0.04, 7, calibration=c) for c, n in enumerate("ab")], TrialNoise(), seed=1
    )
    assert apart.critical < result.critical - 0.1
    assert result.n_tasks == 0


def test_a_linking_variance_of_a_calibrated_agent_adds_to_its_error():
    agents = [Calibrated("a", 0.5, 0.0009, 30), Calibrated("b", 0.4, 0.0009, 30, v_link=0.0016, df_link=11)]
    result = rank_sets(agents, TrialNoise(), seed=1)
    assert result.se[0, 1] == pytest.approx(math.sqrt(0.0009 * 2 + 0.0016))


def test_a_single_trial_agent_against_a_calibrated_one_has_its_binomial_upper_bound():
    rng = np.random.default_rng(2)
    single = agent("a", tried(rng, np.full(20, 0.5), 1))
    other = agent("b", tried(rng, np.full(20, 0.5), 1))
    result = rank_sets([single, other, Calibrated("c", 0.5, 0.001, 20)], TrialNoise(), seed=1, n_draws=999)
    rate = (single.outcomes.sum() + 2) / 24
    assert result.se[0, 2] == pytest.approx(math.sqrt(rate * (1 - rate) / 20 + 0.001))
    d = single.outcomes - other.outcomes
    assert result.se[0, 1] == pytest.approx(math.sqrt((d @ d + 1 - d.sum() ** 2 / 22) / 22**2))
    assert result.methods == ("neyman", "neyman", "calibration")
    assert result.notes == (NOTES["neyman"], NOTES["calibration"])


# ------------------------------------------------------------------------------------- pruning equals plain


@pytest.mark.parametrize("few_agents", [0, 32])
@pytest.mark.parametrize("seed", range(4))
def test_pruning_equals_all_pairs_of_all_draws_to_the_last_bit(seed, few_agents, monkeypatch):
    monkeypatch.setattr(error_draws, "FEW_AGENTS", few_agents)
    rng = np.random.default_rng(seed)
    agents = [
        *board(seed, 9, n_trials=int(rng.integers(2, 6))),
        *(Calibrated(f"c{i}", 0.5, 0.003, 9) for i in "123"),
    ]
    noise, n_draws = noise_of(agents[:9]), 999
    by_tasks = [(0, 1), (0, 2), (3, 5)] if seed % 2 else []
    draws, ratios, ahead_of = plain(agents, noise, seed=seed, n_draws=n_draws, by_tasks=by_tasks)
    others = rng.random(n_draws) * (20 if seed > 1 else 0)
    largest = np.maximum(ratios.max(axis=(0, 1)), others)
    for place in (1, 500, 950, 999):
        assert upper_point(draws, others, place) == np.sort(largest)[place - 1]
    # T_a of the others over agent a: row b, column a.
    own = np.sort(np.sqrt(np.maximum(ahead_of.max(axis=0), others)), axis=1)[:, 949]
    nothing = np.zeros(len(agents))
    for share in (0.5, 0.9, 0.99, 1.01, 1.5):
        rivals = np.repeat(others[:, None], len(agents), axis=1)
        assert (may_be_first(draws, rivals, own * share, 950, least=nothing) == (share < 1)).all()


def test_who_may_be_first_by_definition():
    agents = board(5, 7, spread=0.05)
    noise = noise_of(agents)
    result = rank_sets(agents, noise, seed=4, n_draws=1_999)
    draws, _, ahead_of = plain(agents, noise, seed=4, n_draws=1_999)
    own = np.sqrt(np.sort(ahead_of.max(axis=0), axis=1)[:, 1_900 - 1])
    for a in range(7):
        out = any(result.means[b] - result.means[a] > own[a] * result.se[a, b] for b in range(7) if b != a)
        assert result.may_be_first[a] == (not out)
    assert 1 < result.may_be_first.sum() < 7
    assert (result.lower[result.may_be_first] == 1).all()
    assert result.may_be_first.sum() <= (result.lower == 1).sum()
    assert draws.errors.shape == (7, 1_999)


# -------------------------------------------------------------------------------------- one trial, no ω̂


def singles(seed, n=6, k=30):
    return board(seed, n, k, n_trials=1)


def test_a_board_of_single_trials_is_the_procedure_of_resampled_tasks():
    agents = singles(1)
    outcomes = np.array([one.outcomes for one in agents])
    result = rank_sets(agents, TrialNoise(), seed=7, n_draws=999)
    resamples = resample(outcomes, names(6), seed=7, n_draws=999)
    least = t.ppf(0.975, 29)
    largest = resamples.ahead.squares.max(axis=1)
    assert result.critical == pytest.approx(max(math.sqrt(np.sort(largest)[949]), least), rel=1e-10)
    domain = rank_intervals(resamples)
    assert result.beats.tobytes() == domain.beats.tobytes()
    assert result.may_be_first.tolist() == domain.may_be_first.tolist()
    assert set(result.methods) == {"neyman"}


def furthest(outcomes, v, untold, seed, n_draws):
    """T_a² of each draw and agent pair by pair, the resampled differences written out."""
    n, k = outcomes.shape
    result = np.zeros((n_draws, n))
    draws = zip(task_weights(k, seed, n_draws), agent_noise(names(n), v, seed, n_draws), strict=True)
    for draw, (weights, noise) in enumerate(draws):
        drawn = np.repeat(np.arange(k), weights.astype(int))
        for a, b in np.argwhere(np.logical_or.outer(untold, untold) & ~np.eye(n, dtype=bool)):
            d = outcomes[b] - outcomes[a]
            shift = d[drawn].mean() - d.mean() + noise[b] - noise[a]
            spread = (d[drawn] ** 2).sum() + 1 - d[drawn].sum() ** 2 / (k + 2)
            square = max(shift, 0) ** 2 / (spread / (k + 2) ** 2 + v[a] + v[b])
            result[draw, a] = max(result[draw, a], square)
    return result


def mixed(n, k, kind):
    """Agents with v, without, with trials that tell their noise, alike but for a task or two."""
    rng = np.random.default_rng(n + k)
    outcomes = (rng.random((n, k)) < np.linspace(0.1, 0.9, n)[:, None]).astype(float)
    outcomes[1], outcomes[2] = outcomes[0], outcomes[0]
    outcomes[2, :2] = 1 - outcomes[2, :2]
    if kind == "thirds":
        outcomes[3] = np.round(rng.random(k) * 3) / 3
    untold = np.ones(n, dtype=bool) if kind == "all unknown" else np.arange(n) % 3 > 0
    v = np.where(np.arange(n) % 4, 0.0, 0.5 / k)
    v[-1] = 50.0 if kind == "one far off" else v[-1]  # a step of 16 bits is wider than most differences
    return outcomes, v, untold


def reaching(squares, floor):
    return np.where(squares >= floor, squares, 0.0)


@pytest.mark.parametrize("few", [0, 64])
@pytest.mark.parametrize("kind", ["all unknown", "some known", "thirds", "one far off"])
@pytest.mark.parametrize(("n", "k"), [(7, 12), (13, 150)])
def test_how_far_others_are_ahead_pair_by_pair(monkeypatch, n, k, kind, few):
    """One pair after another in the draws that reach the floor, or all draws at once."""
    monkeypatch.setattr(neyman_draws, "FEW_AGENTS", few)
    outcomes, v, untold = mixed(n, k, kind)
    result = ahead(outcomes, names(n), v, untold, seed=5, n_draws=60)
    expected, least = furthest(outcomes, v, untold, 5, 60), t.ppf(0.95, k - 1) ** 2
    place = math.ceil(0.95 * (60 * untold.sum() + 1) - 1e-9)
    decides = max(np.sort(expected[:, untold], axis=None)[place - 1], least)
    assert least * (1 - 1e-9) <= result.floor <= decides * (1 + 1e-9)
    wanted = reaching(expected, np.where(untold, result.floor, least))
    assert result.squares == pytest.approx(wanted, rel=1e-5, abs=1e-7)


def test_a_guess_that_is_too_high_is_mended(monkeypatch):
    outcomes, v, untold = mixed(13, 150, "some known")
    found = ahead(outcomes, names(13), v, untold, seed=5, n_draws=300)
    monkeypatch.setattr(neyman_draws, "FEW_AGENTS", 0)
    for guess in (3.0, 4.0, 50.0):  # the first draws, or all of them, are done again
        monkeypatch.setattr(neyman_draws, "ndtri", lambda _, guess=guess: guess)
        again = ahead(outcomes, names(13), v, untold, seed=5, n_draws=300)
        known, floor = ~untold, max(found.floor, again.floor)
        assert again.squares[:, known].tobytes() == found.squares[:, known].tobytes()
        both = [reaching(one.squares[:, untold], floor) for one in (found, again)]
        assert both[0].any()
        assert both[0].tobytes() == both[1].tobytes()


@pytest.mark.parametrize("k", [5, 38, 500, 12_032])
def test_the_spread_of_a_pair_is_seldom_below_its_bound(k):
    """Against the binomial distribution: k tasks are drawn, each one of `apart` with the chance apart/k."""
    apart = np.unique(np.linspace(0, k, 200).astype(int))
    bound = neyman_draws._least_spread(apart.astype(float), k)
    assert (bound <= apart).all()
    assert (binom.logcdf(np.ceil(bound) - 1, k, apart / k) <= -neyman_draws.TAIL).all()
    assert k < 500 or bound[100] > apart[100] / 2  # not so low that it tells nothing


def test_one_critical_value_holds_for_both_kinds_of_pairs():
    agents, noise = (
        [*board(1, 4, 30), *(replace(a, name=f"b{i}") for i, a in enumerate(singles(2, 3, 30)))],
        NOISE,
    )
    result = rank_sets(agents, noise, seed=2, n_draws=999)
    by_tasks = [(a, b) for a in range(7) for b in range(7) if a < b and b >= 4]
    _, ratios, _ = plain(agents, noise, seed=2, n_draws=999, by_tasks=by_tasks)
    outcomes = np.array([one.outcomes for one in agents])
    others = ahead(outcomes, [a.name for a in agents], np.zeros(7), np.arange(7) >= 4, seed=2, n_draws=999)
    largest = np.maximum(ratios.max(axis=(0, 1)), others.squares.max(axis=1))
    assert result.critical == math.sqrt(np.sort(largest)[949])


def test_agents_with_two_nearly_equal_trials_widen_the_ranks_of_nobody_else():
    def worthless(name, seed):
        """Three passes of 200, two trials, one task of which differs."""
        means = np.zeros(200)
        means[np.random.default_rng(seed).permutation(200)[:4]] = [1, 1, 1, 0.5]
        return agent(name, Row(means, np.where(means == 0.5, 0.5, 0.0), np.full(200, 2.0)))

    others = singles(3, 20, 200)
    joined = [*others, *(worthless(f"b{i}", i) for i in range(5))]
    alone = rank_sets(others, TrialNoise(), seed=1, n_draws=999).critical
    result = rank_sets(joined, noise_of(joined), seed=1, n_draws=999).critical
    assert None not in (alone, result)
    assert result < 1.1 * alone


def test_five_tasks_never_need_less_than_one_pair_would():
    agents = [agent(n, Row(np.full(5, x))) for n, x in (("a", 1.0), ("b", 0.0))]
    result = rank_sets(agents, TrialNoise(), seed=0, n_draws=99)
    assert result.critical == pytest.approx(t.ppf(0.975, 4))
    assert result.may_be_first.tolist() == [True, False]
    with pytest.raises(CoreError, match="at least 5 tasks; there are 4"):
        rank_sets([agent(n, Row(np.ones(4))) for n in "ab"], TrialNoise(), seed=0, n_draws=99)


# ----------------------------------------------------------------------------------------------- properties


@REPEATABLE
@given(st.integers(0, 500))
def test_a_run_of_the_subset_leaves_everybody_elses_variances_and_draws(seed):
    agents = board(seed, 6)
    noise = noise_of(agents)
    newcomer = replace(board(seed + 1, 1)[0], name=f"a{seed % 6:03d}x")
    more = sorted([*agents, newcomer], key=lambda one: one.name)
    kept = [i for i, one in enumerate(more) if one is not newcomer]
    before, after = (rank_sets(some, noise, seed=3, n_draws=199) for some in (agents, more))
    assert after.variances[kept].tobytes() == before.variances.tobytes()
    assert after.df[kept].tobytes() == before.df.tobytes()
    assert after.se[np.ix_(kept, kept)].tobytes() == before.se.tobytes()
    drawn = [
        draw_errors(
            [a.name for a in some], [error_of(a, noise) for a in some], ~np.eye(len(some), dtype=bool),
            seed=3, n_draws=199,
        )
        for some in (agents, more)
    ]  # fmt: skip
    assert drawn[1].errors[kept].tobytes() == drawn[0].errors.tobytes()
    assert drawn[1].seen[kept].tobytes() == drawn[0].seen.tobytes()
    assert after.critical >= before.critical


@REPEATABLE
@given(st.integers(0, 500))
def test_permuted_tasks_change_nothing(seed):
    agents, order = board(seed, 5), np.random.default_rng(seed).permutation(40)
    moved = [
        agent(a.name, Row(a.row.means[order], a.row.trial_variances[order], a.row.n_trials[order]))
        for a in agents
    ]
    result, again = (rank_sets(some, noise_of(some), seed=1, n_draws=199) for some in (agents, moved))
    assert again.critical == result.critical
    assert again.beats.tobytes() == result.beats.tobytes()
    assert again.may_be_first.tobytes() == result.may_be_first.tobytes()


@REPEATABLE
@given(st.integers(0, 500))
def test_ranks_and_ties_are_two_ways_to_say_who_beats_whom(seed):
    result = rank_sets(board(seed, 7), NOISE, seed=seed, n_draws=99)
    assert not (result.beats & result.beats.T).any()
    place = 1 + (result.means[:, None] < result.means).sum(axis=1)
    assert ((result.lower <= place) & (place <= result.upper)).all()
    assert result.may_be_first[np.argmax(result.means)]
    for a in range(7):
        assert np.count_nonzero(result.tied[a]) == result.upper[a] - result.lower[a]


@pytest.mark.parametrize("n_trials", [1, 5])
def test_identical_agents_are_tied(n_trials):
    agents = board(3, 5, n_trials=n_trials, spread=0.4)
    agents[2] = replace(agents[3], name="a002")
    result = rank_sets(agents, NOISE if n_trials > 1 else TrialNoise(), seed=1, n_draws=199)
    assert result.tied[2, 3]
    assert (result.lower[2], result.upper[2]) == (result.lower[3], result.upper[3])


def test_ever_more_trials_give_the_order_of_the_means():
    rng = np.random.default_rng(1)
    means = rng.permutation(np.linspace(0.3, 0.7, 9))
    s2 = means[:, None] * (1 - means[:, None]) * np.ones((9, 20))
    agents = [
        agent(name, Row(np.full(20, m), row, np.full(20, 1e9)))
        for name, m, row in zip(names(9), means, s2, strict=True)
    ]
    result = rank_sets(agents, noise_of(agents), seed=1, n_draws=999)
    place = 1 + (means[:, None] < means).sum(axis=1)
    assert (result.lower == place).all()
    assert (result.upper == place).all()
    assert result.may_be_first.tolist() == (place == 1).tolist()


def test_variance_added_in_the_decision_leaves_c_alone():
    agents = board(2, 6)
    old = np.arange(6) < 3
    added = 0.01 * (old[:, None] != old)
    once, more = (rank_sets(agents, NOISE, seed=1, n_draws=999, added=one) for one in (None, added))
    assert more.critical == once.critical
    assert more.se**2 == pytest.approx(once.se**2 + added)
    assert more.beats.sum() < once.beats.sum()


def test_unclaimed_orders_are_ties_and_exclude_nobody():
    agents = board(2, 4)
    unclaimed = np.zeros((4, 4), dtype=bool)
    unclaimed[0] = unclaimed[:, 0] = True
    result = rank_sets(agents, NOISE, seed=1, n_draws=999, unclaimed=unclaimed)
    assert np.flatnonzero(result.tied[0]).tolist() == [1, 2, 3]
    assert result.may_be_first[0]
    assert not rank_sets(agents, NOISE, seed=1, n_draws=999).may_be_first[0]


def test_one_agent_is_first_of_one():
    for one in (board(0, 1)[0], singles(0, 1)[0], Calibrated("c", 0.5, 0.01, 5)):
        result = rank_sets([one], NOISE, seed=0, n_draws=99)
        assert (result.lower.tolist(), result.upper.tolist(), result.critical) == ([1], [1], None)
        assert result.may_be_first.tolist() == [True]


def test_more_draws_leave_the_first_as_they_were():
    agents = [*board(1, 4), Calibrated("c", 0.5, 0.01, 5)]
    errors, names_ = [error_of(a, NOISE) for a in agents], [a.name for a in agents]
    few, many = (draw_errors(names_, errors, ~np.eye(5, dtype=bool), seed=1, n_draws=n) for n in (200, 1000))
    assert (many.errors[:, :200] == few.errors).all()
    assert (many.seen[:, :200] == few.seen).all()


@pytest.mark.parametrize("n_calibrated", [0, 1, 3])
def test_of_many_agents_pairs_that_are_not_judged_count_nothing(n_calibrated):
    """The point against all pairs of all draws, where pairs of measured agents are judged by their tasks."""
    n = 40
    agents = [*board(2, n - n_calibrated), *(Calibrated(f"z{i}", 0.5, 0.01, 5) for i in range(n_calibrated))]
    by_tasks = [(a, b) for a in range(n - n_calibrated) for b in range(a)] if n_calibrated else []
    draws, ratios, _ = plain(agents, NOISE, seed=1, n_draws=199, by_tasks=by_tasks)
    others = np.random.default_rng(3).random(199)
    for place in (120, 190):
        every = np.sort(np.maximum(ratios.max(axis=(0, 1)), others))
        assert upper_point(draws, others, place) == every[place - 1]


def test_few_tasks_of_one_trial_are_named():
    few, more = (rank_sets(singles(4, 3, k), TrialNoise(), seed=0, n_draws=99) for k in (9, 10))
    assert few.notes == (NOTES["neyman"], FEW_TASKS_NOTE)
    assert more.notes == (NOTES["neyman"],)


def test_ten_thousand_draws_whatever_is_drawn():
    assert rank_sets(board(4, 3), NOISE, seed=0).n_draws == 10_000
    assert rank_sets(singles(4, 3), TrialNoise(), seed=0).n_draws == 10_000


def test_more_draws_leave_the_first_tasks_drawn_as_they_were():
    outcomes = np.array([one.outcomes for one in singles(8, 5, 20)])
    v, untold = np.array([0.0, 0.01, 0.0, 0.0, 0.02]), np.array([True, True, False, True, False])
    few, many = (ahead(outcomes, names(5), v, untold, seed=1, n_draws=n) for n in (300, 700))
    floor = max(few.floor, many.floor)
    first = reaching(many.squares[:300], floor)
    assert first.any()
    assert reaching(few.squares, floor)[:, untold].tobytes() == first[:, untold].tobytes()
    assert few.squares[:, ~untold].tobytes() == many.squares[:300, ~untold].tobytes()


def test_the_seed_decides_and_nothing_else():
    agents = board(4)
    once, again, other = (rank_sets(agents, NOISE, seed=s, n_draws=199).critical for s in (1, 1, 2))
    assert once == again != other


def test_variances_of_any_size_give_finite_ranks():
    rows = [
        Row(np.full(10, m), np.full(10, s), np.full(10, 2.0))
        for m, s in ((0.5, 1e-32), (0.5, 0.5), (0.4, 0.0))
    ]
    agents = [agent(n, r) for n, r in zip("abc", rows, strict=True)]
    with np.errstate(all="raise"):
        result = rank_sets(agents, TrialNoise(None, 1e-33), seed=1, n_draws=99)
    assert math.isfinite(result.critical)


@pytest.mark.parametrize(
    ("agents", "changes", "message"),
    [
        ([], {}, "no agent"),
        (board(0, 2), {"n_draws": 18}, "18 draws have no upper 5% point"),
        (board(0, 2)[::-1], {}, "'a000' stands after 'a001'"),
        ([*board(0, 1), replace(board(0, 1, k=9)[0], name="b")], {}, "agents on 9 and on 40 tasks"),
        ([Calibrated("c", math.nan, 0.1, 9)], {}, "a score of nan"),
        (board(0, 2), {"added": np.zeros((3, 3))}, r"shape \(3, 3\) for 2 agents"),
        (board(0, 2), {"added": np.array([[0, 1.0], [2, 0]])}, "not symmetric"),
        (board(0, 2), {"added": np.full((2, 2), -1.0)}, "at least 0"),
    ],
)
def test_what_cannot_be_ranked_is_refused(agents, changes, message):
    with pytest.raises(CoreError, match=message):
        rank_sets(agents, NOISE, seed=0, **changes)


def test_the_last_bit_of_the_degrees_of_freedom_changes_no_draw():
    """Below ν = 2 the generator draws in another way."""
    half = np.full(9, 0.5)
    error = error_of(Measured("a", half, Row(half)), NOISE)
    two, less = (
        error_draws.own_draws("a", error._replace(df=df), seed=0, n_draws=99)
        for df in (2.0, math.nextafter(2.0, 0.0))
    )
    np.testing.assert_allclose(less, two, rtol=1e-12)


def test_one_calibration_has_one_number_of_degrees_of_freedom():
    with pytest.raises(CoreError, match="calibration 0: 9 and 8"):
        rank_sets(
            [Calibrated("a", 0.5, 0.1, 8), Calibrated("b", 0.5, 0.1, 9)], TrialNoise(), seed=0, n_draws=99
        )


# ---------------------------------------------------------------------------------------------- a real board


def test_terminal_bench_ties_are_less_than_half_of_those_by_tasks(real_rows):
    """The design's figures: 41 of 78 pairs tied by the spread over tasks, 18 by trial noise."""
    cells = defaultdict(list)
    for one in real_rows("terminal_bench_core_011"):
        if one["valid"] == "1":
            cells[one["agent"], one["task"]].append(float(one["outcome"]))
    agents, tasks = (sorted({key[i] for key in cells}) for i in (0, 1))
    means, s2, n_trials = np.full((3, len(agents), len(tasks)), math.nan)
    for (a, task), own in cells.items():
        at = agents.index(a), tasks.index(task)
        means[at], n_trials[at] = np.mean(own), len(own)
        s2[at] = np.var(own, ddof=1) if len(own) > 1 else math.nan
    noise = trial_noise(means, s2, n_trials)
    filled = np.where(np.isnan(means), np.nanmean(means, axis=0), means)
    rows = [Row(*row) for row in zip(means, s2, n_trials, strict=True)]
    found = rank_sets([Measured(*one) for one in zip(agents, filled, rows, strict=True)], noise, seed=1)
    by_tasks = rank_intervals(resample(filled, agents, seed=1))
    tied, before = (78 - int(np.count_nonzero(one.beats)) for one in (found, by_tasks))
    print(f"\nterminal_bench_core_011: tied {before} -> {tied} of 78, c {found.critical:.2f}")
    assert tied == pytest.approx(18, abs=1)
    assert before == pytest.approx(41, abs=1)
    assert set(found.methods) == {"repeated trials", "variance function"}
    assert found.notes == (NOTES["variance function"],)
