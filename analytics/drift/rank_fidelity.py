"""Whether the subset still ranks like the rest, on full runs that were not asked for because of their rank.

Source: Ndzomga, *Efficient Benchmarking of AI Agents*, §5.1 and §6 (ρ < .75). Fieller, Hartley & Pearson,
*Tests for rank correlation coefficients*, Biometrika 1957 (1.06).
"""

import math
from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from scipy.special import ndtr, ndtri

from analytics.arrays import FloatArray
from analytics.drift.fidelity import rank_fidelity, spearman
from analytics.drift.looks import LEVEL, Look, last_look
from analytics.drift.monitor import MIN_AGENTS, Monitor, State, at, insufficient, same_length
from analytics.text import counted

NAME = "rank fidelity"
FIRST_RUNS = 12
WARN_TIMES = 5.0
MIN_FALL = 0.10
RHO_LIMIT = 0.75
POWER = 0.8


class OnAndOff(NamedTuple):
    """Means of agents on the subset and on the tasks outside it, (n_agents,) each."""

    subset_means: FloatArray
    rest_means: FloatArray


class _Fall(NamedTuple):
    rho_ref: float
    rho_new: float
    p: float
    could_notice: float
    power_if_lost: float


def subset_fidelity(
    reference: OnAndOff,
    since: OnAndOff,
    full_scores: FloatArray,
    rho_null: float | None,
    agents: Sequence[str],
    dates: Sequence[date | None],
) -> Monitor:
    """Test, at looks of 12, 20, 40, … full runs, whether ρ with the tasks outside S fell.

    reference: nested records of the agents that S was chosen from.
    since: of agents drawn at random, or complete when they came, in time order.
    full_scores: (n_runs,); of those since, 0 to 1.
    rho_null: ρ₀ of the subset.
    agents, dates: (n_runs,).
    """
    same_length(*since, full_scores, agents, dates)
    same_length(*reference)
    look, n_ref = last_look(len(agents), first=FIRST_RUNS), len(reference.subset_means)
    if look is None or n_ref < MIN_AGENTS:
        runs = counted(len(agents), "full run")
        counts = f"{runs} since the subset was chosen from {counted(n_ref, 'agent')}"
        return insufficient(NAME, f"{counts}; {FIRST_RUNS} and {MIN_AGENTS} are needed")
    fidelity = rank_fidelity(since.subset_means[: look.size], full_scores[: look.size], rho_null)
    with_full = {
        "rho_full": fidelity.rho,
        "lower": fidelity.lower,
        "skill": fidelity.skill,
        "rho_null": rho_null,
    }
    fall = _fall(reference, OnAndOff(*(part[: look.size] for part in since)), look)
    if fall is None:
        return insufficient(NAME, "all agents are equal on the subset, or outside it: no order", with_full)
    evidence = with_full | fall._asdict() | {"look": at(look.size - 1, agents, dates), "n_reference": n_ref}
    if fall.power_if_lost >= POWER:
        notices = f"they would show a fall to {fall.could_notice:.2f} with probability {POWER}"
    else:
        notices = (
            f"they would show even an order that is lost with probability {fall.power_if_lost:.2f} alone"
        )
    reason = (
        f"rho with the tasks outside the subset is {fall.rho_new:.2f} in {look.size} full runs and was "
        f"{fall.rho_ref:.2f} in the {n_ref} agents before, p {fall.p:.2g}; {notices}"
    )
    if fidelity.rho is not None:
        below = ", below .75" if fidelity.rho < RHO_LIMIT else ""
        reason += f"; rho with the full score {fidelity.rho:.2f}{below}"
    state: State = "ok"
    if fall.rho_ref - fall.rho_new > MIN_FALL and fall.p <= WARN_TIMES * look.level:
        state = "alert" if fall.p <= look.level else "warn"
    return Monitor(NAME, state, fall.p, look.level, reason, evidence, false_alerts_at_most=LEVEL)


def _fall(reference: OnAndOff, since: OnAndOff, look: Look) -> _Fall | None:
    before, now = spearman(*reference), spearman(*since)
    if before is None or now is None:
        return None
    n_ref, n_new = len(reference.subset_means), look.size
    se = math.sqrt(1.06 / (n_ref - 3) + 1.06 / (n_new - 3))
    z_ref, z_new = _fisher(before, n_ref), _fisher(now, n_new)
    limit = float(-ndtri(look.level))
    return _Fall(
        rho_ref=before,
        rho_new=now,
        p=float(ndtr(-(z_ref - z_new) / se)),
        could_notice=min(math.tanh(z_ref - (limit + float(ndtri(POWER))) * se), before - MIN_FALL),
        power_if_lost=float(ndtr(z_ref / se - limit)),
    )


def _fisher(rho: float, n: int) -> float:
    """Take atanh ρ, with |ρ| at most half a swap of neighbours below 1: 1 − 6/(n(n² − 1))."""
    largest = 1.0 - 6.0 / (n * (n * n - 1.0))
    return math.atanh(min(max(rho, -largest), largest))
