"""Whether the items on which pipelines disagree are those that their majority gets wrong.

Model
-----
C pipelines vote 0 or 1 on each of N items, of which a reference label is known::

    v_i = variance of the votes (divisor C)        a_i = share of the votes equal to the label
    a_i = ½ ± √(¼ − v_i)                           + where the majority is right, − where it is wrong

So r(v, a) < 0 by arithmetic, whatever the votes know of the label: nearly −1 where every majority is right.
What tells is whether *which* majorities are wrong goes with v. The area under the curve of v for "majority
wrong" is ½ if not, and r stands beside its distribution when the wrong majorities are any others, 2,000
permutations.

Symbols
-------
======  =============  ==========  ======
symbol  code           shape       unit
======  =============  ==========  ======
v       ``variance``   (N,)        0 to ¼
a       ``accuracy``   (N,)        0 to 1
======  =============  ==========  ======

Limits: an even vote is not wrong.

Not done here: no item is relabelled, and no pipeline is judged. Graded outcomes have no votes.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, App. I.1. Hanley & McNeil, *Radiology* 143
(1982) 29-36.
"""

from dataclasses import dataclass

import numpy as np

from analytics.arrays import FloatArray, Mask
from analytics.drift.fidelity import midranks
from analytics.errors import CoreError
from analytics.resampling import generator

MIN_ITEMS, MIN_WRONG = 30, 10
N_PERMUTATIONS = 2_000


@dataclass(frozen=True, eq=False)
class Disagreement:
    """How disagreement goes with error.

    variance, accuracy: (N,).
    n_wrong: items of which the majority is wrong.
    r: of v and a.
    r_null: mean, 2.5% and 97.5% points of r when other majorities are wrong.
    area: of v for "majority wrong"; ½ without a relation.
    p_value: two-sided, of the area, by the same permutations.
    """

    variance: FloatArray
    accuracy: FloatArray
    n_wrong: int
    r: float
    r_null: tuple[float, float, float]
    area: float
    p_value: float


def disagreement(votes: FloatArray, reference: FloatArray, *, seed: int) -> Disagreement:
    """Relate the variance of votes to their majority's errors.

    votes: (N, C); 0 or 1; NaN where a pipeline gave none, two at least for an item.
    reference: (N,); 0 or 1.
    """
    _check(votes, reference)
    mean = np.nanmean(votes, axis=1)
    variance = mean * (1.0 - mean)
    accuracy = np.where(reference == 1, mean, 1.0 - mean)
    wrong = accuracy < 0.5
    n_wrong = int(wrong.sum())
    if n_wrong < MIN_WRONG or n_wrong == wrong.size:
        raise CoreError(
            f"the majority is wrong on {n_wrong} of {wrong.size} items; at least {MIN_WRONG} are needed",
            code="few_wrong",
        )
    if np.ptp(variance) == 0:
        raise CoreError("the votes vary alike on all items", code="constant")
    auc, beyond = area(variance, wrong), np.empty(N_PERMUTATIONS)
    null = np.empty(N_PERMUTATIONS)
    for draw in range(N_PERMUTATIONS):
        other = generator(seed, "wrong majorities", draw).permutation(wrong)
        null[draw] = _correlation(variance, accuracy, other)
        beyond[draw] = area(variance, other)
    low, high = np.quantile(null, [0.025, 0.975]).tolist()
    as_far = np.count_nonzero(np.abs(beyond - 0.5) >= abs(auc - 0.5) - 1e-12)
    return Disagreement(
        variance=variance,
        accuracy=accuracy,
        n_wrong=n_wrong,
        r=_correlation(variance, accuracy, wrong),
        r_null=(float(null.mean()), low, high),
        area=auc,
        p_value=float((1 + as_far) / (1 + N_PERMUTATIONS)),
    )


def area(value: FloatArray, event: Mask) -> float:
    """Area under the curve: P(value is larger at an event than elsewhere), ties ½.

    value: (N,).
    event: (N,); some, not all.
    """
    n = int(event.sum())
    ranks = midranks(np.round(value, 9))
    return float((ranks[event].sum() - n * (n + 1) / 2) / (n * (event.size - n)))


def _correlation(variance: FloatArray, accuracy: FloatArray, wrong: Mask) -> float:
    """r(v, a) with these majorities wrong; NaN never, since v varies."""
    agreed = np.maximum(accuracy, 1.0 - accuracy)
    return float(np.corrcoef(variance, np.where(wrong, 1.0 - agreed, agreed))[0, 1])


def _check(votes: FloatArray, reference: FloatArray) -> None:
    if votes.ndim != 2 or len(votes) != reference.size:
        raise CoreError(f"votes of shape {votes.shape} for {reference.size} labels", code="votes")
    cast = votes[~np.isnan(votes)]
    if not (np.isin(cast, (0, 1)).all() and np.isin(reference, (0, 1)).all()):
        raise CoreError("votes and labels are 0 or 1", code="votes")
    if len(votes) < MIN_ITEMS:
        raise CoreError(f"{len(votes)} items with a label; at least {MIN_ITEMS} are needed", code="few_items")
    if n_single := int((np.count_nonzero(~np.isnan(votes), axis=1) < 2).sum()):
        raise CoreError(
            f"{n_single:,} of {len(votes):,} items with a label have under two votes, and so no variance",
            code="votes",
        )
