"""The rows of a board for one target beside a reference, and what its address asks for, known or not.

Ranks stay those among all agents, whichever are shown.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.safestring import SafeString

from leaderboard.boards.models import Entry
from leaderboard.plots.marks import ticks_13
from leaderboard.plots.ranks import Standing, rank_bar
from leaderboard.studies.answers import AtTarget, Line, Standings, table, words

LONGEST_LINE = 120  # characters of a name: two lines of the table
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
        return len(self.entry.agent) + len(self.made_of) > LONGEST_LINE

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


# ------------------------------------------------------------------------------------------ what is asked for

FILTERS = ("find", "scaffold", "model", "cost", "show", "trust")
PARAMETERS = ("target", "sort", "vs", "view", "rows", "since", *FILTERS)
LONGEST_SHOWN = 40  # characters of what an address asks for
LONGEST = 255  # of what is looked for: no name is longer
MAX_OFFERED = 60  # names of a list to choose from; beyond, one types
LEVELS = {"": "any", "logs": "logs linked or verified", "verified": "verified"}
SHOWN = {"": "every agent", "model": "best for each model", "scaffold": "best for each scaffold"}
COLUMNS: Mapping[str, Callable[[BoardLine], Any]] = {
    "rank": lambda line: line.target_result.rank,
    "agent": lambda line: line.entry.agent.casefold(),
    "score": lambda line: line.target_result.score,
    "ties": lambda line: line.n_tied,
    "subset": lambda line: line.entry.at["subset"].score,
    "full": lambda line: line.entry.at["full"].score,
    "icc": lambda line: line.entry.icc["icc"],
    "cost": lambda line: line.compared_cost,
    "tasks": lambda line: line.entry.n_tasks,
    "trials": lambda line: line.entry.n_trials,
    "date": lambda line: line.entry.submitted_at,
}
SMALLEST_FIRST = ("rank", "agent", "cost")


def read_query(params: QueryDict) -> dict[str, str]:
    return {name: params.get(name, "")[:LONGEST] for name in PARAMETERS}


def query_string(parameters: Mapping[str, str]) -> str:
    return "?" + urlencode({name: text for name, text in parameters.items() if text})


def unknown(query: Mapping[str, str], *, is_ranked: bool) -> tuple[str, ...]:
    """Say which of what an address asks for is not known, so that the default is shown in its place.

    `is_ranked`: whether the reference that is asked for, if one is, has a rank here.
    """
    shown = {}  # what was asked for, short and with nothing that cannot be seen
    for name, text in query.items():
        seen = "".join(sign if sign.isprintable() else "�" for sign in text)
        shown[name] = seen if len(seen) <= LONGEST_SHOWN else f"{seen[:LONGEST_SHOWN]}…"
    targets, orders = _listed_names(words.TARGETS), _listed_names(COLUMNS)
    levels = _listed_names(name for name in LEVELS if name)
    faults = {
        f"Unknown target “{shown['target']}”. Use {targets}. The board’s own target is shown.": (
            query["target"] not in ("", *words.TARGETS)
        ),
        f"Unknown order “{shown['sort']}”. Use {orders}. Agents are sorted by rank.": (
            bool(query["sort"]) and query["sort"].removeprefix("-") not in COLUMNS
        ),
        f"No ranked agent is called “{shown['vs']}”. Ties are shown for the leader.": (
            bool(query["vs"]) and not is_ranked
        ),
        f"“{shown['cost']}” is not an amount of money. Use a number. Costs are not limited.": (
            bool(query["cost"]) and amount(query["cost"]) is None
        ),
        f"Unknown choice “{shown['show']}”. Use model or scaffold. All agents are shown.": (
            query["show"] not in SHOWN
        ),
        f"Unknown trust level “{shown['trust']}”. Use {levels}. All agents are shown.": (
            query["trust"] not in ("", *words.TRUST)
        ),
        f"Unknown view “{shown['view']}”. Use all. The plain view is shown.": (
            query["view"] not in ("", "all")
        ),
    }
    return tuple(sentence for sentence, is_unknown in faults.items() if is_unknown)


def _listed_names(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}"


# --------------------------------------------------------------------------------------------------- order


def order_in(text: str) -> str:
    """The order that `?sort=full` asks for, `?sort=-full` the other way round; the rank if it is unknown."""
    return text if text.removeprefix("-") in COLUMNS else "rank"


def direction(order: str) -> str:
    is_ascending = (order.removeprefix("-") in SMALLEST_FIRST) != order.startswith("-")
    return "ascending" if is_ascending else "descending"


def sort_lines(lines: Sequence[BoardLine], order: str) -> list[BoardLine]:
    """Agents without a value come last either way; equal ones keep their order."""
    value = COLUMNS[order.removeprefix("-")]
    present = [line for line in lines if value(line) is not None]
    absent = [line for line in lines if value(line) is None]
    return sorted(present, key=value, reverse=direction(order) == "descending") + absent


# -------------------------------------------------------------------------------------------------- filters


def filters_of(query: Mapping[str, str]) -> dict[str, str]:
    """What agents must have, as in an address; what cannot be read is not filtered by."""
    cost = amount(query["cost"])
    return {
        "find": query["find"].strip(),
        "scaffold": query["scaffold"],
        "model": query["model"],
        "cost": "" if cost is None else f"{cost:g}",
        "show": query["show"] if query["show"] in SHOWN else "",
        "trust": query["trust"] if query["trust"] in LEVELS else "",
    }


def filtered(
    lines: Sequence[BoardLine], query: Mapping[str, str], believed: Collection[str]
) -> list[BoardLine]:
    """The lines that are shown, in their order; the best of each model or scaffold is its first.

    `believed`: the agents whose cost is believed; no other has a cost of at most what is asked for.
    """
    filters, cost = filters_of(query), amount(query["cost"])
    parts = []  # the name that is typed as it stands, else those that hold it
    for part in ("scaffold", "model"):
        text, known = filters[part], {getattr(line.entry, part) for line in lines}
        holding = {name for name in known if text.casefold() in name.casefold()}
        parts.append((part, {text} if text in known else holding))
    found, first = filters["find"].casefold().split(), dict[str, BoardLine]()
    for line in lines:
        entry = line.entry
        text = f"{entry.agent} {entry.scaffold} {entry.model} {entry.organisation}".casefold()
        if (
            all(word in text for word in found)
            and (cost is None or (entry.agent in believed and (entry.cost_usd or 0.0) <= cost))
            and (not filters["trust"] or words.at_least(entry.trust, filters["trust"]))
            and all(getattr(entry, part) in names for part, names in parts)
        ):
            first.setdefault(str(getattr(entry, filters["show"] or "agent")), line)
    return list(first.values())


def amount(text: str) -> float | None:
    try:
        value = float(text.strip().removeprefix("$"))
    except ValueError:
        return None
    return value if isfinite(value) and value > 0 else None


def offered(lines: Iterable[BoardLine], part: str) -> list[str]:
    """The scaffolds or models to choose from; empty where there are too many, or no two."""
    names = sorted({str(getattr(line.entry, part)) for line in lines} - {""}, key=str.casefold)
    return names if 1 < len(names) <= MAX_OFFERED else []


def offered_costs(costs: Collection[float], chosen: float | None) -> list[tuple[str, str]]:
    """Round sums between the least and the largest of the costs, as in the address and in words."""
    if not costs:
        return []
    sums = set(ticks_13(min(costs), max(costs))) | ({chosen} if chosen else set())
    return [(f"{v:g}", f"${v:,.0f}" if v >= 1 else words.money(v)) for v in sorted(sums)]
