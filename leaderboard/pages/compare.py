"""What “Compare” shows: two to five agents, how each differs from the first named, and on which tasks.

Differences are of the present data; the critical value is that of the latest board, so that on its data an
interval holds 0 exactly where the board calls the two tied.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from leaderboard.boards.models import Board
from leaderboard.boards.queries import NoBoardYet, latest_board, withdrawn_agents
from leaderboard.boards.reading import head_of
from leaderboard.catalog.models import Benchmark, Trust
from leaderboard.errors import Refusal
from leaderboard.pages.access import for_all, visible
from leaderboard.pages.differences import (
    AgentDifference,
    ComparedAgent,
    DifferingTask,
    compare_chart,
    differing,
    n_shared,
    rest_of,
    verdict_of,
    wins,
)
from leaderboard.plots.chart import Chart
from leaderboard.studies.answers import Standings, words

MIN_AGENTS, MAX_AGENTS = 2, 5
N_SUGGESTED = 4
N_TASKS_SHOWN = 25
SHOWN = ("board", "agent", "position", "name", "scaffold", "model", "trust", "at")  # of an entry


@dataclass(frozen=True)
class ComparePage:
    """A comparison, or what there is to choose from; `agents` are in the order of the address."""

    benchmark: Benchmark
    board: Board
    standings: Standings
    all: list[ComparedAgent]
    agents: list[ComparedAgent]
    faults: list[str]
    target: str
    refusal: str = ""
    differences: list[AgentDifference] = field(default_factory=list)
    tasks: list[DifferingTask] = field(default_factory=list)
    n_tasks: int = 0
    n_not_shared: int = 0
    data_version: int | None = None

    @property
    def is_compared(self) -> bool:
        return bool(self.differences)

    @property
    def reference(self) -> ComparedAgent:
        return self.agents[0]

    @property
    def others(self) -> list[ComparedAgent]:
        return self.agents[1:]

    @property
    def is_newer(self) -> bool:
        """Whether these are not the data of the board."""
        return self.data_version is not None and self.data_version != self.board.data_version

    @property
    def tells_trust(self) -> bool:
        return any(one.trust for one in self.all)

    @property
    def versions(self) -> list[str]:
        """Names of those that the board lowers, or folds, as versions of one agent."""
        lines = ((one.name, one.entry.at[self.target]) for one in self.agents)
        return [name for name, at in lines if at.get("correction") or at.get("folded_under")]

    @property
    def over(self) -> str:
        return words.tasks_of(self.standings, self.target)

    @property
    def verdict(self) -> tuple[str, SafeString]:
        return verdict_of(self.differences), rest_of(self.differences, self.over)

    @cached_property
    def chart(self) -> Chart | None:
        return compare_chart(self.differences, self.reference.name) if self.differences else None

    @property
    def first_tasks(self) -> list[DifferingTask]:
        return self.tasks[:N_TASKS_SHOWN]

    @property
    def more_tasks(self) -> list[DifferingTask]:
        return self.tasks[N_TASKS_SHOWN:]

    @property
    def agent_ids(self) -> list[int]:
        return [one.pk for one in self.agents]

    @property
    def with_reason(self) -> list[AgentDifference]:
        """Those with something to say beside their dot, or instead of one."""
        return [one for one in self.differences if one.reason]

    @property
    def twin(self) -> str:
        """The address of the same as JSON."""
        names = [("agents", one.entry.name) for one in self.agents]
        parameters = urlencode([*names, ("target", self.target)])
        return f"{reverse('api:compare', args=[self.benchmark.slug])}?{parameters}"

    @property
    def changes(self) -> list[tuple[ComparedAgent, str, str]]:
        """For each agent the addresses of the same with it as the reference, and without it."""
        return [(one, *self._other_addresses(one)) for one in self.agents]

    def _other_addresses(self, one: ComparedAgent) -> tuple[str, str]:
        rest = [other for other in self.agents if other is not one]
        first = "" if one is self.reference else _query([one, *rest])
        return first, _query(rest) if len(rest) >= MIN_AGENTS else ""

    @property
    def selects(self) -> list[tuple[str, SafeString]]:
        """For each field of the form its label, and its options; each agent is set as text once."""
        chosen = [one.pk for one in (self.agents if self.agents else self.suggested)]
        named = {one.pk: format_html('value="{}">{}</option>', one.pk, one.name) for one in self.all}
        fields = []
        for place in range(MAX_AGENTS):
            pk = chosen[place] if place < len(chosen) else None
            empty = [] if place < MIN_AGENTS and pk else ['<option value="">nobody</option>']
            options = [f"<option{' selected' if own == pk else ''} {text}" for own, text in named.items()]
            label = "With" if place else "Reference"
            fields.append((label, SafeString("".join([*empty, *options]))))
        return fields

    @property
    def suggested(self) -> list[ComparedAgent]:
        """The first by rank and the first of those that it is tied with."""
        first = next((one for one in self.all if _rank(one, self.target)), None)
        if first is None:
            return []
        tied = {place for lo, hi in first.entry.at[self.target]["tied_with"] for place in range(lo, hi + 1)}
        tied_agents = [one for one in self.all if one.entry.position in tied]
        return [first, *sorted(tied_agents, key=lambda one: _rank(one, self.target))][:N_SUGGESTED]


# -------------------------------------------------------------------------------------------------- reading


def compare_page(benchmark: Benchmark, params: QueryDict) -> ComparePage:
    """Read who is asked for, and compare them where they are two to five agents of the latest board.

    Raises NoBoardYet.
    """
    board = latest_board(benchmark)
    entries = list(board.entries.order_by("position").only(*SHOWN))
    standings = head_of(board)
    wanted = params.get("target", "")
    result = standings.targets.get(wanted)
    target = wanted if result and result.n_ranked else standings.target
    is_mixed = any(entry.trust != Trust.VERIFIED for entry in entries)
    everyone = [ComparedAgent(entry, words.TRUST[entry.trust] if is_mixed else "") for entry in entries]
    agents, faults = _choose(params.getlist("a"), everyone)
    withdrawn = _withdrawn_of(board, agents)
    faults += [_gone_text(one, board) for one in withdrawn]
    agents = [one for one in agents if one not in withdrawn]
    page = ComparePage(benchmark, board, standings, everyone, agents, faults, target)
    return page if faults or len(agents) < MIN_AGENTS else _compare(page)


def _choose(
    values: Sequence[str], everyone: Sequence[ComparedAgent]
) -> tuple[list[ComparedAgent], list[str]]:
    known = {str(one.pk): one for one in everyone}
    texts = [text for text in dict.fromkeys(values) if text]
    chosen, faults = [known[text] for text in texts if text in known], []
    if n_unknown := len(texts) - len(chosen):
        which = "One of the agents named is" if n_unknown == 1 else f"{n_unknown:,} of the agents named are"
        faults.append(f"{which} not on the latest board.")
    if len(chosen) == 1 and not faults:
        faults.append("One agent was named: choose one to four others to compare it with.")
    if len(chosen) > MAX_AGENTS:
        faults.append(f"{len(chosen):,} agents were named; up to {MAX_AGENTS} are compared.")
    return chosen[:MAX_AGENTS], faults


def _withdrawn_of(board: Board, chosen: Sequence[ComparedAgent]) -> list[ComparedAgent]:
    """Those whose outcomes were all taken back since the board; every withdrawal is another data version."""
    if not chosen or board.data_version >= board.benchmark.data_version:
        return []
    withdrawn_ids = withdrawn_agents(board.benchmark)
    return [one for one in chosen if one.pk in withdrawn_ids]


def _gone_text(one: ComparedAgent, board: Board) -> str:
    return (
        f"{one.name} was withdrawn after board {board.number}, so that nothing is left to compare. "
        "The next board will not list it; choose another."
    )


def _compare(page: ComparePage) -> ComparePage:
    # Names of today by id: a board keeps those of its day
    from leaderboard.catalog.models import Agent
    from leaderboard.studies.pairs import compare_agents  # few compare, and it imports what ranks

    today = dict(Agent.objects.filter(pk__in=[one.pk for one in page.agents]).values_list("pk", "name"))
    names = {one.pk: today[one.pk] for one in page.agents}
    try:
        comparison = compare_agents(benchmark=page.benchmark, agents=list(names.values()), target=page.target)
    except Refusal as refusal:
        return replace(page, refusal=str(refusal))
    columns = [comparison.compared.outcomes.get(name) for name in names.values()]
    shared = n_shared(columns)
    return replace(
        page,
        differences=[_difference(page, comparison.compared, names, other) for other in page.others],
        tasks=differing(
            columns,
            comparison.compared.tasks,
            [comparison.task_ids[name] for name in comparison.compared.tasks],
            base=reverse("pages:task", args=[page.benchmark.slug, 0]).removesuffix("0"),
        ),
        n_tasks=shared,
        n_not_shared=comparison.compared.n_tasks - shared,
        data_version=comparison.data_version,
    )


def _difference(
    page: ComparePage, compared: Any, names: Mapping[int, str], other: ComparedAgent
) -> AgentDifference:
    """The other agent less the reference, with an interval of the board's critical value."""
    a, b = names[page.reference.pk], names[other.pk]
    for agent, name in ((page.reference, a), (other, b)):
        if name in compared.left_out:
            return AgentDifference(other, None, reason=f"{agent.name}: {compared.left_out[name]}")
    pair = next(one for one in compared.pairs if {one.a, one.b} == {a, b})
    if pair.estimate is None:
        return AgentDifference(other, None, reason=pair.reason)
    value = pair.estimate.value if pair.a == b else -pair.estimate.value
    critical = page.standings.targets[page.target].critical
    counts = wins(compared.outcomes[b], compared.outcomes[a])
    estimated = compared.agents[a].estimated or compared.agents[b].estimated
    if critical is None or pair.se_of_ties is None:
        return AgentDifference(other, value, wins=counts, estimated=estimated, reason=pair.reason)
    half = critical * pair.se_of_ties
    word = "tied" if pair.is_tied(critical) else "better" if value > 0 else "worse"
    reason = "no order is claimed: outcomes are missing unevenly" if pair.unclaimed else pair.reason
    return AgentDifference(other, value, value - half, value + half, word, counts, estimated, reason)


def _rank(one: ComparedAgent, target: str) -> int:
    return one.entry.at[target]["rank"] or 0


def _query(agents: Sequence[ComparedAgent]) -> str:
    return "?" + urlencode([("a", one.pk) for one in agents])


def plot_compare(benchmark: Benchmark, params: QueryDict) -> Chart | None:
    try:
        return compare_page(benchmark, params).chart
    except NoBoardYet:
        return None


@require_safe
@for_all
def compare(request: HttpRequest, slug: str) -> HttpResponse:
    benchmark = visible(slug)
    shown: dict[str, Any] = {"benchmark": benchmark, "here": "compare"}
    try:
        shown["page"] = compare_page(benchmark, request.GET)
    except NoBoardYet:
        return render(request, "pages/no_board.html", shown)
    return render(request, "pages/compare.html", shown)
