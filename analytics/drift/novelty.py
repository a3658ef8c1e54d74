"""Whether agents are more often of a kind that the subset was not chosen on than they always were.

Source: This project's own. Phipson & Smyth, *Permutation p-values should never be zero*, 2010 (p).
"""

from collections.abc import Callable, Sequence
from datetime import date

import numpy as np

from analytics.arrays import FloatArray
from analytics.drift.looks import last_look, members, permutation_p, permuted
from analytics.drift.monitor import MIN_AGENTS, N_LATEST, Monitor, State, at, insufficient, same_length
from analytics.resampling import generator

NAME = "scaffold novelty"
NOVELTY_WARN = 0.5
WARN_TIMES = 5.0


def scaffold_novelty(
    before: Sequence[str],
    since: Sequence[str],
    agents: Sequence[str],
    dates: Sequence[date | None],
    seed: int,
) -> Monitor:
    """Test, at looks of 10, 20, 40, … agents, whether more have a scaffold unseen when S was chosen.

    before: (n_before,); scaffolds of the agents before.
    since, agents, dates: (n_agents,); scaffolds of the agents since, in time order, and who they are.
    seed: of the permutations.
    """
    same_length(since, agents, dates)
    look = last_look(len(agents))
    if look is None or len(before) < MIN_AGENTS:
        counts = f"agents: {len(before)} before the subset was fixed and {len(agents)} since"
        return insufficient(NAME, f"{counts}; {MIN_AGENTS} each are needed")
    first, known = max(0, look.size - N_LATEST), frozenset(before)
    latest = since[first : look.size]
    new = [agents[first + i] for i, scaffold in enumerate(latest) if scaffold not in known]
    share = len(new) / len(latest)
    draw = _draws(before, latest, generator(seed, NAME, look.number))
    p, limit = permutation_p(len(new), permuted(look, draw, len(new))[0]), WARN_TIMES * look.level
    state: State = "warn" if p <= limit and share > NOVELTY_WARN else "ok"
    reason = f"{len(new)} of the latest {len(latest)} agents have a scaffold unseen before; p {p:.2g}"
    evidence = {"agents": new, "share": share, "look": at(look.size - 1, agents, dates)}
    return Monitor(NAME, state, p, limit, reason, evidence)


def _draws(
    before: Sequence[str], latest: Sequence[str], rng: np.random.Generator
) -> Callable[[int], FloatArray]:
    names, codes = np.unique([*before, *latest], return_inverse=True)
    has = np.zeros((codes.size, names.size))
    has[np.arange(codes.size), codes] = 1.0
    counts = has.sum(axis=0)

    def draw(n_draws: int) -> FloatArray:
        drawn = members(rng, n_draws, codes.size, len(latest)) @ has
        return np.asarray([(drawn > counts - 0.5) @ counts], dtype=np.float64)

    return draw
