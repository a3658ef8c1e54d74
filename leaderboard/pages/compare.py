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

from leaderboard.boards.models import Board, Entry
from leaderboard.boards.queries import NoBoardYet, latest_board, withdrawn_agents
from leaderboard.boards.reading import head_of
from leaderboard.catalog.models import Benchmark, Trust
from leaderboard.errors import Refusal
from leaderboard.pages.differences import (
    Difference,
    Named,
    TaskRow,
    compare_chart,
    differing,
    n_shared,
    rest_of,
    verdict_of,
    wins,
)
from leaderboard.pages.shown import for_all, visible
from leaderboard.plots.chart import Chart
from leaderboard.studies.answers import Standings, words

FEWEST, MOST = 2, 5
N_SUGGESTED = 4
N_TASKS_SHOWN = 25
SHOWN = ("board", "agent", "position", "name", "scaffold", "model", "trust", "at")  # of an entry


@dataclass(frozen=True)
class ComparePage:
    """A comparison, or what there is to choose from; `asked` are the agents in the order of the address."""

    benchmark: Benchmark
    board: Board
    standings: Standings
    all: list[Named]
    asked: list[Named]
    faults: list[str]
    target: str
    refusal: str = ""
    differences: list[Difference] = field(default_factory=list)
    tasks: list[TaskRow] = field(default_factory=list)
    n_tasks: int = 0
    n_untold: int = 0
    data_version: int | None = None

    @property
    def is_compared(self) -> bool:
        return bool(self.differences)

    @property
    def reference(self) -> Named:
        return self.asked[0]

    @property
    def others(self) -> list[Named]:
        return self.asked[1:]

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
        lines = ((one.name, one.entry.at[self.target]) for one in self.asked)
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
    def first_tasks(self) -> list[TaskRow]:
        return self.tasks[:N_TASKS_SHOWN]

    @property
    def more_tasks(self) -> list[TaskRow]:
        return self.tasks[N_TASKS_SHOWN:]

    @property
    def asked_ids(self) -> list[int]:
        return [one.pk for one in self.asked]

    @property
    def untold(self) -> list[Difference]:
        """Those with something to say beside their dot, or instead of one."""
        return [one for one in self.differences if one.reason]

    @property
    def twin(self) -> str:
        """The address of the same as JSON."""
        names = [("agents", one.entry.name) for one in self.asked]
        asked = urlencode([*names, ("target", self.target)])
        return f"{reverse('api:compare', args=[self.benchmark.slug])}?{asked}"

    @property
    def changes(self) -> list[tuple[Named, str, str]]:
        """For each agent the addresses of the same with it as the reference, and without it."""
        return [(one, *self._changed(one)) for one in self.asked]

    def _changed(self, one: Named) -> tuple[str, str]:
        rest = [other for other in self.asked if other is not one]
        first = "" if one is self.reference else _query([one, *rest])
        return first, _query(rest) if len(rest) >= FEWEST else ""

    @property
    def selects(self) -> list[tuple[str, SafeString]]:
        """For each field of the form its label, and its options; each agent is set as text once."""
        chosen = [one.pk for one in (self.asked if self.asked else self.suggested)]
        named = {one.pk: format_html('value="{}">{}</option>', one.pk, one.name) for one in self.all}
        fields = []
        for place in range(MOST):
            pk = chosen[place] if place < len(chosen) else None
            empty = [] if place < FEWEST and pk else ['<option value="">nobody</option>']
            options = [f"<option{' selected' if own == pk else ''} {text}" for own, text in named.items()]
            label = "With" if place else "Reference"
            fields.append((label, SafeString("".join([*empty, *options]))))
        return fields

    @property
    def suggested(self) -> list[Named]:
        """The first by rank and the first of those that it is tied with."""
        first = next((one for one in self.all if _rank(one, self.target)), None)
        if first is None:
            return []
        tied = {place for lo, hi in _tied(first, self.target) for place in range(lo, hi + 1)}
        beside = [one for one in self.all if one.entry.position in tied]
        return [first, *sorted(beside, key=lambda one: _rank(one, self.target))][:N_SUGGESTED]


# -------------------------------------------------------------------------------------------------- reading


def compare_page(benchmark: Benchmark, asked: QueryDict) -> ComparePage:
    """Read who is asked for, and compare them where they are two to five agents of the latest board.

    Raises
    ------
    NoBoardYet
    """
    board = latest_board(benchmark)
    entries = list(board.entries.order_by("position").only(*SHOWN))
    standings = head_of(board)
    wanted = asked.get("target", "")
    told = standings.targets.get(wanted)
    target = wanted if told and told.n_ranked else standings.target
    everyone = _named(entries)
    chosen, faults = _chosen(asked.getlist("a"), everyone)
    gone = _gone(board, chosen)
    faults += [_gone_text(one, board) for one in gone]
    chosen = [one for one in chosen if one not in gone]
    page = ComparePage(benchmark, board, standings, everyone, chosen, faults, target)
    return page if faults or len(chosen) < FEWEST else _compared(page)


def _named(entries: Sequence[Entry]) -> list[Named]:
    is_mixed = any(entry.trust != Trust.VERIFIED for entry in entries)
    return [Named(entry, words.TRUST[entry.trust] if is_mixed else "") for entry in entries]


def _chosen(asked: Sequence[str], everyone: Sequence[Named]) -> tuple[list[Named], list[str]]:
    known = {str(one.pk): one for one in everyone}
    said = [text for text in dict.fromkeys(asked) if text]
    chosen, faults = [known[text] for text in said if text in known], []
    if n_unknown := len(said) - len(chosen):
        which = "One of the agents named is" if n_unknown == 1 else f"{n_unknown:,} of the agents named are"
        faults.append(f"{which} not on the latest board.")
    if len(chosen) == 1 and not faults:
        faults.append("One agent was named: choose one to four others to compare it with.")
    if len(chosen) > MOST:
        faults.append(f"{len(chosen):,} agents were named; up to {MOST} are compared.")
    return chosen[:MOST], faults


def _gone(board: Board, chosen: Sequence[Named]) -> list[Named]:
    """Those whose outcomes were all taken back since the board; every withdrawal is another data version."""
    if not chosen or board.data_version >= board.benchmark.data_version:
        return []
    gone = withdrawn_agents(board.benchmark)
    return [one for one in chosen if one.pk in gone]


def _gone_text(one: Named, board: Board) -> str:
    return (
        f"{one.name} was withdrawn after board {board.number}, so that nothing is left to compare. "
        "The next board will not list it; choose another."
    )


def _compared(page: ComparePage) -> ComparePage:
    from leaderboard.studies.pairs import found_of  # few compare, and it imports what ranks

    names = _present_names(page.asked)
    try:
        found = found_of(benchmark=page.benchmark, agents=list(names.values()), target=page.target)
    except Refusal as refusal:
        return replace(page, refusal=str(refusal))
    columns = [found.compared.outcomes.get(name) for name in names.values()]
    shared = n_shared(columns)
    return replace(
        page,
        differences=[_difference(page, found.compared, names, other) for other in page.others],
        tasks=differing(
            columns,
            found.compared.tasks,
            [found.task_ids[name] for name in found.compared.tasks],
            base=_tasks_at(page.benchmark),
        ),
        n_tasks=shared,
        n_untold=found.compared.n_tasks - shared,
        data_version=found.data_version,
    )


def _present_names(asked: Sequence[Named]) -> dict[int, str]:
    """Names of today by id: a board keeps those of its day."""
    from leaderboard.catalog.models import Agent

    today = dict(Agent.objects.filter(pk__in=[one.pk for one in asked]).values_list("pk", "name"))
    return {one.pk: today[one.pk] for one in asked}


def _difference(page: ComparePage, found: Any, names: Mapping[int, str], other: Named) -> Difference:
    """The other agent less the reference, with an interval of the board's critical value."""
    a, b = names[page.reference.pk], names[other.pk]
    for agent, name in ((page.reference, a), (other, b)):
        if name in found.left_out:
            return Difference(other, None, reason=f"{agent.name}: {found.left_out[name]}")
    pair = next(one for one in found.pairs if {one.a, one.b} == {a, b})
    if pair.estimate is None:
        return Difference(other, None, reason=pair.reason)
    value = pair.estimate.value if pair.a == b else -pair.estimate.value
    critical = page.standings.targets[page.target].critical
    told = wins(found.outcomes[b], found.outcomes[a])
    estimated = found.agents[a].estimated or found.agents[b].estimated
    if critical is None or pair.se_of_ties is None:
        return Difference(other, value, wins=told, estimated=estimated, reason=pair.reason)
    half = critical * pair.se_of_ties
    word = "tied" if pair.is_tied(critical) else "better" if value > 0 else "worse"
    reason = "no order is claimed: outcomes are missing unevenly" if pair.unclaimed else pair.reason
    return Difference(other, value, value - half, value + half, word, told, estimated, reason)


def _tasks_at(benchmark: Benchmark) -> str:
    """What the address of a task begins with; its number follows."""
    return reverse("pages:task", args=[benchmark.slug, 0]).removesuffix("0")


def _rank(one: Named, target: str) -> int:
    return one.entry.at[target]["rank"] or 0


def _tied(one: Named, target: str) -> list[tuple[int, int]]:
    return [(lo, hi) for lo, hi in one.entry.at[target]["tied_with"]]


def _query(agents: Sequence[Named]) -> str:
    return "?" + urlencode([("a", one.pk) for one in agents])


def drawn_compare(benchmark: Benchmark, asked: QueryDict) -> Chart | None:
    try:
        return compare_page(benchmark, asked).chart
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
