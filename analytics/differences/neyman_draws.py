"""Differences judged by their spread over tasks, the tasks resampled.

Model
-----
For a pair of which at least one agent has no trial variance (all pairs where tasks are a sample), with the
weights, noise and pseudo-tasks of `analytics.differences.task_draws`::

    se²_ab = (Σd_j² + 1 − (Σd_j)²/(k + 2))/(k + 2)² + v_a + v_b
    T*_ba = (d*_ba − d_ba + g*_b − g*_a)/se*_ba             signed: b ahead of a

Multiplied out by (k + 2)², T*² = (u_b − u_a)²/(q_a + q_b + t_a·t_b − 2Σw·x_a·x_b) with
u = (Σw·x/k − x̄ + g*)·(k + 2), t = Σw·x·√(2/(k + 2)) and q = Σw·x² + ½ + v·(k + 2)² − t²/2, so that a draw
costs one product of n × k by k × n. Sums are exact in double precision (`task_draws`): T* is equal to the
last bit however many agents are computed at once and on whatever machine.

The spread over tasks is an upper bound of the finite variance: trial noise and what true differences add.

Symbols
-------
=============  ============  ====================  ======
symbol         code          shape                 unit
=============  ============  ====================  ======
X              ``outcomes``  (n_agents, k)         0 to 1
v              ``v``         (n_agents,)           score²
w              ``weights``   (n_draws, k)          tasks
max_b T*_ba²   ``ahead``     (n_draws, n_agents)   1
=============  ============  ====================  ======

Not done here
-------------
Pairs of two agents with trial variances are left to `analytics.differences.error_draws`.

Source
------
As in `analytics.differences.task_draws`. Imbens & Rubin, *Causal Inference*, 2015, §6.5.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from analytics.arrays import FloatArray, Mask
from analytics.differences.task_draws import agent_noise, narrowed, on_grid, row_sums, task_weights
from analytics.errors import CoreError

N_DRAWS = 2_000
N_TASKS_LEAST = 5
N_BLOCK = 128
MOST_STACKED_CELLS = 1 << 14
Ahead = Callable[..., FloatArray]


class FewTasks(CoreError):
    """Fewer tasks than can be resampled."""


def ahead(
    outcomes: FloatArray, names: Sequence[str], v: FloatArray, untold: Mask, *, seed: int, n_draws: int
) -> FloatArray:
    """Return, for every draw and agent, how far the best of the others is ahead of it: max over b of T*_ba².

    Parameters
    ----------
    outcomes : float array, shape (n_agents, k)
        0 to 1, none missing.
    names : sequence of str, length n_agents
    v : float array, shape (n_agents,)
        v_a, score².
    untold : bool array, shape (n_agents,)
        Agents without trial variances; the pairs of which one is such are gone through.
    seed, n_draws : int

    Returns
    -------
    float array, shape (n_draws, n_agents)
        At least 0.

    Raises
    ------
    FewTasks
        Under 5 tasks.
    """
    if outcomes.shape[1] < N_TASKS_LEAST:
        raise FewTasks(
            f"agents whose trials tell no variance are judged by resampling at least {N_TASKS_LEAST} tasks, "
            f"not {outcomes.shape[1]}"
        )
    order = np.argsort(~untold, kind="stable")
    weights = task_weights(outcomes.shape[1], seed, n_draws)
    noise = agent_noise([names[i] for i in order], v[order], seed, n_draws)
    found = np.empty((n_draws, len(order)))
    found[:, order] = _ahead(on_grid(outcomes[order]), weights, noise, v[order], int(untold.sum()))
    return found


# ---------------------------------------------------------------------------------------------- arithmetic


def _ahead(x: FloatArray, weights: FloatArray, noise: FloatArray, v: FloatArray, n_untold: int) -> FloatArray:
    """Each pair once: a block of the first agents with those from the block on."""
    k = x.shape[1]
    sums, squares = row_sums(x, weights)
    u = ((sums - x.sum(axis=1)) / k + noise) * (k + 2)
    t = sums * np.sqrt(2.0 / (k + 2))
    q = squares + 0.5 + v * (k + 2) ** 2 - t**2 / 2
    cells, found = np.ascontiguousarray(narrowed(x).T), np.zeros(u.shape)
    blocks = [(a, min(a + N_BLOCK, n_untold)) for a in range(0, n_untold, N_BLOCK)]
    for draws in _stacks(len(weights), cells.shape):
        w = weights[draws].astype(cells.dtype)
        drawn = np.flatnonzero(w.any(axis=0))
        seen = cells[drawn]
        weighted = (-2 * w[:, None, drawn]) * seen.T
        for a, b in blocks:
            signed = _signed(weighted[:, a:b] @ seen[:, a:], u[draws], t[draws], q[draws], a, b)
            found[draws, a:] = np.maximum(found[draws, a:], signed.max(axis=1))
            found[draws, a:b] = np.maximum(found[draws, a:b], -signed.min(axis=2))
    return found


def _stacks(n_draws: int, shape: tuple[int, ...]) -> list[slice]:
    """Draws computed at once: many where the cells are few, and one, on its drawn tasks alone, else."""
    k, n = shape
    size = max(1, MOST_STACKED_CELLS // (n * max(n, k)))
    return [slice(first, first + size) for first in range(0, n_draws, size)]


def _signed(
    products: npt.NDArray[np.floating], u: FloatArray, t: FloatArray, q: FloatArray, a: int, b: int
) -> FloatArray:
    """T*² of the agents a to b with those from a on, negative where they are behind, one matrix a draw."""
    spread = q[:, a:b, None] + q[:, None, a:]
    spread += t[:, a:b, None] * t[:, None, a:]
    spread += products
    gaps = u[:, a:b, None] - u[:, None, a:]
    gaps *= np.abs(gaps)
    gaps /= spread
    return np.asarray(gaps, dtype=np.float64)
