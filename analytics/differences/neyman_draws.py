"""Differences judged by their spread over tasks, the tasks resampled.

Source: Agresti & Min, *Statistics in Medicine* 24 (2005) 729-740 (pseudo-observations). Efron & Tibshirani,
*An Introduction to the Bootstrap*, 1993, ch. 12. Imbens & Rubin, *Causal Inference*, 2015, §6.5.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from analytics.arrays import FloatArray, IndexArray, Mask
from analytics.errors import CoreError
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


N_DRAWS = 10_000
N_AGENTS_ALL_DRAWS = 512
N_DRAWS_LARGE = 1_250
MIN_TASKS = 5
FEW_AGENTS = 64
Ahead = Callable[..., FloatArray]
Weights = Callable[..., FloatArray]


def draws_for(n_agents: int) -> int:
    """Return B: 10,000 up to 512 agents, half of that for each doubling beyond, at least 1,250.

    The level holds for any B, as c is an order statistic of B + 1; with 1,250 it scatters by 0.6 points about
    95%, with 10,000 by 0.2.
    """
    doublings = max(n_agents - 1, 1).bit_length() - N_AGENTS_ALL_DRAWS.bit_length() + 1
    return max(N_DRAWS >> max(doublings, 0), N_DRAWS_LARGE)


def ahead(
    outcomes: FloatArray,
    names: Sequence[str],
    v: FloatArray,
    unknown_noise: Mask,
    *,
    seed: int,
    n_draws: int,
    weights: Weights = task_weights,
    known: FloatArray | None = None,
    new: Mask | None = None,
) -> FloatArray:
    """Return, for every draw and agent, how far the best of the others is ahead of it: max over b of T*_ba².

    unknown_noise: (n_agents,); agents without trial variances, of which each pair gone through has one.
    weights: `task_weights`, or one that remembers them.
    known, new: (n_draws, n_agents); what was found for the agents that are not new; (n_agents,).
    Returns: (n_draws, n_agents); at least 0.
    """
    if outcomes.shape[1] < MIN_TASKS:
        raise CoreError(
            f"agents whose trials tell no variance are judged by resampling at least {MIN_TASKS} tasks, "
            f"not {outcomes.shape[1]}",
            code="few_tasks",
        )
    each = np.ones(len(names), dtype=np.bool_) if new is None else new
    order = np.lexsort((np.count_nonzero(outcomes, axis=1), ~unknown_noise, ~each))
    x, v, unknown = on_grid(outcomes[order]), v[order], unknown_noise[order]
    # for each new agent those after it that it makes a pair with, one at least of unknown noise
    after = [
        slice(a + 1, None) if unknown[a] else a + 1 + np.flatnonzero(unknown[a + 1 :])
        for a in range(int(each.sum()))
    ]
    cells, noise = narrowed(x), agent_noise([names[i] for i in order], v, seed, n_draws)
    largest = np.zeros((n_draws, len(order))) if known is None else known.copy()
    n_chunk = 1024 if len(order) <= FEW_AGENTS else 256  # more draws of few agents, where calls cost most
    for first in range(0, n_draws, n_chunk):
        drawn = slice(first, min(first + n_chunk, n_draws))
        w = weights(outcomes.shape[1], seed, drawn.stop - first, first=first)
        most = _ahead(x, cells, w, noise[drawn], v, after).T
        largest[drawn, order] = np.maximum(largest[drawn, order], most)
    return largest


def _ahead(
    x: FloatArray,
    cells: npt.NDArray[np.floating],
    weights: FloatArray,
    noise: FloatArray,
    v: FloatArray,
    after: Sequence[IndexArray | slice],
) -> FloatArray:
    """Each pair once, (n_agents, n_draws): one of the first agents with those of `after`."""
    k, w = x.shape[1], np.ascontiguousarray(weights.T, dtype=cells.dtype)
    squared = cells * cells
    sums = (cells @ w).astype(np.float64)
    squares = sums if np.array_equal(squared, cells) else (squared @ w).astype(np.float64)
    t = sums * np.sqrt(2.0 / (k + 2))
    u = ((sums - x.sum(axis=1)[:, None]) / k + noise.T) * (k + 2)
    q = squares + 0.5 + v[:, None] * (k + 2) ** 2 - t**2 / 2
    twice, largest = np.ascontiguousarray(-2 * weights.T, dtype=cells.dtype), np.zeros(u.shape)
    for a, others in enumerate(after):
        seen, other_cells = np.flatnonzero(cells[a]), cells[others]
        if len(other_cells):
            # T*² of agent a with others, negative where it is behind, (n_others, n_draws)
            products = (other_cells[:, seen] * cells[a, seen]) @ twice[seen]
            spread, gaps = q[others] + q[a], t[others] * t[a]
            spread += gaps
            spread += products
            np.subtract(u[a], u[others], out=gaps)
            gaps *= np.abs(gaps)
            gaps /= spread
            signed = np.asarray(gaps, dtype=np.float64)
            largest[others] = np.maximum(largest[others], signed)
            np.maximum(largest[a], 0.0 - signed.min(axis=0), out=largest[a])
    return largest
