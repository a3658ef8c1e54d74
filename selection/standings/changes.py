"""What changed between two boards of one benchmark.

Symbols
-------
r, [l, u]   rank of an agent and the simultaneous 95% interval of ranks on the older board
r'          its rank on the newer board, for the same target

An agent *moved* where both boards rank it and r' < l or r' > u: beyond the ranks that it might have held. A
rank counts everybody ranked, so that a newcomer above moves all below it by one; `Moved.n_new_above` tells
how many of those that stand above an agent were not ranked before, and so how much of a move is theirs.

Not done: no test of whether a score changed. The interval [l, u] is about the agents of the older board
alone; it says what that board could not tell apart, not what later agents do to it.

This module imports nothing heavy. Its sentences are in `words`.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from selection.standings.lines import AtTarget, Standings


class Place(NamedTuple):
    """Where one agent stands on one board, for one target.

    Attributes
    ----------
    rank : int or None
        None: listed, not ranked.
    rank_lower, rank_upper : int or None
        Best and worst rank it may hold; None without a rank interval.
    score : float or None
    """

    rank: int | None = None
    rank_lower: int | None = None
    rank_upper: int | None = None
    score: float | None = None


NOWHERE = Place()


class Moved(NamedTuple):
    """An agent whose rank is beyond those it might have held.

    Attributes
    ----------
    agent : str
    before, now : Place
    n_new_above : int
        Agents that stand above it now and were not ranked before.
    """

    agent: str
    before: Place
    now: Place
    n_new_above: int


@dataclass(frozen=True)
class Changes:
    """What changed from an older board to a newer one; names in order of rank on the newer, then by name.

    Attributes
    ----------
    target : str
        What ranks are about: the default target of the newer board.
    entered : tuple of str
        Listed on the newer board alone.
    left : tuple of str
        Listed on the older board alone, and not withdrawn.
    withdrawn : tuple of str
        Listed on the older board alone, and withdrawn.
    moved : tuple of Moved
    now_ranked, now_unranked : tuple of str
        Listed on both, and ranked on the newer board alone, or on the older alone.
    n_untold : int
        Agents that both boards rank and of which the older told no rank interval: whether they moved beyond
        it cannot be said.
    before, now : mapping of str to Place
        Where each agent stood on the older board, by its name on the newer, and stands on the newer.
    """

    target: str
    entered: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    withdrawn: tuple[str, ...] = ()
    moved: tuple[Moved, ...] = ()
    now_ranked: tuple[str, ...] = ()
    now_unranked: tuple[str, ...] = ()
    n_untold: int = 0
    before: Mapping[str, Place] = field(default_factory=dict, compare=False, repr=False)
    now: Mapping[str, Place] = field(default_factory=dict, compare=False, repr=False)

    @property
    def anything(self) -> bool:
        """Whether there is anything to tell."""
        return any((self.entered, self.left, self.withdrawn, self.moved, self.now_ranked, self.now_unranked))

    def as_plain(self) -> dict[str, Any]:
        """Return the same as objects of JSON, places and moves as objects of their fields."""
        moved = [
            one._asdict() | {"before": one.before._asdict(), "now": one.now._asdict()} for one in self.moved
        ]
        lists = ("entered", "left", "withdrawn", "now_ranked", "now_unranked")
        plain = {name: list(getattr(self, name)) for name in lists}
        return {"target": self.target, **plain, "moved": moved, "n_untold": self.n_untold}


def places(board: Standings, target: str = "") -> dict[str, Place]:
    """Return where each agent stands for a target, the board's own where none is named."""
    target = target or board.target
    return {
        line.agent: Place(told.rank, told.rank_lower, told.rank_upper, told.score)
        for line, told in ((line, line.at.get(target, AtTarget())) for line in board.agents)
    }


def changes(
    older: Standings,
    newer: Standings,
    *,
    withdrawn: Collection[str] = (),
    renamed: Mapping[str, str] | None = None,
) -> Changes:
    """Compare two boards for the default target of the newer; see `compared` for the rest."""
    target = newer.target
    return compared(
        places(older, target), places(newer, target), target=target, withdrawn=withdrawn, renamed=renamed
    )


def compared(
    older: Mapping[str, Place],
    newer: Mapping[str, Place],
    *,
    target: str,
    withdrawn: Collection[str] = (),
    renamed: Mapping[str, str] | None = None,
) -> Changes:
    """Compare where agents stood with where they stand.

    Parameters
    ----------
    older, newer : mapping of name to Place
    target : str
        What both are about.
    withdrawn : collection of str
        Agents, by their name on the older board, that were withdrawn.
    renamed : mapping of str to str, optional
        Name on the older board to name on the newer, of agents that were given another.
    """
    names = renamed or {}
    gone = {names.get(name, name) for name in withdrawn}
    before = {names.get(name, name): place for name, place in older.items()}
    order = sorted(newer, key=lambda name: (newer[name].rank is None, newer[name].rank or 0, name))
    both = [name for name in order if name in before]
    absent = sorted(before.keys() - newer.keys())
    ranked = [name for name in both if before[name].rank is not None and newer[name].rank is not None]
    new = [rank for n in order if before.get(n, NOWHERE).rank is None and (rank := newer[n].rank) is not None]
    return Changes(
        target=target,
        entered=tuple(name for name in order if name not in before),
        left=tuple(name for name in absent if name not in gone),
        withdrawn=tuple(name for name in absent if name in gone),
        moved=tuple(
            Moved(name, before[name], newer[name], bisect_left(new, newer[name].rank or 0))
            for name in ranked
            if _is_beyond(before[name], newer[name])
        ),
        now_ranked=tuple(n for n in both if before[n].rank is None and newer[n].rank is not None),
        now_unranked=tuple(n for n in both if before[n].rank is not None and newer[n].rank is None),
        n_untold=sum(before[name].rank_lower is None for name in ranked),
        before=before,
        now=newer,
    )


def _is_beyond(before: Place, now: Place) -> bool:
    """Return whether r' < l or r' > u; no rank is beyond an interval that was not told."""
    if now.rank is None or before.rank_lower is None or before.rank_upper is None:
        return False
    return not before.rank_lower <= now.rank <= before.rank_upper
