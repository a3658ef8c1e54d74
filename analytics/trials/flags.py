"""Flags: what in the outcomes an operator should look at, and which orders may not be claimed.

Source: Manski, *Partial identification of probability distributions*, 2003 (bounds). Fisher, *Statistical
methods for research workers*, 1934, §21.02. Wald & Wolfowitz, *On a test whether two samples are from the
same population*, Annals of Mathematical Statistics 11 (1940) 147-162 (runs: trials that only improve have the
fewest). The thresholds are this project's own.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import bdtrc, gammaln

from analytics.arrays import FloatArray, Mask
from analytics.errors import CoreError

AGREEMENT, N_TASKS_AGREEING, AGREEMENT_P = 0.995, 100, 1e-6
ORDER_P, N_ERRORS = 1e-6, 4.0
MAX_COMPARED = 256  # trials of an agent, those of most tasks: their pairs grow as the square
N_AT_ONCE = 256  # agents, so that memory grows as their number
N_TASKS_BEGINNING = 64  # by which most agents differ already
N_TASKS_OF_PART = 20  # 2^-19 is more than 1e-6: on fewer chance may always explain it
MISSING_SHARE, VALIDITY_P = 0.01, 0.01
TIED = 1e-9


@dataclass(frozen=True)
class Dependence:
    """Two trials of an agent that agree more than by chance, of independent ones of these pass rates."""

    trials: tuple[int, int]
    n_tasks: int
    n_agreeing: int
    chance: float


@dataclass(frozen=True)
class Improvement:
    """Trials by which tasks get better: those that differ, that get worse, log P of no more by chance."""

    n_tasks: int
    n_worse: int
    log_chance: float


def dependent_trials(
    task: npt.NDArray[np.integer], trial: npt.NDArray[np.integer], outcome: FloatArray
) -> Dependence | None:
    """Return the pair of an agent's trials that agrees most, if it agrees too often for two draws.

    task, trial, outcome: (n_rows,); of the agent's valid rows; no (task, trial) twice.
    """
    if not task.shape == trial.shape == outcome.shape:
        raise CoreError(
            f"task {task.shape}, trial {trial.shape} and outcome {outcome.shape} differ",
            code="rows_malformed",
        )
    order = np.lexsort((task, trial))
    if ((np.diff(task[order]) == 0) & (np.diff(trial[order]) == 0)).any():
        raise CoreError("a trial of a task occurs twice", code="rows_malformed")
    # the rows of the trials that could agree on enough tasks, those with most of them
    labels, of_label, n_tasks = np.unique(trial, return_inverse=True, return_counts=True)
    compared = np.argsort(-n_tasks, kind="stable")[:MAX_COMPARED]
    is_compared = np.zeros(labels.size, dtype=np.bool_)
    is_compared[compared] = n_tasks[compared] >= N_TASKS_AGREEING
    here = is_compared[of_label]
    tasks, columns = np.unique(task[here], return_inverse=True)
    trials, rows = np.unique(trial[here], return_inverse=True)
    cells = np.full((trials.size, tasks.size), np.nan)
    cells[rows, columns] = outcome[here]
    names = trials.tolist()
    dependences = [_dependence(cells[i], cells[j], (names[i], names[j])) for i, j in _agreeing(cells)]
    known = [one for one in dependences if one is not None]
    return max(known, key=lambda one: one.n_agreeing / one.n_tasks, default=None)


def only_improving(task: npt.NDArray[np.integer], outcome: FloatArray) -> Improvement | None:
    """Return how unlikely repeats, in order, are to improve as these do; None where it may be chance."""
    if not task.size:
        return None
    log_p, ascends = _orders(task, outcome)
    n_worse, p = int(np.count_nonzero(~ascends)), np.exp(log_p)
    # Each p is at most ½, so that the tail is no lighter than a normal one, which is 3e-5 there.
    if ascends.sum() - p.sum() < N_ERRORS * math.sqrt(float(p @ (1.0 - p))):
        return None
    log_chance = _log_at_most(n_worse, log_p)
    return Improvement(log_p.size, n_worse, log_chance) if log_chance <= math.log(ORDER_P) + TIED else None


def _orders(task: npt.NDArray[np.integer], outcome: FloatArray) -> tuple[FloatArray, Mask]:
    """Return log Π_v m_jv!/n_j! of the tasks whose outcomes differ, and which of them ascend, (n_tasks,)."""
    _, of, n_trials = np.unique(task, return_inverse=True, return_counts=True)
    by_value, in_turn = np.lexsort((outcome, of)), np.argsort(of, kind="stable")
    is_new = (np.diff(of[by_value]) != 0) | (np.diff(outcome[by_value]) != 0)
    ends = np.concatenate([np.flatnonzero(is_new), [task.size - 1]])
    n_equal, n_tasks = np.diff(np.concatenate([[-1], ends])), n_trials.size
    log_p = np.bincount(of[by_value[ends]], gammaln(n_equal + 1), n_tasks) - gammaln(n_trials + 1)
    worse = (np.diff(of[in_turn]) == 0) & (np.diff(outcome[in_turn]) < 0)
    ascends = np.bincount(of[in_turn][1:][worse], minlength=n_tasks) == 0
    differ = np.bincount(of[by_value[ends]], minlength=n_tasks) > 1
    return log_p[differ], np.asarray(ascends[differ], dtype=np.bool_)


def _log_at_most(n: int, log_p: FloatArray) -> float:
    """Return log P(at most `n` fail) of independent events that hold with these probabilities."""
    log_sums = np.full(n + 1, -np.inf)
    log_sums[0] = 0.0
    for odds in np.log1p(-np.exp(log_p)) - log_p:
        log_sums[1:] = np.logaddexp(log_sums[1:], log_sums[:-1] + odds)
    return float(log_p.sum() + np.logaddexp.reduce(log_sums))


def run_order(runs: Sequence[str | None]) -> npt.NDArray[np.int64]:
    """Return the place of each label of a run in their order, numbers in them by value, (n_runs,)."""
    keys = [re.split(r"([0-9]+)", run or "") for run in runs]
    numbered = [[int(part) if i % 2 else part for i, part in enumerate(key)] for key in keys]
    return np.argsort(np.array(sorted(range(len(runs)), key=numbered.__getitem__), dtype=np.int64))


def _agreeing(cells: FloatArray) -> Iterator[tuple[int, int]]:
    known = ~np.isnan(cells)
    for i in range(len(cells) - 1):
        n = np.count_nonzero(known[i] & known[i + 1 :], axis=1)
        n_agreeing = np.count_nonzero(cells[i] == cells[i + 1 :], axis=1)
        close = (n >= N_TASKS_AGREEING) & (n_agreeing >= AGREEMENT * n)
        yield from ((i, i + 1 + int(j)) for j in np.flatnonzero(close))


def _dependence(a: FloatArray, b: FloatArray, trials: tuple[int, int]) -> Dependence | None:
    both = ~np.isnan(a) & ~np.isnan(b)
    n, n_agreeing = int(both.sum()), int((a[both] == b[both]).sum())
    chance = _chance(a[both], b[both])
    # P(at least n_agreeing of n) = bdtrc(n_agreeing − 1, n, chance)
    if chance >= 1.0 or bdtrc(n_agreeing - 1, n, chance) > AGREEMENT_P:
        return None
    return Dependence(trials, n, n_agreeing, chance)


def _chance(a: FloatArray, b: FloatArray) -> float:
    """Σ_v p̂₁(v)·p̂₂(v), for pass and fail p̂₁p̂₂ + q̂₁q̂₂."""
    values, codes = np.unique(np.concatenate([a, b]), return_inverse=True)
    first = np.bincount(codes[: a.size], minlength=values.size) / a.size
    second = np.bincount(codes[a.size :], minlength=values.size) / b.size
    return float(first @ second)


def identical_agents(means: FloatArray) -> list[tuple[int, ...]]:
    """Return groups of agents with the same varying outcomes, (n_agents, n_tasks), NaN in the same places."""
    begins = [row.tobytes() for row in means[:, :N_TASKS_BEGINNING] + 0.0]
    often, groups = Counter(begins), dict[bytes, list[int]]()
    for i in [i for i, begin in enumerate(begins) if often[begin] > 1]:
        row = means[i]
        known = row[~np.isnan(row)]
        if known.size and known.min() < known.max():
            groups.setdefault((row + 0.0).tobytes(), []).append(i)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def originals(means: FloatArray, order: npt.NDArray[np.integer]) -> list[int | None]:
    """Return of each agent the one whose outcomes it repeats, where chance does not explain it.

    Two runs that share nothing but their pass rate are equal on n tasks with probability (Σ_v p̂(v)²)ⁿ; above
    1e-6 nothing is said, as of agents that pass one task of many.

    means: (n_agents, n_tasks); NaN: missing.
    order: (n_agents,); the first of equal agents is the original; ties by position.
    """
    copied: list[int | None] = [None] * len(means)
    for group in identical_agents(means):
        known = means[group[0]][~np.isnan(means[group[0]])]
        if _chance(known, known) ** known.size <= AGREEMENT_P:
            first, *later = sorted(group, key=lambda i: (order[i], i))
            for i in later:
                copied[i] = first
    return copied


def parts(
    means: FloatArray, order: npt.NDArray[np.integer], of: npt.NDArray[np.integer]
) -> list[tuple[int, int, int]]:
    """Find agents whose outcomes are a part of an earlier one's, or hold an earlier one's as a part.

    means, order: as in `originals`.
    of: the agents to look at.
    Returns: each such agent, the first of those before it, and the tasks that both ran.
    """
    place = np.empty(len(means), dtype=np.int64)
    place[np.lexsort((np.arange(len(means)), order))] = np.arange(len(means))
    pairs = []
    for first in range(0, len(of), N_AT_ONCE):
        rows = of[first : first + N_AT_ONCE]
        for i, near in zip(rows.tolist(), _parts_nearly(means, rows), strict=True):
            before = np.flatnonzero(near & (place < place[i]))
            for j in before[np.argsort(place[before])].tolist():
                both = ~np.isnan(means[i]) & ~np.isnan(means[j])
                a, b, n = means[i][both], means[j][both], int(both.sum())
                if (a == b).all() and _chance(a, b) ** n <= AGREEMENT_P:
                    pairs.append((i, j, n))
                    break
    return pairs


def _parts_nearly(means: FloatArray, rows: npt.NDArray[np.integer]) -> Mask:
    """Mark who ran a part of what another ran, and agrees with it up to rounding, (len(rows), n_agents)."""
    known = ~np.isnan(means)
    n_known, mask, filled = known.sum(axis=1), known.astype(np.float64), np.where(known, means, 0.0)
    n_common = mask[rows] @ mask.T
    # Σ (x_i − x_j)² over the tasks of both
    apart = filled[rows] ** 2 @ mask.T + mask[rows] @ (filled**2).T - 2.0 * (filled[rows] @ filled.T)
    inside = n_common == np.minimum(n_known[rows][:, None], n_known)
    more = n_known[rows][:, None] != n_known
    return np.asarray(inside & more & (apart < TIED) & (n_common >= N_TASKS_OF_PART), dtype=np.bool_)


def only_gains(earlier: FloatArray, later: FloatArray) -> tuple[int, int] | None:
    """Return the tasks gained and common, if no mean outcome, (n_tasks,), became worse; NaN: missing."""
    both = ~np.isnan(earlier) & ~np.isnan(later)
    gained, lost = later[both] > earlier[both], later[both] < earlier[both]
    return None if lost.any() or not gained.any() else (int(gained.sum()), int(both.sum()))


def unclaimed_orders(means: FloatArray) -> Mask:
    """Mark pairs, symmetric, whose order missing outcomes could turn, and that do not miss alike."""
    n_tasks = means.shape[1]
    n_missing = np.isnan(means).sum(axis=1)
    missing = n_missing > MISSING_SHARE * n_tasks
    if not missing.any():
        return np.zeros((len(means), len(means)), dtype=np.bool_)
    sums = np.nansum(means, axis=1)
    lower, upper = sums / n_tasks, (sums + n_missing) / n_tasks
    turned = (lower[:, None] <= upper) & (upper[:, None] >= lower)
    unclaimed = turned & (missing[:, None] | missing)
    if unclaimed.any():
        unclaimed &= _fisher_p(n_missing, n_tasks) < VALIDITY_P
    np.fill_diagonal(unclaimed, False)
    return np.asarray(unclaimed, dtype=np.bool_)


def _fisher_p(n_missing: npt.NDArray[np.integer], n_tasks: int) -> FloatArray:
    """Two-sided p of Fisher's exact test of every [[missing, valid], [missing', valid']], all pairs.

    The sum of the hypergeometric probabilities that are no larger than that of the table seen. Tables of one
    total have one distribution, so that all pairs need one for each total.
    """
    from scipy.stats import hypergeom

    totals, place = np.unique(n_missing[:, None] + n_missing, return_inverse=True)
    cells = np.arange(n_tasks + 1)
    probabilities = np.asarray(hypergeom.pmf(cells, 2 * n_tasks, n_tasks, totals[:, None]), np.float64)
    p = np.empty(probabilities.shape)
    for row, seen in zip(p, probabilities, strict=True):
        ascending = np.sort(seen)
        no_larger = np.searchsorted(ascending, seen * (1.0 + TIED), side="right")
        row[:] = np.cumsum(ascending)[no_larger - 1]
    place = place.reshape(n_missing.size, -1)
    return np.asarray(p[place, n_missing[:, None]], dtype=np.float64)
