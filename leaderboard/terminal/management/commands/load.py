import shlex
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from django.core.management.base import CommandError
from django.utils import timezone

from leaderboard.called import PROGRAM
from leaderboard.catalog.models import Assigning, Task
from leaderboard.catalog.queries import benchmark_of, policy_in_force
from leaderboard.errors import Faulty, Refusal
from leaderboard.operations.file_metadata import FileMetadata
from leaderboard.operations.loading import LoadReport, load
from leaderboard.operations.previews import is_partial, loader_of, missing_proposal, offer_text, warnings
from leaderboard.studies.answers import progress_bar, words
from leaderboard.studies.versions import versions_in
from leaderboard.submissions.parsing import importers
from leaderboard.submissions.parsing.flat import (
    AS_FOUND,
    FlatFile,
    TableOptions,
    add_table_options,
    read_outcomes,
    table_options,
)
from leaderboard.submissions.parsing.importers import FLAT, FORMATS, Imported, ImportOptions, Source
from leaderboard.terminal.command import USAGE, ServiceCommand, check_slug, fault_lines, file_path, reading

NAMED = {"agent": "name of the agent", "scaffold": "harness around the model", "model": "the model"}
N_REPLAYED = 10  # agents, at least
METADATA = {
    "submitted_at": "date of the submission",
    "run": "label of the run",
    "metric": "metric, scorer or reward that counts",
    "filter": "filter of answers that counts (lm-eval)",
}


EXPECTED = "a file or a folder of outcomes (see docs/formats.md)"
OUTCOMES = "a file of outcomes (see docs/flat-file.md and docs/formats.md)"


class Command(ServiceCommand):
    help = (
        "Load results into a benchmark; a new one is created. Takes flat files (CSV, CSV.gz, NDJSON, "
        "Parquet; see docs/flat-file.md), your own tables (.xlsx, CSV), and results of other projects (see "
        "docs/formats.md). Stores all rows or none, and skips rows that are already stored."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", type=file_path, nargs="+", metavar="PATH", help="files or folders")
        parser.add_argument("--benchmark", required=True, metavar="SLUG", help="its name in addresses")
        parser.add_argument(
            "--format", metavar="NAME", help=f"format, if not recognised: {', '.join(FORMATS)}"
        )
        for name, help_text in NAMED.items():
            parser.add_argument(f"--{name}", help=f"{help_text}; overrides files of other projects")
        for name, help_text in METADATA.items():
            parser.add_argument(
                f"--{name.replace('_', '-')}", help=f"{help_text}, if the file does not state it"
            )
        parser.add_argument(
            "--only", metavar="NAME", help="which benchmark to load, if the file holds several"
        )
        parser.add_argument("--dry-run", action="store_true", help="check and count, store nothing")
        parser.add_argument(
            "--replace", action="store_true", help="replace stored results and costs that differ"
        )
        parser.add_argument(
            "--own",
            action="store_true",
            help="take over agents that submitters own, and withdraw what these submitted",
        )
        parser.add_argument(
            "--subsets", type=file_path, metavar="FILE", help="the file that `export --with-subsets` wrote"
        )
        add_table_options(parser)

    def handle(
        self,
        *,
        files: list[Path],
        benchmark: str,
        format: str | None,  # as the option is called
        only: str | None,
        dry_run: bool,
        replace: bool,
        own: bool,
        subsets: Path | None,
        **options: Any,
    ) -> None:
        names = ImportOptions(**{name: options.get(name) for name in (*NAMED, *METADATA)})
        table = table_options(options, benchmark=benchmark)
        imported = read_all(files, name=format, options=names, slug=benchmark, only=only, table=table)
        flat = {one.called: one.flat for one in imported} if len(imported) > 1 else imported[0].flat
        how: dict[str, Any] = {"replace": replace, "own": own}
        if subsets and (replace or own):
            option = "--replace" if replace else "--own"
            raise CommandError(
                f"--subsets is for a new benchmark, {option} for one that has results. Leave one out.",
                returncode=USAGE,
            )
        if subsets:
            with reading(subsets, "what `export --with-subsets` writes"):
                how = {"versions": versions_in(subsets.read_bytes())}
        report = store(flat, slug=benchmark, dry_run=dry_run, **how)
        stored = [one.flat for one in imported]
        text = summary(report, dry_run=dry_run) + notes(*stored, report=report, replace=replace)
        self.stdout.write("".join(map(read_as, imported)) + text)
        if not dry_run:
            # what was stored and does not count as it stands
            hints = "".join(f"{warning}\n" for warning in warnings(stored, benchmark_of(benchmark)))
            hints += _offer(stored, benchmark) + _fed_text(benchmark) + _undated_text(stored, benchmark)
            if report.n_new + report.n_replaced + report.n_named:
                hints += f"Next: {PROGRAM} recompute {benchmark}"
            self.stdout.write(hints)


def read(file: Path, *, only: str | None = None, table: TableOptions = AS_FOUND) -> tuple[FlatFile, str]:
    """Read a file of outcomes; the sentence says how, of a table of people."""
    with reading(file, OUTCOMES), progress_bar(f"Reading {file.name}") as progress:
        return read_outcomes(file, as_of=timezone.now(), progress=progress, only=only, table=table)


def read_all(
    files: Sequence[Path],
    *,
    name: str | None,
    options: ImportOptions,
    slug: str,
    only: str | None,
    table: TableOptions,
) -> list[Imported]:
    """Read files and folders of any format: flat ones one by one, all of another as if in one folder."""
    check_slug(slug)
    paths, refusals, imported = list(dict.fromkeys(files)), list[Faulty | CommandError](), list[Imported]()
    name = name or (FLAT if table.is_given else None)
    known = Task.objects.filter(benchmark__slug=slug, retired_at=None)
    tasks = list(known.values_list("name", flat=True))
    for group in _groups(paths, name, refusals):
        first = group[0]
        reads = reading(first.root, EXPECTED, folders=True)
        with _collecting(refusals), reads, progress_bar(f"Reading {first.called}") as progress:
            imported.append(
                importers.read(
                    *group,
                    name=name,
                    options=options,
                    benchmark=slug,
                    tasks=tasks,
                    as_of=timezone.now(),
                    progress=progress,
                    only=only,
                    table=table,
                )
            )
    if refusals:
        raise _together(refusals)
    _check_one_benchmark(imported, slug)
    return imported


def _groups(
    paths: Sequence[Path], name: str | None, refusals: list[Faulty | CommandError]
) -> list[list[Source]]:
    """Put the paths of one format together, but for flat files."""
    groups: dict[str, list[Source]] = {}
    for path in paths:
        reads = reading(path, EXPECTED, folders=True)
        with _collecting(refusals), reads, progress_bar(f"Looking through {path.name}", "files") as progress:
            source = importers.looked_into(path, name, in_full=len(paths) > 1, progress=progress)
            groups.setdefault(f"{path}" if source.format == FLAT else source.format, []).append(source)
    return list(groups.values())


@contextmanager
def _collecting(refusals: list[Faulty | CommandError]) -> Iterator[None]:
    """Keep a refusal for the end: what is wrong with all paths is told at once."""
    try:
        yield
    except (Faulty, CommandError) as refusal:
        refusals.append(refusal)


def _together(refusals: Sequence[Faulty | CommandError]) -> Faulty | CommandError:
    """One refusal of all; a path that is not there is a wrong argument, whatever else is wrong."""
    faulty = [refusal for refusal in refusals if isinstance(refusal, Faulty)]
    joined = Faulty(
        "\n".join(map(str, refusals)),
        faults=tuple(fault for refusal in faulty for fault in refusal.faults),
        n_faults=sum(refusal.n_faults for refusal in faulty),
    )
    if len(faulty) == len(refusals):
        return joined
    return CommandError("\n  ".join([str(joined), *fault_lines(joined)]), returncode=USAGE)


def _check_one_benchmark(imported: Sequence[Imported], slug: str) -> None:
    """Refuse flat files that name different benchmarks, as one file of several is refused."""
    files = defaultdict[str, list[str]](list)
    for one in imported:
        if one.format == FLAT:
            files[one.flat.benchmark].append(one.called)
    if len(files) > 1:
        named = "; ".join(f'"{name}" in {", ".join(called)}' for name, called in files.items())
        first = shlex.join(next(iter(files.values())))
        raise Refusal(
            f"The files hold {len(files)} benchmarks: {named}. Nothing was stored. "
            f"Load them one by one: {PROGRAM} load {first} --benchmark {slug}"
        )


def read_as(imported: Imported) -> str:
    """Say what files were taken for, and what their reader has to tell; of tables how they were read."""
    head = [] if imported.format == FLAT else [f"Read as {imported.format}: {imported.called}."]
    return "".join(f"{line}\n" for line in (*head, *imported.notes))


def store(flat: FlatFile | Mapping[str, FlatFile], *, slug: str, **how: Any) -> LoadReport:
    """Load, as `how` says, and show the progress."""
    check_slug(slug)
    with progress_bar("Storing") as progress:
        return load(flat=flat, slug=slug, as_of=timezone.now(), progress=progress, **how)


def notes(*files: FlatFile, report: LoadReport, replace: bool = False) -> str:
    """Say what became of the other columns; those of results that are stored already stay as they were."""
    lines = []
    for flat in files:
        lines += [f"\nThe column {alias} was read as {column}." for alias, column in flat.aliases.items()]
        metadata = FileMetadata(flat)
        if metadata.taken:
            lines.append(f"\nOther columns stored: {', '.join(metadata.taken)}.")
        stay = "of results already stored stay as they are. To replace them,"
        if report.n_same and flat.measured and not replace:
            lines.append(f"\nCosts, tokens and times {stay} load this file again with --replace.")
        if report.n_same and metadata.flat.metadata:
            lines.append(f"\nNotes {stay} unload those submissions and load this file again.")
        if not report.n_new + report.n_replaced:
            continue
        if labels := [name for name in metadata.flat.metadata if name in metadata.flat.labels]:
            lines.append(f"\nHuman labels: {', '.join(labels)}.")
        if others := [name for name in metadata.flat.metadata if name not in metadata.flat.labels]:
            lines.append(f"\nKept as metadata: {', '.join(others)}.")
    return "".join(dict.fromkeys(lines))


def _offer(files: Collection[FlatFile], slug: str) -> str:
    benchmark = benchmark_of(slug)
    if not any(is_partial(flat, benchmark) for flat in files):
        return ""
    if proposal := missing_proposal(benchmark):
        return f"{proposal}\n"
    offer = "" if policy_in_force(benchmark).universe is not None else offer_text(benchmark)
    return offer and f"{offer}: {PROGRAM} policy {slug} --set universe=common\n"


def _fed_text(slug: str) -> str:
    """Where one account submits everything, say that two of its agents teach, and how that is changed."""
    account = loader_of(benchmark_of(slug))
    if account is None:
        return ""
    return (
        f"All submitted agents belong to {account.email}. Pass rates, calibration and alerts use two of "
        f"them. If this is your own CI: {PROGRAM} trust {slug} {account.email} --reason TEXT\n"
    )


def _undated_text(files: Collection[FlatFile], slug: str) -> str:
    names = {name for flat in files for name in flat.agents}
    dated = {flat.agents[i] for flat in files for i in np.unique(flat.agent[~np.isnat(flat.submitted_at)])}
    n = len(names - dated)
    is_replayed = policy_in_force(benchmark_of(slug)).assignment != Assigning.FULL
    if not n or len(names) < N_REPLAYED or not is_replayed:
        return ""
    return (
        f"{n:,} of {words.counted(len(names), 'agent')} {'has' if n == 1 else 'have'} no date, so a "
        "replay uses 20 random orders. To replay by date, state submitted_at for each agent.\n"
    )


def summary(report: LoadReport, *, dry_run: bool) -> str:
    verb = "Would store" if dry_run else "Stored"
    invalid = f" ({report.n_invalid:,} invalid)" if report.n_invalid else ""
    new = f"{words.counted(report.n_new, 'new result')}{invalid}"
    remeasured = f" ({report.n_remeasured:,} only in cost, tokens or time)" if report.n_remeasured else ""
    results = [
        new if report.n_new or not report.n_replaced else "",
        f"{report.n_replaced:,} replaced{remeasured}" if report.n_replaced else "",
        f"{report.n_same:,} already stored" if report.n_same else "",
    ]
    new_tasks = f" ({report.n_new_tasks:,} new)" if report.n_new_tasks else ""
    submissions, agents, tasks = (
        words.counted(n, noun)
        for n, noun in (
            (report.n_submissions, "submission"),
            (report.n_agents, "agent"),
            (report.n_tasks, "task"),
        )
    )
    came = f"; {submissions} from {agents} on {tasks}{new_tasks}" if report.n_submissions else ""
    text = f"{verb} in {report.benchmark}: {', '.join(filter(None, results))}{came}."
    return text + "".join(f"\n{note}" for note in (*report.notes, *report.decided))
