"""Rows to arrays: the outcome table of a benchmark as of one data version."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.outcome_table import OutcomeTable, cell_means
from leaderboard.catalog.models import Agent, Benchmark, Duplicates, Policy
from leaderboard.catalog.queries import agents_of, policy_in_force
from leaderboard.studies.models import AgentScores
from leaderboard.submissions.models import Setting, Submission
from leaderboard.submissions.queries import accepted_submissions, outcomes_of, settings_of

N_TRIES = 20


class DataKeepsChanging(RuntimeError):
    """Outcomes arrived faster than they could be read."""


@dataclass(frozen=True)
class Snapshot:
    """What one data version holds. `agents` and `task_ids` stand in the order of the table."""

    benchmark: Benchmark
    policy: Policy
    table: OutcomeTable
    agents: tuple[Agent, ...]
    submissions: dict[int, list[Submission]] = field(repr=False)
    task_ids: np.ndarray
    stale: tuple[AgentScores, ...] = field(repr=False)

    @property
    def data_version(self) -> int:
        return self.benchmark.data_version


def snapshot(benchmark: Benchmark) -> Snapshot | None:
    """Read a benchmark; None when it has no active task or no counted outcome.

    No transaction is held while outcomes are read. Instead the data version is read before and after: it
    grows in the transaction that changes the data, so equal versions mean that nothing changed between.
    """
    for _ in range(N_TRIES):
        before = Benchmark.objects.get(pk=benchmark.pk)
        result = _read(before)
        if (
            Benchmark.objects.values_list("data_version", flat=True).get(pk=benchmark.pk)
            == before.data_version
        ):
            return result
    raise DataKeepsChanging


def store_scores(scores: tuple[AgentScores, ...]) -> None:
    """Keep what was read, so that the next recompute reads only agents that changed."""
    AgentScores.objects.bulk_create(
        scores,
        update_conflicts=True,
        unique_fields=["agent"],
        update_fields=["policy", "submissions", "data_version", "tasks", "means", "n_valid"],
    )


def _read(benchmark: Benchmark) -> Snapshot | None:
    policy = policy_in_force(benchmark)
    tasks = list(benchmark.tasks.order_by("name"))
    counted = _counted(accepted_submissions(benchmark), policy)
    agents = tuple(agent for agent in agents_of(benchmark) if agent.pk in counted)
    active = [i for i, task in enumerate(tasks) if task.retired_at is None]
    if not agents or not active:
        return None
    scores, stale = _scores(benchmark, policy, agents, counted, [task.pk for task in tasks])
    means, n_valid = _aligned(agents, scores, [tasks[i].pk for i in active])
    table = OutcomeTable(
        agents=tuple(agent.name for agent in agents),
        tasks=tuple(tasks[i].name for i in active),
        means=means,
        n_valid=n_valid,
        dates=tuple(d.date() if (d := earliest(counted[agent.pk])) else None for agent in agents),
        scaffolds=tuple(agent.scaffold.name for agent in agents),
        models=tuple(agent.model.name for agent in agents),
    )
    return Snapshot(
        benchmark=benchmark,
        policy=policy,
        table=table,
        agents=agents,
        submissions=counted,
        task_ids=np.array([tasks[i].pk for i in active]),
        stale=stale,
    )


def _counted(accepted: list[Submission], policy: Policy) -> dict[int, list[Submission]]:
    """The submissions that make up each agent's scores, by the policy on duplicates."""
    by_agent: defaultdict[int, list[Submission]] = defaultdict(list)
    for submission in accepted:
        by_agent[submission.agent_id].append(submission)
    keep = {Duplicates.MEAN: slice(None), Duplicates.FIRST: slice(1), Duplicates.LATEST: slice(-1, None)}
    return {agent: delivered[keep[Duplicates(policy.duplicates)]] for agent, delivered in by_agent.items()}


def earliest(submissions: list[Submission]) -> datetime | None:
    """An agent's date is the earliest that any of its submissions states."""
    return min((s.submitted_at for s in submissions if s.submitted_at), default=None)


def _scores(
    benchmark: Benchmark,
    policy: Policy,
    agents: tuple[Agent, ...],
    counted: dict[int, list[Submission]],
    task_ids: list[int],
) -> tuple[dict[int, AgentScores], tuple[AgentScores, ...]]:
    """Each agent's scores, and those of them that had to be read from outcomes."""
    stored = {s.agent_id: s for s in AgentScores.objects.filter(agent__in=agents, policy=policy)}
    wanted = {agent.pk: [s.pk for s in counted[agent.pk]] for agent in agents}
    absent = [pk for pk, ids in wanted.items() if pk not in stored or stored[pk].submissions != ids]
    rows = _counted_settings(outcomes_of(pk for agent in absent for pk in wanted[agent]), benchmark, policy)
    stale = _read_scores(rows, {pk: wanted[pk] for pk in absent}, benchmark, policy, task_ids)
    return stored | {s.agent_id: s for s in stale}, stale


def _counted_settings(rows: pa.Table, benchmark: Benchmark, policy: Policy) -> pa.Table:
    if policy.counted_settings is None:
        return rows
    named = {tuple(setting.get(facet) for facet in Setting.FACETS) for setting in policy.counted_settings}
    ids = [pk for facets, pk in settings_of(benchmark).items() if facets in named]
    return rows.filter(pc.is_in(rows["setting"], pa.array(ids, pa.int32())))


def _read_scores(
    rows: pa.Table,
    submissions: dict[int, list[int]],
    benchmark: Benchmark,
    policy: Policy,
    task_ids: list[int],
) -> tuple[AgentScores, ...]:
    """The scores of these agents in one pass: agent and task together number the cells."""
    agents, n_tasks = list(submissions), len(task_ids)
    agent = pc.index_in(rows["agent"], pa.array(agents, pa.int64())).to_numpy()
    task = pc.index_in(rows["task"], pa.array(task_ids, pa.int32())).to_numpy()
    means, n_valid = cell_means(
        agent.astype(np.int64) * n_tasks + task,
        rows["setting"].to_numpy(),
        pc.fill_null(rows["value"].cast(pa.float64()), np.nan).to_numpy(),
        rows["valid"].to_numpy(),
        len(agents) * n_tasks,
    )
    return tuple(
        AgentScores(
            agent_id=pk,
            policy=policy,
            submissions=submissions[pk],
            data_version=benchmark.data_version,
            tasks=task_ids,
            means=[None if np.isnan(mean) else mean for mean in own_means.tolist()],
            n_valid=own_n_valid.tolist(),
        )
        for pk, own_means, own_n_valid in zip(
            agents, means.reshape(-1, n_tasks), n_valid.reshape(-1, n_tasks), strict=True
        )
    )


def _aligned(
    agents: tuple[Agent, ...], scores: dict[int, AgentScores], task_ids: list[int]
) -> tuple[Any, Any]:
    """Bring the agents' arrays, each in its own task order, into rows over the active tasks."""
    column = {pk: j for j, pk in enumerate(task_ids)}
    means = np.full((len(agents), len(task_ids)), np.nan)
    n_valid = np.zeros(means.shape, np.int32)
    for i, agent in enumerate(agents):
        row = scores[agent.pk]
        places = np.array([column.get(pk, -1) for pk in row.tasks])
        known = places >= 0
        means[i, places[known]] = np.array(row.means, np.float64)[known]
        n_valid[i, places[known]] = np.array(row.n_valid, np.int32)[known]
    return means, n_valid
