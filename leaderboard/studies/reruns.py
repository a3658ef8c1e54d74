"""Whom a rerun request asks for a full run, and who has made one: from the record, by the core's own draw."""

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from analytics.drift.monitor import N_RERUNS, rerun_set
from analytics.resampling import generator
from leaderboard.catalog.models import Agent
from leaderboard.studies.answers import Line, Standings, words
from leaderboard.studies.board_inputs import subset_versions
from leaderboard.studies.queries import active_subset
from leaderboard.studies.records import Snapshot
from selection.history import columns_of, is_later
from selection.prior import SubsetVersion

NOBODY = np.empty(0, dtype=np.intp)


@dataclass(frozen=True)
class AgentToRun:
    """An agent that a request names, with the ids of the tasks that it lacks."""

    agent: Agent
    sampled: bool
    inclusion: float
    why: str
    lacking: list[int] = field(repr=False)


def ran_all(now: Snapshot) -> set[int]:
    """Ids of the agents that have run everything, whether anything is learnt from them or not."""
    return {agent.pk for agent, is_there in zip(now.agents, now.record.ran_all, strict=True) if is_there}


def agents_to_recall(now: Snapshot, board: Standings, podium: int) -> list[AgentToRun]:
    """Whom a board has on the podium by an estimate, and who has to run the rest."""
    place, asked = {agent.name: i for i, agent in enumerate(now.agents)}, []
    for line in owing(board, podium):
        i, at = place[line.agent], line.at["full"]
        why = f"rank {at.rank} by an estimate of {words.percent(at.score or 0.0)}%"
        asked.append(AgentToRun(now.agents[i], False, 1.0, why, _lacking(now, i)))
    return asked


def owing(board: Standings, podium: int) -> tuple[Line, ...]:
    from selection.standings import placing as places

    return places.owing(board, podium)


def drawn_on_alert(now: Snapshot, *, tied: Collection[str], number: int) -> list[AgentToRun]:
    """Draw at random; on top of them whoever is tied at the top, and the first of each new scaffold.

    `number` tells the requests of this kind apart: the same one draws the same agents.
    """
    able = _able(now)
    ties = able[np.isin([now.agents[i].name for i in able], list(tied))]
    record = now.record
    later = is_later(record, _in_use(now))
    known = {now.agents[i].scaffold_id for i in np.flatnonzero(~later).tolist()}
    first: dict[int, int] = {}
    for i in able[np.argsort(record.arrival[able], kind="stable")].tolist():
        if now.agents[i].scaffold_id not in known:
            first.setdefault(now.agents[i].scaffold_id, i)
    return _drawn(now, "drift", number, able, ties, np.array(sorted(first.values()), dtype=np.intp))


def drawn_for_validation(now: Snapshot, *, n: int, number: int, but: Collection[int]) -> list[AgentToRun]:
    """Draw `n` agents at random; not among those whose ids are in `but`, who are asked already."""
    able = np.array([i for i in _able(now).tolist() if now.agents[i].pk not in but], dtype=np.intp)
    return _drawn(now, "validation", number, able, n=n)


def _in_use(now: Snapshot) -> SubsetVersion:
    return subset_versions(active_subset(now.benchmark, upto=now.data_version))[-1]


def n_newcomers(now: Snapshot) -> int:
    """Agents with a voice that came since the subset in use was fixed."""
    return int(np.count_nonzero(is_later(now.record, _in_use(now)) & now.record.voice))


def _able(now: Snapshot) -> np.ndarray:
    """Positions of agents that came since the subset in use was fixed and have run it, not everything.

    Those that staged assignment stopped are among them. A full run of one without a voice would teach
    nothing.
    """
    record, version = now.record, _in_use(now)
    on_subset = columns_of(record, version)
    if not on_subset.size:
        return NOBODY
    both = zip(record.about, record.condition, strict=True)
    free = np.array(
        [not (one.withheld or ran) and (one.stopped or not one.adaptive_reason) for one, ran in both]
    )
    stopped = np.array([one.stopped for one in record.about])
    lacks = (record.n_places == 0).any(axis=1)
    later = is_later(record, version) & record.voice
    return np.flatnonzero(later & (record.is_direct(on_subset) | stopped) & lacks & free)


def _drawn(
    now: Snapshot,
    kind: str,
    number: int,
    able: np.ndarray,
    ties: np.ndarray = NOBODY,
    first: np.ndarray = NOBODY,
    n: int = N_RERUNS,
) -> list[AgentToRun]:
    draw = generator(now.rules.seed, f"{kind} reruns", _in_use(now).number, number)
    chosen = rerun_set(able, ties, first, draw, n=n)
    return [
        AgentToRun(now.agents[one.agent], one.sampled, one.inclusion, one.why, _lacking(now, one.agent))
        for one in chosen
    ]


def _lacking(now: Snapshot, i: int) -> list[int]:
    return [now.task_ids[j] for j in np.flatnonzero(now.record.n_places[i] == 0).tolist()]
