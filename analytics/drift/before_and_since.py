"""Agents before and since the subset was fixed, by permutation: noise of trials, new scaffolds.

Source: This project's own. Phipson & Smyth, *Permutation p-values should never be zero*, 2010 (p).
"""

from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

import numpy as np

from analytics.arrays import FloatArray
from analytics.drift.monitor import (
    LEVEL,
    MIN_AGENTS,
    N_LATEST,
    Monitor,
    State,
    at,
    insufficient,
    last_look,
    members,
    permutation_p,
    permuted,
    same_length,
)
from analytics.resampling import generator

NOISE = "run-to-run noise"
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
    """Test by permutation, at looks of 10, 20, 40, … agents, whether ω̂ rose since the subset was fixed.

    reference, since: of agents with repeated trials; `agents` and `dates` are of those since.
    """
    same_length(*since, agents, dates)
    same_length(*reference)
    look, n_before = last_look(len(agents)), len(reference.variances)
    if look is None or n_before < MIN_AGENTS:
        counts = (
            f"agents with repeated trials: {n_before} before, on a subset chosen without them, and "
            f"{len(agents)} since"
        )
        return insufficient(NOISE, f"{counts}; {MIN_AGENTS} each are needed")
    latest = Noise(*(part[: look.size] for part in since))
    before, now = (float(part.variances.sum() / part.binomial.sum()) for part in (reference, latest))
    both = np.stack([np.concatenate(pair) for pair in zip(latest, reference, strict=True)], axis=1)
    rng = generator(seed, NOISE, look.number)

    def draw(n_draws: int) -> FloatArray:
        sums = members(rng, n_draws, len(both), look.size) @ both
        others = both.sum(axis=0) - sums
        return np.asarray([sums[:, 0] / sums[:, 1] - others[:, 0] / others[:, 1]], dtype=np.float64)

    p = permutation_p(now - before, permuted(look, draw, now - before)[0])
    state: State = "alert" if p <= look.level else "warn" if p <= WARN_TIMES * look.level else "ok"
    reason = f"noise {now:.2f} of the binomial variance in {look.size} agents, {before:.2f} before; p {p:.2g}"
    evidence = {"since": now, "before": before, "look": at(look.size - 1, agents, dates)}
    return Monitor(NOISE, state, p, look.level, reason, evidence, false_alerts_at_most=LEVEL)
    return draw


NOVELTY = "scaffold novelty"
NOVELTY_WARN = 0.5


def scaffold_novelty(
    before: Sequence[str],
    since: Sequence[str],
    agents: Sequence[str],
    dates: Sequence[date | None],
    seed: int,
) -> Monitor:
    """Test, at looks of 10, 20, 40, … agents, whether more have a scaffold unseen when S was chosen.

    before, since: scaffolds of the agents before, and of `agents` since.
    """
    same_length(since, agents, dates)
    look = last_look(len(agents))
    if look is None or len(before) < MIN_AGENTS:
        counts = f"agents: {len(before)} before the subset was fixed and {len(agents)} since"
        return insufficient(NOVELTY, f"{counts}; {MIN_AGENTS} each are needed")
    first, known = max(0, look.size - N_LATEST), frozenset(before)
    latest = since[first : look.size]
    new = [agents[first + i] for i, scaffold in enumerate(latest) if scaffold not in known]
    share = len(new) / len(latest)
    names, codes = np.unique([*before, *latest], return_inverse=True)
    has = np.zeros((codes.size, names.size))
    has[np.arange(codes.size), codes] = 1.0
    counts, rng = has.sum(axis=0), generator(seed, NOVELTY, look.number)

    def draw(n_draws: int) -> FloatArray:
        drawn = members(rng, n_draws, codes.size, len(latest)) @ has
        return np.asarray([(drawn > counts - 0.5) @ counts], dtype=np.float64)

    p, limit = permutation_p(len(new), permuted(look, draw, len(new))[0]), WARN_TIMES * look.level
    state: State = "warn" if p <= limit and share > NOVELTY_WARN else "ok"
    reason = f"{len(new)} of the latest {len(latest)} agents have a scaffold unseen before; p {p:.2g}"
    evidence = {"agents": new, "share": share, "look": at(look.size - 1, agents, dates)}
    return Monitor(NOVELTY, state, p, limit, reason, evidence)
