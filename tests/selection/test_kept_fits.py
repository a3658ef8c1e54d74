"""Estimators that are kept: asked again of the same complete agents, they are not fitted again."""

import numpy as np
import pytest

from selection.full_scores import fit
from selection.full_scores.kept import MOST_NUMBERS, KeptFits
from selection.full_scores.left_out import unnamed

TASKS = np.array([1, 3, 4])


@pytest.fixture
def outcomes():
    return (np.random.default_rng(3).random((12, 8)) < 0.5).astype(float)


def complete(outcomes):
    return unnamed(outcomes.copy(), outcomes.mean(axis=1))


def test_the_same_agents_are_not_fitted_again(outcomes):
    kept, new = KeptFits(), outcomes[:2, TASKS]
    made = kept.fit("completion", complete(outcomes), TASKS)
    assert kept.fit("completion", complete(outcomes), TASKS) is made
    fresh = fit("completion", complete(outcomes), TASKS)
    np.testing.assert_array_equal(made.predict(new), fresh.predict(new))


@pytest.mark.parametrize("changed", ["outcomes", "scores", "tasks", "estimator", "agents"])
def test_what_changed_is_fitted_anew(outcomes, changed):
    kept, agents = KeptFits(), complete(outcomes)
    made = kept.fit("completion", agents, TASKS)
    other, scores, tasks, estimator = outcomes.copy(), agents.scores.copy(), TASKS, "completion"
    if changed == "outcomes":
        other[0, 0] = 1 - other[0, 0]
    elif changed == "scores":
        scores[0] += 0.1
    elif changed == "tasks":
        tasks = np.array([1, 3, 5])
    elif changed == "estimator":
        estimator = "ridge"
    else:
        other, scores = other[1:], scores[1:]
    found, new = kept.fit(estimator, unnamed(other, scores), tasks), outcomes[:2, tasks]
    assert found is not made
    np.testing.assert_array_equal(
        found.predict(new), fit(estimator, unnamed(other, scores), tasks).predict(new)
    )


def test_what_takes_too_much_is_not_kept(outcomes):
    kept = KeptFits(most_bytes=outcomes.nbytes - 1)
    made = kept.fit("line", complete(outcomes), TASKS)
    assert kept.fit("line", complete(outcomes), TASKS) is not made


def test_what_was_asked_for_the_longest_ago_goes_first(outcomes):
    kept, agents = KeptFits(most_bytes=2 * outcomes.nbytes), complete(outcomes)
    line, ridge = kept.fit("line", agents, TASKS), kept.fit("ridge", agents, TASKS)
    assert kept.fit("line", agents, TASKS) is line
    kept.fit("completion", agents, TASKS)
    assert kept.fit("line", agents, TASKS) is line
    assert kept.fit("ridge", agents, TASKS) is not ridge


def test_a_number_is_made_once_of_what_decides_it(outcomes):
    kept, made = KeptFits(), iter(range(2 * MOST_NUMBERS))
    other = outcomes.copy()
    other[0, 0] = 1 - other[0, 0]
    cases = [("shift", outcomes), ("shift", other), ("other", outcomes)]
    found = [kept.number(told, array, TASKS, make=lambda: next(made)) for told, array in cases]
    assert found == [0, 1, 2]
    assert [kept.number(told, array.copy(), TASKS, make=lambda: next(made)) for told, array in cases] == found
    for n in range(MOST_NUMBERS):
        kept.number(n, make=lambda: next(made))
    assert kept.number("shift", outcomes, TASKS, make=lambda: -1) == -1
