"""Outcomes as files: CSV, NDJSON and Parquet as streams, two more formats as folders."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from leaderboard.submissions.export import csv_file, every_eval_ever, hugging_face, ndjson, parquet
from leaderboard.submissions.export.ndjson import with_end_mark
from leaderboard.submissions.export.outcomes import OutcomeRows
from leaderboard.submissions.export.snapshot import AT_ONCE, ExportTransaction, enter

__all__ = [
    "AT_ONCE",
    "FORMATS",
    "ExportTransaction",
    "OutcomeFormat",
    "OutcomeRows",
    "enter",
    "every_eval_ever",
    "hugging_face",
    "with_end_mark",
]


class OutcomeFormat(NamedTuple):
    """What a file of this format is called over HTTP, and how its bytes are made."""

    media_type: str
    written: Callable[[OutcomeRows], Iterator[bytes]]


FORMATS: Mapping[str, OutcomeFormat] = MappingProxyType(
    {
        "csv": OutcomeFormat(csv_file.MEDIA_TYPE, csv_file.write),
        "ndjson": OutcomeFormat(ndjson.MEDIA_TYPE, ndjson.write),
        "parquet": OutcomeFormat(parquet.MEDIA_TYPE, parquet.write),
    }
)
