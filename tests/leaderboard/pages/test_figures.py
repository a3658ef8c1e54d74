from datetime import UTC, datetime

import pytest

from leaderboard.boards.models import Entry, Phase
from leaderboard.pages.templatetags import figures, plots
from leaderboard.studies.models import TaskSubset


@pytest.mark.parametrize(
    ("value", "said"), [(0.86589, "86.6"), (0, "0.0"), (1, "100.0"), (-0.0004, "0.0"), (-0.0123, "−1.2")]
)
def test_percent(value, said):
    assert figures.percent(value) == said


def test_nothing_is_said_to_be_nothing():
    assert "none" in figures.percent(None)
    assert figures.with_error(None, None) == figures.percent(None)
    assert figures.day(None) == figures.percent(None)


@pytest.mark.parametrize(("value", "said"), [(0.3, "30%"), (0.15, "15%"), (1, "100%"), (0.1464, "14.64%")])
def test_the_edge_of_a_band(value, said):
    assert figures.edge(value) == said


def test_counts_agree_with_their_noun():
    assert [figures.counted(n, "task") for n in (0, 1, 21600)] == ["0 tasks", "1 task", "21,600 tasks"]


def test_days_and_instants_are_in_utc():
    moment = datetime(2026, 6, 1, 23, 30, tzinfo=UTC)
    assert figures.day(moment) == '<time datetime="2026-06-01">2026-06-01</time>'
    assert "1 June 2026, 23:30 UTC" in figures.instant(moment)


def test_every_phase_has_a_sentence():
    assert set(figures.PHASES) == set(Phase.values)


@pytest.mark.parametrize(("score", "error"), [(0.5, 0.1), (0.99, 0.2), (0.0, 0.0), (-0.1, None)])
def test_a_plot_stays_on_its_axis(score, error):
    plot = plots.score_plot(Entry(score=score, naive_se=error))
    places = [float(text.split('"')[1]) for text in plot.split(" ") if text.startswith(("x1=", "x2=", "cx="))]
    assert len(places) == 5
    assert all(plots.MARGIN <= place <= plots.WIDTH - plots.MARGIN for place in places)


@pytest.mark.parametrize(("lo", "hi", "n_bars"), [(0.3, 0.7, 8), (0.25, 0.75, 10), (0.5, 0.51, 1)])
def test_the_bars_divide_the_band(lo, hi, n_bars):
    bars = plots.bars(TaskSubset(lo=lo, hi=hi), [])
    assert len(bars) == n_bars
    assert (bars[0].lo, pytest.approx(bars[-1].hi)) == (lo, hi)


def test_every_task_is_in_one_bar_and_both_ends_are_in():
    bars = plots.bars(TaskSubset(lo=0.3, hi=0.7), [0.3, 0.35, 3 / 10, 7 / 10, 0.6999999, 0.7000000001, 0.5])
    assert [bar.n for bar in bars] == [2, 1, 0, 0, 1, 0, 0, 3]
    assert [bar.share for bar in bars] == [2 / 3, 1 / 3, 0, 0, 1 / 3, 0, 0, 1]
