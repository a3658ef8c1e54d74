"""What the address of a board asks for, known or not: the order of its agents, and which are shown."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from math import isfinite
from urllib.parse import urlencode

from django.http import QueryDict

from leaderboard.pages.board_table import AS_IN_FILES, ORDERS, BoardLine
from leaderboard.plots.marks import ticks_13
from leaderboard.studies.answers import words

# ------------------------------------------------------------------------------------------ what is asked for

PARTS = ("scaffold", "model", "organisation", "weights")
FILTERS = ("find", *PARTS, "cost", "from", "to", "show", "trust")
PLOTS = ("cost", "date", "scores")
PARAMETERS = ("target", "sort", "vs", "view", "rows", "plot", "since", *FILTERS)
LONGEST_SHOWN = 40  # characters of what an address asks for
LONGEST = 255  # of what is looked for: no name is longer
MAX_OFFERED = 60  # names of a list to choose from; beyond, one types
LEVELS = {"": "any", "logs": "logs linked or verified", "verified": "verified"}
SHOWN = {"": "every agent", "model": "best for each model", "scaffold": "best for each scaffold"}
SMALLEST_FIRST = ("rank", "agent", "cost", "organisation")


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
    targets, orders = _listed_names(words.TARGETS), _listed_names(ORDERS)
    levels = _listed_names(name for name in LEVELS if name)
    faults = {
        f"Unknown target “{shown['target']}”. Use {targets}. The board’s own target is shown.": (
            query["target"] not in ("", *words.TARGETS)
        ),
        f"Unknown order “{shown['sort']}”. Use {orders}. Agents are sorted by rank.": (
            bool(query["sort"]) and query["sort"].removeprefix("-") not in ORDERS
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
        f"Unknown plot “{shown['plot']}”. Use {_listed_names(PLOTS)}. The first of these is shown.": (
            query["plot"] not in ("", *PLOTS)
        ),
    } | {
        f"“{shown[end]}” is not a date. Use YYYY-MM-DD. Dates are not limited.": bool(
            query[end] and not day(query[end])
        )
        for end in ("from", "to")
    }
    return tuple(sentence for sentence, is_unknown in faults.items() if is_unknown)


def _listed_names(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}"


# --------------------------------------------------------------------------------------------------- order


def order_in(text: str) -> str:
    """The order that `?sort=full` asks for, `?sort=-full` the other way round; the rank if it is unknown."""
    return text if text.removeprefix("-") in ORDERS else "rank"


def direction(order: str) -> str:
    is_ascending = (order.removeprefix("-") in SMALLEST_FIRST) != order.startswith("-")
    return "ascending" if is_ascending else "descending"


def sort_lines(lines: Sequence[BoardLine], order: str) -> list[BoardLine]:
    """Agents without a value come last either way; equal ones keep their order."""
    value = ORDERS[order.removeprefix("-")]
    present = [line for line in lines if value(line) is not None]
    absent = [line for line in lines if value(line) is None]
    return sorted(present, key=value, reverse=direction(order) == "descending") + absent


# -------------------------------------------------------------------------------------------------- filters


def filters_of(query: Mapping[str, str]) -> dict[str, str]:
    """What agents must have, as in an address; what cannot be read is not filtered by."""
    cost = amount(query["cost"])
    return {
        "find": query["find"].strip(),
        **{part: query[part] for part in PARTS},
        "cost": "" if cost is None else f"{cost:g}",
        "from": day(query["from"]),
        "to": day(query["to"]),
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
    for part in PARTS:
        text, known = filters[part], {part_of(line, part) for line in lines}
        if not text:
            continue
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
            and _is_between(entry.submitted_at, filters["from"], filters["to"])
            and all(part_of(line, part) in names for part, names in parts)
        ):
            first.setdefault(str(getattr(entry, filters["show"] or "agent")), line)
    return list(first.values())


def part_of(line: BoardLine, part: str) -> str:
    return getattr(line.entry, part) or AS_IN_FILES


def _is_between(date_text: str | None, first: str, last: str) -> bool:
    """Whether a date, or some day of a month or a year that is stated alone, lies between two days."""
    if not first and not last:
        return True
    if not date_text:
        return False
    shown = date_text[:10]
    return shown >= first[: len(shown)] and (not last or shown <= last)


def day(text: str) -> str:
    """A day of an address as YYYY-MM-DD; empty where it is none."""
    try:
        return date.fromisoformat(text.strip()).isoformat()
    except ValueError:
        return ""


def amount(text: str) -> float | None:
    try:
        value = float(text.strip().removeprefix("$"))
    except ValueError:
        return None
    return value if isfinite(value) and value > 0 else None


def offered(lines: Iterable[BoardLine], part: str) -> list[str]:
    """The names of a part to choose from; empty where there are too many, or no two."""
    names = sorted({part_of(line, part) for line in lines}, key=str.casefold)
    return names if 1 < len(names) <= MAX_OFFERED else []


def offered_costs(costs: Collection[float], chosen: float | None) -> list[tuple[str, str]]:
    """Round sums between the least and the largest of the costs, as in the address and in words."""
    if not costs:
        return []
    sums = set(ticks_13(min(costs), max(costs))) | ({chosen} if chosen else set())
    return [(f"{v:g}", f"${v:,.0f}" if v >= 1 else words.money(v)) for v in sorted(sums)]
