"""Parquet; the schema carries each column's description, and licence, citation and data version."""

from collections.abc import Iterator

import pyarrow as pa

from leaderboard.submissions.export.outcomes import Outcomes

MEDIA_TYPE = "application/vnd.apache.parquet"


def written(outcomes: Outcomes) -> Iterator[bytes]:
    """Give the bytes of each group of rows as soon as it is there, and the footer in the end."""
    from pyarrow import parquet

    sink = _Sink()
    with parquet.ParquetWriter(
        pa.PythonFile(sink, mode="w"), outcomes.schema, compression="zstd", write_page_checksum=True
    ) as writer:
        for batch in outcomes.batches():
            writer.write_batch(batch)
            yield sink.taken()
    yield sink.taken()


class _Sink:
    """The file that pyarrow writes to: what was written waits to be taken."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._n = 0

    def write(self, content: bytes) -> int:
        self._parts.append(bytes(content))
        self._n += len(content)
        return len(content)

    def taken(self) -> bytes:
        found, self._parts = b"".join(self._parts), []
        return found

    def tell(self) -> int:
        return self._n

    def flush(self) -> None: ...

    def close(self) -> None: ...
