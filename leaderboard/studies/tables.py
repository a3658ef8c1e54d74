"""Rows to arrays: the outcome table of a benchmark as of one data version."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.outcome_table import OutcomeTable, cell_moments
from leaderboard.catalog.models import Agent, Benchmark, Duplicates, Policy
from leaderboard.catalog.queries import active_tasks, agents_of, policy_in_force
from leaderboard.studies.consistency import consistency, only_better
from leaderboard.studies.models import AgentScores
from leaderboard.submissions.models import Setting, Submission
from leaderboard.submissions.queries import accepted_submissions, outcomes_of, settings_of

N_TRIES = 20
RUN = 3
FACETS = {"prompt": 0, "judge": 1, "run": RUN}  # places in Setting.FACETS
ARRAYS = {
    "means": np.float64,
    "n_valid": np.int32,
    "n_delivered": np.int32,
    "trial_variances": np.float64,
    "n_trials": np.float64,
}


class DataKeepsChanging(RuntimeError):
    """Outcomes arrived faster than they could be read."""


@dataclass(frozen=True)
class Snapshot:
    """What one data version holds; all of it stands in the order of the table."""

    benchmark: Benchmark
    policy: Policy
    table: OutcomeTable
    agents: tuple[Agent, ...]
    submissions: dict[int, list[Submission]] = field(repr=False)
    task_ids: np.ndarray
    n_delivered: np.ndarray
    consistency: tuple[dict[str, Any], ...] = field(repr=False)
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
        update_fields=["policy", "submissions", "data_version", "tasks", "consistency", *ARRAYS],
    )


def _read(benchmark: Benchmark) -> Snapshot | None:
    policy = policy_in_force(benchmark)
    tasks = list(active_tasks(benchmark))
    counted = _counted(accepted_submissions(benchmark), policy)
    agents = tuple(agent for agent in agents_of(benchmark) if agent.pk in counted)
    if not agents or not tasks:
        return None
    scores, stale = _scores(benchmark, policy, agents, counted, [task.pk for task in tasks])
    arrays = {
        name: np.array([getattr(scores[agent.pk], name) for agent in agents], kind)
        for name, kind in ARRAYS.items()
    }
    table = OutcomeTable(
        agents=tuple(agent.name for agent in agents),
        tasks=tuple(task.name for task in tasks),
        means=arrays["means"],
        n_valid=arrays["n_valid"],
        trial_variances=arrays["trial_variances"],
        n_trials=arrays["n_trials"],
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
        task_ids=np.array([task.pk for task in tasks]),
        n_delivered=arrays["n_delivered"],
        consistency=tuple(scores[agent.pk].consistency for agent in agents),
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
    """Each agent's scores, and those of them that had to be read from outcomes.

    What is kept holds for the active tasks it was read on: its consistency spans them all.
    """
    stored = {s.agent_id: s for s in AgentScores.objects.filter(agent__in=agents, policy=policy)}
    wanted = {agent.pk: [s.pk for s in counted[agent.pk]] for agent in agents}
    absent = [
        pk
        for pk, ids in wanted.items()
        if pk not in stored or stored[pk].submissions != ids or stored[pk].tasks != task_ids
    ]
    rows = outcomes_of(pk for agent in absent for pk in wanted[agent])
    rows = rows.filter(pc.is_in(rows["task"], pa.array(task_ids, pa.int32())))
    rows = _counted_settings(rows, benchmark, policy)
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
    cell = agent.astype(np.int64) * n_tasks + task
    moments = cell_moments(
        cell,
        rows["setting"].to_numpy(),
        pc.fill_null(rows["value"].cast(pa.float64()), np.nan).to_numpy(),
        rows["valid"].to_numpy(),
        len(agents) * n_tasks,
    )
    consistencies = _consistencies(rows, agent, task, len(agents), settings_of(benchmark))
    n_delivered = np.bincount(cell, minlength=len(agents) * n_tasks)
    arrays = {name: values.reshape(-1, n_tasks) for name, values in moments._asdict().items()}
    arrays["n_delivered"] = n_delivered.reshape(-1, n_tasks)
    return tuple(
        AgentScores(
            agent_id=pk,
            policy=policy,
            submissions=submissions[pk],
            data_version=benchmark.data_version,
            tasks=task_ids,
            consistency=consistencies[i],
            **{name: _nulls(values[i]) for name, values in arrays.items()},
        )
        for i, pk in enumerate(agents)
    )


def _consistencies(
    rows: pa.Table,
    agent: np.ndarray,
    task: np.ndarray,
    n_agents: int,
    settings: dict[tuple[object, ...], int],
) -> list[dict[str, Any]]:
    """Of each agent, whose valid rows are put together by a stable sort."""
    facets_of = {pk: facets for facets, pk in settings.items()}
    setting = rows["setting"].to_numpy()[rows["valid"].to_numpy()]
    valid = rows["valid"].to_numpy()
    run = np.zeros(int(valid.sum()), np.int64)
    for name in ("submission", "setting", "trial"):
        labels, codes = np.unique(rows[name].to_numpy()[valid], return_inverse=True)
        run = run * len(labels) + codes
    by_agent = np.argsort(agent[valid], kind="stable")
    ends = np.searchsorted(agent[valid][by_agent], np.arange(n_agents + 1))
    outcome = rows["value"].cast(pa.float64()).to_numpy(zero_copy_only=False)[valid]
    submission, told = rows["submission"].to_numpy()[valid], []
    for part in (by_agent[start:end] for start, end in pairwise(ends)):
        stated = {pk: facets_of[pk] for pk in np.unique(setting[part]).tolist()}
        alike = part[np.isin(setting[part], _one_condition(setting[part], stated))]
        found = consistency(task=task[valid][alike], run=run[alike], outcome=outcome[alike])
        gains = only_better(task=task[valid][part], submission=submission[part], outcome=outcome[part])
        told.append(found | {"levels": _levels(list(stated.values())), "gains": gains})
    return told


def _one_condition(setting: np.ndarray, stated: dict[int, tuple[object, ...]]) -> list[int]:
    """The settings of the prompt, judge and temperature with most rows; trials repeat under one alone."""
    counts: Counter[tuple[object, ...]] = Counter()
    for pk, facets in stated.items():
        counts[facets[:RUN]] += int(np.count_nonzero(setting == pk))
    most = min(counts, key=lambda condition: (-counts[condition], repr(condition)), default=())
    return [pk for pk, facets in stated.items() if facets[:RUN] == most]


def _levels(settings: list[tuple[object, ...]]) -> dict[str, int]:
    """Over how many prompts, judges and runs an agent's mean is taken; not stated counts as a level."""
    return {facet: max(1, len({setting[at] for setting in settings})) for facet, at in FACETS.items()}


def _nulls(values: np.ndarray) -> list[Any]:
    """The values with None for NaN, as the database has them."""
    return [None if value != value else value for value in values.tolist()]
