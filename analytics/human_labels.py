"""A cheap judge on all tasks, people on some: the mean that people would have given, with its error.

With known probabilities of drawing, the mean of Ỹ_j = Ŷ_j + R_j·e_j/π_j is unbiased however wrong the judge
is; two half-weight pseudo-tasks of ±1 stand for errors that a sample did not show. Formulas:
analytics/README.md, *A cheap judge, some human labels*.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, App. M. Egami, Hinck, Stewart & Wei, *NeurIPS*
36 (2023). Särndal, Swensson & Wretman, *Model Assisted Survey Sampling*, 1992, §6.3 (difference estimator).
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

MIN_LABELS = 30
SAME = 1e-9
RANDOM, BY_PROBABILITY = "simple random sample", "stated probabilities"
CENSUS = "all tasks labelled: the mean of the labels"


class SurrogateRefused(CoreError):
    """Labels do not give the rest: ``probability``, ``few_labels``, ``shapes``, ``outcome``."""


@dataclass(frozen=True)
class IntervalEstimate:
    """A mean or a difference with its 95% interval, not clipped."""

    value: float
    se: float
    lower: float
    upper: float

    def error(self, within: tuple[float, float], *, known: bool) -> dict[str, float | None]:
        """Return `se`, and `lower` and `upper` clipped; None each where all tasks have a label."""
        ends = {"se": self.se, "lower": max(self.lower, within[0]), "upper": min(self.upper, within[1])}
        return {name: value if known else None for name, value in ends.items()}


@dataclass(frozen=True, eq=False)
class Corrected:
    """What people would have given: θ̂, with the mean of the judge and that of the labels alone.

    worth: labels that would do as well alone; N where the judge never erred.
    design: ``simple random sample``, ``stated probabilities``, or that all tasks have a label.
    """

    judge_mean: float
    corrected: IntervalEstimate
    alone: IntervalEstimate
    n_labels: int
    n_tasks: int
    worth: float
    design: str


@dataclass(frozen=True, eq=False)
class Labelled:
    """One agent's N tasks under the judge, with what people said of some, from 0 to 1.

    human: Y; NaN where nobody was asked.
    probability: π, above 0 where Y is known; without it labels are a simple random sample of the tasks.
    error: e where it is no plain difference: a mean over the trials that people saw.
    """

    judge: FloatArray
    human: FloatArray
    probability: FloatArray | None = None
    error: FloatArray | None = None

    def __post_init__(self) -> None:
        arrays = [self.human] + [a for a in (self.probability, self.error) if a is not None]
        if self.judge.ndim != 1 or any(a.shape != self.judge.shape for a in arrays):
            raise SurrogateRefused("judge, people and probabilities are of different tasks", code="shapes")
        for name, values in (("judge", self.judge), ("people", self.human[self.has_label])):
            if not ((values >= 0) & (values <= 1)).all():
                raise SurrogateRefused(f"{name}: an outcome is not from 0 to 1", code="outcome")
        if self.n < MIN_LABELS:
            raise SurrogateRefused(
                f"{counted(self.n, 'label')}; at least {MIN_LABELS} are needed to tell how often a judge "
                "errs",
                code="few_labels",
            )
        if self.probability is not None:
            known = self.probability[self.has_label]
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
        """Return one agent's tasks, 0 to N − 1: means over its trials, and over those that people saw."""
        labelled, n_trials = ~np.isnan(human), np.bincount(task)

        def mean(values: FloatArray) -> FloatArray:
            n = np.bincount(task[labelled], minlength=n_trials.size)
            total = np.bincount(task[labelled], values[labelled], n_trials.size)
            return np.where(n > 0, total / np.maximum(n, 1), np.nan)

        likely = None
        if probability is not None:
            known = np.nan_to_num(probability)
            likely = mean(known)
            if (np.abs(likely[task] - known)[labelled] > SAME).any():
                raise SurrogateRefused(
                    "trials of one task were drawn with different probabilities", code="probability"
                )
        return cls(np.bincount(task, judge) / n_trials, mean(human), likely, mean(human - judge))

    def on(self, tasks: IndexArray) -> "Labelled":
        """Return some of the tasks, by place."""
        probability, error = (None if a is None else a[tasks] for a in (self.probability, self.error))
        return Labelled(self.judge[tasks], self.human[tasks], probability, error)

    @cached_property
    def has_label(self) -> Mask:
        """Tasks that people judged, (N,)."""
        return np.asarray(~np.isnan(self.human), dtype=np.bool_)

    @property
    def n(self) -> int:
        """Labels."""
        return int(np.count_nonzero(self.has_label))

    @property
    def is_census(self) -> bool:
        """Whether all tasks have a label."""
        return self.n == self.judge.size

    @cached_property
    def e(self) -> FloatArray:
        """What people say more than the judge, on the tasks that they judged, (n,)."""
        error = self.human - self.judge if self.error is None or self.is_census else self.error
        return np.asarray(error[self.has_label], dtype=np.float64)

    @cached_property
    def unequal(self) -> FloatArray | None:
        """π of the labels where they were not all equally likely, (n,); else None."""
        if self.probability is None or self.is_census:
            return None
        known = self.probability[self.has_label]
        return known if np.ptp(known) > SAME else None


def correct(agent: Labelled) -> Corrected:
    """Return the mean that people would have given."""
    n_tasks, n = agent.judge.size, agent.n
    value, variance = _corrected(agent.judge, agent.e, agent.unequal)
    y, unequal = agent.human[agent.has_label], agent.unequal
    if unequal is None:
        alone, variance_alone = float(y.mean()), (1.0 - n / n_tasks) * float(y.var(ddof=1)) / n
    else:
        weight = 1.0 / unequal
        alone = float(weight @ y / weight.sum())
        spread = float(((1.0 - unequal) * (weight * (y - alone)) ** 2).sum())
        variance_alone = spread / float(weight.sum()) ** 2
    inverse = 1 / n_tasks + (1 / n - 1 / n_tasks) * (variance / variance_alone if variance_alone > 0 else 1.0)
    return Corrected(
        judge_mean=float(agent.judge.mean()),
        corrected=_interval_estimate(value, variance, n - 1),
        alone=_interval_estimate(alone, variance_alone, n - 1),
        n_labels=n,
        n_tasks=n_tasks,
        worth=1 / inverse,
        design=CENSUS if agent.is_census else RANDOM if agent.unequal is None else BY_PROBABILITY,
    )


def difference(a: Labelled, b: Labelled) -> IntervalEstimate:
    """Return how much more people would have given a than b, on N tasks; paired where labels are."""
    if a.judge.shape != b.judge.shape:
        raise SurrogateRefused(f"agents on {a.judge.size} and {b.judge.size} tasks", code="shapes")
    if a.unequal is None or b.unequal is None:
        alike = a.unequal is b.unequal
    else:
        alike = bool(np.allclose(a.unequal, b.unequal, atol=SAME))
    if (a.has_label == b.has_label).all() and alike:
        value, variance = _corrected(a.judge - b.judge, a.e - b.e, a.unequal)
        return _interval_estimate(value, variance, a.n - 1)
    sides = [_corrected(one.judge, one.e, one.unequal) for one in (a, b)]
    return _interval_estimate(sides[0][0] - sides[1][0], sides[0][1] + sides[1][1], min(a.n, b.n) - 1)


def _corrected(judge: FloatArray, e: FloatArray, unequal: FloatArray | None) -> tuple[float, float]:
    n_tasks, n = judge.size, e.size
    unasked = 1.0 - n / n_tasks
    if unequal is None:
        total = float(e.sum())
        spread = float(e @ e) + 1.0 - total**2 / (n + 2)
        return float(judge.mean()) + total / n, unasked * spread / (n + 2) ** 2
    weighted = e / unequal
    spread = float(((1.0 - unequal) * weighted**2).sum()) + unasked * (n_tasks / n) ** 2
    return float(judge.mean() + weighted.sum() / n_tasks), spread / n_tasks**2


def _interval_estimate(value: float, variance: float, df: int) -> IntervalEstimate:
    se = math.sqrt(max(variance, 0.0))
    half = float(stdtrit(df, 0.975)) * se
    return IntervalEstimate(value, se, value - half, value + half)
