"""A board as plain values, the same for the API and for `standings --format json`."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from leaderboard.boards.models import Board, Entry
from leaderboard.boards.reading import plain_of, standings_with
from leaderboard.boards.signing import identity, signed
from leaderboard.studies.answers import Line, Standings, words


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
    """Some lines of a board, as `visible` tells them."""
    standings = standings_with(board, entries)
    lines: list[dict[str, Any]] = (standings if tells_costs(board) else without_costs(standings)).as_plain()[
        "agents"
    ]
    return lines


def tells_costs(board: Board) -> bool:
    """Whether visitors see costs: by the policy of the board, and by that of today where it was read."""
    return board.policy.show_costs and getattr(board, "costs_visible", True)


def without_costs(standings: Standings) -> Standings:
    """The standings without a cost, which is said to be hidden where it was stated."""
    savings, trials = standings.savings, standings.trials
    options = tuple(replace(one, cost_usd=None) for one in trials.options) if trials else ()
    return replace(
        standings,
        agents=tuple(_unpriced_line(line) for line in standings.agents),
        trials=trials and replace(trials, options=options),
        savings=savings
        and {**savings, "per_run": None, "subset_run": None, "so_far": _unpriced(savings["so_far"])},
    )


def _unpriced_line(line: Line) -> Line:
    return line if line.cost_usd is None else replace(line, cost_usd=None, cost_basis=words.HIDDEN)


def _unpriced(savings: dict[str, Any]) -> dict[str, Any]:
    return savings | {"saved": None, "n_not_measured": savings["n_runs"]}
