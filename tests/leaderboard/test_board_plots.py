"""Dots, fronts and rank bars stand where their values say."""

import re
import xml.etree.ElementTree as ET
from datetime import date

import pytest

from leaderboard.plots.pareto import (
    BOTTOM,
    HEIGHT,
    LEFT,
    NAMES,
    RIGHT,
    ROOMS,
    TOP,
    Point,
    cost_axis,
    day_axis,
    first_scores,
    front,
    pareto,
)
from leaderboard.plots.ranks import EDGE, REACH, rank_bar

SVG = "{http://www.w3.org/2000/svg}"


def point(took, score, standing="worse", **told):
    values = {"name": f"n{took}", "title": f"{took}: {score}", "interval": None} | told
    return Point(took=took, score=score, standing=standing, **values)


def drawn(points, axis=cost_axis):
    return ET.fromstring(pareto(points, axis(points), name="cost", title="Cost against score"))


def dots(svg):
    """By what a dot says, its place: percents across, px down."""
    return {
        c[0].text: (float(c.get("cx").removesuffix("%")), float(c.get("cy")))
        for c in svg.iter(f"{SVG}circle")
    }


def path_of(svg, css):
    return [p.get("d") for p in svg.iter(f"{SVG}path") if p.get("class") == css]


def numbers(text):
    return [float(v) for v in re.findall(r"[\d.]+", text)]


def test_costs_that_lie_close_together_have_ticks():
    said = set(drawn([point(14.5, 0.2), point(15, 0.4), point(16.5, 0.3)]).itertext())
    assert {"$12", "$14", "$16", "$18", "$20"} <= said


class TestFront:
    def test_it_joins_those_that_headlines_are_made_from(self):
        points = [point(5, 0.3), point(6, 0.9, in_headlines=False), point(10, 0.5)]
        assert [one.took for one in front(points)] == [5, 10]
        assert front(points[1:2]) == []
        assert "pareto" not in pareto(points[1:2], cost_axis(points), name="cost", title="Cost")

    def test_it_joins_what_nothing_beats_at_its_price_or_less(self):
        points = [
            point(10, 0.5),
            point(5, 0.3),
            point(20, 0.4),
            point(20, 0.9),
            point(40, 0.9),
            point(5, 0.2),
        ]
        assert [(p.took, p.score) for p in front(points)] == [(5, 0.3), (10, 0.5), (20, 0.9)]

    def test_by_its_definition(self):
        points = [point(took, (took * 7 % 11) / 11) for took in range(1, 40)]
        beaten = [
            p
            for p in points
            if any(
                q.took <= p.took and q.score >= p.score and (q.took, q.score) != (p.took, p.score)
                for q in points
            )
        ]
        assert front(points) == [p for p in points if p not in beaten]

    def test_it_is_drawn_as_steps_through_its_dots_to_the_edge(self):
        svg = drawn([point(1, 0.2), point(10, 0.4), point(100, 0.1)])
        (line,) = path_of(svg, "s-pareto")
        (x1, y1), (x2, y2) = dots(svg)["1: 0.2"], dots(svg)["10: 0.4"]
        assert numbers(line) == pytest.approx([x1, y1, x2, y2, RIGHT, y2])


class TestPlaces:
    def test_the_cost_in_the_middle_of_the_logarithms_stands_half_way(self):
        found = dots(drawn([point(1, 0.2), point(10, 0.4), point(100, 0.6)]))
        x = [found[f"{took}: {score}"][0] for took, score in ((1, 0.2), (10, 0.4), (100, 0.6))]
        assert x[1] == pytest.approx((x[0] + x[2]) / 2, abs=0.02)
        assert LEFT < x[0] < x[2] < RIGHT

    def test_the_scores_scale_runs_between_the_tens_around_all(self):
        found = dots(drawn([point(1, 0.3), point(2, 0.5), point(3, 0.7)]))
        assert found["1: 0.3"][1] == HEIGHT - BOTTOM
        assert found["3: 0.7"][1] == TOP
        assert found["2: 0.5"][1] == (HEIGHT - BOTTOM + TOP) / 2

    def test_a_day_stands_at_its_day(self):
        days = [date(2025, 1, day).toordinal() for day in (1, 16, 31)]
        found = dots(drawn([point(day, 0.5) for day in days], day_axis))
        x = [found[f"{day}: 0.5"][0] for day in days]
        assert x[1] == (x[0] + x[2]) / 2

    def test_one_agent_alone_is_drawn(self):
        assert dots(drawn([point(7, 0.5)])) == {"7: 0.5": ((LEFT + RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2)}

    def test_intervals_reach_from_end_to_end_on_a_scale_that_contains_them(self):
        svg = drawn([point(1, 0.3), point(10, 0.5, interval=(0.4, 0.6)), point(20, 0.7, interval=(0.6, 0.9))])
        (line,) = path_of(svg, "whiskers s-worse")
        found = dots(svg)
        y = {score: found[name][1] for score, name in ((0.3, "1: 0.3"), (0.5, "10: 0.5"), (0.7, "20: 0.7"))}
        tenth = (y[0.3] - y[0.7]) / 4
        x1, x2 = found["10: 0.5"][0], found["20: 0.7"][0]
        assert y[0.7] - 2 * tenth == TOP
        expected = [x1, y[0.5] + tenth, y[0.5] - tenth, x2, y[0.5] - tenth, TOP]
        assert numbers(line) == pytest.approx(expected)

    def test_ticks_of_money_are_one_and_three(self):
        svg = drawn([point(2, 0.5), point(200, 0.6)])
        said = [text.text for text in svg.iter(f"{SVG}text") if (text.text or "").startswith("$")]
        assert said == ["$3", "$10", "$30", "$100"]


class TestWords:
    def test_shape_tells_how_an_agent_stands(self):
        svg = drawn(
            [
                point(place, 0.9 - place / 10, standing)
                for place, standing in enumerate(("first", "both", "tied", "worse", "muted"), 1)
            ]
        )
        told = {c[0].text[0]: (c.get("class"), c.get("r")) for c in svg.iter(f"{SVG}circle")}
        assert told == {
            "1": ("first f-lead s-paper", "5"),
            "2": ("both f-lead s-ink", "5"),
            "3": ("tied f-paper s-lead", "4.5"),
            "4": ("worse f-worse s-paper", "3.2"),
            "5": ("muted f-muted s-paper", "3.2"),
        }

    @pytest.mark.parametrize("css", ROOMS)
    def test_names_stand_on_the_front_alone_and_cover_nothing(self, css):
        interval = {"interval": (0.2, 0.25)}
        points = [point(1 + i / 5, 0.3 + i / 100, name=f"an agent {i:02d}") for i in range(40)]
        points += [point(30, 0.1, name="beaten"), point(9, 0.22, name="too", **interval)]
        width, _ = ROOMS[css]
        svg, boxes = drawn(points), []
        for text in svg.iter(f"{SVG}text"):
            if {css, "f-ink"} <= set(text.get("class").split()):
                assert text.text not in ("beaten", "too")
                x, y = float(text.get("x").removesuffix("%")) * width / 100, float(text.get("y"))
                x += float(text.get("dx", 0))
                size = 6.7 * len(text.text)
                left = x - size * ("start", "middle", "end").index(text.get("text-anchor")) / 2
                boxes.append((left, y - 11, left + size, y + 2))
        assert boxes
        taken = [(x * width / 100 - 3, y - 3, x * width / 100 + 3, y + 3) for x, y in dots(svg).values()]
        for i, (left, top, right, bottom) in enumerate(boxes):
            assert left >= LEFT * width / 100
            assert right <= width
            assert not any(
                left < r and right > le and top < b and bottom > t for le, t, r, b in boxes[i + 1 :] + taken
            )

    def test_hostile_names_are_words(self):
        svg = drawn([point(1, 0.5, name="<script>x", title="<b>&", address="/b/toy?a=1&b=2")])
        assert "<script>x" in [text.text for text in svg.iter(f"{SVG}text")]
        assert list(dots(svg)) == ["<b>&"]
        assert [a.get("href") for a in svg.iter(f"{SVG}a")] == ["/b/toy?a=1&b=2"]

    def test_it_is_a_group_of_links_that_the_keyboard_passes_by(self):
        svg = drawn([point(1, 0.5, address="/b/toy/agents/1")])
        assert svg.get("role") == "group"
        assert [a.get("tabindex") for a in svg.iter(f"{SVG}a")] == ["-1"]

    def test_nothing_is_not_drawn(self):
        with pytest.raises(ValueError, match="nothing to draw"):
            pareto([], None, name="cost", title="")


class TestScores:
    def test_each_agent_has_a_row_with_its_name_its_score_and_its_interval(self):
        long = "the first of all agents that were ever delivered"
        points = [
            point(0, 0.6, "first", name=long, interval=(0.4, 0.75)),
            point(0, 0.5, "worse", name="b", title="b", interval=(0.33, 0.6), is_out=True),
        ]
        svg = ET.fromstring(first_scores(points, name="scores", title="The first"))
        places = dots(svg)
        tenth = (RIGHT - NAMES) / 5  # from 30% to 80%
        assert places["0: 0.6"][0] == pytest.approx(NAMES + 3 * tenth, abs=0.01)
        assert places["b"][0] == pytest.approx(NAMES + 2 * tenth, abs=0.01)
        assert places["b"][1] > places["0: 0.6"][1]
        (line,) = path_of(svg, "whiskers s-lead")
        assert numbers(line) == pytest.approx(
            [NAMES + tenth, places["0: 0.6"][1], NAMES + 4.5 * tenth], abs=0.01
        )
        names = [text.text for text in svg.iter(f"{SVG}text") if "roomy" in text.get("class")]
        assert names[1] == "b"
        assert names[0].startswith("the first of all")

    def test_nothing_is_not_drawn(self):
        with pytest.raises(ValueError, match="nothing to draw"):
            first_scores([], name="scores", title="")


def shape(svg):
    """Of each bar its start, end and height; then the circle."""
    root = ET.fromstring(svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" '))
    bars = [
        (float(r.get("x")[:-1]), float(r.get("x")[:-1]) + float(r.get("width")[:-1]), float(r.get("height")))
        for r in root.iter(f"{SVG}rect")
    ]
    return bars, [float(c.get("cx")[:-1]) for c in root.iter(f"{SVG}circle")]


class TestRankBar:
    def test_it_reaches_from_the_best_to_the_worst_rank_with_a_circle_at_the_rank(self):
        ((start, end, _),), (at,) = shape(rank_bar(6, (1, 11, "tied"), 11))
        assert (start, end) == pytest.approx((EDGE - REACH, 100 - EDGE + REACH))
        assert at == 50

    def test_a_rank_that_is_certain_is_a_short_bar_under_its_circle(self):
        ((start, end, _),), (at,) = shape(rank_bar(3, (3, 3, "worse"), 9))
        assert (start + end) / 2 == pytest.approx(at, abs=0.01)
        assert end - start == pytest.approx(2 * REACH)

    @pytest.mark.parametrize(
        ("standing", "height", "css"),
        [
            ("first", 8, "first f-lead"),
            ("both", 6.4, "both f-lead s-ink"),
            ("tied", 6.4, "tied f-paper s-lead"),
            ("worse", 3, "worse f-worse"),
            ("muted", 3, "muted f-muted"),
        ],
    )
    def test_who_could_be_the_best_is_filled_and_who_is_tied_outlined(self, standing, height, css):
        bar = rank_bar(1, (1, 2, standing), 4)
        ((_, _, found),), _ = shape(bar)
        assert found == height  # an outline of 1.6 lies half outside
        assert f'<rect class="{css}"' in bar

    def test_one_agent_alone_stands_in_the_middle(self):
        assert shape(rank_bar(1, (1, 1, "first"), 1))[1] == [50]

    def test_it_is_few_nodes(self):
        assert len(re.findall(r"<\w", rank_bar(2, (1, 4, "tied"), 9))) == 3
