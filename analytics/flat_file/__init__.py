"""The flat file: its columns, types, rules and faults; the only reader and checker of it.

A file is CSV or NDJSON, plain or compressed by gzip, or Parquet; a body of the JSON interface is a list of
records by the same rules, and a data frame a table of columns. All of them come in as columns of text, batch
by batch; the distinct texts of a column are checked once (``values``), only codes and numbers are kept
(``table``), what only all rows together show is checked at the end, and then either every fault is named
(``faults``) or all is handed out in order of name (``contents``).
"""

from analytics.flat_file.columns import ALIASES, KNOWN, MAX_COLUMNS, REQUIRED
from analytics.flat_file.contents import FlatFile, RunSetting
from analytics.flat_file.csv_rows import guarded
from analytics.flat_file.faults import (
    DELIVERED,
    FILE,
    MAX_FAULTS,
    SUBMISSION,
    Fault,
    FlatFileError,
    Limits,
    excerpt,
)
from analytics.flat_file.json_rows import unique, whole_number
from analytics.flat_file.reading import from_arrow, from_records, read
from analytics.flat_file.streams import GzipMembers, head, wide_encoding
from analytics.flat_file.values import OF_AGENT, WEIGHTS, is_too_small, name_rule, text_of, weights_in

__all__ = [
    "ALIASES",
    "DELIVERED",
    "FILE",
    "KNOWN",
    "MAX_COLUMNS",
    "MAX_FAULTS",
    "OF_AGENT",
    "REQUIRED",
    "SUBMISSION",
    "WEIGHTS",
    "Fault",
    "FlatFile",
    "FlatFileError",
    "GzipMembers",
    "Limits",
    "RunSetting",
    "excerpt",
    "from_arrow",
    "from_records",
    "guarded",
    "head",
    "is_too_small",
    "name_rule",
    "read",
    "text_of",
    "unique",
    "weights_in",
    "whole_number",
    "wide_encoding",
]
