"""Charts of the admin: the ranks before and after what an operator is about to do."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from leaderboard.plots.marks import Chart
from leaderboard.plots.ranks import RankSpan, Shift, shifts_chart

if TYPE_CHECKING:  # every process imports this module, few compare
    from leaderboard.operations.previews import Foreseen
    from leaderboard.operations.reselections import Variant

MAX_SHIFTS = 40  # agents of one drawing


def moves_chart(foreseen: "Foreseen") -> Chart | None:
    """The agents that would move; None where none does."""
    shifts = [
        Shift(agent, _rank_range(vars(before)), _rank_range(vars(after)))
        for agent, before, after in foreseen.moves
    ]
    return chart_of(shifts, foreseen.n_ranked)


def chart_of(shifts: list[Shift], n_ranked: int, *, name: str = "shifts") -> Chart | None:
    if not shifts:
        return None
    more = f", the first {MAX_SHIFTS} of {len(shifts):,} that move" if len(shifts) > MAX_SHIFTS else ""
    return shifts_chart(shifts=shifts[:MAX_SHIFTS], of=n_ranked, title=f"Ranks now and then{more}", name=name)


def stands_chart(variant: "Variant") -> Chart | None:
    """The same of a proposed subset."""
    moved = [one for one in variant.stands if one["moves"]]
    ranked = [one["after"]["rank"] for one in variant.stands if one["after"]["rank"]]
    shifts = [Shift(one["agent"], _rank_range(one["before"]), _rank_range(one["after"])) for one in moved]
    return chart_of(shifts, len(ranked), name=f"shifts-{variant.name}")


def _rank_range(ranks: Mapping[str, Any]) -> RankSpan:
    return RankSpan(ranks["rank"], ranks["rank_lower"], ranks["rank_upper"])
