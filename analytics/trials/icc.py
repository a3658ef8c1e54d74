"""Intraclass correlation: how much of the variance of an agent's outcomes is between tasks, not trials.

Model
-----
ICC(1,1), one-way random effects. Trial t of task i of one agent, a tasks with n_i valid trials each::

    y_it = μ + b_i + e_it                 Var b = σ_b², Var e = σ_w², N = Σn_i
    MSB  = Σ n_i(ȳ_i − ȳ)²/(a − 1)        ȳ = Σ n_i·ȳ_i/N
    MSW  = Σ_it (y_it − ȳ_i)²/(N − a)
    n₀   = (N − Σn_i²/N)/(a − 1)          n where all n_i = n
    σ_b² = (MSB − MSW)/n₀,  σ_w² = MSW,  ICC = σ_b²/(σ_b² + σ_w²) = (F − 1)/(F + n₀ − 1),  F = MSB/MSW

ICC 1: a task is always solved or never; 0: which task it is tells nothing. It depends on the tasks as well
as on the agent, so σ_w² and the number of trials stand beside it. Negative estimates are reported as 0, the
untruncated one is kept.

Interval: z = log F with a delete-one-task jackknife standard error, back by (e^z − 1)/(e^z + n₀ − 1)::

    SE² = (a − 1)/a · Σ_i (z_(i) − z̄)²,   z ± t_{a−1,.975}·SE

For outcomes other than pass/fail with equal n there is beside it the exact F interval of normal theory; for
pass/fail its coverage is .62 to .88 at published parameters.

Accuracy A = Σȳ_i/a, with s² the variance of the task means (divisor a − 1) and SE = s/√a::

    t        A ± t_{a−1,.975}·SE
    logit-t  logit A ± t_{a−1,.975}·SE/(A(1 − A)), back by the logistic function

From published components s² = σ_b² + σ_w²/n. *Unreliable*: fewer than 10 tasks with a mean strictly between 0
and 1, or a·min(A, 1 − A) < 5; then the accuracy interval is logit-t.

Symbols
-------
===============  =========================  ==============  ==============
symbol           code                       shape           unit
===============  =========================  ==============  ==============
a                ``n_tasks``                scalar          tasks
n_i              ``n_trials``               (n_tasks,)      trials
ȳ_i              ``means``                  (n_tasks,)      0 to 1
Σ_t(y − ȳ_i)²    ``squares``                (n_tasks,)      outcome²
n₀               ``n_0``                    scalar          trials
σ_b², σ_w²       ``sigma_b2, sigma_w2``     scalar          outcome²
ICC              ``icc``                    scalar          0 to 1
A                ``mean``                   scalar          0 to 1
===============  =========================  ==============  ==============

Limits: with one trial per task σ_b² and σ_w² cannot be told apart; with MSW = 0 z is infinite (the agent is
deterministic, or trials are copies); both are refused. For pass/fail outcomes σ_b² + σ_w² cannot exceed
¼·a/(a − 1): in balanced data it is A(1 − A) + s²/a. Components above that bound contradict themselves.

Not done here
-------------
All valid trials of a task count as replicates, whatever setting they ran under: what prompts, judges or runs
add is inside σ_w². Tasks count as independent draws; categories are looked at one by one, never pooled.

Source
------
*Intraclass correlation for agentic evaluation* (GAIA, FRAMES), ICC(1,1) and Tables 2, 3. Shrout & Fleiss,
*Psychological Bulletin* 86 (1979) 420-428. Searle, Casella & McCulloch, *Variance Components*, 1992, §3.6
(n₀, F interval). Arvesen & Schmitz, *Biometrics* 26 (1970) 677-686 (jackknife of log F).
"""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import expit, fdtri, logit, stdtrit

from analytics.arrays import CodeArray, FloatArray, Mask
from analytics.errors import CoreError
from analytics.flat_file import FlatFile
from analytics.outcome_table import RowMalformed
from analytics.resampling import SeedRefused, generator

Method = Literal["jackknife", "normal theory", "t", "logit-t"]

N_TASKS_INSIDE = 10
N_EXPECTED = 5.0
N_SUBSETS = 200
TOLERANCE = 0.05
SHARE_WITHIN = 0.95
EQUAL = 1e-9


class IccRefused(CoreError):
    """An intraclass correlation cannot be said from these trials."""


class OneTrialPerTask(IccRefused):
    """Not measured: one trial per task."""


class TooFewTasks(IccRefused):
    """A variance between tasks needs at least two of them."""


class NoVarianceWithin(IccRefused):
    """All trials of every task agree: MSW = 0."""


class ComponentsContradict(IccRefused):
    """Variance components are impossible for pass/fail outcomes, or not variances at all."""


class AccuracyRefused(IccRefused):
    """An interval for the mean outcome cannot be said."""


class TooFewTrials(IccRefused):
    """Convergence over trials needs at least four of them on every task."""


@dataclass(frozen=True)
class Interval:
    """A 95% interval and how it was made; 0 to 1."""

    lower: float
    upper: float
    method: Method


@dataclass(frozen=True, eq=False)
class TaskTrials:
    """Sufficient statistics of one agent's valid trials, task by task.

    Attributes
    ----------
    n_trials : int array, shape (n_tasks,)
        n_i, at least 1.
    means : float array, shape (n_tasks,)
        ȳ_i, 0 to 1.
    squares : float array, shape (n_tasks,)
        Sums of squares within tasks; exactly 0 where trials agree to 1e-9.
    binary : bool
        Whether every outcome is 0 or 1.
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
    def n_inside(self) -> int:
        """Tasks with a mean strictly between 0 and 1."""
        return int(np.count_nonzero((self.means > EQUAL) & (self.means < 1.0 - EQUAL)))

    @property
    def mean(self) -> float:
        """Mean over tasks of the task means, A."""
        return float(self.means.mean())


@dataclass(frozen=True)
class IntraclassCorrelation:
    """ICC(1,1) of one agent, on all tasks or on one category.

    Attributes
    ----------
    icc : float
        0 to 1, truncated at 0.
    icc_untruncated : float
        As estimated; below 0 where tasks differ less than trials would make them.
    sigma_b2, sigma_w2 : float
        Variance between tasks (truncated at 0) and within tasks.
    n_tasks, n_trials : int
        a, and N = Σn_i.
    n_0 : float
        Trials per task, the n₀ that makes MSB unbiased; n where balanced.
    least_trials, most_trials : int
        Smallest and largest n_i.
    interval : Interval or None
        Jackknife, truncated at 0; None with the reason in `note`.
    normal_theory : Interval or None
        Exact F interval; only where outcomes are not pass/fail and n_i are equal.
    unreliable : str
        Why the interval is not to be relied on; empty where it is.
    note : str
        Why there is no interval; empty where there is one.
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
    interval: Interval | None
    normal_theory: Interval | None
    unreliable: str
    note: str


@dataclass(frozen=True)
class Consistency:
    """One line of the table: an agent, on all tasks (category None) or on one category.

    Attributes
    ----------
    agent : str
    category : str or None
    mean : float
        A, mean over tasks of the task means, 0 to 1.
    n_tasks : int
        Tasks with a valid trial.
    icc : IntraclassCorrelation or None
    accuracy : Interval or None
    notes : tuple of (str, str)
        For each figure that is None, its name and the reason.
    """

    agent: str
    category: str | None
    mean: float
    n_tasks: int
    icc: IntraclassCorrelation | None
    accuracy: Interval | None
    notes: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ConvergenceStep:
    """ICC estimates from random subsets of n trials of each task.

    Attributes
    ----------
    n_trials : int
        n.
    mean, sd : float or None
        Over the subsets that have an estimate; None where fewer than two have.
    share_within : float or None
        Share of all subsets whose estimate lies within ±.05 of the one from the complementary trials; None
        for n above R/2.
    n_undefined : int
        Subsets in which all outcomes are equal, so that there is no estimate; they count as not within.
    """

    n_trials: int
    mean: float | None
    sd: float | None
    share_within: float | None
    n_undefined: int


@dataclass(frozen=True)
class Convergence:
    """How many trials the ICC needs.

    Attributes
    ----------
    steps : tuple of ConvergenceStep
        n = 2, 4, 8, … up to R.
    n_available : int
        R, the fewest valid trials of any task.
    trials_needed : int or None
        Smallest n ≤ R/2 of the steps with at least 95% of the subsets within; None: not reached.
    n_subsets : int
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


# ----------------------------------------------------------------------------------------- one agent's trials


def task_trials(task: npt.ArrayLike, outcome: npt.ArrayLike) -> TaskTrials:
    """Collect one agent's valid trials by task.

    Parameters
    ----------
    task : int array, shape (n_rows,)
        Task codes, 0 or above.
    outcome : float array, shape (n_rows,)
        0 to 1.

    Raises
    ------
    RowMalformed
        When lengths differ or an outcome is not from 0 to 1.
    """
    codes, outcomes = _checked_rows(task, outcome)
    return _trials_of_cells(*_cells(codes, outcomes, int(codes.max(initial=-1)) + 1), _is_binary(outcomes))


def task_trials_of_sums(n_trials: npt.ArrayLike, sums: npt.ArrayLike, squares: npt.ArrayLike) -> TaskTrials:
    """Take one agent's trials from per-task counts, Σ_t y and Σ_t y², shape (n_tasks,) each.

    Raises
    ------
    RowMalformed
        When shapes differ or no outcomes from 0 to 1 have such sums.

    Notes
    -----
    Σ(y − ȳ_i)² = Σy² − (Σy)²/n_i; below 1e-12·n_i it counts as 0, being the difference of rounded numbers.
    Outcomes from 0 to 1 are all 0 or 1 if and only if Σy² = Σy.
    """
    n, total, square = _checked_sums(n_trials, sums, squares)
    seen = n > 0
    n, total, square = n[seen], total[seen], square[seen]
    within = square - total**2 / n
    within[within <= 1e-12 * n] = 0.0
    return TaskTrials(n, total / n, within, bool(np.all(np.abs(total - square) <= EQUAL)))


def intraclass_correlation(trials: TaskTrials) -> IntraclassCorrelation:
    """ICC(1,1) with its jackknife interval.

    Raises
    ------
    TooFewTasks, OneTrialPerTask, NoVarianceWithin
        Where σ_b² and σ_w² cannot be told apart.
    ComponentsContradict
        When a pass/fail agent's components exceed ¼·a/(a − 1), which very uneven n_i can bring about.
    """
    _check_trials(trials)
    msb, msw, n_0 = _mean_squares(trials)
    sigma_b2 = (msb - msw) / n_0
    if trials.binary:
        _check_bound(sigma_b2 + msw, trials.n_tasks)
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
        unreliable=_unreliable(trials.n_tasks, trials.mean, trials.n_inside),
        note=note,
    )


def accuracy_interval(trials: TaskTrials) -> Interval:
    """95% interval of the mean outcome over tasks like these: t, or logit-t where marked unreliable.

    Raises
    ------
    AccuracyRefused
        With fewer than two tasks, or where all task means are equal.
    """
    a = trials.n_tasks
    if a < 2:
        raise AccuracyRefused(f"no interval of a mean over {_counted(a, 'task')}; at least 2 are needed")
    se = float(trials.means.std(ddof=1)) / math.sqrt(a)
    if se <= EQUAL:
        raise AccuracyRefused(
            f"no interval of a mean: all {a} tasks have the mean outcome {trials.mean:.4g}, which tells "
            "nothing of how tasks differ"
        )
    unreliable = _unreliable(a, trials.mean, trials.n_inside)
    return _mean_interval(trials.mean, se, a, "logit-t" if unreliable else "t")


def published_accuracy_interval(
    mean: float,
    sigma_b2: float,
    icc: float,
    n_tasks: int,
    n_trials: int,
    *,
    method: Literal["t", "logit-t"] | None = None,
    binary: bool = True,
) -> Interval:
    """95% interval of an accuracy from published components.

    Parameters
    ----------
    mean : float
        A, strictly between 0 and 1.
    sigma_b2, icc : float
        σ_b² > 0 and ICC in (0, 1]; σ_w² = σ_b²(1 − ICC)/ICC.
    n_tasks, n_trials : int
        a ≥ 2, and n ≥ 1 trials of each task.
    method : {"t", "logit-t"}, optional
        By rule when not given: logit-t where a·min(A, 1 − A) < 5. (The published intervals are all t.)
    binary : bool
        Whether outcomes are pass/fail, so that σ_b² + σ_w² is bounded.

    Raises
    ------
    TooFewTasks, ComponentsContradict, AccuracyRefused
    """
    _check_published(mean, sigma_b2, icc, n_tasks, n_trials)
    sigma_w2 = sigma_b2 * (1.0 - icc) / icc
    if binary:
        _check_bound(sigma_b2 + sigma_w2, n_tasks)
    rule: Literal["t", "logit-t"] = "logit-t" if n_tasks * min(mean, 1.0 - mean) < N_EXPECTED else "t"
    return _mean_interval(
        mean, math.sqrt((sigma_b2 + sigma_w2 / n_trials) / n_tasks), n_tasks, method or rule
    )


def convergence(
    task: npt.ArrayLike, outcome: npt.ArrayLike, seed: int, n_subsets: int = N_SUBSETS
) -> Convergence:
    """How the ICC settles with the number of trials, and how many are needed.

    Parameters
    ----------
    task, outcome
        As in `task_trials`.
    seed : int
        Base seed; subset d is drawn by the generator of (seed, "icc convergence", d) alone.
    n_subsets : int
        Random subsets, 200.

    Raises
    ------
    TooFewTasks, OneTrialPerTask, NoVarianceWithin
        As in `intraclass_correlation`.
    TooFewTrials
        When a task has fewer than four valid trials, so that no two have a complement of two.

    Notes
    -----
    A subset takes n trials of every task at random, its complement the other n_i − n; subsets of one draw are
    nested. Compared with the estimate from *all* trials, a subset would confirm itself.
    """
    codes, outcomes = _checked_rows(task, outcome)
    trials = task_trials(codes, outcomes)
    _check_trials(trials)
    n_available = int(trials.n_trials.min())
    if n_available < 4:
        raise TooFewTrials(
            f"a task has {_counted(n_available, 'valid trial')}; convergence needs 4 on every task"
        )
    if n_subsets < 1:
        raise SeedRefused(f"{n_subsets} subsets; at least 1 is needed")
    sizes = _sizes(n_available)
    own, other = _subset_estimates(codes, outcomes, trials, sizes, seed, n_subsets)
    steps = tuple(_step(n, own[:, k], other[:, k], n_available) for k, n in enumerate(sizes))
    reached = [step.n_trials for step in steps if (step.share_within or 0.0) >= SHARE_WITHIN]
    return Convergence(steps, n_available, reached[0] if reached else None, n_subsets)


# ------------------------------------------------------------------------------------------------- all agents


def consistency(file: FlatFile, copied: Collection[str] = ()) -> tuple[Consistency, ...]:
    """ICC and accuracy of every agent of a flat file, on all its tasks and on each category.

    Parameters
    ----------
    file : FlatFile
        Invalid rows are left out.
    copied : collection of str
        Agents whose trials are flagged as not independent: they count as one trial per task.

    Returns
    -------
    tuple of Consistency
        In name order of agents; for each the line of all tasks, then its categories in name order. A category
        is left out where it is the only one. An agent without a valid trial has no line.
    """
    valid = file.valid
    agent, task, outcome = file.agent[valid], file.task[valid], file.outcome[valid]
    n_agents, n_tasks = len(file.agents), len(file.tasks)
    cell = agent.astype(np.int64) * n_tasks + task
    n, means, squares = (
        grid.reshape(n_agents, n_tasks) for grid in _cells(cell, outcome, n_agents * n_tasks)
    )
    binary = np.bincount(agent, weights=~_zero_or_one(outcome), minlength=n_agents) == 0
    return tuple(
        _line(
            name,
            category,
            _trials_of_cells(n[i, kept], means[i, kept], squares[i, kept], bool(binary[i])),
            copied,
        )
        for i, name in enumerate(file.agents)
        for category, kept in _categories(file.categories)
        if n[i, kept].any()
    )


def _categories(categories: tuple[str | None, ...]) -> Iterator[tuple[str | None, Mask]]:
    """All tasks under None, then the tasks of each category, where there is more than one."""
    yield None, np.ones(len(categories), dtype=np.bool_)
    named = sorted({category for category in categories if category is not None})
    if len(set(categories)) > 1:
        for category in named:
            yield category, np.array([other == category for other in categories])


def _line(agent: str, category: str | None, trials: TaskTrials, copied: Collection[str]) -> Consistency:
    notes: list[tuple[str, str]] = []
    icc: IntraclassCorrelation | None = None
    accuracy: Interval | None = None
    try:
        if agent in copied:
            raise OneTrialPerTask("not measured: one trial per task (the trials are not independent)")
        icc = intraclass_correlation(trials)
    except IccRefused as refusal:
        notes.append(("icc", str(refusal)))
    try:
        accuracy = accuracy_interval(trials)
    except AccuracyRefused as refusal:
        notes.append(("accuracy", str(refusal)))
    return Consistency(agent, category, trials.mean, trials.n_tasks, icc, accuracy, tuple(notes))


# ------------------------------------------------------------------------------------------------- arithmetic


def _cells(cell: CodeArray, outcome: FloatArray, n_cells: int) -> tuple[CodeArray, FloatArray, FloatArray]:
    """Count, mean and Σ(y − ȳ)² of every cell, shape (n_cells,) each; 0 where it has no row."""
    n = np.bincount(cell, minlength=n_cells)
    means = np.bincount(cell, weights=outcome, minlength=n_cells) / np.maximum(n, 1)
    deviations = outcome - means[cell]
    deviations[np.abs(deviations) <= EQUAL] = 0.0
    squares = np.bincount(cell, weights=deviations**2, minlength=n_cells)
    return n, means, np.asarray(squares, dtype=np.float64)


def _trials_of_cells(n: CodeArray, means: FloatArray, squares: FloatArray, binary: bool) -> TaskTrials:
    seen = n > 0
    return TaskTrials(n[seen], means[seen], squares[seen], binary)


def _zero_or_one(outcome: FloatArray) -> Mask:
    return np.asarray((outcome == 0.0) | (outcome == 1.0), dtype=np.bool_)


def _is_binary(outcome: FloatArray) -> bool:
    return bool(_zero_or_one(outcome).all())


def _mean_squares(trials: TaskTrials) -> tuple[float, float, float]:
    """MSB, MSW and n₀."""
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


def _jackknife(trials: TaskTrials, f: float, n_0: float) -> tuple[Interval | None, str]:
    """F·e^{±t·SE} carried back (t with a − 1 df), or None and why."""
    a = trials.n_tasks
    if a < 3:
        return None, f"no interval: a jackknife over tasks needs 3 of them; there are {a}"
    deleted = _deleted_f(trials)
    if not f > 0.0 or not np.all(np.isfinite(deleted) & (deleted > 0.0)):
        return None, "no interval: without one of the tasks MSB or MSW is 0, and log(MSB/MSW) is not finite"
    z = np.log(deleted)
    se = np.sqrt((a - 1) / a * np.sum((z - z.mean()) ** 2))
    reach = np.exp(stdtrit(a - 1, 0.975) * se)
    return _interval(f / reach, f * reach, n_0, "jackknife"), ""


def _normal_theory(trials: TaskTrials, f: float) -> Interval | None:
    """F/F_{.975}(a − 1, N − a) and F·F_{.975}(N − a, a − 1), carried back."""
    n, a = trials.n_trials, trials.n_tasks
    if trials.binary or n.min() < n.max():
        return None
    between, within = a - 1, int(n.sum()) - a
    lower, upper = f / fdtri(between, within, 0.975), f * fdtri(within, between, 0.975)
    return _interval(float(lower), float(upper), float(n[0]), "normal theory")


def _interval(lower_f: float, upper_f: float, n_0: float, method: Method) -> Interval:
    """(F − 1)/(F + n₀ − 1) at both ends, truncated at 0."""
    lower, upper = (max(float((f - 1.0) / (f + n_0 - 1.0)), 0.0) for f in (lower_f, upper_f))
    return Interval(lower, upper, method)


def _mean_interval(mean: float, se: float, n_tasks: int, method: Literal["t", "logit-t"]) -> Interval:
    reach = float(stdtrit(n_tasks - 1, 0.975)) * se
    if method == "t":
        return Interval(mean - reach, mean + reach, method)
    centre, reach = float(logit(mean)), reach / (mean * (1.0 - mean))
    return Interval(float(expit(centre - reach)), float(expit(centre + reach)), method)


def _unreliable(n_tasks: int, mean: float, n_inside: int) -> str:
    reasons = []
    if n_inside < N_TASKS_INSIDE:
        verb = "has" if n_inside == 1 else "have"
        reasons.append(f"only {_counted(n_inside, 'task')} {verb} a mean strictly between 0 and 1")
    if n_tasks * min(mean, 1.0 - mean) < N_EXPECTED:
        reasons.append(f"{n_tasks} tasks at a mean outcome of {mean:.4g} are too near an end")
    return "; ".join(reasons)


# ------------------------------------------------------------------------------------------------ convergence


def _sizes(n_available: int) -> list[int]:
    """2, 4, 8, … up to R."""
    return [2**k for k in range(1, n_available.bit_length()) if 2**k <= n_available]


def _subset_estimates(
    codes: CodeArray, outcomes: FloatArray, trials: TaskTrials, sizes: list[int], seed: int, n_subsets: int
) -> tuple[FloatArray, FloatArray]:
    """ICC of every subset and of its complement, shape (n_subsets, n_sizes); NaN where undefined."""
    grid = _by_task(codes, outcomes, trials.n_trials)
    own = np.full((n_subsets, len(sizes)), np.nan)
    other = own.copy()
    for d in range(n_subsets):
        keys = generator(seed, "icc convergence", d).random(grid.shape)
        keys[np.isnan(grid)] = 2.0
        shuffled = np.take_along_axis(grid, np.argsort(keys, axis=1), axis=1)
        for k, n in enumerate(sizes):
            own[d, k] = _icc_of_grid(shuffled[:, :n])
            if 2 * n <= trials.n_trials.min():
                other[d, k] = _icc_of_grid(shuffled[:, n:])
    return own, other


def _by_task(codes: CodeArray, outcomes: FloatArray, n_trials: CodeArray) -> FloatArray:
    """Outcomes in rows by task, shape (n_tasks, most trials), NaN after a task's last."""
    grid = np.full((n_trials.size, int(n_trials.max())), np.nan)
    grid[np.arange(grid.shape[1]) < n_trials[:, None]] = outcomes[np.lexsort((outcomes, codes))]
    return grid


def _icc_of_grid(grid: FloatArray) -> float:
    """Return the truncated ICC of rows of trials, NaN-padded; NaN where all outcomes are equal."""
    n = np.count_nonzero(~np.isnan(grid), axis=1)
    means = np.nansum(grid, axis=1) / n
    squares = np.nansum((grid - means[:, None]) ** 2, axis=1)
    msb, msw, n_0 = _mean_squares(TaskTrials(n, means, squares, False))
    if msb + msw <= EQUAL**2:
        return float("nan")
    return max((msb - msw) / (msb + (n_0 - 1.0) * msw), 0.0)


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


# ----------------------------------------------------------------------------------------------------- checks


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _checked_rows(task: npt.ArrayLike, outcome: npt.ArrayLike) -> tuple[CodeArray, FloatArray]:
    codes, outcomes = np.asarray(task), np.asarray(outcome, dtype=np.float64)
    if codes.ndim != 1 or codes.shape != outcomes.shape or (codes.size and codes.dtype.kind not in "iu"):
        raise RowMalformed(f"task codes {codes.dtype} {codes.shape} with outcomes {outcomes.shape}")
    wrong = ~((outcomes >= 0.0) & (outcomes <= 1.0)) | (codes < 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise RowMalformed(f"row {row}: task {codes[row]}, outcome {outcomes[row]}; from 0, and from 0 to 1")
    return codes.astype(np.int64), outcomes


def _checked_sums(
    n_trials: npt.ArrayLike, sums: npt.ArrayLike, squares: npt.ArrayLike
) -> tuple[CodeArray, FloatArray, FloatArray]:
    n = np.asarray(n_trials)
    total, square = np.asarray(sums, dtype=np.float64), np.asarray(squares, dtype=np.float64)
    if n.ndim != 1 or n.dtype.kind not in "iu" or not n.shape == total.shape == square.shape:
        raise RowMalformed(f"counts {n.dtype} {n.shape}, sums {total.shape} and squares {square.shape}")
    slack = EQUAL * np.maximum(n, 1)
    possible = (n >= 0) & (total >= 0) & (square <= total + slack) & (square * n >= total**2 - slack * n)
    if not possible.all():
        i = int(np.argmin(possible))
        raise RowMalformed(
            f"task {i}: no {n[i]} outcomes from 0 to 1 have sum {total[i]} and squares {square[i]}"
        )
    return n.astype(np.int64), total, square


def _check_trials(trials: TaskTrials) -> None:
    if trials.n_tasks < 2:
        raise TooFewTasks(
            f"not measured: {_counted(trials.n_tasks, 'task')} with a valid trial; 2 are needed"
        )
    if trials.n_trials.max() == 1:
        raise OneTrialPerTask("not measured: one trial per task")
    if trials.squares.sum() > 0.0:
        return
    spread = (
        "and all tasks have the same mean" if np.ptp(trials.means) <= EQUAL else "tasks differ, trials do not"
    )
    raise NoVarianceWithin(
        f"not measured: all trials of each of {trials.n_tasks} tasks agree (MSW = 0), {spread}: the agent is "
        "deterministic, or its trials are copies"
    )


def _check_bound(total: float, n_tasks: int) -> None:
    bound = 0.25 * n_tasks / (n_tasks - 1)
    if total > bound + EQUAL:
        raise ComponentsContradict(
            f"σ_b² + σ_w² = {total:.4g} is above ¼·a/(a − 1) = {bound:.4g} for {n_tasks} tasks: "
            "impossible for pass/fail outcomes"
        )


def _check_published(mean: float, sigma_b2: float, icc: float, n_tasks: int, n_trials: int) -> None:
    if n_tasks < 2:
        raise TooFewTasks(f"no interval over {_counted(n_tasks, 'task')}; at least 2 are needed")
    if n_trials < 1 or not 0.0 < mean < 1.0:
        raise AccuracyRefused(f"a mean of {mean} from {n_trials} trials: strictly between 0 and 1, from 1 on")
    if not (0.0 < icc <= 1.0 and 0.0 < sigma_b2 < float("inf")):
        raise ComponentsContradict(f"σ_b² = {sigma_b2} with ICC = {icc}: above 0, and above 0 up to 1")
