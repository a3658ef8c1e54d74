"""A cheap judge on all tasks, people on some: the mean that people would have given, with its error.

Model
-----
Ŷ_j is the judge's outcome on each of N tasks, Y_j what people say on n of them, drawn with known
probabilities π_j; R_j = 1 where drawn, e_j = Y_j − Ŷ_j::

    Ỹ_j = Ŷ_j + R_j·e_j/π_j        θ̂ = mean of Ỹ: unbiased however wrong the judge is

Labels that were all equally likely are, given their number, a simple random sample, π = n/N::

    SE² = (1 − n/N)·(Σe² + 1 − (Σe)²/(n + 2))/(n + 2)²                            t_{n−1}

with two half-weight pseudo-tasks of ±1: judges err rarely, so that a sample without any error is common, and
the plain SE is then 0 (measured at n = 30: it covers .47 to .53). Labels drawn one by one with unequal π::

    SE² = N⁻²·(Σ (1 − π_j)·e_j²/π_j² + (1 − n/N)·(N/n)²)                          the pseudo-tasks at π = n/N

The difference of two agents whose labels are on the same tasks is the same with Ŷ_a − Ŷ_b and e_a − e_b;
labels drawn apart add their variances. Where all N tasks have a label no task is left to err about: θ̂ is the
mean of the labels, without an interval. *Labels alone*: their mean, SE² = (1 − n/N)·s²/n. They would do as
well with as many labels m as make that variance equal: 1/m = 1/N + r·(1/n − 1/N), r the ratio of variances.

What pipelines add to e, given item, judge and temperature (TEE Eq. 15), from components of `analytics.reml`::

    Var(Ỹ − Y*) = (σ_φ² + σ_αφ² + σ_φτ² + σ_φλ²)/V + σ_ε²/V + σ_ρ²/(V·R) + σ_bias²

Symbols
-------
==========  ===============  ===========  ========
symbol      code             shape        unit
==========  ===============  ===========  ========
Ŷ           ``judge``        (N,)         0 to 1
Y           ``human``        (N,), NaN    0 to 1
π           ``probability``  (N,)         0 to 1
e           ``error``        (N,), NaN    −1 to 1
V, R        ``n_prompts``…   scalar       levels
==========  ===============  ===========  ========

Not done here
-------------
Labels picked by hand say nothing of other tasks: without their probabilities nothing is estimated. No
regression on Ŷ. Such a score stands on an agent's page and never orders a board.

Source
------
Messing, *Hidden Measurement Error in LLM Pipelines*, App. M. Egami, Hinck, Stewart & Wei, *NeurIPS* 36
(2023). Särndal, Swensson & Wretman, *Model Assisted Survey Sampling*, 1992, §6.3 (difference estimator).
Agresti & Min, *Statistics in Medicine* 24 (2005) 729-740.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import stdtrit

from analytics.arrays import FloatArray, IndexArray, Mask
from analytics.errors import CoreError
from analytics.text import counted

LEAST_LABELS = 30
SAME = 1e-9
RANDOM, STATED = "simple random sample", "stated probabilities"
CENSUS = "all tasks labelled: the mean of the labels"


class SurrogateRefused(CoreError):
    """What people said does not tell what they would say of the rest.

    Codes: ``probability``, ``few_labels``, ``shapes``, ``outcome``.
    """


@dataclass(frozen=True)
class Told:
    """A mean or a difference with its 95% interval, not clipped."""

    value: float
    se: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Corrected:
    """What people would have given.

    Attributes
    ----------
    judge_mean : float
        Mean of Ŷ over the N tasks.
    corrected : Told
        θ̂; without error where all tasks have a label.
    alone : Told
        From the labels alone.
    n_labels, n_tasks : int
    worth : float
        Labels that would do as well alone; N where the judge never erred.
    design : str
        ``simple random sample``, ``stated probabilities``, or that all tasks have a label.
    """

    judge_mean: float
    corrected: Told
    alone: Told
    n_labels: int
    n_tasks: int
    worth: float
    design: str


@dataclass(frozen=True, eq=False)
class Labelled:
    """One agent's tasks under the judge, with what people said of some.

    Parameters
    ----------
    judge : float array, shape (N,)
        Ŷ, 0 to 1.
    human : float array, shape (N,)
        Y, 0 to 1; NaN where nobody was asked.
    probability : float array, shape (N,), optional
        π, above 0 where Y is known; without it labels are a simple random sample of the tasks.
    error : float array, shape (N,), optional
        e where it is no plain difference: a mean over the trials that people saw. NaN where nobody was asked.

    Raises
    ------
    SurrogateRefused
    """

    judge: FloatArray
    human: FloatArray
    probability: FloatArray | None = None
    error: FloatArray | None = None

    def __post_init__(self) -> None:
        arrays = [self.human] + [a for a in (self.probability, self.error) if a is not None]
        if self.judge.ndim != 1 or any(a.shape != self.judge.shape for a in arrays):
            raise SurrogateRefused("judge, people and probabilities are of different tasks", code="shapes")
        for name, values in (("judge", self.judge), ("people", self.human[self.asked])):
            if not ((values >= 0) & (values <= 1)).all():
                raise SurrogateRefused(f"{name}: an outcome is not from 0 to 1", code="outcome")
        if self.n < LEAST_LABELS:
            raise SurrogateRefused(
                f"{counted(self.n, 'label')}; at least {LEAST_LABELS} are needed to tell how often a judge "
                "errs",
                code="few_labels",
            )
        if self.probability is not None:
            self._check_probabilities(self.probability[self.asked])

    def _check_probabilities(self, known: FloatArray) -> None:
        # The inverse of a smaller one, squared, may be infinite.
        if not ((known >= SAME) & (known <= 1)).all():
            raise SurrogateRefused(
                "a task that people judged has no probability of having been drawn, of at least "
                f"{SAME:g} and at most 1: labels picked by hand tell nothing of the rest",
                code="probability",
            )
        if (known == 1).all() and not self.is_census:
            n_tasks = self.judge.size
            raise SurrogateRefused(
                f"all labels have probability 1, as if every task were drawn, and {n_tasks - self.n} of "
                f"{n_tasks} tasks have none",
                code="probability",
            )

    @classmethod
    def of_trials(
        cls, task: IndexArray, judge: FloatArray, human: FloatArray, probability: FloatArray | None = None
    ) -> "Labelled":
        """Return the tasks of one agent: means over its trials, and over those that people saw.

        Parameters
        ----------
        task : int array, shape (n_trials,)
            0 to N − 1, each at least once.
        judge, human : float array, shape (n_trials,)
            `human` is NaN where nobody was asked.
        probability : float array, shape (n_trials,), optional
            One for all trials of a task that people saw.

        Raises
        ------
        SurrogateRefused
        """
        asked, n_trials = ~np.isnan(human), np.bincount(task)

        def mean(values: FloatArray) -> FloatArray:
            n = np.bincount(task[asked], minlength=n_trials.size)
            total = np.bincount(task[asked], values[asked], n_trials.size)
            return np.where(n > 0, total / np.maximum(n, 1), np.nan)

        likely = None
        if probability is not None:
            stated = np.nan_to_num(probability)
            likely = mean(stated)
            if (np.abs(likely[task] - stated)[asked] > SAME).any():
                raise SurrogateRefused(
                    "trials of one task were drawn with different probabilities", code="probability"
                )
        return cls(np.bincount(task, judge) / n_trials, mean(human), likely, mean(human - judge))

    def on(self, tasks: IndexArray) -> "Labelled":
        """Return some of the tasks.

        Parameters
        ----------
        tasks : int array, shape (n_kept,)
            Places.

        Raises
        ------
        SurrogateRefused
        """
        probability, error = (None if a is None else a[tasks] for a in (self.probability, self.error))
        return Labelled(self.judge[tasks], self.human[tasks], probability, error)

    @cached_property
    def asked(self) -> Mask:
        """Tasks that people judged, (N,)."""
        return np.asarray(~np.isnan(self.human), dtype=np.bool_)

    @property
    def n(self) -> int:
        """Labels."""
        return int(np.count_nonzero(self.asked))

    @property
    def is_census(self) -> bool:
        """Whether all tasks have a label."""
        return self.n == self.judge.size

    @cached_property
    def e(self) -> FloatArray:
        """What people say more than the judge, on the tasks that they judged, (n,)."""
        found = self.human - self.judge if self.error is None or self.is_census else self.error
        return np.asarray(found[self.asked], dtype=np.float64)

    @cached_property
    def unequal(self) -> FloatArray | None:
        """π of the labels where they were not all equally likely, (n,); else None."""
        if self.probability is None or self.is_census:
            return None
        known = self.probability[self.asked]
        return known if np.ptp(known) > SAME else None


def correct(agent: Labelled) -> Corrected:
    """Return the mean that people would have given.

    Parameters
    ----------
    agent : Labelled
    """
    n_tasks, n = agent.judge.size, agent.n
    value, variance = _corrected(agent.judge, agent.e, agent.unequal)
    alone, variance_alone = _alone(agent)
    inverse = 1 / n_tasks + (1 / n - 1 / n_tasks) * (variance / variance_alone if variance_alone > 0 else 1.0)
    return Corrected(
        judge_mean=float(agent.judge.mean()),
        corrected=_told(value, variance, n - 1),
        alone=_told(alone, variance_alone, n - 1),
        n_labels=n,
        n_tasks=n_tasks,
        worth=1 / inverse,
        design=CENSUS if agent.is_census else RANDOM if agent.unequal is None else STATED,
    )


def difference(a: Labelled, b: Labelled) -> Told:
    """Return by how much people would have given a more than b, on the same N tasks.

    Parameters
    ----------
    a, b : Labelled
        Labels on the same tasks are paired; else they count as drawn apart.

    Raises
    ------
    SurrogateRefused
    """
    if a.judge.shape != b.judge.shape:
        raise SurrogateRefused(f"agents on {a.judge.size} and {b.judge.size} tasks", code="shapes")
    if (a.asked == b.asked).all() and _same_design(a, b):
        value, variance = _corrected(a.judge - b.judge, a.e - b.e, a.unequal)
        return _told(value, variance, a.n - 1)
    sides = [_corrected(one.judge, one.e, one.unequal) for one in (a, b)]
    return _told(sides[0][0] - sides[1][0], sides[0][1] + sides[1][1], min(a.n, b.n) - 1)


@dataclass(frozen=True)
class PipelineError:
    """What a pipeline adds to e, of one outcome averaged over V prompts and R replicates (Eq. 15).

    Attributes
    ----------
    prompts, cells, replicates, bias : float
        Its parts; score².
    """

    prompts: float
    cells: float
    replicates: float
    bias: float


def pipeline_error(
    *,
    prompts: float,
    cells: float,
    replicates: float,
    n_prompts: int,
    n_replicates: int,
    mean_square: float,
) -> PipelineError:
    """Return Eq. 15, with σ_bias² what is left of the mean square of e.

    Parameters
    ----------
    prompts : float
        σ_φ² and its interactions, added up.
    cells, replicates : float
        σ_ε² and σ_ρ².
    n_prompts, n_replicates : int
        V and R.
    mean_square : float
        Mean e² of labels.
    """
    parts = (prompts / n_prompts, cells / n_prompts, replicates / (n_prompts * n_replicates))
    return PipelineError(*parts, bias=max(mean_square - sum(parts), 0.0))


# ---------------------------------------------------------------------------------------------- arithmetic


def _corrected(judge: FloatArray, e: FloatArray, unequal: FloatArray | None) -> tuple[float, float]:
    """θ̂ and SE²."""
    n_tasks, n = judge.size, e.size
    unasked = 1.0 - n / n_tasks
    if unequal is None:
        total = float(e.sum())
        spread = float(e @ e) + 1.0 - total**2 / (n + 2)
        return float(judge.mean()) + total / n, unasked * spread / (n + 2) ** 2
    weighted = e / unequal
    spread = float(((1.0 - unequal) * weighted**2).sum()) + unasked * (n_tasks / n) ** 2
    return float(judge.mean() + weighted.sum() / n_tasks), spread / n_tasks**2


def _alone(agent: Labelled) -> tuple[float, float]:
    """Mean of the labels and its SE²."""
    y, unequal = agent.human[agent.asked], agent.unequal
    if unequal is None:
        return float(y.mean()), (1.0 - agent.n / agent.judge.size) * float(y.var(ddof=1)) / agent.n
    weight = 1.0 / unequal
    mean = float(weight @ y / weight.sum())
    spread = float(((1.0 - unequal) * (weight * (y - mean)) ** 2).sum())
    return mean, spread / float(weight.sum()) ** 2


def _same_design(a: Labelled, b: Labelled) -> bool:
    if a.unequal is None or b.unequal is None:
        return a.unequal is b.unequal
    return bool(np.allclose(a.unequal, b.unequal, atol=SAME))


def _told(value: float, variance: float, df: int) -> Told:
    se = math.sqrt(max(variance, 0.0))
    half = float(stdtrit(df, 0.975)) * se
    return Told(value, se, value - half, value + half)
