import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, rankdata

from analytics.drift.charts import ONE_SIDED, RUN_LENGTH, TWO_SIDED, Alarm, cusum
from analytics.errors import CoreError


def by_definition(values, n_reference, threshold, two_sided):
    """C⁺, C⁻ and the first alarm, each score from the whole past."""
    up = down = 0.0
    ups, downs = [], []
    for t in range(len(values)):
        z = norm.ppf((rankdata(values[: t + 1])[-1] - 0.5) / (t + 1))
        if t >= n_reference:
            up = max(0.0, up + z - 0.5)
            down = max(0.0, down - z - 0.5) if two_sided else 0.0
        ups.append(up)
        downs.append(down)
        if max(up, down) > threshold:
            return ups, downs, t
    return ups, downs, None


@given(
    st.lists(st.integers(0, 8), min_size=1, max_size=60),
    st.booleans(),
    st.integers(1, 12),
)
def test_it_follows_the_definition_up_to_the_first_alarm(values, two_sided, n_reference):
    chart = cusum(values, two_sided=two_sided, n_reference=n_reference)
    ups, downs, alarm = by_definition(values, n_reference, chart.threshold, two_sided)
    assert chart.up[: len(ups)] == pytest.approx(ups, abs=1e-12)
    assert chart.down[: len(ups)] == pytest.approx(downs, abs=1e-12)
    assert (chart.alarms[0].at if chart.alarms else None) == alarm


def test_by_hand():
    # two reference values, then the largest of 3, 4, 5 and 6: Φ⁻¹ of 2.5/3, 3.5/4, 4.5/5, 5.5/6
    scores = [norm.ppf(p) for p in (2.5 / 3, 3.5 / 4, 4.5 / 5, 5.5 / 6)]
    chart = cusum([1, 2, 3, 4, 5, 6], n_reference=2)
    assert chart.up == pytest.approx([0, 0, *(np.cumsum(scores) - 0.5 * np.arange(1, 5))])
    assert chart.alarms == []


def test_it_warns_before_it_alarms_once_on_each_way_up():
    # after 20 values every larger one scores Φ⁻¹((t − ½)/t) − ½: 1.5, 1.5, 1.5, 1.6, 1.6 …
    chart = cusum([*(0.1 * (i % 5) for i in range(20)), *(1.0 + i for i in range(8))])
    sums = np.cumsum([norm.ppf((t - 0.5) / t) - 0.5 for t in range(21, 29)]) + chart.up[19]
    assert chart.warned[0] == 20 + int(np.argmax(sums > 5.5))
    assert chart.alarms[0].at == 20 + int(np.argmax(sums > 7))
    assert len(chart.warned) == 1
    assert (chart.warning, chart.threshold) == (5.5, 7)


def test_after_an_alarm_the_reference_begins_at_the_last_zero():
    low, high = [0.1 * ((4 - i) % 5) for i in range(20)], [1.0 + 0.01 * i for i in range(6)]
    chart = cusum([*low, *high])
    assert chart.alarms[0] == Alarm(at=24, since=20, rising=True)
    assert chart.n_reference == len(high)  # five up to the alarm, one after it
    # the new level is no news: ten values of it are ranked, the next are added up and stay quiet
    again = cusum([*low, *high, *([1.03, 1.01, 1.04] * 8)])
    assert len(again.alarms) == 1


def test_a_fall_is_seen_on_two_sides_alone():
    values = [math.sin(i) for i in range(20)] + [-5.0 - i for i in range(8)]
    assert cusum(values).alarms == []
    assert not cusum(values, two_sided=True).alarms[0].rising


def test_equal_values_never_alarm():
    assert cusum([0.5] * 500, two_sided=True).alarms == []


def test_values_that_differ_by_rounding_share_a_rank():
    sums = [0.1 + 0.2, 0.3, 0.3, 0.1 + 0.2] * 4
    assert len(set(sums)) == 2
    assert cusum(sums).scores == cusum([0.3] * 16).scores


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_values_that_are_not_finite_are_refused_with_their_place(value):
    with pytest.raises(CoreError, match="value 2 is"):
        cusum([0.0, 1.0, value])
    with pytest.raises(CoreError, match="at least 1"):
        cusum([0.0], n_reference=0)


def first_passages(n_series, n_reference, n, *, two_sided, seed):
    """Shares of series without any change in which a chart passes each line, all series at once."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((n_series, n_reference + n))
    up, down, highest = np.zeros(n_series), np.zeros(n_series), np.zeros(n_series)
    for t in range(n_reference, n_reference + n):
        rank = (values[:, :t] < values[:, [t]]).sum(axis=1) + 1
        z = norm.ppf((rank - 0.5) / (t + 1))
        up, down = np.maximum(0, up + z - 0.5), np.maximum(0, down - z - 0.5)
        highest = np.maximum(highest, np.maximum(up, down) if two_sided else up)
    return [float(np.mean(highest > line)) for line in (TWO_SIDED if two_sided else ONE_SIDED)]


@pytest.mark.slow
def test_without_change_170_values_seldom_pass_a_line(capsys):
    for n_reference in (15, 30):
        for two_sided in (False, True):
            warned, alarmed = first_passages(20_000, n_reference, 170, two_sided=two_sided, seed=n_reference)
            with capsys.disabled():
                print(f"\n{n_reference} before, {1 + two_sided} sides: {warned:.4f}, {alarmed:.4f}")
            assert warned <= 0.10
            assert alarmed <= 0.02


@pytest.mark.slow
def test_run_length_without_change(capsys):
    """At least 7,500 values to a false alarm: in 1,500 at most 1 − exp(−1,500/7,500)."""
    found = {sides: first_passages(4_000, 10, 1_500, two_sided=sides == 2, seed=sides)[1] for sides in (1, 2)}
    with capsys.disabled():
        print(f"\nalarms in 1,500 values: {found}")
    assert all(0.10 < share <= 1 - math.exp(-1_500 / RUN_LENGTH) for share in found.values())


@pytest.mark.slow
def test_delay_after_a_jump(capsys):
    """Jumps after 30 agents, in standard deviations; one before or after 170 does not count."""
    delays = {}
    for jump in (1.5, 1.0):
        rng = np.random.default_rng([4, int(10 * jump)])
        series = [np.concatenate([rng.normal(0, 1, 30), rng.normal(jump, 1, 170)]) for _ in range(300)]
        alarms = [cusum(one.tolist(), n_reference=30).alarms for one in series]
        delays[jump] = np.array([next((a.at - 29 for a in found if a.at >= 30), 999) for found in alarms])
    seen = {jump: float(np.mean(found <= 170)) for jump, found in delays.items()}
    with capsys.disabled():
        print(f"\nseen in 170 {seen}, median delay {[float(np.median(found)) for found in delays.values()]}")
    assert seen[1.5] >= 0.95
    assert np.median(delays[1.5]) <= 15
    assert seen[1.0] >= 0.5
