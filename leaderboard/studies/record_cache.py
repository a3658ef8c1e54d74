"""Each agent's part of a record, read from its outcomes once and kept.

A part is named by all that decides it: the deliveries that count, the active tasks, how outcomes are counted
and which conditions are compared. Outcomes never change, so that a part with the right name is right.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from django.db.models import QuerySet

from analytics.record import (
    AgentRow,
    Compared,
    Condition,
    ConditionCounts,
    Counting,
    Delivery,
    Rows,
    Voter,
    agent_rows,
    compare,
    condition_counts,
)
from analytics.record.rows import none_first
from leaderboard.catalog.models import Agent, Benchmark, Task, Trust
from leaderboard.studies.models import ESTIMATOR_VERSION, AgentScores
from leaderboard.studies.scores import pack, unpack
from leaderboard.submissions import queries as submissions

CELLS = ("n_tasks", "n_asked_tasks", "n_outcomes")  # of Held, for each agent and condition
TEMPERATURE = 2
LABELS = ("human", "human_probability")
MAX_READ = 1_000_000  # outcomes in memory at once, of about half a kilobyte each

DeliveriesByAgent = Mapping[int, Sequence[submissions.AcceptedSubmission]]  # by agent id


class RecentScores:
    """Rows that this process read last, so that of those it knows no array is read again.

    A row is known by its agent and by the names of all that decides it.

    most_bytes: of arrays; of a benchmark whose rows take more, nothing is kept.
    """

    def __init__(self, most_bytes: int = 256 << 20) -> None:
        self._most_bytes = most_bytes
        self._known: dict[tuple[int, str, str], AgentScores] = {}

    def of(self, rows: QuerySet[AgentScores]) -> list[AgentScores]:
        """Return these rows, and keep them in the place of all others."""
        if self._known:
            names = list(rows.values_list("pk", "key", "under"))
            scores = [self._known[name] for name in names if name in self._known]
            absent = [pk for pk, *deciding in names if (pk, *deciding) not in self._known]
            scores += rows.filter(pk__in=absent)
        else:
            scores = list(rows)
        self._known = {}
        self.add(scores)
        return scores

    def add(self, rows: Sequence[AgentScores]) -> None:
        """Keep rows of the same benchmark that were stored since."""
        self._known |= {(one.pk, one.key, one.under): one for one in rows}
        if sum(len(one.arrays) for one in self._known.values()) > self._most_bytes:
            self._known = {}


class AgentRowCache:
    """Parts of one benchmark's agents: those kept in the database, and those read since."""

    def __init__(self, benchmark: Benchmark, recent: RecentScores | None = None) -> None:
        rows = AgentScores.objects.filter(agent__benchmark=benchmark)
        stored = recent.of(rows) if recent else list(rows)
        self.stored = {(one.key, one.under): one for one in stored}
        self.counts_by_key = {one.key: one.content["held"] for one in self.stored.values()}
        self.rows: dict[tuple[str, str], AgentRow] = {}
        self.known: dict[bytes, bytes] = {}
        self.settings = sorted(submissions.settings_of(benchmark).items(), key=repr)
        # An agent with full runs at two temperatures makes temperature part of everyone's conditions.
        self.one_by_one = len({facets[TEMPERATURE] for facets, _ in self.settings}) < 2

    def of(
        self,
        delivered: DeliveriesByAgent,
        tasks: Sequence[Task],
        counting: Counting,
        voters: Mapping[int, Voter],
    ) -> "CachedRows":
        """The conditions compared, and each agent's line under them, in the order of `delivered`."""
        keys = keys_of(delivered, tasks, counting)
        absent = [pk for pk, key in keys.items() if key not in self.counts_by_key or not self.one_by_one]
        read, by_temperature = list[int](), False
        for read in self._read_at_once(absent, delivered):
            source = _source({pk: delivered[pk] for pk in read}, tasks, self.settings)
            by_temperature |= self._count({keys[pk]: voters[pk] for pk in read}, source, counting)
        ran = [self.counts_by_key[key] for key in keys.values()]
        whose = [voters[pk] for pk in keys]
        compared = compare(join_counts(ran, whose, len(tasks), by_temperature), counting)
        names = {
            pk: (key, _sha256([compared.conditions, compared.by_temperature, bool(condition)]))
            for (pk, key), condition in zip(keys.items(), compared.condition, strict=True)
        }
        missing = [pk for pk, name in names.items() if name not in self.rows and name not in self.stored]
        condition_of = dict(zip(names, compared.condition, strict=True))
        for some in self._read_at_once(missing, delivered):
            if some != read:
                read, source = some, _source({pk: delivered[pk] for pk in some}, tasks, self.settings)
            here = replace(compared, condition=tuple(condition_of[pk] for pk in some))
            reduced = agent_rows(**source, counting=counting, compared=here)
            self.rows |= zip((names[pk] for pk in some), reduced, strict=True)
        return CachedRows(self, compared, names)

    def line(self, name: tuple[str, str]) -> AgentRow:
        if name not in self.rows:
            self.rows[name] = unpack(self.stored[name], self.known)
        return self.rows[name]

    def _read_at_once(self, agents: list[int], delivered: DeliveriesByAgent) -> list[list[int]]:
        """Split agents so that memory need not hold all of their outcomes, where each can be read alone."""
        if not self.one_by_one:
            return [agents] if agents else []
        n_outcomes = submissions.n_outcomes_of(one.submission for pk in agents for one in delivered[pk])
        parts: list[list[int]] = []
        n_held = MAX_READ + 1
        for pk in agents:
            n = sum(n_outcomes[one.submission] for one in delivered[pk])
            if n_held + n > MAX_READ:
                parts.append([])
                n_held = 0
            parts[-1].append(pk)
            n_held += n
        return parts

    def _count(self, voters: Mapping[str, Voter], source: Mapping[str, Any], counting: Counting) -> bool:
        """Keep by key what agents ran under each condition; return whether temperature is part of one."""
        if not voters:
            return False
        counts = condition_counts(**source, counting=counting, voters=tuple(voters.values()))
        self.counts_by_key |= zip(voters, split(counts), strict=True)
        return counts.by_temperature


class CachedRows:
    """What `AgentRowCache.of` found."""

    def __init__(self, parts: AgentRowCache, compared: Compared, names: dict[int, tuple[str, str]]) -> None:
        self.cache, self.compared, self.names = parts, compared, names

    @property
    def rows(self) -> list[AgentRow]:
        return [self.cache.line(name) for name in self.names.values()]

    def stale(self, data_version: int, n_tasks: int) -> "Stale":
        """Rows for the parts that the database does not have."""
        absent = [pk for pk, name in self.names.items() if name not in self.cache.stored]
        return Stale(self, absent, data_version, n_tasks)


@dataclass(frozen=True, eq=False)
class Stale(Sequence[AgentScores]):
    """Rows to be stored, each made when it is asked for."""

    cached: CachedRows
    agents: list[int]
    data_version: int
    n_tasks: int

    def __len__(self) -> int:
        return len(self.agents)

    @overload
    def __getitem__(self, at: int) -> AgentScores: ...
    @overload
    def __getitem__(self, at: slice) -> list[AgentScores]: ...
    def __getitem__(self, at: int | slice) -> AgentScores | list[AgentScores]:
        if isinstance(at, slice):
            return [self[i] for i in range(len(self))[at]]
        pk = self.agents[at]
        name = key, under = self.cached.names[pk]
        arrays, content = pack(self.cached.cache.line(name))
        return AgentScores(
            agent_id=pk,
            key=key,
            under=under,
            data_version=self.data_version,
            n_tasks=self.n_tasks,
            arrays=arrays,
            content={"row": content, "held": self.cached.cache.counts_by_key[key]},
        )


def _source(
    delivered: DeliveriesByAgent, tasks: Sequence[Task], settings: Sequence[tuple[tuple[Any, ...], int]]
) -> dict[str, Any]:
    """Outcomes of some agents as the core takes them."""
    names = {task.pk: task.name for task in tasks}
    flat = [(agent, one) for agent, mine in enumerate(delivered.values()) for one in mine]
    table = submissions.measured_outcomes_of(
        (one.submission for _, one in flat if not one.withdrawn),
        (one.submission for _, one in flat if one.withdrawn),
    )
    table = table.filter(pc.is_in(table["task"], pa.array(list(names), pa.int32())))
    delivery = positions(table["submission"], [one.submission for _, one in flat], pa.int32())
    of_delivery = np.array([agent for agent, _ in flat], np.int64)
    confirmed = np.array([one.confirmed for _, one in flat], np.bool_)
    rows = Rows(
        agent=of_delivery[delivery],
        task=positions(table["task"], list(names), pa.int32()),
        setting=positions(table["setting"], [pk for _, pk in settings], pa.int32()),
        delivery=delivery,
        trial=table["trial"].to_numpy().astype(np.int64),
        outcome=_numbers(table["value"]),
        valid=table["valid"].to_numpy(zero_copy_only=False),
        confirmed=confirmed[delivery],
        **{name: _numbers(table[name]) for name in ("cost_usd", "n_tokens", "seconds")},
        **{name: _numbers(table[name]) for name in LABELS if table[name].null_count < table.num_rows},
    )
    return {
        "rows": rows,
        "n_agents": len(delivered),
        "tasks": list(names.values()),
        "settings": [facets for facets, _ in settings],
        "deliveries": [_delivery(agent, one, names) for agent, one in flat],
    }


def _delivery(agent: int, one: submissions.AcceptedSubmission, names: Mapping[int, str]) -> Delivery:
    task_names = None if one.asked is None else frozenset(names[pk] for pk in one.asked if pk in names)
    return Delivery(
        agent,
        one.arrival,
        one.operator,
        task_names,
        one.n_trials,
        capped=one.study is not None,
        fewest_trials=one.fewest_trials,
        withdrawn=one.withdrawn,
    )


def positions(ids: pa.ChunkedArray, known: Sequence[int], kind: pa.DataType) -> np.ndarray:
    return pc.index_in(ids, pa.array(known, kind)).to_numpy().astype(np.int64)


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    return pc.fill_null(column.cast(pa.float64()), np.nan).to_numpy()


def split(counts: ConditionCounts) -> list[dict[str, Any]]:
    """For each agent what it ran under each condition, as it is kept."""
    return [
        {
            "n_asked": int(n_asked),
            "finished": int(counts.finished[i]),
            "conditions": [list(condition) for condition in counts.conditions],
            **{name: getattr(counts, name)[i].tolist() for name in CELLS},
        }
        for i, n_asked in enumerate(counts.n_asked)
    ]


def join_counts(
    parts: Sequence[dict[str, Any]], voters: Sequence[Voter], n_active: int, by_temperature: bool
) -> ConditionCounts:
    """One table of all agents from the lines that each has for itself."""
    known = {Condition(*one) for part in parts for one in part["conditions"]}
    conditions = sorted(known, key=none_first)
    column = {condition: c for c, condition in enumerate(conditions)}
    cells = {name: np.zeros((len(parts), len(conditions)), np.int64) for name in CELLS}
    for i, part in enumerate(parts):
        columns = [column[Condition(*one)] for one in part["conditions"]]
        for name, values in cells.items():
            values[i, columns] = part[name]
    return ConditionCounts(
        conditions=tuple(conditions),
        by_temperature=by_temperature,
        n_active=n_active,
        n_asked=np.array([part["n_asked"] for part in parts], np.int64),
        voters=tuple(voters),
        finished=np.array([part["finished"] for part in parts], np.int64),
        **cells,
    )


def keys_of(delivered: DeliveriesByAgent, tasks: Sequence[Task], counting: Counting) -> dict[int, str]:
    """The key of each agent's part, by agent id."""
    counted = asdict(counting) | {"universe": None}  # it has become the tasks
    shared = _sha256([ESTIMATOR_VERSION, [task.pk for task in tasks], counted])
    return {
        pk: _sha256(
            [
                shared,
                [
                    [
                        *(one.submission, one.arrival, one.operator, sorted(one.asked or ())),
                        *(
                            one.n_trials,
                            one.fewest_trials,
                            one.study is not None,
                            one.confirmed,
                            one.withdrawn,
                        ),
                    ]
                    for one in mine
                ],
            ]
        )
        for pk, mine in delivered.items()
    }


def voter_of(agent: Agent, mine: Sequence[submissions.AcceptedSubmission], trusted: Collection[int]) -> Voter:
    """Whose an agent is, by what stands of it or once did; `trusted` are ids of accounts.

    What no account delivered is vouched for, unverified as it may be: in a replay who teaches had a voice.
    """
    standing = [one for one in mine if not one.withdrawn] or mine
    vouched = agent.owner_id in trusted or all(
        one.trust == Trust.VERIFIED or one.account is None for one in standing
    )
    return Voter(agent.name, str(agent.owner_id or ""), vouched, min(one.arrival for one in mine))


def by_agent(deliveries: Sequence[submissions.AcceptedSubmission]) -> DeliveriesByAgent:
    grouped: defaultdict[int, list[submissions.AcceptedSubmission]] = defaultdict(list)
    for one in deliveries:
        grouped[one.agent_id].append(one)
    return grouped


def _sha256(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
