"""Adaptive assignment: which tasks to run next, the full score they give, and its interval at every look.

The theory is in ``selection/README.md``, “The next task”. A task that no past agent has run has b̂ = 0, the
prior's; past full scores count as measured without error where ranks are told.

Source: *Toward Meta-Harness Optimization*, §28.13. Wainer et al., *Computerized Adaptive Testing*, 2nd ed.
2000. Looks and scales are this project's own.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from analytics.arrays import DECIMALS, FloatArray, IndexArray, Mask
from selection.errors import SelectionError
from selection.folds import CompleteAgents
from selection.intervals import MIN_FOR_QUANTILE, split_conformal
from selection.rasch import MAX_ITERATIONS, RaschUnfinished

MAX_GRADED = 0.05
LOOKS = (1 / 8, 1 / 6, 1 / 4, 1 / 3, 1 / 2)
BATCHES = 20
MIN_VARIANCE = 0.25
LARGEST_DERIVATIVE = 1e-11
MIN_TASKS = 2


@dataclass(frozen=True, eq=False)
class NewcomerPrior:
    """What is known of tasks and of a newcomer before its first outcome.

    difficulties: (m,); b̂, logits.
    mean, variance: μ and v.
    """

    difficulties: FloatArray
    mean: float
    variance: float


@dataclass(frozen=True)
class AdaptiveLook:
    """What k tasks say of the full score.

    score, se: ŷ and the model's own standard error.
    """

    k: int
    score: float
    se: float


@dataclass(frozen=True, eq=False)
class AdaptiveWalk:
    """An agent's way through the batches.

    batches: tasks of each batch delivered in full, in the order of p(1 − p).
    waiting: tasks of the batch under way that are not delivered, ascending; empty after the last look.
    """

    looks: tuple[AdaptiveLook, ...]
    batches: tuple[IndexArray, ...]
    waiting: IndexArray


@dataclass(frozen=True, eq=False)
class AdaptiveCalibration:
    """Half-widths from replays: quantile · scale_t · se_t.

    scale: (n_looks,); c_t.
    quantile: q.
    """

    scale: FloatArray
    quantile: float
    n: int

    def half_widths(self, ses: FloatArray) -> FloatArray:
        """q·c_t·se_t of the first looks, shape (n_looks_reached,)."""
        return np.asarray(self.quantile * self.scale[: len(ses)] * ses, dtype=np.float64)


@dataclass(frozen=True)
class Stop:
    """When enough is known.

    half_width: of the interval, score.
    budget: tasks: it ends with the last look within them, and with the last look of all in any case.
    """

    half_width: float = 0.05
    ranks: int | None = None
    budget: int | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.half_width < 1.0:
            raise SelectionError(
                f"a half-width lies between 0 and 1; here {self.half_width:g}", code="not_adaptive"
            )
        for name, value in (("ranks", self.ranks), ("budget", self.budget)):
            if value is not None and value < 1:
                raise SelectionError(f"{name}: at least 1; here {value}", code="not_adaptive")


@dataclass(frozen=True)
class Next:
    """What to run next, or why nothing more.

    tasks: positions, ascending; empty when done.
    look: looks reached; the others describe the last of them and are None before the first.
    score, lo, hi: ŷ and its interval, clipped to [0, 1].
    """

    tasks: tuple[int, ...]
    look: int
    score: float | None
    lo: float | None
    hi: float | None
    rank_lo: int | None
    rank_hi: int | None
    done: bool
    reason: str


def batch_size(n_tasks: int) -> int:
    """⌈m/20⌉."""
    return -(-n_tasks // BATCHES)


def looks_of(n_tasks: int) -> tuple[int, ...]:
    """Tasks asked for at each look, ascending, each number once."""
    return tuple(dict.fromkeys(nearest_batch(n_tasks, share) for share in LOOKS))


def nearest_batch(n_tasks: int, share: float) -> int:
    """Tasks after the batch whose k/m is nearest to a share, the smaller of two as near."""
    size = batch_size(n_tasks)
    ends = np.minimum(np.arange(size, n_tasks + size, size), n_tasks)
    return int(ends[np.argmin(np.round(np.abs(ends / n_tasks - share), DECIMALS))])


def check(n_past: int, n_tasks: int, graded_share: float) -> None:
    """Refuse what cannot be calibrated.

    Raises SelectionError (not_adaptive).
    """
    if graded_share > MAX_GRADED:
        raise SelectionError(
            f"adaptive assignment takes passes and failures; {graded_share:.1%} of the trials lie strictly "
            f"between 0 and 1 (at most {MAX_GRADED:.0%})",
            code="not_adaptive",
        )
    if n_past < MIN_FOR_QUANTILE:
        raise SelectionError(
            f"adaptive assignment needs {MIN_FOR_QUANTILE} past agents that ran every task (not counting "
            f"the one being assigned); there {'is' if n_past == 1 else 'are'} {n_past}",
            code="not_adaptive",
        )
    if n_tasks < MIN_TASKS:
        raise SelectionError(
            f"{n_tasks} task; adaptive assignment chooses among {MIN_TASKS} at least", code="not_adaptive"
        )


def prepared(agents: CompleteAgents, rows: IndexArray) -> NewcomerPrior:
    """Fit b̂ and the prior to some of the complete agents.

    rows: positions of the past agents, ascending, at least 2.
    """
    fitted = agents.fit_of(rows)
    rated = ~np.isnan(agents.outcomes[rows]).all(axis=0)
    difficulties = np.zeros(rated.size)
    difficulties[rated] = fitted.difficulties
    variance = max(float(np.var(fitted.abilities, ddof=1)), MIN_VARIANCE)
    return NewcomerPrior(difficulties, float(np.mean(fitted.abilities)), variance)


def ability(start: NewcomerPrior, outcomes: FloatArray, known: Mask) -> float:
    """θ̂ from the known outcomes and the prior, logits.

    Raises RaschUnfinished.
    """
    difficulties, passed = start.difficulties[known], float(outcomes[known].sum())
    level = start.mean
    for _ in range(MAX_ITERATIONS):
        passing = expit(level - difficulties)
        slope = passed - float(passing.sum()) - (level - start.mean) / start.variance
        if abs(slope) < LARGEST_DERIVATIVE:
            return level
        step = slope / (float(np.sum(passing * (1.0 - passing))) + 1.0 / start.variance)
        level += float(np.sign(step) * np.log1p(abs(step)))
    raise RaschUnfinished(f"a derivative of {slope:.1e} is left after {MAX_ITERATIONS} steps")


def completed(start: NewcomerPrior, outcomes: FloatArray, is_assigned: Mask) -> AdaptiveLook:
    """ŷ and se from the valid outcomes among the tasks asked for.

    outcomes: (m,); NaN where missing or invalid.
    is_assigned: (m,).
    """
    known = is_assigned & ~np.isnan(outcomes)
    passing = expit(ability(start, outcomes, known) - start.difficulties)
    spread = passing * (1.0 - passing)
    information = float(spread[known].sum()) + 1.0 / start.variance
    rest, m = float(spread[~known].sum()), outcomes.size
    score = (float(outcomes[known].sum()) + float(passing[~known].sum())) / m
    return AdaptiveLook(int(is_assigned.sum()), score, float(np.sqrt(rest + rest**2 / information)) / m)


def walk(start: NewcomerPrior, outcomes: FloatArray, delivered: Mask | None = None) -> AdaptiveWalk:
    """Follow an agent batch by batch, until one is not delivered or the last look is reached.

    outcomes: (m,); mean outcomes; NaN where missing or invalid. Those outside the batches are not looked at.
    delivered: (m,); tasks that the agent ran, invalid ones too; all where not given: a replay.
    """
    m, ends = outcomes.size, looks_of(outcomes.size)
    is_assigned, looks, batches = np.zeros(m, dtype=np.bool_), list[AdaptiveLook](), list[IndexArray]()
    while is_assigned.sum() < ends[-1]:
        level = ability(start, outcomes, is_assigned & ~np.isnan(outcomes))
        batch = batch_of(start, level, is_assigned)
        if delivered is not None and not delivered[batch].all():
            return AdaptiveWalk(tuple(looks), tuple(batches), np.sort(batch[~delivered[batch]]))
        is_assigned[batch] = True
        batches.append(batch)
        if int(is_assigned.sum()) in ends:
            looks.append(completed(start, outcomes, is_assigned))
    return AdaptiveWalk(tuple(looks), tuple(batches), np.empty(0, dtype=np.intp))


def calibrated(agents: CompleteAgents, rows: IndexArray) -> AdaptiveCalibration:
    """Replay each of these agents without itself, and scale the standard errors.

    rows: positions of the past agents, ascending, at least 19.
    Raises SelectionError (too_few_residuals).
    """
    replays = [walk(prepared(agents, rows[rows != i]), agents.outcomes[i]).looks for i in rows.tolist()]
    scores = np.array([[look.score for look in looks] for looks in replays])
    ses = np.array([[look.se for look in looks] for looks in replays])
    return calibration_of(np.abs(agents.scores[rows][:, None] - scores) / ses)


def calibration_of(z: FloatArray) -> AdaptiveCalibration:
    """c_t and q.

    z: (n, n_looks); |y − ŷ|/se of each past agent at each look.
    Raises SelectionError (too_few_residuals).
    """
    scale = np.sqrt(np.mean(z**2, axis=0))
    largest = np.divide(z, scale, out=np.zeros_like(z), where=scale > 0.0).max(axis=1)
    return AdaptiveCalibration(scale, split_conformal(largest), len(z))


def next_tasks(agents: CompleteAgents, outcomes: FloatArray, delivered: Mask, stop: Stop) -> Next:
    """Tell a newcomer what to run next.

    outcomes: (m,).
    delivered: (m,).
    Raises SelectionError (not_adaptive).
    Raises RaschUnfinished.
    """
    rows, first_look = np.arange(agents.n), looks_of(outcomes.size)[0]
    check(agents.n, outcomes.size, 0.0)
    if stop.budget is not None and stop.budget < first_look:
        raise SelectionError(
            f"a budget of {stop.budget} tasks ends before the first look, after {first_look}",
            code="not_adaptive",
        )
    start, calibration = prepared(agents, rows), calibrated(agents, rows)
    way = walk(start, outcomes, delivered)
    halves = calibration.half_widths(np.array([look.se for look in way.looks]))
    for t, look in enumerate(way.looks):
        half = float(halves[t])
        score, lo, hi = (
            min(max(end, 0.0), 1.0) for end in (look.score, look.score - half, look.score + half)
        )
        first, last = ranks(agents.scores, lo, hi)
        why = enough(stop, look.k, half, last - first + 1, outcomes.size)
        if why or t == len(way.looks) - 1:
            tasks = () if why else tuple(way.waiting.tolist())
            message = why or f"{reach(half)} after {look.k} tasks"
            return Next(tasks, t + 1, score, lo, hi, first, last, bool(why), message)
    reason = f"the first look comes after {first_look} tasks"
    return Next(tuple(way.waiting.tolist()), 0, None, None, None, None, None, done=False, reason=reason)


def ranks(scores: FloatArray, lo: float, hi: float) -> tuple[int, int]:
    """Ranks that a score between lo and hi may hold beside these full scores, the best and the worst."""
    scores = np.round(scores, DECIMALS)
    above = int(np.count_nonzero(scores > round(hi, DECIMALS)))
    below = int(np.count_nonzero(scores < round(lo, DECIMALS)))
    return 1 + above, scores.size + 1 - below


def batch_of(start: NewcomerPrior, level: float, is_assigned: Mask) -> IndexArray:
    """Tasks not asked with the largest p(1 − p), rounded so that equal ones stand in task order.

    is_assigned: (m,).
    """
    passing = expit(level - start.difficulties)
    informative = np.round(passing * (1.0 - passing), DECIMALS)
    left = np.flatnonzero(~is_assigned)
    order = np.argsort(-informative[left], kind="stable")
    return np.asarray(left[order[: batch_size(is_assigned.size)]], dtype=np.intp)


def enough(stop: Stop, k: int, half: float, n_ranks: int, m: int) -> str:
    """Why no more is to be run at a look; empty where there is more to learn."""
    if round(half, DECIMALS) <= stop.half_width:
        return f"{reach(half)}, at most {100 * stop.half_width:g} were wanted"
    if stop.ranks is not None and n_ranks <= stop.ranks:
        return f"{n_ranks} ranks are left, at most {stop.ranks} were wanted"
    if k == looks_of(m)[-1]:
        return f"the last look, after {k} of {m} tasks; {reach(half)}"
    following = next(later for later in looks_of(m) if later > k)
    if stop.budget is not None and following > stop.budget:
        return f"the budget of {stop.budget} tasks; {reach(half)} after {k}"
    return ""


def reach(half: float) -> str:
    """Say how far an interval of that half-width, score, reaches."""
    return f"the interval reaches {100 * half:.1f} points to each side"
