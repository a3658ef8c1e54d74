"""A file that an operator sends through the admin: looked at first, and stored on confirmation."""

import json
import resource
import shlex
import subprocess
import sys
from argparse import ArgumentError, ArgumentParser
from collections.abc import Sequence
from dataclasses import replace as replaced
from datetime import datetime
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

from django.db import transaction

from leaderboard.accounts.models import User
from leaderboard.catalog.models import NAME_LENGTH, Benchmark
from leaderboard.errors import Missing, Refusal
from leaderboard.operations.acting import acting
from leaderboard.operations.loading import LoadReport, load
from leaderboard.operations.models import Upload
from leaderboard.operations.scheduler.children import environment
from leaderboard.submissions.parsing.flat import (
    FILE,
    FlatFile,
    add_table_options,
    is_table,
    read_outcomes,
    table_options,
)
from leaderboard.submissions.parsing.task_list import ListedTask, read_tasks

LARGEST = 64 * 2**20  # bytes
KINDS = (".csv", ".csv.gz", ".tsv", ".xlsx", ".ndjson", ".ndjson.gz", ".jsonl", ".parquet")
MAX_SECONDS = 60  # for reading a table
MAX_MEMORY = 4 << 30  # bytes, for the same
UPLOADED = replaced(FILE, memory=2 << 30)


def no_such_upload() -> Missing:
    return Missing(
        "This file was stored already, or dropped after a day; send it again.", code="no_such_upload"
    )


def keep(*, benchmark: Benchmark, by: User, name: str, content: bytes, as_of: datetime) -> Upload:
    if len(content) > LARGEST:
        raise Refusal(
            "A file has at most 64 MiB here; load larger ones at the command line.", code="too_large"
        )
    short = PurePath(name.replace("\\", "/")).name[-NAME_LENGTH:]
    if _suffix(short) is None:
        raise Refusal(
            "A file of outcomes is CSV, .xlsx, NDJSON or Parquet, as its name says; CSV and NDJSON also "
            "gzipped.",
            code="unknown_kind",
        )
    return Upload.objects.create(benchmark=benchmark, by=by, name=short, content=content, created_at=as_of)


def preview(
    *, upload: Upload, replace: bool, as_of: datetime, own: bool = False, options: str = ""
) -> LoadReport:
    """Say what storing the file would do, and store nothing; `options` are those of a table, as one types."""
    flat, notes = _read(upload, options, as_of)
    slug = upload.benchmark.slug
    report = load(flat=flat, slug=slug, as_of=as_of, replace=replace, own=own, dry_run=True)
    return replaced(report, notes=(*notes, *report.notes))


@transaction.atomic
def store(
    *,
    upload: Upload,
    replace: bool,
    by: User,
    reason: str,
    as_of: datetime,
    own: bool = False,
    options: str = "",
) -> LoadReport:
    uploads = Upload.objects.select_for_update(of=("self",)).select_related("benchmark").filter(pk=upload.pk)
    upload_row = uploads.first()
    if upload_row is None:
        raise no_such_upload()
    with acting(by=by, reason=reason):
        flat, slug = _read(upload_row, options, as_of)[0], upload_row.benchmark.slug
        report = load(flat=flat, slug=slug, as_of=as_of, replace=replace, own=own, by=by, reason=reason)
    upload_row.delete()
    return report


def upload_of(uuid: UUID | str, *, benchmark: Benchmark, by: User) -> Upload:
    upload = Upload.objects.select_related("benchmark").filter(uuid=uuid, benchmark=benchmark, by=by).first()
    if upload is None:
        raise no_such_upload()
    return upload


def tasks_in(content: bytes) -> list[ListedTask]:
    with TemporaryDirectory() as folder:
        path = Path(folder, "tasks")
        path.write_bytes(content)
        return read_tasks(path)


def _suffix(name: str) -> str | None:
    return max((kind for kind in KINDS if name.lower().endswith(kind)), key=len, default=None)


def _read(upload: Upload, options: str, as_of: datetime) -> tuple[FlatFile, list[str]]:
    """The file, whose own name is nowhere a path, and how it was read where it is a table of people."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    add_table_options(parser)
    try:
        words = shlex.split(options)
        known, others = parser.parse_known_args(words)
    except (ArgumentError, ValueError) as error:
        raise Refusal(f"Reading options: {error}.") from None
    if others:
        there = "--column, --sheet, --wide, --long, --blank, --percent"
        raise Refusal(f"Reading options: {others[0]} is none of {there}.")
    with TemporaryDirectory() as folder:
        path = Path(folder, f"{upload.benchmark.slug}{_suffix(upload.name)}")
        path.write_bytes(bytes(upload.content))
        if not is_table(path, table_options(vars(known))):
            return read_outcomes(path, as_of=as_of, called=upload.name, limits=UPLOADED)[0], []
        flat, note = _as_flat(path, words, called=upload.name)
        return read_outcomes(flat, as_of=as_of)[0], [note]


def _as_flat(path: Path, options: Sequence[str], *, called: str) -> tuple[Path, str]:
    """Let a process of its own read a table: no web worker imports pandas, or holds a workbook."""
    out = path.with_name("flat.parquet")
    command = [sys.executable, "-m", "analytics", "table", str(path), "--to", str(out), "--json", *options]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment(), **pipes) as process:
        resource.prlimit(process.pid, resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
        try:
            answer, why = process.communicate(timeout=MAX_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise Refusal("The table takes too long to read. Load it on the command line.") from None
    if process.returncode and (not why or "MemoryError" in why):
        raise Refusal("The table takes too much memory to read. Load it on the command line.")
    if process.returncode:
        why = why.strip().removeprefix("python -m analytics table: ")
        raise Refusal(why.replace(path.name, called, 1))
    return out, json.loads(answer)["read_as"].replace(path.name, called, 1)
