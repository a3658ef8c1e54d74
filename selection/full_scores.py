"""The full score of an agent that ran only the subset: three estimators, and folds predicted by any of them.

The theory is in ``selection/README.md``, “Estimated full scores” and “All refits at once”. By `ridge` and
`line` a missing training cell takes the mean of its column over the training agents, and so does a cell of
an agent to be predicted. An agent that lacks over a tenth of S is refused by all three. Nothing is rounded or
clipped, and no estimator is chosen by its error: that gains nothing.

Above 10⁶ cells a fit of `completion` is shared: with one agent held out of all, it is that without the tenth
of the agents (by position, modulo ten) that it is in; where folds train on more and more agents, a fit is
made anew each time that these have become a ninth more. It never rests on an agent that the fold does not
train on.

Source: As in `selection.ridge` and `selection.staged.model`. Ndzomga, *Efficient Benchmarking of AI Agents*,
§3.1 (Ridge). Draper & Smith, *Applied Regression Analysis*, 3rd ed. 1998, §1.2 (line). Cawley & Talbot,
*Neural Networks* 17 (2004) 1467-1475 (refits). Golub & Van Loan, *Matrix Computations*, 4th ed. 2013, §1.1,
§3.2, §4.2 (counts of operations).
"""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache

from analytics.arrays import FloatArray, IndexArray, Mask
from selection import leave_out, ridge
from selection.errors import SelectionError
from selection.folds import CompleteAgents, Fold, membership, subset_sums
from selection.rules import ESTIMATORS, EstimatorName
from selection.staged.model import estimates

MAX_CELLS = 1_000_000
N_TENTHS = 10
MAX_BYTES, MIN_BYTES = 256 << 20, 1 << 20

Made = TypeVar("Made")
Refits = tuple[FloatArray, FloatArray, FloatArray]


def checked_name(estimator: str) -> EstimatorName:
    """Return the name of an estimator.

    Raises SelectionError: name_unknown: there is none of this name.
    """
    for name in ESTIMATORS:
        if name == estimator:
            return name
    known = ", ".join(ESTIMATORS)
    raise SelectionError(f"no estimator is called {estimator!r}; there are {known}", code="name_unknown")


@dataclass(frozen=True, eq=False)
class FullScores:
    """``ridge`` or ``line`` on one subset, fitted when it is first asked.

    tasks: (k,); positions of the subset's tasks, ascending.
    known: the Ridge fitted to these agents before.
    """

    estimator: EstimatorName
    agents: CompleteAgents
    tasks: IndexArray
    known: ridge.RidgeFit | None = None

    def predict(self, outcomes: FloatArray) -> FloatArray:
        """ŷ of agents from their outcomes on the subset, (q, k) to (q,); never NaN."""
        outcomes = np.asarray(outcomes, dtype=np.float64)
        ridge.refuse_unpredictable(outcomes)
        if self.estimator == "ridge":
            return ridge.predict(self._ridge, outcomes)
        return _line(self._training, self.agents.scores, outcomes)

    def predict_without(self, outcomes: FloatArray) -> FloatArray:
        """μ₋ᵢ(x): what the estimator fitted without agent i predicts, (q, k) to (q, n)."""
        outcomes, scores = np.asarray(outcomes, dtype=np.float64), self.agents.scores
        ridge.refuse_unpredictable(outcomes)
        if self.estimator == "ridge":
            return predict_each(self._refits, outcomes)
        others_of = [np.arange(scores.size) != i for i in range(scores.size)]
        return np.array([_line(self._training[rows], scores[rows], outcomes) for rows in others_of]).T

    @cached_property
    def _training(self) -> FloatArray:
        return self.agents.outcomes[:, self.tasks]

    @cached_property
    def _ridge(self) -> ridge.RidgeFit:
        return self.known or ridge.fit(self._training, self.agents.scores)

    @cached_property
    def _refits(self) -> Refits:
        return refits_without(self._training, self.agents.scores)


def fit(
    estimator: str, agents: CompleteAgents, tasks: IndexArray, known: ridge.RidgeFit | None = None
) -> FullScores:
    """Fit `ridge` or `line` to complete agents on a subset, tasks (k,).

    Raises SelectionError: name_unknown; no_fit: `completion` has no fit of its own to a subset.
    """
    name = checked_name(estimator)
    if name == "completion":
        raise SelectionError("completion is fitted to all tasks, not to a subset", code="no_fit")
    return FullScores(name, agents, np.asarray(tasks, dtype=np.intp), known)


def refits_without(outcomes: FloatArray, scores: FloatArray) -> Refits:
    """Fit the Ridge without each agent in turn: all at once where no cell is missing, one by one elsewhere.

    outcomes: (n, k); NaN where missing; n ≥ 3.
    Returns: intercepts (n,), coefficients and column means (n, k).
    """
    n = scores.size
    if np.isnan(outcomes).any() or n < 3:
        others_of = [np.arange(n) != i for i in range(n)]
        fits = [ridge.fit(outcomes[others], scores[others]) for others in others_of]
        return (
            np.array([fitted.intercept for fitted in fits]),
            np.array([fitted.coefficients for fitted in fits]),
            np.array([fitted.column_means for fitted in fits]),
        )
    fitted = ridge.fit(outcomes, scores)
    centred = outcomes - fitted.column_means
    from scipy.linalg import inv  # not for a program that estimates nothing

    inverse = inv(centred @ centred.T + ridge.ALPHA * np.eye(n), assume_a="pos")
    directions = inverse @ centred
    leverages = 1.0 / n + np.sum(directions * centred, axis=1)
    steps = (scores - ridge.predict(fitted, outcomes)) / (1.0 - leverages)
    coefficients = fitted.coefficients - directions * steps[:, None]
    intercepts = np.mean(scores) - steps / n - coefficients @ fitted.column_means
    return intercepts, coefficients, fitted.column_means - centred / (n - 1)


def predict_each(refits: Refits, outcomes: FloatArray) -> FloatArray:
    """μ₋ᵢ(x) of every refit, (q, k) to (q, n); a missing cell takes x̄₋ᵢ."""
    intercepts, coefficients, column_means = refits
    missing = np.isnan(outcomes)
    observed = np.where(missing, 0.0, outcomes) @ coefficients.T
    completed = missing @ (column_means * coefficients).T
    return np.asarray(intercepts + observed + completed, dtype=np.float64)


def _line(outcomes: FloatArray, scores: FloatArray, others: FloatArray) -> FloatArray:
    """ŷ = ȳ + c·(r − r̄) of other agents, (q,), r the means of rows; c is 0 where all r are equal."""
    outcomes, scores = ridge.checked_training(outcomes, scores, ridge.ALPHA)
    column_means = np.nanmean(outcomes, axis=0)

    def row_means(rows: FloatArray) -> FloatArray:
        return np.asarray(np.where(np.isnan(rows), column_means, rows).mean(axis=1), dtype=np.float64)

    return _on_line(row_means(outcomes), scores, row_means(others), outcomes.shape[1])


def _on_line(means: FloatArray, scores: FloatArray, others: FloatArray, k: int) -> FloatArray:
    """ŷ of other agents from means over k tasks, (q,); equal means may differ by rounding."""
    centred = means - np.mean(means)
    spread = float(centred @ centred)
    equal = bool(np.ptp(means) <= k * np.finfo(np.float64).eps * max(1.0, float(np.abs(means).max())))
    slope = 0.0 if equal else float(centred @ (scores - np.mean(scores))) / spread
    return np.asarray(float(np.mean(scores) - slope * np.mean(means)) + slope * others)


def predictions(
    estimator: str, agents: CompleteAgents, folds: Sequence[Fold], subsets: Sequence[IndexArray]
) -> list[FloatArray]:
    """ŷ of the held-out agents of each fold, from its training agents and its subset alone.

    agents: keep what folds share for another call.
    subsets: length n_folds; tasks of each fold's subset, ascending.
    Returns: (n_held_out,); in the order of `held_out`; never NaN.
    """
    name, outcomes = checked_name(estimator), agents.outcomes
    if np.isnan(outcomes).any():
        for fold, tasks in zip(folds, subsets, strict=True):
            ridge.refuse_unpredictable(outcomes[np.ix_(fold.held_out, tasks)])
    if name == "ridge":
        members = membership(subsets, outcomes.shape[1])
        return ridge_predictions(agents, folds, [fold.held_out for fold in folds], members)
    if name == "line":
        return _lines(agents, folds, subsets)
    predicted = []
    used = rows_used(agents, [fold.training for fold in folds])
    for rows, fold, tasks in zip(used, folds, subsets, strict=True):
        model = agents.model_of(rows)
        seen = np.full((fold.held_out.size, outcomes.shape[1]), np.nan)
        seen[:, tasks] = outcomes[np.ix_(fold.held_out, tasks)]
        predicted.append(estimates(model, seen, agents.means_after(model, rows, fold.held_out))[0])
    return predicted


def _lines(agents: CompleteAgents, folds: Sequence[Fold], subsets: Sequence[IndexArray]) -> list[FloatArray]:
    """Predict by `_line`; where no cell is missing, folds share the sums of the tasks that they share."""
    outcomes, scores = agents.outcomes, agents.scores
    if np.isnan(outcomes).any() or min((fold.training.size for fold in folds), default=0) < 2:
        return [
            _line(
                outcomes[np.ix_(fold.training, tasks)],
                scores[fold.training],
                outcomes[np.ix_(fold.held_out, tasks)],
            )
            for fold, tasks in zip(folds, subsets, strict=True)
        ]
    sums = subset_sums(outcomes, membership(subsets, outcomes.shape[1])).T
    means = [row / tasks.size for row, tasks in zip(sums, subsets, strict=True)]
    return [
        _on_line(row[fold.training], scores[fold.training], row[fold.held_out], tasks.size)
        for row, fold, tasks in zip(means, folds, subsets, strict=True)
    ]


def rows_used(agents: CompleteAgents, trained: Sequence[IndexArray]) -> Sequence[IndexArray]:
    """Return the agents that each fold's fit of `completion` rests on: many folds may have the same."""
    if agents.outcomes.size <= MAX_CELLS:
        return trained
    sets = list[IndexArray](trained)
    everyone, last = np.arange(agents.n), np.empty(0, dtype=np.intp)
    for f in sorted(range(len(sets)), key=lambda f: sets[f].size):
        rows = trained[f]
        if rows.size == agents.n - 1:
            held_out = int(everyone.sum() - rows.sum())
            sets[f] = everyone[everyone % N_TENTHS != held_out % N_TENTHS]
            continue
        if last.size and N_TENTHS * last.size >= (N_TENTHS - 1) * rows.size and np.isin(last, rows).all():
            sets[f] = last
        else:
            last = rows
    return sets


class FitCache:
    """The latest fits: one made of the very same is the same to the last bit. Nothing is written to disk.

    most_bytes: of what they were made of; what was used longest ago is dropped beyond that, and what is
        larger by itself is not kept.
    """

    def __init__(self, most_bytes: int = MAX_BYTES) -> None:
        self._made = LRUCache[bytes, tuple[Any, int]](most_bytes, itemgetter(1))

    def made(self, description: object, *arrays: npt.NDArray[np.generic], make: Callable[[], Made]) -> Made:
        """Return what `make` does, made once for each such description and such arrays, which decide it."""
        digest = hashlib.sha256(repr(description).encode())
        for array in arrays:
            digest.update(np.ascontiguousarray(array).data)
        key, n_bytes = digest.digest(), sum(array.nbytes for array in arrays) + MIN_BYTES
        value: Made = self._made[key][0] if key in self._made else make()
        with suppress(ValueError):  # it is larger than all may be
            self._made[key] = (value, n_bytes)
        return value

    def fit(
        self, estimator: str, agents: CompleteAgents, tasks: IndexArray, known: ridge.RidgeFit | None = None
    ) -> FullScores:
        """Return what `fit` does."""
        description = (estimator, agents.names, agents.outcomes.shape, known and known.as_plain())
        arrays = (agents.outcomes, agents.scores, np.asarray(tasks, dtype=np.intp))
        return self.made(description, *arrays, make=lambda: fit(estimator, agents, tasks, known))


GATHERED = 20.0
MAX_SHARED_TASKS = 4096  # a Gram matrix of 128 MiB
NEAR, SHARED, ALONE, ANEW = range(4)


def ridge_predictions(
    agents: CompleteAgents, folds: Sequence[Fold], held_out: Sequence[IndexArray], members: Mask
) -> list[FloatArray]:
    """ŷ of the held-out agents of each fold, each in the way of the fewest operations.

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
