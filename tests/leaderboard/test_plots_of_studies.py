"""Dots, stacked bars and levels stand where their values say."""

import re
import xml.etree.ElementTree as ET
from datetime import date

import pytest

from leaderboard.plots import best
from leaderboard.plots.best import level_text, levels
from leaderboard.plots.dots import NARROW, TOP, WIDE, DotRow, dots, stacked

SVG = "{http://www.w3.org/2000/svg}"


def drawn(rows, *, narrow=False, lo=0.0, hi=1.0, rules=()):
    ticks, layout = [(0.5, "50%")], NARROW if narrow else WIDE
    return ET.fromstring(
        dots(
            name="t",
            title="A <t>",
            rows=rows,
            lo=lo,
            hi=hi,
            ticks=ticks,
            rules=rules,
            layout=layout,
        )
    )


def test_on_a_phone_no_line_crosses_the_words():
    """Words take the upper 28 of the 64 units of a row; a value stands at 46."""
    rows = [DotRow(f"row {i}", "note", "50%", 0.5, 0.2, 0.8) for i in range(3)]
    found = drawn(rows, narrow=True, rules=[(0.1, "here")])
    drawn_as = (re.fullmatch(r"M\S+ (\S+)L\S+ (\S+)", one.get("d")) for one in found.iter(f"{SVG}path"))
    lines = [(float(one[1]), float(one[2])) for one in drawn_as if one]
    assert len(lines) == 2 * 3
    assert {(y1 - TOP) % 64 >= 35 and y2 - y1 == 22 for y1, y2 in lines} == {True}
    assert NARROW.end + 7.2 * len("100%") / 2 <= NARROW.width  # the last label is not cut


def of(found, mark, css):
    return [one for one in found.iter(f"{SVG}{mark}") if css in one.get("class", "").split()]


@pytest.mark.parametrize(("narrow", "layout"), [(False, WIDE), (True, NARROW)])
def test_a_dot_of_a_half_stands_half_way_with_its_interval_around_it(narrow, layout):
    rows = [DotRow("one", "", "0%", 0.0), DotRow("two", "", "50%", 0.5, 0.25, 0.75, tick=1.0)]
    found = drawn(rows, narrow=narrow)
    half, y = (layout.start + layout.end) / 2, TOP + layout.height + layout.line
    places = [(float(c.get("cx")), float(c.get("cy"))) for c in of(found, "circle", "f-lead")]
    assert places == [(layout.start, TOP + layout.line), (half, y)]
    (whisker,) = of(found, "path", "s-tied")
    quarter = (layout.end - layout.start) / 4
    assert whisker.get("d") == f"M{layout.start + quarter:g} {y:g}H{layout.end - quarter:g}"
    (tick,) = of(found, "path", "s-pareto")
    assert tick.get("d").startswith(f"M{layout.end:g} ")
    assert found.find(f"{SVG}title").text == "A <t>"
    assert found.get("class") == ("plot t-narrow" if narrow else "plot t")


def test_what_is_clearly_another_is_grey():
    found = drawn([DotRow("one", "", "", 0.5, 0.4, 0.6, grey=True)])
    (circle,) = found.iter(f"{SVG}circle")
    assert circle.get("class") == "f-worse s-paper"
    assert len(of(found, "path", "s-worse")) == 1


def test_a_line_to_read_against_says_what_it_is_inside_of_the_scale():
    found = drawn([DotRow("one", "", "", 0.5)], rules=[(0.0, "nothing at all"), (1.0, "everything there is")])
    said = {one.text: (one.get("text-anchor"), float(one.get("x"))) for one in found.iter(f"{SVG}text")}
    assert said["nothing at all"] == ("start", WIDE.start)
    assert said["everything there is"] == ("end", WIDE.end)
    assert said["50%"] == ("middle", (WIDE.start + WIDE.end) / 2)


def test_a_value_that_is_not_known_has_words_and_no_dot():
    found = drawn([DotRow("one <b>", "", "not compared", None)])
    assert not list(found.iter(f"{SVG}circle"))
    assert [one.text for one in found.iter(f"{SVG}text")][1:] == ["one <b>", None, "not compared"]


def test_nothing_is_not_drawn():
    with pytest.raises(ValueError, match="nothing to draw"):
        drawn([])


def test_parts_lie_side_by_side_in_proportion():
    parts = [
        ("Agents", 0.1, "", False),
        ("Tasks", 0.6, "cancels", True),
        ("Trials", 0.1, "", False),
    ]
    found = ET.fromstring(stacked(name="v", title="Shares", parts=parts))
    bars = [one for one in found.iter(f"{SVG}rect") if one.get("y") == "0"]
    places = [(float(one.get("x")), float(one.get("width")), one.get("fill")) for one in bars]
    assert [place[:2] for place in places] == [(0, 100), (100, 600), (100, 600), (700, 100)]
    assert [place[2] for place in places].count("url(#hatch-v)") == 1
    words = [one.text for one in found.iter(f"{SVG}text")]
    assert words == ["Agents, 10.0%", "Tasks, 60.0%: cancels", "Trials, 10.0%"]
    narrow = ET.fromstring(stacked(name="v", title="Shares", parts=parts, narrow=True))
    assert float(narrow.get("width")) == 344
    assert [one.text for one in narrow.iter(f"{SVG}text")][1] == "Tasks, 60.0%"
    with pytest.raises(ValueError, match="nothing to draw"):
        stacked(name="v", title="", parts=[("Agents", 0.0, "", False)])


def test_a_level_stands_against_the_line_at_which_it_alerts():
    looks = [
        (date(2025, 1, 1), 0.0, 8.0),
        (date(2025, 1, 16), None, None),
        (date(2025, 1, 31), 4.0, 8.0),
    ]
    found = ET.fromstring(levels(name="l", title="A level", looks=looks))
    places = [(float(c.get("cx")), float(c.get("cy"))) for c in found.iter(f"{SVG}circle")]
    middle = (best.LEVELS_TOP + best.LEVELS_HEIGHT - best.LEVELS_BOTTOM) / 2
    assert places == [
        (best.LEVELS_LEFT, best.LEVELS_HEIGHT - best.LEVELS_BOTTOM),
        (best.LEVELS_WIDTH - best.LEVELS_RIGHT, middle),
    ]
    for line in of(found, "path", "s-pareto"):
        assert line.get("stroke-dasharray")
        assert f" {best.LEVELS_TOP}H" in line.get("d")
    with pytest.raises(ValueError, match="nothing to draw"):
        levels(name="l", title="", looks=[(date(2025, 1, 1), None, 8.0)])


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "unknown"), (0, "0"), (7.0, "7.00"), (0.0168, "0.0168"), (-0.5, "−0.500"), (1234.5, "1,234")],
)
def test_levels_are_told_in_about_three_figures(value, text):
    assert level_text(value) == text
