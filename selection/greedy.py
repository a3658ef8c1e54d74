"""Forward search: tasks taken one at a time, each the one that predicts agents left out best.

The theory is in ``selection/README.md``, “Strategies”.

Symbols
-------
==========  ==============================  ==================================  =============
symbol      code                            shape                               unit
==========  ==============================  ==================================  =============
X           ``centred``                     (m, n): tasks in rows, 0 missing    0 to 1
y           ``scores``                      (n,), centred                       0 to 1
Zᵀ          ``columns``                     (m, n)                              1/agents
r, d        ``residuals``, ``diagonal``     (n,)                                1/agents
w⁰          ``weights``                     (n,)                                agents²
ΣZ²w⁰       ``norms``                       (m,)                                1
1 + g       ``growth``                      (m,)                                1
Zᵀy         ``along_scores``                (m,)                                1
==========  ==============================  ==================================  =============

Source: Hager, *SIAM Review* 31 (1989) 221-239 (rank-one updates). The bound is this project's own.
"""

import numpy as np
from scipy.linalg import blas

from analytics.arrays import DECIMALS, FloatArray, IndexArray
from selection.ridge import ALPHA

PRUNED_CELLS = 16_384  # on fewer, pruning takes longer than it saves
N_KEPT = 8  # steps that use the same w⁰


def forward(centred: FloatArray, scores: FloatArray, k: int) -> IndexArray:
    """Tasks in the order in which leave-one-out R² takes them, shape (k,).

    Of tasks with the same R², rounded to 1e-9, the first is taken.

    centred: (m, n); outcomes less the mean of the task, tasks in rows; 0 in missing cells.
    scores: (n,); less their mean; not all 0.
    k: at most m.
    """
    search, order = _Search(centred, scores), np.empty(k, dtype=np.intp)
    for step in range(k):
        best = search.best()
        order[step] = search.tasks[best]
        search.take(best)
    return order


class _Search:
    """Where the search stands. Rows up to `n_free` are the tasks not yet taken, in no order."""

    def __init__(self, centred: FloatArray, scores: FloatArray) -> None:
        n_tasks, n = centred.shape
        self.n_free, self.tasks = n_tasks, np.arange(n_tasks)
        self.centred, self.columns = centred, centred / ALPHA
        self.growth = 1.0 + np.vecdot(centred, centred) / ALPHA
        self.along_scores, self.total = self.columns @ scores, float(scores @ scores)
        self.residuals, self.diagonal = scores / ALPHA, np.full(n, (1.0 - 1.0 / n) / ALPHA)
        self.n_bounded, self.powers, self.norms = 0, np.empty(centred.shape), np.empty(n_tasks)

    def best(self) -> int:
        """Row of the task with the largest R², the first task of those that share it."""
        if self.n_free * self.residuals.size <= PRUNED_CELLS:
            return self._first_best(self._squares(slice(self.n_free)), self.tasks[: self.n_free])
        rows = self._possible()
        if rows.size == 1:
            return int(rows[0])
        return int(rows[self._first_best(self._squares(rows), self.tasks[rows])])

    def _first_best(self, squares: FloatArray, tasks: IndexArray) -> int:
        """Position of the largest R²; of equal ones, of the first task."""
        r2 = (1.0 - squares / self.total).round(DECIMALS)
        best = int(r2.argmax())
        equal = (r2 == r2[best]).nonzero()[0]
        return best if equal.size == 1 else int(equal[tasks[equal].argmin()])

    def take(self, row: int) -> None:
        """Add a task; the last free row moves into its place."""
        column, growth, along = self.columns[row].copy(), self.growth[row], self.along_scores[row]
        outcomes = self.centred[self.tasks[row]]
        self.n_free -= 1
        for rows in (self.tasks, self.columns, self.growth, self.along_scores, self.norms):
            rows[row] = rows[self.n_free]
        self.shared, self.step = self.columns[: self.n_free] @ outcomes, column / growth
        self.residuals -= along * self.step
        self.diagonal -= column * self.step
        self.along_scores[: self.n_free] -= self.shared * (along / growth)
        self.growth[: self.n_free] -= self.shared * self.shared / growth
        if self.n_free:
            blas.dger(-1.0, self.step, self.shared, a=self.columns[: self.n_free].T, overwrite_a=1)

    def _squares(self, rows: IndexArray | slice | int) -> FloatArray:
        columns, growth = self.columns[rows], self.growth[rows]
        errors = self.residuals - columns * (self.along_scores[rows] / growth)[..., None]
        errors /= self.diagonal - columns * columns / growth[..., None]
        return np.asarray(np.vecdot(errors, errors), dtype=np.float64)

    def _possible(self) -> IndexArray:
        """Rows that may be the best, by the least that their Σe² can be."""
        # First bound of all candidates
        columns, norms = self.columns[: self.n_free], self.norms[: self.n_free]
        weights, slope = self.diagonal**-2, self.along_scores[: self.n_free] / self.growth[: self.n_free]
        weighted = self.residuals * weights
        if self.n_bounded % N_KEPT == 0:
            self.weights, products = weights, columns @ weighted
            np.matmul(np.multiply(columns, columns, out=self.powers[: self.n_free]), weights, out=norms)
        else:
            step = self.weights * self.step
            products, crossed = np.array([weighted, step]) @ columns.T
            norms -= self.shared * (2.0 * crossed + self.shared * (step @ self.step))
        self.n_bounded += 1
        growing = float((weights / self.weights).min())
        bounds = np.asarray(self.residuals @ weighted + slope * (slope * growing * norms - 2.0 * products))
        most = self._squares(int(bounds.argmin())) + self.total * 10.0**-DECIMALS
        rows = np.flatnonzero(bounds <= most)
        return rows[bounds[rows] + self._added(rows) <= most]

    def _added(self, rows: IndexArray) -> FloatArray:
        columns, growth = self.columns[rows], self.growth[rows]
        weighted, powers = self.residuals * self.diagonal**-3, columns * columns
        squares = powers @ (weighted * self.residuals)
        cubes = np.multiply(powers, columns, out=powers) @ weighted
        return np.asarray(2.0 / growth * (squares - 2.0 * self.along_scores[rows] / growth * cubes))
