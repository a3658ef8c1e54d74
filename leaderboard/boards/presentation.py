"""A board as plain values, the same for the API and for `standings --format json`."""

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

from django.db.models import F

from leaderboard.boards.models import Board, Entry
from leaderboard.boards.queries import head_of, plain_of, standings_of
from leaderboard.boards.signing import identity, signed
from leaderboard.studies.answers import AtTarget, Line, Standings, words

OF_LINE = ("scaffold", "model", "trust", "how", "condition", "n_tasks", "cost_usd", "cost_basis", "marks")
OF_TARGET = ("rank", "rank_lower", "rank_upper", "score", "estimated", "reason", "folded_under")
UNREAD: dict[str, Any] = dict.fromkeys(field.name for field in fields(Line))


def as_dict(board: Board) -> dict[str, Any]:
    """What `Standings.as_plain` tells, and what publishing added."""
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
    targets = sorted(set(own.values()))
    target_fields = [F(f"line__at__{target}__{name}") for target in targets for name in OF_TARGET]
    rows = Entry.objects.filter(board__in=boards).order_by("position")
    line_fields = [F(f"line__{name}") for name in OF_LINE]
    for key, name, *values in rows.values_list("board", "name", *line_fields, *target_fields):
        first = len(OF_LINE) + len(OF_TARGET) * targets.index(own[key])
        at = AtTarget(**dict(zip(OF_TARGET, values[first : first + len(OF_TARGET)], strict=True)))
        known = dict(zip(OF_LINE, values[: len(OF_LINE)], strict=True))
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
