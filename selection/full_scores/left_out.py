"""Predictions of the agents that folds hold out, by any estimator.

Every fold's prediction is that of the estimator fitted to the fold's training agents on the fold's subset.
``ridge`` comes from the linear algebra that the folds share (`selection.fold_predictions`).

Symbols: X ``outcomes`` (n, m), y ``scores`` (n,), S ``subsets`` (k,) for each fold, membership ``members``
(n_folds, m).
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from analytics.arrays import FloatArray, IndexArray, Mask
from selection import fold_predictions as of_ridge
from selection import ridge
from selection.folds import CompleteAgents, Fold
from selection.full_scores import completion, straight
from selection.full_scores.estimators import checked_name
from selection.full_scores.fitted import refuse_unpredictable


class HeldOut(Protocol):
    """What is asked of a fold: positions of agents, ascending and disjoint."""

    @property
    def held_out(self) -> IndexArray:
        """Agents that are predicted."""

    @property
    def training(self) -> IndexArray:
        """Agents that the prediction is learned from."""


def fold_predictions(
    estimator: str,
    outcomes: FloatArray,
    scores: FloatArray,
    folds: Sequence[HeldOut],
    subsets: Sequence[IndexArray],
) -> list[FloatArray]:
    """ŷ of the held-out agents of each fold, from its training agents and its subset alone.

    estimator: {"completion", "ridge", "line"}.
    outcomes: (n, m); mean outcomes of complete agents on the active tasks; NaN where missing.
    scores: (n,); their full scores.
    folds: length n_folds.
    subsets: length n_folds; tasks of each fold's subset, ascending.
    Returns: (n_held_out,); in the order of `held_out`; never NaN; neither rounded nor clipped.
    Raises SelectionError: name_unknown; cells_missing: a held-out agent lacks more than a tenth of the
        subset. As `selection.ridge.fit`.
    """
    return predictions(estimator, unnamed(outcomes, scores), folds, subsets)


def predictions(
    estimator: str, agents: CompleteAgents, folds: Sequence[HeldOut], subsets: Sequence[IndexArray]
) -> list[FloatArray]:
    """Do what `fold_predictions` does; what the folds share is kept with the agents for another call.

    estimator: {"completion", "ridge", "line"}.
    folds: length n_folds.
    subsets: length n_folds.
    """
    name = checked_name(estimator)
    _refuse_unpredictable(agents.outcomes, folds, subsets)
    if name == "completion":
        held_out, trained = ([getattr(fold, part) for fold in folds] for part in ("held_out", "training"))
        return completion.predictions(agents, held_out, trained, subsets)
    if name == "ridge":
        return _ridge(agents, folds, subsets)
    return [_line(agents, fold, tasks) for fold, tasks in zip(folds, subsets, strict=True)]


def unnamed(outcomes: FloatArray, scores: FloatArray) -> CompleteAgents:
    """Return complete agents of which nothing else is known."""
    outcomes, scores = ridge.checked_agents(outcomes, scores, ridge.ALPHA)
    n = scores.size
    names = tuple(str(i) for i in range(n))
    unknown = ("",) * n
    return CompleteAgents(names, outcomes, scores, (None,) * n, unknown, unknown, np.ones(n))


def members_of(subsets: Sequence[IndexArray], n_tasks: int) -> Mask:
    """Membership of every task in every fold's subset, shape (n_folds, n_tasks)."""
    members = np.zeros((len(subsets), n_tasks), dtype=np.bool_)
    for row, tasks in zip(members, subsets, strict=True):
        row[tasks] = True
    return members


# ---------------------------------------------------------------------------------------------- estimators


def _ridge(
    agents: CompleteAgents, folds: Sequence[HeldOut], subsets: Sequence[IndexArray]
) -> list[FloatArray]:
    members = members_of(subsets, agents.outcomes.shape[1])
    named = [Fold(str(f), fold.held_out, fold.training) for f, fold in enumerate(folds)]
    return of_ridge.predictions(agents, named, [fold.held_out for fold in folds], members)


def _line(agents: CompleteAgents, fold: HeldOut, tasks: IndexArray) -> FloatArray:
    fitted = straight.fit(agents.outcomes[np.ix_(fold.training, tasks)], agents.scores[fold.training])
    return straight.predict(fitted, agents.outcomes[np.ix_(fold.held_out, tasks)])


# -------------------------------------------------------------------------------------------------- checks


def _refuse_unpredictable(
    outcomes: FloatArray, folds: Sequence[HeldOut], subsets: Sequence[IndexArray]
) -> None:
    if np.isnan(outcomes).any():
        for fold, tasks in zip(folds, subsets, strict=True):
            refuse_unpredictable(outcomes[np.ix_(fold.held_out, tasks)])
