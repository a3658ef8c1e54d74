"""One benchmark to another installation, with all that happened on it and every board under its number.

The file is a zip: `about.json`, and for each table the rows of the benchmark as COPY prints them. On arrival
the ids of a table all grow by one number, so that their order, which decides which of two deliveries was the
earlier, stays. Scaffolds and models are found by name, accounts by address. Left behind are roles, tokens,
invitations and webhooks, which are rights and secrets of an installation; events, job runs and the audit,
which tell what was done there; and what is computed anew (`AgentScores`, rendered pages).

What comes is checked as at any other door: names by their rules, and each board by its digest. A digest has
no key, so who computes it anew after a change is not found out: import from people you trust.
"""

import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.db import DataError, IntegrityError, connection, models, transaction
from django.db.models import QuerySet
from msgspec import MsgspecError
from psycopg import sql

from leaderboard import schema
from leaderboard.accounts.models import ApiToken, User
from leaderboard.accounts.services import get_or_create_user
from leaderboard.boards.models import Board, Entry
from leaderboard.boards.queries import entries_of, standings_of
from leaderboard.boards.signing import canonical_json
from leaderboard.boards.stored import stored_digest
from leaderboard.catalog.models import Agent, AgentAlias, Benchmark, Model, Policy, Scaffold, Task, folded
from leaderboard.catalog.services import N_NAMED, require_address
from leaderboard.errors import Conflict, Faulty, Refusal
from leaderboard.notify import wake
from leaderboard.operations.acting import acting
from leaderboard.operations.benchmarks import DESCRIBED
from leaderboard.operations.benchmarks import NAMED as NAMED_OF_BENCHMARK
from leaderboard.operations.models import (
    Alert,
    Assignment,
    Dispute,
    Erasure,
    RerunAgent,
    RerunRequest,
    Reselection,
    ReselectionStatus,
)
from leaderboard.studies.models import (
    Calibration,
    DriftCheck,
    StagedStudy,
    SubsetTask,
    TaskSubset,
    ValidationStudy,
    VarianceStudy,
)
from leaderboard.studies.queries import tasks_sha256
from leaderboard.studies.reselections import renumber
from leaderboard.submissions.copying import text_in, text_out
from leaderboard.submissions.models import (
    AccountTrust,
    Approval,
    InvalidConfirmation,
    MachineCheck,
    Outcome,
    OutcomeDetail,
    Setting,
    Status,
    StatusChange,
    Submission,
    Verification,
)
from leaderboard.submissions.parsing.flat import Fault, excerpt, name_rule

AnyModel = type[models.Model]
TransferCounts = tuple[Benchmark, dict[str, int]]  # what a file holds, by its noun
PATHS: dict[AnyModel, str] = {
    Benchmark: "pk",
    Policy: "benchmark",
    Task: "benchmark",
    Agent: "benchmark",
    AgentAlias: "benchmark",
    Setting: "benchmark",
    StagedStudy: "benchmark",
    Submission: "agent__benchmark",
    StatusChange: "submission__agent__benchmark",
    MachineCheck: "submission__agent__benchmark",
    InvalidConfirmation: "submission__agent__benchmark",
    Approval: "agent__benchmark",
    Verification: "submission__agent__benchmark",
    AccountTrust: "benchmark",
    Outcome: "submission_id__in",
    OutcomeDetail: "submission_id__in",
    TaskSubset: "benchmark",
    SubsetTask: "subset__benchmark",
    Calibration: "subset__benchmark",
    ValidationStudy: "benchmark",
    VarianceStudy: "benchmark",
    DriftCheck: "benchmark",
    Board: "benchmark",
    Entry: "board__benchmark",
    RerunRequest: "benchmark",
    RerunAgent: "request__benchmark",
    Assignment: "agent__benchmark",
    Assignment.submissions.through: "assignment__agent__benchmark",
    Alert: "benchmark",
    Reselection: "benchmark",
    Dispute: "benchmark",
    Erasure: "benchmark",
}
"""The tables that move, and from each the way to its benchmark."""

BY_NUMBER: dict[tuple[AnyModel, str], AnyModel] = {
    (Outcome, "submission_id"): Submission,
    (Outcome, "task_id"): Task,
    (Outcome, "setting_id"): Setting,
    (OutcomeDetail, "submission_id"): Submission,
    (OutcomeDetail, "task_id"): Task,
    (OutcomeDetail, "setting_id"): Setting,
    (Submission, "asked"): Task,
    (Submission, "study_id"): StagedStudy,
    (TaskSubset, "chosen_from"): Agent,
    (Calibration, "agents"): Agent,
    (Calibration, "tasks"): Task,
    (Assignment, "tasks"): Task,
    (Assignment, "audit"): Task,
}
"""Columns that hold ids, one or an array, without a foreign key."""

NAMED: dict[AnyModel, str] = {User: "email", Scaffold: "name", Model: "name"}
"""What both installations may have, and what it is found by."""

NAMES: dict[AnyModel, tuple[str, ...]] = {
    Task: ("name", "category", "group"),
    Agent: ("name", "version", "organisation"),
    AgentAlias: ("name",),
    Setting: ("prompt_variant", "judge", "run"),
    Entry: ("name",),
}
"""Columns that hold names."""

ABOUT = "about.json"


def rows_of(model: AnyModel, benchmark: Benchmark) -> "QuerySet[Any]":
    mine: Any = benchmark.pk
    if model in (Outcome, OutcomeDetail):
        mine = Submission.objects.filter(agent__benchmark=benchmark).values("pk")
    return model._default_manager.filter(**{PATHS[model]: mine}).order_by("pk")


def columns(model: AnyModel) -> list[Any]:
    return list(model._meta.concrete_fields)


def table(model: AnyModel) -> str:
    return str(model._meta.db_table)


def _counts_of(benchmark: Benchmark, about: Mapping[str, Any]) -> TransferCounts:
    n = rows_of(Submission, benchmark).aggregate(n=models.Sum("n_outcomes"))["n"] or 0
    names = about["names"][table(User)]
    return benchmark, {"outcome": n, "board": benchmark.boards.count(), "account": len(names)}


@transaction.atomic
def export_benchmark(*, benchmark: Benchmark, file: Path) -> TransferCounts:
    """Write one state of a benchmark; the service may go on."""
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    benchmark = Benchmark.objects.get(pk=benchmark.pk)
    _check_decided(benchmark)
    active = benchmark.tasks.filter(retired_at=None).order_by("name")
    about = {  # what the rows do not say: which tables they fit, who they point to
        "benchmark": benchmark.slug,
        "migrations": sorted(schema.known()),
        "names": {table(model): _names(model, benchmark) for model in NAMED},
        "active": list(active.values_list("pk", flat=True)),
    }
    with file.open("xb") as target, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        file.chmod(0o600)  # it holds addresses
        for model in PATHS:
            names = [field.attname for field in columns(model)]
            with archive.open(table(model), "w", force_zip64=True) as part:
                for block in text_out(rows_of(model, benchmark).values_list(*names)):
                    part.write(block)
        archive.writestr(ABOUT, json.dumps(about, ensure_ascii=False, indent=1))
    return _counts_of(benchmark, about)


def _check_decided(benchmark: Benchmark) -> None:
    """What waits is decided by rights that stay behind: those of the token that delivered it."""
    waiting = Submission.objects.filter(
        agent__benchmark=benchmark, status__in=(Status.CHECKING, Status.WAITING)
    )
    if n := waiting.count():
        waiting_text = "1 submission waits" if n == 1 else f"{n:,} submissions wait"
        raise Conflict(
            f"{waiting_text} for a check, a review or the end of an embargo: let that be over first.",
            code="undecided",
        )
    if benchmark.reselections.filter(status=ReselectionStatus.PROPOSED).exists():
        raise Conflict("A proposal is open. Approve or reject it first.", code="undecided")


def _names(named: AnyModel, benchmark: Benchmark) -> dict[int, str]:
    ids: set[int | None] = set()
    for model in PATHS:
        for field in columns(model):
            if field.related_model is named:
                rows = rows_of(model, benchmark).order_by().distinct()
                ids |= set(rows.values_list(field.attname, flat=True))
    named_rows = named._default_manager.filter(pk__in=ids - {None}).order_by("pk")
    return dict(named_rows.values_list("pk", NAMED[named]))


ARRIVED = """
    SELECT b.slug FROM submissions_submission s JOIN {} USING (uuid)
    JOIN catalog_agent a ON a.id = s.agent_id JOIN catalog_benchmark b ON b.id = a.benchmark_id LIMIT 1
"""
NEW_ID = "(SELECT n.here FROM moved_names n WHERE n.kind = {} AND n.there = {})"
MAX_ID_SPAN = 1 << 28  # ids that one table of a file may span; what is taken of a sequence never comes back
NO_FILE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, LookupError, AttributeError)
NO_ROWS = (TypeError, ValueError, OverflowError, DataError, IntegrityError, MsgspecError)
ASTRAY = "SELECT 1 FROM {} s, LATERAL {} AS told (id) WHERE told.id NOT BETWEEN {} AND {} LIMIT 1"
EACH = "ARRAY(SELECT u.id + {} FROM unnest({}) WITH ORDINALITY AS u (id, place) ORDER BY u.place)"


def import_benchmark(*, file: Path, slug: str | None) -> TransferCounts:
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
            require_address(address)
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
    def stored(self) -> TransferCounts:
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
        if rows := _run(ARRIVED, _staged(Submission)):
            raise Conflict(f"It already exists here as {rows[0][0]}.", code="is_here")
        numbered = [model for model in PATHS if isinstance(model._meta.pk, models.AutoField)]
        self._ends = {model: ends for model in numbered if (ends := self._span(model))}
        for model in PATHS:
            self._check_pointers(model)
            _read_moments(model)
        self._find_named()
        self._by = {model: self._reserved(model) for model in numbered}
        with acting(by=None, reason="moved in"):
            for model in PATHS:
                values = sql.SQL(", ").join(self._value(model, field) for field in columns(model))
                insert = "INSERT INTO {} ({}) SELECT {} FROM {}"
                _run(insert, sql.Identifier(table(model)), _listed(model), values, _staged(model))
            for one in Reselection.objects.filter(benchmark__slug=self._slug):
                one.content = renumber(one.content, by=self._by[Agent])
                one.save(update_fields=["content"])
        found = Benchmark.objects.get(slug=self._slug)
        self._check_names(found)
        _check_boards(found)
        wake()
        return _counts_of(found, self._about)

    def _span(self, model: AnyModel) -> tuple[int, int] | None:
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

    def _check_names(self, found: Benchmark) -> None:
        """Refuse names that no other door would let in."""
        texts = [("Benchmark", name, getattr(found, name)) for name in NAMED_OF_BENCHMARK]
        for made_of in (Scaffold, Model):
            names = self._about["names"][table(made_of)].values()
            texts += [(made_of.__name__, "name", name) for name in names]
        for model, fields in NAMES.items():
            for field in fields:
                rows = rows_of(model, found).order_by(field).values_list(field, flat=True).distinct()
                texts += [(model.__name__, field, text) for text in rows]
        faults = _faults_of(found) + [
            Fault(None, f"{noun.lower()}.{field}", excerpt(text), rule)
            for noun, field, text in texts
            if (text or field == "name") and (rule := name_rule(text))
        ]
        if faults:
            raise Faulty(
                "The file breaks rules for names. Nothing was stored.",
                faults=tuple(faults[:N_NAMED]),
                n_faults=len(faults),
            )

    def _find_named(self) -> None:
        _run("CREATE TEMPORARY TABLE moved_names (kind text, there bigint, here bigint) ON COMMIT DROP")
        for model in NAMED:
            names = self._about["names"][table(model)]
            if model is User:  # an account that is new has no password, and no role
                here = {there: get_or_create_user(email=email)[0].pk for there, email in names.items()}
            else:
                here = _spelt(model, names)
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

    def _value(self, model: AnyModel, field: Any) -> sql.Composable:
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


def _read_moments(model: AnyModel) -> None:
    """Read the earliest and the latest, or raise DataError: a database has years that no page can read."""
    for field in columns(model):
        if field.get_internal_type() == "DateTimeField":
            _run("SELECT min({0}), max({0}) FROM {1}", sql.Identifier(field.column), _staged(model))


def _faults_of(benchmark: Benchmark) -> list[Fault]:
    try:
        benchmark.clean_fields(exclude={field.name for field in columns(Benchmark)} - set(DESCRIBED))
    except ValidationError as error:
        return [
            Fault(None, f"benchmark.{field}", excerpt(str(getattr(benchmark, field))), messages[0])
            for field, messages in error.message_dict.items()
        ]
    return []


def _check_boards(benchmark: Benchmark) -> None:
    """Refuse a board that pages cannot read, or that is another than its digest says."""
    erased = Erasure.objects.filter(benchmark=benchmark)
    for board in benchmark.boards.select_related("policy").order_by("number"):
        entries = entries_of(board)
        standings_of(board, entries)
        names = {entry.name for entry in entries}
        if len(names) == len(entries) and stored_digest(board, entries) == board.digest:
            continue
        # Where a name was erased since, the digest speaks for what was there before
        text = canonical_json([[entry.name, entry.line] for entry in entries])
        tombstones = erased.filter(at__gte=board.published_at).values_list("tombstone", flat=True)
        if not any(tombstone in text for tombstone in tombstones):
            raise Refusal(
                f"Board {board.number} does not match its digest: the file was changed. Nothing was stored. "
                "Export the benchmark again.",
                code="another_board",
            )


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
