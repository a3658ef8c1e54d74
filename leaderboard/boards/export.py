"""A board as a file: an agent a row, with the fields of every target side by side."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from leaderboard.boards.models import Board
from leaderboard.boards.presentation import tells_costs, without_costs
from leaderboard.boards.reading import standings_of
from leaderboard.studies.answers import AtTarget, Line, Standings, descriptions, table

Row = Mapping[str, Any]
NAMES = {str: "text", int: "whole number", float: "number", bool: "true or false"}
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


class BoardExportColumn(NamedTuple):
    name: str
    kind: type
    description: str

    def as_plain(self) -> dict[str, Any]:
        return {"name": self.name, "type": NAMES[self.kind], "description": self.description}


class BoardFormat(NamedTuple):
    media_type: str
    written: Callable[[Iterable[Row]], bytes]


def rows_of(board: Board, *, costs: bool = True) -> list[dict[str, Any]]:
    """A row for each agent, in the order of the board; without costs where the policy hides them."""
    standings = standings_of(board)
    shown = standings if costs or tells_costs(board) else without_costs(standings)
    return flat_rows(shown)


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

    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    fields = [
        pa.field(column.name, kinds[column.kind], metadata={"description": column.description})
        for column in columns()
    ]
    sink = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(list(rows), schema=pa.schema(fields)), sink)
    return sink.getvalue()


FORMATS: Mapping[str, BoardFormat] = MappingProxyType(
    {
        "csv": BoardFormat("text/csv; charset=utf-8", as_csv),
        "ndjson": BoardFormat("application/x-ndjson", as_ndjson),
        "parquet": BoardFormat("application/vnd.apache.parquet", as_parquet),
    }
)


# ------------------------------------------------------------------------------------------ the dictionary


@cache
def columns() -> tuple[BoardExportColumn, ...]:
    """What a row tells, in its order; types and words are those of the fields that it is made of."""
    plain = _columns(Line, table.LINE_FIELDS)
    plain += [BoardExportColumn(name, kind, text) for name, (kind, text) in OF_ICC.items()]
    plain += [BoardExportColumn(name, str, text) for name, text in WORDED.items()]
    of_target = _columns(AtTarget, table.TARGET_FIELDS)
    of_target += [BoardExportColumn(name, kind, text) for name, (kind, text) in BEHIND.items()]
    of_each_target = [
        BoardExportColumn(f"{target}_{name}", kind, f"{ON[target]}: {text[0].lower()}{text[1:]}")
        for target in ON
        for name, kind, text in of_target
    ]
    return (*plain, *of_each_target)


def _columns(owner: type, kinds: Mapping[str, type]) -> list[BoardExportColumn]:
    texts = descriptions(owner)
    return [BoardExportColumn(name, kind, texts[name]) for name, kind in kinds.items()]
