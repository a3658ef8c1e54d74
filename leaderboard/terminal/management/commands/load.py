"""Load a file of outcomes."""

from argparse import ArgumentParser
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.utils import timezone

from leaderboard.catalog.models import Task
from leaderboard.catalog.queries import benchmark_of, policy_in_force
from leaderboard.errors import Faulty
from leaderboard.operations.coverage import fed_by, is_partial, offered, warnings
from leaderboard.operations.loading import LoadReport, load
from leaderboard.operations.restoring import restore
from leaderboard.operations.stated import stated_in
from leaderboard.studies.answers import words
from leaderboard.studies.versions import versions_in
from leaderboard.submissions.parsing import importers
from leaderboard.submissions.parsing.flat import FlatFile, read_file
from leaderboard.submissions.parsing.importers import FLAT, FORMATS, Imported, Stated
from leaderboard.terminal.arguments import check_slug, reading
from leaderboard.terminal.command import ServiceCommand
from leaderboard.terminal.printing import progress_bar, refusals_as_errors

NAMED = {"agent": "name of the agent", "scaffold": "harness around the model", "model": "the model"}
STATED = {
    "submitted_at": "date of the submission",
    "run": "label of the run",
    "metric": "metric, scorer or reward that counts",
    "filter": "filter of answers that counts (lm-eval)",
}


class Command(ServiceCommand):
    help = (
        "Load outcomes into a benchmark, which is made if it is new: flat files (CSV, CSV.gz, NDJSON or "
        "Parquet; see docs/flat-file.md), or the results of other projects, as files or folders (see "
        "docs/formats.md). All rows are stored or none; rows that are stored already are skipped."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", type=Path, nargs="+", metavar="PATH", help="files or folders")
        parser.add_argument("--benchmark", required=True, metavar="SLUG", help="its name in addresses")
        parser.add_argument(
            "--format", metavar="NAME", help=f"of the files, where it is not told: {', '.join(FORMATS)}"
        )
        for name, told in NAMED.items():
            parser.add_argument(
                f"--{name}", help=f"{told}, also where a file of another project names another"
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
        files: list[Path],
        benchmark: str,
        format: str | None,  # as the option is called
        only: str | None,
        dry_run: bool,
        replace: bool,
        subsets: Path | None,
        **options: Any,
    ) -> None:
        stated = Stated(**{name: options.get(name) for name in (*NAMED, *STATED)})
        with refusals_as_errors():
            found = read_all(files, name=format, stated=stated, slug=benchmark, only=only)
            flat = {one.called: one.flat for one in found} if len(found) > 1 else found[0].flat
            if subsets:
                report = put_back(flat, slug=benchmark, dry_run=dry_run, subsets=subsets)
            else:
                report = store(flat, slug=benchmark, dry_run=dry_run, replace=replace)
        stored = [one.flat for one in found]
        self.stdout.write("".join(map(read_as, found)) + summary(report, dry_run=dry_run) + notes(*stored))
        if not dry_run:
            told = _warned(stored, benchmark) + _offer(stored, benchmark) + _fed(benchmark)
            self.stdout.write(f"{told}Next: manage.py recompute {benchmark}")


def read(file: Path, *, only: str | None = None) -> FlatFile:
    expected = "a flat file of outcomes (CSV, CSV.gz, NDJSON or Parquet; see docs/flat-file.md)"
    with reading(file, expected), progress_bar(f"Reading {file.name}") as progress:
        return read_file(file, as_of=timezone.now(), progress=progress, only=only)


def read_all(
    files: Sequence[Path], *, name: str | None, stated: Stated, slug: str, only: str | None
) -> list[Imported]:
    """Read files and folders of any format: flat ones one by one, all of another as if in one folder."""
    check_slug(slug)
    paths, refusals, found = list(dict.fromkeys(files)), list[Faulty](), list[Imported]()
    for first, *others in _groups(paths, name, refusals):
        with _reading(first, refusals), progress_bar(f"Reading {first.name}") as progress:
            found.append(
                importers.read(
                    first,
                    *others,
                    name=name,
                    stated=stated,
                    benchmark=slug,
                    tasks=_tasks(slug),
                    as_of=timezone.now(),
                    progress=progress,
                    only=only,
                    in_full=len(paths) > 1,
                )
            )
    if refusals:
        raise _together(refusals)
    return found


def _groups(paths: Sequence[Path], name: str | None, refusals: list[Faulty]) -> list[list[Path]]:
    """Put the paths of one format together, but for flat files."""
    groups: dict[str, list[Path]] = {}
    for path in paths:
        with _reading(path, refusals):
            found = importers.format_of(path, name, str(path) if len(paths) > 1 else None)
            groups.setdefault(f"{path}" if found == FLAT else found, []).append(path)
    return list(groups.values())


@contextmanager
def _reading(path: Path, refusals: list[Faulty]) -> Iterator[None]:
    """Keep a refusal for the end: the faults of all files are told at once."""
    try:
        with reading(path, "a file or a folder of outcomes (see docs/formats.md)", folders=True):
            yield
    except Faulty as refusal:
        refusals.append(refusal)


def _together(refusals: Sequence[Faulty]) -> Faulty:
    faults = tuple(fault for refusal in refusals for fault in refusal.faults)
    n_faults = sum(refusal.n_faults for refusal in refusals)
    return Faulty("\n".join(map(str, refusals)), faults=faults, n_faults=n_faults)


def _tasks(slug: str) -> list[str]:
    """The names of the benchmark's tasks; none of one that is not there yet."""
    return list(Task.objects.filter(benchmark__slug=slug, retired_at=None).values_list("name", flat=True))


def read_as(imported: Imported) -> str:
    """Say what files were taken for, and what their reader has to tell; of a flat file nothing."""
    if imported.format == "flat":
        return ""
    head = f"Read as {imported.format}: {imported.called}."
    return "".join(f"{line}\n" for line in (head, *imported.notes))


def store(
    flat: FlatFile | Mapping[str, FlatFile], *, slug: str, dry_run: bool = False, replace: bool = False
) -> LoadReport:
    check_slug(slug)
    with progress_bar("Storing") as progress:
        return load(
            flat=flat, slug=slug, as_of=timezone.now(), dry_run=dry_run, replace=replace, progress=progress
        )


def put_back(
    flat: FlatFile | Mapping[str, FlatFile], *, slug: str, dry_run: bool, subsets: Path
) -> LoadReport:
    """Load an export with what was decided about it."""
    check_slug(slug)
    with reading(subsets, "what `export --with-subsets` writes"):
        beside = versions_in(subsets.read_bytes())
    with progress_bar("Storing") as progress:
        return restore(
            flat=flat, beside=beside, slug=slug, as_of=timezone.now(), dry_run=dry_run, progress=progress
        )


def notes(*files: FlatFile) -> str:
    """Say which columns were taken for others, and which were kept as they are."""
    return "".join(dict.fromkeys(line for flat in files for line in _notes_of(flat)))


def _notes_of(flat: FlatFile) -> list[str]:
    lines = [f"\nThe column {alias} was read as {column}." for alias, column in flat.aliases.items()]
    stated = stated_in(flat)
    if stated.taken:
        lines.append(f"\nTaken for the agent or the submission: {', '.join(stated.taken)}.")
    if labels := [name for name in stated.flat.metadata if name in stated.flat.labels]:
        lines.append(f"\nTaken for what people say: {', '.join(labels)}.")
    if kept := [name for name in stated.flat.metadata if name not in stated.flat.labels]:
        lines.append(f"\nKept as metadata: {', '.join(kept)}.")
    return lines


def _warned(files: Collection[FlatFile], slug: str) -> str:
    """Say what was stored and does not count as it stands."""
    return "".join(f"{told}\n" for told in warnings(files, benchmark_of(slug)))


def _offer(files: Collection[FlatFile], slug: str) -> str:
    """Where most agents cannot be ranked, say on which tasks they could be."""
    benchmark = benchmark_of(slug)
    is_whole = not any(is_partial(flat, benchmark) for flat in files)
    if policy_in_force(benchmark).universe is not None or is_whole:
        return ""
    offer = offered(benchmark)
    return offer and f"{offer}: manage.py policy {slug} --set universe=common\n"


def _fed(slug: str) -> str:
    """Where one account submits everything, say that two of its agents teach, and how that is changed."""
    account = fed_by(benchmark_of(slug))
    if account is None:
        return ""
    return (
        f"All submitted agents are of {account.email}: pass rates, calibration and alerts take two of them. "
        f"If this is your own CI: manage.py trust {slug} {account.email} --reason TEXT\n"
    )


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
        f"{submissions} from {agents} on {tasks}{new_tasks}." + "".join(f"\n{note}" for note in report.notes)
    )
