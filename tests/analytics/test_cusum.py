import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, rankdata

from analytics.drift.cusum import ONE_SIDED, RUN_LENGTH, TWO_SIDED, Alarm, SeriesMalformed, cusum


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
    ups, downs, alarm = by_definition(values, n_reference, TWO_SIDED if two_sided else ONE_SIDED, two_sided)
    assert chart.up[: len(ups)] == pytest.approx(ups, abs=1e-12)
    assert chart.down[: len(ups)] == pytest.approx(downs, abs=1e-12)
    assert (chart.alarms[0].at if chart.alarms else None) == alarm


def test_by_hand():
    # two reference values, then the largest of 3, 4, 5 and 6: Φ⁻¹ of 2.5/3, 3.5/4, 4.5/5, 5.5/6
    scores = [norm.ppf(p) for p in (2.5 / 3, 3.5 / 4, 4.5 / 5, 5.5 / 6)]
    chart = cusum([1, 2, 3, 4, 5, 6], n_reference=2)
    assert chart.up == pytest.approx([0, 0, *(np.cumsum(scores) - 0.5 * np.arange(1, 5))])
    assert chart.alarms == ()


def test_after_an_alarm_the_reference_begins_at_the_last_zero():
    low, high = [0.1 * ((4 - i) % 5) for i in range(20)], [1.0 + 0.01 * i for i in range(6)]
    chart = cusum([*low, *high])
    assert chart.alarms[0] == Alarm(at=22, since=20, rising=True)
    assert chart.n_reference == len(high)  # three up to the alarm, three after it
    # the new level is no news: ten values of it are ranked, the next are added up and stay quiet
    again = cusum([*low, *high, *([1.03, 1.01, 1.04] * 8)])
    assert len(again.alarms) == 1


def test_a_fall_is_seen_on_two_sides_alone():
    values = [math.sin(i) for i in range(20)] + [-5.0 - i for i in range(8)]
    assert cusum(values).alarms == ()
    assert not cusum(values, two_sided=True).alarms[0].rising


def test_equal_values_never_alarm():
    assert cusum([0.5] * 500, two_sided=True).alarms == ()


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_values_that_are_not_finite_are_refused_with_their_place(value):
    with pytest.raises(SeriesMalformed, match="value 2 is"):
        cusum([0.0, 1.0, value])
    with pytest.raises(SeriesMalformed, match="at least 1"):
        cusum([0.0], n_reference=0)


def run_length(draw, *, two_sided, limit=6_000):
    """Values after the reference up to the first alarm."""
    n = 250
    while n <= limit:
        alarms = cusum(draw(n), two_sided=two_sided).alarms
        if alarms:
            return alarms[0].at - 9
        n *= 3
    raise AssertionError(f"no alarm in {limit} values")


def lengths(sample, two_sided, n_histories, seed):
    """Each history is one stream, prolonged until its first alarm."""
    found = []
    for history in range(n_histories):
        stream = sample(np.random.default_rng([seed, history]), 20_000)
        found.append(
            run_length(lambda n, stream=stream: stream[:n].tolist(), two_sided=two_sided, limit=20_000)
        )
    return np.array(found)


@pytest.mark.slow
def test_run_length_without_change(capsys):
    normal = lambda rng, n: rng.standard_normal(n)  # noqa: E731
    tied = lambda rng, n: rng.binomial(15, 0.5, n) / 15  # noqa: E731
    one, two = lengths(normal, False, 1_000, 1), lengths(normal, True, 1_000, 2)
    ties = lengths(tied, False, 1_000, 3)
    with capsys.disabled():
        print(
            f"\nrun length: one side {one.mean():.0f}, two sides {two.mean():.0f}, k = 15 {ties.mean():.0f}"
        )
    assert abs(one.mean() - RUN_LENGTH) < 0.2 * RUN_LENGTH
    assert abs(two.mean() - RUN_LENGTH) < 0.2 * RUN_LENGTH
    assert ties.mean() >= RUN_LENGTH


@pytest.mark.slow
def test_delay_after_a_jump(capsys):
    """A jump of 0.15 after 30 agents; a false alarm before it does not count."""
    medians = {}
    for sd in (0.10, 0.15, 0.20):
        rng = np.random.default_rng([4, int(100 * sd)])
        delays = []
        for _ in range(1_000):
            series = np.concatenate([rng.normal(0, sd, 30), rng.normal(0.15, sd, 300)]).tolist()
            delays.append(next((a.at - 29 for a in cusum(series).alarms if a.at >= 30), 300))
        medians[sd] = float(np.median(delays))
    with capsys.disabled():
        print(f"\nmedian delay by standard deviation of agents: {medians}")
    assert medians[0.10] <= 6
