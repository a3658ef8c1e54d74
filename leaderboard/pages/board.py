"""The board: a verdict, a row for each agent, and what is folded below; its chart alone, and as Markdown.

Nothing is computed or worded here but what this page alone tells.
"""

import re
from collections.abc import Collection, Sequence
from datetime import date
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse

from leaderboard.boards.models import Board, Entry
from leaderboard.boards.queries import (
    NoBoardYet,
    NoSuchBoard,
    board_numbered,
    changes_since,
    entries_of,
    latest_board,
    tells_costs,
    visible_standings,
    withdrawn_agents,
)
from leaderboard.boards.signing import public_key
from leaderboard.catalog.models import Assigning, Benchmark
from leaderboard.pages import board_query
from leaderboard.pages.access import absolute, for_all, number_in, visible
from leaderboard.pages.board_table import (
    BoardLine,
    columns_of,
    common_marks,
    compare_to,
    leader_of,
    lines_at,
)
from leaderboard.pages.caching import cached_page
from leaderboard.pages.replay_summary import replay_summary
from leaderboard.plots.marks import Chart
from leaderboard.plots.pareto import Point, cost_axis, day_axis, pareto
from leaderboard.studies.answers import Standings, TargetLine, printed, table, words

N_ROWS = 100  # before one asks for all
SWITCH = {"full": "all {n} tasks", "subset": "the {n} ranking tasks", "domain": "tasks like these"}
ONE_TASK = {"full": "the one task", "subset": "the one ranking task", "domain": "tasks like this one"}
TIES = {"lead": "the reference", "tied": "tied with it", "worse": "not tied with it", "muted": "not known"}
SIGNS = re.compile(r"([\\`*_\[\]<>|~#&]|^[-+=])")  # that Markdown may take for something else
SCORES = ("Score %", "Subset %", "All %")
LEFT = ("Agent", "Trust", "Date", "Marks")
PLAIN = ("Rank", "95% ranks", "Agent", "Trust", *SCORES, "95%", "Cost", "Trials", "Date")


def board_page(benchmark: Benchmark, params: QueryDict, *, number: int | None = None) -> dict[str, Any]:
    """Read a board, the latest where no number is given, as the address asks for it.

    A target that nothing is said about is replaced by the default, an order too; an older board that is not
    there is ignored. Raises NoBoardYet and NoSuchBoard.
    """
    query = board_query.read_query(params)
    board = latest_board(benchmark) if number is None else board_numbered(benchmark, number)
    entries = entries_of(board)
    standings = visible_standings(board, entries)
    target = choose_target(standings, query["target"])
    lines, believed = lines_at(standings, target, entries), words.whole_costs(standings)
    shown = board_query.filtered(lines, query, believed)
    reference = choose_reference(lines, query["vs"], shown)
    compare_to(reference, lines, standings)
    is_ranked = reference is not None and reference.pk == number_in(query["vs"])
    latest = board.number
    if number is not None:
        latest = benchmark.boards.order_by("-number").values_list("number", flat=True)[0]
    is_behind = board.data_version < board.benchmark.data_version
    withdrawn_ids = withdrawn_agents(board.benchmark) if is_behind else set()
    withdrawn = {entry.name for entry in entries if entry.agent_id in withdrawn_ids}
    page = {
        "board": board,
        "standings": standings,
        "target": target,
        "target_line": standings.targets[target],
        "heads": [column.head for column in table.columns(standings, target)],
        "score_head": table.HEADS[target],
        "query": query,
        "lines": lines,
        "latest": latest,
        "is_latest": board.number == latest,
        "withdrawn": withdrawn,
        "is_gone": withdrawn.issuperset(line.agent for line in standings.agents),
        "is_behind": is_behind,
        "since": since(board, entries, query["since"]),
        "reference": reference,
        "is_leader": reference is not None and reference is leader_of(lines),
        "order": (order := board_query.order_in(query["sort"])),
        "direction": board_query.direction(order),
        "is_wide": query["view"] == "all",
        "unknown": board_query.unknown(query, is_ranked=is_ranked),
        "agents": reverse("pages:agent", args=[benchmark.slug, 0]).removesuffix("0"),
    }
    return page | _sentences(page) | _rows(page, shown) | _bar(page, shown, believed.values())


def choose_target(standings: Standings, wanted: str = "") -> str:
    target = standings.targets.get(wanted)
    return wanted if target and target.n_ranked else standings.target


def choose_reference(
    lines: Sequence[BoardLine], wanted: str = "", shown: Sequence[BoardLine] = ()
) -> BoardLine | None:
    """The ranked agent asked for by its number; else the first that is shown, or the leader; may be None."""
    pk = number_in(wanted)
    matching = (
        line for line in lines if pk is not None and line.pk == pk and line.target_result.rank is not None
    )
    return next(matching, leader_of(shown) or leader_of(lines))


def since(board: Board, entries: list[Entry], wanted: str) -> dict[str, Any] | None:
    number = number_in(wanted)
    if number is None or number >= board.number:
        return None
    try:
        older = board_numbered(board.benchmark, number)
    except NoSuchBoard:
        return None
    changes = changes_since(older, board, entries=entries)
    return {"board": older, "changes": changes, "text": words.changes_text(changes)}


def _sentences(page: dict[str, Any]) -> dict[str, Any]:
    board, standings, target = page["board"], page["standings"], page["target"]
    policy = board.policy
    in_batches = policy.assignment != Assigning.STAGED or board.n_complete >= policy.staged_from
    is_full = board.benchmark.full_runs_only_at or not in_batches
    return {
        "verdict_parts": words.headline_parts(standings, target),
        "headline": words.headline(standings, target),
        "second_run": words.second_run_text(standings, target),
        "tells_trust": words.tells_trust(standings),
        "scores": words.scores_text(standings, target),
        "tasks": words.tasks_of(standings, target),
        "trust": words.trust_text(standings),
        "ranks_text": words.confidence_text(standings, target),
        "notices": words.other_notices(standings),
        "phase": words.phase_text(standings, Assigning.FULL if is_full else policy.assignment),
        "trials": words.trials_text(standings.trials),
        "covers": words.covers_text(standings, target),
        "measured": words.measured_text(standings),
        "bounded": words.bounded_text(standings),
        "in_no_interval": words.in_no_interval(standings),
        "legend": printed.legend(standings, target, table.columns(standings, target)),
        # What the rows of ranked agents lack; why others have no rank stands in their own table.
        "gaps": [gap for gap in table.gaps(standings, target) if gap.what != "Not ranked"],
        "saved": words.savings_text(standings.savings, with_money=tells_costs(board)),
        "flagged": [line for line in standings.agents if line.flags],
        "key": public_key(),
    }


def _rows(page: dict[str, Any], shown: Sequence[BoardLine]) -> dict[str, Any]:
    standings, reference, order = page["standings"], page["reference"], page["order"]
    n_ranked = page["target_line"].n_ranked
    ranked = board_query.sort_lines([line for line in shown if line.target_result.rank is not None], order)
    rows = ranked if page["query"]["rows"] == "all" else ranked[:N_ROWS]
    all_ranked = [line for line in page["lines"] if line.target_result.rank is not None]
    counted = f"{len(ranked):,} of {n_ranked:,} agents; ranks are among all {n_ranked:,}."
    if len(ranked) == n_ranked:
        counted = words.counted(n_ranked, "agent")
    # The last row that is tied with the leader, where worse ones follow below it.
    tied = [place for place, line in enumerate(rows) if line.standing in ("lead", "tied")]
    is_divided = page["is_leader"] and order == "rank" and tied and tied[-1] < len(rows) - 1
    is_unbelieved = any(line.cells.get("Cost") == words.UNBELIEVED for line in page["lines"])
    n_tied = reference.n_tied if reference else None
    n_first, columns = len(page["target_line"].may_be_first), columns_of(page)
    n_named = sum(bool(words.in_headlines(standings, line.entry)) for line in all_ranked)
    return {
        "columns": columns,
        "n_columns": 3 + page["is_wide"] + len(columns),  # with rank, ranks, agent and what is ticked
        "middle": max(1, n_ranked // 2),
        "ranked": ranked,
        "rows": rows,
        "has_more": len(rows) < len(ranked),
        "unranked": [line for line in shown if line.target_result.rank is None],
        "counted": counted,
        "n_tied": n_tied,
        "divided": rows[tied[-1]] if is_divided else None,
        "is_mixed": is_divided and any(line.standing == "worse" for line in rows[: tied[-1]]),
        "n_named": n_named,
        # Whether not as many rows are tinted as agents could be the best.
        "is_other": page["is_leader"] and n_tied and n_first and n_first not in (n_tied + 1, n_named),
        "common_marks": common_marks(all_ranked),
        "implausible": words.LEGEND[words.UNBELIEVED] if is_unbelieved else "",
    }


def _bar(page: dict[str, Any], shown: Sequence[BoardLine], costs: Any) -> dict[str, Any]:
    query, reference, lines = page["query"], page["reference"], page["lines"]
    filters, leader, slug = board_query.filters_of(query), leader_of(lines), page["board"].benchmark.slug
    is_default = reference is (leader_of(shown) or leader) and (not query["vs"] or reference is leader)
    defaults = {"target": page["standings"].target, "sort": "rank"}

    def cleaned(parameters: dict[str, str]) -> dict[str, str]:
        return {
            name: "" if text == defaults.get(name) or (name in ("view", "rows") and text != "all") else text
            for name, text in parameters.items()
        }

    parameters = cleaned(
        {
            "target": page["target"],
            "sort": page["order"],
            "vs": str(reference.pk) if reference and not is_default else "",
            "view": query["view"],
            "rows": query["rows"],
        }
        | filters
    )

    def address(**changes: str) -> str:
        return board_query.query_string(parameters | cleaned(changes))

    vs = str(reference.pk) if reference and not page["is_leader"] else ""
    of_board = {} if page["is_latest"] else {"board": str(page["board"].number)}
    drawing = board_query.query_string({"target": parameters["target"], "vs": vs} | of_board).removesuffix(
        "?"
    )
    markdown = board_query.query_string(parameters | of_board).removesuffix("?")
    leader_address = address(vs="")
    return {
        "filters": filters,
        "is_default": is_default,
        "choices": [
            _target_choice(page["standings"].targets[target], target) | {"address": address(target=target)}
            for target in words.TARGETS
        ],
        "hidden_fields": [(n, text) for n, text in parameters.items() if text and n not in filters],
        "scaffolds": board_query.offered(lines, "scaffold"),
        "models": board_query.offered(lines, "model"),
        "costs": board_query.offered_costs(list(costs), board_query.amount(query["cost"])),
        "levels": board_query.LEVELS if words.tells_trust(page["standings"]) or filters["trust"] else {},
        "shows": board_query.SHOWN,
        "address": address,
        "address_of_leader": leader_address,
        "address_of_all": address(**dict.fromkeys(board_query.FILTERS, "")),
        "address_of_rows": address(rows="all"),
        "address_of_wide": address(view="all"),
        "address_of_plain": address(view=""),
        "address_of_drawing": reverse("pages:plot", args=[slug, "cost"]) + drawing,
        "address_of_markdown": reverse("pages:board_markdown", args=[slug]) + markdown,
        "versus": f"{leader_address}{'' if leader_address == '?' else '&'}vs=",  # but for the number
    }


def _target_choice(target_line: TargetLine, target: str) -> dict[str, str]:
    """What a target is called, and why nothing is said about it where nothing is."""
    n = target_line.n_tasks
    text = ONE_TASK[target] if n == 1 else SWITCH[target].format(n=f"{n:,}")
    return {
        "target": target,
        "label": words.sentence(text)[:-1] if target_line.n_ranked or n else "The subset",
        "why": "" if target_line.n_ranked else f"{words.clause(target_line.reason)}.",
    }


@for_all
@cached_page(*board_query.PARAMETERS)
def board(request: HttpRequest, slug: str, number: int | None = None) -> HttpResponse:
    benchmark = visible(slug)
    try:
        page = board_page(benchmark, request.GET, number=number)
    except NoBoardYet:
        return render(request, "pages/no_board.html", {"benchmark": benchmark, "here": "board"})
    except NoSuchBoard as missing:
        raise Http404(str(missing)) from missing
    page |= {"chart": score_chart(page), "replay_summary": replay_summary(benchmark, page["standings"])}
    return render(request, "pages/board.html", {"page": page, "benchmark": benchmark, "here": "board"})


# ------------------------------------------------------------------------------------------------ the chart


def score_chart(page: dict[str, Any]) -> Chart | None:
    """Cost against score; score through time where there is no cost; None where there is no date either.

    None also for a single agent, whose dot would be against nothing.
    """
    standings = page["standings"]
    ranked = [line for line in page["lines"] if line.target_result.rank is not None]
    if len(ranked) < 2:
        return None
    costs = words.whole_costs(standings)
    headliners = {line.entry.agent for line in ranked if words.in_headlines(standings, line.entry)}
    of = "agents" if len(headliners) == len(ranked) else words.headline_agents(standings)
    if drawn := [(line, costs[line.entry.agent]) for line in ranked if line.entry.agent in costs]:
        lede = "A run is one trial of each task. "
        lede += f"The line joins {of} that no other beats at their price or less."
        if n := len(ranked) - len(drawn):
            its, are = ("its", "is") if n == 1 else ("their", "are")
            lede += (
                f" {words.counted(n, 'agent')} without a plausible cost of all {its} trials {are} not drawn."
            )
        return _drawn(page, drawn, headliners, "Cost", "Cost against score", lede)
    # The first day of a month or a year that is stated alone.
    days = [(line, f"{line.entry.submitted_at[:10]}-01-01") for line in ranked if line.entry.submitted_at]
    if not days:
        return None
    bases, why = (
        {line.entry.cost_basis for line in ranked},
        "There is no plausible cost of all trials of an agent.",
    )
    if bases <= {words.NOT_STATED}:
        why = "Cost was not stated."
    elif words.HIDDEN in bases:
        why = "Cost is hidden by the operator's policy."
    drawn = [(line, float(date.fromisoformat(day[:10]).toordinal())) for line, day in days]
    lede = f"{why} The line joins {of} that none before them beats."
    return _drawn(page, drawn, headliners, "Date", "Score through time", lede)


def _drawn(
    page: dict[str, Any],
    drawn: Sequence[tuple[BoardLine, float]],
    headliners: Collection[str],
    took: str,
    title: str,
    lede: str,
) -> Chart:
    """The chart of the lines at what they took: a "Cost", or a "Date" as an ordinal day."""
    points, rows, over = [], [], words.tasks_of(page["standings"], page["target"])
    for line, at in drawn:
        entry, result, score = line.entry, line.target_result, line.cells[page["score_head"]]
        gone = ", withdrawn" if entry.agent in page["withdrawn"] else ""
        cost = words.cost_text(entry)
        when = f"{cost} a run" if cost else (entry.submitted_at or "")[:7]
        points.append(
            Point(
                name=entry.agent,
                title=f"{entry.agent}{gone}: {score}%, {when}",
                took=at,
                score=result.score or 0.0,
                interval=None
                if result.lower is None or result.upper is None
                else (result.lower, result.upper),
                standing=line.standing,
                address=f"{page['agents']}{line.pk}",
                more=gone,
                in_headlines=entry.agent in headliners,
            )
        )
        name = f"{entry.agent} (withdrawn since)" if gone else entry.agent
        around = line.cells.get("95%", table.NOTHING)
        text = score if around == table.NOTHING else f"{score} ({around})"
        rows.append((name, line.cells.get(took, table.NOTHING), text, TIES[line.standing]))
    axis = cost_axis(points) if took == "Cost" else day_axis(points)
    return Chart(
        name="cost",
        title=title,
        lede=lede,
        heads=("Agent", took, f"Score % on {over}, 95%", "Ties"),
        rows=tuple(rows),
        svg=pareto(points, axis, name="cost", title=f"{title}, on {over}"),
    )


# ------------------------------------------------------------------------------------------------- Markdown


@for_all
def markdown(request: HttpRequest, slug: str) -> HttpResponse:
    benchmark = visible(slug)
    try:
        page = board_page(benchmark, request.GET, number=number_in(request.GET.get("board", "")))
    except (NoBoardYet, NoSuchBoard) as missing:
        raise Http404(str(missing)) from missing
    board = page["board"]
    parts = [f"## {_escaped(benchmark.title)}"]
    parts += [_escaped(page[name]) for name in ("headline", "second_run", "scores") if page[name]]
    if not page["is_latest"]:
        parts.append(f"Not the latest board: board {page['latest']} is.")
    if page["rows"]:
        heads = [head for head in page["heads"] if page["is_wide"] or head in PLAIN]
        rows = [heads, ["---" if head in LEFT else "--:" for head in heads]]
        for line in page["rows"]:
            cells = {head: _escaped(line.cells[head]) for head in heads}
            if line.entry.agent in page["withdrawn"]:
                cells["Agent"] = f"~~{cells['Agent']}~~ withdrawn since"
            rows.append(list(cells.values()))
        parts.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
    parts += map(_escaped, filter(None, (*page["notices"], page["ranks_text"])))
    address = absolute(request, reverse("pages:version", args=[slug, board.number]))
    counted = _escaped(words.sentence(page["counted"]))
    parts.append(f"{counted} Board {board.number}, {board.published_at:%Y-%m-%d}: <{address}>")
    return HttpResponse("\n\n".join(parts) + "\n", content_type="text/markdown; charset=utf-8")


def _escaped(text: str) -> str:
    """Text in which nothing is taken for Markdown or HTML, in one line."""
    return SIGNS.sub(r"\\\1", " ".join(text.split()))
