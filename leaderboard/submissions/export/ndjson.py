"""NDJSON: an object a line, and where it is asked for a last one that says whether all came."""

import hashlib
import json
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from leaderboard.submissions.export.columns import CODED, TEXT
from leaderboard.submissions.export.outcomes import OutcomeRows
from leaderboard.submissions.export.texts import joined, replaced

MEDIA_TYPE = "application/x-ndjson"


def write(outcomes: OutcomeRows) -> Iterator[bytes]:
    return (joined(_lines(batch)) for batch in outcomes.batches())


def with_end_mark(content: Iterable[bytes], n_rows: int) -> Iterator[bytes]:
    """Add a line that says how many rows there were, and what their bytes hash to."""
    digest = hashlib.sha256()
    for block in content:
        digest.update(block)
        yield block
    yield json.dumps({"end": True, "n": n_rows, "sha256": digest.hexdigest()}).encode() + b"\n"


def _lines(batch: pa.RecordBatch) -> Iterator[pa.Array | str]:
    for i, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
        yield f"{', ' if i else '{'}{json.dumps(name, ensure_ascii=False)}: "
        yield pc.fill_null(_value(column), "null")
    yield "}\n"


def _value(column: pa.Array) -> pa.Array:
    if column.type == CODED:
        texts = column.dictionary.to_pylist()
        return replaced(column, (json.dumps(text, ensure_ascii=False) for text in texts))
    return _quote(column) if column.type == TEXT else column.cast(pa.string())


def _quote(texts: pa.Array) -> pa.Array:
    """Texts as JSON; none holds a control character."""
    escaped = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
    return pc.binary_join_element_wise('"', escaped, '"', "")
