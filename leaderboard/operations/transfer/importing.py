"""A benchmark from a file."""

import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.db import DataError, IntegrityError, connection, transaction
from psycopg import sql

from leaderboard import schema
from leaderboard.accounts.models import ApiToken, User
from leaderboard.accounts.services import get_or_create_user
from leaderboard.catalog.models import Agent, Benchmark, Task, folded
from leaderboard.errors import Conflict, Refusal
from leaderboard.notify import wake
from leaderboard.operations.acting import acting
from leaderboard.operations.models import Reselection
from leaderboard.operations.transfer.tables import (
    ABOUT,
    BY_NUMBER,
    NAMED,
    PATHS,
    AnyModel,
    TransferSummary,
    columns,
    is_numbered,
    table,
    transfer_summary,
)
from leaderboard.studies.models import Calibration
from leaderboard.studies.queries import tasks_sha256
from leaderboard.studies.reselections import renumber
from leaderboard.submissions.copying import text_in
from leaderboard.submissions.models import Submission

ARRIVED = """
    SELECT b.slug FROM submissions_submission s JOIN {} USING (uuid)
    JOIN catalog_agent a ON a.id = s.agent_id JOIN catalog_benchmark b ON b.id = a.benchmark_id LIMIT 1
"""
NEW_ID = "(SELECT n.here FROM moved_names n WHERE n.kind = {} AND n.there = {})"
MAX_ID_SPAN = 1 << 28  # ids that one table of a file may span; what is taken of a sequence never comes back
NO_FILE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, LookupError, AttributeError)
NO_ROWS = (TypeError, ValueError, DataError, IntegrityError)
ASTRAY = "SELECT 1 FROM {} s, LATERAL {} AS told (id) WHERE told.id NOT BETWEEN {} AND {} LIMIT 1"
EACH = "ARRAY(SELECT u.id + {} FROM unnest({}) WITH ORDINALITY AS u (id, place) ORDER BY u.place)"


def import_benchmark(*, file: Path, slug: str | None = None) -> TransferSummary:
    """Store a benchmark that `export_benchmark` wrote, whole or not at all, under its own slug or another."""
    try:
        with zipfile.ZipFile(file) as archive:
            if damaged := archive.testzip():  # found in the midst of a COPY, the server would answer too
                raise zipfile.BadZipFile(f"{damaged} is damaged")
            about = json.loads(archive.read(ABOUT))
            if {tuple(one) for one in about["migrations"]} != schema.known():
                raise Conflict(
                    "The file was written by another release: bring both installations to the same one.",
                    code="another_release",
                )
            address = slug or str(about["benchmark"])
            Benchmark._meta.get_field("slug").run_validators(address)
            return _Arrival(archive, about, address).stored()
    except (*NO_FILE, *NO_ROWS, ValidationError) as error:
        raise Refusal(
            f"This is no file that `export-benchmark` wrote: {error}", code="no_moved_benchmark"
        ) from error


class _Arrival:
    """The rows of a file on their way in: by how much their ids grow, and who stands here for whom."""

    def __init__(self, archive: zipfile.ZipFile, about: Mapping[str, Any], slug: str) -> None:
        self._archive, self._about, self._slug = archive, about, slug
        self._ends: dict[AnyModel, tuple[int, int]] = {}
        self._by: dict[AnyModel, int] = {}

    @transaction.atomic
    def stored(self) -> TransferSummary:
        if Benchmark.objects.filter(slug=self._slug).exists():
            raise Conflict(
                f"There is a benchmark {self._slug} already; --slug gives this one another address.",
                code="is_here",
            )
        for model in PATHS:
            # Bring the rows of a table into one beside it, as they are in the file
            make = "CREATE TEMPORARY TABLE {} ON COMMIT DROP AS SELECT {} FROM {} WITH NO DATA"
            _run(make, _staged(model), _listed(model), sql.Identifier(table(model)))
            with self._archive.open(table(model)) as part:
                text_in(part, into=_staged(model), columns=_listed(model))
        self._check_new()
        self._ends = {model: ends for model in PATHS if is_numbered(model) and (ends := self._span(model))}
        for model in PATHS:
            self._check_pointers(model)
        self._find_named()
        self._by = {model: self._reserved(model) for model in PATHS if is_numbered(model)}
        with acting(by=None, reason="moved in"):
            for model in PATHS:
                self._store(model)
            for one in Reselection.objects.filter(benchmark__slug=self._slug):
                one.content = renumber(one.content, by=self._by[Agent])
                one.save(update_fields=["content"])
        wake()
        accounts = self._about["names"][table(User)]
        return transfer_summary(Benchmark.objects.get(slug=self._slug), n_accounts=len(accounts))

    def _check_new(self) -> None:
        if rows := _run(ARRIVED, _staged(Submission)):
            raise Conflict(f"It is here already, as {rows[0][0]}.", code="is_here")

    def _span(self, model: AnyModel) -> tuple[int, int] | None:
        """The lowest and highest id of the rows of a table; None where it has none."""
        ((lowest, highest),) = _run("SELECT min(id), max(id) FROM {}", _staged(model))
        if lowest is None:
            return None
        if highest - lowest >= MAX_ID_SPAN:
            raise Refusal(
                f"Ids of {table(model)} go from {lowest} to {highest}: too far apart.",
                code="no_moved_benchmark",
            )
        return lowest, highest

    def _check_pointers(self, model: AnyModel) -> None:
        """Refuse what points past the rows of the file: moved on, it would point to another benchmark."""
        for field in columns(model):
            owner = _owner(model, field)
            if owner not in PATHS:
                continue
            column, ends = sql.Identifier(field.column), map(sql.Literal, self._ends.get(owner, (0, -1)))
            is_array = field.get_internal_type() == "ArrayField"
            each = sql.SQL("unnest({})" if is_array else "(VALUES ({}))").format(column)
            if _run(ASTRAY, _staged(model), each, *ends):
                raise Refusal(
                    f"{field.column} of {table(model)} points to rows that are not in the file.",
                    code="no_moved_benchmark",
                )

    def _find_named(self) -> None:
        _run("CREATE TEMPORARY TABLE moved_names (kind text, there bigint, here bigint) ON COMMIT DROP")
        for model in NAMED:
            names = self._about["names"][table(model)]
            here = _accounts(names) if model is User else _spelt(model, names)
            with connection.cursor() as cursor:
                cursor.executemany(
                    "INSERT INTO moved_names VALUES (%s, %s, %s)",
                    [(table(model), int(there), pk) for there, pk in here.items()],
                )

    def _reserved(self, model: AnyModel) -> int:
        """Take as many ids as the rows span, which nobody else gets from now on."""
        if model not in self._ends:
            return 0
        lowest, highest = self._ends[model]
        _run("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE", sql.Identifier(table(model)))
        sequence = sql.Literal(f"{table(model)}_id_seq")
        first = int(_run("SELECT nextval({})", sequence)[0][0])
        _run("SELECT setval({}, {})", sequence, sql.Literal(first + highest - lowest))
        return first - lowest

    def _store(self, model: AnyModel) -> None:
        values = sql.SQL(", ").join(self._value(model, field) for field in columns(model))
        insert = "INSERT INTO {} ({}) SELECT {} FROM {}"
        _run(insert, sql.Identifier(table(model)), _listed(model), values, _staged(model))

    def _value(self, model: AnyModel, field: Any) -> sql.Composable:
        """What stands here for what stood there."""
        column = sql.Identifier(field.column)
        if (model, field.name) == (Benchmark, "slug"):
            return sql.Literal(self._slug)
        if (model, field.name) == (Calibration, "active"):
            # A calibration names its tasks by a hash of ids; one on tasks of the past is asked for no more
            there = self._about["active"]
            here = [pk + self._by[Task] for pk in there]
            hashes = [sql.Literal(tasks_sha256(ids)) for ids in (there, here)]
            return sql.SQL("CASE WHEN {} = {} THEN {} ELSE {} END").format(column, *hashes, column)
        owner = _owner(model, field)
        if owner is None:
            return column
        if owner is ApiToken:
            return sql.SQL("NULL")
        if owner in NAMED:
            return sql.SQL(NEW_ID).format(sql.Literal(table(owner)), column)
        by = sql.Literal(self._by[owner])
        if field.get_internal_type() != "ArrayField":
            return sql.SQL("{} + {}").format(column, by)
        each = sql.SQL(EACH).format(by, column)
        kind = sql.SQL(field.db_type(connection))
        return sql.SQL("CASE WHEN {} IS NOT NULL THEN ({})::{} END").format(column, each, kind)


def _owner(model: AnyModel, field: Any) -> Any:
    """Whose ids a column holds; None where it holds none."""
    return model if field.primary_key else field.related_model or BY_NUMBER.get((model, field.attname))


def _staged(model: AnyModel) -> sql.Identifier:
    return sql.Identifier(f"moved_{table(model)}")


def _listed(model: AnyModel) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier(field.column) for field in columns(model))


def _run(statement: str, *parts: sql.Composable) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(statement).format(*parts).as_string(connection.connection))
        return list(cursor.fetchall()) if cursor.description else []


def _accounts(emails: Mapping[str, str]) -> dict[str, int]:
    """The account of each address; one that is new has no password, and no role."""
    return {there: get_or_create_user(email=email)[0].pk for there, email in emails.items()}


def _spelt(model: Any, names: Mapping[str, str]) -> dict[str, int]:
    """The scaffold or model of each name, made where it is new."""
    known = {folded(name): (pk, name) for pk, name in model.objects.values_list("pk", "name")}
    here = {}
    for there, name in names.items():
        pk, spelling = known.get(folded(name)) or (model.objects.create(name=name).pk, name)
        if spelling != name:
            raise Conflict(
                f"{name!r} is called {spelling!r} here: a board would name it otherwise.",
                code="spelt_otherwise",
            )
        here[there] = pk
    return here
