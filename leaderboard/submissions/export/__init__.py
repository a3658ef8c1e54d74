"""Outcomes as files: CSV, NDJSON and Parquet as streams, two more formats as folders."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from leaderboard.submissions.export import csv_file, every_eval_ever, hugging_face, ndjson, parquet
from leaderboard.submissions.export.ndjson import with_end_mark
from leaderboard.submissions.export.outcomes import Outcomes
from leaderboard.submissions.export.places import AT_ONCE, enter
from leaderboard.submissions.export.snapshot import Snapshot

__all__ = [
    "AT_ONCE",
    "FORMATS",
    "Format",
    "Outcomes",
    "Snapshot",
    "enter",
    "every_eval_ever",
    "hugging_face",
    "with_end_mark",
]


class Format(NamedTuple):
    """What a file of this format is called over HTTP, and how its bytes are made."""

    media_type: str
    written: Callable[[Outcomes], Iterator[bytes]]


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "csv": Format(csv_file.MEDIA_TYPE, csv_file.written),
        "ndjson": Format(ndjson.MEDIA_TYPE, ndjson.written),
        "parquet": Format(parquet.MEDIA_TYPE, parquet.written),
    }
)
