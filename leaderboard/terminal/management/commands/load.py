"""Load a file of outcomes."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.utils import timezone

from leaderboard.catalog.models import Task
from leaderboard.catalog.queries import benchmark_of, policy_in_force
from leaderboard.operations.coverage import is_partial, offered, warnings
from leaderboard.operations.loading import LoadReport, load
from leaderboard.operations.restoring import restore
from leaderboard.operations.stated import stated_in
from leaderboard.studies.answers import words
from leaderboard.studies.versions import versions_in
from leaderboard.submissions.parsing import importers
from leaderboard.submissions.parsing.flat import FlatFile, read_file
from leaderboard.submissions.parsing.importers import FORMATS, Imported, Stated
from leaderboard.terminal.arguments import check_slug, reading
from leaderboard.terminal.command import ServiceCommand
from leaderboard.terminal.printing import progress_bar, refusals_as_errors

STATED = {
    "agent": "name of the agent",
    "scaffold": "harness around the model",
    "model": "the model",
    "submitted_at": "date of the submission",
    "run": "label of the run",
    "metric": "metric, scorer or reward that counts",
    "filter": "filter of answers that counts (lm-eval)",
}


class Command(ServiceCommand):
    help = (
        "Load a file of outcomes into a benchmark, which is made if it is new: a flat file (CSV, CSV.gz, "
        "NDJSON or Parquet; see docs/flat-file.md), or the results of another project, as a file or a folder "
        "(see docs/formats.md). All rows are stored or none; rows that are stored already are skipped."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--benchmark", required=True, metavar="SLUG", help="its name in addresses")
        parser.add_argument(
            "--format", metavar="NAME", help=f"of the file, where it is not told: {', '.join(FORMATS)}"
        )
        for name, told in STATED.items():
            parser.add_argument(f"--{name.replace('_', '-')}", help=f"{told}, where the file does not say")
        parser.add_argument("--only", metavar="NAME", help="the one to load, of a file of several benchmarks")
        parser.add_argument("--dry-run", action="store_true", help="check and count, store nothing")
        parser.add_argument(
            "--replace", action="store_true", help="supersede submissions whose outcomes the file contradicts"
        )
        parser.add_argument(
            "--subsets", type=Path, metavar="FILE", help="what `export --with-subsets` wrote beside the file"
        )

    def handle(
        self,
        *,
        file: Path,
        benchmark: str,
        format: str | None,  # as the option is called
        only: str | None,
        dry_run: bool,
        replace: bool,
        subsets: Path | None,
        **options: Any,
    ) -> None:
        stated = Stated(**{name: options.get(name) for name in STATED})
        with refusals_as_errors():
            imported = read_any(file, name=format, stated=stated, slug=benchmark, only=only)
            flat = imported.flat
            if subsets:
                report = put_back(flat, slug=benchmark, dry_run=dry_run, subsets=subsets)
            else:
                report = store(flat, slug=benchmark, dry_run=dry_run, replace=replace)
        self.stdout.write(read_as(imported, file) + summary(report, dry_run=dry_run) + notes(flat))
        if not dry_run:
            self.stdout.write(
                _warned(flat, benchmark) + _offer(flat, benchmark) + f"Next: manage.py recompute {benchmark}"
            )


def read(file: Path, *, only: str | None = None) -> FlatFile:
    expected = "a flat file of outcomes (CSV, CSV.gz, NDJSON or Parquet; see docs/flat-file.md)"
    with reading(file, expected), progress_bar(f"Reading {file.name}") as progress:
        return read_file(file, as_of=timezone.now(), progress=progress, only=only)


def read_any(file: Path, *, name: str | None, stated: Stated, slug: str, only: str | None) -> Imported:
    """Read a file or a folder of any format, by its name or as it looks."""
    check_slug(slug)
    expected = "a file or a folder of outcomes (see docs/formats.md)"
    with reading(file, expected, folders=True), progress_bar(f"Reading {file.name}") as progress:
        return importers.read(
            file,
            name=name,
            stated=stated,
            benchmark=slug,
            tasks=_tasks(slug),
            as_of=timezone.now(),
            progress=progress,
            only=only,
        )


def _tasks(slug: str) -> list[str]:
    """The names of the benchmark's tasks; none of one that is not there yet."""
    return list(Task.objects.filter(benchmark__slug=slug, retired_at=None).values_list("name", flat=True))


def read_as(imported: Imported, file: Path) -> str:
    """Say what a file was taken for, and what its reader has to tell; of a flat file nothing."""
    if imported.format == "flat":
        return ""
    return "".join(f"{line}\n" for line in (f"Read as {imported.format}: {file.name}.", *imported.notes))


def store(flat: FlatFile, *, slug: str, dry_run: bool = False, replace: bool = False) -> LoadReport:
    check_slug(slug)
    with progress_bar("Storing") as progress:
        return load(
            flat=flat, slug=slug, as_of=timezone.now(), dry_run=dry_run, replace=replace, progress=progress
        )


def put_back(flat: FlatFile, *, slug: str, dry_run: bool, subsets: Path) -> LoadReport:
    """Load an export with what was decided about it."""
    check_slug(slug)
    with reading(subsets, "what `export --with-subsets` writes"):
        beside = versions_in(subsets.read_bytes())
    with progress_bar("Storing") as progress:
        return restore(
            flat=flat, beside=beside, slug=slug, as_of=timezone.now(), dry_run=dry_run, progress=progress
        )


def notes(flat: FlatFile) -> str:
    """Say which columns were taken for others, and which were kept as they are."""
    lines = [f"\nThe column {alias} was read as {column}." for alias, column in flat.aliases.items()]
    stated = stated_in(flat)
    if stated.taken:
        lines.append(f"\nTaken for the agent or the submission: {', '.join(stated.taken)}.")
    if kept := [name for name in stated.flat.metadata if name not in flat.labels]:
        lines.append(f"\nKept as metadata: {', '.join(kept)}.")
    return "".join(lines)


def _warned(flat: FlatFile, slug: str) -> str:
    """Say what was stored and does not count as it stands."""
    return "".join(f"{told}\n" for told in warnings(flat, benchmark_of(slug)))


def _offer(flat: FlatFile, slug: str) -> str:
    """Where most agents cannot be ranked, say on which tasks they could be."""
    benchmark = benchmark_of(slug)
    if policy_in_force(benchmark).universe is not None or not is_partial(flat, benchmark):
        return ""
    offer = offered(benchmark)
    return offer and f"{offer}: manage.py policy {slug} --set universe=common\n"


def summary(report: LoadReport, *, dry_run: bool) -> str:
    said = "Would store" if dry_run else "Stored"
    replaced = f", {report.n_replaced:,} replaced" if report.n_replaced else ""
    new_tasks = f", {report.n_new_tasks:,} of them new" if report.n_new_tasks else ""
    submissions, agents, tasks = (
        words.counted(n, noun)
        for n, noun in (
            (report.n_submissions, "submission"),
            (report.n_agents, "agent"),
            (report.n_tasks, "task"),
        )
    )
    return (
        f"{said} in {report.benchmark}: {report.n_new:,} new{replaced}, {report.n_same:,} already there; "
        f"{submissions} from {agents} on {tasks}{new_tasks}."
    )
