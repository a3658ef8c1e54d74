"""What an address may ask for in its query: declared once, for who reads it and for who describes it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict
from rest_framework.exceptions import ParseError

MAX_ROWS, DEFAULT_ROWS = 1_000, 100
LARGEST = 2**31 - 1
LONGEST = 255  # characters
N_NAMED = 5


@dataclass(frozen=True)
class QueryParameter:
    """`read` turns text into the value, or raises ValueError where it breaks the rule `words`.

    `form` is its JSON schema; one that is `many` comes several times, from `many[0]` to `many[1]`, each with
    another value, and is a list.
    """

    description: str
    words: str
    read: Callable[[str], Any]
    form: Mapping[str, Any]
    default: Any = None
    many: tuple[int, int] | None = None
    required: bool = field(default=False, kw_only=True)


Parameters = dict[str, QueryParameter]


def text(description: str, *, many: tuple[int, int] | None = None) -> QueryParameter:
    def read(value: str) -> str:
        if not 0 < len(value) <= LONGEST or "\0" in value:
            raise ValueError(value)
        return value

    form = {"type": "string", "minLength": 1, "maxLength": LONGEST, "pattern": "^[^\\u0000]*$"}
    words = f"a text of 1 to {LONGEST} characters"
    return QueryParameter(description, words, read, form, many=many, required=many is not None)


def whole(
    description: str, *, least: int = 1, most: int = LARGEST, default: int | None = None
) -> QueryParameter:
    def read(value: str) -> int:
        number = int(value) if value.isascii() and value.isdecimal() and len(value) < 20 else -1
        if not least <= number <= most:
            raise ValueError(value)
        return number

    form = {"type": "integer", "minimum": least, "maximum": most} | (
        {} if default is None else {"default": default}
    )
    return QueryParameter(description, f"a whole number from {least} to {most}", read, form, default)


def one_of(description: str, values: Collection[str]) -> QueryParameter:
    def read(value: str) -> str:
        if value not in values:
            raise ValueError(value)
        return value

    return QueryParameter(
        description, f"one of {', '.join(values)}", read, {"type": "string", "enum": list(values)}
    )


def flag(description: str) -> QueryParameter:
    return QueryParameter(
        description, "true or false", {"true": True, "false": False}.__getitem__, {"type": "boolean"}
    )


PAGE: Parameters = {
    "limit": whole("How many rows a page has at most.", most=MAX_ROWS, default=DEFAULT_ROWS),
    "offset": whole("How many rows come before the page.", least=0, default=0),
}


def read_query(query: QueryDict, known: Parameters) -> dict[str, Any]:
    """Read all that is known, and refuse by name what is not."""
    if unknown := sorted(set(query) - set(known)):
        named = ", ".join(unknown[:N_NAMED])[:200]
        raise ParseError(
            f"Unknown parameter {named}. This address takes {', '.join(known) or 'none'}.",
            code="unknown_parameter",
        )
    found: dict[str, Any] = {}
    for name, one in known.items():
        texts = query.getlist(name)
        if not texts and not one.required:
            found[name] = one.default
            continue
        if not texts or (len(texts) > 1 and not one.many):
            times = "is needed" if not texts else "comes once"
            raise ParseError(f"The parameter {name} {times}.", code="malformed_parameter")
        try:
            values = [one.read(value) for value in texts]
        except (ValueError, KeyError):
            raise ParseError(f"The parameter {name} is {one.words}.", code="malformed_parameter") from None
        if one.many and not (len(set(values)) == len(values) and one.many[0] <= len(values) <= one.many[1]):
            rule = f"{one.many[0]} to {one.many[1]} times, each with another value"
            raise ParseError(f"The parameter {name} comes {rule}.", code="malformed_parameter")
        found[name] = values if one.many else values[0]
    return found
