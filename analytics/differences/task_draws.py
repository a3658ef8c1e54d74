"""Resampled tasks, for pairs of agents whose difference is judged by its spread over tasks.

Source: Agresti & Min, *Statistics in Medicine* 24 (2005) 729-740 (pseudo-observations). Efron & Tibshirani,
*An Introduction to the Bootstrap*, 1993, ch. 12.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from analytics.arrays import FloatArray
from analytics.resampling import generator, resampled_counts

PairVariances = Callable[[FloatArray, FloatArray], FloatArray]


def on_grid(outcomes: FloatArray) -> FloatArray:
    """Round to multiples of 2^−b so that Σ_j w_j·x_aj·x_bj ≤ k is a sum of at most 53 bits."""
    scale = 2.0 ** ((53 - (outcomes.shape[1] - 1).bit_length()) // 2)
    return np.asarray(np.rint(outcomes * scale) / scale, dtype=np.float64)


def narrowed(x: FloatArray) -> npt.NDArray[np.floating]:
    """Return x in single precision where Σw·x_a·x_b is exact in it: multiples of 2^−b, 2b + ⌈log₂ k⌉ ≤ 24."""
    scale = 2.0 ** max((24 - (x.shape[1] - 1).bit_length()) // 2, 0)
    return x.astype(np.float32) if (np.rint(x * scale) == x * scale).all() else x


def task_weights(k: int, seed: int, n_draws: int, *, first: int = 0) -> FloatArray:
    """How often each of k tasks is drawn in the draws from `first` on, shape (n_draws, k)."""
    return resampled_counts(seed, "rank_weights", k, n_draws, first=first).astype(np.float64)


def agent_noise(agents: Sequence[str], v: FloatArray, seed: int, n_draws: int) -> FloatArray:
    """g*_a ~ N(0, v_a), shape (n_draws, n_agents), each agent by a generator of (seed, its name)."""
    noise = np.zeros((n_draws, len(agents)))
    for i in np.flatnonzero(v).tolist():
        rng = generator(seed, "rank_noise", *agents[i].encode("utf-8", "surrogatepass"))
        noise[:, i] = np.sqrt(v[i]) * rng.standard_normal(n_draws)
    return noise


def pair_variances(outcomes: FloatArray, v: FloatArray) -> FloatArray:
    """se²_ab of all pairs, shape (n_agents, n_agents)."""
    k = outcomes.shape[1]
    totals, squares = outcomes.sum(axis=1), (outcomes**2).sum(axis=1)
    spread = np.maximum(squares[:, None] + squares - 2 * (outcomes @ outcomes.T), 0.0)
    gaps = totals[:, None] - totals
    return np.asarray((spread + 1.0 - gaps**2 / (k + 2)) / (k + 2) ** 2 + v[:, None] + v, dtype=np.float64)
