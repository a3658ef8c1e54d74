"""Whether the subset is solved.

Source
------
Ndzomga, *Efficient Benchmarking of AI Agents*, §6. Wilson, *Probable inference*, JASA 1927.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from analytics.arrays import FloatArray
from analytics.drift.monitor import Monitor, insufficient, same_length
from analytics.text import counted

SATURATED = 0.95


def saturation(subset_means: FloatArray, k: int, agents: Sequence[str], pass_rates: FloatArray) -> Monitor:
    """Lower Wilson bound of the best agent's mean over S, at a one-sided level of .05/n.

    Parameters
    ----------
    subset_means : float array, (n_agents,)
        Of the ranked agents.
    k : int
        Tasks of S; repeated trials are not counted, since tasks are what saturates.
    agents : sequence of str, (n_agents,)
    pass_rates : float array, (k,)
        For the share of tasks above 95%, told as evidence.

    Raises
    ------
    SeriesMismatch
    """
    same_length(subset_means, agents)
    if not len(agents) or k < 1:
        return insufficient("saturation", "no agent is ranked")
    best = int(np.argmax(subset_means))
    bound = wilson_lower(float(subset_means[best]), k, 0.05 / len(agents))
    easy = float(np.mean(pass_rates[~np.isnan(pass_rates)] > SATURATED)) if pass_rates.size else None
    bounded = f"at 95% confidence at least {bound:.1%}"
    reason = f"{agents[best]} has {subset_means[best]:.1%} of {counted(k, 'task')} ({bounded})"
    evidence = {"agent": agents[best], "share_of_tasks_above_95": easy}
    return Monitor("saturation", "alert" if bound >= SATURATED else "ok", bound, SATURATED, reason, evidence)


def wilson_lower(p: float, n: int, alpha: float) -> float:
    """Lower Wilson bound (p + z²/2n − z·√(p(1−p)/n + z²/4n²))/(1 + z²/n), one-sided at `alpha`."""
    z = float(-ndtri(alpha))
    centre, spread = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (centre - spread) / (1 + z * z / n)
