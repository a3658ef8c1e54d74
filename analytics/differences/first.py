"""Which agents may be first: multiple comparisons with the best.

Model
-----
On the draws of T each agent a has a one-sided critical value of its own::

    T_a = max over b of (e_b − e_a)/√(Û_a + Û_b)        pairs judged by tasks: the signed T*_ba
    c_a = the ⌈.95(B + 1)⌉-th smallest T_a of B draws
    a is excluded when some b has d_ba > c_a·se_ab

The set of those that are not excluded holds the truly best agent with 95%. With ℓ_a = max over b of
d_ba/se_ab the rule is: at most B − ⌈.95(B + 1)⌉ draws have T_a ≥ ℓ_a. No c_a is needed, only a count.

*Few tasks.* Resampling an agent's own few outcomes tells c_a badly: too small, above all, for agents that are
behind by chance. Where pairs are judged by tasks c_a is therefore at least ::

    c̄ = the ⌈.95(N + 1)⌉-th smallest of all N values T_a, of all such agents a and all draws

with which a typical agent's c_a is met. It can only make the set larger.

*Pruning.* Where b is ahead, T²_ba ≤ z_b² + z_a², z_b² counting where e_b > 0 and z_a² where e_a < 0; the
agent with the largest such z_b² bounds T_a from below. Draws that the bounds do not decide are gone through.

Symbols: T², e, Û, z² as in `analytics.differences.error_draws`; ℓ ``lead`` (n_agents,) 1.

Not done here: nobody is called the best; a set of one says so only of two agents or more.

Source: Hsu, *Annals of Statistics* 9 (1981) 1026-1034; *Multiple Comparisons*, 1996, ch. 4.
"""

import math

import numpy as np
from scipy.special import stdtrit

from analytics.arrays import FloatArray, IndexArray, Mask
from analytics.differences.error_draws import SLACK, ErrorDraws, Largest, largest


def may_be_first(
    draws: ErrorDraws, others: FloatArray, lead: FloatArray, place: int, *, least: FloatArray
) -> Mask:
    """Return who is not excluded.

    others: (n_draws, n_agents); T_a² over pairs judged otherwise; 0 without any.
    lead: (n_agents,); ℓ_a; at most 0 for an agent that nobody is ahead of, infinite for one that is excluded
        already.
    place: ⌈.95(B + 1)⌉.
    least: (n_agents,); c_a is at least this.
    Returns: (n_agents,).
    """
    best = largest(np.where(e > 0, z2, 0.0) for e, z2 in zip(draws.errors, draws.squares, strict=True))
    enough = len(others) - place
    return np.array(
        [
            one <= least[a]
            or (np.isfinite(one) and _n_reaching(draws, others[:, a], a, one**2, best, enough) > enough)
            for a, one in enumerate(lead.tolist())
        ],
        dtype=np.bool_,
    )


def may_be_first_by_tasks(ahead: FloatArray, lead: FloatArray, place: int, *, least: FloatArray) -> Mask:
    """Return who is not excluded where all pairs are judged by resampled tasks.

    ahead: (n_draws, n_agents); T_a².
    lead, place, least: as in `may_be_first`.
    """
    n_reaching = np.count_nonzero(ahead >= np.maximum(lead, 0.0) ** 2, axis=0)
    return np.asarray((lead <= least) | (n_reaching > len(ahead) - place), dtype=np.bool_)


def least_by_tasks(ahead: FloatArray, df: float) -> float:
    """Return what c_a is at least where pairs are judged by tasks: c̄, and one pair's t_{df,.95}.

    ahead: (n_draws, n_agents); T_a² of the agents judged so, one at least.
    df: of one difference; k − 1 where tasks are independent.
    """
    place = -(-95 * (ahead.size + 1) // 100)
    pooled = math.sqrt(np.partition(ahead, place - 1, axis=None)[place - 1])
    return max(pooled, float(stdtrit(df, 0.95)))


# ---------------------------------------------------------------------------------------------- arithmetic


def _n_reaching(
    draws: ErrorDraws, others: FloatArray, a: int, reached: float, best: Largest, enough: int
) -> int:
    """How many draws have T_a² at `reached` or above; above `enough` any such number will do."""
    every = np.arange(best.agent.size)
    sure = (others >= reached) | (_one_sided(draws, a, best.agent, every) >= reached)
    n_sure = int(np.count_nonzero(sure))
    behind = np.where(draws.errors[a] < 0, draws.squares[a], 0.0)
    unsure = np.flatnonzero(~sure & ((best.first + behind) * (1 + SLACK) >= reached))
    if n_sure > enough or n_sure + unsure.size <= enough:
        return n_sure
    reach = np.zeros(unsure.size)
    for b in np.flatnonzero(draws.judged[a]).tolist():
        np.maximum(reach, _one_sided(draws, a, b, unsure), out=reach)
    return n_sure + int(np.count_nonzero(reach >= reached))


def _one_sided(draws: ErrorDraws, a: int, b: IndexArray | int, columns: IndexArray) -> FloatArray:
    """T² of b over a in these draws, 0 where b is behind or the pair is judged otherwise."""
    gaps = np.maximum(draws.errors[b, columns] - draws.errors[a, columns], 0.0)
    ratios = gaps**2 / (draws.seen[b, columns] + draws.seen[a, columns])
    return np.asarray(np.where(draws.judged[a, b], ratios, 0.0), dtype=np.float64)
