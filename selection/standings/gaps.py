"""What the lines of a board do not show, and why, grouped by the reason. Nothing heavy is imported."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from selection.schema.board import AtTarget, Line, Standings, TargetLine
from selection.standings.terms import in_order


@dataclass(frozen=True)
class Gap:
    """What some agents lack, and why."""

    what: str
    reason: str
    agents: tuple[str, ...]


def gaps(board: Standings, target: str = "") -> tuple[Gap, ...]:
    """Return what the lines do not show, grouped by its reason."""
    target = target or board.target
    has_icc = any(_has_icc(line) for line in board.agents)
    agents_of: dict[tuple[str, str], list[str]] = {}
    for line in in_order(board, target):
        for what, reason in _gaps_of(line, board.targets[target], line.at[target], has_icc=has_icc):
            agents_of.setdefault((what, reason), []).append(line.agent)
    return tuple(Gap(what, _of(names, reason), tuple(names)) for (what, reason), names in agents_of.items())


def _of(agents: Sequence[str], reason: str) -> str:
    """Set the verb for one agent or several."""
    return reason.replace("shares", "share", 1) if agents[1:] and reason.startswith("shares") else reason


def _has_icc(line: Line) -> bool:
    return any(one.get("icc") is not None for one in (line.icc, *line.icc.get("by_condition", ())))


def _gaps_of(
    line: Line, target_line: TargetLine, at: AtTarget, *, has_icc: bool
) -> Iterable[tuple[str, str]]:
    if at.rank is None:
        yield "Not ranked", at.reason
    elif at.se is None:
        yield "No standard error", at.reason
    elif at.rank_lower is None:
        yield "No rank interval", target_line.reason
    if at.estimated and at.lower is None and at.rank is not None:
        yield "No interval", at.reason
    if has_icc and line.icc.get("reason"):
        yield "No intraclass correlation", str(line.icc["reason"]).removeprefix("not measured: ")
    elif line.icc.get("note"):
        yield "Intraclass correlation unreliable", str(line.icc["note"])
