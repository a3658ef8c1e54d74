"""Standings and validations as data frames: a row says what the fields say."""

import math
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analytics.frames import FrameRefused
from analytics.record import Record
from selection.standings import answer
from selection.validation import ValidationFigures, validate

FILE = Path(__file__).resolve().parents[2] / "leaderboard/terminal/demonstration/swebench_verified.csv.gz"


@pytest.fixture(scope="module")
def record():
    """A quarter of the agents of SWE-bench Verified on a tenth of the tasks; the first lacks half of them."""
    rows = pd.read_csv(FILE, dtype={"outcome": float})
    agents, tasks = (list(dict.fromkeys(rows[name])) for name in ("agent", "task"))
    rows = rows[rows["agent"].isin(agents[::4]) & rows["task"].isin(tasks[::10])]
    lacks = rows["agent"].eq(agents[0]) & rows["task"].isin(tasks[::20])
    return Record.from_frame(rows[~lacks])


@pytest.fixture(scope="module")
def standings(record):
    return answer(record)


def same(cell, value):
    return (
        pd.isna(cell) if value is None or (isinstance(value, float) and math.isnan(value)) else cell == value
    )


def test_a_frame_of_standings_has_the_fields_of_each_agent(standings):
    frame = standings.to_frame()
    assert list(frame["agent"]) == [line.agent for line in standings.agents]
    assert len(frame) == 15
    assert frame["full_rank"].isna().any()
    for line, (_, row) in zip(standings.agents, frame.iterrows(), strict=True):
        for name in ("scaffold", "model", "submitted_at", "how", "n_tasks", "n_trials", "cost_usd", "trust"):
            assert same(row[name], getattr(line, name)), name
        for target, at in line.at.items():
            for name in ("rank", "rank_lower", "rank_upper", "score", "lower", "upper", "se", "n_valid"):
                assert same(row[f"{target}_{name}"], getattr(at, name)), name


def test_a_frame_of_a_validation_has_the_figures_of_each_strategy(record):
    found = validate(record.table, strategies=["mid_range", "random"], seeds=2, n_null_draws=0)
    frame = found.to_frame()
    assert set(frame["protocol"]) == {name for name, one in found.protocols.items() if one.available}
    assert {"loao", "temporal"} <= set(frame["protocol"])
    assert frame.groupby("protocol")["strategy"].agg(set).map({"mid_range", "random"}.__eq__).all()
    for _, row in frame.iterrows():
        figures = found.protocols[row["protocol"]].strategies[row["strategy"]]
        for name in {one.name for one in fields(ValidationFigures)} - {
            "se",
            "spread",
            "worst",
            "best",
            "notes",
        }:
            assert same(row[name], getattr(figures, name)), name
        for name, error in figures.se.items():
            assert same(row[f"se_{name}"], error), name
    assert np.isfinite(frame[["pairs_correct_full", "rmse_completion"]].to_numpy()).all()


def test_without_pandas_a_frame_is_refused_in_words(record, standings, monkeypatch):
    frames = [standings.to_frame, validate(record.table, protocols=["loao"], coverage=False).to_frame]
    monkeypatch.setitem(sys.modules, "pandas", None)
    for to_frame in frames:
        with pytest.raises(
            FrameRefused, match=r"needs pandas. Install it: pip install 'bandstand\[frames\]'"
        ) as refused:
            to_frame()
        assert refused.value.code == "pandas_missing"
