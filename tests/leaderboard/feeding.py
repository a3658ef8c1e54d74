"""A history fed through the service as it would have come: each agent asks, delivers and is published."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from django.db import transaction

from leaderboard.boards.queries import standings_of
from leaderboard.catalog.models import Benchmark, Policy, Visibility
from leaderboard.catalog.queries import policy_in_force
from leaderboard.catalog.rules import RULES
from leaderboard.catalog.services import AgentDescription, ensure_agents, ensure_tasks
from leaderboard.errors import Refusal
from leaderboard.operations import reruns
from leaderboard.operations.assignments import assign, link_delivery, tasks_asked_for
from leaderboard.operations.models import RerunAgent, RerunStatus
from leaderboard.operations.services import recompute
from leaderboard.submissions.parsing.flat import FlatFile
from leaderboard.submissions.services import MatchedRows, append_changes, draft, record

NOON = time(12, tzinfo=UTC)


@dataclass
class Fed:
    """A benchmark on its way through the history of a file."""

    flat: FlatFile
    benchmark: Benchmark
    placed: MatchedRows
    batches: dict[str, list[list[int]]] = field(default_factory=dict)

    def scores(self):
        """Full scores on the last board, by agent."""
        board = standings_of(self.benchmark.boards.latest("number"))
        return {line.agent: line.at["full"].score for line in board.agents}

    def come(self, name, day):
        """Let an agent ask and deliver until nothing is left, then publish and answer recalls."""
        i = self.flat.agents.index(name)
        described = AgentDescription(name, self.flat.scaffolds[i], self.flat.models[i])
        while True:
            assignment = assign(benchmark=self.benchmark, agent=described, by=None, as_of=day)
            if not self.deliver(assignment.agent, assignment.tasks, day, assignment):
                break
            if assignment.mode != "staged":
                break
        self.publish(day)
        while self.answer(day):
            self.publish(day)

    @transaction.atomic
    def deliver(self, agent, tasks, day, assignment=None):
        rows = self.placed.rows.filter(pc.equal(self.placed.rows["agent"], agent.pk))
        has_run = [task for batch in self.batches.get(agent.name, ()) for task in batch]
        if tasks is not None:
            rows = rows.filter(pc.is_in(rows["task"], pa.array(tasks, pa.int32())))
        rows = rows.filter(pc.invert(pc.is_in(rows["task"], pa.array(has_run, pa.int32()))))
        if not rows.num_rows:
            return False
        policy = policy_in_force(self.benchmark)
        asked = tasks_asked_for(assignment, agent, policy, day) if assignment else None
        study = assignment.study_id if assignment else None
        of = {"submitted_at": day, "received_at": day, "loaded": True}
        submission = draft(rows, matched=self.placed, **of, asked=asked, study_id=study)
        changes = record([(submission, rows, ())], reason="fed")
        if assignment:
            n = rows.group_by("task").aggregate([([], "count_all")]).rename_columns(["task", "n"])
            link_delivery(assignment=assignment, submission=submission, outcomes=n, as_of=day)
        append_changes(benchmark=self.benchmark, changes=changes)
        self.batches.setdefault(agent.name, []).append(pc.unique(rows["task"]).to_pylist())
        return True

    def answer(self, day):
        """Deliver the rest of whoever is recalled; return whether there was anybody."""
        waiting = RerunAgent.objects.filter(
            request__benchmark=self.benchmark, request__status=RerunStatus.OPEN, arrived_at=None
        )
        asked = list(waiting.select_related("agent"))
        for one in asked:
            self.deliver(one.agent, None, day)
        if asked:
            reruns.close_answered_requests(benchmark=self.benchmark, as_of=day)
        return bool(asked)

    def publish(self, day):
        try:
            recompute(benchmark=self.benchmark, as_of=day)
        except Refusal as refusal:
            if refusal.code not in ("cannot_compute", "nothing_to_rank"):  # too few have come
                raise


def fed(flat, *, policy, slug="fed"):
    """Feed a file through the service by these rules, in the order of (date, name)."""
    days = days_of(flat)
    history = begun(flat, policy, slug, min(days.values()))
    for name in sorted(days, key=lambda name: (days[name], name)):
        history.come(name, days[name])
    return history


def days_of(flat):
    days = {}
    for i, name in enumerate(flat.agents):
        dates = flat.submitted_at[flat.agent == i]
        days[name] = datetime.combine(dates[~np.isnat(dates)].min().item().date(), NOON)
    return days


@transaction.atomic
def begun(flat, policy, slug, day):
    benchmark = Benchmark.objects.create(
        slug=slug, title=flat.benchmark, visibility=Visibility.PRIVATE, replay={}
    )
    rules = {name: getattr(policy, name) for name in RULES}
    Policy.objects.create(benchmark=benchmark, number=1, created_at=day - timedelta(days=7), **rules)
    ensure_tasks(
        benchmark=benchmark,
        categories=dict(zip(flat.tasks, flat.categories, strict=True)),
        groups=dict(zip(flat.tasks, flat.groups, strict=True)),
    )
    append_changes(benchmark=benchmark, changes=[], tasks_came=True)
    described = [
        AgentDescription(name, flat.scaffolds[i], flat.models[i]) for i, name in enumerate(flat.agents)
    ]
    agents = ensure_agents(benchmark=benchmark, descriptions=described, owner=None)
    return Fed(flat, benchmark, MatchedRows(flat, benchmark=benchmark, agents=agents))
