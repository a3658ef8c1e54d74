"""Whether agents are of a kind that the subset was not chosen on."""

from collections.abc import Sequence

from analytics.drift.monitor import FIRST_LOOK, N_LATEST, Monitor, insufficient, same_length
from analytics.text import counted

NOVELTY_WARN = 0.5


def scaffold_novelty(scaffolds: Sequence[str], known: frozenset[str], agents: Sequence[str]) -> Monitor:
    """Share of the latest 20 agents, at least 10, with a scaffold unseen when S was chosen."""
    same_length(scaffolds, agents)
    latest = list(zip(agents[-N_LATEST:], scaffolds[-N_LATEST:], strict=True))
    if len(latest) < FIRST_LOOK:
        reason = f"{counted(len(latest), 'agent')} since the subset was chosen; {FIRST_LOOK} are needed"
        return insufficient("scaffold novelty", reason)
    new = [agent for agent, scaffold in latest if scaffold not in known]
    share = len(new) / len(latest)
    reason = (
        f"{len(new)} of the latest {len(latest)} agents {'has' if len(new) == 1 else 'have'} a new scaffold"
    )
    return Monitor(
        "scaffold novelty",
        "warn" if share > NOVELTY_WARN else "ok",
        share,
        NOVELTY_WARN,
        reason,
        {"agents": new},
    )
