"""The outcomes that count, batch by batch in constant memory.

Accepted submissions count, on tasks that are not retired; of a trial that was delivered again after a failure
of the harness the last outcome does. What a merged agent delivered is the other one's. The rows come by COPY
with ids, and get their names here: the server sends a name once, not a million times.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC
from itertools import groupby, islice
from operator import attrgetter
from threading import BoundedSemaphore
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from django.db import DEFAULT_DB_ALIAS, connections
from psycopg import ClientCursor, Connection
from psycopg.rows import namedtuple_row, tuple_row

from leaderboard.catalog.models import Benchmark
from leaderboard.submissions.export.columns import (
    AS_METADATA,
    FACETS,
    KNOWN,
    LINKS,
    MEASURED,
    METADATA,
    OF_AGENT,
    TEXT,
    TOGETHER,
    ExportColumn,
)
from leaderboard.submissions.parsing.flat import ALIASES, MAX_COLUMNS, is_name

AT_ONCE = 2  # exports in one process: each holds a connection to the database, and most of a thread
_free = BoundedSemaphore(AT_ONCE)
IDLE = "60s"  # a reader that takes nothing for so long holds no snapshot any longer
BEGIN = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    f"SET LOCAL idle_in_transaction_session_timeout = '{IDLE}'",
    # The same rows come in the same order, export after export.
    "SET LOCAL synchronize_seqscans = off",
    "SET LOCAL max_parallel_workers_per_gather = 0",
)
BENCHMARK = """
    SELECT title, slug, url, licence, citation, data_version, shown_version
    FROM catalog_benchmark WHERE id = %s
"""
SUBMISSIONS = """
    SELECT s.id, a.name AS agent, c.name AS scaffold, m.name AS model, a.version, a.organisation,
        a.weights, s.submitted_at, s.imprecise, s.links, s.n_outcomes, s.n_invalid
    FROM submissions_submission s JOIN catalog_agent o ON o.id = s.agent_id
    JOIN catalog_agent a ON a.id = coalesce(o.merged_into_id, o.id)
    JOIN catalog_scaffold c ON c.id = a.scaffold_id JOIN catalog_model m ON m.id = a.model_id
    WHERE o.benchmark_id = %s AND s.status = 'accepted' ORDER BY s.id
"""
TASKS = """
    SELECT id, name, category, "group", retired_at IS NULL AS is_active
    FROM catalog_task WHERE benchmark_id = %s ORDER BY id
"""
SETTINGS = """
    SELECT id, prompt_variant, judge, temperature, run FROM submissions_setting
    WHERE benchmark_id = %s ORDER BY id
"""


def enter(opened: ExitStack) -> bool:
    """Take a place among the exports, which is given back with what is open; False: there is none."""
    if not _free.acquire(blocking=False):
        return False
    opened.callback(_free.release)
    return True


def about_of(benchmark: Benchmark) -> dict[str, Any]:
    fields = ("title", "url", "licence", "citation", "data_version")
    return {"benchmark": benchmark.slug} | {name: getattr(benchmark, name) for name in fields}


def date_text(submission: Any) -> str:
    """When it was submitted as a flat file says it: no more than is known."""
    if submission.submitted_at is None:
        return ""
    at = submission.submitted_at.astimezone(UTC)
    if submission.imprecise:
        return f"{at:%Y-%m}"
    return f"{at:%Y-%m-%d}" if (at.hour, at.minute, at.second) == (0, 0, 0) else f"{at:%Y-%m-%dT%H:%M:%SZ}"


class ExportTransaction:
    """An open transaction on a connection of its own; used as a context, or closed by hand.

    `submissions` (under the agents that they count for), `tasks` and `settings` are rows by names of columns.
    """

    def __init__(self, benchmark: Benchmark) -> None:
        self._wrapper = connections.create_connection(DEFAULT_DB_ALIAS)
        self._wrapper.ensure_connection()
        try:
            for statement in BEGIN:
                self.run(statement)
            self.about = Benchmark(**self.run(BENCHMARK, benchmark.pk, form=namedtuple_row)[0]._asdict())
            rows: list[Any] = self.run(SUBMISSIONS, benchmark.pk, form=namedtuple_row)
            # Django's connections hand out JSON as text
            self.submissions = [row._replace(links=json.loads(str(row.links))) for row in rows]
            self.tasks: list[Any] = self.run(TASKS, benchmark.pk, form=namedtuple_row)
            self.settings: list[Any] = self.run(SETTINGS, benchmark.pk, form=namedtuple_row)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._wrapper.close()

    def run(self, query: str, *parameters: object, form: Any = tuple_row) -> list[Any]:
        with self._wrapper.wrap_database_errors, self._connection.cursor(row_factory=form) as cursor:
            cursor.execute(query, parameters or None)
            return cursor.fetchall() if cursor.description else []

    def copy(self, query: str, parameters: Sequence[object]) -> Iterator[bytes]:
        """Give the rows of a query as CSV, one by one: the server sends a message for each."""
        statement = f"COPY ({query}) TO STDOUT (FORMAT csv)"
        with (
            self._wrapper.wrap_database_errors,
            self._connection.cursor() as cursor,
            cursor.copy(ClientCursor(self._connection).mogrify(statement, parameters)) as copy,
        ):
            yield from map(bytes, copy)

    @property
    def _connection(self) -> Connection[Any]:
        connection: Connection[Any] = self._wrapper.connection
        return connection

    @property
    def ids(self) -> list[int]:
        return [one.id for one in self.submissions]

    @property
    def active(self) -> list[int]:
        return [task.id for task in self.tasks if task.is_active]

    def delivered_again(self) -> list[tuple[int, int]]:
        """Pairs of submissions of one agent: one with failures of the harness, and a later one."""
        pairs = []
        in_order = sorted(self.submissions, key=attrgetter("agent", "id"))
        for _, group in groupby(in_order, attrgetter("agent")):
            mine = list(group)
            pairs += [(a.id, b.id) for i, a in enumerate(mine) if a.n_invalid for b in mine[i + 1 :]]
        return pairs


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
        where, parameters = self._where()
        self.n_rows = (
            sum(one.n_outcomes for one in snapshot.submissions)
            if self.is_whole
            else int(snapshot.run(f"SELECT count(*) {where}", *parameters)[0][0])
        )

    @property
    def schema(self) -> pa.Schema:
        about = {name: str(value) for name, value in about_of(self.snapshot.about).items()}
        return pa.schema([column.field for column in self.columns], metadata=about | {"n": str(self.n_rows)})

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Give the rows in the order of their keys as they are stored."""
        import pyarrow.csv as arrow_csv

        sent = SENT | {name: column.kind for name, column in self.measured.items()}
        keys = [] if self.is_together else self.keys
        texts = ["d.metadata"] if self.is_together else ["d.metadata->>%s"] * len(keys)
        sent |= dict.fromkeys([METADATA] if self.is_together else keys, pa.string())
        names = [*STORED, *(f"d.{name}" for name in self.measured), *texts]
        where, parameters = self._where()
        rows = self.snapshot.copy(f"SELECT {', '.join(names)} {where}", [*keys, *parameters])
        schema, n = self.schema, 0
        while block := b"".join(islice(rows, BATCH_ROWS)):
            table = arrow_csv.read_csv(
                pa.BufferReader(block),
                read_options=arrow_csv.ReadOptions(column_names=list(sent), block_size=len(block) + 1),
                parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=sent, true_values=["t"], false_values=["f"], strings_can_be_null=True
                ),
            )
            batch = self._batch(table, schema)
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
        return (
            *columns,
            *(
                [TOGETHER]
                if self.is_together
                else (ExportColumn(name, TEXT, AS_METADATA) for name in metadata_keys)
            ),
        )

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
        columns_of_batch = {name: texts.take(places[owner]) for name, (owner, texts) in self.named.items()}
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


def _named(snapshot: ExportTransaction) -> dict[str, tuple[str, pa.Array]]:
    """Every column of a submission, a task or a setting, as far as any states it, and whose it is."""
    every, (submission, task, setting) = snapshot.submissions, OWNERS
    title = snapshot.about.title  # where a reader of the flat file takes it
    name = title if is_name(title) else snapshot.about.slug
    texts = {
        "benchmark": (submission, [name] * len(every)),
        "submitted_at": (submission, [date_text(one) for one in every]),
        "task": (task, [one.name for one in snapshot.tasks]),
        "category": (task, [one.category for one in snapshot.tasks]),
        "group": (task, [one.group for one in snapshot.tasks]),
    }
    texts |= {name: (submission, [getattr(one, name) for one in every]) for name in OF_AGENT}
    texts |= {name: (submission, [one.links.get(name) for one in every]) for name in LINKS}
    texts |= {name: (setting, [getattr(one, name) for one in snapshot.settings]) for name in FACETS}
    columns = {
        name: (owner, pa.array([value or None for value in values], pa.string()).dictionary_encode())
        for name, (owner, values) in texts.items()
        if name != "temperature"
    }
    columns["temperature"] = setting, pa.array(texts["temperature"][1], pa.float64())
    return {name: (owner, of) for name, (owner, of) in columns.items() if of.null_count < len(of)}
