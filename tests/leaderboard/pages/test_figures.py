import re
from datetime import UTC, datetime

import pytest
from leaderboard.pages.queries import Line

from leaderboard.pages.templatetags import figures, plots
from leaderboard.studies.models import TaskSubset
from tests.leaderboard.pages.lines import entrant


def words(html):
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


@pytest.mark.parametrize(
    ("value", "said"), [(0.86589, "86.6"), (0, "0.0"), (1, "100.0"), (-0.0004, "0.0"), (-0.0123, "−1.2")]
)
def test_percent(value, said):
    assert figures.percent(value) == said


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("`missing = zero` counts", "<code>missing = zero</code> counts"),
        ("a `b` and `c d`", "a <code>b</code> and <code>c d</code>"),
        ("an odd ` stays", "an odd ` stays"),
        ("`` is nothing", "`` is nothing"),
        ("`<script>alert(1)</script>` ran", "<code>&lt;script&gt;alert(1)&lt;/script&gt;</code> ran"),
        ("</code><img src=x onerror=a> `x`", "&lt;/code&gt;&lt;img src=x onerror=a&gt; <code>x</code>"),
        ("a & \"b\" 'c'", "a &amp; &quot;b&quot; &#x27;c&#x27;"),
    ],
)
def test_what_is_typed_is_code_and_all_of_it_escaped(text, html):
    assert figures.prose(text) == html


def test_nothing_is_blank():
    assert words(figures.percent(None)) == "– not known"
    assert words(figures.figure(None)) == "– not available"
    assert words(figures.day(None)) == "– not stated"


@pytest.mark.parametrize(("value", "said"), [(0.3, "30%"), (0.15, "15%"), (1, "100%"), (0.1464, "14.64%")])
def test_the_edge_of_a_band(value, said):
    assert figures.edge(value) == said


def test_counts_agree_with_their_noun():
    assert [figures.counted(n, "task") for n in (0, 1, 21600)] == ["0 tasks", "1 task", "21,600 tasks"]


def test_days_and_instants_are_in_utc():
    moment = datetime(2026, 6, 1, 23, 30, tzinfo=UTC)
    assert figures.day(moment) == '<time datetime="2026-06-01">2026-06-01</time>'
    assert "1 June 2026, 23:30 UTC" in figures.instant(moment)


def line(*, tied=(), cells=None, **told):
    entry = entrant("a", **told)
    return Line(entry, entry.at["full"], cells or {}, tuple(tied))


@pytest.mark.parametrize(
    ("score", "ends"),
    [(0.5, (0.4, 0.6)), (0.99, (0.8, 1.0)), (0.0, (0.0, 0.1)), (0.3, (None, None))],
)
def test_a_plot_stays_on_its_axis_and_covers_the_interval(score, ends):
    plot = plots.score_plot(line(score=score, lower=ends[0], upper=ends[1]))
    places = [float(text.split('"')[1]) for text in plot.split(" ") if text.startswith(("x1=", "x2=", "cx="))]
    assert len(places) == 5
    assert all(plots.MARGIN <= place <= plots.WIDTH - plots.MARGIN for place in places)
    low, high, at = places[2:]
    assert low <= at <= high
    assert (low < high) == (ends[0] is not None)


def test_half_stands_half_way():
    plot = plots.score_plot(line(score=0.5))
    assert f'cx="{plots.WIDTH / 2:.1f}"' in plot


def test_without_a_score_there_is_no_plot():
    assert plots.score_plot(line()) == ""


@pytest.mark.parametrize(
    ("text", "said"), [("73.2", "73.2"), ("~73.2", "~ 73.2 estimated"), ("–", "– not known")]
)
def test_a_cell_says_what_its_signs_mean(text, said):
    assert words(figures.cell(line(cells={"Score %": text}), "Score %")) == said


def test_a_cell_of_a_column_that_is_left_out_is_not_known():
    assert words(figures.cell(line(), "Cost")) == "– not known"


@pytest.mark.parametrize(("text", "said"), [("2.6", "±2.6"), ("≤2.6", "≤2.6 upper bound"), ("–", "")])
def test_an_error_is_told_as_what_it_is(text, said):
    assert words(figures.error_of(line(cells={"± SE": text}), "± SE")) == said


@pytest.mark.parametrize(("text", "said"), [("3", "3"), ("3=", "3 = shared")])
def test_a_shared_rank_says_so(text, said):
    assert words(figures.rank(line(cells={"Rank": text}))) == said


def test_an_intraclass_correlation_has_its_interval_below():
    told = line(icc={"icc": 0.4138, "lower": 0.0, "upper": 0.781}, cells={"ICC": "0.41?"})
    assert words(figures.icc(told)) == "0.41? 0.00–0.78"
    assert words(figures.icc(line())) == "– not known"


def test_few_names_are_shown_and_many_are_counted():
    assert figures.who(("a", "b")) == "a, b"
    assert figures.who(tuple("abc")) == "3 agents"


@pytest.mark.parametrize(("n", "few", "n_more"), [(0, True, 0), (2, True, 0), (3, False, 0), (80, False, 30)])
def test_ties_unfold_and_end_somewhere(n, few, n_more):
    told = figures.ties(line(rank_lower=1, rank_upper=n + 1, tied=[f"a{i}" for i in range(n)]))
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
