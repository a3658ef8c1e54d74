"""An estimator fitted to complete agents on one subset: what it predicts, and without each of them in turn.

=============  ==========================================================================================
estimator      without agent i
=============  ==========================================================================================
completion     b̂ fitted without i (as in the folds that leave i out), θ̂ by these, Ridge by `refits`
ridge          `refits`
line           fitted anew
=============  ==========================================================================================

Symbols: x ``outcomes`` (q, k), NaN: missing; ŷ = μ(x) (q,); μ₋ᵢ(x) (q, n); n complete agents, m tasks.

Not done here: nothing is clipped or rounded. An agent that lacks over a tenth of S is refused.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol

import numpy as np

from analytics.arrays import FloatArray, IndexArray
from selection import ridge
from selection.folds import CompleteAgents
from selection.full_scores import completion, straight
from selection.full_scores.estimators import EstimatorName, FullScoreRefused, checked_name
from selection.full_scores.refits import RefitsWithout, completed, refits_without


class _Model(Protocol):
    def predict(self, outcomes: FloatArray) -> FloatArray:
        """μ(x), shape (q,)."""

    def predict_without(self, outcomes: FloatArray) -> FloatArray:
        """μ₋ᵢ(x), shape (q, n)."""


@dataclass(frozen=True, eq=False)
class FullScores:
    """An estimator of the full score, fitted when it is first asked.

    Attributes
    ----------
    estimator : {"completion", "ridge", "line"}
    agents : CompleteAgents
        Whom it is fitted to.
    tasks : int array, shape (k,)
        Positions of the subset's tasks, ascending.
    """

    estimator: EstimatorName
    agents: CompleteAgents
    tasks: IndexArray

    @property
    def n(self) -> int:
        """Number of complete agents."""
        return self.agents.n

    def predict(self, outcomes: FloatArray) -> FloatArray:
        """ŷ of agents from their outcomes on the subset, shape (q,); never NaN.

        Parameters
        ----------
        outcomes : float array, shape (q, k)
            NaN where missing.

        Raises
        ------
        FullScoreRefused
            An agent lacks over a tenth of the subset (cells_missing).
        TooFewAgents, TaskUnobserved, NoTasks, OutcomeRefused
            As `selection.ridge.fit`.
        """
        return self._model.predict(_checked(outcomes))

    def predict_without(self, outcomes: FloatArray) -> FloatArray:
        """μ₋ᵢ(x): what the estimator fitted without agent i predicts, shape (q, n).

        Parameters
        ----------
        outcomes : float array, shape (q, k)

        Raises
        ------
        As `predict`.
        """
        return self._model.predict_without(_checked(outcomes))

    @cached_property
    def _model(self) -> _Model:
        if self.estimator == "completion":
            return _Completion(self.agents, self.tasks)
        made: type[_Ridge] | type[_Line] = _Ridge if self.estimator == "ridge" else _Line
        return made(self.agents.outcomes[:, self.tasks], self.agents.scores)


def fit(estimator: str, agents: CompleteAgents, tasks: IndexArray) -> FullScores:
    """Fit an estimator to complete agents.

    Parameters
    ----------
    estimator : {"completion", "ridge", "line"}
    agents : CompleteAgents
    tasks : int array, shape (k,)

    Raises
    ------
    FullScoreRefused
        There is no such estimator (name_unknown).
    """
    return FullScores(checked_name(estimator), agents, np.asarray(tasks, dtype=np.intp))


def refuse_unpredictable(outcomes: FloatArray) -> None:
    """Refuse the first of some agents that lacks over a tenth of the subset, (q, k).

    Raises
    ------
    FullScoreRefused
    """
    accepted = ridge.predictable(outcomes)
    if not accepted.all():
        i, k = int(np.argmin(accepted)), outcomes.shape[1]
        n_missing = int(np.count_nonzero(np.isnan(outcomes[i])))
        raise FullScoreRefused(
            f"agent {i} lacks {n_missing} of {k} tasks of the subset; at most {k // 10} may be missing",
            code="cells_missing",
        )


# -------------------------------------------------------------------------------------------------- models


@dataclass(frozen=True, eq=False)
class _Ridge:
    """``ridge`` on the outcomes on the subset, (n, k)."""

    outcomes: FloatArray
    scores: FloatArray

    @cached_property
    def fitted(self) -> ridge.RidgeFit:
        return ridge.fit(self.outcomes, self.scores)

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
        kept = [np.arange(self.scores.size) != i for i in range(self.scores.size)]
        fits = [straight.fit(self.outcomes[others], self.scores[others]) for others in kept]
        return np.array([straight.predict(fitted, outcomes) for fitted in fits]).T


@dataclass(frozen=True, eq=False)
class _Completion:
    """``completion`` on a subset of all tasks."""

    agents: CompleteAgents
    tasks: IndexArray

    @property
    def m(self) -> int:
        return int(self.agents.outcomes.shape[1])

    @cached_property
    def outcomes(self) -> FloatArray:
        """X on the subset, (n, k)."""
        return self.agents.outcomes[:, self.tasks]

    @cached_property
    def of_rest(self) -> ridge.RidgeFit:
        """Ridge of the mean outside S."""
        outcomes, scores = ridge.checked_training(self.outcomes, self.agents.scores, ridge.ALPHA)
        return ridge.fit(outcomes, _outside(completed(outcomes), scores, m=self.m))

    @cached_property
    def of_rest_without(self) -> RefitsWithout:
        return refits_without(self.outcomes, self.agents.scores, partial(_outside, m=self.m))

    def predict(self, outcomes: FloatArray) -> FloatArray:
        k, everyone = self.tasks.size, np.arange(self.agents.n)
        ridge.checked_agents(self.outcomes, self.agents.scores, ridge.ALPHA)
        whole = np.where(np.isnan(outcomes), np.nanmean(self.outcomes, axis=0), outcomes)
        if k == self.m:
            return np.asarray(whole.sum(axis=1) / self.m)
        by_ridge = ridge.predict(self.of_rest, outcomes)
        (difficulties,) = completion.difficulties_of(self.agents, [everyone])
        by_rasch = self._by_rasch(outcomes, difficulties)
        return completion.combined(whole.sum(axis=1), by_rasch, by_ridge, k, self.m)

    def predict_without(self, outcomes: FloatArray) -> FloatArray:
        k, everyone = self.tasks.size, np.arange(self.agents.n)
        without = refits_without(self.outcomes, self.agents.scores) if k == self.m else self.of_rest_without
        known = without.totals(outcomes)
        if k == self.m:
            return known / self.m
        fitted = completion.difficulties_of(self.agents, [everyone[everyone != i] for i in everyone])
        by_rasch = np.array([self._by_rasch(outcomes, difficulties) for difficulties in fitted]).T
        return completion.combined(known, by_rasch, without.predictions(outcomes), k, self.m)

    def _by_rasch(self, outcomes: FloatArray, difficulties: FloatArray) -> FloatArray:
        """p̂ of rows on the subset, shape (q,)."""
        others = np.setdiff1d(np.arange(self.m), self.tasks)
        return completion.expected_elsewhere(outcomes, difficulties[self.tasks], difficulties[others])


def _outside(outcomes: FloatArray, scores: FloatArray, *, m: int) -> FloatArray:
    return completion.means_outside(outcomes.sum(axis=1), scores, outcomes.shape[1], m)


def _checked(outcomes: FloatArray) -> FloatArray:
    outcomes = np.asarray(outcomes, dtype=np.float64)
    refuse_unpredictable(outcomes)
    return outcomes
