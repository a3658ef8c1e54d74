"""Ridge calibration: an agent's expected full score, from its outcomes on the subset.

The theory is in ``selection/README.md``, “Ridge calibration”.

Source: Hoerl & Kennard, *Technometrics* 12 (1970) 55-67, Eq. 2.1. Ndzomga, *Efficient Benchmarking of AI
Agents*, §3.1 (α = 1). Saunders, Gammerman & Vovk, *ICML* 1998 (dual form). Equal to scikit-learn's
``Ridge(alpha=1.0)`` to 1e-10 where no cell is missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from analytics.arrays import FloatArray, Mask, read_only
from selection.bands import checked_outcomes
from selection.errors import SelectionError

ALPHA = 1.0
OF_TASKS = ("coefficients", "column_means")


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """A fitted calibration.

    intercept: b₀, in the unit of the score.
    coefficients: (k,); β.
    column_means: (k,); x̄, training means of the columns over their valid cells.
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

    def as_plain(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        arrays = {name: getattr(self, name).tolist() for name in OF_TASKS}
        return {"intercept": self.intercept, "n": self.n, "alpha": self.alpha} | arrays

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> "RidgeFit":
        """Return what `as_plain` was made of."""
        arrays = {name: read_only(np.array(plain[name], dtype=np.float64)) for name in OF_TASKS}
        return cls(**{**plain, **arrays})


def fit(outcomes: FloatArray, scores: FloatArray, alpha: float = ALPHA) -> RidgeFit:
    """Fit ŷ = b₀ + x·β to training agents.

    outcomes: (n, k); mean outcomes of the training agents on the subset; NaN where missing.
    scores: (n,); their full scores.
    alpha: penalty, above 0.
    """
    outcomes, scores = checked_training(outcomes, scores, alpha)
    column_means = np.nanmean(outcomes, axis=0)
    centred = np.where(np.isnan(outcomes), column_means, outcomes) - column_means
    mean_score, (n, k) = float(np.mean(scores)), centred.shape
    # (CᵀC + αI)⁻¹Cᵀy or Cᵀ(CCᵀ + αI)⁻¹y, whichever system is smaller; never singular, as α > 0
    gram = centred.T @ centred if k <= n else centred @ centred.T
    right_side = centred.T @ (scores - mean_score) if k <= n else scores - mean_score
    solution = np.linalg.solve(gram + alpha * np.eye(len(gram)), right_side)
    coefficients = np.asarray(solution if k <= n else centred.T @ solution, dtype=np.float64)
    return RidgeFit(
        intercept=mean_score - float(column_means @ coefficients),
        coefficients=read_only(coefficients),
        column_means=read_only(column_means),
        n=scores.size,
        alpha=float(alpha),
    )


def predictable(outcomes: FloatArray) -> Mask:
    """Agents that `predict` accepts, with 10·n_missing ≤ k, (q, k) to (q,)."""
    outcomes = _checked_outcomes(outcomes)
    n_missing = np.count_nonzero(np.isnan(outcomes), axis=1)
    return np.asarray(10 * n_missing <= outcomes.shape[1], dtype=np.bool_)


def refuse_unpredictable(outcomes: FloatArray) -> None:
    """Refuse the first of some agents that lacks over a tenth of the subset, (q, k).

    Raises SelectionError (cells_missing).
    """
    accepted = predictable(outcomes)
    if not accepted.all():
        i, k = int(np.argmin(accepted)), outcomes.shape[1]
        n_missing = int(np.count_nonzero(np.isnan(outcomes[i])))
        raise SelectionError(
            f"agent {i} lacks {n_missing} of {k} tasks of the subset; at most {k // 10} may be missing",
            code="cells_missing",
        )


def predict(calibration: RidgeFit, outcomes: FloatArray) -> FloatArray:
    """Predicted full scores ŷ = b₀ + x·β, missing cells completed by x̄, (q, k) to (q,); never NaN.

    Raises SelectionError: shape; cells_missing.
    """
    outcomes = _checked_outcomes(outcomes)
    if outcomes.shape[1] != calibration.k:
        raise SelectionError(f"{outcomes.shape[1]} tasks for a calibration on {calibration.k}", code="shape")
    refuse_unpredictable(outcomes)
    completed = np.where(np.isnan(outcomes), calibration.column_means, outcomes)
    return np.asarray(calibration.intercept + completed @ calibration.coefficients, dtype=np.float64)


def _checked_outcomes(outcomes: FloatArray) -> FloatArray:
    axes = "(agents, tasks of the subset)"
    return checked_outcomes(outcomes, "no task in the subset", axes, " of the subset")


def checked_training(outcomes: FloatArray, scores: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Check as `checked_agents` does, and that somebody ran every task."""
    outcomes, scores = checked_agents(outcomes, scores, alpha)
    unobserved = np.isnan(outcomes).all(axis=0)
    if unobserved.any():
        raise SelectionError(
            f"task {int(np.argmax(unobserved))} of the subset: no training agent has run it",
            code="task_unobserved",
        )
    return outcomes, scores


def checked_agents(outcomes: FloatArray, scores: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Refuse, by name, what no Ridge can be fitted to; return float arrays."""
    outcomes, scores = _checked_outcomes(outcomes), np.asarray(scores, dtype=np.float64)
    if scores.shape != (outcomes.shape[0],):
        raise SelectionError(f"scores {scores.shape} for {outcomes.shape[0]} agents", code="shape")
    if scores.size < 2:
        raise SelectionError(
            f"a calibration needs at least 2 agents; there are {scores.size}", code="too_few_agents"
        )
    if not np.isfinite(scores).all():
        raise SelectionError(
            f"agent {int(np.argmin(np.isfinite(scores)))} has no full score", code="score_missing"
        )
    if not (np.isfinite(alpha) and alpha > 0.0):
        raise SelectionError(f"a penalty of {alpha}; it is finite and above 0", code="penalty_range")
    return outcomes, scores
