"""Reselection: the rule with hysteresis word by word, proposals, the draw of validation runs."""

import math
from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.outcome_table import OutcomeTable
from selection.bands import table_band, tasks_in_band
from selection.errors import SelectionError
from selection.reselection import carry, propose
from tests.refusals import refused

REPEATABLE = settings(derandomize=True, deadline=None)
NAN = math.nan


def table_of(means):
    means = np.array(means, dtype=np.float64)
    n_agents, n_tasks = means.shape
    return OutcomeTable(
        agents=tuple(f"a{i:02d}" for i in range(n_agents)),
        tasks=tuple(f"t{j:03d}" for j in range(n_tasks)),
        means=means,
        n_valid=np.where(np.isnan(means), 0, 1).astype(np.int32),
        dates=(date(2026, 1, 1),) * n_agents,
        scaffolds=("s",) * n_agents,
        models=("m",) * n_agents,
    )


def with_rates(counts, n_agents=20):
    """Outcomes in which task j is passed by the first counts[j] agents."""
    return (np.arange(n_agents)[:, None] < np.array(counts)).astype(float)


def word_by_word(previous, rates, n_complete, hysteresis, lo, hi):
    """The rule as it is written: band, stay while within the wider edges, widen under a tenth."""
    if n_complete < 5:
        return []
    bands = [(lo, hi)] + [
        b for b in ((0.25, 0.75), (0.15, 0.85)) if b[0] <= lo <= hi <= b[1] and b != (lo, hi)
    ]
    for low, high in bands:
        chosen = [
            j
            for j, p in enumerate(rates)
            if low - 1e-9 <= p <= high + 1e-9
            or (j in previous and low - hysteresis - 1e-9 <= p <= high + hysteresis + 1e-9)
        ]
        if 10 * len(chosen) >= len(rates):
            return chosen
    return []


def test_a_task_stays_from_a_quarter_to_three_quarters():
    rates = np.array([0.2, 0.25, 0.28, 0.3, 0.5, 0.7, 0.72, 0.75, 0.8])
    everything, nothing = np.arange(9), np.array([], dtype=int)
    assert carry(everything, rates, 20).tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert carry(nothing, rates, 20).tolist() == [3, 4, 5]
    assert carry(np.array([1, 8]), rates, 20).tolist() == [1, 3, 4, 5]
    assert carry(everything, rates, 20, hysteresis=0.0).tolist() == [3, 4, 5]


def test_edges_of_tenths_and_hundredths_are_in():
    # Sums of floating point numbers: 5 of 20 and 15 of 20 as means, 0.1 + 0.15 as an edge.
    rates = with_rates([5, 15, 4, 16]).mean(axis=0)
    assert carry(np.arange(4), rates, 20).tolist() == [0, 1]
    assert carry(np.arange(2), np.array([0.1 + 0.15, 1 - 0.25]), 20, hysteresis=0.05).tolist() == [0, 1]


def test_an_unknown_rate_leaves_and_too_few_agents_have_no_subset():
    rates = np.array([NAN, 0.5])
    assert carry(np.array([0, 1]), rates, 20).tolist() == [1]
    assert carry(np.array([0, 1]), rates, 4).tolist() == []


def test_carried_tasks_may_spare_the_widening():
    # 20 tasks need 2. One in 30-70%; with the one that stays the band is not widened.
    rates = np.array([0.5, 0.27, 0.26] + [0.02] * 17)
    assert carry(np.array([0, 1]), rates, 20).tolist() == [0, 1]
    assert carry(np.array([0, 1]), rates, 20, hysteresis=0.0).tolist() == [0, 1, 2]


def test_a_widened_band_carries_the_hysteresis_on_top():
    rates = np.array([0.5, 0.26, 0.21, 0.19] + [0.02] * 16)
    assert carry(np.array([0, 2, 3]), rates, 20, hysteresis=0.05).tolist() == [0, 1, 2]


def proposed(**options):
    # Twenty complete agents, ten tasks; one agent more that ran tasks 0 to 4 alone.
    full = with_rates([10, 8, 5, 15, 2, 12, 18, 14, 3, 19])
    partial = np.full((1, 10), NAN)
    partial[0, :5] = 1.0
    table = table_of(np.vstack([full, partial]))
    return propose(table, np.array([1, 2, 4, 7]), table_band(table), **options)


def test_both_proposals_side_by_side():
    plain, other = proposed()
    assert plain.tasks.tolist() == [0, 1, 5, 7]
    assert (plain.entering.tolist(), plain.leaving.tolist()) == ([0, 5], [2, 4])
    assert other.tasks.tolist() == [0, 1, 2, 5, 7]
    assert (other.entering.tolist(), other.leaving.tolist()) == ([0, 5], [4])
    assert (plain.k, other.k, plain.hysteresis, other.hysteresis) == (4, 5, 0.0, 0.05)
    assert (plain.widened, other.widened) == (False, False)
    assert [delta.tolist() for delta in plain.deltas] == [[]] * 20 + [[5]]


def test_without_hysteresis_both_are_one():
    plain, same = proposed(hysteresis=0.0)
    assert plain is same


def test_a_widened_proposal_says_so():
    counts = [10, 5, 15] + [0] * 37
    # 40 tasks need 4: one in 30-70%, three in 25-75% and in 15-85%.
    table = table_of(with_rates(counts))
    plain, _ = propose(table, np.array([0]), table_band(table), hysteresis=0.0)
    assert plain.k == 0
    assert plain.leaving.tolist() == [0]
    table = table_of(with_rates([10, 5, 15] + [0] * 27))
    plain, _ = propose(table, np.array([0]), table_band(table))
    assert (plain.tasks.tolist(), plain.widened) == ([0, 1, 2], True)


RATES = st.lists(st.integers(0, 40).map(lambda s: s / 40), min_size=1, max_size=40)
BANDS = st.sampled_from([(0.3, 0.7), (0.25, 0.75), (0.2, 0.6), (0.4, 0.45), (0.15, 0.85), (0.1, 0.9)])


@REPEATABLE
@given(RATES, st.data(), BANDS, st.sampled_from([0.0, 0.025, 0.05, 0.2]), st.integers(3, 30))
def test_the_rule_word_by_word(rates, data, band, hysteresis, n_complete):
    previous = data.draw(st.sets(st.integers(0, len(rates) - 1)))
    ours = carry(
        np.array(sorted(previous), dtype=int),
        np.array(rates),
        n_complete,
        hysteresis=hysteresis,
        lo=band[0],
        hi=band[1],
    )
    assert ours.tolist() == word_by_word(previous, rates, n_complete, hysteresis, *band)


@REPEATABLE
@given(RATES, st.data())
def test_no_hysteresis_is_the_plain_rule(rates, data):
    previous = np.array(sorted(data.draw(st.sets(st.integers(0, len(rates) - 1)))), dtype=int)
    rates = np.array(rates)
    plain = tasks_in_band(rates, 9).tolist()
    assert carry(previous, rates, 9, hysteresis=0.0).tolist() == plain
    assert carry(np.array([], dtype=int), rates, 9).tolist() == plain


@REPEATABLE
@given(RATES)
def test_rates_that_stand_still_keep_the_subset(rates):
    rates = np.array(rates)
    once = carry(np.array([], dtype=int), rates, 9)
    assert carry(once, rates, 9).tolist() == once.tolist()


@REPEATABLE
@given(st.integers(0, 2**32 - 1), st.integers(5, 20), st.integers(1, 25))
def test_a_proposal_is_what_carry_gives(seed, n_agents, n_tasks):
    rng = np.random.default_rng(seed)
    means = (rng.random((n_agents, n_tasks)) < rng.random(n_tasks)).astype(float)
    previous = np.flatnonzero(rng.random(n_tasks) < 0.4)
    band = table_band(table_of(means))
    both = propose(table_of(means), previous, band)
    rates = means.mean(axis=0)
    for proposal in both:
        again = carry(previous, rates, n_agents, hysteresis=proposal.hysteresis)
        assert proposal.tasks.tolist() == again.tolist()
        kept = set(previous) - set(proposal.leaving)
        assert set(proposal.tasks) == kept | set(proposal.entering)
        assert not set(proposal.entering) & set(previous)
    assert both[0].tasks.tolist() == band.tasks.tolist()
    assert both[0].widened == (band.widened and band.suited)


def test_hysteresis_moves_less_on_a_real_board(real_rows):
    rows = real_rows("hal_gaia")
    agents, tasks = sorted({r["agent"] for r in rows}), sorted({r["task"] for r in rows})
    cells = {(r["agent"], r["task"]): float(r["outcome"]) for r in rows}
    means = np.array([[cells.get((a, t), NAN) for t in tasks] for a in agents])
    days = {r["agent"]: r["submitted_at"] for r in rows}
    order = sorted(range(len(agents)), key=lambda i: (days[agents[i]], i))
    changes = {}
    for h in (0.0, 0.05):
        subset, changes[h] = np.array([], dtype=int), 0
        for n in range(10, len(agents) + 1):
            rates = np.nanmean(means[order[:n]], axis=0)
            following = carry(subset, rates, n, hysteresis=h)
            changes[h] += np.setxor1d(subset, following).size if subset.size else 0
            subset = following
        print(f"hysteresis {h}: {changes[h]} tasks moved in {len(agents) - 10} steps, k = {subset.size}")
    assert changes[0.05] < changes[0.0]


def test_hajek_weights_of_a_draw_estimate_the_pass_rate():
    # Ten old agents that pass, twenty new ones of whom half pass: (10 + 10)/30. Eight new ones are drawn.
    from selection.bands import pass_rates

    passing = np.r_[np.ones(10), np.tile([0.0, 1.0], 10)]
    rng, estimates = np.random.default_rng(3), []
    for _ in range(3000):
        rows = np.r_[np.arange(10), rng.choice(np.arange(10, 30), 8, replace=False)]
        weights = np.r_[np.ones(10), np.full(8, 20 / 8)]
        estimates.append(pass_rates(passing[rows][:, None], weights)[0])
    assert np.mean(estimates) == pytest.approx(2 / 3, abs=4 * np.std(estimates) / math.sqrt(3000))


@pytest.mark.parametrize(
    ("arguments", "refusal", "message"),
    [
        (([0, 0], [0.5], 9), "task_unknown", "2 tasks in the subset, of which 1 differ"),
        (([1], [0.5], 9), "task_unknown", "task 1 of the subset is not one of 1 active tasks"),
        (([-1], [0.5], 9), "task_unknown", "task -1"),
    ],
)
def test_a_subset_of_unknown_tasks_is_refused(arguments, refusal, message):
    with refused(SelectionError, refusal, match=message):
        carry(np.array(arguments[0]), np.array(arguments[1]), arguments[2])


@pytest.mark.parametrize("hysteresis", [-0.01, 0.5, NAN, math.inf])
def test_a_hysteresis_out_of_range_is_refused(hysteresis):
    with refused(SelectionError, "hysteresis_range", match="it lies from 0 to under"):
        carry(np.array([0]), np.array([0.5]), 9, hysteresis=hysteresis)
    with refused(SelectionError, "hysteresis_range"):
        proposed(hysteresis=hysteresis)


def test_other_refusals():
    with refused(SelectionError, "band_range"):
        carry(np.array([0]), np.array([0.5]), 9, lo=0.7, hi=0.3)
