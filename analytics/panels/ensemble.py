"""What a mean of several members gains: its variance, and how many independent members it is worth.

Model
-----
Ȳ is the mean of the outcomes of A members, one from each::

    Var(Ȳ) = A⁻²·[Σ_a Var(Y_a) + Σ_{a≠a'} Cov(Y_a, Y_a')]          TEE Eq. 13
    A_eff  = mean_a Var(Y_a)/Var(Ȳ)                                A if uncorrelated, 1 if all alike

``domain``: over tasks that are a sample, (co)variances of means over the common tasks. ``finite``: the tasks
are given, (co)variances over repeated trials within a task, its mean taken out, pooled over tasks.

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

Source
------
Messing, *Hidden Measurement Error in LLM Pipelines*, App. F.2. Kish, *Survey Sampling*, 1965 (design effect).
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

    Attributes
    ----------
    covariance : float array, shape (A, A)
    variance : float
        Var(Ȳ) of one outcome.
    effective : float
        A_eff.
    n_tasks : int
    """

    covariance: FloatArray
    variance: float
    effective: float
    n_tasks: int


def ensemble(outcomes: FloatArray, *, finite: bool = False) -> Ensemble:
    """Return the variance of the mean of members.

    Parameters
    ----------
    outcomes : float array, shape (A, m, R)
        Trials of all members on all tasks, none missing.
    finite : bool
        Over trials within tasks; else over tasks.

    Raises
    ------
    EnsembleRefused
    """
    n_members, n_tasks, n_trials = outcomes.shape
    if n_members < 2:
        raise EnsembleRefused(f"{n_members} member; an ensemble has two at least", code="one_member")
    if n_tasks < 2:
        raise EnsembleRefused(f"{n_tasks} common tasks; two are needed at least", code="few_tasks")
    if finite and n_trials < 2:
        raise EnsembleRefused("not measured: one trial per task", code="not_measured")
    if finite:
        beyond = (outcomes - outcomes.mean(axis=2, keepdims=True)).reshape(n_members, -1)
        covariance = beyond @ beyond.T / (n_tasks * (n_trials - 1))
    else:
        covariance = np.cov(outcomes.mean(axis=2))
    variance = float(covariance.mean())
    if not variance > 1e-15:
        raise EnsembleRefused("the mean of the members does not vary", code="constant")
    effective = float(np.diag(covariance).mean()) / variance
    return Ensemble(np.asarray(covariance, dtype=np.float64), variance, effective, n_tasks)
