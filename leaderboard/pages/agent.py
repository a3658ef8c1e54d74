"""The page of one agent: its rank range, its results per task, and all its submissions."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from django.db.models import OuterRef, Q, Subquery
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from leaderboard.catalog.models import Agent, Benchmark, Duplicates, MissingPlaces
from leaderboard.pages.access import for_all, visible
from leaderboard.pages.caching import cached_page
from leaderboard.pages.ordered_outcomes import OrderedOutcomes, ordered_outcomes, plain
from leaderboard.pages.replay_summary import full_runs
from leaderboard.pages.templatetags.figures import is_web, score
from leaderboard.plots.heat_map import strip
from leaderboard.plots.marks import Chart
from leaderboard.studies.answers import AtTarget, Line, Standings, words
from leaderboard.studies.models import TaskSubset
from leaderboard.studies.outcomes import People, missing_fails, people_of, single_tasks
from leaderboard.submissions.models import Status, StatusChange
from leaderboard.submissions.queries import ever_counted

N_BESIDE = 3  # neighbours on either side
N_LISTED = 10  # surprises of either kind
WORDS: Mapping[float | None, str] = {0.0: "failed", 1.0: "passed"}
THAT_COUNT = {
    Duplicates.MEAN: "several results of a task are averaged",
    Duplicates.LATEST: "the latest active one counts",
    Duplicates.FIRST: "the first active one counts",
}


def agent_page(benchmark: Benchmark, pk: int) -> dict[str, Any]:
    """Read one agent; Http404 where nothing of it ever counted, as of one whose first embargo still holds.

    `line` is None also where everything has been withdrawn since, `expected` for an agent without a rank, or
    without one beside it.
    """
    agent = get_object_or_404(benchmark.agents.select_related("scaffold", "model"), pk=pk)
    # What ever counted of it and of those merged into it, with `until`, when it ceased to.
    ceased = StatusChange.objects.filter(submission=OuterRef("pk")).exclude(status=Status.ACCEPTED)
    submissions = ever_counted().filter(Q(agent=agent) | Q(agent__merged_into=agent))
    submissions = submissions.annotate(until=Subquery(ceased.order_by("-id").values("at")[:1]))
    delivered = list(submissions.select_related("agent").order_by("id"))
    if not delivered:
        raise Http404("Nothing of this agent has counted yet.")
    of = ordered_outcomes(benchmark)
    standings, agents = of.standings, of.outcomes.agents
    is_withdrawn = not any(one.status == Status.ACCEPTED for one in delivered)
    line = None if is_withdrawn else of.line_of(agent)
    row = next((i for i, one in enumerate(agents) if one.pk == agent.pk), None)
    ranked: list[int] = np.flatnonzero(~np.isnan(of.ranks)).tolist()
    place = ranked.index(row) if row in ranked else None
    by_neighbours = None
    if place is not None and len(ranked) > 1:
        n_trials = of.outcomes.n_pass_fail[ranked[place]]
        by_neighbours = single_tasks.expected(of.outcomes.means[ranked], place, n_trials=n_trials)
    near = [] if place is None else ranked[max(0, place - N_BESIDE) : place + N_BESIDE + 1]
    return {
        "of": of,
        "agent": agent,
        "delivered": delivered,
        "is_withdrawn": is_withdrawn,
        "line": line,
        "is_ranked": bool(standings and line and line.at[standings.target].rank),
        "row": row,
        "n_ranked": standings.targets[standings.target].n_ranked if standings else 0,
        "tasks_of": words.tasks_of(standings, standings.target) if standings else "",
        "headline": headline(of, line, is_withdrawn=is_withdrawn),
        "rest": _rest(of, line, is_withdrawn=is_withdrawn),
        "expected": by_neighbours,
        "surprises": _surprises(of, by_neighbours) if by_neighbours else [],
        "chart": None if row is None else _chart(of, row, by_neighbours),
        "neighbours": _neighbours(of, [agents[one] for one in near], agent),
        "submissions": [(ordinal(n), one) for n, one in enumerate(delivered, 1)],
    }


# ----------------------------------------------------------------------------------------------- the verdict


def headline(of: OrderedOutcomes, line: Line | None, *, is_withdrawn: bool) -> str:
    if is_withdrawn:
        return "Withdrawn."
    if line is None or of.standings is None:
        return "Not on a board yet."
    target = of.standings.target
    at, n = line.at[target], of.standings.targets[target].n_ranked
    if at.rank is None:
        return "Not ranked."
    if n == 1:
        return "The only ranked agent so far."
    rank = words.rank_text(at.rank, Counter(one.at[target].rank for one in of.standings.agents))
    if at.rank_lower is None or at.rank_upper is None:
        return f"Rank {rank} of {n:,}."
    if at.rank_lower == at.rank_upper:
        return f"Rank {rank} of {n:,} (95%)."
    return f"Rank {rank} of {n:,} (95% rank range {at.rank_lower:,}–{at.rank_upper:,})."


def _rest(of: OrderedOutcomes, line: Line | None, *, is_withdrawn: bool) -> str:
    if line is None or of.standings is None:
        return "" if is_withdrawn else "The next board lists it."
    at = line.at[of.standings.target]
    parts = [words.sentence(at.reason)] if at.rank is None else []
    own = of.standings.target
    scores = [
        f"{score(line.at[target])} on {words.tasks_of(of.standings, target)}"
        for target in sorted(("full", "subset"), key=lambda target: target != own)
        if line.at[target].score is not None and of.standings.targets[target].n_tasks
    ]
    if scores:
        first, *others = scores
        other = f" ({others[0]})" if others else ""
        parts.append(f"Its score is {first}{other}{_cost_text(of.standings, line)}.")
    if line.at["full"].score is None and (bounds := words.bounds_text(line.at["full"])):
        parts.append(f"On all tasks it would score {bounds}.")
    return " ".join(parts)


def _cost_text(standings: Standings, line: Line) -> str:
    """How a sentence on scores goes on."""
    if line.cost_usd is None:
        return "" if line.cost_basis == words.HIDDEN else ". Its cost is not stated"
    cost = words.cost_text(line)
    if line.agent not in words.costs(standings):
        return f". Its stated cost of {cost} per full run is implausible"
    part = ", from the trials that state a cost" if line.cost_basis == words.IN_PART else ""
    return f" at {cost} per full run{part}"


# ----------------------------------------------------------------------------------------------------- tasks


def _surprises(
    of: OrderedOutcomes, result: single_tasks.ExpectedOutcomes
) -> list[tuple[str, str, list[Any]]]:
    """Passes and failures: a heading, of how many there are how many, and tasks with what was expected."""
    kinds = (
        ("passes", "at most 20%", result.n_seldom, result.passes, result.passes_by_chance),
        ("failures", "at least 80%", result.n_often, result.failures, result.failures_by_chance),
    )
    found = []
    for kind, share, n, columns, by_chance in kinds:
        text = f"{len(columns):,} on the {words.counted(n, 'task')} with an expected result of {share}."
        if by_chance is not None:
            text += f" About {by_chance:.1f} would be usual if the expected results were exact."
        text += f" The first {N_LISTED}:" if len(columns) > N_LISTED else ""
        tasks = [
            (
                of.outcomes.tasks[j],
                f"{100 * result.means[j]:.0f}% expected",
            )
            for j in columns[:N_LISTED].tolist()
        ]
        if n:
            found.append((f"Surprising {kind}", text, tasks))
    return found


def _chart(of: OrderedOutcomes, row: int, result: single_tasks.ExpectedOutcomes | None) -> Chart:
    order = of.easiest
    outcomes = plain(of.outcomes.means[row][order])
    means = plain(result.means[order]) if result else [None] * len(order)
    surprising = frozenset((*result.passes, *result.failures)) if result else frozenset()
    inside = np.flatnonzero(of.in_band[order])
    lede = ["Each column is a task, easiest first. Filled: passed."]
    if any(one not in (None, 0.0, 1.0) for one in outcomes):
        lede.append("Partly filled: mean of its trials.")
    if None in outcomes:
        lede.append("Dash: no valid result.")
    if inside.size:
        lede.append(f"Shaded: {of.rate}s of {of.band_text}.")
    if result is not None:
        n = result.n_neighbours
        near = f"{'up to' if n.min() < n.max() else 'the'} {words.counted(int(n.max()), 'agent')}"
        near = "the agent" if n.max() == 1 else near
        shift = f"{'plus' if result.difference >= 0 else 'minus'} {words.percent(abs(result.difference))}"
        lede.append(f"Expected: mean of {near} nearest in rank, {shift} points for the difference in score.")
    return Chart(
        name="agent",
        title="Results per task",
        lede=" ".join(lede),
        heads=("Task", "Result", "Expected"),
        rows=tuple(
            (of.outcomes.tasks[j].name, _result(own), _share(mean))
            for j, own, mean in zip(order.tolist(), outcomes, means, strict=True)
        ),
        svg=strip(
            name="agent",
            title=f"{words.counted(len(order), 'task')} by difficulty",
            outcomes=outcomes,
            expected=means,
            surprising=[j in surprising for j in order.tolist()],
            band=(int(inside[0]), int(inside[-1]) + 1) if inside.size else None,
        ),
    )


def _result(value: float | None) -> str:
    """Return passed, failed; 67% for a mean of several trials."""
    return WORDS.get(value) or _share(value)


def _share(value: float | None) -> str:
    return "none" if value is None else f"{100 * value:.0f}%"


def _neighbours(
    of: OrderedOutcomes, near: Sequence[Agent], own: Agent
) -> list[tuple[Agent, str, Line, AtTarget, bool]]:
    if of.standings is None:
        return []
    target, found = of.standings.target, []
    n_at = Counter(line.at[target].rank for line in of.standings.agents)
    for agent in near:
        if line := of.line_of(agent):
            rank = line.at[target].rank
            text = words.rank_text(rank, n_at) if rank else ""  # as on the board
            found.append((agent, text, line, line.at[target], agent.pk == own.pk))
    return found


# ----------------------------------------------------------------------------------------------------- facts


def _facts(of: OrderedOutcomes, agent: Agent, line: Line | None) -> Iterator[tuple[str, str]]:
    """What is known of it; what is not has no row."""
    aliases = agent.aliases.order_by("name").values_list("name", flat=True)
    rows = [
        ("Scaffold", agent.scaffold.name),
        ("Model", agent.model.name),
        ("Version", agent.version),
        ("Organisation", agent.organisation),
        ("Weights", agent.weights),
        ("Called before", ", ".join(aliases)),
    ]
    if line is not None:
        is_loaded = line.run_by == "operator"
        is_zero = of.board is not None and missing_fails(of.board.policy, is_loaded=is_loaded)
        rows += [
            ("Date", line.submitted_at or ""),
            ("Trust", f"{words.TRUST[line.trust]}: {words.clause(words.TRUST_MEANS[line.trust])}"),
            ("Tasks", _tasks_text(line, zero=is_zero)),
            ("Invalid trials", f"{line.n_invalid:,}" if line.n_invalid else ""),
            (
                "Cost",
                "hidden" if line.cost_basis == words.HIDDEN else dict(words.about(line)).get("Cost", ""),
            ),
            ("Repeated trials", icc_text(line)),
            ("Trials for a stable ICC", convergence_text(line)),
            *people_text(people_of(agent)),
            *((mark.capitalize(), words.sentence(words.MARKS[mark])) for mark in line.marks),
            ("Conditions", line.condition),
            *(("Flag", words.sentence(flag)) for flag in line.flags),
        ]
    return ((label, text) for label, text in rows if text and text != words.NOT_STATED)


def _tasks_text(line: Line, *, zero: bool) -> str:
    """An invalid trial is among those that count where it counts as a failure."""
    trials = words.counted(line.n_trials, "trial")
    if "elsewhere" in line.marks:
        uncounted = "" if line.n_trials else "; the board counts none of them"
        return f"{line.n_tasks:,} with a valid result under {line.condition}{uncounted}"
    if zero:
        return f"{line.n_tasks:,}, {trials}; missing and invalid ones count as failures"
    if line.n_invalid:
        return f"{line.n_tasks:,} with a result, {trials} that count"
    return f"{line.n_tasks:,} with a valid result, {words.counted(line.n_trials, 'valid trial')}"


def convergence_text(line: Line) -> str:
    """From how many trials of each task on its ICC settles; empty where that is not known."""
    if parts := line.icc.get("by_condition"):
        text = "; ".join(f"under {one['condition']}, {one['needed']}" for one in parts if one["needed"])
        return words.sentence(text)
    return words.sentence(line.icc.get("needed") or "")


def icc_text(line: Line) -> str:
    """How alike its repeated trials are, and over how many; empty where that is not known."""
    parts = [one for one in line.icc.get("by_condition") or () if one["icc"] is not None]
    if parts:
        return words.sentence("; ".join(f"under {one['condition']}, {_one_icc(one)}" for one in parts))
    return "" if line.icc.get("icc") is None else _one_icc(line.icc)


def _one_icc(icc: Mapping[str, Any]) -> str:
    between = f" (95%: {icc['lower']:.2f}–{icc['upper']:.2f})" if icc.get("lower") is not None else ""
    tasks, trials = words.counted(icc.get("n_tasks") or 0, "task"), icc.get("trials_per_task") or 0.0
    over = f" over {tasks}" + (f", {trials:.1f} trials each" if trials else "")
    if not round(trials, 9).is_integer():  # tasks have unequal numbers of them
        over = f"; repeated on {tasks}, {trials:.2f} effective trials per task (n₀)"
    return f"ICC {icc['icc']:.2f}{between}{over}"


def people_text(people: People | None) -> Iterator[tuple[str, str]]:
    if people is None:
        return
    if people.corrected_mean is None or people.judge_mean is None:
        yield "Corrected by people", f"not measured: {people.reason}"
        return
    yield "Mean of the judge", f"{words.percent(people.judge_mean)}%"
    ends = [words.percent(end) for end in (people.lower, people.upper) if end is not None]
    between = f" (95%: {ends[0]}–{ends[1]}%)" if ends else ""
    yield "Corrected by people", f"{words.percent(people.corrected_mean)}%{between}"
    labels = f"{people.n_labels:,} on {words.counted(people.n_tasks, 'task')} ({people.design})"
    yield "Labels by people", f"{labels}; no board counts them"


def ordinal(n: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 21st."""
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n:,}{ending}"


@for_all
@cached_page(of_data=True, reads=(TaskSubset,))
def agent(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """An agent that was merged is found at the other one's address."""
    benchmark = visible(slug)
    merged = benchmark.agents.filter(pk=pk).exclude(merged_into=None).values_list("merged_into", flat=True)
    if other := merged.first():
        return redirect("pages:agent", slug=slug, pk=other)
    page = agent_page(benchmark, pk)
    of, own = page["of"], page["agent"]
    accepted = [one for one in page["delivered"] if one.status == Status.ACCEPTED]
    n_delivered = sum(one.n_outcomes for one in accepted)
    links = {name: link for one in accepted for name, link in one.links.items()}
    policy, alone = of.outcomes.policy, of.standings and not of.standings.conditions.compared
    is_known = page["row"] is not None and (
        alone or policy.missing in (MissingPlaces.AUTO, MissingPlaces.GAP)
    )
    n_counted = of.outcomes.n_counted[page["row"]] if is_known else None
    duplicates, all_count = Duplicates(policy.duplicates), n_counted is not None and n_counted >= n_delivered
    page |= {
        "full_run": full_runs(benchmark).get(own.name),
        "facts": list(_facts(of, own, page["line"])),
        "links": [(name, link) for name, link in links.items() if is_web(str(link))],
        "n_delivered": n_delivered,
        "n_counted": n_counted,  # None where that is not known
        "that_count": THAT_COUNT[duplicates] if all_count or duplicates != Duplicates.MEAN else "",
    }
    return render(request, "pages/agent_page.html", {"page": page, "benchmark": benchmark, "here": "agent"})
