"""``ridge`` or ``line`` fitted to complete agents on one subset: what it predicts, and without each in turn.

=============  ==========================================================================================
estimator      without agent i
=============  ==========================================================================================
ridge          `refits`
line           fitted anew
=============  ==========================================================================================

Symbols: x ``outcomes`` (q, k), NaN: missing; ŷ = μ(x) (q,); μ₋ᵢ(x) (q, n); n complete agents.

Not done here: nothing is clipped or rounded. An agent that lacks over a tenth of S is refused.

Ridge without each training agent in turn, all at once.

Model
-----
With C the matrix of S centred on its column means, e the residuals of the fit to all n agents and
h_i = 1/n + c_iᵀ(CᵀC + αI)⁻¹c_i their leverages::

    β₋ᵢ = β − (CᵀC + αI)⁻¹c_i·e_i/(1 − h_i),    (CᵀC + αI)⁻¹Cᵀ = Cᵀ(CCᵀ + αI)⁻¹        one n × n system
    x̄₋ᵢ = x̄ − c_i/(n − 1),    b₀₋ᵢ = ȳ − e_i/(n(1 − h_i)) − x̄·β₋ᵢ

Where a training cell is missing, what completes it changes with the agents left, and the n refits are made.

Symbols: X ``outcomes`` (n, k), y ``scores`` (n,), β₋ᵢ ``coefficients`` (n, k), x̄₋ᵢ ``column_means`` (n, k).

Not done here: α is that of `selection.ridge`.

Source: Cawley & Talbot, *Neural Networks* 17 (2004) 1467-1475.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import scipy.linalg

from analytics.arrays import FloatArray, IndexArray, read_only
from selection import ridge
from selection.errors import SelectionError
from selection.folds import CompleteAgents
from selection.full_scores import straight
from selection.full_scores.estimators import EstimatorName, checked_name


@dataclass(frozen=True, eq=False)
class RefitsWithout:
    """The n Ridge fits that each leave one training agent out.

    intercepts: (n_agents,).
    coefficients, column_means: (n_agents, k).
    """

    intercepts: FloatArray
    coefficients: FloatArray
    column_means: FloatArray

    def predictions(self, outcomes: FloatArray) -> FloatArray:
        """μ₋ᵢ(x) for every x and every i, shape (q, n_agents); a missing cell takes x̄₋ᵢ.

        outcomes: (q, k); NaN where missing.
        """
        missing = np.isnan(outcomes)
        observed = np.where(missing, 0.0, outcomes) @ self.coefficients.T
        completed = missing @ (self.column_means * self.coefficients).T
        return np.asarray(self.intercepts + observed + completed, dtype=np.float64)


def refits_without(outcomes: FloatArray, scores: FloatArray) -> RefitsWithout:
    """Fit the Ridge without each agent in turn: all at once where no cell is missing, one by one elsewhere.

    outcomes: (n_agents, k); NaN where missing; n_agents ≥ 3.
    scores: (n_agents,).
    Raises As `selection.ridge.fit`..
    """
    if np.isnan(outcomes).any() or len(scores) < 3:
        return _one_by_one(outcomes, scores)
    n = scores.size
    fitted = ridge.fit(outcomes, scores)
    centred = outcomes - fitted.column_means
    inverse = scipy.linalg.inv(centred @ centred.T + ridge.ALPHA * np.eye(n), assume_a="pos")
    directions = inverse @ centred
    leverages = 1.0 / n + np.sum(directions * centred, axis=1)
    steps = (scores - ridge.predict(fitted, outcomes)) / (1.0 - leverages)
    coefficients = fitted.coefficients - directions * steps[:, None]
    return RefitsWithout(
        intercepts=read_only(np.mean(scores) - steps / n - coefficients @ fitted.column_means),
        coefficients=read_only(coefficients),
        column_means=read_only(fitted.column_means - centred / (n - 1)),
    )


def _one_by_one(outcomes: FloatArray, scores: FloatArray) -> RefitsWithout:
    others_of = [np.arange(scores.size) != i for i in range(scores.size)]
    for others in others_of:
        ridge.checked_training(outcomes[others], scores[others], ridge.ALPHA)
    fits = [ridge.fit(outcomes[others], scores[others]) for others in others_of]
    return RefitsWithout(
        intercepts=read_only(np.array([fitted.intercept for fitted in fits])),
        coefficients=read_only(np.array([fitted.coefficients for fitted in fits])),
        column_means=read_only(np.array([fitted.column_means for fitted in fits])),
    )


class _CompletionModel(Protocol):
    def predict(self, outcomes: FloatArray) -> FloatArray:
        """μ(x), shape (q,)."""

    def predict_without(self, outcomes: FloatArray) -> FloatArray:
        """μ₋ᵢ(x), shape (q, n)."""


@dataclass(frozen=True, eq=False)
class FullScores:
    """An estimator of the full score, fitted when it is first asked.

    estimator: {"ridge", "line"}.
    agents: whom it is fitted to.
    tasks: (k,); positions of the subset's tasks, ascending.
    known: the Ridge fitted to them before.
    """

    estimator: EstimatorName
    agents: CompleteAgents
    tasks: IndexArray
    known: ridge.RidgeFit | None = None

    @property
    def n(self) -> int:
        """Number of complete agents."""
        return self.agents.n

    def predict(self, outcomes: FloatArray) -> FloatArray:
        """ŷ of agents from their outcomes on the subset, shape (q,); never NaN.

        outcomes: (q, k); NaN where missing.
        Raises SelectionError: cells_missing: an agent lacks over a tenth of the subset. As
            `selection.ridge.fit`.
        """
        return self._model.predict(_checked(outcomes))

    def predict_without(self, outcomes: FloatArray) -> FloatArray:
        """μ₋ᵢ(x): what the estimator fitted without agent i predicts, shape (q, n).

        outcomes: (q, k).
        Raises As `predict`..
        """
        return self._model.predict_without(_checked(outcomes))

    @cached_property
    def _model(self) -> _CompletionModel:
        outcomes, scores = self.agents.outcomes[:, self.tasks], self.agents.scores
        return _Ridge(outcomes, scores, self.known) if self.estimator == "ridge" else _Line(outcomes, scores)


def fit(
    estimator: str, agents: CompleteAgents, tasks: IndexArray, known: ridge.RidgeFit | None = None
) -> FullScores:
    """Fit an estimator to complete agents.

    estimator: {"ridge", "line"}.
    tasks: (k,).
    Raises SelectionError: name_unknown; no_fit: `completion` has no fit of its own to a subset.
    """
    name = checked_name(estimator)
    if name == "completion":
        raise SelectionError("completion is fitted to all tasks, not to a subset", code="no_fit")
    return FullScores(name, agents, np.asarray(tasks, dtype=np.intp), known)


def refuse_unpredictable(outcomes: FloatArray) -> None:
    """Refuse the first of some agents that lacks over a tenth of the subset, (q, k).

    Raises SelectionError (name_unknown, no_fit, cells_missing).
    """
    accepted = ridge.predictable(outcomes)
    if not accepted.all():
        i, k = int(np.argmin(accepted)), outcomes.shape[1]
        n_missing = int(np.count_nonzero(np.isnan(outcomes[i])))
        raise SelectionError(
            f"agent {i} lacks {n_missing} of {k} tasks of the subset; at most {k // 10} may be missing",
            code="cells_missing",
        )


# -------------------------------------------------------------------------------------------------- models


@dataclass(frozen=True, eq=False)
class _Ridge:
    """``ridge`` on the outcomes on the subset, (n, k)."""

    outcomes: FloatArray
    scores: FloatArray
    known: ridge.RidgeFit | None

    @cached_property
    def fitted(self) -> ridge.RidgeFit:
        return self.known or ridge.fit(self.outcomes, self.scores)

    @cached_property
    def without(self) -> RefitsWithout:
        return refits_without(self.outcomes, self.scores)

    def predict(self, outcomes: FloatArray) -> FloatArray:
        return ridge.predict(self.fitted, outcomes)

    def predict_without(self, outcomes: FloatArray) -> FloatArray:
        return self.without.predictions(outcomes)


@dataclass(frozen=True, eq=False)
class _Line:
    """``line`` on the outcomes on the subset, (n, k)."""

    outcomes: FloatArray
    scores: FloatArray

    def predict(self, outcomes: FloatArray) -> FloatArray:
        return straight.predict(straight.fit(self.outcomes, self.scores), outcomes)

    def predict_without(self, outcomes: FloatArray) -> FloatArray:
        others_of = [np.arange(self.scores.size) != i for i in range(self.scores.size)]
        fits = [straight.fit(self.outcomes[others], self.scores[others]) for others in others_of]
        return np.array([straight.predict(fitted, outcomes) for fitted in fits]).T


def _checked(outcomes: FloatArray) -> FloatArray:
    outcomes = np.asarray(outcomes, dtype=np.float64)
    refuse_unpredictable(outcomes)
    return outcomes
