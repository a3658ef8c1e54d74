"""The page of all tasks: how many tell agents apart, who passed what, and a table to find one in."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from leaderboard.catalog.models import Benchmark, Task
from leaderboard.pages.access import for_all, visible
from leaderboard.pages.caching import cached_page
from leaderboard.pages.ordered_outcomes import OrderedOutcomes, ordered_outcomes
from leaderboard.plots.chart import Chart
from leaderboard.plots.heat_map import LONGEST_LABEL, HeatMapRow, Outcome, Tinted, heat_map
from leaderboard.plots.marks import cut_apart
from leaderboard.studies.answers import words
from leaderboard.studies.models import TaskSubset
from leaderboard.studies.outcomes import discriminations, group_means

MAX_ROWS = 200  # of agents, each with a row of its own
N_GROUPS = 10
MAX_LISTED = 500  # tasks, unless all are asked for
SUBSET_CHOICES = {"yes": True, "no": False}


def plain(values: np.ndarray) -> list[Outcome]:
    """As floats, None for NaN."""
    return [None if np.isnan(value) else float(value) for value in values]


@dataclass(frozen=True)
class TaskLine:
    """A row of the table; `n_agents` have an outcome on the task."""

    task: Task
    rate: Outcome
    n_agents: int
    discrimination: Outcome
    n_invalid: int
    in_subset: bool

    @property
    def cells(self) -> tuple[str, ...]:
        """As the table twin of the chart has it."""
        rate = "not measured" if self.rate is None else f"{words.percent(self.rate)}%"
        return self.task.name, rate, f"{self.n_agents:,}", "yes" if self.in_subset else "no"


@dataclass(frozen=True)
class TasksPage:
    """All active tasks from the easiest on; `find` and `subset` are what the table is filtered by."""

    of: OrderedOutcomes
    find: str = ""
    subset: str = ""
    is_whole: bool = False

    @cached_property
    def lines(self) -> list[TaskLine]:
        means, n_invalid = self.of.outcomes.means, self.of.outcomes.n_invalid.sum(axis=0)
        n_agents = np.count_nonzero(~np.isnan(means), axis=0)
        rates, apart = plain(self.of.rates), plain(discriminations(means))
        return [
            TaskLine(
                task=self.of.outcomes.tasks[j],
                rate=rates[j],
                n_agents=int(n_agents[j]),
                discrimination=apart[j],
                n_invalid=int(n_invalid[j]),
                in_subset=self.of.in_subset[j],
            )
            for j in self.of.easiest
        ]

    @cached_property
    def matching(self) -> list[TaskLine]:
        """What the table is asked for."""
        named = self.find.casefold()
        wanted = SUBSET_CHOICES.get(self.subset)
        return [
            line
            for line in self.lines
            if named in f"{line.task.name} {line.task.category}".casefold()
            and wanted in (None, line.in_subset)
        ]

    @property
    def listed(self) -> list[TaskLine]:
        return self.matching if self.is_whole else self.matching[:MAX_LISTED]

    @property
    def has_categories(self) -> bool:
        return any(line.task.category for line in self.lines)

    @property
    def has_invalid(self) -> bool:
        return any(line.n_invalid for line in self.lines)

    @property
    def headline(self) -> str:
        return headline(self.of)

    @property
    def rest(self) -> str:
        return rest(self.of)

    @property
    def chosen(self) -> str:
        return subset_text(self.of)

    @cached_property
    def chart(self) -> Chart | None:
        return chart(self.of, self.lines)


def headline(of: OrderedOutcomes) -> str:
    """How many tasks tell agents apart, by pass rates of now."""
    every = words.counted(of.n_tasks, "task")
    if not of.n_tasks:
        return "No task is known yet."
    if not of.n_agents:
        return f"No outcome counts yet on {'any of ' if of.n_tasks > 1 else ''}the {every}."
    if of.n_agents == 1:
        return "One agent so far: which tasks tell agents apart takes two."
    if not of.n_rating:
        return f"No outcome {'on the task' if of.n_tasks == 1 else 'on any of the ' + every} is valid."
    if of.n_rating < 2:
        return "Pass rates are those of one agent so far: which tasks tell agents apart takes two."
    n = int(of.in_band.sum())
    if not n:
        return f"No task has a pass rate of {of.band_text}."
    return f"{n:,} of {every} {'tells' if n == 1 else 'tell'} agents apart."


def rest(of: OrderedOutcomes) -> str:
    """How many are too easy and too hard for that, and how many nobody passes."""
    if of.n_rating < 2:
        return _of_one(of) if of.n_rating else ""
    lo, hi = of.band
    easy = int((~of.in_band & (of.rates > lo)).sum())
    hard = int((~of.in_band & (of.rates < hi)).sum())
    none, unrated = int((of.rates == 0).sum()), int(np.isnan(of.rates).sum())
    parts = [
        (easy, f"by more than {_edge(hi)} of agents"),
        (hard, f"by fewer than {_edge(lo)}{'' if easy else ' of agents'}{_of_none(none, of.n_rating)}"),
    ]
    clauses = [f"{n:,} {clause}" for n, clause in parts if n]
    if clauses:
        n, clause = next(part for part in parts if part[0])
        clauses[0] = f"{n:,} {'is' if n == 1 else 'are'} passed {clause}"
    sentence = f"{_join_clauses(clauses)}." if clauses else "None lies outside of the band."
    if unrated:
        sentence += f" Of {unrated:,} there is no outcome."
    return sentence


def _of_none(n: int, n_agents: int) -> str:
    return f", {n:,} of them by none of {n_agents:,} agents" if n else ""


def _of_one(of: OrderedOutcomes) -> str:
    passed = int((of.rates >= 1).sum())
    return f"It passes {passed:,} of {words.counted(of.n_tasks, 'task')}."


def _edge(share: float) -> str:
    return f"{round(100 * share, 4):g}%"


def _join_clauses(parts: Sequence[str]) -> str:
    if len(parts) < 3:
        return " and ".join(parts)
    return f"{', '.join(parts[:-1])}, and {parts[-1]}"


def subset_text(of: OrderedOutcomes) -> str:
    """How the subset in use stands to the band of now."""
    if of.board is None:
        return "No board has been published yet."
    if of.subset is None:
        return "No subset is in use: agents are ranked on all tasks."
    n, inside = len(of.subset.tasks), int(of.in_band.sum())
    outside = sum(ranking and not now for ranking, now in zip(of.in_subset, of.in_band, strict=True))
    which = f"The {words.counted(n, 'ranking task')}{', a preview,' if of.subset.provisional else ''}"
    if not outside and n == inside:
        return f"{which} {'is the one' if n == 1 else 'are those'} with a pass rate of {of.band_text}."
    return (
        f"{which} {'was' if n == 1 else 'were'} chosen from "
        f"{words.counted(of.subset.n_complete, 'complete agent')}: by pass rates of now {outside:,} of them "
        f"{'lies' if outside == 1 else 'lie'} outside of {of.band_text}, and {inside - n + outside:,} of the "
        "others inside."
    )


def chart(of: OrderedOutcomes, lines: Sequence[TaskLine]) -> Chart | None:
    """The heat map; None where there is no outcome."""
    if not of.n_agents or not of.n_tasks:
        return None
    differs = [line.in_subset for line in lines] != of.in_band[of.easiest].tolist()
    marked = [line.in_subset for line in lines] if differs else []
    return Chart(
        name="tasks",
        title="Who passed what",
        lede=_lede(of, is_marked=any(marked)),
        heads=("Task", "Pass rate", "Agents", "In the subset"),
        rows=tuple(line.cells for line in lines),
        svg=heat_map(
            name="tasks",
            title=f"Heat map of {words.counted(of.n_agents, 'agent')} by {words.counted(of.n_tasks, 'task')}",
            rates=[line.rate for line in lines],
            rows=_rows(of),
            band=_band(of, differs=differs),
            marked=marked,
        ),
    )


def _lede(of: OrderedOutcomes, *, is_marked: bool) -> str:
    each = "A row is a tenth of the agents" if of.n_agents > MAX_ROWS else "A row is an agent"
    last = ", those without a rank last" if np.isnan(of.ranks).any() else ""
    marks = " The line under the map marks the ranking tasks." if is_marked else ""
    return (
        f"{each} from the best down{last}; a column is a task from the easiest on. A cell is filled in "
        "proportion to the mean outcome: whole where passed, half where one of two trials passed, a dash "
        f"where there is no valid outcome.{marks}"
    )


def _band(of: OrderedOutcomes, *, differs: bool) -> Tinted | None:
    places = np.flatnonzero(of.in_band[of.easiest])
    if not places.size:
        return None
    ranking = "ranking task" if of.subset and not differs else "task"
    text = f"{'the ' if ranking != 'task' else ''}{words.counted(places.size, ranking)}, {of.band_text}"
    return Tinted(int(places[0]), int(places[-1]) + 1, *of.band, text)


def _rows(of: OrderedOutcomes) -> list[HeatMapRow]:
    ordered = of.outcomes.means[:, of.easiest]
    if of.n_agents > MAX_ROWS:
        return _tenths(of, ordered)
    labels = cut_apart([agent.name for agent in of.outcomes.agents], LONGEST_LABEL)
    return [
        HeatMapRow(
            label=label,
            name=agent.name,
            outcomes=plain(row),
            address=reverse("pages:agent", args=[of.benchmark.slug, agent.pk]),
        )
        for agent, label, row in zip(of.outcomes.agents, labels, ordered, strict=True)
    ]


def _tenths(of: OrderedOutcomes, ordered: np.ndarray) -> list[HeatMapRow]:
    """Mean outcomes of tenths of the agents, in the order of the board."""
    ends = [part[[0, -1]] for part in np.array_split(np.arange(1, of.n_agents + 1), N_GROUPS)]
    return [
        HeatMapRow(label=(label := f"agents {first:,} to {last:,}"), name=label, outcomes=plain(mean))
        for (first, last), mean in zip(ends, group_means(ordered, N_GROUPS), strict=True)
    ]


def plot_page(benchmark: Benchmark, params: QueryDict) -> Chart | None:
    return TasksPage(ordered_outcomes(benchmark)).chart


@require_safe
@for_all
@cached_page("find", "subset", "rows", of_data=True, reads=(TaskSubset,))
def tasks(request: HttpRequest, slug: str) -> HttpResponse:
    benchmark = visible(slug)
    page = TasksPage(
        ordered_outcomes(benchmark),
        find=request.GET.get("find", "").strip()[:255],
        subset=request.GET.get("subset", ""),
        is_whole=request.GET.get("rows") == "all",
    )
    return render(request, "pages/tasks.html", {"page": page, "benchmark": benchmark, "here": "tasks"})
