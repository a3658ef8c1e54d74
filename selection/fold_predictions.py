"""Ridge predictions of the held-out agents of many folds, each by the way that takes the fewest operations.

The theory is in ``selection/README.md``, “Nested validation”.

Source: Golub & Van Loan, *Matrix Computations*, 4th ed. 2013, §1.1, §3.2, §4.2 (counts of operations).
"""

from collections.abc import Sequence

import numpy as np

from analytics.arrays import FloatArray, IndexArray, Mask
from selection import leave_out, ridge
from selection.folds import CompleteAgents, Fold

GATHERED = 20.0
MAX_SHARED_TASKS = 4096  # a Gram matrix of 128 MiB
NEAR, SHARED, ALONE, ANEW = range(4)


def predictions(
    agents: CompleteAgents, folds: Sequence[Fold], held_out: Sequence[IndexArray], members: Mask
) -> list[FloatArray]:
    """ŷ of the held-out agents of each fold, in their order.

    held_out: length n_folds; those held out in each fold that are predicted, ascending.
    members: (n_folds, m); subset of each fold.
    """
    outcomes, scores = agents.outcomes, agents.scores
    is_whole = ~np.isnan(outcomes).any(axis=0)
    is_base = (2 * np.count_nonzero(members, axis=0) > len(members)) & is_whole
    is_left_out = np.ones((len(folds), agents.n), dtype=np.bool_)
    for row, fold in zip(is_left_out, folds, strict=True):
        row[fold.training] = False
    ends = np.cumsum(np.count_nonzero(is_left_out, axis=1))
    left_out = np.split(np.nonzero(is_left_out)[1], ends)[:-1]
    fewest = _fewest_operations(agents, folds, held_out, members, is_base)
    way_of = np.where((members <= is_whole).all(axis=1), fewest, ANEW)
    predicted: list[FloatArray] = [np.empty(0)] * len(folds)
    near = np.flatnonzero(way_of == NEAR)
    if near.size:
        candidates = np.flatnonzero((members[near] != is_base).any(axis=0))
        algebra = leave_out.leave_out(outcomes, scores, np.flatnonzero(is_base), candidates)
        each = algebra.predictions_each([left_out[f] for f in near], members[near])
        for f, of_fold in zip(near.tolist(), each, strict=True):
            predicted[f] = of_fold[np.searchsorted(left_out[f], held_out[f])]
    for f in np.flatnonzero(way_of != NEAR).tolist():
        training, tasks = folds[f].training, np.flatnonzero(members[f])
        if way_of[f] == SHARED:
            of_fold = agents.gram.predictions(left_out[f], tasks)
            predicted[f] = of_fold[np.searchsorted(left_out[f], held_out[f])]
        elif way_of[f] == ALONE:
            rows = np.union1d(training, held_out[f])
            columns = outcomes[np.ix_(rows, tasks)].T
            columns = np.ascontiguousarray(columns) if rows.size == agents.n else columns
            predicted[f] = leave_out.alone(columns, scores[rows], np.searchsorted(rows, held_out[f]))
        else:
            calibration = ridge.fit(outcomes[np.ix_(training, tasks)], scores[training])
            predicted[f] = ridge.predict(calibration, outcomes[np.ix_(held_out[f], tasks)])
    return predicted


def _fewest_operations(
    agents: CompleteAgents,
    folds: Sequence[Fold],
    held_out: Sequence[IndexArray],
    members: Mask,
    is_base: Mask,
) -> IndexArray:
    """Return the way of each fold: what a way takes in it, and once, decides."""
    n_trained = np.array([fold.training.size for fold in folds], dtype=np.float64)
    h = np.array([rows.size for rows in held_out], dtype=np.float64)
    changed = np.not_equal(members, is_base)
    i, n = agents.n - n_trained, n_trained + h
    k = np.count_nonzero(members, axis=1).astype(np.float64)
    e = np.count_nonzero(changed, axis=1).astype(np.float64)
    near = 2 * e**3 / 3 + e**2 * (i + 1) + 2 * i**3 / 3 + GATHERED * e**2
    shared = k**3 / 3 + k**2 * (i + 1) + 2 * i**3 / 3 + GATHERED * k**2
    alone = n**2 * k + n**3 / 3 + n**2 * (h + 1) + GATHERED * n * k
    near[e + i > agents.n] = np.inf
    n_all, m = agents.outcomes.shape
    n_base = np.count_nonzero(is_base)
    c = np.count_nonzero(changed[np.isfinite(near)].any(axis=0))
    if m > MAX_SHARED_TASKS:
        shared[:] = np.inf
    once = np.array([n_all**2 * n_base + n_all**3 + n_all**2 * c + n_all * c**2, n_all * m**2, 0.0])
    costs = np.array([near, shared, alone])
    for way in np.flatnonzero(once):
        others = np.delete(costs, way, axis=0).min(axis=0)
        if np.maximum(others - costs[way], 0.0).sum() <= once[way]:
            costs[way] = np.inf
    return np.asarray(costs.argmin(axis=0), dtype=np.intp)
