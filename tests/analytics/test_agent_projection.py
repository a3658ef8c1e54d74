"""One agent's error under another design: by hand, by its limits, and against a study's own projections."""

import math

import numpy as np
import pytest

from analytics.tee.agent_projection import agent_components, as_seen, project_agent
from analytics.tee.benchmark import TrialOutcomes, variance_study
from analytics.tee.dstudy import DStudyRefused

LEVELS = {"agent": 4, "task": 10, "prompt": 2, "judge": 2, "temperature": 1, "run": 3}


def result(parts, fixed=None):
    summary = [{"name": name, "variance": variance} for name, variance in parts.items()]
    return {"components": summary, "fixed": fixed or {}, "levels": LEVELS, "not_measured": ["temperature"]}


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
    summary = project_agent(result(PARTS), {"N": 20, "R": 3}, estimand="domain", sensitivity="exclude")
    assert summary["design"] == {"N": 20, "V": 2, "M": 2, "H": 1, "R": 3}
    assert summary["variance"] == pytest.approx(0.10 / 20 + 0.12 / 240)
    assert summary["se"] == pytest.approx(math.sqrt(summary["variance"]))
    assert summary["interval"] == "confidence interval"
    assert summary["not_measured"] == ["temperature"]


def test_a_pilot_by_hand():
    design = {"N": 10, "V": 2, "M": 2, "H": 1, "R": 3}
    summary = project_agent(result(PILOT, JUDGES), design, estimand="domain", sensitivity="include")
    parts = {
        "item": 0.10 / 10,
        "prompt": 0.016 / 2,
        "item:prompt": 0.020 / 20,
        "item:judge": 0.030 / 20,
        "judge (fixed)": 0.01 / 2,  # effects 0 and 0.2: variance 0.01
        "Residual": 0.12 / 120,
        "agent:judge": 0.004 / 2,
        "agent:run": 0.009 / 3,
    }
    assert summary["variance"] == pytest.approx(sum(parts.values()))
    shares = {name: part / sum(parts.values()) for name, part in parts.items()}
    assert summary["shares"] == pytest.approx(shares)
    without = project_agent(result(PILOT, JUDGES), design, estimand="domain", sensitivity="exclude")
    assert without["variance"] == pytest.approx(sum(parts.values()) - parts["judge (fixed)"])
    assert without["shares"]["judge (fixed)"] == 0
    assert sum(without["shares"].values()) == pytest.approx(1)


def test_a_run_is_averaged_by_runs_alone():
    few, many = (
        project_agent(result(PILOT, JUDGES), {"N": n, "R": 3}, estimand="finite", sensitivity="exclude")
        for n in (10, 10**6)
    )
    assert few["shares"]["agent:run"] < many["shares"]["agent:run"]
    assert many["variance"] == pytest.approx(0.009 / 3 + 0.016 / 2 + 0.004 / 2, rel=1e-3)


def test_the_agents_own_spread_is_no_error():
    assert "agent" not in {entry.name for entry in agent_components(PARTS, {}).entries}


def test_without_a_repeated_trial_more_of_them_are_refused():
    pooled = {"agent": 0.05, "task": 0.06, "Residual": 0.16}
    summary = project_agent(
        result(pooled), {"N": 20, "V": 1, "M": 1}, estimand="domain", sensitivity="exclude"
    )
    assert summary["variance"] == pytest.approx(0.06 / 20 + 0.16 / 20)
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
    study = variance_study(TrialOutcomes(columns, outcome), complete=[], n_tasks=12)
    assert len(study["projections"]) >= 5
    for row in study["projections"]:
        summary = project_agent(study, {"R": row["n_trials"]}, estimand=estimand, sensitivity="exclude")
        assert summary["se"] == pytest.approx(row[estimand], rel=1e-12)


def pilot_study():
    """Six agents, 20 tasks, two prompts, which suit them differently, and three trials of each."""
    rng = np.random.default_rng(5)
    agent, task, prompt, _ = (axis.ravel() for axis in np.indices((6, 20, 2, 3)))
    chance = np.clip(
        0.3 + 0.06 * agent + 0.01 * task + rng.normal(0, 0.15, (6, 2))[agent, prompt], 0.02, 0.98
    )
    columns = {
        name: np.char.mod(f"{name[0]}%02d", code)
        for name, code in (("agent", agent), ("task", task), ("prompt", prompt))
    }
    columns |= {facet: np.full(agent.size, "") for facet in ("judge", "temperature", "run")}
    return variance_study(
        TrialOutcomes(columns, (rng.random(agent.size) < chance).astype(float)), complete=[], n_tasks=20
    )


def test_judges_of_one_trial_are_averaged_and_make_no_second_trial():
    """a0 has two trials of each task and two judges of each trial, a1 one trial, a2 two trials and one judge.

    SE² by definition: the mean over tasks of s² of a task's trials, over tasks × trials.
    """
    rng = np.random.default_rng(4)
    agent, task, judge, trial = (axis.ravel() for axis in np.indices((3, 40, 2, 2)))
    kept = ~((agent == 1) & (trial == 1)) & ~((agent == 2) & (judge == 1))
    chance = 0.2 + 0.6 * rng.random((3, 40))[agent, task]
    outcome = ((rng.random((3, 40, 2))[agent, task, trial] < chance) ^ (rng.random(kept.size) < 0.1)) * 1.0
    agent, task, judge, trial, outcome = (values[kept] for values in (agent, task, judge, trial, outcome))
    columns = {"agent": np.char.mod("a%d", agent), "task": np.char.mod("t%02d", task)}
    columns |= {facet: np.full(agent.size, "") for facet in ("prompt", "temperature", "run")}
    columns["judge"] = np.char.mod("j%d", judge)
    study = variance_study(TrialOutcomes(columns, outcome, trial), complete=["a0"], n_tasks=40)
    assert [one["agent"] for one in study["agents"]] == ["a0", "a2"]
    cells = outcome[agent == 0].reshape(40, 2, 2).mean(axis=1)
    expected = np.sqrt(np.var(cells, axis=1, ddof=1).mean() / 80)
    assert study["agents"][0]["se"] == pytest.approx(expected, rel=1e-6)
    assert study["agents"][0]["levels"].get("M", 1) == 1
    assert [one["judges_averaged"] for one in study["agents"]] == [2, 0]
    p = outcome[agent == 0].mean()
    naive = math.sqrt(p * (1 - p) / 40)  # in the words as in the figures
    assert study["agents"][0]["naive_se"] == pytest.approx(naive)
    ratio = f"the naive one is {naive:.4g}, so that the ratio is {expected / naive:.2f}."
    assert ratio in study["agents"][0]["paragraph"]
    assert not any("separate" in text for text in study["not_measured"])
    parts = {one["name"]: one["variance"] for one in study["components"]}
    assert parts["agent:task:trial"] > parts["Residual"]
    for row in study["projections"]:
        n = row["n_trials"]
        mean = parts["agent:task:trial"] / (40 * n) + parts["Residual"] / (80 * n) + parts["agent:judge"] / 2
        assert row["finite"] == pytest.approx(math.sqrt(mean), rel=1e-9)
        summary = project_agent(study, {"R": n}, estimand="finite", sensitivity="exclude")
        assert summary["se"] == pytest.approx(row["finite"], rel=1e-9)
    apart = variance_study(TrialOutcomes(columns, outcome), complete=["a0"], n_tasks=40)
    assert [one["agent"] for one in apart["agents"]] == ["a0", "a1", "a2"]
    assert "agent:task:trial" not in [one["name"] for one in apart["components"]]
    agreed = variance_study(TrialOutcomes(columns, (trial == 0) * 1.0, trial), complete=[], n_tasks=40)
    assert agreed["levels"]["judge"] == 2
    once = variance_study(
        TrialOutcomes(columns, (trial == 0) * 1.0, trial).per_trial(), complete=[], n_tasks=40
    )
    for part in ("components", "projections", "logit"):
        assert agreed[part] == once[part]


def test_judges_who_always_agree_have_no_effect():
    """Both scored each of two trials alike; one verdict that stands alone tells nothing of them."""
    rng = np.random.default_rng(4)
    agent, task, trial, judge = (axis.ravel() for axis in np.indices((4, 20, 2, 2)))
    outcome = (rng.random((4, 20, 2)) < 0.5).astype(float)[agent, task, trial]
    columns = {"agent": np.char.mod("a%d", agent), "task": np.char.mod("t%d", task)}
    columns |= {"judge": np.char.mod("j%d", judge)}
    columns |= dict.fromkeys(("prompt", "temperature", "run"), np.full(agent.size, ""))
    rows = TrialOutcomes(columns, outcome, trial)
    study = variance_study(rows, complete=[], n_tasks=20, with_agents=False)
    assert study["components"] == variance_study(rows.per_trial(), complete=[], n_tasks=20)["components"]
    assert study["facets"]["judge"] == {"with_agent": 0.0, "main": 0.0}
    assert study["advice"]["unknown"] == ["prompts"]
    assert study["advice"]["sentences"][-1] == "Both judges agreed on every trial."
    alone = np.arange(outcome.size) > 0
    some = {name: values[alone] for name, values in columns.items()}
    assert not TrialOutcomes(some, outcome[alone], trial[alone]).judges_agree


@pytest.mark.parametrize(("n_labelled", "is_measured"), [(1, False), (5, True), (8, True)])
def test_what_few_agents_vary_by_from_run_to_run_is_no_measure(n_labelled, is_measured):
    """Eight agents with two trials; the labels of so many tell two runs."""
    rng = np.random.default_rng(5)
    agent, task, trial = (axis.ravel() for axis in np.indices((8, 30, 2)))
    columns = {"agent": np.char.mod("a%d", agent), "task": np.char.mod("t%d", task)}
    columns |= dict.fromkeys(("prompt", "judge", "temperature"), np.full(agent.size, ""))
    columns["run"] = np.char.mod("r%d", np.where(agent < n_labelled, trial, 0))
    outcomes = TrialOutcomes(columns, (rng.random(agent.size) < 0.5).astype(float), trial)
    study = variance_study(outcomes, complete=[], n_tasks=30, with_agents=False)
    assert ("run" in study["facets"]) is is_measured


@pytest.mark.parametrize("n_trials", [1, 3])
def test_what_a_second_judge_of_the_same_trials_gains(n_trials):
    """σ² of task .04, agent × task .01, trial .09, verdict .04: a second judge leaves √(.16/.18) of SE.

    A second trial, known where a task has several, leaves √(.115/.18), on these tasks √.5.
    """
    rng = np.random.default_rng(1)
    agent, task, trial, judge = (axis.ravel() for axis in np.indices((20, 200, n_trials, 2)))
    outcome = rng.normal(0, 0.2, 200)[task] + rng.normal(0, 0.1, (20, 200))[agent, task]
    outcome += rng.normal(0, 0.3, (20, 200, n_trials))[agent, task, trial] + rng.normal(0, 0.2, agent.size)
    columns = {"agent": np.char.mod("a%d", agent), "task": np.char.mod("t%d", task)}
    columns |= {"judge": np.char.mod("j%d", judge)}
    columns |= dict.fromkeys(("prompt", "temperature", "run"), np.full(agent.size, ""))
    rows = TrialOutcomes(columns, outcome, trial)
    study = variance_study(rows, complete=[], n_tasks=200, with_agents=False)
    shares = {one["change"]: one["share"] for one in study["advice"]["changes"]["domain"]}
    how = {"estimand": "domain", "sensitivity": "exclude"}
    assert shares["two judges instead of one"] == pytest.approx(math.sqrt(0.16 / 0.18), abs=0.01)
    assert project_agent(study, {"M": 2}, **how)["se"] == pytest.approx(math.sqrt(0.16 / 200), rel=0.1)
    assert project_agent(study, {"M": 1}, **how)["se"] == pytest.approx(math.sqrt(0.18 / 200), rel=0.1)
    if n_trials == 1:
        assert "trials" in study["advice"]["unknown"]
        with pytest.raises(DStudyRefused, match="only one trial, for tasks like these"):
            project_agent(study, {"R": 2}, **how)
        return
    assert shares["two trials per task instead of one"] == pytest.approx(math.sqrt(0.115 / 0.18), abs=0.02)
    here = {one["change"]: one["share"] for one in study["advice"]["changes"]["finite"]}
    assert here["two judges instead of one"] == pytest.approx(math.sqrt(0.11 / 0.13), abs=0.01)
    assert here["two trials per task instead of one"] == pytest.approx(math.sqrt(0.5), abs=0.01)


def test_a_judge_that_favours_some_agents_is_seen_through_the_noise_of_their_trials():
    """Bernoulli trials of .5; the second judge passes a fifth of the failures of every other agent."""
    rng = np.random.default_rng(2)
    agent, task, trial, judge = (axis.ravel() for axis in np.indices((20, 100, 2, 2)))
    passed = rng.random((20, 100, 2))[agent, task, trial] < 0.5
    passed |= (judge == 1) & (agent % 2 == 1) & (rng.random(agent.size) < 0.2)
    columns = {"agent": np.char.mod("a%d", agent), "task": np.char.mod("t%d", task)}
    columns |= {"judge": np.char.mod("j%d", judge)}
    columns |= dict.fromkeys(("prompt", "temperature", "run"), np.full(agent.size, ""))
    rows = TrialOutcomes(columns, passed.astype(float), trial)
    study = variance_study(rows, complete=[], n_tasks=100, with_agents=False)
    parts = {one["name"]: one["variance"] for one in study["components"]}
    means = passed.reshape(20, 100, 2, 2).mean(axis=(1, 2))  # by agent and judge
    gap = means[:, 1] - means[:, 0]
    noise = parts["Residual"] / 200  # of a mean of an agent by a judge, its trials being shared
    expected = np.var(gap, ddof=1) / 2 - noise
    assert expected > 0.0005
    assert parts["agent:judge"] == pytest.approx(expected, rel=0.05)


def test_a_judge_of_some_trials_leaves_out_no_task():
    """j1 scored both trials of 30 tasks, j2 those of five, otherwise: their mean is what such a trial got."""
    rng = np.random.default_rng(6)
    agent, task, trial = (axis.ravel() for axis in np.indices((4, 30, 2)))
    passed = (rng.random(agent.size) < 0.6) * 1.0
    audited = task < 5
    both = [np.concatenate([values, values[audited]]) for values in (agent, task, trial)]
    columns = {"agent": np.char.mod("a%d", both[0]), "task": np.char.mod("t%02d", both[1])}
    columns |= {facet: np.full(both[0].size, "") for facet in ("prompt", "temperature", "run")}
    columns["judge"] = np.repeat(["j1", "j2"], [agent.size, np.count_nonzero(audited)])
    outcome = np.concatenate([passed, 1.0 - passed[audited]])
    agents = variance_study(TrialOutcomes(columns, outcome, both[2]), complete=["a0"], n_tasks=30)["agents"]
    assert [one["levels"]["N"] for one in agents] == [30] * 4
    for i, one in enumerate(agents):
        cells = np.where(audited, 0.5, passed)[agent == i].reshape(30, 2)
        assert one["theta"] == pytest.approx(cells.mean(), rel=1e-9)


def test_components_are_of_agents_with_a_say_and_errors_of_each_agent():
    """Of an account that delivers six agents alike, none is learnt from; each has its own decomposition."""
    rng = np.random.default_rng(11)
    agent, task, trial = (axis.ravel() for axis in np.indices((12, 20, 2)))
    steady = np.clip(0.2 + 0.03 * agent + 0.02 * task, 0, 1)
    outcome = (rng.random((12, 20, 2)).ravel() < steady).astype(float)
    outcome[agent >= 6] = (task[agent >= 6] % 2).astype(float)
    columns = {"agent": np.char.mod("a%02d", agent), "task": np.char.mod("t%02d", task)}
    columns |= {facet: np.full(agent.size, "") for facet in ("prompt", "judge", "temperature", "run")}
    first = [f"a{i:02d}" for i in range(6)]
    alone = TrialOutcomes(columns, outcome).of_agents(first)
    expected = variance_study(alone, complete=[], n_tasks=20)
    estimate = variance_study(TrialOutcomes(columns, outcome), complete=[], n_tasks=20, voices=first)
    assert estimate["components"] == expected["components"]
    assert (estimate["n_rows"], estimate["levels"]["agent"]) == (240, 6)
    assert len(estimate["agents"]) == 12
    assert trial.max() == 1


def test_projections_hold_what_agents_vary_by_with_the_prompt():
    """By hand: (σ²_prompt + σ²_agent:prompt)/2 + σ²_task:prompt/40 + σ²/(40·R), and tasks."""
    study = pilot_study()
    parts = {part["name"]: part["variance"] for part in study["components"]}
    assert parts["agent:prompt"] > 0.001
    for row in study["projections"]:
        finite = (parts["prompt"] + parts["agent:prompt"]) / 2
        finite += (parts["task:prompt"] + parts["agent:task:prompt"]) / 40 + parts["Residual"] / (
            40 * row["n_trials"]
        )
        assert row["finite"] == pytest.approx(math.sqrt(finite), rel=1e-9)
        domain = finite + (parts["task"] + parts["agent:task"]) / 20
        assert row["domain"] == pytest.approx(math.sqrt(domain), rel=1e-9)


def crossed(shape, facet, *sds, seed=3):
    """Outcomes of agents × tasks × levels × trials: sd of a task, agent × task, the cell, a trial."""
    rng = np.random.default_rng(seed)
    agent, task, level, trial = (axis.ravel() for axis in np.indices(shape))
    of_task, of_both, of_cell, of_trial = (
        rng.normal(0, sd, shape[first:last])
        for sd, first, last in zip(sds, (1, 0, 0, 0), (2, 2, 3, 4), strict=True)
    )
    outcome = of_task[task] + of_both[agent, task] + of_cell[agent, task, level] + of_trial.ravel()
    columns = {"agent": np.char.mod("a%d", agent), "task": np.char.mod("t%02d", task)}
    columns |= dict.fromkeys(("prompt", "judge", "temperature", "run"), np.full(agent.size, ""))
    return columns | {facet: np.char.mod(f"{facet[0]}%d", level)}, outcome, trial


@pytest.mark.parametrize("facet", ["prompt", "judge", "temperature"])
def test_what_suits_an_agent_on_a_task_under_one_condition_is_no_noise_of_trials(facet):
    """Trials hardly differ inside a cell, so that more of them gain nothing; σ² of a cell is .09."""
    columns, outcome, trial = crossed((8, 30, 4, 2), facet, 0.2, 0.1, 0.3, 0.02)
    rows = TrialOutcomes(columns, outcome, trial)
    study = variance_study(rows, complete=[], n_tasks=30, with_agents=False)
    parts = {one["name"]: one["variance"] for one in study["components"]}
    within = np.var(outcome.reshape(8, 30, 4, 2), axis=3, ddof=1).mean()
    assert parts["Residual"] == pytest.approx(within, rel=1e-6)
    assert parts[f"agent:task:{facet}"] == pytest.approx(0.09, rel=0.1)
    first, *_, last = study["projections"]
    assert last["domain"] == pytest.approx(first["domain"], rel=0.01)


def test_noise_of_trials_is_not_told_from_cells_without_repeats():
    """One trial under each prompt, or four repeats in all; five tell it."""
    columns, outcome, trial = crossed((6, 20, 3, 2), "prompt", 0.2, 0.1, 0.3, 0.1)
    for n_repeats, is_known in ((0, False), (4, False), (5, True)):
        kept = (trial == 0) | (np.cumsum(trial) <= n_repeats) & (trial == 1)
        some = {name: values[kept] for name, values in columns.items()}
        study = variance_study(
            TrialOutcomes(some, outcome[kept], trial[kept]), complete=[], n_tasks=20, with_agents=False
        )
        names = [one["name"] for one in study["components"]]
        assert ("agent:task:prompt" in names, bool(study["projections"])) == (is_known, is_known)
        assert ("trials" in study["advice"]["unknown"]) is not is_known
        assert any("agent × task × prompt" in reason for reason in study["not_measured"]) is not is_known
        how = {"estimand": "finite", "sensitivity": "exclude"}
        assert project_agent(study, {"V": 2}, **how)["se"] > 0
        if not is_known:
            with pytest.raises(DStudyRefused, match="leave R at 1"):
                project_agent(study, {"R": 2}, **how)


def test_a_facet_that_the_fit_left_out_averages_nothing():
    levels = {"task": 20, "prompt": 7, "judge": 3, "temperature": 2}
    assert as_seen(levels, PARTS) == {"N": 20, "V": 1, "M": 1, "H": 1}
    assert as_seen(levels, PILOT) == {"N": 20, "V": 7, "M": 3, "H": 1}


def test_judges_that_suit_agents_differently_are_error_under_every_reading():
    """v_a holds σ²_agent:judge/M: with no other part than it and trials, 0.004/2 + 0.12/(10·2·3)."""
    parts = {"agent": 0.05, "task": 0.06, "agent:task": 0.04, "agent:judge": 0.004, "task:judge": 0.0}
    parts |= {"Residual": 0.12}
    design = {"N": 10, "V": 1, "M": 2, "H": 1, "R": 3}
    summary = project_agent(result(parts, JUDGES), design, estimand="finite", sensitivity="exclude")
    assert summary["variance"] == pytest.approx(0.004 / 2 + 0.12 / 60)
