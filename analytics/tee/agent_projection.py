"""What a design would make of the error of one agent's mean, from the components of a whole benchmark.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, Eqs. 3, 7-10. The sums with the agent are this
project's own.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np

from analytics.tee.components import FIXED, Component, Components
from analytics.tee.dstudy import DStudyRefused, Reading, project
from analytics.tee.grouped_tasks import GROUP, by_groups

ITEM, RUN, RESIDUAL = "item", "run", "Residual"
LEVELS = {"N": "task", "V": "prompt", "M": "judge", "H": "temperature"}
RANDOM = {
    "prompt": (("prompt", "agent:prompt"), "V"),
    "item:prompt": (("task:prompt",), "NV"),
    "item:judge": (("task:judge",), "NM"),
}
PANELS = {"judge": ((), "M"), "temperature": (("agent:temperature",), "H")}
ADDED = {"judge": ("agent:judge", "M"), RUN: ("agent:run", "R")}


def project_agent(
    result: Mapping[str, Any], design: Mapping[str, int], *, estimand: str, sensitivity: str
) -> dict[str, Any]:
    """Project Var(θ̂) of one agent's mean, + σ²_agent:judge/M + σ²_agent:run/R.

    result: the result of `analytics.tee.benchmark.variance_study`, available.
    design: proposed levels by letter; what is absent is as in the study, and R is 1. C, groups of tasks that
        are drawn, are then at most the tasks.
    Raises DStudyRefused: as `analytics.tee.dstudy.project`: replicates of a pooled residual, nothing that
        varies, …; and ``domain`` where groups of tasks have a role and tell nothing.
    """
    whole = {letter: result["levels"][facet] for letter, facet in LEVELS.items()} | {"R": 1} | dict(design)
    reading = Reading(estimand=cast(Any, estimand), sensitivity=cast(Any, sensitivity))
    groups = result.get("groups")
    if estimand == "domain" and groups and groups["reason"]:
        raise DStudyRefused(groups["reason"])
    parts = by_groups({one["name"]: float(one["variance"]) for one in result["components"]}, groups)
    if groups and GROUP in parts:
        whole.setdefault("C", min(groups["n_groups"], whole["N"]))
    elif "C" in whole:
        raise DStudyRefused("groups of tasks cannot be projected: none are drawn together")
    contributions, left_out = agent_contributions(parts, result["fixed"], whole, reading)
    variance = sum(contributions.values())
    return {
        "design": whole,
        "estimand": estimand,
        "sensitivity": sensitivity,
        "interval": reading.interval_name,
        "variance": variance,
        "se": float(np.sqrt(variance)),
        "shares": {name: part / variance for name, part in contributions.items()}
        | dict.fromkeys(left_out, 0.0),
        "not_measured": list(result["not_measured"]),
    }


def agent_contributions(
    parts: Mapping[str, float], fixed: Mapping[str, float], design: Mapping[str, int], reading: Reading
) -> tuple[dict[str, float], tuple[str, ...]]:
    """Return the parts of Var(θ̂) of one agent's mean, and the components that the reading conditions on.

    parts, fixed: as in `agent_components`.
    """
    reading = replace(reading, categories="sampled")
    projection = project(agent_components(parts, fixed), design, reading)
    added = {
        name: parts[term] / design.get(letter, 1) for name, (term, letter) in ADDED.items() if term in parts
    }
    return dict(projection.contributions) | added, projection.left_out


def as_seen(levels: Mapping[str, int], parts: Mapping[str, float]) -> dict[str, int]:
    """Return N, V, M and H of a study; 1 of a facet without a term (`parts`) of its own in the fit."""
    return {
        letter: levels[facet] if facet == "task" or f"agent:{facet}" in parts else 1
        for letter, facet in LEVELS.items()
    }


def agent_components(parts: Mapping[str, float], fixed: Mapping[str, float]) -> Components:
    """Return the components of one agent's mean; without a repeated trial the residual is pooled.

    parts: term → variance, outcome².
    fixed: treatment contrasts by name, such as ``judge[j2]``.
    """
    entries = [
        *([Component(GROUP, parts[GROUP], frozenset("C"))] if GROUP in parts else []),
        Component(ITEM, parts["task"] + parts.get("agent:task", 0.0), frozenset("N")),
    ]
    for name, (terms, letters) in RANDOM.items():
        if known := [parts[term] for term in terms if term in parts]:
            entries.append(Component(name, sum(known), frozenset(letters)))
    for facet, (terms, letter) in PANELS.items():
        effects = [effect for name, effect in fixed.items() if name.startswith(f"{facet}[")]
        if effects or f"agent:{facet}" in parts:
            panel = float(np.var([0.0, *effects]))  # of the base level, 0, and the others by contrast
            variance = panel + sum(parts.get(term, 0.0) for term in terms)
            entries.append(Component(f"{facet}{FIXED}", variance, frozenset(letter), fixed=True))
    entries.append(Component(RESIDUAL, parts[RESIDUAL], frozenset("R")))
    return Components(tuple(entries), pooled="agent:task" not in parts)
