"""Reads of boards: one, several, as the typed answer they were made from, and what changed between two."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields, replace
from itertools import zip_longest
from typing import Any, NamedTuple

from django.db.models import Exists, F, Max, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from leaderboard.boards.models import Board, Entry
from leaderboard.boards.signing import identity, signed
from leaderboard.catalog.models import Agent, Benchmark, Policy
from leaderboard.errors import Missing
from leaderboard.studies.answers import AtTarget, Changes, Line, Place, Standings, compared, words
from leaderboard.submissions.models import Status, StatusChange, Submission

LINE_FIELDS = [field.name for field in fields(Line) if field.name != "agent"]


class NoBoardYet(Missing):
    message = "No board is published yet."


class NoSuchBoard(Missing):
    message = "Unknown board number."


def boards_of(benchmark: Benchmark) -> QuerySet[Board]:
    return with_costs_visible(benchmark.boards.select_related("benchmark", "subset", "policy", "calibration"))


def with_costs_visible(boards: QuerySet[Board]) -> QuerySet[Board]:
    """Each with `costs_visible`: whether the policy in force today lets visitors see costs."""
    in_force = Policy.objects.filter(benchmark=OuterRef("benchmark")).order_by("-number")
    return boards.annotate(costs_visible=Subquery(in_force.values("show_costs")[:1]))


def latest_board(benchmark: Benchmark) -> Board:
    if board := boards_of(benchmark).order_by("-number").first():
        return board
    raise NoBoardYet


def board_numbered(benchmark: Benchmark, number: int) -> Board:
    if board := boards_of(benchmark).filter(number=number).first():
        return board
    latest = benchmark.boards.aggregate(latest=Max("number"))["latest"]
    hint = f" The latest is {latest}." if latest else ""
    raise NoSuchBoard(f"There is no board {number} of {benchmark}.{hint}")


def withdrawn_agents(benchmark: Benchmark) -> set[int]:
    """Ids of the agents that had outcomes on some board, and of which everything is withdrawn by now."""
    return set(withdrawn_among(benchmark.agents.all()).values_list("pk", flat=True))


def withdrawn_since(boards: Iterable[Board]) -> dict[int, list[str]]:
    """By board, the names of its agents of which everything is withdrawn by now: one query, or none.

    Every withdrawal is another data version.
    """
    keys = [board.pk for board in boards if board.data_version < board.benchmark.data_version]
    withdrawn = withdrawn_among(Agent.objects.filter(entries__board__in=keys))
    listed = Entry.objects.filter(board__in=keys, agent__in=withdrawn).order_by("board", "position")
    names: dict[int, list[str]] = {}
    for board, name in listed.values_list("board", "name") if keys else ():
        names.setdefault(board, []).append(name)
    return names


def withdrawn_among(agents: QuerySet[Agent]) -> QuerySet[Agent]:
    of_agent = Submission.objects.filter(Q(agent=OuterRef("pk")) | Q(agent__merged_into=OuterRef("pk")))
    return agents.filter(
        Exists(of_agent.filter(status=Status.WITHDRAWN)), ~Exists(of_agent.filter(status=Status.ACCEPTED))
    )


def promises_of(benchmark: Benchmark) -> dict[int, dict[str, float]]:
    """By agent id, the latest score on all tasks that was estimated from the subset, with an interval."""
    entries = Entry.objects.filter(
        board__benchmark=benchmark, line__at__full__estimated=True, line__at__full__lower__isnull=False
    )
    entries = entries.exclude(line__at__full__lower=None).exclude(line__at__full__source=words.CHOSEN_TASKS)
    latest = entries.order_by("agent", "-board__number").distinct("agent")
    rows: Iterable[tuple[int, Any]] = latest.values_list("agent", "line__at__full")
    return {agent: {end: estimate[end] for end in ("score", "lower", "upper")} for agent, estimate in rows}


def entries_of(board: Board) -> list[Entry]:
    """In the order of the board: by rank, names inside ties, unranked last."""
    return list(board.entries.order_by("position"))


def standings_of(board: Board, entries: Iterable[Entry] | None = None) -> Standings:
    """The typed answer that a board was made from: one query, or none with entries that were read already."""
    return Standings.of_plain(plain_of(board, entries))


def head_of(board: Board) -> Standings:
    """The same without the lines of the agents: no query."""
    return standings_of(board, ())


def plain_of(board: Board, entries: Iterable[Entry] | None = None) -> dict[str, Any]:
    """A board as it was published: it lacks the fields that lines have been given since."""
    agents = [
        {"agent": entry.name} | {field: entry.line[field] for field in LINE_FIELDS if field in entry.line}
        for entry in (entries_of(board) if entries is None else entries)
    ]
    return board.content | {"agents": agents}


def changes_since(older: Board, newer: Board, *, entries: Sequence[Entry] | None = None) -> Changes:
    """What changed from one board to a later one, withdrawals as of today.

    `entries` are those of the later one, where they were read already.
    """
    places = _places([older, newer] if entries is None else [older], newer.target)
    now = places.get(newer.pk, {})
    for entry in entries or ():
        at = entry.line["at"].get(newer.target, {})
        place = Place(*(at.get(field) for field in Place._fields))
        now[entry.agent_id] = (entry.name, {newer.target: place})
    corrected_ids = {agent for _, agent in _corrected(older, newer)}
    before, withdrawn_ids = places.get(older.pk, {}), withdrawn_agents(newer.benchmark)
    return _compare(older, newer, before, now, withdrawn_ids, corrected_ids)


class BoardInHistory(NamedTuple):
    """A board as the history lists it, and what changed since the one before; None for the first.

    `keys` are the ids of the agents of both by name.
    """

    board: Board
    n_ranked: int
    n_listed: int
    changes: Changes | None
    keys: dict[str, int]


def boards_with_changes(
    benchmark: Benchmark, *, before: int | None = None, most: int
) -> tuple[list[BoardInHistory], bool]:
    """The latest boards, or those before a number, newest first, and whether there are older ones.

    Entries are read with their places alone, for a board of many agents is a megabyte: four queries.
    """
    boards = benchmark.boards.select_related("subset").defer("content").order_by("-number")
    if before is not None:
        boards = boards.filter(number__lt=before)
    latest = list(boards[: most + 1])
    entries = _places(latest, *{board.target for board in latest})
    withdrawn_ids = withdrawn_agents(benchmark) if len(latest) > 1 else set()
    corrected_at = _corrected(latest[-1], latest[0]) if len(latest) > 1 else []
    found: list[BoardInHistory] = []
    for newer, older in zip_longest(latest, latest[1:]):
        now = entries.get(newer.pk, {})
        n_ranked = sum(places[newer.target].rank is not None for _, places in now.values())
        former = entries.get(older.pk, {}) if older else {}
        since = older.data_version if older else 0
        corrected_ids = {agent for at, agent in corrected_at if since < at <= newer.data_version}
        changes = _compare(older, newer, former, now, withdrawn_ids, corrected_ids) if older else None
        keys = {name: pk for pk, (name, _) in (*former.items(), *now.items())}
        found.append(BoardInHistory(newer, n_ranked, len(now), changes, keys))
    return found[:most], len(latest) > most


OnBoard = dict[int, tuple[str, dict[str, Place]]]  # by agent: its name there, and its place for each target


def _corrected(older: Board, newer: Board) -> list[tuple[int, int]]:
    """Data versions between two boards with agents of which results were replaced or withdrawn."""
    gone = StatusChange.objects.filter(
        submission__agent__benchmark=newer.benchmark_id,
        status__in=(Status.SUPERSEDED, Status.WITHDRAWN),
        data_version__gt=older.data_version,
        data_version__lte=newer.data_version,
    )
    agent = Coalesce("submission__agent__merged_into", "submission__agent")
    return list(gone.values_list("data_version", agent))


def _compare(
    older: Board,
    newer: Board,
    before: OnBoard,
    now: OnBoard,
    withdrawn_ids: Collection[int],
    corrected_ids: Collection[int],
) -> Changes:
    names_before = {agent: name for agent, (name, _) in before.items()}
    if older.digest == newer.digest:  # what was taken back came again as it was
        corrected_ids = ()
    return compared(
        {name: places[newer.target] for name, places in before.values()},
        {name: places[newer.target] for name, places in now.values()},
        target=newer.target,
        withdrawn={names_before[agent] for agent in withdrawn_ids if agent in names_before},
        corrected={names_before[agent] for agent in corrected_ids if agent in names_before},
        renamed={
            name: now[agent][0]
            for agent, name in names_before.items()
            if agent in now and now[agent][0] != name
        },
    )


def _places(boards: Sequence[Board], *targets: str) -> dict[int, OnBoard]:
    fields = {f"{t}_{field}": F(f"line__at__{t}__{field}") for t in targets for field in Place._fields}
    rows = Entry.objects.filter(board__in=boards).values_list("board", "agent", "name", *fields.values())
    places: dict[int, OnBoard] = {}
    width = len(Place._fields)
    for board, agent, name, *values in rows.iterator():
        of_target = {t: Place(*values[i * width : (i + 1) * width]) for i, t in enumerate(targets)}
        places.setdefault(board, {})[agent] = (name, of_target)
    return places


# --------------------------------------------------------------------------------------- as visitors see them

OF_LINE = ("scaffold", "model", "trust", "how", "condition", "n_tasks", "cost_usd", "cost_basis", "marks")
OF_TARGET = (
    *("rank", "rank_lower", "rank_upper", "score", "lower", "upper", "estimated"),
    *("n_valid", "n_missing", "bounds", "reason", "folded_under"),
)
UNREAD: dict[str, Any] = dict.fromkeys(field.name for field in fields(Line))


def as_dict(board: Board) -> dict[str, Any]:
    return identity(board) | signed(board) | plain_of(board)


def visible(board: Board) -> dict[str, Any]:
    """The same for visitors: without costs where the policy hides them."""
    shown = as_dict(board)
    if tells_costs(board):
        return shown
    return shown | without_costs(Standings.of_plain(shown)).as_plain()


def visible_lines(board: Board, entries: Iterable[Entry]) -> list[dict[str, Any]]:
    return list(visible_standings(board, entries).as_plain()["agents"])


def visible_standings(board: Board, entries: Iterable[Entry]) -> Standings:
    standings = standings_of(board, entries)
    return standings if tells_costs(board) else without_costs(standings)


def outlines(boards: Sequence[Board]) -> dict[int, Standings]:
    """The boards by key, as visitors see them, each with as much of its agents as a headline tells.

    That is told for its own target alone, and without what ties every agent to every other: one query.
    """
    lines: dict[int, list[Line]] = {board.pk: [] for board in boards}
    own = {board.pk: board.target for board in boards}
    rows = Entry.objects.filter(board__in=boards).order_by("position")
    for key, name, line in rows.values_list("board", "name", "line"):
        plain = line["at"].get(own[key], {})
        at = AtTarget(**{field: plain[field] for field in OF_TARGET if field in plain})
        known = {field: line[field] for field in OF_LINE}
        lines[key].append(Line(**UNREAD | known | {"agent": name, "at": {own[key]: at}}))
    found = {board.pk: replace(head_of(board), agents=tuple(lines[board.pk])) for board in boards}
    hidden = {board.pk for board in boards if not tells_costs(board)}
    return {key: without_costs(one) if key in hidden else one for key, one in found.items()}


def tells_costs(board: Board) -> bool:
    """Whether visitors see costs: by the policy of the board, and by that of today where it was read."""
    return board.policy.show_costs and getattr(board, "costs_visible", True)


def without_costs(standings: Standings) -> Standings:
    """The standings without a cost, which is said to be hidden where it was stated."""
    savings, trials = standings.savings, standings.trials
    if trials:
        trials = replace(trials, options=tuple(replace(one, cost_usd=None) for one in trials.options))
    if savings:
        so_far = savings["so_far"]
        so_far = so_far | {"saved": None, "n_not_measured": so_far["n_runs"]}
        savings = {**savings, "per_run": None, "subset_run": None, "so_far": so_far}
    agents = (
        line if line.cost_usd is None else replace(line, cost_usd=None, cost_basis=words.HIDDEN)
        for line in standings.agents
    )
    return replace(standings, agents=tuple(agents), trials=trials, savings=savings)
