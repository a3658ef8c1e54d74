"""The page of one agent: which ranks it may hold, what it passes, and all that was delivered of it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_safe

from leaderboard.catalog.models import Agent, Benchmark, Duplicates, MissingPlaces, Task
from leaderboard.pages.access import for_all, visible
from leaderboard.pages.caching import cached_page
from leaderboard.pages.ordered_outcomes import OrderedOutcomes, ordered_outcomes
from leaderboard.pages.replay_summary import ReplayedRun, full_runs
from leaderboard.pages.tasks import plain
from leaderboard.plots.chart import Chart
from leaderboard.plots.strip import strip
from leaderboard.studies.answers import AtTarget, Line, words
from leaderboard.studies.models import TaskSubset
from leaderboard.studies.outcomes import REACH, ExpectedOutcomes, expected
from leaderboard.studies.people import People, people_of
from leaderboard.submissions.models import Status, StatusChange, Submission
from leaderboard.submissions.queries import ever_counted

N_BESIDE = 3  # neighbours on either side
N_LISTED = 10  # surprises of either kind
NO_ICC = "not measured: there is no ICC of it"
OPENED = ("https://", "http://")
THAT_COUNT = {
    Duplicates.MEAN: "all that stand count, and several outcomes of a task count with their mean",
    Duplicates.LATEST: "the latest that stands counts",
    Duplicates.FIRST: "the first that stands counts",
}


@dataclass(frozen=True)
class NeighbourRow:
    """An agent near it on the board."""

    agent: Agent
    rank: str
    line: Line
    target_result: AtTarget
    is_own: bool


@dataclass(frozen=True)
class Surprise:
    task: Task
    by: str


@dataclass(frozen=True)
class AgentPage:
    """`delivered` are the submissions that ever counted, the first one first."""

    of: OrderedOutcomes
    agent: Agent
    delivered: list[Any]
    aliases: list[str]

    @property
    def is_withdrawn(self) -> bool:
        return not any(one.status == Status.ACCEPTED for one in self.delivered)

    @cached_property
    def line(self) -> Line | None:
        """On the latest board; None also where everything has been withdrawn since."""
        return None if self.is_withdrawn else self.of.line_of(self.agent)

    @property
    def target_result(self) -> AtTarget | None:
        standings = self.of.standings
        return self.line.at[standings.target] if self.line and standings else None

    @property
    def n_ranked(self) -> int:
        standings = self.of.standings
        return standings.targets[standings.target].n_ranked if standings else 0

    @property
    def headline(self) -> str:
        name, at = self.agent.name, self.target_result
        if self.is_withdrawn:
            return f"{name} was withdrawn."
        if at is None:
            return f"{name} is on no board yet."
        if at.rank is None:
            return f"{name} is listed without a rank."
        if self.n_ranked == 1:
            return f"{name} is the only agent with a rank so far."
        if at.rank_lower is None:
            return f"{name} has rank {at.rank:,} of {self.n_ranked:,}."
        if at.rank_lower == at.rank_upper:
            return f"{name} holds rank {at.rank:,} of {self.n_ranked:,}."
        return f"{name} may hold ranks {at.rank_lower:,} to {at.rank_upper:,}."

    @property
    def rest(self) -> str:
        """Why it has no rank; what it passes, and for how much."""
        if self.line is None or self.target_result is None:
            return "" if self.is_withdrawn else "The next board will list it."
        why = words.sentence(self.target_result.reason) if self.target_result.rank is None else ""
        return " ".join(part for part in (why, self._scores(self.line), self._bounds(self.line)) if part)

    def _scores(self, line: Line) -> str:
        assert self.of.standings is not None
        k, n = (self.of.standings.targets[target].n_tasks for target in ("subset", "full"))
        of_subset, full = line.at["subset"].score, line.at["full"].score
        verb, of = ("scores", "on") if self._is_between else ("passes", "of")
        parts = [
            f"{words.percent(of_subset)}% {of} the {words.counted(k, 'ranking task')}"
            if of_subset is not None and k
            else "",
            f"{'~' if line.at['full'].estimated else ''}{words.percent(full)}% {of} "
            f"{words.task_set('full', n) if not k or of_subset is None or n == 1 else f'all {n:,}'}"
            f"{_between(line.at['full'])}"
            if full is not None
            else "",
        ]
        scores = " and ".join(part for part in parts if part)
        return f"It {verb} {scores}{self._cost(line)}." if scores else ""

    @property
    def _is_between(self) -> bool:
        """Whether it has outcomes that are neither failures nor passes."""
        own = self.of.outcomes.means[self.row] if self.row is not None else np.array([])
        return bool(((own > 0) & (own < 1)).any())

    def _cost(self, line: Line) -> str:
        assert self.of.standings is not None
        if line.cost_usd is None:
            return "" if line.cost_basis == words.HIDDEN else "; its cost was not stated"
        if line.agent not in words.costs(self.of.standings):
            return f"; its stated cost, {words.cost_text(line)} a run, is not plausible"
        if line.cost_basis == words.IN_PART:
            return f"; some of its trials state a cost, at which a run is {words.cost_text(line)}"
        return f", for {words.cost_text(line)} a run"

    def _bounds(self, line: Line) -> str:
        if line.at["full"].score is not None or not (bounds := words.bounds_text(line.at["full"])):
            return ""
        return f"Its score on all tasks is {bounds}."

    @cached_property
    def full_run(self) -> ReplayedRun | None:
        """Of a replay: what it scored on all tasks, on the board that is replayed."""
        return full_runs(self.of.benchmark).get(self.agent.name)

    @property
    def full_score(self) -> str:
        return words.percent(self.full_run.score) if self.full_run else ""

    @property
    def is_estimated(self) -> bool:
        return self.line is not None and self.line.at["full"].estimated

    @property
    def facts(self) -> Iterator[tuple[str, str]]:
        """What is stated of it."""
        yield "Scaffold", self.agent.scaffold.name
        yield "Model", self.agent.model.name
        yield "Version", self.agent.version or "not stated"
        yield "Organisation", self.agent.organisation or "not stated"
        if self.aliases:
            yield "Called before", ", ".join(self.aliases)
        if self.line is None:
            return
        yield "Date", self.line.submitted_at or "not stated"
        yield "Trust", f"{words.TRUST[self.line.trust]}: {words.clause(words.TRUST_MEANS[self.line.trust])}"
        yield "Tasks", _tasks_text(self.line, zero=self._is_zero)
        yield "Invalid trials", f"{self.line.n_invalid:,}" if self.line.n_invalid else "none"
        yield "Cost", dict(words.about(self.line)).get("Cost", self.line.cost_basis)
        yield "Repeated trials", icc_text(self.line)
        yield "Trials that the ICC needs", convergence_text(self.line)
        yield from people_text(self.people)
        for mark in self.line.marks:
            yield mark.capitalize(), words.sentence(words.MARKS[mark])
        if self.line.condition:
            yield "Conditions", self.line.condition
        for flag in self.line.flags:
            yield "Flag", words.sentence(flag)

    @property
    def _is_zero(self) -> bool:
        """Whether the board counts missing outcomes as failures."""
        return self.of.board is not None and self.of.board.policy.missing == MissingPlaces.ZERO

    @cached_property
    def people(self) -> People | None:
        return people_of(self.agent)

    @property
    def links(self) -> list[tuple[str, str]]:
        """Those that a browser may open, of what stands."""
        links = {
            name: link
            for one in self.delivered
            if one.status == Status.ACCEPTED
            for name, link in one.links.items()
        }
        return [(name, link) for name, link in links.items() if str(link).startswith(OPENED)]

    # ------------------------------------------------------------------------------------------------- tasks

    @cached_property
    def row(self) -> int | None:
        places = [i for i, agent in enumerate(self.of.outcomes.agents) if agent.pk == self.agent.pk]
        return places[0] if places else None

    @cached_property
    def ranked_rows(self) -> list[int]:
        return np.flatnonzero(~np.isnan(self.of.ranks)).tolist()

    @cached_property
    def expected(self) -> ExpectedOutcomes | None:
        """By its neighbours; None for an agent without a rank, or without one beside it."""
        if self.row not in self.ranked_rows or len(self.ranked_rows) < 2:
            return None
        return expected(self.of.outcomes.means[self.ranked_rows], self.ranked_rows.index(self.row))

    @property
    def passes(self) -> list[Surprise]:
        return self._surprises(self.expected.passes) if self.expected else []

    @property
    def failures(self) -> list[Surprise]:
        return self._surprises(self.expected.failures) if self.expected else []

    def _surprises(self, columns: np.ndarray) -> list[Surprise]:
        assert self.expected is not None
        means, n = self.expected.means, self.expected.n_neighbours
        return [
            Surprise(self.of.outcomes.tasks[j], f"{100 * means[j]:.0f}% expected by {n[j]} neighbours")
            for j in columns[:N_LISTED].tolist()
        ]

    @cached_property
    def _surprising(self) -> frozenset[int]:
        return frozenset((*self.expected.passes, *self.expected.failures)) if self.expected else frozenset()

    @property
    def passes_text(self) -> str:
        if self.expected is None:
            return ""
        result = self.expected
        if not result.n_seldom:
            return "None: at most 20% was expected on no task that it ran."
        return (
            f"{len(result.passes):,} of the {words.counted(result.n_seldom, 'task')} on which at most 20% "
            f"was expected; {result.passes_by_chance:.1f} would come by chance."
        )

    @property
    def failures_text(self) -> str:
        if self.expected is None:
            return ""
        result = self.expected
        if not result.n_often:
            return "None: at least 80% was expected on no task that it ran."
        return (
            f"{len(result.failures):,} of the {words.counted(result.n_often, 'task')} on which at least 80% "
            f"was expected; {result.failures_by_chance:.1f} would come by chance."
        )

    @cached_property
    def chart(self) -> Chart | None:
        """The strip of all tasks; None where no outcome of it counts."""
        if self.row is None:
            return None
        order = self.of.easiest
        outcomes = plain(self.of.outcomes.means[self.row][order])
        means = plain(self.expected.means[order]) if self.expected else [None] * len(order)
        inside = np.flatnonzero(self.of.in_band[order])
        return Chart(
            name="agent",
            title="What it passes",
            lede=self._lede,
            heads=("Task", "Outcome", "Expected"),
            rows=tuple(
                (self.of.outcomes.tasks[j].name, _share(own), _share(mean))
                for j, own, mean in zip(order.tolist(), outcomes, means, strict=True)
            ),
            svg=strip(
                name="agent",
                title=f"{words.counted(len(order), 'task')} by difficulty",
                outcomes=outcomes,
                expected=means,
                surprising=[j in self._surprising for j in order.tolist()],
                band=(int(inside[0]), int(inside[-1]) + 1) if inside.size else None,
            ),
        )

    @property
    def _lede(self) -> str:
        lede = (
            "All tasks from the easiest on: filled where passed, half where one of two trials passed, a dash "
            f"where there is no valid outcome; pass rates of {self.of.band_text} are tinted."
        )
        if self.expected is None:
            return f"{lede} Without neighbours in rank nothing is expected of it."
        return (
            f"{lede} Expected is the mean outcome on the task of the {REACH} agents ranked next above it and "
            f"the {REACH} next below, as far as there are so many, moved by the {self._difference} that its "
            "own mean lies from theirs, and kept within 0 and 1."
        )

    @property
    def _difference(self) -> str:
        points = 100 * (self.expected.difference if self.expected else 0.0)
        return f"{points:+.1f} points".replace("-", "−")

    @cached_property
    def neighbours(self) -> list[NeighbourRow]:
        """Those next to it on the board, whose outcomes still count, and itself."""
        standings = self.of.standings
        if standings is None or self.row not in self.ranked_rows:
            return []
        place = self.ranked_rows.index(self.row)
        near = self.ranked_rows[max(0, place - N_BESIDE) : place + N_BESIDE + 1]
        lines = [(agent, self.of.line_of(agent)) for agent in (self.of.outcomes.agents[row] for row in near)]
        ranks = Counter(line.at[standings.target].rank for line in standings.agents)
        return [
            NeighbourRow(agent, _rank_text(at.rank, ranks), line, at, agent.pk == self.agent.pk)
            for agent, line in lines
            if line and (at := line.at[standings.target])
        ]

    @property
    def tasks_of(self) -> str:
        """Of the scores of its neighbours."""
        standings = self.of.standings
        return words.tasks_of(standings, standings.target) if standings else ""

    # ------------------------------------------------------------------------------------------- submissions

    @property
    def submissions(self) -> list[tuple[str, Any]]:
        return [(ordinal(n), one) for n, one in enumerate(self.delivered, 1)]

    @property
    def submissions_text(self) -> str:
        n, policy = len(self.delivered), self.of.outcomes.policy
        if n == 1:
            return "One submission."
        all_count = self.n_counted is not None and self.n_counted >= self.n_delivered
        tells_count = all_count or policy.duplicates != Duplicates.MEAN
        counts = f": {THAT_COUNT[Duplicates(policy.duplicates)]}" if tells_count else ""
        return f"{words.counted(n, 'submission')}; none was chosen by us{counts}."

    @property
    def counted_text(self) -> str:
        """How many of the outcomes count; empty where all do, and where that is not known."""
        if self.n_counted is None or self.n_counted >= self.n_delivered:
            return ""
        return (
            f"{self.n_counted:,} of {words.counted(self.n_delivered, 'outcome')} "
            f"count{'s' if self.n_counted == 1 else ''}: the others are trials beyond those that each of its "
            "tasks has, or of tasks, conditions or submissions that the board leaves out."
        )

    @property
    def n_delivered(self) -> int:
        """Outcomes of the submissions that stand."""
        return sum(one.n_outcomes for one in self.delivered if one.status == Status.ACCEPTED)

    @property
    def n_counted(self) -> int | None:
        """Those of them that count; None where that is not known."""
        policy, standings = self.of.outcomes.policy, self.of.standings
        alone = standings is not None and not standings.conditions.compared
        if self.row is None or not (alone or policy.missing == MissingPlaces.GAP):
            return None
        return self.of.outcomes.n_counted[self.row]


def _rank_text(rank: int | None, ranks: Counter[int | None]) -> str:
    """5= where others have that rank too, as on the board."""
    return f"{rank:,}{'=' if ranks[rank] > 1 else ''}" if rank else ""


def _between(at: AtTarget) -> str:
    """The interval of an estimated score, which is no measured one's."""
    if not at.estimated or at.lower is None or at.upper is None:
        return ""
    return f" (95%: {words.percent(at.lower)} to {words.percent(at.upper)}%)"


def _share(value: float | None) -> str:
    return "none" if value is None else f"{words.percent(value)}%"


def _tasks_text(line: Line, *, zero: bool) -> str:
    """An invalid trial is among those that count where it counts as a failure."""
    if "elsewhere" in line.marks and not line.n_trials:
        return (
            f"{line.n_tasks:,} with a valid outcome under {line.condition}, none of which this board counts"
        )
    if zero:
        trials = words.counted(line.n_trials, "trial")
        return f"{line.n_tasks:,}, with {trials}; those missing or invalid count as failures"
    if line.n_invalid:
        return f"{line.n_tasks:,} with an outcome, {words.counted(line.n_trials, 'trial')} that count"
    return f"{line.n_tasks:,} with a valid outcome, {words.counted(line.n_trials, 'valid trial')}"


def convergence_text(line: Line) -> str:
    """From how many trials of each task on its ICC settles; or why that is not known."""
    if parts := line.icc.get("by_condition"):
        return words.sentence(
            "; ".join(f"under {one['condition']}, {one['needed'] or NO_ICC}" for one in parts)
        )
    return words.sentence(line.icc.get("needed") or NO_ICC)


def icc_text(line: Line) -> str:
    """How alike its repeated trials are, and over how many; or why that is not known."""
    icc = line.icc
    if line.condition and not line.n_trials:
        return "Not measured: no trial that this board counts."
    parts = icc.get("by_condition") or ()
    if any(one["icc"] is not None for one in parts):
        return words.sentence("; ".join(f"under {one['condition']}, {_one_icc(one)}" for one in parts))
    return _one_icc(icc) if icc.get("icc") is not None else words.sentence(_one_icc(icc))


def _one_icc(icc: Mapping[str, Any]) -> str:
    if icc.get("icc") is None:
        return icc.get("reason") or "not measured"
    between = f" (95%: {icc['lower']:.2f} to {icc['upper']:.2f})" if icc.get("lower") is not None else ""
    n, trials = icc.get("n_tasks") or 0, icc.get("trials_per_task")
    each = f" with {trials:.1f} trials each" if trials else ""
    return f"ICC {icc['icc']:.2f}{between} over {words.counted(n, 'task')}{each}"


def people_text(people: People | None) -> Iterator[tuple[str, str]]:
    """What people said beside what the outcomes say, or why their judgement is not known."""
    if people is None or people.corrected_mean is None or people.judge_mean is None:
        why = people.reason if people else "no outcome of it has a label that a person gave"
        yield "Corrected by people", f"not measured, because {why}"
        return
    yield "Mean of the outcomes", f"{words.percent(people.judge_mean)}%"
    yield "Corrected by people", _corrected_text(people)
    labels = f"{people.n_labels:,} of {words.counted(people.n_tasks, 'task')} ({people.design})"
    yield "Labels used", f"{labels}; they came with the outcomes, and no board counts them"


def _corrected_text(people: People) -> str:
    ends = [words.percent(end) for end in (people.lower, people.upper) if end is not None]
    between = f" (95%: {ends[0]}% to {ends[1]}%)" if ends else ""
    return f"{words.percent(people.corrected_mean or 0.0)}%{between}"


def ordinal(n: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 21st."""
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n:,}{ending}"


def agent_page(benchmark: Benchmark, pk: int) -> AgentPage:
    """Read one agent; Http404 where nothing of it ever counted, as of one whose first embargo still holds."""
    agent = get_object_or_404(benchmark.agents.select_related("scaffold", "model"), pk=pk)
    delivered = list(_counted_submissions(agent))
    if not delivered:
        raise Http404("Nothing of this agent has counted yet.")
    aliases = list(agent.aliases.order_by("name").values_list("name", flat=True))
    return AgentPage(ordered_outcomes(benchmark), agent, delivered, aliases)


def _counted_submissions(agent: Agent) -> QuerySet[Submission]:
    """What ever counted of an agent and of those merged into it, with `until`, when it ceased to."""
    changes = StatusChange.objects.filter(submission=OuterRef("pk"))
    ceased = changes.exclude(status=Status.ACCEPTED).order_by("-id").values("at")[:1]
    submissions = ever_counted().filter(Q(agent=agent) | Q(agent__merged_into=agent))
    return submissions.annotate(until=Subquery(ceased)).select_related("agent").order_by("id")


def plot_page(benchmark: Benchmark, params: QueryDict) -> Chart | None:
    text = params.get("agent", "")
    return agent_page(benchmark, int(text[:9]) if text.isascii() and text.isdecimal() else 0).chart


@require_safe
@for_all
@cached_page(of_data=True, reads=(TaskSubset,))
def agent(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """An agent that was merged is found at the other one's address."""
    benchmark = visible(slug)
    merged = (
        benchmark.agents.filter(pk=pk).exclude(merged_into=None).values_list("merged_into", flat=True).first()
    )
    if merged is not None:
        return redirect("pages:agent", slug=slug, pk=merged)
    page = agent_page(benchmark, pk)
    return render(request, "pages/agent_page.html", {"page": page, "benchmark": benchmark, "here": "agent"})
