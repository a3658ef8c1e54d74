"""Whether the subset still ranks like the rest, on full runs that were not requested because of their rank.

`published_order` asks whether agents that were drawn to run everything stand as their estimates said.

Source: Ndzomga, *Efficient Benchmarking of AI Agents*, §5.1 and §6 (ρ < .75). Fieller, Hartley & Pearson,
*Tests for rank correlation coefficients*, Biometrika 1957 (1.06). .92 is what a verdict needs for *mostly*
(`selection.standings.verdict`).
"""

import math
from collections.abc import Sequence
from datetime import date
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from analytics.arrays import DECIMALS, FloatArray
from analytics.drift.monitor import (
    LEVEL,
    MIN_AGENTS,
    Monitor,
    State,
    at,
    declare,
    insufficient,
    last_look,
    same_length,
)
from analytics.drift.rank_correlation import skill, spearman, spearman_interval
from analytics.text import counted

NAME = declare(
    "rank fidelity",
    "ask 8 agents drawn at random for full runs; where they confirm it, choose new ranking tasks from the "
    "complete agents",
    unseen="ask agents drawn at random for full runs, until there are 12",
)
FIRST_RUNS = 12
WARN_TIMES = 5.0
MIN_FALL = 0.10
RHO_LIMIT = 0.75
POWER = 0.8


class OnAndOff(NamedTuple):
    """Means of agents on the subset and on the tasks outside it, (n_agents,) each."""

    subset_means: FloatArray
    rest_means: FloatArray


def subset_fidelity(
    reference: OnAndOff,
    since: OnAndOff,
    full_scores: FloatArray,
    rho_null: float | None,
    agents: Sequence[str],
    dates: Sequence[date | None],
) -> Monitor:
    """Test, at looks of 12, 20, 40, … full runs, whether ρ with the tasks outside S fell.

    reference, since: of the agents that S was chosen from, nested; drawn or complete when they came.
    """
    same_length(*since, full_scores, agents, dates)
    same_length(*reference)
    look, n_ref = last_look(len(agents), first=FIRST_RUNS), len(reference.subset_means)
    if look is None or n_ref < MIN_AGENTS:
        runs = counted(len(agents), "full run")
        counts = f"{runs} since the ranking tasks were chosen from {counted(n_ref, 'agent')}"
        takes = f"it takes {FIRST_RUNS} full runs, and {MIN_AGENTS} agents to choose from"
        return insufficient(NAME, f"{counts}; {takes}")
    with_scores = since.subset_means[: look.size], full_scores[: look.size]
    rho_full, interval = spearman(*with_scores), spearman_interval(*with_scores)
    with_full = {
        "rho_full": rho_full,
        "lower": interval[0] if interval else None,
        "skill": skill(rho_full, rho_null),
        "rho_null": rho_null,
    }
    before, now = spearman(*reference), spearman(*(part[: look.size] for part in since))
    if before is None or now is None:
        return insufficient(
            NAME, "all agents are equal on the ranking tasks or on the other tasks: no order", with_full
        )
    se = math.sqrt(1.06 / (n_ref - 3) + 1.06 / (look.size - 3))
    z_ref, z_new, limit = _fisher(before, n_ref), _fisher(now, look.size), float(-ndtri(look.level))
    p = float(ndtr(-(z_ref - z_new) / se))
    could_notice = min(math.tanh(z_ref - (limit + float(ndtri(POWER))) * se), before - MIN_FALL)
    power_if_lost = float(ndtr(z_ref / se - limit))
    evidence: dict[str, Any] = with_full | {
        "rho_ref": before,
        "rho_new": now,
        "p": p,
        "could_notice": could_notice,
        "power_if_lost": power_if_lost,
        "look": at(look.size - 1, agents, dates),
        "n_reference": n_ref,
    }
    if power_if_lost >= POWER:
        notices = f"a fall to {could_notice:.2f} would be noticed {POWER:.0%} of the time"
    else:
        notices = f"even if the order were lost, this would be noticed only {power_if_lost:.0%} of the time"
    reason = (
        f"rank correlation with the other tasks: {now:.2f} in {look.size} full runs, {before:.2f} in the "
        f"{n_ref} agents before (p {p:.2g}); {notices}"
    )
    if rho_full is not None:
        below = ", below .75" if rho_full < RHO_LIMIT else ""
        reason += f"; rank correlation with the full score {rho_full:.2f}{below}"
    state: State = "ok"
    if before - now > MIN_FALL and p <= WARN_TIMES * look.level:
        state = "alert" if p <= look.level else "warn"
    return Monitor(NAME, state, p, look.level, reason, evidence, false_alerts_at_most=LEVEL)


def _fisher(rho: float, n: int) -> float:
    """Take atanh ρ, with |ρ| at most half a swap of neighbours below 1: 1 − 6/(n(n² − 1))."""
    largest = 1.0 - 6.0 / (n * (n * n - 1.0))
    return math.atanh(min(max(rho, -largest), largest))


PUBLISHED = declare(
    "published order",
    "look at the verdict: choose new ranking tasks, let more agents run on (policy podium), or ask for full "
    "runs",
)
MIN_SHARE = 0.92


def published_order(
    estimates: FloatArray,
    errors: FloatArray,
    scores: FloatArray,
    agents: Sequence[str],
    dates: Sequence[date | None],
) -> Monitor:
    """Test, at looks of 10, 20, 40, … agents, whether fewer pairs stand as published than was promised.

    estimates, errors: (n_agents,); what was published when each was stopped, and its standard error.
    scores: (n_agents,); of the full runs since, in the order in which these became known.
    """
    same_length(estimates, errors, scores, agents, dates)
    look = last_look(len(agents))
    if look is None:
        runs = counted(len(agents), "full run")
        return insufficient(PUBLISHED, f"{runs} of agents with a published estimate; {MIN_AGENTS} are needed")
    est, se, y = (part[: look.size] for part in (estimates, errors, scores))
    apart, true = (np.round(one[:, None] - one, DECIMALS) for one in (est, y))
    differ = true != 0.0
    if not differ.any():
        return insufficient(PUBLISHED, "all full scores are equal: no order")
    right = np.where(differ, (np.sign(apart) * np.sign(true) + 1.0) / 2.0, 0.0)
    share = float(right.sum() / differ.sum())
    promised = float(ndtr(np.abs(apart) / np.hypot(se[:, None], se))[differ].mean())
    n_pairs = np.maximum(differ.sum() - 2 * differ.sum(axis=1), 1)
    without = (right.sum() - 2.0 * right.sum(axis=1)) / n_pairs
    error = float(np.sqrt((look.size - 1) * np.mean((without - without.mean()) ** 2)))
    threshold = min(MIN_SHARE, promised)

    def upper(level: float) -> float:
        return min(share - float(ndtri(level)) * error, 1.0)

    state: State = "ok"
    if upper(WARN_TIMES * look.level) < threshold:
        state = "alert" if upper(look.level) < threshold else "warn"
    reason = (
        f"{share:.1%} of the pairs of {look.size} agents are in the published order, at most "
        f"{upper(look.level):.1%} if chance is allowed for; the estimates promised {promised:.1%}; an alert "
        f"is raised under {threshold:.1%}"
    )
    evidence = {
        "share": share,
        "se": error,
        "promised": promised,
        "n_pairs": int(differ.sum()) // 2,
        "n_agents": look.size,
        "look": at(look.size - 1, agents, dates),
    }
    return Monitor(
        PUBLISHED, state, upper(look.level), threshold, reason, evidence, false_alerts_at_most=LEVEL
    )
