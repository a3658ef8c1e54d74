"""Ridge predictions of agents left out, without a refit for every fold.

The theory is in ``selection/README.md``, “Ridge calibration”.

Source: Cawley & Talbot, *Neural Networks* 17 (2004) 1467-1475 (leaving out with a free intercept). Hager,
*SIAM Review* 31 (1989) 221-239 (low-rank updates). Equal to refits of scikit-learn's ``Ridge(alpha=1.0)`` to
1e-10.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analytics.arrays import FloatArray, IndexArray, Mask, read_only
from selection.errors import SelectionError
from selection.ridge import ALPHA, checked_agents

MAX_STACKED_CELLS = 1_000_000


@dataclass(frozen=True, eq=False)
class LeaveOut:
    """Ridge predictions of agents left out, on subsets near a base subset. Made by `leave_out`.

    `predictions` equals a refit for every subset without a missing cell whose tasks are those of the base but
    for candidates; others are refused (not_covered).

    in_base: (n_tasks,); tasks of the base subset without a missing cell.
    position: (n_tasks,); place of a task among the candidates without a missing cell; −1 elsewhere.
    residual_maker: (n, n); B on the base subset.
    residuals: (n,); By, the residuals of the fit to all n agents divided by α.
    candidate_columns, candidate_gram, candidate_scores: BX_C, X_CᵀBX_C, X_CᵀBy.
    """

    scores: FloatArray
    in_base: Mask
    position: IndexArray
    residual_maker: FloatArray
    residuals: FloatArray
    candidate_columns: FloatArray
    candidate_gram: FloatArray
    candidate_scores: FloatArray

    def predictions(self, left_out: IndexArray, tasks: IndexArray) -> FloatArray:
        """ŷ_I = y_I − (B′_II)⁻¹(B′y)_I, trained on the agents not left out, on the subset `tasks`.

        left_out: (n_left_out,); positions of the agents left out, none twice; at least 2 agents remain.
        tasks: (k,); task indices of the fold's subset, none twice, k ≥ 1.
        Returns: (n_left_out,); in the order of `left_out`; neither rounded nor clipped.
        """
        left_out, tasks = _checked_fold(left_out, tasks, self.scores.size)
        members = np.zeros((1, self.in_base.size), dtype=np.bool_)
        members[0, tasks] = True
        return self.predictions_each([left_out], members)[0]

    def predictions_each(self, left_out: Sequence[IndexArray], members: Mask) -> list[FloatArray]:
        """ŷ_I of many folds; those with as many agents left out and tasks changed are solved together.

        members: (n_folds, n_tasks); membership of every task in every fold's subset.
        Raises SelectionError (not_covered).
        """
        changed = members != self.in_base
        if (changed & (self.position < 0)).any():
            raise SelectionError(
                "a cell of the subset is missing, or a task that changed is no candidate", code="not_covered"
            )
        sizes = np.array([[rows.size for rows in left_out], np.count_nonzero(changed, axis=1)])
        predicted: list[FloatArray] = [np.empty(0)] * len(left_out)
        for alike in _alike(sizes):
            rows = np.array([left_out[f] for f in alike], dtype=np.intp)
            tasks = np.nonzero(changed[alike])[1].reshape(alike.size, -1)
            signs = np.where(np.take_along_axis(members[alike], tasks, axis=1), 1.0, -1.0)
            steps = self._steps(rows, self.position[tasks], signs)
            for f, residuals in zip(alike, steps, strict=True):
                predicted[f] = self.scores[left_out[f]] - residuals
        return predicted

    def _steps(self, left_out: IndexArray, changed: IndexArray, signs: FloatArray) -> FloatArray:
        """(B′_II)⁻¹(B′y)_I of folds of one shape, I, E and d in rows, (n_folds, n_left_out)."""
        residuals, of_changed = self.residuals[left_out], self.candidate_scores[changed]
        maker = self.residual_maker[left_out[:, :, None], left_out[:, None, :]]
        if changed.shape[1]:
            columns = self.candidate_columns[left_out[:, :, None], changed[:, None, :]]
            right_side = np.dstack([columns.swapaxes(1, 2), of_changed])
            inner = self.candidate_gram[changed[:, :, None], changed[:, None, :]]
            each = np.arange(changed.shape[1])
            inner[:, each, each] += signs
            correction = columns @ np.linalg.solve(inner, right_side)
            maker, residuals = maker - correction[..., :-1], residuals - correction[..., -1]
        return np.asarray(np.linalg.solve(maker, residuals[..., None])[..., 0], dtype=np.float64)


def leave_out(
    outcomes: FloatArray,
    scores: FloatArray,
    base: IndexArray,
    candidates: IndexArray | None = None,
    alpha: float = ALPHA,
) -> LeaveOut:
    """Prepare the predictions of agents left out on subsets near `base`.

    outcomes: (n, n_tasks); of all n agents on all active tasks; NaN where missing.
    base: (k,); the subset that the folds' subsets differ little from.
    candidates: tasks that may enter or leave; all tasks when not given. Costs O(n²k + n³ + n²·n_candidates +
        n·n_candidates²), once.
    """
    outcomes, scores = checked_agents(outcomes, scores, alpha)
    n_tasks = outcomes.shape[1]
    from scipy.linalg import inv  # as below

    in_full = np.asarray(~np.isnan(outcomes).any(axis=0), dtype=np.bool_)
    base = _checked_tasks(base, n_tasks)
    chosen = _checked_tasks(np.arange(n_tasks) if candidates is None else candidates, n_tasks)
    base, candidates, n = base[in_full[base]], chosen[in_full[chosen]], len(outcomes)
    in_base, position = np.zeros(n_tasks, dtype=np.bool_), np.full(n_tasks, -1, dtype=np.intp)
    in_base[base], position[candidates] = True, np.arange(candidates.size)
    on_base, columns = _centred(outcomes[:, base]), _centred(outcomes[:, candidates])
    inverse = inv(on_base @ on_base.T + alpha * np.eye(n), assume_a="pos", overwrite_a=True)
    maker = np.asarray(inverse - 1.0 / (alpha * n), dtype=np.float64)
    maker_columns = maker @ columns
    return LeaveOut(
        scores=read_only(scores),
        in_base=read_only(in_base),
        position=read_only(position),
        residual_maker=read_only(maker),
        residuals=read_only(maker @ scores),
        candidate_columns=read_only(maker_columns),
        candidate_gram=read_only(columns.T @ maker_columns),
        candidate_scores=read_only(maker_columns.T @ scores),
    )


@dataclass(frozen=True, eq=False)
class SharedGram:
    """Ridge predictions of agents left out, on any subset, from one Gram matrix of all tasks; α = 1.

    columns: (n_tasks, n); Cᵀ; NaN in tasks with a missing cell.
    gram: (n_tasks, n_tasks); CᵀC.
    task_scores: (n_tasks,); Cᵀy.
    """

    scores: FloatArray
    columns: FloatArray
    gram: FloatArray
    task_scores: FloatArray
    mean_score: float

    def predictions(self, left_out: IndexArray, tasks: IndexArray) -> FloatArray:
        """ŷ_I, trained on the agents not left out, on a subset without a missing cell.

        left_out: (n_left_out,); None twice; at least 2 agents remain.
        tasks: (k,); None twice, k ≥ 1.
        """
        left_out, tasks = _checked_fold(left_out, tasks, self.scores.size)
        inner = self.gram.take(tasks, axis=0).take(tasks, axis=1)
        right_side = np.vstack([self.columns[tasks][:, left_out].T, self.task_scores[tasks]])
        explained, y = _inner_products(inner, right_side), self.scores[left_out]
        maker = np.eye(left_out.size) - 1.0 / self.scores.size - explained[:-1, :-1]
        return _left_out(y, maker, y - self.mean_score - explained[:-1, -1])


def shared_gram(outcomes: FloatArray, scores: FloatArray) -> SharedGram:
    """Prepare the predictions of agents left out on any subset; costs O(n·n_tasks²), once.

    outcomes: (n, n_tasks); NaN where missing.
    scores: (n,).
    """
    columns = np.ascontiguousarray(_centred(outcomes).T)
    return SharedGram(
        scores=scores,
        columns=read_only(columns),
        gram=read_only(columns @ columns.T),
        task_scores=read_only(columns @ scores),
        mean_score=float(np.mean(scores)),
    )


def alone(columns: FloatArray, scores: FloatArray, left_out: IndexArray) -> FloatArray:
    """ŷ_I of one fold by itself.

    columns: (k, n); X_Sᵀ of the fold's training agents and of those left out, none missing.
    scores: (n,).
    left_out: (n_left_out,); None twice; at least 2 agents remain.
    """
    centred, y = columns - columns.mean(axis=1, keepdims=True), scores - np.mean(scores)
    right_side = np.zeros((left_out.size + 1, scores.size))
    right_side[np.arange(left_out.size), left_out], right_side[-1] = 1.0, y
    inverse = _inner_products(centred.T @ centred, right_side)
    maker = inverse[:-1, :-1] - 1.0 / (ALPHA * scores.size)
    return _left_out(scores[left_out], maker, inverse[:-1, -1])


def _left_out(scores: FloatArray, maker: FloatArray, residuals: FloatArray) -> FloatArray:
    """y_I − (B_II)⁻¹(By)_I."""
    return np.asarray(scores - np.linalg.solve(maker, residuals), dtype=np.float64)


def _inner_products(gram: FloatArray, right_side: FloatArray) -> FloatArray:
    """R(G + αI)⁻¹Rᵀ, R in rows, by the Cholesky factor of G + αI, which is written over G."""
    from scipy.linalg import lapack  # not for a program that leaves nobody out

    gram.flat[:: len(gram) + 1] += ALPHA
    factor, wrong = lapack.dpotrf(gram.T, lower=1, clean=0, overwrite_a=1)
    if wrong:
        raise np.linalg.LinAlgError(f"leading minor {wrong} of a penalised Gram matrix is not positive")
    solved, _ = lapack.dtrtrs(factor, right_side.T, lower=1, overwrite_b=1)
    return np.asarray(solved.T @ solved, dtype=np.float64)


def _alike(sizes: IndexArray) -> list[IndexArray]:
    """Positions of the folds of each shape (n_left_out, n_changed), as many at once as memory should hold."""
    shapes, shape_of = np.unique(sizes, axis=1, return_inverse=True)
    batches = list[IndexArray]()
    for s, (n_left_out, n_changed) in enumerate(shapes.T.tolist()):
        alike, most = np.flatnonzero(shape_of == s), MAX_STACKED_CELLS // (n_left_out + n_changed) ** 2
        batches.extend(np.split(alike, range(max(most, 1), alike.size, max(most, 1))))
    return batches


def _centred(outcomes: FloatArray) -> FloatArray:
    return np.asarray(outcomes - np.mean(outcomes, axis=0), dtype=np.float64)


def _checked_fold(left_out: IndexArray, tasks: IndexArray, n: int) -> tuple[IndexArray, IndexArray]:
    left_out, tasks = np.asarray(left_out, dtype=np.intp), np.asarray(tasks, dtype=np.intp)
    if not tasks.size:
        raise SelectionError("no task in the subset", code="no_tasks")
    n_left_out = np.unique(left_out).size
    if n_left_out != left_out.size:
        raise SelectionError(f"{left_out.size} agents left out, of whom {n_left_out} differ", code="shape")
    if n - n_left_out < 2:
        raise SelectionError(
            f"a calibration needs at least 2 agents; there are {n - n_left_out}", code="too_few_agents"
        )
    return left_out, tasks


def _checked_tasks(tasks: IndexArray, n_tasks: int) -> IndexArray:
    tasks = np.unique(np.asarray(tasks, dtype=np.intp))
    if tasks.size and not 0 <= tasks[0] <= tasks[-1] < n_tasks:
        raise SelectionError(f"tasks {tasks[0]} to {tasks[-1]} where there are {n_tasks}", code="shape")
    return tasks
