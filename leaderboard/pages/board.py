"""The board: a verdict, a row for each agent, and what is folded below; its chart alone, and as Markdown.

Nothing is computed or worded here but what this page alone tells.
"""

import re
from collections.abc import Sequence
from datetime import date
from functools import partial
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse

from leaderboard.boards.export import as_csv
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
from leaderboard.called import set_command
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
from leaderboard.plots.dots import DotRow, both_widths
from leaderboard.plots.marks import Chart
from leaderboard.plots.pareto import Point, cost_axis, day_axis, first_scores, pareto
from leaderboard.studies.answers import Standings, TargetLine, printed, table, words

N_ROWS = 100  # before one asks for all
SIGNS = re.compile(r"([\\`*_\[\]<>|~#&]|^[-+=])")  # that Markdown may take for something else
SCORES = ("Score %", "Ranking tasks %", "All %")
LEFT = ("Agent", "Trust", "Date", "Notes")
PLAIN = ("Rank", "95% rank range", "Agent", "Trust", *SCORES, "95% interval", "Cost", "Trials", "Date")


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
    reference = choose_reference(lines, query["vs"])
    plots = plots_of(lines, standings)
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
        "shown": {line.entry.agent for line in shown},
        "plots": plots,
        "plot": query["plot"] if query["plot"] in plots else next(iter(plots), ""),
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
        "is_empty": not any(one.n_ranked for one in standings.targets.values()),
        "unknown": board_query.unknown(query, is_ranked=is_ranked),
        "agents": reverse("pages:agent", args=[benchmark.slug, 0]).removesuffix("0"),
    }
    return page | _sentences(page) | _rows(page, shown) | _bar(page, believed.values())


def choose_target(standings: Standings, wanted: str = "") -> str:
    target = standings.targets.get(wanted)
    return wanted if target and target.n_ranked else standings.target


def choose_reference(lines: Sequence[BoardLine], wanted: str = "") -> BoardLine | None:
    """The ranked agent asked for by its number; else the leader; may be None."""
    pk = number_in(wanted)
    matching = (
        line for line in lines if pk is not None and line.pk == pk and line.target_result.rank is not None
    )
    return next(matching, leader_of(lines))


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
        "figures": _figures(page),
        "headline": words.headline(standings, target),
        "second_run": words.second_run_text(standings, target),
        "best": words.best_text(standings, target),
        "tells_trust": words.tells_trust(standings),
        "scores": words.scores_text(standings, target),
        "tasks": words.tasks_of(standings, target),
        "trust": words.trust_text(standings),
        "ranks_text": words.confidence_text(standings, target),
        "notices": words.other_notices(standings),
        "next_step": words.next_step_text(standings, partial(set_command, board.benchmark.slug)),
        "phase": words.phase_text(standings, Assigning.FULL if is_full else policy.assignment),
        "trials": words.trials_text(standings.trials),
        "covers": words.covers_text(standings, target),
        "measured": words.measured_text(standings),
        "bounded": words.bounded_text(standings, target),
        "in_no_interval": words.in_no_interval(standings),
        "legend": _legend(page),
        # What the rows of ranked agents lack; why others have no rank stands in their own table.
        "gaps": [gap for gap in table.gaps(standings, target) if gap.what != "Not ranked"],
        "saved": words.savings_text(standings.savings, with_money=tells_costs(board)),
        "flagged": [line for line in standings.agents if line.flags],
        "key": public_key(),
    }


def _legend(page: dict[str, Any]) -> dict[str, str]:
    """Explain the columns and signs of the view that is shown, but for the sign explained under the table."""
    columns = table.columns(page["standings"], page["target"])
    shown = [one for one in columns if page["is_wide"] or one.head in PLAIN]
    texts = printed.legend(page["standings"], page["target"], shown)
    return {term: text for term, text in texts.items() if term != words.UNBELIEVED}


def _figures(page: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The verdict in large type, each with what it is and of which agent: best score, cheapest, how many."""
    standings, lines = page["standings"], page["lines"]
    heading = [line for line in lines if line.target_result.rank is not None and line.in_headlines]
    leader, first = leader_of(lines), [line for line in heading if line.could_be_best]
    if leader is None:
        return []
    score = f"{leader.cells[page['score_head']]}{f' ± {leader.half_width}' if leader.half_width else ''}%"
    best = [line for line in heading if line.target_result.rank == leader.target_result.rank]
    who = leader.entry.agent if len(best) == 1 else words.counted(len(best), "agent")
    figures = [(score, words.highest_text(standings, page["target"]), who)]
    costs = words.whole_costs(standings)
    known = [line for line in first if line.entry.agent in costs]
    measured = [line for line in known if not words.cost_text(line.entry).startswith("~")]
    alike = measured if len(measured) > 1 else known
    if len(alike) > 1 or len(first) == len(alike) == 1:
        lowest = words.money(min(costs[line.entry.agent] for line in alike))
        cheapest = [line.entry for line in alike if words.money(costs[line.entry.agent]) == lowest]
        what = "cheapest that could be best"
        of = cheapest[0].agent if len(cheapest) == 1 else words.counted(len(cheapest), "agent")
        figures.append((words.cost_text(cheapest[0]), what, of))
    if first and len(heading) > 1:
        figures.append(
            (f"{len(first):,} of {len(heading):,}", words.best_text(standings, page["target"]), "")
        )
    return figures


def _rows(page: dict[str, Any], shown: Sequence[BoardLine]) -> dict[str, Any]:
    order = page["order"]
    n_ranked = page["target_line"].n_ranked
    ranked = board_query.sort_lines([line for line in shown if line.target_result.rank is not None], order)
    rows = ranked if page["query"]["rows"] == "all" else ranked[:N_ROWS]
    all_ranked = [line for line in page["lines"] if line.target_result.rank is not None]
    counted = words.counted(n_ranked, "agent")
    if len(ranked) < n_ranked:
        counted = f"{len(ranked):,} of {n_ranked:,} agents; ranks are among all {n_ranked:,}."
        if n_first := sum(line.could_be_best for line in all_ranked):
            n_shown = sum(line.could_be_best for line in ranked)
            counted = f"{counted} {n_shown:,} of the {n_first:,} that could be the best."
    is_unbelieved = any(line.cells.get("Cost") == words.UNBELIEVED for line in page["lines"])
    columns = columns_of(page)
    return {
        "columns": columns,
        "n_columns": 4 + len(columns),  # with what is ticked, rank, ranks and agent
        "axis": sorted({(n_ranked + 1) // 2, n_ranked} - {0, 1}),  # after the first rank
        "ranked": ranked,
        "rows": rows,
        "has_more": len(rows) < len(ranked),
        "unranked": [line for line in shown if line.target_result.rank is None],
        "counted": counted,
        "is_filled": n_ranked > 1 and any(line.could_be_best for line in all_ranked),
        "is_outlined": any(line.standing in ("both", "tied") for line in all_ranked),
        "common_marks": common_marks(all_ranked),
        "implausible": words.LEGEND[words.UNBELIEVED] if is_unbelieved else "",
    }


def _bar(page: dict[str, Any], costs: Any) -> dict[str, Any]:
    query, reference, lines = page["query"], page["reference"], page["lines"]
    filters, leader, slug = board_query.filters_of(query), leader_of(lines), page["board"].benchmark.slug
    defaults = {
        "target": page["standings"].target,
        "sort": "rank",
        "plot": next(iter(page["plots"]), page["plot"]),
    }

    def cleaned(parameters: dict[str, str]) -> dict[str, str]:
        return {
            name: "" if text == defaults.get(name) or (name in ("view", "rows") and text != "all") else text
            for name, text in parameters.items()
        }

    parameters = cleaned(
        {
            "target": page["target"],
            "sort": page["order"],
            "vs": str(reference.pk) if reference and reference is not leader else "",
            "view": query["view"],
            "rows": query["rows"],
            "plot": page["plot"],
        }
        | filters
    )

    def address(**changes: str) -> str:
        return board_query.query_string(parameters | cleaned(changes))

    of_board = {} if page["is_latest"] else {"board": str(page["board"].number)}
    of_drawing = {"target": parameters["target"], "vs": parameters["vs"]} | filters | of_board
    drawing, as_shown = (
        board_query.query_string(told).removesuffix("?") for told in (of_drawing, parameters | of_board)
    )
    leader_address = address(vs="")
    return {
        "filters": filters,
        "n_filters": sum(bool(text) for name, text in filters.items() if name != "find"),
        "choices": [
            _target_choice(page["standings"].targets[target], target) | {"address": address(target=target)}
            for target in words.TARGETS
        ],
        "hidden_fields": [(n, text) for n, text in parameters.items() if text and n not in filters],
        "parts": [
            (part, names, filters[part])
            for part in board_query.PARTS
            if (names := board_query.offered(lines, part)) or filters[part]
        ],
        "is_dated": any(line.entry.submitted_at for line in lines),
        "costs": board_query.offered_costs(list(costs), board_query.amount(query["cost"])),
        "levels": board_query.LEVELS if words.tells_trust(page["standings"]) or filters["trust"] else {},
        "shows": board_query.SHOWN,
        "address": address,
        "address_of_leader": leader_address,
        "address_of_all": address(**dict.fromkeys(board_query.FILTERS, "")),
        "address_of_rows": address(rows="all"),
        "address_of_wide": address(view="all"),
        "address_of_plain": address(view=""),
        "address_of_bounds": reverse("pages:plot", args=[slug, "bounds"]) + drawing,
        "switch": [(SWITCHED[name], address(plot=name), name == page["plot"]) for name in page["plots"]],
        "address_of_drawing": reverse("pages:plot", args=[slug, page["plot"] or "cost"]) + drawing,
        "address_of_markdown": reverse("pages:board_markdown", args=[slug]) + as_shown,
        "address_of_csv": reverse("pages:board_csv", args=[slug]) + as_shown,
        "versus": f"{leader_address}{'' if leader_address == '?' else '&'}vs=",  # but for the number
    }


def _target_choice(target_line: TargetLine, target: str) -> dict[str, str]:
    """What a target is called, and why nothing is said about it where nothing is."""
    text = words.task_set(target, target_line.n_tasks)
    return {
        "target": target,
        "label": words.sentence(text)[:-1] if target_line.n_tasks else "Ranking tasks",
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
    page |= {
        "chart": score_chart(page),
        "bounds": bounds_chart(page),
        "reading": reading(page, page["reference"]) if page["reference"] else "",
    }
    page |= {"replay_summary": replay_summary(benchmark, page["standings"])}
    return render(request, "pages/board.html", {"page": page, "benchmark": benchmark, "here": "board"})


# ------------------------------------------------------------------------------------------------ the plots


TITLES = {"cost": "Cost against score", "date": "Score over time", "scores": "The first agents"}
SWITCHED = {"cost": "Cost", "date": "Date", "scores": "Scores"}
N_SCORES = 20  # agents that are drawn one by one


def plots_of(lines: Sequence[BoardLine], standings: Standings) -> dict[str, dict[str, float]]:
    """What can be drawn of the ranked agents: for each plot by agent where it stands along the bottom.

    None of a single agent, whose dot would be against nothing.
    """
    ranked = [line.entry for line in lines if line.target_result.rank is not None]
    if len(ranked) < 2:
        return {}
    costs = words.whole_costs(standings)
    # The first day of a month or a year that is stated alone.
    days = {one.agent: f"{one.submitted_at[:10]}-01-01"[:10] for one in ranked if one.submitted_at}
    found = {
        "cost": {one.agent: costs[one.agent] for one in ranked if one.agent in costs},
        "date": {agent: float(date.fromisoformat(day).toordinal()) for agent, day in days.items()},
        "scores": {one.agent: 0.0 for one in ranked[:N_SCORES]},
    }
    return {name: drawn for name, drawn in found.items() if drawn}


def score_chart(page: dict[str, Any], name: str = "") -> Chart | None:
    """The plot of that name, by default what the address asks for; None where it cannot be drawn."""
    name, standings = name or page["plot"], page["standings"]
    drawn = page["plots"].get(name)
    if not drawn:
        return None
    points = [
        _point(page, line, drawn[line.entry.agent]) for line in page["lines"] if line.entry.agent in drawn
    ]
    title = f"{TITLES[name]}, on {words.tasks_of(standings, page['target'])}"
    if name == "scores":
        svg = first_scores(points, name=name, title=title)
    else:
        axis = cost_axis(points) if name == "cost" else day_axis(points)
        svg = pareto(points, axis, name=name, title=title)
    return Chart(name=name, title=TITLES[name], lede=_lede(page, name, len(drawn)), svg=svg)


def _lede(page: dict[str, Any], name: str, n_drawn: int) -> str:
    n_ranked, lines = page["target_line"].n_ranked, page["lines"]
    if name == "scores":
        first = f"The first {n_drawn:,} of {n_ranked:,} agents" if n_drawn < n_ranked else "All ranked agents"
        has_intervals = any(line.target_result.lower is not None for line in lines)
        return f"{first}, with 95% intervals." if has_intervals else f"{first}."
    n_heading = sum(line.in_headlines and line.target_result.rank is not None for line in lines)
    of = "" if n_heading == n_ranked else f" of {words.headline_agents(page['standings'])}"
    missing, n = "", n_ranked - n_drawn
    if n:
        needed = NEEDS[name] if n == 1 else NEEDS[name].replace("its", "their")
        missing = f" {words.counted(n, 'agent')} without a {needed} {'is' if n == 1 else 'are'} not drawn."
    if name == "cost":
        return f"A full run is each task once. The line is the best score{of} up to each cost.{missing}"
    return f"The line is the best score{of} up to each date.{missing}"


NEEDS = {"cost": "plausible cost of all its trials", "date": "date"}


def _point(page: dict[str, Any], line: BoardLine, at: float) -> Point:
    entry, result = line.entry, line.target_result
    gone = ", withdrawn" if entry.agent in page["withdrawn"] else ""
    return Point(
        name=entry.agent,
        title=reading(page, line),
        took=at,
        score=result.score or 0.0,
        interval=None if result.lower is None or result.upper is None else (result.lower, result.upper),
        standing=line.standing,
        address=f"{page['agents']}{line.pk}",
        more=gone,
        in_headlines=line.in_headlines,
        is_out=entry.agent not in page["shown"],
    )


def bounds_chart(page: dict[str, Any]) -> Chart | None:
    """Between which scores each agent lies, where nobody is ranked; None where somebody is."""
    rows = table.bounds(page["standings"], page["target"])[:N_ROWS]
    if page["target_line"].n_ranked or not rows:
        return None
    title = f"Possible scores in percent on {words.tasks_of(page['standings'], page['target'])}"
    return Chart(
        name="bounds",
        title=title,
        lede="A bar runs from the score if all missing results failed to the score if all passed.",
        heads=("Agent", "All failed %", "All passed %"),
        rows=tuple((row.agent, words.percent(row.low), words.percent(row.high)) for row in rows),
        **both_widths(
            name="bounds",
            title=title,
            rows=[DotRow(row.agent, "", row.text, None, row.low, row.high) for row in rows],
            lo=0.0,
            hi=1.0,
            ticks=[(share / 100, f"{share}") for share in range(0, 101, 25)],
            notes=False,
        ),
    )


def reading(page: dict[str, Any], line: BoardLine) -> str:
    """An agent in a line, as a dot is read: score, cost, date."""
    entry = line.entry
    gone = ", withdrawn" if entry.agent in page["withdrawn"] else ""
    score = f"{line.cells[page['score_head']]}{f' ± {line.half_width}' if line.half_width else ''}%"
    cost = words.cost_text(entry)
    parts = (score, f"{cost} per full run" if cost else "", (entry.submitted_at or "")[:10])
    return f"{entry.agent}{gone}: {', '.join(filter(None, parts))}"


# --------------------------------------------------------------------------------------- Markdown and CSV


def _page_as_text(benchmark: Benchmark, request: HttpRequest) -> dict[str, Any]:
    """The board of the number in the address, or the latest. Raises Http404: there is none."""
    try:
        return board_page(benchmark, request.GET, number=number_in(request.GET.get("board", "")))
    except (NoBoardYet, NoSuchBoard) as missing:
        raise Http404(str(missing)) from missing


@for_all
def markdown(request: HttpRequest, slug: str) -> HttpResponse:
    benchmark = visible(slug)
    page = _page_as_text(benchmark, request)
    board = page["board"]
    parts = [f"## {_escaped(benchmark.title)}"]
    parts += [_escaped(page[name]) for name in ("headline", "second_run", "scores") if page[name]]
    if not page["is_latest"]:
        parts.append(f"Board {page['latest']} is newer.")
    if page["rows"]:
        heads = [head for head in page["heads"] if page["is_wide"] or head in PLAIN]
        rows = [heads, ["---" if head in LEFT else "--:" for head in heads]]
        for line in page["rows"]:
            cells = {head: _escaped(line.cells[head]) for head in heads}
            if line.entry.agent in page["withdrawn"]:
                cells["Agent"] = f"~~{cells['Agent']}~~ withdrawn since"
            rows.append(list(cells.values()))
        parts.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
    parts += map(_escaped, filter(None, (page["next_step"], *page["notices"], page["ranks_text"])))
    address = absolute(request, reverse("pages:version", args=[slug, board.number]))
    counted = _escaped(words.sentence(page["counted"]))
    parts.append(f"{counted} Board {board.number}, {board.published_at:%Y-%m-%d}: <{address}>")
    return HttpResponse("\n\n".join(parts) + "\n", content_type="text/markdown; charset=utf-8")


@for_all
def board_csv(request: HttpRequest, slug: str) -> HttpResponse:
    """The agents that the address shows, of those the ticked ones, with the columns of the whole board."""
    page = _page_as_text(visible(slug), request)
    ticked = {number_in(text) for text in request.GET.getlist("a")}
    lines = [line for line in (*page["ranked"], *page["unranked"]) if not ticked or line.pk in ticked]
    named = {"Content-Disposition": f'attachment; filename="{slug}-board-{page["board"].number}.csv"'}
    content = as_csv(table.flat(line.entry) for line in lines)
    return HttpResponse(content, content_type="text/csv; charset=utf-8", headers=named)


def _escaped(text: str) -> str:
    """Text in which nothing is taken for Markdown or HTML, in one line."""
    return SIGNS.sub(r"\\\1", " ".join(text.split()))
