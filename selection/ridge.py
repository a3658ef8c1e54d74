"""Ridge calibration: the full score an agent would reach, told from its outcomes on the subset.

Model
-----
ŷ = b₀ + x·β, where the intercept is fitted and not penalised. With the columns of X centred on their
training means x̄ and y on ȳ, β minimises |y − ȳ − (X − x̄)β|² + α|β|², so that::

    primal, k ≤ n    β = (CᵀC + αI)⁻¹ Cᵀ(y − ȳ)        C = X − x̄, shape (n, k)
    dual,   k > n    β = Cᵀ (CCᵀ + αI)⁻¹ (y − ȳ)
    b₀ = ȳ − x̄·β

Both forms are the same β; the smaller system is solved. A missing training cell takes its column's training
mean (C = 0 there). A held-out agent's missing cells take it too when at most a tenth of them are missing
(10·n_missing ≤ k); above that its score is not predicted.

Agents left out. With all n agents' columns centred, and I the agents left out::

    B = (CCᵀ + αI)⁻¹ − 11ᵀ/(αn)                       B1 = 0
    ŷ_I = y_I − (B_II)⁻¹(By)_I                        ŷ_i = y_i − (By)_i/B_ii for one agent

ŷ_I is what the Ridge trained on the other agents predicts. Tasks E that enter (d = +1) or leave (d = −1) the
subset change B by a matrix of rank |E|, D = diag(d)::

    B′ = B − BX_E(D + X_EᵀBX_E)⁻¹X_EᵀB

so that a fold whose subset differs from the base by E costs O(|I|²·|E| + |I|³ + |E|³), whatever n and k.

Symbols
-------
========  ========================  ========================  =====================
symbol    code                      shape                     unit
========  ========================  ========================  =====================
X         ``outcomes``              (n, k), NaN: missing      0 to 1
y         ``scores``                (n,)                      0 to 1
x̄         ``column_means``          (k,)                      0 to 1
β         ``coefficients``          (k,)                      score per outcome
b₀        ``intercept``             scalar                    score
α         ``alpha``                 scalar, 1 throughout      agents
B         ``residual_maker``        (n, n)                    1/agents
I         ``left_out``              (n_left_out,)             positions of agents
E, d      ``changed``, ``signs``    (n_changed,)              candidates, ±1
========  ========================  ========================  =====================

Limits: a constant y gives β = 0 and ŷ = y; α → ∞ gives ŷ = ȳ. ŷ is neither rounded nor clipped to [0, 1].

Not done here
-------------
α is not tuned. ŷ orders nobody: ranks rest on the plain mean over the subset. The leave-out algebra does not
cover tasks with a missing cell: what completes the cell is a mean over the fold's own training agents, so
that X itself changes from fold to fold. Such folds are fitted anew.

Source
------
Hoerl & Kennard, *Technometrics* 12 (1970) 55-67, Eq. 2.1. Ndzomga, *Efficient Benchmarking of AI Agents*,
§3.1 (α = 1). Saunders, Gammerman & Vovk, *ICML* 1998 (dual form). Cawley & Talbot, *Neural Networks* 17
(2004) 1467-1475 (leaving out with a free intercept). Hager, *SIAM Review* 31 (1989) 221-239 (low-rank
updates). Equal to scikit-learn's ``Ridge(alpha=1.0)`` to 1e-10 where no cell is missing.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from analytics.arrays import FloatArray, IndexArray, Mask, read_only
from selection.errors import (
    CellsMissing,
    NoTasks,
    OutcomeRefused,
    PenaltyRefused,
    ScoreMissing,
    SelectionError,
    ShapeMismatch,
    TaskUnobserved,
    TooFewAgents,
)

ALPHA = 1.0


class NotCovered(SelectionError):
    """A task with a missing cell, or one that is neither base nor candidate: the fold is fitted anew."""


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """A fitted calibration.

    Attributes
    ----------
    intercept : float
        b₀, in the unit of the score.
    coefficients : float array, shape (k,)
        β.
    column_means : float array, shape (k,)
        x̄, training means of the columns over their valid cells.
    n : int
        Training agents.
    alpha : float
        Penalty α.
    """

    intercept: float
    coefficients: FloatArray
    column_means: FloatArray
    n: int
    alpha: float

    @property
    def k(self) -> int:
        """Number of tasks in the subset."""
        return int(self.coefficients.size)


def fit(outcomes: FloatArray, scores: FloatArray, alpha: float = ALPHA) -> RidgeFit:
    """Fit ŷ = b₀ + x·β to training agents.

    Parameters
    ----------
    outcomes : float array, shape (n, k)
        Mean outcomes of the training agents on the subset; NaN where missing.
    scores : float array, shape (n,)
        Their full scores.
    alpha : float
        Penalty, above 0.

    Raises
    ------
    ShapeMismatch, NoTasks, TooFewAgents, OutcomeRefused, ScoreMissing, TaskUnobserved, PenaltyRefused
    """
    outcomes, scores = _checked_training(outcomes, scores, alpha)
    column_means = np.nanmean(outcomes, axis=0)
    centred = _completed(outcomes, column_means) - column_means
    mean_score = float(np.mean(scores))
    coefficients = _coefficients(centred, scores - mean_score, alpha)
    return RidgeFit(
        intercept=mean_score - float(column_means @ coefficients),
        coefficients=read_only(coefficients),
        column_means=read_only(column_means),
        n=scores.size,
        alpha=float(alpha),
    )


def predictable(outcomes: FloatArray) -> Mask:
    """Agents with at most a tenth of the subset missing, 10·n_missing ≤ k.

    Parameters
    ----------
    outcomes : float array, shape (q, k)
        Mean outcomes on the subset; NaN where missing.

    Returns
    -------
    bool array, shape (q,)
        All that `predict` accepts.

    Raises
    ------
    ShapeMismatch, NoTasks, OutcomeRefused
    """
    outcomes = _checked_outcomes(outcomes)
    n_missing = np.count_nonzero(np.isnan(outcomes), axis=1)
    return np.asarray(10 * n_missing <= outcomes.shape[1], dtype=np.bool_)


def predict(calibration: RidgeFit, outcomes: FloatArray) -> FloatArray:
    """Predicted full scores ŷ = b₀ + x·β, missing cells completed by x̄.

    Parameters
    ----------
    calibration : RidgeFit
    outcomes : float array, shape (q, k)
        Mean outcomes on the subset; NaN where missing.

    Returns
    -------
    float array, shape (q,)
        Never NaN; neither rounded nor clipped.

    Raises
    ------
    CellsMissing
        With the first agent for which `predictable` is false.
    ShapeMismatch, OutcomeRefused
    """
    outcomes = _checked_outcomes(outcomes)
    if outcomes.shape[1] != calibration.k:
        raise ShapeMismatch(f"{outcomes.shape[1]} tasks for a calibration on {calibration.k}")
    _refuse_unpredictable(outcomes)
    completed = _completed(outcomes, calibration.column_means)
    return np.asarray(calibration.intercept + completed @ calibration.coefficients, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class LeaveOut:
    """Ridge predictions of agents left out, on subsets near a base subset, without refitting.

    Made by `leave_out`. For every subset it `covers`, `predictions(left_out, tasks)` equals
    ``predict(fit(X[others][:, tasks], y[others]), X[left_out][:, tasks])``.

    Attributes
    ----------
    scores : float array, shape (n,)
        y.
    in_base : bool array, shape (n_tasks,)
        Tasks of the base subset without a missing cell.
    position : int array, shape (n_tasks,)
        Place of a task among the candidates without a missing cell; −1 elsewhere.
    residual_maker : float array, shape (n, n)
        B on the base subset.
    residuals : float array, shape (n,)
        By, the residuals of the fit to all n agents divided by α.
    candidate_columns : float array, shape (n, n_candidates)
        BX_C.
    candidate_gram : float array, shape (n_candidates, n_candidates)
        X_CᵀBX_C.
    candidate_scores : float array, shape (n_candidates,)
        X_CᵀBy.
    """

    scores: FloatArray
    in_base: Mask
    position: IndexArray
    residual_maker: FloatArray
    residuals: FloatArray
    candidate_columns: FloatArray
    candidate_gram: FloatArray
    candidate_scores: FloatArray

    def covers(self, tasks: IndexArray) -> bool:
        """Whether `predictions` can tell this subset: no cell missing, and what changed is a candidate.

        Where it is false the fold is fitted anew, by `fit` and `predict`.

        Parameters
        ----------
        tasks : int array, shape (k,)
            Task indices, none twice.
        """
        return bool((self.position[self._mask(tasks) != self.in_base] >= 0).all())

    def predictions(self, left_out: IndexArray, tasks: IndexArray) -> FloatArray:
        """ŷ_I = y_I − (B′_II)⁻¹(B′y)_I, trained on the agents not left out, on the subset `tasks`.

        Parameters
        ----------
        left_out : int array, shape (n_left_out,)
            Positions of the agents left out, none twice; at least 2 agents remain.
        tasks : int array, shape (k,)
            Task indices of the fold's subset, none twice, k ≥ 1.

        Returns
        -------
        float array, shape (n_left_out,)
            In the order of `left_out`; neither rounded nor clipped.

        Raises
        ------
        NotCovered
            When `covers` is false.
        NoTasks, TooFewAgents, ShapeMismatch
        """
        left_out, tasks = self._checked(left_out, tasks)
        maker, residuals = self._updated(left_out, self._mask(tasks))
        return np.asarray(self.scores[left_out] - np.linalg.solve(maker, residuals), dtype=np.float64)

    def _updated(self, left_out: IndexArray, in_tasks: Mask) -> tuple[FloatArray, FloatArray]:
        """B′_II and (B′y)_I."""
        maker, residuals = self.residual_maker[np.ix_(left_out, left_out)], self.residuals[left_out]
        tasks_changed = np.flatnonzero(np.not_equal(in_tasks, self.in_base))
        if not tasks_changed.size:
            return maker, residuals
        changed, signs = self.position[tasks_changed], 2.0 * in_tasks[tasks_changed] - 1.0
        columns = self.candidate_columns[np.ix_(left_out, changed)]
        right_side = np.column_stack([columns.T, self.candidate_scores[changed]])
        inner = np.diag(signs) + self.candidate_gram[np.ix_(changed, changed)]
        correction = columns @ np.linalg.solve(inner, right_side)
        return maker - correction[:, :-1], residuals - correction[:, -1]

    def _mask(self, tasks: IndexArray) -> Mask:
        mask = np.zeros(self.in_base.size, dtype=np.bool_)
        mask[tasks] = True
        return mask

    def _checked(self, left_out: IndexArray, tasks: IndexArray) -> tuple[IndexArray, IndexArray]:
        left_out, tasks = np.asarray(left_out, dtype=np.intp), np.asarray(tasks, dtype=np.intp)
        if not tasks.size:
            raise NoTasks("no task in the subset")
        n_left_out = np.unique(left_out).size
        if n_left_out != left_out.size:
            raise ShapeMismatch(f"{left_out.size} agents left out, of whom {n_left_out} differ")
        if self.scores.size - n_left_out < 2:
            n_others = self.scores.size - n_left_out
            raise TooFewAgents(f"a calibration needs at least 2 agents; there are {n_others}")
        if not self.covers(tasks):
            raise NotCovered("a cell of the subset is missing, or a task that changed is no candidate")
        return left_out, tasks


def leave_out(
    outcomes: FloatArray,
    scores: FloatArray,
    base: IndexArray,
    candidates: IndexArray | None = None,
    alpha: float = ALPHA,
) -> LeaveOut:
    """Prepare the predictions of agents left out on subsets near `base`.

    Parameters
    ----------
    outcomes : float array, shape (n, n_tasks)
        Mean outcomes of all n agents on all active tasks; NaN where missing.
    scores : float array, shape (n,)
        Their full scores.
    base : int array, shape (k,)
        Task indices of the subset that the folds' subsets differ little from.
    candidates : int array, shape (n_candidates,), optional
        Tasks that may enter or leave; all tasks when not given. Costs O(n²k + n³ + n²·n_candidates +
        n·n_candidates²), once.
    alpha : float
        Penalty, above 0.

    Raises
    ------
    ShapeMismatch, NoTasks, TooFewAgents, OutcomeRefused, ScoreMissing, PenaltyRefused
    """
    outcomes, scores = _checked_agents(outcomes, scores, alpha)
    n_tasks = outcomes.shape[1]
    in_full = np.asarray(~np.isnan(outcomes).any(axis=0), dtype=np.bool_)
    base = _checked_tasks(base, n_tasks)
    chosen = _checked_tasks(np.arange(n_tasks) if candidates is None else candidates, n_tasks)
    return _leave_out(outcomes, scores, base[in_full[base]], chosen[in_full[chosen]], alpha)


def leave_one_out(outcomes: FloatArray, scores: FloatArray, alpha: float = ALPHA) -> FloatArray:
    """ŷ_i = y_i − (By)_i/B_ii: each agent's score, predicted by the Ridge trained on all others.

    Parameters
    ----------
    outcomes : float array, shape (n, k)
        Mean outcomes on one subset, none missing.
    scores : float array, shape (n,)
        Full scores, n ≥ 3.
    alpha : float
        Penalty, above 0.

    Returns
    -------
    float array, shape (n,)
        Neither rounded nor clipped.

    Raises
    ------
    NotCovered
        When a cell is missing: what completes it is another mean in every fold.
    ShapeMismatch, NoTasks, TooFewAgents, OutcomeRefused, ScoreMissing, PenaltyRefused
    """
    outcomes, scores = _checked_training(outcomes, scores, alpha)
    if np.isnan(outcomes).any():
        i, j = np.argwhere(np.isnan(outcomes))[0]
        raise NotCovered(f"agent {i} lacks task {j} of the subset; the folds are fitted one by one")
    if scores.size < 3:
        raise TooFewAgents(f"a calibration needs at least 2 agents; there are {scores.size - 1}")
    maker = _residual_maker(outcomes, alpha)
    return np.asarray(scores - maker @ scores / np.diag(maker), dtype=np.float64)


# ---------------------------------------------------------------------------------------------- arithmetic


def _centred(outcomes: FloatArray) -> FloatArray:
    return np.asarray(outcomes - np.mean(outcomes, axis=0), dtype=np.float64)


def _residual_maker(outcomes: FloatArray, alpha: float) -> FloatArray:
    """B = (CCᵀ + αI)⁻¹ − 11ᵀ/(αn); By are the residuals of the fit divided by α."""
    n = outcomes.shape[0]
    centred = _centred(outcomes)
    inverse = scipy.linalg.inv(centred @ centred.T + alpha * np.eye(n), assume_a="pos", overwrite_a=True)
    return np.asarray(inverse - 1.0 / (alpha * n), dtype=np.float64)


def _leave_out(
    outcomes: FloatArray,
    scores: FloatArray,
    base: IndexArray,
    candidates: IndexArray,
    alpha: float,
) -> LeaveOut:
    n_tasks = outcomes.shape[1]
    in_base, position = np.zeros(n_tasks, dtype=np.bool_), np.full(n_tasks, -1, dtype=np.intp)
    in_base[base], position[candidates] = True, np.arange(candidates.size)
    maker, columns = _residual_maker(outcomes[:, base], alpha), _centred(outcomes[:, candidates])
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


def _completed(outcomes: FloatArray, column_means: FloatArray) -> FloatArray:
    return np.where(np.isnan(outcomes), column_means, outcomes)


def _coefficients(centred: FloatArray, centred_scores: FloatArray, alpha: float) -> FloatArray:
    """(CᵀC + αI)⁻¹Cᵀy or Cᵀ(CCᵀ + αI)⁻¹y, whichever system is smaller."""
    n, k = centred.shape
    if k <= n:
        return _solution(centred.T @ centred, centred.T @ centred_scores, alpha)
    return np.asarray(centred.T @ _solution(centred @ centred.T, centred_scores, alpha), dtype=np.float64)


def _solution(gram: FloatArray, right_side: FloatArray, alpha: float) -> FloatArray:
    """(G + αI)⁻¹ r; never singular, as α > 0."""
    penalised = gram + alpha * np.eye(len(gram))
    return np.asarray(np.linalg.solve(penalised, right_side), dtype=np.float64)


# -------------------------------------------------------------------------------------------------- checks


def _checked_outcomes(outcomes: FloatArray) -> FloatArray:
    outcomes = np.asarray(outcomes, dtype=np.float64)
    if outcomes.ndim != 2:
        raise ShapeMismatch(f"outcomes have shape {outcomes.shape}, not (agents, tasks of the subset)")
    if outcomes.shape[1] == 0:
        raise NoTasks("no task in the subset")
    wrong = ~np.isnan(outcomes) & ~((outcomes >= 0.0) & (outcomes <= 1.0))
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise OutcomeRefused(f"agent {i}, task {j} of the subset: {outcomes[i, j]} is not from 0 to 1")
    return outcomes


def _checked_training(
    outcomes: FloatArray, scores: FloatArray, alpha: float
) -> tuple[FloatArray, FloatArray]:
    outcomes, scores = _checked_agents(outcomes, scores, alpha)
    unobserved = np.isnan(outcomes).all(axis=0)
    if unobserved.any():
        raise TaskUnobserved(f"task {int(np.argmax(unobserved))} of the subset: no training agent has run it")
    return outcomes, scores


def _checked_agents(outcomes: FloatArray, scores: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
    outcomes, scores = _checked_outcomes(outcomes), np.asarray(scores, dtype=np.float64)
    if scores.shape != (outcomes.shape[0],):
        raise ShapeMismatch(f"scores {scores.shape} for {outcomes.shape[0]} agents")
    if scores.size < 2:
        raise TooFewAgents(f"a calibration needs at least 2 agents; there are {scores.size}")
    if not np.isfinite(scores).all():
        raise ScoreMissing(f"agent {int(np.argmin(np.isfinite(scores)))} has no full score")
    if not (np.isfinite(alpha) and alpha > 0.0):
        raise PenaltyRefused(f"a penalty of {alpha}; it is finite and above 0")
    return outcomes, scores


def _checked_tasks(tasks: IndexArray, n_tasks: int) -> IndexArray:
    tasks = np.unique(np.asarray(tasks, dtype=np.intp))
    if tasks.size and not 0 <= tasks[0] <= tasks[-1] < n_tasks:
        raise ShapeMismatch(f"tasks {tasks[0]} to {tasks[-1]} where there are {n_tasks}")
    return tasks


def _refuse_unpredictable(outcomes: FloatArray) -> None:
    accepted = predictable(outcomes)
    if not accepted.all():
        i = int(np.argmin(accepted))
        n_missing, k = int(np.count_nonzero(np.isnan(outcomes[i]))), outcomes.shape[1]
        raise CellsMissing(
            f"agent {i} lacks {n_missing} of {k} tasks of the subset; at most {k // 10} may be missing"
        )
