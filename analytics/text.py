"""Plain values as text for a terminal: lines of key and value, and tables where rows are alike.

Numbers of one column have the same number of decimals, 3 to 7 so that the largest has three digits, and stand
under each other by the point; what would round to 0 is set with an exponent. Empty lists and columns are left
out, None is a dash. Lines have at most 110 characters, except for tables of too many numbers: longer texts
continue in the next line. Rounding happens here and nowhere else.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from textwrap import wrap
from typing import Any

from analytics.names import NOT_STATED as NOT_STATED

INDENT = "  "
WIDTH = 110
NARROWEST = 16  # of a column of texts
DIGITS = 3
MIN_DECIMALS, MAX_DECIMALS = 3, 7
MAX_VALUE = 1e9
NOTHING = "–"
LONGEST_NAME = 80


def named(name: str) -> str:
    """Return a name in quotes as a refusal shows it, which may be of any length in a file."""
    return repr(cut(name))


def cut(name: str) -> str:
    """Return a name of at most 80 characters."""
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def at_most(bound: float) -> str:
    """Return an upper bound with two decimals, rounded up, so that it stays one."""
    return f"{math.ceil(round(100 * bound, 9)) / 100:.2f}"


def enumerated(parts: Sequence[str]) -> str:
    """Return a; a and b; a, b and c."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def counted(n: int, noun: str) -> str:
    """Return 1 agent, 2 agents, 21,600 tasks."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def as_text(result: Mapping[str, Any], width: int = WIDTH) -> str:
    """Set an object of plain values as text; under the key "" a block stands without a title."""
    return "\n".join(_lines(result, width))


def columns_text(
    columns: Sequence[Sequence[str]], are_numbers: Sequence[bool], width: int = WIDTH
) -> list[str]:
    """Set columns, each with its head, side by side: numbers to the right, texts that are too wide wrapped.

    are_numbers: for each column whether it is one of numbers.
    """
    widths = [max(map(len, column), default=0) for column in columns]
    texts = [place for place, is_number in enumerate(are_numbers) if not is_number]
    while sum(widths) + len(INDENT) * (len(widths) - 1) > width:
        widest = max(texts, key=lambda place: widths[place], default=None)
        if widest is None or widths[widest] <= NARROWEST:
            break
        widths[widest] -= 1
    lines = []
    for cells in zip(*columns, strict=True):
        wrapped = [wrap(cell, size) or [""] for cell, size in zip(cells, widths, strict=True)]
        for parts in zip_longest(*wrapped, fillvalue=""):
            set_ = zip(parts, widths, are_numbers, strict=True)
            row = [f"{part:{'>' if is_number else '<'}{size}}" for part, size, is_number in set_]
            lines.append(INDENT.join(row).rstrip())
    return lines


def _lines(result: Mapping[str, Any], width: int) -> list[str]:
    shown = {str(key): value for key, value in result.items() if _is_scalar(value) or value}
    longest = max((len(key) for key, value in shown.items() if _is_short(value)), default=0)
    lines: list[str] = []
    for key, value in shown.items():
        if _is_short(value):
            lines += _wrapped(f"{key:<{longest}}  ", _cell(value), width)
        else:
            block = _block(value, width - len(INDENT) * bool(key))
            lines += [f"{key}:", *(INDENT + line for line in block)] if key else block
    return lines


def _wrapped(head: str, text: str, width: int) -> list[str]:
    """Set a text behind its head, and what is too long for the line below itself."""
    if len(head) + len(text) <= width:
        return [f"{head}{text}".rstrip()]
    first, *others = wrap(text, max(width - len(head), NARROWEST))
    return [f"{head}{first}", *(" " * len(head) + part for part in others)]


def _block(value: Any, width: int) -> list[str]:
    if isinstance(value, Mapping) and _are_rows(list(value.values())):
        return _table([{"": key, **row} for key, row in value.items()], width)
    if isinstance(value, Mapping):
        return _lines(value, width)
    if _are_rows(value):
        return _table(value, width)
    lines = []
    for item in value:
        if _is_short(item):
            lines += _wrapped("", _cell(item), width)
        else:
            first, *others = _block(item, width - len(INDENT)) or [NOTHING]
            lines += [f"- {first}", *(INDENT + line for line in others)]
    return lines


def _is_short(value: Any) -> bool:
    if isinstance(value, Mapping):
        return False
    if isinstance(value, list | tuple):
        return len(value) <= 3 and all(_is_scalar(item) for item in value)
    return True


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, Mapping | list | tuple)


def _are_rows(values: Sequence[Any]) -> bool:
    rows = len(values) > 0 and all(isinstance(value, Mapping) and value for value in values)
    return rows and all(_is_short(cell) for value in values for cell in value.values())


def _table(rows: Sequence[Mapping[str, Any]], width: int) -> list[str]:
    keys = dict.fromkeys(key for row in rows for key in row)
    columns, sides = [], []
    for head in [head for head in keys if any(row.get(head) not in (None, "") for row in rows)]:
        values = [row.get(head) for row in rows]
        decimals = _decimals([value for value in values if isinstance(value, float)])
        cells = [_number(value, decimals) if isinstance(value, float) else _cell(value) for value in values]
        columns.append([head, *cells])
        sides.append(all(isinstance(v, int | float | None) and not isinstance(v, bool) for v in values))
    return columns_text(columns, sides, width)


def _cell(value: Any) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return _number(value, _decimals([value]))
    if isinstance(value, list | tuple):
        items = [_cell(item) for item in value]
        return ("; " if any(", " in item for item in items) else ", ").join(items)
    return str(value)


def _decimals(values: Sequence[float]) -> int:
    largest = max(map(abs, values), default=0.0)
    wanted = DIGITS - 1 - math.floor(math.log10(largest)) if largest else MIN_DECIMALS
    return min(max(wanted, MIN_DECIMALS), MAX_DECIMALS)


def _number(value: float, decimals: int) -> str:
    if abs(value) >= MAX_VALUE or 0 < abs(value) < 0.5 * 10**-decimals:
        return f"{value:.2g}"
    return f"{value:.{decimals}f}"
