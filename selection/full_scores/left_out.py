"""Predictions of the agents that folds hold out, by any estimator.

Every fold's prediction is that of the estimator fitted to the fold's training agents on the fold's subset.
``ridge`` comes from the linear algebra that the folds share (`selection.fold_predictions`).

Symbols: X ``outcomes`` (n, m), y ``scores`` (n,), S ``subsets`` (k,) for each fold, membership ``members``
(n_folds, m).
"""

from collections.abc import Collection, Sequence
from typing import Protocol

import numpy as np

from analytics.arrays import FloatArray, IndexArray, Mask
from selection import fold_predictions as of_ridge
from selection import leave_out, ridge
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

    Parameters
    ----------
    estimator : {"completion", "ridge", "line"}
    outcomes : float array, shape (n, m)
        Mean outcomes of complete agents on the active tasks; NaN where missing.
    scores : float array, shape (n,)
        Their full scores.
    folds : sequence of Fold, length n_folds
    subsets : sequence of int arrays, length n_folds
        Tasks of each fold's subset, ascending.

    Returns
    -------
    list of float arrays, shape (n_held_out,)
        In the order of `held_out`; never NaN; neither rounded nor clipped.

    Raises
    ------
    FullScoreRefused
        name_unknown; cells_missing: a held-out agent lacks more than a tenth of the subset.
    NoTasks, TooFewAgents, TaskUnobserved, ShapeMismatch
        As `selection.ridge.fit`.
    """
    return predictions(estimator, unnamed(outcomes, scores), folds, subsets)


def predictions(
    estimator: str, agents: CompleteAgents, folds: Sequence[HeldOut], subsets: Sequence[IndexArray]
) -> list[FloatArray]:
    """Do what `fold_predictions` does; what the folds share is kept with the agents for another call.

    Parameters
    ----------
    estimator : {"completion", "ridge", "line"}
    agents : CompleteAgents
    folds : sequence of Fold, length n_folds
    subsets : sequence of int arrays, length n_folds
    """
    name = checked_name(estimator)
    _refuse_unpredictable(agents.outcomes, folds, subsets)
    if name == "completion":
        return _completion(agents, folds, subsets)
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
    return of_ridge.predictions(agents, _named(folds), [fold.held_out for fold in folds], members)


def _named(folds: Sequence[HeldOut]) -> list[Fold]:
    return [Fold(str(f), fold.held_out, fold.training) for f, fold in enumerate(folds)]


def _line(agents: CompleteAgents, fold: HeldOut, tasks: IndexArray) -> FloatArray:
    fitted = straight.fit(agents.outcomes[np.ix_(fold.training, tasks)], agents.scores[fold.training])
    return straight.predict(fitted, agents.outcomes[np.ix_(fold.held_out, tasks)])


def _completion(
    agents: CompleteAgents, folds: Sequence[HeldOut], subsets: Sequence[IndexArray]
) -> list[FloatArray]:
    rows = np.concatenate([*(fold.held_out for fold in folds), np.empty(0, dtype=np.intp)])
    fold_of = np.repeat(np.arange(len(folds)), [fold.held_out.size for fold in folds])
    members, m = members_of(subsets, agents.outcomes.shape[1]), agents.outcomes.shape[1]
    fitted = np.array(completion.difficulties_of(agents, [fold.training for fold in folds])).reshape(-1, m)
    by_rasch = completion.expected_outside(agents.outcomes[rows], fitted[fold_of], members[fold_of])
    near = of_ridge.outside_near(agents, _named(folds), [fold.held_out for fold in folds], members)
    shares = _shares_gram(agents, folds, members, near)
    told = list[FloatArray]()
    for f, (fold, tasks) in enumerate(zip(folds, subsets, strict=True)):
        if f in near:
            known, by_ridge = _by_base(agents, fold, tasks, near[f])
        else:
            way = _by_gram if shares[f] else _alone
            known, by_ridge = way(agents, fold, tasks)
        told.append(completion.combined(known, by_rasch[fold_of == f], by_ridge, tasks.size, m))
    return told


def _shares_gram(
    agents: CompleteAgents, folds: Sequence[HeldOut], members: Mask, known: Collection[int] = ()
) -> Mask:
    """Other folds whose Ridge outside S comes from one Gram matrix of all tasks, where that takes less."""
    n, m = agents.outcomes.shape
    is_whole = ~np.isnan(agents.outcomes).any(axis=0)
    k = np.count_nonzero(members, axis=1).astype(np.float64)
    i = n - np.array([fold.training.size for fold in folds], dtype=np.float64)
    saved = n**2 * k + n**3 / 3 - (k**3 / 3 + k**2 * (i + 1) + 2 * i**3 / 3 + of_ridge.GATHERED * k**2)
    can = (members <= is_whole).all(axis=1) & (k < m)
    can[list(known)] = False
    can &= (saved > 0) & (m <= of_ridge.MOST_SHARED_TASKS)
    return np.asarray(can & (saved[can].sum() > n * float(m) ** 2), dtype=np.bool_)


def _by_base(
    agents: CompleteAgents, fold: HeldOut, tasks: IndexArray, steps: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Σ_{j∈S} X_aj and ẑ of a fold's held-out agents, from ẑ − z near the base."""
    k, m = tasks.size, agents.outcomes.shape[1]
    known = agents.outcomes[np.ix_(fold.held_out, tasks)].sum(axis=1)
    return known, completion.means_outside(known, agents.scores[fold.held_out], k, m) + steps


def _by_gram(agents: CompleteAgents, fold: HeldOut, tasks: IndexArray) -> tuple[FloatArray, FloatArray]:
    """Σ_{j∈S} X_aj and ẑ of a fold's held-out agents, from the Gram matrix."""
    left_out = np.setdiff1d(np.arange(agents.n), fold.training)
    k, m = tasks.size, agents.outcomes.shape[1]
    known = agents.outcomes[np.ix_(left_out, tasks)].sum(axis=1)
    outside = completion.means_outside(known, agents.scores[left_out], k, m)
    held_out = np.searchsorted(left_out, fold.held_out)
    return known[held_out], (outside + agents.gram.outside(left_out, tasks))[held_out]


def _alone(agents: CompleteAgents, fold: HeldOut, tasks: IndexArray) -> tuple[FloatArray, FloatArray]:
    """Σ_{j∈S} X_aj and ẑ of a fold's held-out agents, by itself; ẑ is 0 where S is all tasks."""
    held_out, trained = np.zeros((2, agents.n), dtype=np.bool_)
    held_out[fold.held_out], trained[fold.training] = True, True
    rows, m = np.flatnonzero(held_out | trained), agents.outcomes.shape[1]
    is_held_out, is_trained = held_out[rows], trained[rows]
    whole, scores = agents.outcomes[np.ix_(rows, tasks)], agents.scores[rows]
    ridge.checked_training(whole[is_trained], scores[is_trained], ridge.ALPHA)
    if not agents.is_whole:
        whole = np.where(np.isnan(whole), np.nanmean(whole[is_trained], axis=0), whole)
    known = whole.sum(axis=1)
    if tasks.size == m:
        return known[is_held_out], np.zeros(fold.held_out.size)
    outside = completion.means_outside(known, scores, tasks.size, m)
    columns, left_out = np.ascontiguousarray(whole.T), np.flatnonzero(is_held_out)
    return known[is_held_out], leave_out.alone(columns, outside, left_out)


# -------------------------------------------------------------------------------------------------- checks


def _refuse_unpredictable(
    outcomes: FloatArray, folds: Sequence[HeldOut], subsets: Sequence[IndexArray]
) -> None:
    if np.isnan(outcomes).any():
        for fold, tasks in zip(folds, subsets, strict=True):
            refuse_unpredictable(outcomes[np.ix_(fold.held_out, tasks)])
