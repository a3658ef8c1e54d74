"""The outcomes that count, batch by batch in constant memory.

Accepted submissions count, on tasks that are not retired; of a trial that was delivered again after a failure
of the harness the last outcome does. What a merged agent delivered is the other one's. The rows come by COPY
with ids, and get their names here: the server sends a name once, not a million times.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from leaderboard.submissions.export.columns import (
    FACETS,
    KNOWN,
    LINKS,
    MEASURED,
    METADATA,
    OF_AGENT,
    TOGETHER,
    ExportColumn,
    of_metadata,
    schema_of,
)
from leaderboard.submissions.export.snapshot import ExportTransaction
from leaderboard.submissions.parsing.flat import ALIASES, MAX_COLUMNS

Progress = Callable[[int, int], None]

BATCH_ROWS = 1 << 16
# No column of a delivery begins with a blank.
OWNERS = (" submission", " task", " setting")
SENT = {
    **dict.fromkeys(OWNERS, pa.int32()),
    "trial": pa.int64(),
    "outcome": pa.float64(),  # 0.1 as PostgreSQL prints its four bytes, and as a file says it
    "valid": pa.bool_(),
}
STORED = ("o.submission_id", "o.task_id", "o.setting_id", "o.trial", "o.value", "o.valid")
FROM = "FROM submissions_outcome o {details} WHERE o.submission_id = ANY(%s)"
DETAILS = """LEFT JOIN submissions_outcomedetail d ON d.submission_id = o.submission_id
    AND d.task_id = o.task_id AND d.setting_id = o.setting_id AND d.trial = o.trial"""
# Earlier and later submissions of one agent: a key is free again after an invalid outcome only.
STANDING = """
    (o.valid OR NOT EXISTS (
        SELECT FROM unnest(%s::integer[], %s::integer[]) AS again (earlier, later)
        JOIN submissions_outcome l ON l.submission_id = again.later AND l.task_id = o.task_id
            AND l.setting_id = o.setting_id AND l.trial = o.trial
        WHERE again.earlier = o.submission_id))
"""
DETAIL_COUNTS = "SELECT {} FROM submissions_outcomedetail WHERE submission_id = ANY(%s)"
KEYS = """
    SELECT DISTINCT jsonb_object_keys(metadata) FROM submissions_outcomedetail
    WHERE submission_id = ANY(%s) AND metadata IS NOT NULL ORDER BY 1
"""


class OutcomeRows:
    """The rows of a snapshot with the columns of a flat file; `costs`: whether those of trials are in it."""

    def __init__(
        self,
        snapshot: ExportTransaction,
        *,
        costs: bool = True,
        progress: Progress = lambda done, total: None,
    ) -> None:
        self.snapshot, self.progress = snapshot, progress
        self.again = snapshot.delivered_again()
        self.is_whole = not self.again and all(task.is_active for task in snapshot.tasks)
        owners: tuple[Sequence[Any], ...] = (snapshot.submissions, snapshot.tasks, snapshot.settings)
        both = zip(OWNERS, owners, strict=True)
        self.ids = {name: np.array([one[0] for one in those], np.int32) for name, those in both}
        self.named = _named(snapshot)
        columns = [column for column in MEASURED if costs or column.name != "cost_usd"]
        sums = ", ".join(f"bool_or({column.name} IS NOT NULL)" for column in columns)
        (row,) = self.snapshot.run(DETAIL_COUNTS.format(sums), self.snapshot.ids)
        self.measured = {
            column.name: column for column, is_there in zip(columns, row, strict=True) if is_there
        }
        self.keys = [key for (key,) in snapshot.run(KEYS, snapshot.ids)]
        self.columns = self._columns()
        self.n_rows = self._n_rows()

    @property
    def schema(self) -> pa.Schema:
        """With what travels with the rows, and what each column holds."""
        about = {name: str(value) for name, value in self.snapshot.about.as_plain().items()}
        return schema_of(self.columns, about | {"n": str(self.n_rows)})

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Give the rows in the order of their keys as they are stored."""
        sent = SENT | {name: column.kind for name, column in self.measured.items()}
        names = [*STORED, *(f"d.{name}" for name in self.measured)]
        if self.is_together:
            names, sent = [*names, "d.metadata"], sent | {METADATA: pa.string()}
        else:
            names, sent = (
                [*names, *("d.metadata->>%s" for _ in self.keys)],
                sent | dict.fromkeys(self.keys, pa.string()),
            )
        where, parameters = self._where()
        query = f"SELECT {', '.join(names)} {where}"
        keys = [] if self.is_together else self.keys
        rows = self.snapshot.copy(query, [*keys, *parameters])
        schema, n = self.schema, 0
        while block := b"".join(islice(rows, BATCH_ROWS)):
            batch = self._batch(_parse(block, sent), schema)
            n += batch.num_rows
            self.progress(n, self.n_rows)
            yield batch

    # -------------------------------------------------------------------------------- what there is

    def _columns(self) -> tuple[ExportColumn, ...]:
        meant = {ALIASES[key] for key in self.keys if key in ALIASES}  # else a reader takes the alias for it
        there = {*self.named, *self.measured, *meant}
        columns = [column for column in KNOWN if column.always or column.name in there]
        metadata_keys = [key for key in self.keys if key not in {column.name for column in columns}]
        self.is_together = len(columns) + len(metadata_keys) > MAX_COLUMNS
        return (*columns, *([TOGETHER] if self.is_together else map(of_metadata, metadata_keys)))

    def _n_rows(self) -> int:
        if self.is_whole:
            return sum(one.n_outcomes for one in self.snapshot.submissions)
        where, parameters = self._where()
        return int(self.snapshot.run(f"SELECT count(*) {where}", *parameters)[0][0])

    def _where(self) -> tuple[str, list[object]]:
        details = DETAILS if self.measured or self.keys else ""
        where, parameters = FROM.format(details=details), [self.snapshot.ids]
        if self.is_whole:
            return where, list[object](parameters)
        earlier, later = ([pair[side] for pair in self.again] for side in (0, 1))
        where = f"{where} AND o.task_id = ANY(%s) AND {STANDING}"
        return where, [*parameters, self.snapshot.active, earlier, later]

    # -------------------------------------------------------------------------------- one batch

    def _batch(self, rows: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
        places = {name: np.searchsorted(ids, rows[name].to_numpy()) for name, ids in self.ids.items()}
        columns_of_batch = {name: column.at(places) for name, column in self.named.items()}
        for name in rows.column_names[len(OWNERS) :]:
            own = rows[name].combine_chunks()
            columns_of_batch[name] = (
                pc.coalesce(own, columns_of_batch[name].cast(pa.string()))
                if name in columns_of_batch
                else own
            )
        empty = pa.nulls(rows.num_rows)
        arrays = [columns_of_batch.get(field.name, empty).cast(field.type) for field in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


class _Coded:
    """A text for each submission, task or setting (`owner`); none of them empty, null where it has none."""

    def __init__(self, owner: str, texts: Sequence[str | None]) -> None:
        self.owner = owner
        known = {text: code for code, text in enumerate(dict.fromkeys(text for text in texts if text))}
        self.dictionary = pa.array(list(known), pa.string())
        self.codes = np.array([known[text] if text else -1 for text in texts], np.int32)

    def __bool__(self) -> bool:
        return len(self.dictionary) > 0

    def at(self, places: Mapping[str, Any]) -> pa.Array:
        codes = self.codes[places[self.owner]]
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), self.dictionary)


class _Heat:
    """The temperature of each setting."""

    def __init__(self, values: Sequence[float | None]) -> None:
        self.values = np.array([np.nan if value is None else value for value in values], np.float64)

    def __bool__(self) -> bool:
        return not np.isnan(self.values).all()

    def at(self, places: Mapping[str, Any]) -> pa.Array:
        values = self.values[places[OWNERS[-1]]]
        return pa.array(values, mask=np.isnan(values))


def _named(snapshot: ExportTransaction) -> dict[str, _Coded | _Heat]:
    """Every column of a submission, a task or a setting, as far as any states it."""
    every, (submission, task, setting) = snapshot.submissions, OWNERS
    columns: dict[str, _Coded | _Heat] = {
        "benchmark": _Coded(submission, [snapshot.about.name] * len(every)),
        "submitted_at": _Coded(submission, [one.submitted_at for one in every]),
        "task": _Coded(task, [one.name for one in snapshot.tasks]),
        "category": _Coded(task, [one.category for one in snapshot.tasks]),
        "group": _Coded(task, [one.group for one in snapshot.tasks]),
        "temperature": _Heat([one.temperature for one in snapshot.settings]),
    }
    for name in OF_AGENT:
        columns[name] = _Coded(submission, [getattr(one, name) for one in every])
    for name in LINKS:
        columns[name] = _Coded(submission, [one.links.get(name) for one in every])
    for name in (facet for facet in FACETS if facet != "temperature"):
        columns[name] = _Coded(setting, [getattr(one, name) for one in snapshot.settings])
    return {name: column for name, column in columns.items() if column}


def _parse(block: bytes, sent: Mapping[str, pa.DataType]) -> pa.Table:
    import pyarrow.csv as arrow_csv

    return arrow_csv.read_csv(
        pa.BufferReader(block),
        read_options=arrow_csv.ReadOptions(column_names=list(sent), block_size=len(block) + 1),
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict(sent), true_values=["t"], false_values=["f"], strings_can_be_null=True
        ),
    )
