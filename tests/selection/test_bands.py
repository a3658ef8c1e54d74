import math
from collections import defaultdict
from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.errors import CoreError
from analytics.outcome_table import OutcomeTable
from selection.bands import latest_agents, mid_range, pass_rates, stage_of, table_band
from selection.errors import SelectionError
from tests.refusals import refused

REPEATABLE = settings(derandomize=True, deadline=None)
NAN = math.nan


def exact_rates(rows):
    """Pass rates by definition, in fractions, with the matrix they rest on."""
    cells = defaultdict(list)
    for row in rows:
        trials = cells[row["agent"], row["task"]]
        if row.get("valid", "1") == "1":
            trials.append(Fraction(row["outcome"]))
    agents, tasks = sorted({a for a, _ in cells}), sorted({t for _, t in cells})
    means = {key: sum(trials) / len(trials) for key, trials in cells.items() if trials}
    complete = [a for a in agents if 20 * sum((a, t) in means for t in tasks) >= 19 * len(tasks)]
    columns = [[means[a, t] for a in complete if (a, t) in means] for t in tasks]
    matrix = np.array([[float(means.get((a, t), NAN)) for t in tasks] for a in complete])
    return [sum(column) / len(column) for column in columns], matrix


def board(n_passed, n_agents=10):
    """One column for each number: that many of the agents pass."""
    return np.array([[float(i < n) for n in n_passed] for i in range(n_agents)])


def of(fraction_or_percent):
    return [Fraction(percent, 100) for percent in fraction_or_percent]


# ------------------------------------------------------------------------------------------------ by hand


def test_both_ends_of_the_band_are_in():
    band = mid_range(board([0, 2, 3, 5, 7, 8, 10]))
    assert band.tasks.tolist() == [2, 3, 4]
    assert (band.lo, band.hi, band.size, band.widened, band.suited) == (0.30, 0.70, 3, False, True)
    assert band.pass_rates.tolist() == [0.0, 0.2, 0.3, 0.5, 0.7, 0.8, 1.0]


def test_three_of_ten_is_in_whatever_the_rounding_of_its_mean():
    # In floating point ten times 0.3, added one by one, is 2.9999999999999996.
    for value in (0.3, 0.7, 0.3 - 1e-10, 0.7 + 1e-10):
        band = mid_range(np.full((10, 1), value))
        assert (band.size, band.lo, band.hi) == (1, 0.30, 0.70)


def test_just_outside_the_tolerance_is_out():
    outcomes = np.column_stack([np.full(10, 0.5), np.full(10, 0.3 - 1e-8), np.full(10, 0.7 + 1e-8)])
    assert mid_range(outcomes).tasks.tolist() == [0]


def test_a_tenth_of_the_tasks_is_enough_and_less_widens_the_band():
    enough = mid_range(board([5, 5] + [0] * 18))
    assert (enough.widened, enough.lo, enough.hi, enough.tasks.tolist()) == (False, 0.30, 0.70, [0, 1])
    # 1 of 20 in 30-70%; 3 of 12 agents = 25% brings two more.
    once = mid_range(board([6, 3, 9] + [0] * 17, n_agents=12))
    assert (once.widened, once.lo, once.hi, once.tasks.tolist()) == (True, 0.25, 0.75, [0, 1, 2])
    twice = mid_range(board([5, 2, 8] + [0] * 17))
    assert (twice.lo, twice.hi, twice.tasks.tolist()) == (0.15, 0.85, [0, 1, 2])
    assert twice.tried == ((0.30, 0.70, 1), (0.25, 0.75, 1), (0.15, 0.85, 3))


def test_the_tenth_is_counted_in_whole_numbers():
    # 6 of 60 is a tenth; 6 of 61 is less, although 61/10 in floating point is no whole number either way.
    assert not mid_range(board([5] * 6 + [0] * 54)).widened
    assert mid_range(board([5] * 6 + [0] * 55)).widened


def test_still_under_a_tenth_is_unsuited():
    band = mid_range(board([5] + [0] * 10))
    assert (band.suited, band.size, band.stage) == (False, 0, "provisional")
    assert (band.lo, band.hi, band.widened) == (0.15, 0.85, True)
    assert band.reason == (
        "only 1 of 11 tasks (9%) has a pass rate from 15% to 85%; at least 2 (10%) are needed"
    )
    assert mid_range(board([0, 10])).reason == (
        "none of 2 tasks has a pass rate from 15% to 85%; at least 1 (10%) is needed"
    )


def test_the_reason_of_a_subset_names_its_band_and_agents():
    assert mid_range(board([5] * 25 + [0] * 55, 13)).reason == (
        "25 of 80 tasks have a pass rate from 30% to 70% over 13 agents"
    )
    assert mid_range(board([5, 2, 8] + [0] * 17)).reason == (
        "3 of 20 tasks have a pass rate from 15% to 85% over 10 agents; the band was widened, "
        "as only 1 (5%) lie from 30% to 70% and at least 2 (10%) are needed"
    )
    assert "from 12.5% to 90%" in mid_range(board([5]), lo=0.125, hi=0.9).reason


@pytest.mark.parametrize(
    ("n", "stage"), [(0, "none"), (4, "none"), (5, "provisional"), (14, "provisional"), (15, "stable")]
)
def test_stages(n, stage):
    assert stage_of(n) == stage
    assert mid_range(np.full((n, 3), 0.5)).stage == stage


def test_under_five_complete_agents_there_is_no_subset():
    band = mid_range(np.full((4, 3), 0.5))
    assert (band.suited, band.size, band.widened, band.tried) == (False, 0, False, ())
    assert (band.lo, band.hi, band.n_complete, band.n_tasks) == (0.30, 0.70, 4, 3)
    assert band.pass_rates.tolist() == [0.5, 0.5, 0.5]
    assert band.reason == "only 4 full runs; ranking tasks need at least 5"
    assert mid_range(np.full((1, 3), 0.5)).reason.startswith("only 1 full run;")
    assert mid_range(np.empty((0, 3))).reason.startswith("no full run yet; ranking tasks need at least 5")
    assert mid_range(np.full((5, 3), 0.5)).size == 3


def test_a_task_without_a_valid_cell_is_never_selected_and_is_named():
    outcomes = board([5, 5, 5])
    outcomes[:, 1] = NAN
    band = mid_range(outcomes)
    assert (band.tasks.tolist(), np.isnan(band.pass_rates).tolist()) == ([0, 2], [False, True, False])
    assert math.isnan(band.pass_rates[1])
    assert math.isnan(band.p_in_band[1])
    assert band.reason.endswith("; 1 task without a valid outcome cannot be chosen")
    assert band.n_tasks == 3


def test_a_missing_cell_leaves_its_agent_out_of_that_task():
    outcomes = np.array([[1.0, 1.0], [0.0, NAN], [1.0, 0.0], [0.0, 0.0], [0.5, NAN]])
    assert pass_rates(outcomes).tolist() == [0.5, 1 / 3]


@pytest.mark.parametrize(
    ("lo", "hi", "sequence"),
    [
        (0.30, 0.70, [(0.30, 0.70), (0.25, 0.75), (0.15, 0.85)]),
        (0.40, 0.60, [(0.40, 0.60), (0.25, 0.75), (0.15, 0.85)]),
        (0.25, 0.75, [(0.25, 0.75), (0.15, 0.85)]),
        (0.20, 0.60, [(0.20, 0.60), (0.15, 0.85)]),  # 25-75% would drop what is from 20 to 25%
        (0.15, 0.85, [(0.15, 0.85)]),
        (0.10, 0.90, [(0.10, 0.90)]),
    ],
)
def test_a_band_of_the_policy_starts_the_widening(lo, hi, sequence):
    band = mid_range(board([0] * 30), lo=lo, hi=hi)
    assert [attempt[:2] for attempt in band.tried] == sequence
    assert not band.suited


def test_agents_drawn_with_unequal_probabilities_count_by_their_inverse():
    outcomes = np.array([[1.0, 1.0], [0.0, NAN], [0.0, 0.0]])
    assert pass_rates(outcomes, np.array([2.0, 1.0, 1.0])).tolist() == [0.5, 2 / 3]


def test_the_posterior_by_hand():
    # One of two passes: Beta(3/2, 3/2) is the semicircle, whose mass from 1/4 to 3/4 is
    # (2/π)(½·√(3/4) + π/6) = √3/(2π) + 1/3.
    band = mid_range(np.array([[1.0], [0.0]]), lo=0.25, hi=0.75)
    assert band.p_in_band[0] == pytest.approx(math.sqrt(3) / (2 * math.pi) + 1 / 3, abs=1e-14)


def test_the_posterior_counts_effective_agents():
    from scipy import stats

    # Weights 2, 1, 1: (2+1+1)²/(4+1+1) = 8/3 effective agents at rate 1/2, so Beta(4/3 + ½, 4/3 + ½).
    band = mid_range(np.array([[1.0], [0.0], [0.0]]), np.array([2.0, 1.0, 1.0]))
    posterior = stats.beta(4 / 3 + 0.5, 4 / 3 + 0.5)
    assert band.p_in_band[0] == pytest.approx(posterior.cdf(0.7) - posterior.cdf(0.3), abs=1e-13)


def test_tasks_near_an_edge_are_flagged_from_fifteen_agents_on():
    # Of 20 agents, 10 pass: P(in band) is above .9. 6 and 14 stand on an edge: near one half, flagged while
    # selected. 5 and 15 are left out with over .2: flagged. 0 and 20 are left out with next to nothing.
    passed = [0, 5, 6, 10, 14, 15, 20]
    band = mid_range(board(passed, 20))
    assert band.tasks.tolist() == [2, 3, 4]
    assert band.flagged.tolist() == [1, 2, 4, 5]
    assert mid_range(board(passed, 20)[:14]).flagged.size == 0


@pytest.mark.parametrize("n", [15, 16, 23, 40, 57])
def test_flags_agree_with_scipy_stats_for_every_number_of_passes(n):
    from scipy import stats

    passed = np.arange(n + 1)
    posterior = stats.beta(passed + 0.5, n - passed + 0.5)
    p_in_band = posterior.cdf(0.7) - posterior.cdf(0.3)
    selected = (10 * passed >= 3 * n) & (10 * passed <= 7 * n)
    band = mid_range(board(passed, n))
    assert band.tasks.tolist() == passed[selected].tolist()
    assert band.p_in_band == pytest.approx(p_in_band, abs=1e-12)
    assert band.flagged.tolist() == passed[np.where(selected, p_in_band < 0.8, p_in_band > 0.2)].tolist()


# ------------------------------------------------------------------------------------ by definition


CELLS = st.sampled_from([0.0, 0.25, 0.5, 1 / 3, 0.7, 1.0, NAN])


@st.composite
def boards(draw):
    n_agents, n_tasks = draw(st.integers(5, 16)), draw(st.integers(1, 14))
    cells = draw(st.lists(CELLS, min_size=n_agents * n_tasks, max_size=n_agents * n_tasks))
    return np.array(cells).reshape(n_agents, n_tasks)


def rate_by_definition(column):
    valid = [Fraction(cell) for cell in column if not math.isnan(cell)]
    return sum(valid) / len(valid) if valid else None


@REPEATABLE
@given(boards())
def test_the_subset_is_the_band_in_exact_fractions(outcomes):
    rates = [rate_by_definition(column) for column in outcomes.T]
    tolerance = Fraction(1, 10**9)
    for lo, hi in (of([30, 70]), of([25, 75]), of([15, 85])):
        tasks = [j for j, p in enumerate(rates) if p is not None and lo - tolerance <= p <= hi + tolerance]
        if 10 * len(tasks) >= len(rates):
            break
    band = mid_range(outcomes)
    assert band.suited == (10 * len(tasks) >= len(rates))
    assert band.tasks.tolist() == (tasks if band.suited else [])
    assert (Fraction(str(band.lo)), Fraction(str(band.hi))) == (lo, hi)
    assert np.isnan(band.pass_rates).tolist() == [p is None for p in rates]


@REPEATABLE
@given(boards(), st.randoms(use_true_random=False))
def test_the_order_of_agents_and_tasks_does_not_matter(outcomes, random):
    n_agents, n_tasks = outcomes.shape
    rows, columns = random.sample(range(n_agents), n_agents), random.sample(range(n_tasks), n_tasks)
    band, turned = mid_range(outcomes), mid_range(outcomes[np.ix_(rows, columns)])
    assert sorted(columns[j] for j in turned.tasks) == band.tasks.tolist()
    assert turned.pass_rates == pytest.approx(band.pass_rates[columns], abs=1e-12, nan_ok=True)
    assert (turned.reason, turned.tried) == (band.reason, band.tried)


@REPEATABLE
@given(boards(), st.data())
def test_whole_weights_are_repeated_agents(outcomes, data):
    n_agents = len(outcomes)
    times = data.draw(st.lists(st.integers(1, 4), min_size=n_agents, max_size=n_agents))
    weighted = pass_rates(outcomes, np.array(times, dtype=float))
    assert weighted == pytest.approx(pass_rates(np.repeat(outcomes, times, axis=0)), abs=1e-12, nan_ok=True)
    scaled = mid_range(outcomes, np.full(n_agents, 7.0))
    plain = mid_range(outcomes)
    assert scaled.tasks.tolist() == plain.tasks.tolist()
    assert scaled.p_in_band == pytest.approx(plain.p_in_band, abs=1e-9, nan_ok=True)


@REPEATABLE
@given(boards())
def test_mirroring_outcomes_mirrors_nothing_but_the_rates(outcomes):
    band, mirrored = mid_range(outcomes), mid_range(1.0 - outcomes)
    assert mirrored.tasks.tolist() == band.tasks.tolist()
    assert mirrored.p_in_band == pytest.approx(band.p_in_band, abs=1e-9, nan_ok=True)


@REPEATABLE
@given(boards())
def test_posterior_and_flags_agree_with_scipy_stats(outcomes):
    from scipy import stats

    band = mid_range(outcomes)
    rated = np.flatnonzero(~np.isnan(band.pass_rates))
    n = np.count_nonzero(~np.isnan(outcomes[:, rated]), axis=0)
    passed = np.nansum(outcomes[:, rated], axis=0)
    posterior = stats.beta(passed + 0.5, n - passed + 0.5)
    p_in_band = posterior.cdf(band.hi) - posterior.cdf(band.lo)
    assert band.p_in_band[rated] == pytest.approx(p_in_band, abs=1e-10)
    selected = np.isin(rated, band.tasks)
    unsure = rated[np.where(selected, p_in_band < 0.8, p_in_band > 0.2)]
    expected = unsure.tolist() if band.suited and band.stage == "stable" else []
    assert band.flagged.tolist() == expected


# --------------------------------------------------------------------------------------- windows and tables


def test_the_window_keeps_the_latest_by_date_then_position():
    day = date(2025, 5, 1)
    dates = [day, None, day + timedelta(2), day, day + timedelta(1)]
    # Oldest to latest: 1 (no date), 0, 3 (same day), 4, 2.
    assert latest_agents(dates, 1).tolist() == [2]
    assert latest_agents(dates, 3).tolist() == [2, 3, 4]
    assert latest_agents(dates, 4).tolist() == [0, 2, 3, 4]
    for everyone in (5, 9, None):
        assert latest_agents(dates, everyone).tolist() == [0, 1, 2, 3, 4]
    assert latest_agents([], None).tolist() == []
    with refused(SelectionError, "window_range", match="0 agents"):
        latest_agents(dates, 0)


def table_of(means, dates):
    n_agents, n_tasks = means.shape
    return OutcomeTable(
        agents=tuple(f"a{i:03d}" for i in range(n_agents)),
        tasks=tuple(f"t{j:03d}" for j in range(n_tasks)),
        means=means,
        n_valid=(~np.isnan(means)).astype(np.int32),
        dates=tuple(dates),
        scaffolds=("",) * n_agents,
        models=("",) * n_agents,
    )


def test_only_complete_agents_of_the_window_feed_the_band_of_a_table():
    # Five early agents pass nothing, five late ones pass half, one incomplete agent passes all it ran.
    means = np.zeros((11, 20))
    means[5:10, :] = [[1.0], [1.0], [1.0], [0.0], [0.0]]
    means[10, :10], means[10, 10:] = 1.0, NAN
    table = table_of(means, [date(2025, 1, 1 + i) for i in range(11)])
    everyone = table_band(table)
    assert (everyone.n_complete, everyone.pass_rates.tolist()) == (10, [0.3] * 20)
    late = table_band(table, history_window=5)
    assert (late.n_complete, late.pass_rates.tolist()) == (5, [0.6] * 20)
    assert table_band(table, lo=0.31, hi=0.69).size == 20


# ------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("outcomes", "refusal", "message"),
    [
        (np.zeros(3), "shape", r"shape \(3,\)"),
        (np.zeros((3, 0)), "no_tasks", "no active task"),
        (np.array([[0.0, 1.5]]), "outcome_range", "agent 0, task 1: 1.5"),
        (np.array([[0.0], [-1.0]]), "outcome_range", "agent 1, task 0: -1.0"),
        (np.array([[np.inf]]), "outcome_range", "inf is not from 0 to 1"),
    ],
)
def test_outcomes_that_are_none_are_refused(outcomes, refusal, message):
    for refuses in (pass_rates, mid_range):
        with refused(SelectionError, refusal, match=message):
            refuses(outcomes)


@pytest.mark.parametrize("weight", [0.0, -1.0, NAN, math.inf])
def test_weights_that_are_none_are_refused(weight):
    with refused(SelectionError, "weight_range", match="agent 1 has weight"):
        mid_range(np.zeros((3, 2)), np.array([1.0, weight, 1.0]))
    with refused(SelectionError, "shape", match=r"weights \(2,\) for 3 agents"):
        mid_range(np.zeros((3, 2)), np.ones(2))


@pytest.mark.parametrize(("lo", "hi"), [(0.7, 0.3), (0.5, 0.5), (-0.1, 0.5), (0.5, 1.1), (NAN, 0.5)])
def test_a_band_without_an_inside_is_refused(lo, hi):
    with refused(SelectionError, "band_range", match="0 ≤ lo < hi ≤ 1"):
        mid_range(np.zeros((3, 2)), lo=lo, hi=hi)


def test_refusals_are_of_the_core():
    assert issubclass(SelectionError, CoreError)


def test_the_arrays_of_a_band_refuse_to_be_written_to():
    band = mid_range(board([5, 5]))
    for array in (band.tasks, band.pass_rates, band.p_in_band, band.flagged):
        assert not array.flags.writeable


# -------------------------------------------------------------------------------------------- real boards


# Efficient Benchmarking of AI Agents, Table 5: k of GAIA, CoreBench Hard and τ-bench Airline.
@pytest.mark.parametrize(
    ("name", "n_agents", "n_tasks", "k"),
    [("hal_gaia", 32, 165, 82), ("hal_corebench_hard", 38, 45, 15), ("hal_taubench_airline", 26, 50, 28)],
)
def test_published_sizes(real_rows, name, n_agents, n_tasks, k):
    rates, matrix = exact_rates(real_rows(name))
    band = mid_range(matrix)
    assert matrix.shape == (n_agents, n_tasks)
    assert (band.size, band.widened, band.suited, band.stage) == (k, False, True, "stable")
    assert band.pass_rates == pytest.approx([float(rate) for rate in rates], abs=1e-14)


def test_scicode_has_four_mid_range_tasks_and_is_unsuited(real_rows):
    # The paper (§3.3): four tasks of 65 in 30-70%. Widening finds 5 and 6, counted in exact fractions; 7 are
    # needed.
    rates, matrix = exact_rates(real_rows("hal_scicode"))
    band = mid_range(matrix)
    counts = [sum(lo <= p <= hi for p in rates) for lo, hi in (of([30, 70]), of([25, 75]), of([15, 85]))]
    assert counts[0] == 4
    assert [attempt[2] for attempt in band.tried] == counts
    assert (band.suited, band.size, band.n_complete) == (False, 0, 24)
    assert band.reason == (
        "only 6 of 65 tasks (9%) have a pass rate from 15% to 85%; at least 7 (10%) are needed"
    )


def test_terminal_bench_without_its_invalid_trials(real_rows):
    # 25 of 80 over 13 agents is this project's count, by the exact fractions of `exact_rates`.
    rates, matrix = exact_rates(real_rows("terminal_bench_core_011"))
    band = mid_range(matrix)
    lo, hi = of([30, 70])
    assert matrix.shape == (13, 80)
    assert band.tasks.tolist() == [j for j, p in enumerate(rates) if lo <= p <= hi]
    assert (band.size, band.widened, band.stage) == (25, False, "provisional")
    assert band.flagged.size == 0
    assert band.reason == "25 of 80 tasks have a pass rate from 30% to 70% over 13 agents"


def test_swebench_verified_is_the_band_in_exact_fractions(real_rows):
    # 153 of 500 is this project's count, by the exact fractions of `exact_rates`.
    rates, matrix = exact_rates(real_rows("swebench_verified_2023_2025"))
    band = mid_range(matrix)
    lo, hi = of([30, 70])
    assert matrix.shape == (57, 500)
    assert band.tasks.tolist() == [j for j, p in enumerate(rates) if lo <= p <= hi]
    assert (band.size, band.widened, band.suited, band.stage) == (153, False, True, "stable")
