"""Rows to the record of a benchmark, now or as of an earlier data version.

What was delivered up to a version never changes, so that nothing is locked while outcomes are read.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from itertools import islice
from typing import Any, cast

import numpy as np

from analytics.names import alike
from analytics.record import (
    MIN_AGENTS,
    Counting,
    Record,
    Voter,
    offer,
    ranked_text,
    record,
    resolve,
    shared_tasks,
    universe,
)
from analytics.record import About as About
from analytics.record.rows import NEVER
from leaderboard.catalog.models import Agent, Benchmark, MissingPlaces, Policy, Task, Trust
from leaderboard.catalog.queries import agents_of, policy_in_force
from leaderboard.studies.history import Moment, is_active
from leaderboard.studies.models import AgentScores, StagedStudy, TaskSubset
from leaderboard.studies.queries import active_subset
from leaderboard.studies.record_cache import AgentRowCache, RecentScores, Stale, by_agent, voter_of
from leaderboard.studies.rules import counting_of, rules_of
from leaderboard.studies.staged_steps import DRAWN, STOPPED, degrees_of, step
from leaderboard.submissions import queries as submissions
from leaderboard.submissions.models import Status
from leaderboard.submissions.queries import AcceptedSubmission
from selection.prior import GOING_ON, OVER, Staged
from selection.rules import Rules
from selection.single_tasks import delivered_means
from selection.standings import words
from selection.standings.choice import n_complete
from selection.standings.placing import marked

N_TRIES = 20
ENDED = (STOPPED, DRAWN)  # one that was drawn has its estimate until it delivers some of the rest
MAX_STORED = 100  # agents in one statement: each has 50 bytes for every task


@dataclass(frozen=True)
class Snapshot:
    """What one data version holds; agents and tasks stand in the order of the record."""

    benchmark: Benchmark
    policy: Policy
    rules: Rules
    data_version: int
    record: Record
    compared: list[dict[str, Any]]
    agents: tuple[Agent, ...]
    task_ids: list[int]
    deliveries: list[submissions.AcceptedSubmission] = field(repr=False)
    stale: Stale | tuple[()] = field(repr=False)
    staged: Mapping[str, Staged] = field(default_factory=dict)

    @property
    def n_complete(self) -> int:
        return n_complete(self.record)

    @property
    def offer(self) -> str:
        """Offer to rank on common tasks, where fewer than half of the agents asked for all have them all."""
        return offer(self.record)

    @property
    def shared_tasks(self) -> tuple[str, ...]:
        """Names of the tasks with an outcome from at least 95% of the agents that were asked for all."""
        return shared_tasks(self.record)


class Reader:
    """Reads one benchmark at one data version, and as it was before; `kept` are rows read earlier."""

    def __init__(self, benchmark: Benchmark, recent: RecentScores | None = None) -> None:
        for _ in range(N_TRIES):
            self.benchmark = Benchmark.objects.get(pk=benchmark.pk)
            self.policy = policy_in_force(self.benchmark)
            self.tasks = list(self.benchmark.tasks.order_by("name"))
            self.agents = {agent.pk: agent for agent in agents_of(self.benchmark)}
            if Benchmark.objects.get(pk=benchmark.pk).data_version == self.data_version:
                break
        else:
            raise RuntimeError("Agents and tasks changed faster than they could be read; try again.")
        self.cache = AgentRowCache(self.benchmark, recent)

    @property
    def data_version(self) -> int:
        return self.benchmark.data_version

    def now(self, subset: TaskSubset | None) -> Snapshot | None:
        """The present record, under the conditions that were fixed with the subset; None without outcomes."""
        tasks = [task for task in self.tasks if task.retired_at is None]
        return self._snapshot(self.data_version, self.policy, tasks, rules_of(self.policy, subset))

    def counted(self, counting: Counting) -> Record:
        """The present record, its outcomes counted in another way; there are some."""
        tasks = [task for task in self.tasks if task.retired_at is None]
        rules = replace(rules_of(self.policy), counting=counting)
        snapshot = self._snapshot(self.data_version, self.policy, tasks, rules)
        assert snapshot is not None
        return snapshot.record

    def at(
        self, moment: Moment, subset: TaskSubset | None = None, *, tasks: Collection[int] | None = None
    ) -> Snapshot | None:
        """The record as it was at a moment, on the tasks active then, or on those with these ids."""
        rules = rules_of(moment.policy, subset)
        if tasks is not None:
            rules = replace(rules, counting=replace(rules.counting, universe="all"))
        active = [
            task
            for task in self.tasks
            if (
                is_active(task.since, task.retired_at, moment.data_version, moment.at)
                if tasks is None
                else task.pk in tasks
            )
        ]
        return self._snapshot(moment.data_version, moment.policy, active, rules)

    def _snapshot(self, version: int, policy: Policy, tasks: list[Task], rules: Rules) -> Snapshot | None:
        every = submissions.deliveries(self.benchmark, upto=version, withdrawn=True)
        deliveries = [one for one in every if not one.withdrawn]
        if not deliveries or not tasks:
            return None
        n_known, (tasks, universe_text) = len(tasks), _universe(tasks, rules.counting)
        delivered, standing = by_agent(every), by_agent(deliveries)
        trusted = submissions.trusted_accounts(self.benchmark, upto=version)
        voters = {pk: voter_of(self.agents[pk], mine, trusted) for pk, mine in delivered.items()}
        compared, rows, stale = self.cache.of(delivered, tasks, rules.counting, voters, data_version=version)
        withheld = submissions.withheld(self.benchmark, policy=policy, upto=version)
        approvals = submissions.approvals(self.benchmark, upto=version)
        again = submissions.resubmitted(self.benchmark, policy=policy, upto=version)
        taken_back = [self.agents[pk] for pk in withheld if pk in self.agents and self.agents[pk].owner_id]
        took_back = submissions.withdrawn_by_owner(self.benchmark, upto=version)
        gone = took_back.difference(standing)
        owned_and_gone = [self.agents[pk] for pk in gone if pk in self.agents and self.agents[pk].owner_id]
        whole = record(
            [
                replace(
                    _about(self.agents[pk], standing.get(pk, ()), approvals.get(pk, -1), voters[pk]),
                    withheld=withheld.get(pk, ""),
                    resubmitted=pk in again,
                    same_owner_as_withheld=pk not in withheld
                    and any(_is_version(self.agents[pk], other) for other in taken_back),
                    n_taken_back=sum(_is_version(self.agents[pk], one) for one in owned_and_gone),
                    took_back=pk in took_back,
                )
                for pk in delivered
            ],
            rows,
            tasks=[task.name for task in tasks],
            counting=rules.counting,
            compared=compared,
            universe=universe_text,
            n_known=n_known,
            groups=[task.group for task in tasks],
            categories=[task.category for task in tasks],
        )
        if not whole.n_agents:
            return None
        by_name = {self.agents[pk].name: self.agents[pk] for pk in delivered}
        loads = submissions.first_lost_loads(self.benchmark, version)
        first = [loads.get(by_name[name].pk, NEVER) for name in whole.table.agents]
        whole = replace(whole, first=np.minimum(whole.first, first))
        chosen = {
            self.agents[pk].name: one
            for pk, mine in standing.items()
            if (one := chosen_tasks_of(mine, self.tasks))
        }
        staged = staged_of(whole, chosen)
        return Snapshot(
            benchmark=self.benchmark,
            policy=policy,
            rules=rules,
            data_version=version,
            record=marked(whole, staged),
            compared=[condition._asdict() for condition in compared.conditions],
            agents=tuple(by_name[name] for name in whole.table.agents),
            task_ids=[task.pk for task in tasks],
            deliveries=deliveries,
            stale=stale,
            staged=staged,
        )


def resolve_missing(policy: Policy) -> None:
    """Let the data decide what missing outcomes count as, of a policy not stored yet that leaves it to them.

    Nothing is decided under five agents that an operator loaded.
    """
    loaded = policy.benchmark.agents.filter(submissions__loaded=True, submissions__status=Status.ACCEPTED)
    if policy.missing != MissingPlaces.AUTO or loaded.distinct().count() < MIN_AGENTS:
        return
    reader = Reader(policy.benchmark)
    found = resolve(counting_of(policy, active_subset(policy.benchmark)), reader.counted)
    if found.reason:
        policy.missing, policy.resolved_from = found.counting.missing, f"auto: {found.reason}"
        policy.universe = None if found.counting.universe == "all" else [*found.counting.universe]


def resolved_by_complete(n_agents: int, n_tasks: int) -> str:
    """Return what `resolve_missing` says where each of these agents has a result of each task."""
    return f"auto: {ranked_text(n_agents, n_agents, n_tasks)}" if n_agents >= MIN_AGENTS else ""


ChosenTasks = tuple[int, list[str], int]  # the study that chose them, these in order, trials of each


def chosen_tasks_of(mine: Sequence[AcceptedSubmission], tasks: Collection[Task]) -> ChosenTasks | None:
    """What was chosen for an agent, as its deliveries tell at any data version; None where nothing was."""
    by_study = [one.submission for one in mine if one.submission.study_id is not None]
    if not by_study:
        return None
    names = {task.pk: task.name for task in tasks}
    longest = max(by_study, key=lambda one: len(one.asked or ()))
    assert longest.study_id is not None
    return longest.study_id, [names[pk] for pk in longest.asked or ()], longest.n_trials or 1


def staged_of(record: Record, chosen: Mapping[str, ChosenTasks]) -> dict[str, Staged]:
    studies = StagedStudy.objects.select_related("policy").in_bulk({pk for pk, *_ in chosen.values()})
    place = {name: i for i, name in enumerate(record.table.agents)}
    active, staged = set(record.table.tasks), dict[str, Staged]()
    for name, (pk, tasks, n_trials) in chosen.items():
        if name not in place:
            continue
        study, means = studies[pk], delivered_means(record, place[name], n_trials)
        now = step(study, tasks_run=tasks, means=means, active=active, agent=name)
        is_estimated = now.stage in ENDED and now.score is not None
        staged[name] = Staged(
            study=(study.data_version, study.policy.number),
            n=int(study.result["agents"]),
            reason=OVER if is_estimated else GOING_ON,
        )
        if is_estimated:
            estimate = {field: getattr(now, field) for field in ("score", "lower", "upper", "se")}
            staged[name] = replace(staged[name], k=now.n_run, degrees=degrees_of(study), **estimate)
    return staged


def _is_version(agent: Agent, other: Agent) -> bool:
    """Whether the two have one owner, and scaffolds and models that read the same."""
    return (
        agent.owner_id == other.owner_id
        and alike(agent.scaffold.name, other.scaffold.name)
        and alike(agent.model.name, other.model.name)
    )


def _universe(tasks: list[Task], counting: Counting) -> tuple[list[Task], str]:
    """The tasks of the universe, and which they are in words; it may name tasks that were retired since."""
    names = [task.name for task in tasks]
    if not isinstance(counting.universe, str):
        counting = replace(counting, universe=tuple(sorted({*counting.universe} & {*names})))
    positions, text = universe(names, np.zeros(len(names), np.int64), 0, counting)
    return [tasks[j] for j in positions.tolist()], text


def store_scores(scores: Iterable[AgentScores], recent: RecentScores | None = None) -> None:
    """Keep what was read, so that the next recompute reads only agents that changed."""
    rows = iter(scores)
    while some := list(islice(rows, MAX_STORED)):
        AgentScores.objects.bulk_create(
            some,
            update_conflicts=True,
            unique_fields=["agent"],
            update_fields=["key", "under", "data_version", "n_tasks", "arrays", "content"],
        )
        if recent:
            recent.add(some)


def _about(
    agent: Agent, mine: Sequence[submissions.AcceptedSubmission], approved_at: int, voter: Voter
) -> About:
    """By what stands of it; an approval holds for what was delivered before it."""
    trust = min((one.trust for one in mine), key=[*Trust].index, default=Trust.SELF_REPORTED)
    came = [one.submission for one in mine]
    dated = [(one.submitted_at.astimezone(UTC), one.imprecise) for one in came if one.submitted_at]
    earliest, loaded = min(dated, default=None), bool(mine) and all(one.loaded for one in came)
    return About(
        name=agent.name,
        scaffold=agent.scaffold.name,
        model=agent.model.name,
        version=agent.version,
        organisation=agent.organisation,
        weights=agent.weights,
        links={name: link for one in came for name, link in one.links.items()},
        run_by="operator" if loaded else "self",
        submitted_at=earliest[0].date().isoformat() if earliest else None,
        approved=approved_at >= max((one.arrival for one in mine), default=0),
        backdated=any(one.backdated for one in came),
        imprecise=bool(earliest and earliest[1]),
        trust=cast(Any, trust.value),
        account="" if loaded else voter.account,
        vouched=voter.vouched,
    )


def load_notes(now: Snapshot, loaded: Collection[str]) -> list[str]:
    """Say what does not count as it stands: absent trials, and outcomes of these agents under conditions."""
    whole, lacking = now.record, list[str]()
    elsewhere: defaultdict[str, list[str]] = defaultdict(list)
    for about, condition, n in zip(whole.about, whole.condition, whole.n_lacking.tolist(), strict=True):
        if condition and about.name in loaded:
            (lacking if n else elsewhere[condition]).append(about.name)
    sentences = [*whole.uneven, words.compared_text(whole.compared, whole.left_out)]
    sentences += [words.uncounted_agents(ran, whole.compared, who) for ran, who in sorted(elsewhere.items())]
    sentences += [words.lacking_agents(whole.compared, lacking)] if lacking else []
    return [words.sentence(one) for one in sentences if one]
