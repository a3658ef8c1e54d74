"""One agent as a row of the board, seen for one target beside a reference."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.utils.safestring import SafeString

from leaderboard.boards.models import Entry
from leaderboard.plots.ranks import Standing, rank_bar
from leaderboard.studies.answers import AtTarget, Line, Standings, table, words

LONGEST_SHOWN = 120  # characters of a name: two lines of the table
NOT_STATED = "not stated"  # as files say of a model or a scaffold


@dataclass
class BoardLine:
    entry: Line
    target_result: AtTarget
    cells: Mapping[str, str]
    pk: int = 0
    standing: Standing = "muted"
    n_ranked: int = 0
    more_versions: str = ""  # 19 more versions

    @property
    def bounds(self) -> str:
        return words.bounds_text(self.target_result)

    @property
    def about(self) -> tuple[tuple[str, str], ...]:
        return words.about(self.entry)

    @property
    def n_tied(self) -> int | None:
        if self.target_result.rank_lower is None:
            return None
        return sum(last - first + 1 for first, last in self.target_result.tied_with)

    @cached_property
    def bar(self) -> SafeString | str:
        """The ranks that it may hold; empty where nobody can say."""
        at = self.target_result
        if at.rank is None or at.rank_lower is None or at.rank_upper is None:
            return ""
        return rank_bar(at.rank, (at.rank_lower, at.rank_upper, self.standing), self.n_ranked)

    @cached_property
    def made_of(self) -> str:
        name = self.entry.agent.casefold()
        parts = dict.fromkeys((self.entry.model, self.entry.scaffold))
        return " · ".join(
            part for part in parts if part not in ("", NOT_STATED) and part.casefold() not in name
        )

    @property
    def is_cut(self) -> bool:
        return len(self.entry.agent) + len(self.made_of) > LONGEST_SHOWN

    @property
    def compared_cost(self) -> float | None:
        """None too where its cost is not believed, or stated of some of its trials alone."""
        is_apart = self.cells.get("Cost") == words.UNBELIEVED or self.entry.cost_basis == words.IN_PART
        return None if is_apart else self.entry.cost_usd

    @property
    def trials(self) -> str:
        return f"{self.entry.n_trials / self.entry.n_tasks:.1f}" if self.entry.n_tasks else table.NOTHING


def lines_at(standings: Standings, target: str, entries: Sequence[Entry] = ()) -> list[BoardLine]:
    """The lines for a target, by rank; those without a rank last, by name."""
    pks = {entry.name: entry.agent_id for entry in entries}
    n = standings.targets[target].n_ranked
    rows, more = table.rows(standings, target), words.more_versions(standings, target)
    return [
        BoardLine(
            entry,
            entry.at[target],
            cells,
            pks.get(entry.agent, 0),
            n_ranked=n,
            more_versions=more.get(entry.agent, ""),
        )
        for entry, cells in zip(words.in_order(standings, target), rows, strict=True)
    ]


def leader_of(lines: Sequence[BoardLine]) -> BoardLine | None:
    """The first by rank; None where nobody has one."""
    return lines[0] if lines and lines[0].target_result.rank is not None else None


def compare_to(reference: BoardLine | None, lines: Sequence[BoardLine], standings: Standings) -> None:
    """Mark how each line stands to the reference; nothing is marked where its ties are not known."""
    if reference is None or reference.target_result.rank_lower is None:
        return
    ties = reference.target_result.tied_with
    tied = {line.agent for first, last in ties for line in standings.agents[first : last + 1]}
    for line in lines:
        if line is reference:
            line.standing = "lead"
        elif line.target_result.rank is not None:
            line.standing = "tied" if line.entry.agent in tied else "worse"


def common_marks(lines: Sequence[BoardLine]) -> tuple[str, ...]:
    n = Counter(mark for line in lines for mark in line.entry.marks)
    return tuple(mark for mark in sorted(n) if 2 * n[mark] > len(lines))
