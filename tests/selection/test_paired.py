"""Differences of two strategies, choosing one in time, and pairs in order where agents do not differ."""

import math
from datetime import date, timedelta

import numpy as np
import pytest

from analytics.drift.rank_correlation import nulls, rho_null
from analytics.resampling import generator
from selection.validation import as_json, validate
from selection.validation.paired import Replicates, difference, prequential
from tests.selection.test_validation import rasch_outcomes, table_of

NAN = math.nan


def slow_pairs(r, y):
    """Mean over agents of the share of others in the same order, ties of r counting half: two loops."""
    shares = []
    for i in range(len(y)):
        told = [
            0.5 if r[i] == r[j] else float((r[i] > r[j]) == (y[i] > y[j]))
            for j in range(len(y))
            if y[i] != y[j] and not (np.isnan(r[i]) or np.isnan(r[j]))
        ]
        if told:
            shares.append(np.mean(told))
    return np.mean(shares)


def permuted(x, seed, draw):
    """The permuted matrix of a draw: valid cells of each column, shuffled by the keys of its generator."""
    keys = generator(seed, "rho_null", draw).random(x.T.shape)
    out = np.full(x.shape, NAN)
    for j, column in enumerate(x.T):
        valid = np.flatnonzero(~np.isnan(column))
        order = valid[np.argsort(keys[j, valid], kind="stable")]
        out[valid, j] = column[order]
    return out


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_pairs_without_agent_effects_equal_plain_loops(missing):
    rng = np.random.default_rng(3)
    x = (rng.random((9, 14)) < rng.random(14)).astype(float)
    x[rng.random(x.shape) < missing] = NAN
    x[:, 0] = np.arange(9) % 2
    members = np.array([np.arange(14) < 4, np.arange(14) % 3 == 0, np.arange(14) >= 0])
    rhos, pairs = nulls(x, members, 7, 6)
    assert rhos == rho_null(x, members, 7, 6)
    for s, member in enumerate(members):
        told = []
        for draw in range(6):
            drawn = permuted(x, 7, draw)
            r = [np.nanmean(row) if not np.isnan(row).all() else NAN for row in drawn[:, member]]
            told.append(slow_pairs(np.round(r, 9), np.round(np.nanmean(drawn, axis=1), 9)))
        assert pairs[s] == pytest.approx(np.mean(told), abs=1e-12)


def test_all_tasks_leave_nothing_to_chance_and_one_agent_has_no_pairs():
    x = rasch_outcomes(1, 12, 20)
    assert nulls(x, np.ones((1, 20), dtype=bool), 0, 5)[1] == (1.0,)
    same = np.ones((5, 20))
    assert nulls(same, np.ones((1, 20), dtype=bool), 0, 5)[1] == (None,)


def test_kappa_by_hand_and_its_error():
    table = table_of(rasch_outcomes(31, 20, 40), dates=[date(2026, 1, 1) + timedelta(i) for i in range(20)])
    found = validate(
        table, protocols=["loao", "temporal"], strategies=["mid_range"], coverage=False, n_null_draws=30
    ).protocols
    told = found["loao"].strategies["mid_range"]
    assert told.kappa == pytest.approx((told.pairs_correct - told.pairs_null) / (1 - told.pairs_null))
    assert told.se["kappa"] == pytest.approx(told.se["pairs_correct"] / (1 - told.pairs_null))
    assert 0.6 < told.pairs_null < 0.95
    in_time = found["temporal"].strategies["mid_range"]
    assert in_time.kappa is in_time.se["kappa"] is None
    assert "would measure the trend" in in_time.notes["kappa"]
    assert in_time.pairs_null == told.pairs_null


def test_the_difference_of_two_strategies_by_hand():
    a = Replicates(0.9, np.array([0.88, 0.91, 0.92]))
    b = Replicates(0.85, np.array([0.85, 0.84, 0.86]))
    value, se, _ = difference(a, b)
    deltas = [0.03, 0.07, 0.06]
    mean = sum(deltas) / 3
    assert value == pytest.approx(0.05)
    assert se == pytest.approx(math.sqrt(2 / 3 * sum((d - mean) ** 2 for d in deltas)))
    assert difference(a, a)[1] == 0.0
    assert difference(b, a)[0] == pytest.approx(-value)
    assert difference(a, Replicates()) == (None, None, None)
    assert difference(a, Replicates(0.8))[1] is None
    _, _, spread = difference(
        Replicates(0.9, runs=np.array([0.9, NAN, 0.8])), Replicates(0.8, runs=np.zeros(3))
    )
    assert spread == pytest.approx(np.std([0.9, 0.8], ddof=1))


def test_an_error_that_two_strategies_share_cancels():
    """The paired error is far below that of either, as it is where both miss on the same agents."""
    table = table_of(rasch_outcomes(5, 30, 60))
    found = validate(table, protocols=["loao"], seeds=4, coverage=False, n_null_draws=0).protocols["loao"]
    own = found.strategies["mid_range"]
    assert own.random_difference == pytest.approx(
        own.pairs_correct_full - found.strategies["random"].pairs_correct_full
    )
    for name, told in found.strategies.items():
        if not told.available:
            assert name == "forecast"
        elif name == "mid_range":
            assert told.policy_difference is None
            assert told.notes["policy_difference"] == "this is the strategy in use"
        else:
            assert told.policy_difference == pytest.approx(told.pairs_correct_full - own.pairs_correct_full)
    of_random = found.strategies["random"]
    assert of_random.notes["random_difference"] == "these are the random tasks"
    assert of_random.policy_difference == pytest.approx(-own.random_difference)
    assert of_random.se["policy_difference"] == pytest.approx(own.se["random_difference"])
    unpaired = math.hypot(own.se["pairs_correct_full"], of_random.se["pairs_correct_full"])
    assert own.se["random_difference"] < unpaired


def shares(correct, n_groups=2):
    table = np.tile(np.asarray(correct, float)[:, None], (1, 1 + n_groups))
    return np.array([table, table])


def test_the_choice_is_made_on_the_agents_before():
    """Ten agents of the first day favour b, later ones a: all later ones meet b, the first the default."""
    days = [date(2026, 1, 1)] * 10 + [date(2026, 1, 2)] * 3 + [date(2026, 1, 3)]
    a, b = [0.5] * 10 + [1.0] * 4, [0.9] * 10 + [0.0] * 4
    found = prequential({"mid_range": shares(a), "b": shares(b)}, days, np.arange(14))
    assert found["chosen"] == {"mid_range": 10, "b": 4}
    assert found["pairs_correct_full"] == pytest.approx((10 * 0.5 + 4 * 0.0) / 14)
    assert found["n"] == 14
    assert found["random_difference"] is None
    assert found["notes"]["random_difference"] == "random tasks were not validated"


def test_what_comes_later_changes_no_choice():
    rng = np.random.default_rng(2)
    days = [date(2026, 1, 1 + i // 2) for i in range(40)]
    tables = {name: rng.random(40) for name in ("mid_range", "random", "spread")}

    def chosen(n):
        known = {name: shares(np.where(np.arange(40) < n, told, NAN)) for name, told in tables.items()}
        return prequential(known, days, np.arange(40))

    for n in (12, 20, 31, 40):
        total = 0.0
        for i in range(n):
            before = [j for j in range(n) if days[j] < days[i]]
            means = {name: np.mean(told[before]) for name, told in tables.items() if len(before) >= 10}
            total += tables[max(means, key=means.get) if means else "mid_range"][i]
        assert chosen(n)["pairs_correct_full"] == pytest.approx(total / n)


def test_one_strategy_leaves_no_choice():
    assert prequential({"mid_range": shares([0.5])}, [date(2026, 1, 1)], np.arange(1)) is None
    nobody = prequential(
        {"mid_range": shares([NAN]), "spread": shares([0.5])}, [date(2026, 1, 1)], np.arange(1)
    )
    assert nobody["notes"] == {"all": "no held-out agent was met by every strategy"}
    assert (nobody["n"], nobody["pairs_correct_full"], nobody["chosen"], nobody["se"]) == (0, None, {}, {})
    assert nobody["pairs_clear_full"] is nobody["random_difference"] is None


def test_with_one_choice_all_along_it_is_that_strategys_own_figure():
    """Twins of the default can never be ahead of it, so that all figures and errors are its own."""
    dates = [date(2026, 1, 1) + timedelta(i) for i in range(26)]
    table = table_of(rasch_outcomes(7, 26, 40), dates=dates)
    found = as_json(
        validate(table, protocols=["temporal"], strategies=["mid_range", "hardest"], coverage=False)
    )["protocols"]["temporal"]
    told = found["prequential"]
    assert sum(told["chosen"].values()) == told["n"] == found["strategies"]["mid_range"]["n"]
    if told["chosen"] == {"mid_range": told["n"]}:
        own = found["strategies"]["mid_range"]
        for name in ("pairs_correct_full", "pairs_clear_full"):
            assert told[name] == pytest.approx(own[name])
            assert told["se"][name] == pytest.approx(own["se"][name])
