"""What groups of tasks change in the error of one agent's mean for tasks like these: a D-study by groups.

Source: Searle, Casella & McCulloch, *Variance Components*, 1992, §3.6 (one-way moments). Bell & McCaffrey,
*Survey Methodology* 28 (2002) 169-181 (CR2; its expectation under σ_γ² is worked out here).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from analytics.arrays import FloatArray
from analytics.differences.groups import Groups, mean_variance

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
