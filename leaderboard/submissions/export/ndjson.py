"""NDJSON: an object a line, and a last one that says how many there were and what their bytes hash to."""

import hashlib
import json
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from leaderboard.submissions.export.columns import CODED, TEXT
from leaderboard.submissions.export.outcomes import Outcomes
from leaderboard.submissions.export.texts import joined, replaced

MEDIA_TYPE = "application/x-ndjson"


def written(outcomes: Outcomes) -> Iterator[bytes]:
    digest, n = hashlib.sha256(), 0
    for batch in outcomes.batches():
        lines = joined(_lines(batch))
        digest.update(lines)
        n += batch.num_rows
        yield lines
    yield json.dumps({"end": True, "n": n, "sha256": digest.hexdigest()}).encode() + b"\n"


def _lines(batch: pa.RecordBatch) -> Iterator[pa.Array | str]:
    for i, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
        yield f"{', ' if i else '{'}{json.dumps(name, ensure_ascii=False)}: "
        yield pc.fill_null(_value(column), "null")
    yield "}\n"


def _value(column: pa.Array) -> pa.Array:
    if column.type == CODED:
        texts = column.dictionary.to_pylist()
        return replaced(column, (json.dumps(text, ensure_ascii=False) for text in texts))
    return _quoted(column) if column.type == TEXT else column.cast(pa.string())


def _quoted(texts: pa.Array) -> pa.Array:
    """Texts as JSON; none holds a control character."""
    escaped = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
    return pc.binary_join_element_wise('"', escaped, '"', "")
