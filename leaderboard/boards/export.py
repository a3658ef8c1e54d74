"""A board as a file: an agent a row, with the fields of every target side by side."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from leaderboard.boards.models import Board
from leaderboard.boards.presentation import tells_costs, without_costs
from leaderboard.boards.queries import standings_of
from leaderboard.studies.answers import AtTarget, Line, Standings, descriptions, table
from leaderboard.submissions.export.columns import KNOWN

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

    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    fields = [
        pa.field(column.name, kinds[column.kind], metadata={"description": column.description})
        for column in columns()
    ]
    sink = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(list(rows), schema=pa.schema(fields)), sink)
    return sink.getvalue()


FORMATS = {
    "csv": BoardFormat("text/csv; charset=utf-8", as_csv),
    "ndjson": BoardFormat("application/x-ndjson", as_ndjson),
    "parquet": BoardFormat("application/vnd.apache.parquet", as_parquet),
}


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


PAGE = """\
# Data dictionary

What the columns of the downloads hold. They are described where they are made; this page is written from
there, and `/api/v1/benchmarks/{{slug}}/data-dictionary` tells the same of one benchmark, with the columns
that it has.

## Outcomes

One row for each trial of an agent on a task, with the columns of the [flat file](flat-file.md). A column
stands in an export where some outcome may say something in it. Behind these stand, as text, the columns that
came with deliveries and that are not named here; where there would be more than 64 columns, all of them stand
in one, `metadata`, as a JSON object.

{outcomes}

## Boards

One row for each agent, in rank order. Behind the columns of the agent come those of every target: all tasks
(`full`), the tasks of the subset (`subset`), and tasks like these (`domain`).

{boards}
"""


def page() -> str:
    """The data dictionary: docs/data-dictionary.md is what this prints."""

    def rows(columns: Iterable[Any]) -> str:
        plain = [column.as_plain() for column in columns]
        lines = [f"| `{one['name']}` | {one['type']} | {one['description']} |" for one in plain]
        return "\n".join(["| column | type | what it holds |", "|---|---|---|", *lines])

    return PAGE.format(outcomes=rows(KNOWN), boards=rows(columns()))
