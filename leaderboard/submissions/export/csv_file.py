"""CSV, by the rules of the flat file; no field is taken for a formula by a spreadsheet."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from leaderboard.submissions.export.columns import CODED, TEXT
from leaderboard.submissions.export.outcomes import OutcomeRows
from leaderboard.submissions.export.texts import joined, replaced
from leaderboard.submissions.parsing.flat import guarded

MEDIA_TYPE = "text/csv; charset=utf-8"


def write(outcomes: OutcomeRows) -> Iterator[bytes]:
    names = _quote(pa.array(outcomes.schema.names, pa.string()))
    yield ",".join(names.to_pylist()).encode() + b"\n"
    for batch in outcomes.batches():
        yield joined(_lines([_field(column) for column in batch.columns]))


def _lines(columns: list[pa.Array]) -> Iterator[pa.Array | str]:
    for i, column in enumerate(columns):
        yield from (("," if i else ""), column)
    yield "\n"


def _field(column: pa.Array) -> pa.Array:
    if column.type == CODED:
        return replaced(column, _quote(column.dictionary))
    return _quote(column) if column.type == TEXT else column.cast(pa.string())


def _quote(texts: pa.Array) -> pa.Array:
    """Put texts in quotes that hold a comma or a quote; none holds a line end."""
    texts = guarded(texts)
    special = pc.match_substring_regex(texts, '[,"]')
    if not pc.any(special).as_py():
        return texts
    doubled = pc.replace_substring(texts, '"', '""')
    return pc.if_else(special, pc.binary_join_element_wise('"', doubled, '"', ""), texts)
