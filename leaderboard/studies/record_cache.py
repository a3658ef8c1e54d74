"""Each agent's part of a record, read from its outcomes once and kept.

A part is named by all that decides it: the deliveries that count, the active tasks, how outcomes are counted
and which conditions are compared. Outcomes never change, so that a part with the right name is right.

An agent's part of the record as bytes, so that a recompute reads only the outcomes that are new.

They are compressed: of one trial each a hundredth is left, and bytes travel as text of twice their length.
"""

import hashlib
import json
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from django.db.models import QuerySet

from analytics.arrays import FloatArray
from analytics.record import (
    AgentRow,
    Compared,
    Condition,
    ConditionCounts,
    Counting,
    Delivery,
    People,
    Rows,
    Voter,
    agent_rows,
    compare,
    condition_counts,
)
from analytics.record.alike import Repeats
from analytics.record.rows import none_first
from leaderboard.catalog.models import Agent, Benchmark, Task, Trust
from leaderboard.studies.models import ESTIMATOR_VERSION, AgentScores
from leaderboard.submissions import queries as submissions
from leaderboard.submissions.models import Submission

KINDS = {
    "means": "<f8",
    "trial_variances": "<f8",
    "n_trials": "<f8",
    "costs": "<f8",
    "n_valid": "<i4",
    "n_places": "<i4",
    "n_gaps": "<i4",
    "n_invalid": "<i4",
    "n_too_few": "<i4",
    "asked": "?",
}
FORM = 2  # of stored arrays; what has another one is read again
FASTEST, N_DIGEST = 1, hashlib.sha256().digest_size
OTHERS = {name: kind for name, kind in KINDS.items() if name != "means"}
PLAIN = tuple(one.name for one in fields(AgentRow) if one.name not in (*KINDS, "repeats", "people"))


def pack(row: AgentRow) -> tuple[bytes, dict[str, Any]]:
    """A digest of the means, these and the other arrays, each part compressed, and what is no array."""
    means, *others = (np.asarray(getattr(row, name)).astype(kind).tobytes() for name, kind in KINDS.items())
    plain = {name: getattr(row, name) for name in PLAIN} | {"repeats": row.repeats.as_plain()}
    if row.people is not None:
        plain["people"] = row.people.as_plain()
    digest = hashlib.sha256(means).digest()  # finds whoever has the same means
    return digest + zlib.compress(means, FASTEST) + _compressed(b"".join(others)), plain


@lru_cache(maxsize=4)
def _compressed(others: bytes) -> bytes:
    """Compress what is often alike: agents of one trial each, without costs, differ in their means alone."""
    return zlib.compress(others, FASTEST)


class DamagedScores(ValueError):
    """Stored arrays are not those that were stored. They are read again from the outcomes."""


def unpack(stored: AgentScores, known: dict[bytes, bytes] | None = None) -> AgentRow:
    """The row; `known` holds what was decompressed before, as most agents of one trial each have the same.

    Raises DamagedScores.
    """
    known = {} if known is None else known
    content, (means, compressed), offset = dict(stored.content["row"]), _parted(stored), 0
    if compressed not in known:
        size = np.dtype([(name, kind, stored.n_tasks) for name, kind in OTHERS.items()]).itemsize
        known[compressed], rest = _decompressed(compressed, size)
        if rest:
            raise DamagedScores(stored)
    values = known[compressed]
    arrays: dict[str, Any] = {"means": means}
    for name, kind in OTHERS.items():
        arrays[name] = np.frombuffer(values, kind, stored.n_tasks, offset)
        offset += arrays[name].nbytes
    content["repeats"] = Repeats.of_plain(content["repeats"])
    if people := content.get("people"):
        content["people"] = People.of_plain(people)
    return AgentRow(**arrays, **content)


def unpacked(rows: Iterable[AgentScores]) -> list[tuple[AgentScores, AgentRow]]:
    """Unpack those that are not damaged."""
    known = dict[bytes, bytes]()
    found = []
    for one in rows:
        with suppress(DamagedScores):
            found.append((one, unpack(one, known)))
    return found


def _parted(stored: AgentScores) -> tuple[FloatArray, bytes]:
    """The means, and the other arrays, compressed."""
    digest, compressed = bytes(stored.arrays[:N_DIGEST]), memoryview(stored.arrays)[N_DIGEST:]
    means, others = _decompressed(compressed, np.dtype((KINDS["means"], stored.n_tasks)).itemsize)
    if hashlib.sha256(means).digest() != digest:
        raise DamagedScores(stored)
    return np.frombuffer(means, KINDS["means"]), others


def _decompressed(compressed: bytes | memoryview, size: int) -> tuple[bytes, bytes]:
    """So many bytes, and what follows their end."""
    reader = zlib.decompressobj()
    try:
        values = reader.decompress(compressed, size + 1)
    except zlib.error as error:
        raise DamagedScores(str(error)) from error
    if len(values) != size or not reader.eof:
        raise DamagedScores(f"{len(values)} bytes of {size}")
    return values, reader.unused_data


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
        self.of_agents = {(one.agent_id, one.key, one.under) for one in stored}  # a merge leaves others' rows
        self.counts_by_key = {one.key: one.content["held"] for one in self.stored.values()}
        self.rows: dict[tuple[str, str], AgentRow] = {}
        self.known: dict[bytes, bytes] = {}
        self.arrays: dict[bytes, np.ndarray[Any, Any]] = {}
        self.settings = sorted(submissions.settings_of(benchmark).items(), key=repr)
        # An agent with full runs at two temperatures makes temperature part of everyone's conditions.
        self.one_by_one = len({facets[TEMPERATURE] for facets, _ in self.settings}) < 2

    def of(
        self,
        delivered: DeliveriesByAgent,
        tasks: Sequence[Task],
        counting: Counting,
        voters: Mapping[int, Voter],
        *,
        data_version: int,
    ) -> tuple[Compared, list[AgentRow], "Stale"]:
        """The conditions compared, each agent's row under them in the order of `delivered`, what is new."""
        keys, by_temperature = keys_of(delivered, tasks, counting), False
        usual = self._usual_keys(keys, delivered, tasks, counting)

        def names_under(agents: Collection[int]) -> tuple[Compared, dict[int, tuple[str, str]]]:
            ran, whose = [self.counts_by_key[keys[pk]] for pk in agents], [voters[pk] for pk in agents]
            compared = compare(join_counts(ran, whose, len(tasks), by_temperature), counting)
            under = [
                _sha256([compared.conditions, compared.by_temperature, bool(condition)])
                for condition in compared.condition
            ]
            return compared, {pk: (keys[pk], one) for pk, one in zip(agents, under, strict=True)}

        def reduce(some: list[int], source: Mapping[str, Any], agents: Collection[int]) -> None:
            compared, names = names_under(agents)
            condition_of = dict(zip(agents, compared.condition, strict=True))
            here = replace(compared, condition=tuple(condition_of[pk] for pk in some))
            reduced = agent_rows(**source, counting=counting, compared=here)
            self.rows |= zip((names[pk] for pk in some), map(self._shared, reduced), strict=True)

        absent = [pk for pk, key in keys.items() if key not in self.counts_by_key or not self.one_by_one]
        for some in self._read_at_once(absent, delivered):
            source = _source({pk: delivered[pk] for pk in some}, tasks, self.settings)
            by_temperature |= self._count({keys[pk]: voters[pk] for pk in some}, source, counting)
            if self.one_by_one or not self.stored:
                # under the conditions so far; where more agents bring others, rows are read once more
                reduce(some, source, [pk for pk, key in keys.items() if key in self.counts_by_key])
        compared, names = names_under(keys)
        for pk, name in names.items():
            same = (usual[pk], name[1])
            if not self._is_stored(name) and (same in self.rows or self._is_stored(same)):
                self.rows.setdefault(name, self.line(same))
        missing = [pk for pk, name in names.items() if name not in self.rows and name not in self.stored]
        for some in self._read_at_once(missing, delivered):
            reduce(some, _source({pk: delivered[pk] for pk in some}, tasks, self.settings), keys)
        stale = {
            pk: name
            for pk, name in names.items()
            if name not in self.stored or (pk, *name) not in self.of_agents
        }
        rows = [self.line(name) for name in names.values()]
        return compared, rows, Stale(self, stale, data_version, len(tasks))

    def _usual_keys(
        self, keys: dict[int, str], delivered: DeliveriesByAgent, tasks: Sequence[Task], counting: Counting
    ) -> dict[int, str]:
        """Return the keys from before conditions were named, and take over the counts of what agents ran."""
        named = () if counting.settings == "comparable" else counting.settings
        if not self.one_by_one or any(one.temperature is not None for one in named):
            return keys
        usual = keys_of(delivered, tasks, replace(counting, settings="comparable")) if named else keys
        for pk, key in keys.items():
            if usual[pk] in self.counts_by_key:
                self.counts_by_key.setdefault(key, self.counts_by_key[usual[pk]])
        return usual

    def _shared(self, row: AgentRow) -> AgentRow:
        """Let arrays that are alike be held once, as many are where each agent has one trial of each task."""
        arrays: dict[str, Any] = {}
        for name in OTHERS:
            array = np.ascontiguousarray(getattr(row, name))
            digest = hashlib.sha256(name.encode() + array.data).digest()
            if digest not in self.arrays:
                self.arrays[digest] = array.copy()
            arrays[name] = self.arrays[digest]
        return replace(row, **arrays)

    def _is_stored(self, name: tuple[str, str]) -> bool:
        """Whether the database has a row; what is damaged is read again, and stored anew."""
        if name in self.stored:
            try:
                self.line(name)
            except DamagedScores:
                del self.stored[name]
        return name in self.stored

    def line(self, name: tuple[str, str]) -> AgentRow:
        if name not in self.rows:
            self.rows[name] = unpack(self.stored[name], self.known)
        return self.rows[name]

    def _read_at_once(self, agents: list[int], delivered: DeliveriesByAgent) -> list[list[int]]:
        """Split agents so that memory need not hold all of their outcomes, where each can be read alone."""
        if not self.one_by_one:
            return [agents] if agents else []
        n_outcomes = submissions.n_outcomes_of(one.submission.pk for pk in agents for one in delivered[pk])
        parts: list[list[int]] = []
        n_held = MAX_READ + 1
        for pk in agents:
            n = sum(n_outcomes[one.submission.pk] for one in delivered[pk])
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


@dataclass(frozen=True, eq=False)
class Stale:
    """Rows that the database does not have, by the ids of their agents, each made when it is asked for."""

    cache: AgentRowCache
    names: dict[int, tuple[str, str]]
    data_version: int
    n_tasks: int

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[AgentScores]:
        for pk, (key, under) in self.names.items():
            arrays, content = pack(self.cache.line((key, under)))
            yield AgentScores(
                agent_id=pk,
                key=key,
                under=under,
                data_version=self.data_version,
                n_tasks=self.n_tasks,
                arrays=arrays,
                content={"row": content, "held": self.cache.counts_by_key[key]},
            )


def _source(
    delivered: DeliveriesByAgent, tasks: Sequence[Task], settings: Sequence[tuple[tuple[Any, ...], int]]
) -> dict[str, Any]:
    names = {task.pk: task.name for task in tasks}
    flat = [(agent, one) for agent, mine in enumerate(delivered.values()) for one in mine]
    table = submissions.measured_outcomes_of(
        (one.submission.pk for _, one in flat if not one.withdrawn),
        (one.submission.pk for _, one in flat if one.withdrawn),
    )
    table = table.filter(pc.is_in(table["task"], pa.array(list(names), pa.int32())))
    ids = [one.submission.pk for _, one in flat]
    delivery, came_with = positions(table["submission"], ids), None
    if "came_with" in table.column_names:
        came_with = positions(pc.coalesce(table["came_with"], table["submission"]), ids)
    rows = rows_of(
        table,
        list(names),
        [pk for _, pk in settings],
        outcome=_numbers(table["value"]),
        delivery=delivery,
        agent=np.array([agent for agent, _ in flat], np.int64)[delivery],
        confirmed=np.array([one.confirmed for _, one in flat], np.bool_)[delivery],
    )
    measured = [name for name in LABELS if table[name].null_count < table.num_rows]
    measured += ["cost_usd", "n_tokens", "seconds"]
    return {
        "rows": replace(rows, came_with=came_with, **{name: _numbers(table[name]) for name in measured}),
        "n_agents": len(delivered),
        "tasks": list(names.values()),
        "settings": [facets for facets, _ in settings],
        "deliveries": [
            delivery_of(
                one.submission, names, agent, one.arrival, fewest=one.fewest_trials, withdrawn=one.withdrawn
            )
            for agent, one in flat
        ],
    }


def delivery_of(
    submission: Submission,
    names: Mapping[int, str],
    agent: int,
    arrival: int,
    *,
    fewest: int,
    withdrawn: bool = False,
) -> Delivery:
    """A submission as the core takes it; `names` are those of the active tasks, by id."""
    return Delivery(
        agent,
        arrival,
        submission.loaded,
        names_of(submission.asked, names),
        submission.n_trials,
        capped=submission.study_id is not None,
        fewest_trials=fewest,
        withdrawn=withdrawn,
    )


def names_of(task_ids: Collection[int] | None, names: Mapping[int, str]) -> frozenset[str] | None:
    return None if task_ids is None else frozenset(names[pk] for pk in task_ids if pk in names)


def rows_of(
    table: pa.Table,
    tasks: Sequence[int],
    settings: Sequence[int],
    *,
    outcome: np.ndarray,
    delivery: np.ndarray | None = None,
    agent: np.ndarray | None = None,
    confirmed: np.ndarray | None = None,
) -> Rows:
    """Outcomes as the core takes them; of one delivery, one agent, as `free` says, where it is not told."""
    nothing = np.zeros(table.num_rows, np.int64)
    return Rows(
        agent=nothing if agent is None else agent,
        task=positions(table["task"], tasks),
        setting=positions(table["setting"], settings),
        delivery=nothing if delivery is None else delivery,
        trial=table["trial"].to_numpy().astype(np.int64),
        outcome=outcome,
        valid=table["valid"].to_numpy(zero_copy_only=False),
        confirmed=table["free"].to_numpy(zero_copy_only=False) if confirmed is None else confirmed,
    )


def positions(ids: pa.ChunkedArray, known: Sequence[int]) -> np.ndarray:
    return pc.index_in(ids, pa.array(known, pa.int32())).to_numpy().astype(np.int64)


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    return pc.fill_null(column.cast(pa.float64()), np.nan).to_numpy()


def split(counts: ConditionCounts) -> list[dict[str, Any]]:
    """For each agent what it ran under each condition, as it is kept."""
    return [
        {
            "n_asked": int(n_asked),
            "finished": int(counts.finished[i]),
            "fails": bool(counts.fails[i]),
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
        fails=np.array([part.get("fails", False) for part in parts], np.bool_),  # earlier releases kept none
        **cells,
    )


def keys_of(delivered: DeliveriesByAgent, tasks: Sequence[Task], counting: Counting) -> dict[int, str]:
    counted = asdict(counting) | {"universe": None}  # it has become the tasks
    shared = _sha256([ESTIMATOR_VERSION, FORM, PLAIN, [task.pk for task in tasks], counted])

    def deciding(one: submissions.AcceptedSubmission) -> list[Any]:
        of = one.submission
        asked = (sorted({*(of.asked or ())}), of.n_trials, one.fewest_trials, of.study_id is not None)
        return [of.pk, one.arrival, of.loaded, *asked, one.confirmed, one.withdrawn]

    return {pk: _sha256([shared, [deciding(one) for one in mine]]) for pk, mine in delivered.items()}


def voter_of(agent: Agent, mine: Sequence[submissions.AcceptedSubmission], trusted: Collection[int]) -> Voter:
    """Whose an agent is, by what stands of it or once did; `trusted` are ids of accounts.

    What no account delivered is vouched for, unverified as it may be: in a replay who teaches had a voice.
    """
    standing = [one for one in mine if not one.withdrawn] or mine
    vouched = agent.owner_id in trusted or all(
        one.trust == Trust.VERIFIED or one.submission.submitted_by_id is None for one in standing
    )
    return Voter(agent.name, str(agent.owner_id or ""), vouched, min(one.arrival for one in mine))


def by_agent(deliveries: Sequence[submissions.AcceptedSubmission]) -> DeliveriesByAgent:
    grouped: defaultdict[int, list[submissions.AcceptedSubmission]] = defaultdict(list)
    for one in deliveries:
        grouped[one.agent_id].append(one)
    return grouped


def _sha256(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
