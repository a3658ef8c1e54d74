"""Parquet; the schema carries each column's description, and licence, citation and data version."""

from collections.abc import Iterator

import pyarrow as pa

from leaderboard.submissions.export.outcomes import OutcomeRows

MEDIA_TYPE = "application/vnd.apache.parquet"


def write(outcomes: OutcomeRows) -> Iterator[bytes]:
    """Give the bytes of each group of rows as soon as it is there, and the footer in the end."""
    from pyarrow import parquet

    sink = _BufferSink()
    with parquet.ParquetWriter(
        pa.PythonFile(sink, mode="w"), outcomes.schema, compression="zstd", write_page_checksum=True
    ) as writer:
        for batch in outcomes.batches():
            writer.write_batch(batch)
            yield sink.taken()
    yield sink.taken()


class _BufferSink:
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
        taken, self._parts = b"".join(self._parts), []
        return taken

    def tell(self) -> int:
        return self._n

    def flush(self) -> None: ...

    def close(self) -> None: ...
