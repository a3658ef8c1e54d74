"""A board as tables: columns with heads for a reader, and why a line has a gap.

A column is defined once, for a terminal and a page alike: its head, which side it stands on, and its cell as
text. A column in which no agent has anything is left out.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from selection.schema.board import LINE_FIELDS as LINE_FIELDS
from selection.schema.board import TARGET_FIELDS as TARGET_FIELDS
from selection.schema.board import AtTarget, Line, Standings, TargetLine
from selection.schema.board import flat as flat
from selection.standings.terms import (
    TRUST,
    UNBELIEVED,
    cost_text,
    costs,
    in_order,
    leaves_open,
    more_versions,
    percent,
    rank_text,
    tells_trust,
)


@dataclass(frozen=True)
class Gap:
    """What some agents lack, and why."""

    what: str
    reason: str
    agents: tuple[str, ...]


def gaps(board: Standings, target: str = "") -> tuple[Gap, ...]:
    """Return what the lines do not show, grouped by its reason."""
    target = target or board.target
    has_icc = any(
        one.get("icc") is not None
        for line in board.agents
        for one in (line.icc, *line.icc.get("by_condition", ()))
    )
    agents_of: dict[tuple[str, str], list[str]] = {}
    for line in in_order(board, target):
        for what, reason in _gaps_of(line, board.targets[target], line.at[target], has_icc=has_icc):
            agents_of.setdefault((what, reason), []).append(line.agent)
    return tuple(
        Gap(what, re.sub("^shares", "share", reason) if names[1:] else reason, tuple(names))
        for (what, reason), names in agents_of.items()
    )


def _gaps_of(
    line: Line, target_line: TargetLine, at: AtTarget, *, has_icc: bool
) -> Iterable[tuple[str, str]]:
    if at.rank is None:
        yield "Not ranked", at.reason
    elif at.se is None:
        yield "No standard error", at.reason
    elif at.rank_lower is None:
        yield "No rank range", target_line.reason.removeprefix("no rank ranges: ")
    if at.estimated and at.lower is None and at.rank is not None:
        yield "No interval", at.reason
    if has_icc and line.icc.get("reason"):
        yield "No intraclass correlation", str(line.icc["reason"]).removeprefix("not measured: ")
    elif line.icc.get("note"):
        yield "Intraclass correlation unreliable", str(line.icc["note"])


@dataclass(frozen=True)
class BoundsRow:
    """Between which scores an agent lies: if all its missing results failed, and if all passed; 0 to 1."""

    agent: str
    low: float
    high: float

    @property
    def text(self) -> str:
        """The two in percent, or the one."""
        low, high = percent(self.low), percent(self.high)
        return low if self.low == self.high else f"{low}–{high}"


def bounds(board: Standings, target: str = "") -> list[BoundsRow]:
    """Return the bounds of agents without a rank, the highest lower end first."""
    results = [(line.agent, line.at[target or board.target]) for line in board.agents]
    rows = [BoundsRow(name, *at.bounds) for name, at in results if at.rank is None and at.bounds]
    return sorted(rows, key=lambda row: (-row.low, -row.high, row.agent))


NOTHING = "–"
FORMULA = ("=", "+", "-", "@", "\t", "\r")
HEADS = {"subset": "Ranking tasks %", "full": "Score %", "domain": "Score %"}


@dataclass(frozen=True)
class BoardColumn:
    """A column of a board.

    is_number: stands to the right.
    cells: in the order of the target, one for each agent.
    """

    head: str
    is_number: bool
    cells: tuple[str, ...]


def columns(board: Standings, target: str = "") -> tuple[BoardColumn, ...]:
    """Return the columns of a board for a target, those that say something.

    target: by default the board's own.
    """
    target = target or board.target
    lines = in_order(board, target)
    shown = (
        BoardColumn(head, is_number, tuple(cell(line) for line in lines))
        for head, is_number, cell in _columns(board, target)
    )
    return tuple(column for column in shown if any(cell not in ("", NOTHING) for cell in column.cells))


def rows(board: Standings, target: str = "") -> list[dict[str, str]]:
    """Return the same by rows: from head to cell."""
    shown = columns(board, target)
    cells = zip(*(column.cells for column in shown), strict=True)
    return [dict(zip((column.head for column in shown), row, strict=True)) for row in cells]


def guarded(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row for a CSV in which no text is taken for a formula: an apostrophe stands before it.

    A spreadsheet reads as a formula what begins with = + - @, a tab or a carriage return. Numbers stay.
    """
    return {
        name: f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
        for name, value in row.items()
    }


def rank_columns(board: Standings, target: str = "") -> tuple[BoardColumn, ...]:
    """Return the columns that say which ranks agents may hold, and with whom they are tied, by row.

    target: by default the board's own.
    """
    target = target or board.target
    lines, first = in_order(board, target), board.targets[target].may_be_first
    known = {column.head: column for column in columns(board, target)}
    row = {line.agent: number for number, line in enumerate(lines, 1)}
    rows = [row[line.agent] for line in board.agents]
    shown = (
        BoardColumn("Row", True, tuple(str(number) for number in row.values())),
        known.get("Rank"),
        known.get("95% rank range"),
        BoardColumn(
            "Could be the best", False, tuple("yes" if line.agent in first else "" for line in lines)
        ),
        known["Agent"],
        known.get("Trust"),
        BoardColumn("Tied with", False, tuple(_tied_rows(line.at[target], rows) for line in lines)),
    )
    return tuple(one for one in shown if one is not None and any(one.cells))


def _tied_rows(at: AtTarget, rows: Sequence[int]) -> str:
    """2–14, 16: rows of a table by positions in the list of agents."""
    tied = sorted(row for first, last in at.tied_with for row in rows[first : last + 1])
    ends = [place for place, row in enumerate(tied) if place == 0 or row != tied[place - 1] + 1] + [len(tied)]
    spans = [(tied[first], tied[after - 1]) for first, after in pairwise(ends)]
    return ", ".join(f"{first}" if first == last else f"{first}–{last}" for first, last in spans)


Cell = Callable[[Line], str]


def _columns(board: Standings, target: str) -> Iterator[tuple[str, bool, Cell]]:
    """Yield head, side and cell of every column, in order."""
    n_of_rank = Counter(line.at[target].rank for line in board.agents)
    believed, is_mixed, more = costs(board), tells_trust(board), more_versions(board, target)
    yield (
        "Rank",
        True,
        lambda line: "" if (rank := line.at[target].rank) is None else rank_text(rank, n_of_rank),
    )
    yield "95% rank range", True, lambda line: _range(line.at[target])
    yield "Agent", False, lambda line: line.agent + (f" ({more[line.agent]})" if line.agent in more else "")
    yield "Trust", False, lambda line: TRUST[line.trust] if is_mixed else ""
    yield HEADS[target], True, lambda line: score(line.at[target])
    yield "95% interval", True, lambda line: interval(line.at[target])
    yield (
        "SE",
        True,
        lambda line: (
            NOTHING if (at := line.at[target]).se is None else f"{'≤' * at.upper_bound}{percent(at.se)}"
        ),
    )
    yield "naive", True, lambda line: NOTHING if (se := line.at[target].naive_se) is None else percent(se)
    if board.subset is not None:
        other = "full" if target == "subset" else "subset"
        yield other_head(target), True, lambda line: score(line.at[other])
    yield "Possible score %", True, lambda line: bounds_text(line.at[target])
    yield (
        "Ties",
        True,
        lambda line: (
            NOTHING
            if (at := line.at[target]).rank_lower is None
            else f"{sum(last - first + 1 for first, last in at.tied_with)}"
        ),
    )
    yield "ICC", True, icc
    yield (
        "Cost",
        True,
        lambda line: (
            NOTHING if line.cost_usd is None else cost_text(line) if line.agent in believed else UNBELIEVED
        ),
    )
    yield "Tasks", True, lambda line: f"{line.n_tasks:,}"
    yield "Trials", True, lambda line: f"{line.n_trials:,}"
    yield "Date", False, lambda line: (line.submitted_at or "")[:10]
    yield "Notes", False, lambda line: ", ".join(line.marks)


def other_head(target: str) -> str:
    """Return the head of the scores on the other task set."""
    return "All %" if target == "subset" else HEADS["subset"]


def score(at: AtTarget) -> str:
    """86.6, ~86.6 where estimated."""
    return NOTHING if at.score is None else f"{'~' if at.estimated else ''}{percent(at.score)}"


def interval(at: AtTarget) -> str:
    """81–92, whole percents."""
    if at.lower is None or at.upper is None:
        return NOTHING
    return f"{round(100 * at.lower)}–{round(100 * at.upper)}"


def icc(line: Line) -> str:
    """0.61, with ? where it is unreliable."""
    value = line.icc.get("icc")
    return NOTHING if value is None else f"{value:.2f}{'?' if line.icc.get('note') else ''}"


def _range(at: AtTarget) -> str:
    if at.rank_lower is None or at.rank_upper is None:
        return NOTHING
    return f"{at.rank_lower}" if at.rank_lower == at.rank_upper else f"{at.rank_lower}–{at.rank_upper}"


def bounds_text(at: AtTarget) -> str:
    """Between which scores an agent without a rank lies, in percent; – where nothing is known of it."""
    if at.rank is not None or at.bounds is None or not leaves_open(at):
        return NOTHING
    return f"{percent(at.bounds[0])}–{percent(at.bounds[1])}"
