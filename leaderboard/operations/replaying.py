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

from leaderboard.boards.models import Board
from leaderboard.boards.reading import standings_of
from leaderboard.catalog.models import Agent, Benchmark, Policy, Visibility
from leaderboard.catalog.rules import RULES
from leaderboard.catalog.services import AgentDescription, ensure_agents, ensure_tasks
from leaderboard.errors import Conflict
from leaderboard.operations import reselections, reruns
from leaderboard.operations.assignments import assign, deliver_for
from leaderboard.operations.drifting import RESELECT, look
from leaderboard.operations.loading import load
from leaderboard.operations.models import JobRun, JobStatus, RerunAgent, RerunStatus
from leaderboard.operations.services import CannotCompute, NothingToRank, recompute
from leaderboard.studies.agreements import agreement_of, measured_scores
from leaderboard.submissions.delivering import Part, Placed, Terms, record
from leaderboard.submissions.parsing.flat import FlatFile
from leaderboard.submissions.services import append_changes

NOON = time(12, tzinfo=UTC)
WEEK = timedelta(days=7)
VARIANTS = ("hysteresis", "plain")  # the first that changes anything is approved
Progress = Callable[[int, int], None]


class Undated(Conflict):
    """A replay needs the date of every agent."""


@dataclass(frozen=True)
class Replayed:
    """The private benchmark that was fed, and what came of it."""

    benchmark: Benchmark
    report: dict[str, Any]


def replay(
    *, flat: FlatFile, slug: str, policy: Policy | None, progress: Progress | None = None
) -> Replayed:
    """Feed a file through the service by these rules, or by those of a new benchmark."""
    history = _History.of(flat)
    truth = _truth(flat, slug=f"{slug}-replay-full", policy=policy, as_of=history.days[-1])
    fed = _Fed.begin(history, slug=f"{slug}-replay", policy=policy, truth=truth)
    n_agents = len(flat.agents)
    for day, names in history.by_day():
        fed.day(day, names)
        if progress:
            progress(fed.n_agents, n_agents)
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
    n_before = Benchmark.objects.filter(slug__startswith=slug).count()
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


# ------------------------------------------------------------------------------------------------- the service


@dataclass(eq=False)
class _Fed:
    """A benchmark on its way through the history."""

    history: _History
    benchmark: Benchmark
    placed: Placed
    truth: dict[str, float]
    costs: dict[int, float] | None  # by row of the file
    ran: set[tuple[int, int]] = field(default_factory=set)  # (agent, task)
    n_agents: int = 0
    usd: float = 0.0
    usd_full: float = 0.0
    n_full: int = 0
    drawn_at: datetime | None = None
    boards: list[dict[str, Any]] = field(default_factory=list)
    latest: Board | None = None
