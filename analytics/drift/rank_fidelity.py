"""Whether the subset still ranks like the whole, on full runs that were not asked for because of their rank.

Source
------
Ndzomga, *Efficient Benchmarking of AI Agents*, §5.1 and §6 (ρ < .75).
"""

from collections.abc import Sequence

from analytics.arrays import FloatArray
from analytics.drift.fidelity import rank_fidelity
from analytics.drift.monitor import N_LATEST, Monitor, State, insufficient, same_length
from analytics.text import counted

N_FIDELITY_ALERT, N_FIDELITY_WARN = 12, 20
RHO_LIMIT, SKILL_LIMIT = 0.75, 0.5


def subset_fidelity(
    subset_means: FloatArray, full_scores: FloatArray, rho_null: float | None, agents: Sequence[str]
) -> Monitor:
    """Rank fidelity on full runs of agents drawn at random, or complete when they came, in time order.

    Parameters
    ----------
    subset_means, full_scores : float arrays, (n_runs,)
        0 to 1.
    rho_null : float or None
        ρ₀ of the subset.
    agents : sequence of str, (n_runs,)

    Raises
    ------
    SeriesMismatch
    """
    name = "rank fidelity"
    same_length(subset_means, full_scores, agents)
    means, scores, seen = subset_means[-N_LATEST:], full_scores[-N_LATEST:], list(agents[-N_LATEST:])
    if len(seen) < N_FIDELITY_ALERT:
        return insufficient(
            name,
            f"{counted(len(seen), 'full run')} since the subset was chosen; {N_FIDELITY_ALERT} are needed",
        )
    found = rank_fidelity(means, scores, rho_null)
    evidence = {"agents": seen, "skill": found.skill, "lower": found.lower, "rho_null": rho_null}
    if found.rho is None:
        return Monitor(name, "insufficient", None, None, dict(found.notes)["rho"], evidence)
    state = _fidelity_state(found.rho, found.skill, found.lower, len(seen))
    shown = f"rho {found.rho:.3f}" + (f", skill {found.skill:.3f}" if found.skill is not None else "")
    return Monitor(name, state, found.rho, RHO_LIMIT, f"{shown} on {len(seen)} full runs", evidence)


def _fidelity_state(rho: float, skill: float | None, lower: float | None, n: int) -> State:
    if rho < RHO_LIMIT or (skill is not None and skill < SKILL_LIMIT):
        return "alert"
    unsure = n >= N_FIDELITY_WARN and lower is not None and lower < RHO_LIMIT
    return "warn" if unsure else "ok"
