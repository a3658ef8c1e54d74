"""What “Compare” shows: two to five agents, how each differs from the first named, and on which tasks.

Differences are of the present data; the critical value is that of the latest board, so that on its data an
interval holds 0 exactly where the board calls the two tied.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import urlencode

import numpy as np
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from leaderboard.boards.models import Board, Entry
from leaderboard.boards.queries import NoBoardYet, entries_of, latest_board
from leaderboard.boards.reading import standings_with
from leaderboard.catalog.models import Benchmark
from leaderboard.errors import Refusal
from leaderboard.pages.shown import for_all, visible
from leaderboard.plots.chart import Chart
from leaderboard.plots.dots import Row, dots
from leaderboard.plots.scales import ticks_125
from leaderboard.studies.answers import Standings, words

FEWEST, MOST = 2, 5
N_SUGGESTED = 4
N_TASKS_SHOWN = 25
DECIMALS = 9
NUMBERS = ("None", "One", "Two", "Three", "Four")


class Wins(NamedTuple):
    """On how many tasks one agent does better, worse and alike, and how many they cannot be counted on."""

    n_better: int
    n_worse: int
    n_alike: int
    n_untold: int

    @property
    def text(self) -> str:
        untold = f", {self.n_untold:,} not run by both" if self.n_untold else ""
        alike = words.counted(self.n_alike, "task")
        return f"wins {self.n_better:,}, loses {self.n_worse:,}, alike on {alike}{untold}"


def wins(other: Sequence[float], reference: Sequence[float]) -> Wins:
    """Count the tasks; NaN is no valid outcome. Outcomes are rounded to 1e-9."""
    d = np.round(np.asarray(other) - np.asarray(reference), DECIMALS)
    counts = [int(np.count_nonzero(found)) for found in (d > 0, d < 0, d == 0, np.isnan(d))]
    return Wins(*counts)


@dataclass(frozen=True)
class Named:
    """An agent of the board, as it is called on this page."""

    entry: Entry
    label: str
    short: str = ""  # in a sentence, where that tells those compared apart

    @property
    def pk(self) -> int:
        return self.entry.agent_id


@dataclass(frozen=True)
class Difference:
    """How an agent differs from the reference, in score; without an error or a critical value no ends."""

    agent: Named
    value: float | None
    lower: float | None = None
    upper: float | None = None
    word: str = ""  # tied, better, worse; empty where that cannot be told
    wins: Wins | None = None
    estimated: bool = False
    reason: str = ""

    @property
    def said(self) -> str:
        if self.value is None:
            return "not compared"
        points = f"{points_text(self.value)} points"
        return f"{'~' if self.estimated else ''}{points}, {self.word}" if self.word else points

    @property
    def note(self) -> str:
        return self.wins.text if self.wins else ""


@dataclass(frozen=True)
class TaskRow:
    """A task on which agents differ, and what each has there."""

    name: str
    pk: int
    cells: tuple[str, ...]
    spread: float


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
    def over(self) -> str:
        return words.tasks_of(self.standings, self.target)

    @property
    def verdict(self) -> tuple[str, SafeString]:
        return verdict_of(self.differences), rest_of(self.differences, self.over)

    @cached_property
    def chart(self) -> Chart | None:
        return compare_chart(self.differences, self.reference.label) if self.differences else None

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
    def selects(self) -> list[tuple[str, int | None]]:
        """For each field of the form its label, and who is chosen in it."""
        chosen = [one.pk for one in (self.asked if self.asked else self.suggested)]
        filled = [*chosen[:MOST], *[None] * (MOST - len(chosen))]
        return [("Reference" if place == 0 else "With", pk) for place, pk in enumerate(filled)]

    @property
    def suggested(self) -> list[Named]:
        """The first by rank and the first of those that it is tied with."""
        first = next((one for one in self.all if _rank(one, self.target)), None)
        if first is None:
            return []
        tied = {place for lo, hi in _tied(first, self.target) for place in range(lo, hi + 1)}
        beside = [one for one in self.all if one.entry.position in tied]
        return [first, *sorted(beside, key=lambda one: _rank(one, self.target))][:N_SUGGESTED]


# ------------------------------------------------------------------------------------------------ sentences


def verdict_of(differences: Sequence[Difference]) -> str:
    """Say how many are tied with the reference."""
    told = [one for one in differences if one.word]
    n, n_tied = len(told), sum(one.word == "tied" for one in told)
    if not n:
        return "Who is better cannot be said."
    if n == 1:
        surely = f"<bdi>{{}}</bdi> is surely {told[0].word}."
        return "They are tied." if n_tied else format_html(surely, told[0].agent.short)
    if n_tied == n:
        return f"{'Both' if n == 2 else f'All {NUMBERS[n].lower()}'} are tied with it."
    of = "two" if n == 2 else f"{NUMBERS[n].lower()}"
    return f"{NUMBERS[n_tied]} of these {of} {'is' if n_tied <= 1 else 'are'} tied with it."


def rest_of(differences: Sequence[Difference], over: str) -> SafeString:
    """Name who is surely worse and better, and on which tasks."""
    told = []
    for word in ("worse", "better"):
        names = [one.agent.short for one in differences if one.word == word]
        if names and len(differences) > 1:
            only = "Only " if len(names) == 1 else ""
            verb = "is" if len(names) == 1 else "are"
            told.append(format_html("{}{} {} surely {}", only, _listed(names), verb, word))
    if not told:
        return format_html("On {}.", over)
    return format_html("{} on {}.", format_html_join("; ", "{}", ((one,) for one in told)), over)


def _listed(names: Sequence[str]) -> SafeString:
    *first, last = [format_html("<bdi>{}</bdi>", name) for name in names]
    joined = format_html_join(", ", "{}", ((name,) for name in first))
    return format_html("{} and {}", joined, last) if first else last


def points_text(value: float) -> str:
    """Return −6.1 for −0.061, +2.0 for 0.02."""
    told = words.percent(value)
    return told if told.startswith("−") or float(told) == 0 else f"+{told}"


# ---------------------------------------------------------------------------------------------------- chart


def compare_chart(differences: Sequence[Difference], reference: str) -> Chart | None:
    """Draw the differences to the reference; None where there is none to draw."""
    shown = [one for one in differences if one.value is not None]
    if not shown:
        return None
    ends = [end for one in shown for end in (one.value, one.lower, one.upper) if end is not None]
    lo, hi = min([*ends, -0.02]), max([*ends, 0.02])
    rows = [
        Row(
            one.agent.label,
            one.note,
            one.said,
            one.value,
            one.lower,
            one.upper,
            hollow=one.word in ("worse", "better"),
        )
        for one in shown
    ]
    drawn = [
        dots(
            name="compare",
            title=f"Differences in score to {reference}",
            rows=rows,
            lo=lo,
            hi=hi,
            ticks=[(tick, points_text(tick).removesuffix(".0")) for tick in ticks_125(lo, hi, 5)],
            rules=[(0.0, "as good as the reference")],
            narrow=narrow,
        )
        for narrow in (False, True)
    ]
    return Chart(
        name="compare",
        title="Difference in points, task by task, with 95% intervals for all pairs of the board at once",
        lede="An interval that holds 0 is a tie. Hollow: surely better or worse.",
        heads=("Agent", "Points", "From", "To", "Wins", "Loses", "Alike", "It is"),
        rows=tuple(_cells(one) for one in shown),
        svg=drawn[0],
        narrow=drawn[1],
    )


def _cells(one: Difference) -> tuple[str, ...]:
    ends = ["not known" if end is None else points_text(end) for end in (one.value, one.lower, one.upper)]
    counts = [f"{n:,}" for n in one.wins[:3]] if one.wins else ["not known"] * 3
    return (one.agent.label, *ends, *counts, one.word or "not known")


# -------------------------------------------------------------------------------------------------- reading


def compare_page(benchmark: Benchmark, asked: QueryDict) -> ComparePage:
    """Read who is asked for, and compare them where they are two to five agents of the latest board.

    Raises
    ------
    NoBoardYet
    """
    board = latest_board(benchmark)
    entries = entries_of(board)
    standings = standings_with(board, entries)
    wanted = asked.get("target", "")
    told = standings.targets.get(wanted)
    target = wanted if told and told.n_ranked else standings.target
    everyone = called(entries)
    chosen, faults = _chosen(asked.getlist("a"), everyone)
    page = ComparePage(benchmark, board, standings, everyone, chosen, faults, target)
    return page if faults or len(chosen) < FEWEST else _compared(page)


def called(entries: Sequence[Entry]) -> list[Named]:
    """Call agents by model and scaffold where that tells them apart and their names say no more."""
    labels = [_label(entry) for entry in entries]
    return [
        Named(entry, label if labels.count(label) == 1 else entry.name)
        for entry, label in zip(entries, labels, strict=True)
    ]


def _label(entry: Entry) -> str:
    if entry.model in entry.name or entry.scaffold in entry.name:
        return f"{entry.model} · {entry.scaffold}"
    return str(entry.name)


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
    return _shortened(chosen[:MOST]), faults


def _shortened(chosen: Sequence[Named]) -> list[Named]:
    """Call them by model alone where no two have the same."""
    models = [one.entry.model for one in chosen]
    return [
        replace(
            one,
            short=one.entry.model
            if one.label != one.entry.name and models.count(one.entry.model) == 1
            else one.label,
        )
        for one in chosen
    ]


def _compared(page: ComparePage) -> ComparePage:
    from leaderboard.studies.pairs import found_of  # few compare, and it imports what ranks

    names = _present_names(page.asked)
    try:
        found = found_of(benchmark=page.benchmark, agents=list(names.values()), target=page.target)
    except Refusal as refusal:
        return replace(page, refusal=str(refusal))
    return replace(
        page,
        differences=[_difference(page, found.compared, names, other) for other in page.others],
        tasks=_differing(page, found, names),
        n_tasks=found.compared.n_tasks,
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
            return Difference(other, None, reason=f"{agent.label}: {found.left_out[name]}")
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


def _differing(page: ComparePage, found: Any, names: Mapping[int, str]) -> list[TaskRow]:
    """Tasks on which outcomes differ, those that differ most first; agents in the order asked."""
    columns = [found.compared.outcomes.get(names[one.pk]) for one in page.asked]
    known = np.array([column for column in columns if column is not None])
    lowest, highest = np.fmin.reduce(known, axis=0), np.fmax.reduce(known, axis=0)
    spread = np.round(highest - lowest, DECIMALS)
    rows = [
        TaskRow(
            name,
            found.task_ids[name],
            tuple(_outcome(None if column is None else column[j]) for column in columns),
            float(spread[j]),
        )
        for j, name in enumerate(found.compared.tasks)
        if spread[j] > 0
    ]
    return sorted(rows, key=lambda row: -row.spread)


def _outcome(value: float | None) -> str:
    if value is None or np.isnan(value):
        return "not run"
    if value in (0.0, 1.0):
        return "passed" if value else "failed"
    return f"{words.percent(value)}%"


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
