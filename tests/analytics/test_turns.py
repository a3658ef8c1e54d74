"""Turns: hazards by hand, coverage, the model's published figures, what the command reads and refuses."""

import numpy as np
import pytest

from analytics.errors import CoreError
from analytics.research.turns import crossing, model_hazard, model_survival, published_hazard
from tests.refusals import refused

COMMAND = ("turns",)


@pytest.mark.parametrize(
    ("persistent", "by_5", "by_10", "hazard_at_10"),
    [
        (0.0, 0.292, 0.499, 0.067),
        (0.25, 0.255, 0.398, 0.038),
        (0.5, 0.212, 0.305, 0.021),
        (0.75, 0.161, 0.212, 0.010),
    ],
)
def test_what_persists_makes_hazards_fall(persistent, by_5, by_10, hazard_at_10):
    """(μ − θ*)/√TEE = −1.5 at every turn."""
    mean, parts = np.full(10, -1.5), (persistent, 1 - persistent)
    survival = model_survival(mean, 0.0, *parts)
    assert np.round(1 - survival[[4, 9]], 3).tolist() == [by_5, by_10]
    assert model_hazard(mean, 0.0, *parts)[9] == pytest.approx(hazard_at_10, abs=5e-4)
    assert published_hazard(mean, 0.0, 1.0)[9] == pytest.approx(0.0668, abs=5e-5)


def test_the_model_agrees_with_a_simulation():
    rng = np.random.default_rng(0)
    mean = np.linspace(-2, -1, 6)
    scores = mean + rng.normal(0, 0.7, (100_000, 1)) + rng.normal(0, 0.6, (100_000, 6))
    survived = 1 - np.maximum.accumulate(scores > 0, axis=1).mean(axis=0)
    np.testing.assert_allclose(
        model_survival(mean, 0.0, 0.49, 0.36), survived, atol=3 * 0.5 / np.sqrt(100_000)
    )


def test_more_variance_raises_a_hazard_below_the_threshold_only():
    low, high = (published_hazard(np.array([-1.0, 1.0]), 0.0, variance) for variance in (0.5, 2.0))
    assert high[0] > low[0]
    assert high[1] < low[1]


def test_hazards_by_hand():
    """Four conversations on three items; the last ends after turn 1."""
    item = np.array([0, 0, 1, 2])
    crossed = np.array([[0, 1, 1], [0, 0, 0], [1, 0, 0], [0, 0, 0]], dtype=bool)
    seen = np.array([[1, 1, 1], [1, 1, 1], [1, 1, 1], [1, 0, 0]], dtype=bool)
    result = crossing(item, seen, crossed)
    assert (result["n_at_risk"].tolist(), result["n_crossed"].tolist()) == ([4, 2, 1], [1, 1, 0])
    assert result["hazard"].tolist() == [0.25, 0.5, 0.0]
    assert result["survival"].tolist() == [0.75, 0.375, 0.375]
    # Turn 1, by item: (d − h·n)/(4·.75) = −.5/3, .75/3, −.25/3; turn 2 adds (1 − .5·2)/(2·.5) = 0.
    se = np.sqrt(1.5 * (0.5**2 + 0.75**2 + 0.25**2) / 9)
    np.testing.assert_allclose(result["se"], [se] * 3)
    assert result["lower"][0] < 0.75 < result["upper"][0]


def test_intervals_cover_where_conversations_on_an_item_are_alike():
    rng = np.random.default_rng(1)
    truth = model_survival(np.full(4, -1.5), 0.0, 0.5, 0.5)[3]
    item, seen = np.repeat(np.arange(80), 4), np.ones((320, 4), dtype=bool)
    covered = 0
    for _ in range(300):
        scores = -1.5 + np.sqrt(0.5) * (rng.normal(size=80)[item, None] + rng.normal(size=(320, 4)))
        result = crossing(item, seen, scores > 0)
        covered += result["lower"][3] <= truth <= result["upper"][3]
    assert covered / 300 > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 300)


def test_nobody_crosses_or_everybody_does():
    none = crossing(np.arange(3), np.ones((3, 2), bool), np.zeros((3, 2), bool))
    every = crossing(np.arange(3), np.ones((3, 2), bool), np.ones((3, 2), bool))
    assert (none["survival"].tolist(), every["survival"][0]) == ([1.0, 1.0], 0.0)
    assert np.isnan([none["lower"], none["upper"], every["lower"], every["upper"]]).all()
    with refused(CoreError, "few_items"):
        crossing(np.zeros(3, int), np.ones((3, 2), bool), np.zeros((3, 2), bool))
    with refused(CoreError, "turns"):
        crossing(np.arange(2), np.array([[1, 1], [0, 1]], bool), np.zeros((2, 2), bool))
    with refused(CoreError, "variance"):
        published_hazard(np.zeros(2), 0.0, 0.0)
    with refused(CoreError, "variance"):
        model_hazard(np.zeros(2), 0.0, 1.0, 0.0)


# ------------------------------------------------------------------------------------------------ the command


def scores(path, *, prompts=2, items=30, turns=4, column="score"):
    rng = np.random.default_rng(2)
    rows = [f"agent,item,turn,prompt_variant,{column}"]
    for i in range(items):
        stays = rng.normal(0, 0.7)
        for v in range(prompts):
            for t in range(1, turns + 1):
                score = -1.5 + stays + rng.normal(0, 0.7)
                rows.append(f"x,i{i},{t},v{v},{int(score > 0) if column == 'crossed' else score:g}")
    path.write_text("\n".join(rows) + "\n")
    return path


def test_scores_and_a_threshold(answer, text, tmp_path):
    result = answer(scores(tmp_path / "a.csv"), "--threshold", "0")["agents"][0]
    assert (result["agent"], result["n_items"], result["reason"]) == ("x", 30, "")
    assert [line["turn"] for line in result["turns"]] == [1, 2, 3, 4]
    assert result["turns"][0]["n_at_risk"] == 60
    last = result["turns"][3]
    assert last["hazard_model"] < last["hazard_published"]
    counted = answer(scores(tmp_path / "b.csv", column="crossed"))["agents"][0]
    assert counted["turns"][3]["survival"] == last["survival"]
    assert counted["turns"][3]["hazard_model"] is None
    assert "not measured: no scores" in text(tmp_path / "b.csv")


def test_rows_that_are_no_turns(refusal, tmp_path):
    path = tmp_path / "a.csv"
    assert "scores cross nothing without --threshold" in refusal(scores(path))
    assert "--threshold is nan, not a finite number" in refusal(path, "--threshold", "nan")
    for rows, why in (
        (["x,i,1,1", "x,j,1,0", "x,j,1,0"], "agent 'x', item 'j': turn 1 stands twice"),
        (["x,i,1,1", "x,j,0,0"], "row 2: turn is '0', not a whole number"),
        (["x,i,1,1", "x,j,2,0"], "agent 'x', item 'j': turn 1 is missing; turns are 1, 2, … without a gap"),
        (["x,i,1,1", "x,i,2,0", "x,i,4,0"], "item 'i': turn 3 is missing"),
        (["x,i,1,1", "x,j,1,0", "y,i,1,2"], "row 3: crossed is '2'"),
        (["x,i,1,1", "x,,1,0"], "row 2: no name in column item"),
        (["x,i,1,1", ",j,1,0"], "row 2: no name in column agent"),
        (["x,i,1,1"], "agent 'x': errors by item need 2 items"),
        ([], "there are no rows"),
    ):
        path.write_text("\n".join(["agent,item,turn,crossed", *rows]) + "\n")
        assert why in refusal(path)


def test_conversations_that_end_where_they_cross_have_no_model(answer, tmp_path):
    rows = [
        f"x,i{i},{t},{-1 + 0.1 * ((i * 7 + t * 3) % 11):.1f}" for i in range(9) for t in range(1, 3 + i % 2)
    ]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["agent,item,turn,score", *rows]) + "\n")
    result = answer(path, "--threshold", "-0.2")["agents"][0]
    assert result["turns"][0]["hazard_published"] is None
    assert "conversations end at different turns" in result["reason"]


def test_turns_that_are_not_valid_are_left_out(answer, refusal, tmp_path):
    """A conversation of which the harness failed at the third turn was seen for two."""
    path = tmp_path / "turns.csv"
    rows = [f"A,{i},{t},{int(t == 3 and i < 4)},1" for i in range(12) for t in (1, 2, 3)]
    path.write_text("\n".join(["agent,item,turn,crossed,valid", *rows]) + "\n")
    assert [turn["n_at_risk"] for turn in answer(path)["agents"][0]["turns"]] == [12, 12, 12]
    path.write_text("\n".join(["agent,item,turn,crossed,valid", *rows[:-1], "A,11,3,,0"]) + "\n")
    result = answer(path)
    assert [turn["n_at_risk"] for turn in result["agents"][0]["turns"]] == [12, 12, 11]
    assert result["n_invalid"] == 1
    path.write_text("\n".join(["agent,item,turn,crossed,valid", "A,,x,,0", "A,1,1,?,1"]) + "\n")
    assert "row 2: crossed is '?', not 1 or 0" in refusal(path)
