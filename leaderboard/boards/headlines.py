"""What boards say of themselves in a sentence, read without what ties every agent to every other."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from django.db.models import F

from leaderboard.boards.models import Board, Entry
from leaderboard.boards.presentation import tells_costs, without_costs
from leaderboard.boards.reading import head_of
from leaderboard.studies.answers import AtTarget, Line, Standings, words

OF_AGENT = (
    *("name", "scaffold", "model", "trust", "how", "condition", "n_tasks"),
    *("cost_usd", "cost_basis", "marks"),
)
OF_TARGET = ("rank", "rank_lower", "rank_upper", "score", "estimated", "reason", "folded_under")
UNREAD: Mapping[str, Any] = {field.name: None for field in fields(Line)}


def headlines(boards: Sequence[Board]) -> dict[int, str]:
    """The headline of each board as visitors see it, by its key: one query, however many there are."""
    return {key: words.headline(standings) for key, standings in outlines(boards).items()}


def outlines(boards: Sequence[Board]) -> dict[int, Standings]:
    """The boards by key, each with as much of its agents as a headline tells, for its own target alone."""
    lines: dict[int, list[Line]] = {board.pk: [] for board in boards}
    targets = sorted({board.target for board in boards})
    target_fields = [F(f"at__{target}__{name}") for target in targets for name in OF_TARGET]
    first = {board.pk: len(OF_TARGET) * targets.index(board.target) for board in boards}
    own = {board.pk: board.target for board in boards}
    rows = Entry.objects.filter(board__in=boards).order_by("position")
    for key, *values in rows.values_list("board", *OF_AGENT, *target_fields):
        at = values[len(OF_AGENT) + first[key] :][: len(OF_TARGET)]
        lines[key].append(_line(values[: len(OF_AGENT)], {own[key]: dict(zip(OF_TARGET, at, strict=True))}))
    return {board.pk: _visible(board, lines[board.pk]) for board in boards}


def _line(values: Sequence[Any], at: Mapping[str, Mapping[str, Any]]) -> Line:
    name, *rest = values
    known = dict(zip(OF_AGENT[1:], rest, strict=True))
    places = {target: AtTarget(**one) for target, one in at.items()}
    return Line(**{**UNREAD, **known, "agent": name, "at": places})


def _visible(board: Board, lines: Sequence[Line]) -> Standings:
    standings = replace(head_of(board), agents=tuple(lines))
    return standings if tells_costs(board) else without_costs(standings)
