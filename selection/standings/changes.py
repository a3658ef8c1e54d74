"""What changed between two boards of one benchmark.

An agent *moved* where both boards rank it and its rank is outside its 95% rank range on the older board. A
rank counts all ranked agents, so a newcomer above moves all below it by one; `Moved.n_new_above` gives how
much of a move is theirs. The range covers what the older board could not separate, not what later agents do
to it. Nothing heavy is imported.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from analytics.text import counted
from selection.standings.terms import sentence


class Place(NamedTuple):
    """Where one agent stands on one board, for one target.

    rank: None: listed, not ranked.
    rank_lower, rank_upper: the ends of its 95% rank range; None where there is none.
    """

    rank: int | None = None
    rank_lower: int | None = None
    rank_upper: int | None = None
    score: float | None = None


NOWHERE = Place()


class Moved(NamedTuple):
    """An agent whose rank is beyond those it might have held.

    n_new_above: agents that stand above it now and were not ranked before.
    """

    agent: str
    before: Place
    now: Place
    n_new_above: int


@dataclass(frozen=True)
class Changes:
    """What changed from an older board to a newer one; names in order of rank on the newer, then by name.

    target: what ranks are about: the default target of the newer board.
    entered: listed on the newer board alone.
    left: listed on the older board alone, and not withdrawn.
    withdrawn: listed on the older board alone, and withdrawn.
    now_ranked, now_unranked: listed on both, and ranked on the newer board alone, or on the older alone.
    n_untold: agents that both boards rank and of which the older told no rank range: whether they moved
        beyond it cannot be said.
    n_corrected: agents on both of which results were replaced or withdrawn.
    before, now: where each agent stood on the older board, by its name on the newer, and stands on the newer.
    """

    target: str
    entered: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    withdrawn: tuple[str, ...] = ()
    moved: tuple[Moved, ...] = ()
    now_ranked: tuple[str, ...] = ()
    now_unranked: tuple[str, ...] = ()
    n_untold: int = 0
    n_corrected: int = 0
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


def compared(
    older: Mapping[str, Place],
    newer: Mapping[str, Place],
    *,
    target: str,
    withdrawn: Collection[str] = (),
    corrected: Collection[str] = (),
    renamed: Mapping[str, str] | None = None,
) -> Changes:
    """Compare where agents stood with where they stand.

    withdrawn, corrected: agents, by their name on the older board.
    renamed: name on the older board to name on the newer, of agents that were given another.
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
            if (low := before[name].rank_lower) is not None
            and (high := before[name].rank_upper) is not None
            and not low <= (newer[name].rank or 0) <= high
        ),
        now_ranked=tuple(n for n in both if before[n].rank is None and newer[n].rank is not None),
        now_unranked=tuple(n for n in both if before[n].rank is not None and newer[n].rank is None),
        n_untold=sum(before[name].rank_lower is None for name in ranked),
        n_corrected=sum(names.get(name, name) in newer for name in corrected),
        before=before,
        now=newer,
    )


def changes_text(changes: Changes) -> str:
    """Return 2 agents entered, 1 moved beyond the ranks it might hold, 1 was withdrawn."""
    moved = len(changes.moved)
    rank = changes.now[changes.entered[0]].rank if len(changes.entered) == 1 else None
    counts = (
        (len(changes.entered), (entered_text(rank) if rank else "entered")),
        (moved, f"moved outside {'its' if moved == 1 else 'their'} earlier rank range"),
        (len(changes.now_ranked), "got a rank"),
        (len(changes.now_unranked), "lost the rank"),
        (len(changes.withdrawn), "was withdrawn" if len(changes.withdrawn) == 1 else "were withdrawn"),
        (len(changes.left), "left"),
        (changes.n_corrected, "had results or costs corrected"),
    )
    parts = [f"{n:,} {verb}" for n, verb in counts if n]
    if not parts:
        return sentence(
            "no change: no agent entered, left or moved outside its earlier rank range" + _untold(changes)
        )
    first, _, rest = parts[0].partition(" ")
    noun = "agent" if first == "1" else "agents"
    return sentence(", ".join([f"{first} {noun} {rest}", *parts[1:]]) + _untold(changes))


def entered_text(rank: int | None) -> str:
    """Return entered at rank 5; entered without a rank."""
    return f"entered at rank {rank:,}" if rank else "entered without a rank"


def _untold(changes: Changes) -> str:
    if not changes.n_untold:
        return ""
    return f"; {counted(changes.n_untold, 'agent')} had no rank range before and cannot be compared"


def moved_text(move: Moved) -> str:
    """Return from rank 3 (2–5) to 7 (6–9), 2 of those above it new."""
    new = f", {move.n_new_above:,} of those above it new" if move.n_new_above else ""
    return f"from rank {place_text(move.before)} to {place_text(move.now)}{new}"


def place_text(place: Place) -> str:
    """Return 3 (2–5): the rank and those that it may hold; not ranked where it has none."""
    if place.rank is None:
        return "not ranked"
    if place.rank_lower is None or place.rank_upper is None:
        return f"{place.rank:,}"
    if place.rank_lower == place.rank_upper:
        return f"{place.rank:,} ({place.rank_lower:,})"
    return f"{place.rank:,} ({place.rank_lower:,}–{place.rank_upper:,})"


def _stands(place: Place) -> str:
    return f"rank {place_text(place)}" if place.rank else place_text(place)


def changed_lists(changes: Changes) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return a title and what stands under it, for each kind of change that there is."""
    lists = (
        ("Entered", tuple(f"{name}: {_stands(changes.now[name])}" for name in changes.entered)),
        ("Moved outside the earlier rank range", tuple(f"{m.agent}: {moved_text(m)}" for m in changes.moved)),
        ("Got a rank", tuple(f"{name}: {_stands(changes.now[name])}" for name in changes.now_ranked)),
        ("Lost the rank", changes.now_unranked),
        ("Withdrawn", changes.withdrawn),
        ("Left", changes.left),
    )
    return tuple((title, names) for title, names in lists if names)
