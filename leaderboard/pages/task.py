"""The page of one task: who passes it, since when, and whether it tells agents apart."""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from leaderboard.catalog.models import Agent, Benchmark, Task
from leaderboard.pages.access import for_all, visible
from leaderboard.pages.caching import cached_page
from leaderboard.pages.ordered_outcomes import OrderedOutcomes, ordered_outcomes
from leaderboard.plots.chart import Chart
from leaderboard.plots.dot_row import Dot, dot_row
from leaderboard.plots.quarters import Quarter, by_quarter
from leaderboard.studies.answers import words
from leaderboard.studies.models import SubsetTask, TaskSubset
from leaderboard.studies.outcomes import PASSED, discriminations, on_equal_terms, weaker_passing


@dataclass(frozen=True)
class TaskRun:
    """One agent on the task; outcome None: no valid one."""

    agent: Agent
    rank: int | None
    outcome: float | None
    n_invalid: int
    date: str
    trust: str = ""  # as it is shown beside its name

    @property
    def outcome_text(self) -> str:
        if self.outcome is None:
            return "no valid outcome"
        whole = {1.0: "passed", 0.0: "failed"}.get(self.outcome)
        return whole or f"mean outcome {words.percent(self.outcome)}%"

    @property
    def rank_text(self) -> str:
        return "without a rank" if self.rank is None else f"rank {self.rank:,}"


@dataclass(frozen=True)
class TaskPage:
    """`column` is None for a task that does not count now."""

    of: OrderedOutcomes
    task: Task
    versions: list[Any]

    @cached_property
    def column(self) -> int | None:
        places = [j for j, task in enumerate(self.of.outcomes.tasks) if task.pk == self.task.pk]
        return places[0] if places else None

    @cached_property
    def runs(self) -> list[TaskRun]:
        """In the order of the board."""
        if self.column is None:
            return []
        outcomes = self.of.outcomes
        rows = zip(
            outcomes.agents, outcomes.means[:, self.column], outcomes.n_invalid[:, self.column], strict=True
        )
        return [
            TaskRun(
                agent=agent,
                rank=self.of.rank_of(agent),
                outcome=None if np.isnan(mean) else float(mean),
                n_invalid=int(n_invalid),
                date=(self.of.entries[agent.pk].submitted_at or "") if agent.pk in self.of.entries else "",
                trust=self._trust(agent),
            )
            for agent, mean, n_invalid in rows
        ]

    def _trust(self, agent: Agent) -> str:
        entry = self.of.entries.get(agent.pk)
        return words.TRUST[entry.trust] if entry and self.of.tells_trust else ""

    @cached_property
    def measured(self) -> list[TaskRun]:
        return [run for run in self.runs if run.outcome is not None]

    @property
    def n_passing(self) -> int:
        return sum((run.outcome or 0.0) >= PASSED for run in self.measured)

    @property
    def n_weaker(self) -> int:
        """Of those that pass it, how many a better ranked agent is behind on it."""
        return weaker_passing(self.of.outcomes.means[:, self.column], self.of.ranks)

    @property
    def headline(self) -> str:
        n, every = self.n_passing, len(self.measured)
        if self.task.retired_at:
            return f"This task was retired on {self.task.retired_at:%Y-%m-%d}."
        if self.column is None:
            return "This task is not among those that count."
        if not every:
            return "No agent has a valid outcome on this task."
        if every == 1:
            return f"One agent has run this task, and {'passes' if n else 'fails'} it."
        if not n:
            return f"None of the {every:,} agents passes this task"
        if n == every:
            return f"All {every:,} agents pass this task"
        return f"{n:,} of {every:,} agents {'passes' if n == 1 else 'pass'} this task"

    @property
    def rest(self) -> str:
        """What follows the headline."""
        n, every = self.n_passing, len(self.measured)
        if self.column is None or every < 2:
            return f" {words.sentence(self.task.retired_reason)}" if self.task.retired_at else ""
        if n in (0, every):
            return ", so that it tells none of them apart."
        weaker = self.n_weaker
        if n == 1:
            return (
                ", and is weaker than agents that fail it."
                if weaker
                else ", and none that is better fails it."
            )
        return f", {f'{weaker:,}' if weaker else 'none'} of them weaker than agents that fail it."

    @property
    def is_graded(self) -> bool:
        return any(run.outcome not in (0.0, 1.0) for run in self.measured)

    @property
    def rate(self) -> float | None:
        return None if self.column is None or np.isnan(p := self.of.rates[self.column]) else float(p)

    @property
    def place(self) -> int:
        """From the easiest on."""
        return [int(j) for j in self.of.easiest].index(self.column or 0) + 1

    @cached_property
    def discrimination(self) -> float | None:
        if self.column is None or not self.of.n_agents:
            return None
        value = discriminations(self.of.outcomes.means)[self.column]
        return None if np.isnan(value) else float(value)

    @property
    def n_discriminated(self) -> int:
        """Agents that the discrimination is over."""
        means = self.of.outcomes.means
        return int((on_equal_terms(means) & ~np.isnan(means[:, self.column])).sum())

    @property
    def invalid(self) -> list[TaskRun]:
        return [run for run in self.runs if run.n_invalid]

    @property
    def n_invalid(self) -> int:
        return sum(run.n_invalid for run in self.runs)

    @property
    def in_subset(self) -> bool:
        return self.column is not None and self.of.in_subset[self.column]

    @cached_property
    def quarters(self) -> list[Quarter]:
        """Of agents that state a date."""
        groups: defaultdict[tuple[int, int], list[float]] = defaultdict(list)
        for run in self.measured:
            if run.date:
                year, month = int(run.date[:4]), int(run.date[5:7] or 1)
                groups[year, (month + 2) // 3].append(run.outcome or 0.0)
        return [
            Quarter(*when, float(np.mean(outcomes)), len(outcomes))
            for when, outcomes in sorted(groups.items())
        ]

    @cached_property
    def agents_chart(self) -> Chart | None:
        if not self.runs:
            return None
        ranked = [run for run in self.runs if run.rank is not None]
        unranked = [run for run in self.runs if run.rank is None]
        return Chart(
            name="task",
            title="Who passes it",
            lede="A dot is an agent, from the best rank on: filled where it passed, hollow where it failed, "
            "else filled by the share that it passed; a small dot is an agent without a valid outcome.",
            heads=("Agent", "Rank", "Outcome", *(["Trust"] if self.of.tells_trust else [])),
            rows=tuple(self._cells(run) for run in self.runs),
            svg=dot_row(
                name="task",
                title=f"{words.counted(len(self.runs), 'agent')} by rank",
                ranked=[self._dot(run) for run in ranked],
                unranked=[self._dot(run) for run in unranked],
            ),
        )

    def _cells(self, run: TaskRun) -> tuple[str, ...]:
        trust = [run.trust or "not on the board"] if self.of.tells_trust else []
        return (run.agent.name, run.rank_text, run.outcome_text, *trust)

    def _dot(self, run: TaskRun) -> Dot:
        address = reverse("pages:agent", args=[self.of.benchmark.slug, run.agent.pk])
        words_of_run = ", ".join(filter(None, (run.outcome_text, run.rank_text, run.trust)))
        return Dot(run.outcome, f"{run.agent.name}: {words_of_run}", address)

    @cached_property
    def quarters_chart(self) -> Chart | None:
        if not self.quarters:
            return None
        return Chart(
            name="quarters",
            title="Pass rate by quarter",
            lede="Mean outcome of the agents dated in each quarter; the band of "
            f"{self.of.band_text} is tinted.",
            heads=("Quarter", "Pass rate", "Agents"),
            rows=tuple((str(one), f"{words.percent(one.rate)}%", f"{one.n:,}") for one in self.quarters),
            svg=by_quarter(
                name="quarters",
                title="Pass rate by the quarter of agents’ dates",
                quarters=self.quarters,
                band=self.of.band,
            ),
        )


def task_page(benchmark: Benchmark, pk: int) -> TaskPage:
    """Read one task; Http404 where the benchmark has none of this number."""
    task = get_object_or_404(benchmark.tasks, pk=pk)
    return TaskPage(ordered_outcomes(benchmark), task, list(_versions(benchmark, task)))


def _versions(benchmark: Benchmark, task: Task) -> QuerySet[TaskSubset]:
    """Every version of the subset, with `rate` where the task was in it."""
    members = SubsetTask.objects.filter(subset=OuterRef("pk"), task=task)
    return benchmark.subsets.annotate(rate=Subquery(members.values("pass_rate")[:1])).order_by("number")


def _page_of(benchmark: Benchmark, params: QueryDict) -> TaskPage:
    text = params.get("task", "")
    return task_page(benchmark, int(text[:9]) if text.isascii() and text.isdecimal() else 0)


def plot_agents(benchmark: Benchmark, params: QueryDict) -> Chart | None:
    return _page_of(benchmark, params).agents_chart


def plot_quarters(benchmark: Benchmark, params: QueryDict) -> Chart | None:
    return _page_of(benchmark, params).quarters_chart


@require_safe
@for_all
@cached_page(of_data=True, reads=(TaskSubset,))
def task(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    benchmark = visible(slug)
    page = task_page(benchmark, pk)
    return render(request, "pages/task.html", {"page": page, "benchmark": benchmark, "here": "tasks"})
