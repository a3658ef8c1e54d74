"""One agent's error under another design: by hand, by its limits, and against a study's own projections."""

import math

import numpy as np
import pytest

from analytics.tee.agent_projection import agent_components, project_agent
from analytics.tee.benchmark import Outcomes, variance_study
from analytics.tee.dstudy import DStudyRefused

LEVELS = {"agent": 4, "task": 10, "prompt": 2, "judge": 2, "temperature": 1, "run": 3}


def result(parts, fixed=None):
    told = [{"name": name, "variance": variance} for name, variance in parts.items()]
    return {"components": told, "fixed": fixed or {}, "levels": LEVELS, "not_measured": ["temperature"]}


PARTS = {"agent": 0.05, "task": 0.06, "agent:task": 0.04, "Residual": 0.12}
PILOT = PARTS | {
    "prompt": 0.010,
    "agent:prompt": 0.006,
    "task:prompt": 0.020,
    "agent:judge": 0.004,
    "task:judge": 0.030,
    "agent:run": 0.009,
}
JUDGES = {"(Intercept)": 0.5, "judge[j2]": 0.2}


def test_tasks_and_trials_by_hand():
    """(0.06 + 0.04)/20 + 0.12/(20·2·2·1·3), with prompts and judges as in the study."""
    told = project_agent(result(PARTS), {"N": 20, "R": 3}, estimand="domain", sensitivity="exclude")
    assert told["design"] == {"N": 20, "V": 2, "M": 2, "H": 1, "R": 3}
    assert told["variance"] == pytest.approx(0.10 / 20 + 0.12 / 240)
    assert told["se"] == pytest.approx(math.sqrt(told["variance"]))
    assert told["interval"] == "confidence interval"
    assert told["not_measured"] == ["temperature"]


def test_a_pilot_by_hand():
    design = {"N": 10, "V": 2, "M": 2, "H": 1, "R": 3}
    told = project_agent(result(PILOT, JUDGES), design, estimand="domain", sensitivity="include")
    parts = {
        "item": 0.10 / 10,
        "prompt": 0.016 / 2,
        "item:prompt": 0.020 / 20,
        "item:judge": 0.030 / 20,
        "judge (fixed)": (0.01 + 0.004) / 2,  # effects 0 and 0.2: variance 0.01
        "Residual": 0.12 / 120,
        "run": 0.009 / 3,
    }
    assert told["variance"] == pytest.approx(sum(parts.values()))
    shares = {name: part / sum(parts.values()) for name, part in parts.items()}
    assert told["shares"] == pytest.approx(shares)
    without = project_agent(result(PILOT, JUDGES), design, estimand="domain", sensitivity="exclude")
    assert without["variance"] == pytest.approx(sum(parts.values()) - parts["judge (fixed)"])
    assert without["shares"]["judge (fixed)"] == 0
    assert sum(without["shares"].values()) == pytest.approx(1)


def test_a_run_is_averaged_by_runs_alone():
    few, many = (
        project_agent(result(PILOT, JUDGES), {"N": n, "R": 3}, estimand="finite", sensitivity="exclude")
        for n in (10, 10**6)
    )
    assert few["shares"]["run"] < many["shares"]["run"]
    assert many["variance"] == pytest.approx(0.009 / 3 + 0.016 / 2, rel=1e-3)


def test_the_agents_own_spread_is_no_error():
    assert "agent" not in {entry.name for entry in agent_components(PARTS, {}).entries}


def test_without_a_repeated_trial_more_of_them_are_refused():
    pooled = {"agent": 0.05, "task": 0.06, "Residual": 0.16}
    told = project_agent(result(pooled), {"N": 20, "V": 1, "M": 1}, estimand="domain", sensitivity="exclude")
    assert told["variance"] == pytest.approx(0.06 / 20 + 0.16 / 20)
    with pytest.raises(DStudyRefused, match="R = 2"):
        project_agent(result(pooled), {"R": 2}, estimand="domain", sensitivity="exclude")


@pytest.mark.parametrize("estimand", ["domain", "finite"])
def test_it_is_what_the_study_itself_projects_by_trials(estimand):
    rng = np.random.default_rng(3)
    agent, task, _ = (axis.ravel() for axis in np.indices((6, 12, 2)))
    chance = np.clip(0.2 + 0.1 * agent + 0.04 * task * (agent % 2), 0, 1)
    columns = {"agent": np.char.mod("a%d", agent), "task": np.char.mod("t%d", task)}
    columns |= {facet: np.full(agent.size, "") for facet in ("prompt", "judge", "temperature", "run")}
    outcome = (rng.random(agent.size) < chance).astype(float)
    study = variance_study(Outcomes(columns, outcome), complete=[], n_tasks=12)
    assert len(study["projections"]) >= 5
    for row in study["projections"]:
        told = project_agent(study, {"R": row["n_trials"]}, estimand=estimand, sensitivity="exclude")
        assert told["se"] == pytest.approx(row[estimand], rel=1e-12)
