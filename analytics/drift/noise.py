"""Whether repeated trials of a task agree less than they did.

Source: Phipson & Smyth, *Permutation p-values should never be zero*, 2010 (p). ω̂ as in
`analytics.differences`.
"""

from collections.abc import Callable, Sequence
from datetime import date
from typing import NamedTuple

import numpy as np

from analytics.arrays import FloatArray
from analytics.drift.looks import LEVEL, last_look, members, permutation_p, permuted
from analytics.drift.monitor import MIN_AGENTS, Monitor, State, at, insufficient, same_length
from analytics.resampling import generator

NAME = "run-to-run noise"
WARN_TIMES = 5.0


class Noise(NamedTuple):
    """What each agent adds to ω̂: Σ_j s²_ij and m_i·ȳ_i(1 − ȳ_i), (n_agents,) each, in time order."""

    variances: FloatArray
    binomial: FloatArray


def noise_of(trial_variances: FloatArray, means: FloatArray) -> Noise:
    """Sum up the cells of each agent, (n_agents, n_tasks); a variance is NaN where no trial was repeated."""
    known = ~np.isnan(trial_variances)
    n = np.count_nonzero(known, axis=1)
    rates = np.sum(np.where(known, means, 0.0), axis=1) / np.maximum(n, 1)
    return Noise(np.nansum(trial_variances, axis=1), n * rates * (1.0 - rates))


def run_noise(
    reference: Noise, since: Noise, agents: Sequence[str], dates: Sequence[date | None], seed: int
) -> Monitor:
    """Test by permutation, at looks of 10, 20, 40, … agents, whether ω̂ rose.

    reference, since: of agents before and since the subset was fixed, with repeated trials, in time order.
    agents, dates: (n_agents,); of those since.
    seed: of the permutations.
    """
    same_length(*since, agents, dates)
    same_length(*reference)
    look, n_before = last_look(len(agents)), len(reference.variances)
    if look is None or n_before < MIN_AGENTS:
        counts = (
            f"agents with repeated trials: {n_before} before, on a subset chosen without them, and "
            f"{len(agents)} since"
        )
        return insufficient(NAME, f"{counts}; {MIN_AGENTS} each are needed")
    latest = Noise(*(part[: look.size] for part in since))
    before, now = (float(part.variances.sum() / part.binomial.sum()) for part in (reference, latest))
    draw = _draws(reference, latest, generator(seed, NAME, look.number))
    p = permutation_p(now - before, permuted(look, draw, now - before)[0])
    state: State = "alert" if p <= look.level else "warn" if p <= WARN_TIMES * look.level else "ok"
    reason = f"noise {now:.2f} of the binomial variance in {look.size} agents, {before:.2f} before; p {p:.2g}"
    evidence = {"since": now, "before": before, "look": at(look.size - 1, agents, dates)}
    return Monitor(NAME, state, p, look.level, reason, evidence, false_alerts_at_most=LEVEL)


def _draws(reference: Noise, since: Noise, rng: np.random.Generator) -> Callable[[int], FloatArray]:
    both = np.stack([np.concatenate(pair) for pair in zip(since, reference, strict=True)], axis=1)

    def draw(n_draws: int) -> FloatArray:
        sums = members(rng, n_draws, len(both), len(since.variances)) @ both
        others = both.sum(axis=0) - sums
        return np.asarray([sums[:, 0] / sums[:, 1] - others[:, 0] / others[:, 1]], dtype=np.float64)

    return draw
