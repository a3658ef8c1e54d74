"""``ridge`` or ``line`` fitted to complete agents on one subset: what it predicts, and without each in turn.

=============  ==========================================================================================
estimator      without agent i
=============  ==========================================================================================
ridge          `refits`
line           fitted anew
=============  ==========================================================================================

Symbols: x ``outcomes`` (q, k), NaN: missing; ŷ = μ(x) (q,); μ₋ᵢ(x) (q, n); n complete agents.

Not done here: nothing is clipped or rounded. An agent that lacks over a tenth of S is refused.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from analytics.arrays import FloatArray, IndexArray
from selection import ridge
from selection.errors import SelectionError
from selection.folds import CompleteAgents
from selection.full_scores import straight
from selection.full_scores.estimators import EstimatorName, checked_name
from selection.full_scores.refits import RefitsWithout, refits_without


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
