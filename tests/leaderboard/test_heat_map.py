"""Who passed what, drawn: each corner stands where its task and outcome say."""

import re
import xml.etree.ElementTree as ET

import pytest

from leaderboard.plots import heat_map as maps
from leaderboard.plots import of_task
from leaderboard.plots.heat_map import (
    FIRST_ROW,
    HEIGHT,
    LETTER,
    MIN_LETTERS,
    PITCH,
    PROFILE,
    TOP,
    WIDTH,
    dashes,
    heat_map,
    silhouette,
    strip,
)

SVG = "{http://www.w3.org/2000/svg}"
LEFT = round(12 + LETTER * MIN_LETTERS)  # of short names


def corners(path):
    """Where the corners of a shape stand on the drawing."""
    dx, dy, sx, sy = map(float, re.findall(r"-?[\d.]+", path.get("transform")))
    x = y = 0.0
    places = []
    for letter, numbers in re.findall(r"([Mhvz])([^Mhvz]*)", path.get("d")):
        values = [float(one) for one in numbers.split()]
        if letter == "M":
            x, y = values
        x += values[0] if letter == "h" else 0
        y += values[0] if letter == "v" else 0
        places.append((round(dx + sx * x, 2), round(dy + sy * y, 2)))
    return places


def drawn(rates=(1.0, 0.5, 0.5, 0.0), rows=(), **how):
    return ET.fromstring(heat_map(name="tasks", title="A <map>", rates=rates, rows=rows, **how))


def shapes(drawing, colour):
    return [p for p in drawing.iter(f"{SVG}path") if p.get("class") == f"f-{colour}"]


def test_equal_outcomes_side_by_side_are_one_run():
    assert silhouette([1, 1, 1, 0, 0, 1]) == "M0 0v1h3v-1h2v1h1v-1"
    assert silhouette([1.0] * 500) == "M0 0v1h500v-1"
    assert silhouette([0.5, 1 / 3, None]) == "M0 0v0.5h1v-0.167h1v-0.333h1"


def test_what_is_missing_is_a_dash_in_the_middle_of_the_row():
    assert dashes([1, None, None, 0, None]) == "M1 0.4h2v0.2h-2zM4 0.4h1v0.2h-1z"
    assert dashes([1, 0]) == ""


def test_a_cell_stands_at_its_task_and_is_as_high_as_its_outcome():
    rows = [("a", "a", [1, 0.5, 0, None], "")]
    pitch, foot = (WIDTH - LEFT) / 4, FIRST_ROW + HEIGHT
    drawing = drawn(rows=rows)
    _, row = shapes(drawing, "lead")
    half = foot - HEIGHT / 2
    assert corners(row) == [
        *[(LEFT, foot), (LEFT, foot - HEIGHT), (LEFT + pitch, foot - HEIGHT)],
        *[(LEFT + pitch, half), (LEFT + 2 * pitch, half), (LEFT + 2 * pitch, foot), (WIDTH, foot)],
    ]
    (dash,) = shapes(drawing, "caution")
    assert corners(dash)[0] == (LEFT + 3 * pitch, round(foot - 0.4 * HEIGHT, 2))
    assert corners(dash)[1] == (WIDTH, round(foot - 0.4 * HEIGHT, 2))


def test_rows_stand_under_each_other_and_names_lead_to_agents():
    rows = [("a", "a", [1, 0], "/a"), ("b <b>", "b <b>", [0, 1], "/b")]
    drawing = drawn(rates=[1, 0], rows=rows)
    _, first, second = shapes(drawing, "lead")
    assert corners(second)[0][1] - corners(first)[0][1] == PITCH
    links = list(drawing.iter(f"{SVG}a"))
    assert [(link.get("href"), link[0].text) for link in links] == [("/a", "a"), ("/b", "b <b>")]
    assert drawing.get("role") == "group"
    assert drawn(rows=[("a", "a", [1] * 4, "")]).get("role") == "img"


def test_long_names_take_more_room():
    profile, *_ = shapes(drawn(rows=[("a" * 31, "a" * 40, [1] * 4, "")]), "lead")
    assert corners(profile)[1] == (round(12 + LETTER * 31), TOP)


def test_bars_are_pass_rates():
    profile, *_ = shapes(drawn(), "lead")
    heights = [round((TOP + PROFILE - y) / PROFILE, 3) for _, y in corners(profile)]
    assert sorted(set(heights)) == [0, 0.5, 1]
    assert corners(profile)[1] == (LEFT, TOP)


def test_the_band_lies_behind_its_columns():
    drawing = drawn(rows=[("a", "a", [1] * 4, "")] * 2, band=(1, 3, "2 tasks"))
    (band,) = drawing.iter(f"{SVG}rect")
    pitch = (WIDTH - LEFT) / 4
    assert [float(band.get(name)) for name in ("x", "y", "width", "height")] == [
        *(LEFT + pitch, 0, 2 * pitch, FIRST_ROW + 2 * PITCH)
    ]
    assert list(drawing).index(band) == 1  # after the title, so that it is painted first
    assert "2 tasks" in [text.text for text in drawing.iter(f"{SVG}text")]


def test_ticks_mark_columns_outside_of_the_band_too():
    (ticks,) = shapes(drawn(marked=[False, True, False, True]), "pareto")
    assert ticks.get("d") == "M0 0h1v1h1v-1h1v1h1v-1"


def test_57_agents_by_500_tasks_are_58_shapes_of_a_few_kilobytes():
    import gzip
    import random

    draws = random.Random(0)
    rows = [
        (f"agent {i}", f"agent {i}", [float(draws.random() < 0.5) for _ in range(500)], "") for i in range(57)
    ]
    told = heat_map(name="tasks", title="Map", rates=[0.5] * 500, rows=rows)
    assert told.count("<path") == 57 + 1 + 3  # the pass rates, and ticks of their axis
    assert len(gzip.compress(told.encode())) < 10_000


def test_nothing_is_not_drawn():
    for draw in (
        lambda: heat_map(name="a", title="a", rates=[], rows=[]),
        lambda: strip(name="a", title="a", outcomes=[], expected=[]),
        lambda: of_task.dot_row(name="a", title="a", ranked=[]),
        lambda: of_task.by_quarter(name="a", title="a", quarters=[], band=(0.3, 0.7)),
    ):
        with pytest.raises(ValueError, match="nothing to draw"):
            draw()


def test_outcomes_stand_above_what_was_expected():
    drawing = ET.fromstring(
        strip(
            name="agent",
            title="a",
            outcomes=[1, 0, None],
            expected=[1, 0.5, 0.25],
            surprising=[False, True, False],
            band=(1, 2),
        )
    )
    own, theirs = shapes(drawing, "lead")[0], shapes(drawing, "tied")[0]
    pitch, foot = (maps.WIDTH - maps.STRIP_LEFT) / 3, maps.STRIP_TOP + maps.TALL
    left, top = maps.STRIP_LEFT, maps.STRIP_TOP
    assert corners(own)[1:3] == [(left, top), (round(left + pitch, 2), top)]
    low = foot + maps.BETWEEN + maps.TALL
    assert corners(theirs)[3][1] == low - maps.TALL / 2
    (tick,) = shapes(drawing, "pareto")
    assert [x for x, _ in corners(tick)[1:3]] == [round(maps.STRIP_LEFT + pitch, 2)] * 2
    (band,) = drawing.iter(f"{SVG}rect")
    assert float(band.get("x")) == round(maps.STRIP_LEFT + pitch, 2)
    assert len(shapes(drawing, "caution")) == 1


def test_without_expectations_there_is_one_lane():
    drawing = ET.fromstring(strip(name="agent", title="a", outcomes=[1, 0], expected=[None, None]))
    assert not shapes(drawing, "tied")
    assert float(drawing.get("height")) == maps.STRIP_TOP + maps.TALL + maps.STRIP_BOTTOM


def test_dots_stand_by_rank_and_are_filled_by_outcome():
    ranked = [(1, "a: passed", "/a"), (0.25, "b: <half>", "/b"), (0, "c: failed", "/c")]
    drawing = ET.fromstring(of_task.dot_row(name="task", title="t", ranked=ranked))
    passed, ring, inside, failed = drawing.iter(f"{SVG}circle")
    left, right = of_task.EDGE, of_task.WIDTH - of_task.EDGE
    assert [float(c.get("cx")) for c in (passed, ring, failed)] == [left, (left + right) / 2, right]
    assert [c.get("fill") == failed.get("fill") for c in (passed, ring)] == [False, True]
    assert float(inside.get("r")) == float(ring.get("r")) / 2  # a quarter of the area
    assert [link.get("href") for link in drawing.iter(f"{SVG}a")] == ["/a", "/b", "/c"]
    assert ring[0].text == "b: <half>"


def test_agents_without_a_rank_stand_apart():
    dots = [(1, "a", "/a"), (1, "b", "/b")]
    drawing = ET.fromstring(
        of_task.dot_row(name="task", title="t", ranked=dots, unranked=[(None, "c", "/c")])
    )
    first, second, third = (float(c.get("cx")) for c in drawing.iter(f"{SVG}circle"))
    assert third - second == pytest.approx(second - first + of_task.GAP)
    assert [c.get("class") for c in drawing.iter(f"{SVG}circle")][2] == "f-caution"


def test_quarters_stand_at_their_rate_and_as_far_apart_as_in_time():
    told = [(2025, 1, 1.0, 4), (2025, 2, 0.5, 1), (2026, 1, 0.0, 1)]
    drawing = ET.fromstring(of_task.by_quarter(name="quarters", title="q", quarters=told, band=(0.3, 0.7)))
    dots = [(float(c.get("cx")), float(c.get("cy"))) for c in drawing.iter(f"{SVG}circle")]
    foot = of_task.QUARTERS_HEIGHT - of_task.BOTTOM
    assert [y for _, y in dots] == [of_task.TOP, (of_task.TOP + foot) / 2, foot]
    assert dots[2][0] - dots[1][0] == pytest.approx(3 * (dots[1][0] - dots[0][0]), abs=0.02)
    radii = [float(c.get("r")) for c in drawing.iter(f"{SVG}circle")]
    assert radii[0] == of_task.LARGEST_QUARTER > radii[1] == radii[2]
    (band,) = drawing.iter(f"{SVG}rect")
    tall = foot - of_task.TOP
    assert float(band.get("height")) == pytest.approx(0.4 * tall)
    assert float(band.get("y")) == pytest.approx(foot - 0.7 * tall)
