"""A board as a file: an agent a row, with the fields of every target side by side."""

import csv
import inspect
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple, get_args, get_type_hints

from leaderboard.boards.models import Board
from leaderboard.boards.presentation import tells_costs, without_costs
from leaderboard.boards.reading import standings_of
from leaderboard.studies.answers import AtTarget, Line, Standings, table

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
    "agent": "Name of the agent.",
    "scaffold": "The harness around the model.",
    "model": "The model that the scaffold calls.",
    "version": "Version of the agent; empty: not stated.",
    "organisation": "Who made the agent; empty: not stated.",
    "trust": "How far its outcomes can be checked: self_reported; logs, where every submission links logs or "
    "trajectories; verified, where an operator loaded or confirmed every one.",
    "n_trials": "Counted trials with an outcome, which a missing or invalid one has where it counts as a "
    "failure.",
    "n_invalid": "Counted trials that were delivered as invalid.",
    "n_submissions": "Submissions that count.",
    "cost_basis": "How the cost was found: per task, linear, in part, not stated; or hidden by the policy.",
    "marks": "Words for its state, separated by blanks; chosen tasks: it was asked for tasks chosen for it; "
    "recalled: it was asked for the rest.",
    "flags": "What an operator should look at, separated by semicolons.",
    "rank_lower": "Best rank it may hold; 95%, all agents at once.",
    "rank_upper": "Worst rank it may hold; 95%, all agents at once.",
    "lower": "Lower end of the 95% interval of the score, clipped to [0, 1].",
    "upper": "Its upper end.",
    "n_valid": "Tasks with an outcome, as in n_tasks.",
    "n_missing": "Places (task × trial) without one.",
}
BEHIND = {
    "bound_lower": (float, "What the missing outcomes could make of the score, at least; if unranked."),
    "bound_upper": (float, "The same, at most."),
    "tied_with": (str, "Ranges of rows that it is tied with, counted from 0, both ends included: 0-2 5-5."),
}
FIELDS = re.compile(r"^(\w+(?:, \w+)*) : .*$\n?((?:^    .*$\n?)*)", re.MULTILINE)
WORDS_OF_NONE = "As the board tells it."


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
    line, at = _descriptions(Line), _descriptions(AtTarget)
    plain = [
        BoardExportColumn(name, _kind(Line, name), WORDED.get(name, line[name])) for name in table.LINE_FIELDS
    ]
    plain += [BoardExportColumn(name, kind, text) for name, (kind, text) in OF_ICC.items()]
    plain += [BoardExportColumn(name, str, WORDED[name]) for name in ("marks", "flags")]
    of_target = [(name, _kind(AtTarget, name), WORDED.get(name, at[name])) for name in table.TARGET_FIELDS]
    of_target += [(name, kind, text) for name, (kind, text) in BEHIND.items()]
    of_each_target = [
        BoardExportColumn(f"{target}_{name}", kind, f"{ON[target]}: {text[0].lower()}{text[1:]}")
        for target in ON
        for name, kind, text in of_target
    ]
    return (*plain, *of_each_target)


def _kind(owner: type, name: str) -> type:
    """The type of a field without its None; a choice of words is text."""
    hint = get_type_hints(owner)[name]
    kinds = [hint, *get_args(hint)]
    return next((kind for kind in kinds if kind in NAMES), str)


def _descriptions(owner: type) -> dict[str, str]:
    """By field, what the docstring of its class says of it."""
    described: dict[str, str] = {}
    for names, words in FIELDS.findall(inspect.cleandoc(owner.__doc__ or "")):
        text = " ".join(words.split())
        described |= dict.fromkeys(names.split(", "), text or WORDS_OF_NONE)
    return described
