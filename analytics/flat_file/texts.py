"""Values of other formats as the text they would be in a CSV."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def empty_as_null(texts: Any) -> Any:
    """Replace empty texts by null: both say that a value is missing."""
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def text_of(value: object) -> str | ValueError | None:
    """Give the text of a value from JSON, None for null, or what is wrong with it."""
    if value is None:
        return None
    if isinstance(value, str):
        return ValueError("text has no lone surrogate") if _has_surrogate(value) else value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, int | float | Decimal):
        return _text_of_number(value)
    return ValueError(f"a field holds text, a number, true, false or null, not {kind_of(value)}")


def _text_of_number(value: int | float | Decimal) -> str | ValueError:
    try:
        return str(value)
    except ValueError:  # more digits than Python writes
        return ValueError("the number has too many digits")


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def kind_of(value: object) -> str:
    """Name the kind of a value as JSON does."""
    if isinstance(value, Mapping):
        return "an object"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    kinds = {list: "a list", tuple: "a list", str: "a text", int: "a number", float: "a number"}
    return kinds.get(type(value), f"a value of type {type(value).__name__}")


def column_as_text(column: Any) -> Any:
    """Turn an Arrow column of a type that `can_be_text` into text, null where null or empty."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        column = column.view(pa.timestamp(kind.unit))  # the same instants in UTC
    return empty_as_null(pc.cast(column, pa.string()))


def can_be_text(kind: Any) -> bool:
    """Tell whether the values of an Arrow type have one text each."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return any(holds(kind) for holds in _READ)


def is_text(kind: Any) -> bool:
    """Tell whether an Arrow type is text itself."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def n_bytes_as_text(column: Any) -> int:
    """Count the bytes of an Arrow column's values, those of a dictionary as often as they are used."""
    if not (pa.types.is_dictionary(column.type) and is_text(column.type.value_type)):
        return int(column.nbytes)
    lengths = pc.binary_length(column.dictionary)
    return int(pc.sum(pc.take(lengths, column.indices)).as_py() or 0)


_READ = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_null,
)
