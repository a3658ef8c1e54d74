"""Marks stand where their values say."""

import re
import xml.etree.ElementTree as ET
from datetime import date

import pytest

from leaderboard.plots.best import BestLevel, best_through_boards
from leaderboard.plots.marks import PAINT, LinearScale, cut_apart, month_ticks, ticks_13, ticks_125
from leaderboard.plots.ranks import shifts_chart
from leaderboard.studies.answers import AtTarget
from tests.conftest import ROOT

SVG = "{http://www.w3.org/2000/svg}"


def test_a_scale_is_linear_or_logarithmic_and_may_run_downwards():
    assert [LinearScale(0, 1, 200, 100)(v) for v in (0, 0.25, 1)] == [200, 175, 100]
    assert [LinearScale(1, 100, 0, 50, log=True)(v) for v in (1, 10, 100)] == [0, 25, 50]
    assert LinearScale(3, 3, 0, 10)(3) == 5  # one value stands in the middle


@pytest.mark.parametrize(
    ("lo", "hi", "n", "ticks"),
    [
        (0, 1, 4, [0, 0.5, 1]),
        (0, 1, 5, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0.3, 0.7, 4, [0.3, 0.4, 0.5, 0.6, 0.7]),
        (-12, 31, 5, [-10, 0, 10, 20, 30]),
        (2, 2, 5, [2]),
    ],
)
def test_ticks_are_round(lo, hi, n, ticks):
    assert ticks_125(lo, hi, n) == pytest.approx(ticks)


def test_ticks_of_money_are_one_and_three():
    assert ticks_13(0.3, 40) == pytest.approx([0.3, 1, 3, 10, 30])


def test_months_are_ticked_so_that_they_can_be_read():
    assert month_ticks(date(2025, 1, 15), date(2025, 4, 1)) == [date(2025, m, 1) for m in (2, 3, 4)]
    years = month_ticks(date(2019, 6, 1), date(2025, 6, 1))
    assert years == [date(y, 1, 1) for y in range(2020, 2026)]


def test_the_stylesheet_names_the_same_colours():
    sheet = (ROOT / "static/css/bandstand.css").read_text()
    light = sheet.split("prefers-color-scheme: dark")[0]
    assert dict(re.findall(r"--(\w+): (#\w{6});", light)).items() >= PAINT.items()
    for name in PAINT:
        assert f".f-{name} {{ fill: var(--{name}); }}" in sheet
        assert f".s-{name} {{ stroke: var(--{name}); }}" in sheet


# ------------------------------------------------------------------------------------------ the best score


def best(*levels):
    return ET.fromstring(
        best_through_boards(name="best", title="B", levels=[BestLevel(*one) for one in levels], width=640)
    )


THREE = (
    (1, 2, 0.5, "first", "a", "a: 50%"),
    (2, 4, 0.7, "sure", "b", "b: 70%"),
    (4, 5, 0.75, "unsure", "c <c>", "c: 75%"),
)


def test_levels_stand_at_their_score_and_board_and_risers_lead_to_them():
    # boards 1 to 5 over 44 to 628, scores .45 to .80 over 200 to 20
    lines = [p for p in best(*THREE).iter(f"{SVG}path") if p.get("class") != "s-grid"]
    drawn = [[float(at) for at in re.findall(r"[\d.]+", p.get("d"))] for p in lines]
    low, middle, high = 200 - 180 / 7, 200 - 180 * 5 / 7, 200 - 180 * 6 / 7
    assert drawn[0] == pytest.approx([44, low, 190, low], abs=0.01)
    assert drawn[1] == pytest.approx([190, low, 190, middle, 482, middle], abs=0.01)
    assert drawn[2] == pytest.approx([482, middle, 482, high, 628, high], abs=0.01)
    dots = [float(c.get(at)) for c in best(*THREE).iter(f"{SVG}circle") for at in ("cx", "cy")]
    assert dots == pytest.approx([44, low, 190, middle, 482, high], abs=0.01)


def test_only_what_is_sure_is_solid_and_filled():
    drawn = best(*THREE)
    lines = [p for p in drawn.iter(f"{SVG}path") if p.get("class") != "s-grid"]
    assert [p.get("stroke-dasharray") for p in lines] == [None, None, "5 3"]
    assert [p.get("class") for p in lines] == ["s-worse", "s-lead", "s-worse"]
    assert [c.get("fill") for c in drawn.iter(f"{SVG}circle")] == [
        PAINT["paper"],
        PAINT["lead"],
        PAINT["paper"],
    ]
    assert [title.text for title in drawn.iter(f"{SVG}title")][1:] == ["a: 50%", "b: 70%", "c: 75%"]


def test_a_level_that_cannot_be_held_against_the_one_before_has_no_riser():
    drawn = best(THREE[0], (2, 3, 0.7, "first", "b", "b"))
    lines = [p for p in drawn.iter(f"{SVG}path") if p.get("class") != "s-grid"]
    assert [p.get("d").count("L") for p in lines] == [1, 1]


def names(drawn):
    return [t.text for t in drawn.iter(f"{SVG}text") if t.get("class") == "f-ink s-paper"]


def test_names_stand_where_there_is_room_and_are_cut():
    # 29.2 units a board, 7 a character: a name of 8 stands before its dot, and takes the room of the next
    close = [(i, i + 1, 0.5, "unsure", f"agent {i}", "") for i in range(1, 21)]
    assert names(best(*close)) == [f"agent {i}" for i in range(20, 3, -2)]
    assert names(best((1, 2, 0.5, "first", "x" * 40, ""))) == ["x" * 21 + "…"]


def test_names_are_cut_at_their_ends_but_never_so_that_two_read_alike():
    assert cut_apart(["short", "ab" * 20], 10) == ["short", "ababababa…"]
    assert cut_apart(["HAL Generalist (o3)", "HAL Generalist (o4-mini)", "Loop"], 10) == [
        "HAL…t (o3)",
        "HAL…-mini)",
        "Loop",
    ]
    assert len(set(cut_apart([f"{'x' * 30}{i}" for i in range(9)], 12))) == 9


def test_the_axis_names_months_or_days():
    march = date(2025, 3, 1).toordinal()
    for last, said in ((march + 92, ["2025-03", "2025-04", "2025-05", "2025-06"]), (march, ["2025-03-01"])):
        drawn = best((march, last, 0.5, "first", "a", ""))
        ticks = [t.text for t in drawn.iter(f"{SVG}text") if re.fullmatch(r"[\d-]{7,}", t.text)]
        assert ticks == said


def test_names_of_sure_steps_come_first():
    close = [(i, i + 1, 0.5, "sure" if i == 19 else "unsure", f"agent {i}", "") for i in range(1, 21)]
    assert names(best(*close))[0] == "agent 19"
    assert not {"agent 20", "agent 18"} & set(names(best(*close)))


def test_one_board_is_a_dot_and_none_is_not_drawn():
    assert [float(c.get("cx")) for c in best((7, 7, 0.5, "first", "a", "")).iter(f"{SVG}circle")] == [336]
    with pytest.raises(ValueError, match="nothing to draw"):
        best()


# ------------------------------------------------------------------------------------------ before and after


SHIFTS = [
    ("a <b>", AtTarget(rank=1, rank_lower=1, rank_upper=3), AtTarget(rank=2, rank_lower=1, rank_upper=5)),
    ("x" * 60, AtTarget(), AtTarget(rank=5)),
]


def test_bars_before_and_after_stand_at_their_ranks():
    chart = shifts_chart(shifts=SHIFTS, of=5, title="Ranks")
    drawn = ET.fromstring(chart.svg)
    # ranks 1 to 5 over 230 to 624: 98.5 a rank; a bar reaches half its thickness beyond
    thin, thick = drawn.iter(f"{SVG}rect")
    assert [float(thin.get(at)) for at in ("x", "width", "height")] == [228.5, 200, 3]
    assert [float(thick.get(at)) for at in ("x", "width", "height")] == [226.5, 401, 7]
    assert [thin.get("class"), thick.get("class")] == ["f-worse", "f-tied"]
    assert [float(c.get("cx")) for c in drawn.iter(f"{SVG}circle")] == [230, 328.5, 624]
    titles = [title.text for title in drawn.iter(f"{SVG}title")][1:]
    assert titles == ["a <b> now: 1 (1–3)", "a <b> then: 2 (1–5)", f"{'x' * 60} then: 5"]


def test_its_table_holds_the_same_and_names_are_cut_on_the_drawing_alone():
    chart = shifts_chart(shifts=SHIFTS, of=5, title="Ranks")
    assert chart.rows == (("a <b>", "1 (1–3)", "2 (1–5)"), ("x" * 60, "not ranked", "5"))
    said = [text.text for text in ET.fromstring(chart.svg).iter(f"{SVG}text")]
    assert "x" * 33 + "…" in said
    assert "not ranked" in said
