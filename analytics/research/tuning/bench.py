"""A harness whose true fitness is known: five parameters, five models, 200 tasks, made-up scores.

Scores follow Eq. 28.3 with components that depend on the configuration: pinned environments cut the variance
of runs, long time-outs cut failures and the variance of task and run, more workers add noise and save time, a
judge tells models apart better and is noisier and dearer. From the components F follows without a run, so
that a search can be held against it.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from analytics.harness import fitness
from analytics.resampling import generator
from analytics.research.tuning.space import Configuration, SpaceParameter

MODELS = ("m1", "m2", "m3", "m4", "m5")
ABILITIES = np.array([-0.22, -0.1, 0.0, 0.1, 0.22])
N_TASKS = 200
TASKS = tuple(f"t{place:03d}" for place in range(N_TASKS))
TASK, MODEL_TASK = 0.05, 0.02  # variances that no configuration changes
SPACE = {
    one.name: one
    for one in (
        SpaceParameter("timeout", "log", "instrument", 20.0, 600.0),
        SpaceParameter("retries", "int", "instrument", 0, 3),
        SpaceParameter("pinned", "choice", "instrument", choices=(True, False)),
        SpaceParameter("scorer", "choice", "measurement", choices=("exact", "fuzzy", "judge")),
        SpaceParameter("workers", "int", "instrument", 1, 16),
    )
}
BASELINE: Configuration = {"timeout": 120.0, "retries": 1, "pinned": False, "scorer": "fuzzy", "workers": 4}
SCALE = {"exact": 0.75, "fuzzy": 1.0, "judge": 1.1}
SCORER_NOISE = {"exact": 0.0, "fuzzy": 0.004, "judge": 0.010}


def true_variances(configuration: Mapping[str, Any]) -> dict[str, float]:
    """Return the variances of a configuration by term."""
    short, busy = math.exp(-configuration["timeout"] / 120.0), configuration["workers"] / 16.0
    return {
        "run": 0.004 * (0.1 if configuration["pinned"] else 1.0) + 0.001 * busy,
        "model:run": 0.001 + 0.006 * busy**2,
        "task:run": 0.002 + 0.02 * short,
        "residual": 0.006 + SCORER_NOISE[configuration["scorer"]],
        "model:task": MODEL_TASK,
        "task": TASK,
    }


def true_coverage(configuration: Mapping[str, Any]) -> float:
    """Return the share of cells that a configuration covers."""
    short, busy = math.exp(-configuration["timeout"] / 120.0), configuration["workers"] / 16.0
    return float(1.0 - 0.25 * short * 0.4 ** configuration["retries"] - 0.03 * busy)


def price(configuration: Mapping[str, Any]) -> float:
    """Return US dollars an evaluation of a cell."""
    paid = (1.0 + 0.15 * configuration["retries"]) * (0.2 + configuration["timeout"] / 600.0)
    paid *= 2.5 if configuration["scorer"] == "judge" else 1.0
    paid /= 1.0 + 0.3 * math.log2(configuration["workers"])
    return float(paid / 1000.0)


def true_fitness(configuration: Mapping[str, Any]) -> float:
    """F of a configuration from its components, with no run at all."""
    v, scale = true_variances(configuration), SCALE[configuration["scorer"]]
    signal = ABILITIES.var(ddof=1) * scale**2 + v["model:task"] / N_TASKS
    noise = v["run"] + v["model:run"] + (v["task:run"] + v["residual"]) / N_TASKS
    i, j = np.triu_indices(len(MODELS), 1)
    gaps = np.abs(ABILITIES[i] - ABILITIES[j]) * scale
    d = float(gaps.mean() / math.sqrt(sum(v.values())))
    return fitness(signal / (signal + noise), d, true_coverage(configuration))


def run(request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a request: the function to name as ``callable = "analytics.research.tuning.bench:run"``.

    What belongs to a task, or to a task and a model, is the same whatever the configuration.
    """
    configuration, tasks = request["configuration"], request["tasks"]
    v, scale = true_variances(configuration), SCALE[configuration["scorer"]]
    covered, paid = true_coverage(configuration), price(configuration)
    places = [TASKS.index(task) for task in tasks]
    fixed = generator(0, "bench tasks")
    difficulty = fixed.normal(0.0, math.sqrt(TASK), N_TASKS)[places]
    meeting = fixed.normal(0.0, math.sqrt(MODEL_TASK), (len(MODELS), N_TASKS))[:, places]
    runs = range(request["first_run"], request["first_run"] + request["n_runs"])
    cells = []
    for run_ in runs:
        draw = generator(request["seed"], "bench", run_)
        k, n = len(MODELS), len(tasks)
        y = 0.55 + scale * ABILITIES[:, None] + difficulty[None] + meeting
        y = y + draw.normal(0.0, math.sqrt(v["run"])) + draw.normal(0.0, math.sqrt(v["model:run"]), (k, 1))
        y = y + draw.normal(0.0, math.sqrt(v["task:run"]), (1, n))
        y = y + draw.normal(0.0, math.sqrt(v["residual"]), (k, n))
        valid = draw.random((k, n)) < covered
        cells += [
            {"model": model, "task": task, "run": run_, "score": float(y[i, j]), "valid": bool(valid[i, j])}
            | {"cost_usd": paid}
            for i, model in enumerate(MODELS)
            if model in request["models"]
            for j, task in enumerate(tasks)
        ]
    return {"cells": cells}
