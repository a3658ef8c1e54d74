"""Replay: a history fed through the service as it would have come, beside what full evaluation says.

A private benchmark of its own takes the agents of a file in order of date, the clock standing at each date:
every agent asks what to run and delivers as much of what the file holds, a board is published, the monitors
are asked, the runs that they ask for are answered from the file, and the reselections that they ask for are
approved. A second private benchmark is given everything at once: what it measures is the truth.

Everything goes through the services that submitters, operators and the scheduler use; the scheduler itself
leaves a replayed benchmark alone, for its clock is another.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from django.db import transaction

from leaderboard.boards.reading import standings_of
from leaderboard.catalog.models import Agent, Assigning, Benchmark, Policy, Visibility
from leaderboard.catalog.queries import policy_in_force
from leaderboard.catalog.rules import RULES
from leaderboard.catalog.services import AgentDescription, ensure_agents, ensure_tasks
from leaderboard.errors import Conflict
from leaderboard.operations import reruns, reselections
from leaderboard.operations.assignments import asked_by, assign, settle
from leaderboard.operations.drifting import RESELECT, look
from leaderboard.operations.loading import load
from leaderboard.operations.models import (
    Alert,
    Assignment,
    JobRun,
    JobStatus,
    Mode,
    RerunAgent,
    RerunStatus,
    Reselection,
    ReselectionStatus,
)
from leaderboard.operations.services import CannotCompute, NothingToRank, recompute
from leaderboard.operations.staging import decisions_of
from leaderboard.studies.agreements import (
    Came,
    agreement_of,
    measured_scores,
    replay_of,
    scores_shown,
)
from leaderboard.studies.answers import Standings
from leaderboard.studies.models import TaskSubset
from leaderboard.submissions.delivering import Part, Placed, Terms, drafted, record
from leaderboard.submissions.parsing.flat import FlatFile
from leaderboard.submissions.services import append_changes

NOON = time(12, tzinfo=UTC)
WEEK = timedelta(days=7)
N_ROUNDS = 4  # of asking the monitors again on one day
VARIANTS = ("hysteresis", "plain")  # the first that changes anything is approved
Progress = Callable[[int, int], None]


class Undated(Conflict):
    """A replay needs the date of every agent."""


@dataclass(frozen=True)
class Replayed:
    """The private benchmark that was fed, and what came of it."""

    benchmark: Benchmark
    report: dict[str, Any]


def replay(*, flat: FlatFile, slug: str, policy: Policy | None, progress: Progress | None = None) -> Replayed:
    """Feed a file through the service by these rules, or by those of a new benchmark."""
    history = _History.of(flat)
    truth = _truth(flat, slug=f"{slug}-replay-full", policy=policy, as_of=history.days[-1])
    fed = _Fed.begin(history, slug=f"{slug}-replay", policy=policy, truth=truth)
    n_agents = len(flat.agents)
    for day, names in history.by_day():
        fed.day(day, names)
        if progress:
            progress(len(fed.batches), n_agents)
    return Replayed(fed.benchmark, fed.report())


# ------------------------------------------------------------------------------------------------ the history


@dataclass(frozen=True, eq=False)
class _History:
    """The agents of a file in order of date, and what each has run."""

    flat: FlatFile
    dates: dict[str, datetime]  # by agent, at noon

    @classmethod
    def of(cls, flat: FlatFile) -> "_History":
        dates: dict[str, datetime] = {}
        for i, name in enumerate(flat.agents):
            said = flat.submitted_at[flat.agent == i]
            said = said[~np.isnat(said)]
            if not said.size:
                raise Undated(f"{name!r} has no date: its place in time is not known.")
            dates[name] = datetime.combine(said.min().item().date(), NOON)
        return cls(flat, dates)

    @property
    def days(self) -> list[datetime]:
        return sorted(set(self.dates.values()))

    def by_day(self) -> Iterator[tuple[datetime, list[str]]]:
        order = sorted((day, name) for name, day in self.dates.items())
        for day, group in groupby(order, key=lambda one: one[0]):
            yield day, [name for _, name in group]

    def described(self, name: str) -> AgentDescription:
        i = self.flat.agents.index(name)
        return AgentDescription(name, self.flat.scaffolds[i], self.flat.models[i])


def _private(slug: str, title: str, policy: Policy | None, since: datetime) -> Benchmark:
    """Make a benchmark that only staff see, whose first policy is older than its first delivery."""
    n_before = Benchmark.objects.filter(slug__regex=rf"^{slug}-\d+$").count()
    benchmark = Benchmark.objects.create(
        slug=f"{slug}-{n_before + 1}", title=title, visibility=Visibility.PRIVATE, replayed=True
    )
    rules = {name: getattr(policy, name) for name in RULES} if policy else {}
    Policy.objects.create(benchmark=benchmark, number=1, created_at=since - WEEK, **rules)
    return benchmark


def _truth(flat: FlatFile, *, slug: str, policy: Policy | None, as_of: datetime) -> dict[str, float]:
    """Full scores by full evaluation, by agent."""
    benchmark = _private(slug, f"{flat.benchmark}, everything", policy, as_of)
    load(flat=flat, slug=benchmark.slug, as_of=as_of)
    board, _ = recompute(benchmark=benchmark, as_of=as_of)
    return measured_scores(standings_of(board))


# ------------------------------------------------------------------------------------------------ the service


@dataclass(frozen=True, eq=False)
class _Source:
    """The rows of the file with their ids, by agent and task."""

    placed: Placed
    of_agent: dict[str, pa.Table]

    @classmethod
    @transaction.atomic
    def of(cls, history: _History, benchmark: Benchmark) -> "_Source":
        flat = history.flat
        ensure_tasks(
            benchmark=benchmark,
            categories=dict(zip(flat.tasks, flat.categories, strict=True)),
            groups=dict(zip(flat.tasks, flat.groups, strict=True)),
        )
        append_changes(benchmark=benchmark, changes=[], tasks_came=True)
        described = [history.described(name) for name in flat.agents]
        agents = ensure_agents(benchmark=benchmark, descriptions=described, owner=None)
        placed = Placed.of(flat, benchmark=benchmark, agents=agents)
        mine = placed.rows["agent"]
        rows = {name: placed.rows.filter(pc.equal(mine, agent.pk)) for name, agent in agents.items()}
        return cls(placed, rows)

    def rows(self, name: str, tasks: Collection[int] | None, but: Collection[int]) -> pa.Table:
        """What the file holds of an agent on these tasks, None being all, and what it has not delivered."""
        rows = self.of_agent[name]
        if tasks is not None:
            rows = rows.filter(pc.is_in(rows["task"], pa.array(list(tasks), pa.int32())))
        return rows.filter(pc.invert(pc.is_in(rows["task"], pa.array(list(but), pa.int32()))))

    def cost(self, rows: pa.Table) -> float:
        return pc.sum(rows["cost_usd"]).as_py() or 0.0 if "cost_usd" in rows.column_names else 0.0


@dataclass(eq=False)
class _Fed:
    """A benchmark on its way through the history."""

    history: _History
    benchmark: Benchmark
    source: _Source
    truth: dict[str, float]
    batches: dict[str, list[list[int]]] = field(default_factory=dict)  # tasks, by agent
    published: dict[str, tuple[float, float, float]] = field(default_factory=dict)  # score and 95% interval
    usd: float = 0.0
    drawn_at: datetime | None = None
    boards: list[dict[str, Any]] = field(default_factory=list)
    last: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def begin(cls, history: _History, *, slug: str, policy: Policy | None, truth: dict[str, float]) -> "_Fed":
        benchmark = _private(slug, f"{history.flat.benchmark}, replayed", policy, history.days[0])
        return cls(history, benchmark, _Source.of(history, benchmark), truth)

    def day(self, day: datetime, names: Sequence[str]) -> None:
        """Let these agents ask and deliver, publish, and do what the scheduler and an operator would."""
        for name in names:
            self._submit(name, day)
            if self.is_staged:
                self._publish(day)
                while self._answer(day):  # who is recalled runs the rest at once
                    self._publish(day)
        self._publish(day)
        self._watch(day)
        if self.drawn_at is None or day - self.drawn_at >= WEEK:
            self.drawn_at = day
            reruns.draw_validation_runs(benchmark=self.benchmark, as_of=day)
            if self._answer(day):
                self._watch(day)
        self._publish(day)

    def _submit(self, name: str, day: datetime) -> None:
        """Ask for an assignment and deliver what the file holds of it, batch after batch."""
        described = self.history.described(name)
        while True:
            assignment = assign(benchmark=self.benchmark, agent=described, by=None, as_of=day)
            if not self._deliver(assignment.agent, assignment.tasks, day, assignment):
                return
            if assignment.mode != Mode.STAGED:
                return

    def _has_run(self, name: str) -> set[int]:
        return {task for batch in self.batches.get(name, ()) for task in batch}

    @property
    def is_staged(self) -> bool:
        return policy_in_force(self.benchmark).assignment == Assigning.STAGED

    @transaction.atomic
    def _deliver(
        self, agent: Agent, tasks: Collection[int] | None, day: datetime, assignment: Assignment | None = None
    ) -> bool:
        """Return whether the file holds anything of that."""
        rows = self.source.rows(agent.name, tasks, self._has_run(agent.name))
        if not rows.num_rows:
            return False
        part = Part(rows=rows, submitted_at=self.history.dates[agent.name], imprecise=False)
        asked = asked_by(assignment, agent, day) if assignment else None
        study = assignment.study_id if assignment else None
        terms = Terms(as_of=day, loaded=True, reason="replay", asked=asked, study=study)
        submission = drafted(part, placed=self.source.placed, terms=terms)
        changes = record(submission, part, terms=terms)
        if assignment:
            n = rows.group_by("task").aggregate([([], "count_all")]).rename_columns(["task", "n"])
            settle(assignment=assignment, submission=submission, outcomes=n, as_of=day)
        append_changes(benchmark=self.benchmark, changes=changes)
        self.batches.setdefault(agent.name, []).append(pc.unique(rows["task"]).to_pylist())
        self.usd += self.source.cost(rows)
        return True

    def _watch(self, day: datetime) -> None:
        """Ask the monitors until they, the runs and the reselections that they ask for are at rest."""
        for _ in range(N_ROUNDS):
            look(benchmark=self.benchmark, as_of=day)
            if not (self._answer(day) | self._reselect(day)):
                return
            self._publish(day)

    def _answer(self, day: datetime) -> bool:
        """Deliver the full runs that open requests ask for; return whether there were any."""
        waiting = RerunAgent.objects.filter(
            request__benchmark=self.benchmark, request__status=RerunStatus.OPEN, arrived_at=None
        )
        asked = list(waiting.select_related("agent"))
        for one in asked:
            self._deliver(one.agent, None, day)
        if asked:
            reruns.settle_requests(benchmark=self.benchmark, as_of=day)
        return bool(asked)

    def _reselect(self, day: datetime) -> bool:
        """Propose what an alert asks for and approve it; return whether a subset was activated."""
        run = JobRun.objects.filter(kind=RESELECT, benchmark=self.benchmark, status=JobStatus.QUEUED).first()
        if run is None:
            return False
        run.status, run.ended_at = JobStatus.DONE, day
        try:
            run.told = f"{self._approved(run, day)} is in use"
        except Conflict as refusal:
            run.told = f"{refusal}"
        run.save(update_fields=["status", "ended_at", "told"])
        return run.told.endswith("is in use")

    def _approved(self, run: JobRun, day: datetime) -> TaskSubset:
        proposal = reselections.propose(
            benchmark=self.benchmark, by=None, reason=run.reason, as_of=day, alert=_alert_behind(run)
        )
        variants = proposal.content["variants"]
        chosen = next(
            name
            for name in VARIANTS
            if variants.get(name, {}).get("entering") or variants[name].get("leaving")
        )
        return reselections.approve(
            reselection=proposal, variant=chosen, by=None, reason="approved by the replay", as_of=day
        )

    def _publish(self, day: datetime) -> None:
        """Publish where there is something new, and note how far the board agrees with the truth."""
        try:
            board, is_new = recompute(benchmark=self.benchmark, as_of=day)
        except (CannotCompute, NothingToRank):
            return
        if not is_new:
            return
        said = standings_of(board)
        self._keep_estimates(said)
        self.last = agreement_of(said, self.truth)
        told = {
            "date": f"{day:%Y-%m-%d}",
            "k": said.subset.size if said.subset else None,
            "phase": board.phase,
            "n_tasks_run": self.n_run,
            "n_tasks_full": self.n_full,
            "saved_usd": self.saved_usd,
            **self.last,
        }
        if self.boards and self.boards[-1]["date"] == told["date"]:
            self.boards.pop()  # the last board of a day is kept
        self.boards.append(told)

    def _keep_estimates(self, said: Standings) -> None:
        """Keep the first estimate that a board shows of an agent."""
        for line in said.agents:
            at = line.at["full"]
            if at.estimated and at.score is not None and at.lower is not None and at.upper is not None:
                self.published.setdefault(line.agent, (at.score, at.lower, at.upper))

    # ------------------------------------------------------------------------------------------- figures

    def _replay(self) -> dict[str, Any]:
        """Figures and verdict; a stopped agent's estimate is that with which it was stopped."""
        stopped = {
            name: (last["score"], last["lower"], last["upper"])
            for name, (_, made) in decisions_of(self.benchmark).items()
            for last in [one for one in made if one["stage"] != "running"][:1]
        }
        published, names = self.published | stopped, dict(self.benchmark.tasks.values_list("id", "name"))
        scores = scores_shown(standings_of(self.benchmark.boards.latest("number")))
        came = {
            name: Came(
                [[names[task] for task in batch] for batch in batches],
                scores[name],
                published.get(name),
            )
            for name, batches in self.batches.items()
            if name in scores
        }
        return replay_of(self.history.flat, policy_in_force(self.benchmark), came)

    @property
    def n_run(self) -> int:
        return sum(len(batch) for batches in self.batches.values() for batch in batches)

    @property
    def n_full(self) -> int:
        """Tasks that full evaluation of the same agents would have run, as far as the file holds them."""
        return sum(pc.count_distinct(self.source.of_agent[name]["task"]).as_py() for name in self.batches)

    @property
    def saved_usd(self) -> float | None:
        """None where the file tells no cost."""
        full = sum(self.source.cost(self.source.of_agent[name]) for name in self.batches)
        return full - self.usd if full else None

    def report(self) -> dict[str, Any]:
        alerts = self.benchmark.alerts.order_by("id")
        activated = self.benchmark.reselections.filter(status=ReselectionStatus.APPROVED).order_by("id")
        return {
            "agents": len(self.batches),
            **self._replay(),
            "n_tasks_run": self.n_run,
            "n_tasks_full": self.n_full,
            "saved_share": 1 - self.n_run / self.n_full,
            "saved_usd": self.saved_usd,
            "alerts": [_alert(one) for one in alerts],
            "reselections": [_reselection(one) for one in activated],
            **{name: self.last[name] for name in ("pairs_correct", "rho", "top5_overlap")},
            "boards": self.boards,
        }


def _alert_behind(run: JobRun) -> Alert | None:
    """The alert that asked for a reselection, if one did."""
    kind, _, number = run.about.partition(" ")
    return Alert.objects.filter(pk=number).first() if kind == "alert" else None


def _alert(alert: Alert) -> dict[str, Any]:
    return {
        "monitor": alert.monitor,
        "level": alert.level,
        "opened": f"{alert.opened_at:%Y-%m-%d}",
        "closed": f"{alert.closed_at:%Y-%m-%d}" if alert.closed_at else None,
        "reason": alert.evidence["reason"],
        "closed_reason": alert.closed_reason,
    }


def _reselection(one: Reselection) -> dict[str, Any]:
    chosen = one.content["variants"][one.variant]
    return {
        "date": f"{one.decided_at:%Y-%m-%d}",
        "variant": one.variant,
        "k": chosen["k"],
        "n_entering": len(chosen["entering"]),
        "n_leaving": len(chosen["leaving"]),
        "reason": one.reason,
    }
