"""Which agents may be first: multiple comparisons with the best.

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
