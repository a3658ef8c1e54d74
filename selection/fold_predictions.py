"""Ridge predictions of the held-out agents of many folds, each by the way that takes the fewest operations.

The theory is in ``selection/README.md``, “Nested validation”.

Source: Golub & Van Loan, *Matrix Computations*, 4th ed. 2013, §1.1, §3.2, §4.2 (counts of operations).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from analytics.arrays import FloatArray, IndexArray, Mask
from selection import leave_out, ridge
from selection.folds import CompleteAgents, Fold

GATHERED = 20.0
MAX_SHARED_TASKS = 4096  # a Gram matrix of 128 MiB


@dataclass(frozen=True, eq=False)
class _Folds:
    """Folds and their subsets.

    held_out: length n_folds; the agents of each fold that are predicted, ascending.
    members: (n_folds, m).
    is_base: (m,); tasks without a missing cell that most folds have.
    """

    agents: CompleteAgents
    folds: Sequence[Fold]
    held_out: Sequence[IndexArray]
    members: Mask
    is_base: Mask

    @cached_property
    def left_out(self) -> list[IndexArray]:
        """Agents that each fold is not trained on, ascending."""
        is_left_out = np.ones((len(self.folds), self.agents.n), dtype=np.bool_)
        for row, fold in zip(is_left_out, self.folds, strict=True):
            row[fold.training] = False
        ends = np.cumsum(np.count_nonzero(is_left_out, axis=1))
        return np.split(np.nonzero(is_left_out)[1], ends)[:-1]

    def of_held_out(self, f: int, predicted: FloatArray) -> FloatArray:
        """Take the held-out agents of fold f out of all that are left out in it."""
        return predicted[np.searchsorted(self.left_out[f], self.held_out[f])]


def predictions(
    agents: CompleteAgents, folds: Sequence[Fold], held_out: Sequence[IndexArray], members: Mask
) -> list[FloatArray]:
    """ŷ of the held-out agents of each fold, in their order.

    held_out: length n_folds; those held out in each fold that are predicted, ascending.
    members: (n_folds, m); subset of each fold.
    """
    is_whole = ~np.isnan(agents.outcomes).any(axis=0)
    is_base = (2 * np.count_nonzero(members, axis=0) > len(members)) & is_whole
    all_folds = _Folds(agents, folds, held_out, members, is_base)
    without_gap = (members <= is_whole).all(axis=1)
    way_of = np.where(without_gap, _fewest_operations(all_folds), WAYS.index(_anew))
    predicted: list[FloatArray] = [np.empty(0)] * len(folds)
    for w, way in enumerate(WAYS):
        of_way = np.flatnonzero(way_of == w)
        for f, of_fold in zip(of_way, way(all_folds, of_way), strict=True):
            predicted[f] = of_fold
    return predicted


# ---------------------------------------------------------------------------------------------------- ways


def _near(all_folds: _Folds, of_way: IndexArray) -> list[FloatArray]:
    if not of_way.size:
        return []
    agents, base = all_folds.agents, np.flatnonzero(all_folds.is_base)
    candidates = np.flatnonzero((all_folds.members[of_way] != all_folds.is_base).any(axis=0))
    algebra = leave_out.leave_out(agents.outcomes, agents.scores, base, candidates)
    predicted = algebra.predictions_each([all_folds.left_out[f] for f in of_way], all_folds.members[of_way])
    return [all_folds.of_held_out(int(f), of_fold) for f, of_fold in zip(of_way, predicted, strict=True)]


def _shared(all_folds: _Folds, of_way: IndexArray) -> list[FloatArray]:
    predicted = list[FloatArray]()
    for f in of_way:
        of_fold = all_folds.agents.gram.predictions(
            all_folds.left_out[f], np.flatnonzero(all_folds.members[f])
        )
        predicted.append(all_folds.of_held_out(f, of_fold))
    return predicted


def _alone(all_folds: _Folds, of_way: IndexArray) -> list[FloatArray]:
    predicted = list[FloatArray]()
    for f in of_way:
        rows = np.union1d(all_folds.folds[f].training, all_folds.held_out[f])
        columns = all_folds.agents.outcomes[np.ix_(rows, np.flatnonzero(all_folds.members[f]))].T
        if rows.size == all_folds.agents.n:
            columns = np.ascontiguousarray(columns)
        left_out = np.searchsorted(rows, all_folds.held_out[f])
        predicted.append(leave_out.alone(columns, all_folds.agents.scores[rows], left_out))
    return predicted


def _anew(all_folds: _Folds, of_way: IndexArray) -> list[FloatArray]:
    outcomes, scores, predicted = all_folds.agents.outcomes, all_folds.agents.scores, list[FloatArray]()
    for f in of_way:
        training, tasks = all_folds.folds[f].training, np.flatnonzero(all_folds.members[f])
        calibration = ridge.fit(outcomes[np.ix_(training, tasks)], scores[training])
        predicted.append(ridge.predict(calibration, outcomes[np.ix_(all_folds.held_out[f], tasks)]))
    return predicted


WAYS: tuple[Callable[[_Folds, IndexArray], list[FloatArray]], ...] = (_near, _shared, _alone, _anew)


# -------------------------------------------------------------------------------------------------- counts


def _fewest_operations(all_folds: _Folds) -> IndexArray:
    costs, once = _operations(all_folds)
    for way in np.flatnonzero(once):
        others = np.delete(costs, way, axis=0).min(axis=0)
        if np.maximum(others - costs[way], 0.0).sum() <= once[way]:
            costs[way] = np.inf
    return np.asarray(costs.argmin(axis=0), dtype=np.intp)


def _operations(all_folds: _Folds) -> tuple[FloatArray, FloatArray]:
    """Operations of `WAYS` but the last in each fold, (3, n_folds), and once."""
    n_trained = np.array([fold.training.size for fold in all_folds.folds], dtype=np.float64)
    n_held_out = np.array([rows.size for rows in all_folds.held_out], dtype=np.float64)
    changed = np.not_equal(all_folds.members, all_folds.is_base)
    i, h, n = all_folds.agents.n - n_trained, n_held_out, n_trained + n_held_out
    k = np.count_nonzero(all_folds.members, axis=1).astype(np.float64)
    e = np.count_nonzero(changed, axis=1).astype(np.float64)
    near = 2 * e**3 / 3 + e**2 * (i + 1) + 2 * i**3 / 3 + GATHERED * e**2
    shared = k**3 / 3 + k**2 * (i + 1) + 2 * i**3 / 3 + GATHERED * k**2
    alone = n**2 * k + n**3 / 3 + n**2 * (h + 1) + GATHERED * n * k
    near[e + i > all_folds.agents.n] = np.inf
    n_all, m = all_folds.agents.outcomes.shape
    n_base = np.count_nonzero(all_folds.is_base)
    c = np.count_nonzero(changed[np.isfinite(near)].any(axis=0))
    if m > MAX_SHARED_TASKS:
        shared[:] = np.inf
    once = np.array([n_all**2 * n_base + n_all**3 + n_all**2 * c + n_all * c**2, n_all * m**2, 0.0])
    return np.array([near, shared, alone]), once
