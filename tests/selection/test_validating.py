"""The validation of a record takes the scores of its board for the truth."""

import numpy as np
import pytest

from selection.rules import Rules
from selection.standings import answer
from selection.standings.validating import validation_of
from selection.validation import validate
from tests.selection.records import NAN, board, record_of
from tests.selection.reference import by_model, joint_model

OPTIONS = {"protocols": ("loao",), "strategies": ("mid_range",), "n_null_draws": 0, "coverage": False}


def figures(told):
    return told["protocols"]["loao"]["strategies"]["mid_range"]


def test_the_truth_of_an_agent_with_gaps_is_its_score_on_the_board():
    """Six of 20 agents lack the three hardest of 60 tasks: a mean over the others would flatter them."""
    outcomes = board(20, 60)
    hardest = np.argsort(outcomes.mean(axis=0), kind="stable")[:3]
    outcomes[np.ix_(range(6), hardest)] = NAN
    record = record_of(outcomes)
    shown = {line.agent: line.at["full"].score for line in answer(record).agents}
    scores = np.array([shown[name] for name in record.table.agents])
    model = joint_model(outcomes, in_time=False)
    completed = [by_model(model, row, model[0].mean())[0] for row in outcomes]
    assert scores == pytest.approx(completed, abs=1e-8)
    assert (np.nanmean(outcomes[:6], axis=1) > scores[:6]).all()
    told = figures(validation_of(record, Rules(), **OPTIONS))
    told_with = validate(record.table, scores=scores, **OPTIONS).protocols["loao"].strategies["mid_range"]
    told_without = validate(record.table, **OPTIONS).protocols["loao"].strategies["mid_range"]
    assert told["rmse_ridge"] == pytest.approx(told_with.rmse_ridge, abs=1e-12)
    assert told["rmse_ridge"] != pytest.approx(told_without.rmse_ridge, abs=1e-4)
