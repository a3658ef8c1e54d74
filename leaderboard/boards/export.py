"""A board as a file: an agent a row, with the fields of every target side by side."""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from leaderboard.boards.models import Board
from leaderboard.boards.queries import standings_of, tells_costs, without_costs
from leaderboard.studies.answers import AtTarget, Line, Standings, descriptions, table
from leaderboard.submissions.export.columns import NUMBER, TEXT, TRUTH, WHOLE, ExportColumn

Row = Mapping[str, Any]
KINDS = {str: TEXT, int: WHOLE, float: NUMBER, bool: TRUTH}
ON = {"full": "On all tasks", "subset": "On the tasks of the subset", "domain": "On tasks like these"}
OF_ICC = {
    "icc_lower": (float, "Lower end of the 95% interval of the intraclass correlation."),
    "icc_upper": (float, "Its upper end."),
    "icc_n_tasks": (int, "Tasks that the intraclass correlation rests on."),
    "icc": (float, "Intraclass correlation of repeated trials."),
}
WORDED = {
    "marks": "Words for its state, separated by blanks; chosen tasks: it was asked for tasks chosen for it; "
    "recalled: it was asked for the rest.",
    "flags": "What an operator should look at, separated by semicolons.",
}
BEHIND = {
    "bound_lower": (float, "What the missing outcomes could make of the score, at least; if unranked."),
    "bound_upper": (float, "The same, at most."),
    "tied_with": (str, "Ranges of rows that it is tied with, counted from 0, both ends included: 0-2 5-5."),
}


def rows_of(board: Board, *, costs: bool = True) -> list[dict[str, Any]]:
    standings = standings_of(board)
    return flat_rows(standings if costs or tells_costs(board) else without_costs(standings))


def flat_rows(standings: Standings) -> list[dict[str, Any]]:
    return [table.flat(line) for line in standings.agents]


def as_csv(rows: Iterable[Row]) -> bytes:
    """No text of it is taken for a formula."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, [column.name for column in columns()], lineterminator="\n")
    writer.writeheader()
    writer.writerows(table.guarded(row) for row in rows)
    return text.getvalue().encode()


def as_ndjson(rows: Iterable[Row]) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def as_parquet(rows: Iterable[Row]) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    sink, schema = io.BytesIO(), pa.schema([column.field for column in columns()])
    parquet.write_table(pa.Table.from_pylist(list(rows), schema=schema), sink)
    return sink.getvalue()


FORMATS = {"csv": as_csv, "ndjson": as_ndjson, "parquet": as_parquet}


# ------------------------------------------------------------------------------------------ the dictionary


@cache
def columns() -> tuple[ExportColumn, ...]:
    """What a row tells, in its order; types and words are those of the fields that it is made of."""
    of_line, of_target = descriptions(Line), descriptions(AtTarget)
    plain = {name: (kind, of_line[name]) for name, kind in table.LINE_FIELDS.items()}
    plain |= OF_ICC | {name: (str, text) for name, text in WORDED.items()}
    at = {name: (kind, of_target[name]) for name, kind in table.TARGET_FIELDS.items()} | BEHIND
    every = plain | {
        f"{target}_{name}": (kind, f"{where}: {text[0].lower()}{text[1:]}")
        for target, where in ON.items()
        for name, (kind, text) in at.items()
    }
    return tuple(ExportColumn(name, KINDS[kind], text) for name, (kind, text) in every.items())
