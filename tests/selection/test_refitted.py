"""Closed forms of nested validation beside scikit-learn's refits: equal, and seen where one is falsified."""

import numpy as np
import pytest

from selection import full_scores, refitted
from selection.rules import Rules
from tests.selection.records import NAN, board, record_of

SCAFFOLDS = "ABC" * 4


def test_the_closed_forms_are_scikit_learns_refits():
    outcomes = board(12, 40)
    outcomes[3, 7] = NAN
    found = refitted.refitted(record_of(outcomes, scaffolds=SCAFFOLDS), Rules())
    assert found["folds"] == 12 + 3
    assert found["difference"] == abs(found["closed_form"] - found["scikit_learn"]) < 1e-12


def test_one_falsified_prediction_is_found_and_named(monkeypatch):
    right = full_scores.ridge_predictions

    def falsified(agents, folds, *rest):
        told = right(agents, folds, *rest)
        return [told[f] + 1e-6 * (fold.name == "a05") for f, fold in enumerate(folds)]

    monkeypatch.setattr(full_scores, "ridge_predictions", falsified)
    found = refitted.refitted(record_of(board(12, 40), scaffolds=SCAFFOLDS), Rules())
    assert found["where"] == "without agent 'a05'"
    assert found["closed_form"] - found["scikit_learn"] == pytest.approx(1e-6, rel=1e-6)


def test_of_many_folds_some_are_refitted_evenly_spread(monkeypatch):
    monkeypatch.setattr(refitted, "MAX_FOLDS", 3)
    trained = []
    right = refitted.cross_validate

    def seen(*given, cv, **rest):
        trained.append([np.setdiff1d(np.arange(12), training).tolist() for training, _ in cv])
        return right(*given, cv=cv, **rest)

    monkeypatch.setattr(refitted, "cross_validate", seen)
    assert refitted.refitted(record_of(board(12, 40)), Rules())["folds"] == 3
    assert trained == [[[0], [5], [11]]]


@pytest.mark.parametrize("outcomes", [np.ones((16, 12)), np.ones((1, 12)), board(4, 40)])
def test_without_a_subset_there_is_nothing_to_compare(outcomes):
    assert refitted.refitted(record_of(outcomes), Rules()) is None
