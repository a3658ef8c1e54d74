"""Whether tasks left the band that they were chosen by, beyond what a new choice of agents would move.

Model
-----
The tasks of the band are those whose pass rate over the n₀ agents of the selection set lies in it; T is the
share of them whose pass rate over a window of later agents lies outside. Pass rates of a few agents move over
the edges by chance alone, so T is large on any board. Were all agents alike, those of the selection set and
of the window could be exchanged::

    p = (1 + #{T_π ≥ T}) / (1 + draws),      excess = T − mean of T_π

with T_π after a permutation π of the agents between the two, **the band selected anew** (widened where it is
thin, as the rule of the board has it). A permutation needs the column sums alone: those of its selection set
are one matrix product, those of its window what is left.

Symbols
-------
=======  =================  ============================================  ========
symbol   code               shape                                         unit
=======  =================  ============================================  ========
X        ``selected``       (n₀, n_tasks), NaN: missing                   0 to 1
         ``since``          (n_agents, n_tasks), later, in time order     0 to 1
T        ``statistic``      scalar                                        share
=======  =================  ============================================  ========

Not done here
-------------
A strategy that does not choose by the band, and tasks kept by hysteresis: what is watched is the band of the
agents that the subset was chosen from.

Source
------
Ndzomga, *Efficient Benchmarking of AI Agents*, §6. Phipson & Smyth, *Permutation p-values should never be
zero*, 2010.
"""

from collections.abc import Sequence
from datetime import date

import numpy as np

from analytics.arrays import FloatArray, Mask
from analytics.drift.looks import LEVEL, Look, last_look, permutation_p
from analytics.drift.monitor import N_FEWEST, N_LATEST, Monitor, State, at, insufficient, same_length
from analytics.resampling import generator

NAME = "band erosion"
EDGE_TOLERANCE = 1e-9
WARN_TIMES, ALERT_TIMES = 5.0, 2.0
WARN_EXCESS, ALERT_EXCESS = 0.10, 0.20
CHUNK_CELLS = 250_000

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

    Parameters
    ----------
    selected : float array, (n_reference, n_tasks)
        Mean outcomes on all active tasks of the agents that S was chosen from; NaN where missing.
    since : float array, (n_agents, n_tasks)
        Of the complete agents that came later, in time order.
    tasks : sequence of str, (n_tasks,)
    edges : sequence of (float, float)
        The bands tried, in order; the next one where under a tenth of the tasks lies in it.
    agents, dates : sequences, (n_agents,)
        Of the later ones.
    seed : int
        Of the permutations.
    window : int
        Latest agents at a look that pass rates are taken over.

    Raises
    ------
    SeriesMismatch
    """
    same_length(since, agents, dates)
    look = last_look(len(agents))
    if look is None or len(selected) < N_FEWEST:
        counts = f"the subset was chosen from {len(selected)} complete agents, and {len(agents)} came since"
        return insufficient(NAME, f"{counts}; {N_FEWEST} each are needed")
    latest = since[max(0, look.size - window) : look.size]
    band, out = _left(_rates(selected), _rates(latest), edges)
    if not band.any():
        return insufficient(NAME, "no task lies in the band of the agents that the subset was chosen from")
    share = float(out.sum() / band.sum())
    draws = _permuted(selected, latest, edges, look, seed)
    p, excess = permutation_p(share, draws), share - float(np.nanmean(draws))
    left = [tasks[j] for j in np.flatnonzero(out[0]).tolist()]
    reason = (
        f"{len(left)} of {int(band.sum())} tasks left the band in the latest {len(latest)} of {look.size} "
        f"new complete agents, {excess:+.0%} against chance; p {p:.2g}"
    )
    evidence = {"tasks": left, "share": share, "excess": excess, "look": at(look.size - 1, agents, dates)}
    level = ALERT_TIMES * look.level
    bound = ALERT_TIMES * LEVEL
    return Monitor(NAME, _state(p, excess, look), p, level, reason, evidence, false_alerts_at_most=bound)


def _state(p: float, excess: float, look: Look) -> State:
    if p <= ALERT_TIMES * look.level and excess > ALERT_EXCESS:
        return "alert"
    return "warn" if p <= WARN_TIMES * look.level and excess > WARN_EXCESS else "ok"


def _rates(outcomes: FloatArray) -> FloatArray:
    """Pass rates of one set of agents, (1, n_tasks)."""
    valid = ~np.isnan(outcomes)
    return _ratio(np.nansum(outcomes, axis=0)[None], np.count_nonzero(valid, axis=0)[None].astype(np.float64))


def _ratio(sums: FloatArray, counts: FloatArray) -> FloatArray:
    """Means, NaN over no outcome."""
    rates = np.full(sums.shape, np.nan)
    np.divide(sums, counts, out=rates, where=counts > 0.5)
    return rates


def _left(chosen: FloatArray, windowed: FloatArray, edges: Edges) -> tuple[Mask, Mask]:
    """Tasks of the band of each set of agents, and those of them outside it in its window: (n_sets, n_tasks).

    A task without a pass rate in the window is not counted.
    """
    band, out = np.zeros(chosen.shape, np.bool_), np.zeros(chosen.shape, np.bool_)
    open_sets = np.arange(len(chosen))
    for lo, hi in edges:
        band[open_sets] = _within(chosen[open_sets], lo, hi)
        out[open_sets] = band[open_sets] & ~_within(windowed[open_sets], lo, hi)
        thin = 10 * np.count_nonzero(band[open_sets], axis=1) < chosen.shape[1]
        open_sets = open_sets[thin]
        if not open_sets.size:
            break
    known = ~np.isnan(windowed)
    return band & known, out & known


def _within(rates: FloatArray, lo: float, hi: float) -> Mask:
    return (rates >= lo - EDGE_TOLERANCE) & (rates <= hi + EDGE_TOLERANCE)


def _permuted(selected: FloatArray, latest: FloatArray, edges: Edges, look: Look, seed: int) -> FloatArray:
    """T after each permutation, (n_permutations,); NaN where no task lies in the band."""
    both = np.concatenate([selected, latest])
    valid = (~np.isnan(both)).astype(np.float64)
    cells = np.stack([np.nan_to_num(both), valid])
    totals = cells.sum(axis=1)
    rng, shares = generator(seed, NAME, look.number), []
    chunk = max(1, CHUNK_CELLS // both.shape[1])
    for start in range(0, look.n_permutations, chunk):
        draws = min(chunk, look.n_permutations - start)
        sums, counts = _members(rng, draws, len(both), len(selected)) @ cells
        band, out = _left(_ratio(sums, counts), _ratio(totals[0] - sums, totals[1] - counts), edges)
        shares.append(_ratio(out.sum(axis=1).astype(np.float64), band.sum(axis=1).astype(np.float64)))
    return np.concatenate(shares)


def _members(rng: np.random.Generator, n_draws: int, n_agents: int, n_selected: int) -> FloatArray:
    """Draw selection sets: 1 for a member, (n_draws, n_agents)."""
    members = np.zeros((n_draws, n_agents))
    drawn = np.argpartition(rng.random(members.shape), n_selected - 1, axis=1)[:, :n_selected]
    np.put_along_axis(members, drawn, 1.0, axis=1)
    return members
