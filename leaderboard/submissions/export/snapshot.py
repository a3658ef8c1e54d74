"""One state of a benchmark, read apart from all other work: what is exported of it stays as it was."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from threading import BoundedSemaphore
from types import TracebackType
from typing import Any, NamedTuple, Self

from django.db import DEFAULT_DB_ALIAS, connections
from psycopg import ClientCursor, Connection

from leaderboard.catalog.models import Benchmark
from leaderboard.submissions.parsing.flat import is_name

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
    SELECT s.id, a.name, c.name, m.name, a.version, a.organisation, s.submitted_at, s.imprecise, s.links,
        s.n_outcomes, s.n_invalid
    FROM submissions_submission s JOIN catalog_agent o ON o.id = s.agent_id
    JOIN catalog_agent a ON a.id = coalesce(o.merged_into_id, o.id)
    JOIN catalog_scaffold c ON c.id = a.scaffold_id JOIN catalog_model m ON m.id = a.model_id
    WHERE o.benchmark_id = %s AND s.status = 'accepted' ORDER BY s.id
"""
TASKS = """
    SELECT id, name, category, "group", retired_at IS NULL
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


@dataclass(frozen=True)
class ExportInfo:
    """What travels with the outcomes of a benchmark."""

    title: str
    slug: str
    url: str
    licence: str
    citation: str
    data_version: int
    shown_version: int

    @property
    def name(self) -> str:
        """The name that the rows carry: one that a reader of the flat file takes."""
        return self.title if is_name(self.title) else self.slug

    def as_plain(self) -> dict[str, Any]:
        fields = ("title", "url", "licence", "citation", "data_version")
        return {"benchmark": self.slug} | {name: getattr(self, name) for name in fields}


class Submitted(NamedTuple):
    """An accepted submission, under the agent that it counts for."""

    pk: int
    agent: str
    scaffold: str
    model: str
    version: str
    organisation: str
    at: datetime | None
    imprecise: bool
    links: dict[str, str]
    n_outcomes: int
    n_invalid: int

    @property
    def submitted_at(self) -> str:
        """As a flat file says it: no more than is known."""
        if self.at is None:
            return ""
        at = self.at.astimezone(UTC)
        if self.imprecise:
            return f"{at:%Y-%m}"
        return (
            f"{at:%Y-%m-%d}" if (at.hour, at.minute, at.second) == (0, 0, 0) else f"{at:%Y-%m-%dT%H:%M:%SZ}"
        )


def _submitted(*row: Any) -> Submitted:
    """Django's connections hand out JSON as text."""
    submitted = Submitted(*row)
    return submitted._replace(links=json.loads(str(submitted.links)))


class Tasked(NamedTuple):
    pk: int
    name: str
    category: str
    group: str
    is_active: bool


class SetUp(NamedTuple):
    """A setting."""

    pk: int
    prompt_variant: str | None
    judge: str | None
    temperature: float | None
    run: str | None


class ExportTransaction:
    """An open transaction on a connection of its own; used as a context, or closed by hand."""

    def __init__(self, benchmark: Benchmark) -> None:
        self._wrapper = connections.create_connection(DEFAULT_DB_ALIAS)
        self._wrapper.ensure_connection()
        try:
            for statement in BEGIN:
                self.run(statement)
            self.about = ExportInfo(*self.run(BENCHMARK, benchmark.pk)[0])
            self.submissions = [_submitted(*row) for row in self.run(SUBMISSIONS, benchmark.pk)]
            self.tasks = [Tasked(*row) for row in self.run(TASKS, benchmark.pk)]
            self.settings = [SetUp(*row) for row in self.run(SETTINGS, benchmark.pk)]
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

    def run(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        with self._wrapper.wrap_database_errors:
            cursor = self._connection.execute(query, parameters or None)
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
        return [one.pk for one in self.submissions]

    @property
    def active(self) -> list[int]:
        """Ids of the tasks that are not retired."""
        return [task.pk for task in self.tasks if task.is_active]

    def delivered_again(self) -> list[tuple[int, int]]:
        """Pairs of submissions of one agent: one with failures of the harness, and a later one."""
        by_agent: Iterable[tuple[str, Iterator[Submitted]]] = groupby(
            sorted(self.submissions, key=lambda one: (one.agent, one.pk)), key=lambda one: one.agent
        )
        pairs = []
        for _, group in by_agent:
            mine = list(group)
            pairs += [(a.pk, b.pk) for i, a in enumerate(mine) if a.n_invalid for b in mine[i + 1 :]]
        return pairs
