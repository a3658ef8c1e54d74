"""Plain values as text for a terminal: lines of key and value, and tables where rows are alike.

Numbers of one column have the same number of decimals, 3 to 7 so that the largest has three digits, and stand
under each other by the point; what would round to 0 is set with an exponent. Empty lists and columns are left
out, None is a dash. Rounding happens here and nowhere else.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

INDENT = "  "
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


def listed(names: Sequence[str], most: int = 3) -> str:
    """Return the first of the names, and how many there are beside them."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def enumerated(parts: Sequence[str]) -> str:
    """Return a; a and b; a, b and c."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def counted(n: int, noun: str) -> str:
    """Return 1 agent, 2 agents, 21,600 tasks."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def as_text(result: Mapping[str, Any]) -> str:
    """Set an object of plain values as text; under the key "" a block stands without a title."""
    return "\n".join(_lines(result))


def _lines(result: Mapping[str, Any]) -> list[str]:
    shown = {str(key): value for key, value in result.items() if _is_scalar(value) or value}
    width = max((len(key) for key, value in shown.items() if _is_short(value)), default=0)
    lines: list[str] = []
    for key, value in shown.items():
        if _is_short(value):
            lines.append(f"{key:<{width}}  {_cell(value)}".rstrip())
        else:
            block = _block(value)
            lines += [f"{key}:", *(INDENT + line for line in block)] if key else block
    return lines


def _block(value: Any) -> list[str]:
    if isinstance(value, Mapping) and _are_rows(list(value.values())):
        return _table([{"": key, **row} for key, row in value.items()])
    if isinstance(value, Mapping):
        return _lines(value)
    if _are_rows(value):
        return _table(value)
    lines = []
    for item in value:
        if _is_short(item):
            lines.append(_cell(item))
        else:
            first, *others = _block(item) or [NOTHING]
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


def _table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    keys, columns = dict.fromkeys(key for row in rows for key in row), []
    for head in [head for head in keys if any(row.get(head) not in (None, "") for row in rows)]:
        values = [row.get(head) for row in rows]
        decimals = _decimals([value for value in values if isinstance(value, float)])
        cells = [_number(value, decimals) if isinstance(value, float) else _cell(value) for value in values]
        width = max(map(len, [head, *cells]))
        are_numbers = all(isinstance(v, int | float | None) and not isinstance(v, bool) for v in values)
        sign = ">" if are_numbers else "<"
        columns.append([f"{cell:{sign}{width}}" for cell in [head, *cells]])
    return [INDENT.join(line).rstrip() for line in zip(*columns, strict=True)]


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
