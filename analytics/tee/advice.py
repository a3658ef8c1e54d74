"""What would shorten an error bar: changes of the design that cost the same, over measured facets alone.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, Eqs. 3 and 8-10 (projections), Eq. 7
(sensitivity).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

from analytics.tee.agent_projection import agent_contributions
from analytics.tee.dstudy import DStudyRefused, Reading
from analytics.tee.grouped_tasks import GROUP, by_groups

Estimand = Literal["finite", "domain"]
ESTIMANDS: tuple[Estimand, ...] = ("finite", "domain")
TARGETS = {"finite": "these tasks", "domain": "tasks like these"}
CHANGES = {"C": "groups of tasks", "N": "tasks", "V": "prompts", "M": "judges", "R": "trials a task"}
FACETS = {"prompt": "V", "judge": "M"}


def shown_estimands(groups: Mapping[str, Any] | None) -> tuple[Estimand, ...]:
    """Return the estimands that are shown: not ``domain`` where groups of tasks are at fault."""
    return ESTIMANDS[:1] if groups and groups["reason"] else ESTIMANDS


def doubled(
    se_of: Callable[[Mapping[str, int]], float],
    design: Mapping[str, int],
    reading: Reading,
    letters: Iterable[str],
) -> dict[str, float]:
    """Project the standard error with twice as many levels of each measured facet, the smallest first.

    What cannot be projected is left out.
    """
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
) -> dict[str, Any]:
    """Compare what twice as many levels of each measured facet would do to an agent's standard error.

    variances: components of a benchmark: "task", "agent:task", …, "Residual".
    levels: levels of "prompt" and "judge" that were seen.
    sensitivity: σ_λ² of the panel of judges; None where one judge ran.
    groups: the result of `analytics.tee.grouped_tasks.task_groups`; by default tasks are independent.
    Returns: ``now``, the standard error by estimand; ``changes`` by estimand, each with ``change``, ``se``
        and ``share`` of the standard error now, the best first; ``unknown``, what was seen at one level;
        ``sentences``.
    """
    repeated = "agent:task" in variances
    measured = [facet for facet in FACETS if levels.get(facet, 1) > 1 and f"agent:{facet}" in variances]
    unknown = [f"{facet}s" for facet in FACETS if facet not in measured]
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
    for estimand in estimands if repeated else estimands[1:]:
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
            {"change": f"twice as many {CHANGES[letter]}", "se": se, "share": se / now}
            for letter, se in ses.items()
        ]
    return result | {"sentences": list(_sentences(result, levels, sensitivity))}


def _sentences(
    result: Mapping[str, Any], levels: Mapping[str, int], sensitivity: float | None
) -> Iterator[str]:
    for estimand, changes in result["changes"].items():
        if parts := [f"{1 - one['share']:.0%} shorter with {one['change']}" for one in changes]:
            yield (
                f"For {TARGETS[estimand]}, at the cost of twice as many outcomes, one agent's error bar "
                f"would be {', '.join(parts)}."
            )
    if result["unknown"]:
        *others, last = result["unknown"]
        names = f"{', '.join(others)} and {last}" if others else last
        yield f"Unknown, since only one level was seen: what more {names} would do."
    if sensitivity is not None:
        yield (
            f"The {levels['judge']} judges differ by {100 * math.sqrt(sensitivity):.1f} points (the standard "
            "deviation of their main effects): agents that did not share judges differ by that too. It "
            "belongs to this panel, and is no part of the error of agents that shared it."
        )
