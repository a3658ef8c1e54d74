"""Adaptive assignment: which tasks to run next, the full score they give, and its interval at every look.

The theory is in ``selection/README.md``, “The next task”. A task that no past agent has run has b̂ = 0, the
prior's; past full scores count as measured without error where ranks are told.

Source: *Toward Meta-Harness Optimization*, §28.13. Wainer et al., *Computerized Adaptive Testing*, 2nd ed.
2000. Looks and scales are this project's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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


class InterimEstimate(NamedTuple):
    """A look: ŷ from k tasks, and the model's own standard error."""

    k: int
    score: float
    se: float


class BatchWalk(NamedTuple):
    """Looks; tasks of each batch delivered in full, the most informative first (equal ones in task order).

    waiting: tasks of the batch under way that are not delivered, ascending.
    """

    looks: list[InterimEstimate]
    batches: list[IndexArray]
    waiting: IndexArray


Calibration = tuple[float, FloatArray]  # q and c_t, (n_looks,)


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


def completed(start: NewcomerPrior, outcomes: FloatArray, is_assigned: Mask) -> InterimEstimate:
    """k, ŷ and se from the valid outcomes among the tasks asked for.

    outcomes: (m,); NaN where missing or invalid.
    is_assigned: (m,).
    """
    known = is_assigned & ~np.isnan(outcomes)
    passing = expit(ability(start, outcomes, known) - start.difficulties)
    spread = passing * (1.0 - passing)
    information = float(spread[known].sum()) + 1.0 / start.variance
    rest, m = float(spread[~known].sum()), outcomes.size
    score = (float(outcomes[known].sum()) + float(passing[~known].sum())) / m
    return InterimEstimate(int(is_assigned.sum()), score, float(np.sqrt(rest + rest**2 / information)) / m)


def walk(start: NewcomerPrior, outcomes: FloatArray, delivered: Mask | None = None) -> BatchWalk:
    """Follow an agent batch by batch, until one is not delivered or the last look is reached.

    outcomes: (m,); mean outcomes; NaN where missing or invalid. Those outside the batches are not looked at.
    delivered: (m,); tasks that the agent ran, invalid ones too; all where not given: a replay.
    """
    m, ends = outcomes.size, looks_of(outcomes.size)
    is_assigned, looks, batches = np.zeros(m, dtype=np.bool_), list[InterimEstimate](), list[IndexArray]()
    while is_assigned.sum() < ends[-1]:
        level = ability(start, outcomes, is_assigned & ~np.isnan(outcomes))
        passing = expit(level - start.difficulties)
        informative, left = np.round(passing * (1.0 - passing), DECIMALS), np.flatnonzero(~is_assigned)
        batch = left[np.argsort(-informative[left], kind="stable")[: batch_size(m)]]
        if delivered is not None and not delivered[batch].all():
            return BatchWalk(looks, batches, np.sort(batch[~delivered[batch]]))
        is_assigned[batch] = True
        batches.append(batch)
        if int(is_assigned.sum()) in ends:
            looks.append(completed(start, outcomes, is_assigned))
    return BatchWalk(looks, batches, np.empty(0, dtype=np.intp))


def calibrated(agents: CompleteAgents, rows: IndexArray) -> Calibration:
    """Replay each of these agents without itself, and scale the standard errors.

    rows: positions of the past agents, ascending, at least 19.
    """
    walks = [walk(prepared(agents, rows[rows != i]), agents.outcomes[i]).looks for i in rows.tolist()]
    scores, ses = (
        np.array([[getattr(one, of) for one in looks] for looks in walks]) for of in ("score", "se")
    )
    return calibration_of(np.abs(agents.scores[rows][:, None] - scores) / ses)


def calibration_of(z: FloatArray) -> Calibration:
    """Q and c_t from |y − ŷ|/se of each past agent at each look, (n, n_looks)."""
    scale = np.sqrt(np.mean(z**2, axis=0))
    largest = np.divide(z, scale, out=np.zeros_like(z), where=scale > 0.0).max(axis=1)
    return split_conformal(largest), scale


def half_widths(calibration: Calibration, looks: Sequence[InterimEstimate]) -> FloatArray:
    """q·c_t·se_t of the looks that were reached, shape (n_looks_reached,)."""
    quantile, scale = calibration
    return np.asarray(quantile * scale[: len(looks)] * np.array([one.se for one in looks]), np.float64)


def next_tasks(agents: CompleteAgents, outcomes: FloatArray, delivered: Mask, stop: Stop) -> dict[str, Any]:
    """Tell a newcomer what to run next, or why nothing more, from its outcomes and what it delivered, (m,).

    Returns: ``tasks``: positions, ascending, none when ``done``; ``look``: looks reached; of the last of them
        ``score``, ``lo`` and ``hi``, clipped to [0, 1], ``rank_lo`` and ``rank_hi``, None before the first;
        ``done`` and ``reason``.
    Raises SelectionError (not_adaptive), RaschUnfinished.
    """
    rows, first_look = np.arange(agents.n), looks_of(outcomes.size)[0]
    check(agents.n, outcomes.size, 0.0)
    if stop.budget is not None and stop.budget < first_look:
        raise SelectionError(
            f"a budget of {stop.budget} tasks ends before the first look, after {first_look}",
            code="not_adaptive",
        )
    start, calibration = prepared(agents, rows), calibrated(agents, rows)
    looks, _, waiting = walk(start, outcomes, delivered)
    halves = half_widths(calibration, looks).tolist()
    for t, (look, half) in enumerate(zip(looks, halves, strict=True)):
        k, y = look.k, look.score
        score, lo, hi = (min(max(end, 0.0), 1.0) for end in (y, y - half, y + half))
        first, last = ranks(agents.scores, lo, hi)
        why = enough(stop, k, half, last - first + 1, outcomes.size)
        if why or t == len(looks) - 1:
            message = why or f"{reach(half)} after {k} tasks"
            known = {"score": score, "lo": lo, "hi": hi, "rank_lo": first, "rank_hi": last}
            tasks = [] if why else waiting.tolist()
            return {"tasks": tasks, "look": t + 1, **known, "done": bool(why), "reason": message}
    unknown = dict.fromkeys(("score", "lo", "hi", "rank_lo", "rank_hi"))
    reason = f"the first look comes after {first_look} tasks"
    return {"tasks": waiting.tolist(), "look": 0, **unknown, "done": False, "reason": reason}


def ranks(scores: FloatArray, lo: float, hi: float) -> tuple[int, int]:
    """Best and worst rank of a score between lo and hi among these full scores."""
    scores = np.round(scores, DECIMALS)
    above = int(np.count_nonzero(scores > round(hi, DECIMALS)))
    below = int(np.count_nonzero(scores < round(lo, DECIMALS)))
    return 1 + above, scores.size + 1 - below


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
