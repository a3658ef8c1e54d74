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
class Asked:
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


def query(told: dict[str, str]) -> str:
    """The parameters that say something, as they stand in an address."""
    return "?" + urlencode({name: text for name, text in told.items() if text})


def unknown(asked: Asked, *, is_ranked: bool) -> tuple[str, ...]:
    """Say which of what an address asks for is not known, so that the default is shown in its place.

    `is_ranked`: whether the reference that is asked for, if one is, has a rank here.
    """
    targets, orders = _listed_names(words.TARGETS), _listed_names(COLUMNS)
    told = {
        f"There is no target “{_named(asked.target)}”, so that this is the board’s own; targets are "
        f"{targets}.": asked.target not in ("", *words.TARGETS),
        f"There is no order by “{_named(asked.sort)}”, so that this is the one by rank; a board is sorted by "
        f"{orders}.": bool(asked.sort) and asked.sort.removeprefix("-") not in COLUMNS,
        f"There is no ranked agent “{_named(asked.vs)}” here, so that ties are those of the leader.": bool(
            asked.vs
        )
        and not is_ranked,
        f"“{_named(asked.cost)}” is no sum of money, so that costs are not limited.": bool(asked.cost)
        and amount(asked.cost) is None,
        f"There is no way to show “{_named(asked.show)}”, so that this is every agent; ways are model and "
        "scaffold.": asked.show not in SHOWN,
        f"There is no level of trust “{_named(asked.trust)}”, so that this is every agent; levels are "
        f"{_listed_names(name for name in LEVELS if name)}.": asked.trust not in LEVELS,
        f"There is no view “{_named(asked.view)}”, so that this is the plain one; the other is all.": (
            asked.view not in ("", "all")
        ),
    }
    return tuple(sentence for sentence, is_unknown in told.items() if is_unknown)


def _named(text: str) -> str:
    """What was asked for, short and with nothing that cannot be seen."""
    shown = "".join(sign if sign.isprintable() else "�" for sign in text)
    return shown if len(shown) <= LONGEST_SHOWN else f"{shown[:LONGEST_SHOWN]}…"


def _listed_names(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}"
