"""Whether agents are of a kind that the subset was not chosen on."""

from collections.abc import Sequence

from analytics.drift.monitor import N_LATEST, Monitor, State, insufficient, same_length

NOVELTY_WARN = 0.5


def scaffold_novelty(scaffolds: Sequence[str], known: frozenset[str], agents: Sequence[str]) -> Monitor:
    """Share of the latest 20 agents with a scaffold unseen when S was chosen.

    Parameters
    ----------
    scaffolds, agents : sequences of str, (n_agents,)
        Of the agents since, in time order.
    known : frozenset of str
        Scaffolds of the agents before.

    Raises
    ------
    SeriesMismatch
    """
    same_length(scaffolds, agents)
    latest = list(zip(agents[-N_LATEST:], scaffolds[-N_LATEST:], strict=True))
    if len(latest) < N_LATEST:
        reason = f"{len(latest)} agents since the subset was chosen; {N_LATEST} are needed"
        return insufficient("scaffold novelty", reason)
    new = [agent for agent, scaffold in latest if scaffold not in known]
    share = len(new) / len(latest)
    reason = f"{len(new)} of the latest {len(latest)} agents have a new scaffold"
    state: State = "warn" if share > NOVELTY_WARN else "ok"
    return Monitor("scaffold novelty", state, share, NOVELTY_WARN, reason, {"agents": new})
