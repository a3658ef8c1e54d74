"""One step of an adaptive assignment, by a study that was frozen: nothing is fitted but one ability.

Model
-----
A study holds b̂, the prior, q, c_t, the looks and the stop of `selection.adaptive`, as plain values. An agent
was asked for tasks in batches, in a stored order. Once all of them are delivered, the next ⌈m/20⌉ follow with
the largest p(1 − p) at θ̂ from what it was asked for; a look is reached with the first k_t of the order, and
says ŷ ± q·c_t·se_t from these alone. It ends at the first look that says enough, at the last one, or where no
task is left to ask for.

Tasks that are not active any more are asked for no longer, and ŷ is that of the active ones. New tasks are no
part of the study. An outcome that was delivered and is invalid stays in Σ_rest.

Symbols
-------
===============  =================  ===========================  =====
symbol           code               shape                        unit
===============  =================  ===========================  =====
the order        ``asked``          (n_asked,) positions         tasks
x                ``outcomes``       (m,), NaN: invalid, missing  0 to 1
q·c_t·se_t       ``upper - lower``  half of it, before clipping  score
c_t·se_t         ``se``             scalar                       score
===============  =================  ===========================  =====

Not done here
-------------
The batches of the past are not chosen anew: where outcomes were replaced since, the order stays as it was.
c_t and q are those of all tasks of the study, also where some have been retired.

Source
------
As in `selection.adaptive`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analytics.arrays import FloatArray, IndexArray, Mask
from analytics.record import Record
from selection.adaptive import (
    Calibration,
    Prepared,
    Stop,
    ability,
    batch_of,
    batch_size,
    completed,
    enough,
    ranks,
)


@dataclass(frozen=True, eq=False)
class Frozen:
    """A study as it was made.

    Attributes
    ----------
    tasks : tuple of str
        By name, ascending: the m tasks.
    start : Prepared
    calibration : Calibration
    looks : tuple of int
    scores : float array, shape (n,)
        Full scores of the past agents.
    stop : Stop
    """

    tasks: tuple[str, ...]
    start: Prepared
    calibration: Calibration
    looks: tuple[int, ...]
    scores: FloatArray
    stop: Stop

    @classmethod
    def from_plain(cls, told: Mapping[str, Any]) -> "Frozen":
        """Read what `selection.adaptive_study` wrote."""
        difficulties = np.array(told["difficulties"], dtype=np.float64)
        scale = np.array(told["scale"], dtype=np.float64)
        return cls(
            tasks=tuple(told["tasks"]),
            start=Prepared(difficulties, float(told["mean"]), float(told["variance"])),
            calibration=Calibration(scale, float(told["quantile"]), int(told["agents"])),
            looks=tuple(told["looks"]),
            scores=np.array(told["scores"], dtype=np.float64),
            stop=Stop(float(told["half_width"])),
        )


@dataclass(frozen=True)
class Step:
    """Where an agent stands, and what it runs next.

    Attributes
    ----------
    waiting : tuple of int
        Positions of tasks that it was asked for, active, and has not delivered; in the order asked.
    batch : tuple of int
        Those to be asked for next, ascending; empty while some are waiting, and when it is done.
    n_left : int
        Tasks until the last look that were not delivered in full batches: so many at most; 0 when done.
    look, n_looks : int
        Looks reached, of all; the figures are those of the last one reached, None before the first.
    k : int or None
        Tasks that they rest on.
    score, lower, upper, se : float or None
        ŷ, its interval in [0, 1], and c_t·se_t.
    rank_lower, rank_upper : int or None
        Ranks beside the past agents that the interval allows.
    done : bool
    reason : str
        Why nothing more is to be run, or how far it is.
    """

    waiting: tuple[int, ...]
    batch: tuple[int, ...]
    n_left: int
    look: int
    n_looks: int
    k: int | None
    score: float | None
    lower: float | None
    upper: float | None
    se: float | None
    rank_lower: int | None
    rank_upper: int | None
    done: bool
    reason: str


@dataclass(frozen=True)
class _Told:
    """What a look says."""

    k: int
    score: float
    half: float
    se: float


def step(study: Frozen, asked: IndexArray, outcomes: FloatArray, delivered: Mask, active: Mask) -> Step:
    """Tell what an agent runs next, and what its outcomes say so far.

    Parameters
    ----------
    study : Frozen
    asked : int array, shape (n_asked,)
        Positions of the tasks that it was asked for, in that order; empty at first.
    outcomes : float array, shape (m,)
        Mean outcomes; NaN where invalid or missing. Those that were not asked for are not looked at.
    delivered, active : bool array, shape (m,)

    Raises
    ------
    RaschUnfinished
    """
    there = delivered | ~active
    waiting, n_done = asked[~there[asked]], _n_done(study, asked, there)
    reached = [k for k in study.looks if k <= n_done]
    told = _look(study, asked, outcomes, active, len(reached)) if reached else None
    why = _why_enough(study, told)
    batch = np.empty(0, dtype=np.intp)
    if not waiting.size and not why:
        batch = _next_batch(study, asked, outcomes, active)
        why = "" if batch.size else "no task is left that could be asked for"
    done = bool(why) and not waiting.size
    reason = why if done else _so_far(study, told)
    return _step(study, told, waiting, batch, n_done, len(reached), done=done, reason=reason)


def mean_outcome(conditions: Sequence[Sequence[float | None]]) -> float | None:
    """Return the mean over conditions of the mean over valid trials; None where a condition has none.

    Parameters
    ----------
    conditions : sequence of sequences of (float or None)
        The trials of a task under each condition that is compared; None: invalid.
    """
    known = [[one for one in trials if one is not None] for trials in conditions]
    if not all(known):
        return None
    return sum(sum(trials) / len(trials) for trials in known) / len(known)


def delivered_means(record: Record, agent: int, n_trials: int) -> dict[str, float | None]:
    """Return the mean outcomes of the tasks that an agent delivered whole, by name; None: invalid.

    A task is there with all of its trials, as on a receipt: with fewer the first alone would count.

    Parameters
    ----------
    record : Record
    agent : int
    n_trials : int
        Asked for of each task, under each condition that is compared.
    """
    tasks, n_places = record.table.tasks, n_trials * max(len(record.compared), 1)
    there = np.flatnonzero(record.n_places[agent] >= n_places).tolist()
    means = record.table.means[agent]
    return {tasks[j]: None if np.isnan(means[j]) else float(means[j]) for j in there}


# ---------------------------------------------------------------------------------------------- arithmetic


def _n_done(study: Frozen, asked: IndexArray, there: Mask) -> int:
    """Tasks of the leading batches of which nothing is waiting."""
    size, n = batch_size(len(study.tasks)), 0
    while n < asked.size and there[asked[n : n + size]].all():
        n = min(n + size, asked.size)
    return n


def _look(study: Frozen, asked: IndexArray, outcomes: FloatArray, active: Mask, n_reached: int) -> _Told:
    k, t = study.looks[n_reached - 1], n_reached - 1
    first = _mask(asked[:k], active.size)
    start = Prepared(study.start.difficulties[active], study.start.mean, study.start.variance)
    found = completed(start, outcomes[active], first[active])
    se = float(study.calibration.scale[t]) * found.se
    return _Told(k, found.score, study.calibration.quantile * se, se)


def _why_enough(study: Frozen, told: _Told | None) -> str:
    if told is None:
        return ""
    lower, upper = _ends(told)
    first, last = ranks(study.scores, lower, upper)
    return enough(study.stop, told.k, told.half, last - first + 1, len(study.tasks))


def _next_batch(study: Frozen, asked: IndexArray, outcomes: FloatArray, active: Mask) -> IndexArray:
    """Those of the largest p(1 − p) among active tasks that were not asked for."""
    gone = _mask(asked, active.size)
    known = gone & active & ~np.isnan(outcomes)
    level = ability(study.start, outcomes, known)
    return np.sort(batch_of(study.start, level, gone | ~active))


def _mask(positions: IndexArray, n: int) -> Mask:
    found = np.zeros(n, dtype=np.bool_)
    found[positions] = True
    return found


def _ends(told: _Told) -> tuple[float, float]:
    return max(told.score - told.half, 0.0), min(told.score + told.half, 1.0)


def _so_far(study: Frozen, told: _Told | None) -> str:
    if told is None:
        return f"the first look comes after {study.looks[0]} tasks"
    return f"the interval reaches {told.half:.3f} to each side after {told.k} tasks"


def _step(
    study: Frozen,
    told: _Told | None,
    waiting: IndexArray,
    batch: IndexArray,
    n_done: int,
    look: int,
    *,
    done: bool,
    reason: str,
) -> Step:
    lower, upper = _ends(told) if told else (None, None)
    first, last = (None, None)
    if lower is not None and upper is not None:
        first, last = ranks(study.scores, lower, upper)
    return Step(
        waiting=tuple(waiting.tolist()),
        batch=tuple(batch.tolist()),
        n_left=0 if done else study.looks[-1] - n_done,
        look=look,
        n_looks=len(study.looks),
        k=told.k if told else None,
        score=told.score if told else None,
        lower=lower,
        upper=upper,
        se=told.se if told else None,
        rank_lower=first,
        rank_upper=last,
        done=done,
        reason=reason,
    )
