"""The project's own format: CSV, NDJSON or Parquet; docs/flat-file.md.

- It states agents, dates and runs in its columns, so that nothing of them is taken from elsewhere.
- A file that bears one of its endings is taken for flat, so that what is wrong with it is named as of one.
"""

from dataclasses import replace
from datetime import datetime

from leaderboard.errors import Faulty
from leaderboard.submissions.parsing.flat import COLUMNS, Fault, TableOptions, faulty_file, read_outcomes
from leaderboard.submissions.parsing.importers.base import Imported, Importer, ImportOptions, Source

ENDINGS = (".csv", ".tsv", ".xlsx", ".ndjson", ".jsonl", ".parquet", ".csv.gz", ".ndjson.gz", ".jsonl.gz")
PARQUET = b"PAR1"
WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".ods")
OF_WORKBOOK = (b"[Content_Types].xml", b"opendocument.spreadsheet")  # stands in the archive as it is
SEPARATORS = (",", ";", "\t", "|")


def import_flat(
    source: Source, *, options: ImportOptions, as_of: datetime, only: str | None, table: TableOptions
) -> Imported:
    """Read a flat file; each fault names it where several are read."""
    name = source.called
    set_fields = [field for field, value in vars(options).items() if value is not None]
    if set_fields:
        faults = [Fault(None, field, None, _to_state(field, options.place(field))) for field in set_fields]
        raise faulty_file(name, faults)
    try:
        read, note = read_outcomes(
            source.root,
            as_of=as_of,
            progress=source.progress,
            only=only,
            limits=source.limits,
            called=name,
            table=table,
        )
    except Faulty as refusal:
        if not source.in_full:
            raise
        faults = [replace(fault, rule=f"{fault.rule} (in {name})") for fault in refusal.faults]
        raise Faulty(str(refusal), faults=tuple(faults), n_faults=refusal.n_faults) from None
    return Imported(read, "flat", [note] if note else [], name)


def _to_state(field: str, place: str) -> str:
    """Say where a flat file states what an option says."""
    if field in ("metric", "filter"):
        return f"a flat file has one outcome a row; leave {place} out"
    return f"a flat file states it in each row: add or change the column {field}, and leave {place} out"


def is_workbook(name: str, data: bytes) -> bool:
    """Whether an archive is a workbook, which the reader of flat files refuses in its words."""
    return name.lower().endswith(WORKBOOKS) or any(mark in data for mark in OF_WORKBOOK)


def ends_like_one(name: str) -> bool:
    """Whether a file says by its name that it is meant to be flat."""
    return name.lower().endswith(ENDINGS)


def has_columns(data: bytes) -> bool:
    """Whether a file is Parquet, or has a column of the flat file in its first line."""
    header = data.split(b"\n", 1)[0].decode("utf-8-sig", "replace").strip()
    cells = (header.split(mark) for mark in SEPARATORS)
    return data[:4] == PARQUET or any(COLUMNS & {cell.strip('" ') for cell in row} for row in cells)


IMPORTER = Importer(
    name="flat",
    looked_for="CSV, NDJSON or Parquet with the columns benchmark, agent, …, task, trial, outcome",
    files=tuple(f"*{ending}" for ending in ENDINGS),
    is_one=lambda name, keys: bool(keys & {"task", "task_id"}) and bool(keys & {"outcome", "score"}),
    runs=None,
    fields={},
)
