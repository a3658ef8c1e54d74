"""The page of all tasks: pass rates, results by agent; and that of one."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import numpy as np
from django.db.models import OuterRef, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse

from leaderboard.catalog.models import Benchmark, Task
from leaderboard.pages.access import for_all, visible
from leaderboard.pages.caching import cached_page
from leaderboard.pages.ordered_outcomes import OrderedOutcomes, ordered_outcomes, plain
from leaderboard.plots.heat_map import LONGEST_LABEL, HeatMapRow, heat_map
from leaderboard.plots.marks import Chart, cut_apart
from leaderboard.plots.of_task import Dot, by_quarter, dot_row
from leaderboard.studies.answers import words
from leaderboard.studies.models import SubsetTask, TaskSubset
from leaderboard.studies.outcomes import single_tasks

MAX_ROWS = 200  # of agents, each with a row of its own
N_GROUPS = 10
MAX_LISTED = 500  # tasks, unless all are asked for
SUBSET_CHOICES = {"yes": True, "no": False}
ORDERS: Mapping[str, Callable[[dict[str, Any]], Any]] = {
    "task": lambda line: line["task"].name.casefold(),
    "category": lambda line: line["task"].category.casefold() or None,
    "rate": lambda line: line["rate"],
    "agents": lambda line: line["n_agents"],
    "discrimination": lambda line: line["discrimination"],
    "invalid": lambda line: line["n_invalid"],
    "ranking": lambda line: line["in_subset"],
}


def task_lines(of: OrderedOutcomes) -> list[dict[str, Any]]:
    """A row of the table for each active task, from the easiest on; `n_agents` have an outcome on it."""
    means, n_invalid = of.outcomes.means, of.outcomes.n_invalid.sum(axis=0)
    n_agents = np.count_nonzero(~np.isnan(means), axis=0)
    rates, apart = plain(of.rates), plain(single_tasks.discriminations(means))
    return [
        {
            "task": of.outcomes.tasks[j],
            "rate": rates[j],
            "n_agents": int(n_agents[j]),
            "discrimination": apart[j],
            "n_invalid": int(n_invalid[j]),
            "in_subset": of.in_subset[j],
        }
        for j in of.easiest
    ]


def headline(of: OrderedOutcomes) -> str:
    every = words.counted(of.n_tasks, "task")
    if not of.n_tasks:
        return "There are no tasks yet."
    if not of.n_agents:
        return f"There are no results yet on the {every}."
    if of.n_agents == 1:
        return f"One agent so far. {of.rate.capitalize()}s need at least two."
    if not of.n_rating:
        return f"There is no valid result on the {every}."
    if of.n_rating < 2:
        return f"Only one agent has run the tasks. {of.rate.capitalize()}s need at least two."
    n = int(of.in_band.sum())
    return f"{n:,} of {every} {'has' if n == 1 else 'have'} a {of.rate} of {of.band_text}."


def rest(of: OrderedOutcomes) -> str:
    if not of.n_rating:
        return ""
    if of.n_rating < 2:
        passes = "scores 100% on" if of.outcomes.is_graded else "passes"
        return f"It {passes} {int((of.rates >= 1).sum()):,} of {words.counted(of.n_tasks, 'task')}."
    lo, hi = of.band
    easy = int((~of.in_band & (of.rates > lo)).sum())
    hard = int((~of.in_band & (of.rates < hi)).sum())
    none, unrated = int((of.rates == 0).sum()), int(np.isnan(of.rates).sum())
    parts = [
        f"{n:,} {'is' if n == 1 else 'are'} {kind}" for n, kind in ((easy, "easier"), (hard, "harder")) if n
    ]
    text = f"{' and '.join(parts)}." if parts else "No task is easier or harder."
    nobody = f"{none:,} {'is' if none == 1 else 'are'} passed by no agent"
    nobody = f"Every agent scores 0% on {words.counted(none, 'task')}" if of.outcomes.is_graded else nobody
    text += f" {nobody}." if none else ""
    return f"{text} {unrated:,} {'has' if unrated == 1 else 'have'} no result." if unrated else text


def chart(of: OrderedOutcomes, lines: list[dict[str, Any]]) -> Chart | None:
    if not of.n_agents or not of.n_tasks:
        return None
    in_subset, in_band = [line["in_subset"] for line in lines], of.in_band[of.easiest]
    differs = in_subset != in_band.tolist()
    places = np.flatnonzero(in_band)
    band = None
    if places.size:
        the, ranking = ("the ", "ranking task") if of.subset and not differs else ("", "task")
        text = f"{the}{words.counted(places.size, ranking)}, {of.band_text}"
        band = int(places[0]), int(places[-1]) + 1, text
    rows = _heat_map_rows(of)
    shown = {outcome for _, _, outcomes, _ in rows for outcome in outcomes}
    each = "Each row is a tenth of the agents" if of.n_agents > MAX_ROWS else "Each row is an agent"
    last = ", unranked last" if np.isnan(of.ranks).any() else ""
    passes = _passes_text(of, "cell", shown)
    dash = " A dash is no valid result." if None in shown else ""
    marks = " The line below marks the ranking tasks." if differs and any(in_subset) else ""
    return Chart(
        name="tasks",
        title="Results by agent and task",
        lede=f"{each}, best first{last}. Each column is a task, easiest first. {passes}{dash}{marks}",
        heads=("Task", of.rate.capitalize(), "Agents", "Ranking task"),
        rows=tuple(
            (
                line["task"].name,
                "unknown" if line["rate"] is None else f"{words.percent(line['rate'])}%",
                f"{line['n_agents']:,}",
                "yes" if line["in_subset"] else "no",
            )
            for line in lines
        ),
        svg=heat_map(
            name="tasks",
            title=f"Heat map of {words.counted(of.n_agents, 'agent')} by {words.counted(of.n_tasks, 'task')}",
            rates=[line["rate"] for line in lines],
            rows=rows,
            band=band,
            rate=of.rate,
            marked=in_subset if differs else [],
        ),
    )


def _passes_text(of: OrderedOutcomes, mark: str, shown: Collection[float | None]) -> str:
    """Say what a filled mark is, and a partly filled one where some are shown."""
    if of.outcomes.is_graded:
        return f"The filled part of a {mark} is the mean score."
    failure = f", an empty {mark} a failure" if mark == "dot" else ""
    partly = f" A partly filled {mark} is a mean between 0 and 1." if set(shown) - {None, 0.0, 1.0} else ""
    return f"A filled {mark} is a pass{failure}.{partly}"


def _heat_map_rows(of: OrderedOutcomes) -> list[HeatMapRow]:
    """A row for each agent, or mean outcomes of tenths of them, in the order of the board."""
    ordered, agents = of.outcomes.means[:, of.easiest], of.outcomes.agents
    if of.n_agents > MAX_ROWS:
        ends = [part[[0, -1]] for part in np.array_split(np.arange(1, of.n_agents + 1), N_GROUPS)]
        return [
            (label := f"agents {first:,} to {last:,}", label, plain(mean), "")
            for (first, last), mean in zip(ends, single_tasks.group_means(ordered, N_GROUPS), strict=True)
        ]
    labels = cut_apart([agent.name for agent in agents], LONGEST_LABEL)
    return [
        (label, agent.name, plain(row), reverse("pages:agent", args=[of.benchmark.slug, agent.pk]))
        for agent, label, row in zip(agents, labels, ordered, strict=True)
    ]


@for_all
@cached_page("find", "subset", "rows", "sort", of_data=True, reads=(TaskSubset,))
def tasks(request: HttpRequest, slug: str) -> HttpResponse:
    benchmark = visible(slug)
    of, find = ordered_outcomes(benchmark), request.GET.get("find", "").strip()[:255]
    lines, subset = task_lines(of), request.GET.get("subset", "")
    wanted = SUBSET_CHOICES.get(subset)
    n_inside = int(of.in_band.sum())
    n_outside = sum(chosen and not now for chosen, now in zip(of.in_subset, of.in_band, strict=True))
    matching = [
        line
        for line in lines
        if find.casefold() in f"{line['task'].name} {line['task'].category}".casefold()
        and wanted in (None, line["in_subset"])
    ]
    order = request.GET.get("sort", "")
    key, is_down = order.removeprefix("-"), order.startswith("-")
    if sorted_by := ORDERS.get(key):
        known = [line for line in matching if sorted_by(line) is not None]
        rest_of = [line for line in matching if sorted_by(line) is None]
        matching = [*sorted(known, key=sorted_by, reverse=is_down), *rest_of]
    asked = {"find": find, "subset": subset}
    page = {
        "of": of,
        "rate": of.rate.capitalize(),
        "order": order,
        "direction": "descending" if is_down else "ascending",
        "address": lambda sort: f"?{urlencode({k: v for k, v in (asked | {'sort': sort}).items() if v})}",
        "find": find,
        "subset": subset,
        "lines": lines,
        "matching": matching,
        "listed": matching if request.GET.get("rows") == "all" else matching[:MAX_LISTED],
        "has_categories": any(line["task"].category for line in lines),
        "has_invalid": any(line["n_invalid"] for line in lines),
        "headline": headline(of),
        "rest": rest(of),
        # How the subset in use stands to the band of now.
        "n_inside": n_inside,
        "n_outside": n_outside,
        "n_others": sum(now and not chosen for chosen, now in zip(of.in_subset, of.in_band, strict=True)),
        "chart": chart(of, lines),
    }
    return render(request, "pages/tasks.html", {"page": page, "benchmark": benchmark, "here": "tasks"})


# ------------------------------------------------------------------------------------------------- one task


def task_page(benchmark: Benchmark, pk: int) -> dict[str, Any]:
    """Read one task; Http404 where the benchmark has none of this number.

    `column` is None for a task that does not count now; `versions` of the subset have `rate` where the task
    was in them.
    """
    task = get_object_or_404(benchmark.tasks, pk=pk)
    of = ordered_outcomes(benchmark)
    members = SubsetTask.objects.filter(subset=OuterRef("pk"), task=task)
    versions = benchmark.subsets.annotate(rate=Subquery(members.values("pass_rate")[:1])).order_by("number")
    column = next((j for j, one in enumerate(of.outcomes.tasks) if one.pk == task.pk), None)
    runs = [] if column is None else _runs(of, column)
    outcomes = [run["outcome"] for run in runs if run["outcome"] is not None]
    page = {
        "of": of,
        "task": task,
        "column": column,
        "versions": list(versions),
        "headline": _task_headline(of, task, column, outcomes),
        "rest": _task_rest(of, task, column, outcomes),
        "is_graded": not of.outcomes.is_graded and any(outcome not in (0.0, 1.0) for outcome in outcomes),
        "invalid": [run for run in runs if run["n_invalid"]],
        "n_invalid": sum(run["n_invalid"] for run in runs),
        "agents_chart": _agents_chart(of, runs) if runs else None,
        "quarters_chart": _quarters_chart(of, runs),
    }
    if column is None:
        return page
    means = of.outcomes.means
    return page | {
        "rate": plain(of.rates)[column],
        "place": of.easiest.tolist().index(column) + 1,
        "discrimination": plain(single_tasks.discriminations(means, [column]))[0] if of.n_agents else None,
        "n_discriminated": int((single_tasks.nearly_complete(means) & ~np.isnan(means[:, column])).sum()),
    }


def _runs(of: OrderedOutcomes, column: int) -> list[dict[str, Any]]:
    runs, outcomes = [], of.outcomes
    means, n_invalid = plain(outcomes.means[:, column]), outcomes.n_invalid[:, column]
    n_at = Counter(entry.rank for entry in of.entries.values())
    for agent, outcome, n in zip(outcomes.agents, means, n_invalid.tolist(), strict=True):
        entry, rank = of.entries.get(agent.pk), of.rank_of(agent)
        text = "no valid result"
        if outcome is not None:
            whole = {} if outcomes.is_graded else {1.0: "passed", 0.0: "failed"}
            text = whole.get(outcome) or f"mean score {words.percent(outcome)}%"
        runs.append(
            {
                "agent": agent,
                "rank": rank,
                "rank_text": "not ranked" if rank is None else f"rank {words.rank_text(rank, n_at)}",
                "outcome": outcome,
                "outcome_text": text,
                "n_invalid": n,
                "date": (entry.line["submitted_at"] or "") if entry else "",
                "trust": words.TRUST[entry.line["trust"]] if entry and of.tells_trust else "",
            }
        )
    return runs


def _task_headline(of: OrderedOutcomes, task: Task, column: int | None, outcomes: Sequence[float]) -> str:
    n, every = sum(outcome >= single_tasks.PASSED for outcome in outcomes), len(outcomes)
    if task.retired_at:
        return f"This task was retired on {task.retired_at:%Y-%m-%d}."
    if column is None:
        return "This task does not count."
    if not every:
        return "No agent has a valid result on this task."
    ends = [f"{words.percent(end(outcomes))}%" for end in (min, max)]
    if every == 1:
        does = f"scores {ends[0]}" if of.outcomes.is_graded else f"{'passes' if n else 'fails'} it"
        return f"One agent has run this task and {does}."
    if of.outcomes.is_graded:
        return f"{every:,} agents score {' to '.join(dict.fromkeys(ends))} on this task."
    if not n:
        return f"None of the {every:,} agents passes this task."
    if n == every:
        return f"All {every:,} agents pass this task."
    return f"{n:,} of {every:,} agents {'passes' if n == 1 else 'pass'} this task."


def _task_rest(of: OrderedOutcomes, task: Task, column: int | None, outcomes: Sequence[float]) -> str:
    """What follows the headline: how many of those that pass it rank below an agent that fails it."""
    n, every = sum(outcome >= single_tasks.PASSED for outcome in outcomes), len(outcomes)
    if column is None or every < 2:
        return words.sentence(task.retired_reason) if task.retired_at else ""
    if n in (0, every) or of.outcomes.is_graded:
        return ""
    weaker = single_tasks.weaker_passing(of.outcomes.means[:, column], of.ranks)
    if n == 1:
        return "It ranks below an agent that fails." if weaker else "No higher-ranked agent fails."
    number = f"{weaker:,}" if weaker else "None"
    return f"{number} of the {n:,} {'ranks' if weaker < 2 else 'rank'} below an agent that fails."


def _agents_chart(of: OrderedOutcomes, runs: Sequence[dict[str, Any]]) -> Chart:
    ranked, unranked = list[Dot](), list[Dot]()
    rows = []
    for run in runs:
        texts = [run["outcome_text"], run["rank_text"], run["trust"]]
        told = f"{run['agent'].name}: {', '.join(filter(None, texts))}"
        address = reverse("pages:agent", args=[of.benchmark.slug, run["agent"].pk])
        (unranked if run["rank"] is None else ranked).append((run["outcome"], told, address))
        trust = [run["trust"] or "not on the board"] if of.tells_trust else []
        rows.append((run["agent"].name, run["rank_text"], run["outcome_text"], *trust))
    shown = {run["outcome"] for run in runs}
    passes = _passes_text(of, "dot", shown)
    small = " A small dot is no valid result." if None in shown else ""
    return Chart(
        name="task",
        title="Results by agent",
        lede=f"Each dot is an agent, best rank first. {passes}{small}",
        heads=("Agent", "Rank", "Result", *(["Trust"] if of.tells_trust else [])),
        rows=tuple(rows),
        svg=dot_row(
            name="task",
            title=f"{words.counted(len(runs), 'agent')} by rank",
            ranked=ranked,
            unranked=unranked,
        ),
    )


def _quarters_chart(of: OrderedOutcomes, runs: Sequence[dict[str, Any]]) -> Chart | None:
    groups: defaultdict[tuple[int, int], list[float]] = defaultdict(list)
    for run in runs:
        if run["date"] and run["outcome"] is not None:
            year, month = int(run["date"][:4]), int(run["date"][5:7] or 1)
            groups[year, (month + 2) // 3].append(run["outcome"])
    if not groups:
        return None
    quarters = [(*when, float(np.mean(group)), len(group)) for when, group in sorted(groups.items())]
    rows = [(f"{year} Q{n}", f"{words.percent(rate)}%", f"{size:,}") for year, n, rate, size in quarters]
    title = f"{of.rate.capitalize()} by quarter"
    return Chart(
        name="quarters",
        title=title,
        lede=f"Mean over the agents submitted in each quarter. The shaded area is {of.band_text}.",
        heads=("Quarter", of.rate.capitalize(), "Agents"),
        rows=tuple(rows),
        svg=by_quarter(
            name="quarters",
            title=f"{title} of submission",
            quarters=quarters,
            band=of.band,
        ),
    )


@for_all
@cached_page(of_data=True, reads=(TaskSubset,))
def task(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    benchmark = visible(slug)
    page = task_page(benchmark, pk)
    return render(request, "pages/task.html", {"page": page, "benchmark": benchmark, "here": "tasks"})
