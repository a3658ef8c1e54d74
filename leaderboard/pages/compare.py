"""What “Compare” shows: two to five agents, their facts, how each differs from the first, and on which tasks.

Differences are of the present data; the critical value is that of the latest board, so that on its data an
interval holds 0 exactly where the board calls the two tied.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlencode

import numpy as np
import numpy.typing as npt
from django.db.models import FloatField, IntegerField
from django.db.models.fields.json import KT
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from leaderboard.boards.models import Board
from leaderboard.boards.queries import NoBoardYet, head_of, latest_board, visible_standings, withdrawn_agents
from leaderboard.catalog.models import Agent, Benchmark, Task, Trust
from leaderboard.errors import Refusal
from leaderboard.pages.access import for_all, visible
from leaderboard.pages.templatetags.figures import NOT_STATED, is_web, score
from leaderboard.plots.dots import FULL, DotRow, both_widths
from leaderboard.plots.marks import Chart, ticks_125
from leaderboard.studies.answers import AtTarget, Line, words
from leaderboard.studies.pairs import compare_agents

MIN_AGENTS, MAX_AGENTS = 2, 5
N_SUGGESTED = 4
N_TASKS_SHOWN = 25
DECIMALS = 9
NUMBERS = ("None", "One", "Two", "Three", "Four")
Wins = tuple[int, int, int, int]  # tasks on which one does better, worse and alike, and those not run by both


class DifferingTask(NamedTuple):
    task: Task
    address: str
    cells: SafeString


@dataclass(frozen=True)
class AgentDifference:
    """How an agent differs from the reference, in score; without an error or a critical value no ends."""

    agent: Any  # one of `_entries`
    value: float | None
    lower: float | None = None
    upper: float | None = None
    word: str = ""  # tied, better, worse; empty where that cannot be told
    wins: Wins | None = None
    estimated: bool = False
    reason: str = ""


def compare_page(benchmark: Benchmark, params: QueryDict) -> dict[str, Any]:
    """Read who is asked for, and compare them where they are two to five agents of the latest board.

    Raises NoBoardYet.
    """
    board = latest_board(benchmark)
    standings = head_of(board)
    wanted = params.get("target", "")
    result = standings.targets.get(wanted)
    target = wanted if result and result.n_ranked else standings.target
    every = _entries(board, target)
    agents, faults = _choose(params.getlist("a"), every)
    # Whose outcomes were all taken back since; every withdrawal is another data version.
    is_behind = agents and board.data_version < board.benchmark.data_version
    withdrawn_ids = withdrawn_agents(board.benchmark) if is_behind else set()
    faults += [
        f"{one.name} was withdrawn after board {board.number}, so nothing is left to compare. "
        "Choose another agent."
        for one in agents
        if one.agent_id in withdrawn_ids
    ]
    agents = [one for one in agents if one.agent_id not in withdrawn_ids]
    page = {
        "board": board,
        "target": target,
        "is_default": target == standings.target,
        "tells_trust": any(one.trust != Trust.VERIFIED for one in every),
        "all": every,
        "agents": agents,
        "faults": faults,
        "selects": _selects(every, agents or _suggested(board, target, every)),
    }
    if faults or len(agents) < MIN_AGENTS:
        return page
    return page | _compare(benchmark, page, standings.targets[target].critical)


def _entries(board: Board, target: str) -> list[Any]:
    """The entries of a board in its order, without their lines, each with its trust, cost and rank."""
    of_line = {
        "trust": KT("line__trust"),
        "cost_usd": Cast(KT("line__cost_usd"), FloatField()),
        "cost_basis": KT("line__cost_basis"),
        "place": Cast(KT(f"line__at__{target}__rank"), IntegerField()),
    }
    entries = board.entries.order_by("position").annotate(**of_line)
    return list(entries.values_list("pk", "agent_id", "name", "position", *of_line, named=True))


def _choose(values: Sequence[str], every: Sequence[Any]) -> tuple[list[Any], list[str]]:
    known = {str(one.agent_id): one for one in every}
    texts = [text for text in dict.fromkeys(values) if text]
    chosen, faults = [known[text] for text in texts if text in known], []
    if n_unknown := len(texts) - len(chosen):
        which = "One agent is" if n_unknown == 1 else f"{n_unknown:,} agents are"
        faults.append(f"{which} not on the latest board.")
    if len(chosen) == 1 and not faults:
        faults.append("You chose one agent. Choose one to four others.")
    if len(chosen) > MAX_AGENTS:
        faults.append(f"You chose {len(chosen):,} agents. The first {MAX_AGENTS} are compared.")
    return chosen[:MAX_AGENTS], faults


def _suggested(board: Board, target: str, every: Sequence[Any]) -> list[Any]:
    first = next((one for one in every if one.place), None)
    if first is None:
        return []
    ranges = board.entries.values_list(f"line__at__{target}__tied_with", flat=True).get(pk=first.pk)
    tied = {place for lo, hi in ranges for place in range(lo, hi + 1)}
    tied_agents = [one for one in every if one.position in tied]
    return [first, *sorted(tied_agents, key=lambda one: one.place or 0)][:N_SUGGESTED]


def _selects(every: Sequence[Any], chosen: Sequence[Any]) -> list[tuple[str, SafeString]]:
    """For each field of the form its label, and its options; each agent is set as text once."""
    named = {
        one.agent_id: format_html('value="{}">{}</option>', one.agent_id, str(one.name)) for one in every
    }
    fields = []
    for place in range(MAX_AGENTS):
        pk = chosen[place].agent_id if place < len(chosen) else None
        empty = [] if place < MIN_AGENTS and pk else ['<option value="">nobody</option>']
        options = [f"<option{' selected' if own == pk else ''} {text}" for own, text in named.items()]
        fields.append(("With" if place else "Reference", SafeString("".join([*empty, *options]))))
    return fields


def _compare(benchmark: Benchmark, page: dict[str, Any], critical: float | None) -> dict[str, Any]:
    agents, board, target = page["agents"], page["board"], page["target"]
    keys = [one.agent_id for one in agents]
    # A board keeps the names of its day.
    today = dict(Agent.objects.filter(pk__in=keys).values_list("pk", "name"))
    try:
        data_version, compared, task_ids = compare_agents(
            benchmark=benchmark, agents=[today[key] for key in keys], target=target
        )
    except Refusal as refusal:
        return {"refusal": str(refusal)}
    reference = agents[0]
    columns = [compared.outcomes.get(today[key]) for key in keys]
    n_tasks = n_shared(columns)
    differences = [_difference(compared, critical, today, reference, other) for other in agents[1:]]
    tasks = _differing(
        columns,
        [task_ids[name] for name in compared.tasks],
        base=reverse("pages:task", args=[benchmark.slug, 0]).removesuffix("0"),
    )
    changes = []  # the addresses of the same with an agent as the reference, and without it
    for one in agents:
        rest = [other.agent_id for other in agents if other is not one]
        first = "" if one is reference else "?" + urlencode([("a", pk) for pk in (one.agent_id, *rest)])
        without = "?" + urlencode([("a", pk) for pk in rest]) if len(rest) >= MIN_AGENTS else ""
        changes.append((one, first, without))
    standings = visible_standings(board, board.entries.filter(agent__in=keys))
    lines = {line.agent: line for line in standings.agents}
    own = [(one, lines[one.name], lines[one.name].at[target]) for one in agents]
    names = [("agents", one.name) for one in agents]
    parameters = urlencode([*names, ("target", target)])
    return {
        "reference": reference,
        "facts": _facts(words.tasks_of(standings, target), page["all"], own),
        "verdict": (verdict_of(differences), rest_of(differences)),
        "is_newer": data_version != board.data_version,
        # Those that the board lowers, or folds, as versions of one agent.
        "versions": [one.name for one, _, at in own if at.correction or at.folded_under],
        "twin": f"{reverse('api:compare', args=[benchmark.slug])}?{parameters}",
        "chart": compare_chart(differences, str(reference.name), tells_trust=page["tells_trust"]),
        "agent_ids": keys,
        "with_reason": [one for one in differences if one.reason],
        "n_differing": len(tasks),
        "is_graded": any('"partly"' in task.cells for task in tasks),
        "first_tasks": tasks[:N_TASKS_SHOWN],
        "more_tasks": tasks[N_TASKS_SHOWN:],
        "n_tasks": n_tasks,
        "n_not_shared": compared.n_tasks - n_tasks,
        "changes": changes,
    }


def _difference(
    compared: Any, critical: float | None, names: Mapping[int, str], reference: Any, other: Any
) -> AgentDifference:
    a, b = names[reference.agent_id], names[other.agent_id]
    for agent, name in ((reference, a), (other, b)):
        if name in compared.left_out:
            return AgentDifference(other, None, reason=f"{agent.name}: {compared.left_out[name]}")
    pair = next(one for one in compared.pairs if {one.a, one.b} == {a, b})
    if pair.estimate is None:
        return AgentDifference(other, None, reason=pair.reason)
    value = pair.estimate.value if pair.a == b else -pair.estimate.value
    counts = wins(compared.outcomes[b], compared.outcomes[a])
    estimated = compared.agents[a].estimated or compared.agents[b].estimated
    if critical is None or pair.se_of_ties is None:
        return AgentDifference(other, value, wins=counts, estimated=estimated, reason=pair.reason)
    half = critical * pair.se_of_ties
    word = "tied" if pair.is_tied(critical) else "better" if value > 0 else "worse"
    reason = "not ordered, because results are missing unevenly" if pair.unclaimed else pair.reason
    ends = max(value - half, -1.0), min(value + half, 1.0)
    return AgentDifference(other, value, *ends, word, counts, estimated, reason)


def wins(other: npt.ArrayLike, reference: npt.ArrayLike) -> Wins:
    """Count the tasks; NaN is no valid outcome. Outcomes are rounded to 1e-9."""
    d = np.round(np.asarray(other) - np.asarray(reference), DECIMALS)
    better, worse, alike, missing = (
        int(np.count_nonzero(which)) for which in (d > 0, d < 0, d == 0, np.isnan(d))
    )
    return better, worse, alike, missing


def wins_text(counts: Wins) -> str:
    better, worse, alike, missing = counts
    of = f" of {better + worse + alike:,} both ran" if missing else ""
    return f"wins {better:,}, loses {worse:,}, same on {alike:,}{of}"


# ------------------------------------------------------------------------------------------------ sentences


def verdict_of(differences: Sequence[AgentDifference]) -> str:
    decided = [one for one in differences if one.word]
    n, n_tied = len(decided), sum(one.word == "tied" for one in decided)
    if not n:
        return "These data cannot order them."
    if n == 1:
        clearly = f"<bdi>{{}}</bdi> is clearly {decided[0].word} (95%)."
        tied = "They are tied: no clear difference (95%)."
        return tied if n_tied else format_html(clearly, str(decided[0].agent.name))
    if n_tied == n:
        return f"{'Both' if n == 2 else f'All {NUMBERS[n].lower()}'} are tied with the reference (95%)."
    verb = "is" if n_tied <= 1 else "are"
    return f"{NUMBERS[n_tied]} of these {NUMBERS[n].lower()} {verb} tied with the reference (95%)."


def rest_of(differences: Sequence[AgentDifference]) -> SafeString:
    clauses = []
    for word in ("better", "worse"):
        names = [one.agent.name for one in differences if one.word == word]
        if names and len(differences) > 1:
            verb = "is" if len(names) == 1 else "are"
            *first, last = [format_html("<bdi>{}</bdi>", str(name)) for name in names]
            if first:
                last = format_html("{} and {}", SafeString(", ".join(first)), last)
            clauses.append(format_html("{} {} clearly {}.", last, verb, word))
    return SafeString(" ".join(clauses))


def points_text(value: float) -> str:
    """Return −6.1 for −0.061, +2.0 for 0.02."""
    points = words.percent(value)
    return points if points.startswith("−") or float(points) == 0 else f"+{points}"


# ---------------------------------------------------------------------------------------------------- chart


def compare_chart(
    differences: Sequence[AgentDifference], reference: str, *, tells_trust: bool
) -> Chart | None:
    shown = [one for one in differences if one.value is not None]
    if not shown:
        return None
    ends = [end for one in shown for end in (one.value, one.lower, one.upper) if end is not None]
    lo, hi = min([*ends, -0.02]), max([*ends, 0.02])
    drawn, rows, found = [], [], {one.word for one in shown}
    lede = []
    if any(one.lower is not None for one in shown):
        lede = ["With 95% confidence, the intervals of all pairs of the board are correct at the same time."]
    if "tied" in found:
        lede.append("Outlined: tied, the interval contains 0.")
    if found & {"better", "worse"}:
        lede.append("Grey: clearly better or worse.")
    for one in shown:
        assert one.value is not None
        sign, name, points = "~" if one.estimated else "", str(one.agent.name), points_text(one.value)
        text = f"{sign}{points} points, {one.word}" if one.word else f"{points} points"
        trust = words.TRUST[one.agent.trust] if tells_trust else ""
        note = "; ".join(filter(None, (trust, wins_text(one.wins) if one.wins else "")))
        is_clear, is_tied = one.word in ("worse", "better"), one.word == "tied"
        drawn.append(
            DotRow(name, note, text, one.value, one.lower, one.upper, grey=is_clear, outlined=is_tied)
        )
        cells = ["unknown" if end is None else points_text(end) for end in (one.lower, one.upper)]
        cells += [f"{n:,}" for n in one.wins] if one.wins else ["unknown"] * 4
        rows.append((name, f"{sign}{points}", *cells, one.word or "unknown"))
    return Chart(
        name="compare",
        title="Difference in score from the reference, in points",
        lede=" ".join(lede),
        heads=(
            *("Agent", "Difference", "Lower end", "Upper end"),
            *("Tasks won", "Tasks lost", "Same result", "Not run by both", "Verdict"),
        ),
        rows=tuple(rows),
        **both_widths(
            name="compare",
            title=f"Differences in score from {reference}",
            rows=drawn,
            lo=lo,
            hi=hi,
            ticks=[(tick, points_text(tick).removesuffix(".0")) for tick in ticks_125(lo, hi, 5)],
            rules=[(0.0, "same as the reference")],
            wide=FULL,
        ),
    )


# -------------------------------------------------------------------------------------------------- by task


def n_shared(columns: Sequence[npt.ArrayLike | None]) -> int:
    known = [~np.isnan(np.asarray(column, dtype=np.float64)) for column in columns if column is not None]
    return int(np.count_nonzero(np.sum(known, axis=0) > 1)) if known else 0


def _differing(
    columns: Sequence[npt.ArrayLike | None], pks: Sequence[int], *, base: str
) -> list[DifferingTask]:
    """The tasks on which outcomes differ, by category, those that the reference wins first.

    `columns` are the outcomes of each agent, NaN without a valid one; None for one that is not compared.
    """
    arrays = [np.full(len(pks), np.nan) if one is None else np.asarray(one, np.float64) for one in columns]
    outcomes = np.round(np.array(arrays), DECIMALS)
    spread = np.fmax.reduce(outcomes, axis=0) - np.fmin.reduce(outcomes, axis=0)
    places = np.flatnonzero(spread > 0)
    found = Task.objects.in_bulk([pks[j] for j in places.tolist()])
    order = np.nan_to_num(outcomes, nan=-1.0)
    tasks = [
        DifferingTask(found[pks[j]], f"{base}{pks[j]}", SafeString("".join(map(_cell, outcomes[:, j]))))
        for j in sorted(places.tolist(), key=lambda j: (found[pks[j]].category, *-order[:, j]))
    ]
    return tasks


def _cell(outcome: float) -> str:
    """A square that is filled, empty, or filled in part; its word is read out."""
    if np.isnan(outcome):
        return '<td class="none">–<span class="unseen"> not run</span></td>'
    word = {0.0: "failed", 1.0: "passed"}.get(float(outcome), "")
    css, text = word or "partly", word or f"{words.percent(outcome)}%"
    return f'<td><i class="{css}" title="{text}"></i><span class="unseen">{text}</span></td>'


# ---------------------------------------------------------------------------------------------------- facts


def _facts(
    tasks: str, every: Sequence[Any], own: Sequence[tuple[Any, Line, AtTarget]]
) -> list[tuple[str, list[tuple[SafeString | str, bool]]]]:
    """A row for each fact that an agent states: its label, and by agent the text, and whether it differs."""
    believed = words.believed(
        {one.agent_id: one.cost_usd for one in every if one.cost_usd is not None},
        in_part={one.agent_id for one in every if one.cost_basis == words.IN_PART},
        verified={one.agent_id for one in every if one.trust == Trust.VERIFIED},
    )
    rows: dict[str, list[SafeString | str]] = {
        "95% rank range": [_range_text(at) for _, _, at in own],
        f"Score on {tasks}": ["" if at.score is None else score(at) for *_, at in own],
        "Cost per full run": [_cost(line, is_believed=one.agent_id in believed) for one, line, _ in own],
        "Tokens per full run": [
            "" if line.n_tokens is None else tokens_text(line.n_tokens) for _, line, _ in own
        ],
        "Time per full run": ["" if line.seconds is None else time_text(line.seconds) for _, line, _ in own],
        "Date": [line.submitted_at or "" for _, line, _ in own],
        "Organisation": [line.organisation for _, line, _ in own],
        "Weights": [line.weights for _, line, _ in own],
        "Trust": [words.TRUST[line.trust] for _, line, _ in own],
        "Links": [_links(line) for _, line, _ in own],
    }
    return [
        (label, [(text or NOT_STATED, text != texts[0]) for text in texts])
        for label, texts in rows.items()
        if any(texts)
    ]


def _range_text(at: AtTarget) -> str:
    if at.rank is None:
        return "not ranked"
    if at.rank_lower is None or at.rank_upper is None:
        return f"rank {at.rank:,}, no range"
    return f"{at.rank_lower:,}–{at.rank_upper:,}"


def _cost(line: Line, *, is_believed: bool) -> str:
    text = words.cost_text(line)
    return text if is_believed or not text else f"{text}, implausible"


def tokens_text(n: float) -> str:
    """Return 850, 12.3 k, 4.1 M."""
    for size, unit in ((1e6, " M"), (1e3, " k")):
        if n >= size:
            return f"{n / size:,.1f}{unit}"
    return f"{n:,.0f}"


def time_text(seconds: float) -> str:
    """Return 42 s, 12 min, 3.5 h."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3_600 else f"{seconds / 3_600:,.1f} h"


def _links(line: Line) -> SafeString:
    shown = [(name, link) for name, link in line.links.items() if is_web(link)]
    return format_html_join(" · ", '<a href="{1}" rel="nofollow">{0}</a>', shown)


@for_all
def compare(request: HttpRequest, slug: str) -> HttpResponse:
    benchmark = visible(slug)
    shown: dict[str, Any] = {"benchmark": benchmark, "here": "compare"}
    try:
        shown["page"] = compare_page(benchmark, request.GET)
    except NoBoardYet:
        return render(request, "pages/no_board.html", shown)
    return render(request, "pages/compare.html", shown)
