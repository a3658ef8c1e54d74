"""Ridge predictions of the held-out agents of many folds, each by the way that takes the fewest operations.

Model
-----
The ways are those of `selection.leave_out`; they give the same numbers to 1e-10. With n agents on the board,
of whom i are not trained on, h of them held out, n′ trained on or held out, k tasks of which e are not as in
the base (the tasks that most folds have), c candidates and m tasks, they take about so many floating-point
operations::

    near the base    2e³/3 + e²(i + 1) + 2i³/3 + 20e²         once n²k + n³ + n²c + nc²
    shared Gram      k³/3 + k²(i + 1) + 2i³/3 + 20k²          once nm²
    alone            n′²k + n′³/3 + n′²(h + 1) + 20n′k

20 for an entry that is gathered. A way that is prepared once is used where its folds gain more than that
costs. A fold in whose subset a cell is missing is fitted anew.

Symbols
-------
=========  ================  ============================  ======
symbol     code              shape                         unit
=========  ================  ============================  ======
X, y       ``outcomes``      (n, m), NaN: missing          0 to 1
S          ``members``       (n_folds, m)                  tasks
ŷ          returned          (n_held_out,) for each fold   score
=========  ================  ============================  ======

Not done here
-------------
The clock is not asked: the way depends on sizes alone.

Source
------
Golub & Van Loan, *Matrix Computations*, 4th ed. 2013, §1.1, §3.2, §4.2 (counts of operations).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from analytics.arrays import FloatArray, IndexArray, Mask
from selection import leave_out, ridge
from selection.folds import CompleteAgents, Fold

GATHERED = 20.0
MOST_SHARED_TASKS = 4096  # a Gram matrix of 128 MiB


@dataclass(frozen=True, eq=False)
class _Folds:
    """Folds and their subsets.

    Attributes
    ----------
    agents : CompleteAgents
    folds : sequence of Fold, length n_folds
    held_out : sequence of int arrays, length n_folds
        The agents of each fold that are predicted, ascending.
    members : bool array, shape (n_folds, m)
    is_base : bool array, shape (m,)
        Tasks without a missing cell that most folds have.
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

    def of_held_out(self, f: int, told: FloatArray) -> FloatArray:
        """Take the held-out agents of fold f out of all that are left out in it."""
        return told[np.searchsorted(self.left_out[f], self.held_out[f])]


def predictions(
    agents: CompleteAgents, folds: Sequence[Fold], held_out: Sequence[IndexArray], members: Mask
) -> list[FloatArray]:
    """ŷ of the held-out agents of each fold, in their order.

    Parameters
    ----------
    agents : CompleteAgents
    folds : sequence of Fold, length n_folds
    held_out : sequence of int arrays, length n_folds
        Those held out in each fold that are predicted, ascending.
    members : bool array, shape (n_folds, m)
        Subset of each fold.
    """
    is_whole = ~np.isnan(agents.outcomes).any(axis=0)
    is_base = (2 * np.count_nonzero(members, axis=0) > len(members)) & is_whole
    asked = _Folds(agents, folds, held_out, members, is_base)
    way_of = _way_of(asked)
    told: list[FloatArray] = [np.empty(0)] * len(folds)
    for w, way in enumerate(WAYS):
        of_way = np.flatnonzero(way_of == w)
        for f, found in zip(of_way, way(asked, of_way), strict=True):
            told[f] = found
    return told


def _way_of(asked: _Folds) -> IndexArray:
    """Positions in `WAYS` of the way of each fold."""
    is_whole = ~np.isnan(asked.agents.outcomes).any(axis=0)
    without_gap = (asked.members <= is_whole).all(axis=1)
    return np.where(without_gap, _fewest_operations(asked), WAYS.index(_anew))


# ---------------------------------------------------------------------------------------------------- ways


def _near(asked: _Folds, of_way: IndexArray) -> list[FloatArray]:
    if not of_way.size:
        return []
    agents, base = asked.agents, np.flatnonzero(asked.is_base)
    candidates = np.flatnonzero((asked.members[of_way] != asked.is_base).any(axis=0))
    algebra = leave_out.leave_out(agents.outcomes, agents.scores, base, candidates)
    told = algebra.predictions_each([asked.left_out[f] for f in of_way], asked.members[of_way])
    return [asked.of_held_out(int(f), found) for f, found in zip(of_way, told, strict=True)]


def _shared(asked: _Folds, of_way: IndexArray) -> list[FloatArray]:
    told = list[FloatArray]()
    for f in of_way:
        found = asked.agents.gram.predictions(asked.left_out[f], np.flatnonzero(asked.members[f]))
        told.append(asked.of_held_out(f, found))
    return told


def _alone(asked: _Folds, of_way: IndexArray) -> list[FloatArray]:
    told = list[FloatArray]()
    for f in of_way:
        rows = np.union1d(asked.folds[f].training, asked.held_out[f])
        columns = asked.agents.outcomes[np.ix_(rows, np.flatnonzero(asked.members[f]))].T
        if rows.size == asked.agents.n:
            columns = np.ascontiguousarray(columns)
        left_out = np.searchsorted(rows, asked.held_out[f])
        told.append(leave_out.alone(columns, asked.agents.scores[rows], left_out))
    return told


def _anew(asked: _Folds, of_way: IndexArray) -> list[FloatArray]:
    outcomes, scores, told = asked.agents.outcomes, asked.agents.scores, list[FloatArray]()
    for f in of_way:
        training, tasks = asked.folds[f].training, np.flatnonzero(asked.members[f])
        calibration = ridge.fit(outcomes[np.ix_(training, tasks)], scores[training])
        told.append(ridge.predict(calibration, outcomes[np.ix_(asked.held_out[f], tasks)]))
    return told


WAYS: tuple[Callable[[_Folds, IndexArray], list[FloatArray]], ...] = (_near, _shared, _alone, _anew)


# -------------------------------------------------------------------------------------------------- counts


class _Sizes(NamedTuple):
    """Sizes of the folds, each (n_folds,), as in the model."""

    i: FloatArray
    h: FloatArray
    n: FloatArray
    k: FloatArray
    e: FloatArray


def _fewest_operations(asked: _Folds) -> IndexArray:
    """Positions in `WAYS` of each fold's cheapest way, no cell missing."""
    costs, once = _operations(asked)
    for way in np.flatnonzero(once):
        others = np.delete(costs, way, axis=0).min(axis=0)
        if np.maximum(others - costs[way], 0.0).sum() <= once[way]:
            costs[way] = np.inf
    return np.asarray(costs.argmin(axis=0), dtype=np.intp)


def _operations(asked: _Folds) -> tuple[FloatArray, FloatArray]:
    """Operations of `WAYS` but the last in each fold, (3, n_folds), and once."""
    i, h, n, k, e = _sizes(asked)
    near = 2 * e**3 / 3 + e**2 * (i + 1) + 2 * i**3 / 3 + GATHERED * e**2
    shared = k**3 / 3 + k**2 * (i + 1) + 2 * i**3 / 3 + GATHERED * k**2
    alone = n**2 * k + n**3 / 3 + n**2 * (h + 1) + GATHERED * n * k
    near[e + i > asked.agents.n] = np.inf
    n_all, m = asked.agents.outcomes.shape
    n_base = np.count_nonzero(asked.is_base)
    c = np.count_nonzero(_changed(asked)[np.isfinite(near)].any(axis=0))
    if m > MOST_SHARED_TASKS:
        shared[:] = np.inf
    once = np.array([n_all**2 * n_base + n_all**3 + n_all**2 * c + n_all * c**2, n_all * m**2, 0.0])
    return np.array([near, shared, alone]), once


def _sizes(asked: _Folds) -> _Sizes:
    n_trained = np.array([fold.training.size for fold in asked.folds], dtype=np.float64)
    n_held_out = np.array([rows.size for rows in asked.held_out], dtype=np.float64)
    return _Sizes(
        i=asked.agents.n - n_trained,
        h=n_held_out,
        n=n_trained + n_held_out,
        k=np.count_nonzero(asked.members, axis=1).astype(np.float64),
        e=np.count_nonzero(_changed(asked), axis=1).astype(np.float64),
    )


def _changed(asked: _Folds) -> Mask:
    return np.not_equal(asked.members, asked.is_base)
