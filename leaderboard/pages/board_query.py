"""What the address of a board asks for, and what of that is not known."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Self
from urllib.parse import urlencode

from django.http import QueryDict

from leaderboard.pages.filters import LEVELS, SHOWN, amount
from leaderboard.pages.order import COLUMNS
from leaderboard.studies.answers import words

LONGEST_SHOWN = 40  # characters of what an address asks for
LONGEST = 255  # of what is looked for: no name is longer


@dataclass(frozen=True)
class BoardQuery:
    """The parameters as they were typed; empty where they are absent."""

    target: str = ""
    sort: str = ""
    vs: str = ""
    view: str = ""
    rows: str = ""
    find: str = ""
    scaffold: str = ""
    model: str = ""
    cost: str = ""
    show: str = ""
    since: str = ""
    trust: str = ""

    @classmethod
    def of(cls, query: QueryDict) -> Self:
        return cls(**{field.name: query.get(field.name, "")[:LONGEST] for field in fields(cls)})


def number_in(text: str) -> int | None:
    """A number of a board or an agent; None where it is none."""
    return int(text[:12]) if text.isascii() and text.isdecimal() else None


def query(parameters: dict[str, str]) -> str:
    """The parameters that say something, as they stand in an address."""
    return "?" + urlencode({name: text for name, text in parameters.items() if text})


def unknown(query: BoardQuery, *, is_ranked: bool) -> tuple[str, ...]:
    """Say which of what an address asks for is not known, so that the default is shown in its place.

    `is_ranked`: whether the reference that is asked for, if one is, has a rank here.
    """
    targets, orders = _listed_names(words.TARGETS), _listed_names(COLUMNS)
    levels = _listed_names(name for name in LEVELS if name)
    faults = {
        f"Unknown target “{_quotable(query.target)}”. Use {targets}. The board’s own target is shown.": (
            query.target not in ("", *words.TARGETS)
        ),
        f"Unknown order “{_quotable(query.sort)}”. Use {orders}. Agents are sorted by rank.": (
            bool(query.sort) and query.sort.removeprefix("-") not in COLUMNS
        ),
        f"No ranked agent is called “{_quotable(query.vs)}”. Ties are shown for the leader.": (
            bool(query.vs) and not is_ranked
        ),
        f"“{_quotable(query.cost)}” is not an amount of money. Use a number. Costs are not limited.": (
            bool(query.cost) and amount(query.cost) is None
        ),
        f"Unknown choice “{_quotable(query.show)}”. Use model or scaffold. All agents are shown.": (
            query.show not in SHOWN
        ),
        f"Unknown trust level “{_quotable(query.trust)}”. Use {levels}. All agents are shown.": (
            query.trust not in ("", *words.TRUST)
        ),
        f"Unknown view “{_quotable(query.view)}”. Use all. The plain view is shown.": (
            query.view not in ("", "all")
        ),
    }
    return tuple(sentence for sentence, is_unknown in faults.items() if is_unknown)


def _quotable(text: str) -> str:
    """What was asked for, short and with nothing that cannot be seen."""
    shown = "".join(sign if sign.isprintable() else "�" for sign in text)
    return shown if len(shown) <= LONGEST_SHOWN else f"{shown[:LONGEST_SHOWN]}…"


def _listed_names(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}"
