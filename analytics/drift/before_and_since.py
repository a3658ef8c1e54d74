"""Agents before and since the subset was fixed, by permutation: noise of trials, new scaffolds, band erosion.

Band erosion: tasks that left the band that they were chosen by, beyond what other agents would move.

Source: Ndzomga, *Efficient Benchmarking of AI Agents*, §6 (erosion). Phipson & Smyth, *Permutation p-values
should never be zero*, 2010. The rest is this project's own.
"""

from collections.abc import Callable, Sequence
from datetime import date
from typing import NamedTuple

import numpy as np

from analytics.arrays import FloatArray, Mask, ratio
from analytics.drift.monitor import (
    LEVEL,
    MIN_AGENTS,
    N_LATEST,
    Look,
    Monitor,
    State,
    at,
    declare,
    insufficient,
    last_look,
    members,
    permutation_p,
    permuted,
    same_length,
)
from analytics.resampling import generator
from analytics.text import counted

NOISE = declare(
    "run-to-run noise",
    "run one of the first agents again, twice: the harness or a provider may have changed",
    unseen="run new agents twice on each task",
)
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
            f"agents with repeated trials: {n_before} before, on ranking tasks chosen without them, and "
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


NOVELTY = declare(
    "scaffold novelty", "ask one agent of each new scaffold for a full run", runs_help="unless staged"
)
NOVELTY_WARN = 0.5


def scaffold_novelty(
    before: Sequence[str],
    since: Sequence[str],
    agents: Sequence[str],
    dates: Sequence[date | None],
    seed: int,
) -> Monitor:
    """Test, at looks of 10, 20, 40, … agents, whether more have a scaffold unseen when S was chosen."""
    same_length(since, agents, dates)
    look = last_look(len(agents))
    if look is None or len(before) < MIN_AGENTS:
        counts = f"agents: {len(before)} before the ranking tasks were fixed and {len(agents)} since"
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


EROSION = declare(
    "band erosion", "choose new ranking tasks from the latest full runs", runs_help="unless staged"
)
EDGE_TOLERANCE = 1e-9
EROSION_WARN_TIMES, ALERT_TIMES = 5.0, 2.0
WARN_EXCESS, ALERT_EXCESS = 0.10, 0.20
CHUNK_CELLS = 100_000
STATES: tuple[State, ...] = ("ok", "warn", "alert")

Edges = Sequence[tuple[float, float]]


def band_erosion(
    selected: FloatArray,
    since: FloatArray,
    tasks: Sequence[str],
    edges: Edges,
    agents: Sequence[str],
    dates: Sequence[date | None],
    seed: int,
    *,
    window: int = N_LATEST,
) -> Monitor:
    """Test, at looks of 10, 20, 40, … new complete agents, whether tasks of the band left it.

    selected: (n_reference, n_tasks); mean outcomes of the agents that S was chosen from; NaN: missing.
    since: (n_agents, n_tasks); of the complete agents that came later, in time order.
    edges: the bands tried, in order; the next one where under a tenth of the tasks lies in it.
    """
    same_length(since, agents, dates)
    look = last_look(len(agents))
    if look is None or len(selected) < MIN_AGENTS:
        chosen_from = counted(len(selected), "complete agent")
        counts = f"the ranking tasks were chosen from {chosen_from}, and {len(agents)} came since"
        return insufficient(EROSION, f"{counts}; {MIN_AGENTS} each are needed")
    latest = since[max(0, look.size - window) : look.size]
    band, far = _left(_rates(selected), _rates(latest), edges)
    if not band.any():
        return insufficient(
            EROSION,
            "no task has a pass rate in the range for the agents that the ranking tasks were chosen from",
        )
    k, n_out = int(band.sum()), np.count_nonzero(far)
    rng = generator(seed, EROSION, look.number)
    observed = n_out / k, float(far.sum()) / k
    drawn = permuted(look, _draws(selected, latest, edges, k, rng), *observed)
    share, distance = (_tested(*pair, look) for pair in zip(observed, drawn, strict=True))
    decisive = max(share, distance, key=lambda one: (STATES.index(one[2]), -one[0]))
    p, _, state = decisive
    left = [tasks[j] for j in np.flatnonzero(far[0]).tolist()]
    of_agents = look.latest(len(latest), "new agents with full runs")
    reason = (
        f"{n_out} of {counted(k, 'task')} left the limits of the pass rate for {of_agents}: "
        f"{observed[0]:.0%}, where chance alone gives {observed[0] - share[1]:.0%}"
    )
    if decisive is distance:
        reason += (
            f"; on average, tasks lie {observed[1]:.0%} of the way from the limits to 0% or 100%, where "
            f"chance alone gives {observed[1] - distance[1]:.0%}"
        )
    evidence = {
        "tasks": left,
        "share": observed[0],
        "excess": share[1],
        "distance": observed[1],
        "distance_excess": distance[1],
        "look": at(look.size - 1, agents, dates),
    }
    level, bound = ALERT_TIMES * look.level, ALERT_TIMES * LEVEL
    return Monitor(EROSION, state, p, level, f"{reason}; p {p:.2g}", evidence, false_alerts_at_most=bound)


def _tested(observed: float, drawn: FloatArray, look: Look) -> tuple[float, float, State]:
    """p, doubled for two tests, the excess against what permutations give, and what they say."""
    p, excess = min(1.0, 2 * permutation_p(observed, drawn)), observed - float(np.nanmean(drawn))
    if p <= ALERT_TIMES * look.level and excess > ALERT_EXCESS:
        return p, excess, "alert"
    return p, excess, "warn" if p <= EROSION_WARN_TIMES * look.level and excess > WARN_EXCESS else "ok"


def _rates(outcomes: FloatArray) -> FloatArray:
    valid = ~np.isnan(outcomes)
    return ratio(np.nansum(outcomes, axis=0)[None], np.count_nonzero(valid, axis=0)[None])


def _left(chosen: FloatArray, windowed: FloatArray, edges: Edges) -> tuple[Mask, FloatArray]:
    """Tasks of the band with a rate in the window, and d of each, 0 outside: (n_sets, n_tasks)."""
    band, far = np.zeros(chosen.shape, np.bool_), np.zeros(chosen.shape)
    open_sets, known = np.arange(len(chosen)), ~np.isnan(windowed)
    for lo, hi in edges:
        band[open_sets] = _within(chosen[open_sets], lo, hi)
        counted_here = band[open_sets] & known[open_sets]
        rates = windowed[open_sets]
        below, above = (lo - rates) / max(lo, EDGE_TOLERANCE), (rates - hi) / max(1.0 - hi, EDGE_TOLERANCE)
        far[open_sets] = np.where(
            counted_here, np.where(_within(rates, lo, hi), 0.0, np.maximum(below, above)), 0.0
        )
        thin = 10 * np.count_nonzero(band[open_sets], axis=1) < chosen.shape[1]
        open_sets = open_sets[thin]
        if not open_sets.size:
            break
    return band & known, far


def _within(rates: FloatArray, lo: float, hi: float) -> Mask:
    return (rates >= lo - EDGE_TOLERANCE) & (rates <= hi + EDGE_TOLERANCE)


def _draws(
    selected: FloatArray, latest: FloatArray, edges: Edges, k: int, rng: np.random.Generator
) -> Callable[[int], FloatArray]:
    """Return what gives T_π and D_π of so many permutations, (2, n_draws)."""
    both = np.concatenate([selected, latest])
    cells = np.stack([np.nan_to_num(both), (~np.isnan(both)).astype(np.float64)])
    everywhere, totals = bool(cells[1].all()), cells.sum(axis=1)

    def rates(members: FloatArray) -> tuple[FloatArray, FloatArray]:
        if everywhere:
            sums = members @ cells[0]
            return sums / len(selected), (totals[0] - sums) / len(latest)
        sums, counts = members @ cells
        return ratio(sums, counts, 0.5), ratio(totals[0] - sums, totals[1] - counts, 0.5)

    def draw(n_draws: int) -> FloatArray:
        chunk, counts = max(1, CHUNK_CELLS // both.shape[1]), []
        chosen = members(rng, n_draws, len(both), len(selected))
        for start in range(0, n_draws, chunk):
            band, far = _left(*rates(chosen[start : start + chunk]), edges)
            counts.append((np.count_nonzero(far, axis=1), np.count_nonzero(band, axis=1), far.sum(axis=1)))
        n_out, sizes, went = (np.concatenate(part).astype(np.float64) for part in zip(*counts, strict=True))
        return np.stack([ratio(n_out, sizes), went / k])

    return draw
