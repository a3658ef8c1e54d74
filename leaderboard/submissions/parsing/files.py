"""A submission as a file, CSV, NDJSON or Parquet, and the fields of its envelope beside it.

What the envelope says the file need not: where both say it, they have to agree. The file's own name is
nowhere a path.
"""

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from gzip import GzipFile
from pathlib import Path, PurePath
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import numpy as np
from rapidfuzz import process

from analytics.flat_file import (
    ALIASES,
    DELIVERED,
    MAX_FAULTS,
    SUBMISSION,
    Fault,
    FlatFile,
    FlatFileError,
    GzipMembers,
    Limits,
    from_records,
    read,
    text_of,
)
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.services import AGENT_OPTIONAL
from leaderboard.errors import Faulty, Refusal
from leaderboard.submissions.parsing import importers
from leaderboard.submissions.parsing.envelope import (
    COLUMN,
    NOTHING,
    Body,
    columns_of,
    envelope_faults,
    fault,
)

REQUIRED = ("agent", "outcomes")
MAX_ROWS = SUBMISSION.n_rows
N_EXPLAINED = 20  # unknown tasks for which near ones are looked for, which takes time
NEAR = 80  # of 100
NO_SUCH_TASK = "unknown task"


class KnownTasks:
    """Says of a name why it is no task, with the tasks near the first few such names; None: it is one."""

    def __init__(self, names: Iterable[str], benchmark: str) -> None:
        self.names, self._listed = set(names), f"; all are at /api/v1/benchmarks/{benchmark}/tasks"
        self._explained: dict[str, str] = {}

    def __call__(self, name: str) -> str | None:
        if name in self.names:
            return None
        if name not in self._explained and len(self._explained) < N_EXPLAINED:
            matches = process.extract(name, self.names, limit=None, score_cutoff=NEAR)
            near = sorted((-score, match) for match, score, _ in matches)[:3]
            named = " or ".join(f'"{match}"' for _, match in near)
            hint = f". Did you mean {named}?" if near else self._listed
            self._explained[name] = NO_SUCH_TASK + hint
        return self._explained.get(name, NO_SUCH_TASK)


def read_body(body: object, *, benchmark: str, tasks: Iterable[str], as_of: datetime) -> Body:
    """Check the whole body and return it, or raise Faulty with every fault at once.

    `tasks` are the names of the benchmark's tasks; for an unknown one near ones are named. A body without
    `submitted_at` is dated `as_of`, the time of its delivery.
    """
    if not isinstance(body, Mapping):
        raise Faulty(
            "The submission has errors. Nothing was stored.",
            faults=(fault("body", body, "must be a JSON object"),),
        )
    envelope = envelope_faults(body, required=REQUIRED)
    flat, row_faults, n_faults = _rows(body, benchmark=benchmark, tasks=tasks, as_of=as_of)
    if envelope or flat is None:
        raise together(envelope, row_faults, n_faults)

    def sha256() -> bytes:
        """Row by row: the text of all rows at once takes many times the memory of the body."""
        digest = hashlib.sha256()
        for part in ({**body, "outcomes": len(body["outcomes"])}, *body["outcomes"]):
            digest.update(json.dumps(part, sort_keys=True).encode() + b"\n")
        return digest.digest()

    return Body(body, flat, sha256)


def together(envelope: list[Fault], rows: Iterable[Fault], n_of_rows: int, note: str = "") -> Faulty:
    """Tell the faults of the envelope and of the rows, what both tell once; the latter may be more."""
    places, rows = {(one.field, one.row) for one in envelope}, list(rows)
    for key, column in COLUMN.items():
        if places & {("agent", None), (f"agent.{key}", None)}:
            places.add((column, None))
    new = [one for one in rows if (one.field, one.row) not in places]
    every = sorted([*envelope, *new], key=lambda one: one.row or 0)
    return Faulty(
        f"The delivery has faults. Nothing was stored. {note}".rstrip(),
        faults=tuple(every[:MAX_FAULTS]),
        n_faults=len(every) + n_of_rows - len(rows),
    )


def _rows(
    body: Mapping[str, Any], *, benchmark: str, tasks: Iterable[str], as_of: datetime
) -> tuple[FlatFile | None, tuple[Fault, ...], int]:
    outcomes = body.get("outcomes")
    if outcomes in (*NOTHING, [], {}):
        return None, (), 0  # a fault of its own: absent
    if not isinstance(outcomes, list):
        return None, (fault("outcomes", outcomes, "must be a list with at least one result"),), 1
    if len(outcomes) > MAX_ROWS:
        rule = f"must be a list of at most {MAX_ROWS:,} results; send more as a file"
        return None, (fault("outcomes", len(outcomes), rule),), 1
    absent = dict.fromkeys(COLUMN.values())
    constants = {"benchmark": benchmark, "submitted_at": as_of, **absent, **columns_of(body)}
    try:
        known = KnownTasks(tasks, benchmark)
        flat = from_records(outcomes, constants=constants, as_of=as_of, limits=SUBMISSION, strange_task=known)
    except FlatFileError as error:
        return None, error.faults, error.n_faults
    return flat, (), 0


FLAT = "flat"
GZIP = b"\x1f\x8b"
BLOCK_BYTES = 1 << 20
TABLES = (".csv", ".csv.gz", ".parquet")  # what ends so is a flat file, whatever stands in it
OF_AGENT = COLUMN | {name: name for name in AGENT_OPTIONAL}
SUFFIXES = (".csv", ".gz", ".ndjson", ".jsonl", ".json", ".parquet", ".zip", ".eval")


@dataclass(frozen=True)
class UploadedPart:
    """A file as it came: open, and at its beginning; `name` is the sender's."""

    file: BinaryIO
    name: str
    n_bytes: int


@dataclass(frozen=True)
class Form:
    """How a file is to be read: its format, None where that is looked for, and what that leaves to choose."""

    name: str | None = None
    metric: str | None = None
    filter: str | None = None


class _InEnvelope(importers.ImportOptions):
    is_strict = True

    def place(self, field: str) -> str:
        """Where a field is stated: its path in the envelope, or the parameter of the address."""
        return next((f"agent.{key}" for key, of in OF_AGENT.items() if of == field), field)


def read_upload(
    upload: UploadedPart,
    fields: Mapping[str, Any],
    *,
    benchmark: Benchmark,
    tasks: Sequence[str],
    form: Form,
    as_of: datetime,
) -> Body:
    """Check envelope and file and return them, or raise Faulty with every fault at once.

    `tasks` are the names of the benchmark's tasks.
    """
    name = _name(upload, form)
    faults = envelope_faults(fields)
    known = KnownTasks(tasks, benchmark.slug)
    faulty = {
        column
        for key, column in COLUMN.items()
        if any(one.field in ("agent", f"agent.{key}") for one in faults)
    }
    columns = {name: column for name, column in columns_of(fields).items() if name not in faulty}
    try:
        if name == FLAT:
            upload.file.seek(0)
            flat = read(
                upload.file,
                as_of=as_of,
                name=upload.name,
                limits=DELIVERED,
                constants={"benchmark": benchmark.slug, **columns},
                known_as={"benchmark": (benchmark.title,)},
                optional=("submitted_at",),
                strange_task=known,
            )
            notes: tuple[str, ...] = ()
        elif faults:
            raise together(faults, (), 0)
        else:
            _looked_through(upload.file, DELIVERED)
            options = _options(fields, form)
            flat, notes = _imported(upload, name, options, benchmark=benchmark.slug, tasks=tasks, as_of=as_of)
    except FlatFileError as error:
        faults_once = list(_once(error.faults))
        n = error.n_faults - len(error.faults) + len(faults_once)
        raise together(faults, faults_once, n, error.note) from None
    misplaced = list(_misplaced(flat, known))
    if faults or misplaced:
        raise together(faults, misplaced, len(misplaced), flat.row_note if misplaced else "")

    def sha256() -> bytes:
        """Of what was decoded, and of the bytes of the file once decompressed."""
        text = json.dumps([[name, form.metric, form.filter], dict(fields)], sort_keys=True).encode()
        return hashlib.sha256(text + _looked_through(upload.file)).digest()

    if np.isnat(flat.submitted_at).all():  # a file without a date is of its delivery's
        now = np.datetime64(as_of.astimezone(UTC).replace(tzinfo=None), "s")
        known_day = np.zeros(flat.n_rows, np.bool_)
        flat = replace(flat, submitted_at=np.full(flat.n_rows, now), imprecise=known_day)
    return Body(fields, flat, sha256, notes)


def _imported(
    upload: UploadedPart, name: str, options: _InEnvelope, **known: Any
) -> tuple[FlatFile, tuple[str, ...]]:
    """A file of another project's format, as bounded as a JSON body, and how it was read."""
    with _with_path(upload) as path:
        imported = importers.read(
            path, name=name, called=upload.name, options=options, limits=SUBMISSION, **known
        )
    return imported.flat, (f"read as {imported.format}", *imported.notes)


def _name(upload: UploadedPart, form: Form) -> str:
    if form.name is not None:
        if form.name not in importers.FORMATS:
            known = ", ".join(importers.FORMATS)
            raise Refusal(f"Unknown format {form.name[:80]!r}. Use one of {known}.", code="unknown_format")
        return form.name
    if upload.name.lower().endswith(TABLES):
        return FLAT
    with _with_path(upload) as path:
        return importers.sniff(path, called=upload.name) or FLAT


def _once(faults: Iterable[Fault]) -> Iterator[Fault]:
    """Tell at its first row alone what is wrong with the agent in the same way in many rows."""
    seen = set()
    for one in faults:
        key = (one.field, one.value, one.rule)
        if key not in seen:
            yield one
        if ALIASES.get(one.field or "", one.field) in COLUMN.values():
            seen.add(key)


def _options(fields: Mapping[str, Any], form: Form) -> _InEnvelope:
    texts = {}
    for name in ("submitted_at", "run"):
        text = text_of(fields.get(name))
        if isinstance(text, ValueError):
            raise together([fault(name, fields[name], str(text))], (), 0)
        texts[name] = text or None
    agent = fields.get("agent") or {}
    of_agent = {column: agent.get(key) or None for key, column in OF_AGENT.items()}
    return _InEnvelope(**of_agent, **texts, metric=form.metric, filter=form.filter)


@contextmanager
def _with_path(upload: UploadedPart) -> Iterator[Path]:
    suffixes = "".join(one for one in PurePath(upload.name.lower()).suffixes[-2:] if one in SUFFIXES)
    with TemporaryDirectory(prefix="bst-") as folder:
        path = Path(folder, f"upload{suffixes}")
        upload.file.seek(0)
        with path.open("wb") as copy:
            copyfileobj(upload.file, copy)
        yield path


def _misplaced(flat: FlatFile, known: KnownTasks) -> Iterator[Fault]:
    """Tell a second agent, and tasks that are none where no reader has looked."""
    if len(flat.agents) > 1:
        row = int(np.flatnonzero(flat.agent != flat.agent[0])[0])
        rule = f"a submission holds one agent, and row {flat.row(0)} has {flat.agents[flat.agent[0]]!r}"
        yield Fault(flat.row(row), "agent", flat.agents[flat.agent[row]], rule)
    strange = [code for code, name in enumerate(flat.tasks) if known(name)]
    for row in np.flatnonzero(np.isin(flat.task, strange)).tolist() if strange else ():
        name = flat.tasks[flat.task[row]]
        yield Fault(flat.row(row), "task", name, known(name) or "")


def _looked_through(file: BinaryIO, limits: Limits | None = None) -> bytes:
    """Hash the bytes, decompressed where they are compressed; with `limits` refuse a bomb before it is read.

    Whatever else is wrong the reader tells better.
    """
    digest, n_bytes = hashlib.sha256(), 0
    file.seek(0)
    is_zipped = file.read(len(GZIP)) == GZIP
    file.seek(0)
    plain = GzipFile(fileobj=GzipMembers(file) if limits else file) if is_zipped else file
    with suppress(EOFError, OSError, zlib.error):
        while block := plain.read(BLOCK_BYTES):
            digest.update(block)
            n_bytes += len(block)
            if is_zipped and limits:
                limits.check_bytes(n_bytes)
                limits.check_ratio(n_bytes, file.tell())
    return digest.digest()
