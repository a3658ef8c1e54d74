"""The D-study by groups of tasks: by hand, against a one-way analysis of variance, and in expectation."""

import math

import numpy as np
import pytest

from analytics.differences.groups import Groups, mean_variance
from analytics.tee.agent_projection import NO_AGENT, advice, by_groups, project_agent, task_groups
from analytics.tee.benchmark import TrialOutcomes, variance_study
from analytics.tee.dstudy import DStudyRefused
from perf.studies.grouped_tasks import codes

PARTS = {"agent": 0.02, "task": 0.06, "agent:task": 0.04, "Residual": 0.08}
DRAWN = {"role": "cluster", "n_groups": 10, "reason": "", "between": 0.03, "removed": 0.02}
UNEVEN = codes(60, 12, half=True)


def drawn_scores(seed, code, sd, n_agents):
    """Draw x = ½ + γ_g + w, γ ~ N(0, sd²), w ~ N(0, 1)."""
    rng = np.random.default_rng(seed)
    return (
        0.5 + rng.normal(0, sd, (n_agents, code.max() + 1))[:, code] + rng.normal(0, 1, (n_agents, len(code)))
    )


def result(groups, parts=PARTS):
    summary = [{"name": name, "variance": variance} for name, variance in parts.items()]
    levels = {"task": 50, "prompt": 1, "judge": 1, "temperature": 1}
    return {"components": summary, "fixed": {}, "levels": levels, "not_measured": [], "groups": groups}


def projected(groups, design, estimand="domain"):
    return project_agent(result(groups), design, estimand=estimand, sensitivity="exclude")


# ---------------------------------------------------------------------------------------------- the estimate


def test_groups_of_one_size_are_a_one_way_analysis_of_variance():
    code = codes(60, 12)
    x = drawn_scores(1, code, 0.8, 3)
    between = [5 * np.var(row.reshape(12, 5).mean(axis=1), ddof=1) for row in x]
    within = [np.mean(row.reshape(12, 5).var(axis=1, ddof=1)) for row in x]
    expected = (np.mean(between) - np.mean(within)) / 5
    assert expected > 0
    estimate = task_groups(x, Groups.of(code, "cluster"))
    assert estimate["between"] == pytest.approx(expected)
    assert estimate["removed"] == pytest.approx(expected * (1 - 1 / 12) * 60 / 59)


@pytest.mark.parametrize("code", [codes(60, 12), UNEVEN])
def test_with_the_design_of_now_the_error_is_right_on_average(code):
    """Var(x̄) = sd²·Σp² + 1/N of 20,000 agents; the fit's task component has the expectation of s²."""
    n, sd = len(code), 0.5
    x = drawn_scores(2, code, sd, 20_000)
    groups = Groups.of(code, "cluster")
    parts = by_groups({"task": float(np.var(x, axis=1, ddof=1).mean())}, task_groups(x, groups))
    error = parts["group"] / groups.sizes.size + parts["task"] / n
    truth = sd**2 * np.sum((groups.sizes / n) ** 2) + 1 / n
    assert error == pytest.approx(truth, rel=0.03)
    assert np.var(x.mean(axis=1)) == pytest.approx(truth, rel=0.05)


def test_strata_take_away_what_lies_between_them():
    code = np.repeat([0, 1, 2], [20, 30, 10])
    x = drawn_scores(3, code, 1.0, 4)
    groups = Groups.of(code, "stratum")
    plain = float(np.var(x, axis=1, ddof=1).mean())
    parts = by_groups({"task": plain}, task_groups(x, groups))
    assert set(parts) == {"task"}
    assert parts["task"] / 60 == pytest.approx(np.mean([mean_variance(row, groups).variance for row in x]))
    assert parts["task"] < plain


def test_labels_are_names_alone():
    x = drawn_scores(4, UNEVEN, 0.5, 3)
    renamed = Groups.of((5 * UNEVEN + 2) % 12, "cluster")
    one, other = task_groups(x, Groups.of(UNEVEN, "cluster")), task_groups(x, renamed)
    assert one == pytest.approx(other)


def test_groups_that_do_not_differ_have_no_part_and_groups_of_one_task_no_say():
    x = np.tile(np.tile([0.0, 1.0], 30), (2, 1))
    estimate = task_groups(x, Groups.of(np.arange(60) // 4, "cluster"))
    assert (estimate["between"], estimate["removed"]) == (0.0, 0.0)
    assert task_groups(x, Groups.of(np.arange(60), "cluster")) is None


def test_what_tells_nothing_says_why():
    x = drawn_scores(5, codes(60, 9), 0.5, 2)
    assert "at least 10 groups, not 9" in task_groups(x, Groups.of(codes(60, 9), "cluster"))["reason"]
    x[:, 3] = np.nan
    estimate = task_groups(x, Groups.of(codes(60, 12), "cluster"))
    assert estimate == {"role": "cluster", "n_groups": 12, "reason": NO_AGENT}


# ------------------------------------------------------------------------------------------- the projections


def test_a_design_by_hand():
    """By hand: group .03/C, item (.1 − .02)/N, residual .08/(N·R)."""
    now = projected(DRAWN, {"R": 2})
    assert now["design"] == {"N": 50, "V": 1, "M": 1, "H": 1, "R": 2, "C": 10}
    assert now["variance"] == pytest.approx(0.03 / 10 + 0.08 / 50 + 0.08 / 100)
    assert projected(DRAWN, {"N": 10**6})["se"] == pytest.approx(math.sqrt(0.03 / 10), rel=1e-3)
    assert projected(DRAWN, {"N": 100, "C": 20})["variance"] == pytest.approx(
        0.03 / 20 + 0.08 / 100 + 0.08 / 100
    )
    assert projected(DRAWN, {"N": 4})["design"]["C"] == 4
    assert projected(DRAWN, {}, "finite")["variance"] == pytest.approx(0.08 / 50)


def test_groups_that_are_not_drawn_cannot_be_projected():
    for groups in (None, {"role": "stratum", "n_groups": 3, "reason": "", "removed": 0.01}):
        with pytest.raises(DStudyRefused, match="none are drawn together"):
            projected(groups, {"C": 20})
    refused = {"role": "cluster", "n_groups": 9, "reason": "too few"}
    with pytest.raises(DStudyRefused, match="too few"):
        projected(refused, {})
    assert projected(refused, {}, "finite")["variance"] == pytest.approx(0.08 / 50)


def test_twice_as_many_groups_help_more_than_twice_as_many_tasks_of_them():
    estimate = advice(PARTS, levels={"prompt": 1, "judge": 1}, n_tasks=50, sensitivity=None, groups=DRAWN)
    now = 0.03 / 10 + 0.16 / 50
    assert estimate["now"]["domain"] == pytest.approx(math.sqrt(now))
    by_change = {one["change"]: one["share"] for one in estimate["changes"]["domain"]}
    assert list(by_change) == [
        "twice as many groups of tasks",
        "twice as many tasks",
        "two trials per task instead of one",
    ]
    assert by_change["twice as many groups of tasks"] == pytest.approx(math.sqrt(0.5))
    assert by_change["twice as many tasks"] == pytest.approx(math.sqrt((0.03 / 10 + 0.16 / 100) / now))


def test_a_study_projects_by_groups_and_leaves_these_tasks_alone():
    code, rng = codes(40, 10), np.random.default_rng(6)
    rates = np.clip(0.5 + rng.normal(0, 0.3, (6, 10))[:, code] + rng.normal(0, 0.1, (6, 40)), 0.05, 0.95)
    trials = (rng.random((6, 40, 3)) < rates[..., None]).astype(float)
    a, j, _ = np.indices(trials.shape)
    columns = {"agent": a.ravel().astype(str), "task": j.ravel().astype(str)}
    columns |= {name: np.full(a.size, "") for name in ("prompt", "judge", "temperature", "run")}
    outcomes, complete = TrialOutcomes(columns, trials.ravel()), [str(i) for i in range(6)]
    groups = task_groups(trials.mean(axis=2), Groups.of(code, "cluster"))
    plain, by = (
        variance_study(outcomes, complete=complete, n_tasks=40, groups=one) for one in (None, groups)
    )
    assert plain["components"] == by["components"]
    known = by_groups({one["name"]: one["variance"] for one in by["components"]}, by["groups"])
    items = known["task"] + known["agent:task"]
    for one, other in zip(plain["projections"], by["projections"], strict=True):
        assert one["finite"] == pytest.approx(other["finite"])
        expected = known["group"] / 10 + (items + known["Residual"] / one["n_trials"]) / 40
        assert other["domain"] == pytest.approx(math.sqrt(expected))
        assert other["domain"] > one["domain"]
    refused = variance_study(
        outcomes, complete=complete, n_tasks=40, groups={"role": "cluster", "n_groups": 9, "reason": "few"}
    )
    assert {one["domain"] for one in refused["projections"]} == {None}
    assert list(refused["advice"]["changes"]) == ["finite"]
