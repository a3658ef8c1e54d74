import re
from datetime import UTC, datetime

import pytest

from leaderboard.boards.models import Entry, Phase
from leaderboard.boards.reading import Gap, Line
from leaderboard.pages.templatetags import figures, plots
from leaderboard.studies.models import TaskSubset


def words(html):
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


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


def line(told, *, tied=(), rank=1, **fields):
    return Line(Entry(name="a", **fields), told, rank, shares_rank=False, tied=tuple(tied))


@pytest.mark.parametrize(
    ("score", "ends"),
    [(0.5, (0.4, 0.6)), (0.99, (0.8, 1.2)), (0.0, (-0.1, 0.1)), (0.3, (None, None)), (-0.1, (None, None))],
)
def test_a_plot_stays_on_its_axis_and_covers_the_interval(score, ends):
    plot = plots.score_plot(line({"score": score, "lower": ends[0], "upper": ends[1]}))
    places = [float(text.split('"')[1]) for text in plot.split(" ") if text.startswith(("x1=", "x2=", "cx="))]
    assert len(places) == 5
    assert all(plots.MARGIN <= place <= plots.WIDTH - plots.MARGIN for place in places)
    low, high, at = places[2:]
    assert low <= at <= high
    assert (low < high) == (ends[0] is not None)


def test_without_a_score_there_is_no_plot():
    assert plots.score_plot(line({"reason": "not run"})) == ""


def test_an_estimate_has_its_error_and_the_naive_one_below():
    told = {"score": 0.7321, "se": 0.0258, "naive_se": 0.0597, "method": "repeated trials"}
    shown = figures.estimate(line(told))
    assert words(shown) == "73.2 ±2.6 naive ±6.0"


def test_an_estimate_without_an_error_claims_none():
    shown = words(figures.estimate(line({"score": 0.0, "se": None, "naive_se": 0.0, "method": "none"})))
    assert shown == "0.0 naive ±0.0"


def test_a_calibrated_estimate_names_its_source():
    told = {"score": 0.63, "se": 0.02, "naive_se": None, "method": "calibration"}
    shown = figures.estimate(line(told, full_interval={"source": "jackknife+", "lower": 0.5, "upper": 0.7}))
    assert words(shown) == "~ 63.0 calibrated ±2.0 jackknife+"


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"lower": 0.681, "upper": 0.7832}, "68.1–78.3"),
        ({"lower": -0.02, "upper": 1.01}, "0.0–100.0"),
        ({"lower": None, "upper": None}, ""),
        ({}, ""),
        (None, ""),
    ],
)
def test_an_interval_stays_among_scores(told, said):
    assert figures.interval(told) == said


@pytest.mark.parametrize(("lower", "upper", "said"), [(1, 18, "1–18"), (3, 3, "3")])
def test_the_ranks_it_may_hold(lower, upper, said):
    assert figures.places(line({"rank_lower": lower, "rank_upper": upper})) == said
    assert "none" in figures.places(line({}))


def test_an_intraclass_correlation_tells_its_interval_trials_and_doubt():
    told = {"icc": 0.4138, "lower": 0.0, "upper": 0.781, "trials_per_task": 2.0, "note": "only 5 tasks"}
    assert words(figures.icc(Entry(icc=told))) == "0.41 0.00–0.78 unreliable 2.0 trials a task"
    assert "none" in figures.icc(Entry(icc={"reason": "one trial per task"}))
    assert "none" in figures.icc(Entry(icc=None))


def test_few_names_are_shown_and_many_are_counted():
    assert figures.who(Gap("No score", "why", ("a", "b"))) == "a, b"
    assert figures.who(Gap("No score", "why", tuple("abc"))) == "3 agents"


@pytest.mark.parametrize(("n", "few", "n_more"), [(0, True, 0), (2, True, 0), (3, False, 0), (80, False, 30)])
def test_ties_unfold_and_end_somewhere(n, few, n_more):
    told = figures.ties(line({"rank_lower": 1, "rank_upper": n + 1}, tied=[f"a{i}" for i in range(n)]))
    assert (told["n"], told["few"], told["n_more"]) == (n, few, n_more)
    assert len(told["names"]) + n_more == n


@pytest.mark.parametrize(("lo", "hi", "n_bars"), [(0.3, 0.7, 8), (0.25, 0.75, 10), (0.5, 0.51, 1)])
def test_the_bars_divide_the_band(lo, hi, n_bars):
    bars = plots.bars(TaskSubset(lo=lo, hi=hi), [])
    assert len(bars) == n_bars
    assert (bars[0].lo, pytest.approx(bars[-1].hi)) == (lo, hi)


def test_every_task_is_in_one_bar_and_both_ends_are_in():
    bars = plots.bars(TaskSubset(lo=0.3, hi=0.7), [0.3, 0.35, 3 / 10, 7 / 10, 0.6999999, 0.7000000001, 0.5])
    assert [bar.n for bar in bars] == [2, 1, 0, 0, 1, 0, 0, 3]
    assert [bar.share for bar in bars] == [2 / 3, 1 / 3, 0, 0, 1 / 3, 0, 0, 1]
