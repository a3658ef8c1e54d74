"""Draws that are kept: a board after one new agent is the board made from nothing, to the last bit."""

import numpy as np
import pytest

from analytics.differences import kept_draws
from analytics.differences.error_draws import own_draws
from analytics.differences.finite_errors import AgentError
from analytics.differences.kept_draws import KeptDraws, KeptWeights
from analytics.differences.neyman_draws import ahead, pair_variances, task_weights
from analytics.differences.rows import ErrorTerm

N_AGENTS, K, DRAWS = 9, 23, {"seed": 4, "n_draws": 300}


@pytest.fixture
def agents():
    """Passes, fractions that no binary number tells, and three agents whose trials tell their variance."""
    rng = np.random.default_rng(2)
    outcomes = (rng.random((N_AGENTS, K)) < rng.random((N_AGENTS, 1))).astype(float)
    outcomes[5] = rng.random(K)
    untold = np.array([True, False, True, True, False, True, True, False, True])
    return outcomes, [f"agent {i}" for i in range(N_AGENTS)], rng.random(N_AGENTS) / 50, untold


def some(agents, kept):
    outcomes, names, v, untold = agents
    return outcomes[kept], [names[i] for i in kept], v[kept], untold[kept]


def assert_same(found, expected):
    """Equal to the last bit from the floors of both on."""
    floor = max(found.floor, expected.floor)
    a, b = (np.where(one.squares >= floor, one.squares, 0.0) for one in (found, expected))
    assert a.any()
    np.testing.assert_array_equal(a, b)


@pytest.fixture
def counted(monkeypatch):
    """How many agents' pairs were gone through in each call."""
    seen = []

    def spy(*arguments, new=None, **named):
        seen.append(len(arguments[1]) if new is None else int(new.sum()))
        return ahead(*arguments, new=new, **named)

    monkeypatch.setattr(kept_draws, "ahead", spy)
    return seen


@pytest.mark.parametrize("last", range(N_AGENTS))
def test_one_new_agent_adds_its_pairs_alone(agents, counted, last):
    before = [i for i in range(N_AGENTS) if i != last]
    kept = KeptDraws()
    kept.ahead(*some(agents, before), **DRAWS)
    assert_same(kept.ahead(*agents, **DRAWS), ahead(*agents, **DRAWS))
    assert counted == [N_AGENTS - 1, 1]


def test_several_new_agents_are_compared_with_each_other_too(agents):
    kept = KeptDraws()
    kept.ahead(*some(agents, [1, 4, 8]), **DRAWS)
    assert_same(kept.ahead(*agents, **DRAWS), ahead(*agents, **DRAWS))


def test_where_the_upper_point_falls_below_the_floor_all_is_drawn_anew(agents, monkeypatch):
    """Of an agent that never differs much, so that of all agents the upper point is less."""
    outcomes, names, v, untold = agents
    kept = KeptDraws()
    before = kept.ahead(outcomes[:5], names[:5], v[:5], untold[:5], **DRAWS)
    high = before._replace(floor=before.squares.max(), squares=0 * before.squares)
    monkeypatch.setattr(kept, "_draws", {key: (rows, high) for key, (rows, _) in kept._draws.items()})
    assert_same(kept.ahead(*agents, **DRAWS), ahead(*agents, **DRAWS))


def test_the_same_agents_are_not_drawn_again(agents, counted):
    kept = KeptDraws()
    assert kept.ahead(*agents, **DRAWS) is kept.ahead(*agents, **DRAWS)
    assert counted == [N_AGENTS]


@pytest.mark.parametrize("changed", ["outcomes", "v", "untold", "gone", "seed"])
def test_what_changed_is_drawn_anew(agents, counted, changed):
    outcomes, names, v, untold = agents
    kept = KeptDraws()
    kept.ahead(*agents, **DRAWS)
    outcomes, v, untold, draws = outcomes.copy(), v.copy(), untold.copy(), dict(DRAWS)
    if changed == "outcomes":
        outcomes[0, 0] = 1 - outcomes[0, 0]
    elif changed == "v":
        v[0] *= 2
    elif changed == "untold":
        untold[0] = not untold[0]
    elif changed == "seed":
        draws["seed"] += 1
    else:
        outcomes, names, v, untold = outcomes[1:], names[1:], v[1:], untold[1:]
    now = (outcomes, names, v, untold)
    assert_same(kept.ahead(*now, **draws), ahead(*now, **draws))
    assert counted == [N_AGENTS, len(names)]


def test_what_takes_too_much_is_not_kept(agents, counted):
    kept = KeptDraws(most_bytes=8 * DRAWS["n_draws"] * N_AGENTS - 1)
    kept.ahead(*agents, **DRAWS)
    kept.ahead(*agents, **DRAWS)
    assert counted == [N_AGENTS, N_AGENTS]


def test_earlier_outcomes_of_the_same_agents_take_no_room(agents):
    outcomes, names, v, untold = agents
    kept = KeptDraws()
    for changed in range(5):
        now = outcomes.copy()
        now[0, changed] = 1 - now[0, changed]
        kept.ahead(now, names, v, untold, **DRAWS)
    assert len(kept._draws) == 1


def test_variances_of_pairs_are_made_once_of_the_same_outcomes(agents):
    outcomes, _, v, _ = agents
    kept = KeptDraws(most_bytes=4 * 8 * N_AGENTS**2)
    result = kept.pair_variances(outcomes, v)
    np.testing.assert_array_equal(result, pair_variances(outcomes, v))
    assert kept.pair_variances(outcomes.copy(), v.copy()) is result
    for others, w in ((outcomes, 2 * v), (1 - outcomes, v)):
        np.testing.assert_array_equal(kept.pair_variances(others, w), pair_variances(others, w))
    assert kept.pair_variances(outcomes, v) is not result  # room for two


def test_weights_are_drawn_once_for_all_boards(monkeypatch):
    drawn = []

    def counted(k, seed, n_draws):
        drawn.append(k)
        return task_weights(k, seed, n_draws)

    monkeypatch.setattr(kept_draws, "task_weights", counted)
    kept = KeptWeights(most_bytes=2 * 20 * (5 + 6))
    for k in (5, 6, 5, 4, 5, 6):  # 4 takes the place of 6, and 6 then that of 4
        weights = kept.of((k, 3, 20))
        np.testing.assert_array_equal(weights(k, 3, 8, first=4), task_weights(k, 3, 8, first=4))
    assert drawn == [5, 6, 4, 6]
    assert KeptWeights(most_bytes=2 * 20 * 5 - 1).of((5, 3, 20)) is counted


def test_draws_of_errors_are_made_once_of_the_same_error(monkeypatch):
    drawn = []

    def counted(name, error, **what):
        drawn.append(name)
        return own_draws(name, error, **what)

    monkeypatch.setattr(kept_draws, "own_draws", counted)
    measured = AgentError(
        0.01, 7.0, 0.0, 0.0, -1, (), (ErrorTerm("repeated trials", 0.01, 7.0),), "repeated trials"
    )
    estimated = AgentError(0.0, 1.0, 0.02, 9.0, 0, (), (), "calibration")
    kept = KeptDraws(most_bytes=2 * 6 * 16 * DRAWS["n_draws"])
    cases = [
        ("a", measured, DRAWS),
        ("a", measured._replace(variance=0.02), DRAWS),
        ("a", measured._replace(own=(ErrorTerm("repeated trials", 0.01, 8.0),)), DRAWS),
        ("a", estimated, DRAWS),
        ("b", measured, DRAWS),
        ("a", measured, DRAWS | {"seed": 5}),
    ]
    for _ in range(2):
        for name, error, what in cases:
            np.testing.assert_array_equal(
                kept.own(name, error, **what), own_draws(name, error, **what), strict=True
            )
    assert len(drawn) == len(cases)
    kept.own("c", measured, **DRAWS)  # in the place of what was asked for the longest ago
    kept.own("b", measured, **DRAWS)
    kept.own("a", measured, **DRAWS)
    assert drawn[len(cases) :] == ["c", "a"]
    assert kept._own.currsize == sum(one.nbytes for one in kept._own.values()) <= 6 * 16 * DRAWS["n_draws"]
