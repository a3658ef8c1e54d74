"""Differences judged by their spread over tasks, the tasks resampled.

Model
-----
For a pair of which at least one agent has no trial variance (all pairs where tasks are a sample), with the
weights, noise and pseudo-tasks of `analytics.differences.task_draws`::

    se²_ab = (Σd_j² + 1 − (Σd_j)²/(k + 2))/(k + 2)² + v_a + v_b
    T*_ba = (d*_ba − d_ba + g*_b − g*_a)/se*_ba             signed: b ahead of a

Multiplied out by (k + 2)²·T*² = (u_b − u_a)²/(p_a + p_b − 2Σw·x_a·x_b − (Σw·x_a − Σw·x_b)²/(k + 2)) with
u = (Σw·x/k − x̄ + g*)·(k + 2) and p = Σw·x² + ½ + v·(k + 2)².

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
N_CELLS = 2**17
N_CHUNK = 512
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
    x, n_untold = on_grid(outcomes[order]), int(untold.sum())
    weights = task_weights(x.shape[1], seed, n_draws)
    noise = agent_noise([names[i] for i in order], v[order], seed, n_draws)
    found = np.empty((n_draws, len(order)))
    for start in range(0, n_draws, N_CHUNK):
        rows = slice(start, start + N_CHUNK)
        found[rows, order] = _ahead(x, weights[rows], noise[rows], v[order], n_untold)
    return found


# ---------------------------------------------------------------------------------------------- arithmetic


def _ahead(x: FloatArray, weights: FloatArray, noise: FloatArray, v: FloatArray, n_untold: int) -> FloatArray:
    """Each pair once, some draws at a time: a block of the first agents with those from the block on."""
    n_agents, k = x.shape
    sums, squares = row_sums(x, weights)
    u = ((sums - x.sum(axis=1)) / k + noise) * (k + 2)
    p, t = squares + 0.5 + v * (k + 2) ** 2, sums / np.sqrt(k + 2)
    cells, found = narrowed(x), np.zeros(u.shape)
    w = weights.astype(cells.dtype)[:, None, :]
    n_batch = max(1, N_CELLS // (min(n_untold, N_BLOCK) * max(n_agents, k)))
    for start in range(0, len(w), n_batch):
        rows = slice(start, start + n_batch)
        for a in range(0, n_untold, N_BLOCK):
            b = min(a + N_BLOCK, n_untold)
            products = (cells[a:b] * w[rows]) @ cells[a:].T
            signed = _signed(products, u[rows], p[rows], t[rows], a, b)
            found[rows, a:] = np.maximum(found[rows, a:], signed.max(axis=1))
            found[rows, a:b] = np.maximum(found[rows, a:b], -signed.min(axis=2))
    return found


def _signed(
    products: npt.NDArray[np.floating], u: FloatArray, p: FloatArray, t: FloatArray, a: int, b: int
) -> FloatArray:
    """T*² of the agents a to b with those from a on, negative where they are behind; t = Σw·x/√(k + 2)."""
    spread = p[:, a:b, None] + p[:, None, a:]
    spread -= 2.0 * products
    gaps = t[:, a:b, None] - t[:, None, a:]
    gaps *= gaps
    spread -= gaps
    np.subtract(u[:, a:b, None], u[:, None, a:], out=gaps)
    gaps *= np.abs(gaps)
    gaps /= spread
    return gaps
