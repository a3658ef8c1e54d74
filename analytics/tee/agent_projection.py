"""What a design would make of the error of one agent's mean, and what would shorten it.

The components are those of a whole benchmark; changes are told over measured facets alone. Groups of tasks
change the error for tasks like these: a D-study by groups.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, Eqs. 3, 7-10. The sums with the agent are this
project's own. Searle, Casella & McCulloch, *Variance Components*, 1992, §3.6 (one-way moments). Bell &
McCaffrey, *Survey Methodology* 28 (2002) 169-181 (CR2; its expectation under σ_γ² is worked out here).
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np

from analytics.arrays import FloatArray
from analytics.differences.groups import Groups, mean_variance
from analytics.tee.components import FIXED, Component, Components
from analytics.tee.dstudy import DStudyRefused, Reading, project
from analytics.text import enumerated

GROUP = "group"
NO_AGENT = "no agent has outcomes on all tasks, which errors by groups of tasks need"


def task_groups(means: FloatArray, groups: Groups) -> dict[str, Any] | None:
    """Tell what groups of tasks change in the components of one agent's mean, as objects of JSON.

    None where every task is a group of its own.

    means: (n_agents, n_tasks); mean outcomes; agents with a missing one are left out.
    Returns: ``role``; ``n_groups``; ``reason``, why there is no estimate, or empty. Without a reason also
        ``removed``, by how much the item's variance is less, and of clusters ``between``, G·Σp²·σ̂_γ²;
        outcome².
    """
    n, n_groups = groups.code.size, groups.sizes.size
    if groups.role == "cluster" and n_groups == n:
        return None
    known = means[~np.isnan(means).any(axis=1)]
    reason = groups.fault or ("" if len(known) else NO_AGENT)
    result = {"role": groups.role, "n_groups": n_groups, "reason": reason}
    if reason:
        return result
    variance = float(np.mean([mean_variance(values, groups).variance for values in known]))
    if groups.role == "stratum":
        return result | {"removed": float(np.var(known, axis=1, ddof=1).mean()) - n * variance}
    shares = groups.sizes / n
    squares, member = shares**2, np.eye(n_groups)[groups.code]
    residuals = known - (known @ member / groups.sizes)[:, groups.code]
    within = float(np.sum(residuals**2, axis=1).mean()) / (n - n_groups)
    expected = float(np.sum(squares * ((1 - shares) ** 2 + (squares.sum() - squares)) / (1 - shares)))
    drawn, alike = max(0.0, (variance - within / n) / expected), float(np.sum(squares))
    return result | {"between": n_groups * alike * drawn, "removed": (1 - alike) * n / (n - 1) * drawn}


def by_groups(parts: Mapping[str, float], groups: Mapping[str, Any] | None) -> dict[str, float]:
    """Return the components of a benchmark with those of its groups of tasks, for projections."""
    if groups is None or groups["reason"]:
        return dict(parts)
    items = [term for term in ("task", "agent:task") if term in parts]
    own = sum(parts[term] for term in items)
    remaining = max(0.0, 1 - groups["removed"] / own) if own else 0.0
    between = {GROUP: groups["between"]} if "between" in groups else {}
    return {**parts, **{term: remaining * parts[term] for term in items}, **between}


Estimand = Literal["finite", "domain"]
ESTIMANDS: tuple[Estimand, ...] = ("finite", "domain")
TARGETS = {"finite": "these tasks", "domain": "tasks like these"}
CHANGES = {
    "C": "twice as many groups of tasks",
    "N": "twice as many tasks",
    "V": "two prompts instead of one",
    "M": "two judges instead of one",
    "R": "two trials per task instead of one",
}
FACETS = {"prompt": "V", "judge": "M"}
HALVED, NEGLIGIBLE = math.sqrt(0.5), 1e-9  # share of a standard error whose variance is halved


def shown_estimands(groups: Mapping[str, Any] | None) -> tuple[Estimand, ...]:
    """Return the estimands that are shown: not ``domain`` where groups of tasks are at fault."""
    return ESTIMANDS[:1] if groups and groups["reason"] else ESTIMANDS


def doubled(
    se_of: Callable[[Mapping[str, int]], float],
    design: Mapping[str, int],
    reading: Reading,
    letters: Iterable[str],
) -> dict[str, float]:
    """Project the SE with twice as many levels of each facet, the smallest first, where that can be done."""
    se_with = {}
    for letter in letters:
        if letter in "NC" and reading.estimand == "finite":
            continue  # more tasks would be another target
        changed = "NC" if letter == "C" else letter  # twice as many groups have twice as many tasks
        try:
            se_with[letter] = se_of({**design, **{one: 2 * design[one] for one in changed}})
        except DStudyRefused:
            continue
    return dict(sorted(se_with.items(), key=lambda one: one[1]))


def advice(
    variances: Mapping[str, float],
    *,
    levels: Mapping[str, int],
    n_tasks: int,
    sensitivity: float | None,
    groups: Mapping[str, Any] | None = None,
    pooled_with: str = "",
    without_effect: Collection[str] = (),
) -> dict[str, Any]:
    """Compare what twice as many levels of each measured facet would do to an agent's standard error.

    One trial per task, with one prompt and one judge, is what they are compared with.

    variances: components of a benchmark: "task", "agent:task", …, "Residual".
    levels: levels of "prompt" and "judge" that were seen.
    sensitivity: σ_λ² of the panel of judges; None where one judge ran.
    groups: of `task_groups`; by default tasks are independent.
    without_effect: "judge" where judges never differed on a trial.
    pooled_with: the term that includes the noise of trials, "agent:task" or one with conditions.
    Returns: ``now``, the standard error by estimand; ``changes`` by estimand, each with ``change``, ``se``
        and ``share`` of the standard error now, the best first; ``unknown``, what was seen at one level;
        ``sentences``.
    """
    repeated = "agent:task" in variances and not pooled_with
    has_noise = "agent:task" in variances and pooled_with != "agent:task"
    measured = [facet for facet in FACETS if levels.get(facet, 1) > 1 and f"agent:{facet}" in variances]
    unknown = [f"{facet}s" for facet in FACETS if facet not in (*measured, *without_effect)]
    design = {"N": n_tasks, "R": 1, "V": 1, "M": 1, "H": 1}
    variances, estimands = by_groups(variances, groups), shown_estimands(groups)
    if groups and GROUP in variances:
        design["C"] = groups["n_groups"]
    letters = [
        *(["C"] if "C" in design else []),
        "N",
        *(["R"] if repeated else []),
        *(FACETS[facet] for facet in measured),
    ]
    result: dict[str, Any] = {"now": {}, "changes": {}, "unknown": unknown + ([] if repeated else ["trials"])}
    for estimand in estimands if has_noise else estimands[1:]:
        reading = Reading(estimand=estimand)

        def se_of(changed: Mapping[str, int], reading: Reading = reading) -> float:
            return math.sqrt(math.fsum(agent_contributions(variances, {}, changed, reading)[0].values()))

        try:
            now = se_of(design)
        except DStudyRefused:
            continue
        result["now"][estimand] = now
        ses = doubled(se_of, design, reading, letters)
        result["changes"][estimand] = [
            {"change": CHANGES[letter], "se": se, "share": se / now} for letter, se in ses.items()
        ]
    agreed = [
        f"{'Both' if levels[one] == 2 else f'All {levels[one]}'} {one}s agreed on every trial."
        for one in without_effect
    ]
    return result | {"sentences": [*_sentences(result, measured, levels, sensitivity), *agreed]}


def _sentences(
    result: Mapping[str, Any], measured: Sequence[str], levels: Mapping[str, int], sensitivity: float | None
) -> Iterator[str]:
    for estimand, changes in result["changes"].items():
        parts = [f"{1 - one['share']:.0%} smaller with {one['change']}" for one in changes]
        # twice as many of what all the variance is divided by says nothing of these data
        if any(abs(one["share"] - HALVED) > NEGLIGIBLE for one in changes):
            alone = enumerated([f"one {facet}" for facet in measured])
            under = f" under {alone}" if alone else ""
            yield f"For {TARGETS[estimand]}, one agent's error bar{under} is {enumerated(parts)}."
    if result["unknown"]:
        names = enumerated(result["unknown"])
        yield f"The effect of more {names} was not measured."
    if sensitivity is not None:
        yield (
            f"The means of the {levels['judge']} judges have a standard deviation of "
            f"{100 * math.sqrt(sensitivity):.1f} points. It matters where agents have different judges."
        )


NOT_APART = "run-to-run noise separate from"
ONE_TRIAL = "judges scored the same one trial of a task"
ITEM, RESIDUAL = "item", "Residual"
LEVELS = {"N": "task", "V": "prompt", "M": "judge", "H": "temperature"}
RANDOM = {
    "prompt": (("prompt", "agent:prompt"), "V"),
    "item:prompt": (("task:prompt", "agent:task:prompt"), "NV"),
    "item:judge": (("task:judge", "agent:task:judge"), "NM"),
    "item:temperature": (("agent:task:temperature",), "NH"),
    "item:prompt:judge": (("agent:task:prompt:judge",), "NVM"),
    "item:prompt:temperature": (("agent:task:prompt:temperature",), "NVH"),
    "item:judge:temperature": (("agent:task:judge:temperature",), "NMH"),
    "item:prompt:judge:temperature": (("agent:task:prompt:judge:temperature",), "NVMH"),
}
PANELS = {"judge": ((), "M"), "temperature": (("agent:temperature",), "H")}
ADDED = {"agent:judge": "M", "agent:run": "R", "agent:task:trial": "NVHR"}


def project_agent(
    result: Mapping[str, Any], design: Mapping[str, int], *, estimand: str, sensitivity: str
) -> dict[str, Any]:
    """Project Var(θ̂) of one agent's mean, with its judges, full runs and shared trials, see `ADDED`.

    result: the result of `analytics.tee.benchmark.variance_study`, available.
    design: proposed levels by letter; what is absent is as in the study, and R is 1. C, groups of tasks that
        are drawn, are then at most the tasks.
    Raises DStudyRefused: as `analytics.tee.dstudy.project`: replicates of a pooled residual, nothing that
        varies, …; ``finite`` or R above 1 where judges scored the same one trial of a task; and ``domain``
        where groups of tasks have a role and tell nothing.
    """
    whole = {letter: result["levels"][facet] for letter, facet in LEVELS.items()} | {"R": 1} | dict(design)
    reading = Reading(estimand=cast(Any, estimand), sensitivity=cast(Any, sensitivity))
    groups = result.get("groups")
    if estimand == "domain" and groups and groups["reason"]:
        raise DStudyRefused(groups["reason"])
    for reason in result["not_measured"]:
        if ONE_TRIAL in reason and (estimand == "finite" or whole["R"] > 1):
            raise DStudyRefused(
                f"not measured: {reason}; only one trial, for tasks like these, can be projected"
            )
        if NOT_APART in reason and whole["R"] > 1:
            raise DStudyRefused(f"not measured: {reason}; leave R at 1")
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
    """Return the parts of Var(θ̂) of an agent's mean, and the components conditioned on."""
    reading = replace(reading, categories="sampled")
    projection = project(agent_components(parts, fixed), design, reading)
    added = {
        term: parts[term] / math.prod(design.get(letter, 1) for letter in letters)
        for term, letters in ADDED.items()
        if term in parts
    }
    return dict(projection.contributions) | added, projection.left_out


def as_seen(levels: Mapping[str, int], parts: Mapping[str, float]) -> dict[str, int]:
    """Return N, V, M and H of a study; 1 of a facet whose effect it does not tell.

    parts: terms of the fit.
    """
    known = {"task", *(facet for facet in levels if f"agent:{facet}" in parts)}
    return {letter: levels[facet] if facet in known else 1 for letter, facet in LEVELS.items()}


def agent_components(parts: Mapping[str, float], fixed: Mapping[str, float]) -> Components:
    """Return the components of one agent's mean, outcome², with contrasts such as ``judge[j2]``."""
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
