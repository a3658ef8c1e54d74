"""Checks by hand: Var = task/N + prompt/V + (task:prompt)/(N·V) + Residual/(N·V·M·R)."""

import math

import pytest

from analytics.tee.agent_projection import advice

PARTS = {"agent": 0.02, "task": 0.06, "agent:task": 0.04, "agent:prompt": 0.001, "prompt": 0.0005}
MORE = {"task:prompt": 0.03, "Residual": 0.08}
ONE = {"prompt": 1, "judge": 1}


def told(parts, **options):
    known = {"levels": ONE, "n_tasks": 50, "sensitivity": None}
    return advice({"agent": 0.02, **parts}, **(known | options))


def test_twice_the_trials_of_these_tasks():
    result = told({"task": 0.06, "agent:task": 0.04, "Residual": 0.08})
    assert result["now"]["finite"] == pytest.approx(math.sqrt(0.08 / 50))
    (only,) = result["changes"]["finite"]
    assert only["change"] == "two trials per task instead of one"
    assert only["share"] == pytest.approx(math.sqrt(0.5))
    # what every benchmark has is not said
    assert not any("these tasks" in sentence for sentence in result["sentences"])


def test_of_tasks_like_these_more_tasks_help_more_than_trials_at_the_same_cost():
    result = told({"task": 0.06, "agent:task": 0.04, "Residual": 0.08})
    tasks, trials = result["changes"]["domain"]
    assert (tasks["change"], trials["change"]) == (
        "twice as many tasks",
        "two trials per task instead of one",
    )
    assert tasks["se"] == pytest.approx(math.sqrt((0.1 + 0.08) / 100))
    assert trials["se"] == pytest.approx(math.sqrt(0.1 / 50 + 0.08 / 100))


def test_what_had_one_level_is_unknown_and_never_recommended():
    result = told({"task": 0.06, "agent:task": 0.04, "Residual": 0.08})
    assert result["unknown"] == ["prompts", "judges"]
    message = [one["change"] for changes in result["changes"].values() for one in changes]
    assert not any("prompt" in change or "judge" in change for change in message)
    assert "The effect of more prompts and judges was not measured." in result["sentences"]


def test_without_repeated_trials_nothing_is_said_of_them():
    result = told({"task": 0.06, "Residual": 0.12})
    assert result["unknown"] == ["prompts", "judges", "trials"]
    assert list(result["changes"]) == ["domain"]
    assert [one["change"] for one in result["changes"]["domain"]] == ["twice as many tasks"]
    assert result["sentences"] == ["The effect of more prompts, judges and trials was not measured."]


def test_measured_prompts_are_compared_with_the_rest():
    result = advice(PARTS | MORE, levels={"prompt": 4, "judge": 1}, n_tasks=50, sensitivity=None)
    by_change = {one["change"]: one["se"] for one in result["changes"]["domain"]}
    assert result["now"]["domain"] == pytest.approx(math.sqrt(0.1 / 50 + 0.0015 + (0.03 + 0.08) / 50))
    assert by_change["two prompts instead of one"] == pytest.approx(
        math.sqrt(0.1 / 50 + 0.0015 / 2 + (0.03 + 0.08) / 100)
    )
    assert by_change["twice as many tasks"] == pytest.approx(
        math.sqrt(0.1 / 100 + 0.0015 + (0.03 + 0.08) / 100)
    )
    assert result["unknown"] == ["judges"]


def test_the_judges_are_a_sensitivity_of_the_panel():
    result = told(
        {"task": 0.06, "agent:task": 0.04, "Residual": 0.08}, sensitivity=0.0009, levels={"judge": 3}
    )
    assert "The means of the 3 judges have a standard deviation of 3.0 points" in result["sentences"][-1]


def test_where_nothing_varies_nothing_is_advised():
    result = told({"task": 0.0, "agent:task": 0.0, "Residual": 0.0})
    assert result["changes"] == {}


def test_judges_and_runs_are_in_the_error_that_is_compared():
    """Twice as many judges halve agent:judge, twice as many trials the runs; 50 tasks, these alone."""
    parts = {"task": 0.06, "agent:task": 0.04, "agent:judge": 0.002, "agent:run": 0.001, "Residual": 0.08}
    result = told(parts, levels={"prompt": 1, "judge": 2}, sensitivity=0.0009)
    assert result["now"]["finite"] == pytest.approx(math.sqrt(0.002 + 0.001 + 0.08 / 50))
    by_change = {one["change"]: one["se"] for one in result["changes"]["finite"]}
    assert by_change["two judges instead of one"] == pytest.approx(math.sqrt(0.002 / 2 + 0.001 + 0.08 / 100))
    assert by_change["two trials per task instead of one"] == pytest.approx(
        math.sqrt(0.002 + 0.001 / 2 + 0.08 / 100)
    )
