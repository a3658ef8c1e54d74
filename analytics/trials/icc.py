"""Intraclass correlation and accuracy of one agent's trials, with intervals, and how many trials it takes.

ICC(1,1), one-way random effects: 1, a task is always solved or never; 0, the task makes no difference. It
depends on the tasks as well as on the agent, so σ_w² and the number of trials come with it. Negative
estimates are reported as 0, the untruncated one is kept.

Source: *Intraclass correlation for agentic evaluation* (GAIA, FRAMES), ICC(1,1), Tables 2, 3, and
convergence; the complement in place of all trials is this project's own. Shrout & Fleiss, *Psychological
Bulletin* 86 (1979) 420-428. Searle, Casella & McCulloch, *Variance Components*, 1992, §3.6 (n₀, F interval).
Arvesen & Schmitz, *Biometrics* 26 (1970) 677-686 (jackknife of log F). Agresti, *Categorical Data Analysis*,
2013, §3.1 (the logit by the delta method).
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import expit, fdtri, logit, stdtrit

from analytics.arrays import CodeArray, FloatArray
from analytics.differences.estimates import NamedInterval
from analytics.errors import CoreError
from analytics.resampling import generator
from analytics.text import counted

MIN_TASKS = 10
EQUAL = 1e-9


class IccRefused(CoreError):
    """An intraclass correlation cannot be said from these trials.

    Codes: ``too_few_tasks``, ``one_trial``, ``no_variance_within``, ``components_contradict``; of convergence
    ``too_few_trials``.
    """


@dataclass(frozen=True, eq=False)
class TaskTrials:
    """n_i, ȳ_i and SS of one agent's valid trials by task, (n_tasks,), 0 where they agree to 1e-9."""

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
    """ICC(1,1) of one agent, on all tasks or on one category; icc and sigma_b2 are truncated at 0.

    n_0: trials per task, the n₀ that makes MSB unbiased; n where balanced.
    least_trials, most_trials: smallest and largest n_i.
    interval: jackknife, truncated at 0; None with the reason in `note`.
    normal_theory: exact F interval; only where outcomes are not pass/fail and n_i are equal.
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
    interval: NamedInterval | None
    normal_theory: NamedInterval | None
    note: str


def task_trials(task: npt.ArrayLike, outcome: npt.ArrayLike) -> TaskTrials:
    """Collect one agent's valid trials, (n_rows,): task codes from 0, outcomes 0 to 1."""
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

    Raises IccRefused: under 10 tasks, where σ_b² and σ_w² cannot be separated, or when a pass/fail agent's
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
    """MSB, MSW and n₀, of at least two tasks."""
    n, a = trials.n_trials, trials.n_tasks
    n_all = n.sum()
    between = n @ (trials.means - n @ trials.means / n_all) ** 2
    n_0 = (n_all - n @ n / n_all) / (a - 1)
    return float(between / (a - 1)), float(trials.squares.sum() / (n_all - a)), float(n_0)


def _jackknife(trials: TaskTrials, f: float, n_0: float) -> tuple[NamedInterval | None, str]:
    """F·e^{±t·SE} carried back (t with a − 1 df), or None and why.

    SSB without task i is SSB − n_i·N/(N − n_i)·(ȳ_i − ȳ)², a rank-one change.
    """
    n, a = trials.n_trials, trials.n_tasks
    n_all = n.sum()
    squares = (trials.means - n @ trials.means / n_all) ** 2
    between = np.maximum(n @ squares - n * n_all / (n_all - n) * squares, 0.0)
    within = trials.squares.sum() - trials.squares
    within[np.isclose(trials.squares, trials.squares.sum(), rtol=1e-12, atol=0.0)] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        deleted = between / (a - 2) / (within / (n_all - n - (a - 1)))  # MSB/MSW without each task
    if not f > 0.0 or not np.all(np.isfinite(deleted) & (deleted > 0.0)):
        return None, "no interval: without one of the tasks MSB or MSW is 0, and log(MSB/MSW) is not finite"
    z = np.log(deleted)
    se = np.sqrt((a - 1) / a * np.sum((z - z.mean()) ** 2))
    reach = np.exp(stdtrit(a - 1, 0.975) * se)
    return _interval(f / reach, f * reach, n_0, "jackknife"), ""


def _normal_theory(trials: TaskTrials, f: float) -> NamedInterval | None:
    """F/F_{.975}(a − 1, N − a) and F·F_{.975}(N − a, a − 1), carried back."""
    n, a = trials.n_trials, trials.n_tasks
    if trials.binary or n.min() < n.max():
        return None
    between, within = a - 1, int(n.sum()) - a
    lower, upper = f / fdtri(between, within, 0.975), f * fdtri(within, between, 0.975)
    return _interval(float(lower), float(upper), float(n[0]), "normal theory")


def _interval(lower_f: float, upper_f: float, n_0: float, method: str) -> NamedInterval:
    """(F − 1)/(F + n₀ − 1) at both ends, truncated at 0."""
    lower, upper = (max(float((f - 1.0) / (f + n_0 - 1.0)), 0.0) for f in (lower_f, upper_f))
    return NamedInterval(lower, upper, method)


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
    """Refuse trials whose variances between and within tasks cannot be separated."""
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


N_EXPECTED = 5.0


class AccuracyRefused(CoreError):
    """No interval of a mean outcome: `too_few_tasks`, or `means_equal`."""


def accuracy_interval(trials: TaskTrials) -> NamedInterval:
    """95% interval of the mean outcome over tasks like these, two or more: t, or logit-t near an end."""
    a = trials.n_tasks
    if a < 2:
        raise AccuracyRefused(
            f"no interval of a mean over {counted(a, 'task')}; at least 2 are needed", code="too_few_tasks"
        )
    se = float(trials.means.std(ddof=1)) / math.sqrt(a)
    if se <= EQUAL:
        raise AccuracyRefused(
            f"no interval of a mean: all {a} tasks have the mean outcome {trials.mean:.4g}, which tells "
            "nothing of how tasks differ",
            code="means_equal",
        )
    return mean_interval(trials.mean, se, a)


def mean_interval(
    mean: float, se: float, n_tasks: int, method: Literal["t", "logit-t"] | None = None
) -> NamedInterval:
    """95% interval of a mean over tasks from its standard error.

    mean, se: A, strictly between 0 and 1 for the logit; SE.
    n_tasks: a, at least 2.
    method: {"t", "logit-t"}: by rule when not given: logit-t where a·min(A, 1 − A) < 5.
    """
    n_expected = n_tasks * min(mean, 1.0 - mean)
    rule: Literal["t", "logit-t"] = "logit-t" if n_expected < N_EXPECTED - EQUAL else "t"
    reach = float(stdtrit(n_tasks - 1, 0.975)) * se
    if (method or rule) == "t":
        return NamedInterval(mean - reach, mean + reach, "t")
    centre, reach = float(logit(mean)), reach / (mean * (1.0 - mean))
    return NamedInterval(float(expit(centre - reach)), float(expit(centre + reach)), "logit-t")


N_SUBSETS = 200
TOLERANCE = 0.05
SHARE_WITHIN = 0.95
CELLS_AT_ONCE = 2**17


@dataclass(frozen=True)
class ConvergenceStep:
    """ICC estimates from random subsets of n trials of each task.

    mean, sd: over the subsets that have an estimate; None where fewer than two have.
    share_within: share of all subsets whose estimate lies within ±.05 of the one from the complementary
        trials; None for n above R/2.
    n_undefined: subsets in which all outcomes are equal: without an estimate, and counted as not within.
    """

    n_trials: int
    mean: float | None
    sd: float | None
    share_within: float | None
    n_undefined: int


@dataclass(frozen=True)
class Convergence:
    """How many trials the ICC needs: steps of n = 2, 4, 8, … up to R, the fewest valid trials of any task.

    trials_needed: smallest n ≤ R/2 of the steps with at least 95% of the subsets within; None: not reached.
    """

    steps: tuple[ConvergenceStep, ...]
    n_available: int
    trials_needed: int | None
    n_subsets: int

    @property
    def verdict(self) -> str:
        """`trials_needed` in words."""
        if self.trials_needed is None:
            return f"not reached with {self.n_available} trials per task"
        return f"{self.trials_needed} trials per task"


def convergence(
    task: npt.ArrayLike, outcome: npt.ArrayLike, seed: int, n_subsets: int = N_SUBSETS
) -> Convergence:
    """How the ICC settles with the number of trials, and how many are needed.

    A subset takes n trials of every task at random, its complement the other n_i − n; subsets of one draw are
    nested.

    task, outcome: as in `task_trials`.
    seed: base seed; subset d is drawn by the generator of (seed, "icc convergence", d) alone.
    Raises IccRefused: also when a task has fewer than four valid trials: no two have a complement of two.
    """
    codes, outcomes = checked_rows(task, outcome)
    trials = task_trials(codes, outcomes)
    check_trials(trials)
    n_available = int(trials.n_trials.min())
    if n_available < 4:
        raise IccRefused(
            f"a task has {counted(n_available, 'valid trial')}; convergence needs 4 on every task",
            code="too_few_trials",
        )
    if n_subsets < 1:
        raise CoreError(f"{n_subsets} subsets; at least 1 is needed", code="seed")
    sizes = [2**k for k in range(1, n_available.bit_length())]
    own, other = _subset_estimates(codes, outcomes, trials, sizes, seed, n_subsets)
    steps = tuple(_step(n, own[:, k], other[:, k], n_available) for k, n in enumerate(sizes))
    reached = [step.n_trials for step in steps if (step.share_within or 0.0) >= SHARE_WITHIN]
    return Convergence(steps, n_available, reached[0] if reached else None, n_subsets)


def _subset_estimates(
    codes: CodeArray, outcomes: FloatArray, trials: TaskTrials, sizes: list[int], seed: int, n_subsets: int
) -> tuple[FloatArray, FloatArray]:
    """ICC of every subset and of its complement, shape (n_subsets, n_sizes); NaN where undefined."""
    grid = np.full((trials.n_tasks, int(trials.n_trials.max())), np.nan)
    grid[np.arange(grid.shape[1]) < trials.n_trials[:, None]] = outcomes[np.lexsort((outcomes, codes))]
    own = np.full((n_subsets, len(sizes)), np.nan)
    other = own.copy()
    at_once = max(CELLS_AT_ONCE // grid.size, 1)
    for first in range(0, n_subsets, at_once):
        draws = range(first, min(first + at_once, n_subsets))
        keys = np.array([generator(seed, "icc convergence", d).random(grid.shape) for d in draws])
        keys[:, np.isnan(grid)] = 2.0
        shuffled = np.take_along_axis(grid[None], np.argsort(keys, axis=2), axis=2)
        for k, n in enumerate(sizes):
            own[draws, k] = _icc_of_grids(shuffled[:, :, :n])
            if 2 * n <= trials.n_trials.min():
                other[draws, k] = _icc_of_grids(shuffled[:, :, n:])
    return own, other


def _icc_of_grids(grids: FloatArray) -> FloatArray:
    """Return the truncated ICC of grids of trials by task, NaN-padded alike; NaN where all are equal."""
    seen = ~np.isnan(grids[0])
    n = np.count_nonzero(seen, axis=1)
    means = np.where(seen, grids, 0.0).sum(axis=2) / n
    squares = (np.where(seen, grids - means[:, :, None], 0.0) ** 2).sum(axis=2)
    n_all, a = n.sum(), n.size
    between = (means - (means @ n / n_all)[:, None]) ** 2 @ n
    msb, msw, n_0 = between / (a - 1), squares.sum(axis=1) / (n_all - a), (n_all - n @ n / n_all) / (a - 1)
    defined = msb + msw > EQUAL**2
    icc = np.full(len(grids), np.nan)
    np.divide(msb - msw, msb + (n_0 - 1.0) * msw, out=icc, where=defined)
    return np.where(defined, np.maximum(icc, 0.0), np.nan)


def _step(n: int, own: FloatArray, other: FloatArray, n_available: int) -> ConvergenceStep:
    defined = own[~np.isnan(own)]
    enough = defined.size > 1
    within = np.count_nonzero(np.abs(own - other) <= TOLERANCE + EQUAL) / own.size
    return ConvergenceStep(
        n_trials=n,
        mean=float(defined.mean()) if enough else None,
        sd=float(defined.std(ddof=1)) if enough else None,
        share_within=float(within) if 2 * n <= n_available else None,
        n_undefined=own.size - defined.size,
    )
