"""Rows to one line an agent: counted trials, places, gaps, cells, costs and repeats, in one pass.

The model stands in `analytics.record`. Agents' lines do not depend on each other but through the conditions
compared, so that a database may keep them and read only what changed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from analytics.arrays import CodeArray, CountArray, FloatArray, Mask
from analytics.outcome_table import CellMoments, cell_moments
from analytics.record.alike import ComparedTrials, People, Repeats, people, repeats
from analytics.record.conditions import Compared, conditions_of
from analytics.record.rows import (
    NEVER,
    Counting,
    Delivery,
    Rows,
    Setting,
    asked_blocks,
    by_levels,
    checked,
    counted_deliveries,
    counts_as_outcome,
    distinct,
    finished_by,
    in_order,
    missing_fails,
    not_withdrawn,
    operated,
    places,
    withdrawn,
)
from analytics.record.whole_runs import whole_runs
from analytics.trials.flags import run_order


@dataclass(frozen=True, eq=False)
class AgentRow:
    """One agent's part of the record, in task order; what a database may keep to read it only once.

    means, trial_variances, n_trials, costs: (n_tasks,); X, s² and R of `analytics.outcome_table`; US dollars
        of a trial of the task; NaN where missing.
    n_valid, n_places, n_gaps, n_invalid, n_too_few: (n_tasks,); trials with an outcome; places; gaps; counted
        rows that the harness failed, confirmed or not; trials that a delivered task lacks of those without
        which the agent is not complete.
    operator: all its deliveries were loaded by an operator.
    arrival, completed: its first delivery; the one with which it had delivered every task (−1: none yet), in
        what an operator loads at least 95% of them, or any where missing ones count as failures.
    first: its first delivery, withdrawn ones included (−1: none).
    settled: the delivery from which on 95% of its results were what they are now (−1: no delivery).
    n_missing_failed: missing outcomes that count as failures, those that nothing was delivered of among them.
    n_judged_again: of what `n_valid` counts, verdicts on a trial that another judge scored too, but for one.
    finished: the delivery with which it had delivered every task under any setting, withdrawn ones included
        (−1: none yet).
    n_deliveries: with a row on an active task; 0 for an agent without one.
    n_graded: counted valid trials strictly between 0 and 1.
    n_failed: counted rows without an outcome of 1.
    n_uncosted: counted trials that state no cost, but for confirmed failures of the harness.
    n_unconfirmed: counted rows that a submitter calls invalid, and that no operator confirmed.
    retried: it tried tasks again before a whole run: see `analytics.record.whole_runs`.
    n_tokens, seconds: of a run of all tasks that state them.
    people: None where people said nothing of it.
    """

    means: FloatArray
    trial_variances: FloatArray
    n_trials: FloatArray
    costs: FloatArray
    n_valid: CountArray
    n_places: CountArray
    n_gaps: CountArray
    n_invalid: CountArray
    n_too_few: CountArray
    asked: Mask
    operator: bool
    arrival: int
    completed: int
    first: int
    finished: int
    n_deliveries: int
    n_graded: int
    n_failed: int
    n_uncosted: int
    n_unconfirmed: int
    retried: bool
    n_tokens: float | None
    seconds: float | None
    repeats: Repeats
    people: People | None = None
    n_missing_failed: int = 0
    n_judged_again: int = 0
    settled: int = -1


TOLERANCE = 1e-6  # of means that are the same


class _Frame(NamedTuple):
    """What is known of the agents and deliveries before any row is counted.

    ``shape`` is (n_agents, m, C); ``block`` (n_agents, m), −1 where a task was not asked for; ``limits``
    (trials asked for) (n_agents, n_blocks + 1); ``fewest`` (without which it is not complete) (n_agents, m);
    ``operator``, ``fails`` (missing outcomes count as failures), ``capped`` (nothing is a whole run) and
    ``ranked`` (ran under the compared conditions) are (n_agents,); ``arrivals``, ``order``, ``counting``
    (whether it counts) and ``withdrawn`` are (n_deliveries,); ``setting_order`` and ``unjudged`` (equal
    where settings differ in the judge alone) are (n_settings,), ``unjudged_conditions`` alike (C,).
    """

    shape: tuple[int, int, int]
    block: CodeArray
    operator: Mask
    fails: Mask
    limits: CodeArray
    fewest: CodeArray
    capped: Mask
    ranked: Mask
    arrivals: CodeArray
    order: CodeArray
    counting: Mask
    withdrawn: Mask
    setting_order: CodeArray
    unjudged: CodeArray
    unjudged_conditions: CodeArray

    @property
    def asked(self) -> Mask:
        return np.asarray(self.block >= 0, dtype=np.bool_)


class _Slots(NamedTuple):
    """Rows, the slot of each, (n_rows,), and which of them have an outcome, (n_rows,)."""

    rows: Rows
    slot: CodeArray
    has_outcome: Mask

    def where(self, mask: Mask) -> "_Slots":
        if mask.all():
            return self
        return _Slots(self.rows.where(mask), self.slot[mask], self.has_outcome[mask])


def agent_rows(
    rows: Rows,
    *,
    n_agents: int,
    tasks: Sequence[str],
    settings: Sequence[Setting],
    deliveries: Sequence[Delivery],
    counting: Counting,
    compared: Compared,
) -> tuple[AgentRow, ...]:
    """Reduce rows on the active tasks to one line for each agent."""
    rows = checked(rows, n_agents=n_agents, tasks=tasks, settings=settings, deliveries=deliveries)
    frame = _frame(n_agents, tasks, settings, deliveries, counting, compared)
    every = _delivered(rows, frame, settings, counting, compared)
    delivered = every.where(~frame.withdrawn[every.rows.delivery])
    completed = _completed(delivered, frame)
    counted = every.where(frame.counting[every.rows.delivery])
    most = _most_trials(counted, frame)
    weight, retried = _weigh(every, counted, frame, completed, most)
    counted, weight = counted.where(weight > 0), weight[weight > 0]
    n_too_few = _too_few(counted, frame)
    alike = repeats(
        _trials(counted, frame),
        _trials(delivered, frame),
        n_agents=n_agents,
        n_conditions=frame.shape[2],
        settings=settings,
        order=frame.order,
    )
    cumulative = np.array([one.cumulative for one in alike], dtype=np.bool_) & ~frame.operator
    first = _firsts(counted, cumulative, settings)
    cells, n_places, n_absent, n_again = _places(first, weight, frame, most)
    n_gaps = _in_slots(counted.slot[~counted.has_outcome], frame.shape).sum(axis=2)
    n_gaps = np.where(cells.n_valid > 0, n_gaps, n_places).astype(np.int32)
    n_invalid = _in_slots(counted.slot[~counted.rows.valid], frame.shape).sum(axis=2).astype(np.int32)
    costs, tokens, seconds = _spent(counted, frame)
    numbers = _arrival_numbers(rows, deliveries, frame) | _row_counts(counted.rows, n_agents)
    void = counted.has_outcome & ~counted.rows.valid & counted.rows.confirmed
    numbers["n_judged_again"] = n_again
    numbers["settled"] = _settled(counted, delivered, frame, numbers)
    numbers["n_missing_failed"] = n_absent + np.bincount(counted.rows.agent[void], minlength=n_agents)
    labels, asked = people(counted.rows, n_agents=n_agents, settings=settings), frame.asked
    return tuple(
        AgentRow(
            means=cells.means[i],
            trial_variances=cells.trial_variances[i],
            n_trials=cells.n_trials[i],
            costs=costs[i],
            n_valid=cells.n_valid[i],
            n_places=n_places[i],
            n_gaps=n_gaps[i],
            n_invalid=n_invalid[i],
            n_too_few=n_too_few[i],
            asked=asked[i],
            operator=bool(frame.operator[i]),
            retried=bool(retried[i]),
            n_tokens=_total(tokens[i]),
            seconds=_total(seconds[i]),
            repeats=alike[i],
            people=labels[i],
            completed=int(completed[i]),
            **{name: int(of_agents[i]) for name, of_agents in numbers.items()},
        )
        for i in range(n_agents)
    )


def _too_few(counted: _Slots, frame: _Frame) -> CountArray:
    """Trials that a delivered task lacks of the fewest needed, (n_agents, m); 0 where they are failures."""
    n = _in_slots(counted.slot, frame.shape)
    lacking = np.where(n > 0, np.maximum(frame.fewest[:, :, None] - n, 0), 0).sum(axis=2)
    return np.where((frame.ranked & ~frame.fails)[:, None], lacking, 0).astype(np.int32)


def _arrival_numbers(rows: Rows, deliveries: Sequence[Delivery], frame: _Frame) -> dict[str, CodeArray]:
    """Tell by field of `AgentRow` when each agent delivered, and how often, (n_agents,) each."""
    arrival, n_deliveries = _arrivals(not_withdrawn(rows, deliveries), frame)
    first, _ = _arrivals(rows, frame)
    finished = finished_by(rows, deliveries, frame.shape[:2])
    return {"arrival": arrival, "n_deliveries": n_deliveries, "first": first, "finished": finished}


def _row_counts(rows: Rows, n_agents: int) -> dict[str, CodeArray]:
    """Count rows of each agent by field of `AgentRow`, (n_agents,) each."""
    stands = rows.valid | ~rows.confirmed  # a submitter may call those invalid that were dear
    masks = {
        "n_graded": rows.valid & (rows.outcome > 0.0) & (rows.outcome < 1.0),
        "n_failed": ~(rows.valid & (rows.outcome == 1.0)),
        "n_uncosted": stands if rows.cost_usd is None else stands & np.isnan(rows.cost_usd),
        "n_unconfirmed": ~rows.valid & ~rows.confirmed,
    }
    return {name: np.bincount(rows.agent[mask], minlength=n_agents) for name, mask in masks.items()}


def in_part(
    rows: Rows,
    *,
    n_agents: int,
    tasks: Sequence[str],
    settings: Sequence[Setting],
    deliveries: Sequence[Delivery],
    counting: Counting,
    compared: Compared,
    n_trials: int,
) -> Mask:
    """Tell which tasks have some of their trials, and not all, under a compared condition, by agent and task.

    n_trials: asked for of each task, under each condition.
    """
    rows = checked(rows, n_agents=n_agents, tasks=tasks, settings=settings, deliveries=deliveries)
    frame = _frame(n_agents, tasks, settings, deliveries, counting, compared)
    delivered = _delivered(not_withdrawn(rows, deliveries), frame, settings, counting, compared)
    n = _in_slots(delivered.where(frame.counting[delivered.rows.delivery]).slot, frame.shape)
    return np.asarray(((n > 0) & (n < n_trials)).any(axis=2), dtype=np.bool_)


def _frame(
    n_agents: int,
    tasks: Sequence[str],
    settings: Sequence[Setting],
    deliveries: Sequence[Delivery],
    counting: Counting,
    compared: Compared,
) -> _Frame:
    block = asked_blocks(deliveries, n_agents=n_agents, tasks=tasks)
    capped, operator = np.zeros(n_agents, dtype=np.bool_), operated(deliveries, n_agents)
    capped[[one.agent for one in deliveries if one.capped and not one.withdrawn]] = True
    unjudged, known = [(*one[:1], *one[2:]) for one in settings], dict[tuple[Any, ...], int]()
    for s in by_levels(settings):  # whatever number a setting has, sums are taken in the same order
        known.setdefault(unjudged[s], len(known))
    return _Frame(
        shape=(n_agents, len(tasks), max(len(compared.conditions), 1)),
        block=block,
        operator=operator,
        fails=missing_fails(counting, operator),
        limits=_limits(deliveries, block, tasks),
        fewest=_fewest_trials(deliveries, block, tasks),
        capped=capped,
        ranked=np.array([not one for one in compared.condition], dtype=np.bool_),
        arrivals=np.array([delivery.arrival for delivery in deliveries], dtype=np.int64),
        order=places(in_order(deliveries)),
        counting=counted_deliveries(deliveries, counting),
        withdrawn=withdrawn(deliveries),
        setting_order=places(by_levels(settings)),
        unjudged=np.array([known[one] for one in unjudged], dtype=np.int64),
        unjudged_conditions=compared.unjudged,
    )


def _limits(deliveries: Sequence[Delivery], block: CodeArray, tasks: Sequence[str]) -> CodeArray:
    """How many trials were asked for of each block, and of the tasks beside them, (n_agents, n_blocks + 1).

    None if whoever first delivered of a block was asked for no number; what is beside has that of the first.
    """
    number = {name: j for j, name in enumerate(tasks)}
    limits = np.full((len(block), int(block.max(initial=0)) + 2), -1, dtype=np.int64)
    for delivery in (deliveries[d] for d in in_order(deliveries) if not deliveries[d].withdrawn):
        own, of_task = limits[delivery.agent], block[delivery.agent]
        if delivery.asked is not None:
            of_task = of_task[[number[name] for name in delivery.asked if name in number]]
        for b in set(of_task[of_task >= 0].tolist()):
            own[b] = max(own[b], delivery.n_trials or (NEVER if own[b] < 0 else 0))
    limits[limits < 0] = NEVER
    limits[np.arange(len(block)), block.max(axis=1, initial=-1) + 1] = limits[:, 0]
    return limits


def _fewest_trials(deliveries: Sequence[Delivery], block: CodeArray, tasks: Sequence[str]) -> CodeArray:
    """How many trials of each task an agent needs to be complete, (n_agents, m); 0 of those not asked for."""
    number = {name: j for j, name in enumerate(tasks)}
    fewest = np.zeros(block.shape, dtype=np.int64)
    for one in deliveries:
        if one.fewest_trials > 1 and not (one.operator or one.capped or one.withdrawn):
            own = tasks if one.asked is None else one.asked
            named = [number[name] for name in own if name in number]
            fewest[one.agent, named] = np.maximum(fewest[one.agent, named], one.fewest_trials)
    return np.where(block >= 0, fewest, 0)


def _delivered(
    rows: Rows,
    frame: _Frame,
    settings: Sequence[Setting],
    counting: Counting,
    compared: Compared,
) -> _Slots:
    number = {condition: c for c, condition in enumerate(compared.conditions)}
    of_setting = conditions_of(settings, compared.by_temperature, counting)
    condition = np.array([number.get(one, -1) for one in of_setting], dtype=np.int64)
    here = rows.where(condition[rows.setting] >= 0)
    slot = (here.agent * frame.shape[1] + here.task) * frame.shape[2] + condition[here.setting]
    return _Slots(here, slot, counts_as_outcome(here, frame.fails))


def _arrivals(rows: Rows, frame: _Frame) -> tuple[CodeArray, CodeArray]:
    """Arrival of each agent's first delivery with a row, and the number of such, (n_agents,) each."""
    n_agents, n_deliveries = frame.shape[0], len(frame.arrivals)
    pairs = distinct(rows.agent * n_deliveries + rows.delivery)
    agent, delivery = np.divmod(pairs, max(n_deliveries, 1))
    first = np.full(n_agents, NEVER, dtype=np.int64)
    np.minimum.at(first, agent, frame.arrivals[delivery])
    return np.where(first == NEVER, -1, first), np.bincount(agent, minlength=n_agents)


def _completed(delivered: _Slots, frame: _Frame) -> CodeArray:
    """Find the arrival with which every task was there under every condition, (n_agents,); −1: none yet."""
    n_agents, n_tasks, n_conditions = frame.shape
    first = np.full(n_agents * n_tasks * n_conditions, NEVER, dtype=np.int64)
    np.minimum.at(first, delivered.slot, frame.arrivals[delivered.rows.delivery])
    first, filled = first.reshape(frame.shape), (frame.operator & frame.fails)[:, None]
    of_task = np.sort(np.where(filled, first.min(axis=2), first.max(axis=2)), axis=1)
    n_needed = np.where(frame.operator, np.where(frame.fails, 1, -(-19 * n_tasks // 20)), n_tasks)
    last = of_task[np.arange(n_agents), n_needed - 1]
    return np.where(last == NEVER, -1, last)


def _settled(
    counted: _Slots, delivered: _Slots, frame: _Frame, numbers: Mapping[str, CodeArray]
) -> CodeArray:
    """Find the arrival from which on 95% of an agent's results were what they are now, (n_agents,).

    A result was so once the trials so far had its mean, or those of one delivery with 95% of the results as
    they are now, and few others. Failures tell nothing where missing results fail. So nobody comes later by
    delivering more of the same, nor earlier by runs that hold some of it each.
    """
    several = numbers["n_deliveries"] > 1
    if counted.rows.came_with is not None:
        several[counted.rows.agent[counted.rows.came_with != counted.rows.delivery]] = True
    counted, delivered = (
        one.where(one.has_outcome & several[one.rows.agent]) for one in (counted, delivered)
    )
    shape, n_deliveries = frame.shape, len(frame.arrivals)
    by_arrival = np.argsort(frame.arrivals, kind="stable")
    rank = np.argsort(by_arrival)
    agent = np.repeat(np.arange(shape[0]), shape[1] * shape[2])
    now, since = np.full(agent.size, np.nan), np.full(agent.size, NEVER)
    for slots in (counted, delivered):
        came_with = slots.rows.delivery if slots.rows.came_with is None else slots.rows.came_with
        code = slots.slot * n_deliveries + rank[came_with]
        code, place = np.unique(code, return_inverse=True)
        total = np.bincount(place, np.where(slots.rows.valid, slots.rows.outcome, 0.0), code.size)
        n, (slot, when) = np.bincount(place, minlength=code.size), np.divmod(code, n_deliveries)
        means = total / n
        if slots is counted:
            first = np.searchsorted(slot, slot)
            means = (total.cumsum() - (total.cumsum() - total)[first]) / (
                n.cumsum() - (n.cumsum() - n)[first]
            )
            now[slot] = means  # the last one of each
        is_now = np.abs(means - now[slot]) <= TOLERANCE
        if slots is delivered:
            tells = now >= np.where(frame.fails, TOLERANCE, 0.0)[agent]
            whose = agent[slot] * n_deliveries + when
            n_same = np.bincount(whose, is_now & tells[slot], shape[0] * n_deliveries)
            n_other = np.bincount(whose, ~is_now, shape[0] * n_deliveries)
            n_tells = np.bincount(agent, tells)[agent[slot]]
            is_now &= (20 * n_same[whose] >= 19 * n_tells) & (20 * n_other[whose] <= n_tells)
        np.minimum.at(since, slot[is_now], frame.arrivals[by_arrival[when[is_now]]])
    since, now = since.reshape(shape[0], -1)[several], now.reshape(shape[0], -1)[several]
    since = np.sort(np.where(frame.fails[several][:, None] & (now == 0.0), NEVER, since), axis=1)
    nearly_all = -(-19 * np.count_nonzero(since < NEVER, axis=1) // 20)
    settled = numbers["arrival"].copy()
    last = since[np.arange(len(since)), nearly_all - 1]
    settled[several] = np.where(nearly_all > 0, last, settled[several])
    return settled


def _in_slots(slot: CodeArray, shape: tuple[int, int, int]) -> CodeArray:
    return np.bincount(slot, minlength=shape[0] * shape[1] * shape[2]).reshape(shape)


def _parts(frame: _Frame) -> CodeArray:
    """Return the number of each task's block, the last one of what was not asked for, (n_agents, m)."""
    rest = frame.block.max(axis=1, keepdims=True, initial=-1) + 1
    return np.where(frame.asked, frame.block, rest)


def _of_blocks(
    extreme: np.ufunc, values: CodeArray, block: CodeArray, *, start: int, where: Mask | None = None
) -> CodeArray:
    """Take the extreme value of each block, (n_agents, n_blocks); arrays are (n_agents, m)."""
    n_blocks = int(block.max(initial=0)) + 1
    extremes = np.full(len(block) * n_blocks, start, dtype=np.int64)
    of = block >= 0 if where is None else where & (block >= 0)
    code = block + n_blocks * np.arange(len(block))[:, None]
    extreme.at(extremes, code[of], values[of])
    return extremes.reshape(len(block), n_blocks)


def _most_trials(counted: _Slots, frame: _Frame) -> CodeArray:
    """How many trials of each task count at most, (n_agents, m).

    In a part as many as the fewest that a task of it has, up to what was asked for; where gaps are failures,
    and a task asked for has no row, as many as any of its block has. Of an operator's agent what most tasks
    have, the lower median, of all where none of those asked for is active.
    """
    n, part = _in_slots(counted.slot, frame.shape), _parts(frame)
    there = np.asarray((n > 0).any(axis=2), dtype=np.bool_)
    wanted = frame.asked | ~frame.asked.any(axis=1, keepdims=True)
    fewest = _of_blocks(np.minimum, np.where(n > 0, n, NEVER).min(axis=2), part, start=NEVER, where=there)
    of_part = np.minimum(fewest, frame.limits[:, : fewest.shape[1]])
    fails = frame.fails[:, None]
    if fails.any():
        largest = _of_blocks(np.maximum, n.max(axis=2), part, start=0, where=wanted)
        is_short = _of_blocks(np.minimum, n.min(axis=2), part, start=NEVER, where=wanted) == 0
        of_part = np.where(fails & is_short & (largest > 0), largest, of_part)
    most = np.take_along_axis(of_part, part, axis=1)
    most = np.where(fails, np.maximum(most, frame.fewest), most)
    for i in np.flatnonzero(frame.operator & (n > 0).any(axis=(1, 2))):
        delivered = np.sort(n[i][wanted[i]], axis=None)
        delivered = delivered[delivered > 0]
        most[i] = delivered[(len(delivered) - 1) // 2] if len(delivered) else 0
    return most


def _whole_runs(every: _Slots, is_counting: Mask, frame: _Frame, most: CodeArray) -> tuple[Mask, Mask]:
    """Mark the rows that are part of a whole run, (n_rows,), and the agents that retried, (n_agents,).

    Looked at are agents of which it could change what counts, none of those that an operator loaded.
    """
    rows, (n_agents, _, n_conditions) = every.rows, frame.shape
    whole, retried = np.zeros(rows.n_rows, dtype=np.bool_), np.zeros(n_agents, dtype=np.bool_)
    # agents with more trials than places, or several deliveries of several trials
    n, n_deliveries = _in_slots(every.slot[is_counting], frame.shape), len(frame.order)
    pairs = distinct(rows.agent * n_deliveries + rows.delivery) // max(n_deliveries, 1)
    several = np.bincount(pairs, minlength=n_agents) > 1
    several &= (n > 1).any(axis=(1, 2))
    more = (n > most[:, :, None]).any(axis=(1, 2))
    looked_at = (several | more) & ~frame.operator & ~frame.capped
    if not looked_at.any():
        return whole, retried
    at, part = np.flatnonzero(looked_at[rows.agent]), _parts(frame)
    rows, slot = rows.where(at), every.slot[at]
    of_part, n_parts = part[rows.agent, rows.task], int(part.max()) + 1
    size = np.bincount(
        (part + n_parts * np.arange(n_agents)[:, None]).reshape(-1), minlength=n_agents * n_parts
    )
    series = rows.agent * n_parts + of_part
    whole[at], again = whole_runs(
        series=series * n_conditions + slot % n_conditions,
        size=size[series],
        delivery=frame.order[rows.delivery],
        task=rows.task,
        outcome=np.where(rows.valid, rows.outcome, 0.0),
        standing=is_counting[at],
    )
    retried[rows.agent[again]] = True
    return whole, retried


def _weigh(
    every: _Slots, counted: _Slots, frame: _Frame, completed: CodeArray, most: CodeArray
) -> tuple[FloatArray, Mask]:
    """Return how much each counted row counts, (n_rows,), and the agents that retried, (n_agents,)."""
    is_counting = frame.counting[every.rows.delivery]
    whole, retried = _whole_runs(every, is_counting, frame, most)
    weight = _weights(counted, frame, completed, most, whole[is_counting])
    if retried.any():
        weight = _lower(counted, weight, frame, completed, most, retried)
    return weight, retried


def _weights(
    counted: _Slots, frame: _Frame, completed: CodeArray, most: CodeArray, whole: Mask
) -> FloatArray:
    """Return how much each row counts, (n_rows,): what was asked for, and all once every task is there.

    In order of acceptance a whole run shares the places that are left of a task among its trials; else the
    lowest outcomes come first, as submitters number their own trials.
    """
    rows, slot = counted.rows, counted.slot
    everything = frame.operator | (completed >= 0)
    counts = everything[rows.agent] | (frame.block[rows.agent, rows.task] >= 0)
    weight, limit = counts.astype(np.float64), most[rows.agent, rows.task]
    n = _in_slots(slot, frame.shape).reshape(-1)
    part = np.flatnonzero(counts & ~frame.operator[rows.agent] & (n[slot] > limit))
    order = part[
        np.lexsort(
            (
                frame.setting_order[rows.setting[part]],
                rows.trial[part],
                np.where(rows.valid[part], rows.outcome[part], 0.0),
                frame.order[rows.delivery[part]],
                slot[part],
            )
        )
    ]
    number = _number_in_run(slot[order])
    of_delivery = slot[order] * len(frame.order) + frame.order[rows.delivery[order]]
    lengths = np.diff(np.flatnonzero(np.diff(of_delivery, prepend=-1)), append=len(of_delivery))
    before, size = number - _number_in_run(of_delivery), np.repeat(lengths, lengths)
    share = np.where(before == 0, 1.0, np.clip((limit[order] - before) / size, 0.0, 1.0))
    weight[order] = np.where(whole[order], share, number < limit[order])
    return weight


def _lower(
    counted: _Slots,
    weight: FloatArray,
    frame: _Frame,
    completed: CodeArray,
    most: CodeArray,
    retried: Mask,
) -> FloatArray:
    """Let all trials of an agent count that retried, where its mean over what was asked for is lower so.

    The mean is over the tasks that have an outcome, rounded; 0 without any.
    """
    all_count = _weights(
        counted, frame, completed, np.full_like(most, NEVER), np.zeros_like(weight, dtype=bool)
    )
    changed = np.where(retried[counted.rows.agent], all_count, weight)
    scores = []
    for one in (weight, changed):
        means = _places(counted.where(one > 0), one[one > 0], frame, most)[0].means
        there = frame.asked & ~np.isnan(means)
        sums = np.where(there, means, 0.0).sum(axis=1)
        scores.append(np.round(sums / np.maximum(there.sum(axis=1), 1), 9))
    return np.where((scores[1] < scores[0])[counted.rows.agent], changed, weight)


def _firsts(counted: _Slots, cumulative: Mask, settings: Sequence[Setting]) -> _Slots:
    mine = cumulative[counted.rows.agent] & counted.has_outcome
    if not mine.any():
        return counted
    runs = run_order([run for *_, run in settings])
    last = np.flatnonzero(mine)[::-1]
    last = last[np.argsort(-runs[counted.rows.setting[last]], kind="stable")]
    firsts = np.empty(int(counted.slot.max()) + 1)
    firsts[counted.slot[last]] = counted.rows.outcome[last]  # the last of several: the first trial
    outcome = np.where(mine, firsts[counted.slot], counted.rows.outcome)
    return counted._replace(rows=replace(counted.rows, outcome=outcome))


def _places(
    counted: _Slots, weight: FloatArray, frame: _Frame, most: CodeArray
) -> tuple[CellMoments, CountArray, CodeArray, CodeArray]:
    """Take the means, and count places, (n_agents, m) each.

    And count those absent that fail, and `AgentRow.n_judged_again`, (n_agents,) each.

    What is absent counts as failures if gaps are zero. Within a condition trials weigh the same, of whatever
    run or temperature: these are a submitter's labels.
    """
    n_agents, n_tasks, n_conditions = frame.shape
    n = _in_slots(counted.slot, frame.shape)
    failed = np.empty(0, dtype=np.int64)
    if frame.fails.any():
        # slots of what was asked for, as often as they lack a trial that was to count: of a block without a
        # row as many as of the others; an operator's agent lacks tasks alone
        usual = np.where(frame.asked & (most < NEVER), most, 0).max(axis=1, keepdims=True)
        expected = np.where(most == NEVER, usual, most)[:, :, None]
        lacking = np.maximum(np.where(frame.operator[:, None, None] & (n > 0), 0, expected - n), 0)
        lacking[~frame.asked | ~(frame.ranked & frame.fails)[:, None]] = 0
        slots = np.flatnonzero(lacking)
        failed = np.repeat(slots, lacking.reshape(-1)[slots])
    rows, n_failed = counted.rows, len(failed)
    slot = np.concatenate([counted.slot, failed])
    has_outcome = np.concatenate([counted.has_outcome, np.ones(n_failed, dtype=np.bool_)])
    cell = slot // n_conditions
    trial = _judged_trials(counted, failed, frame) if n_conditions > 1 else None
    cells = cell_moments(
        cell,
        np.concatenate([np.where(rows.valid, rows.outcome, 0.0), np.zeros(n_failed)]),
        has_outcome,
        n_agents * n_tasks,
        condition=slot % n_conditions,
        n_conditions=n_conditions,
        trial=trial,
        weight=None if (weight == 1).all() else np.concatenate([weight, np.ones(n_failed)]),
    )
    table = CellMoments(
        cells.means.reshape(n_agents, n_tasks),
        cells.n_valid.reshape(n_agents, n_tasks),
        cells.trial_variances.reshape(n_agents, n_tasks),
        cells.n_trials.reshape(n_agents, n_tasks),
    )
    n_absent = _in_slots(failed, frame.shape)
    n = n + n_absent
    n_places = np.where((n > 0).all(axis=2), n.sum(axis=2), 0).astype(np.int32)
    n_again = np.zeros(n_agents, dtype=np.int64)
    if trial is not None:
        known = has_outcome & (cells.n_valid[cell] > 0)
        (judged, _), times = np.unique(np.stack([cell, trial])[:, known], axis=1, return_counts=True)
        np.add.at(n_again, judged // n_tasks, times - 1)
    return table, n_places, np.asarray(n_absent.sum(axis=(1, 2)), dtype=np.int64), n_again


def _judged_trials(counted: _Slots, failed: CodeArray, frame: _Frame) -> CodeArray:
    """Give verdicts on one trial of a task one number, (n_rows + n_failed,).

    Judges scored one trial where its number, prompt, temperature and run are the same; of several such under
    one judge the first is scored with the first. Of what submitters deliver the lowest verdict of a judge is
    of one trial with the lowest of the other: labels make nobody's trials differ less. The failure for an
    absent verdict is of the first trial that other judges alone scored; where there is none, of an absent
    trial, which has a negative number.
    """
    slot, (labels, trial) = counted.slot, np.unique(counted.rows.trial, return_inverse=True)
    named = frame.unjudged[counted.rows.setting] * len(labels) + trial
    n, alike = len(frame.unjudged_conditions), frame.unjudged_conditions
    loaded = frame.operator[counted.rows.agent]
    lowest = np.where(loaded | ~counted.rows.valid, 0.0, counted.rows.outcome)
    order, place = np.lexsort((named, lowest, slot)), np.empty(len(slot), dtype=np.int64)
    named = np.where(loaded, named, alike[slot % n])
    place[order] = _number_in_run(slot[order] * (named.max(initial=0) + 1) + named[order])
    scored = named * (place.max(initial=0) + 1) + place
    absent = np.full(len(failed), -1)
    across_judges = slot // n * n + alike[slot % n]
    order = np.argsort(across_judges, kind="stable")
    slots, first, n_lacking = np.unique(failed, return_index=True, return_counts=True)  # `failed` ascends
    wanted, there = slots // n * n + alike[slots % n], across_judges[order]
    starts, ends = np.searchsorted(there, wanted), np.searchsorted(there, wanted, side="right")
    for k in np.flatnonzero(starts < ends).tolist():
        rows = order[starts[k] : ends[k]]
        others = np.setdiff1d(scored[rows], scored[rows[slot[rows] == slots[k]]])[: n_lacking[k]]
        absent[first[k] : first[k] + len(others)] = others
    left = failed[absent < 0]  # the first of each judge's is one trial, whatever came before it was
    absent[absent < 0] = -1 - (_number_in_run(left) * n + alike[left % n])
    return np.concatenate([scored, absent])


def _trials(part: _Slots, frame: _Frame) -> ComparedTrials:
    with_outcome = part.where(part.has_outcome)
    rows = with_outcome.rows
    outcome = np.where(rows.valid, rows.outcome, 0.0)
    return ComparedTrials(rows, outcome, with_outcome.slot % frame.shape[2])


def _spent(counted: _Slots, frame: _Frame) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Dollars, tokens and seconds of a trial of each task, (n_agents, m) each.

    The mean over the trials that state it, so that an agent with several trials of each task looks no dearer;
    NaN where none does. Rows are in canonical order: the order of the file leaves no trace in the sums.
    """
    rows, (n_agents, n_tasks, _) = counted.rows, frame.shape
    cell = rows.agent * n_tasks + rows.task

    def mean(amount: FloatArray | None) -> FloatArray:
        means = np.full(n_agents * n_tasks, np.nan)
        if amount is not None:
            known = ~np.isnan(amount)
            n_stated = np.bincount(cell[known], minlength=means.size)
            sums = np.bincount(cell[known], amount[known], means.size)
            np.divide(sums, n_stated, out=means, where=n_stated > 0)
        return means.reshape(n_agents, n_tasks)

    return mean(rows.cost_usd), mean(rows.n_tokens), mean(rows.seconds)


def _total(per_task: FloatArray) -> float | None:
    known = per_task[~np.isnan(per_task)]
    return float(known.sum()) if known.size else None


def _number_in_run(sorted_codes: CodeArray) -> CodeArray:
    """Count from 0 in each run of equal codes, (n_rows,)."""
    n = len(sorted_codes)
    first = np.flatnonzero(np.diff(sorted_codes, prepend=-1))
    return np.arange(n) - np.repeat(first, np.diff(first, append=n))
