"""Plain values as text for a terminal: lines of key and value, and tables where rows are alike."""

from collections.abc import Mapping, Sequence
from typing import Any

INDENT = "  "


def as_text(result: Mapping[str, Any]) -> str:
    """Set an object of plain values as text; scalars first come first, in the object's order."""
    return "\n".join(_lines(result))


def _lines(result: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    width = max((len(str(key)) for key, value in result.items() if _is_short(value)), default=0)
    for key, value in result.items():
        if _is_short(value):
            lines.append(f"{key!s:<{width}}  {_cell(value)}".rstrip())
        else:
            lines += [f"{key}:", *(INDENT + line for line in _block(value))]
    return lines


def _block(value: Any) -> list[str]:
    if isinstance(value, Mapping) and _are_rows(list(value.values())):
        return _table([{"": key, **row} for key, row in value.items()])
    if isinstance(value, Mapping):
        return _lines(value)
    if _are_rows(value):
        return _table(value)
    return [line for item in value for line in _item(item)]


def _item(item: Any) -> list[str]:
    if _is_short(item):
        return [_cell(item)]
    first, *others = _block(item)
    return [f"- {first}", *(INDENT + line for line in others)]


def _is_short(value: Any) -> bool:
    """Whether it fits in a cell: a scalar, or a list of a few of them."""
    if isinstance(value, Mapping):
        return not value
    if isinstance(value, list | tuple):
        return len(value) <= 3 and all(_is_short(item) and not isinstance(item, list) for item in value)
    return True


def _are_rows(values: Sequence[Any]) -> bool:
    """Whether these are objects of scalars, so that they stand better as a table."""
    rows = len(values) > 0 and all(isinstance(value, Mapping) and value for value in values)
    return rows and all(_is_short(cell) for value in values for cell in value.values())


def _table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    heads = list(dict.fromkeys(key for row in rows for key in row))
    cells = [heads, *([_cell(row.get(head)) for head in heads] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(heads))]
    return [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]


def _cell(value: Any) -> str:
    if value is None or value in ({}, [], ()):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(_cell(item) for item in value)
    return str(value)
