"""Intraclass correlation: how much of the variance of an agent's outcomes is between tasks, not trials.

ICC(1,1), one-way random effects: 1, a task is always solved or never; 0, which task it is tells nothing. It
depends on the tasks as well as on the agent, so σ_w² and the number of trials stand beside it. Negative
estimates are reported as 0, the untruncated one is kept. Formulas: analytics/README.md, *Intraclass
correlation*.

Source: *Intraclass correlation for agentic evaluation* (GAIA, FRAMES), ICC(1,1) and Tables 2, 3. Shrout &
Fleiss, *Psychological Bulletin* 86 (1979) 420-428. Searle, Casella & McCulloch, *Variance Components*, 1992,
§3.6 (n₀, F interval). Arvesen & Schmitz, *Biometrics* 26 (1970) 677-686 (jackknife of log F).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import fdtri, stdtrit

from analytics.arrays import CodeArray, FloatArray
from analytics.errors import CoreError

Method = Literal["jackknife", "normal theory", "t", "logit-t"]

MIN_TASKS = 10
EQUAL = 1e-9


class IccRefused(CoreError):
    """An intraclass correlation cannot be said from these trials.

    Codes: ``too_few_tasks``, ``one_trial``, ``no_variance_within``, ``components_contradict``; of convergence
    ``too_few_trials``.
    """


@dataclass(frozen=True)
class TrialInterval:
    """A 95% interval and how it was made; 0 to 1."""

    lower: float
    upper: float
    method: Method


@dataclass(frozen=True, eq=False)
class TaskTrials:
    """Sufficient statistics of one agent's valid trials, task by task.

    n_trials: (n_tasks,); n_i, at least 1.
    means: (n_tasks,); ȳ_i, 0 to 1.
    squares: (n_tasks,); sums of squares within tasks; exactly 0 where trials agree to 1e-9.
    binary: whether every outcome is 0 or 1.
    """

    n_trials: CodeArray
    means: FloatArray
    squares: FloatArray
    binary: bool

    @property
    def n_tasks(self) -> int:
        """Number of tasks with a valid trial, a."""
        return len(self.n_trials)

    @property
    def mean(self) -> float:
        """Mean over tasks of the task means, A."""
        return float(self.means.mean())


@dataclass(frozen=True)
class IntraclassCorrelation:
    """ICC(1,1) of one agent, on all tasks or on one category.

    icc: 0 to 1, truncated at 0.
    icc_untruncated: as estimated; below 0 where tasks differ less than trials would make them.
    sigma_b2, sigma_w2: variance between tasks (truncated at 0) and within tasks.
    n_tasks, n_trials: a, and N = Σn_i.
    n_0: trials per task, the n₀ that makes MSB unbiased; n where balanced.
    least_trials, most_trials: smallest and largest n_i.
    interval: jackknife, truncated at 0; None with the reason in `note`.
    normal_theory: exact F interval; only where outcomes are not pass/fail and n_i are equal.
    note: why there is no interval; empty where there is one.
    """

    icc: float
    icc_untruncated: float
    sigma_b2: float
    sigma_w2: float
    n_tasks: int
    n_trials: int
    n_0: float
    least_trials: int
    most_trials: int
    interval: TrialInterval | None
    normal_theory: TrialInterval | None
    note: str


def task_trials(task: npt.ArrayLike, outcome: npt.ArrayLike) -> TaskTrials:
    """Collect one agent's valid trials by task.

    task: (n_rows,); task codes, 0 or above.
    outcome: (n_rows,); 0 to 1.
    Raises CoreError: when lengths differ or an outcome is not from 0 to 1.
    """
    codes, outcomes = checked_rows(task, outcome)
    n = np.bincount(codes)
    means = np.bincount(codes, weights=outcomes) / np.maximum(n, 1)
    deviations = outcomes - means[codes]
    deviations[np.abs(deviations) <= EQUAL] = 0.0
    squares, seen = np.bincount(codes, weights=deviations**2).astype(np.float64), n > 0
    binary = bool(((outcomes == 0.0) | (outcomes == 1.0)).all())
    return TaskTrials(n[seen], means[seen], squares[seen], binary)


def intraclass_correlation(trials: TaskTrials) -> IntraclassCorrelation:
    """ICC(1,1) with its jackknife interval.

    Raises IccRefused: under 10 tasks, where σ_b² and σ_w² cannot be told apart, or when a pass/fail agent's
        components exceed ¼·a/(a − 1), which very uneven n_i can bring about.
    """
    check_trials(trials)
    msb, msw, n_0 = mean_squares(trials)
    sigma_b2 = (msb - msw) / n_0
    if trials.binary:
        bound = 0.25 * trials.n_tasks / (trials.n_tasks - 1)
        if sigma_b2 + msw > bound + EQUAL:
            raise IccRefused(
                f"σ_b² + σ_w² = {sigma_b2 + msw:.4g} is above ¼·a/(a − 1) = {bound:.4g} for "
                f"{trials.n_tasks} tasks: impossible for pass/fail outcomes",
                code="components_contradict",
            )
    untruncated = sigma_b2 / (sigma_b2 + msw)
    interval, note = _jackknife(trials, msb / msw, n_0)
    return IntraclassCorrelation(
        icc=max(untruncated, 0.0),
        icc_untruncated=untruncated,
        sigma_b2=max(sigma_b2, 0.0),
        sigma_w2=msw,
        n_tasks=trials.n_tasks,
        n_trials=int(trials.n_trials.sum()),
        n_0=n_0,
        least_trials=int(trials.n_trials.min()),
        most_trials=int(trials.n_trials.max()),
        interval=interval,
        normal_theory=_normal_theory(trials, msb / msw),
        note=note,
    )


def mean_squares(trials: TaskTrials) -> tuple[float, float, float]:
    """MSB, MSW and n₀ of the module's head, at least two tasks."""
    n, a = trials.n_trials, trials.n_tasks
    n_all = n.sum()
    between = n @ (trials.means - n @ trials.means / n_all) ** 2
    n_0 = (n_all - n @ n / n_all) / (a - 1)
    return float(between / (a - 1)), float(trials.squares.sum() / (n_all - a)), float(n_0)


def _deleted_f(trials: TaskTrials) -> FloatArray:
    """MSB/MSW without each task in turn, shape (n_tasks,); not finite or 0 where it cannot be said.

    SSB without task i is SSB − n_i·N/(N − n_i)·(ȳ_i − ȳ)², a rank-one change.
    """
    n, a = trials.n_trials, trials.n_tasks
    n_all = n.sum()
    squares = (trials.means - n @ trials.means / n_all) ** 2
    between = np.maximum(n @ squares - n * n_all / (n_all - n) * squares, 0.0)
    within = trials.squares.sum() - trials.squares
    within[np.isclose(trials.squares, trials.squares.sum(), rtol=1e-12, atol=0.0)] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(between / (a - 2) / (within / (n_all - n - (a - 1))), dtype=np.float64)


def _jackknife(trials: TaskTrials, f: float, n_0: float) -> tuple[TrialInterval | None, str]:
    """F·e^{±t·SE} carried back (t with a − 1 df), or None and why."""
    a = trials.n_tasks
    deleted = _deleted_f(trials)
    if not f > 0.0 or not np.all(np.isfinite(deleted) & (deleted > 0.0)):
        return None, "no interval: without one of the tasks MSB or MSW is 0, and log(MSB/MSW) is not finite"
    z = np.log(deleted)
    se = np.sqrt((a - 1) / a * np.sum((z - z.mean()) ** 2))
    reach = np.exp(stdtrit(a - 1, 0.975) * se)
    return _interval(f / reach, f * reach, n_0, "jackknife"), ""


def _normal_theory(trials: TaskTrials, f: float) -> TrialInterval | None:
    """F/F_{.975}(a − 1, N − a) and F·F_{.975}(N − a, a − 1), carried back."""
    n, a = trials.n_trials, trials.n_tasks
    if trials.binary or n.min() < n.max():
        return None
    between, within = a - 1, int(n.sum()) - a
    lower, upper = f / fdtri(between, within, 0.975), f * fdtri(within, between, 0.975)
    return _interval(float(lower), float(upper), float(n[0]), "normal theory")


def _interval(lower_f: float, upper_f: float, n_0: float, method: Method) -> TrialInterval:
    """(F − 1)/(F + n₀ − 1) at both ends, truncated at 0."""
    lower, upper = (max(float((f - 1.0) / (f + n_0 - 1.0)), 0.0) for f in (lower_f, upper_f))
    return TrialInterval(lower, upper, method)


def counted(n: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def checked_rows(task: npt.ArrayLike, outcome: npt.ArrayLike) -> tuple[CodeArray, FloatArray]:
    """Return task codes and outcomes as arrays of one shape, (n_rows,)."""
    codes, outcomes = np.asarray(task), np.asarray(outcome, dtype=np.float64)
    if codes.ndim != 1 or codes.shape != outcomes.shape or (codes.size and codes.dtype.kind not in "iu"):
        raise CoreError(
            f"task codes {codes.dtype} {codes.shape} with outcomes {outcomes.shape}", code="row_malformed"
        )
    wrong = ~((outcomes >= 0.0) & (outcomes <= 1.0)) | (codes < 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise CoreError(
            f"row {row}: task {codes[row]}, outcome {outcomes[row]}; from 0, and from 0 to 1",
            code="row_malformed",
        )
    return codes.astype(np.int64), outcomes


def check_trials(trials: TaskTrials) -> None:
    """Refuse trials whose variances between and within tasks cannot be told apart."""
    if trials.n_tasks < MIN_TASKS:
        raise IccRefused(
            f"not measured: {counted(trials.n_tasks, 'task')} with a valid trial; {MIN_TASKS} are needed",
            code="too_few_tasks",
        )
    if trials.n_trials.max() == 1:
        raise IccRefused("not measured: one trial per task", code="one_trial")
    if trials.squares.sum() > 0.0:
        return
    spread = (
        "and all tasks have the same mean" if np.ptp(trials.means) <= EQUAL else "tasks differ, trials do not"
    )
    raise IccRefused(
        f"not measured: all trials of each of {trials.n_tasks} tasks agree (MSW = 0), {spread}: the agent is "
        "deterministic, or its trials are copies",
        code="no_variance_within",
    )
