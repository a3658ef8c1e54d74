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

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analytics.arrays import CountArray, FloatArray, IndexArray, Mask
from analytics.record import Compared, Counting, Delivery, Record, Rows, agent_rows, in_part
from analytics.record.rows import Setting
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
    reach,
)
from selection.adaptive_told import Step


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
class _Told:
    """What a look says."""

    k: int
    score: float
    half: float
    se: float


def step(
    study: Frozen,
    *,
    asked: Sequence[str],
    means: Mapping[str, float | None],
    active: Collection[str],
) -> Step:
    """Tell what an agent runs next, and what its outcomes say so far.

    Parameters
    ----------
    study : Frozen
    asked : sequence of str
        The tasks that it was asked for, in that order; empty at first.
    means : mapping of str to (float or None)
        Mean outcomes on the tasks that it has delivered; None: invalid. Those that were not asked for are not
        looked at.
    active : collection of str
        The tasks that may be asked for now.

    Raises
    ------
    RaschUnfinished
    """
    place = {name: j for j, name in enumerate(study.tasks)}
    return _taken(
        study,
        np.array([place[name] for name in asked], dtype=np.intp),
        np.array([means.get(name) for name in study.tasks], dtype=np.float64),
        np.array([name in means for name in study.tasks], dtype=np.bool_),
        np.array([name in active for name in study.tasks], dtype=np.bool_),
    )


def delivered_means(record: Record, agent: int, n_trials: int) -> dict[str, float | None]:
    """Return the mean outcomes of the tasks that an agent delivered whole, by name; None: invalid.

    A task is there with all of its trials, under each condition that is compared.

    Parameters
    ----------
    record : Record
    agent : int
    n_trials : int
        Asked for of each task, under each condition.
    """
    n_places = n_trials * max(len(record.compared), 1)
    return _whole(record.table.tasks, record.table.means[agent], record.n_places[agent], n_places)


def means_so_far(
    rows: Rows,
    *,
    tasks: Sequence[str],
    settings: Sequence[Setting],
    deliveries: Sequence[Delivery],
    counting: Counting,
    compared: Compared,
    n_trials: int,
) -> dict[str, float | None]:
    """Return the same of one agent that is still delivering, from its rows.

    The record counts as many trials as there are on the task with the fewest; here a task that lacks some is
    left out, so that the others tell what they will tell once it has them.

    Parameters
    ----------
    rows, tasks, settings, deliveries, counting, compared
        Of the agent alone; see `analytics.record.agent_rows`.
    n_trials : int
        Asked for of each task, under each condition.
    """
    known: Any = {
        "n_agents": 1,
        "settings": settings,
        "deliveries": deliveries,
        "counting": counting,
        "compared": compared,
    }
    kept = np.flatnonzero(~in_part(rows, tasks=tasks, n_trials=n_trials, **known)[0])
    if not kept.size:
        return {}
    left = [tasks[j] for j in kept.tolist()]
    (own,) = agent_rows(rows.on(kept, len(tasks)), tasks=left, **known)
    return _whole(left, own.means, own.n_places, n_trials * max(len(compared.conditions), 1))


def _whole(
    tasks: Sequence[str], means: FloatArray, n_places: CountArray, n_asked: int
) -> dict[str, float | None]:
    there = np.flatnonzero(n_places >= n_asked).tolist()
    return {tasks[j]: None if np.isnan(means[j]) else float(means[j]) for j in there}


# ---------------------------------------------------------------------------------------------- arithmetic


def _taken(study: Frozen, asked: IndexArray, outcomes: FloatArray, delivered: Mask, active: Mask) -> Step:
    """Take the step by positions of tasks: `asked` (n_asked,), the others (m,), NaN: invalid or missing."""
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
    return f"{reach(told.half)} after {told.k} tasks"


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
        waiting=tuple(study.tasks[j] for j in waiting.tolist()),
        batch=tuple(study.tasks[j] for j in batch.tolist()),
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
