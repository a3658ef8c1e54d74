"""Audit tasks: what an agent's outcomes on the subset predict of tasks outside it.

Task j is passed with probability σ(θ̂_i − b̂_j), θ̂_i from the outcomes of agent i on S alone, b̂ from the Rasch
fit to the founders, the complete agents that S was chosen from; a founder itself is predicted by a fit and a
subset made without it, on all tasks outside that one.
"""

import numpy as np
from scipy.special import expit

from analytics.arrays import FloatArray, IndexArray, Mask
from analytics.drift import Audit
from selection import rasch
from selection.folds import CompleteAgents
from selection.full_scores import rows_used
from selection.held_out import Subsets


def difficulties(founding: CompleteAgents) -> FloatArray:
    """b̂ of the founders, shape (m,); NaN where none of them has run the task."""
    return _difficulties(founding, np.arange(founding.n))


def of_newcomers(outcomes: FloatArray, audited: Mask, tasks: IndexArray, logits: FloatArray) -> Audit:
    """Audit tasks of newcomers.

    outcomes: (q, m).
    audited: (q, m).
    tasks: (k,); S; each newcomer has an outcome on one of its tasks that has a difficulty.
    logits: (m,); b̂; NaN where nobody ran the task, which is then not audited.
    """
    usable = audited & ~np.isnan(logits)
    expected = np.array([_expected(row, tasks, logits) for row in outcomes]).reshape(outcomes.shape)
    return Audit(np.where(usable, outcomes, np.nan), expected)


def of_founders(founding: CompleteAgents, nested: Subsets) -> Audit:
    """Each founder outside the subset that was chosen without it, predicted without it.

    nested: chosen with one founder left out at a time.
    """
    m = founding.outcomes.shape[1]
    used = rows_used(founding, [fold.training for fold in nested.folds])
    fits = [_difficulties(founding, rows) for rows in used]
    outcomes, expected = list[FloatArray](), list[FloatArray]()
    for fold, tasks, logits in zip(nested.folds, nested.tasks, fits, strict=True):
        for row in founding.outcomes[fold.held_out]:
            outside = np.where(np.isnan(logits), np.nan, row)
            outside[tasks] = np.nan
            outcomes.append(outside)
            expected.append(_expected(row, tasks, logits))
    return Audit(np.array(outcomes).reshape(-1, m), np.array(expected).reshape(-1, m))


def _difficulties(founding: CompleteAgents, rows: IndexArray) -> FloatArray:
    by_task = np.full(founding.outcomes.shape[1], np.nan)
    by_task[~np.isnan(founding.outcomes[rows]).all(axis=0)] = founding.fit_of(rows).difficulties
    return by_task


def _expected(row: FloatArray, tasks: IndexArray, logits: FloatArray) -> FloatArray:
    rated = tasks[~np.isnan(logits[tasks])]
    ability = rasch.ability(row[rated], logits[rated])
    return np.asarray(expit(ability - logits), dtype=np.float64)
