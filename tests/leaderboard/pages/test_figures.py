import re
from datetime import UTC, datetime

import pytest

from leaderboard.pages import board_table
from leaderboard.pages.board_table import BoardLine
from leaderboard.pages.templatetags import figures
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


def line(*, cells=None, **told):
    entry = entrant("a", **told)
    return BoardLine(entry, entry.at["full"], cells or {})


@pytest.mark.parametrize(
    ("text", "said"), [("73.2", "73.2"), ("~73.2", "~ estimated 73.2"), ("–", "– not known")]
)
def test_a_cell_says_what_its_signs_mean(text, said):
    assert words(figures.cell(line(cells={"Score %": text}), "Score %")) == said


def test_a_cell_of_a_column_that_is_left_out_is_not_known():
    assert words(figures.cell(line(), "Cost")) == "– not known"


@pytest.mark.parametrize(
    ("text", "said"), [("2.6", "2.6"), ("≤2.6", "≤2.6 upper bound"), ("–", "– not known")]
)
def test_an_error_is_told_as_what_it_is(text, said):
    assert words(board_table.error_cell({}, line(cells={"SE": text}))) == said


@pytest.mark.parametrize(
    ("told", "cell", "said"),
    [
        ({"cost_usd": 12.3}, "$12.30", "$12.30"),
        ({"cost_usd": 0.0}, "?", "? not plausible"),
        ({}, "–", "– not stated"),
        ({"cost_basis": "hidden"}, "–", "– hidden"),
    ],
)
def test_a_cost_says_why_it_is_absent(told, cell, said):
    assert words(board_table.cost_cell({}, line(cells={"Cost": cell}, **told))) == said


@pytest.mark.parametrize(
    ("agent", "scaffold", "model", "shown"),
    [
        ("Loop (Opus 4 (May))", "Loop", "Opus 4 (May)", ""),
        ("loop-opus", "Loop", "Opus", ""),
        ("best one", "Loop", "Opus", "Opus · Loop"),
        ("best Loop", "Loop", "Opus", "Opus"),
        ("best one", "Loop", "Loop", "Loop"),
        ("one", "not stated", "Opus", "Opus"),
        ("one", "", "", ""),
    ],
)
def test_beside_a_name_stands_what_it_does_not_say(agent, scaffold, model, shown):
    entry = entrant(agent, scaffold=scaffold, model=model)
    assert BoardLine(entry, entry.at["full"], {}).made_of == shown


def test_trials_are_told_for_each_task():
    assert board_table.trials_cell({}, line(n_trials=30, n_tasks=20)) == "1.5"
    assert board_table.trials_cell({}, line()) == "–"


def test_an_intraclass_correlation_has_its_interval_and_its_tasks():
    told = line(icc={"icc": 0.4138, "lower": 0.0, "upper": 0.781, "n_tasks": 12}, cells={"ICC": "0.41?"})
    assert words(board_table.icc_cell({}, told)) == "0.41? 0.00–0.78 12 tasks"
    assert words(board_table.icc_cell({}, line())) == "– not known"


def test_few_names_are_shown_and_many_are_counted():
    assert figures.who(("a", "b")) == "a, b"
    assert figures.who(tuple("abc")) == "3 agents"
