"""Which of the agents are shown. Ranks stay those among all."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Self

from leaderboard.pages.lines import BoardLine
from leaderboard.plots.scales import ticks_13
from leaderboard.studies.answers import words

MAX_OFFERED = 60  # names of a list to choose from; beyond, one types
PARTS = ("scaffold", "model")
LEVELS = {"": "any", "logs": "logs linked or verified", "verified": "verified"}
SHOWN = {"": "every agent", "model": "best for each model", "scaffold": "best for each scaffold"}


@dataclass(frozen=True)
class Filters:
    """What agents must have.

    Words of their name, a scaffold, a model, a believed cost of at most `cost`, at least the trust `trust`.
    """

    find: str = ""
    scaffold: str = ""
    model: str = ""
    cost: float | None = None
    show: str = ""
    trust: str = ""

    @classmethod
    def parse(cls, *, find: str, scaffold: str, model: str, cost: str, show: str, trust: str = "") -> Self:
        """Read the parameters; what cannot be read is not filtered by (`board_query.unknown` says so)."""
        return cls(
            find.strip(),
            scaffold,
            model,
            amount(cost),
            show if show in SHOWN else "",
            trust if trust in LEVELS else "",
        )

    @property
    def parameters(self) -> dict[str, str]:
        """As in the address."""
        cost = "" if self.cost is None else f"{self.cost:g}"
        return {
            "find": self.find,
            "scaffold": self.scaffold,
            "model": self.model,
            "cost": cost,
            "show": self.show,
            "trust": self.trust,
        }

    def keep(self, lines: Iterable[BoardLine], believed: Collection[str]) -> list[BoardLine]:
        """The lines that are shown, in their order; the best of each is the first of each."""
        lines = list(lines)
        of = {part: meant(getattr(self, part), (getattr(x.entry, part) for x in lines)) for part in PARTS}
        shown = [line for line in lines if self._holds(line, believed) and _has(line, of)]
        if not self.show:
            return shown
        first: dict[str, BoardLine] = {}
        for line in shown:
            first.setdefault(str(getattr(line.entry, self.show)), line)
        return list(first.values())

    def _holds(self, line: BoardLine, believed: Collection[str]) -> bool:
        entry = line.entry
        text = f"{entry.agent} {entry.scaffold} {entry.model} {entry.organisation}".casefold()
        return (
            all(word in text for word in self.find.casefold().split())
            and (self.cost is None or (entry.agent in believed and (entry.cost_usd or 0.0) <= self.cost))
            and (not self.trust or words.at_least(entry.trust, self.trust))
        )


def meant(text: str, names: Iterable[str]) -> set[str]:
    """The names that are asked for: the one that is typed as it stands, else those that hold it."""
    known = set(names)
    return {text} if text in known else {name for name in known if text.casefold() in name.casefold()}


def _has(line: BoardLine, of: Mapping[str, Collection[str]]) -> bool:
    return all(getattr(line.entry, part) in names for part, names in of.items())


def amount(text: str) -> float | None:
    """A sum of money; None where it is not one."""
    try:
        value = float(text.strip().removeprefix("$"))
    except ValueError:
        return None
    return value if isfinite(value) and value > 0 else None


def offered(lines: Iterable[BoardLine], part: str) -> list[str]:
    """The scaffolds or models to choose from; empty where there are too many, or no two."""
    names = sorted({str(getattr(line.entry, part)) for line in lines} - {""}, key=str.casefold)
    return names if 1 < len(names) <= MAX_OFFERED else []


def offered_costs(costs: Sequence[float], chosen: float | None) -> list[tuple[str, str]]:
    """Round sums between the least and the largest of the costs, as in the address and in words."""
    if not costs:
        return []
    sums = set(ticks_13(min(costs), max(costs))) | ({chosen} if chosen else set())
    return [(f"{v:g}", f"${v:,.0f}" if v >= 1 else words.money(v)) for v in sorted(sums)]
