"""Plots by their geometry: each mark stands where its value is, and looks as the pages look."""

import sys
from dataclasses import replace

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_hex

from analytics.errors import CoreError
from analytics.outcome_table import OutcomeTable
from analytics.plots import PAINT
from analytics.record import Counting, Record
from analytics.simulation import demonstration, flat_rows
from selection.plots import marks
from selection.standings import answer
from selection.standings.terms import in_order, whole_costs
from selection.validation import validate
from selection.validation_text import TESTS

LOOKS = {  # of a mark: colour inside and around
    "first": (PAINT["lead"], PAINT["lead"]),
    "tied": (PAINT["paper"], PAINT["tied"]),
    "worse": (PAINT["worse"], PAINT["worse"]),
}


@pytest.fixture(autouse=True)
def figures_closed():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def frame():
    return pd.DataFrame(flat_rows(demonstration(), benchmark="demonstration"))


@pytest.fixture(scope="module")
def record(frame):
    return Record.from_frame(frame)


@pytest.fixture(scope="module")
def standings(record):
    return answer(record)


def dots(ax, marker="o"):
    """Place, colour inside and colour around of each dot, legends left out."""
    drawn = [line for line in ax.lines if line.get_marker() == marker and len(line.get_xdata())]
    return {
        (line.get_xdata()[0], line.get_ydata()[0]): (
            to_hex(line.get_markerfacecolor()),
            to_hex(line.get_markeredgecolor()),
        )
        for line in drawn
    }


def spans(ax):
    """The ends of each line, as ((x, y), (x, y))."""
    return {
        tuple(map(tuple, segment)) for collection in ax.collections for segment in collection.get_segments()
    }


def rows_named(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def test_ranks_stand_on_their_ranges_with_the_marks_of_the_pages(standings):
    ax = standings.plot()
    ranked = [line for line in in_order(standings) if line.at["full"].rank is not None]
    assert rows_named(ax) == [line.agent for line in ranked]
    assert len(ranked) == 35
    at = [line.at["full"] for line in ranked]
    assert spans(ax) == {((one.rank_lower, row), (one.rank_upper, row)) for row, one in enumerate(at)}
    by_agent = marks(standings, "full")
    assert dots(ax) == {
        (one.rank, row): LOOKS[by_agent[line.agent]]
        for row, (line, one) in enumerate(zip(ranked, at, strict=True))
    }
    low, high = ax.get_xlim()
    assert low < 1
    assert high > len(ranked)


def test_marks_are_the_sets_of_the_standings(standings):
    by_agent = marks(standings, "full")
    filled = {agent for agent, mark in by_agent.items() if mark == "first"}
    assert filled == set(standings.targets["full"].may_be_first)
    leader = standings.agents[0].at["full"]
    tied = {line.agent for first, last in leader.tied_with for line in standings.agents[first : last + 1]}
    assert {agent for agent, mark in by_agent.items() if mark != "worse"} == tied | filled
    assert set(by_agent.values()) == {"first", "tied", "worse"}


def test_the_legend_says_of_which_agents_the_best_could_be(standings):
    last = next(line for line in reversed(in_order(standings)) if line.at["full"].rank is not None)
    agents = tuple(
        replace(line, trust="self_reported") if line == last else line for line in standings.agents
    )
    for shown, said in ((standings, ""), (replace(standings, agents=agents), " of the verified agents")):
        texts = [text.get_text() for text in shown.plot().get_legend().get_texts()]
        assert f"could be the best{said} (95%)" in texts


def test_each_target_can_be_drawn(standings):
    for target, line in standings.targets.items():
        ax = standings.plot(target=target)
        assert len(rows_named(ax)) == line.n_ranked


def test_cost_against_score(standings):
    ax = standings.plot("cost")
    costs, by_agent = whole_costs(standings), marks(standings, "full")
    drawn = [line for line in standings.agents if line.agent in costs and line.agent in by_agent]
    at = {line.agent: line.at["full"] for line in drawn}
    assert len(drawn) > 25
    assert dots(ax) == {(costs[agent], one.score): LOOKS[by_agent[agent]] for agent, one in at.items()}
    assert spans(ax) == {((costs[agent], one.lower), (costs[agent], one.upper)) for agent, one in at.items()}
    assert ax.get_xscale() == "log"
    for lowest, highest in spans(ax):  # no interval leaves the axes
        assert ax.get_ylim()[0] <= lowest[1] <= highest[1] <= ax.get_ylim()[1]


def test_names_stand_on_the_front_and_cover_nothing(standings):
    ax = standings.plot("cost")
    costs, scores = whole_costs(standings), {line.agent: line.at["full"].score for line in standings.agents}
    names = {label.get_text(): label.xy for label in ax.texts}
    assert names
    for name, place in names.items():
        assert place == (costs[name], scores[name])
        assert not [a for a in costs if costs[a] <= costs[name] and (scores[a] or 0) > scores[name]]
    boxes = [label.get_window_extent() for label in ax.texts]
    inside = [tuple(place) for ends in spans(ax) for place in np.linspace(*ends, 50)]
    places = ax.transData.transform([*dots(ax), *inside])
    assert not any(box.count_contains(places) for box in boxes)
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_a_heat_map_holds_each_mean_once(frame):
    table = OutcomeTable.from_frame(frame.drop(index=frame.index[:7]))
    ax = table.plot()
    (image,) = ax.images
    shown = image.get_array()
    assert shown.shape == table.means.shape
    rows = [table.agents.index(name) for name in rows_named(ax)]
    assert sorted(rows) == list(range(table.n_agents))
    scores = table.scores()
    assert (np.diff(scores[rows]) <= 0).all()
    means = table.means[rows]
    columns = np.argsort(-np.nanmean(table.means, axis=0), kind="stable")
    assert np.array_equal(shown.filled(np.nan), means[:, columns], equal_nan=True)
    assert np.array_equal(shown.mask, np.isnan(means[:, columns]))
    assert image.get_clim() == (0, 1)


def test_names_are_written_as_they_are_delivered():
    rows = [(agent, task, outcome) for agent, outcome in (("a$x_1$", 1), ("b", 0)) for task in ("$t$", "u")]
    ax = OutcomeTable.from_frame(pd.DataFrame(rows, columns=["agent", "task", "outcome"])).plot()
    assert rows_named(ax) == ["a$x_1$", "b"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["$t$", "u"]
    assert not any(label.get_parse_math() for label in (*ax.get_yticklabels(), *ax.get_xticklabels()))


def test_a_validation_has_a_dot_with_its_interval_and_a_tick_for_random(record):
    found = validate(
        record.table, strategies=["mid_range", "random"], seeds=3, n_null_draws=0, other_bands=False
    )
    ax = found.plot()
    tests = [name for name in TESTS if found.protocols[name].available]
    assert rows_named(ax) == [TESTS[name].label for name in tests]
    assert len(tests) >= 4
    of = [found.protocols[name].strategies for name in tests]
    values = [one["mid_range"].pairs_correct_full for one in of]
    assert list(dots(ax)) == [(value, row) for row, value in enumerate(values)]
    assert list(dots(ax, "|")) == [(one["random"].pairs_correct_full, row) for row, one in enumerate(of)]
    for (lower, row), (upper, _) in spans(ax):
        row = int(row)
        figures = of[row]["mid_range"]
        error = (figures.se or figures.spread)["pairs_correct_full"]
        assert lower == pytest.approx(max(0, values[row] - 1.96 * error))
        assert upper == pytest.approx(min(1, values[row] + 1.96 * error))


def test_axes_of_the_caller_are_drawn_on(standings, record):
    figure, (left, right) = pyplot.subplots(1, 2)
    assert standings.plot(ax=left) is left
    assert record.table.plot(ax=right) is right
    assert pyplot.get_fignums() == [figure.number]


def test_what_cannot_be_drawn_says_why(standings, frame):
    with pytest.raises(CoreError, match="'bars' is none of ranks, cost"):
        standings.plot("bars")
    with pytest.raises(CoreError, match="'all' is none of "):
        standings.plot(target="all")
    with pytest.raises(CoreError, match="no ranked agent states a cost"):
        answer(Record.from_frame(frame.drop(columns="cost_usd"))).plot("cost")
    with_gaps = answer(Record.from_frame(frame.sample(frac=0.05, random_state=1), Counting(missing="gap")))
    with pytest.raises(CoreError, match="nothing to draw: ") as refusal:
        with_gaps.plot()
    assert with_gaps.targets["full"].reason in str(refusal.value)


def test_without_matplotlib_the_extra_is_named(standings, record, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for plotted in (standings, record.table):
        with pytest.raises(CoreError, match=r"pip install 'bandstand\[plots\]'") as refusal:
            plotted.plot()
        assert refusal.value.code == "matplotlib_missing"
