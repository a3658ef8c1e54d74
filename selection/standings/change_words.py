"""Sentences on what changed between two boards; faces read them through `words`."""

from analytics.text import counted
from selection.standings.changes import Changes, Moved, Place
from selection.standings.terms import sentence


def changes_text(told: Changes) -> str:
    """Return 2 agents entered, 1 moved beyond the ranks it might hold, 1 was withdrawn."""
    moved = len(told.moved)
    parts = (
        (len(told.entered), _entered(told)),
        (moved, f"moved beyond the ranks {'it' if moved == 1 else 'they'} might hold"),
        (len(told.now_ranked), "got a rank"),
        (len(told.now_unranked), "lost the rank"),
        (len(told.withdrawn), "was withdrawn" if len(told.withdrawn) == 1 else "were withdrawn"),
        (len(told.left), "left"),
    )
    said = [f"{n:,} {verb}" for n, verb in parts if n]
    if not said:
        return sentence("no agent came, went, or moved beyond the ranks it might hold" + _untold(told))
    first, _, rest = said[0].partition(" ")
    noun = "agent" if first == "1" else "agents"
    return sentence(", ".join([f"{first} {noun} {rest}", *said[1:]]) + _untold(told))


def _entered(told: Changes) -> str:
    """Return entered; of one agent with its rank, entered at rank 5."""
    rank = told.now[told.entered[0]].rank if len(told.entered) == 1 else None
    return entered_text(rank) if rank else "entered"


def entered_text(rank: int | None) -> str:
    """Return entered at rank 5; entered without a rank."""
    return f"entered at rank {rank:,}" if rank else "entered without a rank"


def _untold(told: Changes) -> str:
    if not told.n_untold:
        return ""
    had = f"{counted(told.n_untold, 'agent')} had no rank interval before, so that whether"
    return f"; {had} {'it' if told.n_untold == 1 else 'they'} moved cannot be said"


def moved_text(told: Moved) -> str:
    """Return from rank 3 (2–5) to 7 (6–9), 2 of those above it new."""
    new = f", {told.n_new_above:,} of those above it new" if told.n_new_above else ""
    return f"from rank {place_text(told.before)} to {place_text(told.now)}{new}"


def place_text(told: Place) -> str:
    """Return 3 (2–5): the rank and those that it may hold; not ranked where it has none."""
    if told.rank is None:
        return "not ranked"
    if told.rank_lower is None or told.rank_upper is None:
        return f"{told.rank:,}"
    if told.rank_lower == told.rank_upper:
        return f"{told.rank:,} ({told.rank_lower:,})"
    return f"{told.rank:,} ({told.rank_lower:,}–{told.rank_upper:,})"


def _stands(told: Place) -> str:
    return f"rank {place_text(told)}" if told.rank else place_text(told)


def changed_lists(told: Changes) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return a title and what stands under it, for each kind of change that there is."""
    lists = (
        ("Entered", tuple(f"{name}: {_stands(told.now[name])}" for name in told.entered)),
        ("Moved beyond the ranks it might hold", tuple(f"{m.agent}: {moved_text(m)}" for m in told.moved)),
        ("Got a rank", tuple(f"{name}: {_stands(told.now[name])}" for name in told.now_ranked)),
        ("Lost the rank", told.now_unranked),
        ("Withdrawn", told.withdrawn),
        ("Left", told.left),
    )
    return tuple((title, names) for title, names in lists if names)
