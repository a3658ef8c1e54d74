"""Comparable conditions of prompt, judge and temperature, and which agents they are learnt from.

Nobody gains a say by delivering more agents: heard are those that are vouched for, and two agents of each
other account, the first that ran everything, in the order in which they had, then the others as they came.

Source: The rules are this project's own.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from analytics.arrays import CodeArray, Mask
from analytics.errors import CoreError
from analytics.record.rows import (
    Condition,
    Counting,
    Delivery,
    Rows,
    Setting,
    asked_tasks,
    checked,
    counted_deliveries,
    counts_as_outcome,
    distinct,
    finished_by,
    missing_fails,
    none_first,
    operated,
)

MAX_VOICES = 2  # agents of one account


class Voter(NamedTuple):
    """Whose an agent is, see `About`, and its first delivery (−1: none)."""

    name: str
    account: str = ""
    vouched: bool = True
    arrival: int = 0


def voices(voters: Sequence[Voter], finished: Sequence[int] | CodeArray) -> Mask:
    """Mark the agents that have a say, by the delivery with which they had run all (−1: none yet)."""
    heard = np.array([one.vouched for one in voters], dtype=np.bool_)
    n_heard: Counter[str] = Counter()

    def place(i: int) -> tuple[bool, bool, int, str]:
        never, (name, _, _, arrival) = finished[i] < 0, voters[i]
        return never, never and arrival < 0, arrival if never else int(finished[i]), name

    for i in sorted(np.flatnonzero(~heard).tolist(), key=place):
        heard[i] = n_heard[voters[i].account] < MAX_VOICES
        n_heard[voters[i].account] += 1
    return heard


FACETS = ("prompt", "judge", "temperature")
N_NAMED = 10  # of the conditions of one agent
N_VOUCHED = 5  # full runs that are vouched for, from which on only these choose


@dataclass(frozen=True, eq=False)
class ConditionCounts:
    """What each agent ran under each condition.

    conditions: those with a row, ascending, None before any value.
    by_temperature: whether temperature is part of the conditions.
    n_active, n_asked: active tasks; (n_agents,), those that the agent was asked to run.
    finished: (n_agents,); see `AgentRow`.
    fails: (n_agents,); see `missing_fails`.
    n_tasks, n_asked_tasks, n_outcomes: (n_agents, n_conditions); tasks with an outcome under the condition;
        those of them that were asked for; outcomes.
    """

    conditions: tuple[Condition, ...]
    by_temperature: bool
    n_active: int
    n_asked: CodeArray
    voters: tuple[Voter, ...]
    finished: CodeArray
    fails: Mask
    n_tasks: CodeArray
    n_asked_tasks: CodeArray
    n_outcomes: CodeArray


@dataclass(frozen=True)
class Compared:
    """The conditions compared.

    words: the conditions in words; empty where no facet has two levels.
    left_out: other conditions, with the number of agents that have them.
    condition: length n_agents; what an agent ran under where it lacks a compared condition and ran more under
        another; else empty. It has one with results on 95% of its tasks, on half where missing ones fail.
    n_elsewhere: length n_agents; the most tasks that it ran under one of those; 0 where `condition` is empty.
    in_part: length n_agents; whether it has an outcome under a compared condition.
    """

    conditions: tuple[Condition, ...]
    by_temperature: bool
    words: tuple[str, ...]
    left_out: tuple[tuple[str, int], ...]
    condition: tuple[str, ...]
    n_elsewhere: tuple[int, ...]
    in_part: tuple[bool, ...] = ()

    @property
    def unjudged(self) -> CodeArray:
        """Numbers, (n_conditions,), equal where conditions differ in the judge alone."""
        known = dict[Condition, int]()
        numbers = [known.setdefault(one._replace(judge=None), len(known)) for one in self.conditions]
        return np.array(numbers, dtype=np.int64)


def condition_counts(
    rows: Rows,
    *,
    n_agents: int,
    tasks: Sequence[str],
    settings: Sequence[Setting],
    deliveries: Sequence[Delivery],
    counting: Counting,
    voters: Sequence[Voter] = (),
    by_temperature: bool | None = None,
) -> ConditionCounts:
    """Count what each agent ran on the active tasks under each condition.

    voters: by default each agent is of an account of its own, and vouched for if an operator loaded it.
    by_temperature: as it is for agents beside these; where not given, these tell.
    """
    rows = checked(rows, n_agents=n_agents, tasks=tasks, settings=settings, deliveries=deliveries)
    counted = rows.where(counted_deliveries(deliveries, counting)[rows.delivery])
    asked_of = asked_tasks(deliveries, n_agents=n_agents, tasks=tasks)
    fails = missing_fails(counting, operated(deliveries, n_agents))
    outcomes = counted.where(counts_as_outcome(counted, fails))
    if not voters:
        loaded = operated(deliveries, n_agents).tolist()
        voters = [Voter(str(i), str(i), one, i) for i, one in enumerate(loaded)]
    voters = tuple(voters)
    finished = finished_by(rows, deliveries, (n_agents, len(tasks)))
    if by_temperature is None:
        by_temperature = _two_temperatures(outcomes, asked_of, settings, voters, finished, fails)
    of_setting = conditions_of(settings, by_temperature, counting)
    conditions = tuple(sorted({of_setting[s] for s in distinct(counted.setting).tolist()}, key=none_first))
    place = {condition: i for i, condition in enumerate(conditions)}
    code = np.array([place.get(condition, -1) for condition in of_setting], dtype=np.int64)
    shape = (n_agents, len(conditions))
    column = outcomes.agent * shape[1] + code[outcomes.setting]
    cells = distinct(column * len(tasks) + outcomes.task)
    of_cell, task = np.divmod(cells, len(tasks))
    wanted = asked_of[of_cell // max(shape[1], 1), task]
    return ConditionCounts(
        conditions=conditions,
        by_temperature=by_temperature,
        n_active=len(tasks),
        n_asked=np.asarray(asked_of.sum(axis=1), dtype=np.int64),
        voters=voters,
        finished=finished,
        fails=fails,
        n_tasks=_counts(of_cell, shape),
        n_asked_tasks=_counts(of_cell[wanted], shape),
        n_outcomes=_counts(column, shape),
    )


def compare(counts: ConditionCounts, counting: Counting) -> Compared:
    """Choose the conditions compared, and say, if there are several, which they are and who lacks them."""
    if not counting.settings:
        raise CoreError("settings: no condition is named", code="record")
    has = _enough(counts.n_asked_tasks, counts.n_asked, counts.fails) & (counts.n_asked_tasks > 0)
    if counting.settings == "comparable":
        chosen = tuple(counts.conditions[c] for c in _comparable(counts, has))
    else:
        chosen = tuple(sorted(set(counting.settings), key=none_first))
    known = sorted({*counts.conditions, *chosen}, key=none_first)
    if len(known) < 2:
        n_agents = len(counts.n_asked)
        return Compared(chosen, counts.by_temperature, (), (), ("",) * n_agents, (0,) * n_agents)
    words = dict(zip(known, _words(known), strict=True))
    condition, n_elsewhere = _elsewhere(counts, has, chosen, [words[one] for one in counts.conditions])
    return Compared(
        conditions=chosen,
        by_temperature=counts.by_temperature,
        words=tuple(words[one] for one in chosen),
        left_out=tuple(
            (words[one], int(has[:, c].sum())) for c, one in enumerate(counts.conditions) if one not in chosen
        ),
        condition=condition,
        n_elsewhere=n_elsewhere,
        in_part=tuple(bool(row.any()) for row in counts.n_outcomes[:, _columns(counts, chosen)]),
    )


def vouched_choose(counts: ConditionCounts) -> bool:
    """Return whether agents that are vouched for choose alone, so that nobody else has a say."""
    return bool(np.count_nonzero(_full(counts) & _vouched(counts.voters)) >= N_VOUCHED)


def most_lacking(mine: ConditionCounts, compared: Compared) -> tuple[str, int, int] | None:
    """Return the compared condition under which most tasks lack, how many, and of how many; or None."""
    n_asked, column = int(mine.n_asked[0]), {condition: c for c, condition in enumerate(mine.conditions)}
    if not column.keys() & set(compared.conditions):
        return None
    lacking = [
        (name, n_asked - int(mine.n_asked_tasks[0, column[one]]) if one in column else n_asked)
        for name, one in zip(compared.words, compared.conditions, strict=True)
    ]
    name, n_lacking = max(lacking, key=lambda one: one[1])
    return (name, n_lacking, n_asked) if n_lacking else None


def conditions_of(
    settings: Sequence[Setting], by_temperature: bool, counting: Counting
) -> tuple[Condition, ...]:
    """Return the condition of each setting; a condition named without temperature takes in every one."""
    named = counting.settings if counting.settings != "comparable" else ()

    def condition(prompt: str | None, judge: str | None, temperature: float | None) -> Condition:
        for one in named:
            if one[:2] == (prompt, judge) and one.temperature in (None, temperature):
                return one
        return Condition(prompt, judge, temperature if by_temperature else None)

    return tuple(condition(*setting[:3]) for setting in settings)


def _enough(n_tasks: CodeArray, n_all: CodeArray, fails: Mask) -> Mask:
    """Whether an agent has a condition by the tasks that it ran under it, (n_agents, n_conditions).

    It takes 95% of all; half where missing results fail: it failed the others there.
    """
    return np.asarray(20 * n_tasks >= (np.where(fails, 10, 19) * n_all)[:, None])


def _two_temperatures(
    outcomes: Rows,
    asked_of: Mask,
    settings: Sequence[Setting],
    voters: Sequence[Voter],
    finished: CodeArray,
    fails: Mask,
) -> bool:
    """Whether temperature is part of the conditions, as the model says; not stated is a level."""
    levels = {temperature: i for i, temperature in enumerate(dict.fromkeys(one[2] for one in settings))}
    if len(levels) < 2:
        return False
    level = np.array([levels[setting[2]] for setting in settings], dtype=np.int64)[outcomes.setting]
    of_cell, task = np.divmod(
        distinct((outcomes.agent * len(levels) + level) * asked_of.shape[1] + outcomes.task),
        asked_of.shape[1],
    )
    n_ran = _counts(of_cell[asked_of[of_cell // len(levels), task]], (len(asked_of), len(levels)))
    full = _enough(n_ran, asked_of.sum(axis=1), fails & _vouched(voters)) & (n_ran > 0)
    who = choosing(np.asarray(full.any(axis=1)), voters, finished)
    ran = full & who[:, None] if full.any() else (n_ran > 0) & _vouched(voters)[:, None]
    return bool((ran.sum(axis=1) > 1).any())


def _counts(column: CodeArray, shape: tuple[int, int]) -> CodeArray:
    return np.asarray(np.bincount(column, minlength=shape[0] * shape[1]).reshape(shape), dtype=np.int64)


def _comparable(counts: ConditionCounts, has: Mask) -> list[int]:
    if not counts.conditions:
        return []
    full = _full(counts)
    who = full if full.any() else (counts.n_outcomes > 0).any(axis=1)
    heard = choosing(np.asarray(who, dtype=np.bool_), counts.voters, counts.finished)
    nearly_all = _nearly_all(has[heard])
    if nearly_all.any():
        return np.flatnonzero(nearly_all).tolist()
    n_holders, n_outcomes = has[heard].sum(axis=0), counts.n_outcomes[heard].sum(axis=0)
    most = max(range(len(counts.conditions)), key=lambda c: (n_holders[c], n_outcomes[c], -c))
    holders = heard & has[:, most]
    return sorted({most, *np.flatnonzero(_nearly_all(has[holders]) & holders.any()).tolist()})


def _full(counts: ConditionCounts) -> Mask:
    """Agents with a full run; half of one is full of those alone that are vouched for."""
    n_active, fails = np.full(len(counts.fails), counts.n_active), counts.fails & _vouched(counts.voters)
    return np.asarray(_enough(counts.n_tasks, n_active, fails).any(axis=1))


def choosing(agents: Mask, voters: Sequence[Voter], finished: CodeArray) -> Mask:
    """Return those of the agents that decide for others: who submits more gains no say."""
    return vouched_alone(agents & voices(voters, finished), _vouched(voters))


def vouched_alone(agents: Mask, vouched: Mask) -> Mask:
    """Return those of the agents that are vouched for, where these are five or more; else all of them."""
    both = agents & vouched
    return both if np.count_nonzero(both) >= N_VOUCHED else agents


def _vouched(voters: Sequence[Voter]) -> Mask:
    return np.array([one.vouched for one in voters], dtype=np.bool_)


def _nearly_all(has: Mask) -> Mask:
    """Conditions that at least 95% of the agents have, 20·n ≥ 19·total."""
    return np.asarray(20 * has.sum(axis=0) >= 19 * len(has), dtype=np.bool_)


def _elsewhere(
    counts: ConditionCounts, has: Mask, chosen: Sequence[Condition], words: list[str]
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    columns = _columns(counts, chosen)
    unheld = len(columns) < len(chosen)
    places: list[tuple[str, int]] = []
    for n_tasks, here in zip(counts.n_tasks, has, strict=True):
        fewest = 0 if unheld else int(n_tasks[columns].min(initial=counts.n_active))
        lacks = unheld or not here[columns].all()
        ran = (np.flatnonzero(here) if here.any() else np.flatnonzero(n_tasks == n_tasks.max())).tolist()
        name, more = "", lacks and n_tasks.max(initial=0) > fewest
        if more:
            name = " and ".join(words[c] for c in ran)
            if len(ran) > N_NAMED:
                name = f"{', '.join(words[c] for c in ran[:N_NAMED])} and {len(ran) - N_NAMED:,} more"
        places.append((name, int(n_tasks[ran].max())) if more else ("", 0))
    return tuple(name for name, _ in places), tuple(n for _, n in places)


def _columns(counts: ConditionCounts, chosen: Sequence[Condition]) -> list[int]:
    return [counts.conditions.index(one) for one in chosen if one in counts.conditions]


def _words(conditions: Sequence[Condition]) -> list[str]:
    varying = [f for f in range(len(FACETS)) if len({one[f] for one in conditions}) > 1]

    def words(facet: str, level: str | float | None) -> str:
        if level is None:
            return f"no {facet} stated"
        return f"{facet} {level:g}" if isinstance(level, float) else f"{facet} {level}"

    return [", ".join(words(FACETS[f], one[f]) for f in varying) for one in conditions]
