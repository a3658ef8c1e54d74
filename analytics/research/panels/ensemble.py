"""What a mean of several members gains: its variance, and how many independent members it is worth.

Model
-----
Ȳ is the mean of the outcomes of A members, one from each::

    Var(Ȳ) = A⁻²·[Σ_a Var(Y_a) + Σ_{a≠a'} Cov(Y_a, Y_a')]          TEE Eq. 13
    A_eff  = mean_a Var(Y_a)/Var(Ȳ)                                A if uncorrelated, 1 if all alike

``domain``: over tasks that are a sample, (co)variances of means over the common tasks. ``finite``: the tasks
are given, (co)variances over repeated trials within a task, its mean taken out, pooled over tasks: of task j
the n_j trials that all members have, where they are two or more, over Σ(n_j − 1).

Symbols
-------
======  ==============  ======  ======
symbol  code            shape   unit
======  ==============  ======  ======
Cov     ``covariance``  (A, A)  score²
A_eff   ``effective``   scalar  members
======  ==============  ======  ======

Not done here
-------------
Chains, in which one member's outcome is the next one's input (Eq. 14)::

    Var(Y_A) = E[Var(Y_A | Y_{A−1})] + Var(E[Y_A | Y_{A−1}])

would need outcomes of each link under held inputs, which no table of outcomes has. No vote is taken.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, App. F.2. Kish, *Survey Sampling*, 1965 (design
effect).
"""

from dataclasses import dataclass

import numpy as np

from analytics.arrays import FloatArray
from analytics.errors import CoreError


class EnsembleRefused(CoreError):
    """Members that cannot be averaged.

    Codes: ``one_member``, ``few_tasks``, ``not_measured``, ``constant``.
    """


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The variance of a mean of members.

    covariance: (A, A).
    variance: var(Ȳ) of one outcome.
    effective: A_eff.
    """

    covariance: FloatArray
    variance: float
    effective: float
    n_tasks: int


def ensemble(outcomes: FloatArray, *, finite: bool = False) -> Ensemble:
    """Return the variance of the mean of members.

    outcomes: (A, m, R); trials of all members on all tasks; NaN where one is missing, which `finite` allows.
    finite: over trials within tasks; else over tasks.
    Raises EnsembleRefused.
    """
    n_members, n_tasks = outcomes.shape[:2]
    if n_members < 2:
        raise EnsembleRefused(f"{n_members} member; an ensemble has two at least", code="one_member")
    if n_tasks < 2:
        raise EnsembleRefused(f"{n_tasks} common tasks; two are needed at least", code="few_tasks")
    if finite:
        # (Co)variances of trials within tasks, and the number of tasks with two trials of all members
        shared = ~np.isnan(outcomes).any(axis=0)
        n = shared.sum(axis=1)
        if not (n > 1).any():
            raise EnsembleRefused(
                "not measured: no task has two trials that all members have", code="not_measured"
            )
        there = np.where(shared, outcomes, 0.0)
        means = there.sum(axis=2) / np.maximum(n, 1)
        beyond = np.where(shared, there - means[:, :, None], 0.0).reshape(len(outcomes), -1)
        covariance, n_tasks = beyond @ beyond.T / float((n - 1)[n > 1].sum()), int(np.count_nonzero(n > 1))
    else:
        covariance = np.cov(outcomes.mean(axis=2))
    variance = float(covariance.mean())
    if not variance > 1e-15:
        raise EnsembleRefused("the mean of the members does not vary", code="constant")
    effective = float(np.diag(covariance).mean()) / variance
    return Ensemble(np.asarray(covariance, dtype=np.float64), variance, effective, n_tasks)
