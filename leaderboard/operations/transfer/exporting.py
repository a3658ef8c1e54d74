"""A benchmark into a file."""

import json
import zipfile
from pathlib import Path
from typing import Any

from django.db import connection, transaction

from leaderboard import schema
from leaderboard.accounts.models import User
from leaderboard.catalog.models import Benchmark
from leaderboard.errors import Conflict
from leaderboard.operations.models import ReselectionStatus
from leaderboard.operations.transfer.tables import (
    ABOUT,
    NAMED,
    PATHS,
    AnyModel,
    TransferSummary,
    columns,
    rows_of,
    table,
    transfer_summary,
)
from leaderboard.submissions.copying import text_out
from leaderboard.submissions.models import Status, Submission

UNDECIDED = (Status.CHECKING, Status.WAITING)


@transaction.atomic
def export_benchmark(*, benchmark: Benchmark, file: Path) -> TransferSummary:
    """Write one state of a benchmark; the service may go on."""
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    benchmark = Benchmark.objects.get(pk=benchmark.pk)
    _check_decided(benchmark)
    about = _about(benchmark)
    with file.open("xb") as target, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        file.chmod(0o600)  # it holds addresses
        for model in PATHS:
            names = [field.attname for field in columns(model)]
            with archive.open(table(model), "w", force_zip64=True) as part:
                for block in text_out(rows_of(model, benchmark).values_list(*names)):
                    part.write(block)
        archive.writestr(ABOUT, json.dumps(about, ensure_ascii=False, indent=1))
    return transfer_summary(benchmark, n_accounts=len(about["names"][table(User)]))


def _check_decided(benchmark: Benchmark) -> None:
    """What waits is decided by rights that stay behind: those of the token that delivered it."""
    waiting = Submission.objects.filter(agent__benchmark=benchmark, status__in=UNDECIDED)
    if n := waiting.count():
        waiting_text = "1 submission waits" if n == 1 else f"{n:,} submissions wait"
        raise Conflict(
            f"{waiting_text} for a check, a review or the end of an embargo: let that be over first.",
            code="undecided",
        )
    if benchmark.reselections.filter(status=ReselectionStatus.PROPOSED).exists():
        raise Conflict("Another subset is proposed: approve or reject it.", code="undecided")


def _about(benchmark: Benchmark) -> dict[str, Any]:
    """What the rows do not say: which tables they fit, who they point to."""
    active = benchmark.tasks.filter(retired_at=None).order_by("name")
    return {
        "benchmark": benchmark.slug,
        "migrations": sorted(schema.known()),
        "names": {table(model): _names(model, benchmark) for model in NAMED},
        "active": list(active.values_list("pk", flat=True)),
    }


def _names(named: AnyModel, benchmark: Benchmark) -> dict[int, str]:
    """Those that the rows point to, by id."""
    ids: set[int | None] = set()
    for model in PATHS:
        for field in columns(model):
            if field.related_model is named:
                rows = rows_of(model, benchmark).order_by().distinct()
                ids |= set(rows.values_list(field.attname, flat=True))
    named_rows = named._default_manager.filter(pk__in=ids - {None}).order_by("pk")
    return dict(named_rows.values_list("pk", NAMED[named]))
