"""Outcomes as files: CSV, NDJSON and Parquet as streams, two more formats as folders."""

from leaderboard.submissions.export import every_eval_ever, hugging_face
from leaderboard.submissions.export.outcomes import OutcomeRows
from leaderboard.submissions.export.snapshot import AT_ONCE, ExportTransaction, enter
from leaderboard.submissions.export.streams import FORMATS, with_end_mark

__all__ = [
    "AT_ONCE",
    "FORMATS",
    "ExportTransaction",
    "OutcomeRows",
    "enter",
    "every_eval_ever",
    "hugging_face",
    "with_end_mark",
]
