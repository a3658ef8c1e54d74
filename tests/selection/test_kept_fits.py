"""Fits that are kept: asked again of the same complete agents, they are not made again."""

import numpy as np
import pytest

from selection.full_scores import MIN_BYTES, FitCache, fit
from tests.selection.records import unnamed

TASKS = np.array([1, 3, 4])


@pytest.fixture
def outcomes():
    return (np.random.default_rng(3).random((12, 8)) < 0.5).astype(float)


def complete(outcomes):
    return unnamed(outcomes.copy(), outcomes.mean(axis=1))


def test_the_same_agents_are_not_fitted_again(outcomes):
    kept, new = FitCache(), outcomes[:2, TASKS]
    made = kept.fit("ridge", complete(outcomes), TASKS)
    assert kept.fit("ridge", complete(outcomes), TASKS) is made
    fresh = fit("ridge", complete(outcomes), TASKS)
    np.testing.assert_array_equal(made.predict(new), fresh.predict(new))


@pytest.mark.parametrize("changed", ["outcomes", "scores", "tasks", "estimator", "agents"])
def test_what_changed_is_fitted_anew(outcomes, changed):
    kept, agents = FitCache(), complete(outcomes)
    made = kept.fit("ridge", agents, TASKS)
    other, scores, tasks, estimator = outcomes.copy(), agents.scores.copy(), TASKS, "ridge"
    if changed == "outcomes":
        other[0, 0] = 1 - other[0, 0]
    elif changed == "scores":
        scores[0] += 0.1
    elif changed == "tasks":
        tasks = np.array([1, 3, 5])
    elif changed == "estimator":
        estimator = "line"
    else:
        other, scores = other[1:], scores[1:]
    found, new = kept.fit(estimator, unnamed(other, scores), tasks), outcomes[:2, tasks]
    assert found is not made
    np.testing.assert_array_equal(
        found.predict(new), fit(estimator, unnamed(other, scores), tasks).predict(new)
    )


def counted(kept, *told):
    """Names of those that were made anew, of some that are asked for in order."""
    made = []
    for name, array in told:
        assert kept.made(name, array, make=lambda name=name: made.append(name) or name) == name
    return made


def test_what_takes_too_much_is_not_kept(outcomes):
    kept = FitCache(most_bytes=outcomes.nbytes + MIN_BYTES - 1)
    assert counted(kept, ("a", outcomes), ("a", outcomes)) == ["a", "a"]
    kept = FitCache(most_bytes=outcomes.nbytes + MIN_BYTES)
    assert counted(kept, ("a", outcomes), ("a", outcomes)) == ["a"]


def test_what_was_asked_for_the_longest_ago_goes_first(outcomes):
    kept = FitCache(most_bytes=2 * (outcomes.nbytes + MIN_BYTES))
    a, b, c = ((name, outcomes) for name in "abc")
    assert counted(kept, a, b, a, c, a, b) == ["a", "b", "c", "b"]


def test_one_is_made_once_of_what_decides_it(outcomes):
    other = outcomes.copy()
    other[0, 0] = 1 - other[0, 0]
    kept, n = FitCache(), iter(range(9))
    cases = [("shift", outcomes), ("shift", other), ("other", outcomes)]
    found = [kept.made(told, array, TASKS, make=lambda: next(n)) for told, array in cases]
    assert found == [0, 1, 2]
    assert [kept.made(told, array.copy(), TASKS, make=lambda: next(n)) for told, array in cases] == found


def test_what_cannot_be_made_is_not_kept(outcomes):
    kept = FitCache()

    def refuse():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        kept.made("a", outcomes, make=refuse)
    assert counted(kept, ("a", outcomes), ("a", outcomes)) == ["a"]
